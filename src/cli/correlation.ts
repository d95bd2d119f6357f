/**
 * A new correlation id, in the shape of a UUID. It finds a line in a log: it must be unique and need
 * not be secret, and node:crypto would cost every command 6 ms.
 */
export function newCorrelationId(): string {
  const digits = Array.from({ length: 32 }, () => Math.floor(Math.random() * 16).toString(16)).join('')
  return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5')
}

import { sanitizeAndCut } from '../sanitize.ts'

/**
 * Makes text from a peer safe for a terminal, a log and a pager: one line, cut at `max` characters.
 *
 * @example
 * ```ts
 * sanitize('a\r\nb') // 'a b'
 * ```
 */
export const sanitize = (text: string | Uint8Array, max = 256): string =>
  sanitizeAndCut(typeof text === 'string' ? text : new TextDecoder().decode(text.subarray(0, max * 8)), max)

/**
 * The sanitized text in quotes, which separate the peer's words from ours.
 *
 * @example
 * ```ts
 * quote('orders') // '"orders"'
 * ```
 */
export const quote = (text: string | Uint8Array, max = 256): string => `"${sanitize(text, max)}"`

/**
 * A URL that is safe to show: without user, password, fragment and the values of its query.
 *
 * @example
 * ```ts
 * safeUrl(new URL('https://ann:secret@db1/a?token=b')) // 'https://db1/a?token=…'
 * ```
 */
export function safeUrl(url: URL): string {
  const names = [...url.searchParams.keys()].map((name) => `${sanitize(name, 32)}=…`)
  return `${url.protocol}//${url.host}${sanitize(url.pathname, 128)}${names.length > 0 ? `?${names.join('&')}` : ''}`
}

/** Sanitizes text from a peer and removes the secrets that were sent to it: an echo must not put them into a result. */
export type Redact = (text: string | Uint8Array) => string

/**
 * Sanitizes before it redacts, because control characters could split a secret. Cuts only at 4,096 characters, because
 * half a secret would escape redaction.
 *
 * @example
 * ```ts
 * createRedactor(['hunter22'])('the password hunter22') // 'the password [secret]'
 * ```
 */
export function createRedactor(secrets: readonly string[], instead = '[secret]'): Redact {
  const byLength = secrets.filter((secret) => secret.length > 3).sort((a, b) => b.length - a.length)
  return (text) => byLength.reduce((left, secret) => left.replaceAll(secret, instead), sanitize(text, 4096))
}
/** For peers that received no secret. */
export const noRedaction: Redact = (text) => sanitize(text, 4096)

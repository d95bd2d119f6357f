import { sanitizeAndCut } from '../sanitize.ts'

/** What a peer said, made safe for a terminal, a log and a pager: one line, cut at `max` characters. */
export const sanitize = (text: string | Uint8Array, max = 256): string =>
  sanitizeAndCut(typeof text === 'string' ? text : new TextDecoder().decode(text.subarray(0, max * 8)), max)

/** `said`, in quotes: where our words end and the peer's begin must be seen. */
export const quote = (text: string | Uint8Array, max = 256): string => `"${sanitize(text, max)}"`

/** A URL fit to be shown: no user, no password, no fragment, and no value of its query. */
export function safeUrl(url: URL): string {
  const names = [...url.searchParams.keys()].map((name) => `${sanitize(name, 32)}=…`)
  return `${url.protocol}//${url.host}${sanitize(url.pathname, 128)}${names.length > 0 ? `?${names.join('&')}` : ''}`
}

/** Shows what a peer said, without the secrets that it was sent: an echo must not put them into a result. */
export type Redact = (text: string | Uint8Array) => string

/** Cleaned first, or control characters could split a secret; not cut below 4,096, or half of one would stay. */
export function createRedactor(secrets: readonly string[], instead = '[secret]'): Redact {
  const longestFirst = secrets.filter((secret) => secret.length > 3).sort((a, b) => b.length - a.length)
  return (text) => longestFirst.reduce((left, secret) => left.replaceAll(secret, instead), sanitize(text, 4096))
}
/** For peers that were sent no secret. */
export const noRedaction: Redact = (text) => sanitize(text, 4096)

/** A count with its noun: `1 address`, `3 addresses`. */
export const count = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`

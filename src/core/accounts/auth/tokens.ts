import { createHash, randomBytes } from 'node:crypto'

/** The prefixes of secrets by kind, so that scanners and people recognize a leaked one (T1). */
export const prefixes = { access: 'svc_at_', refresh: 'svc_rt_', session: 'svc_ss_', key: 'svc_key_' } as const
export type TokenKind = keyof typeof prefixes

const secretBytes = 32
const checksumLength = 6
const shape = /^[A-Za-z0-9_-]{49}$/

/** A new secret: its text for the caller, its hash for the store. */
export function newToken(kind: TokenKind): { readonly text: string; readonly hash: string } {
  const body = prefixes[kind] + randomBytes(secretBytes).toString('base64url')
  const text = body + checksum(body)
  return { text, hash: hashOf(text) }
}

/** The hash by which to look up a presented secret. Undefined when it is mistyped, or no secret of this kind (T5). */
export function readToken(kind: TokenKind, text: string): string | undefined {
  if (!text.startsWith(prefixes[kind])) return undefined
  if (!shape.test(text.slice(prefixes[kind].length))) return undefined
  const body = text.slice(0, -checksumLength)
  return text.slice(-checksumLength) === checksum(body) ? hashOf(text) : undefined
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A checksum that detects typing errors without the store. It has no security value. */
const checksum = (body: string): string =>
  createHash('sha256').update(`checksum ${body}`).digest('base64url').slice(0, checksumLength)

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Lifetimes in milliseconds (T3). `idle` counts from the last use, `absolute` from the sign-in. */
export type Lifetimes = {
  readonly access: number
  /** The lifetimes without and with RememberMe. */
  readonly session: { readonly usual: Span; readonly permanent: Span }
  readonly refresh: { readonly usual: Span; readonly permanent: Span }
}
type Span = { readonly idle: number; readonly absolute: number }

export const lifetimes: Lifetimes = {
  access: 15 * minute,
  session: { usual: { idle: 8 * hour, absolute: 7 * day }, permanent: { idle: 30 * day, absolute: 90 * day } },
  refresh: { usual: { idle: 7 * day, absolute: 30 * day }, permanent: { idle: 30 * day, absolute: 90 * day } },
}

/** A use is recorded when this share of the idle time has passed since the last recorded one. */
export const touchShare = 0.05

type Living = { readonly lastUsedAt: number; readonly idleMs: number; readonly endsAt: number }

/** Whether a session or a refresh token has expired. */
export const ended = (row: Living, now: number): boolean => now >= row.endsAt || now >= row.lastUsedAt + row.idleMs

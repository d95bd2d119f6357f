import { createHash, randomBytes } from 'node:crypto'

/** T1: what each kind of secret begins with, so that a scanner, and a person, can tell what leaked. */
export const prefixes = { access: 'svc_at_', refresh: 'svc_rt_', session: 'svc_ss_', key: 'svc_key_' } as const
export type TokenKind = keyof typeof prefixes

const secretBytes = 32
const checksumLength = 6
const shape = /^[A-Za-z0-9_-]{49}$/

/** A new secret: its text for whoever asked for it, its hash for the store. */
export function newToken(kind: TokenKind): { readonly text: string; readonly hash: string } {
  const body = prefixes[kind] + randomBytes(secretBytes).toString('base64url')
  const text = body + checksum(body)
  return { text, hash: hashOf(text) }
}

/** The hash to look a presented secret up by; undefined when it is no secret of this kind (T5), or mistyped. */
export function readToken(kind: TokenKind, text: string): string | undefined {
  if (!text.startsWith(prefixes[kind])) return undefined
  if (!shape.test(text.slice(prefixes[kind].length))) return undefined
  const body = text.slice(0, -checksumLength)
  return text.slice(-checksumLength) === checksum(body) ? hashOf(text) : undefined
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Tells a typing error from an unknown token without asking the store. It proves nothing and hides nothing. */
const checksum = (body: string): string =>
  createHash('sha256').update(`checksum ${body}`).digest('base64url').slice(0, checksumLength)

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** T3, in milliseconds. `idle` counts from the last use, `absolute` from the sign-in. */
export type Lifetimes = {
  readonly access: number
  /** How long one lives, without and with RememberMe. */
  readonly session: { readonly usual: Span; readonly permanent: Span }
  readonly refresh: { readonly usual: Span; readonly permanent: Span }
}
type Span = { readonly idle: number; readonly absolute: number }

export const lifetimes: Lifetimes = {
  access: 15 * minute,
  session: { usual: { idle: 8 * hour, absolute: 7 * day }, permanent: { idle: 30 * day, absolute: 90 * day } },
  refresh: { usual: { idle: 7 * day, absolute: 30 * day }, permanent: { idle: 30 * day, absolute: 90 * day } },
}

/** A use is written down when this share of the idle time has passed since the last one that was. */
export const touchShare = 0.05

type Living = { readonly lastUsedAt: number; readonly idleMs: number; readonly endsAt: number }

/** Whether a session or a refresh token has ended by itself. */
export const ended = (row: Living, now: number): boolean => now >= row.endsAt || now >= row.lastUsedAt + row.idleMs

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

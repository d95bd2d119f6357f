import type { Hop } from './judge.ts'

/** A drill as it is stored and shown. Instants are milliseconds since 1970. */
export type DrillRecord = {
  /** Random. */
  readonly id: string
  /** Who began it: a user name, `local:alice`, or `schedule`. */
  readonly by: string
  readonly through: readonly string[]
  readonly beganAt: number
  /** Absent while it runs. */
  readonly endedAt?: number | undefined
  readonly hops: readonly Hop[]
  /** SHA-256 of the tokens of the links that nobody has opened, by receiver. */
  readonly tokens: Readonly<Record<string, string>>
  /** When links were opened, by receiver. */
  readonly opened: Readonly<Record<string, number>>
}

/** Where drills are stored. Every method may throw the faults of a store. */
export type DrillRows = {
  /** The latest first, at most `n`. */
  readonly latest: (n: number) => Promise<readonly DrillRecord[]>
  readonly find: (id: string) => Promise<DrillRecord | undefined>
  /** Adds a drill that begins. False: another one began less than `pauseMs` before. One transaction. */
  readonly begin: (drill: DrillRecord, pauseMs: number) => Promise<boolean>
  /** Replaces the record of a drill, but keeps links that were opened meanwhile. */
  readonly update: (drill: DrillRecord) => Promise<void>
  /** Opens a link, which works once. Resolves with its drill, or undefined if no drill since `since` has this token. */
  readonly open: (tokenHash: string, at: number, since: number) => Promise<OpenedLink | undefined>
}
export type OpenedLink = { readonly drill: DrillRecord; readonly receiver: string }

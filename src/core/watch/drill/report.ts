import type { Hop } from './judge.ts'

/** How long the link in a message of a drill works, in milliseconds. */
export const linkMs = 7 * 86_400_000
/** How many drills are kept: the latest, and more for as long as their links work. */
export const keptDrills = { latest: 100, withLinks: 1_000 } as const

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
  /** SHA-256 of the tokens of the links, by receiver. */
  readonly tokens: Readonly<Record<string, string>>
  /** When links were confirmed for the first time, by receiver. */
  readonly opened: Readonly<Record<string, number>>
}

/** Where drills are stored. Every method may throw the faults of a store. */
export type DrillRows = {
  /** The latest first, at most `n`. */
  readonly latest: (n: number) => Promise<readonly DrillRecord[]>
  readonly find: (id: string) => Promise<DrillRecord | undefined>
  /** Adds a drill that begins. False: another one began less than `pauseMs` before. One transaction. */
  readonly begin: (drill: DrillRecord, pauseMs: number) => Promise<boolean>
  /** Replaces the record of a drill, but keeps the links and their confirmations. */
  readonly update: (drill: DrillRecord) => Promise<void>
  /** The link of a token. Resolves with undefined if no drill since `since` has this token. */
  readonly link: (tokenHash: string, since: number) => Promise<DrillLink | undefined>
  /** The same, after confirming the link at `at` unless it was confirmed before. One transaction. */
  readonly confirm: (tokenHash: string, at: number, since: number) => Promise<DrillLink | undefined>
}
export type DrillLink = {
  readonly drill: DrillRecord
  readonly receiver: string
  /** When somebody pressed the button of its page. Undefined: nobody has. */
  readonly confirmedAt: number | undefined
}

/** The link of a token among drills, if its drill began at `since` or later. */
export function linkIn(drills: readonly DrillRecord[], tokenHash: string, since: number): DrillLink | undefined {
  for (const drill of drills) {
    const receiver = Object.keys(drill.tokens).find((name) => drill.tokens[name] === tokenHash)
    if (receiver !== undefined && drill.beganAt >= since)
      return { drill, receiver, confirmedAt: drill.opened[receiver] }
  }
  return undefined
}

/** A link after its confirmation. Undefined if it was confirmed before, which changes nothing. */
export const confirmedLink = ({ drill, receiver, confirmedAt }: DrillLink, at: number): DrillLink | undefined =>
  confirmedAt === undefined
    ? { drill: { ...drill, opened: { ...drill.opened, [receiver]: at } }, receiver, confirmedAt: at }
    : undefined

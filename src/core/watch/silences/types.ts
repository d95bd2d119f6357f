import type { StoredSubject, SubjectState } from '../states/index.ts'

/** Monitors that svc.yaml silences at certain times. */
export type ClockSilence = {
  /** Names with or without their type: `Sql/*`, `postgres orders`. */
  readonly monitors: readonly string[]
  /** A cron expression of five fields, or a name such as `@daily`: when it begins. */
  readonly when: string
  readonly timezone: string
  /** How long it lasts, in milliseconds. */
  readonly forMs: number
  readonly reason: string
}

/** Who wants silence, why, and for how long. Instants are milliseconds since 1970. */
type Wish = {
  /** Short, and unique in the store. */
  readonly id: string
  readonly from: number
  /** Exclusive. */
  readonly until: number
  /** The name of a user, or `local:` and the account of this machine. */
  readonly by: string
  readonly reason: string
}

/** Somebody silences monitors for a while. */
export type HandSilence = Wish & {
  readonly what: 'silence'
  /** As in `silences:` of svc.yaml. */
  readonly monitors: readonly string[]
}

/** Somebody knows of one fault as it is now. It ends with the incident, or when the fault becomes worse or another one. */
export type Acknowledgement = Wish & {
  readonly what: 'ack'
  readonly subject: StoredSubject
  /** The id of the incident. */
  readonly incident: string
  readonly level: 'warning' | 'failed'
  readonly fault?: SubjectState['fault']
}

/** An entry that somebody made by hand, and that the store keeps. */
export type HandMade = HandSilence | Acknowledgement

/**
 * Why an entry ended before its time:
 *
 * - `ended`: somebody ended it.
 * - `over`: the incident of an acknowledgement ended.
 * - `worse`, `other fault`: the fault is no longer the one that was acknowledged.
 */
export type SilenceEnding = 'ended' | 'over' | 'worse' | 'other fault'

/** An entry as the store has it. */
export type StoredSilence = HandMade & {
  readonly ended?: { readonly at: number; readonly by: string; readonly why: SilenceEnding } | undefined
}

/** Where a silence comes from. */
export type SilenceCause = 'hand' | 'clock' | 'ack'

/** Why notifications about a subject wait. */
export type Silence = {
  readonly source: SilenceCause
  /** Of an entry that somebody made. */
  readonly id?: string | undefined
  /** Exclusive, in milliseconds since 1970. */
  readonly until: number
  /** Absent for a silence by the clock. */
  readonly by?: string | undefined
  readonly reason: string
}

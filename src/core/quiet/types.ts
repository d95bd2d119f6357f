/** Monitors that svc.yaml silences at certain times. */
export type ClockQuiet = {
  /** Names with or without their type: `Sql/*`, `postgres orders`. */
  readonly monitors: readonly string[]
  /** A cron expression of five fields, or a name such as `@daily`: when it begins. */
  readonly when: string
  readonly timezone: string
  /** How long it lasts, in milliseconds. */
  readonly forMs: number
  readonly reason: string
}

/** Why notifications about a subject wait. */
export type Silence = {
  /** Exclusive, in milliseconds since 1970. */
  readonly until: number
  readonly reason: string
}

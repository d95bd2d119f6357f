import { createRequire } from 'node:module'
import type * as Croner from 'croner'

/** The times of a cron expression; milliseconds since 1970. */
export type Cron = {
  /** The last `n` before a time, that time not among them; newest first. */
  readonly before: (time: number, n: number) => readonly number[]
  /** The first after a time, if one ever comes. */
  readonly after: (time: number) => number | undefined
}

/**
 * Reads an expression of five fields, or a name such as `@daily`. Days that begin or end summer time
 * are as in Debian's cron: a fixed time that they skip comes as soon as they have skipped it, one that
 * they repeat comes once; what comes every hour or minute comes in every hour that there is. Throws an
 * Error that says what cannot be read.
 */
export function readCron(expression: string, timezone: string): Cron {
  // Read where a schedule is set, and then at once: settings are judged without waiting.
  const croner = createRequire(import.meta.url)('croner') as typeof Croner
  const cron = new croner.Cron(expression, {
    paused: true,
    timezone,
    mode: '5-part',
    fixedTimeRule: 'no-wildcard',
  })
  // It knows whole seconds only.
  const second = (time: number, round: (value: number) => number): Date => new Date(round(time / 1_000) * 1_000)
  return {
    before: (time, n) => cron.previousRuns(n, second(time, Math.ceil)).map((date) => date.getTime()),
    after: (time) => cron.nextRun(second(time, Math.floor))?.getTime(),
  }
}

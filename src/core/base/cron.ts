import { createRequire } from 'node:module'
import type * as Croner from 'croner'
import { count } from './format.ts'
import { quote, sanitize } from './net/text.ts'
import { didYouMean } from './suggest.ts'

/** From the most to the least frequent. */
const names = ['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually']

/** The times of a cron expression, in milliseconds since 1970. */
export type Cron = {
  /** The last `n` times before `time`, exclusive; newest first. */
  readonly before: (time: number, n: number) => readonly number[]
  /** The first time after `time`, if there is one. */
  readonly after: (time: number) => number | undefined
}

/**
 * Parses an expression of five fields, or a name such as `@daily`. Handles daylight saving changes like Debian's cron:
 * a fixed time that is skipped runs right after the gap, a fixed time that is repeated runs once, and hourly or more
 * frequent jobs run in every actual hour. Throws an Error that explains what cannot be parsed.
 */
export function readCron(expression: string, timezone: string): Cron {
  // Loaded only for a schedule, and synchronously, because settings are validated synchronously.
  const croner = createRequire(import.meta.url)('croner') as typeof Croner
  const cron = new croner.Cron(expression.trim(), {
    paused: true,
    timezone,
    mode: '5-part',
    fixedTimeRule: 'no-wildcard',
  })
  // croner only supports whole seconds.
  const second = (time: number, round: (value: number) => number): Date => new Date(round(time / 1_000) * 1_000)
  return {
    before: (time, n) => cron.previousRuns(n, second(time, Math.ceil)).map((date) => date.getTime()),
    after: (time) => cron.nextRun(second(time, Math.floor))?.getTime(),
  }
}

/**
 * A cron expression whose times happen once each, as a silence or a drill is meant: a time that the change of the clock
 * skips, fixed or starred, is at the end of the gap, and one that is repeated is the first of both. Throws like
 * `readCron`.
 */
export function readCronOnce(expression: string, timezone: string): Cron {
  // The clock on the wall as if it were UTC, which has no changes.
  const wall = readCron(expression, 'UTC')
  const clock = wallClock(timezone)
  return {
    after(time) {
      let wallTime = clock.wallAt(time)
      for (;;) {
        const next = wall.after(wallTime)
        if (next === undefined) return undefined
        const at = clock.firstAt(next)
        if (at > time) return at
        wallTime = next
      }
    },
    before(time, n) {
      const times = new Set<number>()
      // What the wall showed before it was set back was later on the wall, and earlier in time.
      let wallTime = Math.max(clock.wallAt(time), clock.wallAt(time - changeMs) + changeMs)
      while (times.size < n) {
        const past = wall.before(wallTime, n)
        if (past.length === 0) break
        for (const one of past) {
          wallTime = one
          const at = clock.firstAt(one)
          if (at < time) times.add(at)
        }
      }
      return [...times].slice(0, n)
    },
  }
}

/** Daylight saving time changes clocks by two hours at most. */
const changeMs = 3 * 3_600_000

/** The time that a clock on the wall shows, as milliseconds since 1970 in UTC. */
function wallClock(timezone: string) {
  const format = new Intl.DateTimeFormat('en', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  const wallAt = (time: number): number => {
    const part = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]))
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
    return Date.UTC(year, month - 1, day, hour, minute, second) + (((time % 1_000) + 1_000) % 1_000)
  }
  /** When it first shows a time; if it never does, when it is set forward past it. */
  const firstAt = (wallTime: number): number => {
    const about = wallTime - (wallAt(wallTime) - wallTime)
    const offsets = [about - changeMs, about + changeMs].map((time) => wallAt(time) - time)
    const [early = 0, late = 0] = offsets.map((offset) => wallTime - offset).toSorted((a, b) => a - b)
    if (wallAt(early) === wallTime) return early
    if (wallAt(late) === wallTime) return late
    let [below, above] = [early, late]
    while (above - below > 1_000) {
      const middle = Math.floor((below + above) / 2_000) * 1_000
      if (wallAt(middle) > wallTime) above = middle
      else below = middle
    }
    return above
  }
  return { wallAt, firstAt }
}

/** Why a time zone cannot be used, or undefined. */
export function zoneProblem(timezone: string): string | undefined {
  const is = `timezone ${quote(timezone, 64)} is not a time zone`
  const such = `${is}: use a name such as Europe/Berlin`
  // An offset is not a time zone: it has no daylight saving time.
  if (!/^[a-z]/i.test(timezone)) return such
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone })
    return undefined
  } catch {
    const meant = didYouMean(timezone, Intl.supportedValuesOf('timeZone'))
    return meant === undefined ? such : `${is}: did you mean ${meant}?`
  }
}

/** An expression in a valid time zone, or why it cannot be read. `setting`: the name of its setting. */
export function cronOf(
  setting: string,
  expression: string,
  timezone: string,
  read: typeof readCron = readCron,
): Cron | { readonly problem: string } {
  const place = `${setting} ${quote(expression, 100)}`
  const fields = expression.split(/\s+/).filter((field) => field !== '')
  if (expression.trim().startsWith('@')) {
    if (!names.includes(expression.trim().toLowerCase()))
      return { problem: `${place} is not one of ${names.join(', ')}` }
  } else if (fields.length !== 5) {
    const problem = `${place} has ${count(fields.length, 'field')}: write 5 (minute, hour, day, month, weekday: 0 2 * * *), or a name such as @daily`
    return { problem }
  }
  try {
    return read(expression, timezone)
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : ''
    return { problem: `${place} cannot be read: ${sanitize(why, 200)}` }
  }
}

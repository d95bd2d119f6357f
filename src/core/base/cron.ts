import { createRequire } from 'node:module'
import type * as Croner from 'croner'
import { count } from './format.ts'
import { quote, sanitize } from './net/text.ts'
import { didYouMean } from './suggest.ts'

/** The time zone of expressions that name none. */
export const usualZone = 'UTC'
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
export function cronOf(setting: string, expression: string, timezone: string): Cron | { readonly problem: string } {
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
    return readCron(expression, timezone)
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : ''
    return { problem: `${place} cannot be read: ${sanitize(why, 200)}` }
  }
}

import { createRequire } from 'node:module'
import type * as Croner from 'croner'
import { showDuration } from '../../format.ts'
import { count, quote, sanitize } from '../../net/text.ts'
import { didYouMean } from '../../suggest.ts'
import { type ReportSettings, reportSettings } from './agents.ts'
import { type Due, maxRuns, runsOf, type ScheduledRun } from './due.ts'

const dayMs = 86_400_000
/** The store forgets an agent after this much silence. */
export const rememberedMs = 100 * dayMs
const usualZone = 'UTC'
/** From the most to the least frequent. */
const names = ['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually']

/** Why the schedule and its related settings cannot be used, or undefined. Loads croner if a schedule is set. */
export function scheduleProblem(settings: ReportSettings): string | undefined {
  const { schedule, timezone, grace, interval, late } = settings
  // Defaults are identical to the objects in the settings table, so any other object was configured.
  if (schedule === undefined) {
    const alone = timezone !== undefined ? 'timezone' : grace !== reportSettings.grace.default ? 'grace' : undefined
    return alone && `has ${alone} without schedule: for agents that report at intervals, use interval and late`
  }
  if (interval !== undefined) return 'has both schedule and interval: remove one of them'
  if (late !== reportSettings.late.default) {
    return 'has both schedule and late: with a schedule, use grace'
  }
  return zoneProblem(timezone ?? usualZone) ?? expressionProblem(schedule, timezone ?? usualZone, settings)
}

function zoneProblem(timezone: string): string | undefined {
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

function expressionProblem(schedule: string, timezone: string, { grace }: ReportSettings): string | undefined {
  const place = `schedule ${quote(schedule, 100)}`
  const fields = schedule.split(/\s+/).filter((field) => field !== '')
  if (schedule.trim().startsWith('@')) {
    if (!names.includes(schedule.trim().toLowerCase())) return `${place} is not one of ${names.join(', ')}`
  } else if (fields.length !== 5) {
    return `${place} has ${count(fields.length, 'field')}: write 5 (minute, hour, day, month, weekday: 0 2 * * *), or a name such as @daily`
  }
  let cron: Cron
  try {
    cron = readCron(schedule.trim(), timezone)
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : ''
    return `${place} cannot be read: ${sanitize(why, 200)}`
  }
  const gap = tooLong(cron, rememberedMs - (grace.limit ?? grace.warn ?? 0))
  if (gap === undefined) return undefined
  if (gap === Number.POSITIVE_INFINITY) return `${place} matches no date`
  return `${place} leaves ${showDuration(gap)} between two times, and with grace that is more than 100 d: an agent that is silent for so long is deleted. Check a file that the job writes instead (kind file-age)`
}

/** A fixed date, so that the validity of a file does not depend on when it is read. */
const firstLook = Date.UTC(2026, 0, 1)
const lookMs = 400 * dayMs
const maxSteps = 100

/** A gap between two runs that is longer than `withinMs`, or undefined; infinite if there is no further run. */
function tooLong(cron: Cron, withinMs: number): number | undefined {
  let at = cron.after(firstLook)
  for (let steps = 0; steps < maxSteps; steps += 1) {
    if (at === undefined) return Number.POSITIVE_INFINITY
    // Jumps to the last run within `withinMs`. If there is none, the next run is too far away.
    const [reached = at] = cron.before(at + withinMs + 1, 1)
    if (reached <= at) return (cron.after(at) ?? Number.POSITIVE_INFINITY) - at
    if (reached > firstLook + lookMs) return undefined
    at = reached
  }
  return undefined
}

/** What is due by now; undefined without a schedule. The settings must have passed `scheduleProblem`. */
export function dueAt({ schedule, timezone = usualZone, grace }: ReportSettings, now: number): Due | undefined {
  if (schedule === undefined) return undefined
  const { cron, times } = timesUpTo(schedule.trim(), timezone, now)
  const longerAgo = (ms: number | undefined): ScheduledRun | undefined => {
    if (ms === undefined) return undefined
    const last = times.filter((time) => time < now - ms).slice(0, 2)
    return runsOf(last.length === 2 ? last : cron.before(now - ms, 2))[0]
  }
  return {
    now,
    timezone,
    grace,
    runs: runsOf(times),
    past: { warn: longerAgo(grace.warn), limit: longerAgo(grace.limit) },
  }
}

type Times = {
  readonly cron: Cron
  /** The last `maxRuns` + 1 scheduled times, newest first. */
  readonly times: readonly number[]
  /** The time of the next run, until which this entry is valid. */
  readonly next: number
}
const cache = new Map<string, Times>()
const maxTimes = 100

/** Caches the times: searching backwards takes about 20 ms, and the result is the same until the next run. */
function timesUpTo(expression: string, timezone: string, now: number): Times {
  const key = `${timezone} ${expression}`
  const before = cache.get(key)
  if (before && now < before.next && now >= (before.times[0] ?? 0)) return before
  const cron = before?.cron ?? readCron(expression, timezone)
  const times = { cron, times: cron.before(now + 1, maxRuns + 1), next: cron.after(now) ?? Number.POSITIVE_INFINITY }
  if (cache.size >= maxTimes) cache.clear()
  cache.set(key, times)
  return times
}

/** The times of a cron expression, in milliseconds since 1970. */
type Cron = {
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
function readCron(expression: string, timezone: string): Cron {
  // Loaded only for a schedule, and synchronously, because settings are validated synchronously.
  const croner = createRequire(import.meta.url)('croner') as typeof Croner
  const cron = new croner.Cron(expression, {
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

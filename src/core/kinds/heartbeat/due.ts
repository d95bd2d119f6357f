import { createRequire } from 'node:module'
import type * as Croner from 'croner'
import { showDuration } from '../../format.ts'
import { count, quote, sanitize } from '../../net/text.ts'
import type { Threshold } from '../../settings/index.ts'
import { didYouMean } from '../../suggest.ts'
import { type ReportSettings, reportSettings } from './agents.ts'

/** A scheduled time, and the earliest time at which a heartbeat counts for it. Milliseconds since 1970. */
export type ScheduledRun = { readonly at: number; readonly from: number }

/** The runs for which every agent should have reported by now. */
export type Due = {
  readonly now: number
  readonly timezone: string
  readonly grace: Threshold
  /** The last `maxRuns` scheduled times up to now, newest first. */
  readonly runs: readonly ScheduledRun[]
  /** The last run whose grace period has expired: a heartbeat from before that run is too old. */
  readonly past: { readonly warn: ScheduledRun | undefined; readonly limit: ScheduledRun | undefined }
}

/** Maximum number of past scheduled times. Earlier runs are not counted individually. */
export const maxRuns = 300

/** The tolerance for a clock that is ahead, and so reports before the scheduled time. Milliseconds. */
const earlyMs = 60_000

/**
 * Converts scheduled times, newest first, to runs; the last time only determines the length of the preceding interval.
 * A heartbeat counts from one minute before the scheduled time, or from a quarter of the interval if that is shorter:
 * an earlier heartbeat could belong to the previous run.
 */
export const runsOf = (times: readonly number[]): readonly ScheduledRun[] =>
  times.slice(0, -1).map((at, index) => ({ at, from: at - Math.min(earlyMs, (at - (times[index + 1] ?? at)) / 4) }))

/** The status of an agent with respect to the schedule, given the time `at` of its last heartbeat. */
export type ScheduleStatus = {
  readonly status: 'ok' | 'warning' | 'failed'
  /** The first scheduled time without a heartbeat; undefined if none is missing, or if too many are missing to know. */
  readonly since: number | undefined
  /** The number of runs without a heartbeat whose grace period has expired; undefined in the same cases. */
  readonly missed: number | undefined
  /** True if more runs are missing than are looked back at. */
  readonly many: boolean
}

const isBefore = (at: number, run: ScheduledRun | undefined): boolean => run !== undefined && at < run.from

export function scheduleStatus(at: number, { runs, past }: Due): ScheduleStatus {
  const status = isBefore(at, past.limit) ? 'failed' : isBefore(at, past.warn) ? 'warning' : 'ok'
  const missedRuns = unmetCount(at, runs)
  const many = missedRuns > 0 && missedRuns === runs.length
  const bound = status === 'failed' ? past.limit : past.warn
  const graced = bound === undefined ? -1 : runs.findIndex((run) => run.at <= bound.at)
  return {
    status,
    since: many ? undefined : runs[missedRuns - 1]?.at,
    missed: graced < 0 ? undefined : Math.max(0, missedRuns - graced),
    many,
  }
}

/** True beyond the limit of the grace period, or beyond its warning if there is no limit. */
export const isOverdue = (at: number, { past, grace }: Due): boolean =>
  isBefore(at, grace.limit === undefined ? past.warn : past.limit)

/** Whether an agent was overdue between two heartbeats, within the known runs. */
export function wasOverdue(from: number, to: number, { runs, grace }: Due): boolean {
  const first = runs[unmetCount(from, runs) - 1]
  const bound = grace.limit ?? grace.warn
  return first !== undefined && bound !== undefined && to - first.at > bound
}

/**
 * The number of runs for which a heartbeat came too early. Uses a binary search, because 10,000 agents may have 20
 * heartbeats each.
 */
function unmetCount(at: number, runs: readonly ScheduledRun[]): number {
  let low = 0
  let high = runs.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBefore(at, runs[middle])) low = middle + 1
    else high = middle
  }
  return low
}

/** Describes an overdue agent by the time of its last heartbeat: `has not reported since …`. */
export function overdue(at: number, due: Due, bound?: string): string {
  const { since, missed, many, status } = scheduleStatus(at, due)
  const [from, why] = since === undefined ? [at, 'its heartbeat of '] : [since, '']
  const runs = many
    ? `more than ${maxRuns} runs missed`
    : // A single one that is not over its limit may still come.
      missed === undefined || (status !== 'failed' && missed < 2)
      ? undefined
      : `${count(missed, 'run')} missed`
  const ago = [`${showDuration(due.now - from)} ago`, runs].filter(Boolean).join(', ')
  const when = since === undefined ? '' : ', when it was due'
  return `has not reported since ${why}${clock(from, due)}${when} (${[ago, bound].filter(Boolean).join('; ')})`
}

/** For example `02:00 UTC`; with the date unless it is today. */
export function clock(at: number, { now, timezone }: Due): string {
  const zoned = new Intl.DateTimeFormat('en', {
    timeZone: timezone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  const read = (time: number): { readonly date: string; readonly time: string } => {
    const parts = Object.fromEntries(zoned.formatToParts(time).map(({ type, value }) => [type, value]))
    return { date: `${parts['year']}-${parts['month']}-${parts['day']}`, time: `${parts['hour']}:${parts['minute']}` }
  }
  const then = read(at)
  return `${then.date === read(now).date ? '' : `${then.date} `}${then.time} ${timezone}`
}

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

/** A gap between two runs that is longer than `room`, or undefined; infinite if there is no further run. */
function tooLong(cron: Cron, room: number): number | undefined {
  let at = cron.after(firstLook)
  for (let steps = 0; steps < maxSteps; steps += 1) {
    if (at === undefined) return Number.POSITIVE_INFINITY
    // Jumps to the last run within `room`. If there is none, the next run is too far away.
    const [reached = at] = cron.before(at + room + 1, 1)
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

import { count, showDuration } from '../../../base/format.ts'
import type { Threshold } from '../../../base/settings/index.ts'

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
  return `has not reported since ${why}${clockText(from, due)}${when} (${[ago, bound].filter(Boolean).join('; ')})`
}

/** For example `02:00 UTC`; with the date unless it is today. */
export function clockText(at: number, { now, timezone }: Due): string {
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

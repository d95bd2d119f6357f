import { showDuration } from '../../format.ts'
import { count } from '../../net/text.ts'
import type { Threshold } from '../../settings/index.ts'

/** A scheduled time, and from when on a heartbeat counts for it. Milliseconds since 1970. */
export type ScheduledRun = { readonly at: number; readonly from: number }

/** What a schedule asks of every agent by now. */
export type Due = {
  readonly now: number
  readonly timezone: string
  readonly grace: Threshold
  /** The last `maxRuns` scheduled times up to now, newest first. */
  readonly runs: readonly ScheduledRun[]
  /** The last that was longer ago than the grace allows: a heartbeat of before is too old. */
  readonly past: { readonly warn: ScheduledRun | undefined; readonly limit: ScheduledRun | undefined }
}

/** Scheduled times that are looked back at: what was before is not counted one by one. */
export const maxRuns = 300

/** A clock that is ahead by so much reports before the time has come. Milliseconds. */
const earlyMs = 60_000

/**
 * Scheduled times, newest first, as runs; the last of them only says how far apart they are. A
 * heartbeat counts from a minute before, or from a quarter of the time since the run before where
 * that is less: it could be for that one.
 */
export const runsOf = (times: readonly number[]): readonly ScheduledRun[] =>
  times.slice(0, -1).map((at, index) => ({ at, from: at - Math.min(earlyMs, (at - (times[index + 1] ?? at)) / 4) }))

/** How an agent whose last heartbeat came `at` stands to what is due. */
export type ScheduleStatus = {
  readonly status: 'ok' | 'warning' | 'failed'
  /** The first scheduled time that it has not reported for; undefined where all are, or too many to know. */
  readonly since: number | undefined
  /** How many scheduled times, whose grace has passed, it has not reported for; undefined as above. */
  readonly missed: number | undefined
  /** More than are looked back at. */
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

/** Beyond the limit of the grace; without one, beyond the warning. */
export const isOverdue = (at: number, { past, grace }: Due): boolean =>
  isBefore(at, grace.limit === undefined ? past.warn : past.limit)

/** Whether an agent was overdue between two heartbeats, so far as is looked back. */
export function wasOverdue(from: number, to: number, { runs, grace }: Due): boolean {
  const first = runs[unmetCount(from, runs) - 1]
  const bound = grace.limit ?? grace.warn
  return first !== undefined && bound !== undefined && to - first.at > bound
}

/** How many of the runs a heartbeat came too early for. By halves: 10,000 agents have 20 heartbeats each. */
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

/** Of an agent that is overdue, by the time of its last heartbeat: `has not reported since …`. */
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

/** `02:00 UTC`, and of another day than today the date too. */
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

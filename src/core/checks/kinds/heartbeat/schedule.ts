import { type Cron, cronOf, readCron, zoneProblem } from '../../../base/cron.ts'
import { showDuration } from '../../../base/format.ts'
import { quote } from '../../../base/net/text.ts'
import { usualZone } from '../../../base/zone.ts'
import { type ReportSettings, reportSettings } from './agents.ts'
import { type Due, maxRuns, runsOf, type ScheduledRun } from './due.ts'

const dayMs = 86_400_000
/** The store forgets an agent after this much silence. */
export const rememberedMs = 100 * dayMs

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

function expressionProblem(schedule: string, timezone: string, { grace }: ReportSettings): string | undefined {
  const place = `schedule ${quote(schedule, 100)}`
  const cron = cronOf('schedule', schedule, timezone)
  if ('problem' in cron) return cron.problem
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

/**
 * The scheduled runs that are due by now; undefined without a schedule. The settings must have passed
 * `scheduleProblem`.
 */
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

import { showDuration } from '../../format.ts'
import { count, quoted, said } from '../../net/text.ts'
import { didYouMean } from '../../suggest.ts'
import { type Cron, readCron } from './cron.ts'
import { type Due, mostRuns, type Run, runsOf } from './due.ts'
import { type HeartbeatSettings, heartbeatSettings } from './settings.ts'

const dayMs = 86_400_000
/** The store forgets an agent that has been silent for so long. */
export const rememberedMs = 100 * dayMs
const usualZone = 'UTC'
/** The order of what is asked more often comes first. */
const names = ['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually']

/** Why schedule and what belongs to it cannot be used, or undefined. Loads croner where a schedule is set. */
export function scheduleProblem(settings: HeartbeatSettings): string | undefined {
  const { schedule, timezone, grace, interval, late } = settings
  // Defaults are given as the very objects of the table: any other is written.
  if (schedule === undefined) {
    const alone = timezone !== undefined ? 'timezone' : grace !== heartbeatSettings.grace.default ? 'grace' : undefined
    return alone && `gives ${alone} without schedule: agents that report at intervals are judged by interval and late`
  }
  if (interval !== undefined) return 'gives both schedule and interval: agents report by the clock or at intervals'
  if (late !== heartbeatSettings.late.default) {
    return 'gives both schedule and late: how late a heartbeat may be for a schedule is said by grace'
  }
  return zoneProblem(timezone ?? usualZone) ?? expressionProblem(schedule, timezone ?? usualZone, settings)
}

function zoneProblem(timezone: string): string | undefined {
  const is = `timezone ${quoted(timezone, 64)} is no name of a time zone`
  const such = `${is}, such as Europe/Berlin`
  // An offset is no zone: it does not know summer time.
  if (!/^[a-z]/i.test(timezone)) return such
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone })
    return undefined
  } catch {
    const meant = didYouMean(timezone, Intl.supportedValuesOf('timeZone'))
    return meant === undefined ? such : `${is}: did you mean ${meant}?`
  }
}

function expressionProblem(schedule: string, timezone: string, { grace }: HeartbeatSettings): string | undefined {
  const written = `schedule ${quoted(schedule, 100)}`
  const fields = schedule.split(/\s+/).filter((field) => field !== '')
  if (schedule.trim().startsWith('@')) {
    if (!names.includes(schedule.trim().toLowerCase())) return `${written} is none of ${names.join(', ')}`
  } else if (fields.length !== 5) {
    return `${written} has ${count(fields.length, 'field')}: write 5, which are minute, hour, day, month and weekday (0 2 * * *), or a name such as @daily`
  }
  let cron: Cron
  try {
    cron = readCron(schedule.trim(), timezone)
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : ''
    return `${written} cannot be read: ${said(why, 200)}`
  }
  const gap = tooLong(cron, rememberedMs - (grace.limit ?? grace.warn ?? 0))
  if (gap === undefined) return undefined
  if (gap === Number.POSITIVE_INFINITY) return `${written} never comes: no date fits it`
  return `${written} leaves ${showDuration(gap)} between two times, and with grace that is more than 100 d: an agent that is silent for so long is forgotten. Look at what the job leaves behind instead (kind file-age)`
}

/** From a date on that is always the same, so that a file is right or wrong whenever it is read. */
const firstLook = Date.UTC(2026, 0, 1)
const lookMs = 400 * dayMs
const mostSteps = 100

/** A time between two runs that is longer than `room`, or undefined; infinite where none ever comes. */
function tooLong(cron: Cron, room: number): number | undefined {
  let at = cron.after(firstLook)
  for (let steps = 0; steps < mostSteps; steps += 1) {
    if (at === undefined) return Number.POSITIVE_INFINITY
    // As far as one stride reaches; where that is nowhere, the next run is too far.
    const [reached = at] = cron.before(at + room + 1, 1)
    if (reached <= at) return (cron.after(at) ?? Number.POSITIVE_INFINITY) - at
    if (reached > firstLook + lookMs) return undefined
    at = reached
  }
  return undefined
}

/** What is due by now; undefined without a schedule. Of settings that `scheduleProblem` lets pass. */
export function dueAt({ schedule, timezone = usualZone, grace }: HeartbeatSettings, now: number): Due | undefined {
  if (schedule === undefined) return undefined
  const { cron, times } = timesUpTo(schedule.trim(), timezone, now)
  const longerAgo = (ms: number | undefined): Run | undefined => {
    if (ms === undefined) return undefined
    const found = times.filter((time) => time < now - ms).slice(0, 2)
    return runsOf(found.length === 2 ? found : cron.before(now - ms, 2))[0]
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
  /** The last `mostRuns` and one, newest first. */
  readonly times: readonly number[]
  /** Until when no further one comes. */
  readonly next: number
}
const known = new Map<string, Times>()
const mostKnown = 100

/** Counting back takes some 20 ms, and between two scheduled times it gives the same. */
function timesUpTo(expression: string, timezone: string, now: number): Times {
  const key = `${timezone} ${expression}`
  const before = known.get(key)
  if (before && now < before.next && now >= (before.times[0] ?? 0)) return before
  const cron = before?.cron ?? readCron(expression, timezone)
  const times = { cron, times: cron.before(now + 1, mostRuns + 1), next: cron.after(now) ?? Number.POSITIVE_INFINITY }
  if (known.size >= mostKnown) known.clear()
  known.set(key, times)
  return times
}

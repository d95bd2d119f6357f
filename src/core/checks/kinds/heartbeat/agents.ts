import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import type { Heartbeat } from '../../../protocol/index.ts'
import { type Due, isOverdue, wasOverdue } from './due.ts'

/** The settings that several checks share: which agents to check, and when their next heartbeat is due. */
export const reportSettings = {
  agents: {
    type: 'texts',
    observed: true,
    doc: 'Agents to check: names, or patterns in which * stands for any text (agent-*; in quotes if it begins with *); by default all',
  },
  interval: {
    type: 'duration',
    doc: 'How often they report; by default the interval that each agent reports, else 1m. Not with schedule',
  },
  late: {
    type: 'threshold',
    unit: 'ratio',
    default: { warn: 2, limit: 5 },
    doc: 'How many intervals old a heartbeat may be; an agent beyond the limit is silent. Not with schedule',
  },
  schedule: {
    type: 'text',
    doc: 'When they report, instead of interval and late: a cron expression of 5 fields (0 2 * * 1-5), or @hourly, @daily, @weekly, @monthly; at most 100 days between two times',
  },
  timezone: {
    type: 'text',
    doc: 'Time zone of schedule, by its IANA name: Europe/Berlin; by default UTC',
  },
  grace: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 10 * 60_000, limit: 30 * 60_000 },
    doc: 'How long after a scheduled time the heartbeat may arrive; an agent beyond the limit is silent. Allow for the duration of a job that reports when it ends',
  },
} as const satisfies SettingsSpec
export type ReportSettings = Values<typeof reportSettings>

/** An agent with the values that the checks evaluate. Times are in milliseconds. */
export type Agent = Heartbeat & {
  readonly ageMs: number
  /** How far its last heartbeat is in the future: a wrong time, which proves nothing. Undefined where it is not. */
  readonly aheadMs: number | undefined
  readonly everyMs: number
  /** How long its run has been going on; undefined when none is in progress. */
  readonly runningMs: number | undefined
}

const usualInterval = 60_000
/** Milliseconds by which the clocks of several nodes of svc may differ. */
const maxAheadMs = 60_000
/**
 * An agent that reports at intervals and is not named counts as removed after this much silence, and then raises no
 * alarm. Milliseconds.
 */
const goneMs = 30 * 86_400_000

/** The agents that the settings select. */
export type Agents = ReturnType<typeof agentsOf>

/** The selected agents, according to their last heartbeats and as of `now`. */
export function agentsOf(
  heartbeats: readonly Heartbeat[],
  settings: ReportSettings,
  due: Due | undefined,
  now: number,
) {
  const { agents, interval, schedule } = settings
  const patterns = (agents ?? ['*']).map(matcher)
  const expected = new Set(plainNames(agents))
  const matching = heartbeats
    .filter(({ name, at }) => schedule !== undefined || expected.has(name) || now - at <= goneMs)
    .filter(({ name }) => patterns.some((matches) => matches(name)))
    .map((one) => ({
      ...one,
      ageMs: Math.max(0, now - one.at),
      aheadMs: one.at - now > maxAheadMs ? one.at - now : undefined,
      runningMs: one.run && one.run.endedAt === undefined ? Math.max(0, now - one.run.startedAt) : undefined,
      everyMs: Math.max(1, interval ?? one.intervalMs ?? usualInterval),
    }))
  const names = new Set(matching.map(({ name }) => name))
  return {
    /** All agents that have reported, whether alive or silent. */
    matching,
    alive: matching.filter((agent) => !isSilent(agent, settings, due)),
    silent: matching.filter((agent) => isSilent(agent, settings, due)),
    /** The agents that the settings name without a pattern, and that have never reported. */
    missing: [...expected].filter((name) => !names.has(name)),
    /** Undefined without a schedule. */
    due,
    /** Milliseconds since 1970. */
    now,
  }
}

/** The names without a pattern, without duplicates. */
export const plainNames = (agents: readonly string[] = []): readonly string[] => [
  ...new Set(agents.filter((one) => !one.includes('*'))),
]

/** Matches names against a pattern part by part, so that no pattern takes long. */
function matcher(pattern: string): (name: string) => boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return (name) => name === pattern
  return (name) => {
    if (!name.startsWith(first)) return false
    let at = first.length
    for (const part of rest) {
      const index = name.indexOf(part, at)
      if (index < 0) return false
      at = index + part.length
    }
    return name.length - last.length >= at && name.endsWith(last)
  }
}

/** True beyond the limit, or beyond the warning if there is no limit. With a schedule, the due time decides. */
const isSilent = (
  { at, ageMs, aheadMs, everyMs }: Agent,
  { late }: Pick<ReportSettings, 'late'>,
  due: Due | undefined,
): boolean => {
  if (aheadMs !== undefined) return true
  if (due) return isOverdue(at, due)
  const bound = late.limit ?? late.warn
  return bound !== undefined && ageMs > bound * everyMs
}

/** Minimum number of heartbeats for evaluating a history. */
const minHistory = 5

/** How often an agent changed between well and unwell or silent; undefined while the history is too short. */
export function changesOf(
  { history, everyMs }: Agent,
  { late }: Pick<ReportSettings, 'late'>,
  due: Due | undefined,
): number | undefined {
  if (history.length < minHistory) return undefined
  const bound = late.limit ?? late.warn
  const gap = bound === undefined ? Number.POSITIVE_INFINITY : bound * everyMs
  let changes = 0
  history.forEach((one, index) => {
    const before = history[index - 1]
    if (!before) return
    const turned = (before.status === 'Ok') !== (one.status === 'Ok')
    // The agent fell silent and came back: two changes.
    const fell = due ? wasOverdue(before.at, one.at, due) : one.at - before.at > gap
    changes += fell ? 2 : turned ? 1 : 0
  })
  return changes
}

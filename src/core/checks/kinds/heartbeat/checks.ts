import { count, show, showDuration } from '../../../base/format.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import type { Threshold, ThresholdUnit } from '../../../base/settings/index.ts'
import { limitsOn } from '../../assert/limit-check.ts'
import {
  atLeast,
  atMost,
  checksOn,
  fail,
  notChecked,
  ok,
  type Result,
  showThreshold,
  warn,
  withThreshold,
} from '../../engine/index.ts'
import { type Agent, type Agents, changesOf, plainNames, reportSettings } from './agents.ts'
import { clockText, type Due, overdue, scheduleStatus } from './due.ts'

const check = checksOn<Agents>()
const limitCheck = limitsOn<Agents>()

/** Maximum number of agents in the details. */
const maxDetails = 20
/** Maximum number of lines of a job's output in the details. */
const maxOutputLines = 10
const nameOf = (agent: { readonly name: string }): string => sanitize(agent.name, 64)

/** A few names in one line. */
function list(names: readonly string[]): string {
  const some = names.slice(0, 3).join(', ')
  return names.length > 3 ? `${some} and ${names.length - 3} more` : some
}

export const newest = check({
  depth: 'Basic',
  results: { newest: 'The newest heartbeat of all agents is recent, or arrived as scheduled' },
  settings: { agents: reportSettings.agents, late: reportSettings.late },
  observe: (agents) => Promise.resolve(agents),
  evaluate: ({ matching, due }, { agents, late }) => {
    const [first, ...rest] = matching
    if (first === undefined) {
      const whose = agents === undefined ? 'any agent' : list(agents.map((one) => sanitize(one, 64)))
      return fail('newest', 'data', `no heartbeat from ${whose} has arrived: svc heartbeat NAME sends one`)
    }
    const agent = rest.reduce((a, b) => (freshness(b) < freshness(a) ? b : a), first)
    if (agent.aheadMs !== undefined) {
      const when = `is dated ${showDuration(agent.aheadMs)} in the future`
      const why = 'a clock of svc was wrong, and the agent has not reported since'
      return fail('newest', 'data', `the last heartbeat, from ${nameOf(agent)}, ${when}: ${why}`)
    }
    if (due) return evaluateDue(agent, due)
    const times = (factor: number | undefined): number | undefined => factor && factor * agent.everyMs
    return atMost({
      check: 'newest',
      what: `last heartbeat, from ${nameOf(agent)}, came`,
      value: agent.ageMs,
      after: 'ago',
      at: new Date(agent.at),
      unit: 'duration',
      threshold: { warn: times(late.warn), limit: times(late.limit) },
    })
  },
})

/** For comparing ages. A heartbeat from the future is not the newest one as long as there is another. */
const freshness = ({ ageMs, aheadMs }: Agent): number => (aheadMs === undefined ? ageMs : Number.POSITIVE_INFINITY)

/** Evaluates the newest heartbeat of all agents against the schedule. */
function evaluateDue(agent: Agent, due: Due): Result<'newest'> {
  const { grace, runs, now } = due
  const { status, since, many } = scheduleStatus(agent.at, due)
  const name = nameOf(agent)
  // If the heartbeat is older than all known runs, only its age is known.
  const lateMs = since === undefined ? (many ? agent.ageMs : 0) : now - since
  const more: Partial<Result> = {
    measurement: { value: lateMs, unit: 'milliseconds', ...grace, bound: 'atMost' },
  }
  const limits = showThreshold(grace, 'duration', 'atMost')
  if (status === 'failed') return fail('newest', 'threshold', `${name} ${overdue(agent.at, due, limits)}`, more)
  if (status === 'warning') return warn('newest', `${name} ${overdue(agent.at, due, limits)}`, more)
  const inGrace = (text: string) => ok('newest', withThreshold(text, grace, 'duration', 'atMost'), more)
  if (since !== undefined) {
    return inGrace(`${name} has been due since ${clockText(since, due)}, ${showDuration(lateMs)} ago`)
  }
  const [last] = runs
  const schedule = many || last === undefined ? '' : `; it was due at ${clockText(last.at, due)}`
  return inGrace(`last heartbeat, from ${name}, came ${showDuration(agent.ageMs)} ago${schedule}`)
}

export const reporting = check({
  depth: 'Standard',
  results: { reporting: 'The number of agents that report' },
  settings: {
    agents: reportSettings.agents,
    expected: {
      type: 'integer',
      min: 1,
      doc: 'Minimum number of agents that report; default: the number of agents named without a pattern',
    },
  },
  observe: (agents) => Promise.resolve(agents),
  evaluate: ({ matching, alive, silent: quiet, missing, due }, { agents, expected }) => {
    const min = expected ?? plainNames(agents).length
    const lost = [...missing.map((one) => sanitize(one, 64)), ...quiet.map(nameOf)]
    const details = [
      ...missing.map((one) => `${sanitize(one, 64)}: has never reported`),
      ...quiet.slice(0, maxDetails).map((agent) => `${nameOf(agent)}: ${silence(agent, due, 'silent for')}`),
    ].slice(0, maxDetails)
    const all = Math.max(matching.length + missing.length, min)
    const gone = lost.length === 0 ? '' : `; missing: ${list(lost)}`
    const threshold = { limit: min || undefined }
    const reports = `${alive.length} of ${count(all, 'agent')} ${alive.length === 1 ? 'reports' : 'report'}${gone}`
    const message = withThreshold(reports, threshold, 'count', 'atLeast')
    const more: Partial<Result> = {
      measurement: { value: alive.length, unit: 'count', ...threshold, bound: 'atLeast' },
      details,
    }
    // No reporting agent at all is a failure, even if the settings name no agent.
    if (alive.length < min || alive.length === 0) return fail('reporting', 'threshold', message, more)
    return lost.length === 0 || expected !== undefined
      ? ok('reporting', message, more)
      : warn('reporting', message, more)
  },
})

/** Why an agent counts as silent: continues its name. `since` precedes the time without a heartbeat. */
function silence({ at, ageMs, aheadMs }: Agent, due: Due | undefined, since: string): string {
  if (aheadMs !== undefined) return `its last heartbeat is dated ${showDuration(aheadMs)} in the future`
  return due ? overdue(at, due) : `${since} ${showDuration(ageMs)}`
}

// The checks below skip silent agents: nothing current is known about them.

export const status = check({
  depth: 'Standard',
  results: { status: 'The status that the agents report' },
  observe: ({ alive }) => Promise.resolve(alive),
  evaluate: (alive) => {
    const [one, ...rest] = alive
    if (one === undefined) return []
    const unwell = (['Fail', 'Warn'] as const).flatMap((level) => alive.filter((agent) => agent.status === level))
    const [first, ...others] = unwell
    if (first === undefined) {
      const all = `all ${alive.length} agents report Ok`
      return ok('status', rest.length === 0 ? `${nameOf(one)} reports Ok` : all)
    }
    const line = (agent: Agent): string =>
      `${nameOf(agent)} reports ${agent.status}${agent.message === undefined ? '' : `: ${quote(agent.message, 160)}`}`
    // With a single agent, the message already contains everything but its output.
    const output = (first.run?.output ?? '').split('\n').filter((text) => text.trim() !== '')
    const more = {
      details: [
        ...(others.length > 0 ? unwell.slice(0, maxDetails).map(line) : []),
        ...output.slice(-maxOutputLines).map((text) => `${nameOf(first)} printed: ${sanitize(text, 200)}`),
      ],
    }
    const message = `${line(first)}${others.length > 0 ? ` (and ${count(others.length, 'other')})` : ''}`
    return first.status === 'Fail' ? fail('status', 'data', message, more) : warn('status', message, more)
  },
})

/**
 * Jobs that `svc heartbeat NAME -- COMMAND` runs. The status evaluates a run that has ended; this check evaluates one
 * that has not.
 */
export const runtime = check({
  depth: 'Standard',
  results: { runtime: 'How long the longest run that has not ended takes; of jobs that report their start and end' },
  settings: {
    runtime: {
      type: 'threshold',
      unit: 'duration',
      doc: 'Maximum duration of a run; default: that which the job reports, otherwise a warning after 1h and a failure after 1d',
    },
  },
  observe: ({ matching }) => Promise.resolve(matching),
  evaluate: (matching, { runtime: threshold }) => {
    const jobs = matching.filter(({ run }) => run !== undefined)
    if (jobs.length === 0 && matching.length > 0 && threshold !== undefined) {
      return notChecked('runtime', 'missing', 'no agent reports the start and the end of its runs')
    }
    const running = jobs.flatMap((agent) => {
      const { run, runningMs: value } = agent
      if (run === undefined || value === undefined) return []
      const bounds: Threshold = threshold ?? (run.maxMs === undefined ? usualRuntime : { limit: run.maxMs })
      return [{ agent, value, bounds, excess: value / (bounds.limit ?? bounds.warn ?? Number.POSITIVE_INFINITY) }]
    })
    const [first] = running.toSorted((a, b) => b.excess - a.excess)
    if (first === undefined) {
      return jobs.length === 0 ? [] : ok('runtime', `no run of ${count(jobs.length, 'job')} is in progress`)
    }
    return atMost({
      check: 'runtime',
      what: `${nameOf(first.agent)} has not ended, running for`,
      value: first.value,
      unit: 'duration',
      threshold: first.bounds,
      details: running.slice(0, maxDetails).map(({ agent, value }) => `${nameOf(agent)}: ${showDuration(value)}`),
    })
  },
})
/** A job that takes longer than the time between its runs, or that is started from two places. */
export const overlap = check({
  depth: 'Standard',
  results: {
    overlap: 'No run of a job begins before the earlier one has ended; of jobs that report their start and end',
  },
  settings: {
    overlapping: { type: 'flag', default: false, doc: 'Whether several runs of a job may be in progress at once' },
  },
  applies: (_, { overlapping }) => !overlapping,
  observe: ({ matching, now }) => Promise.resolve({ matching, now }),
  evaluate: ({ matching, now }) => {
    const running = matching.filter(({ runningMs }) => runningMs !== undefined)
    const doubled = running.flatMap((agent) => (agent.run?.overlaps ? [{ agent, earlier: agent.run.overlaps }] : []))
    const [first] = doubled
    if (first === undefined) {
      return running.length === 0 ? [] : ok('overlap', `${count(running.length, 'job')} with one run in progress`)
    }
    const line = ({ agent, earlier }: typeof first): string =>
      `${nameOf(agent)}: the run that began ${showDuration(now - earlier.startedAt)} ago has not ended, and another one has begun`
    const others = doubled.length > 1 ? ` (and ${count(doubled.length - 1, 'other')})` : ''
    return warn('overlap', `${line(first)}${others}`, { details: doubled.slice(0, maxDetails).map(line) })
  },
})

const usualRuntime: Threshold = { warn: 3_600_000, limit: 86_400_000 }

/** Version skew is deployment-related (H5). Skips agents that report no version. */
export const version = check({
  depth: 'Standard',
  results: { version: 'All agents run the same version, or the expected one' },
  settings: {
    version: { type: 'text', doc: 'Version that all agents must run; by default any, if all run the same one' },
  },
  observe: ({ alive }) => Promise.resolve(alive),
  evaluate: (alive, { version: expected }) => {
    if (alive.length === 0) return []
    const reports = alive.flatMap((agent) => (agent.version === undefined ? [] : [{ agent, version: agent.version }]))
    const groups = [...Map.groupBy(reports, (one) => one.version)].sort(([, a], [, b]) => b.length - a.length)
    const [usual] = groups
    const more = { deployment: true }
    if (usual === undefined) {
      if (expected === undefined) return []
      return fail('version', 'data', `no agent reports its version, expected ${quote(expected, 64)}`, more)
    }
    const names = ([, those]: typeof usual): string => list(those.map(({ agent }) => nameOf(agent)))
    const details = groups.slice(0, maxDetails).map((group) => `${quote(group[0], 64)}: ${names(group)}`)
    const other = expected === undefined ? undefined : groups.find(([one]) => one !== expected)
    if (other !== undefined) {
      const runs = `${names(other)} ${other[1].length === 1 ? 'runs' : 'run'} ${quote(other[0], 64)}`
      return fail('version', 'data', `${runs}, expected ${quote(expected ?? '', 64)}`, { ...more, details })
    }
    if (groups.length > 1) {
      const message = `${groups.length} versions are running, mostly ${quote(usual[0], 64)}`
      return warn('version', message, { ...more, details })
    }
    const facts = { version: sanitize(usual[0], 64) }
    return ok('version', `${count(reports.length, 'agent')}: ${quote(usual[0], 64)}`, { ...more, facts })
  },
})

export const disk = check({
  depth: 'Standard',
  results: { disk: 'The lowest free disk space of all agents that report it' },
  settings: {
    disk: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 20, limit: 10 },
      doc: 'Minimum free disk space of each agent that reports it',
    },
  },
  observe: ({ alive }) => Promise.resolve(alive),
  evaluate: (alive, { disk: threshold }) =>
    evaluateWorst({
      check: 'disk',
      what: 'free disk space',
      figures: figuresOf(alive, ({ diskFreePercent }) => diskFreePercent),
      unit: 'percent',
      threshold,
      bound: 'atLeast',
    }),
})

export const clock = check({
  depth: 'Standard',
  results: { clock: 'The largest clock offset of all agents that report it' },
  settings: {
    clock: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 2_000, limit: 30_000 },
      doc: 'Maximum clock offset of each agent that reports it',
    },
  },
  observe: ({ alive }) => Promise.resolve(alive),
  evaluate: (alive, { clock: threshold }) =>
    evaluateWorst({
      check: 'clock',
      what: 'clock offset',
      figures: figuresOf(alive, ({ skewMs }) => skewMs && Math.abs(skewMs)),
      unit: 'duration',
      threshold,
      bound: 'atMost',
    }),
})

export const backlog = check({
  depth: 'Advanced',
  results: { backlog: 'The largest backlog of all agents that report it, if a threshold is set' },
  settings: {
    backlog: { type: 'threshold', unit: 'count', doc: 'Maximum backlog of each agent that reports it' },
  },
  when: ['backlog'],
  emptyWhere: 'every agent is silent, which the check `reporting` says',
  observe: ({ alive }) => Promise.resolve(alive),
  evaluate: (alive, { backlog: threshold = {} }) => {
    const figures = figuresOf(alive, ({ backlog: waiting }) => waiting)
    if (figures.length === 0 && alive.length > 0) {
      return notChecked('backlog', 'missing', 'no agent reports a backlog')
    }
    return evaluateWorst({ check: 'backlog', what: 'backlog', figures, unit: 'count', threshold, bound: 'atMost' })
  },
})

export const silent = limitCheck({
  depth: 'Advanced',
  check: 'silent',
  proves: 'The number of agents that have reported before and are silent now',
  setting: 'silent',
  unit: 'count',
  default: { limit: 0 },
  doc: 'How many agents that have reported before may be silent; remove a retired one with svc heartbeats remove NAME',
  observe: ({ silent: agents, due }) => Promise.resolve({ agents, due }),
  evaluate: ({ agents, due }, compare, { silent: threshold }) => {
    const those = agents.toSorted((a, b) => b.ageMs - a.ageMs)
    if (those.length === 0) {
      const measurement = { value: 0, unit: 'count', ...threshold, bound: 'atMost' } as const
      return ok('silent', 'no agent is silent', { measurement })
    }
    return compare({
      what: `${list(those.map(nameOf))}:`,
      value: those.length,
      after: those.length === 1 ? 'silent agent' : 'silent agents',
      details: those.slice(0, maxDetails).map((agent) => `${nameOf(agent)}: ${silence(agent, due, 'for')}`),
    })
  },
})

export const flapping = check({
  depth: 'Advanced',
  results: { flapping: 'Changes between Ok and not Ok or silent; of agents with at least 5 heartbeats' },
  settings: {
    late: reportSettings.late,
    flapping: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 4, limit: 8 },
      doc: 'How often an agent may have changed between Ok and not Ok or silent in its last 20 heartbeats',
    },
  },
  observe: ({ matching, due }) => Promise.resolve({ matching, due }),
  evaluate: ({ matching, due }, { late, flapping: threshold }) =>
    evaluateWorst({
      check: 'flapping',
      what: 'changes between Ok and not Ok or silent:',
      figures: figuresOf(matching, (agent) => changesOf(agent, { late }, due)),
      unit: 'count',
      threshold,
      bound: 'atMost',
    }),
})

type Figure = { readonly agent: Agent; readonly value: number }

/** The value of each agent that reports it. */
const figuresOf = (agents: readonly Agent[], figure: (agent: Agent) => number | undefined): readonly Figure[] =>
  agents.flatMap((agent) => {
    const value = figure(agent)
    return value === undefined ? [] : [{ agent, value }]
  })

/** Evaluates the agent with the worst value. Returns nothing if no agent reports the value or no limit is set. */
function evaluateWorst<const Name extends string>({
  check: name,
  what,
  figures,
  unit,
  threshold,
  bound,
}: {
  readonly check: Name
  readonly what: string
  readonly figures: readonly Figure[]
  readonly unit: ThresholdUnit
  readonly threshold: Threshold
  readonly bound: 'atMost' | 'atLeast'
}): Result<Name> | [] {
  if (threshold.warn === undefined && threshold.limit === undefined) return []
  const sorted = figures.toSorted((a, b) => (bound === 'atMost' ? b.value - a.value : a.value - b.value))
  const [first] = sorted
  if (first === undefined) return []
  const measured = { check: name, what: `${nameOf(first.agent)}: ${what}`, value: first.value, unit, threshold }
  const result = bound === 'atMost' ? atMost(measured) : atLeast(measured)
  if (result.status === 'ok') return result
  const details = sorted.slice(0, maxDetails).map(({ agent, value }) => `${nameOf(agent)}: ${show(value, unit)}`)
  return { ...result, details }
}

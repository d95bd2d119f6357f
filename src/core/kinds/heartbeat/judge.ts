import { atLeast, atMost, fail, ok, type Result, warn } from '../../engine/index.ts'
import { show, showDuration } from '../../format.ts'
import { count, quoted, said } from '../../net/text.ts'
import type { Threshold, ThresholdUnit } from '../../settings/index.ts'
import { type Agent, changesOf, isSilent, named } from './agents.ts'
import type { Due } from './due.ts'
import { evaluateDue, overdue } from './judge-due.ts'
import type { HeartbeatSettings } from './settings.ts'

export type HeartbeatSeen = {
  readonly see: 'newest' | 'standard' | 'advanced'
  readonly known: readonly Agent[]
  /** Named, and never heard of. */
  readonly missing: readonly string[]
  /** Where there is a schedule. */
  readonly due: Due | undefined
}

export function evaluateHeartbeats(seen: HeartbeatSeen, settings: HeartbeatSettings): readonly Result[] {
  if (seen.see === 'newest') return [newest(seen, settings)]
  // Of those that are silent nothing else is known any more.
  const alive = seen.known.filter((agent) => !isSilent(agent, settings, seen.due))
  if (seen.see === 'standard') {
    return [
      reporting(seen, alive.length, settings),
      ...(alive.length === 0 ? [] : [status(alive), ...version(alive, settings)]),
      ...worst('disk', alive, ({ diskFreePercent }) => diskFreePercent, settings.disk, 'percent', 'least'),
      ...worst('clock', alive, ({ skewMs }) => skewMs && Math.abs(skewMs), settings.clock, 'duration', 'most'),
    ]
  }
  return [
    ...worst('backlog', alive, ({ backlog }) => backlog, settings.backlog ?? {}, 'count', 'most'),
    silent(seen, settings),
    ...worst(
      'flapping',
      seen.known,
      (agent) => changesOf(agent, settings, seen.due),
      settings.flapping,
      'count',
      'most',
    ),
  ]
}

/** Agents that details name. */
const mostNamed = 20
const name = (agent: { readonly name: string }): string => said(agent.name, 64)

/** Some names in one line. */
function list(names: readonly string[]): string {
  const shown = names.slice(0, 3).join(', ')
  return names.length > 3 ? `${shown} and ${names.length - 3} more` : shown
}

function newest({ known, due }: HeartbeatSeen, settings: HeartbeatSettings): Result {
  const whose = settings.agents === undefined ? 'any agent' : list(settings.agents.map((one) => said(one, 64)))
  const [first, ...rest] = known
  if (first === undefined) {
    return fail('newest', 'data', `no heartbeat of ${whose} has come in: svc heartbeat NAME sends one`)
  }
  const agent = rest.reduce((a, b) => (b.ageMs < a.ageMs ? b : a), first)
  return due ? evaluateDue(agent, due) : aged(agent, settings.late)
}

/** The age of a heartbeat, against limits that its interval sets. */
function aged(agent: Agent, late: Threshold): Result {
  const of = (times: number | undefined): number | undefined =>
    times === undefined ? undefined : times * agent.everyMs
  return atMost({
    check: 'newest',
    what: `last heartbeat, of ${name(agent)}, came`,
    value: agent.ageMs,
    after: 'ago',
    unit: 'duration',
    threshold: { warn: of(late.warn), limit: of(late.limit) },
  })
}

function reporting({ known, missing, due }: HeartbeatSeen, alive: number, settings: HeartbeatSettings): Result {
  const all = known.length + missing.length
  const must = settings.expected ?? named(settings.agents).length
  const quiet = known.filter((agent) => isSilent(agent, settings, due))
  const lost = [...missing.map((one) => said(one, 64)), ...quiet.map(name)]
  const details = [
    ...missing.map((one) => `${said(one, 64)}: never heard of`),
    ...quiet
      .slice(0, mostNamed)
      .map((agent) => `${name(agent)}: ${due ? overdue(agent, due) : `silent for ${showDuration(agent.ageMs)}`}`),
  ].slice(0, mostNamed)
  const of = Math.max(all, must)
  const gone = lost.length === 0 ? '' : `; not ${list(lost)}`
  const told = `${alive} of ${count(of, 'agent')} ${alive === 1 ? 'reports' : 'report'}${gone}`
  const more: Partial<Result> = { measurement: { value: alive, unit: 'count', limit: must || undefined }, details }
  if (alive < must) return fail('reporting', 'threshold', `${told} (at least ${must})`, more)
  // Nobody at all is never well, even where nobody is named.
  if (alive === 0) return fail('reporting', 'threshold', told, more)
  return lost.length === 0 || settings.expected !== undefined
    ? ok('reporting', told, more)
    : warn('reporting', told, more)
}

/** What the agents say of themselves. */
function status(alive: readonly Agent[]): Result {
  const unwell = (['Fail', 'Warn'] as const).flatMap((level) => alive.filter((agent) => agent.status === level))
  const [first] = unwell
  if (first === undefined) {
    const [one, ...others] = alive
    const all = `all ${alive.length} say that they are well`
    return ok('status', one && others.length === 0 ? `${name(one)} says that it is well` : all)
  }
  const told = (agent: Agent): string =>
    `${name(agent)} says ${agent.status}${agent.message === undefined ? '' : `: ${quoted(agent.message, 160)}`}`
  const others = unwell.length > 1 ? ` (and ${count(unwell.length - 1, 'other')})` : ''
  // Of one agent the message says all of it.
  const more = { details: unwell.length > 1 ? unwell.slice(0, mostNamed).map(told) : [] }
  const message = `${told(first)}${others}`
  return first.status === 'Fail' ? fail('status', 'data', message, more) : warn('status', message, more)
}

/** Version skew is deployment-related (H5). Agents that say none are left out. */
function version(alive: readonly Agent[], { version: wanted }: HeartbeatSettings): readonly Result[] {
  const told = alive.flatMap((agent) => (agent.version === undefined ? [] : [{ agent, version: agent.version }]))
  const more = { deployment: true }
  if (told.length === 0) {
    return wanted === undefined
      ? []
      : [fail('version', 'data', `no agent says which version it runs, expected ${quoted(wanted, 64)}`, more)]
  }
  const groups = [...Map.groupBy(told, (one) => one.version)].sort(([, a], [, b]) => b.length - a.length)
  const line = ([version, those]: (typeof groups)[number]): string =>
    `${quoted(version, 64)}: ${list(those.map(({ agent }) => name(agent)))}`
  const details = groups.slice(0, mostNamed).map(line)
  const other = wanted === undefined ? [] : groups.filter(([version]) => version !== wanted)
  const [first] = other
  if (first !== undefined) {
    const message = `${list(first[1].map(({ agent }) => name(agent)))} ${first[1].length === 1 ? 'runs' : 'run'} ${quoted(first[0], 64)}, expected ${quoted(wanted ?? '', 64)}`
    return [fail('version', 'data', message, { ...more, details })]
  }
  const [usual] = groups
  if (groups.length > 1) {
    const message = `${groups.length} versions run side by side, mostly ${quoted(usual?.[0] ?? '', 64)}`
    return [warn('version', message, { ...more, details })]
  }
  return [ok('version', `${count(told.length, 'agent')}: ${quoted(usual?.[0] ?? '', 64)}`, more)]
}

/** The agent that is worst in one figure; nothing where none reports it or nothing is asked. */
function worst(
  check: string,
  agents: readonly Agent[],
  figure: (agent: Agent) => number | undefined,
  threshold: Threshold,
  unit: ThresholdUnit,
  bound: 'most' | 'least',
): readonly Result[] {
  if (threshold.warn === undefined && threshold.limit === undefined) return []
  const told = agents.flatMap((agent) => {
    const value = figure(agent)
    return value === undefined ? [] : [{ agent, value }]
  })
  const sorted = told.toSorted((a, b) => (bound === 'most' ? b.value - a.value : a.value - b.value))
  const [first] = sorted
  if (first === undefined) return []
  const details = sorted.slice(0, mostNamed).map(({ agent, value }) => `${name(agent)}: ${show(value, unit)}`)
  const measured = {
    check,
    what: `${name(first.agent)}: ${words[check] ?? check}`,
    value: first.value,
    unit,
    threshold,
  }
  const result = bound === 'most' ? atMost(measured) : atLeast(measured)
  return [result.status === 'ok' ? result : { ...result, details }]
}
const words: Readonly<Record<string, string>> = {
  disk: 'free disk',
  clock: 'clock off by',
  backlog: 'waiting work',
  flapping: 'well and unwell or silent, changes:',
}

function silent({ known, due }: HeartbeatSeen, settings: HeartbeatSettings): Result {
  const those = known.filter((agent) => isSilent(agent, settings, due)).toSorted((a, b) => b.ageMs - a.ageMs)
  const details = those
    .slice(0, mostNamed)
    .map((agent) => `${name(agent)}: ${due ? overdue(agent, due) : `for ${showDuration(agent.ageMs)}`}`)
  const threshold = settings.silent
  if (those.length === 0) {
    return ok('silent', 'no agent is silent', {
      measurement: { value: 0, unit: 'count', limit: threshold.limit ?? threshold.warn },
    })
  }
  return atMost({
    check: 'silent',
    what: `${list(those.map(name))}:`,
    value: those.length,
    after: those.length === 1 ? 'silent agent' : 'silent agents',
    unit: 'count',
    threshold,
    details,
  })
}

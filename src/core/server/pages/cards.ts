import { count } from '../../base/format.ts'
import {
  bySeverity,
  describeResult,
  type EntryReading,
  isBad,
  isConsequence,
  type Level,
  type MonitorReading,
  read,
  shownLevel,
  worst,
  worstFirst,
} from '../../checks/reports/index.ts'
import type { ExecutionMode, ServerType } from '../../protocol/index.ts'
import type { MonitorElsewhere, RecentRun } from '../../protocol/service/service.ts'
import { depthOf, entryOf } from '../health.ts'

/** The latest run of a mode, reduced to what one card of the status page shows. */
export type CardRun = {
  readonly mode: ExecutionMode
  readonly ageSeconds: number
  readonly level: Level
  /** The level of what the card itself shows. Better than `level` if the host is worse than the rest of the type. */
  readonly ownLevel: Level
  /** Why the own level is not ok, one line each. */
  readonly causes: readonly string[]
  readonly monitors: readonly MonitorReading[]
  /** Milliseconds. */
  readonly duration: number | undefined
  /** Empty for the host, which has no runs of its own, and where several runs found the results. */
  readonly correlationId: string
  /** The contribution of each monitor to the level, the host included, and when it ran, in milliseconds. */
  readonly verdicts: readonly Verdict[]
  /** True if its results are too old to count as healthy. */
  readonly isExpired: boolean
}
type Verdict = { readonly key: string; readonly beganAt: number; readonly monitor: MonitorReading }

/** A monitor of a card: by the worst of its results that still count or, if another node runs it, by its confirmed fault. */
export type CardMonitor =
  | {
      readonly name: string
      readonly level: Level
      /** The run that found the result, and the result. */
      readonly run: CardRun
      readonly reading: MonitorReading
    }
  | MonitorAway
export type MonitorAway = Pick<MonitorElsewhere, 'name' | 'node' | 'url' | 'reason'> & {
  /** Undefined: no fault is confirmed, which is less than healthy. */
  readonly level: Level | undefined
}

/** The order of monitors: first those that need attention, last those of other nodes without a confirmed fault. */
export const byUrgency = (one: Pick<CardMonitor, 'level'>, other: Pick<CardMonitor, 'level'>): number =>
  rankOf(one) - rankOf(other)
const rankOf = ({ level }: Pick<CardMonitor, 'level'>): number =>
  level === undefined ? worstFirst.length : worstFirst.indexOf(level)

/** One card: a server type, or the host that svc runs on. */
export type Card = {
  /** Undefined for the host. */
  readonly type: ServerType | undefined
  /** Undefined before the first run. */
  readonly level: Level | undefined
  /** The run behind the level: the newest among the worst runs that still count. */
  readonly decisiveRun: CardRun | undefined
  /** Why healthy results do not make it healthy. Undefined: nothing is missing. */
  readonly gap: string | undefined
  /** The latest run of each mode, shallowest first. */
  readonly runs: readonly CardRun[]
  /** Its monitors, the worst first. */
  readonly monitors: readonly CardMonitor[]
  /** Of its monitors, those that other nodes run. Undefined: none. */
  readonly away: Away | undefined
}
export type Away = {
  readonly count: number
  /** The worst of them. Undefined: no fault is confirmed. */
  readonly level: Level | undefined
  /** The nodes, if the reader may read their names. */
  readonly nodes: readonly string[]
}

type Answered = {
  readonly type: ServerType
  readonly mode: ExecutionMode
  readonly ageSeconds: number
  readonly reading: EntryReading
  readonly verdicts: readonly Verdict[]
  readonly isExpired: boolean
  readonly isComplete: boolean
}

/** The monitors that other nodes run, and whether the reader may read the names of a type. */
export type ElsewhereFacts = {
  readonly byType: ReadonlyMap<ServerType, readonly MonitorElsewhere[]>
  readonly reads: (type: ServerType) => boolean
}

/**
 * The cards of these server types, the worst first. The monitors of the host block, which every type repeats, are on a
 * card of their own. A type keeps the verdict of its health check, to which the host belongs.
 */
export function cardsOf(
  types: readonly ServerType[],
  recent: readonly RecentRun[],
  target: string,
  elsewhere: ElsewhereFacts = { byType: new Map(), reads: () => false },
): readonly Card[] {
  const answered = recent
    .filter(({ type }) => types.includes(type))
    .map((run) => answeredBy(run, read(entryOf(run, target))))
    .toSorted((a, b) => a.ageSeconds - b.ageSeconds)
  const host = hostRuns(answered)
  const ofTypes = types.map((type) => {
    const own = answered.filter((run) => run.type === type)
    const isComplete = own.some((run) => run.isComplete)
    const card = cardOf(type, own.map(typeRun), isComplete)
    const others = elsewhere.byType.get(type) ?? []
    return others.length === 0 ? card : withOthers(card, others, elsewhere.reads(type))
  })
  return [...(host.length > 0 ? [cardOf(undefined, host)] : []), ...ofTypes].toSorted((a, b) => urgency(a) - urgency(b))
}

export const worstLevel = (levels: readonly (Level | undefined)[]): Level | undefined =>
  worstFirst.find((level) => levels.includes(level))
export const unlessHealthy = (level: Level | undefined): Level | undefined => (level === 'ok' ? undefined : level)

/** The worst level of these cards. Undefined if none has one, and where others than this node know whether all is healthy. */
export function overall(cards: readonly Card[]): Level | undefined {
  const level = worstLevel(cards.map((card) => card.level))
  return cards.some(({ away }) => away) ? unlessHealthy(level) : level
}

/** Sorts what needs attention first. */
const urgency = ({ level }: Card): number => [...worstFirst, undefined].indexOf(level)

function answeredBy({ type, mode, ageSeconds, places, expired, complete }: RecentRun, reading: EntryReading): Answered {
  const verdicts = reading.monitors.flatMap((monitor, at) => {
    const place = places[at]
    return place ? [{ ...place, monitor }] : []
  })
  return { type, mode, ageSeconds, reading, verdicts, isExpired: expired, isComplete: complete }
}

/**
 * Rates a card by its latest results. The result of a monitor counts until a newer one goes at least as deep: a Basic
 * run that passes does not clear what an Advanced run found. What is too old, or lacks a monitor, is never healthy.
 */
function cardOf(type: ServerType | undefined, runs: readonly CardRun[], isComplete = true): Card {
  const counting = runs.flatMap((run) => countingPart(run, runs) ?? [])
  const level = worstFirst.find((candidate) => counting.some((run) => run.level === candidate))
  const gap = gapOf(counting, isComplete)
  return {
    type,
    level: gap === undefined || level === undefined ? level : worst([level, 'not checked']),
    decisiveRun: counting.find((run) => run.level === level),
    gap,
    runs: runs.toSorted((a, b) => depthOf(a.mode) - depthOf(b.mode)),
    monitors: monitorsOf(counting, type === undefined),
    away: undefined,
  }
}

const levelsAway = { warning: 'warn', failed: 'fail', unknown: 'not checked' } as const

/**
 * The card with the monitors that other nodes run. One that was run here, too, because somebody asked for it, is listed with
 * that result unless the confirmed fault is worse. The level of the card is never better than a confirmed fault, and never
 * healthy: only the other node knows that.
 */
function withOthers(card: Card, others: readonly MonitorElsewhere[], reads: boolean): Card {
  const monitors = new Map(card.monitors.map((one) => [one.name, one]))
  const levels = others.flatMap(({ fault }) => (fault ? [levelsAway[fault]] : []))
  for (const { name, fault, node, url, reason } of reads ? others : []) {
    const one = { name, node, url, reason, level: fault && levelsAway[fault] }
    const own = monitors.get(name)
    if (!own || byUrgency(one, own) < 0) monitors.set(name, one)
  }
  const level = worstLevel(levels)
  const nodes = reads ? [...new Set(others.flatMap(({ node }) => node ?? []))].sort() : []
  return {
    ...card,
    level: unlessHealthy(worstLevel([card.level, level])),
    monitors: [...monitors.values()].toSorted(byUrgency),
    away: { count: others.length, level, nodes },
  }
}

/** Why results that are healthy do not make the card healthy. */
function gapOf(counting: readonly CardRun[], isComplete: boolean): string | undefined {
  if (counting.length === 0) return undefined
  if (counting.every((run) => run.isExpired)) return 'The last results are too old to count'
  return isComplete ? undefined : 'Not every monitor has a result yet'
}

/** Each monitor with the worst of its results that count; among equals the newest. */
function monitorsOf(counting: readonly CardRun[], isHost: boolean): readonly CardMonitor[] {
  const byKey = new Map<string, CardMonitor>()
  for (const run of counting) {
    for (const { key, monitor } of run.verdicts) {
      if (monitor.host !== isHost) continue
      const level = run.isExpired ? worst([monitor.level, 'not checked']) : monitor.level
      const before = byKey.get(key)
      if (before && byUrgency(before, { level }) <= 0) continue
      byKey.set(key, { name: monitor.name, level, run, reading: monitor })
    }
  }
  return [...byKey.values()].toSorted(byUrgency)
}

/** A run, reduced to the results that no other run has superseded. Undefined if all of them are. */
function countingPart(run: CardRun, all: readonly CardRun[]): CardRun | undefined {
  const others = all
    .filter((other) => other !== run && depthOf(other.mode) >= depthOf(run.mode))
    .map(({ verdicts }) => new Map(verdicts.map(({ key, beganAt }) => [key, beganAt])))
  const counts = ({ key, beganAt }: Verdict): boolean =>
    others.every((other) => (other.get(key) ?? Number.NEGATIVE_INFINITY) < beganAt)
  const verdicts = run.verdicts.filter(counts)
  if (verdicts.length === run.verdicts.length) return run
  if (verdicts.length === 0) return undefined
  const monitors = verdicts.map(({ monitor }) => monitor)
  const level = worst(monitors.map((monitor) => monitor.level))
  const own = monitors.filter((monitor) => !monitor.host)
  const ownLevel = own.length === 0 ? level : worst(own.map((monitor) => monitor.level))
  return { ...run, level, ownLevel, causes: causesOf(ownLevel, own.length === 0 ? monitors : own), verdicts }
}

/** Recent runs always have a result. */
const levelOf = ({ level }: EntryReading): Level => (level === 'unknown' ? 'fail' : level)

function typeRun({ mode, ageSeconds, reading, verdicts, isExpired }: Answered): CardRun {
  const level = levelOf(reading)
  const { duration, correlationId } = reading
  const base = { mode, ageSeconds, level, duration, correlationId, verdicts, isExpired }
  const monitors = reading.monitors.filter((monitor) => !monitor.host)
  const hostLevel = worst(reading.monitors.filter((monitor) => monitor.host).map((monitor) => monitor.level))
  if (hostLevel === 'ok') return { ...base, ownLevel: level, causes: reading.causes, monitors }
  const ownLevel = worst(monitors.map((monitor) => monitor.level))
  // A failure that no monitor explains, the host included, is the type's own.
  const isExplained = worst([ownLevel, hostLevel]) === level
  if (!isExplained) return { ...base, ownLevel: level, causes: reading.causes, monitors }
  return { ...base, ownLevel, causes: causesOf(ownLevel, monitors), monitors }
}

/** The latest host block of each mode, whichever type it ran for. */
function hostRuns(answered: readonly Answered[]): readonly CardRun[] {
  const modes = new Set(answered.map(({ mode }) => mode))
  return answered.flatMap(({ mode, ageSeconds, isExpired, verdicts: all }): readonly CardRun[] => {
    const verdicts = all.filter(({ monitor }) => monitor.host)
    const monitors = verdicts.map(({ monitor }) => monitor)
    if (monitors.length === 0 || !modes.delete(mode)) return []
    const level = worst(monitors.map(shownLevel))
    const [{ duration } = { duration: undefined }] = monitors
    const causes = causesOf(level, monitors)
    const own = { mode, ageSeconds, isExpired, monitors, duration, verdicts }
    return [{ ...own, level, ownLevel: level, causes, correlationId: '' }]
  })
}

const causesOf = (level: Level, monitors: readonly MonitorReading[]): readonly string[] =>
  level === 'ok'
    ? []
    : monitors
        .flatMap(({ results }) => results)
        .filter((result) => (result.level === level || (isBad(level) && isBad(result.level))) && !isConsequence(result))
        .toSorted(bySeverity)
        .map(describeResult)

/** The last reading of a monitor at each depth, the deepest first, and whether no deeper result is newer. */
export function levelsOfMonitor(
  cards: readonly Card[],
  { type, monitor: name }: { readonly type?: ServerType | undefined; readonly monitor: string },
): readonly { readonly run: CardRun; readonly monitor: MonitorReading; readonly counts: boolean }[] {
  const runs = cards.find((card) => card.type === type)?.runs ?? []
  const all = runs.flatMap((run) => {
    const verdict = run.verdicts.find(({ monitor }) => monitor.name === name && monitor.host === (type === undefined))
    return verdict ? [{ run, ...verdict }] : []
  })
  return all
    .map(({ run, monitor, beganAt }) => ({
      run,
      monitor,
      counts: all.every(
        (other) => other.run === run || depthOf(other.run.mode) < depthOf(run.mode) || other.beganAt < beganAt,
      ),
    }))
    .toReversed()
}

/** The title of the page: what is wrong, in one sentence. */
export function headline(cards: readonly Card[]): string {
  const host = cards.find(({ type }) => type === undefined)?.level
  /** The level that a card adds to the page: what the host explains is named once. */
  const adds = ({ type, level, decisiveRun, gap, away }: Card): Level | undefined => {
    const [ofRun, others] = [decisiveRun?.ownLevel ?? 'ok', away?.level ?? 'ok']
    const own = worst([ofRun, others, gap === undefined ? 'ok' : 'not checked'])
    return type !== undefined && host !== undefined && level !== undefined && worst([host, level]) === host
      ? own
      : level
  }
  const namesAt = (level: Level): string[] =>
    cards.filter((each) => adds(each) === level).map(({ type }) => type ?? 'the host')
  const failing = namesAt('fail')
  if (failing.length > 0) return sentence(failing, 'unhealthy')
  const unchecked = namesAt('not checked')
  if (unchecked.length > 0) return sentence(unchecked, 'not fully checked')
  const warned = namesAt('warn')
  if (warned.length > 0) return `Healthy, with warnings: ${listed(warned)}`
  const types = cards.flatMap(({ type, level, away }) => (type === undefined ? [] : [{ type, level, away }]))
  const healthy = types.filter(({ level }) => level === 'ok').map(({ type }) => type)
  const elsewhere = awayFrom(cards)
  if (healthy.length === 0 && elsewhere !== undefined) return elsewhere
  if (healthy.length === 0) return 'Nothing has been checked yet'
  const waiting = types.filter(({ level, away }) => level !== 'ok' && !away).length
  const rest = waiting === 0 ? '' : `; ${waiting} not checked yet`
  if (elsewhere !== undefined) return `Healthy here: ${listed(healthy)}${rest}; ${elsewhere}`
  return waiting === 0 ? 'All healthy' : `Healthy: ${listed(healthy)}${rest}`
}

/** `12 monitors on node-b and node-c have no confirmed fault`. Undefined: none. */
function awayFrom(cards: readonly Card[]): string | undefined {
  const all = cards.flatMap(({ away }) => away ?? [])
  if (all.length === 0) return undefined
  const sum = all.reduce((before, { count: some }) => before + some, 0)
  const nodes = [...new Set(all.flatMap((one) => one.nodes))].sort()
  const where = nodes.length === 0 ? otherNodes : listed(nodes)
  return `${count(sum, 'monitor')} on ${where} ${sum === 1 ? 'has' : 'have'} no confirmed fault`
}

/** The words for a node that is unknown, or that the reader may not know. */
export const otherNodes = 'other nodes'

const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`

function sentence(names: readonly string[], state: string): string {
  const text = `${listed(names)} ${names.length === 1 ? 'is' : 'are'} ${state}`
  return text.charAt(0).toUpperCase() + text.slice(1)
}

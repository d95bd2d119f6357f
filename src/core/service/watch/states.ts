import { createHash } from 'node:crypto'
import { entryOf } from '../../base/lazy.ts'
import { orLate } from '../../base/pace.ts'
import {
  type DeclaredResult,
  dependenciesOfMonitor,
  fingerprint,
  type MonitorReport,
  writeMonitorOfType,
} from '../../checks/engine/index.ts'
import { documentOf, readMonitor, slugIn } from '../../checks/reports/index.ts'
import type { Config } from '../../config/index.ts'
import { type ExecutionMode, isLoadOf, type RunSilence } from '../../protocol/index.ts'
import type {
  ConfirmedCheck,
  ConfirmedStates,
  HealthViews,
  Incidents,
  MonitorElsewhere,
  ShownIncident,
} from '../../protocol/service/service.ts'
import type { KeeperLog } from '../../store/index.ts'
import { machineKey, type NodeLease, nameWithNode, nodeOfKey, soleNode, type Taken } from '../../watch/nodes/index.ts'
import type { Silence, StateOfSubject } from '../../watch/silences/index.ts'
import {
  type Effect,
  lineKey,
  monitorOfSvc,
  type NodeAnswer,
  type Question,
  type RunOfStates,
  States,
  type StoredState,
  type StoredSubject,
  type Subject,
  type SubjectState,
  type SubjectView,
  subjectId,
  type Transition,
  type Verdict,
  victimsBySubject,
  type WatchedMonitor,
} from '../../watch/states/index.ts'
import type { Part } from '../part.ts'
import { type ProcessTime, processTime } from '../process-time.ts'
import { incidentLine } from './incident-log.ts'
import { Blips, endedIncidents, isTroubled, mostRecords, openIncidents, type TroubledSubject } from './incidents.ts'
import type { ScheduledMonitor } from './scheduled-monitors.ts'
import { type StatesKeeper, statesKeeper } from './states-keeper.ts'

/** The key of the configuration of this node, a monitor that no schedule runs. */
export const configurationKey = '/svc/configuration'

/** How often time passes for the states. Milliseconds. */
const tickMs = 1_000

/** The functions of the schedule that the states use. */
export type StatesClock = {
  /** Milliseconds of the line that people read. */
  readonly now: () => number
  /** Asks for a run besides those that are due. */
  readonly ask: (effect: Extract<Effect, { type: 'ask' }>) => void
}

/** The silences of subjects: of their monitors, and of them in their states. */
export type Silencing = {
  readonly of: (subject: StoredSubject, state: StateOfSubject) => { readonly silences: readonly Silence[] }
  readonly ofMonitors: (monitors: readonly StoredSubject[]) => readonly Silence[]
}

export type StatesPart = Part & {
  /** From now on these monitors are watched, and no others. */
  readonly watch: (monitors: readonly ScheduledMonitor[], config: Config, clock: StatesClock) => void
  /** A run has ended, of which the verdict counts. Its times are those of the observation, by the time line. */
  readonly ran: (
    key: string,
    depth: ExecutionMode,
    report: MonitorReport,
    times: { readonly beganAt: number; readonly endedAt: number },
  ) => void
  /** `Runtime.confirmed` */
  readonly confirmed: (views: HealthViews, silencing?: Silencing) => ConfirmedStates
  /** `Runtime.incidents` */
  readonly incidents: (views: HealthViews) => Promise<Incidents>
  /** The worst fault that nodes have confirmed of each monitor, by key. Undefined if the store does not answer soon. */
  readonly faultsOfAll: () => Promise<ReadonlyMap<string, FaultElsewhere> | undefined>
  /** Takes what each transition is reported to. */
  readonly follow: (onTransition: (transition: Transition) => void) => void
  /** How a subject is now. Undefined: nothing is known of it yet. `incident`: as of `States.stateOf`. */
  readonly stateOf: (subject: Subject, incident?: string) => SubjectState | 'removed' | undefined
  /** Whether no witness answers. Undefined without witnesses. */
  readonly isIsolated: () => boolean | undefined
  /** All subjects. */
  readonly views: () => readonly SubjectView[]
  /** The monitors that are watched, by their keys. */
  readonly monitors: () => ReadonlyMap<string, ScheduledMonitor>
  /** Asks for a run of a monitor. */
  readonly look: (key: string, depth: ExecutionMode) => void
  /** Replaces what it has of monitors by what is stored. Their runs begin when they are watched. */
  readonly takeOver: (taken: Pick<Taken, 'keys' | 'silentMs' | 'states' | 'incidents'>) => void
  /** The store has lost what it had acknowledged, and has this instead. */
  readonly again: (taken: Pick<Taken, 'states' | 'incidents'>) => void
  /** Takes verdicts about a monitor that no schedule runs, as of a run that has just ended. */
  readonly say: (key: string, verdicts: readonly Verdict[]) => void
  /** Why the configuration on disk is not in force. Undefined: it is, or not for long. */
  readonly sayConfiguration: (reason: string | undefined) => void
  /** The open questions to other nodes. */
  readonly questions: () => readonly Question[]
  /** Other nodes have answered. */
  readonly takeAnswers: (answers: readonly NodeAnswer[]) => void
}

/**
 * Confirms what runs show: feeds the states with verdicts and time, and carries out what they ask for. `keeper` stores what
 * is confirmed; absent, it ends with the process. `log` gets a line for each incident that begins, changes or ends.
 */
export function statesPart(
  keeper: StatesKeeper = statesKeeper({}),
  log: KeeperLog = () => {},
  lease: NodeLease = soleNode,
  time: ProcessTime = processTime(),
): StatesPart {
  const stop = new AbortController()
  let states: States | undefined
  let before: Awaited<ReturnType<StatesKeeper['restore']>> | undefined
  let clock: StatesClock | undefined
  let onTransition: (transition: Transition) => void = () => {}
  let witnesses: readonly string[] = []
  let timer: NodeJS.Timeout | undefined
  let monitors = new Map<string, ScheduledMonitor>()
  const slugs = new WeakMap<object, Map<string, string>>()
  const blips = new Blips()
  const ownConfiguration = lease.keyOf(configurationKey)
  const slugOf = ({ key, check }: SubjectView): string => {
    const declared = monitors.get(key)?.monitor.kind.checks ?? noChecks
    const ofKind = slugs.get(declared) ?? new Map<string, string>()
    slugs.set(declared, ofKind)
    return entryOf(ofKind, check, () => slugIn(declared, check))
  }

  const carryOut = (effects: readonly Effect[]): void => {
    keeper.take(effects)
    for (const effect of effects) {
      if (effect.type === 'ask') clock?.ask(effect)
      else if (effect.type === 'transition') {
        blips.add(effect.transition)
        const line = incidentLine(effect.transition)
        if (line) log(line)
        onTransition(effect.transition)
      } else if (effect.type === 'witness') for (const witness of witnesses) tryWitness(witness)
    }
  }

  const tryWitness = (witness: string): void => {
    if (!clock) return
    const { now } = clock
    const at = time.steady()
    const attempt = import('./witnesses.ts').then(({ answers }) => answers(witness, stop.signal))
    attempt.then(
      (isUp) => {
        if (!stop.signal.aborted) carryOut(states?.witnessed(witness, { at: time.civilAt(at), isUp }, now()) ?? [])
      },
      () => {},
    )
  }

  const say: StatesPart['say'] = (key, verdicts) => {
    if (!clock || !states) return
    const now = clock.now()
    carryOut(states.ran({ key, depth: 'Basic', beganAt: now, endedAt: now, verdicts }, now))
  }

  const restored = (now: number): States => {
    const made = new States(now, [], lease.keyOf(lineKey), lease.otherNode)
    if (before) made.restore(before.states, now, now - (before.ageMs ?? 0))
    keeper.begin()
    return made
  }

  // After the keeper, whose incidents are those of the present line by now.
  time.onShift((shift) => carryOut(states?.shift(shift) ?? []))

  return {
    preload: async () => {
      await import('./witnesses.ts')
    },
    start: async () => {
      before = await keeper.restore()
    },
    watch: (scheduled, config, ofSchedule) => {
      clock = ofSchedule
      witnesses = config.serve.witness
      monitors = new Map(scheduled.map((one) => [one.key, one]))
      const current = states ?? restored(clock.now())
      states = current
      const reports = lease.reports.filter(({ key }) => lease.has(key))
      const watched = [...watchedMonitors(scheduled, config), ...reports, monitorOfSvc(ownConfiguration)]
      carryOut(current.configure(watched, clock.now(), witnesses, lease.isElsewhere))
      timer ??= setInterval(() => carryOut(current.tick(ofSchedule.now())), tickMs)
    },
    ran: (key, depth, report, { beganAt, endedAt }) => {
      if (!clock || !states) return
      const run: RunOfStates = { key, depth, beganAt, endedAt, verdicts: verdictsOf(report) }
      carryOut(states.ran(run, clock.now()))
    },
    confirmed: (views, silencing) => ({
      checks: states && clock ? checksFor(states, clock.now(), views, { slugFor: slugOf, silencing }) : [],
      isIsolated: states?.isIsolated,
    }),
    incidents: async (views) => {
      const now = clock?.now() ?? 0
      // What is open is in memory: a store that hangs costs a page only the incidents that are over.
      const stored = clock && (await orLate(keeper.readableIncidents({ from: 0, to: now, most: mostRecords }), storeMs))
      const records = stored ?? []
      const others = clock && (await orLate(keeper.ofAll(), storeMs))
      const own = states && clock ? troubledSubjects(states, now) : []
      return {
        ...(await openIncidents([...own, ...troubledElsewhere(others ?? [], lease)], views)),
        ended: endedIncidents({ records, blips: blips.ended, now }, views, mostEnded),
        isIsolated: states?.isIsolated,
      }
    },
    faultsOfAll: async () => {
      const stored = await orLate(keeper.ofAll(), storeMs)
      return stored && worstByKey(stored)
    },
    close: keeper.close,
    follow: (listener) => {
      onTransition = listener
    },
    stateOf: (subject, incident) => states?.stateOf(subject, incident),
    isIsolated: () => states?.isIsolated,
    views: () => (states && clock ? [...states.views(clock.now())] : []),
    monitors: () => monitors,
    takeOver: ({ keys, silentMs, states: stored, incidents }) => {
      const now = time.now()
      states?.release(keys)
      keeper.ledger.takeOver(keys, { states: stored, incidents }, now)
      states?.restore(stored, now, now - (silentMs ?? now))
    },
    again: (stored) => keeper.ledger.again(stored, time.now()),
    say,
    sayConfiguration: (reason) => {
      const check = 'configuration'
      const isKnown = typeof states?.stateOf({ key: ownConfiguration, check }) === 'object'
      if (reason !== undefined) {
        const message = `the configuration has changed and is not applied: ${reason}`.slice(0, mostCharacters)
        say(ownConfiguration, [{ check, depth: 'Basic', level: 'failed', message }])
      } else if (isKnown) {
        say(ownConfiguration, [{ check, depth: 'Basic', level: 'ok', message: 'the configuration is applied' }])
      }
    },
    questions: () => states?.questions ?? [],
    takeAnswers: (answers) => {
      if (clock && states) carryOut(states.takeAnswers(answers, clock.now()))
    },
    look: (key, depth) => clock?.ask({ type: 'ask', key, depth, at: clock.now(), repeatsRefused: false }),
    cancel: () => {
      keeper.cancel()
      clearInterval(timer)
      stop.abort(new Error('svc is shutting down'))
    },
  }
}

/** How long a reader waits for the incidents of the store, in milliseconds. */
const storeMs = 1_000
/** How many incidents that are over a reader gets. */
const mostEnded = 100

function* troubledSubjects(states: States, now: number): Generator<TroubledSubject> {
  for (const view of states.views(now, isTroubled)) {
    yield view.state.incident ? view : { ...view, suspect: states.suspectOf(view.key) }
  }
}

/** The troubled subjects that other nodes have confirmed and stored. */
const troubledElsewhere = (stored: readonly StoredState[], lease: NodeLease): readonly TroubledSubject[] =>
  stored.flatMap(({ row, state }): readonly TroubledSubject[] => {
    if (lease.has(row.key) || !isTroubled(state)) return []
    const monitor = nameWithNode(nodeOfKey(row.key), row.monitor)
    return [{ ...row, monitor, runsOn: 'network', state, isObserved: state.unobservedSince === undefined }]
  })

/** A fault that another node has confirmed. */
export type FaultElsewhere = Pick<MonitorElsewhere, 'reason'> & { readonly fault: 'warning' | 'failed' }

/** Nothing is stored of what is healthy. */
function worstByKey(stored: readonly StoredState[]): ReadonlyMap<string, FaultElsewhere> {
  const byKey = new Map<string, FaultElsewhere>()
  for (const { row, state } of stored) {
    const { level, message } = state.incident ?? state
    if (level === 'ok' || (byKey.has(row.key) && level === 'warning')) continue
    if (byKey.get(row.key)?.fault === 'failed') continue
    byKey.set(row.key, { fault: level, reason: { check: row.check, message } })
  }
  return byKey
}

/** The monitors of a schedule, with the facts that confirmation needs. */
export function watchedMonitors(
  monitors: readonly ScheduledMonitor[],
  { types, serve }: Pick<Config, 'types' | 'serve'>,
): readonly WatchedMonitor[] {
  const keys = new Map<string, string>(
    monitors.flatMap(({ key, types: of, monitor: { name } }) =>
      of.map((type) => [writeMonitorOfType({ type, name }), key] as const),
    ),
  )
  return monitors.map(({ key, monitor, intervals }) => {
    const { name, type, kind } = monitor
    const node = nodeOfKey(key)
    const ofType = type === undefined ? undefined : types[type]
    const flapping = monitor.flapping ?? ofType?.flapping ?? serve.flapping
    return {
      key,
      type,
      name,
      runsOn: kind.runsOn,
      every: intervals,
      dependsOn: dependenciesOfMonitor(monitor).map(({ atLeast, of }) => ({
        atLeast,
        // A member that no schedule runs is unknown: it counts in favour of its group.
        of: of.map((one) => keys.get(writeMonitorOfType(one)) ?? writeMonitorOfType(one)),
      })),
      confirmMs: monitor.confirmMs ?? ofType?.confirm ?? serve.confirm,
      flapping: flapping === 'off' ? Number.POSITIVE_INFINITY : flapping,
      formerly: (monitor.formerly ?? []).map((one) => (node === undefined ? one : machineKey(node, one))),
      fingerprint: createHash('sha256').update(fingerprint(monitor)).digest('hex').slice(0, 16),
    }
  })
}

const noChecks: readonly DeclaredResult[] = []

const levels = { ok: 'ok', warn: 'warning', fail: 'failed', 'not checked': undefined } as const

/** The verdict on each check in the report of a run. */
export function verdictsOf(report: MonitorReport): readonly Verdict[] {
  const reading = readMonitor(documentOf(report, () => true, 'full'))
  return reading.results.map(({ check, item, level, message, fault, depth, notChecked }, at): Verdict => {
    const result = report.results[at]
    const isRemembered = result?.remembered === true
    const isSkipped = fault === 'dependency'
    const isLoad = result !== undefined && isLoadOf(report, check)
    const own = isLoad ? (result.notChecked === undefined ? result.status : undefined) : levels[level]
    const verdict = isRemembered || isSkipped ? undefined : own
    const reason = isRemembered ? 'remembered' : isSkipped ? 'dependency' : notChecked
    return {
      check,
      item,
      level: verdict,
      message: message.slice(0, mostCharacters),
      depth: depth ?? report.depth,
      reason: verdict === undefined ? reason : undefined,
      fault: verdict === 'failed' ? result?.fault : undefined,
      isHeld: result?.isHeld ? true : undefined,
    }
  })
}
/** Messages of peers are kept as long as incidents are. */
const mostCharacters = 1_024

/** The checks that a reader with these views may see. */
function* checksFor(
  states: States,
  now: number,
  views: HealthViews,
  {
    slugFor,
    silencing,
  }: { readonly slugFor: (view: SubjectView) => string; readonly silencing: Silencing | undefined },
): Generator<ConfirmedCheck> {
  const victims = victimsBySubject(states.views(now, ({ incident }) => incident !== undefined))
  const ofMonitors = new Map<string, readonly Silence[]>()
  // The checks of a monitor share what silences it; only an incident may have more.
  const silencesFor = (view: SubjectView, keeper: Silencing): readonly Silence[] =>
    view.state.incident
      ? keeper.of(view, view.state).silences
      : entryOf(ofMonitors, view.key, () => keeper.ofMonitors([view]))
  for (const view of states.views(now)) {
    const { type, monitor, check, item, state, isObserved } = view
    if (views(type) !== 'full') continue
    const { level, levelSince, fault, message, doubt, reason, blips, incident } = state
    yield {
      type,
      monitor,
      check,
      slug: slugFor(view),
      item,
      level,
      since: levelSince,
      fault,
      message,
      isObserved,
      isSettled: doubt === undefined && reason === undefined,
      doubtSince: doubt && (doubt.failed ?? doubt.warning),
      blips,
      silences: silencing ? shownSilences(silencesFor(view, silencing), views) : [],
      incident: incident && shownIncident(incident, victims.get(subjectId(view))?.length ?? 0, views),
    }
  }
}

/** Silences as a reader may see them. */
const shownSilences = (silences: readonly Silence[], views: HealthViews): readonly RunSilence[] =>
  silences.map(({ source, until, by, reason }) => ({
    source,
    until: new Date(until),
    ...(views() === 'full' ? { by, reason } : {}),
  }))

function shownIncident(
  {
    id,
    level,
    beganAt,
    fault,
    message,
    cause,
    isFlapping,
    isUnobserved,
  }: NonNullable<SubjectView['state']['incident']>,
  victims: number,
  views: HealthViews,
): ShownIncident {
  const isHidden = cause !== undefined && views(cause.type) !== 'full'
  return {
    id,
    level,
    beganAt,
    fault,
    message,
    cause:
      cause && (isHidden ? { monitor: 'a monitor of another type' } : { type: cause.type, monitor: cause.monitor }),
    isFlapping,
    isUnobserved,
    victims,
  }
}

import { isStoreFailure } from '../../base/errors.ts'
import { entryOf, lazy } from '../../base/lazy.ts'
import { type LatestOptions, type MonitorReport, monitorKey, type Unit } from '../../checks/engine/index.ts'
import { ofType } from '../../checks/plan/index.ts'
import { depthOfCheck } from '../../checks/reports/index.ts'
import type { Config } from '../../config/index.ts'
import { ExecutionMode, type ServerType } from '../../protocol/index.ts'
import type { Family } from '../../protocol/service/family.ts'
import type { MonitorOfPage, Runtime } from '../../protocol/service/service.ts'
import type { KeeperLog } from '../../store/index.ts'
import { type NodeLease, nameWithNode, plainKey, soleNode } from '../../watch/nodes/index.ts'
import type { HistoryRows, HistorySource, ObservedCheck, ObservedRun, Rank } from '../../watch/periods/index.ts'
import type { Intervals } from '../../watch/schedule/index.ts'
import type { IncidentRecord, IncidentsQuery } from '../../watch/states/index.ts'
import type { Parts } from '../local.ts'
import type { Part } from '../part.ts'
import { type ProcessTime, processTime } from '../process-time.ts'
import { type MonitorName, type Rename, renamesIn } from '../watch/renames.ts'
import { scheduledMonitors } from '../watch/scheduled-monitors.ts'

export type ResultHistoryPart = Part & {
  /** Takes a report that counts. */
  readonly record: NonNullable<LatestOptions['onReport']>
  readonly history: Parts['history']
  /** `Runtime.days` */
  readonly days: NonNullable<Runtime['days']>
}

/** How often the store gets what is new, in milliseconds: in one transaction. */
const writeEveryMs = 1_000
/** The pause after a failure. Milliseconds. */
const failureMs = 10_000
/** Runs that wait until the history of the store is loaded. */
const maxEarly = 20_000
/** Milliseconds for which a verdict stands that no schedule repeats. */
const unscheduledMs: Readonly<Record<ExecutionMode, number>> = {
  Basic: 900_000,
  Standard: 900_000,
  Advanced: 10_800_000,
}

const loadHistory = async () => await import('../../watch/periods/index.ts')
type History = Awaited<ReturnType<typeof loadHistory>>
const loadDayHistory = async () => await import('./days.ts')

type Open = {
  readonly library: History
  readonly keeper: InstanceType<History['HistoryKeeper']>
  /** Absent where no other node stores runs. */
  readonly follower: InstanceType<History['HistoryFollower']> | undefined
}

/**
 * The history of results: takes the reports of `svc serve`, stores what follows from them, and answers from the store and
 * from what is not stored yet. `rows`: where it is stored; absent without a store. A store that fails costs history, and
 * never a run.
 */
export function resultHistoryPart({
  config,
  rows: stored,
  shared,
  incidents,
  notStored = () => undefined,
  lease = soleNode,
  time = processTime(),
  log = () => {},
}: {
  readonly config: Config
  readonly rows: (() => Promise<HistoryRows>) | undefined
  /** Whether this process runs monitors for others, and so writes the history. */
  readonly shared: boolean
  /** The incidents of a time, the latest first. */
  readonly incidents: (query: IncidentsQuery) => Promise<readonly IncidentRecord[]>
  /** Why states and incidents are not stored. */
  readonly notStored?: (() => string | undefined) | undefined
  /** The history of several nodes has the monitors of each machine apart. */
  readonly lease?: NodeLease | undefined
  readonly time?: ProcessTime | undefined
  readonly log?: KeeperLog | undefined
}): ResultHistoryPart {
  const now = (): number => Math.floor(time.now())
  time.onShift((shift) => {
    ready?.keeper.shift(shift)
    early = early.map(({ identity, run }) => ({ identity, run: { ...run, at: shift.correct(run.at) } }))
  })
  let current: Configured = {
    config,
    recorded: new Map(),
    hosts: new Map(),
    machine: [],
    onMachine: new Set(),
  }
  let early: { readonly identity: MonitorName; readonly run: ObservedRun }[] = []
  let ready: Open | undefined
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> = Promise.resolve()
  let closed = false
  let fault: string | undefined
  let moves: readonly Rename[] = renamesIn(config)
  let days: InstanceType<Awaited<ReturnType<typeof loadDayHistory>>['DayHistory']> | undefined

  const opened = (library: History, source: HistorySource): Open => {
    for (const { identity, run } of early) source.recorder.add(identity, run)
    early = []
    const follower = lease.isShared ? new library.HistoryFollower(source) : undefined
    return { library, keeper: new library.HistoryKeeper(source), follower }
  }

  const renameNow = async (rows: HistoryRows): Promise<void> => {
    if (moves.length === 0) return
    const due = moves
    await rows.rename(due)
    moves = moves.filter((move) => !due.includes(move))
  }

  /** Loads what an earlier process stored. Until then, runs wait. */
  const loaded = lazy(async () => {
    const library = await loadHistory()
    if (!stored) ready = opened(library, library.memorySource())
    else {
      const rows = await stored()
      if (shared) await renameNow(rows)
      ready = opened(library, await library.restored(rows, now()))
    }
    return ready
  })

  const flush = async (): Promise<void> => {
    const { keeper, follower } = await loaded.get()
    await renameNow(keeper.source.rows)
    await follower?.turn(now())
    await keeper.turn(now())
  }

  const arm = (ms: number): void => {
    if (closed) return
    timer = setTimeout(() => {
      working = flush().then(
        () => {
          if (fault !== undefined) log({ level: 'info', msg: 'the history is stored again' })
          fault = undefined
          arm(writeEveryMs)
        },
        (error: unknown) => {
          const reason = isStoreFailure(error) ? messageOf(error) : `svc failed unexpectedly: ${stackOf(error)}`
          if (reason !== fault) log({ level: 'warn', msg: `the history is not stored: ${reason}` })
          fault = reason
          arm(failureMs)
        },
      )
    }, ms)
    timer.unref()
  }

  const isOnMachine = ({ type, monitor }: MonitorOfPage): boolean =>
    type === undefined || current.onMachine.has(`${type} ${monitor}`)

  const recordedOf = (type: ServerType, report: MonitorReport): Recorded => {
    const own = current.recorded.get(type)?.get(report.name)
    if (own?.kind === report.kind) return own
    const { isScheduled = false, validMs = unscheduled } = own ?? {}
    const at = current.onMachine.has(`${type} ${report.name}`) ? lease : soleNode
    return { ...identityAt(at, identityOf(type, report)), kind: report.kind, isScheduled, validMs }
  }

  return {
    open: async () => {
      current = await configured(config, lease)
      moves = [...moves, ...movesToNode(current, lease)]
    },
    reload: async (next) => {
      const planned = await configured(next, lease)
      return () => {
        current = planned
        moves = [...renamesIn(next), ...movesToNode(planned, lease)]
        for (const { from, to } of moves) ready?.keeper.source.recorder.rename(from, to)
        early = early.map(({ identity, run }) => ({
          identity: moves.find(({ from }) => from === identity.key)?.to ?? identity,
          run,
        }))
      }
    },
    preload: async () => {
      await Promise.all([loadHistory(), loadDayHistory()])
      // Before the server listens, so that a lack of descriptors later does not cost the history. That it cannot be opened now
      // costs history only.
      await stored?.()
        .then((rows) => rows.open())
        .catch(() => {})
    },
    answers: () => arm(writeEveryMs),
    record: (type, mode, report, cause) => {
      if (closed) return
      const identity = recordedOf(type, report)
      const ignoresSkipped = cause === 'caller' && identity.isScheduled
      const run = observedRun(report, mode, now(), identity.validMs, { ignoresSkipped })
      if (run === undefined) return
      const recorder = ready?.keeper.source.recorder
      if (recorder) recorder.add(identity, run)
      else if (early.push({ identity, run }) > maxEarly) early.shift()
    },
    history: async (request, reads) => {
      const { answerOf } = await import('./answer.ts')
      const notKept = stored
        ? fault === undefined
          ? notStored()
          : `The history is not stored now: ${fault}`
        : 'Without a store, svc remembers the last 24 hours, and nothing after it ends'
      const { library, keeper } = await loaded.get()
      return await answerOf({
        library,
        source: keeper.source,
        request,
        reads,
        now: now(),
        keys: keysOf(current.config),
        notKept,
        incidents,
        typesOfHost: (key) => current.hosts.get(plainKey(key)),
      })
    },
    days: async (ids) => {
      const { library, keeper } = await loaded.get()
      days ??= new (await loadDayHistory()).DayHistory()
      const { dayKey } = await loadDayHistory()
      const stored = ids.map((one) =>
        isOnMachine(one) ? { ...one, monitor: nameWithNode(lease.node, one.monitor) } : one,
      )
      const ofStored = await days.of(library, keeper.source, stored, now())
      return new Map(
        ids.flatMap((one, at) => {
          const own = ofStored.get(dayKey(stored[at] ?? one))
          return own ? [[dayKey(one), own] as const] : []
        }),
      )
    },
    metrics: async () => historyMetrics(stored !== undefined && fault !== undefined, ready),
    cancel: () => {
      closed = true
      clearTimeout(timer)
    },
    close: async () => {
      clearTimeout(timer)
      await working.catch(() => {})
      // What the last second brought.
      if (shared && ready && fault === undefined) await flush().catch(() => {})
    },
  }
}

/** The configuration, what the history needs of its monitors by type and name, and the types of each host block by its key. */
type Configured = {
  readonly config: Config
  readonly recorded: ReadonlyMap<ServerType, ReadonlyMap<string, Recorded>>
  readonly hosts: ReadonlyMap<string, readonly ServerType[]>
  /** The monitors that look at this machine, and their types and names. */
  readonly machine: readonly MonitorName[]
  readonly onMachine: ReadonlySet<string>
}

/** A monitor in the history, the same for all its runs. */
type Recorded = MonitorName & {
  readonly kind: string
  readonly isScheduled: boolean
  readonly validMs: ObservedRun['validMs']
}

async function configured(config: Config, lease: NodeLease): Promise<Configured> {
  const scheduled = await scheduledMonitors(config)
  const recorded = new Map<ServerType, Map<string, Recorded>>()
  // Most monitors have the same intervals.
  const times = new Map<string, ObservedRun['validMs']>()
  for (const { types, monitor, intervals } of scheduled) {
    const { name, kind } = monitor
    const own = validMsOf(intervals)
    const validMs = entryOf(times, own.join(' '), () => own)
    const facts = { kind: kind.name, isScheduled: Object.keys(intervals).length > 0, validMs }
    const at = kind.runsOn === 'machine' ? lease : soleNode
    for (const type of types)
      entryOf(recorded, type, () => new Map<string, Recorded>()).set(name, {
        ...identityAt(at, { key: keyOf(type, monitor), type, name }),
        ...facts,
      })
  }
  const blocks = scheduled.filter(({ monitor }) => monitor.type === undefined)
  const machine = scheduled.flatMap(({ types, monitor }) =>
    monitor.kind.runsOn === 'machine'
      ? types.map((type) => ({ key: keyOf(type, monitor), type, name: monitor.name }))
      : [],
  )
  return {
    config,
    recorded,
    hosts: new Map(blocks.map(({ key, types }) => [key, types])),
    machine,
    onMachine: new Set(machine.map(({ type, name }) => `${type} ${name}`)),
  }
}

/** For how long the verdicts of a monitor with these intervals stand. */
function validMsOf(own: Intervals): ObservedRun['validMs'] {
  const of = (depth: ExecutionMode): number => {
    const covering = ExecutionMode.values.slice(ExecutionMode.values.indexOf(depth)).flatMap((mode) => own[mode] ?? [])
    return covering.length === 0 ? unscheduledMs[depth] : 2 * Math.min(...covering)
  }
  return [of('Basic'), of('Standard'), of('Advanced')]
}

const unscheduled = validMsOf({})

const identityOf = (type: ServerType, { name, kind }: Pick<MonitorReport, 'name' | 'kind'>): MonitorName => ({
  key: keyOf(type, { name, kind: { name: kind } as never }),
  type,
  name,
})

const identityAt = ({ node, keyOf }: NodeLease, { key, type, name }: MonitorName): MonitorName => ({
  key: keyOf(key),
  type,
  name: nameWithNode(node, name),
})

/** The key in the history: that of a monitor has its type, and that of the machine gets the type that shows it. */
const keyOf = (type: ServerType, monitor: Parameters<typeof monitorKey>[0]): string => monitorKey({ ...monitor, type })

/** The renames that move the history of this machine from a single svc to the name of its node. */
const movesToNode = ({ machine }: Configured, lease: NodeLease): readonly Rename[] =>
  machine.map((one) => ({ from: one.key, to: identityAt(lease, one) })).filter(({ from, to }) => from !== to.key)

/** The keys of all monitors that exist. Undefined: svc checks itself, and all that history knows counts as existing. */
function keysOf({ origin, types }: Config): ((key: string) => boolean) | undefined {
  if (origin === undefined) return undefined
  const keys = new Set<string>()
  const hosts = new Set<string>()
  for (const [type, { monitors }] of Object.entries(types)) {
    hosts.add(`${type}/host/`)
    for (const monitor of monitors) keys.add(monitorKey(ofType(type as ServerType, monitor)))
  }
  return (key) => keys.has(plainKey(key)) || hosts.has(plainKey(key))
}

/** The run in a report, for the history. Undefined: no check has a verdict. */
function observedRun(
  report: MonitorReport,
  mode: ExecutionMode,
  at: number,
  validMs: ObservedRun['validMs'],
  { ignoresSkipped }: { readonly ignoresSkipped: boolean },
): ObservedRun | undefined {
  const checks = report.results.map(({ check, status, fault, notChecked, measurement }): ObservedCheck => {
    const hasVerdict = notChecked === undefined && !(ignoresSkipped && fault === 'dependency')
    const value = measurement?.value
    return {
      check,
      rank: rankOf(depthOfCheck(check, report)),
      level: hasVerdict ? status : undefined,
      figure:
        measurement && value !== undefined && Number.isFinite(value)
          ? { name: nameOfFigure(check, measurement.unit), value }
          : undefined,
    }
  })
  return checks.some(({ level }) => level !== undefined) ? { at, rank: rankOf(mode), checks, validMs } : undefined
}

/** Names of figures, by unit and check. The periods of each monitor keep them. */
const figureNames = new Map<Unit, Map<string, string>>()
/** Of each unit. */
const maxFigureNames = 50_000

/** The name of a figure: the same text each time, so that it is kept once. */
function nameOfFigure(check: string, unit: Unit): string {
  const names = entryOf(figureNames, unit, () => new Map<string, string>())
  if (names.size >= maxFigureNames) names.clear()
  return entryOf(names, check, () => JSON.stringify([check, unit]))
}

const rankOf = (depth: ExecutionMode): Rank => ExecutionMode.values.indexOf(depth) as Rank

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error))

function historyMetrics(isFailing: boolean, ready: Open | undefined): readonly Family[] {
  return [
    {
      name: 'svc_history_stored',
      type: 'gauge',
      help: '1 while the history of results is stored, 0 from a write that failed until one succeeds.',
      samples: ready || isFailing ? [{ value: Number(!isFailing) }] : [],
    },
  ]
}

import { performance } from 'node:perf_hooks'
import { Fault, shuttingDown } from '../../base/errors.ts'
import { listeningPorts, resolveHost } from '../../base/net/connect.ts'
import { stateMeter } from '../../base/system/resources.ts'
import { runInChild } from '../../checks/child/index.ts'
import {
  type EngineContext,
  type IsOwed,
  includes,
  type LatestOptions,
  type LatestReports,
  limits,
  loadHoldDuration,
  loadLatest,
  loadServing,
  type MonitorReport,
  orAborted,
  type PlannedMonitor,
  type Run,
  type RunCause,
  type RunOptions,
  type RunStart,
  runMonitor,
  runMonitors,
  type Serving,
  type ServingObservation,
  type Shared,
  SharedRuns,
  type Unit,
} from '../../checks/engine/index.ts'
import {
  assemble,
  dependenciesElsewhere,
  isConfigured,
  loadPlanChanges,
  type OwnParts,
  ofType,
  ownTypes,
  type PlanChanges,
  preloadHealth,
} from '../../checks/plan/index.ts'
import { isDeclaredBy, rememberDocuments } from '../../checks/reports/index.ts'
import type { Config } from '../../config/index.ts'
import { ExecutionMode, ServerType } from '../../protocol/index.ts'
import type { Family } from '../../protocol/service/family.ts'
import {
  type Call,
  type Runtime,
  type RuntimeFacts,
  readsHere,
  type StartedRuns,
  type Trial,
  type TrialRequest,
} from '../../protocol/service/service.ts'
import type { Parts } from '../local.ts'
import type { OpenOptions, Part } from '../part.ts'
import type { ScheduleWork } from '../watch/schedule.ts'
import type { RecentRuns } from './recent.ts'

/** How long a run of the schedule holds its slot: a peer that is silent for longer keeps no slot. Milliseconds. */
const slotMs = 1_000

/**
 * How long a caller waits until what is due begins, and how often it looks. A turn of the event loop is usually enough.
 * Milliseconds.
 */
const [owedMs, lookMs] = [1_000, 25]

export type { PlanChanges } from '../../checks/plan/index.ts'

export type HealthPart = Part &
  Pick<Parts, 'documentsOf' | 'serverTypes' | 'plan' | 'run' | 'shared'> & {
    readonly facts: () => ConfigurationFacts
    /** How another configuration differs from the one in force. */
    readonly changes: (next: Config) => Promise<PlanChanges>
    /** The latest report of each monitor, from when this part is open. What else runs monitors adds to it. */
    readonly latest: () => LatestReports | undefined
    /** The functions of this part that a schedule uses. */
    readonly scheduleWork: (options: Pick<OpenOptions, 'log' | 'config'>) => ScheduleWork
    /** `Runtime.recent` */
    readonly recent: Runtime['recent']
    /** `Core.trial` */
    readonly trial: (monitor: TrialRequest, signal: AbortSignal) => Promise<Trial>
  }

type ConfigurationFacts = Pick<RuntimeFacts, 'configuration' | 'types' | 'ownTypes'>

/** The values that follow from a configuration. */
type Planned = {
  readonly config: OpenOptions['config']
  readonly repeatedNames: ReadonlySet<string>
  readonly ownParts: OwnParts | undefined
  readonly dependedOn: ReturnType<typeof dependenciesElsewhere>
  readonly facts: ConfigurationFacts
}

function planned(
  { config, requireConfig, version }: OpenOptions,
  ownStore: Pick<OwnParts, 'storePath' | 'prepareStore'> | undefined,
): Planned {
  // A type that svc.yaml lacks must not pass because svc itself is healthy.
  const checksItself = config.origin === undefined && requireConfig !== true
  const ownParts: OwnParts | undefined = checksItself
    ? { storePath: undefined, ...ownStore, accounts: ownStore !== undefined, version }
    : undefined
  const types = Object.entries(config.types).flatMap(([type, { monitors }]) =>
    isConfigured(monitors) ? [type as ServerType] : [],
  )
  return {
    config,
    repeatedNames: namesInSeveralTypes(config),
    ownParts,
    dependedOn: dependenciesElsewhere(
      Object.entries(config.types).flatMap(([type, { monitors }]) =>
        monitors.map((monitor) => ofType(type as ServerType, monitor)),
      ),
    ),
    facts: { configuration: config.origin, types, ownTypes: ownTypes(ownParts) },
  }
}

const preloadOf = ({ config, ownParts }: Planned): Promise<void> =>
  preloadHealth(
    Object.values(config.types).flatMap(({ monitors }) => monitors),
    ownParts,
  )

/** The types whose results count no longer: all of them where svc checks itself in one of the two configurations. */
async function replannedTypes(before: Planned, next: Planned): Promise<readonly ServerType[]> {
  const { planChanges } = await loadPlanChanges()
  return before.ownParts || next.ownParts
    ? ServerType.values
    : planChanges(before.config.types, next.config.types).types
}

/** Whether a monitor that was run still belongs to a type. */
function isPlanned({ config, ownParts, facts }: Planned, type: ServerType, report: MonitorReport): boolean {
  if (ownParts !== undefined) return true
  const configured = facts.types.includes(type) ? config.types[type] : undefined
  if (!configured) return false
  return (
    (report.host && configured.host !== false) || configured.monitors.some((monitor) => monitor.name === report.name)
  )
}

/** Plans and runs the monitors: for one call in a command, for all callers together in `svc serve`. */
export function healthPart(
  options: OpenOptions,
  {
    services,
    history,
    onReport: onLatest,
    civilNow = Date.now,
  }: Pick<EngineContext, 'services' | 'history'> &
    Pick<LatestOptions, 'onReport'> & {
      /** The time that people read. */ readonly civilNow?: (() => number) | undefined
    },
  ownStore: Pick<OwnParts, 'storePath' | 'prepareStore'> | undefined,
): HealthPart {
  const { shared, refusals, tryNow, rehearses = false } = options
  const now = (): number => performance.now()
  let current = planned(options, ownStore)
  const context: EngineContext = {
    now,
    date: () => new Date(),
    resolve: resolveHost,
    inChild: runInChild,
    measureState: stateMeter(now),
    limits: limits(refusals),
    services,
    history,
    get exceeded() {
      return exceeded
    },
    onObservation: (observation) => onObservation?.(observation),
    get serving() {
      return serving
    },
    tryNow: async ({ name, type }) => await tryNow?.(name, current.repeatedNames.has(name) ? type : undefined),
  }
  let onObservation: EngineContext['onObservation']
  let serving: Serving | undefined
  let exceeded: EngineContext['exceeded']
  let isOwed: IsOwed | undefined
  let onOthersReport: Parameters<ScheduleWork['watchReports']>[0] | undefined
  const documentsOf = rememberDocuments()
  const life = new AbortController()

  const plan = async (
    type: ServerType,
    mode: ExecutionMode,
    signal: AbortSignal,
    { config, ownParts }: Planned = current,
  ): Promise<readonly PlannedMonitor[]> => {
    const configured = config.types[type]
    const monitors = await assemble(type, {
      configured: configured?.monitors ?? [],
      host: rehearses ? false : (configured?.host ?? {}),
      parts: ownParts,
      listening: rehearses ? async () => [] : listeningPorts,
      signal,
      mode,
    })
    return rehearses ? monitors.map((one) => (one.drill ? one : { ...one, drill: true as const })) : monitors
  }

  let latest: LatestReports | undefined
  let recent: RecentRuns | undefined
  const started = new Map<string, StartedRuns>()
  const count = (type: ServerType | undefined, mode: ExecutionMode, trigger: RunCause): void => {
    const key = `${mode} ${type} ${trigger}`
    started.set(key, { type, mode, trigger, count: (started.get(key)?.count ?? 0) + 1 })
  }
  // Callers come and go. A shared run ends at its own deadline, or with this core.
  const start = async (mode: ExecutionMode, type: ServerType, { cause, fresh }: RunStart): Promise<Run> => {
    // A reload during the run does not change it.
    const inForce = current
    count(type, mode, cause)
    const { signal } = life
    const notBefore = fresh ? now() : Number.NEGATIVE_INFINITY
    const monitors = await plan(type, mode, signal, inForce)
    const elsewhere = inForce.dependedOn(monitors)
    if (inForce === current) latest?.planned(type, mode, monitors)
    const onReport: RunOptions['onReport'] = (report, times) => {
      if (inForce !== current && !isPlanned(current, type, report)) return
      const endedAt = now()
      latest?.add(type, mode, report, { ...(times ?? { beganAt: endedAt - report.durationMs, endedAt }), cause })
      if (cause !== 'peer') onOthersReport?.(type, mode, report)
    }
    const run = await runMonitors(monitors, context, { mode, signal, cause, notBefore, elsewhere, onReport })
    if (cause !== 'peer' && inForce === current) recent?.ended(type, run)
    return run
  }
  /** The answer from what the schedule and other callers observe, where that suffices. It counts as no run. */
  const serve = async (mode: ExecutionMode, type: ServerType): Promise<Run | undefined> => {
    const inForce = current
    if (!serving || !inForce.facts.types.includes(type)) return undefined
    const { signal } = life
    const monitors = await plan(type, mode, signal, inForce)
    const elsewhere = inForce.dependedOn(monitors)
    const due = [...monitors, ...elsewhere].filter(({ depth }) => includes(mode, depth))
    if (due.length === 0) return undefined
    const began = now()
    const pinned = new Map<PlannedMonitor, ServingObservation>()
    for (let missing: readonly PlannedMonitor[] = due, attempt = 0; ; attempt += 1) {
      const choice = serving.allFor(missing, mode, now(), isOwed)
      if (!choice) return undefined
      for (const [monitor, one] of choice.chosen) pinned.set(monitor, one)
      missing = choice.missing
      if (missing.length === 0) break
      if (now() - began > owedMs) return undefined
      // In the next turn, the timer of the schedule has had its own. A slot may take longer.
      await new Promise((resolve) => (attempt === 0 ? setImmediate(resolve) : setTimeout(resolve, lookMs)))
    }
    const underway = [...pinned.values()].filter(({ observation }) => observation.endedAt === undefined)
    if (underway.length > 0) await orAborted(Promise.allSettled(underway.map((one) => one.observation.ended)), signal)
    const options = { mode, elsewhere, pinned }
    return (
      serving.runOfEnded(monitors, options, began) ??
      (await runMonitors(monitors, context, { ...options, signal, cause: 'caller' }))
    )
  }
  const sharedRuns = shared ? new SharedRuns(now, start, serve) : undefined
  const rounds = new WeakMap<object, number>()
  /** When the first of several calls that belong together began: they share what is observed from then on. */
  const roundOf = (together: object): number => {
    const began = rounds.get(together) ?? now()
    rounds.set(together, began)
    return began
  }

  return {
    facts: () => current.facts,
    changes: async ({ types }) => (await loadPlanChanges()).planChanges(current.config.types, types),
    latest: () => latest,
    open: async () => {
      const { RecentRuns } = await import('./recent.ts')
      const onReplaced: LatestOptions['onReplaced'] = (before, reports) => recent?.replaced(before, reports)
      const date = () => new Date(civilNow())
      latest = new (await loadLatest()).LatestReports({ now, date, onReport: onLatest, onReplaced })
      exceeded = (await loadHoldDuration()).exceededInMemory()
      serving = (await loadServing()).servingFrom(context, isDeclaredBy)
      recent = new RecentRuns(latest, context)
      for (const type of current.facts.types) {
        for (const mode of ExecutionMode.values) latest.planned(type, mode, await plan(type, mode, life.signal))
      }
    },
    scheduleWork: ({ log, config }) => ({
      config,
      watchObservations: (observed) => {
        onObservation = observed
      },
      expect: (runsPerMinute) => context.limits.slots.expect({ runsPerMinute, runMs: slotMs }),
      watchOwed: (owed) => {
        isOwed = owed
      },
      watchReports: (onReport) => {
        onOthersReport = onReport
      },
      run: async ({ monitor }, mode, { signal, repeatsRefused }) => {
        count(monitor.type, mode, 'schedule')
        const options = {
          mode,
          signal,
          cause: 'schedule' as const,
          ...(repeatsRefused ? { repeatsRefusedUntil: Date.now() } : {}),
        }
        return await runMonitor(monitor, context, options)
      },
      look: async ({ monitor }, mode, signal) => {
        const unkept = { ...context, history: undefined, exceeded: undefined, onObservation: undefined }
        return await runMonitor(monitor, unkept, { mode, signal, cause: 'schedule', notBefore: now() })
      },
      latest: () => latest,
      onError: ({ monitor: { name } }, error) => {
        const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
        log?.({ level: 'warn', msg: `the scheduled run of ${name} failed unexpectedly: ${reason}` })
      },
    }),
    documentsOf,
    serverTypes: () => {
      const { configuration, types, ownTypes } = current.facts
      const configured = configuration !== undefined
      return { types: configured ? types : ownTypes, configured }
    },
    plan: async (type, mode, call) => selectMonitors(await plan(type, mode, call.signal), call),
    run: (monitors, mode, call) =>
      runMonitors(monitors, context, {
        mode,
        signal: AbortSignal.any([call.signal, life.signal]),
        timeoutMs: call.timeoutMs,
        cause: causeOf(call),
        repeatsRefusedUntil: call.repeatsRefusedUntil,
        notBefore: call.together && roundOf(call.together),
        elsewhere: selectMonitors(current.dependedOn(monitors), call),
        onBegin: call.onRun,
        onReport: call.onReport,
      }),
    shared:
      sharedRuns &&
      ((mode, type, call, isStranger) => {
        const shared = (): Promise<Shared> =>
          sharedRuns.get(mode, type, {
            // A closing core aborts the runs themselves, and with them everyone who waits.
            signal: call.signal,
            fresh: call.fresh === true,
            stranger: isStranger,
            readsHere: () => readsHere(call.caller),
            callerTimeoutMs: call.timeoutMs,
            cause: causeOf(call),
          })
        return call.stored && recent ? recent.stored(type, mode).then((answer) => answer ?? shared()) : shared()
      }),
    recent: async (views, which) => {
      const { types, ownTypes: own } = current.facts
      return (await recent?.of(types.length > 0 ? types : own, views, which)) ?? []
    },
    trial: async ({ type, monitor, mode, timeoutMs }, signal) => {
      const one = (await plan(type, mode, signal)).find(({ name }) => name === monitor)
      if (!one) throw new Fault('NotFound', `${type} has no monitor "${monitor}"`)
      const run = await runMonitors([{ ...one, timeoutMs: timeoutMs ?? one.timeoutMs }], context, {
        mode,
        signal: AbortSignal.any([signal, life.signal]),
        repeatsRefusedUntil: Date.now(),
        timeoutMs: timeoutMs === undefined ? undefined : timeoutMs + 1_000,
      })
      const [report] = run.monitors
      if (!report) throw new Fault('Usage', `${monitor} begins in ${one.depth}: give --mode ${one.depth}`)
      return trialOf(report)
    },
    preload: async () => await Promise.all([preloadOf(current), loadPlanChanges()]),
    reload: async (config) => {
      const next = planned({ ...options, config }, ownStore)
      const types = await replannedTypes(current, next)
      await preloadOf(next)
      const plans = await Promise.all(
        [...next.facts.types, ...next.facts.ownTypes].flatMap((type) =>
          ExecutionMode.values.map(async (mode) => [type, mode, await plan(type, mode, life.signal, next)] as const),
        ),
      )
      return () => {
        current = next
        for (const type of types) sharedRuns?.replan(type, (report) => isPlanned(next, type, report))
        for (const [type, mode, monitors] of plans) latest?.planned(type, mode, monitors)
        latest?.keepTypes([...next.facts.types, ...next.facts.ownTypes])
      }
    },
    ready: async () => {
      if (life.signal.aborted) throw shuttingDown()
    },
    metrics: async () => {
      const { types, ownTypes: own } = current.facts
      const checked = types.length > 0 ? types : own
      return healthMetrics(
        types,
        [...started.values()].filter(({ type }) => type === undefined || checked.includes(type)),
      )
    },
    cancel: () => {
      sharedRuns?.close(shuttingDown())
      life.abort(shuttingDown())
    },
  }
}

/** The families of /metrics about the configuration and the runs since the start. */
export const healthMetrics = (types: readonly ServerType[], started: readonly StartedRuns[]): readonly Family[] => [
  {
    name: 'svc_configured_types',
    type: 'gauge',
    help: 'Server types with at least one monitor; 0 means that nothing is checked.',
    samples: [{ value: types.length }],
  },
  {
    name: 'svc_runs',
    type: 'counter',
    help: 'Runs started, by trigger: a caller or a peer (another svc) runs a whole type, the schedule single monitors; those of the machine itself have no type.',
    samples: started.map(({ type, mode, trigger, count }) => ({
      labels: { type, depth: mode, trigger },
      value: count,
    })),
  },
]

const causeOf = ({ calledByPeer }: Call): RunCause => (calledByPeer ? 'peer' : 'caller')

const levels = { ok: 'ok', warning: 'warn', failed: 'fail' } as const
const unitSigns: Partial<Record<Unit, string>> = { milliseconds: 'ms', percent: '%', bytes: 'B', days: 'days' }

/** A report with the stable field names of `svc monitors test --json`. */
const trialOf = ({ durationMs, attempts, results }: MonitorReport): Trial => ({
  durationMs,
  attempts,
  results: results.map(({ check, status, message, details, fault, address, measurement, notChecked }) => ({
    check,
    level: status === 'failed' && notChecked !== undefined ? 'not checked' : levels[status],
    message,
    details,
    fault,
    address,
    observed: measurement?.value,
    unit: measurement && unitSigns[measurement.unit],
    limit: measurement?.limit ?? measurement?.warn,
  })),
})

/** The names of monitors that several server types have. */
function namesInSeveralTypes({ types }: OpenOptions['config']): ReadonlySet<string> {
  const names = new Set<string>()
  const repeated = new Set<string>()
  for (const { monitors } of Object.values(types)) {
    for (const { name } of monitors) (names.has(name) ? repeated : names).add(name)
  }
  return repeated
}

/** For a command: removes monitors that its selection skips, so that they do not run. */
function selectMonitors(planned: readonly PlannedMonitor[], call: Call): readonly PlannedMonitor[] {
  const skip = call.selection?.skip ?? []
  if (skip.length === 0) return planned
  const skipped = new Set(skip.map((name) => name.toLowerCase()))
  return planned.filter((monitor) => !skipped.has(monitor.name.toLowerCase()))
}

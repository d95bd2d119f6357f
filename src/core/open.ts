import { hostname } from 'node:os'
import { performance } from 'node:perf_hooks'
import type { HashCost } from './auth/index.ts'
import { runInChild } from './child/index.ts'
import type { Config } from './config/index.ts'
import {
  type EngineContext,
  limits,
  loadSeries,
  type MachineReports,
  type MonitorReport,
  type PlannedMonitor,
  type ProvidedServices,
  type RefusalStore,
  type Run,
  runMonitors,
  type Services,
  SharedRuns,
  type Unit,
} from './engine/index.ts'
import { Fault } from './errors.ts'
import { type Lazy, lazy, lazyGroups } from './lazy.ts'
import { type Accounts, localService, type Parts, preloadOperations, viewOf } from './local.ts'
import { resolveHost } from './net/connect.ts'
import { assemble, isConfigured, loadStoredMonitors, type OwnParts, ownTypes, preloadHealth } from './plan/index.ts'
import { preload } from './preload.ts'
import type { ExecutionMode, ServerType } from './protocol/index.ts'
import { rememberDocuments } from './reports/index.ts'
import type {
  Admin,
  Call,
  Runtime,
  RuntimeFacts,
  ServeOptions,
  Service,
  StartedRuns,
  Trial,
  TrialRequest,
} from './service.ts'
import type { Data, HeartbeatRow, KeeperLog } from './store/index.ts'
import { listeningPorts } from './system/listening.ts'
import { stateMeter } from './system/resources.ts'

export type OpenOptions = {
  readonly version: string
  readonly config: Config
  /** The embedded store's file or `postgres://…`. Undefined: no store (`serve --only health`). */
  readonly store: string | undefined
  /** May contain SVC_STORE_PASSWORD_FILE. Defaults to the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How long to wait for the lock of an embedded store, in milliseconds. Absent: as long as a request of a server may. */
  readonly patienceMs?: number | undefined
  /** True in `svc serve`: callers share runs, and results are cached for a while. */
  readonly shared: boolean
  readonly details: ServeOptions['details']
  /** Checks nothing but what svc.yaml configures: without one, svc does not check itself either (K10). */
  readonly requireConfig?: boolean | undefined
  /** Where refused sign-ins outlive this process. Absent: it forgets them. */
  readonly refusals?: RefusalStore | undefined
  /**
   * What tries a monitor now, for the message of one that must not sign in. `type` is given if several types have a
   * monitor of this name.
   */
  readonly tryNow?: ((monitor: string, type: ServerType | undefined) => Promise<string>) | undefined
  /** In `svc serve`: what happens to the store beside the requests. */
  readonly log?: KeeperLog | undefined
  /** What a hash of a password costs. Only tests give one: svc itself always uses that of P1. */
  readonly hashCost?: HashCost | undefined
}

export type Core = {
  readonly service: Service
  readonly runtime: Runtime
  /**
   * Runs a single monitor. Throws NotFound for a monitor that the type does not have, Usage for a mode too shallow for
   * it.
   */
  readonly trial: (monitor: TrialRequest, signal: AbortSignal) => Promise<Trial>
}

/**
 * The only composing module: makes the store, the engine and the Service. A shared core opens its store and loads
 * whatever requests may need at once, and fails with a Fault when it cannot. A command's core opens and loads only
 * what the command needs.
 */
export async function openCore(options: OpenOptions): Promise<Core> {
  const now = (): number => performance.now()
  const store = options.store === undefined ? undefined : await holdStore(options.store, options)
  let ownUrl: string | undefined
  const repeatedNames = namesInSeveralTypes(options.config)
  const services: ProvidedServices = {
    ownSignIn: store?.signIn,
    heartbeats: store && (async () => await heartbeatsByOwnClock(await store.data(false))),
    exec: options.config.exec,
    ownUrl: () => ownUrl,
  }
  const series = store && seriesIn(store, options.config)
  const context: EngineContext = {
    now,
    date: () => new Date(),
    resolve: resolveHost,
    inChild: runInChild,
    measureState: stateMeter(now),
    limits: limits(options.refusals),
    services,
    history: series && {
      keep: async (reading) => await (await series.get()).keep(reading),
      exceededSince: async (state) => await (await series.get()).exceededSince(state),
    },
    tryNow: async ({ name, type }) => await options.tryNow?.(name, repeatedNames.has(name) ? type : undefined),
  }
  const documentsOf = rememberDocuments()
  const life = new AbortController()
  // A type that svc.yaml lacks must not pass because svc itself is healthy.
  const checksItself = options.config.origin === undefined && options.requireConfig !== true
  const ownParts: OwnParts | undefined = checksItself
    ? {
        storePath: store?.path,
        // `svc serve` has opened its store.
        prepareStore: options.shared ? undefined : () => prepareStore(store?.path),
        accounts: store !== undefined,
        version: options.version,
      }
    : undefined
  if (options.shared) await openAll(store, series, configuredMonitors(options.config), ownParts)
  const keeper = options.shared && store ? await keeperOf(store, options.log) : undefined

  const plan = async (
    type: ServerType,
    mode: ExecutionMode,
    signal: AbortSignal,
  ): Promise<readonly PlannedMonitor[]> => {
    const configured = options.config.types[type]
    return await assemble(type, {
      configured: configured?.monitors ?? [],
      host: configured?.host ?? {},
      parts: ownParts,
      listening: listeningPorts,
      signal,
      mode,
    })
  }

  const started = new Map<string, StartedRuns>()
  // Callers come and go. A shared run ends at its own deadline, or with this core.
  const start = async (mode: ExecutionMode, type: ServerType, forPeer: boolean): Promise<Run> => {
    const trigger = forPeer ? 'peer' : 'caller'
    const key = `${mode} ${type} ${trigger}`
    started.set(key, { type, mode, trigger, count: (started.get(key)?.count ?? 0) + 1 })
    const { signal } = life
    return await runMonitors(await plan(type, mode, signal), context, { mode, signal, calledByPeer: forPeer })
  }
  const sharedRuns = options.shared ? new SharedRuns(now, start) : undefined
  const cancelRuns = (): void => {
    sharedRuns?.close(stopping())
    life.abort(stopping())
  }

  const configuredTypes = Object.entries(options.config.types).flatMap(([type, { monitors }]) =>
    isConfigured(monitors) ? [type as ServerType] : [],
  )
  const facts: RuntimeFacts = {
    store: store?.label,
    storeFiles: options.shared && store ? (await store.data(false)).files : undefined,
    configuration: options.config.origin,
    types: configuredTypes,
    ownTypes: ownTypes(ownParts),
    providers: store && providersOf(options.config.auth),
  }
  const configured = facts.configuration !== undefined
  const machineReports = new WeakMap<object, MachineReports>()
  const reportsOf = (together: object | undefined): MachineReports | undefined => {
    if (!together) return undefined
    const reports = machineReports.get(together) ?? new Map()
    machineReports.set(together, reports)
    return reports
  }

  const parts: Parts = {
    documentsOf,
    details: options.details,
    serverTypes: { types: configured ? facts.types : facts.ownTypes, configured },
    accounts: store?.accounts,
    plan: async (type, mode, call) => selectMonitors(await plan(type, mode, call.signal), call),
    run: (planned, mode, call) =>
      runMonitors(planned, context, {
        mode,
        signal: AbortSignal.any([call.signal, life.signal]),
        timeoutMs: call.timeoutMs,
        calledByPeer: call.calledByPeer,
        repeatsRefusedUntil: call.repeatsRefusedUntil,
        machineReports: reportsOf(call.together),
        onBegin: call.onRun,
      }),
    shared:
      sharedRuns &&
      ((mode, type, call, isStranger) =>
        sharedRuns.get(mode, type, {
          // A closing core aborts the runs themselves, and with them everyone who waits.
          signal: call.signal,
          fresh: call.fresh === true,
          stranger: isStranger,
          callerTimeoutMs: call.timeoutMs,
          forPeer: call.calledByPeer,
        })),
  }

  const runtime: Runtime = {
    version: options.version,
    facts,
    ready: async (signal) => {
      if (life.signal.aborted) throw stopping()
      if (options.shared) await store?.ready(signal)
      const reason = await keeper?.unready()
      if (reason !== undefined) throw new Fault('Unavailable', reason, { retryAfter: 5 })
    },
    admin: store && lazyGroups({ store: store.label }, store.admin),
    anyAdmin: async () => (store ? await (await store.data(options.shared)).users.anyAdmin() : false),
    digestChallenges:
      store && options.config.auth?.digest
        ? async (stale) => await (await store.accounts()).access.digestChallenges(stale)
        : undefined,
    startedRuns: () => [...started.values()],
    storeState: keeper?.state,
    auditEntries: store && (async () => (await (await store.data(false)).audit.list({ limit: 1 }))[0]?.id ?? 0),
    viewOf: (call) => viewOf(parts, call),
    recent: (views) =>
      [...started.values()].flatMap(({ mode, type, trigger }) => {
        if (trigger === 'peer') return []
        const last = sharedRuns?.last(mode, type)
        if (!last) return []
        const flags = { IncludeServerStateInformation: true }
        const { run, response } = documentsOf(last.run, type, flags, views(type))
        const ageSeconds = Math.floor(last.ageMs / 1_000)
        return [{ type, mode, run: { ...run, correlationId: last.run.id }, response, ageSeconds }]
      }),
    answersAt: (url) => {
      ownUrl = url
    },
    cancelRuns,
    close: async () => {
      cancelRuns()
      keeper?.stop()
      await store?.close()
    },
  }
  const trial: Core['trial'] = async ({ type, monitor, mode, timeoutMs }, signal) => {
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
  }
  return { service: localService(parts), runtime, trial }
}

const levels = { ok: 'ok', warning: 'warn', failed: 'fail' } as const
const unitSigns: Partial<Record<Unit, string>> = { milliseconds: 'ms', percent: '%', bytes: 'B', days: 'days' }

/** Contains nothing secret: a client that signs in at the provider needs its issuer and the public id of the client. */
const providersOf = (ways: Config['auth']): RuntimeFacts['providers'] =>
  ways?.openid?.map(({ name, label, issuer, clientId, scope }) => ({
    name,
    type: 'openid',
    label,
    meta: { issuer, clientId, scope },
  }))

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
function namesInSeveralTypes({ types }: Config): ReadonlySet<string> {
  const names = Object.values(types).flatMap(({ monitors }) => monitors.map(({ name }) => name))
  return new Set(names.filter((name, at) => names.indexOf(name) !== at))
}

const configuredMonitors = ({ types }: Config): readonly PlannedMonitor[] =>
  Object.values(types).flatMap(({ monitors }) => monitors)

/** The series of the store, by the names that the monitors of svc.yaml have for them. */
const seriesIn = (store: OpenStore, { types }: Config): Lazy<Data['readings']> =>
  lazy(async () => {
    const [{ storedMonitors }, { seriesMoves }] = await Promise.all([loadStoredMonitors(), loadSeries()])
    const [{ readings }, monitors] = await Promise.all([store.data(false), storedMonitors(types)])
    await readings.rename((names) => seriesMoves(names, monitors, hostname()))
    return readings
  })

function nothingOnFault(error: unknown): undefined {
  if (!(error instanceof Fault)) throw error
  return undefined
}

/** Opens the store and loads everything that a request may need. On failure it closes the store and throws a Fault. */
async function openAll(
  store: OpenStore | undefined,
  series: Lazy<Data['readings']> | undefined,
  configured: readonly PlannedMonitor[],
  own: OwnParts | undefined,
): Promise<void> {
  try {
    await store?.data(true)
    await preload(
      preloadOperations,
      () => preloadHealth(configured, own),
      async () => await store?.preload(),
    )
    // A store that cannot be written now costs the history of runs, and the first of them tries again.
    await series?.get().catch(nothingOnFault)
  } catch (error) {
    await store?.close()
    throw error
  }
}

async function keeperOf(store: OpenStore, log: KeeperLog = () => {}) {
  const { loadKeeper } = await import('./store/index.ts')
  const keepStore = await loadKeeper()
  return keepStore(await store.data(false), log)
}

/** For a command: removes monitors that its selection skips, so that they do not run. */
function selectMonitors(planned: readonly PlannedMonitor[], call: Call): readonly PlannedMonitor[] {
  const skip = call.selection?.skip ?? []
  if (skip.length === 0) return planned
  const skipped = new Set(skip.map((name) => name.toLowerCase()))
  return planned.filter((monitor) => !skipped.has(monitor.name.toLowerCase()))
}

const stopping = (): Fault => new Fault('Unavailable', 'Shutting down', { retryAfter: 5 })

type OpenStore = {
  /** The store's name in answers. */
  readonly label: string
  /** The embedded store's file; undefined for a remote database. */
  readonly path: string | undefined
  /** Opened once, on first use. `create` makes the store if it does not exist. */
  readonly data: (create: boolean) => Promise<Data>
  /** For a single request. */
  readonly accounts: () => Promise<Accounts>
  readonly admin: () => Promise<Admin>
  /** Loads everything that `accounts`, `admin` and `signIn` would load on first use, and opens what reads need. */
  readonly preload: () => Promise<void>
  /** Rejects while sign-ins cannot work because something that they need is missing. */
  readonly ready: (signal?: AbortSignal) => Promise<void>
  /** For the monitor of svc's own sign-in. Makes a missing store, as `svc serve` would. */
  readonly signIn: Services['ownSignIn']
  /** Safe to call twice. Nothing is opened afterwards. */
  readonly close: () => Promise<void>
}

/** The store and everything that works on it. Each part is loaded and opened on first use. */
async function holdStore(
  store: string,
  { config, env = process.env, hashCost, patienceMs }: OpenOptions,
): Promise<OpenStore> {
  const {
    serve: { refresh },
    auth: ways,
  } = config
  const { openData, shownStore, storeKind } = await import('./store/index.ts')
  const label = shownStore(store)
  const path = storeKind(store) === 'sqlite' ? store : undefined
  const opened = lazy((create: boolean) => openData({ store, create, env, patienceMs }))
  let closed = false
  const data = (create: boolean): Promise<Data> => (closed ? Promise.reject(stopping()) : opened.get(create))
  const auth = lazy(async () => {
    const room = await import('./auth/index.ts')
    return { ...room, passwords: room.passwordsOfProcess(hashCost), paces: new room.Paces() }
  })
  const accounts = async (): Promise<Accounts> => {
    const [{ openAccess, passwords, paces }, store] = await Promise.all([auth.get(), data(false)])
    const own = store.forRequest()
    const { now } = store.clock
    return { data: own, access: openAccess({ data: own, passwords, paces, now, refresh, ways }) }
  }
  const admin = async (): Promise<Admin> => {
    const [{ administration, passwords }, { heartbeatAdmin }] = await Promise.all([
      auth.get(),
      import('./heartbeats/index.ts'),
    ])
    return {
      ...administration({ label, data, passwords }),
      heartbeats: heartbeatAdmin(() => data(false)),
    }
  }
  const ready = async (signal?: AbortSignal): Promise<void> => {
    await (await accounts()).data.ping(signal)
  }
  return {
    label,
    path,
    data,
    accounts,
    admin,
    preload: async () => {
      const { preloadProviders } = await import('./auth/index.ts')
      const recent = async (): Promise<void> => await (await data(false)).knownPrefixes.loadRecent()
      await Promise.all([preloadProviders(ways), admin(), ready(), recent()])
    },
    ready,
    signIn: {
      store: async (signal) => await (await data(true)).ping(signal),
      anyAdmin: async () => await (await data(true)).users.anyAdmin(),
      lookUp: async () => {
        const store = await data(true)
        await (await auth.get()).lookUpNobody(store.forRequest(), store.clock.now)
      },
      hash: async (signal) => {
        const { passwords, hashesTellApart } = await auth.get()
        return await hashesTellApart(passwords, signal)
      },
    },
    close: async () => {
      if (closed) return
      closed = true
      await (await opened.peek()?.catch(() => undefined))?.close()
    },
  }
}

/**
 * The heartbeats with the instants of this machine's clock, which everything else in a run goes by. They are stored with
 * those of the store's clock.
 */
async function heartbeatsByOwnClock(data: Data): Promise<readonly HeartbeatRow[]> {
  const rows = await data.heartbeats.list()
  if (!data.clock.isRemote) return rows
  const skewMs = data.clock.verdict()?.skewMs ?? 0
  return rows.map((row) => ({
    ...row,
    at: row.at + skewMs,
    history: row.history.map((report) => ({ ...report, at: report.at + skewMs })),
  }))
}

/** Creates the store as `svc serve` would. Returns the error message when it cannot be opened. */
async function prepareStore(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  const { openStore, refuseUnopenable } = await import('./store/index.ts')
  try {
    await refuseUnopenable(path)
    openStore({ path, create: true }).close()
    return undefined
  } catch (error) {
    if (error instanceof Fault) {
      return [error.message, ...(error.details.hints ?? [])].map((part) => part.replace(/\.$/, '')).join('. ')
    }
    throw error
  }
}

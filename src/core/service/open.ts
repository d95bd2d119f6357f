import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { AlteredStore, Fault, isStoreFailure, NewerStore, StoreOutage, shuttingDown } from '../base/errors.ts'
import { type Lazy, lazy, lazyGroups, lazyMethods } from '../base/lazy.ts'
import { preload } from '../base/preload.ts'
import type { ProvidedServices } from '../checks/engine/index.ts'
import type { Config } from '../config/index.ts'
import type { DrillLinks, Runtime, RuntimeFacts, Service, Trial, TrialRequest } from '../protocol/service/service.ts'
import type { Data } from '../store/index.ts'
import type { DrillPart } from './drill/drill.ts'
import { type HealthPart, healthPart, type PlanChanges } from './health/health.ts'
import {
  localService,
  type NodesOperations,
  type Parts,
  preloadOperations,
  type QuietOperations,
  viewOf,
} from './local.ts'
import type { NodesPart } from './nodes/nodes.ts'
import type { WatchingPart } from './notify/watching.ts'
import type { OpenOptions, Part } from './part.ts'
import type { QuietPart } from './quiet/quiet.ts'
import type { ReloadPart } from './reload.ts'
import type { StatesPart } from './watch/states.ts'
import type { StatesKeeper } from './watch/states-keeper.ts'

export type { OpenOptions, OwnAccounts } from './part.ts'

export type Core = {
  readonly service: Service
  readonly runtime: Runtime
  /**
   * Runs a single monitor. Throws NotFound for a monitor that the type does not have, Usage for a mode too shallow for
   * it.
   */
  readonly trial: (monitor: TrialRequest, signal: AbortSignal) => Promise<Trial>
  /**
   * In `svc serve`: puts another configuration into force, in all parts together. `load` gets the one in force. Runs in
   * progress end with the monitors that they began with. Rejects, and changes nothing, if `load` rejects or a part cannot
   * use the configuration. The sections `serve` and `auth` have effect at the start only. Never call it twice at a time.
   */
  readonly reload: ((load: (inForce: Config) => Promise<Config>) => Promise<PlanChanges>) | undefined
}

/**
 * The only composing module: lists the parts, and makes the Service of them. `svc serve` (`shared`) opens and loads all of
 * them at once, and fails with a Fault when it cannot. A command opens and loads only what it needs.
 */
export async function openCore(options: OpenOptions): Promise<Core> {
  const { config, details, shared, version } = options
  const store = options.store === undefined ? undefined : await holdStore(options.store, options)
  const newer = shared ? await store?.open() : undefined
  const usesAccounts = newer?.what !== 'store'
  const loadAccounts =
    store &&
    lazy(async () => (await import('./accounts/accounts.ts')).accountsPart(options, store.label, store.data)).get
  const accounts = loadAccounts && lazyMethods(loadAccounts)
  let current = config
  let ownUrl: string | undefined
  const services: ProvidedServices = {
    ownSignIn: loadAccounts && lazyMethods(async () => (await loadAccounts()).ownSignIn),
    heartbeats: accounts?.heartbeats,
    get exec() {
      return current.exec
    },
    ownUrl: () => ownUrl,
    ownSchema: async () => (await import('../store/index.ts')).ownSchemaCheck(),
  }
  const history =
    store &&
    lazyMethods(
      lazy(async () => (await import('./history/history.ts')).historyPart(options, () => store.data(false))).get,
    )
  const nodes = shared && store && store.storePath === undefined ? await openNodes(options, store, newer) : undefined
  const keeper = shared ? await keepStates(options, store, nodes) : undefined
  const openResults = async () => {
    const { resultHistoryPart } = await import('./history/result-history.ts')
    const rows = store && (async () => (await store.data(false)).history)
    const stored = store && (async () => (await store.data(false)).states)
    return resultHistoryPart({
      config,
      rows,
      shared,
      incidents: keeper?.incidents ?? (async (query) => (await (await stored?.())?.incidents(query)) ?? []),
      notStored: keeper?.notKept,
      node: nodes?.share.node,
      log: options.log,
    })
  }
  const results = shared ? await openResults() : undefined
  const health = healthPart(options, { services, history, onReport: results?.record }, store)
  const watching = keeper ? await watch(options, health, keeper, nodes) : undefined
  const loadDrills = lazy(async () => {
    const { drillPart } = await import('./drill/drill.ts')
    const ofStore = store && (async (create: boolean) => (await store.data(create && !shared)).drills)
    return drillPart({ config, version, store: ofStore, watching: vigil?.reason, log: options.log })
  })
  const vigil = watching && keeper ? await openVigil(options, watching, store && keeper) : undefined
  const quiet = watching
    ? (await import('./quiet/quiet.ts')).quietPart({ options, store: store?.data, states: watching.states })
    : undefined
  const notify =
    watching && quiet && vigil
      ? await openNotify(options, { states: watching.states, quiet, watching: vigil, nodes }, store)
      : undefined
  if (nodes && keeper && watching && notify) nodes.follow({ ...watching, keeper, notify })
  const audit = shared && store && usesAccounts ? await openAudit(options, store) : undefined
  const reloads = shared ? (await import('./reload.ts')).reloadPart(() => Date.now() / 1_000) : undefined
  const parts: readonly Part[] = [
    { cancel: store?.cancel, close: store?.close },
    health,
    ...(watching ? [watching.schedule] : []),
    ...(reloads ? [reloads] : []),
    { preload: preloadOperations },
    { preload: async () => await (await loadImpact()).preloadImpact() },
    { preload: async () => await import('./drill/drill-answer.ts') },
    { preload: loadNodes },
    ...(store && accounts && history
      ? [
          { preload: accounts.preload, ready: shared ? accounts.ready : undefined, firstUse: accounts.firstUse },
          { start: history.start, reload: history.reload },
          // A stream that cannot be written says nothing of the store.
          ...(shared && usesAccounts ? [await runningStore(store, options, (signal) => ready(signal, [audit]))] : []),
          ...(audit ? [audit] : []),
          ...(options.firstUse ? [{ firstUse: accountsFirst(options, store.label, options.firstUse) }] : []),
        ]
      : []),
    ...(results ? [results] : []),
    ...(nodes ? [nodes] : []),
    ...(watching ? [watching.states] : []),
    ...(quiet ? [quiet] : []),
    ...(notify ? [notify] : []),
    ...(notify && store ? [await openRoleEnds(options, store)] : []),
    ...(vigil ? [vigil] : []),
    shared ? await loadDrills.get() : lazyDrills(loadDrills),
    ...(shared && store && usesAccounts ? [{ start: () => store.begin(useFirst) }] : []),
  ]
  const useFirst = async (data: Data): Promise<void> => {
    for (const { firstUse } of parts) await firstUse?.(data)
  }
  const ready = async (signal: AbortSignal, except: readonly (Part | undefined)[] = []): Promise<void> => {
    for (const part of parts) if (!except.includes(part)) await part.ready?.(signal)
  }
  if (shared) await openAll(parts)
  const facts: RuntimeFacts = {
    get configuration() {
      return health.facts().configuration
    },
    get types() {
      return health.facts().types
    },
    get ownTypes() {
      return health.facts().ownTypes
    },
    store: store?.label,
    node: nodes?.share.node,
    get schedule() {
      return watching?.schedule.load()
    },
    get notKept() {
      return keeper?.notKept()
    },
    unusableStore: usesAccounts ? undefined : newer?.fault.reason,
    storeFiles: shared && usesAccounts && store?.storePath !== undefined ? await filesOf(store) : undefined,
    providers: store && providersOf(config.auth),
  }
  const loadQuiet = lazy(async () =>
    (await import('./quiet/quiet.ts')).quietPart({ options, store: store?.data, states: undefined }),
  ).get
  const quietOfCommand = lazyMethods<QuietOperations>(async () => (await loadQuiet()).operations as QuietOperations)
  /** A command looks only where something failed, so that a run without failures loads nothing for it. */
  const quietIn: Parts['quietIn'] = (run, type, honors) =>
    mayBeQuiet(options, store) &&
    (honors || run.monitors.some(({ results }) => results.some(({ status }) => status === 'failed')))
      ? loadQuiet().then(async ({ resultsIn }) => await resultsIn(run, type))
      : undefined
  const local: Parts = {
    ...health,
    details,
    quietIn: quiet?.resultsIn ?? quietIn,
    quiet: store && (quiet?.operations ?? quietOfCommand),
    accounts: accounts?.accounts,
    nodes: lazyMethods<NodesOperations>(async () => {
      const data = store && store.storePath === undefined ? () => store.data(false) : undefined
      return (await loadNodes()).nodesOperations({ data, own: () => facts.node })
    }),
    impact: async ({ Monitor }, reads) =>
      (await loadImpact()).impactAnswer({
        config: current,
        checks: watching?.states.confirmed(() => 'full').checks,
        monitor: Monitor,
        reads,
      }),
    drills: async () => (await import('./drill/drill-answer.ts')).drillAnswers(await loadDrills.get()),
    history: async (request, reads) => await (results ?? (await openResults())).history(request, reads),
  }
  const runtime: Runtime = {
    version,
    facts,
    ready: (signal) => ready(signal),
    admin: store && accounts && lazyGroups({ store: store.label }, accounts.admin),
    anyAdmin: async () => (store ? await (await store.data(shared)).users.anyAdmin() : false),
    digestChallenges:
      accounts && config.auth?.digest
        ? async (stale) => await (await accounts.accounts()).access.digestChallenges(stale)
        : undefined,
    metrics: async (limitMs) => {
      const families = await Promise.all(parts.map(async ({ metrics }) => (await metrics?.(limitMs)) ?? []))
      return families.flat()
    },
    days: results?.days,
    elsewhere: nodes?.elsewhere,
    drillLinks: lazyMethods<DrillLinks>(async () => (await loadDrills.get()).links),
    viewOf: (call) => viewOf(local, call),
    recent: health.recent,
    confirmed: watching && ((views) => watching.states.confirmed(views, quiet?.keeper)),
    incidents: watching?.states.incidents,
    answersAt: (url) => {
      ownUrl = url
      for (const { answers } of parts) answers?.()
    },
    cancelRuns: () => cancelAll(parts),
    close: () => closeAll(parts),
  }
  return { service: localService(local), runtime, trial: health.trial, reload: reloads && reloadOf(reloads) }

  function reloadOf({ attempt }: ReloadPart): NonNullable<Core['reload']> {
    return async (load) =>
      await attempt(async () => {
        const next = await load(current)
        const changes = await health.changes(next)
        const commits = await Promise.all(parts.map(async (part) => await part.reload?.(next)))
        current = next
        for (const commit of commits) commit?.()
        return changes
      })
  }
}

/** In a command, drills are loaded for the one that drills. */
const lazyDrills = ({ peek }: Lazy<DrillPart>): Part => ({
  close: async () => await (await peek()?.catch(() => undefined))?.close?.(),
})
/** Whether something may be quiet in a command: svc.yaml says so, or there is a store beside it. */
const mayBeQuiet = ({ config: { origin, quiet = [] } }: OpenOptions, store: OpenStore | undefined): boolean =>
  quiet.length > 0 ||
  (origin !== undefined && store !== undefined && (store.storePath === undefined || existsSync(store.storePath)))

const loadNodes = () => import('./nodes/nodes-answer.ts')
const loadImpact = () => import('./watch/impact.ts')

/** What stores confirmed states and incidents. */
async function keepStates(
  { log }: OpenOptions,
  store: OpenStore | undefined,
  nodes: NodesPart | undefined,
): Promise<StatesKeeper> {
  const { statesKeeper } = await import('./watch/states-keeper.ts')
  return statesKeeper({
    rows: store && (async () => (await store.data(false)).states),
    write: nodes?.writeStates,
    problem: nodes?.problem,
    log,
  })
}

/** The files of an embedded store. Undefined while it is not used. */
async function filesOf(store: OpenStore) {
  try {
    return (await store.data(false)).files
  } catch (error) {
    if (error instanceof StoreOutage) return undefined
    throw error
  }
}

/** What divides the work among the nodes that share a store. */
async function openNodes(
  { config, version, node = hostname(), log, store: url, env = process.env }: OpenOptions,
  store: OpenStore,
  newer: Newer | undefined,
): Promise<NodesPart> {
  if (newer) {
    const { loadNodesOfNewerStore } = await import('../store/index.ts')
    const [{ outdatedNodePart }, nodesOfNewerStore] = await Promise.all([
      import('./nodes/outdated-node.ts'),
      loadNodesOfNewerStore(),
    ])
    return outdatedNodePart({ node, reason: newer.fault.reason, rows: nodesOfNewerStore(url ?? '', env), log })
  }
  const { nodesPart } = await import('./nodes/nodes.ts')
  const rows = async () => {
    const { nodes } = await store.data(false)
    if (!nodes) throw new Error('a store in PostgreSQL has nodes')
    return nodes
  }
  return nodesPart({ config, node, version, rows, log })
}

/** What runs the monitors by itself, and confirms what the runs show. */
async function watch(options: OpenOptions, health: HealthPart, keeper: StatesKeeper, nodes: NodesPart | undefined) {
  const [{ schedulePart }, { statesPart }] = await Promise.all([
    import('./watch/schedule.ts'),
    import('./watch/states.ts'),
  ])
  const states = statesPart(keeper, options.log, nodes?.share)
  return { states, schedule: schedulePart(health.scheduleWork(options), states, nodes?.share) }
}

/** What decides whether svc may say that it watches. `keeper`: of states that are stored. */
async function openVigil(
  { config, version, log }: OpenOptions,
  { states, schedule }: Awaited<ReturnType<typeof watch>>,
  keeper: StatesKeeper | undefined,
) {
  const { watchingPart } = await import('./notify/watching.ts')
  return watchingPart({ config, version, schedule, states, isStored: () => keeper?.notKept() === undefined, log })
}

/** What tells receivers of incidents. */
async function openNotify(
  { config, version, log }: OpenOptions,
  {
    states,
    quiet,
    watching,
    nodes,
  }: {
    readonly states: StatesPart
    readonly quiet: QuietPart
    readonly watching: WatchingPart
    readonly nodes: NodesPart | undefined
  },
  store: OpenStore | undefined,
) {
  const { notifyPart } = await import('./notify/notify.ts')
  const rows = store && (async () => (await store.data(false)).outbox)
  const notify = notifyPart({ config, version, rows, states, quiet: quiet.keeper, watching, node: nodes?.sending, log })
  quiet.muteBy(notify.mute)
  return notify
}

/** What tells receivers of roles that end soon. */
async function openRoleEnds({ config, version, log }: OpenOptions, store: OpenStore) {
  const { roleEndsPart } = await import('./notify/role-ends.ts')
  return roleEndsPart({ config, version, data: () => store.data(false), log })
}

/**
 * Opens and loads the parts before the server listens. On failure it closes them and throws a Fault. Parts after the one that
 * cannot be opened are not closed: to store their last values, they would wait for the store again.
 */
async function openAll(parts: readonly Part[]): Promise<void> {
  let toClose = 0
  try {
    for (const { open } of parts) {
      toClose++
      await open?.()
    }
    await preload(...parts.map((part) => async () => await part.preload?.()))
    for (const { start } of parts) await start?.()
  } catch (error) {
    await closeAll(parts.slice(0, toClose))
    throw error
  }
}

function cancelAll(parts: readonly Part[]): void {
  for (const { cancel } of parts) cancel?.()
}

/** Closes the parts in reverse: each may use those before it. */
async function closeAll(parts: readonly Part[]): Promise<void> {
  cancelAll(parts)
  for (const { close } of parts.toReversed()) await close?.()
}

/** What `firstUse` does with the accounts, over a store that nobody else uses yet. */
const accountsFirst =
  (options: OpenOptions, label: string, firstUse: NonNullable<OpenOptions['firstUse']>) =>
  async (data: Data): Promise<void> => {
    const { accountsPart } = await import('./accounts/accounts.ts')
    const { users } = await accountsPart(options, label, async () => data).admin()
    await firstUse({ users, anyAdmin: data.users.anyAdmin })
  }

/** What seals the audit, and streams it. */
async function openAudit({ config, log = () => {} }: OpenOptions, { data }: OpenStore) {
  const { auditPart } = await import('./accounts/audit.ts')
  return auditPart(() => data(false), { stream: config.serve.audit?.stream, log })
}

/** What only a running server does with its store. */
async function runningStore({ data }: OpenStore, { log }: OpenOptions, ready: (signal: AbortSignal) => Promise<void>) {
  const { storePart } = await import('./store/store.ts')
  return storePart(() => data(false), { ready, log })
}

/** Contains nothing secret: a client that signs in at the provider needs its issuer and the public id of the client. */
const providersOf = (ways: Config['auth']): RuntimeFacts['providers'] =>
  ways?.openid?.map(({ name, label, issuer, clientId, scope }) => ({
    name,
    type: 'openid',
    label,
    meta: { issuer, clientId, scope },
  }))

/** Why `svc serve` does without its store, or without what it keeps of monitors there: it is too old for the schema. */
type Newer = { readonly what: 'store' | 'history'; readonly fault: NewerStore }

type OpenStore = {
  /** The store's name in answers. */
  readonly label: string
  /** The embedded store's file; undefined for a remote database. */
  readonly storePath: string | undefined
  /** For a command: makes the embedded store. Resolves with the reason when it cannot be opened. */
  readonly prepareStore: (() => Promise<string | undefined>) | undefined
  /**
   * In `svc serve`: opens the store, and makes it if it does not exist. With a schema that is too new it is left alone. If
   * PostgreSQL does not answer, `begin` opens it later.
   */
  readonly open: () => Promise<Newer | undefined>
  /**
   * In `svc serve`, after `open`: runs what comes before all other use. If the store is not open, this returns at once, and
   * happens as soon as the store can be opened; until then `data` rejects.
   */
  readonly begin: (useFirst: (data: Data) => Promise<void>) => Promise<void>
  /** Opened once, on first use. `create` makes the store if it does not exist. */
  readonly data: (create: boolean) => Promise<Data>
  /** Ends attempts to open it. An open store can still be used. */
  readonly cancel: () => void
  /** Safe to call twice. Nothing is opened afterwards. */
  readonly close: () => Promise<void>
}

/** The store, which is loaded and opened on first use. */
async function holdStore(
  store: string,
  { env = process.env, patienceMs, shared, log = () => {} }: OpenOptions,
): Promise<OpenStore> {
  const { loadPostgresRows, openData, shownStore, storeKind } = await import('../store/index.ts')
  const storePath = storeKind(store) === 'sqlite' ? store : undefined
  const label = shownStore(store)
  const stop = new AbortController()
  const opened = lazy((create: boolean) => openData({ store, create, env, patienceMs, signal: stop.signal }))
  let closed = false
  /** Why the store is not used. */
  let refusal: Fault | undefined
  /** Why it could not be opened at the start, and the attempts to open it since then. */
  let outage: StoreOutage | AlteredStore | undefined
  let opening: Promise<void> | undefined
  const data = async (create: boolean): Promise<Data> => {
    if (closed) throw shuttingDown()
    if (refusal) throw refusal
    return await opened.get(create)
  }
  const warn = ({ message, details }: Fault, effect: string): void =>
    log({ level: 'warn', msg: [`${message}: ${effect}.`, ...(details.hints ?? [])].join(' ') })
  const settle = (newer: Newer | undefined): Newer | undefined => {
    if (newer?.what === 'store') refusal = new Fault('Unavailable', newer.fault.reason)
    if (newer) warn(newer.fault, effectOf[newer.what])
    return newer
  }
  return {
    open: async () => {
      try {
        return settle(await newerIn(opened.get, storePath))
      } catch (error) {
        const isAltered = error instanceof AlteredStore
        if (!isAltered && (storePath !== undefined || !(error instanceof StoreOutage))) throw error
        // Nothing has to be loaded when the store answers.
        const [{ notUsed }] = await Promise.all([import('./store/late-store.ts'), loadPostgresRows()])
        outage = error
        refusal = isAltered ? notUsed() : new StoreOutage(error.why, {})
        warn(error, `${effectOf.store} until ${isAltered ? 'that is removed' : 'the store answers'}`)
        return undefined
      }
    },
    begin: async (useFirst) => {
      if (!outage) return await useFirst(await data(false))
      const { openLater } = await import('./store/late-store.ts')
      const attempt = async (): Promise<void> => {
        const newer = await newerIn(opened.get, storePath)
        if (newer?.what !== 'store') {
          await useFirst(await opened.get(false))
          refusal = undefined
          log({ level: 'info', msg: `The store ${label} answers: this server uses it from now on` })
        }
        settle(newer)
      }
      const refuse = (fault: Fault): void => {
        refusal = fault
      }
      opening = openLater({ outage, attempt, refuse, signal: stop.signal, log })
    },
    label,
    storePath,
    prepareStore: shared ? undefined : () => prepareStore(storePath),
    data,
    cancel: () => stop.abort(shuttingDown()),
    close: async () => {
      if (closed) return
      closed = true
      stop.abort(shuttingDown())
      await opening
      await (await opened.peek()?.catch(() => undefined))?.close()
    },
  }
}

/** What `svc serve` does if the store, or the history in it, cannot be used. */
const effectOf: Readonly<Record<Newer['what'], string>> = {
  store: 'this server runs its monitors without it, and has no sign-in, roles, quiet or history',
  history: 'this server stores nothing of what its monitors show, and has no history',
}

/** Opens a store. In PostgreSQL, the tables of the history have a version of their own, and nodes coordinate in them. */
async function newerIn(
  opened: (create: boolean) => Promise<Data>,
  storePath: string | undefined,
): Promise<Newer | undefined> {
  let what: Newer['what'] = 'store'
  try {
    const { history } = await opened(true)
    what = 'history'
    if (storePath === undefined) await history.open()
  } catch (error) {
    if (error instanceof NewerStore) return { what, fault: error }
    // Whoever needs the history opens it again.
    if (what === 'store' || !isStoreFailure(error)) throw error
  }
  return undefined
}

/** Creates the store as `svc serve` would. Returns the error message when it cannot be opened. */
async function prepareStore(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  const { openStore, refuseUnopenable } = await import('../store/index.ts')
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

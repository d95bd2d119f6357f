import { existsSync } from 'node:fs'
import { shuttingDown } from '../base/errors.ts'
import { type Lazy, lazy, lazyMethods } from '../base/lazy.ts'
import { preload } from '../base/preload.ts'
import type { Config } from '../config/index.ts'
import type {
  Administration,
  DrillLinks,
  Runtime,
  RuntimeFacts,
  Service,
  Trial,
  TrialRequest,
} from '../protocol/service/service.ts'
import type { Consequences } from '../watch/configuration/index.ts'
import type { IncidentsQuery } from '../watch/states/index.ts'
import { healthPart, type PlanChanges } from './health/health.ts'
import {
  localService,
  type NodesOperations,
  type Parts,
  preloadOperations,
  type SilenceOperations,
  viewOf,
} from './local.ts'
import type { OpenOptions, Part } from './part.ts'
import type { Ground, GroundStore, Opened } from './serve.ts'

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
   * progress end with the monitors that they began with. Rejects, and changes nothing, if `load` rejects, `demand` throws
   * or a part cannot use the configuration. The sections `serve` and `auth` have effect at the start only. Never call it
   * twice at a time.
   */
  readonly reload:
    | ((
        load: (inForce: Config) => Promise<Config>,
        demand?: (consequences: Consequences) => void,
      ) => Promise<PlanChanges>)
    | undefined
  /** In `svc serve`: why the configuration on disk has waited for too long. Undefined: it is in force, or waits for less. */
  readonly configurationWaits: ((reason: string | undefined) => void) | undefined
}

/**
 * Composes the Service of its parts. `svc serve` (`shared`) opens and loads all of them at once, in the order of
 * `partsOfServer`, and fails with a Fault when it cannot. A command opens and loads only what it needs.
 */
export async function openCore(options: OpenOptions): Promise<Core> {
  const ground = await groundOf(options)
  const opened = options.shared ? await openServer(ground) : partsOfCommand(ground)
  const facts = factsOf(ground, opened)
  const local = answersOf(ground, opened, facts)
  const { store, inForce } = ground
  const { health, parts } = opened
  const runtime: Runtime = {
    version: options.version,
    facts,
    now: opened.now,
    ready: async (signal) => {
      for (const part of parts) await part.ready?.(signal)
    },
    ownStore: store && {
      foreign: async () => (await (await store.data(false)).inspect()).foreign.map(({ label }) => label),
      exportAudit: async (write, signal) => {
        const { exportAudit } = await import('./accounts/audit-operations.ts')
        return await exportAudit(await store.data(false), store.label, write, signal)
      },
    },
    anyAdmin: async () => (store ? await (await store.rows('users')()).anyAdmin() : false),
    digestChallenges:
      store && options.config.auth?.digest
        ? async (stale) => await (await store.accounts.accounts()).access.digestChallenges(stale)
        : undefined,
    metrics: async (limitMs) => {
      const families = await Promise.all(parts.map(async ({ metrics }) => (await metrics?.(limitMs)) ?? []))
      return families.flat()
    },
    days: opened.days,
    elsewhere: opened.elsewhere,
    answerToNode: opened.answerToNode,
    drillLinks: lazyMethods<DrillLinks>(async () => (await opened.drills()).links),
    viewOf: (call) => viewOf(local, call),
    recent: health.recent,
    confirmed: opened.confirmed,
    incidents: opened.incidents,
    answersAt: (url, peer) => {
      inForce.url = url
      inForce.peer = peer
      for (const { answers } of parts) answers?.()
    },
    cancelRuns: () => cancelAll(parts),
    close: () => closeAll(parts),
  }
  const { configurationWaits } = opened
  const reload = reloadOf(ground, opened)
  return { service: localService(local), runtime, trial: health.trial, reload, configurationWaits }
}

async function groundOf(options: OpenOptions): Promise<Ground> {
  const store = options.store === undefined ? undefined : await groundStore(options, options.store)
  const inForce: Ground['inForce'] = { config: options.config, url: undefined, peer: undefined }
  return {
    options,
    store,
    inForce,
    services: {
      ownSignIn: store?.ownSignIn,
      heartbeats: store?.accounts.heartbeats,
      rdapAnswers: lazyMethods(async () =>
        (await import('./health/rdap-answers.ts')).rdapAnswers(
          options.rdapAnswers,
          async () => await store?.rows('readings')(),
        ),
      ),
      get exec() {
        return inForce.config.exec
      },
      ownUrl: () => inForce.url,
      ownSchema: async () => (await import('../store/index.ts')).ownSchemaCheck(),
    },
  }
}

async function groundStore(options: OpenOptions, url: string): Promise<GroundStore> {
  const { loadHold, prepareStore, shownStore, storeKind } = await import('../store/index.ts')
  const stop = new AbortController()
  const holder = lazy(async () => (await loadHold())(url, { ...options, signal: stop.signal }))
  const data: GroundStore['data'] = async (create) => await (await holder.get()).data(create)
  const rows: GroundStore['rows'] = (subject) => async () => (await data(false))[subject]
  const label = shownStore(url)
  const storePath = storeKind(url) === 'sqlite' ? url : undefined
  const accounts = lazy(async () => (await import('./accounts/accounts.ts')).accountsPart(options, data)).get
  const history = lazy(async () => (await import('./results/readings.ts')).historyPart(options, () => data(false))).get
  return {
    label,
    storePath,
    holder: holder.get,
    prepareStore: storePath === undefined ? undefined : async () => await prepareStore(storePath, options.usedStores),
    data,
    rows,
    accounts: lazyMethods(accounts),
    ownSignIn: lazyMethods(async () => (await accounts()).ownSignIn),
    history: lazyMethods(history),
    part: { cancel: () => stop.abort(shuttingDown()), close: closeLoaded(holder) },
  }
}

/** The parts of a command, which open on first use. */
function partsOfCommand({ options, services, store }: Ground): Opened {
  const { config, version, log } = options
  const health = healthPart(options, { services, history: store?.history }, store)
  const silences = lazy(async () =>
    (await import('./silences/silences.ts')).silencePart({ options, store: store?.data, states: undefined }),
  ).get
  const drills = lazy(async () => {
    const { drillPart } = await import('./drill/drill.ts')
    const rows = store && (async (create: boolean) => (await store.data(create)).drills)
    return drillPart({ config, version, store: rows, log })
  })
  return {
    parts: [store?.part ?? {}, health, { close: closeLoaded(drills) }],
    health,
    drills: drills.get,
    history: async (request, reads) => {
      const { resultHistoryPart } = await import('./results/results.ts')
      const stored = store?.rows('states') ?? (async () => undefined)
      const incidents = async (query: IncidentsQuery) => (await (await stored())?.incidents(query)) ?? []
      const results = resultHistoryPart({ config, rows: store?.rows('history'), shared: false, incidents, log })
      return await results.history(request, reads)
    },
    silences: store && lazyMethods<SilenceOperations>(async () => (await silences()).operations as SilenceOperations),
    // Only where something failed, so that a run without failures loads nothing for it.
    silencesIn: (run, type, honors) =>
      mayBeSilenced(config, store) &&
      (honors || run.monitors.some(({ results }) => results.some(({ status }) => status === 'failed')))
        ? silences().then(async ({ resultsIn }) => await resultsIn(run, type))
        : undefined,
  }
}

/** Whether something may be silenced in a command: svc.yaml says so, or there is a store beside it. */
const mayBeSilenced = ({ origin, silences = [] }: Config, store: GroundStore | undefined): boolean =>
  silences.length > 0 ||
  (origin !== undefined && store !== undefined && (store.storePath === undefined || existsSync(store.storePath)))

/** The parts of `svc serve`, open. */
async function openServer(ground: Ground): Promise<Opened> {
  const { partsOfServer } = await import('./serve.ts')
  const opened = await partsOfServer(ground)
  await openAll(opened.parts)
  return opened
}

/** The facts of this core. Those that change while it runs are read at each use. */
const factsOf = (
  { options: { config }, store, inForce }: Ground,
  { health, facts, storeFiles }: Opened,
): RuntimeFacts => ({
  get configuration() {
    return health.facts().configuration
  },
  get types() {
    return health.facts().types
  },
  get ownTypes() {
    return health.facts().ownTypes
  },
  get schedule() {
    return facts?.schedule()
  },
  get timezone() {
    return inForce.config.serve.timezone
  },
  get notKept() {
    return facts?.notKept()
  },
  store: store?.label,
  node: facts?.node,
  unusableStore: facts?.unusableStore,
  storeFiles,
  providers: store && providersOf(config.auth),
})

/** Contains nothing secret: a client that signs in at the provider needs its issuer and the public id of the client. */
const providersOf = (ways: Config['auth']): RuntimeFacts['providers'] =>
  ways?.openid?.map(({ name, label, issuer, clientId, scope }) => ({
    name,
    type: 'openid',
    label,
    meta: { issuer, clientId, scope },
  }))

/** The answers of the Service. What single operations need is loaded on first use. */
const answersOf = ({ options, store, inForce }: Ground, opened: Opened, facts: RuntimeFacts): Parts => ({
  ...opened.health,
  details: options.details,
  silencesIn: opened.silencesIn,
  silences: opened.silences,
  history: opened.history,
  accounts: store?.accounts.accounts,
  administration: store && lazyMethods<Administration>(store.accounts.administration),
  nodes: lazyMethods<NodesOperations>(async () => {
    const data = store && store.storePath === undefined ? () => store.data(false) : undefined
    return (await loadNodes()).nodesOperations({ data, own: () => facts.node })
  }),
  impact: async ({ Monitor: monitor }, reads) => {
    const { impactAnswer } = await loadImpact()
    return await impactAnswer({
      config: inForce.config,
      checks: opened.confirmed?.(() => 'full').checks,
      monitor,
      reads,
    })
  },
  drills: async () => (await loadDrills()).drillAnswers(await opened.drills()),
})

const loadNodes = () => import('./nodes/nodes-answer.ts')
const loadImpact = () => import('./watch/impact.ts')
const loadDrills = () => import('./drill/drill-answer.ts')
/** The loaders of the modules that the answers load on first use. */
const answerLoaders = [preloadOperations, loadNodes, loadDrills, async () => await (await loadImpact()).preloadImpact()]

/** `Core.reload`. Absent in a command. */
const reloadOf = ({ inForce }: Ground, { attempt, health, parts, consequencesOf }: Opened): Core['reload'] =>
  attempt &&
  ((load, demand) =>
    attempt(async () => {
      const next = await load(inForce.config)
      if (consequencesOf) demand?.(await consequencesOf(next))
      const changes = await health.changes(next)
      const commits = await Promise.all(parts.map(async (part) => await part.reload?.(next)))
      inForce.config = next
      for (const commit of commits) commit?.()
      return changes
    }))

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
    await preload(...answerLoaders, ...parts.map((part) => async () => await part.preload?.()))
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

/** The `close` of a part that is loaded on first use. */
const closeLoaded =
  ({ peek }: Lazy<Pick<Part, 'close'>>) =>
  async (): Promise<void> =>
    await (await peek()?.catch(() => undefined))?.close?.()

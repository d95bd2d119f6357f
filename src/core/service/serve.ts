import { hostname } from 'node:os'
import { StoreOutage } from '../base/errors.ts'
import type { ProvidedServices } from '../checks/engine/index.ts'
import type { OwnParts } from '../checks/plan/index.ts'
import type { Config } from '../config/index.ts'
import type { Runtime, RuntimeFacts } from '../protocol/service/service.ts'
import { type Data, loadNodesOfNewerStore, type Newer, type StoreHolder } from '../store/index.ts'
import type { Consequences } from '../watch/configuration/index.ts'
import { type AccountsPart, accountsPart } from './accounts/accounts.ts'
import { auditPart } from './accounts/audit.ts'
import { type DrillPart, drillPart } from './drill/drill.ts'
import { type HealthPart, healthPart } from './health/health.ts'
import type { Parts } from './local.ts'
import { type NodesPart, nodesPart, soleNodePart } from './nodes/nodes.ts'
import { outdatedNodePart } from './nodes/outdated-node.ts'
import { notifyPart } from './notify/notify.ts'
import { roleEndsPart } from './notify/role-ends.ts'
import { SentWithoutStore } from './notify/sent-without-store.ts'
import { watchingPart } from './notify/watching.ts'
import type { OpenOptions, Part } from './part.ts'
import { processTime } from './process-time.ts'
import { type ReloadPart, reloadPart } from './reload.ts'
import type { historyPart } from './results/readings.ts'
import { resultHistoryPart } from './results/results.ts'
import { silencePart } from './silences/silences.ts'
import { storePart } from './store/store.ts'
import { consequencesOf } from './watch/consequences.ts'
import { schedulePart } from './watch/schedule.ts'
import { statesPart } from './watch/states.ts'
import { statesKeeper } from './watch/states-keeper.ts'

/** The start of every core. Nothing of it is loaded or opened before its first use. */
export type Ground = {
  readonly options: OpenOptions
  readonly services: ProvidedServices
  /** Undefined: no store (`serve --only health`). */
  readonly store: GroundStore | undefined
  readonly inForce: { config: Config; url: string | undefined; peer: string | undefined }
}

export type GroundStore = {
  /** The store's name in answers. */
  readonly label: string
  readonly holder: () => Promise<StoreHolder>
  /** The queries of one subject, of a store that exists. */
  readonly rows: <K extends keyof Data>(subject: K) => () => Promise<Data[K]>
  readonly accounts: Omit<AccountsPart, 'ownSignIn'>
  readonly ownSignIn: AccountsPart['ownSignIn']
  readonly history: ReturnType<typeof historyPart>
  readonly part: Part
} & Pick<StoreHolder, 'data'> &
  Pick<OwnParts, 'storePath' | 'prepareStore'>

/** The parts of a core, and those of its answers that a command and `svc serve` find in different ways. */
export type Opened = Pick<Parts, 'history' | 'silences' | 'silencesIn'> &
  Pick<Runtime, 'now' | 'confirmed' | 'incidents' | 'days' | 'elsewhere' | 'answerToNode'> & {
    /** In the order in which they open. Each may use those before it. */
    readonly parts: readonly Part[]
    readonly health: HealthPart
    readonly drills: () => Promise<DrillPart>
    readonly attempt?: ReloadPart['attempt']
    /** The consequences of another configuration. */
    readonly consequencesOf?: (next: Config) => Promise<Consequences>
    readonly configurationWaits?: (reason: string | undefined) => void
    readonly facts?: Pick<RuntimeFacts, 'node' | 'unusableStore'> & {
      readonly [F in 'schedule' | 'notKept']: () => string | undefined
    }
    readonly storeFiles?: RuntimeFacts['storeFiles']
  }

/** The parts of `svc serve`, none of them open yet, over a store that is. */
export async function partsOfServer({ options, services, store, inForce }: Ground): Promise<Opened> {
  const { config, version, log = () => {} } = options
  const holder = await store?.holder()
  const newer = await holder?.open()
  const inUse = newer?.what === 'store' ? undefined : store

  const time = processTime({ log })
  const sentWithoutStore = store && sentWithoutStoreOf(options, store)
  const nodes = await nodesOf(options, store, { newer, sentWithoutStore, inForce })
  const { lease } = nodes
  const { node, leads } = lease
  const keeper = statesKeeper({ rows: store?.rows('states'), lease, time, log })
  const { incidents, notKept: notStored } = keeper
  const past = store?.rows('history')
  const results = resultHistoryPart({ config, rows: past, shared: true, incidents, notStored, lease, time, log })
  const own = store && { storePath: store.storePath }
  const health = healthPart(
    options,
    { services, history: store?.history, onReport: results.record, civilNow: time.now },
    own,
  )
  const states = statesPart(keeper, log, lease, time)
  const schedule = schedulePart(health.scheduleWork(options), states, lease, time)
  const isStored = (): boolean => store === undefined || (notStored() === undefined && nodes.isLed())
  const watching = watchingPart({ config, version, schedule, states, isStored, time, log })
  const silences = silencePart({ options, store: store?.data, states, isStandby: () => !leads(), time })
  const rows = store?.rows('outbox')
  const notify = notifyPart({
    config,
    version,
    rows,
    states,
    silences: silences.keeper,
    watching,
    lease,
    time,
    sentWithoutStore,
    storeStates: keeper.store,
    log,
  })
  silences.muteBy(notify.mute)
  nodes.follow({ schedule, states, notify })
  const drills = drillPart({
    config,
    version,
    store: store?.rows('drills'),
    watching: watching.reason,
    leads,
    time,
    log,
  })
  const reloads = reloadPart(() => Date.now() / 1_000)
  const audit = inUse && auditPart(() => inUse.data(false), { stream: config.serve.audit?.stream, log })

  const entries: readonly (Part | undefined)[] = [
    time.part,
    store?.part,
    health,
    schedule,
    reloads,
    store && accountsOf(store),
    store && { start: store.history.start, reload: store.history.reload },
    inUse && storePart(() => inUse.data(false), { ready: (signal) => ready(signal), log }),
    audit,
    inUse && accountsFirst(options),
    results,
    nodes,
    states,
    silences,
    notify,
    store && roleEndsPart({ config, version, now: time.now, data: () => store.data(false), log }),
    watching,
    drills,
    inUse && { start: async () => await holder?.begin(useFirst) },
  ]
  const parts = entries.filter((part) => part !== undefined)
  const useFirst = async (data: Data): Promise<void> => {
    for (const { firstUse } of parts) await firstUse?.(data)
  }
  // A stream that cannot be written says nothing of the store.
  const ready = async (signal: AbortSignal): Promise<void> => {
    for (const part of parts) if (part !== audit) await part.ready?.(signal)
  }
  return {
    parts,
    now: time.now,
    health,
    drills: async () => drills,
    history: results.history,
    silences: silences.operations,
    silencesIn: silences.resultsIn,
    confirmed: (views) => states.confirmed(views, silences.keeper),
    incidents: states.incidents,
    days: results.days,
    elsewhere: nodes.elsewhere,
    answerToNode: nodes.answerToNode,
    attempt: reloads.attempt,
    consequencesOf: async (next) => await consequencesOf(inForce.config, next, states, lease.keyOf),
    configurationWaits: (reason) => states.sayConfiguration(reason),
    facts: {
      node,
      unusableStore: newer?.what === 'store' ? newer.fault.reason : undefined,
      schedule: schedule.load,
      notKept: notStored,
    },
    storeFiles: inUse && (async () => await inUse.rows('files')().catch(unlessAway)),
  }
}

/** The files of a store are unknown while it is not used. */
function unlessAway(error: unknown): undefined {
  if (!(error instanceof StoreOutage)) throw error
}

/** One of the nodes that share a store, or the only one. */
async function nodesOf(
  { config, version, node = hostname(), log, store: url = '', env = process.env }: OpenOptions,
  store: GroundStore | undefined,
  {
    newer,
    sentWithoutStore,
    inForce,
  }: {
    readonly newer: Newer | undefined
    readonly sentWithoutStore: SentWithoutStore | undefined
    readonly inForce: Ground['inForce']
  },
): Promise<NodesPart> {
  if (store === undefined || store.storePath !== undefined) return soleNodePart
  if (newer) {
    const nodesOfNewerStore = await loadNodesOfNewerStore()
    return outdatedNodePart({ node, reason: newer.fault.reason, rows: nodesOfNewerStore(url, env), log })
  }
  const shared = async () => {
    const nodes = await store.rows('nodes')()
    if (!nodes) throw new Error('a store in PostgreSQL has nodes')
    return nodes
  }
  const peer = () => config.serve.peer ?? inForce.peer
  return nodesPart({ config, node, version, peer, rows: shared, sentWithoutStore, log })
}

const sentWithoutStoreOf = (
  { node = hostname(), sentFile, log = () => {} }: OpenOptions,
  { rows }: GroundStore,
): SentWithoutStore | undefined =>
  sentFile &&
  new SentWithoutStore({ file: sentFile(node), node, storeId: async () => await (await rows('identity')()).id(), log })

const accountsOf = ({ accounts: { preload, ready, firstUse, close } }: GroundStore): Part => ({
  preload,
  ready,
  firstUse,
  close,
})

/** The preparation of the accounts, over a store that nobody else uses yet. */
const accountsFirst = (options: OpenOptions): Part => ({
  firstUse: async (data) => {
    if (!options.firstUse) return
    const { administration } = accountsPart({ ...options, shared: false }, async () => data)
    await options.firstUse({ administration, anyAdmin: data.users.anyAdmin, any: data.users.any })
  },
})

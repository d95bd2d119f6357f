import { randomUUID } from 'node:crypto'
import { count, show } from '../../../base/format.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { clockOf, clockSetting, evaluateClock, figure, text } from '../../database/index.ts'
import { atMost, fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import {
  clusterMonitor,
  connectLatency,
  grantOf,
  holdsData,
  inSet,
  isWritable,
  limitOnMongo,
  type MongoConnection,
  type MongoNode,
  onMongo,
  permitted,
  warnOf,
} from './connection.ts'
import { type Command, type Doc, moment, part, parts, UnavailableError } from './driver.ts'

const hour = 3_600_000

const withArticle = (noun: string): string => `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`
const describeNode = ({ role, set }: MongoNode): string => {
  if (set === '') return role === 'other' ? 'node whose replica set is not initiated' : role
  return role === 'other' ? `node of ${set} that serves no clients` : `${role} of ${set}`
}

export const hello = onMongo({
  depth: 'Basic',
  provesNoReading: true,
  results: { hello: 'hello is answered in time' },
  settings: { latency: connectLatency },
  gate: true,
  observe: async ({ greet }, _, { now }) => {
    const since = now()
    const node = await greet()
    return { node, ms: now() - since }
  },
  evaluate: ({ node, ms: value }, { latency: threshold }) => {
    const what = `hello answered by ${withArticle(describeNode(node))} in`
    return atMost({ check: 'hello', what, value, unit: 'duration', threshold })
  },
})

export const ping = onMongo({
  depth: 'Basic',
  provesNoReading: true,
  results: { ping: 'ping is answered in time' },
  settings: { latency: connectLatency },
  gate: true,
  observe: async ({ command }, _, { now }) => {
    const since = now()
    const answer = await command({ ping: 1 })
    if (figure(answer, 'ok') !== 1) throw new ProbeError('protocol', 'the answer to `ping` is not valid')
    return { ms: now() - since }
  },
  evaluate: ({ ms: value }, { latency: threshold }) =>
    atMost({ check: 'ping', what: 'ping answered in', value, unit: 'duration', threshold }),
})

export const mongoRoles = ['primary', 'secondary', 'arbiter', 'standalone', 'mongos'] as const

export const role = onMongo({
  depth: 'Standard',
  provesNoReading: true,
  results: { role: 'The node has the expected role and belongs to the expected replica set' },
  settings: {
    role: {
      type: 'choice',
      values: ['any', ...mongoRoles],
      default: 'any',
      doc: 'Expected role of the node; `any`: any role in which it serves clients',
    },
    replicaSet: { type: 'text', doc: 'Expected name of the replica set' },
  },
  observe: ({ node }) => Promise.resolve(node),
  evaluate: (node, { role: expected, replicaSet }) => {
    const { set } = node
    const facts = { role: node.role, ...(set === '' ? {} : { replicaSet: set }) }
    const is = withArticle(describeNode(node))
    if (replicaSet !== undefined && replicaSet !== set) {
      const belongs = set === '' ? 'it belongs to none' : `it belongs to ${set}`
      return fail('role', 'data', `expected in the replica set ${replicaSet}, but ${belongs}`, { facts })
    }
    if (expected !== 'any' && expected !== node.role)
      return fail('role', 'data', `is ${is}, expected ${withArticle(expected)}`, { facts })
    if (node.role !== 'other') return ok('role', `is ${is}`, { facts })
    const details = ['it may be starting, catching up, rolling back or removed from its set: run rs.status()']
    return fail('role', 'data', `is ${is}`, { details, facts })
  },
})

export const primary = onMongo({
  depth: 'Standard',
  provesNoReading: true,
  results: { primary: 'The replica set has a primary; left out outside a set' },
  observe: ({ node }) => Promise.resolve(node),
  evaluate: ({ role: own, set, primary: other }): Result<'primary'> | [] => {
    if (set === '') return []
    if (own === 'primary') return ok('primary', `this node is the primary of ${set}`)
    if (other !== '') return ok('primary', `${other} is the primary of ${set}`)
    return fail('primary', 'data', `this node knows no primary of ${set}: writes are not possible`)
  },
})

const memberOf = (one: Doc) => ({
  name: text(one, 'name', 128),
  /** The number of the member's state: 1 primary, 2 secondary, 7 arbiter. */
  state: figure(one, 'state') ?? 6,
  stateName: text(one, 'stateStr') || 'in an unknown state',
  healthy: figure(one, 'health') === 1,
  /** The reason that the node reports. */
  reason: text(one, 'lastHeartbeatMessage', 200) || text(one, 'infoMessage', 200),
})
type Member = ReturnType<typeof memberOf>

/** Primary, secondary and arbiter. */
const soundStates = new Set([1, 2, 7])
/** Startup, recovering and initial sync: transitional states. */
const passingStates = new Set([0, 3, 5])

const describeMember = ({ name, stateName, healthy, reason }: Member): string =>
  `${name} is ${healthy ? stateName : `not reachable (${stateName})`}${reason === '' ? '' : `: ${reason}`}`

export const members = onMongo({
  depth: 'Standard',
  results: { members: 'Every member of the replica set is reachable and healthy' },
  applies: ({ node }) => inSet(node),
  privilege: grantOf(clusterMonitor),
  observe: (mongo) =>
    permitted(mongo, clusterMonitor, async () => {
      const status = await mongo.setStatus()
      return { set: text(status, 'set'), members: parts(status, 'members').map(memberOf) }
    }),
  evaluate: (observation) => {
    if ('obstacle' in observation) return warnOf('members', observation)
    const { set, members: all } = observation
    if (all.length === 0) return notChecked('members', 'missing', 'the node does not report the members of its set')
    const bad = all.filter(({ healthy, state }) => !healthy || !soundStates.has(state))
    const [first, ...others] = bad
    if (!first) return ok('members', `${count(all.length, 'member')} of ${set} healthy`)
    const message = `${bad.length} of ${count(all.length, 'member')} of ${set} not healthy: ${describeMember(first)}`
    const details = others.map(describeMember)
    return bad.every(({ healthy, state }) => healthy && passingStates.has(state))
      ? warn('members', message, { details })
      : fail('members', 'data', message, { details })
  },
})

/** Omits the sections that are slow or large. */
const serverStatus = { serverStatus: 1, metrics: 0, locks: 0, repl: 0, tcmalloc: 0, opLatencies: 0, transactions: 0 }

export const connections = limitOnMongo({
  depth: 'Standard',
  check: 'connections',
  proves: 'Connections are available',
  setting: 'connections',
  unit: 'percent',
  default: { warn: 80, limit: 95 },
  doc: 'Connections in use, as a share of the maximum of the node',
  applies: ({ node }) => holdsData(node),
  privilege: grantOf(clusterMonitor),
  observe: (mongo) =>
    permitted(mongo, clusterMonitor, async () => {
      const section = part(await mongo.command(serverStatus), 'connections')
      const current = figure(section, 'current')
      const available = figure(section, 'available')
      if (current === undefined || available === undefined) {
        throw new UnavailableError('absent', 'this server does not report its maximum number of connections', [])
      }
      return { current, available }
    }),
  evaluate: (observation, compare) => {
    if ('obstacle' in observation) return warnOf('connections', observation)
    const { current, available } = observation
    const max = current + available
    const what = max > 0 ? `${current} of ${max} connections:` : 'the maximum number of connections'
    const value = max > 0 ? (current / max) * 100 : undefined
    return compare({ what, value })
  },
})

/**
 * The actual delay behind the primary, and the configured delay, both in milliseconds. Undefined: the node does not
 * report it.
 */
type Follower = { readonly name: string; readonly ms: number | undefined; readonly delayMs: number }

/**
 * A primary reports all of its secondaries, a secondary only itself. Undefined if there is no primary to compare with.
 */
async function readFollowers({ setStatus, command, node }: MongoConnection) {
  const all = parts(await setStatus(), 'members')
  const leader = all.find((one) => figure(one, 'state') === 1)
  const newest = leader && moment(leader, 'optimeDate')
  if (newest === undefined) return { followers: undefined, isPrimary: node.role === 'primary' }
  const delays = await readDelays(command)
  const followers = all
    .filter((one) => figure(one, 'state') === 2 && (node.role === 'primary' || one.self === true))
    .map((one): Follower => {
      const name = text(one, 'name', 128)
      const at = moment(one, 'optimeDate')
      const ms = at === undefined ? undefined : Math.max(0, newest - at)
      return { name, ms, delayMs: delays.get(name) ?? 0 }
    })
  return { followers, isPrimary: node.role === 'primary' }
}

/** The configured delays by member; empty if this account may not read the configuration. */
async function readDelays(command: MongoConnection['command']): Promise<ReadonlyMap<string, number>> {
  const config = await command({ replSetGetConfig: 1 }).catch(emptyIfUnavailable)
  return new Map(
    parts(part(config, 'config'), 'members').map((one) => [
      text(one, 'host', 128),
      (figure(one, 'secondaryDelaySecs') ?? figure(one, 'slaveDelay') ?? 0) * 1_000,
    ]),
  )
}

const emptyIfUnavailable = (error: unknown): Doc => {
  if (error instanceof UnavailableError) return {}
  throw error
}

export const replicationLag = limitOnMongo({
  depth: 'Advanced',
  check: 'replication lag',
  proves: 'The replication lag of this node or of its secondaries',
  setting: 'replicationLag',
  unit: 'duration',
  default: { warn: 10_000, limit: 30_000 },
  doc: 'How far a secondary may be behind, in addition to its configured delay',
  applies: ({ node }) => inSet(node),
  privilege: grantOf(clusterMonitor),
  observe: (mongo) => permitted(mongo, clusterMonitor, () => readFollowers(mongo)),
  evaluate: (observation, compare) => {
    if ('obstacle' in observation) return warnOf('replication lag', observation)
    const { followers, isPrimary } = observation
    if (!followers) return warn('replication lag', 'there is no primary to compare with')
    const late = ({ ms, delayMs }: Follower): number =>
      ms === undefined ? Number.POSITIVE_INFINITY : Math.max(0, ms - delayMs)
    const [worst] = followers.map((one) => ({ ...one, lateMs: late(one) })).sort((a, b) => b.lateMs - a.lateMs)
    if (!worst && isPrimary) return ok('replication lag', 'there is no secondary')
    if (!worst) return notChecked('replication lag', 'missing', 'the node does not report its own state')
    const delayed = worst.delayMs > 0 ? ` beyond its delay of ${show(worst.delayMs, 'duration')}` : ''
    const what = `${worst.name} is behind${delayed} by`
    const figure = `the state of ${worst.name}`
    return compare({ what, figure, value: worst.lateMs })
  },
})

/** Percent. Below this, the window of the oplog is still growing and proves nothing. */
const minOplogPercent = 90

const readLocal = { role: 'read', database: 'local' } as const

async function readOplog({ command }: MongoConnection) {
  const at = async (order: 1 | -1): Promise<number | undefined> => {
    const answer = await command(
      { find: 'oplog.rs', sort: { $natural: order }, limit: 1, singleBatch: true, projection: { ts: 1 } },
      'local',
    )
    const [first] = parts(part(answer, 'cursor'), 'firstBatch')
    // The upper half of a timestamp contains seconds.
    return figure(part(first, 'ts'), 't')
  }
  const oldest = await at(1)
  const newest = await at(-1)
  const stats = await command({ collStats: 'oplog.rs' }, 'local').catch(emptyIfUnavailable)
  const max = figure(stats, 'maxSize')
  const size = figure(stats, 'size')
  return {
    windowMs: oldest === undefined || newest === undefined ? undefined : Math.max(0, newest - oldest) * 1_000,
    /** Percent; undefined if this account may not read the size. */
    full: max === undefined || max <= 0 || size === undefined ? undefined : (size / max) * 100,
  }
}

export const oplogWindow = limitOnMongo({
  depth: 'Advanced',
  check: 'oplog window',
  proves: 'How far back the oplog reaches: a member that was away longer cannot catch up',
  setting: 'oplogWindow',
  unit: 'duration',
  default: { warn: 24 * hour, limit: 4 * hour },
  doc: 'Minimum time that a full oplog should reach back',
  bound: 'atLeast',
  applies: ({ node }) => inSet(node),
  privilege: grantOf(readLocal),
  observe: (mongo) => permitted(mongo, readLocal, () => readOplog(mongo)),
  evaluate: (observation, compare) => {
    if ('obstacle' in observation) return warnOf('oplog window', observation)
    const { windowMs: value, full } = observation
    if (value !== undefined && full !== undefined && full < minOplogPercent) {
      const message = `reaches back ${show(value, 'duration')}, but is only ${show(full, 'percent')} full`
      return ok('oplog window', message)
    }
    return compare({ what: 'reaches back', figure: 'how far it reaches back', value })
  },
})

/** Bytes. Undefined figures are not reported. */
type Cache = { readonly used: number | undefined; readonly dirty: number | undefined; readonly max: number | undefined }
/** `cache` is undefined for servers without this cache: a mongos, or another storage engine. */
type Load = { readonly queued: number | undefined; readonly hasQueue: boolean; readonly cache: Cache | undefined }

const readLoad = (mongo: MongoConnection) =>
  permitted(mongo, clusterMonitor, async (): Promise<Load> => {
    const status = await mongo.command(serverStatus)
    const section = part(part(status, 'wiredTiger'), 'cache')
    const hasCache = 'wiredTiger' in status || text(part(status, 'storageEngine'), 'name') === 'wiredTiger'
    return {
      // A mongos has no locks of its own.
      hasQueue: 'globalLock' in status || mongo.node.role !== 'mongos',
      queued: figure(part(part(status, 'globalLock'), 'currentQueue'), 'total'),
      cache: hasCache
        ? {
            max: figure(section, 'maximum bytes configured'),
            used: figure(section, 'bytes currently in the cache'),
            dirty: figure(section, 'tracked dirty bytes in the cache'),
          }
        : undefined,
    }
  })

/** A share of the cache in percent, or undefined where the node does not report it. */
const shareOf = (bytes: number | undefined, { max }: Cache): number | undefined =>
  bytes === undefined || max === undefined || max <= 0 ? undefined : (bytes / max) * 100
const cacheOf = ({ max = 0 }: Cache): string => `the cache of ${show(max, 'bytes')}`

/** The parts that the checks of the load have in common. */
const ofLoad = {
  depth: 'Advanced',
  applies: ({ node }: MongoConnection) => holdsData(node),
  privilege: grantOf(clusterMonitor),
  observe: readLoad,
} as const

export const queues = limitOnMongo({
  ...ofLoad,
  check: 'queues',
  proves: 'The number of operations waiting for a lock',
  setting: 'queues',
  unit: 'count',
  default: { warn: 10, limit: 30 },
  doc: 'Operations waiting for a lock',
  evaluate: (load, compare) => {
    if ('obstacle' in load) return warnOf('queues', load)
    const { queued: value, hasQueue } = load
    if (!hasQueue) return []
    return compare({ what: 'operations waiting for a lock:', figure: 'the number of waiting operations', value })
  },
})

export const cache = limitOnMongo({
  ...ofLoad,
  check: 'cache',
  proves: 'The WiredTiger cache is not full; left out without one',
  setting: 'cache',
  unit: 'percent',
  default: { warn: 95 },
  doc: 'How full the WiredTiger cache may be',
  evaluate: (load, compare) => {
    if ('obstacle' in load) return load.denied ? warnOf('cache', load) : []
    if (!load.cache) return []
    const value = shareOf(load.cache.used, load.cache)
    const what = `use of ${cacheOf(load.cache)}:`
    const figure = 'the use of the cache'
    return compare({ what, figure, value })
  },
})

export const cacheDirty = limitOnMongo({
  ...ofLoad,
  check: 'cache dirty',
  proves: 'The share of the cache that waits to be written to disk',
  setting: 'cacheDirty',
  unit: 'percent',
  default: { warn: 20 },
  doc: 'How much of the cache may wait to be written to disk',
  evaluate: (load, compare) => {
    if ('obstacle' in load) return load.denied ? warnOf('cache dirty', load) : []
    if (!load.cache) return []
    const value = shareOf(load.cache.dirty, load.cache)
    const what = `unwritten part of ${cacheOf(load.cache)}:`
    const figure = 'the unwritten part of the cache'
    return compare({ what, figure, value })
  },
})

export const clock = onMongo({
  depth: 'Advanced',
  provesNoReading: true,
  results: { clock: "The node's clock agrees with ours" },
  settings: { clock: clockSetting },
  observe: (mongo, _, { date }) =>
    permitted(mongo, clusterMonitor, async () => {
      const sent = date().getTime()
      const answer = await mongo.command({ hello: 1 })
      const received = date().getTime()
      const at = moment(answer, 'localTime')
      if (at === undefined) throw new UnavailableError('absent', 'this server does not report its time', [])
      return clockOf(at, sent, received)
    }),
  evaluate: (observation, { clock: threshold }) =>
    'obstacle' in observation ? warnOf('clock', observation) : evaluateClock(observation, threshold),
})

/** In the order of their results. */
export const mongoChecks = [
  hello,
  ping,
  role,
  primary,
  members,
  connections,
  replicationLag,
  oplogWindow,
  queues,
  cache,
  cacheDirty,
  clock,
]

const collection = 'probe'
const mark = 'svc-probe-'
/** Milliseconds after which leftovers of other runs may be deleted. */
const leftoverMs = 3_600_000

/** Runs only on nodes that accept writes. */
export const writeConcern = limitOnMongo({
  depth: 'Advanced',
  check: 'write concern',
  proves: 'With `allowWrites`, on a node that accepts writes: a majority acknowledges a test write',
  setting: 'writeConcern',
  unit: 'duration',
  default: { warn: 1_000, limit: 5_000 },
  doc: 'How long a majority may take to acknowledge a write',
  settings: {
    allowWrites: {
      type: 'flag',
      default: false,
      doc: 'Lets `write concern` insert, read and delete a test document, and delete those that earlier runs left behind',
    },
    probeDatabase: {
      type: 'text',
      default: 'svc_health',
      pattern: /^[A-Za-z0-9_-]{1,38}$/,
      doc: 'Database in which `write concern` writes, to the collection `probe`',
    },
  },
  applies: ({ node }, { allowWrites }) => allowWrites && isWritable(node),
  privilege: grantOf({ role: 'readWrite', database: '<probeDatabase>' }),
  observe: (mongo, { probeDatabase: database, writeConcern: threshold }, { msLeft, now, date }) => {
    const { limit = Number.POSITIVE_INFINITY } = threshold
    // Leaves half of the time for deleting the document.
    const timeoutMs = Math.min(limit, msLeft() / 2)
    return permitted(mongo, { role: 'readWrite', database }, () =>
      roundTrip(mongo.command, { database, timeoutMs, now, date }),
    )
  },
  evaluate: (observation, compare) => {
    if ('obstacle' in observation) return warnOf('write concern', observation)
    const { ms: value, swept } = observation
    return compare({
      what: 'a majority acknowledged a write in',
      value,
      details: swept > 0 ? [`deleted ${count(swept, 'document')} that earlier runs left behind`] : undefined,
    })
  },
})

type RoundTripSettings = {
  readonly database: string
  /** The timeout of the majority in milliseconds. */
  readonly timeoutMs: number
  readonly now: () => number
  readonly date: () => Date
}

/** Writes a document with write concern majority, reads it, deletes it, and deletes the leftovers of earlier runs. */
async function roundTrip(command: Command, { database, timeoutMs, now, date }: RoundTripSettings) {
  const id = `${mark}${randomUUID()}`
  const at = date()
  const run = async (request: Doc): Promise<Doc> => accepted(await command(request, database))
  const since = now()
  let ms: number
  try {
    await run({
      insert: collection,
      documents: [{ _id: id, at }],
      writeConcern: { w: 'majority', wtimeout: Math.max(1, Math.floor(timeoutMs)) },
    })
    ms = now() - since
    const answer = await run({ find: collection, filter: { _id: id }, limit: 1, singleBatch: true })
    const [first] = parts(part(answer, 'cursor'), 'firstBatch')
    if (text(first, '_id', 64) !== id) throw new ProbeError('data', 'the test document was not found after writing')
  } finally {
    // After a broken connection, a later run deletes the document.
    await run({ delete: collection, deletes: [{ q: { _id: id }, limit: 1 }] }).catch(() => {})
  }
  const old = { _id: { $regex: `^${mark}` }, at: { $lt: new Date(at.getTime() - leftoverMs) } }
  const removal = await run({ delete: collection, deletes: [{ q: old, limit: 0 }] })
  return { ms, swept: figure(removal, 'n') ?? 0 }
}

/** A server answers even a failed write with ok. */
function accepted(answer: Doc): Doc {
  const [first] = parts(answer, 'writeErrors')
  if (first) throw new ProbeError('data', `the write failed: ${text(first, 'errmsg', 200)}`)
  const concern = part(answer, 'writeConcernError')
  if ('errmsg' in concern) {
    throw new ProbeError('timeout', `no majority acknowledged the write in time: ${text(concern, 'errmsg', 200)}`)
  }
  return answer
}

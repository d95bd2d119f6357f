import { count, showBytes, showDuration } from '../../../base/format.ts'
import type { Redact } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { SettingsSpec } from '../../../base/settings/index.ts'
import { figure, type Row, text } from '../../database/index.ts'
import {
  type CheckContext,
  fail,
  notChecked,
  ok,
  type Result,
  sharedRead,
  warn,
  withThreshold,
} from '../../engine/index.ts'
import { limitOnRedis, onRedis, type RedisConnection } from './connection.ts'
import { listOf, textOf } from './resp.ts'

/** The period in which an increase counts, in milliseconds. A burst is reported for that long, and not for weeks. */
const periodMs = 3_600_000
/** Milliseconds between two stored readings. */
const everyMs = 300_000

/** By how much counters have increased since an earlier run, all over the same period. */
type Increase<Name extends string> = {
  readonly by: Readonly<Record<Name, number>>
  readonly overMs: number
}

/**
 * The increase of counters that a server counts since its start: over the last hour, or since the last run before that.
 * `upMs` is the time since the start of the server. Undefined in the first run, or without a store, unless the server
 * started within the last hour. Never rejects.
 */
async function increaseOf<Name extends string>(
  counters: Readonly<Record<Name, number>>,
  upMs: number,
  { history, date }: Pick<CheckContext, 'history' | 'date'>,
): Promise<Increase<Name> | undefined> {
  const now = date().getTime()
  const entries = Object.entries<number>(counters)
  const readings = await Promise.all(entries.map(([name, value]) => history(`counter ${name}`, value, everyMs)))
  const startedAt = now - upMs
  const bases = entries.map(([, value], index) =>
    baseOf(readings[index]?.slice(0, -1) ?? [], { now, value, startedAt }),
  )
  const [first] = bases
  if (first === undefined || bases.includes(undefined)) return undefined
  const by = entries.map(([name, value], index) => [name, value - (bases[index]?.value ?? 0)] as const)
  return { by: Object.fromEntries(by) as Record<Name, number>, overMs: now - first.at }
}

type Reading = { readonly at: number; readonly value: number }

/** The reading to compare with. Readings from before the counter began anew do not count. */
function baseOf(
  earlier: readonly Reading[],
  { now, value, startedAt }: { readonly now: number; readonly value: number; readonly startedAt: number },
): Reading | undefined {
  const last = earlier.at(-1)
  const base = earlier.findLast(({ at }) => now - at >= periodMs) ?? earlier[0]
  // The server itself began to count within the period, or after the reading.
  if (startedAt > (base?.at ?? now - periodMs)) return { at: startedAt, value: 0 }
  if (last === undefined || base === undefined) return undefined
  const isReset = last.value > value || base.value > value
  return isReset ? { at: last.at, value: 0 } : base
}

const minute = 60_000

/** Maximum number of fields read; INFO has about two hundred. */
const maxFields = 5_000

/**
 * Parses the `name:value` lines of INFO and CLUSTER INFO. Older versions of KeyDB repeat the names `master_…` for each of
 * several primaries; the second one gets the names of later versions, `master_1_…`.
 */
export function parseInfo(reply: string, redact: Redact): Row {
  const row = Object.create(null) as Record<string, unknown>
  let primaries = 0
  for (const line of reply.split(/\r?\n/, maxFields)) {
    const end = line.indexOf(':')
    if (line.startsWith('#') || end < 0) continue
    const name = line.slice(0, end)
    if (name === 'master_host') primaries += 1
    const repeated = primaries > 1 && ofLink.test(name)
    row[repeated ? name.replace('master_', `master_${primaries - 1}_`) : name] = redact(line.slice(end + 1))
  }
  for (const { field, name } of otherNames) row[field] ??= row[name]
  return row
}

/**
 * Fields of INFO that svc reads, and their names at servers that call them differently, as these have answered. The
 * Sentinel of Valkey has them too.
 */
export const otherNames: readonly { readonly field: string; readonly name: string; readonly at: string }[] = [
  { field: 'redis_mode', name: 'server_mode', at: 'Valkey 9.1' },
  // Valkey also reports the version of Redis with which it is compatible.
  { field: 'version', name: 'valkey_version', at: 'Valkey 9.1' },
  { field: 'version', name: 'redis_version', at: 'Redis 7.0' },
]

/** The names that describe the link to a primary. */
const ofLink = /^master_(?:host|port|link_|last_io_|sync_)/

/** Maximum number of primaries that one server follows. */
const maxSources = 16

/** The server's report about itself, and the time of that report. */
export type Info = { readonly row: Row; readonly date: Date }

const privilege = 'ACL SETUSER <account> +info'

/** A parameter of the configuration. Undefined if the server does not have it, or refuses to report it. */
async function configured(redis: RedisConnection, name: string): Promise<string | undefined> {
  const [, value] = listOf(await redis.send('CONFIG', 'GET', name))
  return value === undefined ? undefined : redis.redact(textOf(value))
}

/** Reads INFO, which most checks evaluate. */
export const info = sharedRead(
  'info',
  'Reported only when INFO fails, such as for lack of permission',
  async (redis: RedisConnection, { date }): Promise<Info> => {
    const row = parseInfo(textOf(await redis.ask('INFO')), redis.redact)
    if (text(row, 'role') === '' && !isSentinel(row))
      throw new ProbeError('protocol', `${redis.address} reports no role in INFO`)
    if (figure(row, 'maxclients') !== undefined || isSentinel(row)) return { row, date: date() }
    return { row: { ...row, maxclients: await configured(redis, 'maxclients') }, date: date() }
  },
)

/** The parts that most checks of INFO have in common. */
const ofInfo = { depth: 'Standard', privilege, observe: info } as const

const milliseconds = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : seconds * 1_000

export const isSentinel = (row: Row): boolean => text(row, 'redis_mode') === 'sentinel'
const isPrimary = (row: Row): boolean => text(row, 'role') === 'master'
/** An active replica of KeyDB accepts writes and sends them to the servers that it follows, which follow it in turn. */
const isActiveReplica = (row: Row): boolean => text(row, 'role') === 'active-replica'
/** A primary or an active replica: it accepts writes, and replicas may follow it. */
export const acceptsWrites = (row: Row): boolean => isPrimary(row) || isActiveReplica(row)
export const isClusterNode = (row: Row): boolean => figure(row, 'cluster_enabled') === 1

/** The link of a replica to a primary. Times are in milliseconds, and undefined if they are not reported. */
type Link = ReturnType<typeof linksOf>[number]

/** The links to all primaries; only KeyDB follows several. */
function linksOf(row: Row) {
  if (isPrimary(row)) return []
  const prefixes = ['master_', ...Array.from({ length: maxSources - 1 }, (_, index) => `master_${index + 1}_`)]
  return prefixes
    .filter((prefix, index) => index === 0 || `${prefix}host` in row)
    .map((prefix) => ({
      source: `${text(row, `${prefix}host`, 80)}:${text(row, `${prefix}port`)}`,
      up: text(row, `${prefix}link_status`) === 'up',
      /** A full copy is being received. */
      copies: figure(row, `${prefix}sync_in_progress`) === 1,
      downMs: milliseconds(figure(row, `${prefix}link_down_since_seconds`)),
      silentMs: milliseconds(figure(row, `${prefix}last_io_seconds_ago`)),
    }))
}

const sourcesOf = (row: Row): string =>
  linksOf(row)
    .map(({ source }) => source)
    .join(' and ')

export const role = onRedis({
  ...ofInfo,
  results: { role: 'The server has the expected role, primary or replica' },
  settings: {
    role: {
      type: 'choice',
      values: ['any', 'primary', 'replica'],
      default: 'any',
      doc: 'The expected role of the server; an active replica of KeyDB has both',
    },
  },
  evaluate: ({ row }, { role: expected }) => {
    const primary = isPrimary(row)
    const version = text(row, 'version')
    const active = isActiveReplica(row)
    const facts = {
      role: primary ? 'primary' : `${active ? 'active ' : ''}replica`,
      ...(version === '' ? {} : { version }),
    }
    const replicaCount = figure(row, 'connected_slaves')
    const following = replicaCount === undefined ? '' : ` with ${count(replicaCount, 'replica')}`
    const follows = `${facts.role} of ${sourcesOf(row)}`
    const is = primary ? `primary${following}` : active ? `${follows}${following}` : follows
    if (expected === 'any' || active || (expected === 'primary') === primary) return ok('role', is, { facts })
    const swapped = primary ? 'was it promoted?' : 'was another server promoted?'
    return fail('role', 'data', `is a ${is}, expected a ${expected}: ${swapped}`, { facts })
  },
})

export const replicaLink = onRedis({
  ...ofInfo,
  results: { 'replica link': 'A replica is connected to its primary; omitted on a primary' },
  evaluate: ({ row }): Result<'replica link'> | [] => {
    const check = 'replica link'
    const links = linksOf(row)
    const lost = links.find(({ up }) => !up)
    const copied = links.find(({ copies }) => copies)
    if (lost) {
      // A negative time: the replica has never been connected.
      const since = lost.downMs === undefined || lost.downMs < 0 ? '' : ` for ${showDuration(lost.downMs)}`
      const copying = lost.copies ? ', a full copy is in progress' : ''
      const message = `the link to its primary ${lost.source} is down${since}${copying}: its data is out of date`
      return fail(check, 'data', message)
    }
    if (copied) return warn(check, `receiving a full copy from ${copied.source}`)
    return links.length === 0 ? [] : ok(check, `up, to ${sourcesOf(row)}`)
  },
})

export const readOnly = onRedis({
  ...ofInfo,
  results: {
    'read-only':
      'A replica refuses writes, which its primary would never get; omitted on a primary, an active replica of KeyDB and a node of a cluster',
  },
  evaluate: ({ row }): Result<'read-only'> | [] => {
    // A replica of a cluster redirects writes to its primary, whatever the setting.
    if (acceptsWrites(row) || isClusterNode(row)) return []
    const value = figure(row, 'slave_read_only')
    if (value === undefined) return notChecked('read-only', 'missing', 'the server does not report slave_read_only')
    if (value === 1) return ok('read-only', 'refuses writes')
    const lost = 'its primary never gets them, and the next full copy removes them'
    return warn('read-only', `the replica accepts writes (replica-read-only no): ${lost}`, {
      details: ['next: CONFIG SET replica-read-only yes'],
    })
  },
})

export const memory = limitOnRedis({
  ...ofInfo,
  check: 'memory',
  proves: 'Enough memory remains',
  setting: 'memory',
  unit: 'percent',
  default: { warn: 80, limit: 95 },
  doc: 'Maximum memory in use, in percent of maxmemory; ignored if the policy (allkeys-…) may evict any key',
  evaluate: ({ row }, compare, settings) => {
    const total = figure(row, 'used_memory')
    const max = figure(row, 'maxmemory')
    if (total === undefined) return notChecked('memory', 'missing', 'the server does not report its memory use')
    if (max === undefined) return notChecked('memory', 'missing', 'the server does not report maxmemory')
    // Servers before Redis 4 do not report what does not count.
    const used = total - (figure(row, 'mem_not_counted_for_evict') ?? 0)
    if (max === 0)
      return ok('memory', `${showBytes(used)} used, without a limit (maxmemory 0)`, {
        measurement: { value: used, unit: 'bytes' },
      })
    const policy = text(row, 'maxmemory_policy')
    const what = `${showBytes(used)} of ${showBytes(max)} used (${policy || 'unknown policy'}):`
    // A cache is supposed to be full.
    const threshold = policy.startsWith('allkeys-') ? {} : settings.memory
    return compare({ what, value: (used / max) * 100, threshold })
  },
})

const blockedClients = (row: Row): number | undefined => figure(row, 'blocked_clients')

export const clients = limitOnRedis({
  ...ofInfo,
  check: 'clients',
  proves: 'Enough client connections remain',
  setting: 'clients',
  unit: 'percent',
  default: { warn: 80, limit: 95 },
  doc: 'Maximum number of connected clients, in percent of maxclients',
  evaluate: ({ row }, compare) => {
    const connected = figure(row, 'connected_clients')
    const max = figure(row, 'maxclients')
    if (connected === undefined) {
      return notChecked('clients', 'missing', 'the server does not report how many clients are connected')
    }
    if (max === undefined) {
      const details = ['ACL SETUSER <account> +config|get']
      const why = 'before Redis 6.2, maxclients is reported only to accounts that may read the configuration'
      return notChecked('clients', 'permission', why, { details })
    }
    if (max === 0) return notChecked('clients', 'missing', 'the server reports a maxclients of 0')
    const waiting = blockedClients(row) ? `, ${blockedClients(row)} of them blocked` : ''
    const what = `${connected} of ${max} clients${waiting}:`
    return compare({ what, value: (connected / max) * 100 })
  },
})

export const minReplicas = onRedis({
  depth: 'Standard',
  results: {
    'min replicas':
      'A primary has the healthy replicas without which it refuses writes; omitted without min-replicas-to-write',
  },
  privilege: 'ACL SETUSER <account> +info +config|get',
  observe: async (redis, settings, context) => {
    const { row } = await info(redis, settings, context)
    // Reported only where min-replicas-to-write is set.
    const good = figure(row, 'min_slaves_good_slaves')
    if (good === undefined || !acceptsWrites(row)) return undefined
    const min = await configured(redis, 'min-replicas-to-write')
    return { good, min: figure({ min }, 'min') }
  },
  evaluate: (observation): Result<'min replicas'> | [] => {
    if (!observation) return []
    const { good, min } = observation
    const check = 'min replicas'
    const are = count(good, 'healthy replica')
    if (min === undefined && good > 0) {
      const details = ['ACL SETUSER <account> +config|get']
      const why = `${are}, but this account may not read min-replicas-to-write`
      return notChecked(check, 'permission', why, { details })
    }
    const threshold = { limit: min ?? 1 }
    const message = withThreshold(are, threshold, 'count', 'atLeast')
    const measurement = { value: good, unit: 'count', ...threshold, bound: 'atLeast' } as const
    if (good >= threshold.limit) return ok(check, message, { measurement })
    return fail(check, 'data', `${message}: the server refuses writes (min-replicas-to-write)`, { measurement })
  },
})

/** The counters of the server that only increase, and by how much they did so lately. */
const counters = async (redis: RedisConnection, settings: unknown, context: CheckContext) => {
  const { row } = await info(redis, settings, context)
  const refused = figure(row, 'rejected_connections')
  const accepted = figure(row, 'total_connections_received')
  const evictions = figure(row, 'evicted_keys')
  const upMs = milliseconds(figure(row, 'uptime_in_seconds'))
  const increase = async <Name extends string>(values: Readonly<Record<Name, number>>) =>
    upMs === undefined ? undefined : await increaseOf(values, upMs, context)
  return {
    connections:
      refused === undefined || accepted === undefined
        ? undefined
        : { refused, accepted, recently: await increase({ refused, accepted }) },
    evictions: evictions === undefined ? undefined : { evictions, recently: await increase({ evictions }) },
  }
}

export const rejected = limitOnRedis({
  depth: 'Standard',
  check: 'rejected',
  proves: 'The server has rejected few connections lately; needs a store, or a server that has just started',
  setting: 'rejected',
  unit: 'percent',
  default: { warn: 1 },
  doc: 'Maximum share of connections rejected because maxclients was reached, in the last hour, or since the last run before that',
  privilege,
  observe: counters,
  evaluate: ({ connections }, compare) => {
    const check = 'rejected'
    if (!connections) {
      return notChecked(check, 'missing', 'the server does not report how many connections it has rejected')
    }
    const { refused, accepted, recently } = connections
    // What has not happened at all has not happened lately.
    if (!recently && refused > 0) return ok(check, `${count(refused, 'connection')} ${sinceStart('rejected')}`)
    const by = recently?.by ?? { refused, accepted }
    const all = by.refused + by.accepted
    const when = recently ? `in the last ${showDuration(recently.overMs)}` : 'since the server started'
    const what = `${count(by.refused, 'connection')} of ${all} rejected ${when}:`
    const value = all === 0 ? 0 : (by.refused / all) * 100
    return compare({ what, value })
  },
})

/** Of a total that says nothing about now. */
const sinceStart = (what: string): string =>
  `${what} since the server started; how many of them lately is known from the second run on, with a store`

export const blocked = limitOnRedis({
  ...ofInfo,
  check: 'blocked',
  proves: 'The number of blocked clients is within the limit; omitted without `blocked`',
  setting: 'blocked',
  unit: 'count',
  doc: 'Maximum number of clients that wait in a blocking command, as workers do',

  evaluate: ({ row }, compare) =>
    compare({ what: 'blocked clients:', figure: 'the number of blocked clients', value: blockedClients(row) }),
})

export const evicted = limitOnRedis({
  depth: 'Standard',
  check: 'evicted',
  proves: 'Few keys were evicted lately; omitted without `evicted`',
  setting: 'evicted',
  unit: 'count',
  doc: 'Maximum number of keys evicted in the last hour, or since the last run before that',

  privilege,
  observe: counters,
  evaluate: ({ evictions: observed }, compare) => {
    const check = 'evicted'
    if (!observed) return notChecked(check, 'missing', 'the server does not report how many keys it has evicted')
    const { evictions, recently } = observed
    if (!recently && evictions > 0) return ok(check, `${count(evictions, 'key')} ${sinceStart('evicted')}`)
    const when = recently ? `in the last ${showDuration(recently.overMs)}` : 'since the server started'
    return compare({ what: `keys evicted ${when}:`, value: recently?.by.evictions ?? evictions })
  },
})

export const persistence = onRedis({
  ...ofInfo,
  results: { persistence: 'The last save and the last write to the append-only file succeeded' },
  evaluate: ({ row }) => {
    const aof = figure(row, 'aof_enabled')
    const unsaved = figure(row, 'rdb_changes_since_last_save')
    const changes = unsaved === undefined ? undefined : count(unsaved, 'change')
    // The states of the append-only file mean nothing while it is off.
    const states = [
      'rdb_last_bgsave_status',
      ...(aof === 1 ? ['aof_last_write_status', 'aof_last_bgrewrite_status'] : []),
    ]
    const [save, write, rewrite] = states.map((name) => text(row, name))
    if (save === 'err') {
      const lost = changes === undefined ? '' : `, ${changes} ${unsaved === 1 ? 'is' : 'are'} unsaved`
      const stops = 'the server may therefore refuse writes (stop-writes-on-bgsave-error)'
      return fail('persistence', 'data', `the last save to disk failed${lost}: ${stops}`)
    }
    if (write === 'err') {
      return fail('persistence', 'data', 'the last write to the append-only file failed: check its disk')
    }
    const unknown = states.find((name) => !/^(ok|err)$/.test(text(row, name)))
    if (unknown !== undefined || aof === undefined) {
      return notChecked('persistence', 'missing', `the server does not report ${unknown ?? 'aof_enabled'}`)
    }
    if (rewrite === 'err') {
      return warn(
        'persistence',
        'the last rewrite of the append-only file failed: the file grows until a rewrite succeeds',
      )
    }
    const since = changes === undefined ? 'the last save succeeded' : `${changes} since the last save`
    return ok('persistence', `${since}${aof === 1 ? '; append-only file is on' : ''}`)
  },
})

export const restarted = limitOnRedis({
  ...ofInfo,
  check: 'restarted',
  proves: 'The server has not restarted recently',
  setting: 'restarted',
  unit: 'duration',
  default: { warn: minute },
  doc: 'Minimum uptime of the server',
  bound: 'atLeast',
  evaluate: ({ row }, compare) => {
    const value = milliseconds(figure(row, 'uptime_in_seconds'))
    return compare({ what: 'up for', figure: 'the uptime', value })
  },
})

/** For example `slave0:ip=10.0.0.2,port=6379,state=online,offset=1234,lag=0`. Undefined: not reported. */
type Replica = ReturnType<typeof replicasOf>[number]

function replicasOf(row: Row) {
  return Object.keys(row)
    .filter((name) => /^slave\d+$/.test(name))
    .map((name) => {
      const fields: Row = Object.fromEntries(
        text(row, name, 300)
          .split(',')
          .map((pair) => [pair.split('=', 1)[0] ?? '', pair.slice(pair.indexOf('=') + 1)]),
      )
      return {
        at: `${text(fields, 'ip')}:${text(fields, 'port')}`,
        state: text(fields, 'state'),
        offset: figure(fields, 'offset'),
        lagMs: milliseconds(figure(fields, 'lag')),
      }
    })
}

const onlineReplicas = (row: Row): readonly Replica[] => replicasOf(row).filter(({ state }) => state === 'online')

/** The online replica with the largest figure; one without the figure precedes all others. Undefined if none is online. */
const worstReplica = (row: Row, of: (replica: Replica) => number | undefined): Replica | undefined => {
  const rank = (replica: Replica): number => of(replica) ?? Number.POSITIVE_INFINITY
  const [first, ...rest] = onlineReplicas(row)
  return first && rest.reduce((worst, one) => (rank(one) > rank(worst) ? one : worst), first)
}

export const replicasSetting = {
  type: 'integer',
  min: 0,
  doc: 'Minimum number of online replicas of a primary; for a Sentinel, of each primary that it monitors. 0 accepts a cluster without replicas',
} as const satisfies SettingsSpec[string]

export const replicas = onRedis({
  ...ofInfo,
  depth: 'Advanced',
  results: { replicas: 'The replicas of the server are online' },
  settings: { replicas: replicasSetting },
  evaluate: ({ row }, { replicas: min }): Result<'replicas'> | [] => {
    if (!acceptsWrites(row)) return []
    const all = replicasOf(row)
    const online = onlineReplicas(row).length
    const details = all.map(({ at, state }) => `${at} is ${state || 'in an unknown state'}`)
    const are = `${count(online, 'replica is', 'replicas are')} online`
    if (min === undefined) {
      if (online === all.length) return []
      return warn('replicas', `${all.length - online} of ${count(all.length, 'replica')} not online`, { details })
    }
    const message = withThreshold(are, { limit: min }, 'count', 'atLeast')
    const measurement = { value: online, unit: 'count', limit: min, bound: 'atLeast' } as const
    if (online >= min) return ok('replicas', message, { details, measurement })
    return fail('replicas', 'data', message, { details, measurement })
  },
})

export const replicationLag = limitOnRedis({
  ...ofInfo,
  depth: 'Advanced',
  check: 'replication lag',
  proves: 'Primary and replicas communicate; omitted without replication',
  setting: 'replicationLag',
  unit: 'duration',
  default: { warn: 15_000, limit: minute },
  doc: 'Maximum time since primary and replica last communicated, which they do every 1 to 10 s',
  evaluate: ({ row }, compare) => {
    const lag = (what: string, value: number | undefined) => compare({ what, value })
    const late = acceptsWrites(row) ? worstReplica(row, ({ lagMs }) => lagMs) : undefined
    const ofReplica =
      late && lag(`${late.lagMs === undefined ? 'the lag of' : 'last heard from'} replica ${late.at}`, late.lagMs)
    if (ofReplica && ofReplica.status !== 'ok') return ofReplica
    // Another check reports a broken link.
    const links = linksOf(row).filter(({ silentMs }) => silentMs === undefined || silentMs >= 0)
    const [first, ...rest] = links
    if (!first) return ofReplica ?? []
    const rank = ({ silentMs }: Link): number => silentMs ?? Number.POSITIVE_INFINITY
    const { silentMs: silent } = rest.reduce((worst, one) => (rank(one) > rank(worst) ? one : worst), first)
    return lag(silent === undefined ? 'the last contact with its primary' : 'last heard from its primary', silent)
  },
})

export const replicationOffset = limitOnRedis({
  ...ofInfo,
  depth: 'Advanced',
  check: 'replication offset',
  proves: 'The replicas of a primary are not too far behind',
  setting: 'replicationBytes',
  unit: 'bytes',
  default: { warn: 16 * 1024 ** 2 },
  doc: 'Maximum distance between the offsets of the primary and a replica, as reported by the primary',
  evaluate: ({ row }, compare) => {
    const own = figure(row, 'master_repl_offset')
    const distance = ({ offset }: Replica): number | undefined =>
      own === undefined || offset === undefined ? undefined : Math.max(0, own - offset)
    const behind = worstReplica(row, distance)
    if (!acceptsWrites(row) || !behind) return []
    const value = distance(behind)
    const what = `replica ${behind.at} lags by`
    return compare({ what, figure: `the offset of replica ${behind.at}`, value })
  },
})

export const lastSave = limitOnRedis({
  ...ofInfo,
  depth: 'Advanced',
  check: 'last save',
  proves: 'Changes are saved often enough; omitted without `lastSave`',
  setting: 'lastSave',
  unit: 'duration',
  doc: 'Maximum age of the last save while there are unsaved changes',

  evaluate: ({ row, date }, compare) => {
    const saved = figure(row, 'rdb_last_save_time')
    const changes = figure(row, 'rdb_changes_since_last_save')
    if (saved === undefined || changes === undefined) {
      return notChecked('last save', 'missing', 'the server does not report its last save')
    }
    if (changes === 0) return ok('last save', 'no changes since the last save')
    const what = `${count(changes, 'unsaved change')}, the last save was`
    const value = Math.max(0, date.getTime() - saved * 1_000)
    return compare({ what, value })
  },
})

export const fork = limitOnRedis({
  ...ofInfo,
  depth: 'Advanced',
  check: 'fork',
  proves: 'Forking for a save or a new replica does not block clients for too long',
  setting: 'fork',
  unit: 'duration',
  default: { warn: 1_000 },
  doc: 'Maximum duration of the last fork, during which the server answers no requests. It grows with the memory in use',
  evaluate: ({ row }, compare) => {
    const us = figure(row, 'latest_fork_usec')
    if (us === undefined) {
      return notChecked('fork', 'missing', 'the server does not report how long its last fork took')
    }
    const what = 'the last fork blocked the server for'
    const result = compare({ what, value: us / 1_000 })
    return us === 0 ? { ...result, message: 'the server has not forked since it started' } : result
  },
})

/** In the order of their results. */
export const serverChecks = [
  role,
  replicaLink,
  readOnly,
  memory,
  clients,
  rejected,
  blocked,
  evicted,
  persistence,
  restarted,
  minReplicas,
]
export const durabilityChecks = [replicas, replicationLag, replicationOffset, lastSave, fork]

import { setTimeout as pause } from 'node:timers/promises'
import { count, showDuration } from '../../../base/format.ts'
import { type DatabaseConnection, figure, onDatabase, type Row, text } from '../../database/index.ts'
import {
  atMost,
  type CheckContext,
  fail,
  notChecked,
  ok,
  type Result,
  sharedRead,
  warn,
  withThreshold,
} from '../../engine/index.ts'
import { byName, milliseconds } from './checks.ts'

/** One source of a replica. Most replicas have a single source with an empty name. */
export type Channel = ReturnType<typeof channelOf>

export const mayReadReplication =
  'GRANT REPLICATION CLIENT ON *.* TO <account>; on MariaDB since 10.5: GRANT SLAVE MONITOR ON *.* TO <account>'

/** The sources of a server; none if it is not a replica. The channels of group replication are not among them. */
export async function readChannels(ask: DatabaseConnection['ask']): Promise<readonly Channel[]> {
  const [row] = await ask('SELECT VERSION() AS version')
  const rows = await ask(replicationStatement(text(row, 'version')))
  return rows.map(channelOf).filter(({ name }) => !name.startsWith('group_replication_'))
}

/**
 * Whether a server is the primary or a secondary of a group (group replication in single-primary mode). Undefined elsewhere.
 * Every account may read it.
 */
export async function readGroupRole(ask: DatabaseConnection['ask']): Promise<'primary' | 'secondary' | undefined> {
  const status = byName(await ask("SHOW GLOBAL STATUS WHERE Variable_name = 'group_replication_primary_member'"))
  const primary = text(status, 'group_replication_primary_member')
  if (!/^[\da-f-]{36}$/i.test(primary)) return
  const own = byName(await ask("SHOW GLOBAL VARIABLES WHERE Variable_name = 'server_uuid'"))
  return text(own, 'server_uuid') === primary ? 'primary' : 'secondary'
}

/** The statement for replication status, which depends on the server and its version. */
export function replicationStatement(version: string): string {
  if (/mariadb/i.test(version)) return 'SHOW ALL SLAVES STATUS'
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number)
  const isNew = major > 8 || (major === 8 && (minor > 0 || patch >= 22))
  return isNew ? 'SHOW REPLICA STATUS' : 'SHOW SLAVE STATUS'
}

function channelOf(row: Row) {
  const either = (...names: readonly string[]): string => names.map((name) => text(row, name)).find(Boolean) ?? ''
  const lag = figure(row, 'Seconds_Behind_Source') ?? figure(row, 'Seconds_Behind_Master')
  const period = figure(row, 'Slave_heartbeat_period')
  const heartbeats = figure(row, 'Slave_received_heartbeats')
  const position = figure(row, 'Read_Master_Log_Pos')
  return {
    name: either('Channel_Name', 'Connection_name'),
    /** `Yes`, `No`, `Connecting`, `Preparing`. */
    receives: either('Replica_IO_Running', 'Slave_IO_Running'),
    applies: either('Replica_SQL_Running', 'Slave_SQL_Running'),
    /** Undefined if the server does not know it. */
    lagMs: milliseconds(lag),
    errors: ['Last_IO_Error', 'Last_SQL_Error'].map((name) => text(row, name, 200)).filter(Boolean),
    /** The filters that leave out changes, as the server shows them: `Replicate_Ignore_DB: test`. */
    filters: filtersOf(row),
    /** Milliseconds between two heartbeats; undefined where only `performance_schema` shows them (MySQL). */
    heartbeatMs: milliseconds(period),
    /** How many heartbeats, and how many bytes of binary logs, the replica has received: grows while its source works. */
    received: heartbeats === undefined || position === undefined ? undefined : heartbeats + position,
  }
}

/** The columns of filters that leave out changes, of both servers. */
const doing = ['Replicate_Do_DB', 'Replicate_Do_Table', 'Replicate_Wild_Do_Table', 'Replicate_Do_Domain_Ids']
const ignoring = [
  'Replicate_Ignore_DB',
  'Replicate_Ignore_Table',
  'Replicate_Wild_Ignore_Table',
  'Replicate_Ignore_Domain_Ids',
]
/**
 * The databases that belong to one server and are not replicated anywhere; hosted servers ignore their tables by
 * default.
 */
const ofTheServer = /^(?:mysql|sys|information_schema|performance_schema)(?:\.|$)/

function filtersOf(row: Row): readonly string[] {
  const filterLine = (column: string, names: readonly string[]): readonly string[] =>
    names.length === 0 ? [] : [`${column}: ${names.join(',')}`]
  const listed = (column: string): readonly string[] => text(row, column, 300).split(',').filter(Boolean)
  return [
    ...doing.flatMap((column) => filterLine(column, listed(column))),
    ...ignoring.flatMap((column) =>
      filterLine(
        column,
        listed(column).filter((one) => !ofTheServer.test(one)),
      ),
    ),
  ]
}

function describeStopped({ name, receives, applies }: Channel): string {
  const source = name === '' ? '' : `${name}: `
  const io = receives === 'Yes' ? '' : `does not receive (IO thread: ${receives || 'unknown'})`
  const sql = applies === 'Yes' ? '' : `does not apply (SQL thread: ${applies || 'unknown'})`
  return `${source}${[io, sql].filter(Boolean).join(', ')}`
}

export const replicaStatus = sharedRead(
  'replication',
  'A replica receives and applies the changes of its source',
  async ({ ask }: DatabaseConnection) => {
    const channels = await readChannels(ask)
    return { channels, group: channels.length === 0 ? await readGroupRole(ask) : undefined }
  },
)

export const replication = onDatabase({
  depth: 'Advanced',
  results: {
    replication: 'A replica receives and applies the changes of its source',
    'replication lag': 'The lag of a replica; left out elsewhere',
  },
  settings: {
    replica: { type: 'flag', default: false, doc: 'The server is a replica: a failure if replication is not set up' },
    replicationLag: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 30_000 },
      doc: 'How far a replica may be behind',
    },
  },
  privilege: mayReadReplication,
  observe: replicaStatus,
  evaluate: ({ channels, group }, { replica, replicationLag: threshold }) => {
    if (channels.length === 0) {
      if (group === 'secondary') return ok('replication', 'a secondary of its group (group replication)')
      if (!replica) return ok('replication', 'not a replica')
      return fail('replication', 'data', 'expected to be a replica, but replication is not set up')
    }
    const broken = channels.filter(({ receives, applies }) => receives !== 'Yes' || applies !== 'Yes')
    const [first] = broken
    if (first) {
      const details = broken.flatMap((one) => [...(one === first ? [] : [describeStopped(one)]), ...one.errors])
      return fail('replication', 'data', describeStopped(first), { details })
    }
    const lag = Math.max(...channels.map(({ lagMs }) => lagMs ?? Number.POSITIVE_INFINITY))
    const runs = ok('replication', `replicates from ${count(channels.length, 'source')}: both threads are running`)
    if (lag === Number.POSITIVE_INFINITY) return [runs, warn('replication lag', 'the server does not report its lag')]
    return [runs, atMost({ check: 'replication lag', what: 'lag', value: lag, unit: 'duration', threshold })]
  },
})

export const replicationFilters = onDatabase({
  depth: 'Advanced',
  results: { 'replication filters': 'No filter makes a replica leave out changes of its source; omitted elsewhere' },
  settings: {
    replicationFilters: {
      type: 'flag',
      default: false,
      narrows: true,
      doc: 'The replica leaves out changes of its source on purpose: svc does not warn of its filters',
    },
  },
  privilege: mayReadReplication,
  observe: replicaStatus,
  evaluate: ({ channels }, { replicationFilters: isIntended }): Result<'replication filters'> | [] => {
    const check = 'replication filters'
    if (channels.length === 0) return []
    const [first, ...others] = channels.flatMap(({ filters }) => filters)
    if (first === undefined) return ok(check, 'the replica takes over all changes')
    const message = `leaves out changes of its source: ${first}`
    const details = [...others, 'if that is intended: replicationFilters: true']
    return isIntended ? ok(check, message) : warn(check, message, { details })
  },
})

export const replicas = onDatabase({
  depth: 'Advanced',
  results: { replicas: 'With `replicas`: so many replicas receive the changes of this source' },
  settings: {
    replicas: { type: 'integer', min: 0, doc: 'Minimum number of replicas that are connected to this source' },
  },
  when: ['replicas'],
  privilege: 'GRANT PROCESS ON *.* TO <account>',
  observe: async ({ ask }) => {
    // Without PROCESS, the list contains only the own sessions, without an error. Reading innodb_trx is refused then.
    await ask('SELECT COUNT(*) AS open FROM information_schema.innodb_trx')
    const [row] = await ask(`SELECT COUNT(*) AS total, SUM(command LIKE 'Binlog Dump%') AS connected
      FROM information_schema.processlist`)
    return { total: figure(row, 'total'), connected: figure(row, 'connected') }
  },
  evaluate: ({ total, connected }, { replicas: min = 0 }): Result<'replicas'> => {
    const check = 'replicas'
    // The own session is always in the list.
    if (!total || connected === undefined) {
      return notChecked(check, 'missing', 'the server does not report its sessions')
    }
    const are = `${count(connected, 'replica is', 'replicas are')} connected`
    const message = withThreshold(are, { limit: min }, 'count', 'atLeast')
    const measurement = { value: connected, unit: 'count', limit: min, bound: 'atLeast' } as const
    return connected < min ? fail(check, 'data', message, { measurement }) : ok(check, message, { measurement })
  },
})

/** MySQL 8.0.26 and later says `source` where older versions and MariaDB say `master`. */
const either = (name: string): string => `'rpl_semi_sync_master_${name}', 'rpl_semi_sync_source_${name}'`

export const semiSync = onDatabase({
  depth: 'Standard',
  results: {
    'semi-sync': 'The commits of a source wait for a replica; omitted without semi-synchronous replication',
  },
  observe: async ({ ask }) => {
    const variables = byName(
      await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name IN (${either('enabled')}, 'read_only', 'max_connections')`),
    )
    const status = byName(
      await ask(`SHOW GLOBAL STATUS WHERE Variable_name IN (${either('status')}, ${either('clients')})`),
    )
    const one = (row: typeof status, name: string): string =>
      text(row, `rpl_semi_sync_source_${name}`) || text(row, `rpl_semi_sync_master_${name}`)
    return {
      answered: figure(variables, 'max_connections') !== undefined,
      isOn: one(variables, 'enabled') === 'ON',
      /** On a replica, the applied changes wait for nobody, and the status is mostly off. */
      isReadOnly: !/^(?:OFF|0|)$/.test(text(variables, 'read_only')),
      status: one(status, 'status'),
      replicas: figure({ clients: one(status, 'clients') }, 'clients'),
    }
  },
  evaluate: ({ answered, isOn, isReadOnly, status, replicas }): Result<'semi-sync'> | [] => {
    const check = 'semi-sync'
    if (!answered) return notChecked(check, 'missing', 'the server does not report its variables')
    if (!isOn || isReadOnly) return []
    if (status === '' || replicas === undefined) {
      return notChecked(check, 'missing', 'the server does not report the state of semi-synchronous replication')
    }
    const connected = count(replicas, 'semi-synchronous replica is', 'semi-synchronous replicas are')
    const measurement = { value: replicas, unit: 'count', warn: 1, bound: 'atLeast' } as const
    if (status !== 'ON') {
      const message = `replication is asynchronous now: commits wait for no replica, and ${connected} connected`
      return warn(check, message, { measurement })
    }
    if (replicas === 0) {
      return warn(check, 'no semi-synchronous replica is connected: the next commit waits in vain', { measurement })
    }
    return ok(check, `commits wait for a replica: ${connected} connected`, { measurement })
  },
})

/** The variables that make a server refuse writes. Those that a server does not know are missing. */
const readOnlyVariables = ['read_only', 'super_read_only', 'innodb_read_only', 'transaction_read_only', 'tx_read_only']

type RoleObservation = {
  /** The read-only variables that are set. Undefined if the server does not report `read_only`. */
  readonly readOnly: readonly string[] | undefined
  /** How many sources the server replicates from. Undefined if it was not read, because no verdict depends on it. */
  readonly sources: number | undefined
  /** Whether it is the primary or a secondary of a group (group replication). */
  readonly group: 'primary' | 'secondary' | undefined
}

export const role = onDatabase({
  depth: 'Standard',
  results: { role: 'A source accepts writes, and a replica is read-only' },
  settings: {
    role: {
      type: 'choice',
      values: ['any', 'source', 'replica', 'both'],
      default: 'any',
      doc: 'Expected role of the server. `both`: accepts writes and replicates, as two servers that replicate from each other. `any`: warns if the server is read-only and no replica, or accepts writes and is a replica',
    },
  },
  privilege: mayReadReplication,
  observe: async ({ ask }, { role: expected }): Promise<RoleObservation> => {
    const names = readOnlyVariables.map((name) => `'${name}'`).join(', ')
    const variables = byName(await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name IN (${names})`))
    const group = await readGroupRole(ask)
    if (text(variables, 'read_only') === '') return { readOnly: undefined, sources: undefined, group }
    const readOnly = readOnlyVariables.filter((name) => !/^(OFF|0)?$/.test(text(variables, name)))
    const isDecided = readOnly.length > 0 && (expected === 'replica' || expected === 'source' || group === 'secondary')
    return { readOnly, sources: isDecided ? undefined : (await readChannels(ask)).length, group }
  },
  evaluate: ({ readOnly, sources = 0, group }, { role: expected }): Result<'role'> => {
    if (!readOnly) return notChecked('role', 'missing', 'the server does not report read_only')
    const on = `${readOnly.join(', ')} ${readOnly.length > 1 ? 'are' : 'is'} on`
    const of = group === undefined ? '' : `, ${group} of its group`
    const finding = { facts: { role: readOnly.length > 0 ? 'read-only' : 'writable' } }
    const from = count(sources, 'source')
    if (readOnly.length > 0) {
      if (expected === 'replica') return ok('role', `accepts no writes of clients, as a replica: ${on}`, finding)
      if (readOnly.includes('innodb_read_only')) {
        return fail('role', 'data', `accepts no writes at all, of nobody: ${on}`, finding)
      }
      if (expected !== 'any') {
        return fail('role', 'data', `accepts no writes, expected a source${of}: ${on}`, finding)
      }
      if (group === 'secondary') return ok('role', `is a read-only secondary of its group: ${on}`, finding)
      return sources > 0
        ? ok('role', `is a read-only replica: ${on}`, finding)
        : warn('role', `accepts no writes although it is not a replica: ${on}`, finding)
    }
    if (expected === 'both') {
      if (sources === 0) return fail('role', 'data', 'accepts writes and has no source, expected both', finding)
      return ok('role', `accepts writes and replicates from ${from}`, finding)
    }
    if (sources > 0) {
      const details = ['next: SET GLOBAL read_only = 1, or, if that is intended, role: both']
      const message = 'is a replica that accepts writes of clients: read_only is off'
      return warn('role', message, { ...finding, details })
    }
    if (expected === 'replica') {
      return fail('role', 'data', 'accepts writes and has no source, expected a replica', finding)
    }
    return ok('role', `accepts writes${of}`, finding)
  },
})

/**
 * Periods without a heartbeat or a change after which a source counts as silent. Replication itself connects again after
 * two of them by default, and until then both threads run and the lag is 0.
 */
const tolerance = 1.5
/** Milliseconds that a busy machine may deliver a heartbeat late. */
const lateMs = 1_000
/** Milliseconds: the longest period whose heartbeat is waited for in a run. */
const maxWaitedMs = 3_000
const againMs = 100
/** Milliseconds between two stored readings of what a replica has received. */
const readingMs = 5_000

/** The sign of life of one source, as a replica reports it. */
type SignOfLife = {
  readonly name: string
  /** Milliseconds between two heartbeats; 0 or undefined where the source sends none. */
  readonly periodMs: number | undefined
  /** Milliseconds since the source has sent anything. Undefined where it is not known. */
  readonly silentMs: number | undefined
}

const limitOf = (periodMs: number): number => periodMs * tolerance + lateMs

export const sourceHeartbeat = onDatabase({
  depth: 'Advanced',
  results: {
    'source heartbeat':
      'The source of a replica has sent a change or a heartbeat within 1.5 of its periods; omitted elsewhere. On MariaDB, a period above 3 s needs the readings of earlier runs, as in svc serve',
  },
  privilege: 'on MySQL: GRANT SELECT ON performance_schema.* TO <account>',
  observe: async (connection, settings, context) => {
    const { channels } = await replicaStatus(connection, settings, context)
    context.step('source heartbeat')
    // The check `replication` reports a source that is not connected.
    const connected = channels.filter(({ receives }) => receives === 'Yes')
    if (connected.length === 0) return []
    const hasCounters = connected.some(({ received }) => received !== undefined)
    return hasCounters ? countedHere(connection, connected, context) : timedByServer(connection)
  },
  evaluate: (signs): Result<'source heartbeat'> | [] => {
    const check = 'source heartbeat'
    const [latest] = signs.toSorted((a, b) => lateness(b) - lateness(a))
    if (!latest) return []
    const { name, periodMs, silentMs } = latest
    const source = name === '' ? 'the source' : `the source of ${name}`
    if (!periodMs) return ok(check, `${source} sends no heartbeats: the period is 0`)
    const every = `a heartbeat every ${showDuration(periodMs)}`
    if (silentMs === undefined) return ok(check, `${source} sends ${every}`)
    const measurement = { value: silentMs, unit: 'milliseconds', limit: limitOf(periodMs), bound: 'atMost' } as const
    const message = `${source} has sent nothing for ${showDuration(silentMs)}, and sends ${every}`
    if (silentMs <= limitOf(periodMs)) return ok(check, message, { measurement })
    const details = [
      'the lag does not grow until replication notices it, after replica_net_timeout (slave_net_timeout)',
    ]
    return fail(check, 'timeout', message, { measurement, details })
  },
})

const lateness = ({ periodMs, silentMs = 0 }: SignOfLife): number => (periodMs ? silentMs / limitOf(periodMs) : 0)

/** MySQL keeps the time of the last heartbeat. A transaction that is being received counts as a sign of life. */
async function timedByServer({ ask }: DatabaseConnection): Promise<readonly SignOfLife[]> {
  const since = (column: string): string => `TIMESTAMPDIFF(MICROSECOND, s.${column}, NOW(6)) / 1000`
  const rows = await ask(`SELECT s.channel_name AS name, c.heartbeat_interval AS period,
      ${since('last_heartbeat_timestamp')} AS heartbeat,
      ${since('last_queued_transaction_end_queue_timestamp')} AS queued,
      t.processlist_time AS running, s.queueing_transaction AS receiving
    FROM performance_schema.replication_connection_status AS s
      JOIN performance_schema.replication_connection_configuration AS c ON c.channel_name = s.channel_name
      LEFT JOIN performance_schema.threads AS t ON t.thread_id = s.thread_id
    WHERE s.service_state = 'ON' AND s.channel_name NOT LIKE 'group\\_replication\\_%'`)
  return rows.map((row) => {
    // Nothing that an earlier connection has received says anything about this one.
    const signs = [figure(row, 'heartbeat'), figure(row, 'queued'), milliseconds(figure(row, 'running'))]
    const latest = Math.min(...signs.filter((ms) => ms !== undefined))
    const isKnown = text(row, 'receiving') === '' && Number.isFinite(latest)
    return {
      name: text(row, 'name'),
      periodMs: milliseconds(figure(row, 'period')),
      silentMs: isKnown ? Math.max(0, latest) : undefined,
    }
  })
}

/** MariaDB only counts heartbeats: svc waits for the next one, or compares with what earlier runs have read. */
async function countedHere(
  connection: DatabaseConnection,
  channels: readonly Channel[],
  context: CheckContext,
): Promise<readonly SignOfLife[]> {
  const soon = channels.filter(({ heartbeatMs = 0 }) => heartbeatMs > 0 && heartbeatMs <= maxWaitedMs)
  const waited = soon.length === 0 ? new Map<string, number>() : await waitForAll(connection, soon, context)
  return await Promise.all(
    channels.map(async ({ name, heartbeatMs: periodMs, received }) => {
      const here = waited.get(name)
      if (here !== undefined || received === undefined) return { name, periodMs, silentMs: here }
      const readings = await context.history(`received ${name}`, received, readingMs)
      const changed = readings?.findLastIndex(({ value }) => value !== received) ?? -1
      const oldest = readings?.[changed + 1]
      return { name, periodMs, silentMs: oldest && context.date().getTime() - oldest.at }
    }),
  )
}

/** Milliseconds that each source was silent, by name: waits until all have sent something, or are late. */
async function waitForAll(
  { ask }: DatabaseConnection,
  channels: readonly Channel[],
  { now, msLeft }: CheckContext,
): Promise<ReadonlyMap<string, number>> {
  const since = now()
  const endMs = Math.max(...channels.map(({ heartbeatMs = 0 }) => limitOf(heartbeatMs))) + 2 * againMs
  const end = since + Math.min(endMs, msLeft() / 2)
  const silent = new Map<string, number>()
  const awaited = new Map(channels.map((one) => [one.name, one]))
  while (awaited.size > 0) {
    const current = new Map((await readChannels(ask)).map((one) => [one.name, one]))
    // After the answer: a server that answers late shows nothing of the time before it.
    const elapsed = now() - since
    for (const [name, { received }] of awaited) {
      silent.set(name, elapsed)
      const one = current.get(name)
      // The check `replication` reports a source that is not connected any more.
      if (one?.receives !== 'Yes' || one.received !== received) awaited.delete(name)
    }
    if (elapsed >= end - since) break
    if (awaited.size > 0) await pause(againMs)
  }
  return silent
}

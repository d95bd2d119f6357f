import { type DatabaseConnection, figure, onDatabase, type Row, text } from '../../database/index.ts'
import { atMost, fail, ok, type Result, sharedRead, warn } from '../../engine/index.ts'
import { count } from '../../net/text.ts'
import { byName, milliseconds } from './checks.ts'

/** One source of a replica. Most replicas have a single source with an empty name. */
export type Channel = {
  readonly name: string
  /** `Yes`, `No`, `Connecting`, `Preparing`. */
  readonly receives: string
  readonly applies: string
  /** Undefined if the server does not know it. */
  readonly lagMs: number | undefined
  readonly errors: readonly string[]
  /** The filters that leave out changes, as the server shows them: `Replicate_Ignore_DB: test`. */
  readonly filters: readonly string[]
  /** Milliseconds between two heartbeats; undefined where only `performance_schema` shows them (MySQL). */
  readonly heartbeatMs: number | undefined
  /** How many heartbeats, and how many bytes of binary logs, the replica has received: grows while its source works. */
  readonly received: number | undefined
}

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

function channelOf(row: Row): Channel {
  const either = (...names: readonly string[]): string => names.map((name) => text(row, name)).find(Boolean) ?? ''
  const lag = figure(row, 'Seconds_Behind_Source') ?? figure(row, 'Seconds_Behind_Master')
  const period = figure(row, 'Slave_heartbeat_period')
  const heartbeats = figure(row, 'Slave_received_heartbeats')
  const position = figure(row, 'Read_Master_Log_Pos')
  return {
    name: either('Channel_Name', 'Connection_name'),
    receives: either('Replica_IO_Running', 'Slave_IO_Running'),
    applies: either('Replica_SQL_Running', 'Slave_SQL_Running'),
    lagMs: milliseconds(lag),
    errors: ['Last_IO_Error', 'Last_SQL_Error'].map((name) => text(row, name, 200)).filter(Boolean),
    filters: filtersOf(row),
    heartbeatMs: milliseconds(period),
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
/** What belongs to one server and is not replicated anywhere; hosted servers ignore such tables by default. */
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

import { figure, type Row, text } from './rows.ts'
import type { Ask } from './session.ts'

/** What the checks look at, as bare figures; durations in milliseconds. */
export type Threads = {
  readonly see: 'threads'
  readonly connected: number
  readonly running: number
  readonly most: number
  readonly upMs: number
}
export async function lookAtThreads(ask: Ask): Promise<Threads> {
  const status = named(
    await ask(`SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Threads_running', 'Uptime')`),
  )
  const most = named(await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name = 'max_connections'`))
  return {
    see: 'threads',
    connected: figure(status, 'threads_connected') ?? 0,
    running: figure(status, 'threads_running') ?? 0,
    most: figure(most, 'max_connections') ?? 0,
    upMs: (figure(status, 'uptime') ?? 0) * 1_000,
  }
}

/** Rows of a name and a value as one row. Names in small letters: servers differ in that. */
const named = (rows: readonly Row[]): Row =>
  Object.fromEntries(rows.map((row) => [text(row, 'Variable_name').toLowerCase(), row.Value]))

/** One source that a replica follows; most have one, and its name is empty. */
export type Channel = {
  readonly name: string
  /** `Yes`, `No`, `Connecting`, `Preparing`. */
  readonly receives: string
  readonly applies: string
  /** NULL while it is not known. */
  readonly lagMs: number | undefined
  readonly errors: readonly string[]
}
export type Replication = { readonly see: 'replication'; readonly channels: readonly Channel[] }
export async function lookAtReplication(ask: Ask): Promise<Replication> {
  const [row] = await ask('SELECT VERSION() AS version')
  const rows = await ask(statement(text(row, 'version')))
  return { see: 'replication', channels: rows.slice(0, 100).map(channel) }
}

/** The same question in the words of each server. */
export function statement(version: string): string {
  if (/mariadb/i.test(version)) return 'SHOW ALL SLAVES STATUS'
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number)
  const isNew = major > 8 || (major === 8 && (minor > 0 || patch >= 22))
  return isNew ? 'SHOW REPLICA STATUS' : 'SHOW SLAVE STATUS'
}

function channel(row: Row): Channel {
  const either = (...names: readonly string[]): string => names.map((name) => text(row, name)).find(Boolean) ?? ''
  const lag = figure(row, 'Seconds_Behind_Source') ?? figure(row, 'Seconds_Behind_Master')
  return {
    name: either('Channel_Name', 'Connection_name'),
    receives: either('Replica_IO_Running', 'Slave_IO_Running'),
    applies: either('Replica_SQL_Running', 'Slave_SQL_Running'),
    lagMs: lag === undefined ? undefined : lag * 1_000,
    errors: ['Last_IO_Error', 'Last_SQL_Error'].map((name) => text(row, name, 200)).filter(Boolean),
  }
}

export type Galera = {
  readonly see: 'galera'
  readonly on: boolean
  readonly ready: boolean
  readonly cluster: string
  readonly state: string
  readonly size: number
}
export async function lookAtGalera(ask: Ask): Promise<Galera> {
  const on = named(await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name = 'wsrep_on'`))
  const status = named(
    await ask(`SHOW GLOBAL STATUS WHERE Variable_name IN
      ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_cluster_size', 'wsrep_local_state_comment')`),
  )
  return {
    see: 'galera',
    on: text(on, 'wsrep_on') === 'ON',
    ready: text(status, 'wsrep_ready') === 'ON',
    cluster: text(status, 'wsrep_cluster_status'),
    state: text(status, 'wsrep_local_state_comment'),
    size: figure(status, 'wsrep_cluster_size') ?? 0,
  }
}

export type Transactions = {
  readonly see: 'transactions'
  readonly open: number
  readonly longestMs: number
  readonly thread: number | undefined
}
export async function lookAtTransactions(ask: Ask): Promise<Transactions> {
  // trx_started is in the time zone of the server, NOW() in that of the session.
  const [row] = await ask(`SELECT COUNT(*) AS open,
      SUBSTRING_INDEX(GROUP_CONCAT(trx_mysql_thread_id ORDER BY trx_started), ',', 1) AS thread,
      TIMESTAMPDIFF(SECOND, MIN(trx_started), COALESCE(CONVERT_TZ(NOW(), @@session.time_zone, 'SYSTEM'), NOW())) AS age
    FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> CONNECTION_ID()`)
  return {
    see: 'transactions',
    open: figure(row, 'open') ?? 0,
    longestMs: Math.max(0, figure(row, 'age') ?? 0) * 1_000,
    thread: figure(row, 'thread'),
  }
}

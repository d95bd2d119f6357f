import { figure, onDatabase, type Row, text } from '../../database/index.ts'
import { atLeast, atMost, fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { count } from '../../net/text.ts'

export const minute = 60_000

export const milliseconds = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : seconds * 1_000

/**
 * Combines rows of a name and a value into one row. Lower-cases the names, because servers differ in their spelling.
 */
export const byName = (rows: readonly Row[]): Row =>
  Object.fromEntries(rows.map((row) => [text(row, 'Variable_name').toLowerCase(), row.Value]))

export const threads = onDatabase({
  depth: 'Standard',
  results: {
    connections: 'Connections are available',
    running: 'The number of connections that run a statement',
    restarted: 'The server has not restarted recently',
  },
  settings: {
    connections: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 80 },
      doc: 'Connections in use (Threads_connected), as a share of max_connections',
    },
    running: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 60 },
      doc: 'Connections that run a statement (Threads_running), as a share of max_connections',
    },
    restarted: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: minute },
      doc: 'Minimum time since the start of the server',
    },
  },
  observe: async ({ ask }) => {
    const status = byName(
      await ask(`SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Threads_running', 'Uptime')`),
    )
    const limits = byName(await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name = 'max_connections'`))
    return {
      connected: figure(status, 'threads_connected'),
      running: figure(status, 'threads_running'),
      max: figure(limits, 'max_connections'),
      upMs: milliseconds(figure(status, 'uptime')),
    }
  },
  evaluate: ({ connected, running, max, upMs }, settings) => {
    const share = (threads: number | undefined): number | undefined =>
      threads === undefined || !max ? undefined : (threads / max) * 100
    return [
      atMost({
        check: 'connections',
        what:
          connected === undefined || !max ? 'the share of connections in use' : `${connected} of ${max} connections:`,
        value: share(connected),
        unit: 'percent',
        threshold: settings.connections,
      }),
      atMost({
        check: 'running',
        what:
          running === undefined || !max
            ? 'the share of running threads'
            : `${count(running, 'running thread')} of ${max}:`,
        value: share(running),
        unit: 'percent',
        threshold: settings.running,
      }),
      atLeast({
        check: 'restarted',
        what: 'up for',
        figure: 'the uptime',
        value: upMs,
        unit: 'duration',
        threshold: settings.restarted,
      }),
    ]
  },
})

/** The own account as the tables of privileges show it. A user name may contain an @, a host name may not. */
export const ownGrantee = `CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER())
  - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''',
  SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')`

/** One source of a replica. Most replicas have a single source with an empty name. */
type Channel = {
  readonly name: string
  /** `Yes`, `No`, `Connecting`, `Preparing`. */
  readonly receives: string
  readonly applies: string
  /** Undefined if the server does not know it. */
  readonly lagMs: number | undefined
  readonly errors: readonly string[]
}

export const mayReadReplication =
  'GRANT REPLICATION CLIENT ON *.* TO <account>; on MariaDB since 10.5: GRANT SLAVE MONITOR ON *.* TO <account>'

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
  observe: async ({ ask }) => {
    const [row] = await ask('SELECT VERSION() AS version')
    const rows = await ask(replicationStatement(text(row, 'version')))
    return { channels: rows.map(channelOf) }
  },
  evaluate: ({ channels }, { replica, replicationLag: threshold }) => {
    if (channels.length === 0) {
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
  return {
    name: either('Channel_Name', 'Connection_name'),
    receives: either('Replica_IO_Running', 'Slave_IO_Running'),
    applies: either('Replica_SQL_Running', 'Slave_SQL_Running'),
    lagMs: milliseconds(lag),
    errors: ['Last_IO_Error', 'Last_SQL_Error'].map((name) => text(row, name, 200)).filter(Boolean),
  }
}

function describeStopped({ name, receives, applies }: Channel): string {
  const source = name === '' ? '' : `${name}: `
  const io = receives === 'Yes' ? '' : `does not receive (IO thread: ${receives || 'unknown'})`
  const sql = applies === 'Yes' ? '' : `does not apply (SQL thread: ${applies || 'unknown'})`
  return `${source}${[io, sql].filter(Boolean).join(', ')}`
}

export const galera = onDatabase({
  // In Standard, because SELECT 1 passes on a node that refuses every other statement.
  depth: 'Standard',
  results: { galera: 'A Galera node accepts queries, replicates and is synced; left out elsewhere' },
  settings: {},
  observe: async ({ ask }) => {
    const variables = byName(
      await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name IN
        ('wsrep_on', 'wsrep_provider', 'wsrep_reject_queries', 'max_connections')`),
    )
    const status = byName(
      await ask(`SHOW GLOBAL STATUS WHERE Variable_name IN
        ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_cluster_size', 'wsrep_local_state_comment')`),
    )
    return {
      /** Whether the server answered at all: every server has max_connections. */
      answered: figure(variables, 'max_connections') !== undefined,
      /** The library that makes a server a Galera node; `none` or empty elsewhere. */
      provider: text(variables, 'wsrep_provider', 200),
      on: text(variables, 'wsrep_on'),
      rejects: text(variables, 'wsrep_reject_queries'),
      ready: text(status, 'wsrep_ready') === 'ON',
      cluster: text(status, 'wsrep_cluster_status'),
      state: text(status, 'wsrep_local_state_comment'),
      size: figure(status, 'wsrep_cluster_size'),
    }
  },
  evaluate: ({ answered, provider, on, rejects, ready, cluster, state, size }): Result<'galera'> | [] => {
    const isNode = provider !== '' && provider !== 'none'
    if (!answered || (isNode && on === '')) {
      return notChecked('galera', 'missing', 'the server does not report whether it is a Galera node')
    }
    if (isNode && on !== 'ON') {
      return fail('galera', 'data', `wsrep_on is ${on}: this node of a Galera cluster does not replicate its writes`)
    }
    if (on !== 'ON') return []
    const nodes = size === undefined ? 'an unknown number of nodes' : count(size, 'node')
    const summary = `${state || 'unknown state'}, ${cluster || 'unknown'} component of ${nodes}`
    if (/^ALL/i.test(rejects)) {
      return fail('galera', 'data', `refuses all queries of clients (wsrep_reject_queries is ${rejects}): ${summary}`)
    }
    if (!ready) return fail('galera', 'data', `not ready for queries: ${summary}`)
    if (cluster !== 'Primary') return fail('galera', 'data', `not in the primary component: ${summary}`)
    return state === 'Synced' ? ok('galera', summary) : warn('galera', summary)
  },
})

export const transactions = onDatabase({
  depth: 'Advanced',
  results: { 'longest transaction': 'The age of the longest open transaction' },
  settings: {
    longestTransaction: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 2 * minute, limit: 5 * minute },
      doc: 'How long an InnoDB transaction may be open',
    },
  },
  privilege: 'GRANT PROCESS ON *.* TO <account>',
  observe: async ({ ask }) => {
    // trx_started is in the server's time zone, NOW() in the session's.
    const [row] = await ask(`SELECT COUNT(*) AS open,
        SUBSTRING_INDEX(GROUP_CONCAT(trx_mysql_thread_id ORDER BY trx_started), ',', 1) AS thread,
        TIMESTAMPDIFF(SECOND, MIN(trx_started), COALESCE(CONVERT_TZ(NOW(), @@session.time_zone, 'SYSTEM'), NOW())) AS age
      FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> CONNECTION_ID()`)
    return {
      open: figure(row, 'open'),
      longestMs: milliseconds(figure(row, 'age')),
      thread: figure(row, 'thread'),
    }
  },
  evaluate: ({ open, longestMs, thread }, { longestTransaction: threshold }) => {
    if (open === undefined) {
      return notChecked('longest transaction', 'missing', 'the server does not report its open transactions')
    }
    if (open === 0) return ok('longest transaction', 'no other transaction is open')
    const what =
      longestMs === undefined
        ? 'the age of the longest transaction'
        : `${count(open, 'transaction is', 'transactions are')} open, the longest (thread ${thread ?? '?'}) for`
    const value = longestMs === undefined ? undefined : Math.max(0, longestMs)
    return atMost({ check: 'longest transaction', what, value, unit: 'duration', threshold })
  },
})

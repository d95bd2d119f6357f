import { count } from '../../../base/format.ts'
import { figure, limitOnDatabase, onDatabase, type Row, text } from '../../database/index.ts'
import { atLeast, atMost, notChecked, ok, warn } from '../../engine/index.ts'
import { grantee } from './errors.ts'

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
    'grant tables': 'Named only where the server lets in everybody as an administrator (skip_grant_tables)',
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
      isMinimum: true,
      doc: 'Minimum time since the start of the server',
    },
  },
  observe: async ({ ask }) => {
    const status = byName(
      await ask(`SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Threads_running', 'Uptime')`),
    )
    const limits = byName(
      await ask(`SHOW GLOBAL VARIABLES 
        WHERE Variable_name IN ('max_connections', 'skip_grant_tables')`),
    )
    return {
      letsInEverybody: text(limits, 'skip_grant_tables') === 'ON',
      connected: figure(status, 'threads_connected'),
      running: figure(status, 'threads_running'),
      max: figure(limits, 'max_connections'),
      upMs: milliseconds(figure(status, 'uptime')),
    }
  },
  evaluate: ({ letsInEverybody, connected, running, max, upMs }, settings) => {
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
      ...(letsInEverybody
        ? [warn('grant tables', 'skip_grant_tables is on: everybody who reaches the server may do everything')]
        : []),
    ]
  },
})

/** The own account as the tables of privileges show it. A user name may contain an @, a host name may not. */
export const ownGrantee = `CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER())
  - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''',
  SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')`

export const transactions = limitOnDatabase({
  depth: 'Advanced',
  check: 'longest transaction',
  proves: 'The age of the longest open transaction',
  setting: 'longestTransaction',
  unit: 'duration',
  default: { warn: 2 * minute, limit: 5 * minute },
  doc: 'How long an InnoDB transaction may be open',
  privilege: 'GRANT PROCESS ON *.* TO <account>',
  observe: async ({ ask }) => {
    // trx_started is in the server's time zone, NOW() in the session's.
    const [row] = await ask(`SELECT COUNT(*) AS open,
        SUBSTRING_INDEX(GROUP_CONCAT(trx_mysql_thread_id ORDER BY trx_started), ',', 1) AS thread,
        TIMESTAMPDIFF(SECOND, MIN(trx_started), COALESCE(CONVERT_TZ(NOW(), @@session.time_zone, 'SYSTEM'), NOW())) AS age
      FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> CONNECTION_ID()`)
    return {
      open: figure(row, 'open'),
      maxMs: milliseconds(figure(row, 'age')),
      thread: figure(row, 'thread'),
    }
  },
  evaluate: ({ open, maxMs, thread }, compare) => {
    if (open === undefined) {
      return notChecked('longest transaction', 'missing', 'the server does not report its open transactions')
    }
    if (open === 0) return ok('longest transaction', 'no other transaction is open')
    const what =
      maxMs === undefined
        ? 'the age of the longest transaction'
        : `${count(open, 'transaction is', 'transactions are')} open, the longest (thread ${thread ?? '?'}) for`
    const value = maxMs === undefined ? undefined : Math.max(0, maxMs)
    return compare({ what, value })
  },
})

export const historyList = limitOnDatabase({
  depth: 'Advanced',
  check: 'history list',
  proves: 'InnoDB removes old row versions as fast as they arise',
  setting: 'historyList',
  unit: 'count',
  default: { warn: 100_000, limit: 1_000_000 },
  doc: 'Maximum length of the history list of InnoDB: transactions whose old row versions are not removed yet',
  privilege: 'GRANT PROCESS ON *.* TO <account>',
  observe: async ({ ask }) => {
    // MariaDB and MySQL differ in the column that says whether the figure is counted.
    const [row] = await ask("SELECT * FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'")
    const counted = row && Object.entries(row).find(([name]) => /^(enabled|status)$/i.test(name))?.[1]
    const value = row && Object.keys(row).find((name) => name.toLowerCase() === 'count')
    return {
      isCounted: counted === undefined ? undefined : /^(1|enabled)$/.test(text({ counted }, 'counted')),
      length: value === undefined ? undefined : figure(row, value),
    }
  },
  evaluate: ({ isCounted, length: value }, compare) => {
    if (isCounted === false) {
      const details = ["next: SET GLOBAL innodb_monitor_enable = 'trx_rseg_history_len'"]
      return notChecked('history list', 'missing', 'the server does not count trx_rseg_history_len', { details })
    }
    const what = 'transactions in the history list:'
    const figure = 'the length of the history list'
    const details = [
      'a long transaction or a slow purge keeps old row versions: SELECT * FROM information_schema.innodb_trx',
    ]
    return compare({ what, figure, value, details })
  },
})

/** How the servers call the wait of a commit for the cluster or a replica. Threads of the server wait so all the time. */
const clusterWaits = `(state IN ('Waiting for certification', 'Waiting for flow control', 'Waiting for TOI DDL',
    'Waiting to execute in isolation', 'waiting for handler commit') OR state LIKE 'Waiting for semi-sync ACK %')
  AND user NOT IN ('system user', 'event_scheduler')`

export const lockWait = limitOnDatabase({
  depth: 'Standard',
  check: 'lock wait',
  proves:
    'No session waits too long for a global, metadata, table or backup lock, or with a commit for its cluster or a replica',
  setting: 'lockWait',
  unit: 'duration',
  default: { warn: minute, limit: 2 * minute },
  doc: 'Maximum time that a session waits for a global, metadata, table or backup lock, or with a commit for its cluster (Galera, group replication) or a semi-synchronous replica; row locks do not count',
  privilege: 'GRANT PROCESS ON *.* TO <account>',
  observe: async ({ ask }) => {
    // Without PROCESS, the list contains only the own sessions, without an error. Reading innodb_trx is refused then.
    await ask('SELECT COUNT(*) AS open FROM information_schema.innodb_trx')
    const rows = await ask(`SELECT id, state, time AS waited
      FROM information_schema.processlist
      WHERE id <> CONNECTION_ID()
        AND (state LIKE 'Waiting for % lock' OR state = 'Waiting for table flush' OR ${clusterWaits})
      ORDER BY time DESC LIMIT 1000`)
    const [all] = await ask('SELECT COUNT(*) AS total FROM information_schema.processlist')
    const [first] = rows
    return {
      total: figure(all, 'total'),
      waiting: rows.length,
      maxMs: milliseconds(figure(first, 'waited')),
      session: figure(first, 'id'),
      /** The server's name for the wait: `Waiting for backup lock`. */
      state: text(first, 'state'),
    }
  },
  evaluate: ({ total, waiting, maxMs: value, session, state }, compare) => {
    // The own session is always in the list.
    if (!total) return notChecked('lock wait', 'missing', 'the server does not report its sessions')
    if (waiting === 0) return ok('lock wait', 'no session is waiting for a lock')
    const sessions = count(waiting, 'session is', 'sessions are')
    const isLock = /lock|flush/.test(state)
    const lock = isLock ? ' for a lock' : ''
    const what =
      value === undefined
        ? 'how long sessions wait for a lock'
        : `${sessions} waiting${lock}, the longest (thread ${session ?? '?'}, ${lowerFirst(state)}) for`
    const details = [
      isLock
        ? 'a backup, FLUSH TABLES WITH READ LOCK, LOCK TABLES, ALTER TABLE or a long transaction holds it: SHOW FULL PROCESSLIST'
        : 'the commit waits for another node: flow control, a lost majority, or no semi-synchronous replica',
    ]
    return compare({ what, value, details })
  },
})

const lowerFirst = (words: string): string => words.slice(0, 1).toLowerCase() + words.slice(1)

/** The bits of the integer types. */
const bits = `CASE c.data_type WHEN 'tinyint' THEN 8 WHEN 'smallint' THEN 16 WHEN 'mediumint' THEN 24
  WHEN 'int' THEN 32 WHEN 'bigint' THEN 64 END`
/** The largest value of a column, as a DOUBLE: a BIGINT would overflow. */
const largest = `POW(2, ${bits} - IF(c.column_type LIKE '%unsigned%', 0, 1)) - 1`

/** The database of the url; without one, all databases but those of the server. */
const inScope = (column: string): string => `(${column} = DATABASE() OR DATABASE() IS NULL AND
  ${column} NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema'))`

function columnOf(row: Row) {
  const [next, max] = [figure(row, 'next'), figure(row, 'most')]
  return {
    /** For example `orders.jobs.id`. */
    name: ['db', 'tbl', 'col'].map((name) => text(row, name)).join('.'),
    type: text(row, 'type'),
    /** Percent; undefined if the server does not report it. */
    used: next === undefined || !max ? undefined : (Math.max(0, next - 1) / max) * 100,
  }
}

export const autoIncrement = limitOnDatabase({
  depth: 'Advanced',
  check: 'auto-increment',
  proves: 'AUTO_INCREMENT columns have values left, of the tables in the database of the url (default: all)',
  setting: 'autoIncrement',
  unit: 'percent',
  default: { warn: 70, limit: 90 },
  doc: 'Maximum use of the values of an AUTO_INCREMENT column, in percent of what its type can hold',
  privilege: 'GRANT SELECT ON <database>.* TO <account>',
  observe: async ({ ask, user }) => {
    const [scope] =
      await ask(`SELECT DATABASE() AS db, CURRENT_USER() AS account, (SELECT COUNT(*) FROM information_schema.tables AS t
        WHERE t.table_type = 'BASE TABLE' AND ${inScope('t.table_schema')}) AS tables,
      (SELECT COUNT(*) FROM information_schema.user_privileges
        WHERE privilege_type = 'SELECT' AND grantee = ${ownGrantee}) +
      (SELECT COUNT(*) FROM information_schema.schema_privileges AS p WHERE privilege_type = 'SELECT'
        AND grantee = ${ownGrantee} AND DATABASE() LIKE p.table_schema) AS may`)
    const rows = await ask(`SELECT t.table_schema AS db, t.table_name AS tbl, c.column_name AS col,
        c.column_type AS type, t.auto_increment AS next, ${largest} AS most
      FROM information_schema.columns AS c
        JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
      WHERE c.extra LIKE '%auto_increment%' AND t.table_type = 'BASE TABLE' AND t.auto_increment IS NOT NULL
        AND ${bits} IS NOT NULL AND ${inScope('t.table_schema')}
      ORDER BY next / most DESC LIMIT 10`)
    const database = text(scope, 'db') || '*'
    return {
      tables: figure(scope, 'tables'),
      /** Whether the account may read all tables, so that none is hidden from it. */
      mayRead: figure(scope, 'may') !== 0,
      grant: `GRANT SELECT ON ${database === '*' ? '*' : `\`${database}\``}.* TO ${grantee(text(scope, 'account')) ?? `'${user}'`}`,
      columns: rows.map(columnOf),
    }
  },
  evaluate: ({ tables, mayRead, grant, columns }, compare, { autoIncrement: threshold }) => {
    const check = 'auto-increment'
    if (tables === undefined) return notChecked(check, 'missing', 'the server does not report its tables')
    if (tables === 0 && !mayRead) {
      return notChecked(check, 'permission', `this account sees no table and needs ${grant}`, { details: [grant] })
    }
    const [fullest, ...others] = columns
    if (!fullest) return ok(check, `none of ${count(tables, 'table')} has an AUTO_INCREMENT column`)
    const { warn = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY } = threshold
    const full = others.filter(({ used = 0 }) => used > Math.min(warn, limit))
    const { name, type, used: value } = fullest
    const what = `${name} (${type}), values used:`
    const figure = `the next value of ${name}`
    const details = full.map((one) => `also ${one.name}`)
    return compare({ what, figure, value, details })
  },
})

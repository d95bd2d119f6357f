import { figure, onDatabase, text, truth } from '../../database/index.ts'
import { atLeast, atMost, fail, ok, type Result, warn } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { count } from '../../net/text.ts'
import { grantTo } from './errors.ts'

const minute = 60_000

/** The grant that lets an account see all sessions and replicas. */
export const privilege = 'GRANT pg_monitor TO <account>'

/** An SQL expression for an interval in milliseconds. */
export const inMs = (interval: string): string => `(extract(epoch FROM ${interval}) * 1000)::float8`

/**
 * The result for data that the server hides from this account in part. Never ok, because the hidden part may contain
 * the fault. `account` is the account's name, and `one` a singular noun for the `hidden` items.
 */
export const hiddenFrom = <const Name extends string>(
  check: Name,
  account: string,
  hidden: number,
  one: string,
): Result<Name> =>
  fail(check, 'data', `${count(hidden, one)} ${hidden === 1 ? 'is' : 'are'} hidden from this account`, {
    details: [grantTo(account)],
  })

// Each check sends one statement, for PostgreSQL 10 and later. Columns that older versions lack are read with to_jsonb.

export const server = onDatabase({
  depth: 'Standard',
  results: {
    role: 'The server has the expected role, primary or standby',
    restarted: 'The server has not restarted recently',
  },
  settings: {
    role: {
      type: 'choice',
      values: ['primary', 'standby', 'any'],
      default: 'any',
      doc: 'The expected role of the server',
    },
    restarted: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: minute },
      doc: 'Minimum uptime of the server',
    },
  },
  observe: async ({ ask }) => {
    // Not transaction_read_only, which is always on in this transaction.
    const [row] = await ask(`SELECT pg_is_in_recovery() AS standby, current_setting('server_version') AS version,
      current_setting('default_transaction_read_only') = 'on' AS read_only,
      ${inMs('clock_timestamp() - pg_postmaster_start_time()')} AS up`)
    return {
      role: truth(row, 'standby') ? ('standby' as const) : ('primary' as const),
      /** True if transactions are read-only by default. */
      readOnly: truth(row, 'read_only'),
      version: text(row, 'version').split(' ')[0] ?? '',
      upMs: figure(row, 'up') ?? 0,
    }
  },
  evaluate: ({ upMs, ...server }, { role, restarted: threshold }) => [
    { ...evaluateRole(server, role), facts: { role: server.role, version: server.version } },
    atLeast({ check: 'restarted', what: 'up for', value: upMs, unit: 'duration', threshold }),
  ],
})

type Role = 'primary' | 'standby'

function evaluateRole(
  { role, version, readOnly }: { readonly role: Role; readonly version: string; readonly readOnly: boolean },
  expected: Role | 'any',
): Result<'role'> {
  const message = `${role}, PostgreSQL ${version}`
  if (expected !== 'any' && expected !== role) {
    return fail('role', 'data', `role is ${role}, expected ${expected}`)
  }
  if (role === 'standby' || !readOnly) return ok('role', message)
  const but = `${message}, but read-only (default_transaction_read_only)`
  return expected === 'primary' ? fail('role', 'data', but) : warn('role', but)
}

export const connections = onDatabase({
  depth: 'Standard',
  results: { connections: 'Enough connections remain for ordinary accounts' },
  settings: {
    connections: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 80, limit: 95 },
      doc: 'Connections in use, in percent of those available to ordinary accounts',
    },
  },
  observe: async ({ ask }) => {
    // In rows of other accounts, this account sees no backend_type, but it sees the user.
    const [row] = await ask(`SELECT
      count(*) FILTER (WHERE backend_type = 'client backend' OR (backend_type IS NULL AND usesysid IS NOT NULL)) AS used,
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0) AS usable FROM pg_stat_activity`)
    return { used: figure(row, 'used') ?? 0, usable: figure(row, 'usable') ?? 0 }
  },
  evaluate: ({ used, usable }, { connections: threshold }) =>
    atMost({
      check: 'connections',
      what: `${used} of ${usable} usable connections:`,
      value: usable > 0 ? (used / usable) * 100 : 100,
      unit: 'percent',
      threshold,
    }),
})

export const longestTransaction = onDatabase({
  depth: 'Standard',
  results: { 'longest transaction': 'No client keeps a transaction open for too long' },
  settings: {
    longestTransaction: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 2 * minute, limit: 5 * minute },
      doc: 'Maximum duration of a client transaction',
    },
  },
  privilege,
  observe: async ({ ask, user }) => {
    const [row] = await ask(`WITH other AS (SELECT * FROM pg_stat_activity WHERE pid <> pg_backend_pid())
      SELECT (SELECT count(*) FROM other WHERE backend_type IS NULL AND usesysid IS NOT NULL) AS hidden,
        oldest.pid, oldest.usename, oldest.state, ${inMs('clock_timestamp() - oldest.xact_start')} AS longest
      FROM (SELECT 1) AS one LEFT JOIN LATERAL (SELECT * FROM other
        WHERE backend_type = 'client backend' AND xact_start IS NOT NULL ORDER BY xact_start LIMIT 1) AS oldest ON true`)
    const isOpen = figure(row, 'pid') !== undefined
    return {
      user,
      /** The number of sessions whose details this account cannot see. */
      hidden: figure(row, 'hidden') ?? 0,
      longestMs: figure(row, 'longest') ?? 0,
      /**
       * The session with the longest transaction, e.g. `pid 42, user app, idle in transaction`; empty if none is open.
       */
      who: isOpen ? `pid ${text(row, 'pid')}, user ${text(row, 'usename')}, ${text(row, 'state')}` : '',
    }
  },
  evaluate: ({ user, hidden, longestMs: value, who }, { longestTransaction: threshold }) => {
    const check = 'longest transaction'
    const what = who === '' ? 'no transaction is open, longest' : `${who}, for`
    const result = atMost({ check, what, value, unit: 'duration', threshold })
    if (result.status !== 'failed' && hidden > 0) return hiddenFrom(check, user, hidden, 'session')
    return who === '' ? ok(check, 'no other transaction is open') : result
  },
})

export const lockWait = onDatabase({
  depth: 'Standard',
  results: { 'lock wait': 'No session waits too long for a lock' },
  settings: {
    lockWait: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: minute, limit: 2 * minute },
      doc: 'Maximum time that a session waits for a lock',
    },
  },
  observe: async ({ ask }) => {
    // Since version 14, the server reports when the wait began; before, only when the query began.
    const [row] = await ask(`SELECT count(*) OVER () AS waiting, l.pid, coalesce(${inMs(`clock_timestamp() -
        CASE WHEN current_setting('server_version_num')::int >= 140000 THEN (to_jsonb(l)->>'waitstart')::timestamptz
             ELSE a.query_start END`)}, 0) AS waited
      FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a USING (pid) WHERE NOT l.granted ORDER BY waited DESC LIMIT 1`)
    return {
      waiting: figure(row, 'waiting') ?? 0,
      longestMs: figure(row, 'waited') ?? 0,
      /** Of the session that has waited longest. */
      pid: figure(row, 'pid'),
    }
  },
  evaluate: ({ waiting, longestMs, pid }, { lockWait: threshold }) => {
    if (waiting === 0) return ok('lock wait', 'no session is waiting for a lock')
    return atMost({
      check: 'lock wait',
      what: `${count(waiting, 'session is', 'sessions are')} waiting for a lock, the longest for`,
      value: longestMs,
      unit: 'duration',
      threshold,
      details: pid === undefined ? [] : [`inspect: SELECT pg_blocking_pids(${pid})`],
    })
  },
})

export const wraparound = onDatabase({
  depth: 'Advanced',
  results: { wraparound: 'Transaction IDs are frozen long before they run out' },
  settings: {
    wraparound: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 90, limit: 95 },
      doc: 'Age of the oldest transaction ID, in percent of the age at which the server takes emergency measures (vacuum_failsafe_age)',
    },
  },
  observe: async ({ ask }) => {
    // The server enforces a failsafe of at least 105 % of the age that forces autovacuum.
    const ages = (kind: string, age: string, name: string, forced: string): string =>
      `SELECT '${kind}' AS kind, datname, ${age}::float8 AS age, greatest(
        coalesce(current_setting('${name}', true)::float8, 1.6e9), 1.05 * current_setting('${forced}')::float8) AS failsafe
       FROM pg_database`
    const [row] = await ask(`SELECT * FROM (
      ${ages('transaction', 'age(datfrozenxid)', 'vacuum_failsafe_age', 'autovacuum_freeze_max_age')} UNION ALL
      ${ages('multixact', 'mxid_age(datminmxid)', 'vacuum_multixact_failsafe_age', 'autovacuum_multixact_freeze_max_age')}
      ) AS ages ORDER BY age / failsafe DESC LIMIT 1`)
    return {
      database: text(row, 'datname'),
      age: figure(row, 'age') ?? 0,
      /** The age at which the failsafe makes the server freeze at top priority. */
      failsafe: figure(row, 'failsafe') ?? 1,
      of: row?.kind === 'multixact' ? ('multixact' as const) : ('transaction' as const),
    }
  },
  evaluate: ({ database, age, failsafe, of }, { wraparound: threshold }) =>
    atMost({
      check: 'wraparound',
      what: `oldest ${of} ID, in ${database}, is at`,
      value: (age / failsafe) * 100,
      unit: 'percent',
      threshold,
      details: [`age ${age}; emergency measures begin at ${failsafe}`],
    }),
})

export const archiver = onDatabase({
  depth: 'Advanced',
  results: { archiver: 'WAL files are archived' },
  settings: {},
  observe: async ({ ask }) => {
    const [row] = await ask(`SELECT current_setting('archive_mode') <> 'off' AS on, failed_count AS failures,
      coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) AS failing, last_failed_wal AS wal,
      ${inMs('clock_timestamp() - last_archived_time')} AS since FROM pg_stat_archiver`)
    return {
      on: truth(row, 'on'),
      /** True if the last attempt failed. */
      failing: truth(row, 'failing'),
      failures: figure(row, 'failures') ?? 0,
      lastFailedFile: text(row, 'wal'),
      /** Undefined if it has never succeeded. */
      sinceSuccessMs: figure(row, 'since'),
    }
  },
  evaluate: ({ on, failing, failures, lastFailedFile, sinceSuccessMs }) => {
    if (!on) return ok('archiver', 'archive_mode is off, so there is nothing to archive')
    if (!failing) return ok('archiver', 'last WAL file archived')
    const since = sinceSuccessMs === undefined ? 'never succeeded' : `last success ${showDuration(sinceSuccessMs)} ago`
    const message = `archiving is failing: ${count(failures, 'failure')}, most recently for ${lastFailedFile}; ${since}`
    return fail('archiver', 'data', message, { details: ["check archive_command and the server's log"] })
  },
})

export const preparedTransactions = onDatabase({
  depth: 'Advanced',
  results: { 'prepared transactions': 'No prepared transaction has been abandoned' },
  settings: {
    preparedTransactions: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 1_000, limit: 30_000 },
      doc: 'Maximum time that a prepared transaction waits for its second phase',
    },
  },
  observe: async ({ ask }) => {
    const [row] = await ask(`SELECT count(*) OVER () AS count, gid, owner, database,
      ${inMs('clock_timestamp() - prepared')} AS age FROM pg_prepared_xacts ORDER BY prepared LIMIT 1`)
    return {
      prepared: figure(row, 'count') ?? 0,
      oldestMs: figure(row, 'age') ?? 0,
      who: row ? `${text(row, 'gid')} of ${text(row, 'owner')} in ${text(row, 'database')}` : '',
    }
  },
  evaluate: ({ prepared, oldestMs: value, who }, { preparedTransactions: threshold }) => {
    if (prepared === 0) return ok('prepared transactions', 'none')
    const what = `${count(prepared, 'transaction is', 'transactions are')} waiting for the second phase, the oldest (${who}) for`
    return atMost({ check: 'prepared transactions', what, value, unit: 'duration', threshold })
  },
})

export const checksumFailures = onDatabase({
  depth: 'Advanced',
  results: { 'checksum failures': 'No page with a wrong checksum has been read' },
  settings: {},
  observe: async ({ ask }) => {
    const rows = await ask(`SELECT current_setting('data_checksums') = 'on' AS on, coalesce(datname, 'shared') AS name,
        coalesce((to_jsonb(d)->>'checksum_failures')::float8, 0) AS failures
      FROM pg_stat_database AS d ORDER BY failures DESC LIMIT 100`)
    const failed = rows.filter((row) => (figure(row, 'failures') ?? 0) > 0)
    return {
      on: truth(rows[0], 'on'),
      failures: failed.map((row) => `${text(row, 'name')}: ${figure(row, 'failures')}`),
    }
  },
  evaluate: ({ on, failures }) => {
    if (!on) return ok('checksum failures', 'data checksums are off, so there is nothing to count')
    if (failures.length === 0) return ok('checksum failures', 'none')
    const first = failures.slice(0, 3).join(', ')
    const message = `pages with wrong checksums were read (${first}): suspect the disk or the memory`
    return fail('checksum failures', 'data', message, {
      details: [...failures.slice(3), 'next: restore a backup of these databases elsewhere and compare'],
    })
  },
})

/** In the order of their results. */
export const sessionChecks = [server, connections, longestTransaction, lockWait]
export const maintenanceChecks = [wraparound, archiver, preparedTransactions, checksumFailures]

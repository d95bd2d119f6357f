import { count, showDuration } from '../../../base/format.ts'
import type { SettingsSpec } from '../../../base/settings/index.ts'
import {
  type DatabaseConnection,
  figure,
  flag,
  limitOnDatabase,
  onDatabase,
  type Row,
  text,
  truth,
} from '../../database/index.ts'
import { atLeast, atMost, fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { grantTo } from './errors.ts'

const minute = 60_000

/** The grant that lets an account see all sessions and replicas. */
export const privilege = 'GRANT pg_monitor TO <account>'

/** An SQL expression for an interval in milliseconds. */
export const inMs = (interval: string): string => `(extract(epoch FROM ${interval}) * 1000)::float8`

/**
 * The result for data that the server hides from this account in part: the hidden part may contain the fault. `account`
 * is the account's name, and `one` a singular noun for the `hidden` items.
 */
export const hiddenFrom = <const Name extends string>(
  check: Name,
  account: string,
  hidden: number,
  one: string,
): Result<Name> =>
  notChecked(
    check,
    'permission',
    hiddenWithout(`${count(hidden, one)} ${hidden === 1 ? 'is' : 'are'}`, grantTo(account)),
    { details: [grantTo(account)] },
  )

/** `what` ends with a verb: `3 sessions are`. */
export const hiddenWithout = (what: string, grant: string): string =>
  `${what} hidden from this account, which needs ${grant}`

const severity: Record<Result['status'], number> = { ok: 0, warning: 1, failed: 2 }

/** Results of several items, with those that need attention first. */
export const worstFirst = <Name extends string>(results: readonly Result<Name>[]): readonly Result<Name>[] =>
  results.toSorted((a, b) => severity[b.status] - severity[a.status])

/**
 * An SQL expression that is true if a setting of svc's own role (ALTER ROLE … SET) makes its transactions read-only: it
 * hides the setting of the server, and other clients may write. The server makes all rows of pg_settings to read one.
 */
export const roleReadsOnly = `CASE WHEN current_setting('default_transaction_read_only') = 'on'
  THEN (SELECT source IN ('user', 'database user') FROM pg_settings WHERE name = 'default_transaction_read_only') END`

/** The columns of `readRole`. `missing` is an argument for settings that the server may not have. */
const roleColumns = (missing = ''): string => `pg_is_in_recovery() AS standby,
  current_setting('synchronous_standby_names'${missing}) AS names, current_setting('synchronous_commit'${missing}) AS commit`

const primaries = new WeakMap<DatabaseConnection, Row>()

/** Only a primary keeps its role as long as a connection lasts: a standby may be promoted at any time. */
function keepPrimary(connection: DatabaseConnection, row: Row | undefined): Row | undefined {
  if (row && flag(row, 'standby') === false && typeof row.names === 'string') primaries.set(connection, row)
  return row
}

/**
 * The role of the server, from which most checks learn that they have nothing more to ask: `standby`, and the settings
 * `names` (synchronous_standby_names) and `commit` (synchronous_commit).
 */
export const readRole = async (connection: DatabaseConnection): Promise<Row | undefined> =>
  primaries.get(connection) ?? keepPrimary(connection, (await connection.ask(`SELECT ${roleColumns()}`))[0])

/** Whether the server of this connection has said that it is a primary. */
export const isKnownPrimary = (connection: DatabaseConnection): boolean => primaries.has(connection)

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
      isMinimum: true,
      doc: 'Minimum uptime of the server',
    },
  },
  observe: async (connection) => {
    // Not transaction_read_only, which is always on in this transaction.
    const [row] = await connection.ask(`SELECT ${roleColumns(', true')}, current_setting('server_version') AS version,
      current_setting('default_transaction_read_only') = 'on' AS read_only, ${roleReadsOnly} AS role_reads_only,
      ${inMs('clock_timestamp() - pg_postmaster_start_time()')} AS up`)
    keepPrimary(connection, row)
    return {
      isStandby: flag(row, 'standby'),
      /** True if transactions are read-only by default. */
      readOnly: truth(row, 'read_only'),
      /** True if only those of svc's own role are. */
      roleReadsOnly: truth(row, 'role_reads_only'),
      version: text(row, 'version').split(' ')[0] ?? '',
      upMs: figure(row, 'up'),
    }
  },
  evaluate: ({ upMs, ...server }, { role, restarted: threshold }) => [
    evaluateRole(server, role),
    atLeast({ check: 'restarted', what: 'up for', value: upMs, unit: 'duration', threshold }),
  ],
})

type Server = {
  readonly isStandby: boolean | undefined
  readonly version: string
  readonly readOnly: boolean
  readonly roleReadsOnly: boolean
}

function evaluateRole(
  { isStandby, version, readOnly, roleReadsOnly }: Server,
  expected: 'primary' | 'standby' | 'any',
): Result<'role'> {
  if (isStandby === undefined) return notChecked('role', 'missing', 'the server does not report its role')
  const role = isStandby ? 'standby' : 'primary'
  const facts = { role, version }
  const message = `${role}, PostgreSQL ${version}`
  if (expected !== 'any' && expected !== role) {
    return fail('role', 'data', `role is ${role}, expected ${expected}`, { facts })
  }
  if (isStandby || !readOnly) return ok('role', message, { facts })
  if (roleReadsOnly) {
    const note = 'the role of svc has default_transaction_read_only, which says nothing about other clients'
    return ok('role', message, { facts, details: [note] })
  }
  const but = `${message}, but read-only (default_transaction_read_only)`
  return expected === 'primary' ? fail('role', 'data', but, { facts }) : warn('role', but, { facts })
}

export const connectionsSetting = {
  type: 'threshold',
  unit: 'percent',
  default: { warn: 80, limit: 95 },
  doc: 'Connections in use, in percent of those available to ordinary accounts, and in percent of those that one role or database may have',
} as const satisfies SettingsSpec[string]

export const connections = onDatabase({
  depth: 'Standard',
  results: { connections: 'Enough connections remain for ordinary accounts' },
  settings: { connections: connectionsSetting },
  observe: async ({ ask }) => {
    // In rows of other accounts, this account sees no backend_type, but it sees the user.
    const [row] = await ask(`SELECT
      count(*) FILTER (WHERE backend_type = 'client backend' OR (backend_type IS NULL AND usesysid IS NOT NULL)) AS used,
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0) AS usable FROM pg_stat_activity`)
    return { used: figure(row, 'used'), usable: figure(row, 'usable') }
  },
  evaluate: ({ used, usable }, { connections: threshold }) => {
    if (used === undefined || usable === undefined) {
      return notChecked('connections', 'missing', 'the number of connections is not reported')
    }
    return atMost({
      check: 'connections',
      what: `${used} of ${usable} usable connections:`,
      value: usable > 0 ? (used / usable) * 100 : 100,
      unit: 'percent',
      threshold,
    })
  },
})

export const transactionDuration = limitOnDatabase({
  depth: 'Standard',
  check: 'longest transaction',
  proves: 'No client keeps a transaction open for too long',
  setting: 'longestTransaction',
  unit: 'duration',
  default: { warn: 2 * minute, limit: 5 * minute },
  doc: 'Maximum duration of a client transaction',
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
      hidden: figure(row, 'hidden'),
      maxMs: figure(row, 'longest'),
      /**
       * The session with the longest transaction, e.g. `pid 42, user app, idle in transaction`; empty if none is open.
       */
      who: isOpen ? `pid ${text(row, 'pid')}, user ${text(row, 'usename')}, ${text(row, 'state')}` : '',
    }
  },
  evaluate: ({ user, hidden, maxMs: value, who }, compare) => {
    const check = 'longest transaction'
    if (hidden === undefined) return notChecked(check, 'missing', 'the sessions are not reported')
    const none = ok(check, 'no other transaction is open')
    const result = who === '' ? none : compare({ what: `${who}, for`, value })
    return hidden > 0 && result.status !== 'failed' ? hiddenFrom(check, user, hidden, 'session') : result
  },
})

export const idleInTransaction = limitOnDatabase({
  depth: 'Advanced',
  check: 'idle in transaction',
  proves: 'No session keeps a transaction open without using it',
  setting: 'idleInTransaction',
  unit: 'duration',
  default: { warn: 5 * minute, limit: 30 * minute },
  doc: 'Maximum time that a session is idle within a transaction',
  privilege,
  observe: async ({ ask, user }) => {
    const [row] = await ask(`WITH other AS (SELECT * FROM pg_stat_activity WHERE pid <> pg_backend_pid())
      SELECT (SELECT count(*) FROM other WHERE backend_type IS NULL AND usesysid IS NOT NULL) AS hidden,
        (SELECT count(*) FROM other WHERE state LIKE 'idle in transaction%') AS idle,
        longest.pid, longest.usename, ${inMs('clock_timestamp() - longest.state_change')} AS longest
      FROM (SELECT 1) AS one LEFT JOIN LATERAL (SELECT * FROM other
        WHERE state LIKE 'idle in transaction%' ORDER BY state_change LIMIT 1) AS longest ON true`)
    return {
      user,
      /** The number of sessions whose details this account cannot see. */
      hidden: figure(row, 'hidden'),
      idle: figure(row, 'idle'),
      maxMs: figure(row, 'longest'),
      /** The session that has been idle for longest, e.g. `pid 42, user app`. */
      who: `pid ${text(row, 'pid')}, user ${text(row, 'usename')}`,
    }
  },
  evaluate: ({ user, hidden, idle, maxMs: value, who }, compare) => {
    const check = 'idle in transaction'
    if (hidden === undefined || idle === undefined) return notChecked(check, 'missing', 'the sessions are not reported')
    const what = `${count(idle, 'session is', 'sessions are')} idle in a transaction, the longest (${who}) for`
    const none = ok(check, 'no session is idle in a transaction')
    const result = idle === 0 ? none : compare({ what, value })
    return hidden > 0 && result.status !== 'failed' ? hiddenFrom(check, user, hidden, 'session') : result
  },
})

export const lockWait = limitOnDatabase({
  depth: 'Standard',
  check: 'lock wait',
  proves: 'No session waits too long for a lock',
  setting: 'lockWait',
  unit: 'duration',
  default: { warn: minute, limit: 2 * minute },
  doc: 'Maximum time that a session waits for a lock',
  privilege,
  observe: async ({ ask, user }) => {
    // Since version 14, the server reports when the wait began, except in its first moment. Older versions report only
    // when the query began, and hide that from some accounts.
    const [row] = await ask(`SELECT (SELECT count(*) FROM pg_locks WHERE NOT granted) AS waiting,
      longest.* FROM (SELECT 1) AS one LEFT JOIN LATERAL (SELECT count(*) FILTER (WHERE since IS NULL) OVER () AS hidden,
          pid, ${inMs('clock_timestamp() - since')} AS waited
        FROM (SELECT l.pid, CASE WHEN current_setting('server_version_num')::int >= 140000
            THEN coalesce((to_jsonb(l)->>'waitstart')::timestamptz, clock_timestamp()) ELSE a.query_start END AS since
          FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a USING (pid) WHERE NOT l.granted) AS waits
        ORDER BY since NULLS LAST LIMIT 1) AS longest ON true`)
    return {
      user,
      waiting: figure(row, 'waiting'),
      /** The number of waiting sessions whose details this account cannot see. */
      hidden: figure(row, 'hidden') ?? 0,
      maxMs: figure(row, 'waited'),
      /** Of the session that has waited longest. */
      pid: figure(row, 'pid'),
    }
  },
  evaluate: ({ user, waiting, hidden, maxMs, pid }, compare) => {
    const check = 'lock wait'
    if (waiting === undefined) return notChecked(check, 'missing', 'the locks are not reported')
    if (waiting === 0) return ok(check, 'no session is waiting for a lock')
    const result = compare({
      what: `${count(waiting, 'session is', 'sessions are')} waiting for a lock, the longest for`,
      value: maxMs,
      details: pid === undefined ? [] : [`inspect: SELECT pg_blocking_pids(${pid})`],
    })
    const isLong = result.status === 'failed' && result.notChecked === undefined
    return hidden > 0 && !isLong ? hiddenFrom(check, user, hidden, 'waiting session') : result
  },
})

export const wraparound = limitOnDatabase({
  depth: 'Advanced',
  check: 'wraparound',
  proves: 'Transaction IDs are frozen long before they run out',
  setting: 'wraparound',
  unit: 'percent',
  default: { warn: 90, limit: 95 },
  doc: 'Age of the oldest transaction ID, in percent of the age at which the server takes emergency measures (vacuum_failsafe_age)',
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
      age: figure(row, 'age'),
      /** The age at which the failsafe makes the server freeze at top priority. */
      failsafe: figure(row, 'failsafe'),
      of: row?.kind === 'multixact' ? ('multixact' as const) : ('transaction' as const),
    }
  },
  evaluate: ({ database, age, failsafe, of }, compare) => {
    if (age === undefined || failsafe === undefined) {
      return notChecked('wraparound', 'missing', 'the age of the oldest transaction ID is not reported')
    }
    return compare({
      what: `oldest ${of} ID, in ${database}, is at`,
      value: (age / failsafe) * 100,
      details: [`age ${age}; emergency measures begin at ${failsafe}`],
    })
  },
})

export const freezeAge = limitOnDatabase({
  depth: 'Advanced',
  check: 'freeze age',
  proves: 'Autovacuum freezes old transaction IDs about as soon as it begins to',
  setting: 'freezeAge',
  unit: 'percent',
  default: { warn: 150, limit: 400 },
  doc: 'Age of the oldest transaction ID, in percent of the age at which autovacuum begins to freeze (autovacuum_freeze_max_age)',
  observe: async ({ ask }) => {
    const [row] = await ask(`SELECT * FROM (
      SELECT 'transaction' AS kind, datname, age(datfrozenxid)::float8 AS age,
        current_setting('autovacuum_freeze_max_age')::float8 AS begins FROM pg_database UNION ALL
      SELECT 'multixact', datname, mxid_age(datminmxid)::float8,
        current_setting('autovacuum_multixact_freeze_max_age')::float8 FROM pg_database
      ) AS ages ORDER BY age / begins DESC LIMIT 1`)
    return {
      database: text(row, 'datname'),
      age: figure(row, 'age'),
      /** The age at which autovacuum begins to freeze. */
      begins: figure(row, 'begins'),
      of: text(row, 'kind'),
    }
  },
  evaluate: ({ database, age, begins, of }, compare) => {
    const check = 'freeze age'
    if (age === undefined || begins === undefined) {
      return notChecked(check, 'missing', 'the age of the oldest transaction ID is not reported')
    }
    return compare({
      what: `oldest ${of} ID, in ${database}, is at`,
      value: (age / begins) * 100,
      details: [
        `age ${age}; autovacuum begins to freeze at ${begins}`,
        'look for old transactions, prepared transactions, slots, and autovacuum workers that end with an error',
      ],
    })
  },
})

export const archiver = onDatabase({
  depth: 'Advanced',
  results: { archiver: 'WAL files are archived' },
  observe: async ({ ask }) => {
    const [row] = await ask(`SELECT current_setting('archive_mode') AS mode, pg_is_in_recovery() AS standby,
      current_setting('archive_command') = '' AND coalesce(current_setting('archive_library', true), '') = '' AS nowhere,
      archived_count AS archived, failed_count AS failures, coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) AS failing, last_failed_wal AS wal,
      ${inMs('clock_timestamp() - last_archived_time')} AS since FROM pg_stat_archiver`)
    return {
      /** archive_mode: on, off or always. */
      mode: text(row, 'mode'),
      isStandby: truth(row, 'standby'),
      /** True if neither archive_command nor archive_library is set. */
      nowhere: truth(row, 'nowhere'),
      /** True if the last attempt failed. */
      failing: flag(row, 'failing'),
      archived: figure(row, 'archived'),
      failures: figure(row, 'failures'),
      lastFailedFile: text(row, 'wal'),
      /** Undefined if it has never succeeded. */
      sinceSuccessMs: figure(row, 'since'),
    }
  },
  evaluate: ({ mode, isStandby, nowhere, failing, archived, failures, lastFailedFile, sinceSuccessMs }) => {
    const check = 'archiver'
    if (mode === '' || failing === undefined || archived === undefined || failures === undefined) {
      return notChecked(check, 'missing', 'the state of the archiver is not reported')
    }
    if (mode === 'off') return ok(check, 'archive_mode is off, so there is nothing to archive')
    if (mode === 'on' && isStandby) return ok(check, 'the primary archives, not this standby')
    if (nowhere) return warn(check, 'archive_command is empty: all WAL files stay until they can be archived')
    if (!failing) return ok(check, archived > 0 ? 'last WAL file archived' : 'no WAL file has been archived yet')
    const since = sinceSuccessMs === undefined ? 'never succeeded' : `last success ${showDuration(sinceSuccessMs)} ago`
    const message = `archiving is failing: ${count(failures, 'failure')}, most recently for ${lastFailedFile}; ${since}`
    return fail(check, 'data', message, { details: ["check archive_command and the server's log"] })
  },
})

export const preparedTransactions = limitOnDatabase({
  depth: 'Advanced',
  check: 'prepared transactions',
  proves: 'No prepared transaction has been abandoned',
  setting: 'preparedTransactions',
  unit: 'duration',
  default: { warn: 1_000, limit: 30_000 },
  doc: 'Maximum time that a prepared transaction waits for its second phase',
  observe: async ({ ask }) => {
    const [row] = await ask(`SELECT count(*) OVER () AS count, gid, owner, database,
      ${inMs('clock_timestamp() - prepared')} AS age FROM pg_prepared_xacts ORDER BY prepared LIMIT 1`)
    return {
      prepared: row ? figure(row, 'count') : 0,
      oldestMs: figure(row, 'age'),
      who: row ? `${text(row, 'gid')} of ${text(row, 'owner')} in ${text(row, 'database')}` : '',
    }
  },
  evaluate: ({ prepared, oldestMs: value, who }, compare) => {
    if (prepared === undefined) return notChecked('prepared transactions', 'missing', 'their number is not reported')
    if (prepared === 0) return ok('prepared transactions', 'none')
    const what = `${count(prepared, 'transaction is', 'transactions are')} waiting for the second phase, the oldest (${who}) for`
    return compare({ what, value })
  },
})

export const checksumFailures = onDatabase({
  depth: 'Advanced',
  results: { 'checksum failures': 'No page with a wrong checksum has been read' },
  observe: async ({ ask }) => {
    const rows = await ask(`SELECT current_setting('data_checksums') = 'on' AS on, coalesce(datname, 'shared') AS name,
        (to_jsonb(d)->>'checksum_failures')::float8 AS failures
      FROM pg_stat_database AS d ORDER BY failures DESC NULLS LAST LIMIT 100`)
    const counted = rows.filter((row) => figure(row, 'failures') !== undefined)
    return {
      on: flag(rows[0], 'on'),
      /** False before version 12, which does not count them. */
      isCounted: counted.length > 0,
      failures: counted
        .filter((row) => figure(row, 'failures') !== 0)
        .map((row) => `${text(row, 'name')}: ${figure(row, 'failures')}`),
    }
  },
  evaluate: ({ on, isCounted, failures }) => {
    if (on === undefined || (on && !isCounted)) {
      return notChecked('checksum failures', 'missing', 'the server does not count pages with wrong checksums')
    }
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
export const sessionChecks = [transactionDuration, idleInTransaction, lockWait]
export const maintenanceChecks = [wraparound, freezeAge, archiver, preparedTransactions, checksumFailures]

/** A role or a database that may have only so many connections, and how many it has. */
type Limited = {
  /** `role app` or `database orders`. */
  readonly name: string
  readonly used: number
  readonly most: number
}

export const connectionLimits = onDatabase({
  depth: 'Standard',
  results: {
    'connection limits': 'No role and no database has used up the connections that it may have (CONNECTION LIMIT)',
  },
  settings: { connections: connectionsSetting },
  observe: async ({ ask }) => {
    // The server does not apply the limits to superusers. With a limit of 0, nobody is meant to connect.
    const rows = await ask(`WITH other AS (SELECT usesysid, datid FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND (backend_type = 'client backend' OR (backend_type IS NULL AND usesysid IS NOT NULL)))
      SELECT * FROM (
        SELECT 'role ' || rolname AS name, rolconnlimit AS most,
          (SELECT count(*) FROM other WHERE usesysid = r.oid)::int AS used
        FROM pg_roles AS r WHERE rolconnlimit > 0 AND NOT rolsuper AND rolcanlogin UNION ALL
        SELECT 'database ' || datname, datconnlimit, (SELECT count(*) FROM other WHERE datid = d.oid)::int
        FROM pg_database AS d WHERE datconnlimit > 0 AND datallowconn
      ) AS limited ORDER BY used::float8 / most DESC LIMIT 20`)
    return rows.map((row) => ({ name: text(row, 'name', 80), used: figure(row, 'used'), most: figure(row, 'most') }))
  },
  evaluate: (limited, { connections: threshold }) => {
    const check = 'connection limits'
    const [worst, ...others] = limited.filter(
      (one): one is Limited => one.used !== undefined && one.most !== undefined && one.most > 0,
    )
    if (!worst) {
      return limited.length === 0
        ? ok(check, 'no role and no database has a limit')
        : notChecked(check, 'missing', 'the numbers of connections are not reported')
    }
    return atMost({
      check,
      what: `${describe(worst)}:`,
      value: percentOf(worst),
      unit: 'percent',
      threshold,
      details: others.filter((one) => percentOf(one) > (threshold.warn ?? threshold.limit ?? 100)).map(describe),
    })
  },
})

const percentOf = ({ used, most }: Limited): number => (used / most) * 100
const describe = ({ name, used, most }: Limited): string => `${used} of ${most} connections of the ${name}`

import { type Ask, figure, text, truth } from '../../database/index.ts'

/**
 * What the checks look at, one query each, as bare figures. Durations in milliseconds, sizes in
 * bytes. For PostgreSQL 10 and later; a column that older versions lack is read by way of to_jsonb.
 */
export const ms = (interval: string): string => `(extract(epoch FROM ${interval}) * 1000)::float8`

export type Server = {
  readonly see: 'server'
  readonly standby: boolean
  /** Every transaction is read-only unless it says otherwise. */
  readonly readOnly: boolean
  readonly version: string
  readonly upMs: number
}
export async function lookAtServer(ask: Ask): Promise<Server> {
  // Not transaction_read_only: in this transaction that is always on.
  const [row] = await ask(`SELECT pg_is_in_recovery() AS standby, current_setting('server_version') AS version,
    current_setting('default_transaction_read_only') = 'on' AS read_only,
    ${ms('clock_timestamp() - pg_postmaster_start_time()')} AS up`)
  return {
    see: 'server',
    standby: truth(row, 'standby'),
    readOnly: truth(row, 'read_only'),
    version: text(row, 'version').split(' ')[0] ?? '',
    upMs: figure(row, 'up') ?? 0,
  }
}

export type Connections = { readonly see: 'connections'; readonly used: number; readonly usable: number }
export async function lookAtConnections(ask: Ask): Promise<Connections> {
  // Another account's row tells no backend_type, but that it has a user.
  const [row] = await ask(`SELECT
    count(*) FILTER (WHERE backend_type = 'client backend' OR (backend_type IS NULL AND usesysid IS NOT NULL)) AS used,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true)::int, 0) AS usable FROM pg_stat_activity`)
  return { see: 'connections', used: figure(row, 'used') ?? 0, usable: figure(row, 'usable') ?? 0 }
}

export type Transactions = {
  readonly see: 'transactions'
  /** Sessions of which this account may see nothing. */
  readonly hidden: number
  readonly longestMs: number
  /** Who has the longest, e.g. `pid 42, user app, idle in transaction`; empty when there is none. */
  readonly who: string
}
export async function lookAtTransactions(ask: Ask): Promise<Transactions> {
  const [row] = await ask(`WITH other AS (SELECT * FROM pg_stat_activity WHERE pid <> pg_backend_pid())
    SELECT (SELECT count(*) FROM other WHERE backend_type IS NULL AND usesysid IS NOT NULL) AS hidden,
      oldest.pid, oldest.usename, oldest.state, ${ms('clock_timestamp() - oldest.xact_start')} AS longest
    FROM (SELECT 1) AS one LEFT JOIN LATERAL (SELECT * FROM other
      WHERE backend_type = 'client backend' AND xact_start IS NOT NULL ORDER BY xact_start LIMIT 1) AS oldest ON true`)
  const who = figure(row, 'pid') === undefined ? '' : `pid ${text(row, 'pid')}, user ${text(row, 'usename')}`
  return {
    see: 'transactions',
    hidden: figure(row, 'hidden') ?? 0,
    longestMs: figure(row, 'longest') ?? 0,
    who: who && `${who}, ${text(row, 'state')}`,
  }
}

export type Locks = {
  readonly see: 'locks'
  readonly waiting: number
  readonly longestMs: number
  readonly pid: number | undefined
}
export async function lookAtLocks(ask: Ask): Promise<Locks> {
  // Since 14 the server knows when the wait began; before, only when the query did.
  const [row] = await ask(`SELECT count(*) OVER () AS waiting, l.pid, coalesce(${ms(`clock_timestamp() -
      CASE WHEN current_setting('server_version_num')::int >= 140000 THEN (to_jsonb(l)->>'waitstart')::timestamptz
           ELSE a.query_start END`)}, 0) AS waited
    FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a USING (pid) WHERE NOT l.granted ORDER BY waited DESC LIMIT 1`)
  return {
    see: 'locks',
    waiting: figure(row, 'waiting') ?? 0,
    longestMs: figure(row, 'waited') ?? 0,
    pid: figure(row, 'pid'),
  }
}

export type Wraparound = {
  readonly see: 'wraparound'
  readonly database: string
  readonly age: number
  /** The age at which the server drops everything else to freeze. */
  readonly failsafe: number
  readonly of: 'transaction' | 'multixact'
}
export async function lookAtWraparound(ask: Ask): Promise<Wraparound> {
  // The server takes the failsafe for at least 105 % of the age at which autovacuum is forced.
  const age = (kind: string, age: string, name: string, forced: string): string =>
    `SELECT '${kind}' AS kind, datname, ${age}::float8 AS age, greatest(
      coalesce(current_setting('${name}', true)::float8, 1.6e9), 1.05 * current_setting('${forced}')::float8) AS failsafe
     FROM pg_database`
  const [row] = await ask(`SELECT * FROM (
    ${age('transaction', 'age(datfrozenxid)', 'vacuum_failsafe_age', 'autovacuum_freeze_max_age')} UNION ALL
    ${age('multixact', 'mxid_age(datminmxid)', 'vacuum_multixact_failsafe_age', 'autovacuum_multixact_freeze_max_age')}
    ) AS ages ORDER BY age / failsafe DESC LIMIT 1`)
  return {
    see: 'wraparound',
    database: text(row, 'datname'),
    age: figure(row, 'age') ?? 0,
    failsafe: figure(row, 'failsafe') ?? 1,
    of: row?.kind === 'multixact' ? 'multixact' : 'transaction',
  }
}

export type Archiver = {
  readonly see: 'archiver'
  readonly on: boolean
  /** The last attempt failed. */
  readonly failing: boolean
  readonly failures: number
  readonly lastFailed: string
  /** Since the last success; undefined when there was none. */
  readonly sinceSuccessMs: number | undefined
}
export async function lookAtArchiver(ask: Ask): Promise<Archiver> {
  const [row] = await ask(`SELECT current_setting('archive_mode') <> 'off' AS on, failed_count AS failures,
    coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false) AS failing, last_failed_wal AS wal,
    ${ms('clock_timestamp() - last_archived_time')} AS since FROM pg_stat_archiver`)
  return {
    see: 'archiver',
    on: truth(row, 'on'),
    failing: truth(row, 'failing'),
    failures: figure(row, 'failures') ?? 0,
    lastFailed: text(row, 'wal'),
    sinceSuccessMs: figure(row, 'since'),
  }
}

export type Prepared = {
  readonly see: 'prepared'
  readonly count: number
  readonly oldestMs: number
  readonly who: string
}
export async function lookAtPrepared(ask: Ask): Promise<Prepared> {
  const [row] = await ask(`SELECT count(*) OVER () AS count, gid, owner, database,
    ${ms('clock_timestamp() - prepared')} AS age FROM pg_prepared_xacts ORDER BY prepared LIMIT 1`)
  return {
    see: 'prepared',
    count: figure(row, 'count') ?? 0,
    oldestMs: figure(row, 'age') ?? 0,
    who: row ? `${text(row, 'gid')} of ${text(row, 'owner')} in ${text(row, 'database')}` : '',
  }
}

export type Checksums = { readonly see: 'checksums'; readonly on: boolean; readonly failed: readonly string[] }
export async function lookAtChecksums(ask: Ask): Promise<Checksums> {
  const rows = await ask(`SELECT current_setting('data_checksums') = 'on' AS on, coalesce(datname, 'shared') AS name,
      coalesce((to_jsonb(d)->>'checksum_failures')::float8, 0) AS failures
    FROM pg_stat_database AS d ORDER BY failures DESC LIMIT 100`)
  const failed = rows.filter((row) => (figure(row, 'failures') ?? 0) > 0)
  return {
    see: 'checksums',
    on: truth(rows[0], 'on'),
    failed: failed.map((row) => `${text(row, 'name')}: ${figure(row, 'failures')}`),
  }
}

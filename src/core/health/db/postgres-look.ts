import { setTimeout as pause } from 'node:timers/promises'
import { figure, type Row, text, truth } from './rows.ts'
import type { Ask } from './session.ts'

/**
 * What the checks look at, one query each, as bare figures. Durations in milliseconds, sizes in
 * bytes. For PostgreSQL 10 and later; a column that older versions lack is read by way of to_jsonb.
 */
const ms = (interval: string): string => `(extract(epoch FROM ${interval}) * 1000)::float8`

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

export type Replica = {
  readonly name: string
  readonly state: string
  /** How much of what is written here it has not replayed. */
  readonly bytes: number | undefined
  readonly lagMs: number | undefined
  /** Since it was last heard of; undefined before PostgreSQL 12. */
  readonly silentMs: number | undefined
}
export type Replicas = {
  readonly see: 'replicas'
  /** They follow a standby: whether that is behind is its own finding. */
  readonly cascading: boolean
  readonly hidden: number
  readonly replicas: readonly Replica[]
}
export type Replay = {
  readonly see: 'replay'
  /** Undefined when this account may not see it. */
  readonly connected: boolean | undefined
  /** It has been told where its primary is, so it ought to be connected. */
  readonly follows: boolean
  readonly paused: boolean
  /** Everything received is replayed. */
  readonly current: boolean
  readonly sinceReplayMs: number
}
export async function lookAtReplication(ask: Ask): Promise<readonly (Replicas | Replay)[]> {
  const [row] = await ask('SELECT pg_is_in_recovery() AS standby')
  const cascading = truth(row, 'standby')
  const replicas = await lookAtReplicas(ask, cascading)
  return cascading ? [await lookAtReplay(ask), replicas] : [replicas]
}

async function lookAtReplicas(ask: Ask, cascading: boolean): Promise<Replicas> {
  const rows = await ask(`SELECT application_name AS name, state, ${ms('replay_lag')} AS lag,
      pg_wal_lsn_diff(${hereLsn}, replay_lsn)::float8 AS bytes,
      ${ms(`clock_timestamp() - (to_jsonb(r)->>'reply_time')::timestamptz`)} AS silent
    FROM pg_stat_replication AS r 
    WHERE application_name NOT IN ('pg_basebackup', 'pg_receivewal') AND state IS DISTINCT FROM 'backup' LIMIT 200`)
  const seen = rows.filter((row) => row.state !== null)
  return {
    see: 'replicas',
    cascading,
    hidden: rows.length - seen.length,
    replicas: seen.map((row) => ({
      name: text(row, 'name'),
      state: text(row, 'state'),
      bytes: figure(row, 'bytes'),
      lagMs: figure(row, 'lag'),
      silentMs: figure(row, 'silent'),
    })),
  }
}
/** The newest position that this server has: its own, or on a standby what it has received. */
const hereLsn = `CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
  ELSE pg_current_wal_lsn() END`

/** Milliseconds until a standby that is behind is looked at again: a record may have just come in. */
const secondLookMs = 200

async function lookAtReplay(ask: Ask): Promise<Replay> {
  const look = (received: string): Promise<readonly Row[]> =>
    ask(`SELECT ${received} <= pg_last_wal_replay_lsn() AS current, pg_last_wal_receive_lsn()::text AS received,
      pg_is_wal_replay_paused() AS paused,
      ${ms('clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time())')} AS since,
      (SELECT count(*) FROM pg_stat_wal_receiver WHERE pid IS NOT NULL) > 0 AS connected,
      (SELECT setting <> '' FROM pg_settings WHERE name = 'primary_conninfo') AS follows`)
  let [row] = await look('pg_last_wal_receive_lsn()')
  const received = text(row, 'received')
  if (!truth(row, 'current') && /^[0-9A-F]+\/[0-9A-F]+$/.test(received)) {
    await pause(secondLookMs)
    ;[row] = await look(`'${received}'::pg_lsn`)
  }
  return {
    see: 'replay',
    connected: truth(row, 'connected'),
    follows: truth(row, 'follows'),
    paused: truth(row, 'paused'),
    current: truth(row, 'current'),
    sinceReplayMs: figure(row, 'since') ?? 0,
  }
}

export type Slot = {
  readonly name: string
  readonly active: boolean
  /** Undefined before PostgreSQL 17, or while it is active. */
  readonly inactiveMs: number | undefined
  readonly bytes: number
  readonly lost: boolean
}
export type Slots = { readonly see: 'slots'; readonly slots: readonly Slot[] }
export async function lookAtSlots(ask: Ask): Promise<Slots> {
  // A slot that a standby keeps in step with its primary's is inactive by nature.
  const rows = await ask(`SELECT slot_name AS name, active, to_jsonb(s)->>'wal_status' = 'lost' AS lost,
      coalesce(pg_wal_lsn_diff(${hereLsn}, restart_lsn), 0)::float8 AS bytes,
      ${ms(`clock_timestamp() - (to_jsonb(s)->>'inactive_since')::timestamptz`)} AS inactive
    FROM pg_replication_slots AS s WHERE NOT temporary AND coalesce(to_jsonb(s)->>'synced', 'false') = 'false'
    LIMIT 1000`)
  const slots = rows.map((row) => ({
    name: text(row, 'name'),
    active: truth(row, 'active'),
    inactiveMs: figure(row, 'inactive'),
    bytes: figure(row, 'bytes') ?? 0,
    lost: truth(row, 'lost'),
  }))
  return { see: 'slots', slots }
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

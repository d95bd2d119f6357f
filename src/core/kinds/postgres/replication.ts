import { setTimeout as pause } from 'node:timers/promises'
import { type Ask, figure, type Row, text, truth } from '../../database/index.ts'
import { ms } from './look.ts'

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

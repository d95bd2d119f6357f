import { setTimeout as pause } from 'node:timers/promises'
import { count, showBytes, showDuration } from '../../../base/format.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { SettingsSpec, Threshold } from '../../../base/settings/index.ts'
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
import {
  atMost,
  type CheckContext,
  fail,
  type HistoryReading,
  notChecked,
  ok,
  type Result,
  sharedRead,
} from '../../engine/index.ts'
import { hiddenFrom, hiddenWithout, inMs, isKnownPrimary, privilege, readRole } from './checks.ts'
import { grantTo } from './errors.ts'

type Ask = DatabaseConnection['ask']

/** The newest WAL position of this server: written on a primary, received on a standby. */
export const hereLsn = `CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
  ELSE pg_current_wal_lsn() END`

/** A replica that streams from this server. */
type Replica = Awaited<ReturnType<typeof readReplicas>>['replicas'][number]

/** The replay status of a standby. */
type Replay = Awaited<ReturnType<typeof readReplay>>

/** For how long WAL has waited for its replay, in milliseconds, as far as earlier runs show. */
type Waiting = { readonly atLeastMs: number; readonly atMostMs: number | undefined }

const lagDoc = 'Replication lag of its standbys, or its own as a standby, is within the limit'

const replication = sharedRead('replication lag', lagDoc, async (connection: DatabaseConnection, context) => {
  const { ask, user } = connection
  const isStandby = flag(await readRole(connection), 'standby')
  if (isStandby === undefined) throw new ProbeError('protocol', 'the server does not report its role')
  return {
    user,
    ...(await readReplicasTwice(ask)),
    /** Undefined on a primary. */
    replay: isStandby ? await readReplay(ask, context) : undefined,
  }
})

/** A replica that has just received WAL does not report its lag yet, so that a missing lag is read again. */
async function readReplicasTwice(ask: Ask) {
  const first = await readReplicas(ask)
  if (first.replicas.every((replica) => lagOf(replica) !== undefined)) return first
  await pause(secondReadMs)
  return await readReplicas(ask)
}

async function readReplicas(ask: Ask) {
  const rows = await ask(`SELECT application_name AS name, state,
      EXISTS (SELECT FROM pg_replication_slots WHERE active_pid = r.pid AND slot_type = 'logical') AS logical, ${inMs('replay_lag')} AS lag,
      pg_wal_lsn_diff(${hereLsn}, coalesce(replay_lsn, write_lsn))::float8 AS bytes,
      ${inMs(`clock_timestamp() - (to_jsonb(r)->>'reply_time')::timestamptz`)} AS silent
    FROM pg_stat_replication AS r 
    WHERE application_name NOT IN ('pg_basebackup', 'pg_receivewal') AND state IS DISTINCT FROM 'backup' LIMIT 200`)
  const visible = rows.filter((row) => row.state !== null)
  const replicas = visible.map((row) => ({
    name: text(row, 'name'),
    state: text(row, 'state'),
    /** True for a logical subscriber, which has only a part of the data. */
    logical: truth(row, 'logical'),
    /** Bytes of this server's WAL that the replica has not replayed, or not written if it replays none. */
    bytes: figure(row, 'bytes'),
    lagMs: figure(row, 'lag'),
    /** Milliseconds since its last report; undefined before PostgreSQL 12. */
    silentMs: figure(row, 'silent'),
  }))
  /** `hidden` is the number of replicas whose details this account cannot see. */
  return { replicas, hidden: rows.length - visible.length }
}

/** The columns of `receiverOf`. A primary sends a message at least every half of wal_sender_timeout, usually 30 s. */
const receiver = `(SELECT count(*) FROM pg_stat_wal_receiver WHERE pid IS NOT NULL) > 0 AS connected,
  (SELECT ${inMs('clock_timestamp() - last_msg_receipt_time')} FROM pg_stat_wal_receiver) AS silent,
  (SELECT ${inMs('clock_timestamp() - latest_end_time')} FROM pg_stat_wal_receiver) AS newest,
  (SELECT setting <> '' FROM pg_settings WHERE name = 'primary_conninfo') AS follows,
  (SELECT setting <> '' FROM pg_settings WHERE name = 'restore_command') AS restores`

/** The WAL receiver of a standby, and its settings. */
const receiverOf = (row: Row | undefined) => ({
  connected: flag(row, 'connected'),
  /**
   * True if the configuration names a primary, so that the standby should be connected. Undefined if this account may
   * not see it.
   */
  follows: flag(row, 'follows'),
  /** True if restore_command is set, so that it reads WAL from an archive. Undefined before PostgreSQL 12. */
  restores: flag(row, 'restores'),
  /** Milliseconds since the last message of the primary; undefined if this account may not see it. */
  silentMs: figure(row, 'silent'),
  /**
   * Milliseconds since new WAL arrived: a message that announced a later position than the one before. Undefined if
   * this account may not see it.
   */
  newestMs: figure(row, 'newest'),
})

const walReceiverSetting = {
  type: 'threshold',
  unit: 'duration',
  default: { warn: 35_000, limit: 60_000 },
  doc: 'Maximum time since a standby received a message from its primary; after a longer one, its lag is unknown',
} as const satisfies SettingsSpec[string]

export const walReceiver = onDatabase({
  depth: 'Standard',
  results: { 'wal receiver': 'As a standby, it receives messages from its primary; omitted on a primary' },
  settings: { walReceiver: walReceiverSetting },
  privilege,
  observe: readReceiver,
  evaluate: ({ user, isStandby, ...receiver }, { walReceiver: threshold }) => {
    const check = 'wal receiver'
    if (isStandby === false) return []
    const { connected, follows, restores, silentMs: value } = receiver
    if (isStandby === undefined || connected === undefined) {
      return notChecked(check, 'missing', 'the state of the WAL receiver is not reported')
    }
    if (connected && value === undefined) return hiddenReceiver(check, user)
    if (connected) {
      return atMost({ check, what: 'last message from its primary', value, unit: 'duration', after: 'ago', threshold })
    }
    if (follows === undefined) return hiddenPrimary(check, user)
    if (follows)
      return fail(check, 'data', 'not connected to its primary (no WAL receiver)', { details: [checkConninfo] })
    return restores === false
      ? noSource(check)
      : ok(check, 'primary_conninfo is empty: this standby reads WAL from an archive')
  },
})

async function readReceiver(connection: DatabaseConnection) {
  const { ask, user } = connection
  if (isKnownPrimary(connection)) return { user, isStandby: false, ...receiverOf(undefined) }
  const [row] = await ask(`SELECT pg_is_in_recovery() AS standby, ${receiver}`)
  return { user, isStandby: flag(row, 'standby'), ...receiverOf(row) }
}

/** A standby that nothing sends WAL to. */
const noSource = <const Name extends string>(check: Name): Result<Name> =>
  fail(check, 'data', 'neither primary_conninfo nor restore_command is set: no WAL reaches this standby', {
    details: ['next: set primary_conninfo on the standby and SELECT pg_reload_conf(), or promote it'],
  })

export const newestWal = limitOnDatabase({
  depth: 'Standard',
  check: 'newest wal',
  proves:
    'As a standby, it has received new WAL recently. A standby of a standby hears from it even while that one is cut off itself; omitted on a primary, and without `newestWal`',
  setting: 'newestWal',
  unit: 'duration',
  doc: 'Maximum time since a standby received new WAL, for a primary that writes at least that often: an idle one writes none. Compares the clock of the sender with that of the standby',

  emptyWhere: 'the server is a primary',
  privilege,
  observe: readReceiver,
  evaluate: ({ user, isStandby, ...receiver }, compare) => {
    const check = 'newest wal'
    if (isStandby === false) return []
    const { connected, newestMs } = receiver
    if (isStandby === undefined || connected === undefined) {
      return notChecked(check, 'missing', 'the state of the WAL receiver is not reported')
    }
    // `wal receiver` reports why there is none.
    if (!connected) return fail(check, 'data', 'no WAL arrives: there is no WAL receiver')
    if (newestMs === undefined) return hiddenReceiver(check, user)
    return compare({
      what: 'the newest WAL arrived',
      value: Math.max(0, newestMs),
      after: 'ago',
      details: ["check whether this standby's upstream is a standby that is cut off itself"],
    })
  },
})

const checkConninfo = "check the standby's log and primary_conninfo"

const hiddenReceiver = <const Name extends string>(check: Name, user: string): Result<Name> =>
  notChecked(check, 'permission', hiddenWithout('its WAL receiver is', grantTo(user)), { details: [grantTo(user)] })

const hiddenPrimary = <const Name extends string>(check: Name, user: string): Result<Name> =>
  notChecked(check, 'permission', hiddenWithout('it has no WAL receiver, and primary_conninfo is', grantTo(user)), {
    details: [grantTo(user)],
  })

/** Milliseconds until a standby that lags is read again: a record may have arrived just before. */
const secondReadMs = 200
/** How often it is read again. A record that waits longer than that is a lag. */
const maxReads = 5
/** Milliseconds between stored readings of the received WAL. */
const readEveryMs = 10_000

async function readReplay(ask: Ask, { history, isConfigured }: Pick<CheckContext, 'history' | 'isConfigured'>) {
  const read = (received: string): Promise<readonly Row[]> =>
    ask(`SELECT ${received} <= pg_last_wal_replay_lsn() AS current, pg_last_wal_receive_lsn()::text AS received,
      pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::float8 AS received_at,
      pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::float8 AS replayed_at,
      pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::float8 AS bytes,
      pg_is_wal_replay_paused() AS paused,
      ${inMs('clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time())')} AS since,
      (SELECT to_jsonb(w)->>'latest_end_lsn' FROM pg_stat_wal_receiver AS w) AS announced,
      (SELECT wait_event FROM pg_stat_activity WHERE backend_type = 'startup' LIMIT 1) AS waits_for,
      (SELECT ${inMs(`clock_timestamp() - min((to_jsonb(l)->>'waitstart')::timestamptz)`)} FROM pg_locks AS l
        WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup')) AS blocked,
      (SELECT setting::float8 FROM pg_settings WHERE name = 'recovery_min_apply_delay') AS delay,
      ${receiver}`)
  let [row] = await read('pg_last_wal_receive_lsn()')
  const received = text(row, 'received')
  const announced = new Set([text(row, 'announced')])
  if (/^[0-9A-F]+\/[0-9A-F]+$/.test(received)) {
    for (let reads = 0; reads < maxReads && !truth(row, 'current'); reads += 1) {
      await pause(secondReadMs)
      ;[row] = await read(`'${received}'::pg_lsn`)
      announced.add(text(row, 'announced'))
    }
  }
  const receivedAt = figure(row, 'received_at')
  const readings = receivedAt === undefined ? undefined : await history('received WAL', receivedAt, readEveryMs)
  return {
    ...receiverOf(row),
    paused: truth(row, 'paused'),
    /** True if everything received has been replayed. */
    current: truth(row, 'current'),
    /** Milliseconds since the commit of the last transaction that was replayed. */
    sinceReplayMs: figure(row, 'since'),
    // The server itself writes a record now and then after an idle time.
    /** True if the primary announced new WAL in nearly every moment in which the standby was read. */
    isWriting: announced.size >= maxReads,
    /** Milliseconds for which replay has waited for a lock; undefined if it does not, or before PostgreSQL 14. */
    blockedMs: figure(row, 'blocked'),
    /** The wait of the first WAL that has not been replayed, from the readings of earlier runs. */
    waits: waitingOf(readings, figure(row, 'replayed_at')),
    /**
     * The event that replay waits for, as in `pg_stat_activity.wait_event`; empty if it waits for nothing, or is
     * hidden.
     */
    waitsFor: text(row, 'waits_for'),
    /** recovery_min_apply_delay. */
    delayMs: figure(row, 'delay') ?? 0,
    /** Bytes of WAL that it has received and not replayed; undefined if it has received none. */
    bytes: figure(row, 'bytes'),
    /** True if svc.yaml sets a limit for its lag. */
    isLimited: isConfigured('replicationLag'),
  }
}

/** `readings` are positions that were received, oldest first; the last one is the present. */
function waitingOf(readings: readonly HistoryReading[] | undefined, replayedAt: number | undefined): Waiting {
  const now = readings?.at(-1)?.at
  if (!readings || now === undefined || replayedAt === undefined) return { atLeastMs: 0, atMostMs: undefined }
  const waiting = readings.find(({ value }) => value > replayedAt)
  const before = readings.findLast(({ value }) => value <= replayedAt)
  return { atLeastMs: now - (waiting?.at ?? now), atMostMs: before && now - before.at }
}

export const replicationLag = onDatabase({
  depth: 'Advanced',
  results: { 'replication lag': lagDoc },
  settings: {
    replicationLag: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 5_000, limit: 30_000 },
      doc: 'Maximum replication lag of a standby',
    },
    walReceiver: walReceiverSetting,
  },
  privilege,
  observe: replication,
  // On a standby, evaluates its own replay; on a primary, its replicas.
  evaluate: ({ replay, replicas, hidden, user }, { replicationLag: threshold, walReceiver }) => {
    if (replay) return evaluateReplay(replay, { user, threshold, silence: walReceiver })
    const result = evaluateReplicas(replicas, threshold)
    return hidden === 0 || result.status === 'failed' ? result : hiddenFrom('replication lag', user, hidden, 'replica')
  },
})

function evaluateReplicas(replicas: readonly Replica[], threshold: Threshold): Result<'replication lag'> {
  const lags = replicas
    .filter(({ bytes }) => bytes !== undefined)
    .map((replica) => ({ replica, lag: lagOf(replica) }))
    .sort((a, b) => (b.lag ?? Number.POSITIVE_INFINITY) - (a.lag ?? Number.POSITIVE_INFINITY))
  const [worst] = lags
  if (!worst) {
    if (replicas.length === 0) return ok('replication lag', 'no replica connected')
    const silent = `${count(replicas.length, 'replica')} connected, without a WAL position`
    return notChecked('replication lag', 'missing', silent, {
      details: replicas.map(({ name, state }) => `${name}: ${state}`),
    })
  }
  const long = lags.find(({ lag }) => lag !== undefined && threshold.limit !== undefined && lag > threshold.limit)
  if (worst.lag === undefined && !long) {
    const { name, bytes = 0 } = worst.replica
    const why = `the lag of ${name} is not reported, and it has not replayed ${showBytes(bytes)}`
    return notChecked('replication lag', 'missing', why)
  }
  return atMost({
    check: 'replication lag',
    what: `${(long ?? worst).replica.name} lags by`,
    value: (long ?? worst).lag,
    unit: 'duration',
    threshold,
    details: lags.map(({ replica, lag }) => describeReplica(replica, lag)).slice(0, 20),
  })
}

/** Twice the interval at which a standby reports unasked: a longer silence means that it hangs. */
const maxSilenceMs = 20_000

/** On an idle primary, lag times keep growing: a replica that has replayed everything does not lag. */
function lagOf({ bytes = 0, lagMs, silentMs = 0 }: Replica): number | undefined {
  if (bytes <= 0) return 0
  if (silentMs > maxSilenceMs) return Math.max(lagMs ?? 0, silentMs)
  return lagMs
}

const describeReplica = ({ name, state, bytes = 0 }: Replica, lag: number | undefined): string =>
  `${name}: ${state}, ${showBytes(Math.max(0, bytes))} and ${lag === undefined ? 'an unknown time' : showDuration(lag)} behind`

const resume = 'to resume replay: SELECT pg_wal_replay_resume() on the standby'

/** Wait events of replay for the next WAL of an archive. */
const waitsForArchive: ReadonlySet<string> = new Set(['RecoveryRetrieveRetryInterval', 'RecoveryWalStream'])

/**
 * For how long the first record that has not been replayed has been waiting. The server does not report that. On a
 * primary that keeps writing, it is about as long as the last transaction is old. After an idle time, that transaction
 * is old although nothing waited. What has waited for certain is the newest WAL, and what earlier runs saw.
 */
function lagOfReplay(replay: Replay): number | undefined {
  const { current, sinceReplayMs, isWriting, newestMs, blockedMs, waits, waitsFor, delayMs } = replay
  if (current || waitsFor === 'RecoveryApplyDelay') return 0
  if (sinceReplayMs === undefined) return undefined
  const upperMs = Math.min(sinceReplayMs, waits.atMostMs ?? sinceReplayMs)
  const lowerMs = Math.max(newestMs ?? upperMs, blockedMs ?? 0, waits.atLeastMs)
  return Math.max(0, (isWriting ? upperMs : Math.min(upperMs, lowerMs)) - delayMs)
}

function evaluateReplay(
  replay: Replay,
  { user, threshold, silence }: { readonly user: string; readonly threshold: Threshold; readonly silence: Threshold },
): Result<'replication lag'> {
  const check = 'replication lag'
  const { connected, follows, restores, silentMs, paused, current, sinceReplayMs, waitsFor, delayMs } = replay
  if (connected === undefined) return notChecked(check, 'missing', 'the state of the WAL receiver is not reported')
  if (connected && silentMs === undefined) return hiddenReceiver(check, user)
  if (!connected && follows === undefined) return hiddenPrimary(check, user)
  const last = sinceReplayMs === undefined ? 'none' : `${showDuration(sinceReplayMs)} ago`
  if (!connected && follows) {
    const since = sinceReplayMs === undefined ? '' : `; last replay ${last}`
    return fail(check, 'data', `not connected to its primary (no WAL receiver)${since}`, { details: [checkConninfo] })
  }
  if (!connected && restores === false) return noSource(check)
  if (!connected && restores && !replay.isLimited && waitsForArchive.has(waitsFor)) {
    return ok(check, `has replayed all that its archive contains; last replay ${last}`)
  }
  // A standby that has replayed all it received cannot know what a silent primary has written since.
  const toleratedMs = silence.warn ?? silence.limit ?? Number.POSITIVE_INFINITY
  const unknownMs = silentMs !== undefined && silentMs > toleratedMs ? silentMs : 0
  const result = atMost({
    check,
    what: 'lag',
    value: current ? unknownMs : lagOfReplay(replay),
    unit: 'duration',
    ...(delayMs > 0 ? { after: `beyond recovery_min_apply_delay of ${showDuration(delayMs)}` } : {}),
    threshold,
    details: [
      ...(current ? [] : [paused ? resume : whyBehind(waitsFor)]),
      ...(unknownMs > 0 ? [`no message from its primary for ${showDuration(unknownMs)}`] : []),
    ],
  })
  if (!paused) return result
  const message = `${result.message}; replay is paused`
  // Nothing shows how long a paused standby has waited, so that its oldest possible lag counts.
  const isLate = (sinceReplayMs ?? 0) > (threshold.warn ?? threshold.limit ?? Number.POSITIVE_INFINITY)
  return !current && isLate && result.status === 'ok'
    ? { ...result, status: 'warning', message }
    : { ...result, message }
}

const whyBehind = (waitsFor: string): string =>
  `check for a long query on the standby${waitsFor === '' ? '' : `; replay waits for ${waitsFor}`}`

export const replicationBytes = limitOnDatabase({
  depth: 'Advanced',
  check: 'replication backlog',
  proves: 'The WAL that its standbys, or it as a standby, have not replayed is within the limit',
  setting: 'replicationBacklog',
  unit: 'bytes',
  default: { warn: 64 * 1024 ** 2, limit: 1024 ** 3 },
  doc: 'Maximum amount of WAL that a standby has not replayed',
  privilege,
  observe: replication,
  evaluate: ({ replay, replicas, hidden, user }, compare) => {
    const check = 'replication backlog'
    if (replay) {
      // Without a WAL receiver, and before it has received anything, `replication lag` reports what is wrong.
      if (replay.connected !== true || replay.bytes === undefined) return []
      const value = Math.max(0, replay.bytes)
      return compare({ what: 'received and not replayed:', value })
    }
    const backlogs = replicas.flatMap(({ name, bytes }) => (bytes === undefined ? [] : [{ name, bytes }]))
    const [worst] = backlogs.toSorted((a, b) => b.bytes - a.bytes)
    // `replication lag` reports replicas without a WAL position.
    if (!worst && replicas.length > 0) return []
    const result = worst
      ? compare({ what: `${worst.name} has not replayed`, value: Math.max(0, worst.bytes) })
      : ok(check, 'no replica connected')
    return hidden === 0 || result.status === 'failed' ? result : hiddenFrom(check, user, hidden, 'replica')
  },
})

export const replicas = onDatabase({
  depth: 'Advanced',
  results: { replicas: 'At least `replicas` replicas are streaming; omitted without that setting' },
  settings: {
    replicas: {
      type: 'integer',
      min: 0,
      max: 1_000,
      doc: 'Minimum number of replicas that stream from this server; logical subscribers do not count',
    },
  },
  when: ['replicas'],
  privilege,
  observe: replication,
  evaluate: ({ replicas, hidden, user }, { replicas: min = 0 }) => {
    const streaming = replicas.filter(({ state, logical }) => state === 'streaming' && !logical).length
    const message = `${streaming} of ${min} expected replicas ${streaming === 1 ? 'is' : 'are'} streaming`
    const more: Partial<Result> = {
      measurement: { value: streaming, unit: 'count', limit: min, bound: 'atLeast' },
      details: replicas.map(({ name, state }) => `${name}: ${state}`).slice(0, 20),
    }
    if (streaming < min && hidden > 0) return hiddenFrom('replicas', user, hidden, 'replica')
    return streaming >= min ? ok('replicas', message, more) : fail('replicas', 'threshold', message, more)
  },
})

/** In the order of their results. */
export const replicationChecks = [walReceiver, newestWal, replicationLag, replicationBytes, replicas]

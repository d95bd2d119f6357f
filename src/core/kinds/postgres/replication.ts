import { setTimeout as pause } from 'node:timers/promises'
import { type DatabaseConnection, figure, flag, onDatabase, type Row, text, truth } from '../../database/index.ts'
import { atMost, fail, notChecked, ok, type Result, sharedRead } from '../../engine/index.ts'
import { showBytes, showDuration } from '../../format.ts'
import { count } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { SettingsSpec, Threshold } from '../../settings/index.ts'
import { hiddenFrom, hiddenWithout, inMs, privilege } from './checks.ts'
import { grantTo } from './errors.ts'

type Ask = DatabaseConnection['ask']

/** The newest WAL position of this server: written on a primary, received on a standby. */
export const hereLsn = `CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
  ELSE pg_current_wal_lsn() END`

/** A replica that streams from this server. */
type Replica = {
  readonly name: string
  readonly state: string
  /** True for a logical subscriber, which has only a part of the data. */
  readonly logical: boolean
  /** Bytes of this server's WAL that the replica has not replayed, or not written if it replays none. */
  readonly bytes: number | undefined
  readonly lagMs: number | undefined
  /** Milliseconds since its last report; undefined before PostgreSQL 12. */
  readonly silentMs: number | undefined
}

/** What a standby receives from its primary. */
type Receiver = {
  readonly connected: boolean | undefined
  /**
   * True if the configuration names a primary, so that the standby should be connected. Undefined if this account may
   * not see it.
   */
  readonly follows: boolean | undefined
  /** Milliseconds since the last message of the primary; undefined if this account may not see it. */
  readonly silentMs: number | undefined
}

/** The replay status of a standby. */
type Replay = Receiver & {
  readonly paused: boolean
  /** True if everything received has been replayed. */
  readonly current: boolean
  readonly sinceReplayMs: number | undefined
  /** Bytes of WAL that it has received and not replayed; undefined if it has received none. */
  readonly bytes: number | undefined
}

const lagDoc = 'Replication lag of its standbys, or its own as a standby, is within the limit'

const replication = sharedRead('replication lag', lagDoc, async ({ ask, user }: DatabaseConnection) => {
  const [row] = await ask('SELECT pg_is_in_recovery() AS standby')
  const isStandby = flag(row, 'standby')
  if (isStandby === undefined) throw new ProbeError('protocol', 'the server does not report its role')
  return {
    user,
    ...(await readReplicasTwice(ask)),
    /** Undefined on a primary. */
    replay: isStandby ? await readReplay(ask) : undefined,
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
  const replicas: readonly Replica[] = visible.map((row) => ({
    name: text(row, 'name'),
    state: text(row, 'state'),
    logical: truth(row, 'logical'),
    bytes: figure(row, 'bytes'),
    lagMs: figure(row, 'lag'),
    silentMs: figure(row, 'silent'),
  }))
  /** `hidden` is the number of replicas whose details this account cannot see. */
  return { replicas, hidden: rows.length - visible.length }
}

/** The columns of `receiverOf`. A primary sends a message at least every half of wal_sender_timeout, usually 30 s. */
const receiver = `(SELECT count(*) FROM pg_stat_wal_receiver WHERE pid IS NOT NULL) > 0 AS connected,
  (SELECT ${inMs('clock_timestamp() - last_msg_receipt_time')} FROM pg_stat_wal_receiver) AS silent,
  (SELECT setting <> '' FROM pg_settings WHERE name = 'primary_conninfo') AS follows`

const receiverOf = (row: Row | undefined): Receiver => ({
  connected: flag(row, 'connected'),
  follows: flag(row, 'follows'),
  silentMs: figure(row, 'silent'),
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
  observe: async ({ ask, user }) => {
    const [row] = await ask(`SELECT pg_is_in_recovery() AS standby, ${receiver}`)
    return { user, isStandby: flag(row, 'standby'), ...receiverOf(row) }
  },
  evaluate: ({ user, isStandby, ...receiver }, { walReceiver: threshold }) => {
    const check = 'wal receiver'
    if (isStandby === false) return []
    const { connected, follows, silentMs: value } = receiver
    if (isStandby === undefined || connected === undefined) {
      return notChecked(check, 'missing', 'the state of the WAL receiver is not reported')
    }
    if (connected && value === undefined) return hiddenReceiver(check, user)
    if (connected) {
      return atMost({ check, what: 'last message from its primary', value, unit: 'duration', after: 'ago', threshold })
    }
    if (follows === undefined) return hiddenPrimary(check, user)
    return follows
      ? fail(check, 'data', 'not connected to its primary (no WAL receiver)', { details: [checkConninfo] })
      : ok(check, 'primary_conninfo is empty: this standby reads WAL from an archive')
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

async function readReplay(ask: Ask): Promise<Replay> {
  const read = (received: string): Promise<readonly Row[]> =>
    ask(`SELECT ${received} <= pg_last_wal_replay_lsn() AS current, pg_last_wal_receive_lsn()::text AS received,
      pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())::float8 AS bytes,
      pg_is_wal_replay_paused() AS paused,
      ${inMs('clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time())')} AS since,
      ${receiver}`)
  let [row] = await read('pg_last_wal_receive_lsn()')
  const received = text(row, 'received')
  if (!truth(row, 'current') && /^[0-9A-F]+\/[0-9A-F]+$/.test(received)) {
    await pause(secondReadMs)
    ;[row] = await read(`'${received}'::pg_lsn`)
  }
  return {
    ...receiverOf(row),
    paused: truth(row, 'paused'),
    current: truth(row, 'current'),
    sinceReplayMs: figure(row, 'since'),
    bytes: figure(row, 'bytes'),
  }
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

function evaluateReplay(
  { connected, follows, silentMs, paused, current, sinceReplayMs }: Replay,
  { user, threshold, silence }: { readonly user: string; readonly threshold: Threshold; readonly silence: Threshold },
): Result<'replication lag'> {
  const check = 'replication lag'
  if (connected === undefined) return notChecked(check, 'missing', 'the state of the WAL receiver is not reported')
  if (connected && silentMs === undefined) return hiddenReceiver(check, user)
  if (!connected && follows === undefined) return hiddenPrimary(check, user)
  if (!connected && follows) {
    const last = sinceReplayMs === undefined ? '' : `; last replay ${showDuration(sinceReplayMs)} ago`
    return fail(check, 'data', `not connected to its primary (no WAL receiver)${last}`, { details: [checkConninfo] })
  }
  // A standby that has replayed all it received cannot know what a silent primary has written since.
  const longest = silence.warn ?? silence.limit ?? Number.POSITIVE_INFINITY
  const unknownMs = silentMs !== undefined && silentMs > longest ? silentMs : 0
  const result = atMost({
    check,
    what: 'lag',
    value: current ? unknownMs : sinceReplayMs,
    unit: 'duration',
    threshold,
    details: [
      ...(current ? [] : [paused ? resume : 'check for a long query on the standby']),
      ...(unknownMs > 0 ? [`no message from its primary for ${showDuration(unknownMs)}`] : []),
    ],
  })
  return paused ? { ...result, message: `${result.message}; replay is paused` } : result
}

export const replicationBytes = onDatabase({
  depth: 'Advanced',
  results: {
    'replication backlog': 'The WAL that its standbys, or it as a standby, have not replayed is within the limit',
  },
  settings: {
    replicationBacklog: {
      type: 'threshold',
      unit: 'bytes',
      default: { warn: 64 * 1024 ** 2, limit: 1024 ** 3 },
      doc: 'Maximum amount of WAL that a standby has not replayed',
    },
  },
  privilege,
  observe: replication,
  evaluate: ({ replay, replicas, hidden, user }, { replicationBacklog: threshold }) => {
    const check = 'replication backlog'
    if (replay) {
      // Without a WAL receiver, and before it has received anything, `replication lag` reports what is wrong.
      if (replay.connected !== true || replay.bytes === undefined) return []
      const value = Math.max(0, replay.bytes)
      return atMost({ check, what: 'received and not replayed:', value, unit: 'bytes', threshold })
    }
    const backlogs = replicas.flatMap(({ name, bytes }) => (bytes === undefined ? [] : [{ name, bytes }]))
    const [worst] = backlogs.toSorted((a, b) => b.bytes - a.bytes)
    // `replication lag` reports replicas without a WAL position.
    if (!worst && replicas.length > 0) return []
    const result = worst
      ? atMost({
          check,
          what: `${worst.name} has not replayed`,
          value: Math.max(0, worst.bytes),
          unit: 'bytes',
          threshold,
        })
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
export const replicationChecks = [walReceiver, replicationLag, replicationBytes, replicas]

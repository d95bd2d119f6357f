import { setTimeout as pause } from 'node:timers/promises'
import { type DatabaseConnection, figure, flag, onDatabase, type Row, text, truth } from '../../database/index.ts'
import {
  atLeast,
  atMost,
  fail,
  notChecked,
  ok,
  type Result,
  sharedRead,
  warn,
  withThreshold,
} from '../../engine/index.ts'
import { showBytes, showDuration } from '../../format.ts'
import { count } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { SettingsSpec, Threshold } from '../../settings/index.ts'
import { hiddenFrom, inMs, privilege } from './checks.ts'
import { grantTo } from './errors.ts'

type Ask = DatabaseConnection['ask']

/** The newest WAL position of this server: written on a primary, received on a standby. */
const hereLsn = `CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
  ELSE pg_current_wal_lsn() END`

/** A replica that streams from this server. */
type Replica = {
  readonly name: string
  readonly state: string
  /** Bytes of this server's WAL that the replica has not replayed, or not written if it replays none. */
  readonly bytes: number | undefined
  readonly lagMs: number | undefined
  /** Milliseconds since its last report; undefined before PostgreSQL 12. */
  readonly silentMs: number | undefined
}

/** The replay status of a standby. */
type Replay = {
  readonly connected: boolean | undefined
  /**
   * True if the configuration names a primary, so that the standby should be connected. Undefined if this account may
   * not see it.
   */
  readonly follows: boolean | undefined
  readonly paused: boolean
  /** True if everything received has been replayed. */
  readonly current: boolean
  readonly sinceReplayMs: number | undefined
}

const lagDoc = 'Replication lag of its standbys, or its own as a standby, is within the limit'

const replication = sharedRead('replication lag', lagDoc, async ({ ask, user }: DatabaseConnection) => {
  const [row] = await ask('SELECT pg_is_in_recovery() AS standby')
  const isStandby = flag(row, 'standby')
  if (isStandby === undefined) throw new ProbeError('protocol', 'the server does not report its role')
  return {
    user,
    ...(await readReplicas(ask)),
    /** Undefined on a primary. */
    replay: isStandby ? await readReplay(ask) : undefined,
  }
})

async function readReplicas(ask: Ask) {
  const rows = await ask(`SELECT application_name AS name, state, ${inMs('replay_lag')} AS lag,
      pg_wal_lsn_diff(${hereLsn}, coalesce(replay_lsn, write_lsn))::float8 AS bytes,
      ${inMs(`clock_timestamp() - (to_jsonb(r)->>'reply_time')::timestamptz`)} AS silent
    FROM pg_stat_replication AS r 
    WHERE application_name NOT IN ('pg_basebackup', 'pg_receivewal') AND state IS DISTINCT FROM 'backup' LIMIT 200`)
  const visible = rows.filter((row) => row.state !== null)
  const replicas: readonly Replica[] = visible.map((row) => ({
    name: text(row, 'name'),
    state: text(row, 'state'),
    bytes: figure(row, 'bytes'),
    lagMs: figure(row, 'lag'),
    silentMs: figure(row, 'silent'),
  }))
  /** `hidden` is the number of replicas whose details this account cannot see. */
  return { replicas, hidden: rows.length - visible.length }
}

/** Milliseconds until a standby that lags is read again: a record may have arrived just before. */
const secondReadMs = 200

async function readReplay(ask: Ask): Promise<Replay> {
  const read = (received: string): Promise<readonly Row[]> =>
    ask(`SELECT ${received} <= pg_last_wal_replay_lsn() AS current, pg_last_wal_receive_lsn()::text AS received,
      pg_is_wal_replay_paused() AS paused,
      ${inMs('clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time())')} AS since,
      (SELECT count(*) FROM pg_stat_wal_receiver WHERE pid IS NOT NULL) > 0 AS connected,
      (SELECT setting <> '' FROM pg_settings WHERE name = 'primary_conninfo') AS follows`)
  let [row] = await read('pg_last_wal_receive_lsn()')
  const received = text(row, 'received')
  if (!truth(row, 'current') && /^[0-9A-F]+\/[0-9A-F]+$/.test(received)) {
    await pause(secondReadMs)
    ;[row] = await read(`'${received}'::pg_lsn`)
  }
  return {
    connected: flag(row, 'connected'),
    follows: flag(row, 'follows'),
    paused: truth(row, 'paused'),
    current: truth(row, 'current'),
    sinceReplayMs: figure(row, 'since'),
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
  },
  privilege,
  observe: replication,
  // On a standby, evaluates its own replay; on a primary, its replicas.
  evaluate: ({ replay, replicas, hidden, user }, { replicationLag: threshold }) => {
    if (replay) return evaluateReplay(replay, user, threshold)
    const result = evaluateReplicas(replicas, threshold)
    return hidden === 0 || result.status === 'failed' ? result : hiddenFrom('replication lag', user, hidden, 'replica')
  },
})

function evaluateReplicas(replicas: readonly Replica[], threshold: Threshold): Result<'replication lag'> {
  const lags = replicas
    .filter(({ bytes }) => bytes !== undefined)
    .map((replica) => ({ replica, lag: lagOf(replica) }))
    .sort((a, b) => b.lag - a.lag)
  const [worst] = lags
  if (!worst) {
    if (replicas.length === 0) return ok('replication lag', 'no replica connected')
    const silent = `${count(replicas.length, 'replica')} connected, without a WAL position`
    return notChecked('replication lag', 'missing', silent, {
      details: replicas.map(({ name, state }) => `${name}: ${state}`),
    })
  }
  return atMost({
    check: 'replication lag',
    what: `${worst.replica.name} lags by`,
    value: worst.lag,
    unit: 'duration',
    threshold,
    details: lags.map(({ replica, lag }) => describeReplica(replica, lag)).slice(0, 20),
  })
}

/** Twice the interval at which a standby reports unasked: a longer silence means that it hangs. */
const maxSilenceMs = 20_000

/** On an idle primary, lag times keep growing: a replica that has replayed everything does not lag. */
function lagOf({ bytes = 0, lagMs = 0, silentMs = 0 }: Replica): number {
  if (bytes <= 0) return 0
  return Math.max(lagMs, silentMs > maxSilenceMs ? silentMs : 0)
}

const describeReplica = ({ name, state, bytes = 0 }: Replica, lag: number): string =>
  `${name}: ${state}, ${showBytes(Math.max(0, bytes))} and ${showDuration(lag)} behind`

const resume = 'to resume replay: SELECT pg_wal_replay_resume() on the standby'

function evaluateReplay(
  { connected, follows, paused, current, sinceReplayMs }: Replay,
  user: string,
  threshold: Threshold,
): Result<'replication lag'> {
  if (connected === false && follows === undefined) {
    const why = 'it has no WAL receiver, and primary_conninfo is hidden from this account'
    return notChecked('replication lag', 'permission', why, { details: [grantTo(user)] })
  }
  if (connected === false && follows) {
    const last = sinceReplayMs === undefined ? '' : `; last replay ${showDuration(sinceReplayMs)} ago`
    const message = `not connected to its primary (no WAL receiver)${last}`
    return fail('replication lag', 'data', message, { details: ["check the standby's log and primary_conninfo"] })
  }
  const result = atMost({
    check: 'replication lag',
    what: 'lag',
    value: current ? 0 : sinceReplayMs,
    unit: 'duration',
    threshold,
    ...(current ? {} : { details: [paused ? resume : 'check for a long query on the standby'] }),
  })
  return paused ? { ...result, message: `${result.message}; replay is paused` } : result
}

export const replicas = onDatabase({
  depth: 'Advanced',
  results: { replicas: 'At least `replicas` replicas are streaming; omitted without that setting' },
  settings: {
    replicas: { type: 'integer', min: 0, max: 1_000, doc: 'Minimum number of replicas that stream from this server' },
  },
  when: ['replicas'],
  privilege,
  observe: replication,
  evaluate: ({ replicas, hidden, user }, { replicas: min = 0 }) => {
    const streaming = replicas.filter(({ state }) => state === 'streaming').length
    const are = `${count(streaming, 'replica is', 'replicas are')} streaming`
    const message = withThreshold(are, { limit: min }, 'count', 'atLeast')
    const more: Partial<Result> = {
      measurement: { value: streaming, unit: 'count', limit: min, bound: 'atLeast' },
      details: replicas.map(({ name, state }) => `${name}: ${state}`).slice(0, 20),
    }
    if (streaming < min && hidden > 0) return hiddenFrom('replicas', user, hidden, 'replica')
    return streaming >= min ? ok('replicas', message, more) : fail('replicas', 'threshold', message, more)
  },
})

type Slot = {
  readonly name: string
  readonly active: boolean
  /** Undefined before PostgreSQL 17, or while the slot is active. */
  readonly inactiveMs: number | undefined
  /** Bytes of WAL that the slot retains. */
  readonly bytes: number | undefined
  readonly lost: boolean
}

const slotSettings = {
  slots: {
    type: 'threshold',
    unit: 'bytes',
    default: { warn: 10 * 1024 ** 3 },
    doc: 'Maximum amount of WAL that a replication slot retains',
  },
  inactiveSlots: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 600_000 },
    doc: 'Maximum time that a replication slot is without its consumer; before PostgreSQL 17, any such time counts',
  },
} as const satisfies SettingsSpec

export const slots = onDatabase({
  depth: 'Advanced',
  results: { slots: 'No replication slot is abandoned or retains too much WAL' },
  settings: slotSettings,
  observe: async ({ ask }) => {
    // A slot that is synchronized from the primary is always inactive on a standby.
    const rows = await ask(`SELECT slot_name AS name, active, to_jsonb(s)->>'wal_status' = 'lost' AS lost,
        CASE WHEN restart_lsn IS NULL THEN 0 ELSE pg_wal_lsn_diff(${hereLsn}, restart_lsn) END::float8 AS bytes,
        ${inMs(`clock_timestamp() - (to_jsonb(s)->>'inactive_since')::timestamptz`)} AS inactive
      FROM pg_replication_slots AS s WHERE NOT temporary AND coalesce(to_jsonb(s)->>'synced', 'false') = 'false'
      LIMIT 1000`)
    return rows.map(
      (row): Slot => ({
        name: text(row, 'name'),
        active: truth(row, 'active'),
        inactiveMs: figure(row, 'inactive'),
        bytes: figure(row, 'bytes'),
        lost: truth(row, 'lost'),
      }),
    )
  },
  evaluate: (slots, settings) => {
    if (slots.length === 0) return ok('slots', 'none')
    const results = slots
      .map((slot) => evaluateSlot(slot, settings.slots, settings.inactiveSlots))
      .sort((a, b) => severity[b.status] - severity[a.status])
    const [first, ...others] = results.filter(({ status }) => status !== 'ok')
    if (!first) return ok('slots', `${count(slots.length, 'slot')}, all in use`)
    return { ...first, details: others.slice(0, 19).map(({ message }) => message) }
  },
})

const severity: Record<Result['status'], number> = { ok: 0, warning: 1, failed: 2 }

function evaluateSlot(
  { name, active, inactiveMs, bytes, lost }: Slot,
  size: Threshold,
  inactive: Threshold,
): Result<'slots'> {
  if (lost) return warn('slots', `${name} has lost WAL that its consumer needs: set up the replica again`)
  const what = `${name} retains`
  const result = atMost({ check: 'slots', what, value: bytes, unit: 'bytes', threshold: size })
  if (result.status === 'failed' || active) return result
  const since = inactiveMs ?? Number.POSITIVE_INFINITY
  const time = inactiveMs === undefined ? '' : ` for ${showDuration(inactiveMs)}`
  const retains = bytes === undefined ? '' : ` and retains ${showBytes(bytes)}`
  const state = `${name} has had no consumer${time}${retains}`
  const message = withThreshold(state, inactive, 'duration', 'atMost')
  const more: Partial<Result> =
    inactiveMs === undefined
      ? {}
      : { measurement: { value: inactiveMs, unit: 'milliseconds', ...inactive, bound: 'atMost' } }
  if (inactive.limit !== undefined && since > inactive.limit) return fail('slots', 'threshold', message, more)
  if (inactive.warn === undefined || since <= inactive.warn) return result
  return warn('slots', message, more)
}

/**
 * The number of standbys that a commit waits for, according to synchronous_standby_names: `FIRST 2 (a, b, c)`, `ANY 2
 * (*)`, `2 (a, b)`, and one for a plain list.
 */
function requiredStandbys(names: string): number {
  if (names === '') return 0
  const [, number] = /^(?:(?:first|any) ?)?(\d{1,9}) ?\(/i.exec(names) ?? []
  return number === undefined ? 1 : Number(number)
}

/** Values of synchronous_commit with which a commit waits for no standby. */
const localCommits = new Set(['off', 'local'])

export const synchronousStandbys = onDatabase({
  depth: 'Advanced',
  results: { 'synchronous standbys': 'The standbys that commits wait for are connected; omitted on a standby' },
  settings: {
    spareStandbys: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 0 },
      doc: 'Number of standbys in synchronous_standby_names that stream beyond those that a commit waits for',
    },
  },
  privilege,
  observe: async ({ ask, user }) => {
    const [row] =
      await ask(`SELECT pg_is_in_recovery() AS standby, current_setting('synchronous_standby_names') AS names,
      current_setting('synchronous_commit') AS commit,
      (SELECT count(*) FROM pg_stat_replication
        WHERE state = 'streaming' AND sync_state IN ('sync', 'potential', 'quorum')) AS streaming,
      (SELECT count(*) FROM pg_stat_replication WHERE state IS NULL) AS hidden,
      (SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep') AS waiting`)
    const streaming = figure(row, 'streaming')
    const hidden = figure(row, 'hidden')
    if (typeof row?.names !== 'string' || streaming === undefined || hidden === undefined) {
      throw new ProbeError('protocol', 'the server does not report its synchronous standbys')
    }
    return {
      user,
      isStandby: truth(row, 'standby'),
      /** The number of standbys that a commit waits for. */
      required: requiredStandbys(text(row, 'names')),
      streaming,
      /** The number of replicas whose details this account cannot see. */
      hidden,
      /** The number of visible sessions whose commit is waiting. */
      waiting: figure(row, 'waiting'),
      commit: text(row, 'commit'),
    }
  },
  evaluate: ({ user, isStandby, required, streaming, hidden, waiting = 0, commit }, { spareStandbys: spare }) => {
    const check = 'synchronous standbys'
    if (isStandby) return []
    if (required === 0) return ok(check, 'no commit waits for a standby (synchronous_standby_names is empty)')
    const what = `a commit waits for ${count(required, 'standby')}; streaming standbys:`
    const threshold: Threshold = {
      ...(spare.warn === undefined ? {} : { warn: required + spare.warn }),
      ...(spare.limit === undefined ? {} : { limit: required + spare.limit }),
    }
    const waits = waiting === 0 ? [] : [`${count(waiting, 'commit is', 'commits are')} waiting for a standby now`]
    const details = [...waits, 'inspect: SELECT application_name, state, sync_state FROM pg_stat_replication']
    const result = atLeast({ check, what, value: streaming, unit: 'count', threshold })
    if (result.status === 'ok') return result
    if (hidden > 0) return hiddenFrom(check, user, hidden, 'replica')
    if (!localCommits.has(commit)) return { ...result, details }
    const message = `${result.message}; synchronous_commit is ${commit}, so only a session that sets it otherwise waits`
    return warn(check, message, { measurement: result.measurement, details })
  },
})

/** In the order of their results. */
export const replicationChecks = [replicationLag, replicas, slots, synchronousStandbys]

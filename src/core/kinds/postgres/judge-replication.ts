import { atMost, fail, ok, type Result, warn } from '../../engine/index.ts'
import { show, showBytes, showDuration } from '../../format.ts'
import { count } from '../../net/text.ts'
import { hiddenFrom } from './hidden.ts'
import type { Replay, Replica, Replicas, Slot, Slots } from './replication.ts'
import type { PostgresSettings } from './settings.ts'

/** Twice the interval at which a standby reports by itself: silent for longer, it hangs. */
const silenceMs = 20_000

export function evaluateReplicas(seen: Replicas, settings: PostgresSettings): Result[] {
  const results = seen.cascading ? [] : [evaluateLag(seen, settings)]
  const { replicas: wanted } = settings
  if (wanted === undefined) return results
  const streaming = seen.replicas.filter((replica) => replica.state === 'streaming').length
  const message = `${streaming} of ${wanted} expected replicas ${streaming === 1 ? 'streams' : 'stream'}`
  const details = seen.replicas.map((replica) => `${replica.name}: ${replica.state}`).slice(0, 20)
  const more: Partial<Result> = { measurement: { value: streaming, unit: 'count', limit: wanted }, details }
  return [
    ...results,
    streaming >= wanted ? ok('replicas', message, more) : fail('replicas', 'threshold', message, more),
  ]
}

function evaluateLag(seen: Replicas, { replicationLag, url }: PostgresSettings): Result {
  const lags = seen.replicas
    .filter((replica) => replica.bytes !== undefined)
    .map((replica) => ({ replica, lag: lagOf(replica) }))
    .sort((a, b) => b.lag - a.lag)
  const [worst] = lags
  const judged = worst
    ? atMost({
        check: 'replication lag',
        what: `${worst.replica.name} is behind by`,
        value: worst.lag,
        unit: 'duration',
        threshold: replicationLag,
        details: lags.map(({ replica, lag }) => told(replica, lag)).slice(0, 20),
      })
    : ok('replication lag', 'no replica is connected')
  if (seen.hidden === 0 || judged.status === 'failed') return judged
  return hiddenFrom(url, 'replication lag', seen.hidden, 'replica')
}

/** An idle primary makes times grow: what has replayed everything is not behind. */
function lagOf({ bytes = 0, lagMs = 0, silentMs = 0 }: Replica): number {
  if (bytes <= 0) return 0
  return Math.max(lagMs, silentMs > silenceMs ? silentMs : 0)
}
const told = (replica: Replica, lag: number): string =>
  `${replica.name}: ${replica.state}, ${showBytes(Math.max(0, replica.bytes ?? 0))} and ${showDuration(lag)} behind`

const resume = 'SELECT pg_wal_replay_resume() on the standby goes on with it'

export function evaluateReplay(seen: Replay, { replicationLag }: PostgresSettings): Result {
  const last = `last replay ${showDuration(seen.sinceReplayMs)} ago`
  if (seen.follows && seen.connected === false) {
    const message = `not connected to its primary (no WAL receiver); ${last}`
    return fail('replication lag', 'data', message, { details: ["look: the standby's log, and primary_conninfo"] })
  }
  const judged = atMost({
    check: 'replication lag',
    what: 'behind by',
    value: seen.current ? 0 : seen.sinceReplayMs,
    unit: 'duration',
    threshold: replicationLag,
    ...(seen.current ? {} : { details: [seen.paused ? resume : 'look for a long query on the standby'] }),
  })
  return seen.paused ? { ...judged, message: `${judged.message}; replay is paused` } : judged
}

export function evaluateSlots({ slots }: Slots, settings: PostgresSettings): Result {
  if (slots.length === 0) return ok('slots', 'none')
  const results = slots.map((slot) => evaluateSlot(slot, settings)).sort((a, b) => rank[b.status] - rank[a.status])
  const bad = results.filter((result) => result.status !== 'ok')
  const [first] = bad
  if (!first) return ok('slots', `${count(slots.length, 'slot')}, all in use`)
  return { ...first, details: bad.slice(1, 20).map((result) => result.message) }
}
const rank: Record<Result['status'], number> = { ok: 0, warning: 1, failed: 2 }

function evaluateSlot(slot: Slot, { slots, inactiveSlots }: PostgresSettings): Result {
  const held = atMost({
    check: 'slots',
    what: `${slot.name} holds back`,
    value: slot.bytes,
    unit: 'bytes',
    threshold: slots,
  })
  if (slot.lost) return warn('slots', `${slot.name} has lost WAL that its consumer needs: it must be set up anew`)
  if (held.status === 'failed' || slot.active) return held
  const since = slot.inactiveMs ?? Number.POSITIVE_INFINITY
  const { warn: soft, limit } = inactiveSlots
  const for_ = slot.inactiveMs === undefined ? '' : ` for ${showDuration(since)}`
  const message = `${slot.name} has had no consumer${for_}, and holds back ${showBytes(slot.bytes)}`
  if (limit !== undefined && since > limit) {
    return fail('slots', 'threshold', `${message} (limit ${show(limit, 'duration')})`)
  }
  return soft !== undefined && since > soft ? warn('slots', `${message} (warns above ${show(soft, 'duration')})`) : held
}

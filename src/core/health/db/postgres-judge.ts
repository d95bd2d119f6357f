import { atLeast, atMost, fail, ok, show, showBytes, showDuration, warn } from '../judge.ts'
import type { Finding } from '../monitor.ts'
import { count, said } from '../probe/text.ts'
import { grant } from './postgres-faults.ts'
import type {
  Archiver,
  Checksums,
  Connections,
  Locks,
  Prepared,
  Replay,
  Replicas,
  Server,
  Slot,
  Slots,
  Transactions,
  Wraparound,
} from './postgres-look.ts'
import type { PostgresSettings } from './postgres-settings.ts'

export type PostgresLook =
  | Server
  | Connections
  | Transactions
  | Locks
  | Replicas
  | Replay
  | Slots
  | Wraparound
  | Archiver
  | Prepared
  | Checksums

type Judges = {
  readonly [K in PostgresLook['see']]: (
    seen: Extract<PostgresLook, { see: K }>,
    settings: PostgresSettings,
  ) => Finding | readonly Finding[]
}

/** Judges what one query saw. */
export const judgeLook = (seen: PostgresLook, settings: PostgresSettings): Finding | readonly Finding[] =>
  (judges[seen.see] as (seen: PostgresLook, settings: PostgresSettings) => Finding | readonly Finding[])(seen, settings)

const judges: Judges = {
  server: (seen, settings) => [
    judgeRole(seen, settings.role),
    atLeast({ check: 'restarted', what: 'up for', value: seen.upMs, unit: 'duration', threshold: settings.restarted }),
  ],
  connections: (seen, { connections }) =>
    atMost({
      check: 'connections',
      what: `${seen.used} of ${seen.usable} usable connections:`,
      value: seen.usable > 0 ? (seen.used / seen.usable) * 100 : 100,
      unit: 'percent',
      threshold: connections,
    }),
  transactions: judgeTransactions,
  locks: (seen, { lockWait }) => {
    if (seen.waiting === 0) return ok('lock wait', 'nobody waits for a lock')
    const next = seen.pid === undefined ? [] : [`look: SELECT pg_blocking_pids(${seen.pid})`]
    return atMost({
      check: 'lock wait',
      what: `${count(seen.waiting, 'session waits', 'sessions wait')} for a lock, the longest for`,
      value: seen.longestMs,
      unit: 'duration',
      threshold: lockWait,
      details: next,
    })
  },
  replicas: judgeReplicas,
  replay: judgeReplay,
  slots: judgeSlots,
  wraparound: (seen, { wraparound }) =>
    atMost({
      check: 'wraparound',
      what: `the oldest ${seen.of} id, in ${seen.database}, is at`,
      value: (seen.age / seen.failsafe) * 100,
      unit: 'percent',
      threshold: wraparound,
      details: [`age ${seen.age}; emergency measures begin at ${seen.failsafe}`],
    }),
  archiver: (seen) => {
    if (!seen.on) return ok('archiver', 'archive_mode is off: there is nothing to archive')
    if (!seen.failing) return ok('archiver', 'the last WAL file was archived')
    const since = seen.sinceSuccessMs === undefined ? 'never succeeded' : `last success ${ago(seen.sinceSuccessMs)}`
    const message = `archiving fails: ${count(seen.failures, 'failure')}, the last with ${seen.lastFailed}; ${since}`
    return fail('archiver', 'data', message, { details: ["look: archive_command, and the server's log"] })
  },
  prepared: (seen, { preparedTransactions }) =>
    seen.count === 0
      ? ok('prepared transactions', 'none')
      : atMost({
          check: 'prepared transactions',
          what: `${seen.count} wait for their second phase, the oldest (${seen.who}) for`,
          value: seen.oldestMs,
          unit: 'duration',
          threshold: preparedTransactions,
        }),
  checksums: (seen) => {
    if (!seen.on) return ok('checksum failures', 'data checksums are off: there is nothing to count')
    if (seen.failed.length === 0) return ok('checksum failures', 'none')
    const message = `pages with wrong checksums were read (${seen.failed.slice(0, 3).join(', ')}): the disk or the memory lies`
    return fail('checksum failures', 'data', message, {
      details: [...seen.failed.slice(3), 'next: restore those databases elsewhere from a backup, and compare'],
    })
  },
}

const ago = (ms: number): string => `${showDuration(ms)} ago`

function judgeRole(seen: Server, wanted: PostgresSettings['role']): Finding {
  const is = seen.standby ? 'standby' : 'primary'
  const told = `${is}, PostgreSQL ${seen.version}`
  if (wanted !== 'any' && wanted !== is) return fail('role', 'data', `is a ${is}, and should be a ${wanted}`)
  if (!seen.standby && seen.readOnly) {
    const message = `${told}, but read-only (default_transaction_read_only)`
    return wanted === 'primary' ? fail('role', 'data', message) : warn('role', message)
  }
  return ok('role', told)
}

function judgeTransactions(seen: Transactions, { longestTransaction, url }: PostgresSettings): Finding {
  const judged = atMost({
    check: 'longest transaction',
    what: seen.who ? `${seen.who}, for` : 'no transaction is open, longest',
    value: seen.longestMs,
    unit: 'duration',
    threshold: longestTransaction,
  })
  // Not a silent green: what is hidden may be the longest.
  if (judged.level !== 'fail' && seen.hidden > 0) {
    return fail('longest transaction', 'data', `${hidden(seen.hidden, 'session')} hidden from this account`, {
      details: [grant(userOf(url))],
    })
  }
  return seen.who ? judged : ok('longest transaction', 'no other transaction is open')
}

const hidden = (n: number, one: string): string => `${count(n, one)} ${n === 1 ? 'is' : 'are'}`
const userOf = (url: string): string => said(decodeURIComponent(new URL(url).username), 64)

/** Twice the interval at which a standby reports by itself: silent for longer, it hangs. */
const silenceMs = 20_000

function judgeReplicas(seen: Replicas, settings: PostgresSettings): Finding[] {
  const findings = seen.cascading ? [] : [judgeLag(seen, settings)]
  const { replicas: wanted } = settings
  if (wanted === undefined) return findings
  const streaming = seen.replicas.filter((replica) => replica.state === 'streaming').length
  const message = `${streaming} of ${count(wanted, 'expected replica')} ${streaming === 1 ? 'streams' : 'stream'}`
  const details = seen.replicas.map((replica) => `${replica.name}: ${replica.state}`).slice(0, 20)
  const more = { observed: streaming, limit: wanted, details }
  return [
    ...findings,
    streaming >= wanted ? ok('replicas', message, more) : fail('replicas', 'threshold', message, more),
  ]
}

function judgeLag(seen: Replicas, { replicationLag, url }: PostgresSettings): Finding {
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
  if (seen.hidden === 0 || judged.level === 'fail') return judged
  return fail('replication lag', 'data', `${hidden(seen.hidden, 'replica')} hidden from this account`, {
    details: [grant(userOf(url))],
  })
}

type One = Replicas['replicas'][number]
/** An idle primary makes times grow: what has replayed everything is not behind. */
function lagOf({ bytes = 0, lagMs = 0, silentMs = 0 }: One): number {
  if (bytes <= 0) return 0
  return Math.max(lagMs, silentMs > silenceMs ? silentMs : 0)
}
const told = (replica: One, lag: number): string =>
  `${replica.name}: ${replica.state}, ${showBytes(Math.max(0, replica.bytes ?? 0))} and ${showDuration(lag)} behind`

function judgeReplay(seen: Replay, { replicationLag }: PostgresSettings): Finding {
  const last = `last replay ${ago(seen.sinceReplayMs)}`
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
    ...(seen.current ? {} : { details: ['look for a long query on the standby'] }),
  })
  return seen.paused ? { ...judged, message: `${judged.message}; replay is paused` } : judged
}

function judgeSlots({ slots }: Slots, settings: PostgresSettings): Finding {
  if (slots.length === 0) return ok('slots', 'none')
  const findings = slots.map((slot) => judgeSlot(slot, settings)).sort((a, b) => rank[b.level] - rank[a.level])
  const bad = findings.filter((finding) => finding.level !== 'ok')
  const [first] = bad
  if (!first) return ok('slots', `${count(slots.length, 'slot')}, all in use`)
  return { ...first, details: bad.slice(1, 20).map((finding) => finding.message) }
}
const rank: Record<Finding['level'], number> = { ok: 0, warn: 1, fail: 2 }

function judgeSlot(slot: Slot, { slots, inactiveSlots }: PostgresSettings): Finding {
  const held = atMost({
    check: 'slots',
    what: `${slot.name} holds back`,
    value: slot.bytes,
    unit: 'bytes',
    threshold: slots,
  })
  if (slot.lost) return warn('slots', `${slot.name} has lost WAL that its consumer needs: it must be set up anew`)
  if (held.level === 'fail' || slot.active) return held
  const since = slot.inactiveMs ?? Number.POSITIVE_INFINITY
  const { warn: soft, limit } = inactiveSlots
  const for_ = slot.inactiveMs === undefined ? '' : ` for ${showDuration(since)}`
  const message = `${slot.name} has had no consumer${for_}, and holds back ${showBytes(slot.bytes)}`
  if (limit !== undefined && since > limit) {
    return fail('slots', 'threshold', `${message} (limit ${show(limit, 'duration')})`)
  }
  return soft !== undefined && since > soft ? warn('slots', `${message} (warns above ${show(soft, 'duration')})`) : held
}

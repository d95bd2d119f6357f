import {
  type Account,
  type Asked,
  type Clock,
  evaluateAccount,
  evaluateAsked,
  evaluateClock,
} from '../../database/index.ts'
import { atLeast, atMost, fail, ok, type Result, warn } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { count } from '../../net/text.ts'
import { hiddenFrom } from './hidden.ts'
import { evaluateReplay, evaluateReplicas, evaluateSlots } from './judge-replication.ts'
import type { Archiver, Checksums, Connections, Locks, Prepared, Server, Transactions, Wraparound } from './look.ts'
import type { Replay, Replicas, Slots } from './replication.ts'
import type { PostgresSettings } from './settings.ts'

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
  | Clock
  | Account
  | Asked

type Judges = {
  readonly [K in PostgresLook['see']]: (
    seen: Extract<PostgresLook, { see: K }>,
    settings: PostgresSettings,
  ) => Result | readonly Result[]
}

/** Judges what one query saw. */
export const evaluateLook = (seen: PostgresLook, settings: PostgresSettings): Result | readonly Result[] =>
  (judges[seen.see] as (seen: PostgresLook, settings: PostgresSettings) => Result | readonly Result[])(seen, settings)

const judges: Judges = {
  account: evaluateAccount,
  asked: evaluateAsked,
  clock: (seen, settings) => evaluateClock(seen, settings.clock),
  server: (seen, settings) => [
    evaluateRole(seen, settings.role),
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
  transactions: evaluateTransactions,
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
  replicas: evaluateReplicas,
  replay: evaluateReplay,
  slots: evaluateSlots,
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
    const since =
      seen.sinceSuccessMs === undefined ? 'never succeeded' : `last success ${showDuration(seen.sinceSuccessMs)} ago`
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

function evaluateRole(seen: Server, wanted: PostgresSettings['role']): Result {
  const is = seen.standby ? 'standby' : 'primary'
  const told = `${is}, PostgreSQL ${seen.version}`
  if (wanted !== 'any' && wanted !== is) return fail('role', 'data', `is a ${is}, and should be a ${wanted}`)
  if (!seen.standby && seen.readOnly) {
    const message = `${told}, but read-only (default_transaction_read_only)`
    return wanted === 'primary' ? fail('role', 'data', message) : warn('role', message)
  }
  return ok('role', told)
}

function evaluateTransactions(seen: Transactions, { longestTransaction, url }: PostgresSettings): Result {
  const judged = atMost({
    check: 'longest transaction',
    what: seen.who ? `${seen.who}, for` : 'no transaction is open, longest',
    value: seen.longestMs,
    unit: 'duration',
    threshold: longestTransaction,
  })
  if (judged.status !== 'failed' && seen.hidden > 0) {
    return hiddenFrom(url, 'longest transaction', seen.hidden, 'session')
  }
  return seen.who ? judged : ok('longest transaction', 'no other transaction is open')
}

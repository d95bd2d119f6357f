import { atLeast, atMost, fail, ok, showDuration, warn } from '../judge.ts'
import type { Finding } from '../monitor.ts'
import { count } from '../probe/text.ts'
import { type Clock, judgeClock } from './clock.ts'
import { hiddenFrom } from './postgres-hidden.ts'
import { judgeReplay, judgeReplicas, judgeSlots } from './postgres-judge-replication.ts'
import type {
  Archiver,
  Checksums,
  Connections,
  Locks,
  Prepared,
  Server,
  Transactions,
  Wraparound,
} from './postgres-look.ts'
import type { Replay, Replicas, Slots } from './postgres-replication.ts'
import type { PostgresSettings } from './postgres-settings.ts'
import type { Asked } from './query.ts'
import { type Account, judgeAccount } from './query-account.ts'
import { judgeAsked } from './query-judge.ts'

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
  ) => Finding | readonly Finding[]
}

/** Judges what one query saw. */
export const judgeLook = (seen: PostgresLook, settings: PostgresSettings): Finding | readonly Finding[] =>
  (judges[seen.see] as (seen: PostgresLook, settings: PostgresSettings) => Finding | readonly Finding[])(seen, settings)

const judges: Judges = {
  account: judgeAccount,
  asked: judgeAsked,
  clock: (seen, settings) => judgeClock(seen, settings.clock),
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
  if (judged.level !== 'fail' && seen.hidden > 0) {
    return hiddenFrom(url, 'longest transaction', seen.hidden, 'session')
  }
  return seen.who ? judged : ok('longest transaction', 'no other transaction is open')
}

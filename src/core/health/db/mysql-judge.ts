import { atLeast, atMost, fail, ok, warn } from '../judge.ts'
import type { Finding } from '../monitor.ts'
import { count } from '../probe/text.ts'
import { type Clock, judgeClock } from './clock.ts'
import type { Channel, Galera, Replication, Threads, Transactions } from './mysql-look.ts'
import type { MysqlSettings } from './mysql-settings.ts'
import type { Asked } from './query.ts'
import { type Account, judgeAccount } from './query-account.ts'
import { judgeAsked } from './query-judge.ts'

export type MysqlLook = Threads | Replication | Galera | Transactions | Clock | Account | Asked

/** Judges what one question saw. */
export function judgeLook(seen: MysqlLook, settings: MysqlSettings): Finding | readonly Finding[] {
  switch (seen.see) {
    case 'threads':
      return judgeThreads(seen, settings)
    case 'replication':
      return judgeReplication(seen, settings)
    case 'galera':
      return judgeGalera(seen)
    case 'clock':
      return judgeClock(seen, settings.clock)
    case 'account':
      return judgeAccount(seen)
    case 'asked':
      return judgeAsked(seen)
    case 'transactions':
      return judgeTransactions(seen, settings)
  }
}

function judgeThreads({ connected, running, most, upMs }: Threads, settings: MysqlSettings): readonly Finding[] {
  const share = (threads: number): number => (most > 0 ? (threads / most) * 100 : 100)
  return [
    atMost({
      check: 'connections',
      what: `${connected} of ${most} connections:`,
      value: share(connected),
      unit: 'percent',
      threshold: settings.connections,
    }),
    atMost({
      check: 'running',
      what: `${count(running, 'thread runs', 'threads run')}, of ${most}:`,
      value: share(running),
      unit: 'percent',
      threshold: settings.running,
    }),
    atLeast({ check: 'restarted', what: 'up for', value: upMs, unit: 'duration', threshold: settings.restarted }),
  ]
}

function judgeReplication({ channels }: Replication, settings: MysqlSettings): readonly Finding[] {
  if (channels.length === 0) {
    if (!settings.replica) return [ok('replication', 'not a replica')]
    return [fail('replication', 'data', 'should be a replica, and has no replication set up')]
  }
  const broken = channels.filter(({ receives, applies }) => receives !== 'Yes' || applies !== 'Yes')
  const [first] = broken
  if (first) {
    const details = broken.flatMap((one) => [...(one === first ? [] : [stopped(one)]), ...one.errors])
    return [fail('replication', 'data', stopped(first), { details })]
  }
  const lag = Math.max(...channels.map(({ lagMs }) => lagMs ?? Number.POSITIVE_INFINITY))
  const runs = ok('replication', `follows ${count(channels.length, 'source')}: both threads run`)
  if (lag === Number.POSITIVE_INFINITY)
    return [runs, warn('replication lag', 'the server does not know how far it is behind')]
  const threshold = settings.replicationLag
  return [runs, atMost({ check: 'replication lag', what: 'behind by', value: lag, unit: 'duration', threshold })]
}

function stopped({ name, receives, applies }: Channel): string {
  const of = name === '' ? '' : `${name}: `
  const io = receives === 'Yes' ? '' : `does not receive (IO thread: ${receives || 'unknown'})`
  const sql = applies === 'Yes' ? '' : `does not apply (SQL thread: ${applies || 'unknown'})`
  return `${of}${[io, sql].filter(Boolean).join(', ')}`
}

/** Nothing to say of a server that is no Galera node. */
function judgeGalera({ on, ready, cluster, state, size }: Galera): readonly Finding[] {
  if (!on) return []
  const told = `${state || 'unknown state'}, ${cluster || 'unknown'} component of ${count(size, 'node')}`
  if (!ready) return [fail('galera', 'data', `not ready for queries: ${told}`)]
  if (cluster !== 'Primary') return [fail('galera', 'data', `not in the primary component: ${told}`)]
  return [state === 'Synced' ? ok('galera', told) : warn('galera', told)]
}

function judgeTransactions({ open, longestMs, thread }: Transactions, settings: MysqlSettings): Finding {
  if (open === 0) return ok('longest transaction', 'no other transaction is open')
  return atMost({
    check: 'longest transaction',
    what: `${count(open, 'transaction is', 'transactions are')} open, the longest (thread ${thread ?? '?'}) for`,
    value: longestMs,
    unit: 'duration',
    threshold: settings.longestTransaction,
  })
}

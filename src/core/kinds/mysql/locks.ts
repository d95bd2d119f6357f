import { figure, onDatabase, text } from '../../database/index.ts'
import { atMost, notChecked, ok, type Result } from '../../engine/index.ts'
import { count } from '../../net/text.ts'
import { milliseconds, minute } from './checks.ts'

/** How the servers call the wait of a commit for the cluster or a replica. Threads of the server wait so all the time. */
const clusterWaits = `(state IN ('Waiting for certification', 'Waiting for flow control', 'Waiting for TOI DDL',
    'Waiting to execute in isolation', 'waiting for handler commit') OR state LIKE 'Waiting for semi-sync ACK %')
  AND user NOT IN ('system user', 'event_scheduler')`

export const lockWait = onDatabase({
  depth: 'Standard',
  results: {
    'lock wait':
      'No session waits too long for a global, metadata, table or backup lock, or with a commit for its cluster or a replica',
  },
  settings: {
    lockWait: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: minute, limit: 2 * minute },
      doc: 'Maximum time that a session waits for a global, metadata, table or backup lock, or with a commit for its cluster (Galera, group replication) or a semi-synchronous replica; row locks do not count',
    },
  },
  privilege: 'GRANT PROCESS ON *.* TO <account>',
  observe: async ({ ask }) => {
    // Without PROCESS, the list contains only the own sessions, without an error. Reading innodb_trx is refused then.
    await ask('SELECT COUNT(*) AS open FROM information_schema.innodb_trx')
    const rows = await ask(`SELECT id, state, time AS waited
      FROM information_schema.processlist
      WHERE id <> CONNECTION_ID()
        AND (state LIKE 'Waiting for % lock' OR state = 'Waiting for table flush' OR ${clusterWaits})
      ORDER BY time DESC LIMIT 1000`)
    const [all] = await ask('SELECT COUNT(*) AS total FROM information_schema.processlist')
    const [longest] = rows
    return {
      total: figure(all, 'total'),
      waiting: rows.length,
      longestMs: milliseconds(figure(longest, 'waited')),
      session: figure(longest, 'id'),
      /** What the server calls the wait: `Waiting for backup lock`. */
      state: text(longest, 'state'),
    }
  },
  evaluate: ({ total, waiting, longestMs: value, session, state }, { lockWait: threshold }): Result<'lock wait'> => {
    // The own session is always in the list.
    if (!total) return notChecked('lock wait', 'missing', 'the server does not report its sessions')
    if (waiting === 0) return ok('lock wait', 'no session is waiting for a lock')
    const sessions = count(waiting, 'session is', 'sessions are')
    const isLock = /lock|flush/.test(state)
    const lock = isLock ? ' for a lock' : ''
    const what =
      value === undefined
        ? 'how long sessions wait for a lock'
        : `${sessions} waiting${lock}, the longest (thread ${session ?? '?'}, ${lowerFirst(state)}) for`
    const details = [
      isLock
        ? 'a backup, FLUSH TABLES WITH READ LOCK, LOCK TABLES, ALTER TABLE or a long transaction holds it: SHOW FULL PROCESSLIST'
        : 'the commit waits for another node: flow control, a lost majority, or no semi-synchronous replica',
    ]
    return atMost({ check: 'lock wait', what, value, unit: 'duration', threshold, details })
  },
})

const lowerFirst = (words: string): string => words.slice(0, 1).toLowerCase() + words.slice(1)

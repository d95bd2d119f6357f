import { figure, onDatabase, type Row, text } from '../../database/index.ts'
import { atLeast, atMost, notChecked, ok } from '../../engine/index.ts'
import { count } from '../../net/text.ts'

export const minute = 60_000

export const milliseconds = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : seconds * 1_000

/**
 * Combines rows of a name and a value into one row. Lower-cases the names, because servers differ in their spelling.
 */
export const byName = (rows: readonly Row[]): Row =>
  Object.fromEntries(rows.map((row) => [text(row, 'Variable_name').toLowerCase(), row.Value]))

export const threads = onDatabase({
  depth: 'Standard',
  results: {
    connections: 'Connections are available',
    running: 'The number of connections that run a statement',
    restarted: 'The server has not restarted recently',
  },
  settings: {
    connections: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 80 },
      doc: 'Connections in use (Threads_connected), as a share of max_connections',
    },
    running: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 60 },
      doc: 'Connections that run a statement (Threads_running), as a share of max_connections',
    },
    restarted: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: minute },
      doc: 'Minimum time since the start of the server',
    },
  },
  observe: async ({ ask }) => {
    const status = byName(
      await ask(`SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Threads_running', 'Uptime')`),
    )
    const limits = byName(await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name = 'max_connections'`))
    return {
      connected: figure(status, 'threads_connected'),
      running: figure(status, 'threads_running'),
      max: figure(limits, 'max_connections'),
      upMs: milliseconds(figure(status, 'uptime')),
    }
  },
  evaluate: ({ connected, running, max, upMs }, settings) => {
    const share = (threads: number | undefined): number | undefined =>
      threads === undefined || !max ? undefined : (threads / max) * 100
    return [
      atMost({
        check: 'connections',
        what:
          connected === undefined || !max ? 'the share of connections in use' : `${connected} of ${max} connections:`,
        value: share(connected),
        unit: 'percent',
        threshold: settings.connections,
      }),
      atMost({
        check: 'running',
        what:
          running === undefined || !max
            ? 'the share of running threads'
            : `${count(running, 'running thread')} of ${max}:`,
        value: share(running),
        unit: 'percent',
        threshold: settings.running,
      }),
      atLeast({
        check: 'restarted',
        what: 'up for',
        figure: 'the uptime',
        value: upMs,
        unit: 'duration',
        threshold: settings.restarted,
      }),
    ]
  },
})

/** The own account as the tables of privileges show it. A user name may contain an @, a host name may not. */
export const ownGrantee = `CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER())
  - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''',
  SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')`

export const transactions = onDatabase({
  depth: 'Advanced',
  results: { 'longest transaction': 'The age of the longest open transaction' },
  settings: {
    longestTransaction: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 2 * minute, limit: 5 * minute },
      doc: 'How long an InnoDB transaction may be open',
    },
  },
  privilege: 'GRANT PROCESS ON *.* TO <account>',
  observe: async ({ ask }) => {
    // trx_started is in the server's time zone, NOW() in the session's.
    const [row] = await ask(`SELECT COUNT(*) AS open,
        SUBSTRING_INDEX(GROUP_CONCAT(trx_mysql_thread_id ORDER BY trx_started), ',', 1) AS thread,
        TIMESTAMPDIFF(SECOND, MIN(trx_started), COALESCE(CONVERT_TZ(NOW(), @@session.time_zone, 'SYSTEM'), NOW())) AS age
      FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> CONNECTION_ID()`)
    return {
      open: figure(row, 'open'),
      longestMs: milliseconds(figure(row, 'age')),
      thread: figure(row, 'thread'),
    }
  },
  evaluate: ({ open, longestMs, thread }, { longestTransaction: threshold }) => {
    if (open === undefined) {
      return notChecked('longest transaction', 'missing', 'the server does not report its open transactions')
    }
    if (open === 0) return ok('longest transaction', 'no other transaction is open')
    const what =
      longestMs === undefined
        ? 'the age of the longest transaction'
        : `${count(open, 'transaction is', 'transactions are')} open, the longest (thread ${thread ?? '?'}) for`
    const value = longestMs === undefined ? undefined : Math.max(0, longestMs)
    return atMost({ check: 'longest transaction', what, value, unit: 'duration', threshold })
  },
})

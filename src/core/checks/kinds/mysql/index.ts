import { isLoopback } from '../../../base/loopback.ts'
import { databaseKind, figure, queriesCost } from '../../database/index.ts'
import { signInSettings, socketSettings } from '../../engine/index.ts'
import { behindSignIn } from '../../recognition/index.ts'
import { autoIncrement, historyList, lockWait, ownGrantee, threads, transactions } from './checks.ts'
import { loadMysql, openMysql } from './driver.ts'
import { errantTransactions, sourceProblem } from './errant-transactions.ts'
import { flowControl, galera, nodes } from './galera.ts'
import { groupReplication } from './group-replication.ts'
import { passwordExpiry } from './passwords.ts'
import { replicas, replication, replicationFilters, role, semiSync, sourceHeartbeat } from './replication.ts'
import { tables } from './tables.ts'
import { write, writeProblem } from './write.ts'

/** Why no monitor without an account is proposed at an address of the network: the host cache knows no loopback. */
const knocksBlock =
  'without an account, the server would block a monitor and the other clients of this machine (max_connect_errors)'

/** The version and the number of the connection in a greeting. */
function greetingIn(reply: Buffer): { readonly version: string; readonly connection: number } | undefined {
  const end = reply.indexOf(0, 5)
  if (reply[4] !== 10 || end < 0 || reply.length < end + 5) return undefined
  return { version: reply.toString('latin1', 5, end), connection: reply.readUInt32LE(end + 1) }
}

/** Whether two greetings are of different servers: each server numbers its connections upwards. */
function areOfTwoServers(before: Buffer, after: Buffer): boolean {
  const [earlier, later] = [greetingIn(before), greetingIn(after)]
  if (earlier === undefined || later === undefined) return false
  return earlier.version !== later.version || later.connection <= earlier.connection
}

export default databaseKind({
  name: 'mysql',
  // max_connect_errors: the host cache counts a connection without a sign-in as an error.
  knock: 'signs in',
  title: 'A MySQL or MariaDB server works and has no condition that will fail soon',
  exposure:
    'PROCESS shows the statements of all sessions, with their values. SELECT on a database reads its rows: grant it only for the check that needs it. Without both, positions of replication and status variables.',
  recognition: [
    {
      name: 'mysql',
      // A handshake of protocol 10, or the error for too many hosts or connections.
      is: (reply) => reply.length > 4 && reply[3] === 0 && (reply[4] === 10 || reply[4] === 255),
      pool: { differ: areOfTwoServers },
      propose: (server, name) => {
        // The greeting ends with the way to sign in.
        const [, way] = /([a-z][a-z0-9_]{4,40})\0?$/.exec(server.reply.toString('latin1')) ?? []
        const exchange = { expect: way ?? '/^[\\s\\S]+\\x00\\x00\\n/' }
        const at = (address: string) => ({ url: `mysql://monitor@${address}/` })
        const proposed = behindSignIn('mysql', exchange, at)(server, name)
        if (!isLoopback(server.host)) return { entry: proposed.deeper, note: knocksBlock }
        return { ...proposed, note: 'its log may get a warning with each run, until the monitor has an account' }
      },
    },
  ],
  port: 3_306,
  optionalParts: [
    {
      part: 'connection attributes',
      unasked: 'The handshake says how long they are, and a server reads over what it does not know',
    },
  ],
  cost: {
    unit: 'statements',
    Basic: [1, 1, 1],
    Standard: [1, 17, 1],
    Advanced: [1, 26, 1],
    adds: queriesCost(3),
    besides:
      'The figures are those of MariaDB; the number of statements varies with the release and the role of the server, and with the tables in the database of the url: one statement for 25 of them. On a replica, comparing the transactions adds a connection and a sign-in at the source.',
  },
  settings: {
    ...signInSettings(
      ['mysql', 'mariadb'],
      'mysql://user@host:port/database, without a password; the database may be left out',
    ),
    ...socketSettings,
  },
  preload: loadMysql,
  open: openMysql,
  // Independent of the time zones of the server and the session.
  clock: "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000 AS at",
  account: {
    sql: `SELECT MAX(privilege_type = 'SUPER') AS super, MAX(privilege_type = 'FILE') AS file
      FROM information_schema.user_privileges WHERE grantee = ${ownGrantee}`,
    powers: ([row]) => {
      const privileges = ['super', 'file'].filter((name) => figure(row, name) === 1).map((name) => name.toUpperCase())
      if (privileges.length === 0) return undefined
      return `with the privilege${privileges.length > 1 ? 's' : ''} ${privileges.join(' and ')}`
    },
  },
  validate: (settings) => sourceProblem(settings) ?? writeProblem(settings),
  checks: [
    threads,
    passwordExpiry,
    galera,
    groupReplication,
    nodes,
    flowControl,
    role,
    semiSync,
    lockWait,
    replication,
    replicationFilters,
    sourceHeartbeat,
    replicas,
    errantTransactions,
    transactions,
    historyList,
    autoIncrement,
    tables,
    write,
  ],
})

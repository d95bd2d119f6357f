import { databaseKind, figure, queriesCost } from '../../database/index.ts'
import { behindSignIn } from '../../recognition/index.ts'
import { autoIncrement, historyList, lockWait, ownGrantee, threads, transactions } from './checks.ts'
import { loadMysql, openMysql } from './driver.ts'
import { errantTransactions } from './errant-transactions.ts'
import { flowControl, galera, nodes } from './galera.ts'
import { groupReplication } from './group-replication.ts'
import { passwordExpiry } from './passwords.ts'
import { replicas, replication, replicationFilters, role, semiSync, sourceHeartbeat } from './replication.ts'
import { tables } from './tables.ts'
import { write } from './write.ts'

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
      propose: async (server, name) => {
        const { entry, deeper } = await behindSignIn('mysql', (address) => ({ url: `mysql://monitor@${address}/` }))(
          server,
          name,
        )
        // The greeting ends with the way to sign in: a frozen server keeps its port open, and does not greet.
        const [, way] = /([a-z][a-z0-9_]{4,40})\0?$/.exec(server.reply.toString('latin1')) ?? []
        return { entry: way === undefined ? entry : { ...entry, expect: way }, deeper }
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
    url: {
      type: 'url',
      protocols: ['mysql', 'mariadb'],
      required: true,
      doc: 'mysql://user@host:port/database, without a password; the database may be left out',
    },
    password: { type: 'secret', doc: "The user's password" },
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

import { lookAtClock } from '../db/clock.ts'
import { loadMysql, openMysql } from '../db/mysql.ts'
import { judgeLook, type MysqlLook } from '../db/mysql-judge.ts'
import { lookAtGalera, lookAtReplication, lookAtThreads, lookAtTransactions } from '../db/mysql-look.ts'
import { mysqlSettings } from '../db/mysql-settings.ts'
import { queryLooks } from '../db/query.ts'
import { mysqlAccount } from '../db/query-account.ts'
import { queriesCheck, queriesProblem } from '../db/query-settings.ts'
import { databaseTarget, slotOf } from '../db/target.ts'
import { judgeVisit, type Look, type Visit, visit } from '../db/visit.ts'
import { includes } from '../engine.ts'
import { monitorKind } from '../monitor.ts'

const standard: readonly Look<MysqlLook>[] = [['connections', lookAtThreads]]
const advanced: readonly Look<MysqlLook>[] = [
  ['replication', lookAtReplication],
  ['galera', lookAtGalera],
  ['longest transaction', lookAtTransactions],
]
/** Milliseconds since 1970, whatever the time zone of the server and of the session. */
const clockSql = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000 AS at"
const defaultPort = 3_306

/** Signs in and only reads. Nothing of it stays on the server after the deadline. */
export default monitorKind({
  kind: 'mysql',
  title: 'A MySQL or MariaDB server works, and would survive the night',
  settings: mysqlSettings,
  checks: [
    { name: 'connect', depth: 'Basic', doc: 'The server lets the account in, in time' },
    { name: 'query', depth: 'Basic', doc: 'SELECT 1 is answered in time' },
    { name: 'connections', depth: 'Standard', doc: 'Connections are left' },
    { name: 'running', depth: 'Standard', doc: 'Not too many connections are at work at once' },
    { name: 'restarted', depth: 'Standard', doc: 'It has not just been restarted' },
    { name: 'replication', depth: 'Advanced', doc: 'As a replica it receives and applies what its source writes' },
    { name: 'replication lag', depth: 'Advanced', doc: 'As a replica it is not behind; left out elsewhere' },
    { name: 'galera', depth: 'Advanced', doc: 'As a Galera node it is ready and synced; left out elsewhere' },
    { name: 'longest transaction', depth: 'Advanced', doc: 'No transaction is open for too long' },
    { name: 'clock', depth: 'Advanced', doc: "The server's clock agrees with ours" },
    queriesCheck,
  ],
  target: (settings) => slotOf(settings, defaultPort),
  signsIn: () => true,
  contradiction: ({ queries }) => queriesProblem(queries, 'mysql'),
  preload: loadMysql,
  async *observe(settings, world): AsyncGenerator<Visit<MysqlLook>> {
    const looks = [
      ...(includes(world.mode, 'Standard') ? standard : []),
      ...(includes(world.mode, 'Advanced') ? advanced : []),
      ...(includes(world.mode, 'Advanced') ? [['clock', lookAtClock(world, clockSql)] as const] : []),
      ...queryLooks(settings.queries, world, mysqlAccount),
    ]
    yield* visit(world, databaseTarget(settings, defaultPort), openMysql, looks)
  },
  judge: (seen, settings) => judgeVisit(seen, settings.latency, (look) => judgeLook(look, settings)),
})

import { setTimeout as wait } from 'node:timers/promises'
import {
  type MysqlGroup,
  type MysqlPair,
  type MysqlServer,
  mysqlMissing,
  mysqlVersion,
  replicatesMysql,
  startMysqlGroup,
  startMysqlPair,
} from '../support/servers/mysql.ts'
import { plainPassword, plainReply } from '../support/servers/plain-mysql.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { type Expected, fails, type PlainClient, type Row, warns } from './row.ts'

const env = { PASSWORD: plainPassword }
const here = "'127.0.0.1'"
const healthy: Expected = { state: 'healthy' }
const read = 'SELECT COUNT(*) FROM orders.jobs'
const write = 'INSERT INTO orders.jobs (n) VALUES (1)'

const monitor = (server: MysqlServer, more: object, user = 'monitor') => ({
  kind: 'mysql',
  url: server.url(user, 'orders'),
  password: { env: 'PASSWORD' },
  restarted: '0s',
  ...more,
})

/** With the statements that the reference names, as written there. */
const accounts = `CREATE DATABASE orders; CREATE TABLE orders.jobs (id int AUTO_INCREMENT PRIMARY KEY, n int);
  CREATE USER shop@${here} IDENTIFIED BY '${plainPassword}'; GRANT ALL ON orders.* TO shop@${here};
  CREATE USER monitor@${here} IDENTIFIED BY '${plainPassword}';
  GRANT PROCESS ON *.* TO monitor@${here}; GRANT REPLICATION CLIENT ON *.* TO monitor@${here};
  GRANT SELECT ON performance_schema.* TO monitor@${here}; GRANT SELECT ON orders.* TO monitor@${here};
  GRANT CREATE, DROP, SELECT, INSERT, DELETE ON orders.svc_probe TO monitor@${here};
  CREATE USER limited@${here} IDENTIFIED BY '${plainPassword}';
  GRANT PROCESS, REPLICATION CLIENT ON *.* TO limited@${here}; GRANT SELECT ON orders.* TO limited@${here};
  CREATE USER encrypted@${here} IDENTIFIED BY '${plainPassword}' REQUIRE SSL`
const accountsAt = (server: MysqlServer): Promise<unknown> =>
  until(async () => (await server.query(`SHOW GRANTS FOR limited@${here}`).catch(() => [])).length >= 2, 60_000, 100)

const member =
  (which: 0 | 1 | 2, more: object = {}, user?: string) =>
  ({ members }: MysqlGroup) =>
    monitor(members[which], more, user)
const clientOf = (which: 0 | 1 | 2, sql: string, gets: RegExp): PlainClient<MysqlGroup> => ({
  asks: ({ members }) => plainReply(members[which].port, sql),
  gets,
})
const outside: Expected = fails(
  'group replication',
  'data',
  /^this member is OFFLINE: it does not belong to its group, and accepts writes that no other member gets/,
)
const two: Expected = fails('nodes', 'data', /^2 nodes of the cluster are connected/)
const noMajority: Expected = fails(
  'group replication',
  'data',
  /^the group has lost its majority, and every write waits: 1 of 2 members reachable/,
)

const groupRows: readonly Row<MysqlGroup>[] = [
  {
    fault: 'a healthy primary',
    monitor: member(0, { role: 'source', nodes: 3, allowWrites: true }),
    expected: healthy,
    shallower: { Basic: healthy, Standard: healthy },
    client: clientOf(0, write, /^ok$/),
  },
  ...(
    [
      ['10 DAY', 'warning', warns('password expiry', /expires in (?:10|9(?:\.\d+)?) d/)],
      ['1 DAY', 'failure', fails('password expiry', 'threshold', /expires in (?:1 d|2\d)/)],
    ] as const
  ).map(
    ([left, , expected]): Row<MysqlGroup> => ({
      fault: `the password of the account of svc expires in ${left}`,
      monitor: member(0, { allowWrites: true }),
      // A client of the same account is refused on the day after.
      plant: async ({ members: [first] }) => {
        await first.query(
          `GRANT SELECT ON mysql.user TO monitor@${here}; ALTER USER monitor@${here} PASSWORD EXPIRE INTERVAL ${left}`,
        )
        // The server counts whole seconds: at once, all of the day is left.
        await wait(1_100)
        return async () =>
          void (await first.query(
            `REVOKE SELECT ON mysql.user FROM monitor@${here}; ALTER USER monitor@${here} PASSWORD EXPIRE NEVER`,
          ))
      },
      expected,
      shallower: { Basic: healthy, Standard: expected },
      before: 'healthy',
    }),
  ),
  {
    fault: 'a healthy secondary',
    monitor: member(1),
    expected: healthy,
    shallower: { Basic: healthy, Standard: healthy },
    client: clientOf(1, read, /^ok$/),
    before: 'a warning in every run: "accepts no writes although it is not a replica"',
  },
  {
    fault: 'a healthy secondary that svc.yaml calls a replica',
    monitor: member(1, { role: 'replica', replica: true }),
    expected: healthy,
    shallower: { Basic: healthy, Standard: healthy },
    client: clientOf(1, write, /with the --(?:super-)?read-only option/),
    before: 'unhealthy: "replication is not set up"',
  },
  {
    fault: 'a secondary where a source is expected',
    monitor: member(1, { role: 'source' }),
    expected: fails('role', 'data', /^accepts no writes, expected a source, secondary/),
    client: clientOf(1, write, /with the --(?:super-)?read-only option/),
  },
  {
    fault: 'the account may not read the members of the group',
    monitor: member(0, {}, 'limited'),
    expected: warns(
      'group replication',
      /lacks a privilege, which GRANT SELECT ON performance_schema\.\* TO 'limited'@'127\.0\.0\.1' grants/,
    ),
    client: clientOf(0, write, /^ok$/),
  },
  {
    fault: 'a member has left the group and accepts writes',
    monitor: member(2),
    plant: async ({ members: [first, , third], sees }) => {
      await third.query('STOP GROUP_REPLICATION; SET GLOBAL super_read_only = 0; SET GLOBAL read_only = 0')
      await sees(first, 2, 'ONLINE')
      return undefined
    },
    expected: outside,
    shallower: { Basic: healthy, Standard: outside },
    client: clientOf(2, write, /^ok$/),
    before: 'healthy',
  },
  {
    fault: 'one of three members is missing, and svc.yaml expects 3',
    monitor: member(0, { nodes: 3 }),
    expected: two,
    shallower: { Basic: healthy, Standard: two },
    client: clientOf(0, write, /^ok$/),
    before: 'healthy',
  },
  {
    fault: 'the majority of the group has died',
    monitor: member(0),
    plant: async ({ members: [first, second], sees }) => {
      process.kill(second.pid, 'SIGKILL')
      await sees(first, 1, 'UNREACHABLE')
      return undefined
    },
    expected: noMajority,
    shallower: { Basic: healthy, Standard: noMajority },
    client: clientOf(0, write, /^no reply within 2 s$/),
    before: 'healthy',
  },
  {
    fault: 'a commit waits for the lost majority',
    monitor: member(0, { lockWait: { limit: '500ms' } }),
    plant: async ({ members: [first] }) => {
      await until(
        async () =>
          (
            await first.query(
              "SELECT id FROM information_schema.processlist WHERE user = 'shop' AND state = 'waiting for handler commit' AND time >= 1",
            )
          ).length > 0,
        30_000,
      )
      return undefined
    },
    expected: { ...noMajority, never: /waits too long/ },
    client: clientOf(0, read, /^ok$/),
  },
]

corpus<MysqlGroup>({
  server: `MySQL ${mysqlVersion()}, group replication with three members`.replace('  ', ' '),
  env,
  missing: mysqlMissing,
  start: async () => {
    const group = await startMysqlGroup()
    await group.members[0].query(accounts)
    for (const one of group.members) await accountsAt(one)
    return group
  },
  rows: groupRows,
})

const source =
  (more: object = {}, user?: string) =>
  (pair: MysqlPair) =>
    monitor(pair.source, more, user)
const replica =
  (more: object = {}) =>
  (pair: MysqlPair) =>
    monitor(pair.replica, more)
const client = (which: keyof MysqlPair, sql: string, gets: RegExp, user?: string): PlainClient<MysqlPair> => ({
  asks: (pair) => plainReply(pair[which].port, sql, user),
  gets,
})
/** Executes statements of root at the replica, and others to undo them. */
const atReplica = (plant: string, cure: string) => async (pair: MysqlPair) => {
  await pair.replica.query(plant)
  return async () => {
    await pair.replica.query(cure)
    await replicatesMysql(pair.replica)
  }
}
const writable: Expected = warns('role', /^is a replica that accepts writes of clients: read_only is off$/)
const fallenBack: Expected = warns(
  'semi-sync',
  /^replication is asynchronous now: commits wait for no replica, and 0 semi-synchronous replicas are connected/,
)
const withoutTls: Expected = fails(
  'connect',
  'auth',
  /refused the sign-in of "encrypted": .*, or the account may sign in over TLS only \(REQUIRE SSL\)/,
)
const onlyTls: Expected = fails('connect', 'tls', /accepts connections over TLS only/)

const pairRows: readonly Row<MysqlPair>[] = [
  {
    fault: 'a healthy source',
    monitor: source({ role: 'source', replicas: 1, allowWrites: true }),
    expected: healthy,
    shallower: { Basic: healthy, Standard: healthy },
    client: client('source', write, /^ok$/),
  },
  {
    fault: 'a healthy replica',
    monitor: (pair) => monitor(pair.replica, { source: pair.source.url('monitor') }),
    expected: healthy,
    shallower: { Basic: healthy, Standard: healthy },
    client: client('replica', read, /^ok$/),
  },
  {
    fault: 'a replica accepts writes, and no role is configured',
    monitor: replica(),
    plant: atReplica('SET GLOBAL read_only = 0', 'SET GLOBAL super_read_only = 1'),
    expected: writable,
    shallower: { Basic: healthy, Standard: writable },
    client: client('replica', 'CREATE TEMPORARY TABLE orders.copy (id int)', /^ok$/),
    before: 'healthy',
  },
  {
    fault: 'a transaction was written to the replica, and its source lacks it',
    monitor: (pair) => monitor(pair.replica, { source: pair.source.url('monitor') }),
    plant: async (pair) => {
      await pair.replica.query(
        'SET GLOBAL super_read_only = 0; CREATE DATABASE strayed; SET GLOBAL super_read_only = 1',
      )
      const [own] = await pair.replica.query('SELECT @@server_uuid AS uuid')
      return async () => {
        // The usual remedy: the source takes over the transaction without its content.
        await pair.source.query(
          `SET GTID_NEXT = '${String(own?.['uuid'])}:1'; BEGIN; COMMIT; SET GTID_NEXT = 'AUTOMATIC'`,
        )
        await replicatesMysql(pair.replica)
      }
    },
    expected: warns('errant transactions', /^the source lacks transactions of this replica: [\da-f-]{36}:1$/),
    shallower: { Basic: healthy, Standard: healthy },
    client: client('replica', read, /^ok$/),
    before: 'healthy',
  },
  {
    fault: 'the source that svc.yaml names does not answer',
    monitor: (pair) => monitor(pair.replica, { source: 'mysql://monitor@127.0.0.1:1/' }),
    expected: fails('errant transactions', 'refused', /127\.0\.0\.1:1/),
    client: client('replica', read, /^ok$/),
  },
  {
    fault: 'the source is frozen, and the lag stays 0',
    monitor: replica(),
    plant: async (pair) => {
      pair.source.freeze()
      await until(
        async () =>
          (
            await pair.replica.query(`SELECT 1 FROM performance_schema.replication_connection_status
              WHERE GREATEST(last_heartbeat_timestamp, last_queued_transaction_end_queue_timestamp) < NOW() - INTERVAL 4 SECOND`)
          ).length > 0,
        60_000,
        100,
      )
      return async () => {
        pair.source.thaw()
        await replicatesMysql(pair.replica)
      }
    },
    expected: fails(
      'source heartbeat',
      'timeout',
      /^the source has sent nothing for [\d.]+ s, and sends a heartbeat every 1 s$/,
    ),
    shallower: { Basic: healthy, Standard: healthy },
    client: client('replica', read, /^ok$/),
    before: 'healthy for a minute, with a lag of 0 ms',
  },
  {
    fault: 'the replica leaves out a database',
    monitor: replica(),
    plant: atReplica(
      'STOP REPLICA SQL_THREAD; CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (archive); START REPLICA SQL_THREAD',
      'STOP REPLICA SQL_THREAD; CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (); START REPLICA SQL_THREAD',
    ),
    expected: warns('replication filters', /^leaves out changes of its source: Replicate_Ignore_DB: archive$/),
    shallower: { Basic: healthy, Standard: healthy },
    client: client('replica', read, /^ok$/),
    before: 'healthy',
  },
  {
    fault: 'the replica leaves out a database on purpose',
    monitor: replica({ replicationFilters: true }),
    plant: atReplica(
      'STOP REPLICA SQL_THREAD; CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (archive); START REPLICA SQL_THREAD',
      'STOP REPLICA SQL_THREAD; CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (); START REPLICA SQL_THREAD',
    ),
    expected: healthy,
    client: client('replica', read, /^ok$/),
  },
  {
    fault: 'the replica is gone, and commits no longer wait for one',
    monitor: source(),
    plant: async (pair) => {
      await pair.replica.query('STOP REPLICA')
      await until(async () => {
        await plainReply(pair.source.port, write)
        const status = await pair.source.query("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_%'")
        const of = (name: string) =>
          status.find((row) => row['Variable_name'] === `Rpl_semi_sync_source_${name}`)?.['Value']
        return of('status') === 'OFF' && of('clients') === '0'
      }, 60_000)
      return async () => {
        await pair.replica.query('START REPLICA')
        await replicatesMysql(pair.replica)
      }
    },
    expected: fallenBack,
    shallower: { Basic: healthy, Standard: fallenBack },
    client: client('source', write, /^ok$/),
    before: 'healthy',
  },
  {
    fault: 'the replica is gone, and svc.yaml expects one',
    monitor: source({ replicas: 1 }),
    plant: async (pair) => {
      await pair.replica.query('STOP REPLICA')
      await until(
        async () =>
          (await pair.source.query("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"))
            .length === 0,
        60_000,
      )
      return async () => {
        await pair.replica.query('START REPLICA')
        await replicatesMysql(pair.replica)
      }
    },
    expected: fails('replicas', 'data', /^0 replicas are connected \(fail below 1\)$/),
    client: client('source', read, /^ok$/),
    before: 'healthy',
  },
  {
    fault: 'the account may sign in over TLS only, and the monitor does without',
    monitor: source({}, 'encrypted'),
    expected: withoutTls,
    shallower: { Basic: withoutTls, Standard: withoutTls },
    client: client('source', 'SELECT 1', /Access denied/, 'encrypted'),
    before: '"refused the sign-in", without a word about TLS',
  },
  {
    fault: 'the server accepts connections over TLS only',
    monitor: source(),
    plant: async (pair) => {
      await pair.source.query('SET GLOBAL require_secure_transport = ON')
      return async () => void (await pair.source.query('SET GLOBAL require_secure_transport = OFF'))
    },
    expected: onlyTls,
    shallower: { Basic: onlyTls, Standard: onlyTls },
    client: client('source', 'SELECT 1', /insecure transport are prohibited/),
    before: 'protocol: "refused the connection"',
  },
]

corpus<MysqlPair>({
  server: `MySQL ${mysqlVersion()} with a semi-synchronous replica`.replace('  ', ' '),
  env,
  missing: mysqlMissing,
  start: async () => {
    const pair = await startMysqlPair()
    await pair.source.query(accounts)
    await accountsAt(pair.replica)
    return pair
  },
  rows: pairRows,
})

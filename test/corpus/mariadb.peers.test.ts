import { execFileSync } from 'node:child_process'
import { rmSync, truncateSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type { Connection } from 'mysql2/promise'
import {
  autoIncrementAt,
  globalReadLockHeld,
  historyKept,
  metadataLockHeld,
  mountMissing,
  type PlantedFault,
  readOnly,
  startMariadbOnSmallDisk,
  tableLockHeld,
} from '../support/faults/mariadb-faults.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../support/servers/mariadb.ts'
import { plainReply } from '../support/servers/plain-mysql.ts'
import { findProgram } from '../support/servers/server.ts'
import { until, wallClock } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { type Cure, fails, notChecked, type Row, warns } from './row.ts'

const password = 'correct horse'
const env = { MARIADB: password, WRONG: 'another password' }
const here = "'127.0.0.1'"

type Pair = { readonly source: MariadbServer; readonly replica: MariadbServer }

const ask = (server: MariadbServer, more: object = {}, user = 'monitor') => ({
  kind: 'mysql',
  url: server.url(user, 'orders'),
  password: { env: 'MARIADB' },
  restarted: '0s',
  ...more,
})
const source =
  (more: object = {}, user?: string) =>
  ({ source: server }: Pair) =>
    ask(server, more, user)
const replica =
  (more: object = {}) =>
  ({ replica: server }: Pair) =>
    ask(server, { role: 'replica', replica: true, ...more })

/** check_mysql with the account of svc. */
const checkMysql = (server: MariadbServer, ...more: string[]): readonly PeerProgram[] => [
  {
    program: 'check_mysql',
    args: ['-H', '127.0.0.1', '-P', String(server.port), '-u', 'monitor', '-p', password, ...more],
  },
]
const others = ({ source: server }: Pair) => checkMysql(server)
const ofReplica = ({ replica: server }: Pair) => checkMysql(server, '-S', '-w', '1', '-c', '1')

const planted = async (fault: Promise<PlantedFault>): Promise<Cure> => (await fault).end

/** A server closes a connection after its client: the next row needs the place. */
const connectionsEnd = (server: MariadbServer): Promise<unknown> =>
  until(async () => {
    const [row] = await server.query("SHOW GLOBAL STATUS LIKE 'Threads_connected'").catch(() => [])
    return Number(row?.['Value']) < 5
  }, 30_000)

const sessions = async (server: MariadbServer, count: number): Promise<Cure> => {
  const open: Connection[] = []
  for (let n = 0; n < count; n += 1) open.push(await server.client())
  return async () => {
    for (const one of open) await one.end()
    await connectionsEnd(server)
  }
}

/** A lock that is held for more than a second: the server reports whole ones. */
const locked = (take: (server: MariadbServer) => Promise<PlantedFault>) => async (pair: Pair) => {
  const { end } = await take(pair.source)
  await wait(1_100)
  return end
}

/** Waits until the replica receives and applies everything. Throws with what it reports if it does not. */
async function replicating(server: MariadbServer): Promise<void> {
  let status: Readonly<Record<string, unknown>> = {}
  const isCurrent = async (): Promise<boolean> => {
    ;[status = {}] = await server.query('SHOW SLAVE STATUS')
    const { Slave_IO_Running: receives, Slave_SQL_Running: applies, Seconds_Behind_Master: behind } = status
    return receives === 'Yes' && applies === 'Yes' && Number(behind) === 0
  }
  await until(isCurrent, 50_000).catch((cause: unknown) => {
    throw new Error(`the replica does not replicate: ${JSON.stringify(status)}`, { cause })
  })
}

/** Plants by statements of root, with FLUSH TABLES so that the server opens its files again. */
const brokenTables: readonly Row<Pair>[] = (
  [
    [
      'a table whose file is gone',
      'CREATE TABLE orders.lost (id int) ENGINE=Aria',
      (folder: string) => rmSync(`${folder}/data/orders/lost.MAD`),
      /^lost: File '\.\/orders\/lost\.MAD' not found/,
      /not found/,
    ],
    [
      'a damaged MyISAM table',
      'CREATE TABLE orders.damaged (id int, KEY(id)) ENGINE=MyISAM; INSERT INTO orders.damaged VALUES (1), (2)',
      (folder: string) => truncateSync(`${folder}/data/orders/damaged.MYI`, 700),
      /^damaged: Index for table '\.\/orders\/damaged\.MYI' is corrupt/,
      /corrupt/,
    ],
    [
      'an InnoDB table without its file',
      'CREATE TABLE orders.empty (id int); ALTER TABLE orders.empty DISCARD TABLESPACE',
      () => {},
      /^empty: Tablespace has been discarded/,
      /discarded/,
    ],
  ] as const
).map(([fault, create, damage, says, gets]) => ({
  fault,
  monitor: source(),
  plant: async ({ source: server }) => {
    const [, table = ''] = /TABLE (\S+)/.exec(create) ?? []
    const one = await server.client()
    await one.query(`USE orders; ${create}; FLUSH TABLES`)
    damage(server.folder)
    await one.query('FLUSH TABLES')
    await one.end()
    return async () => void (await server.query(`DROP TABLE ${table}`).catch(() => server.query(`DROP TABLE ${table}`)))
  },
  client: {
    asks: async ({ source: server }) => {
      const [, table = ''] = /TABLE (\S+)/.exec(create) ?? []
      return await server.query(`SELECT * FROM ${table}`).then(
        () => 'ok',
        (error: Error) => error.message,
      )
    },
    gets,
  },
  expected: fails('tables', 'data', says),
  shallower: { Basic: { state: 'healthy' }, Standard: { state: 'healthy' } },
  before: 'healthy',
}))

const rows: readonly Row<Pair>[] = [
  ...brokenTables,
  ...brokenTables.slice(-1).map(
    ({ plant }): Row<Pair> => ({
      fault: 'healthy: svc.yaml leaves out the table without its file',
      monitor: source({ skipTables: ['/^emp/'] }),
      ...(plant && { plant }),
      expected: { state: 'healthy' },
    }),
  ),
  {
    fault: 'a healthy source',
    monitor: source({
      role: 'source',
      allowWrites: true,
      queries: [{ name: 'jobs', sql: 'SELECT COUNT(*) FROM jobs', atMost: 10 }],
    }),
    expected: { state: 'healthy' },
    peers: others,
  },
  {
    fault: 'a healthy replica',
    monitor: ({ source: server, replica: own }) =>
      ask(own, { role: 'replica', replica: true, source: server.url('monitor') }),
    expected: { state: 'healthy' },
    peers: ofReplica,
  },
  {
    fault: 'a transaction was written to the replica, and its source lacks it',
    monitor: ({ source: server, replica: own }) =>
      ask(own, { role: 'replica', replica: true, source: server.url('monitor') }),
    plant: async ({ replica: own }) => {
      await own.query('CREATE DATABASE strayed')
      return async () => void (await own.query('DROP DATABASE strayed; RESET MASTER'))
    },
    expected: warns('errant transactions', /^the source lacks transactions of this replica: 0-2-\d+$/),
    before: 'healthy',
  },
  {
    fault: 'the password was changed',
    monitor: source({ password: { env: 'WRONG' } }),
    expected: fails('connect', 'auth', /refused the sign-in of "monitor"/),
  },
  {
    fault: 'the database does not exist',
    monitor: ({ source: server }) => ask(server, { url: server.url('monitor', 'nowhere') }),
    expected: fails('connect', 'data', /nowhere/),
  },
  {
    fault: 'nothing listens on the port',
    monitor: () => ({ kind: 'mysql', url: 'mysql://monitor@127.0.0.1:1/', password: { env: 'MARIADB' } }),
    expected: fails('connect', 'refused', /refused/),
  },
  {
    fault: 'the server is frozen',
    monitor: source({ timeout: '2s' }),
    plant: async ({ source: server }) => {
      server.freeze()
      return server.thaw
    },
    expected: fails('connect', 'timeout', /accepted the connection but sent nothing for [\d.]+ m?s/),
  },
  {
    fault: 'the account lacks a privilege',
    monitor: source({}, 'limited'),
    expected: warns('lock wait', /lacks a privilege, which GRANT PROCESS ON \*\.\* TO 'limited'@'127\.0\.0\.1' grants/),
  },
  {
    fault: 'the account lacks a privilege for a check that svc.yaml demands',
    monitor: source({ historyList: { limit: 1_000_000 } }, 'limited'),
    expected: notChecked(
      'history list',
      /lacks a privilege, which GRANT PROCESS ON \*\.\* TO 'limited'@'127\.0\.0\.1' grants/,
    ),
    before: 'warning, exit code 0',
  },
  {
    fault: 'nearly all connections are in use',
    monitor: source(),
    plant: ({ source: server }) => sessions(server, 17),
    expected: warns('connections', /of 20 connections/),
    peers: others,
  },
  {
    fault: 'all connections are in use',
    monitor: source(),
    plant: ({ source: server }) => sessions(server, 20),
    expected: fails('connect', 'refused', /accepts no more connections/),
    peers: others,
  },
  {
    fault: 'most connections run a statement',
    monitor: source({ longestTransaction: { warn: '1h' } }),
    plant: async ({ source: server }) => {
      const open: Connection[] = []
      for (let n = 0; n < 14; n += 1) open.push(await server.client())
      const running = open.map((one) => one.query('SELECT SLEEP(60)').catch(() => {}))
      await until(async () => {
        const [row] = await server.query("SHOW GLOBAL STATUS LIKE 'Threads_running'")
        return Number(row?.['Value']) > 13
      })
      return async () => {
        for (const one of open) one.destroy()
        await Promise.all(running)
        for (const { id } of await server.query(
          "SELECT id FROM information_schema.processlist WHERE info LIKE '%SLEEP(60)%'",
        ))
          await server.query(`KILL ${Number(id)}`).catch(() => {})
        await connectionsEnd(server)
      }
    },
    expected: warns('running', /running threads of 20/),
    peers: others,
  },
  {
    fault: 'read_only is on at a source',
    monitor: source({ role: 'source' }),
    plant: ({ source: server }) => planted(readOnly(server)),
    expected: fails('role', 'data', /^accepts no writes, expected a source: read_only is on/),
    peers: others,
  },
  {
    fault: 'read_only is on, and no role is configured',
    monitor: source(),
    plant: ({ source: server }) => planted(readOnly(server)),
    expected: warns('role', /^accepts no writes although it is not a replica: read_only/),
    peers: others,
  },
  {
    fault: 'a replica accepts writes of clients',
    monitor: replica(),
    plant: async ({ replica: server }) => {
      await server.query('SET GLOBAL read_only = 0')
      return async () => void (await server.query('SET GLOBAL read_only = 1'))
    },
    expected: warns('role', /read_only is off/),
    peers: ofReplica,
  },
  {
    fault: 'a replica accepts writes of clients, and no role is configured',
    monitor: ({ replica: server }) => ask(server),
    plant: async ({ replica: server }) => {
      await server.query('SET GLOBAL read_only = 0')
      return async () => void (await server.query('SET GLOBAL read_only = 1'))
    },
    expected: warns('role', /^is a replica that accepts writes of clients: read_only is off/),
    shallower: { Basic: { state: 'healthy' }, Standard: warns('role', /^is a replica that accepts writes/) },
    before: 'healthy',
  },
  {
    fault: 'two servers replicate from each other on purpose',
    monitor: ({ replica: server }) => ask(server, { role: 'both' }),
    plant: async ({ replica: server }) => {
      await server.query('SET GLOBAL read_only = 0')
      return async () => void (await server.query('SET GLOBAL read_only = 1'))
    },
    expected: { state: 'healthy' },
  },
  {
    fault: 'the source of the replica is frozen, and the lag stays 0',
    now: wallClock,
    monitor: replica(),
    plant: async ({ source: server }) => {
      server.freeze()
      return server.thaw
    },
    expected: fails(
      'source heartbeat',
      'timeout',
      /^the source has sent nothing for [\d.]+ s, and sends a heartbeat every 1 s$/,
    ),
    shallower: { Basic: { state: 'healthy' }, Standard: { state: 'healthy' } },
    client: {
      asks: ({ replica: server }) => plainReply(server.port, 'SELECT COUNT(*) FROM orders.jobs', 'limited'),
      gets: /^ok$/,
    },
    before: 'healthy for a minute, with a lag of 0 ms',
  },
  ...([0, 1] as const).map(
    (change): Row<Pair> => ({
      fault:
        change === 0
          ? 'the source has sent nothing for 1.5 periods, says a simulated history of earlier runs'
          : 'the source has sent something since the last run, says a simulated history of earlier runs',
      monitor: replica(),
      history: {
        keep: async ({ at, value }) => [
          { at: at - 30_000, value: value - change },
          { at, value },
        ],
        exceededSince: async () => new Map(),
      },
      plant: async ({ replica: own }) => {
        const every = async (seconds: number): Promise<void> => {
          await own.query(`STOP SLAVE; CHANGE MASTER TO MASTER_HEARTBEAT_PERIOD = ${seconds}; START SLAVE`)
          await replicating(own)
        }
        await every(10)
        return () => every(1)
      },
      expected:
        change === 1
          ? { state: 'healthy' }
          : fails(
              'source heartbeat',
              'timeout',
              /^the source has sent nothing for 30(?:\.\d+)? s, and sends a heartbeat every 10 s$/,
            ),
    }),
  ),
  {
    fault: 'the replica leaves out a database',
    monitor: replica(),
    plant: async ({ replica: server }) => {
      await server.query("STOP SLAVE; SET GLOBAL replicate_ignore_db = 'archive'; START SLAVE")
      return async () => {
        await server.query("STOP SLAVE; SET GLOBAL replicate_ignore_db = ''; START SLAVE")
        await replicating(server)
      }
    },
    expected: warns('replication filters', /^leaves out changes of its source: Replicate_Ignore_DB: archive$/),
    before: 'healthy',
  },
  {
    fault: 'the replica is gone, and svc.yaml expects one',
    monitor: source({ replicas: 1 }),
    plant: async ({ source: server, replica: gone }) => {
      await gone.query('STOP SLAVE')
      await until(
        async () =>
          (await server.query("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"))
            .length === 0,
      )
      return async () => {
        await gone.query('START SLAVE')
        await replicating(gone)
      }
    },
    expected: fails('replicas', 'data', /^0 replicas are connected \(fail below 1\)$/),
    before: 'healthy',
  },
  {
    fault: 'a source where a replica is expected',
    monitor: source({ replica: true }),
    expected: fails('replication', 'data', /, but replication is not set up$/),
    peers: ({ source: server }) => checkMysql(server, '-S'),
  },
  {
    fault: 'FLUSH TABLES WITH READ LOCK is held',
    monitor: source({ lockWait: { limit: '500ms' } }),
    plant: locked(globalReadLockHeld),
    expected: fails('lock wait', 'threshold', /^1 .*waiting for backup lock\) for/),
  },
  {
    fault: 'FLUSH TABLES WITH READ LOCK is held, and svc may write',
    monitor: source({ allowWrites: true }),
    plant: locked(globalReadLockHeld),
    expected: fails('write', 'timeout', /holds a lock: Lock wait timeout/),
    peers: others,
  },
  {
    fault: 'a metadata lock is held',
    monitor: source({ lockWait: { limit: '500ms' } }),
    plant: locked(metadataLockHeld),
    expected: fails('lock wait', 'threshold', /waiting for table metadata lock/),
  },
  {
    fault: 'LOCK TABLES is held',
    monitor: source({ lockWait: { limit: '500ms' } }),
    plant: locked(tableLockHeld),
    expected: fails('lock wait', 'threshold', /waiting for table metadata lock/),
  },
  {
    fault: 'a transaction is open for too long',
    monitor: source({ longestTransaction: { limit: '500ms' } }),
    plant: async ({ source: server }) => {
      const open = await server.client()
      await open.query('START TRANSACTION; INSERT INTO orders.jobs VALUES (1)')
      await wait(1_100)
      return () => open.end()
    },
    expected: fails('longest transaction', 'threshold', /^1 transaction is open, the longest \(thread \d+\)/),
  },
  {
    fault: 'old row versions accumulate',
    monitor: source({ historyList: { limit: 400 } }),
    plant: ({ source: server }) => planted(historyKept(server, 500)),
    expected: fails('history list', 'threshold', /^transactions in the history list: \d+ \(/),
  },
  {
    fault: 'an AUTO_INCREMENT column is near its end',
    monitor: ({ source: server }) => ask(server, { url: server.url('monitor') }),
    plant: ({ source: server }) => planted(autoIncrementAt(server, 62_000)),
    expected: fails(
      'auto-increment',
      'threshold',
      /^counted\.jobs\.id \(smallint\(5\) unsigned\), values used: [\d.]+ % /,
    ),
    peers: others,
  },
  {
    fault: 'a query of the operator finds too much',
    monitor: source({ queries: [{ name: 'waiting jobs', sql: 'SELECT COUNT(*) FROM jobs', atMost: 10 }] }),
    plant: async ({ source: server }) => {
      await server.query('USE orders; INSERT INTO jobs SELECT seq FROM seq_1_to_25')
      return async () => void (await server.query('DELETE FROM orders.jobs'))
    },
    expected: fails('queries', 'threshold', /^waiting jobs: 25/),
  },
  {
    fault: 'a date of the operator has no day, never met',
    monitor: source({ queries: [{ name: 'last invoice', sql: 'SELECT at FROM invoices', age: { limit: '2d' } }] }),
    plant: async ({ source: server }) => {
      await server.query(
        "USE orders; SET sql_mode = ''; CREATE TABLE invoices (at DATE); INSERT INTO invoices VALUES ('2027-02-00')",
      )
      return async () => void (await server.query('DROP TABLE orders.invoices'))
    },
    expected: fails('queries', 'any', /^last invoice: "2027-02-00" is a date without a day/),
  },
  {
    fault: 'the replica lags',
    monitor: replica({ replicationLag: { limit: '1s' } }),
    plant: async ({ source: server, replica: late }) => {
      await late.query('STOP SLAVE; CHANGE MASTER TO MASTER_DELAY = 600; START SLAVE')
      await server.query('INSERT INTO orders.jobs VALUES (1)')
      await until(async () => Number((await late.query('SHOW SLAVE STATUS'))[0]?.['Seconds_Behind_Master']) > 2)
      return async () => {
        await late.query('STOP SLAVE; CHANGE MASTER TO MASTER_DELAY = 0; START SLAVE')
        await server.query('DELETE FROM orders.jobs')
        await replicating(late)
      }
    },
    expected: fails('replication lag', 'threshold', /^lag \d+ s/),
    peers: ofReplica,
  },
  {
    fault: 'the replica does not apply what it receives',
    monitor: replica(),
    plant: async ({ replica: server }) => {
      await server.query('STOP SLAVE SQL_THREAD')
      return async () => {
        await server.query('START SLAVE')
        await replicating(server)
      }
    },
    expected: fails('replication', 'data', /^does not apply \(SQL thread: No\)/),
    peers: ofReplica,
  },
  {
    fault: 'the replica cannot reach its source',
    monitor: replica(),
    plant: async ({ source: server, replica: late }) => {
      // Another port makes the replica forget its position, and it would apply everything once more.
      const [before] = await late.query('SHOW SLAVE STATUS')
      const position = `MASTER_LOG_FILE = '${String(before?.['Relay_Master_Log_File'])}',
        MASTER_LOG_POS = ${Number(before?.['Exec_Master_Log_Pos'])}`
      // By default, a connection that a busy machine loses is tried again after a minute.
      await late.query('STOP SLAVE; CHANGE MASTER TO MASTER_PORT = 1, MASTER_CONNECT_RETRY = 1; START SLAVE')
      return async () => {
        await late.query(`STOP SLAVE; CHANGE MASTER TO MASTER_PORT = ${server.port}, ${position}; START SLAVE`)
        await replicating(late)
      }
    },
    expected: fails('replication', 'data', /^does not receive \(IO thread: Connecting\)/),
    peers: ofReplica,
  },
]

const version = (): string =>
  /Ver ([\d.]+)/.exec(
    execFileSync(findProgram('mariadbd') ?? '', ['--no-defaults', '--version'], { encoding: 'utf8' }),
  )?.[1] ?? ''
const name = mariadbMissing === undefined ? `MariaDB ${version()}` : 'MariaDB'

const accounts = `CREATE DATABASE orders; CREATE TABLE orders.jobs (id int);
  CREATE USER monitor@${here} IDENTIFIED BY '${password}'; CREATE USER limited@${here} IDENTIFIED BY '${password}';
  GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@${here}; GRANT SELECT ON *.* TO monitor@${here};
  GRANT CREATE, DROP, SELECT, INSERT, DELETE ON orders.svc_probe TO monitor@${here};
  GRANT SELECT ON orders.* TO limited@${here}; GRANT SLAVE MONITOR ON *.* TO limited@${here}`

corpus<Pair>({
  server: `${name} with a replica`,
  env,
  missing: mariadbMissing,
  start: async () => {
    const first = await startMariadb(['--log-bin=binlog', '--server-id=1', '--max-connect-errors=100000'])
    const second = await startMariadb(['--server-id=2', '--log-bin=binlog', '--log-slave-updates'])
    await first.query(`${accounts}; CREATE USER repl@${here} IDENTIFIED BY 'r';
      GRANT REPLICATION SLAVE ON *.* TO repl@${here}`)
    const [log] = await first.query('SHOW MASTER STATUS')
    // The accounts of the replica are its own, so that its binary log begins after them.
    await second.query(`${accounts}; RESET MASTER; SET GLOBAL read_only = 1;
      CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=${first.port}, MASTER_USER='repl', MASTER_PASSWORD='r',
        MASTER_LOG_FILE='${String(log?.['File'])}', MASTER_LOG_POS=${Number(log?.['Position'])}, MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1;
      START SLAVE`)
    await replicating(second)
    return { source: first, replica: second }
  },
  rows,
})

type SmallDisk = Awaited<ReturnType<typeof startMariadbOnSmallDisk>>

corpus<SmallDisk>({
  server: `${name} with a small data directory`,
  env,
  missing: mariadbMissing ?? mountMissing,
  start: async () => {
    const small = await startMariadbOnSmallDisk(220)
    await small.query(accounts)
    return small
  },
  rows: [
    { fault: 'space is free', monitor: (small) => ask(small, { allowWrites: true }), expected: { state: 'healthy' } },
    {
      fault: 'the data directory is full',
      monitor: (small) => ask(small, { allowWrites: true }),
      plant: async (small) => {
        await small.fill()
        return () => small.free()
      },
      expected: fails('write', 'data', /has no space left for data/),
      peers: (small) => checkMysql(small),
    },
  ],
})

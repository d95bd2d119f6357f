import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise'
import { until } from '../suite/until.ts'
import { asServer, freePort, type Running, remove, run, serverFolder } from './server.ts'

/** Where `.ci/mysql` unpacks it. */
const home = join(import.meta.dirname, '../../../node_modules/.cache/mysql')
const daemon = join(home, 'bin/mysqld')
export const mysqlMissing = existsSync(daemon)
  ? undefined
  : 'MySQL is not unpacked: .ci/mysql fetches it from Maven Central'

/** E.g. `8.0.33`; empty where it is missing. */
export const mysqlVersion = (): string =>
  mysqlMissing === undefined
    ? (/Ver ([\d.]+)/.exec(execFileSync(daemon, ['--no-defaults', '--version'], { encoding: 'utf8' }))?.[1] ?? '')
    : ''

/** A data directory that `--initialize-insecure` has made. Copying it takes less time than making another one. */
let template: string | undefined
process.once('exit', () => template !== undefined && remove(template))

function initialized(): string {
  if (template !== undefined) return template
  const folder = serverFolder('mysql-template')
  const data = join(folder, 'data')
  const made = spawnSync(daemon, ['--no-defaults', '--initialize-insecure', `--basedir=${home}`, `--datadir=${data}`], {
    ...asServer,
    cwd: '/',
    encoding: 'utf8',
  })
  if (made.status !== 0) throw new Error(`mysqld --initialize-insecure: ${made.stderr}`)
  // Two servers with the same UUID do not replicate from each other.
  rmSync(join(data, 'auto.cnf'))
  template = folder
  return folder
}

export type MysqlServer = Running & {
  readonly port: number
  readonly folder: string
  readonly url: (user: string, database?: string) => string
  /** As root, on a connection of its own. */
  readonly query: (sql: string) => Promise<Record<string, unknown>[]>
  /** A connection of root over the socket file; the caller ends it. */
  readonly client: () => Promise<Connection>
  /** Ends it and removes its data. */
  readonly remove: () => Promise<void>
}

/** A real MySQL with GTIDs on a free port of 127.0.0.1. `settings` are `--name=value`. */
export async function startMysql(serverId: number, settings: readonly string[] = []): Promise<MysqlServer> {
  const folder = serverFolder('mysql')
  const data = join(folder, 'data')
  // Keeps the owner, which is the account of the server.
  execFileSync('cp', ['-a', join(initialized(), 'data'), data])
  const port = await freePort()
  const socketPath = join(folder, 'db.sock')
  const running = await run(
    daemon,
    [
      '--no-defaults',
      `--basedir=${home}`,
      `--datadir=${data}`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      `--socket=${socketPath}`,
      `--pid-file=${join(folder, 'pid')}`,
      '--mysqlx=OFF',
      '--skip-name-resolve',
      '--max-connections=40',
      '--max-connect-errors=100000',
      '--innodb-flush-log-at-trx-commit=0',
      '--innodb-buffer-pool-size=32M',
      `--server-id=${serverId}`,
      '--gtid-mode=ON',
      '--enforce-gtid-consistency=ON',
      '--sync-binlog=0',
      ...settings,
    ],
    /ready for connections\. Version/,
  )
  const client = (): Promise<Connection> => createConnection({ socketPath, user: 'root', multipleStatements: true })
  return {
    ...running,
    port,
    folder,
    url: (user, database = '') => `mysql://${user}@127.0.0.1:${port}/${database}`,
    client,
    query: async (sql) => {
      const one = await client()
      try {
        const [rows] = await one.query<RowDataPacket[]>(sql)
        return rows
      } finally {
        await one.end()
      }
    },
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}

/** The account that members and replicas connect with. It is created without a GTID, so that each has its own. */
const replicator = (grants: string): string => `SET SQL_LOG_BIN = 0; CREATE USER repl@'127.0.0.1' IDENTIFIED BY 'r';
  GRANT ${grants} ON *.* TO repl@'127.0.0.1'; SET SQL_LOG_BIN = 1`

export type MysqlGroup = {
  /** The first is the primary. */
  readonly members: readonly [MysqlServer, MysqlServer, MysqlServer]
  /** Waits until this member sees so many members in this state. */
  readonly sees: (member: MysqlServer, count: number, state: string) => Promise<unknown>
  readonly remove: () => Promise<void>
}

/** A real group of three members with one primary (group replication). */
export async function startMysqlGroup(): Promise<MysqlGroup> {
  const ports = [await freePort(), await freePort(), await freePort()]
  const seeds = ports.map((port) => `127.0.0.1:${port}`).join(',')
  const started: MysqlServer[] = []
  const start = async (port: number | undefined): Promise<MysqlServer> => {
    const server = await startMysql(started.length + 1, [
      '--plugin-load-add=group_replication.so',
      '--report-host=127.0.0.1',
      '--loose-group-replication-group-name=aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa',
      `--loose-group-replication-local-address=127.0.0.1:${port}`,
      `--loose-group-replication-group-seeds=${seeds}`,
      '--loose-group-replication-ip-allowlist=127.0.0.1',
      '--loose-group-replication-start-on-boot=OFF',
      '--loose-group-replication-recovery-get-public-key=ON',
      '--loose-group-replication-recovery-reconnect-interval=1',
    ])
    started.push(server)
    await server.query(`${replicator('REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM')};
      CHANGE REPLICATION SOURCE TO SOURCE_USER = 'repl', SOURCE_PASSWORD = 'r' FOR CHANNEL 'group_replication_recovery'`)
    return server
  }
  const remove = async (): Promise<void> => {
    for (const one of started.toReversed()) await one.remove()
  }
  const sees = (member: MysqlServer, count: number, state: string): Promise<unknown> =>
    until(
      async () => {
        const rows = await member.query(
          `SELECT member_id FROM performance_schema.replication_group_members WHERE member_state = '${state}'`,
        )
        return rows.length === count
      },
      60_000,
      100,
    )
  try {
    const [a, b, c] = [await start(ports[0]), await start(ports[1]), await start(ports[2])]
    await a.query(`SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION;
      SET GLOBAL group_replication_bootstrap_group = OFF`)
    for (const one of [b, c]) await one.query('START GROUP_REPLICATION')
    for (const one of started) await sees(one, 3, 'ONLINE')
    return { members: [a, b, c], sees, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

export type MysqlPair = { readonly source: MysqlServer; readonly replica: MysqlServer }

/** Whether a replica receives and applies, with nothing left to apply. */
export const replicatesMysql = (replica: MysqlServer): Promise<unknown> =>
  until(
    async () => {
      const [row] = await replica.query('SHOW REPLICA STATUS')
      return (
        row?.['Replica_IO_Running'] === 'Yes' &&
        row['Replica_SQL_Running'] === 'Yes' &&
        Number(row['Seconds_Behind_Source']) === 0
      )
    },
    60_000,
    100,
  )

/** A real source with a read-only, semi-synchronous replica. The source sends a heartbeat each second. */
export async function startMysqlPair(): Promise<MysqlPair> {
  const source = await startMysql(1, [
    '--plugin-load-add=semisync_source.so',
    '--loose-rpl-semi-sync-source-enabled=ON',
    '--loose-rpl-semi-sync-source-timeout=500',
  ])
  const replica = await startMysql(2, [
    '--plugin-load-add=semisync_replica.so',
    '--loose-rpl-semi-sync-replica-enabled=ON',
  ])
  for (const one of [source, replica]) await one.query(replicator('REPLICATION SLAVE'))
  await replica.query(`CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = ${source.port},
      SOURCE_USER = 'repl', SOURCE_PASSWORD = 'r', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1,
      SOURCE_CONNECT_RETRY = 1, SOURCE_HEARTBEAT_PERIOD = 1;
    START REPLICA; SET GLOBAL super_read_only = 1`)
  await replicatesMysql(replica)
  return { source, replica }
}

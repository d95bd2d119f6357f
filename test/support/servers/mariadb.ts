import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise'
import { asServer, findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const daemon = findProgram('mariadbd')
const install = findProgram('mariadb-install-db')
export const mariadbMissing =
  daemon === undefined || install === undefined ? 'MariaDB (mariadbd) is not installed' : undefined

export type MariadbServer = Running & {
  readonly port: number
  readonly folder: string
  readonly address: string
  readonly url: (user: string, database?: string) => string
  /** As root, on a connection of its own. */
  readonly query: (sql: string) => Promise<Record<string, unknown>[]>
  /** A connection of root over the socket file; the caller ends it. */
  readonly client: () => Promise<Connection>
  /** Ends it and removes its data. */
  readonly remove: () => Promise<void>
}

/**
 * A real MariaDB on a free port of 127.0.0.1. `settings` are `--name=value`. Its data goes to the subfolder `data` of
 * `folder`, which may exist and be empty.
 */
export async function startMariadb(
  settings: readonly string[] = [],
  folder = serverFolder('mariadb'),
): Promise<MariadbServer> {
  const data = join(folder, 'data')
  const made = spawnSync(
    install ?? '',
    ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', '--skip-test-db'],
    // Of its own: the names of temporary tables in a shared folder meet those of other servers.
    { ...asServer, cwd: '/', encoding: 'utf8', env: { ...process.env, TMPDIR: folder } },
  )
  if (made.status !== 0) throw new Error(`mariadb-install-db: ${made.stderr}${made.stdout}`)
  const port = await freePort()
  const socketPath = join(folder, 'db.sock')
  const options = [
    '--no-defaults',
    `--datadir=${data}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    `--socket=${socketPath}`,
    `--tmpdir=${folder}`,
    `--pid-file=${join(folder, 'pid')}`,
    '--skip-name-resolve',
    '--max-connections=20',
    '--innodb-flush-log-at-trx-commit=0',
    ...settings,
  ]
  const running = await run(daemon ?? '', options, /ready for connections/)
  const client = (): Promise<Connection> => createConnection({ socketPath, user: 'root', multipleStatements: true })
  return {
    ...running,
    port,
    folder,
    address: `127.0.0.1:${port}`,
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

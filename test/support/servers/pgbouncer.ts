import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { asServer, findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const daemon = findProgram('pgbouncer')
export const pgbouncerMissing = daemon === undefined ? 'PgBouncer is not installed' : undefined

export type Pgbouncer = Running & {
  readonly port: number
  readonly address: string
  readonly url: (user: string, database: string) => string
  /** Ends it and removes its files. */
  readonly remove: () => Promise<void>
}

export type PgbouncerOptions = {
  /** Accounts and passwords. `stats` may read the console and `admin` may use all of it. */
  readonly users: Readonly<Record<string, string>>
  /** Database → its connection string. */
  readonly databases: Readonly<Record<string, string>>
  readonly settings?: Readonly<Record<string, string | number>>
}

/** A real PgBouncer on a free port of 127.0.0.1. */
export async function startPgbouncer({ users, databases, settings = {} }: PgbouncerOptions): Promise<Pgbouncer> {
  const folder = serverFolder('pgbouncer')
  const port = await freePort()
  const write = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    if (asServer.uid !== undefined) chownSync(path, asServer.uid, asServer.gid)
    return path
  }
  const lines = (values: Readonly<Record<string, string | number>>): string =>
    Object.entries(values)
      .map(([name, value]) => `${name} = ${value}\n`)
      .join('')
  const usersFile = write(
    'users.txt',
    Object.entries(users)
      .map(([name, password]) => `"${name}" "${password}"\n`)
      .join(''),
  )
  const config = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: usersFile,
    admin_users: 'admin',
    stats_users: 'stats',
    pool_mode: 'transaction',
    ignore_startup_parameters: 'extra_float_digits',
    ...settings,
  }
  const file = write('pgbouncer.ini', `[databases]\n${lines(databases)}[pgbouncer]\n${lines(config)}`)
  const running = await run(daemon ?? '', [file], /process up/)
  return {
    ...running,
    port,
    address: `127.0.0.1:${port}`,
    url: (user, database) => `postgres://${user}@127.0.0.1:${port}/${database}`,
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}

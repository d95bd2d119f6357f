import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { debianPostgres, type PostgresServer, startPostgres } from './postgres.ts'
import { asServer, findProgram, remove, serverFolder } from './server.ts'

const program = findProgram('pgbackrest')
export const pgbackrestMissing = program === undefined ? 'pgBackRest is not installed' : undefined

export type Pgbackrest = AsyncDisposable & {
  readonly server: PostgresServer
  /** Writes what `pgbackrest info` prints to a file, and returns its path. */
  readonly info: () => string
  /** Creates the stanza and makes a full backup. */
  readonly backUp: () => void
}

/** PostgreSQL 15 of Debian, and a repository of pgBackRest with its stanza `main`, to which it archives its WAL. */
export async function startPgbackrest(): Promise<Pgbackrest> {
  const folder = serverFolder('pgbackrest')
  const file = join(folder, 'info.json')
  const own = (name: string): string => {
    const path = join(folder, name)
    mkdirSync(path)
    if (asServer.uid !== undefined) spawnSync('chown', [`${asServer.uid}:${asServer.gid}`, path])
    return path
  }
  const [repository, log, lock, sockets] = ['repository', 'log', 'lock', 'sockets'].map(own)
  const config = join(folder, 'pgbackrest.conf')
  const archive = `${program} --config=${config} --stanza=main archive-push %p`
  const server = await startPostgres(
    ['archive_mode=on', `archive_command=${archive}`, `unix_socket_directories=${sockets}`],
    'local all all trust\n',
    debianPostgres,
  )
  const lines = [
    '[global]',
    `repo1-path=${repository}`,
    'repo1-retention-full=1',
    `log-path=${log}`,
    `lock-path=${lock}`,
    'start-fast=y',
    '[main]',
    `pg1-path=${join(server.folder, 'data')}`,
    `pg1-port=${server.port}`,
    `pg1-socket-path=${sockets}`,
    'pg1-user=postgres',
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  const run = (...args: string[]): string => {
    const done = spawnSync(program ?? '', [`--config=${config}`, '--stanza=main', ...args], {
      ...asServer,
      cwd: '/',
      encoding: 'utf8',
    })
    if (done.status !== 0) throw new Error(`pgbackrest ${args.join(' ')}: ${done.stderr}${done.stdout}`)
    return done.stdout
  }
  return {
    server,
    info: () => {
      writeFileSync(file, run('info', '--output=json'))
      return file
    },
    backUp: () => {
      run('stanza-create')
      run('backup', '--type=full')
    },
    [Symbol.asyncDispose]: async () => {
      await server.remove()
      remove(folder)
    },
  }
}

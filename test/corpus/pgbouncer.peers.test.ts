import { execFileSync } from 'node:child_process'
import pg from 'pg'
import { exhaustedPool } from '../support/faults/postgres-faults.ts'
import { type Pgbouncer, pgbouncerMissing, startPgbouncer } from '../support/servers/pgbouncer.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { findProgram, freePort } from '../support/servers/server.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row, warns } from './row.ts'

const password = 'correct horse'
const env = { POOLER: password, WRONG: 'another password' }

type Fixture = { readonly pooler: Pgbouncer; readonly impatient: Pgbouncer; server: PostgresServer }

const consoleOf =
  (more: object = {}, user = 'stats') =>
  ({ pooler }: Fixture) => ({
    kind: 'pgbouncer',
    url: pooler.url(user, 'pgbouncer'),
    password: { env: 'POOLER' },
    ...more,
  })

const behind =
  (database: string, which: 'pooler' | 'impatient' = 'pooler', more: object = {}) =>
  (fixture: Fixture) => ({
    kind: 'postgres',
    url: fixture[which].url('monitor', database),
    password: { env: 'POOLER' },
    restarted: '0s',
    ...more,
  })

const others =
  (database: string, which: 'pooler' | 'impatient' = 'pooler') =>
  (fixture: Fixture): readonly PeerProgram[] => [
    {
      program: 'check_pgsql',
      args: ['-H', '127.0.0.1', '-P', String(fixture[which].port), '-l', 'monitor', '-d', database, '-t', '3'],
      env: { PGPASSWORD: password },
    },
    // Without query_wait_timeout, check_postgres waits for a minute.
    ...(which === 'pooler'
      ? []
      : [
          {
            program: 'check_postgres',
            args: [
              ...['--action', 'connection', '-H', '127.0.0.1', '-p', String(fixture[which].port)],
              ...['-u', 'monitor', '--db', database, '--timeout', '5'],
            ],
            env: { PGPASSWORD: password },
          },
        ]),
  ]

const console = async ({ pooler }: Fixture, command: string): Promise<void> => {
  const admin = client(pooler, 'admin', 'pgbouncer')
  await admin.connect()
  await admin.query(command)
  await admin.end()
}

const client = ({ port }: Pgbouncer, user: string, database: string): pg.Client => {
  const made = new pg.Client({ host: '127.0.0.1', port, user, database, password, connectionTimeoutMillis: 3_000 })
  made.on('error', () => {})
  return made
}

const exhausted = (which: 'pooler' | 'impatient' = 'pooler') => ({
  plant: async (fixture: Fixture) =>
    (await exhaustedPool(fixture[which], { user: 'monitor', password, database: 'postgres' })).end,
})

const rows: readonly Row<Fixture>[] = [
  { fault: 'a healthy console', monitor: consoleOf(), expected: { state: 'healthy' } },
  {
    fault: 'a healthy server behind it',
    mode: 'Basic',
    monitor: behind('postgres'),
    expected: { state: 'healthy' },
    peers: others('postgres'),
  },
  {
    fault: 'the password was changed',
    monitor: consoleOf({ password: { env: 'WRONG' } }),
    expected: fails('connect', 'auth', /refused the sign-in of "stats"/),
  },
  {
    fault: 'the account may not use the console',
    monitor: consoleOf({}, 'other'),
    expected: fails('connect', 'data', /does not let "other" use its console/),
  },
  {
    fault: 'an exhausted pool, according to the console',
    env,
    monitor: consoleOf({ maxWait: { limit: '1ms' } }),
    ...exhausted(),
    expected: fails('wait time', 'threshold', /^longest wait for a server connection, in postgres\/monitor/),
  },
  {
    fault: 'many clients wait',
    env,
    monitor: consoleOf({ waitingClients: { limit: 0 } }),
    ...exhausted(),
    expected: fails('waiting clients', 'threshold', /in postgres\/monitor: 1/),
  },
  {
    fault: 'an exhausted pool, according to a client',
    env,
    mode: 'Basic',
    monitor: behind('postgres', 'pooler', { timeout: '2s' }),
    ...exhausted(),
    expected: fails(
      'query',
      'timeout',
      /accepted the connection as PgBouncer does, but the server behind it does not answer$/,
      { never: /does not accept|refused/ },
    ),
    peers: others('postgres'),
  },
  {
    fault: 'an exhausted pool that gives up its clients',
    env,
    mode: 'Basic',
    monitor: behind('postgres', 'impatient'),
    ...exhausted('impatient'),
    expected: fails('query', 'timeout', /the pool is exhausted, or the server is gone/),
    peers: others('postgres', 'impatient'),
  },
  {
    fault: 'a dead server behind it, according to a client',
    mode: 'Basic',
    monitor: behind('dead', 'impatient'),
    expected: fails(
      'connect',
      'timeout',
      /^PgBouncer at .* accepted the connection, but no connection to its server became free/,
    ),
    peers: others('dead', 'impatient'),
  },
  {
    fault: 'a database that it does not have',
    monitor: behind('nowhere'),
    expected: fails('connect', 'data', /have this database: no such database: nowhere$/),
    peers: others('nowhere'),
  },
  {
    fault: 'a database is paused',
    monitor: consoleOf(),
    plant: async (fixture) => {
      await console(fixture, 'PAUSE idle')
      return () => console(fixture, 'RESUME idle')
    },
    expected: warns('databases', /^idle is paused/),
  },
  {
    fault: 'nearly all client connections are in use',
    monitor: consoleOf({ clients: { limit: '5%' } }),
    plant: async ({ pooler }) => {
      const open = Array.from({ length: 8 }, () => client(pooler, 'stats', 'pgbouncer'))
      for (const one of open) await one.connect()
      return async () => {
        for (const one of open) await one.end()
      }
    },
    expected: fails('clients', 'threshold', /^\d+ of 100 clients/),
  },
  {
    fault: 'a database has used up its connections',
    monitor: consoleOf(),
    plant: async ({ pooler }) => {
      const one = client(pooler, 'monitor', 'limited')
      await one.connect()
      await one.query('SELECT 1')
      return () => one.end()
    },
    expected: fails('databases', 'threshold', /^limited has 1 of 1 connections/),
  },
  {
    fault: 'PgBouncer is frozen',
    monitor: consoleOf({ timeout: '2s' }),
    plant: async ({ pooler }) => {
      pooler.freeze()
      return pooler.thaw
    },
    expected: fails('connect', 'timeout', /accepted the connection but sent nothing for [\d.]+ m?s/),
  },
  // The last row of this PgBouncer, which goes on counting the client after it has left.
  {
    fault: 'a dead server behind it, according to the console',
    monitor: consoleOf({ maxWait: { limit: '1h' } }),
    plant: async ({ pooler }) => {
      const one = client(pooler, 'monitor', 'dead')
      const connecting = one.connect().catch(() => {})
      const stats = client(pooler, 'stats', 'pgbouncer')
      await stats.connect()
      await until(async () => {
        const { rows: pools } = await stats.query('SHOW POOLS')
        return pools.some((pool) => pool.database === 'dead' && Number(pool.cl_waiting) > 0)
      })
      await stats.end()
      return async () => void (await connecting)
    },
    expected: fails(
      'wait time',
      'refused',
      /^dead\/monitor: 1 client waiting, 0 server connections: its server may be gone/,
    ),
  },
  {
    fault: 'the server behind it has stopped',
    mode: 'Basic',
    monitor: behind('postgres', 'impatient'),
    plant: async (fixture) => {
      await fixture.server.stop()
      return async () => {
        fixture.server = await fixture.server.restart()
      }
    },
    expected: fails('query', 'any', /^PgBouncer at .* accepted the connection, but/),
    peers: others('postgres', 'impatient'),
  },
]

const version = (): string =>
  /PgBouncer ([\d.]+)/.exec(execFileSync(findProgram('pgbouncer') ?? '', ['--version'], { encoding: 'utf8' }))?.[1] ??
  ''

corpus<Fixture>({
  server: pgbouncerMissing === undefined ? `PgBouncer ${version()}` : 'PgBouncer',
  env,
  missing: pgbouncerMissing ?? postgresMissing,
  start: async () => {
    const server = await startPostgres()
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${password}'; GRANT pg_monitor TO monitor`)
    const to = (port: number): string => `host=127.0.0.1 port=${port} dbname=postgres`
    const databases = {
      postgres: to(server.port),
      idle: to(server.port),
      dead: to(await freePort()),
      limited: `${to(server.port)} max_db_connections=1`,
    }
    const users = { monitor: password, stats: password, other: password, admin: password }
    const settings = { default_pool_size: 1 }
    return {
      server,
      pooler: await startPgbouncer({ users, databases, settings }),
      impatient: await startPgbouncer({ users, databases, settings: { ...settings, query_wait_timeout: 1 } }),
    }
  },
  rows,
})

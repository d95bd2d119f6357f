import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import pgbouncer from '../../../src/core/checks/kinds/pgbouncer/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { exhaustedPool, type PlantedFault } from '../../support/faults/postgres-faults.ts'
import { type Pgbouncer, pgbouncerMissing, startPgbouncer } from '../../support/servers/pgbouncer.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { freePort } from '../../support/servers/server.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const word = 'correct horse'

peerSuite(pgbouncerMissing ?? postgresMissing, 'PgBouncer', () => {
  let server: PostgresServer
  let pooler: Pgbouncer
  let impatient: Pgbouncer
  const ask = (
    options: Partial<Values<typeof pgbouncer.settings>> = {},
    mode: ExecutionMode = 'Standard',
  ): Promise<readonly Result[]> =>
    runKind(pgbouncer, { url: pooler.url('stats', 'pgbouncer'), password: secret(word), ...options }, mode)
  const client = (user: string, database: string): pg.Client => {
    const made = new pg.Client({
      host: '127.0.0.1',
      port: pooler.port,
      user,
      database,
      password: word,
      connectionTimeoutMillis: 5_000,
    })
    made.on('error', () => {})
    return made
  }
  const behind = (
    database: string,
    { through = pooler, password = word }: { readonly through?: Pgbouncer; readonly password?: string } = {},
  ): Promise<readonly Result[]> =>
    runKind(postgres, { url: through.url('monitor', database), password: secret(password) }, 'Basic', {
      timeoutMs: 4_000,
    })
  beforeAll(async () => {
    server = await startPostgres()
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor`)
    const databases = {
      postgres: `host=127.0.0.1 port=${server.port}`,
      dead: `host=127.0.0.1 port=${await freePort()}`,
      gone: `host=127.0.0.1 port=${server.port} dbname=nowhere`,
      limited: `host=127.0.0.1 port=${server.port} dbname=postgres max_db_connections=1`,
    }
    const users = { monitor: word, stats: word, other: word, admin: word }
    pooler = await startPgbouncer({ users, databases, settings: { default_pool_size: 1 } })
    impatient = await startPgbouncer({
      users,
      databases,
      settings: { default_pool_size: 1, query_wait_timeout: 1 },
    })
  })
  afterAll(async () => {
    await pooler.remove()
    await impatient.remove()
    await server.remove()
  })
  const exhausted = async (use: (fault: PlantedFault) => Promise<void>, through = pooler): Promise<void> => {
    const fault = await exhaustedPool(through, { user: 'monitor', password: word, database: 'postgres' })
    try {
      await use(fault)
    } finally {
      await fault.end()
    }
  }

  test('PgBouncer: the console of a healthy one is well, with an account of stats_users only', async () => {
    const results = await ask({}, 'Advanced')
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
    expect(results.map(({ check }) => check)).toEqual([
      'connect',
      'console',
      'wait time',
      'waiting clients',
      'databases',
      'clients',
    ])
    expect(checked(results, 'console')).toMatchObject({ message: expect.stringMatching(/^PgBouncer \d/) })
  })
  test('PgBouncer: an account that is not in stats_users is reported with what it needs', async () => {
    const [result] = await ask({ url: pooler.url('other', 'pgbouncer') })
    expect(result).toMatchObject({
      check: 'connect',
      status: 'failed',
      fault: 'data',
      message: `PgBouncer at ${pooler.address} does not let "other" use its console`,
      details: ['next: add it to stats_users', 'SQLSTATE 08P01'],
    })
  })
  test('PgBouncer: the wrong password is a refused sign-in', async () => {
    const [result] = await ask({ password: secret('wrong') })
    expect(result).toMatchObject({ check: 'connect', fault: 'auth' })
  })
  test('PgBouncer: clients that wait for an exhausted pool are counted, and their wait is judged', async () => {
    await exhausted(async () => {
      const results = await ask({ maxWait: { limit: 1 }, waitingClients: { limit: 0 } })
      expect(checked(results, 'wait time')).toMatchObject({
        status: 'failed',
        fault: 'threshold',
        message: expect.stringMatching(/^longest wait for a server connection, in postgres\/monitor: /),
        details: ['postgres/monitor: 1 client waiting, 1 server connection'],
      })
      expect(checked(results, 'waiting clients')).toMatchObject({ status: 'failed', measurement: { value: 1 } })
    })
  })
  test('PgBouncer: a pool without a server connection, whose clients wait, fails although they wait for a moment only', async () => {
    const one = client('monitor', 'dead')
    const connecting = one.connect().catch(() => {})
    try {
      await expect
        .poll(async () => checked(await ask({ maxWait: { limit: 3_600_000 } }), 'wait time'), { timeout: 10_000 })
        .toMatchObject({
          status: 'failed',
          fault: 'refused',
          message: 'dead/monitor: 1 client waiting, 0 server connections: its server may be gone',
        })
    } finally {
      await connecting
    }
  })
  test('PgBouncer: a paused database is a warning, and one without free connections fails', async () => {
    const admin = client('admin', 'pgbouncer')
    await admin.connect()
    await admin.query('PAUSE gone')
    expect(checked(await ask(), 'databases')).toMatchObject({ status: 'warning', message: 'gone is paused' })
    await admin.query('RESUME gone')
    await admin.end()
    const one = client('monitor', 'limited')
    await one.connect()
    await one.query('SELECT 1')
    expect(checked(await ask(), 'databases')).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/^limited has 1 of 1 connections: 100 % /),
    })
    await one.end()
  })
  test('PgBouncer: clients are counted against max_client_conn', async () => {
    const result = checked(await ask({ clients: { limit: 0 } }), 'clients')
    expect(result).toMatchObject({ status: 'failed', message: expect.stringMatching(/^\d of 100 clients: \d % /) })
  })

  test('PgBouncer: the kind postgres says that it is at the console, and which kind reads it', async () => {
    const results = await runKind(
      postgres,
      { url: pooler.url('stats', 'pgbouncer'), password: secret(word) },
      'Standard',
    )
    expect(results).toMatchObject([
      {
        check: 'connect',
        fault: 'data',
        message: `${pooler.address} is the console of PgBouncer`,
        details: [expect.stringContaining('use the kind pgbouncer')],
      },
    ])
    const [other] = await runKind(pgbouncer, { url: server.url('monitor'), password: secret(word) })
    expect(other).toMatchObject({ fault: 'data', message: `${server.address} is not the console of PgBouncer` })
  })
  test('PgBouncer: a database behind it is checked like any other', async () => {
    expect((await behind('postgres')).map(({ status }) => status)).toEqual(['ok', 'ok'])
  })
  test('PgBouncer: a server that is gone is not blamed on PgBouncer, which accepts the connection', async () => {
    const [result] = await behind('dead')
    expect(result).toMatchObject({
      check: 'connect',
      fault: 'timeout',
      message: `${pooler.address} accepts connections and took the password, but sends nothing more: if it is PgBouncer, its server does not answer`,
    })
    const [sooner] = await behind('dead', { through: impatient })
    expect(sooner).toMatchObject({
      check: 'connect',
      fault: 'timeout',
      message: `PgBouncer at ${impatient.address} accepted the connection, but no connection to its server became free: the pool is exhausted, or the server is gone (query_wait_timeout)`,
    })
  })
  test('PgBouncer: a server that does not answer a statement, and an exhausted pool, are told from PgBouncer', async () => {
    await exhausted(async () => {
      expect((await behind('postgres'))[1]).toMatchObject({
        check: 'query',
        fault: 'timeout',
        message: `${pooler.address} accepted the connection as PgBouncer does, but the server behind it does not answer`,
      })
    })
    await exhausted(async () => {
      expect((await behind('postgres', { through: impatient }))[1]).toMatchObject({
        check: 'query',
        fault: 'timeout',
        message: expect.stringContaining('(query_wait_timeout)'),
      })
    }, impatient)
  })
  test('PgBouncer: what it, or the server behind it, refuses is named', async () => {
    expect((await behind('nowhere'))[0]).toMatchObject({
      fault: 'data',
      message: `PgBouncer at ${pooler.address} does not have this database: no such database: nowhere`,
    })
    expect((await behind('gone'))[0]).toMatchObject({
      message: expect.stringContaining('database "nowhere" does not exist'),
    })
    expect((await behind('postgres', { password: 'wrong' }))[0]).toMatchObject({ fault: 'auth' })
  })
  test('PgBouncer: a server that has stopped is distinguished from PgBouncer', async () => {
    await behind('postgres')
    await server.stop()
    try {
      await expect
        .poll(async () => (await behind('postgres')).at(-1), { timeout: 20_000 })
        .toMatchObject({ fault: 'refused', message: expect.stringContaining('but cannot reach its server: server ') })
    } finally {
      server = await server.restart()
    }
  })
})

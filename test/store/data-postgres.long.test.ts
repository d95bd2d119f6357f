import { chmodSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { inspect } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Fault } from '../../src/core/base/errors.ts'
import { type Data, openData } from '../../src/core/store/index.ts'
import { migratePostgres, postgresMigrations } from '../../src/core/store/postgres/migrate.ts'
import { postgresTarget } from '../../src/core/store/postgres/url.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { freePort } from '../support/servers/server.ts'
import {
  actor,
  failed,
  failuresOf,
  faultOf,
  freshDatabase,
  newUser,
  storePassword,
  withData,
} from '../support/store/data-fixture.ts'
import { endsByDeadline } from '../support/suite/deadline.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

let server: PostgresServer
const folder = temporaryFolder()
beforeAll(async () => {
  server = await startPostgres(['max_connections=40'])
})
afterAll(() => server.remove())
async function open(store: string, env: Readonly<Record<string, string>> = {}): Promise<Data> {
  const data = await openData({ store, create: true, env })
  onTestFinished(() => data.close())
  return data
}
const nameOf = (url: string): string => new URL(url).pathname.slice(1)
const messagesOf = (fault: Fault): string => [fault.fault, fault.message, ...(fault.details.hints ?? [])].join('\n')
/** The fault; asserts that it comes in time and does not contain the password. */
async function refusal(work: Promise<unknown>): Promise<Fault> {
  const fault = await endsByDeadline(2_000, faultOf(work), 3)
  expect(inspect(fault, { depth: 9, showHidden: true })).not.toMatch(/pa55/)
  return fault
}

describe('D2 a PostgreSQL store that cannot be used', () => {
  test('D2 a wrong password is reported as such; the correct one may come from a file', async () => {
    const url = new URL(await freshDatabase(server))
    url.password = 'pa55-wrong'
    const fault = await refusal(open(url.href))
    expect(messagesOf(fault)).toContain(`Local\nThe store postgres://svc@127.0.0.1:${server.port}/`)
    expect(messagesOf(fault)).toMatch(/rejects the password of svc\n.*SVC_STORE_PASSWORD_FILE/)
    const file = join(folder, 'password')
    writeFileSync(file, `${storePassword}\n`)
    chmodSync(file, 0o600)
    // The file goes before the URL.
    await (await open(url.href, { SVC_STORE_PASSWORD_FILE: file })).ping()
    url.password = ''
    await (await open(url.href, { SVC_STORE_PASSWORD_FILE: file })).ping()
    expect(messagesOf(await refusal(open(url.href)))).toMatch(/requires a password, but none is set/)
    const unread = { SVC_STORE_PASSWORD_FILE: join(folder, 'nowhere') }
    expect(messagesOf(await refusal(open(url.href, unread)))).toMatch(/SVC_STORE_PASSWORD_FILE names cannot be read/)
  })
  test('D2 a password in the environment of other programs is not used', async () => {
    const url = new URL(await freshDatabase(server))
    url.password = ''
    process.env.PGPASSWORD = storePassword
    try {
      expect(messagesOf(await refusal(open(url.href)))).toMatch(/requires a password, but none is set/)
    } finally {
      delete process.env.PGPASSWORD
    }
  })
  test('D2 a database of another program is refused and left unchanged', async () => {
    const other = `CREATE TABLE meta ("id" TEXT, "application" TEXT, "createdAt" DATE, "version" TEXT);
      INSERT INTO meta VALUES ('1', 'songs', now(), 'two'); GRANT SELECT ON meta TO svc`
    for (const sql of [
      'CREATE TABLE songs (name TEXT)',
      'CREATE TABLE meta (application TEXT, version INTEGER)',
      other,
    ]) {
      const url = await freshDatabase(server)
      await server.query(sql, nameOf(url))
      expect(messagesOf(await refusal(open(url)))).toMatch(
        /contains tables of another application and no svc store\nGive svc a/,
      )
      const tables = await server.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'", nameOf(url))
      expect(tables).toHaveLength(1)
    }
  })
  test('D2 a newer store is refused and left unchanged', async () => {
    const url = await freshDatabase(server)
    await withData(url, (data) => data.users.add(newUser('alice'), actor()))
    await server.query('UPDATE meta SET version = 99', nameOf(url))
    const knownVersion = postgresMigrations.length
    expect(messagesOf(await refusal(open(url)))).toContain(
      `written by a newer svc (schema 99; this svc supports schema ${knownVersion})`,
    )
    expect(await server.query('SELECT version FROM meta', nameOf(url))).toEqual([{ version: 99 }])
  })
  test('D2 a missing database, and one with another encoding, are reported with the command to run', async () => {
    const url = new URL(await freshDatabase(server))
    await server.query(`CREATE DATABASE ascii OWNER svc ENCODING 'SQL_ASCII' TEMPLATE template0`)
    url.pathname = '/ascii'
    expect(messagesOf(await refusal(open(url.href)))).toMatch(
      /stores text as SQL_ASCII.*\nCreate a UTF8 database: createdb -E UTF8/,
    )
    url.pathname = '/nowhere'
    expect(messagesOf(await refusal(open(url.href)))).toMatch(/there is no database nowhere\ncreatedb nowhere/)
  })
  test('D2 an account that may not create tables is reported as such', async () => {
    const url = await freshDatabase(server)
    await server.query(`ALTER DATABASE ${nameOf(url)} OWNER TO postgres`)
    expect(messagesOf(await refusal(open(url)))).toMatch(/does not allow svc to create or use its tables/)
  })
  test('D2 a step that fails leaves no trace of itself or of earlier steps', async () => {
    const url = await freshDatabase(server)
    const client = await server.client(nameOf(url))
    const options = { label: 'it', create: true }
    const steps = [...postgresMigrations, 'CREATE TABLE half (x INTEGER); SELECT * FROM nowhere']
    await expect(migratePostgres(client, options, steps)).rejects.toThrow(/nowhere/)
    expect((await client.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).rows).toEqual([])
    await migratePostgres(client, options)
    await migratePostgres(client, options, [...postgresMigrations, 'CREATE TABLE next (x INTEGER)'])
    expect((await client.query('SELECT version FROM meta')).rows).toEqual([{ version: postgresMigrations.length + 1 }])
    await client.end()
  })
  test('D2 a migration step may take longer than a query', async () => {
    const url = await freshDatabase(server)
    // As the store's own connections.
    const client = new pg.Client({ connectionString: url, ssl: false, statement_timeout: 500, query_timeout: 700 })
    await client.connect()
    try {
      await migratePostgres(client, { label: 'it', create: true }, [...postgresMigrations, 'SELECT pg_sleep(1)'])
      expect((await client.query('SELECT version FROM meta')).rows).toEqual([
        { version: postgresMigrations.length + 1 },
      ])
      // Only a step may.
      await expect(client.query('SELECT pg_sleep(5)')).rejects.toThrow(/timeout/)
    } finally {
      await client.end()
    }
  })
  test('D2 a refused port and a server that never answers are unavailable within 2 s', async () => {
    const refused = await refusal(open(`postgres://svc:pa55@127.0.0.1:${await freePort()}/svc`))
    expect(messagesOf(refused)).toMatch(/^Unavailable\nThe store postgres:\/\/svc@127.*cannot be reached/)
    const silent = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => silent.once('listening', resolve))
    const address = silent.address()
    const port = typeof address === 'object' && address ? address.port : 0
    expect((await refusal(open(`postgres://svc:pa55@127.0.0.1:${port}/svc`))).fault).toBe('Unavailable')
    silent.close()
  })
  test.each([
    ['postgres://svc:pa55@db.internal:99999/svc', /is not a URL/],
    ['postgres://svc:pa55%2@db.internal/svc', /hexadecimal/],
    ['postgres://:pa55@db.internal/svc', /has no user/],
    ['postgres:///svc', /has no host/],
    ['postgres://svc@db.internal/svc?password=pa55', /unsupported parameter/],
    ['postgres://svc:pa55@db.internal/svc?sslmode=require', /sslmode/],
  ])('an unusable URL is refused without its password in the message: %s', async (url, text) => {
    expect(messagesOf(await refusal(open(url)))).toMatch(text)
  })
  test('beyond this machine the connection is encrypted and the certificate checked, unless the URL disables that', async () => {
    const ssl = async (url: string) => (await postgresTarget(url, {})).hosts[0]?.ssl
    expect(await ssl('postgres://svc@db.internal/svc')).toEqual({ rejectUnauthorized: true })
    expect(await ssl('postgres://svc@db.internal/svc?sslmode=disable')).toBe(false)
    const own = ['127.0.0.1', '127.9.9.9', '[::1]', '[::ffff:127.0.0.1]', 'localhost', 'db.localhost']
    expect(await Promise.all(own.map((host) => ssl(`postgres://svc@${host}/svc`)))).toEqual(own.map(() => false))
    const others = ['127.db.example', '127.0.0.1.db.example', '169.254.1.1', '[fe80::1]', '0.0.0.0', '[::]', '10.0.0.1']
    expect(await Promise.all(others.map((host) => ssl(`postgres://svc@${host}/svc`)))).toEqual(
      others.map(() => ({ rejectUnauthorized: true })),
    )
    expect(await ssl('postgres://svc@localhost/svc?sslmode=verify-full')).toEqual({ rejectUnauthorized: true })
    const file = join(folder, 'ca.pem')
    writeFileSync(file, 'a certificate')
    expect(await ssl(`postgres://svc@db/svc?sslrootcert=${file}`)).toEqual({
      rejectUnauthorized: true,
      ca: 'a certificate',
    })
  })
  test('a server without TLS is refused where the URL requires TLS', async () => {
    const url = `${await freshDatabase(server)}?sslmode=verify-full`
    expect(messagesOf(await refusal(open(url)))).toMatch(/^Local\n.*a trusted connection: .*SSL.*\n.*sslmode=disable/)
  })
})

describe('D3 PostgreSQL slow, stopped and restarted', () => {
  test('D3 reads write nothing: they work on a read-only server, where a change is unavailable', async () => {
    const url = await freshDatabase(server)
    const { id } = await withData(url, (data) => data.users.add(newUser('alice'), actor()))
    await server.query(`ALTER DATABASE ${nameOf(url)} SET default_transaction_read_only = on`)
    const data = await open(url)
    await data.ping()
    await Promise.all([
      data.users.find('alice'),
      data.users.byId(id),
      data.users.list(),
      data.users.any(),
      data.users.anyAdmin(),
      data.users.holders('Admin'),
      data.sessions.find('x'),
      data.tokens.access('x'),
      data.tokens.refresh('x'),
      data.keys.find('x'),
      data.keys.list(),
      failuresOf(data, 'x'),
      data.audit.list({ limit: 1 }),
    ])
    const fault = await refusal(failed(data, 'x', 1, 1))
    expect(messagesOf(fault)).toBe('Unavailable\nThe store is read-only at the moment')
  })
  test('D3 a frozen server is unavailable within 2 s, and the store works again when it thaws', async () => {
    const url = await freshDatabase(server)
    const data = await open(url)
    const { id } = await data.users.add(newUser('alice'), actor())
    server.freeze()
    try {
      const roles = { add: { roles: ['Ops'], permissions: [] }, remove: { roles: [], permissions: [] } }
      const faults = await Promise.all([
        refusal(data.users.find('alice')),
        refusal(data.ping()),
        ...Array.from({ length: 12 }, () => refusal(data.users.changeGrants(id, roles, actor()))),
      ])
      expect(new Set(faults.map(({ fault }) => fault))).toEqual(new Set(['Unavailable']))
      for (const { message, details } of faults) {
        expect(message).not.toMatch(/127\.|select/i)
        expect(details.retryAfter).toBe(5)
      }
    } finally {
      server.thaw()
    }
    await until(5_000, () => data.users.find('alice'))
    // What was under way has ended one way or the other, and the connections are good.
    const all = await Promise.all(Array.from({ length: 12 }, () => data.users.find('alice')))
    for (const user of all) expect(user?.id).toBe(id)
  })
  test('D3 a lock that another session holds for too long is unavailable, and nothing is changed', async () => {
    const url = await freshDatabase(server)
    const data = await open(url)
    const { id } = await data.users.add(newUser('alice', { passwordHash: 'old' }), actor())
    const holder = await server.client(nameOf(url))
    await holder.query('BEGIN')
    await holder.query('SELECT * FROM users FOR UPDATE')
    const fault = await refusal(data.users.setPassword(id, 'new', actor()))
    expect(messagesOf(fault)).toBe('Unavailable\nThe store does not answer in time')
    await holder.query('ROLLBACK')
    await holder.end()
    expect(await data.users.byId(id)).toMatchObject({ passwordHash: 'old', epoch: 0 })
  })
  test('D3 the store is unavailable during a restart and works within 5 s of its end', async () => {
    const url = await freshDatabase(server)
    const data = await open(url)
    await data.users.add(newUser('alice'), actor())
    await Promise.all(Array.from({ length: 5 }, () => data.ping()))
    await server.stop('SIGQUIT')
    expect((await refusal(data.users.find('alice'))).fault).toBe('Unavailable')
    expect((await refusal(data.users.add(newUser('bob'), actor()))).fault).toBe('Unavailable')
    server = await server.restart()
    await until(5_000, () => data.users.add(newUser('bob'), actor()))
    expect((await data.users.list()).map(({ userName }) => userName)).toEqual(['alice', 'bob'])
  })
})

/** Tries again until it works; throws what it threw last when that takes too long. */
async function until<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (performance.now() > end) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

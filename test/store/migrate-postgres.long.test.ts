import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openData } from '../../src/core/store/index.ts'
import { migratePostgres, postgresMigrations } from '../../src/core/store/postgres/migrate.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { actor, freshDatabase, newUser } from '../support/store/data-fixture.ts'
import { until } from '../support/suite/until.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres(['max_connections=40'])
})
afterAll(async () => await server.remove())

/** Before the indexes of step 5 and the column that step 8 fills. */
const oldVersion = 4
const rows = 5_000
let url = ''
beforeEach(async () => {
  url = await freshDatabase(server)
  const client = await open()
  await client.query('SET ROLE svc')
  await migratePostgres(client, { label: 'it', create: true }, postgresMigrations.slice(0, oldVersion))
  await client.query(`INSERT INTO "users" VALUES ('u', 'Ann', 'ann', NULL, NULL, NULL, 0, 1, 0)`)
  await client.query(
    `INSERT INTO "sessions" SELECT 's' || n, 'u', 0, 0, n, 1, 1, 9e15::bigint, 'f' || n FROM generate_series(1, ${rows}) n`,
  )
  await client.query(`INSERT INTO "refreshTokens"
    SELECT 'r' || n, 'f' || n, 'u', 0, 'fixed', 0, 1, 1, 9e15::bigint, NULL, NULL FROM generate_series(1, ${rows}) n`)
})
async function open(): Promise<pg.Client> {
  const client = await server.client(new URL(url).pathname.slice(1))
  onTestFinished(() => client.end().catch(() => {}))
  return client
}
/** Upgrades the store as `svc serve` of this version does when it starts. */
const upgrade = async (): Promise<void> => {
  const data = await openData({ store: url, create: true, env: {} })
  await data.close()
}
const only = async (sql: string): Promise<unknown> =>
  Object.values((await server.query(sql, new URL(url).pathname.slice(1)))[0] ?? {})[0]
const version = () => only('SELECT "version" FROM "meta"')
const statementUnderWay = (words: string) =>
  only(`SELECT pid FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE '${words}%'`)
/** A sign-in of the version before. Throws if it has to wait for the end of a reader that a test keeps open. */
async function signInOfOldVersion(name: string): Promise<void> {
  const client = await open()
  await client.query('SET statement_timeout = 10000')
  await client.query(`INSERT INTO "sessions" VALUES ('${name}', 'u', 0, 0, 1, 1, 1, 1, 'f-${name}')`)
  await client.query(
    `INSERT INTO "refreshTokens" VALUES ('${name}', 'f-${name}', 'u', 0, 'fixed', 0, 1, 1, 1, NULL, NULL)`,
  )
  await client.query(`DELETE FROM "sessions" WHERE "hash" = 's1'`)
}
/** A transaction that has begun to read, as a backup does. An index that is made concurrently waits for its end. */
async function reader(table: string): Promise<pg.Client> {
  const client = await open()
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await client.query(`SELECT 1 FROM "${table}" LIMIT 1`)
  return client
}

describe('W6 an upgrade of a store in PostgreSQL that other nodes use', { timeout: 120_000 }, () => {
  test('W6 sign-ins of the version before succeed while an index is being made', async () => {
    const backup = await reader('users')
    const upgraded = upgrade()
    await until(() => statementUnderWay('CREATE INDEX CONCURRENTLY'))
    await signInOfOldVersion('during')
    expect([await statementUnderWay('CREATE INDEX CONCURRENTLY'), await version()]).toEqual([
      expect.any(Number),
      oldVersion,
    ])
    await backup.query('COMMIT')
    await upgraded
    expect(await version()).toBe(postgresMigrations.length)
    expect(await only(`SELECT count(*)::int FROM "sessions" WHERE "hash" = 'during'`)).toBe(1)
  })
  test('W6 a table that a reader keeps delays the upgrade, and no sign-in', async () => {
    await migrateTo(7)
    const backup = await reader('sessions')
    const upgraded = upgrade()
    await until(() => statementUnderWay('ALTER TABLE "sessions"'))
    for (let n = 0; n < 5; n += 1) await signInOfOldVersion(`behind-${n}`)
    await backup.query('COMMIT')
    await upgraded
    expect(await version()).toBe(postgresMigrations.length)
  })
  test('W6 rows are filled in transactions of at most 1,000, and rows without a session stay empty', async () => {
    await server.query(`DELETE FROM "sessions" WHERE "hash" = 's7'`, new URL(url).pathname.slice(1))
    await upgrade()
    expect(await only('SELECT max(n)::int FROM (SELECT count(*) n FROM "refreshTokens" GROUP BY xmin) AS each')).toBe(
      1_000,
    )
    expect(await only('SELECT count("createdAt")::int FROM "refreshTokens"')).toBe(rows - 1)
    expect(await only(`SELECT "createdAt"::int FROM "refreshTokens" WHERE "hash" = 'r42'`)).toBe(42)
  })
  test('W6 an invalid index that a killed attempt has left is made again', async () => {
    const backup = await reader('users')
    const killed = upgrade().catch((error: unknown) => error)
    const pid = await until(() => statementUnderWay('CREATE INDEX CONCURRENTLY'))
    await server.query(`SELECT pg_terminate_backend(${pid})`)
    await killed
    const invalid = `SELECT count(*)::int FROM pg_index WHERE NOT indisvalid`
    expect([await only(invalid), await version()]).toEqual([1, oldVersion])
    await backup.query('COMMIT')
    await upgrade()
    expect([await only(invalid), await version()]).toEqual([0, postgresMigrations.length])
    expect(await only(`SELECT count(*)::int FROM pg_index WHERE indexrelid = '"sessionsByIdle"'::regclass`)).toBe(1)
  })
  test('W6 a process that is killed at any statement of the upgrade leaves a store that the next one completes', async () => {
    const backends = () =>
      server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'svc' AND state <> 'idle'")
    for (let round = 0; round < 12; round += 1) {
      const attempt = upgrade().catch(() => {})
      await pause(round * 7)
      await backends()
      await attempt
    }
    await upgrade()
    expect(await version()).toBe(postgresMigrations.length)
    expect(await only('SELECT count("createdAt")::int FROM "refreshTokens"')).toBe(rows)
    expect(await only('SELECT count(*)::int FROM pg_index WHERE NOT indisvalid')).toBe(0)
  })
  test('P71 W6 after step 16 nobody has to change a password, and one that a node of the version before sets ends it', async () => {
    await migrateTo(15)
    const add = (name: string) =>
      `INSERT INTO "users" ("id", "userName", "nameKey", "passwordHash", "disabled", "createdAt", "epoch") VALUES ('${name}', '${name}', '${name}', 'hash of ${name}', 0, 1, 0)`
    const before = await open()
    await before.query(add('old'))
    await before.query(`INSERT INTO "names" ("key", "userId") VALUES ('old', 'old')`)
    await upgrade()
    expect(await version()).toBe(postgresMigrations.length)
    const data = await openData({ store: url, create: true, env: {} })
    onTestFinished(() => data.close())
    const mustChange = async () => (await data.users.find('old'))?.mustChangePassword
    expect(await mustChange()).toBe(false)
    const set = { digest: undefined, mustChange: true }
    await data.users.setPassword('old', 'temporary', actor(), set)
    expect(await mustChange()).toBe(true)
    // Statements of the version before, which knows no such column.
    await before.query(`UPDATE "users" SET "passwordHash" = 'chosen', "epoch" = "epoch" + 1 WHERE "id" = 'old'`)
    expect(await mustChange()).toBe(false)
    await before.query(add('new'))
    expect((await data.users.byId('new'))?.mustChangePassword).toBe(false)
  })
  test('W6 the version before refuses a store after step 16, and leaves it as it is', async () => {
    await upgrade()
    const client = await open()
    await client.query('SET ROLE svc')
    const earlier = migratePostgres(client, { label: 'it', create: true }, postgresMigrations.slice(0, 15))
    await expect(earlier).rejects.toMatchObject({ errorCode: 'Local' })
    expect(await version()).toBe(postgresMigrations.length)
  })
  test('W6 several nodes that start at once make each step once, and all work', async () => {
    await Promise.all(Array.from({ length: 4 }, upgrade))
    expect(await version()).toBe(postgresMigrations.length)
    const data = await openData({ store: url, create: true, env: {} })
    await data.users.add(newUser('bob'), actor())
    await data.close()
  })
})

async function migrateTo(newVersion: number): Promise<void> {
  const client = await open()
  await client.query('SET ROLE svc')
  const second = async (work: (holder: pg.Client) => Promise<void>): Promise<void> => work(await open())
  await migratePostgres(client, { label: 'it', create: true, second }, postgresMigrations.slice(0, newVersion))
}

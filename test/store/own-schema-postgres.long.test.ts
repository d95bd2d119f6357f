import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { AlteredStore } from '../../src/core/base/errors.ts'
import { type Data, openData } from '../../src/core/store/index.ts'
import { compareSchema, postgresObjects } from '../../src/core/store/own-schema.ts'
import { migratePostgres, ownTables, postgresMigrations } from '../../src/core/store/postgres/migrate.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { actor, freshDatabase, newUser } from '../support/store/data-fixture.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres(['max_connections=40'])
})
afterAll(async () => await server?.remove())
let url = ''
let client: pg.Client
beforeEach(async () => {
  url = await freshDatabase(server)
  client = await server.client(new URL(url).pathname.slice(1))
  await client.query('SET ROLE svc')
})
afterEach(async () => await client.end())

const report = async (steps = postgresMigrations) => {
  const { rows } = await client.query<{ objects: string }>(`SELECT (${postgresObjects}) AS "objects"`)
  return compareSchema(rows[0]?.objects ?? '', ownTables(steps))
}
const nothing = { altering: [], foreign: [] }
async function made(): Promise<Data> {
  const data = await openData({ store: url, create: true })
  await data.history.open()
  await data.users.add(newUser('ann'), actor())
  return data
}

const body = `RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`
const altering: Readonly<Record<string, readonly [sql: string, drop: string]>> = {
  'the trigger "regrant" on the table "grants"': [
    `CREATE FUNCTION "f"() ${body}; CREATE TRIGGER "regrant" AFTER DELETE ON "grants" FOR EACH ROW EXECUTE FUNCTION "f"()`,
    'DROP TRIGGER "regrant" ON "grants";',
  ],
  'the trigger "reached" on the table "notes"': [
    `CREATE FUNCTION "f"() ${body}; CREATE TABLE "notes" ("id" TEXT COLLATE "C" REFERENCES "users" ("id") ON DELETE CASCADE);
     CREATE TRIGGER "reached" AFTER DELETE ON "notes" FOR EACH ROW EXECUTE FUNCTION "f"()`,
    'DROP TRIGGER "reached" ON "notes";',
  ],
  'the trigger "late" on the table "historyStates"': [
    `CREATE FUNCTION "f"() ${body}; CREATE TRIGGER "late" AFTER DELETE ON "historyStates" FOR EACH ROW EXECUTE FUNCTION "f"()`,
    'DROP TRIGGER "late" ON "historyStates";',
  ],
  'the rule "keep" on the table "grants"': [
    'CREATE RULE "keep" AS ON DELETE TO "grants" DO INSTEAD NOTHING',
    'DROP RULE "keep" ON "grants";',
  ],
  'the policy "some" of the table "grants"': [
    'CREATE POLICY "some" ON "grants" USING (true)',
    'DROP POLICY "some" ON "grants";',
  ],
  'the default of the column "endsAt" of the table "grants"': [
    'ALTER TABLE "grants" ALTER COLUMN "endsAt" SET DEFAULT 9',
    'ALTER TABLE "grants" ALTER COLUMN "endsAt" DROP DEFAULT;',
  ],
  'the default of the column "provider" of the table "sessions"': [
    `ALTER TABLE "sessions" ALTER COLUMN "provider" SET DEFAULT 'x'`,
    'ALTER TABLE "sessions" ALTER COLUMN "provider" DROP DEFAULT;',
  ],
  'the generated column "g" of the table "grants"': [
    'ALTER TABLE "grants" ADD COLUMN "g" BIGINT GENERATED ALWAYS AS ("seq" + 1) STORED',
    'ALTER TABLE "grants" DROP COLUMN "g";',
  ],
  'the view "quiets"': ['DROP TABLE "quiets"; CREATE VIEW "quiets" AS SELECT 1', 'DROP VIEW "quiets";'],
}

describe('the schema of a store in PostgreSQL', () => {
  test('D2 a new store, with its history, has only what svc made', async () => {
    await (await made()).close()
    expect(await report()).toEqual(nothing)
  })
  test.each(Object.entries(altering))(
    'D2 %s is refused when the store is opened, and noticed while it is used',
    async (label, [sql, drop]) => {
      await using used = { data: await made(), [Symbol.asyncDispose]: async () => await used.data.close() }
      await client.query(sql)
      const fault = await openData({ store: url, create: false }).then(
        async (data) => await data.close(),
        (error: unknown) => error,
      )
      expect(fault).toBeInstanceOf(AlteredStore)
      expect([(fault as AlteredStore).message, (fault as AlteredStore).details.hints?.join()]).toEqual([
        expect.stringContaining(label),
        expect.stringContaining(drop),
      ])
      expect((await used.data.inspect()).altering).toEqual([{ label, drop }])
      await expect(used.data.users.find('ann')).rejects.toThrow('is not used')
      await client.query(drop)
      expect((await used.data.inspect()).altering).toEqual([])
      if (!label.includes('view')) expect(await used.data.users.find('ann')).toBeDefined()
    },
  )
  test('D2 what others have in the schema beside the tables of svc is foreign, and what they have elsewhere is not looked at', async () => {
    await (await made()).close()
    await client.query('RESET ROLE')
    await client.query(`CREATE SCHEMA "theirs"; CREATE TABLE "theirs"."grants" ("id" TEXT DEFAULT 'x');
      CREATE TABLE "notes" ("id" TEXT DEFAULT random()::text); CREATE INDEX "mine" ON "grants" ("seq")`)
    const { altering: none, foreign } = await report()
    expect([none, foreign.map(({ label }) => label).toSorted()]).toEqual([
      [],
      ['the index "mine"', 'the table "notes"'],
    ])
  })

  test('W6 no state of an upgrade is refused, by the version that runs it and by the one before', async () => {
    for (let version = 1; version < postgresMigrations.length; version += 1) {
      await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
      const before = postgresMigrations.slice(0, version)
      await migratePostgres(client, { label: 'it', create: true }, before)
      const step = postgresMigrations[version] ?? ''
      const statements = typeof step === 'string' ? [step] : [...step.columns, ...step.indexes.map(({ text }) => text)]
      for (const statement of statements) {
        await client.query(statement)
        expect([version, (await report()).altering, (await report(before)).altering]).toEqual([version, [], []])
      }
    }
  })
  test('W6 an index that a killed upgrade has left invalid is not refused', async () => {
    const version = 4
    await migratePostgres(client, { label: 'it', create: true }, postgresMigrations.slice(0, version))
    await client.query(`CREATE INDEX "apiKeysByEveryName" ON "apiKeys" ("name")`)
    await client.query('RESET ROLE')
    await client.query(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = '"apiKeysByEveryName"'::regclass`)
    await client.query('SET ROLE svc')
    expect(await report()).toEqual(nothing)
    await (await openData({ store: url, create: false })).close()
    expect(await report()).toEqual(nothing)
  })
  test('D2 a schema that a newer svc has made meanwhile is not compared', async () => {
    const data = await made()
    await client.query(
      `ALTER TABLE "grants" ADD COLUMN "later" TEXT DEFAULT lower('X'); UPDATE "meta" SET "version" = 99`,
    )
    expect(await data.inspect()).toEqual(nothing)
    expect(await data.users.find('ann')).toBeDefined()
    await data.close()
  })
})

import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { compareSchema, sqliteObjects } from '../../src/core/store/own-schema.ts'
import { ownTables } from '../../src/core/store/postgres/migrate.ts'
import { historyForm } from '../../src/core/store/results-schema.ts'
import { migrate, migrations, ownSchema, sqliteWords } from '../../src/core/store/schema.ts'

const forms = { store: migrations, history: historyForm(sqliteWords).steps }
const madeBy = (steps: readonly string[]): DatabaseSync => {
  const database = new DatabaseSync(':memory:')
  migrate(database, steps)
  return database
}
const report = (database: DatabaseSync, steps = migrations) =>
  compareSchema(String(Object.values(database.prepare(sqliteObjects).get() ?? {})[0]), ownSchema('sqlite', steps))

describe('the objects of svc', () => {
  for (const [name, steps] of Object.entries(forms)) {
    test(`D2 those that the steps of the ${name} make are all known, at every version`, () => {
      for (let version = 1; version <= steps.length; version += 1) {
        using database = madeBy(steps.slice(0, version))
        expect([version, report(database, steps.slice(0, version))]).toEqual([version, { altering: [], foreign: [] }])
        // A store that is still to be upgraded.
        expect(report(database, steps)).toEqual({ altering: [], foreign: [] })
      }
    })
    test(`D2 tables, indexes, columns and defaults of the ${name} are those of an empty database after all steps`, () => {
      using database = madeBy(steps)
      const list = (query: string) =>
        database
          .prepare(query)
          .all()
          .map((row) => String(Object.values(row)[0]).toLowerCase())
      const own = ownSchema('sqlite', steps)
      const made = `FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'`
      expect([...own.names].toSorted()).toEqual(list(`SELECT name ${made}`).toSorted())
      const columns = `FROM sqlite_schema t, pragma_table_xinfo(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'`
      expect([...own.columns].toSorted()).toEqual(list(`SELECT t.name || '.' || c.name ${columns}`).toSorted())
      expect([...own.defaults].map((pair) => pair.join('=')).toSorted()).toEqual(
        list(
          `SELECT t.name || '.' || c.name || '=' || c.dflt_value ${columns} AND c.dflt_value IS NOT NULL`,
        ).toSorted(),
      )
    })
  }
  test('D2 PostgreSQL has the same names, columns and defaults', () => {
    const own = ownTables()
    const lower = (names: Iterable<string>): readonly string[] =>
      [...names].map((name) => name.toLowerCase()).toSorted()
    const sqlite = ownSchema('sqlite', migrations)
    expect(lower(own.names)).toEqual(
      lower(new Set([...sqlite.names, ...ownSchema('sqlite', forms.history).names, 'historymeta'])),
    )
    expect(lower(own.columns)).toEqual(lower([...sqlite.columns, 'meta.application']))
    expect(lower(own.defaults.keys())).toEqual(lower(sqlite.defaults.keys()))
  })
})

describe('objects that svc did not make', () => {
  const altering: Readonly<Record<string, readonly [sql: string, drop: string | undefined]>> = {
    'the trigger "regrant" on the table "grants"': [
      `CREATE TRIGGER "regrant" AFTER DELETE ON "grants" BEGIN SELECT 1; END`,
      'DROP TRIGGER "regrant";',
    ],
    'the trigger "reached" on the table "notes"': [
      `CREATE TABLE "notes" ("id" TEXT REFERENCES "users" ("id") ON DELETE CASCADE);
       CREATE TRIGGER "reached" AFTER DELETE ON "notes" BEGIN SELECT 1; END`,
      'DROP TRIGGER "reached";',
    ],
    'the view "Quiets"': [`DROP TABLE "quiets"; CREATE VIEW "Quiets" AS SELECT 1`, 'DROP VIEW "Quiets";'],
    'the virtual table "quiets"': [
      `DROP TABLE "quiets"; CREATE VIRTUAL TABLE "quiets" USING fts5(x)`,
      'DROP TABLE "quiets";',
    ],
    'the default of the column "endsAt" of the table "quiets"': [
      `DROP TABLE "quiets"; CREATE TABLE "quiets" ("id" TEXT PRIMARY KEY, "endsAt" INTEGER DEFAULT 9, "body" TEXT)`,
      undefined,
    ],
    'the default of the column "extra" of the table "quiets"': [
      `DROP TABLE "quiets"; CREATE TABLE "quiets" ("id" TEXT, "extra" INTEGER DEFAULT (random()))`,
      undefined,
    ],
    'the generated column "extra" of the table "quiets"': [
      `ALTER TABLE "quiets" ADD COLUMN "extra" INTEGER GENERATED ALWAYS AS (1)`,
      'ALTER TABLE "quiets" DROP COLUMN "extra";',
    ],
  }
  test.each(Object.entries(altering))('D2 %s is named, with the statement that removes it', (label, [sql, drop]) => {
    using database = madeBy(migrations)
    database.exec(sql)
    expect(report(database).altering).toEqual([{ label, drop }])
  })
  test('D2 tables, indexes, views and columns of others change nothing, and are foreign', () => {
    using database = madeBy(migrations)
    database.exec(`CREATE TABLE "notes" ("id" TEXT DEFAULT (random())); CREATE INDEX "mine" ON "grants" ("seq");
      CREATE VIEW "people" AS SELECT * FROM "users"; CREATE TRIGGER "alone" AFTER INSERT ON "notes" BEGIN SELECT 1; END;
      ALTER TABLE "users" ADD COLUMN "later" TEXT NOT NULL DEFAULT 'x'`)
    const { altering: none, foreign } = report(database)
    expect([none, foreign.map(({ label }) => label).toSorted()]).toEqual([
      [],
      [
        'the default of the column "later" of the table "users"',
        'the index "mine"',
        'the table "notes"',
        'the trigger "alone" on the table "notes"',
        'the view "people"',
      ],
    ])
  })
  test('D2 a name that is no plain text is made harmless, and no statement contains it', () => {
    using database = madeBy(migrations)
    database.exec(`CREATE TRIGGER "x""; \u001b[31m" AFTER DELETE ON "grants" BEGIN SELECT 1; END`)
    const [{ label, drop } = { label: '', drop: '' }] = report(database).altering
    expect([label.includes('\u001b'), drop]).toEqual([false, undefined])
  })
})

import { PostgresAdapter, PostgresQueryCompiler, SqliteAdapter, SqliteQueryCompiler } from 'kysely'
import { expect, test } from 'vitest'
import { compiledOnce, kysely } from '../../src/core/store/dialect.ts'
import type { Db } from '../../src/core/store/tables.ts'

type Statement = readonly [sql: string, parameters: readonly unknown[]]

/** A database that notes what it is sent. */
function notingDatabase(parts: Parameters<typeof kysely>[0]): { readonly db: Db; readonly sent: Statement[] } {
  const sent: Statement[] = []
  const done = async (): Promise<void> => {}
  const db = kysely(parts, async () => ({
    execute: async (sql, parameters) => {
      sent.push([sql, parameters])
      return { rows: [{ id: 'u1' }], changed: undefined }
    },
    begin: done,
    commit: done,
    rollback: done,
    release: () => {},
  }))
  return { db, sent }
}

const sqlite = { createAdapter: () => new SqliteAdapter(), createQueryCompiler: () => new SqliteQueryCompiler() }
const postgres = { createAdapter: () => new PostgresAdapter(), createQueryCompiler: () => new PostgresQueryCompiler() }

test('a query that is compiled once gets the parameters of each call, in each dialect, and keeps its constants', async () => {
  let builds = 0
  const query = compiledOnce((db, name: string, since: number) => {
    builds += 1
    const users = db.selectFrom('users').select('id').where('createdAt', '>=', since).where('epoch', '=', 7)
    return users.where('nameKey', '=', name)
  })
  const [first, second, third] = [notingDatabase(sqlite), notingDatabase(postgres), notingDatabase(sqlite)]
  expect(await query(first.db, 'ann', 1).execute()).toEqual([{ id: 'u1' }])
  await query(second.db, 'ben', 2).execute()
  await query(third.db, 'cem', 3).execute()
  const text = (one: string, two: string, three: string): string =>
    `select "id" from "users" where "createdAt" >= ${one} and "epoch" = ${two} and "nameKey" = ${three}`
  expect(first.sent).toEqual([[text('?', '?', '?'), [1, 7, 'ann']]])
  expect(second.sent).toEqual([[text('$1', '$2', '$3'), [2, 7, 'ben']]])
  expect(third.sent).toEqual([[text('?', '?', '?'), [3, 7, 'cem']]])
  expect(builds).toBe(2)
})

test('a query that uses a parameter twice gets it twice', async () => {
  const { db, sent } = notingDatabase(sqlite)
  const query = compiledOnce((own, name: string) =>
    own.selectFrom('users').select('id').where('nameKey', '=', name).where('userName', '!=', name),
  )
  for (const name of ['ann', 'ben']) await query(db, name).execute()
  expect(sent.map(([, parameters]) => parameters)).toEqual([
    ['ann', 'ann'],
    ['ben', 'ben'],
  ])
})

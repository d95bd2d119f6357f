import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { OutboxRows, StoredRow } from '../../watch/outbox/index.ts'
import { laterSql } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'

/** Databases limit the parameters of a statement. */
const rowsAtOnce = 200

/**
 * The rows of the receivers about incidents, or about drills, in the tables of the history. `link`: the database that
 * has them. Undefined, if `create` is false, where there is none yet.
 */
export function outboxOver(
  link: (create: boolean) => Promise<StoreLink | undefined>,
  table: 'notifyRows' | 'drillRows' = 'notifyRows',
): OutboxRows {
  const rowsOf = sql.table(table)
  return {
    read: async () => {
      const own = await link(false)
      if (!own) return []
      return await own.read(async (db) => {
        const { rows } = await sql<{ body: string }>`SELECT "body" FROM ${rowsOf}`.execute(db)
        return rows.map(({ body }) => JSON.parse(body) as StoredRow)
      })
    },
    write: async (rows) => {
      const own = await link(true)
      if (!own) throw new Error('a database that is written exists')
      await own.write((tx) => storeRows(tx, table, rows))
    },
  }
}

/**
 * Stores rows, and deletes those that say nothing any more, whoever may do so. Nothing is known of the outcome before the end of
 * the transaction.
 */
export async function storeRows(tx: Db, table: 'notifyRows' | 'drillRows', rows: readonly StoredRow[]): Promise<void> {
  const rowsOf = sql.table(table)
  const gone = rows.filter(({ row }) => row === undefined)
  for (const some of chunked(gone)) {
    await laterSql(tx, sql`DELETE FROM ${rowsOf} WHERE "id" IN (${sql.join(some.map(idOf))})`)
  }
  for (const some of chunked(rows.filter(({ row }) => row !== undefined))) {
    await laterSql(
      tx,
      sql`INSERT INTO ${rowsOf} ("id", "key", "body") VALUES ${valuesOf(some)}
        ON CONFLICT ("id") DO UPDATE SET "key" = excluded."key", "body" = excluded."body"`,
    )
  }
}

const valuesOf = (rows: readonly StoredRow[]) =>
  sql.join(rows.map((one) => sql`(${idOf(one)}, ${one.subject.key}, ${JSON.stringify(one)})`))

/** Names of items may be longer than a key of an index. */
export const idOf = ({ receiver, subject: { key, check, item } }: StoredRow): string =>
  createHash('sha256')
    .update(JSON.stringify([receiver, key, check, item ?? null]))
    .digest('hex')

export function* chunked<T>(items: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < items.length; at += rowsAtOnce) yield items.slice(at, at + rowsAtOnce)
}

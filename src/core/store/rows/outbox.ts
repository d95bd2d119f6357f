import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { OutboxRows, StoredRow } from '../../outbox/index.ts'
import type { StoreLink } from '../link.ts'

/** Databases limit the parameters of a statement. */
const rowsAtOnce = 200

/**
 * What receivers know of incidents, or of drills, in the tables of the history. `link`: the database that has them. Undefined, if `create` is false,
 * where there is none yet.
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
      const gone = rows.filter(({ row }) => row === undefined)
      const changed = rows.filter(({ row }) => row !== undefined)
      await own.write(async (tx) => {
        for (const some of chunked(gone))
          await sql`DELETE FROM ${rowsOf} WHERE "id" IN (${sql.join(some.map(idOf))})`.execute(tx)
        for (const some of chunked(changed)) {
          const values = some.map((one) => sql`(${idOf(one)}, ${JSON.stringify(one)})`)
          await sql`INSERT INTO ${rowsOf} ("id", "body") VALUES ${sql.join(values)}
            ON CONFLICT ("id") DO UPDATE SET "body" = excluded."body"`.execute(tx)
        }
      })
    },
  }
}

/** Names of items may be longer than a key of an index. */
const idOf = ({ receiver, subject: { key, check, item } }: StoredRow): string =>
  createHash('sha256')
    .update(JSON.stringify([receiver, key, check, item ?? null]))
    .digest('hex')

function* chunked<T>(items: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < items.length; at += rowsAtOnce) yield items.slice(at, at + rowsAtOnce)
}

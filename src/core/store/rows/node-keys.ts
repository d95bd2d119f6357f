import { sql } from 'kysely'
import type { StoredRow } from '../../watch/outbox/index.ts'
import type { IncidentRecord, StoredState } from '../../watch/states/index.ts'
import { laterSql } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'

/** Rows that one transaction fills in: nobody waits for it longer than for any other change. */
const rowsAtOnce = 500

/** Where a row has the key of its monitor in its body. */
const tables = [
  { table: 'historyStates', where: sql`"key" IS NULL`, keyOf: (body: unknown) => (body as StoredState).row.key },
  { table: 'notifyRows', where: sql`"key" IS NULL`, keyOf: (body: unknown) => (body as StoredRow).subject.key },
  {
    table: 'historyIncidents',
    where: sql`"key" IS NULL AND "endedAt" IS NULL`,
    keyOf: (body: unknown) => (body as IncidentRecord).key,
  },
] as const

/**
 * Adds the keys of monitors to rows of earlier versions, which have them in their bodies only: those from before the upgrade,
 * and those that servers of these versions write during it. Where there is none, it costs one query.
 */
export async function fillKeys(own: StoreLink): Promise<void> {
  const unfilled = sql.join(
    tables.map(({ table, where }) => sql`EXISTS (SELECT 1 FROM ${sql.table(table)} WHERE ${where})`),
  )
  const { rows } = await own.read((db) => sql<{ any: boolean }>`SELECT true IN (${unfilled}) AS "any"`.execute(db))
  if (!rows[0]?.any) return
  for (const one of tables) while ((await own.write((tx) => fillSome(tx, one))) === rowsAtOnce);
}

/** Returns how many rows it has filled in. */
async function fillSome(tx: Db, { table, where, keyOf }: (typeof tables)[number]): Promise<number> {
  const { rows } = await sql<{ id: string; body: string }>`SELECT "id", "body" FROM ${sql.table(table)}
    WHERE ${where} ORDER BY "id" LIMIT ${rowsAtOnce} FOR UPDATE`.execute(tx)
  const [ids, keys] = [rows.map(({ id }) => id), rows.map(({ body }) => keyOf(JSON.parse(body)))]
  await laterSql(
    tx,
    sql`UPDATE ${sql.table(table)} SET "key" = "filled"."key"
      FROM unnest(${ids}::text[], ${keys}::text[]) AS "filled" ("id", "key")
      WHERE ${sql.table(table)}."id" = "filled"."id"`,
  )
  return rows.length
}

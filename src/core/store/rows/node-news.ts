import { sql } from 'kysely'
import { isEmpty, type StoredRow, withHandedOver } from '../../watch/outbox/index.ts'
import type { Db } from '../tables.ts'
import { chunked, idOf, storeRows } from './outbox.ts'

/** Adds what nodes without the store have sent to what is stored (`withHandedOver`), so that a holder recognizes it. */
export async function addNews(tx: Db, news: readonly StoredRow[]): Promise<void> {
  const stored = new Map<string, StoredRow>()
  for (const ids of chunked([...new Set(news.map(idOf))])) {
    const { rows } = await sql<{ id: string; body: string }>`SELECT "id", "body" FROM "notifyRows"
      WHERE "id" IN (${sql.join(ids)})`.execute(tx)
    for (const { id, body } of rows) stored.set(id, JSON.parse(body) as StoredRow)
  }
  const byId = new Map<string, StoredRow>()
  for (const one of news) byId.set(idOf(one), joined(byId.get(idOf(one)) ?? stored.get(idOf(one)), one))
  const changed = [...byId].flatMap(([id, one]): readonly StoredRow[] =>
    one.row === undefined || one.row === (stored.get(id)?.row ?? nothing)
      ? []
      : [{ ...one, row: isEmpty(one.row) ? undefined : one.row }],
  )
  await storeRows(tx, 'notifyRows', changed)
}

const joined = (before: StoredRow | undefined, one: StoredRow): StoredRow =>
  one.row ? { ...one, row: withHandedOver(before?.row ?? nothing, one.row) } : one

const nothing = { ends: [] }

import { randomBytes } from 'node:crypto'
import type { CompiledQuery } from 'kysely'
import { type Later, later } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'

/** A random key of the store, 32 bytes in hex. Undefined when it has not been made yet. */
export const storedKey = async (db: Db, name: string): Promise<string | undefined> =>
  (await db.selectFrom('storeKeys').select('key').where('name', '=', name).execute())[0]?.key

/** The key, made when there is none. Two nodes that make one at once get the same one. */
export async function ownKey(tx: Db, name: string): Promise<string> {
  const key = await storedKey(tx, name)
  if (key !== undefined) return key
  await tx
    .insertInto('storeKeys')
    .values({ name, key: randomBytes(32).toString('hex') })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute()
  return (await storedKey(tx, name)) ?? ''
}

/** Rows evicted at once when a table has too many, so that counting is rare. */
const swath = 2_000
/** Maximum number of nodes that can share a store without exceeding the limit together. */
const nodes = 16

/** How many new rows this process may still add to a table before it has to count again. */
export type Capacity = { left: number }

/** The rows of a limited table. */
export type LimitedRows = {
  readonly max: number
  readonly count: (tx: Db) => { readonly compile: () => CompiledQuery<{ n: number }> }
  readonly evict: (tx: Db, n: number) => Promise<void>
}

/** In the transaction that adds rows, after them: counts all rows, without waiting for the answer, if no room is left. */
export const countWhenFull = async (
  tx: Db,
  capacity: Capacity,
  rows: LimitedRows,
): Promise<Later<{ n: number }> | undefined> => (capacity.left > 0 ? undefined : await later(tx, rows.count(tx)))

/** After that transaction: keeps account of the rows, and evicts some when there are too many. */
export async function enforceLimit(
  link: StoreLink,
  capacity: Capacity,
  rows: LimitedRows,
  { added, counted }: { readonly added: number; readonly counted: Later<{ n: number }> | undefined },
): Promise<void> {
  const n = counted?.rows()[0]?.n
  const most = rows.max - swath
  if (n === undefined) capacity.left -= added
  else if (n <= most) capacity.left = Math.floor((rows.max - n) / nodes) - 1
  else {
    await link.write((tx) => rows.evict(tx, n - most))
    capacity.left = Math.floor(swath / nodes) - 1
  }
}

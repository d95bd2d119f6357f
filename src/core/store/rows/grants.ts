import type { Db, GrantKind } from '../tables.ts'

/** Grants what is not held, in this order. Gives whether anything changed. */
export async function grant(tx: Db, userId: string, kind: GrantKind, names: ReadonlySet<string>): Promise<boolean> {
  // One at a time: the order of the rows of one INSERT is nobody's promise.
  for (const name of names) await tx.insertInto('grants').values({ userId, kind, name }).execute()
  return names.size > 0
}

/** Takes away what is held of these. Gives whether anything changed. */
export async function ungrant(tx: Db, userId: string, kind: GrantKind, names: ReadonlySet<string>): Promise<boolean> {
  if (names.size === 0) return false
  const held = tx.deleteFrom('grants').where('userId', '=', userId).where('kind', '=', kind)
  const { numDeletedRows } = await held.where('name', 'in', [...names]).executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

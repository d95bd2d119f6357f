import { randomBytes } from 'node:crypto'
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

import { createHmac } from 'node:crypto'
import type { Data, User } from '../data.ts'
import type { StoreLink } from '../link.ts'
import { type Db, nameKey } from '../tables.ts'
import { ownKey, storedKey } from './store-keys.ts'

/** Maximum rows for each user: two names, fifty prefixes. */
const mostOfUser = 100

/** The key of the HMAC, once it has been read. */
export type PrefixKey = { hex: string | undefined }

export function knownPrefixesOver(link: StoreLink, own: PrefixKey): Data['knownPrefixes'] {
  return {
    lastAt: (name, prefix) =>
      link.read(async (db) => {
        own.hex ??= await storedKey(db, keyName)
        // Without a key, no prefix has been recorded yet.
        if (own.hex === undefined) return undefined
        const mac = macOf(own.hex, name, prefix)
        return (await db.selectFrom('knownPrefixes').select('at').where('mac', '=', mac).execute())[0]?.at
      }),
    remember: (user, prefix, at) => link.write((tx) => rememberPrefix(tx, user, prefix, at)),
  }
}

/** Records a sign-in for every name of the user. Records nothing for a user who has been removed. */
export async function rememberPrefix(
  tx: Db,
  { id, userName, email }: Pick<User, 'id' | 'userName' | 'email'>,
  prefix: string,
  at: number,
): Promise<void> {
  // Locks the row in PostgreSQL, so that the user is not removed meanwhile.
  const same = tx.updateTable('users').set((eb) => ({ epoch: eb.ref('epoch') }))
  if (!(await same.where('id', '=', id).returning('id').executeTakeFirst())) return
  const key = await ownKey(tx, keyName)
  const macs = new Set([userName, ...(email === undefined ? [] : [email])].map((name) => macOf(key, name, prefix)))
  for (const mac of macs) {
    await tx
      .insertInto('knownPrefixes')
      .values({ mac, userId: id, at })
      .onConflict((conflict) => conflict.column('mac').doUpdateSet({ userId: id, at }))
      .execute()
  }
  const newest = tx.selectFrom('knownPrefixes').select('mac').where('userId', '=', id).orderBy('at', 'desc')
  await tx
    .deleteFrom('knownPrefixes')
    .where('userId', '=', id)
    .where('mac', 'not in', newest.orderBy('mac').limit(mostOfUser))
    .execute()
}

const keyName = 'known prefixes'

const macOf = (keyHex: string, name: string, prefix: string): string =>
  createHmac('sha256', Buffer.from(keyHex, 'hex'))
    .update(`${nameKey(name)}\0${prefix}`)
    .digest('hex')

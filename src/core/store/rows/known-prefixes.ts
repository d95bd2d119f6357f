import { createHmac } from 'node:crypto'
import type { Data, User } from '../data.ts'
import type { StoreLink } from '../link.ts'
import { type Db, nameKey } from '../tables.ts'
import { ownKey, storedKey } from './store-keys.ts'

/** Maximum rows for each user: two names, fifty prefixes. */
const mostOfUser = 100

/** Maximum rows in memory, about 3 MB. */
const mostInMemory = 20_000

/** What this process remembers of the table. */
export type PrefixMemory = {
  /** The key of the HMAC, once it has been read. */
  hex: string | undefined
  /** The times of sign-ins by HMAC, the one that was used last at the end. */
  readonly recent: Map<string, number>
}

export function knownPrefixesOver(link: StoreLink, own: PrefixMemory): Data['knownPrefixes'] {
  const keep = (mac: string, at: number): void => {
    own.recent.delete(mac)
    own.recent.set(mac, at)
    const [oldest] = own.recent.keys()
    if (own.recent.size > mostInMemory && oldest !== undefined) own.recent.delete(oldest)
  }
  return {
    isRemembered: (name, prefix, since) =>
      own.hex !== undefined && (own.recent.get(macOf(own.hex, name, prefix)) ?? Number.NEGATIVE_INFINITY) > since,
    loadRecent: async () => {
      const rows = await link.read(async (db) => {
        own.hex ??= await storedKey(db, keyName)
        const newest = db.selectFrom('knownPrefixes').select(['mac', 'at']).orderBy('at', 'desc').limit(mostInMemory)
        return await newest.execute()
      })
      for (const { mac, at } of rows.toReversed()) keep(mac, at)
    },
    lastAt: (name, prefix) =>
      link.read(async (db) => {
        own.hex ??= await storedKey(db, keyName)
        // Without a key, no prefix has been recorded yet.
        if (own.hex === undefined) return undefined
        const mac = macOf(own.hex, name, prefix)
        const at = (await db.selectFrom('knownPrefixes').select('at').where('mac', '=', mac).execute())[0]?.at
        if (at === undefined) own.recent.delete(mac)
        else keep(mac, at)
        return at
      }),
    remember: async (user, prefix, at) => {
      await link.write((tx) => rememberPrefix(tx, user, prefix, at))
      own.hex ??= await link.read((db) => storedKey(db, keyName))
      if (own.hex === undefined) return
      for (const name of namesOf(user)) keep(macOf(own.hex, name, prefix), at)
    },
  }
}

/** Records a sign-in for every name of the user. Records nothing for a user who has been removed. */
export async function rememberPrefix(
  tx: Db,
  user: Pick<User, 'id' | 'userName' | 'email'>,
  prefix: string,
  at: number,
): Promise<void> {
  const { id } = user
  // Locks the row in PostgreSQL, so that the user is not removed meanwhile.
  const same = tx.updateTable('users').set((eb) => ({ epoch: eb.ref('epoch') }))
  if (!(await same.where('id', '=', id).returning('id').executeTakeFirst())) return
  const key = await ownKey(tx, keyName)
  const macs = new Set(namesOf(user).map((name) => macOf(key, name, prefix)))
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

const namesOf = ({ userName, email }: Pick<User, 'userName' | 'email'>): readonly string[] =>
  email === undefined ? [userName] : [userName, email]

const keyName = 'known prefixes'

const macOf = (keyHex: string, name: string, prefix: string): string =>
  createHmac('sha256', Buffer.from(keyHex, 'hex'))
    .update(`${nameKey(name)}\0${prefix}`)
    .digest('hex')

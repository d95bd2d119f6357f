import { createHmac } from 'node:crypto'
import { sql } from 'kysely'
import type { Data, User } from '../data.ts'
import { later, laterSql } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import { type Db, nameKey } from '../tables.ts'
import { ownKey, storedKey } from './capacity.ts'

/** Maximum rows for each user: two names, fifty prefixes. */
const mostOfUser = 100

/** Maximum rows in memory, about 3 MB. */
const mostInMemory = 20_000

/** The part of the table in the memory of this process. */
export type PrefixMemory = {
  /** The key of the HMAC, once it has been read. */
  hex: string | undefined
  /** The times of sign-ins by HMAC, the one that was used last at the end. */
  readonly recent: Map<string, number>
}

export function knownPrefixesOver(link: StoreLink, own: PrefixMemory): Data['knownPrefixes'] {
  return {
    isRemembered: (name, prefix, since) =>
      own.hex !== undefined && (own.recent.get(macOf(own.hex, name, prefix)) ?? Number.NEGATIVE_INFINITY) > since,
    loadRecent: async () => {
      const rows = await link.read(async (db) => {
        own.hex ??= await storedKey(db, keyName)
        const newest = db.selectFrom('knownPrefixes').select(['mac', 'at']).orderBy('at', 'desc').limit(mostInMemory)
        return await newest.execute()
      })
      for (const { mac, at } of rows.toReversed()) keep(own, mac, at)
    },
    lastAt: (name, prefix) =>
      link.read(async (db) => {
        own.hex ??= await storedKey(db, keyName)
        // Without a key, no prefix has been recorded yet.
        if (own.hex === undefined) return undefined
        const mac = macOf(own.hex, name, prefix)
        const at = (await db.selectFrom('knownPrefixes').select('at').where('mac', '=', mac).execute())[0]?.at
        if (at === undefined) own.recent.delete(mac)
        else keep(own, mac, at)
        return at
      }),
  }
}

function keep(own: PrefixMemory, mac: string, at: number): void {
  own.recent.delete(mac)
  own.recent.set(mac, at)
  const [oldest] = own.recent.keys()
  if (own.recent.size > mostInMemory && oldest !== undefined) own.recent.delete(oldest)
}

/** A sign-in from a prefix. */
export type PrefixUse = { readonly prefix: string; readonly at: number }

/** Takes a sign-in that has been recorded with this key into the memory of this process. */
export function rememberMacs(
  own: PrefixMemory,
  user: Pick<User, 'userName' | 'email'>,
  { prefix, at }: PrefixUse,
  key: string,
): void {
  own.hex ??= key
  for (const name of namesOf(user)) keep(own, macOf(own.hex, name, prefix), at)
}

/**
 * Records a sign-in for every name of the user. Records nothing for a user who has been removed. Waits for no answer if the
 * key is in memory. Returns the key, which the transaction may have made.
 */
export async function recordPrefix(
  tx: Db,
  own: Pick<PrefixMemory, 'hex'>,
  user: Pick<User, 'id' | 'userName' | 'email'>,
  { prefix, at }: PrefixUse,
): Promise<string> {
  const { id } = user
  const key = own.hex ?? (await ownKey(tx, keyName))
  // Locks the row in PostgreSQL, so that the user is not removed meanwhile.
  await later(
    tx,
    tx
      .updateTable('users')
      .set((eb) => ({ epoch: eb.ref('epoch') }))
      .where('id', '=', id),
  )
  const macs = new Set(namesOf(user).map((name) => macOf(key, name, prefix)))
  for (const mac of macs) {
    await laterSql(
      tx,
      sql`INSERT INTO "knownPrefixes" ("mac", "userId", "at") SELECT ${mac}, "id", ${at} FROM "users" WHERE "id" = ${id}
        ON CONFLICT ("mac") DO UPDATE SET "userId" = excluded."userId", "at" = excluded."at"`,
    )
  }
  const newest = tx.selectFrom('knownPrefixes').select('mac').where('userId', '=', id).orderBy('at', 'desc')
  await later(
    tx,
    tx
      .deleteFrom('knownPrefixes')
      .where('userId', '=', id)
      .where('mac', 'not in', newest.orderBy('mac').limit(mostOfUser)),
  )
  return key
}

const namesOf = ({ userName, email }: Pick<User, 'userName' | 'email'>): readonly string[] =>
  email === undefined ? [userName] : [userName, email]

const keyName = 'known prefixes'

const macOf = (keyHex: string, name: string, prefix: string): string =>
  createHmac('sha256', Buffer.from(keyHex, 'hex'))
    .update(`${nameKey(name)}\0${prefix}`)
    .digest('hex')

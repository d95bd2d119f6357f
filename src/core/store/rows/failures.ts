import type { Data } from '../data.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'

/** Maximum rows of failed sign-ins (P5). */
export const maxFailures = 100_000
/** Rows evicted at once when the limit is reached, so that counting is rare. */
const swath = 2_000
/** Maximum number of nodes that can share a store without exceeding the limit together. */
const nodes = 16

/** How many new rows this process may still add before it has to count again. */
export type Room = { left: number }

export function failuresOver(link: StoreLink, room: Room): Data['failures'] {
  return {
    read: (key) =>
      link.read(
        async (db) => (await db.selectFrom('failures').select(['count', 'lastAt']).where('key', '=', key).execute())[0],
      ),
    add: (key, at, windowMs, window = 'sliding') =>
      link.write(async (tx) => {
        const { count } = await counted(tx, key, { at, oldest: at - windowMs, fixed: window === 'fixed' })
        if (count === 1 && room.left <= 0) room.left = await makeRoom(tx)
        if (count === 1) room.left -= 1
        return count
      }),
    clear: (key) =>
      link.write(async (tx) => {
        await tx.deleteFrom('failures').where('key', '=', key).execute()
      }),
  }
}

/** A single statement, so that two parallel failures count as two. */
const counted = (
  tx: Db,
  key: string,
  { at, oldest, fixed }: { readonly at: number; readonly oldest: number; readonly fixed: boolean },
): Promise<{ count: number }> =>
  tx
    .insertInto('failures')
    .values({ key, count: 1, lastAt: at })
    .onConflict((conflict) =>
      conflict.column('key').doUpdateSet((eb) => ({
        count: eb
          .case()
          .when('failures.lastAt', '<', oldest)
          .then(eb.lit(1))
          .else(eb('failures.count', '+', eb.lit(1)))
          .end(),
        lastAt: fixed
          ? eb.case().when('failures.lastAt', '<', oldest).then(eb.lit(at)).else(eb.ref('failures.lastAt')).end()
          : eb.lit(at),
      })),
    )
    .returning('count')
    .executeTakeFirstOrThrow()

/**
 * Evicts the oldest rows when there are too many. Returns how many new rows this process may add before it checks
 * again.
 */
async function makeRoom(tx: Db): Promise<number> {
  const { n } = await tx
    .selectFrom('failures')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow()
  const most = maxFailures - swath
  if (n <= most) return Math.floor((maxFailures - n) / nodes)
  const oldest = tx
    .selectFrom('failures')
    .select('key')
    .orderBy('lastAt')
    .limit(n - most)
  await tx.deleteFrom('failures').where('key', 'in', oldest).execute()
  return Math.floor(swath / nodes)
}

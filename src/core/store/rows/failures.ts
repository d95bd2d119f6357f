import type { Data, FailureCounter } from '../data.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import { type Room, roomAfter } from './room.ts'

/** Maximum rows of failed sign-ins (P5). */
export const maxFailures = 100_000

/**
 * Keys that begin so are evicted last. Failures from a known prefix have no limit but their own counter, so that
 * failures with invented names must not remove it.
 */
export const lastingFailures = 'known '

export function failuresOver(link: StoreLink, room: Room): Data['failures'] {
  return {
    read: (keys) =>
      link.read(async (db) => {
        const rows = await db
          .selectFrom('failures')
          .selectAll()
          .where('key', 'in', [...keys])
          .execute()
        return new Map(rows.map(({ key, count, lastAt }) => [key, { count, lastAt }]))
      }),
    add: (at, counters) =>
      link.write(async (tx) => {
        const counts = new Map<string, number>()
        // In one order, so that two transactions never wait for each other.
        for (const counter of counters.toSorted((one, other) => (one.key < other.key ? -1 : 1))) {
          const { count } = await counted(tx, at, counter)
          counts.set(counter.key, count)
          if (count === 1) room.left = await roomAfter(room, maxFailures, rowsOf(tx))
        }
        return counters.map(({ key }) => counts.get(key) ?? 0)
      }),
    clear: (key) =>
      link.write(async (tx) => {
        await tx.deleteFrom('failures').where('key', '=', key).execute()
      }),
  }
}

/** A single statement, so that two parallel failures count as two. */
const counted = (tx: Db, at: number, { key, windowMs, window }: FailureCounter): Promise<{ count: number }> =>
  tx
    .insertInto('failures')
    .values({ key, count: 1, lastAt: at })
    .onConflict((conflict) =>
      conflict.column('key').doUpdateSet((eb) => ({
        count: eb
          .case()
          .when('failures.lastAt', '<', at - windowMs)
          .then(eb.lit(1))
          .else(eb('failures.count', '+', eb.lit(1)))
          .end(),
        lastAt:
          window === 'fixed'
            ? eb
                .case()
                .when('failures.lastAt', '<', at - windowMs)
                .then(eb.lit(at))
                .else(eb.ref('failures.lastAt'))
                .end()
            : eb.lit(at),
      })),
    )
    .returning('count')
    .executeTakeFirstOrThrow()

const rowsOf = (tx: Db) => ({
  count: async () =>
    (
      await tx
        .selectFrom('failures')
        .select((eb) => eb.fn.countAll<number>().as('n'))
        .executeTakeFirstOrThrow()
    ).n,
  evict: async (n: number) => {
    const oldest = tx.selectFrom('failures').select('key').orderBy('lastAt')
    const passing = oldest.where((eb) => eb.or([eb('key', '<', lastingFailures), eb('key', '>=', after)]))
    const { numDeletedRows } = await tx
      .deleteFrom('failures')
      .where('key', 'in', passing.limit(n))
      .executeTakeFirstOrThrow()
    const more = n - Number(numDeletedRows)
    if (more > 0) await tx.deleteFrom('failures').where('key', 'in', oldest.limit(more)).execute()
  },
})
/** The end of the range of keys that begin with `lastingFailures`. */
const after = `${lastingFailures.slice(0, -1)}!`

import type { Data, FailureCounter } from '../data.ts'
import { type Later, later } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import { type Capacity, countWhenFull, enforceLimit, type LimitedRows } from './capacity.ts'

/** Maximum rows of failed sign-ins (P5). */
export const maxFailures = 100_000

/**
 * Keys that begin so are evicted last. Failures from a known prefix have no limit but their own counter, so that
 * failures with invented names must not remove it.
 */
export const lastingFailures = 'known '

export function failuresOver(link: StoreLink, capacity: Capacity): Data['failures'] {
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
    add: async (at, counters) => {
      // In one order, so that two transactions never wait for each other.
      const ordered = counters.toSorted((one, other) => (one.key < other.key ? -1 : 1))
      const { outcomes, counted } = await link.write(async (tx) => {
        const outcomes: Later<{ count: number }>[] = []
        for (const counter of ordered) outcomes.push(await later(tx, countedOnce(tx, at, counter)))
        return { outcomes, counted: await countWhenFull(tx, capacity, limitedRows) }
      })
      const counts = new Map(ordered.map(({ key }, n) => [key, outcomes[n]?.rows()[0]?.count ?? 0]))
      const added = [...counts.values()].filter((count) => count === 1).length
      await enforceLimit(link, capacity, limitedRows, { added, counted })
      return counters.map(({ key }) => counts.get(key) ?? 0)
    },
  }
}

/** Removes a counter. */
export const cleared = (tx: Db, key: string) => later(tx, tx.deleteFrom('failures').where('key', '=', key))

/** A single statement, so that two parallel failures count as two. */
const countedOnce = (tx: Db, at: number, { key, windowMs, window }: FailureCounter) =>
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

const limitedRows: LimitedRows = {
  max: maxFailures,
  count: (tx) => tx.selectFrom('failures').select((eb) => eb.fn.countAll<number>().as('n')),
  evict: async (tx, n) => {
    const oldest = tx.selectFrom('failures').select('key').orderBy('lastAt')
    const passing = oldest.where((eb) => eb.or([eb('key', '<', lastingFailures), eb('key', '>=', after)]))
    const { numDeletedRows } = await tx
      .deleteFrom('failures')
      .where('key', 'in', passing.limit(n))
      .executeTakeFirstOrThrow()
    const more = n - Number(numDeletedRows)
    if (more > 0) await tx.deleteFrom('failures').where('key', 'in', oldest.limit(more)).execute()
  },
}
/** The end of the range of keys that begin with `lastingFailures`. */
const after = `${lastingFailures.slice(0, -1)}!`

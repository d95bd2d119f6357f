import type { Bucket, BucketLevel, Data } from '../data.ts'
import { later } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import { type Capacity, countWhenFull, enforceLimit, type LimitedRows } from './capacity.ts'

/** Maximum rows of buckets (P5). */
export const maxGuesses = 100_000

/**
 * A token bucket in a single number, the time when it will be full again (the generic cell rate algorithm): a token
 * that is taken moves it by `everyMs`, and the passing of time fills the bucket without a write.
 */
export function guessesOver(link: StoreLink, capacity: Capacity): Data['guesses'] {
  return {
    level: (name, at, bucket) =>
      link.read(async (db) => {
        const [row] = await db.selectFrom('guesses').select('fullAt').where('name', '=', name).execute()
        return levelOf(row?.fullAt ?? at, at, bucket)
      }),
    take: async (name, at, bucket) => {
      const { changed, counted } = await link.write(async (tx) => ({
        changed: await later(tx, taken(tx, name, at, bucket)),
        counted: await countWhenFull(tx, capacity, limitedRows),
      }))
      const [row] = changed.rows()
      // The row may be new.
      const added = row?.fullAt === at + bucket.everyMs ? 1 : 0
      await enforceLimit(link, capacity, limitedRows, { added, counted })
      return row && levelOf(row.fullAt, at, bucket)
    },
    giveBack: async (name, bucket) => {
      await link.write((tx) => givenBack(tx, name, bucket))
    },
  }
}

/** Returns a token to a bucket. */
export const givenBack = (tx: Db, name: string, { everyMs }: Bucket) =>
  later(
    tx,
    tx
      .updateTable('guesses')
      .set((eb) => ({ fullAt: eb('fullAt', '-', everyMs) }))
      .where('name', '=', name),
  )

function levelOf(fullAt: number, at: number, { capacity, everyMs }: Bucket): BucketLevel {
  const missing = Math.max(0, Math.ceil((fullAt - at) / everyMs))
  return { left: Math.max(0, capacity - missing), freeAt: fullAt - (capacity - 1) * everyMs }
}

const taken = (tx: Db, name: string, at: number, { capacity, everyMs }: Bucket) =>
  tx
    .insertInto('guesses')
    .values({ name, fullAt: at + everyMs })
    .onConflict((conflict) =>
      conflict
        .column('name')
        .doUpdateSet((eb) => ({
          fullAt: eb
            .case()
            .when('guesses.fullAt', '<', at)
            .then(eb.lit(at + everyMs))
            .else(eb('guesses.fullAt', '+', everyMs))
            .end(),
        }))
        .where('guesses.fullAt', '<=', at + (capacity - 1) * everyMs),
    )
    .returning('fullAt')

const limitedRows: LimitedRows = {
  max: maxGuesses,
  count: (tx) => tx.selectFrom('guesses').select((eb) => eb.fn.countAll<number>().as('n')),
  // The fullest first: to evict an empty bucket, 100,000 other names must have been guessed at as often.
  evict: async (tx, n) => {
    const fullest = tx.selectFrom('guesses').select('name').orderBy('fullAt').limit(n)
    await tx.deleteFrom('guesses').where('name', 'in', fullest).execute()
  },
}

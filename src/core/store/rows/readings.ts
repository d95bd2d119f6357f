import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { Fault } from '../../base/errors.ts'
import { type Lasting, lastingSince } from '../../base/lasting.ts'
import type { Data, SeriesMove, StoredReading } from '../data.ts'
import { later, laterSql } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import { counted, type Db } from '../tables.ts'

/** Maximum number of series: a run must not fill the disk. */
const maxSeries = 10_000
/** Maximum readings per series: a little more than a day of one every 15 minutes. */
const maxPoints = 120
/** Milliseconds after which a reading, and a series without a younger one, is removed. */
export const readingsKeptMs = 7 * 86_400_000
/** Milliseconds after which an unchanged state is written again, so that it is not removed. */
const aliveEveryMs = 3_600_000
/** Milliseconds. A reading further ahead was dated by a wrong clock. */
const aheadMs = 600_000

/** A lock for every transaction that adds a series, so that the limit also holds across nodes. */
const seriesLock = 'readings'

/** Oldest first: a value, or since when a state has lasted. */
type Point<T> = readonly [at: number, value: T]
type Series<T> = { readonly at: number; readonly points: readonly Point<T>[] }
/** The answer, and the points to write; undefined when nothing has changed. */
type Step<T, A> = { readonly answer: A; readonly points?: readonly Point<T>[] }

export function readingsOver(link: StoreLink): Data['readings'] {
  return {
    keep: ({ series, everyMs, ...reading }) =>
      change<number, readonly StoredReading[]>(link, series, reading.at, (series) => history(series, reading, everyMs)),
    exceededSince: ({ series, at, keys, holds }) =>
      change<string, ReadonlyMap<string, number>>(link, series, at, (existing) =>
        exceededSince(existing, { at, keys, holds }),
      ),
    rename: async (moves) => {
      // Without a lock: at almost every start there is nothing to rename.
      if (moves(await link.read(seriesNames)).length === 0) return
      await link.write(async (tx) => {
        await link.lock(tx, seriesLock)
        const names = await seriesNames(tx)
        await moveAll(tx, moves(names), maxSeries - names.length)
      })
    },
  }
}

/** The latest first: of two series that get one name, it is the one that goes on. */
async function seriesNames(db: Db): Promise<readonly string[]> {
  const rows = await db.selectFrom('readings').select('series').orderBy('at', 'desc').orderBy('series').execute()
  return rows.map(({ series }) => series)
}

/** Moves in one statement. Databases limit the parameters of a statement. */
const movesAtOnce = 500

/** Renames series under the lock of all series. `left` is how many more of them the store may have. */
async function moveAll(tx: Db, moves: readonly SeriesMove[], left: number): Promise<void> {
  const first = moves.flatMap(({ from, to }) => to.slice(0, 1).map((name) => [from, name] as const))
  const more = moves.flatMap(({ from, to }) => to.slice(1).map((name) => [from, name] as const)).slice(0, left)
  const all = [...first, ...more]
  for (let at = 0; at < all.length; at += movesAtOnce) {
    const pairs = all.slice(at, at + movesAtOnce).map(([from, to]) => sql`(${from}, ${to})`)
    await laterSql(
      tx,
      // Both databases name the columns of VALUES so.
      sql`INSERT INTO "readings" ("series", "at", "points") SELECT "moves"."column2", "readings"."at", "readings"."points"
        FROM "readings" JOIN (VALUES ${sql.join(pairs)}) AS "moves" ON "readings"."series" = "moves"."column1"
        WHERE true ORDER BY "readings"."at" DESC ON CONFLICT ("series") DO NOTHING`,
    )
  }
  for (let at = 0; at < moves.length; at += movesAtOnce) {
    const old = moves.slice(at, at + movesAtOnce).map(({ from }) => from)
    await later(tx, tx.deleteFrom('readings').where('series', 'in', old))
  }
}

/** Checks without a lock whether there is anything to write, and again under the lock. */
async function change<T, A>(
  link: StoreLink,
  series: string,
  at: number,
  step: (existing: Series<T>) => Step<T, A>,
): Promise<A> {
  const first = step(usable(await link.read((db) => readSeries<T>(db, series)), at))
  if (first.points === undefined) return first.answer
  return await link.write(async (tx) => {
    await link.lock(tx, `reading ${series}`)
    let before = await readSeries<T>(tx, series)
    if (before === undefined) {
      // Another node may just have renamed a series to this one.
      await link.lock(tx, seriesLock)
      before = await readSeries<T>(tx, series)
    }
    const { answer, points } = step(usable(before, at))
    if (points !== undefined) await write(tx, { series, at, points, existing: before !== undefined })
    return answer
  })
}

type Row = {
  readonly series: string
  readonly at: number
  readonly points: readonly unknown[]
  readonly existing: boolean
}

/** Under the lock of the series, and for a new one under that of all of them. */
async function write(tx: Db, { series, at, points, existing }: Row): Promise<void> {
  const row = { at, points: JSON.stringify(points) }
  if (points.length === 0) await tx.deleteFrom('readings').where('series', '=', series).execute()
  else if (existing) await tx.updateTable('readings').set(row).where('series', '=', series).execute()
  else {
    if ((await counted(tx, 'readings')) >= maxSeries)
      throw new Fault('Conflict', `The limit of ${maxSeries} series of readings is reached`)
    await tx
      .insertInto('readings')
      .values({ series, ...row })
      .execute()
  }
}

async function readSeries<T>(db: Db, series: string): Promise<Series<T> | undefined> {
  const [row] = await db.selectFrom('readings').select(['at', 'points']).where('series', '=', series).execute()
  return row && { at: row.at, points: JSON.parse(row.points) as readonly Point<T>[] }
}

/** Drops points that a wrong clock has dated in the future: they would stay last for years. */
const usable = <T>(history: Series<T> | undefined, at: number): Series<T> =>
  history === undefined
    ? { at: 0, points: [] }
    : {
        at: history.at > at + aheadMs ? 0 : history.at,
        points: history.points.filter((point) => point[0] <= at + aheadMs),
      }

function history(
  { points }: Series<number>,
  latest: StoredReading,
  everyMs: number,
): Step<number, readonly StoredReading[]> {
  // Another node's clock may be a little ahead of this one's.
  const last = points.at(-1)
  const at = Math.max(latest.at, last?.[0] ?? 0)
  const all = [...points, [at, latest.value] as const].filter((point) => at - point[0] <= readingsKeptMs)
  if (last !== undefined && at - last[0] < everyMs) return { answer: all.map(reading) }
  const newest = all.slice(-maxPoints)
  return { answer: newest.map(reading), points: newest }
}

const reading = ([at, value]: Point<number>): StoredReading => ({ at, value })

function exceededSince(existing: Series<string>, state: Lasting): Step<string, ReadonlyMap<string, number>> {
  const { at } = state
  const before = new Map(existing.points.map(([since, key]) => [key, since]))
  const answer = lastingSince(before, state)
  const same = answer.size === before.size && [...answer.keys()].every((key) => before.has(key))
  if (same && (answer.size === 0 || at - existing.at < aliveEveryMs)) return { answer }
  return { answer, points: [...answer].map(([key, since]) => [since, key] as const) }
}

/**
 * Bytes. A sign-in changes pages of a session, two tokens, an audit entry and their indexes, and adds 78 to 103 KB to the
 * log of SQLite. A small row proves nothing, because the log of a full disk still has room for it.
 */
const size = 96 * 1024

/** The row is replaced by each proof, and removed with old readings. */
const series = 'proof that the store can be written'

/** Commits as much as a sign-in writes. The content is random, because a database compresses. */
export async function proveWrites(link: StoreLink, at: number): Promise<void> {
  const points = JSON.stringify(randomBytes(size / 2).toString('hex'))
  await link.write(async (tx) => {
    const row = tx.insertInto('readings').values({ series, at, points })
    await row.onConflict((conflict) => conflict.column('series').doUpdateSet({ at, points })).execute()
  })
}

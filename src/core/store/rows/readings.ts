import { Fault } from '../../errors.ts'
import type { Data, Reading } from '../data.ts'
import type { Link } from '../link.ts'
import { counted, type Db } from '../tables.ts'

/** As many series at most: a run must not fill the disk. */
const mostSeries = 10_000
/** As many readings of a series: a day of one every 15 minutes, and some. */
const mostPoints = 120
/** A reading, and a series without a younger one, is forgotten then. Milliseconds. */
export const readingsKeptMs = 7 * 86_400_000
/** How often what stays the same is written again, so that it is not forgotten. Milliseconds. */
const aliveEveryMs = 3_600_000
/** What lies further ahead was dated by a clock that was wrong. Milliseconds. */
const aheadMs = 600_000

/** Held by every transaction that adds a series, so that the limit holds for several nodes together. */
const seriesLock = 'readings'

/** Oldest first: a figure, or since when something is as it is. */
type Point<T> = readonly [at: number, value: T]
type Kept<T> = { readonly at: number; readonly points: readonly Point<T>[] }
/** What is answered, and what is written; nothing is where it stays as it was. */
type Step<T, A> = { readonly answer: A; readonly points?: readonly Point<T>[] }

export function readingsOver(link: Link): Data['readings'] {
  return {
    keep: ({ series, everyMs, ...told }) =>
      change<number, readonly Reading[]>(link, series, told.at, (known) => kept(known, told, everyMs)),
    passing: ({ series, at, keys, hold }) =>
      change<string, ReadonlyMap<string, number>>(link, series, at, (known) => passing(known, { at, keys, hold })),
  }
}

/** Asks without a lock whether there is anything to write, and under it once more. */
async function change<T, A>(link: Link, series: string, at: number, step: (known: Kept<T>) => Step<T, A>): Promise<A> {
  const first = step(usable(await link.read((db) => keptOf<T>(db, series)), at))
  if (first.points === undefined) return first.answer
  return await link.write(async (tx) => {
    await link.lock(tx, `reading ${series}`)
    const before = await keptOf<T>(tx, series)
    const { answer, points } = step(usable(before, at))
    if (points !== undefined) await write(link, tx, { series, at, points, known: before !== undefined })
    return answer
  })
}

type Row = {
  readonly series: string
  readonly at: number
  readonly points: readonly unknown[]
  readonly known: boolean
}

async function write(link: Link, tx: Db, { series, at, points, known }: Row): Promise<void> {
  const row = { at, points: JSON.stringify(points) }
  if (points.length === 0) await tx.deleteFrom('readings').where('series', '=', series).execute()
  else if (known) await tx.updateTable('readings').set(row).where('series', '=', series).execute()
  else {
    await link.lock(tx, seriesLock)
    if ((await counted(tx, 'readings')) >= mostSeries)
      throw new Fault('Conflict', `There are ${mostSeries} series of readings`)
    await tx
      .insertInto('readings')
      .values({ series, ...row })
      .execute()
  }
}

async function keptOf<T>(db: Db, series: string): Promise<Kept<T> | undefined> {
  const [row] = await db.selectFrom('readings').select(['at', 'points']).where('series', '=', series).execute()
  return row && { at: row.at, points: JSON.parse(row.points) as readonly Point<T>[] }
}

/** Without what a wrong clock has dated: else it would be the last one for years. */
const usable = <T>(kept: Kept<T> | undefined, at: number): Kept<T> =>
  kept === undefined
    ? { at: 0, points: [] }
    : {
        at: kept.at > at + aheadMs ? 0 : kept.at,
        points: kept.points.filter((point) => point[0] <= at + aheadMs),
      }

function kept({ points }: Kept<number>, told: Reading, everyMs: number): Step<number, readonly Reading[]> {
  // Another node's clock may be a little ahead of this one's.
  const last = points.at(-1)
  const at = Math.max(told.at, last?.[0] ?? 0)
  const all = [...points, [at, told.value] as const].filter((point) => at - point[0] <= readingsKeptMs)
  if (last !== undefined && at - last[0] < everyMs) return { answer: all.map(reading) }
  const newest = all.slice(-mostPoints)
  return { answer: newest.map(reading), points: newest }
}

const reading = ([at, value]: Point<number>): Reading => ({ at, value })

function passing(
  known: Kept<string>,
  { at, keys, hold }: { readonly at: number; readonly keys: readonly string[]; readonly hold: boolean },
): Step<string, ReadonlyMap<string, number>> {
  const before = new Map(known.points.map(([since, key]) => [key, since]))
  const held = hold ? before.keys() : []
  const answer = new Map([...keys, ...held].map((key) => [key, Math.min(before.get(key) ?? at, at)]))
  const same = answer.size === before.size && [...answer.keys()].every((key) => before.has(key))
  if (same && (answer.size === 0 || at - known.at < aliveEveryMs)) return { answer }
  return { answer, points: [...answer].map(([key, since]) => [since, key] as const) }
}

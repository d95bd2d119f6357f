import { Fault } from '../../errors.ts'
import type { Data, Reading } from '../data.ts'
import type { Link } from '../link.ts'
import type { Db } from '../tables.ts'
import { counted } from './counted.ts'

/** As many series at most: a run must not fill the disk. */
const mostSeries = 10_000
/** As many readings of a series: a day of one every 15 minutes, and some. */
const mostPoints = 120
/** A reading, and a series without a younger one, is forgotten then. Milliseconds. */
export const readingsKeptMs = 7 * 86_400_000
/** How often a value that stays the same is written again, so that its series is not forgotten. Milliseconds. */
const aliveEveryMs = 3_600_000

/** Held by every transaction that adds a series, so that the limit holds for several nodes together. */
const seriesLock = 'readings'

type Points = readonly (readonly [at: number, value: number])[]
type Kept = { readonly at: number; readonly points: Points }

export function readingsOver(link: Link): Data['readings'] {
  return {
    keep: async ({ series, everyMs, ...told }) => {
      const known = await link.read((db) => keptOf(db, series))
      const done = known && unchanged(known, told, everyMs)
      if (done) return done
      return await link.write(async (tx) => {
        await link.lock(tx, `reading ${series}`)
        const before = await keptOf(tx, series)
        const again = before && unchanged(before, told, everyMs)
        if (again) return again
        // Another node's clock may be ahead of this one's.
        const at = Math.max(told.at, before?.at ?? 0)
        const points = added(before?.points ?? [], { at, value: told.value }, everyMs)
        const row = { at, points: JSON.stringify(points) }
        if (before) await tx.updateTable('readings').set(row).where('series', '=', series).execute()
        else {
          await link.lock(tx, seriesLock)
          if ((await counted(tx, 'readings')) >= mostSeries)
            throw new Fault('Conflict', `There are ${mostSeries} series of readings`)
          await tx
            .insertInto('readings')
            .values({ series, ...row })
            .execute()
        }
        return readings(points)
      })
    },
  }
}

async function keptOf(db: Db, series: string): Promise<Kept | undefined> {
  const [row] = await db.selectFrom('readings').select(['at', 'points']).where('series', '=', series).execute()
  return row && { at: row.at, points: JSON.parse(row.points) as Points }
}

/** The series with the reading, when there is nothing to write; else undefined. */
function unchanged({ at, points }: Kept, told: Reading, everyMs: number | undefined): readonly Reading[] | undefined {
  const last = points.at(-1)
  if (!last) return undefined
  if (everyMs === undefined) {
    return last[1] === told.value && told.at - at < aliveEveryMs ? readings(points) : undefined
  }
  return told.at - last[0] < everyMs ? [...readings(points), told] : undefined
}

function added(points: Points, { at, value }: Reading, everyMs: number | undefined): Points {
  // Of a state the change is kept, however long ago it was.
  if (everyMs === undefined) return points.at(-1)?.[1] === value ? points : [...points.slice(-1), [at, value]]
  return [...points, [at, value] as const].filter((point) => at - point[0] <= readingsKeptMs).slice(-mostPoints)
}

const readings = (points: Points): readonly Reading[] => points.map(([at, value]) => ({ at, value }))

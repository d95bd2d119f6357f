import type { Selectable } from 'kysely'
import { Fault } from '../../base/errors.ts'
import type { Heartbeat, JobRun } from '../../protocol/index.ts'
import type { Data, ReportedRun } from '../data.ts'
import type { StoreLink } from '../link.ts'
import { counted, type Tables } from '../tables.ts'
import { note } from './audit.ts'
import { namesNear } from './near.ts'

/** Maximum number of names: reporting agents must not fill the disk. */
const maxHeartbeats = 10_000
/** Maximum number of recent reports kept for each name. */
const maxHistory = 20
/** Milliseconds after which a silent agent is removed: longer than the interval of a quarterly job. */
export const heartbeatsKeptMs = 100 * 86_400_000

/** A lock for every transaction that adds a name, so that the limit also holds across nodes. */
const namesLock = 'heartbeats'

export function heartbeatsOver(link: StoreLink, now: () => number): Data['heartbeats'] {
  return {
    report: ({ name, run: reported, ...beat }, admit) =>
      link.write(async (tx) => {
        await link.lock(tx, `heartbeat ${name}`)
        const [before] = await tx
          .selectFrom('heartbeats')
          .select(['at', 'history', 'status', 'message', 'backlog', 'diskFreePercent', 'run'])
          .where('name', '=', name)
          .execute()
        const at = timeOf(beat.at, before?.at ?? 0)
        const moments: Moments = before ? (JSON.parse(before.history) as Moments) : []
        const run = runAfter(before?.run ? (JSON.parse(before.run) as JobRun) : undefined, reported, at)
        const isStart = reported !== undefined && reported.durationMs === undefined
        // A failed run stays failed until the next one ends.
        const previous = isStart ? before : undefined
        const row = {
          at,
          who: beat.who,
          status: previous?.status ?? beat.status,
          message: previous?.message ?? beat.message ?? null,
          version: beat.version ?? null,
          intervalMs: beat.intervalMs ?? null,
          backlog: beat.backlog ?? previous?.backlog ?? null,
          diskFreePercent: beat.diskFreePercent ?? previous?.diskFreePercent ?? null,
          skewMs: beat.skewMs ?? null,
          history:
            isStart && before ? before.history : JSON.stringify([...moments, [at, beat.status]].slice(-maxHistory)),
          run: run === undefined ? null : JSON.stringify(run),
        }
        if (before) {
          await tx.updateTable('heartbeats').set(row).where('name', '=', name).execute()
          return
        }
        admit?.()
        await link.lock(tx, namesLock)
        if ((await counted(tx, 'heartbeats')) >= maxHeartbeats) throw full()
        await tx
          .insertInto('heartbeats')
          .values({ name, ...row })
          .execute()
      }),
    list: () =>
      link.read(async (db) => {
        const rows = await db.selectFrom('heartbeats').selectAll().orderBy('name').execute()
        return rows.map(heartbeatOf)
      }),
    near: (typed) => link.read((db) => namesNear(db, typed, { table: 'heartbeats', key: 'name', name: 'name' })),
    remove: (name, actor) =>
      link.write(async (tx) => {
        const { numDeletedRows } = await tx.deleteFrom('heartbeats').where('name', '=', name).executeTakeFirstOrThrow()
        if (numDeletedRows === 0n) throw new Fault('NotFound', 'No heartbeat has that name')
        await note(tx, now(), actor, { event: 'heartbeat.removed', target: name })
      }),
  }
}

/** Milliseconds by which the clocks of several nodes may differ. */
const maxAheadMs = 60_000

/**
 * The time to store for a report. Another node's clock may be slightly ahead of this one's. A time further in the future
 * was wrong, and would make the agent look alive until then.
 */
const timeOf = (at: number, before: number): number => (before - at > maxAheadMs ? at : Math.max(at, before))

/** The run to store after a report. Runs may overlap, and reports may be lost: the run that began last is stored. */
function runAfter(before: JobRun | undefined, reported: ReportedRun | undefined, at: number): JobRun | undefined {
  if (reported === undefined) return before
  const { id, durationMs, exitCode, maxMs, output } = reported
  if (before !== undefined && before.id > id) {
    const hasEnded = durationMs !== undefined && before.overlaps?.id === id
    return hasEnded ? { ...before, overlaps: undefined } : before
  }
  if (durationMs === undefined) return { id, startedAt: at, maxMs, overlaps: unended(before, id) }
  const startedAt = before !== undefined && before.id === id ? before.startedAt : at - durationMs
  return { id, startedAt, endedAt: at, durationMs, exitCode, maxMs, output }
}

/** The stored run, if it is another one that has not ended. */
function unended(before: JobRun | undefined, id: number): JobRun['overlaps'] {
  if (before === undefined || before.endedAt !== undefined) return undefined
  return before.id === id ? before.overlaps : { id: before.id, startedAt: before.startedAt }
}

type Moments = readonly (readonly [at: number, status: Heartbeat['status']])[]

const full = (): Fault =>
  new Fault('Conflict', `The limit of ${maxHeartbeats} heartbeats is reached`, {
    hints: ['svc heartbeats remove NAME   removes an agent that no longer exists'],
  })

const heartbeatOf = ({ history, run, ...row }: Selectable<Tables['heartbeats']>): Heartbeat => ({
  ...row,
  history: (JSON.parse(history) as Moments).map(([at, status]) => ({ at, status })),
  run: run === undefined ? undefined : (JSON.parse(run) as JobRun),
})

import { Fault } from '../../errors.ts'
import type { Data, HeartbeatRow } from '../data.ts'
import type { StoreLink } from '../link.ts'
import { counted, present, type Tables } from '../tables.ts'
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
    report: ({ name, ...beat }) =>
      link.write(async (tx) => {
        await link.lock(tx, `heartbeat ${name}`)
        const [before] = await tx.selectFrom('heartbeats').select(['at', 'history']).where('name', '=', name).execute()
        // Another node's clock may be ahead of this one's.
        const at = Math.max(beat.at, before?.at ?? 0)
        const moments: Moments = before ? (JSON.parse(before.history) as Moments) : []
        const row = {
          at,
          who: beat.who,
          status: beat.status,
          message: beat.message ?? null,
          version: beat.version ?? null,
          intervalMs: beat.intervalMs ?? null,
          backlog: beat.backlog ?? null,
          diskFreePercent: beat.diskFreePercent ?? null,
          skewMs: beat.skewMs ?? null,
          history: JSON.stringify([...moments, [at, beat.status]].slice(-maxHistory)),
        }
        if (before) {
          await tx.updateTable('heartbeats').set(row).where('name', '=', name).execute()
          return
        }
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
        if (numDeletedRows === 0n) throw new Fault('NotFound', 'There is no heartbeat of that name')
        await note(tx, now(), actor, { event: 'heartbeat.removed', target: name })
      }),
  }
}

type Moments = readonly (readonly [at: number, status: HeartbeatRow['status']])[]

const full = (): Fault =>
  new Fault('Conflict', `There are ${maxHeartbeats} heartbeats, and no more are kept`, {
    hints: ['svc heartbeats remove NAME   forgets an agent that is gone'],
  })

const heartbeatOf = (row: Tables['heartbeats']): HeartbeatRow => ({
  name: row.name,
  at: row.at,
  who: row.who,
  status: row.status,
  message: present(row.message),
  version: present(row.version),
  intervalMs: present(row.intervalMs),
  backlog: present(row.backlog),
  diskFreePercent: present(row.diskFreePercent),
  skewMs: present(row.skewMs),
  history: (JSON.parse(row.history) as Moments).map(([at, status]) => ({ at, status })),
})

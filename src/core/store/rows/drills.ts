import { sql } from 'kysely'
import {
  confirmedLink,
  type DrillLink,
  type DrillRecord,
  type DrillRows,
  keptDrills,
  linkIn,
  linkMs,
} from '../../watch/drill/index.ts'
import type { OutboxRows } from '../../watch/outbox/index.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import { outboxOver } from './outbox.ts'

/**
 * Drills, in the tables of the history. `link`: the database that has them; undefined if there is none yet and `create`
 * is false.
 */
export function drillsOver(
  link: (create: boolean) => Promise<StoreLink | undefined>,
): DrillRows & { readonly outbox: OutboxRows } {
  const writable = async (): Promise<StoreLink> => {
    const own = await link(true)
    if (!own) throw new Error('a database that is written exists')
    return own
  }
  return {
    outbox: outboxOver(link, 'drillRows'),
    latest: async (n) => {
      const own = await link(false)
      return own ? await own.read(async (db) => await latestIn(db, n)) : []
    },
    find: async (id) => {
      const own = await link(false)
      return own?.read(async (db) => await one(db, id))
    },
    begin: async (drill, pauseMs) =>
      await (await writable()).write(async (tx) => {
        const slot = Math.floor(drill.beganAt / pauseMs)
        const [last] = await latestIn(tx, 1)
        // A clock that was set back must not stop drills.
        const sinceMs = last === undefined ? Number.POSITIVE_INFINITY : drill.beganAt - last.beganAt
        if (sinceMs >= 0 && sinceMs < pauseMs) return false
        const { rows } = await sql`INSERT INTO "drills" ("id", "beganAt", "slot", "body")
          VALUES (${drill.id}, ${drill.beganAt}, ${slot}, ${JSON.stringify(drill)})
          ON CONFLICT DO NOTHING RETURNING "id"`.execute(tx)
        if (rows.length === 0) return false
        const { latest, withLinks } = keptDrills
        await sql`DELETE FROM "drills" WHERE
          ("beganAt" < ${drill.beganAt - linkMs} AND "id" NOT IN
            (SELECT "id" FROM "drills" ORDER BY "beganAt" DESC LIMIT ${latest}))
          OR "id" NOT IN (SELECT "id" FROM "drills" ORDER BY "beganAt" DESC LIMIT ${withLinks})`.execute(tx)
        return true
      }),
    update: async (drill) => {
      const own = await writable()
      await own.write(async (tx) => {
        await own.lock(tx, recordsLock)
        const stored = await one(tx, drill.id)
        if (stored) await replace(tx, { ...drill, tokens: stored.tokens, opened: stored.opened })
      })
    },
    link: async (tokenHash, since) => {
      const own = await link(false)
      return own?.read(async (db) => await linkOf(db, tokenHash, since))
    },
    confirm: async (tokenHash, at, since) => {
      const own = await link(false)
      const before = await own?.read(async (db) => await linkOf(db, tokenHash, since))
      // Anybody may send a request: one that changes nothing takes no lock.
      if (!own || !before || before.confirmedAt !== undefined) return before
      return await own.write(async (tx) => {
        await own.lock(tx, recordsLock)
        const current = await linkOf(tx, tokenHash, since)
        const confirmed = current && confirmedLink(current, at)
        if (confirmed) await replace(tx, confirmed.drill)
        return confirmed ?? current
      })
    },
  }
}

/** Held while a record is read and replaced: the node that runs the drill and the one that has the page both do. */
const recordsLock = 'drills'

/** Reads only records with the text of the token: anybody may ask, and there may be hundreds. */
async function linkOf(db: Db, tokenHash: string, since: number): Promise<DrillLink | undefined> {
  const { rows } = await sql<Body>`SELECT "body" FROM "drills"
    WHERE "beganAt" >= ${since} AND "body" LIKE ${`%"${tokenHash}"%`}`.execute(db)
  return linkIn(rows.map(read), tokenHash, since)
}

async function latestIn(db: Db, n: number): Promise<readonly DrillRecord[]> {
  const { rows } = await sql<Body>`SELECT "body" FROM "drills" ORDER BY "beganAt" DESC LIMIT ${n}`.execute(db)
  return rows.map(read)
}

async function one(db: Db, id: string): Promise<DrillRecord | undefined> {
  const { rows } = await sql<Body>`SELECT "body" FROM "drills" WHERE "id" = ${id}`.execute(db)
  return rows.map(read)[0]
}

async function replace(tx: Db, drill: DrillRecord): Promise<void> {
  await sql`UPDATE "drills" SET "body" = ${JSON.stringify(drill)} WHERE "id" = ${drill.id}`.execute(tx)
}

type Body = { readonly body: string }
const read = ({ body }: Body): DrillRecord => JSON.parse(body) as DrillRecord

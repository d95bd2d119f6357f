import { createHash, randomInt } from 'node:crypto'
import { sql } from 'kysely'
import { mapPaced, pace } from '../../pace.ts'
import type { IncidentRecord, StatesBatch, StatesRows, StoredState } from '../../states/index.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'

/** A lock for every transaction that stores states: of several servers, one stores them. */
const statesLock = 'history states'
/** Milliseconds without a write after which another server may store its states: a server writes every 10 s at least. */
const freeAfterMs = 30_000
/** Incidents that the tables have room for. Of more, those that began first are deleted. */
const mostIncidents = 100_000
/** Databases limit the parameters of a statement. */
const rowsAtOnce = 200

/**
 * States and incidents in the tables of the history. `link`: the database that has them. Undefined, if `create` is false,
 * where there is none yet. `now`: the clock of the store, which all servers share.
 */
export function statesOver(link: (create: boolean) => Promise<StoreLink | undefined>, now: () => number): StatesRows {
  const writer = randomInt(2 ** 47)
  const read = async <T>(none: T, work: (db: Db) => Promise<T>): Promise<T> => (await link(false))?.read(work) ?? none
  return {
    read: () =>
      read({ ageMs: undefined, states: [], incidents: [] }, async (db) => {
        const watch = await watchIn(db)
        const { rows } = await sql<{ body: string }>`SELECT "body" FROM "historyStates"`.execute(db)
        const open = await sql<IncidentRow>`SELECT "body", "endedAt", "ending" FROM "historyIncidents"
          WHERE "endedAt" IS NULL`.execute(db)
        return {
          ageMs: watch && Math.max(0, now() - watch.at),
          states: rows.map(({ body }) => JSON.parse(body) as StoredState),
          incidents: open.rows.map(incidentIn),
        }
      }),
    write: async (batch) => {
      const own = await link(true)
      if (!own) throw new Error('a database that is written exists')
      return await own.write(async (tx) => {
        await own.lock(tx, statesLock)
        const at = Math.round(now())
        const watch = await watchIn(tx)
        if (!mayWrite(batch, watch, writer, at)) return false
        if (batch.isWhole) await endLost(tx, batch, watch?.at ?? at)
        await store(tx, batch)
        if (batch.deleteBefore !== undefined) await deleteOld(tx, batch.deleteBefore)
        await sql`DELETE FROM "historyWatch"`.execute(tx)
        await sql`INSERT INTO "historyWatch" ("writer", "at") VALUES (${writer}, ${at})`.execute(tx)
        return true
      })
    },
    incidents: async ({ from, to, most }) => {
      const rows = await read<readonly IncidentRow[]>([], async (db) => {
        const selected = await sql<IncidentRow>`SELECT "body", "endedAt", "ending" FROM "historyIncidents"
          WHERE "beganAt" <= ${Math.ceil(to)} AND ("endedAt" IS NULL OR "endedAt" >= ${Math.floor(from)})
          ORDER BY "beganAt" DESC LIMIT ${most}`.execute(db)
        return selected.rows
      })
      return await mapPaced(rows, pace(), incidentIn)
    },
  }
}

/** Who stored states last, and when. */
type Watch = { readonly writer: number; readonly at: number }
type IncidentRow = { readonly body: string; readonly endedAt: number | null; readonly ending: string | null }

async function watchIn(db: Db): Promise<Watch | undefined> {
  const { rows } = await sql<Watch>`SELECT "writer", "at" FROM "historyWatch"`.execute(db)
  return rows[0]
}

function incidentIn({ body, endedAt, ending }: IncidentRow): IncidentRecord {
  const record = JSON.parse(body) as IncidentRecord
  return endedAt === null ? record : { ...record, endedAt, ending: ending as NonNullable<IncidentRecord['ending']> }
}

function mayWrite({ claims }: StatesBatch, watch: Watch | undefined, writer: number, at: number): boolean {
  if (claims === 'now' || watch?.writer === writer) return true
  return claims === 'when free' && (watch === undefined || at - watch.at >= freeAfterMs)
}

/** Ends the incidents that nobody knows any more, and removes all states. */
async function endLost(tx: Db, { incidents }: StatesBatch, at: number): Promise<void> {
  const own = new Set(incidents.map(({ id }) => id))
  const { rows } = await sql<{ id: string; beganAt: number }>`SELECT "id", "beganAt" FROM "historyIncidents"
    WHERE "endedAt" IS NULL`.execute(tx)
  for (const { id, beganAt } of rows) {
    if (own.has(id)) continue
    await sql`UPDATE "historyIncidents" SET "endedAt" = ${Math.max(at, beganAt)}, "ending" = ${'unknown'}
      WHERE "id" = ${id}`.execute(tx)
  }
  await sql`DELETE FROM "historyStates"`.execute(tx)
}

async function store(tx: Db, { states, gone, incidents }: StatesBatch): Promise<void> {
  for (const some of chunked(gone)) {
    await sql`DELETE FROM "historyStates" WHERE "id" IN (${sql.join(some.map(idOf))})`.execute(tx)
  }
  for (const some of chunked(states)) {
    const rows = some.map((one) => sql`(${idOf(one.row)}, ${JSON.stringify(one)})`)
    await sql`INSERT INTO "historyStates" ("id", "body") VALUES ${sql.join(rows)}
      ON CONFLICT ("id") DO UPDATE SET "body" = excluded."body"`.execute(tx)
  }
  for (const some of chunked(incidents)) {
    const rows = some.map(({ endedAt, ending, ...one }) => {
      const times = sql`${Math.floor(one.beganAt)}, ${endedAt === undefined ? null : Math.floor(endedAt)}`
      return sql`(${one.id}, ${times}, ${ending ?? null}, ${JSON.stringify(one)})`
    })
    await sql`INSERT INTO "historyIncidents" ("id", "beganAt", "endedAt", "ending", "body") VALUES ${sql.join(rows)}
      ON CONFLICT ("id") DO UPDATE SET "endedAt" = excluded."endedAt", "ending" = excluded."ending",
        "body" = excluded."body"`.execute(tx)
  }
}

async function deleteOld(tx: Db, before: number): Promise<void> {
  await sql`DELETE FROM "historyIncidents" WHERE "endedAt" < ${Math.floor(before)}`.execute(tx)
  await sql`DELETE FROM "historyIncidents" WHERE "endedAt" IS NOT NULL AND "beganAt" <
    (SELECT "beganAt" FROM "historyIncidents" ORDER BY "beganAt" DESC LIMIT 1 OFFSET ${mostIncidents})`.execute(tx)
}

/** Names of items may be longer than a key of an index. */
const idOf = ({ key, check, item }: StoredState['row']): string =>
  createHash('sha256')
    .update(JSON.stringify(item === undefined ? [key, check] : [key, check, item]))
    .digest('hex')

function* chunked<T>(items: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < items.length; at += rowsAtOnce) yield items.slice(at, at + rowsAtOnce)
}

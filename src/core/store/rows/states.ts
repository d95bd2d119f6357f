import { createHash, randomInt } from 'node:crypto'
import { sql } from 'kysely'
import { mapPaced, pace } from '../../base/pace.ts'
import type { IncidentRecord, StatesBatch, StatesRows, StoredState } from '../../watch/states/index.ts'
import { laterSql } from '../dialect.ts'
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
        const open = await sql<StoredIncident>`SELECT "body", "endedAt", "ending" FROM "historyIncidents"
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
        await storeStates(tx, batch)
        await sql`DELETE FROM "historyWatch"`.execute(tx)
        await sql`INSERT INTO "historyWatch" ("writer", "at") VALUES (${writer}, ${at})`.execute(tx)
        return true
      })
    },
    incidents: async ({ from, to, most }) => {
      const rows = await read<readonly StoredIncident[]>([], async (db) => {
        const selected = await sql<StoredIncident>`SELECT "body", "endedAt", "ending" FROM "historyIncidents"
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
export type StoredIncident = { readonly body: string; readonly endedAt: number | null; readonly ending: string | null }

async function watchIn(db: Db): Promise<Watch | undefined> {
  const { rows } = await sql<Watch>`SELECT "writer", "at" FROM "historyWatch"`.execute(db)
  return rows[0]
}

export function incidentIn({ body, endedAt, ending }: StoredIncident): IncidentRecord {
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

/**
 * Stores what a batch has of states and incidents, whoever may do so. Nothing is known of the outcome before the end of the
 * transaction.
 */
export async function storeStates(tx: Db, { states, gone, incidents, deleteBefore }: StatesBatch): Promise<void> {
  for (const some of chunked(gone)) {
    await laterSql(tx, sql`DELETE FROM "historyStates" WHERE "id" IN (${sql.join(some.map(idOf))})`)
  }
  for (const some of chunked(states)) {
    const rows = some.map((one) => sql`(${idOf(one.row)}, ${one.row.key}, ${JSON.stringify(one)})`)
    await laterSql(
      tx,
      sql`INSERT INTO "historyStates" ("id", "key", "body") VALUES ${sql.join(rows)}
        ON CONFLICT ("id") DO UPDATE SET "key" = excluded."key", "body" = excluded."body"`,
    )
  }
  for (const some of chunked(incidents)) {
    const rows = some.map(({ endedAt, ending, ...one }) => {
      const times = sql`${Math.floor(one.beganAt)}, ${endedAt === undefined ? null : Math.floor(endedAt)}`
      return sql`(${one.id}, ${one.key}, ${times}, ${ending ?? null}, ${JSON.stringify(one)})`
    })
    await laterSql(
      tx,
      sql`INSERT INTO "historyIncidents" ("id", "key", "beganAt", "endedAt", "ending", "body") VALUES ${sql.join(rows)}
        ON CONFLICT ("id") DO UPDATE SET "key" = excluded."key", "beganAt" = excluded."beganAt",
          "endedAt" = excluded."endedAt", "ending" = excluded."ending", "body" = excluded."body"`,
    )
  }
  if (deleteBefore !== undefined) await deleteOld(tx, deleteBefore)
}

async function deleteOld(tx: Db, before: number): Promise<void> {
  await laterSql(tx, sql`DELETE FROM "historyIncidents" WHERE "endedAt" < ${Math.floor(before)}`)
  await laterSql(
    tx,
    sql`DELETE FROM "historyIncidents" WHERE "endedAt" IS NOT NULL AND "beganAt" <
      (SELECT "beganAt" FROM "historyIncidents" ORDER BY "beganAt" DESC LIMIT 1 OFFSET ${mostIncidents})`,
  )
}

/** Names of items may be longer than a key of an index. */
const idOf = ({ key, check, item }: StoredState['row']): string =>
  createHash('sha256')
    .update(JSON.stringify(item === undefined ? [key, check] : [key, check, item]))
    .digest('hex')

function* chunked<T>(items: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < items.length; at += rowsAtOnce) yield items.slice(at, at + rowsAtOnce)
}

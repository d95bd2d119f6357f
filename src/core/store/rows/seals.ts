import { sql } from 'kysely'
import { type ChainEntry, makeSeal, type Seal } from '../audit/index.ts'
import { type AuditEvent, auditEvents } from '../audit-events.ts'
import type { AuditSeals, SealedHead } from '../data.ts'
import { later } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'

/**
 * How many entries one seal has at most, so that others wait no longer for its transaction than for any other change. A
 * database that is too slow for so many gets half of them at the next attempt, until all are sealed.
 */
const mostEntries = 1_000
const fewestEntries = 8
/** How many entries or seals one query reads. */
const pageSize = 1_000

/**
 * For how many milliseconds after the first seal svc also seals entries without a mark: those from before it, and those
 * of nodes of an earlier version during an upgrade. Later ones are insertions, which `audit verify` reports.
 */
export const adoptsForMs = 86_400_000

/** A lock for each seal, so that only one of several nodes makes the next. */
const sealsLock = 'audit seals'

const isRefusal = (event: string): boolean => 'isRefusal' in (auditEvents[event as AuditEvent] ?? {})

/** The state of the chain in the memory of this process. */
export type SealMemory = {
  head: SealedHead | undefined
  beganAt: number | undefined
  /** Entries with smaller ids are sealed, except for those of unusually long transactions. */
  floor: number
  /** When svc last looked at all ids, in elapsed milliseconds. */
  lookedAt: number
  /** How many entries the next seal has at most, if less than usual. */
  limit: number | undefined
}
/**
 * During a long query of another client, PostgreSQL keeps what each seal has removed from the index of unsealed
 * entries. So a server looks at the newest ids, and at all of them only once a minute.
 */
const idsBehind = 10_000
const lookAtAllMs = 60_000

export function sealsOver(link: StoreLink, now: () => number, memory: SealMemory): Omit<AuditSeals, 'lastHead'> {
  const readHead = async (): Promise<SealedHead | undefined> => {
    memory.head = await link.read(headOf)
    return memory.head
  }
  const next = async (scope: Scope): Promise<Sealed> => {
    const { limit = mostEntries } = memory
    try {
      return await link.write((tx) => sealNext(link, tx, now(), { ...scope, limit }))
    } catch (error) {
      memory.limit = Math.max(fewestEntries, Math.floor(limit / 2))
      throw error
    }
  }
  return {
    head: readHead,
    seal: async ({ unlessNewerThanMs = 0, maxSeals = Number.POSITIVE_INFINITY } = {}) => {
      let head = await readHead()
      const age = head ? now() - head.at : unlessNewerThanMs
      // The clock of the store may have been set back: then every seal looks newer than it is.
      if (age >= 0 && age < unlessNewerThanMs) return { head, entries: 0, isAll: false }
      memory.beganAt ??= await link.read(firstSealOf)
      const adopts = memory.beganAt === undefined || now() < memory.beganAt + adoptsForMs
      const looksAtAll = unlessNewerThanMs === 0 || performance.now() - memory.lookedAt >= lookAtAllMs
      if (looksAtAll) memory.lookedAt = performance.now()
      const scope = { adopts, above: looksAtAll ? 0 : memory.floor }
      let entries = 0
      for (let seals = 0; seals < maxSeals; seals += 1) {
        // Without entries to seal, nothing is locked or written.
        if (!(await link.read((db) => hasUnsealed(db, scope)))) {
          memory.limit = undefined
          return { head, entries, isAll: true }
        }
        const sealed = await next(scope)
        head = sealed.head
        memory.head = head
        memory.floor = Math.max(memory.floor, sealed.lastId - idsBehind)
        entries += sealed.entries
      }
      return { head, entries, isAll: false }
    },
    seals: (after) =>
      link.read((db) =>
        db.selectFrom('auditSeals').selectAll().where('number', '>', after).orderBy('number').limit(pageSize).execute(),
      ),
    entries: async (ids) => {
      const pages = Array.from({ length: Math.ceil(ids.length / pageSize) }, (_, page) =>
        ids.slice(page * pageSize, (page + 1) * pageSize),
      )
      const rows: ChainEntry[] = []
      for (const page of pages) rows.push(...(await link.read((db) => entriesWith(db, page))))
      return rows
    },
    ids: (after) =>
      link.read((db) =>
        db.selectFrom('audit').select(['id', 'seal']).where('id', '>', after).orderBy('id').limit(pageSize).execute(),
      ),
  }
}

const headOf = async (db: Db): Promise<SealedHead | undefined> =>
  await db
    .selectFrom('auditSeals')
    .select(['number', 'at', 'hash'])
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()

/** The time of the first seal. It never changes. */
const firstSealOf = async (db: Db): Promise<number | undefined> => {
  const first = db.selectFrom('auditSeals').select('at').where('number', '=', 1)
  return (await first.executeTakeFirst())?.at
}

/** Written as in the index (schema.ts). */
const isUnsealed = sql<boolean>`("seal" IS NULL OR "seal" = 0)`

/** `adopts`: whether entries without a mark are sealed, too. `above`: only those with higher ids. */
const toSeal = ({ adopts, above }: Scope) => {
  const marked = adopts ? isUnsealed : sql<boolean>`${isUnsealed} AND "seal" = 0`
  return above > 0 ? sql<boolean>`${marked} AND "id" > ${above}` : marked
}
type Scope = { readonly adopts: boolean; readonly above: number }

async function hasUnsealed(db: Db, scope: Scope): Promise<boolean> {
  const one = db.selectFrom('audit').select('id').where(toSeal(scope)).limit(1)
  return (await one.execute()).length > 0
}

/**
 * Makes the next seal. It takes all committed entries without a seal, whatever their ids: an entry that got its id
 * early and commits late is in a later seal. No writer of entries waits, because nothing else changes their rows.
 */
async function sealNext(
  link: StoreLink,
  tx: Db,
  at: number,
  { limit, ...scope }: Scope & { readonly limit: number },
): Promise<Sealed> {
  await link.lock(tx, sealsLock)
  const head = await headOf(tx)
  const ids = sql`SELECT "id" FROM "audit" WHERE ${toSeal(scope)} ORDER BY "id" LIMIT ${sql.lit(limit)}`
  const { rows } = await sql<ChainEntry>`UPDATE "audit" SET "seal" = ${(head?.number ?? 0) + 1}
    WHERE "id" IN (${ids}) RETURNING *`.execute(tx)
  // Another node has sealed them meanwhile.
  if (rows.length === 0) return { head, entries: 0, lastId: 0 }
  const seal: Seal = makeSeal(head, rows, { at, isRefusal })
  await later(tx, tx.insertInto('auditSeals').values(seal))
  const { number, hash } = seal
  return { head: { number, at, hash }, entries: rows.length, lastId: Math.max(...rows.map(({ id }) => id)) }
}

type Sealed = { readonly head: SealedHead | undefined; readonly entries: number; readonly lastId: number }

/**
 * Pads the number of ids to a power of two, so that few texts of the query are prepared, whatever the number of
 * entries.
 */
async function entriesWith(db: Db, ids: readonly number[]): Promise<readonly ChainEntry[]> {
  const [first] = ids
  if (first === undefined) return []
  const length = 2 ** Math.ceil(Math.log2(ids.length))
  const padded = [...ids, ...Array.from({ length: length - ids.length }, () => first)]
  return await db.selectFrom('audit').selectAll().where('id', 'in', padded).execute()
}

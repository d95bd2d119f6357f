import { type RawBuilder, sql } from 'kysely'
import { refusalsInSql, refusalsKeptMs } from '../audit-events.ts'
import { type Data, prefixesKeptMs } from '../data.ts'
import { type Later, laterSql } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db, Tables } from '../tables.ts'
import { noncesKeptMs } from './digest.ts'
import type { GrantKeeper } from './grants.ts'
import { heartbeatsKeptMs } from './heartbeats.ts'
import { readingsKeptMs } from './readings.ts'
import { eraseSealed } from './sessions.ts'
import { silencesKeptMs } from './silences.ts'

/** Rows per transaction: others wait no longer than for any other change. */
const batch = 500
/** Maximum rows of one sweep; the next one continues. */
const most = 100_000
/** Older failed sign-ins no longer count (P5). */
const dayMs = 86_400_000

/** Audit entries that anonymous callers cause. Entries of users and Admins are kept forever. */
const isRefusal = sql<boolean>`"event" IN ${sql.raw(refusalsInSql)}`

/** Seals that list refusals, all of them old. */
const hasOldRefusals = (at: number) =>
  sql<boolean>`"refusalsUntil" IS NOT NULL AND "refusals" IS NOT NULL AND "refusalsUntil" < ${at - refusalsKeptMs}`

/** When an unused row ends. This and the refusals above are written exactly as in their indexes (schema.ts). */
const unusedUntil = sql<number>`"lastUsedAt" + "idleMs"`

type Rows = {
  [Table in keyof Tables]: {
    readonly table: Table
    /** The column that identifies a row. */
    readonly key: keyof Tables[Table] & string
    /** The condition of the rows to remove at a time, in milliseconds since 1970. */
    readonly where: (at: number) => RawBuilder<boolean>
  }
}[keyof Tables]

/** The rows that a sweep removes, in this order. */
const removable: readonly Rows[] = [
  { table: 'sessions', key: 'hash', where: (at) => sql`"endsAt" <= ${at}` },
  { table: 'sessions', key: 'hash', where: (at) => sql`${unusedUntil} <= ${at}` },
  { table: 'accessTokens', key: 'hash', where: (at) => sql`"expiresAt" <= ${at}` },
  { table: 'refreshTokens', key: 'hash', where: (at) => sql`"endsAt" <= ${at}` },
  // An exchanged token stays until its family ends, because its reuse reveals a thief.
  { table: 'refreshTokens', key: 'hash', where: (at) => sql`"usedAt" IS NULL AND ${unusedUntil} <= ${at}` },
  // Older ones no longer count, and no right clock wrote those of tomorrow.
  { table: 'failures', key: 'key', where: (at) => sql`("lastAt" < ${at - dayMs} OR "lastAt" > ${at + dayMs})` },
  // Full buckets, and those that no clock but a wrong one could have left so.
  { table: 'guesses', key: 'name', where: (at) => sql`("fullAt" <= ${at} OR "fullAt" > ${at + 2 * dayMs})` },
  { table: 'knownPrefixes', key: 'mac', where: (at) => sql`"at" < ${at - prefixesKeptMs}` },
  { table: 'claimedRoles', key: 'familyId', where: (at) => sql`"endsAt" <= ${at}` },
  { table: 'usedStates', key: 'state', where: (at) => sql`"endsAt" <= ${at}` },
  { table: 'digestNonces', key: 'nonce', where: (at) => sql`"madeAt" < ${at - noncesKeptMs}` },
  { table: 'quiets', key: 'id', where: (at) => sql`"endsAt" < ${at - silencesKeptMs}` },
  { table: 'heartbeats', key: 'name', where: (at) => sql`"at" < ${at - heartbeatsKeptMs}` },
  { table: 'readings', key: 'series', where: (at) => sql`("at" < ${at - readingsKeptMs} OR "at" > ${at + dayMs})` },
  {
    table: 'audit',
    key: 'id',
    // The newest stays: a server notices by its number that the store was set back. All refusals of a seal go together,
    // once the newest of them is old: what is missing of a younger seal was deleted by somebody else (S13).
    where: (at) => sql`${isRefusal} AND "at" < ${at - refusalsKeptMs} AND "id" < (SELECT max("id") FROM "audit")
      AND "seal" IN (SELECT "number" FROM "auditSeals" WHERE ${hasOldRefusals(at)})`,
  },
]

/** Removes expired rows, sealed pairs that can no longer be requested, and grants that have ended. */
export function sweepOver(link: StoreLink, ends: GrantKeeper): Data['sweep'] {
  return async (at) => {
    await ends.settle()
    await link.write((tx) => eraseSealed(tx, at))
    for (const rows of removable) await inBatches(() => link.write((tx) => removeBatch(tx, rows, at)))
    await inBatches(() => link.write((tx) => forgetBatch(tx, at)))
  }
}

const removeBatch = (tx: Db, { table, key, where }: Rows, at: number): Promise<Later<unknown>> =>
  laterSql(
    tx,
    sql`DELETE FROM ${sql.table(table)} WHERE ${sql.ref(key)} IN
      (SELECT ${sql.ref(key)} FROM ${sql.table(table)} WHERE ${where(at)} LIMIT ${batch})`,
  )

/** Removes the lists of refusals none of which is left. Their digest stays, so that the chain can be verified. */
const forgetBatch = (tx: Db, at: number): Promise<Later<unknown>> =>
  laterSql(
    tx,
    sql`UPDATE "auditSeals" SET "refusals" = NULL WHERE "number" IN
      (SELECT "number" FROM "auditSeals" WHERE ${hasOldRefusals(at)} AND NOT EXISTS
        (SELECT 1 FROM "audit" WHERE ${isRefusal} AND "at" <= "refusalsUntil" AND "seal" = "number") LIMIT ${batch})`,
  )

async function inBatches(remove: () => Promise<Later<unknown>>): Promise<void> {
  for (let removed = 0; removed < most; ) {
    const n = (await remove()).changed()
    if (n < batch) return
    removed += n
  }
}

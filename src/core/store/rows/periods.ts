import { randomBytes, randomInt } from 'node:crypto'
import { sql } from 'kysely'
import type { HistoryMonitor, HistoryRows, RunsId, StoredBlock, StoredRuns } from '../../watch/periods/index.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'

/** A lock for every transaction that gives numbers, so that two nodes do not give the same one twice. */
const numbersLock = 'history numbers'
/** Milliseconds after which a name or a monitor that no run has used is deleted: a little more than blocks are kept. */
const usedKeptMs = 431 * 86_400_000
/** Databases limit the parameters of a statement. */
const rowsAtOnce = 500

/** Bytes: more than what one second adds. */
const proofBytes = 16 * 1024

/** Commits something in the history, in a row that nobody ever sees. Throws the errors of its database. */
export async function proveHistory(link: StoreLink): Promise<void> {
  await link.write(async (tx) => {
    await sql`INSERT INTO "historyRuns" ("at", "writer", "body") VALUES (0, 0, ${randomBytes(proofBytes)})`.execute(tx)
    await sql`DELETE FROM "historyRuns" WHERE "at" = 0 AND "writer" = 0`.execute(tx)
  })
}

/**
 * The history of results in its tables. `link`: the database that has them. Undefined, if `create` is false, where there is
 * none yet.
 */
export function historyOver(link: (create: boolean) => Promise<StoreLink | undefined>, now: () => number): HistoryRows {
  const writer = randomInt(2 ** 47)
  const read = async <T>(none: T, work: (db: Db) => Promise<T>): Promise<T> => (await link(false))?.read(work) ?? none
  const write = async <T>(work: (tx: Db, own: StoreLink) => Promise<T>): Promise<T> => {
    const own = await link(true)
    if (!own) throw new Error('a database that is written exists')
    return await own.write(async (tx) => await work(tx, own))
  }
  return {
    open: () => write(async () => {}),
    numbered: (after) => read({ names: [], monitors: [] }, (db) => numbersIn(db, after)),
    number: ({ names, monitors }) =>
      write(async (tx, own) => {
        await own.lock(tx, numbersLock)
        const at = now()
        for (const some of chunked(names)) {
          const rows = sql.join(some.map((text, index) => sql`(${sql.lit(index + 1)}, ${text})`))
          await numberRows(tx, 'historyNames', sql`"text", "usedAt"`, sql`"column2", ${sql.lit(at)}`, rows, 'text')
        }
        for (const some of chunked(monitors)) {
          const rows = sql.join(
            some.map(
              ({ key, type, name, firstAt }, index) =>
                sql`(${sql.lit(index + 1)}, ${key}, ${type}, ${name}, ${sql.lit(firstAt)})`,
            ),
          )
          await numberRows(
            tx,
            'historyMonitors',
            sql`"key", "type", "name", "firstAt", "usedAt"`,
            sql`"column2", "column3", "column4", "column5", ${sql.lit(at)}`,
            rows,
            'key',
          )
        }
        const all = await numbersIn(tx)
        const [requestedNames, requestedKeys] = [new Set(names), new Set(monitors.map(({ key }) => key))]
        return {
          names: all.names.filter(({ text }) => requestedNames.has(text)),
          monitors: all.monitors.filter(({ key }) => requestedKeys.has(key)),
        }
      }),
    rename: (moves) =>
      write(async (tx) => {
        for (const { from, to } of moves) {
          await sql`UPDATE "historyMonitors" SET "key" = ${to.key}, "type" = ${to.type}, "name" = ${to.name}
            WHERE "key" = ${from} AND NOT EXISTS (SELECT 1 FROM "historyMonitors" WHERE "key" = ${to.key})`.execute(tx)
        }
      }),
    write: ({ runs, blocks, used, deleteRunsBefore, deleteBlocksBefore }) =>
      write(async (tx) => {
        if (runs) {
          await sql`INSERT INTO "historyRuns" ("at", "writer", "body") VALUES (${runs.at}, ${writer}, ${runs.body})
            ON CONFLICT ("at", "writer") DO NOTHING`.execute(tx)
        }
        if (blocks.length > 0) {
          const rows = blocks.map(
            ({ tier, at, monitor, runs: count, times, figures }) =>
              sql`(${tier}, ${at}, ${monitor}, ${count}, ${times}, ${figures})`,
          )
          await sql`INSERT INTO "historyBlocks" ("tier", "at", "monitor", "runs", "times", "figures") VALUES ${sql.join(rows)}
            ON CONFLICT ("tier", "at", "monitor") DO UPDATE SET "runs" = excluded."runs", "times" = excluded."times",
              "figures" = excluded."figures" WHERE excluded."runs" > "historyBlocks"."runs"`.execute(tx)
        }
        await sql`DELETE FROM "historyRuns" WHERE "at" < ${deleteRunsBefore}`.execute(tx)
        for (const [tier, before] of (deleteBlocksBefore ?? []).entries()) {
          await sql`DELETE FROM "historyBlocks" WHERE "tier" = ${tier} AND "at" < ${before}`.execute(tx)
        }
        if (used) await markUsed(tx, used)
      }),
    runs: (skip, most) =>
      read([], async (db) => {
        const { rows } = await sql<StoredRuns>`SELECT "at", "writer", "body" FROM "historyRuns"
          ORDER BY "at", "writer" LIMIT ${most} OFFSET ${skip}`.execute(db)
        return rows
      }),
    othersSince: (at) =>
      read([], async (db) => {
        const { rows } = await sql<RunsId>`SELECT "at", "writer" FROM "historyRuns"
          WHERE "at" >= ${at} AND "writer" <> ${writer} ORDER BY "at", "writer"`.execute(db)
        return rows
      }),
    runsOf: (ids) =>
      read([], async (db) => {
        if (ids.length === 0) return []
        const pairs = sql.join(ids.map((one) => sql`(${sql.lit(one.at)}, ${sql.lit(one.writer)})`))
        const { rows } = await sql<StoredRuns>`SELECT "at", "writer", "body" FROM "historyRuns"
          WHERE ("at", "writer") IN (VALUES ${pairs}) ORDER BY "at", "writer"`.execute(db)
        return rows
      }),
    blocks: ({ tier, ats, monitors, figures }) =>
      read([], async (db) => {
        const columns = sql.raw(`"tier", "at", "monitor", "runs", "times"${figures ? ', "figures"' : ''}`)
        const { rows } = await sql<StoredBlock>`SELECT ${columns} FROM "historyBlocks" WHERE "tier" = ${tier}
          AND "at" IN (${sql.join(ats)}) AND "monitor" IN (${sql.join(monitors)})`.execute(db)
        return rows
      }),
    unpacked: (tier, at, to) =>
      read([], async (db) => {
        const { rows } = await sql<{ monitor: number }>`SELECT DISTINCT "monitor" FROM "historyBlocks"
          WHERE "tier" = ${tier - 1} AND "at" >= ${at} AND "at" < ${to} AND "monitor" NOT IN
            (SELECT "monitor" FROM "historyBlocks" WHERE "tier" = ${tier} AND "at" = ${at})`.execute(db)
        return rows.map(({ monitor }) => monitor)
      }),
  }
}

async function numbersIn(db: Db, after = { names: 0, monitors: 0 }) {
  const names = await sql<{ number: number; text: string }>`SELECT "number", "text" FROM "historyNames"
    WHERE "number" > ${after.names}`.execute(db)
  const monitors = await sql<HistoryMonitor>`SELECT "number", "key", "type", "name", "firstAt" FROM "historyMonitors"
    WHERE "number" > ${after.monitors} ORDER BY "number"`.execute(db)
  return { names: names.rows, monitors: monitors.rows }
}

/** Adds rows with the next numbers, in their order. Those that exist keep their number. */
async function numberRows(
  tx: Db,
  table: 'historyNames' | 'historyMonitors',
  columns: ReturnType<typeof sql>,
  values: ReturnType<typeof sql>,
  rows: ReturnType<typeof sql>,
  unique: string,
): Promise<void> {
  const name = sql.table(table)
  await sql`INSERT INTO ${name} ("number", ${columns})
    SELECT (SELECT coalesce(max("number"), 0) FROM ${name}) + "column1", ${values} FROM (VALUES ${rows}) AS "new"
    WHERE true ON CONFLICT (${sql.ref(unique)}) DO NOTHING`.execute(tx)
}

async function markUsed(
  tx: Db,
  {
    at,
    names,
    monitors,
  }: { readonly at: number; readonly names: readonly number[]; readonly monitors: readonly number[] },
): Promise<void> {
  for (const [table, numbers] of [
    ['historyNames', names],
    ['historyMonitors', monitors],
  ] as const) {
    for (const some of chunked(numbers)) {
      await sql`UPDATE ${sql.table(table)} SET "usedAt" = ${at} WHERE "number" IN (${sql.join(some)})`.execute(tx)
    }
    await sql`DELETE FROM ${sql.table(table)} WHERE "usedAt" < ${at - usedKeptMs}`.execute(tx)
  }
}

function* chunked<T>(items: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < items.length; at += rowsAtOnce) yield items.slice(at, at + rowsAtOnce)
}

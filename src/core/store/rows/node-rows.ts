import { sql } from 'kysely'
import {
  factsIn,
  maxFacts,
  type NodeRow,
  outMs,
  type RenewalAnswer,
  type RenewalRequest,
} from '../../watch/nodes/index.ts'

/** Rows of nodes that have not renewed them for this long are deleted, and so are configurations that no row names. */
const keptMs = 86_400_000
/** How many rows of each one renewal deletes. */
const deletedAtOnce = 100
/** How long ago a renewal may have written that nodes store states, until another one does. Milliseconds. */
const watchEveryMs = 5_000
/** Who stores states, in the place of the random number of a server that stores those of all monitors. */
const nodesWriter = -1

/** The time of the database, read once in each statement that uses it. */
export const withClock = sql`"clock" AS MATERIALIZED
  (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "now")`

/** A row from the future is not live: the clock was set back, and the node may have ended long ago. */
export const isLive = sql`("leftAt" IS NULL AND abs("now" - greatest(0, "renewedAt")) < ${sql.lit(outMs)})`

/** Of a row with any number in it: one node must not fail the statement of all. */
export const silentMs = sql`greatest(0, "now" - greatest(0, "renewedAt"))`

/** Where `from` and `clock` are, the latest row of each node. */
const latest = (from: ReturnType<typeof sql>, more = sql``) =>
  sql<RowOfNode>`SELECT DISTINCT ON ("node") "node", "epoch", ${isLive} AS "isLive", "isIsolated", "config",
    ${silentMs} AS "silentMs", "leftAt" IS NOT NULL AS "hasLeft",
    left("facts", ${sql.lit(maxFacts + 1)}) AS "facts"${more}
    FROM ${from}, "clock" ORDER BY "node", "epoch" DESC`

/** The rows of all nodes as they are now. */
export const membersQuery = sql<RowOfNode>`WITH ${withClock} ${latest(sql`"nodes"`)}`

export type RowOfNode = Omit<NodeRow, 'isIsolated' | 'facts'> & { readonly isIsolated: number; readonly facts: string }

export const memberOf = (row: RowOfNode): NodeRow => {
  const { node, epoch, config, silentMs: silent, hasLeft } = row
  return {
    node,
    epoch,
    isLive: row.isLive,
    isIsolated: row.isIsolated === 1,
    config,
    silentMs: silent,
    hasLeft,
    facts: factsIn(row.facts),
  }
}

type Renewed = RowOfNode & {
  readonly ownEpoch: number | undefined
  readonly ownWrites: number | undefined
  readonly stamped: number
}

/**
 * Renews the row of a node, or makes one with a new epoch. One statement, so that it costs one round trip.
 *
 * It also keeps servers of earlier versions, which store the states of all monitors as a whole, from doing so: they
 * wait while somebody else has stored states within 30 s. One that has stored states all the same may have replaced
 * those of the nodes. Then every node receives the report that the store has none of its writes, in two renewals, since
 * the answer to one may be lost: it writes all again.
 */
export const renewal = ({
  node,
  process,
  epoch,
  latestEpoch,
  claims,
  config,
  isIsolated,
  facts,
}: RenewalRequest) => sql<Renewed>`
WITH ${withClock},
"before" AS (
  SELECT "epoch", "process", "leftAt", ${isLive} AS "isLive" FROM "nodes", "clock"
  WHERE "node" = ${node} ORDER BY "epoch" DESC LIMIT 1),
"verdict" AS (
  SELECT
    (SELECT "epoch" FROM "before" WHERE "isLive" AND "process" = ${process}
      AND ("epoch" = ${epoch ?? null}::bigint OR "epoch" > ${latestEpoch}::bigint)) AS "same",
    EXISTS (SELECT 1 FROM "before" WHERE CASE WHEN "process" = ${process} THEN "leftAt" IS NOT NULL
      ELSE "isLive" AND NOT ${claims}::int::boolean END) AS "isTaken"),
"watch" AS (
  SELECT "writer" FROM "historyWatch", "clock", "verdict"
  WHERE NOT "isTaken" AND ("writer" <> ${nodesWriter} OR abs("now" - "at") >= ${sql.lit(watchEveryMs)})
  FOR UPDATE OF "historyWatch" SKIP LOCKED),
"replaced" AS (SELECT 1 FROM "watch" WHERE "writer" <> ${nodesWriter}),
"watching" AS (
  UPDATE "historyWatch" SET "writer" = ${nodesWriter}, "at" = "now" FROM "clock" WHERE EXISTS (SELECT 1 FROM "watch")),
"firstWatch" AS (
  INSERT INTO "historyWatch" ("writer", "at") SELECT ${nodesWriter}, "now" FROM "clock", "verdict"
  WHERE NOT "isTaken" AND NOT EXISTS (SELECT 1 FROM "historyWatch")),
"renewed" AS (
  UPDATE "nodes" SET "renewedAt" = "now", "config" = ${config}, "isIsolated" = ${isIsolated},
    "facts" = ${JSON.stringify(facts)},
    "again" = CASE WHEN EXISTS (SELECT 1 FROM "replaced") THEN 2 ELSE greatest(0, "again" - 1) END
  FROM "clock", "verdict" WHERE "nodes"."epoch" = "same" RETURNING "nodes".*),
"warned" AS (
  UPDATE "nodes" SET "again" = 3 FROM "clock", "verdict"
  WHERE EXISTS (SELECT 1 FROM "replaced") AND "epoch" IS DISTINCT FROM "same" AND ${isLive}),
"made" AS (
  INSERT INTO "nodes" ("node", "process", "renewedAt", "config", "isIsolated", "facts", "writes", "again")
  SELECT ${node}, ${process}, "now", ${config}, ${isIsolated}::bigint, ${JSON.stringify(facts)}, 0, 0
  FROM "clock", "verdict" WHERE "same" IS NULL AND NOT "isTaken" RETURNING *),
"own" AS (SELECT * FROM "renewed" UNION ALL SELECT * FROM "made"),
"forgotten" AS (
  DELETE FROM "nodes" WHERE "epoch" IN (
    SELECT "epoch" FROM "nodes", "clock" WHERE "renewedAt" < "now" - ${sql.lit(keptMs)}
    LIMIT ${sql.lit(deletedAtOnce)} FOR UPDATE OF "nodes" SKIP LOCKED)),
"unnamed" AS (
  DELETE FROM "nodeConfigurations" WHERE "digest" IN (
    SELECT "digest" FROM "nodeConfigurations", "clock"
    WHERE "putAt" < "now" - ${sql.lit(keptMs)} AND "digest" <> ${config}
      AND NOT EXISTS (SELECT 1 FROM "nodes" WHERE "config" = "digest")
    LIMIT ${sql.lit(deletedAtOnce)} FOR UPDATE OF "nodeConfigurations" SKIP LOCKED)),
"all" AS (
  SELECT * FROM "nodes" WHERE NOT EXISTS (SELECT 1 FROM "own" WHERE "own"."epoch" = "nodes"."epoch")
  UNION ALL SELECT * FROM "own")
${latest(
  sql`"all"`,
  sql`,
    (SELECT "epoch" FROM "own") AS "ownEpoch",
    (SELECT CASE WHEN "again" > 0 THEN 0 ELSE "writes" END FROM "own") AS "ownWrites",
    (SELECT count(*) FROM "nodeStamps" WHERE "epoch" = (SELECT "epoch" FROM "own")) AS "stamped"`,
)}`

export function answerOf(rows: readonly Renewed[]): RenewalAnswer {
  const members = rows.map(memberOf)
  const { ownEpoch, ownWrites = 0, stamped = 0 } = rows[0] ?? {}
  if (ownEpoch === undefined) return { what: 'taken', rows: members }
  return { what: 'renewed', epoch: ownEpoch, rows: members, writes: ownWrites, stamped }
}

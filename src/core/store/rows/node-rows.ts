import { sql } from 'kysely'
import {
  type BeatRequest,
  factsIn,
  type HandOver,
  type LeaseAsk,
  type LeaseRow,
  leaseConfig,
  maxFacts,
  type NodeRow,
  outMs,
} from '../../watch/nodes/index.ts'

/** Rows of nodes that have not renewed them for this long are deleted. Milliseconds. */
const keptMs = 86_400_000
/** How many of them one beat deletes. */
const deletedAtOnce = 100
/** Who stores states, in the place of the random number of a server that stores those of all monitors. */
const nodesWriter = -1

/** The time of the database, read once in each statement that uses it. */
export const withClock = sql`"clock" AS MATERIALIZED
  (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "now")`

/** A row from the future is not live: the clock was set back, and the node may have ended long ago. */
export const isLive = sql`("leftAt" IS NULL AND abs("now" - greatest(0, "renewedAt")) < ${sql.lit(outMs)})`

/** Of a row with any number in it: one node must not fail the statement of all. */
const silentMs = sql`greatest(0, "now" - greatest(0, "renewedAt"))`

/** The latest row of each node, as it is now. Versions that are too old for the schema read these columns too. */
export const membersQuery = sql<RowOfNode>`WITH ${withClock}
  SELECT DISTINCT ON ("node") "node", "epoch", ${isLive} AS "isLive", "isIsolated", "config",
    ${silentMs} AS "silentMs", "leftAt" IS NOT NULL AS "hasLeft", left("facts", ${sql.lit(maxFacts + 1)}) AS "facts"
  FROM "nodes", "clock" ORDER BY "node", "epoch" DESC`

export type RowOfNode = Omit<NodeRow, 'isIsolated' | 'facts'> & { readonly isIsolated: number; readonly facts: string }

export const memberOf = ({ isIsolated, facts, ...row }: RowOfNode): NodeRow => ({
  ...row,
  isIsolated: isIsolated === 1,
  facts: factsIn(facts),
})

/**
 * The number of the last hand-over of a process that the store has; null without a row of the process. It stands in a column in
 * which versions before counted their own writes: a failover that takes a hand-over takes its number as well.
 */
export const handedOverQuery = ({ node, process }: Pick<HandOver, 'node' | 'process'>) =>
  sql<{ number: number | null }>`SELECT max("writes") AS "number" FROM "nodes"
    WHERE "node" = ${node} AND "process" = ${process}`

/** Notes the number of a hand-over, unless the store has a later one. */
export const noteHandOver = ({ node, process, number }: HandOver) =>
  sql`UPDATE "nodes" SET "writes" = ${number}::bigint
    WHERE "node" = ${node} AND "process" = ${process} AND "writes" < ${number}::bigint`

/** A row if this process has the lease. */
const leaseOf = (shard: string, process: string) =>
  sql`(SELECT 1 FROM "leases" WHERE "shard" = ${shard} AND "process" = ${process} AND "leftAt" IS NULL)`

/**
 * The change of a lease for which a node asks. It returns a row if it is made. What a process has asked before it left may arrive
 * late: another lease than that of its machine is for the process that has the machine.
 */
export function leaseChange(
  ask: Exclude<LeaseAsk, { type: 'read' }>,
  { shard, machine }: { readonly shard: string; readonly machine: string },
  { node, process }: BeatRequest,
) {
  const { epoch } = ask
  const mayTake = shard === machine ? sql`TRUE` : sql`EXISTS ${leaseOf(machine, process)}`
  const own = sql`"shard" = ${shard} AND "process" = ${process} AND "epoch" = ${epoch}::bigint AND "leftAt" IS NULL`
  if (ask.type === 'renew')
    return sql`WITH ${withClock} UPDATE "leases" SET "beats" = "beats" + 1, "renewedAt" = "now" FROM "clock"
      WHERE ${own} RETURNING 1`
  if (ask.type === 'leave')
    return sql`WITH ${withClock} UPDATE "leases" SET "leftAt" = "now" FROM "clock" WHERE ${own} RETURNING 1`
  const { expected } = ask
  if (!expected)
    return sql`WITH ${withClock} INSERT INTO "leases"
      ("shard", "node", "process", "epoch", "beats", "writes", "base", "renewedAt")
      SELECT ${shard}, ${node}, ${process}, ${epoch}::bigint, 0, 0, 0, "now" FROM "clock" WHERE ${mayTake}
      ON CONFLICT ("shard") DO NOTHING RETURNING 1`
  return sql`WITH ${withClock} UPDATE "leases" SET "node" = ${node}, "process" = ${process}, "epoch" = ${epoch}::bigint,
      "beats" = 0, "base" = "writes", "leftAt" = NULL, "renewedAt" = "now" FROM "clock"
    WHERE "shard" = ${shard} AND "process" = ${expected.process} AND "epoch" = ${expected.epoch}::bigint
      AND "beats" = ${expected.beats}::bigint AND "writes" = ${expected.writes}::bigint
      AND ("leftAt" IS NOT NULL) = ${expected.hasLeft}::boolean AND ${mayTake} RETURNING 1`
}

/** Stamps of versions before, by which each node has its own monitors: a node of them that wakes up stores nothing. */
export const voidStamps = ({ process }: BeatRequest) => sql`
  UPDATE "nodeStamps" SET "epoch" = -"epoch" WHERE "epoch" > 0
    AND EXISTS (SELECT 1 FROM "leases" WHERE "shard" = 'network' AND "process" = ${process})`

export type RowOfLease = LeaseRow & { readonly shard: string }

export const leasesQuery = (names: readonly string[]) => sql<RowOfLease>`WITH ${withClock}
  SELECT "shard", "node", "process", "epoch", "beats", "writes", "base", "leftAt" IS NOT NULL AS "hasLeft",
    ${silentMs} AS "silentMs" FROM "leases", "clock" WHERE "shard" = ANY(${names}::text[])`

/** Renews the row of a node for the others, if its machine is this process's. Each process has a row of its own. */
export const renewRow = ({ node, process, isIsolated, facts }: BeatRequest, machine: string) => sql`
WITH ${withClock},
"holder" AS ${leaseOf(machine, process)},
"renewed" AS (
  UPDATE "nodes" SET "renewedAt" = "now", "leftAt" = NULL, "isIsolated" = ${isIsolated}::int::bigint,
    "facts" = ${JSON.stringify(facts)} FROM "clock"
  WHERE "process" = ${process} AND "epoch" = (SELECT max("epoch") FROM "nodes" WHERE "node" = ${node})
    AND EXISTS (SELECT 1 FROM "holder") RETURNING 1),
"forgotten" AS (
  DELETE FROM "nodes" WHERE "epoch" IN (
    SELECT "epoch" FROM "nodes", "clock" WHERE "renewedAt" < "now" - ${sql.lit(keptMs)} AND "process" <> ${process}
    LIMIT ${sql.lit(deletedAtOnce)} FOR UPDATE OF "nodes" SKIP LOCKED))
INSERT INTO "nodes" ("node", "process", "renewedAt", "config", "isIsolated", "facts", "writes", "again")
  SELECT ${node}, ${process}, "now", ${leaseConfig}, ${isIsolated}::int::bigint, ${JSON.stringify(facts)}, 0, 0
  FROM "clock" WHERE EXISTS (SELECT 1 FROM "holder") AND NOT EXISTS (SELECT 1 FROM "renewed")`

/** Says that states are stored, for commands, and for servers that would store those of all monitors as a whole. */
export const noteWatch = ({ process }: BeatRequest) => sql`
WITH ${withClock},
"holder" AS ${leaseOf('network', process)},
"noted" AS (
  UPDATE "historyWatch" SET "writer" = ${nodesWriter}, "at" = "now" FROM "clock"
  WHERE EXISTS (SELECT 1 FROM "holder") RETURNING 1)
INSERT INTO "historyWatch" ("writer", "at") SELECT ${nodesWriter}, "now" FROM "clock"
  WHERE EXISTS (SELECT 1 FROM "holder") AND NOT EXISTS (SELECT 1 FROM "noted")`

import { sql } from 'kysely'
import { type Fence, type Fenced, handOverWrites, nodeOfKey, type Shard, shards } from '../../watch/nodes/index.ts'
import type { StoredNodes } from '../data.ts'
import { type Later, laterSql } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import { note } from './audit.ts'
import { ownKey } from './capacity.ts'
import { addNews } from './node-news.ts'
import {
  handedOverQuery,
  isLive,
  leaseChange,
  leasesQuery,
  memberOf,
  membersQuery,
  noteHandOver,
  noteWatch,
  renewRow,
  voidStamps,
  withClock,
} from './node-rows.ts'
import { outboxOver, storeRows } from './outbox.ts'
import { statesOver, storeStates } from './states.ts'

/** A lease by its name in the store: each machine has one of its own. */
const nameOf = (shard: Shard, node: string): string => (shard === 'network' ? shard : `@${node}`)

/**
 * Nodes and their leases in a PostgreSQL store. No transaction holds more than row locks, and no session anything. A write
 * changes the row of its lease first, which stays locked until it ends. Whoever takes the lease changes the same row, and so
 * waits for a write in progress; what is stored is read after that. All lock the lease of the network first. `audited`: another
 * link to the same database, whose audit entries pass the gate.
 */
export function nodesOver(
  link: (create: boolean) => Promise<StoreLink | undefined>,
  { audited, now }: { readonly audited: StoreLink; readonly now: () => number },
): StoredNodes {
  const opened = async (): Promise<StoreLink> => {
    const own = await link(true)
    if (!own) throw new Error('a database that is written exists')
    return own
  }
  const [states, outbox] = [statesOver(link, now), outboxOver(link)]
  return {
    beat: async (request) => {
      const { node, asks } = request
      const names = shards.map((shard) => nameOf(shard, node))
      const machine = nameOf('machine', node)
      const answers = await (await opened()).write(async (tx) => {
        const done = new Map<Shard, Later<unknown>>()
        for (const shard of shards) {
          const ask = asks[shard]
          const lease = { shard: nameOf(shard, node), machine }
          if (ask.type !== 'read') done.set(shard, await laterSql(tx, leaseChange(ask, lease, request)))
        }
        if (asks.network.type === 'take') await laterSql(tx, voidStamps(request))
        if (asks.network.type === 'renew') await laterSql(tx, noteWatch(request))
        await laterSql(tx, renewRow(request, machine))
        return {
          done,
          leases: await laterSql(tx, leasesQuery(names)),
          members: await laterSql(tx, membersQuery),
          handedOver: await laterSql(tx, handedOverQuery(request)),
        }
      })
      const rows = answers.leases.rows()
      const leaseOf = (shard: Shard) => ({
        isOk: answers.done.get(shard)?.rows().length !== 0,
        row: rows.find((one) => one.shard === nameOf(shard, node)),
      })
      return {
        rows: answers.members.rows().map(memberOf),
        leases: { network: leaseOf('network'), machine: leaseOf('machine') },
        handedOver: Number(answers.handedOver.rows()[0]?.number ?? 0),
      }
    },
    list: async () => {
      const { rows } = await (await opened()).read((db) => membersQuery.execute(db))
      return rows.map(memberOf)
    },
    holder: async () => {
      const { rows } = await (await opened()).read((db) => leasesQuery(['network']).execute(db))
      return rows.find(({ hasLeft }) => !hasLeft)?.node
    },
    stored: async () => {
      const [all, rows] = await Promise.all([states.read(), outbox.read()])
      return { ...all, outbox: rows }
    },
    key: async () => await audited.write(async (tx) => await ownKey(tx, 'nodes')),
    writeStates: async (fences, batch) => await fenced(await opened(), fences, (tx) => storeStates(tx, batch)),
    writeOutbox: async (fences, rows) =>
      await fenced(await opened(), fences, (tx) => storeRows(tx, 'notifyRows', rows)),
    handOver: async (what) =>
      await (await opened()).write(async (tx) => {
        // One that the store refuses must not count as a write.
        const { rows: last } = await handedOverQuery(what).execute(tx)
        if (Number(last[0]?.number ?? what.number) >= what.number) return false
        // A later process of the same machine may have read what is stored already.
        const machines = what.rows.flatMap(({ subject: { key } }) => nodeOfKey(key) ?? [])
        for (const name of new Set(['network', ...machines.map((node) => nameOf('machine', node))]))
          await sql`UPDATE "leases" SET "writes" = "writes" + ${sql.lit(handOverWrites)} WHERE "shard" = ${name}`.execute(
            tx,
          )
        await noteHandOver(what).execute(tx)
        await addNews(tx, what.rows)
        return true
      }),
    leave: async (node, process) => {
      await (await opened()).write(async (tx) => {
        const left = sql`SET "leftAt" = "now" FROM "clock" WHERE "process" = ${process} AND "leftAt" IS NULL`
        await laterSql(tx, sql`WITH ${withClock} UPDATE "leases" ${left} AND "shard" = 'network'`)
        await laterSql(tx, sql`WITH ${withClock} UPDATE "leases" ${left} AND "shard" = ${nameOf('machine', node)}`)
        await laterSql(tx, sql`WITH ${withClock} UPDATE "nodes" ${left}`)
      })
    },
    forget: async (node, actor) => {
      // The tables of the history exist after that.
      await opened()
      return await audited.write(async (tx) => {
        const isForgotten = await forget(tx, node)
        if (isForgotten) await note(tx, now(), actor, { event: 'node.forgotten', target: node })
        return isForgotten
      })
    },
  }
}

/** Stores something if the leases are still those of the process, in one transaction. */
function fenced(own: StoreLink, fences: readonly Fence[], store: (tx: Db) => Promise<void>): Promise<Fenced> {
  return own.write(async (tx): Promise<Fenced> => {
    const refused: Shard[] = []
    for (const { shard, node, process, epoch, acknowledged, number } of fences) {
      const { rows } = await sql`UPDATE "leases" SET "writes" = ${number}::bigint
        WHERE "shard" = ${nameOf(shard, node)} AND "process" = ${process} AND "epoch" = ${epoch}::bigint
          AND "leftAt" IS NULL AND "writes" >= ${acknowledged}::bigint AND "writes" < ${number}::bigint
        RETURNING 1`.execute(tx)
      if (rows.length === 0) refused.push(shard)
    }
    if (refused.length > 0) return { refused }
    await store(tx)
    return 'stored'
  })
}

/** Removes a node, and what is stored of its machine, whose open incidents end when it last watched. */
async function forget(tx: Db, node: string): Promise<boolean> {
  const { rows } = await sql<{ isLive: boolean; renewedAt: number }>`WITH ${withClock}
    SELECT ${isLive} AS "isLive", "renewedAt" FROM "nodes", "clock" WHERE "node" = ${node}
    ORDER BY "epoch" DESC LIMIT 1 FOR UPDATE OF "nodes"`.execute(tx)
  const [row] = rows
  if (!row || row.isLive) return false
  // Every key from `@node/` to `@node0`: 0 is the character after the slash.
  const ofMachine = sql`"key" >= ${`@${node}/`} AND "key" < ${`@${node}0`}`
  await laterSql(tx, sql`DELETE FROM "leases" WHERE "shard" = ${nameOf('machine', node)}`)
  await laterSql(tx, sql`DELETE FROM "historyStates" WHERE ${ofMachine}`)
  await laterSql(tx, sql`DELETE FROM "notifyRows" WHERE ${ofMachine}`)
  await laterSql(
    tx,
    sql`UPDATE "historyIncidents" SET "endedAt" = greatest("beganAt", ${row.renewedAt}), "ending" = ${'unknown'}
      WHERE "endedAt" IS NULL AND ${ofMachine}`,
  )
  await laterSql(tx, sql`DELETE FROM "nodes" WHERE "node" = ${node}`)
  return true
}

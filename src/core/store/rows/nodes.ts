import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import { sql } from 'kysely'
import { mapPaced, pace } from '../../base/pace.ts'
import type { Fence, Fenced, KnownMonitors, Taken } from '../../watch/nodes/index.ts'
import type { StoredRow } from '../../watch/outbox/index.ts'
import type { StoredState } from '../../watch/states/index.ts'
import type { StoredNodes } from '../data.ts'
import { laterSql, storableText } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import { note } from './audit.ts'
import { fillKeys } from './node-keys.ts'
import { addNews } from './node-news.ts'
import { answerOf, isLive, memberOf, membersQuery, renewal, silentMs, withClock } from './node-rows.ts'
import { storeRows } from './outbox.ts'
import { incidentIn, type StoredIncident, storeStates } from './states.ts'

const [deflated, inflated] = [promisify(deflateRaw), promisify(inflateRaw)]
/** A configuration with more bytes than this is not read: nobody wrote one. */
const mostBytes = 256 * 2 ** 20
/** Of how many keys one query reads what is stored. */
const keysAtOnce = 1_000

/**
 * Nodes in the tables of the history of a PostgreSQL store. Their time is that of the database. No transaction holds more than
 * row locks: a write shares the stamps of its keys, and whoever takes over changes them. So a write is complete before the
 * stamps change, and is found by what is read after that; or it waits and finds that it has lost them. All take the locks of
 * stamps in the order of the keys. `audited`: another link to the same database, whose audit entries pass the gate.
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
  return {
    renew: async (request) => {
      const own = await opened()
      const answer = await own.write((tx) => laterSql(tx, renewal(request)))
      return answerOf(answer.rows())
    },
    list: async () => {
      const { rows } = await (await opened()).read((db) => membersQuery.execute(db))
      return rows.map(memberOf)
    },
    putConfiguration: async (digest, monitors) => {
      const [own, body] = [await opened(), await packed(monitors)]
      await own.write((tx) =>
        laterSql(
          tx,
          sql`WITH ${withClock} INSERT INTO "nodeConfigurations" ("digest", "putAt", "body")
            SELECT ${digest}, "now", ${body} FROM "clock"
            ON CONFLICT ("digest") DO UPDATE SET "putAt" = excluded."putAt", "body" = excluded."body"`,
        ),
      )
    },
    configurations: async (digests) => {
      const own = await opened()
      const { rows } = await own.read((db) =>
        sql<{ digest: string; body: Uint8Array }>`SELECT "digest", "body" FROM "nodeConfigurations"
          WHERE "digest" = ANY(${digests}::text[])`.execute(db),
      )
      const read = await Promise.all(
        rows.map(async ({ digest, body }) => {
          // The nodes with an unreadable configuration own nothing, and the others go on.
          const monitors = await unpacked(body).catch(() => undefined)
          return monitors ? [[digest, monitors] as const] : []
        }),
      )
      return new Map(read.flat())
    },
    takeOver: async (fence, choose, notices) => {
      const own = await opened()
      await fillKeys(own)
      const silent = await own.write(async (tx) => {
        const writer = await laterSql(tx, writerOf(fence))
        const members = await laterSql(tx, membersQuery)
        const stored = await sql<{ key: string }>`SELECT "key" FROM "nodeStamps"
          UNION SELECT "key" FROM "historyStates" WHERE "key" IS NOT NULL
          UNION SELECT "key" FROM "notifyRows" WHERE "key" IS NOT NULL`.execute(tx)
        if (!writer.rows()[0]?.isLive) return undefined
        const rows = members.rows().map(memberOf)
        const ofNews = notices.map(({ subject: { key } }) => key)
        const keys = choose(rows, [...new Set([...stored.rows.map(({ key }) => key), ...ofNews])])
        if (notices.length > 0) await takeNews(tx, notices, [...keys, ...ofNews])
        return { keys, before: await stamp(tx, fence, keys) }
      })
      if (!silent) return undefined
      return { keys: silent.keys, ...(await takenBy(own, silent.keys, silent.before())) }
    },
    writeStates: async (fence, number, batch) => {
      const { states, gone, incidents } = batch
      const keys = [
        ...states.map(({ row }) => row.key),
        ...gone.map(({ key }) => key),
        ...incidents.map(({ key }) => key),
      ]
      return await fenced(await opened(), { fence, number, keys }, (tx) => storeStates(tx, batch))
    },
    writeOutbox: async (fence, number, rows) => {
      const keys = rows.map(({ subject }) => subject.key)
      return await fenced(await opened(), { fence, number, keys }, (tx) => storeRows(tx, 'notifyRows', rows))
    },
    leave: async ({ node, epoch }) => {
      await (await opened()).write((tx) =>
        laterSql(
          tx,
          sql`WITH ${withClock} UPDATE "nodes" SET "leftAt" = "now" FROM "clock" WHERE "epoch" = ${epoch}
            AND "epoch" = (SELECT max("epoch") FROM "nodes" WHERE "node" = ${node})`,
        ),
      )
    },
    forget: async (node, actor) => {
      await fillKeys(await opened())
      return await audited.write(async (tx) => {
        const isForgotten = await forget(tx, node)
        if (isForgotten) await note(tx, now(), actor, { event: 'node.forgotten', target: node })
        return isForgotten
      })
    },
  }
}

type Writer = { readonly isLive: boolean; readonly writes: number }

/** The row of a node, if it is the latest of this name and has all writes that were acknowledged. */
const writerOf = ({ node, epoch, acknowledged = 0 }: Fence) =>
  sql<Writer>`WITH ${withClock} SELECT ${isLive} AS "isLive", "writes"
    FROM "nodes", "clock" WHERE "epoch" = ${epoch} AND "writes" >= ${acknowledged}
      AND "epoch" = (SELECT max("epoch") FROM "nodes" WHERE "node" = ${node})`

type Write = { readonly fence: Fence; readonly number: number; readonly keys: readonly string[] }

/**
 * Stores something if the row of the node is live and the node has the stamps of these keys, which nobody changes until the
 * transaction ends.
 */
function fenced(own: StoreLink, write: Write, store: (tx: Db) => Promise<void>): Promise<Fenced> {
  const { fence, number } = write
  const keys = [...new Set(write.keys)]
  return own.write(async (tx): Promise<Fenced> => {
    // Locked, so that a late write does not end after the one that follows it.
    const latest = await laterSql(tx, sql<Writer>`${writerOf(fence)} FOR NO KEY UPDATE OF "nodes"`)
    const { rows } = await sql<{ key: string }>`SELECT "key" FROM "nodeStamps"
      WHERE "key" = ANY(${keys}::text[]) AND "epoch" = ${fence.epoch} ORDER BY "key" FOR SHARE`.execute(tx)
    const [row] = latest.rows()
    // A write that is late: the store has a later one.
    if (!row?.isLive || number <= row.writes) return 'not live'
    const stamps = new Set(rows.map(({ key }) => key))
    const lost = keys.filter((key) => !stamps.has(storableText(key)))
    if (lost.length > 0) return { lost }
    await store(tx)
    await laterSql(tx, sql`UPDATE "nodes" SET "writes" = ${number} WHERE "epoch" = ${fence.epoch}`)
    return 'stored'
  })
}

/**
 * Stamps keys with the epoch of the node. Once the transaction has ended, the function that it returns knows for how long the
 * node that had a key before has been silent.
 */
async function stamp(tx: Db, { epoch }: Fence, keys: readonly string[]): Promise<() => ReadonlyMap<string, number>> {
  const unique = [...new Set(keys)]
  const stamps = await laterSql(
    tx,
    sql<{ key: string; epoch: number }>`SELECT "key", "epoch" FROM "nodeStamps"
      WHERE "key" = ANY(${unique}::text[]) ORDER BY "key" FOR UPDATE`,
  )
  const epochs = await laterSql(
    tx,
    sql<{ epoch: number; silentMs: number }>`WITH ${withClock}
      SELECT "epoch", ${silentMs} AS "silentMs" FROM "nodes", "clock"`,
  )
  await laterSql(
    tx,
    sql`INSERT INTO "nodeStamps" ("key", "epoch")
      SELECT "key", ${epoch}::bigint FROM unnest(${unique}::text[]) AS "key" ORDER BY "key" COLLATE "C"
      ON CONFLICT ("key") DO UPDATE SET "epoch" = excluded."epoch" WHERE "nodeStamps"."epoch" <> excluded."epoch"`,
  )
  return () => {
    const silentOf = new Map(epochs.rows().map((one) => [one.epoch, one.silentMs]))
    const entries = stamps.rows().flatMap((one): readonly (readonly [string, number])[] => {
      const silentMs = silentOf.get(Math.abs(one.epoch))
      return silentMs === undefined ? [] : [[one.key, silentMs]]
    })
    return new Map(entries)
  }
}

/**
 * The stored rows of these keys. They are read after the stamps are stored, and not in the same transaction: from then
 * on nobody else writes them, and others need not wait until all is read.
 */
async function takenBy(
  own: StoreLink,
  keys: readonly string[],
  silent: ReadonlyMap<string, number>,
): Promise<Omit<Taken, 'keys'>> {
  const [states, incidents, outbox]: [Taken['states'][number][], Taken['incidents'][number][], StoredRow[]] = [
    [],
    [],
    [],
  ]
  const breathe = pace()
  for (let at = 0; at < keys.length; at += keysAtOnce) {
    const some = sql`"key" = ANY(${keys.slice(at, at + keysAtOnce)}::text[])`
    const answers = await own.read((db) =>
      Promise.all([
        sql<{ body: string }>`SELECT "body" FROM "historyStates" WHERE ${some}`.execute(db),
        sql<StoredIncident>`SELECT "body", "endedAt", "ending" FROM "historyIncidents"
          WHERE "endedAt" IS NULL AND ${some}`.execute(db),
        sql<{ body: string }>`SELECT "body" FROM "notifyRows" WHERE ${some}`.execute(db),
      ]),
    )
    states.push(
      ...(await mapPaced(answers[0].rows, breathe, ({ body }) => {
        const state = JSON.parse(body) as StoredState
        return { ...state, silentMs: silent.get(storableText(state.row.key)) }
      })),
    )
    incidents.push(...(await mapPaced(answers[1].rows, breathe, incidentIn)))
    outbox.push(...(await mapPaced(answers[2].rows, breathe, ({ body }) => JSON.parse(body) as StoredRow)))
  }
  return { states, incidents, outbox }
}

/**
 * Adds what this node sent without the store. The owners of what has changed can no longer write it, and read it again: a
 * negative epoch is no node's, and still tells who had the key. `keys`: all whose stamps the transaction changes, so that it
 * locks them in their order.
 */
async function takeNews(tx: Db, news: readonly StoredRow[], keys: readonly string[]): Promise<void> {
  await sql`SELECT FROM "nodeStamps" WHERE "key" = ANY(${[...new Set(keys)]}::text[])
    ORDER BY "key" FOR UPDATE`.execute(tx)
  const changed = [...new Set(await addNews(tx, news))]
  await laterSql(tx, sql`UPDATE "nodeStamps" SET "epoch" = -abs("epoch") WHERE "key" = ANY(${changed}::text[])`)
}

const unstamp = (tx: Db, which: ReturnType<typeof sql>) =>
  laterSql(
    tx,
    sql`DELETE FROM "nodeStamps" WHERE "key" IN
      (SELECT "key" FROM "nodeStamps" WHERE ${which} ORDER BY "key" FOR UPDATE)`,
  )

/** Removes a node, and what is stored of its machine, whose open incidents end when it last watched. */
async function forget(tx: Db, node: string): Promise<boolean> {
  const { rows } = await sql<{ isLive: boolean; renewedAt: number }>`WITH ${withClock}
    SELECT ${isLive} AS "isLive", "renewedAt" FROM "nodes", "clock" WHERE "node" = ${node}
    ORDER BY "epoch" DESC LIMIT 1 FOR UPDATE OF "nodes"`.execute(tx)
  const [row] = rows
  if (!row || row.isLive) return false
  // Every key from `@node/` to `@node0`: 0 is the character after the slash.
  const ofMachine = sql`"key" >= ${`@${node}/`} AND "key" < ${`@${node}0`}`
  await unstamp(tx, ofMachine)
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

const packed = ({ groups, formerly }: KnownMonitors): Promise<Buffer> =>
  deflated(JSON.stringify({ groups: [...groups], formerly: [...formerly] }))

async function unpacked(body: Uint8Array): Promise<KnownMonitors> {
  const text = (await inflated(body, { maxOutputLength: mostBytes })).toString()
  const { groups, formerly } = JSON.parse(text) as { readonly [K in keyof KnownMonitors]: [string, string][] }
  return { groups: new Map(groups), formerly: new Map(formerly) }
}

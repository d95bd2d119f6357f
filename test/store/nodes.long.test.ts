import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Data, openData, type StoredNodes } from '../../src/core/store/index.ts'
import { machineKey } from '../../src/core/watch/nodes/index.ts'
import { distantProxy } from '../support/faults/distant-proxy.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { actor, faultOf, freshDatabase } from '../support/store/data-fixture.ts'
import {
  batchOf,
  clockedStore,
  compareWithModel,
  fenceOf,
  incidentOf,
  joined,
  nodesOf,
  outboxRowOf,
  renewed,
  requestOf,
  stateOf,
  subjectOf,
  taken,
} from '../support/store/nodes.ts'
import { endsByDeadline } from '../support/suite/deadline.ts'

let server: PostgresServer
let url = ''
const opened: Data[] = []
const open = async (store = url): Promise<StoredNodes> => {
  const data = await openData({ store, create: true })
  opened.push(data)
  return nodesOf(data)
}
beforeAll(async () => {
  server = await startPostgres(['max_connections=60'])
})
afterAll(async () => await server.remove())
beforeEach(async () => {
  url = await freshDatabase(server)
})
afterEach(async () => {
  for (const data of opened.splice(0)) await data.close()
})
const database = (): string => new URL(url).pathname.slice(1)
const messageOf = (key: string, message: string) => batchOf({ states: [stateOf(subjectOf(key), message)] })

describe('W4 races of nodes on one PostgreSQL store', () => {
  test.each(Array.from({ length: 12 }, (_, seed) => seed + 2))(
    'W4 it answers random operations as its model in memory does (seed %i)',
    async (seed) => {
      const store = await clockedStore(server)
      try {
        await compareWithModel(store, seed, 500)
      } finally {
        await store.close()
      }
    },
  )

  test('W4 a write beside a takeover is seen by it or refused, in 300 rounds', async () => {
    const [one, other] = [await open(), await open()]
    const keys = Array.from({ length: 5 }, (_, at) => `Sql/${at}`)
    let [finds, refusals] = [0, 0]
    // Milliseconds after the takeover, or before it: the time at which it decides, which is sought.
    let delay = 4
    await joined(other, 'beta')
    for (let round = 0; round < 300; round += 1) {
      const alpha = await taken(one, 'alpha')
      const { row: expected } = (await other.beat(requestOf('beta'))).leases.network
      const message = `round ${round}`
      const batch = batchOf({ states: keys.map((key) => stateOf(subjectOf(key), message)) })
      const take = { type: 'take', expected, epoch: alpha.epoch + 1 } as const
      const takeOver = async () => {
        const answer = await other.beat(requestOf('beta', { asks: { network: take } }))
        return { isTaken: answer.leases.network.isOk, stored: await other.stored() }
      }
      const [verdict, { isTaken, stored }] = await Promise.all([
        pause(Math.max(0, delay)).then(() => one.writeStates(fenceOf(alpha, 1), batch)),
        pause(Math.max(0, -delay)).then(takeOver),
      ])
      const messages = new Set(stored.states.map(({ state }) => state.message))
      if (verdict === 'stored') {
        // It was complete before: then the row is another one, and nobody has taken anything.
        expect(isTaken).toBe(false)
        expect([...messages]).toEqual([message])
        finds += 1
        delay += Math.random()
      } else {
        expect([verdict, isTaken]).toEqual([{ refused: ['network'] }, true])
        expect(messages).not.toContain(message)
        refusals += 1
        delay -= Math.random()
      }
    }
    // Otherwise they did not meet.
    expect(Math.min(finds, refusals)).toBeGreaterThan(20)
  }, 180_000)

  test('W4 of four nodes that take the lease at once, one gets it, and no beat of the others waits', async () => {
    const names = ['a', 'b', 'c', 'd']
    const members = await Promise.all(names.map(async (name) => ({ name, rows: await open() })))
    const winners = new Set<string>()
    for (const { name, rows } of members) await joined(rows, name)
    for (let round = 1; round <= 60; round += 1) {
      const answers = await Promise.all(
        members.map(async ({ name, rows }) => {
          const { row: expected } = (await rows.beat(requestOf(name))).leases.network
          const take = { type: 'take', expected, epoch: round } as const
          return { name, lease: (await rows.beat(requestOf(name, { asks: { network: take } }))).leases.network }
        }),
      )
      const epoch = Math.max(...answers.map(({ lease }) => lease.row?.epoch ?? 0))
      const holders = answers.filter(({ lease }) => lease.isOk).map(({ name }) => name)
      expect(holders.length).toBeGreaterThan(0)
      // Who took it from another one in this round has compared with the row of that one.
      expect(new Set(holders).size).toBe(holders.length)
      expect(epoch).toBe(round)
      for (const name of holders) winners.add(name)
    }
    expect(winners.size).toBeGreaterThan(1)
  })

  test('W4 a node that is frozen in a transaction holds nobody up for more than 2 s, and stores nothing', async () => {
    const rows = await open()
    const [frozen, beta] = [await taken(rows, 'frozen'), await joined(rows, 'beta')]
    const child = spawn(
      process.execPath,
      [
        fileURLToPath(new URL('../support/store/frozen-writer.ts', import.meta.url)),
        url,
        frozen.node,
        `${frozen.epoch}`,
        'Sql/orders',
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const exited = once(child, 'exit')
    try {
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      expect((await lines.next()).value).toBe('freezes')
      const locks = `SELECT 1 FROM pg_stat_activity WHERE datname = '${database()}' AND state = 'idle in transaction'`
      expect(await server.query(locks)).toHaveLength(1)
      // Renewals of others do not wait for it.
      await renewed(rows, beta, 'machine')
      expect(await server.query(locks)).toHaveLength(1)
      const takeOver = async () => {
        return await endsByDeadline(2_000, taken(rows, 'beta'), 3).catch((error: Error) => error)
      }
      const answers = [await takeOver()]
      if (answers[0] instanceof Error) answers.push(await takeOver())
      expect(answers.at(-1)).toMatchObject({ node: 'beta', epoch: frozen.epoch + 1 })
      expect((await rows.stored()).states).toEqual([])
      child.kill('SIGCONT')
      expect((await lines.next()).value).not.toBe('"stored"')
      expect((await rows.stored()).states).toEqual([])
    } finally {
      child.kill('SIGKILL')
      await exited
    }
  })
})

test('W4 forget removes what is stored of the machine of a node, also beside a write of it', async () => {
  const [rows, other] = [await open(), await open()]
  const key = machineKey('gone', 'Host/machine')
  const subject = subjectOf(key)
  const gone = await joined(rows, 'gone')
  await joined(rows, 'beta')
  const all = batchOf({ states: [stateOf(subject, 'one')], incidents: [incidentOf(subject, 'one')] })
  expect(await rows.writeStates(fenceOf(gone, 1, { shard: 'machine' }), all)).toBe('stored')
  expect(await rows.writeOutbox(fenceOf(gone, 2, { shard: 'machine' }), [outboxRowOf(subject, 'mail', 1)])).toBe(
    'stored',
  )
  expect(await rows.forget('gone', actor())).toBe(false)
  await rows.leave('gone', gone.process)
  const late = rows.writeStates(fenceOf(gone, 3, { shard: 'machine' }), all)
  expect(await Promise.all([late, other.forget('gone', actor())])).toEqual([{ refused: ['machine'] }, true])
  expect(await rows.forget('gone', actor())).toBe(false)
  expect(await rows.list()).toMatchObject([{ node: 'beta' }])
  expect(await rows.stored()).toMatchObject({ states: [], incidents: [], outbox: [] })
  const [incident] = await server.query('SELECT "ending", "endedAt" FROM "historyIncidents"', database())
  expect(incident).toMatchObject({ ending: 'unknown', endedAt: expect.anything() })
})

test('W4 W6 (simulated) the tables of nodes are added while a backup reads a store of the version before, and nobody waits long', async () => {
  await open().then((rows) => rows.list())
  for (const data of opened.splice(0)) await data.close()
  await server.query(
    `DROP TABLE "nodes", "nodeStamps", "nodeConfigurations";
      ALTER TABLE "historyStates" DROP COLUMN "key"; ALTER TABLE "historyIncidents" DROP COLUMN "key";
      ALTER TABLE "notifyRows" DROP COLUMN "key"; ALTER TABLE "drillRows" DROP COLUMN "key";
      UPDATE "historyMeta" SET "version" = 4;
      INSERT INTO "historyIncidents" ("id", "beganAt", "endedAt", "ending", "body")
        SELECT n::text, n, n + 1, 'recovered', repeat('x', 500) FROM generate_series(1, 100000) n`,
    database(),
  )
  const [backup, writer] = [await server.client(database()), await server.client(database())]
  await backup.query('BEGIN; SELECT count(*) FROM "historyStates"')
  const rows = await open()
  const fault = faultOf(rows.list())
  const body = JSON.stringify(stateOf(subjectOf('Sql/orders'), 'of the version before'))
  const insert = () =>
    writer.query(`INSERT INTO "historyStates" ("id", "body") VALUES ('x', $1) ON CONFLICT ("id") DO NOTHING`, [body])
  await during(fault, () => endsByDeadline(1_000, insert(), 2))
  expect((await fault).fault).toBe('Unavailable')
  await backup.query('ROLLBACK')
  const joining = joined(rows, 'alpha')
  await during(joining, () => endsByDeadline(1_000, insert(), 2))
  expect((await rows.stored()).states).toMatchObject([{ row: { key: 'Sql/orders' } }])
  await Promise.all([backup.end(), writer.end()])
})

/** Repeats `step` while `work` goes on. */
async function during(work: Promise<unknown>, step: () => Promise<unknown>): Promise<void> {
  let isOver = false
  const end = work.then(() => {
    isOver = true
  })
  while (!isOver) await step()
  await end
}

test('W4 a beat takes one round trip, and a write two', async () => {
  await using proxy = await distantProxy(server.port, 20)
  const far = new URL(url)
  far.port = `${proxy.port}`
  const rows = await open(far.href)
  const alpha = await taken(rows, 'alpha')
  /** The least of several: a connection that is made or checked costs more. */
  const tripsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const trips: number[] = []
    for (let n = 0; n < 8; n += 1) {
      proxy.trips()
      await work()
      trips.push(proxy.trips())
    }
    return Math.min(...trips)
  }
  expect(await tripsOf(() => renewed(rows, alpha))).toBe(1)
  let number = 0
  const write = () => {
    number += 1
    return rows.writeStates(fenceOf(alpha, number), messageOf('Sql/orders', `${number}`))
  }
  expect(await tripsOf(write)).toBe(2)
})

test('W4 10,000 monitors: written and read by the next holder within the time that a caller of the store waits', async () => {
  const [rows, other] = [await open(), await open()]
  const alpha = await taken(rows, 'alpha')
  const states = Array.from({ length: 10_000 }, (_, at) => stateOf(subjectOf(`Sql/postgres/${at}`), 'x'.repeat(200)))
  expect(await rows.writeStates(fenceOf(alpha, 1), batchOf({ states }))).toBe('stored')
  await taken(other, 'beta')
  expect((await other.stored()).states).toHaveLength(10_000)
  expect(await rows.writeStates(fenceOf(alpha, 2), batchOf({ states }))).toEqual({ refused: ['network'] })
})

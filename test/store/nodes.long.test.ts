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
  incidentOf,
  joined,
  nodesOf,
  outboxRowOf,
  requestOf,
  stateOf,
  subjectOf,
} from '../support/store/nodes.ts'
import { endsByDeadline } from '../support/suite/deadline.ts'
import { until } from '../support/suite/until.ts'

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

  test('W4 a write beside a takeover is seen by it or refused, in 500 rounds', async () => {
    const [one, other] = [await open(), await open()]
    const keys = Array.from({ length: 5 }, (_, at) => `Sql/${at}`)
    let [finds, refusals] = [0, 0]
    // Milliseconds after the takeover: the time at which it decides, which is sought.
    let delay = 4
    let [alpha, beta] = [await joined(one, 'alpha'), await joined(other, 'beta')]
    for (let round = 0; round < 500; round += 1) {
      // They stay live in between.
      if (round % 20 === 0) [alpha, beta] = [await joined(one, 'alpha'), await joined(other, 'beta')]
      await one.takeOver(alpha, () => keys, [])
      const message = `round ${round}`
      const batch = batchOf({ states: keys.map((key) => stateOf(subjectOf(key), message)) })
      const [verdict, taken] = await Promise.all([
        pause(delay).then(() => one.writeStates(alpha, round + 1, batch)),
        other.takeOver(beta, () => keys, []),
      ])
      const messages = new Set(taken?.states.map(({ state }) => state.message))
      if (verdict === 'stored') {
        expect([...messages]).toEqual([message])
        expect(taken?.states).toHaveLength(keys.length)
        finds += 1
        delay += Math.random()
      } else {
        expect(verdict).toEqual({ lost: keys })
        expect(messages).not.toContain(message)
        refusals += 1
        delay = Math.max(0, delay - Math.random())
      }
    }
    // Otherwise they did not meet.
    expect(Math.min(finds, refusals)).toBeGreaterThan(20)
  }, 180_000)

  test('W4 of two nodes that take over the same monitors at once, one has all of them', async () => {
    const [one, other] = [await open(), await open()]
    const winners = new Set<string>()
    for (let round = 0; round < 100; round += 1) {
      const [alpha, beta] = [await joined(one, 'alpha'), await joined(other, 'beta')]
      // Some of them have stamps, and the others get their first.
      const keys = Array.from({ length: 40 }, (_, at) => `Sql/${round + (at % 2 ? at : -at)}`)
      await Promise.all([one.takeOver(alpha, () => keys, []), other.takeOver(beta, () => keys.toReversed(), [])])
      const batch = batchOf({ states: keys.map((key) => stateOf(subjectOf(key), `${round}`)) })
      const verdicts = await Promise.all([
        one.writeStates(alpha, round + 1, batch),
        other.writeStates(beta, round + 1, batch),
      ])
      expect(verdicts).toContain('stored')
      const loser = verdicts.find((verdict) => typeof verdict === 'object')
      expect(loser?.lost.toSorted()).toEqual([...new Set(keys)].toSorted())
      winners.add(verdicts[0] === 'stored' ? 'alpha' : 'beta')
    }
    expect([...winners].toSorted()).toEqual(['alpha', 'beta'])
  })

  test('W4 four nodes that renew, take over and write at once neither deadlock nor lose a write', async () => {
    const names = ['a', 'b', 'c', 'd']
    const keys = Array.from({ length: 200 }, (_, at) => `Sql/${at}`)
    const acknowledged = new Map<string, string>()
    const members = await Promise.all(names.map(async (name) => ({ name, rows: await open() })))
    await Promise.all(
      members.map(async ({ name, rows }, place) => {
        const fence = await joined(rows, name)
        for (let round = 1; round <= 25; round += 1) {
          const some = keys.filter((_, at) => (at + round) % names.length !== place)
          await rows.takeOver(fence, () => some, [])
          const message = `${name} ${round}`
          const batch = batchOf({ states: some.map((key) => stateOf(subjectOf(key), message)) })
          const verdict = await rows.writeStates(fence, round, batch)
          if (verdict === 'stored') acknowledged.set(message, name)
          expect(await rows.renew(requestOf(name, { claims: false, epoch: fence.epoch }))).toMatchObject({
            what: 'renewed',
            epoch: fence.epoch,
          })
        }
      }),
    )
    const last = await joined(members[0]?.rows ?? (await open()), 'z')
    const taken = await (await open()).takeOver(last, () => keys, [])
    expect(taken?.states).toHaveLength(keys.length)
    for (const { state } of taken?.states ?? []) expect([...acknowledged.keys()]).toContain(state.message)
  })

  test('W4 a node that is frozen in a transaction holds nobody up for more than 2 s, and stores nothing', async () => {
    const rows = await open()
    const [frozen, beta] = [await joined(rows, 'frozen'), await joined(rows, 'beta')]
    await rows.takeOver(frozen, () => ['Sql/orders'], [])
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
      await rows.renew(requestOf('beta', { claims: false, epoch: beta.epoch }))
      expect(await server.query(locks)).toHaveLength(1)
      const taken = async () => {
        const answer = rows.takeOver(beta, () => ['Sql/orders'], [])
        return await endsByDeadline(2_000, answer, 3).catch((error: Error) => error)
      }
      const answers = [await taken()]
      if (answers[0] instanceof Error) answers.push(await taken())
      expect(answers.at(-1)).toMatchObject({ keys: ['Sql/orders'], states: [] })
      child.kill('SIGCONT')
      expect((await lines.next()).value).not.toBe('"stored"')
      expect(await rows.takeOver(beta, () => ['Sql/orders'], [])).toMatchObject({ states: [] })
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
  const beta = await joined(rows, 'beta')
  await rows.takeOver(gone, () => [key, 'Sql/orders'], [])
  const all = batchOf({ states: [stateOf(subject, 'one')], incidents: [incidentOf(subject, 'one')] })
  expect(await rows.writeStates(gone, 1, all)).toBe('stored')
  expect(await rows.writeOutbox(gone, 2, [outboxRowOf(subject, 'mail', 1)])).toBe('stored')
  expect(await rows.forget('gone', actor())).toBe(false)
  await rows.leave(gone)
  const [verdict, removed] = await Promise.all([rows.writeStates(gone, 3, all), other.forget('gone', actor())])
  expect([verdict, removed]).toEqual(['not live', true])
  expect(await rows.forget('gone', actor())).toBe(false)
  expect(await rows.list()).toMatchObject([{ node: 'beta' }])
  expect(await rows.takeOver(beta, (_, stored) => stored, [])).toEqual({
    keys: ['Sql/orders'],
    states: [],
    incidents: [],
    outbox: [],
  })
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
  expect(await rows.takeOver(await joining, (_, stored) => stored, [])).toMatchObject({ keys: ['Sql/orders'] })
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

test('W4 a renewal takes one round trip, a write two and a takeover four', async () => {
  await using proxy = await distantProxy(server.port, 20)
  const far = new URL(url)
  far.port = `${proxy.port}`
  const rows = await open(far.href)
  const fence = await joined(rows, 'alpha')
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
  await until(async () => (await rows.list()).length === 1)
  const request = requestOf('alpha', { claims: false, epoch: fence.epoch })
  expect(await tripsOf(() => rows.renew(request))).toBe(1)
  expect(await tripsOf(() => rows.takeOver(fence, () => ['Sql/orders'], []))).toBe(4)
  let number = 0
  const write = () => {
    number += 1
    return rows.writeStates(fence, number, messageOf('Sql/orders', `${number}`))
  }
  expect(await tripsOf(write)).toBe(2)
})

test('W4 10,000 monitors: taken over, renewed and written within the time that a caller of the store waits', async () => {
  const rows = await open()
  const fence = await joined(rows, 'alpha')
  const keys = Array.from({ length: 10_000 }, (_, at) => `Sql/postgres/orders-${at}`)
  const figures: Record<string, number> = {}
  const timed = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const since = performance.now()
    const result = await work()
    figures[name] = Math.round(performance.now() - since)
    return result
  }
  expect(
    (await timed('takes over 10,000 without states', () => rows.takeOver(fence, () => keys, [])))?.keys,
  ).toHaveLength(10_000)
  const states = keys.map((key) => stateOf(subjectOf(key), 'x'.repeat(200)))
  expect(await timed('writes 10,000 states', () => rows.writeStates(fence, 1, batchOf({ states })))).toBe('stored')
  expect(await timed('writes 1 state', () => rows.writeStates(fence, 2, messageOf('Sql/postgres/orders-7', 'y')))).toBe(
    'stored',
  )
  const request = requestOf('alpha', { claims: false, epoch: fence.epoch })
  expect(await timed('renews', () => rows.renew(request))).toMatchObject({ stamped: 10_000 })
  for (let n = 0; n < 10; n += 1) await timed('renews again', () => rows.renew(request))
  const other = await open()
  const beta = await joined(other, 'beta')
  const taken = await timed('another takes over 10,000 with states', () => other.takeOver(beta, () => keys, []))
  expect(taken?.states).toHaveLength(10_000)
  expect(await rows.renew(request)).toMatchObject({ stamped: 0 })
  expect(await timed('the first is refused', () => rows.writeStates(fence, 3, batchOf({ states })))).toMatchObject({
    lost: expect.anything(),
  })
  process.stdout.write(
    `${Object.entries(figures)
      .map(([name, ms]) => `${name}: ${ms} ms`)
      .join(', ')}\n`,
  )
})

import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { openData } from '../../src/core/store/index.ts'
import { handOverWrites, nodeVerdicts, reportedOutMs } from '../../src/core/watch/nodes/index.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import {
  answeringNodesOf,
  batchOf,
  type ClockedStore,
  clockedStore,
  compareWithModel,
  fenceOf,
  handedOver,
  incidentOf,
  joined,
  outboxRowOf,
  renewed,
  requestOf,
  stateOf,
  subjectOf,
  taken,
} from '../support/store/nodes.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const day = 86_400_000
const noon = Date.UTC(2026, 5, 1, 12)
const orders = subjectOf('Sql/orders')

let server: PostgresServer
let store: ClockedStore
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(async () => await server.remove())
beforeEach(async () => {
  store = await clockedStore(server)
  await store.setClock(noon)
})
afterEach(async () => await store.close())

test('W4 the store answers random operations of three nodes as its model in memory does', async () => {
  const counts = await compareWithModel(store, 5, 250)
  expect([...counts.keys()].toSorted()).toEqual([
    'forgotten',
    'handed over',
    'leave false',
    'leave true',
    'not forgotten',
    'not handed over',
    'outbox refused',
    'outbox stored',
    'read true',
    'renew false',
    'renew true',
    'states refused',
    'states stored',
    'take false',
    'take true',
  ])
})

test.each([
  ['no JSON', `"facts" = 'garbage'`],
  ['JSON of another form', `"facts" = 'null'`],
  ['a member of another type', `"facts" = '{"version":"1.0.0","startedAt":"yesterday"}'`],
  [
    'cross-checks of another form',
    `"facts" = '{"version":"1.0.0","startedAt":1,"crossChecks":{"questions":[null],"answers":[]}}'`,
  ],
  ['more than anybody writes', `"facts" = '{"version":"' || repeat('x', 2000000) || '","startedAt":1}'`],
])('W4 one unreadable row of a node disturbs no other node: %s', async (_, change) => {
  const nodes = answeringNodesOf(store.data)
  const alpha = await taken(nodes, 'alpha')
  await joined(nodes, 'alpha')
  await joined(nodes, 'broken')
  await store.admin.query(`UPDATE "nodes" SET ${change} WHERE "node" = 'broken'`)
  const again = await renewed(nodes, alpha)
  expect(again.leases.network.isOk).toBe(true)
  const listed = await nodes.list()
  for (const rows of [again.rows, listed]) {
    expect(rows.map(({ node, isLive, facts }) => [node, isLive, facts === undefined])).toEqual([
      ['alpha', true, false],
      ['broken', true, true],
    ])
  }
  expect(nodeVerdicts(listed, 0, reportedOutMs).map(({ item, level }) => [item, level])).toEqual([
    ['alpha', 'ok'],
    ['broken', 'warning'],
  ])
  // Its own next renewal mends it.
  await joined(nodes, 'broken')
  expect((await nodes.list()).map(({ facts }) => facts?.version)).toEqual(['1.0.0', '1.0.0'])
})

test.each(['-9223372036854775808', '9223372036854775807'])(
  'W4 a row of a node that was renewed at %s disturbs no other node',
  async (at) => {
    const nodes = answeringNodesOf(store.data)
    const alpha = await joined(nodes, 'alpha')
    await joined(nodes, 'broken')
    await store.admin.query(`UPDATE "nodes" SET "renewedAt" = ${at} WHERE "node" = 'broken'`)
    await store.admin.query(`UPDATE "leases" SET "renewedAt" = ${at} WHERE "shard" = '@alpha'`)
    expect((await nodes.list()).map(({ node, isLive }) => [node, isLive])).toEqual([
      ['alpha', true],
      ['broken', false],
    ])
    expect((await renewed(nodes, alpha, 'machine')).leases.machine.isOk).toBe(true)
  },
)

test('W4 all nodes of a store read the same key, which the first one makes, and each store has another', async () => {
  const [one, other] = [await answeringNodesOf(store.data), await answeringNodesOf(store.data)]
  const keys = await Promise.all([one.key(), other.key(), one.key()])
  expect(keys[0]).toMatch(/^[0-9a-f]{64}$/)
  expect(new Set(keys).size).toBe(1)
  const second = await clockedStore(server)
  expect(await (await answeringNodesOf(second.data)).key()).not.toBe(keys[0])
  await second.close()
})

test('W4 an embedded store has no nodes', async () => {
  const folder = temporaryFolder()
  const data = await openData({ store: join(folder, 'svc.db'), create: true })
  expect(data.nodes).toBeUndefined()
  await data.close()
})

test('W4 W6 (simulated) a node takes over what a server of the version before has stored, also after the upgrade', async () => {
  const nodes = answeringNodesOf(store.data)
  // As that version stores them: without the key beside the body.
  const storeAsBefore = async (count: number, from = 0): Promise<void> => {
    const all = Array.from({ length: count }, (_, at) => `${from + at}`)
    const bodies = (bodyOf: (row: ReturnType<typeof subjectOf>, id: string) => unknown): readonly unknown[] => [
      all,
      all.map((id) => JSON.stringify(bodyOf(subjectOf(`Sql/${id}`), id))),
    ]
    const rows = 'unnest($1::text[], $2::text[]) AS "rows" ("id", "body")'
    await store.admin.query(`INSERT INTO "historyStates" ("id", "body") SELECT * FROM ${rows}`, [
      ...bodies((row) => stateOf(row, 'as before')),
    ])
    await store.admin.query(
      `INSERT INTO "historyIncidents" ("id", "beganAt", "body") SELECT "id", 1, "body" FROM ${rows}`,
      [...bodies((row, id) => incidentOf(row, id))],
    )
    await store.admin.query(`INSERT INTO "notifyRows" ("id", "body") SELECT * FROM ${rows}`, [
      ...bodies((row) => outboxRowOf(row, 'mail', 1)),
    ])
  }
  await taken(nodes, 'alpha')
  await nodes.stored()
  await storeAsBefore(501)
  const { states, incidents, outbox } = await nodes.stored()
  expect([states.length, incidents.length, outbox.length]).toEqual([501, 501, 501])
  expect(states[0]?.row.key).toMatch(/^Sql\/\d+$/)
})

test('W4 W6 (simulated) while a node holds the lease, a server that stores the states of all monitors as a whole does not', async () => {
  const nodes = answeringNodesOf(store.data)
  const earlier = await openData({ store: store.url, create: false, now: Date.now })
  const isStored = (at: number, claims: 'now' | 'when free') =>
    earlier.states.write(batchOf({ states: [stateOf(orders, `${at}`)], isWhole: true, claims }))
  const start = Date.now()
  await store.setClock(start)
  // A server of that kind that is running stores states, until the first node starts.
  expect(await isStored(1, 'now')).toBe(true)
  const alpha = await taken(nodes, 'alpha')
  // Who takes the lease reads when that server was last there.
  expect((await nodes.stored()).ageMs).toBeLessThan(60_000)
  await renewed(nodes, alpha)
  expect(await earlier.states.write(batchOf({ states: [stateOf(orders, '2')] }))).toBe(false)
  expect((await nodes.stored()).states).toMatchObject([{ state: { message: '1' } }])
  // It waits until nobody else stores states, while renewals say that somebody does.
  for (const at of [0, 6_000, 9_000, 15_000]) {
    await store.setClock(start + at)
    await renewed(nodes, alpha)
  }
  expect(await isStored(3, 'when free')).toBe(false)
  await earlier.close()
})

test('W4 W6 (simulated) who takes the lease voids the stamps by which nodes of a version before share monitors', async () => {
  const nodes = answeringNodesOf(store.data)
  await nodes.list()
  await store.admin.query(`INSERT INTO "nodeStamps" VALUES ('Sql/orders', 7), ('Sql/void', -7)`)
  await joined(nodes, 'alpha')
  const stamps = async () => (await store.admin.query('SELECT "epoch"::int FROM "nodeStamps" ORDER BY "key"')).rows
  expect(await stamps()).toEqual([{ epoch: 7 }, { epoch: -7 }])
  await taken(nodes, 'alpha')
  expect(await stamps()).toEqual([{ epoch: -7 }, { epoch: -7 }])
})

test('W4 rows of nodes that have been away for a day are deleted', async () => {
  const nodes = answeringNodesOf(store.data)
  await joined(nodes, 'alpha')
  await store.setClock(noon + day - 1)
  const beta = await joined(nodes, 'beta')
  expect(await nodes.list()).toMatchObject([{ node: 'alpha', silentMs: day - 1 }, { node: 'beta' }])
  await store.setClock(noon + day + 1)
  await renewed(nodes, beta, 'machine')
  expect(await nodes.list()).toMatchObject([{ node: 'beta' }])
})

test('W4 a late renewal does not bring back a node that has left, and a late write of it stores nothing', async () => {
  const nodes = answeringNodesOf(store.data)
  const [alpha, machine] = [await taken(nodes, 'alpha'), await joined(nodes, 'alpha')]
  expect(await nodes.holder()).toBe('alpha')
  await nodes.leave('alpha', alpha.process)
  expect((await renewed(nodes, alpha)).leases.network).toMatchObject({ isOk: false, row: { hasLeft: true } })
  expect((await renewed(nodes, machine, 'machine')).leases.machine.isOk).toBe(false)
  expect(await nodes.writeOutbox(fenceOf(alpha, 1), [])).toEqual({ refused: ['network'] })
  expect(await nodes.list()).toMatchObject([{ isLive: false, hasLeft: true }])
  expect(await nodes.holder()).toBeUndefined()
})

test('W4 a process that has left takes no lease, whenever the store gets its question', async () => {
  const nodes = answeringNodesOf(store.data)
  const { process } = await joined(nodes, 'alpha')
  const { leases } = await nodes.beat(requestOf('alpha'))
  await nodes.leave('alpha', process)
  for (const shard of ['network', 'machine'] as const) {
    const ask = { type: 'take', expected: leases[shard].row, epoch: 2 } as const
    const answer = await nodes.beat(requestOf('alpha', { asks: { [shard]: ask } }))
    expect(answer.leases[shard].isOk).toBe(false)
  }
})

test('W4 a store that has gone back to before an acknowledged write refuses the next one, and so does one with a later write', async () => {
  const nodes = answeringNodesOf(store.data)
  const alpha = await taken(nodes, 'alpha')
  expect(await nodes.writeOutbox(fenceOf(alpha, 2, { acknowledged: 0 }), [])).toBe('stored')
  expect(await nodes.writeOutbox(fenceOf(alpha, 2, { acknowledged: 0 }), [])).toEqual({ refused: ['network'] })
  expect(await nodes.writeOutbox(fenceOf(alpha, 4, { acknowledged: 3 }), [])).toEqual({ refused: ['network'] })
  const [first, next] = [fenceOf(alpha, 3), fenceOf({ ...alpha, epoch: alpha.epoch - 1 }, 3)]
  expect(await nodes.writeOutbox(next, [])).toEqual({ refused: ['network'] })
  expect(await nodes.writeOutbox(first, [])).toBe('stored')
})

test('W4 the holder notices by the number of writes what another node hands over', async () => {
  const nodes = answeringNodesOf(store.data)
  const alpha = await taken(nodes, 'alpha')
  expect(await handedOver(nodes, await joined(nodes, 'beta'), 1, [outboxRowOf(orders, 'mail', 1)])).toBe(true)
  expect(await nodes.writeOutbox(fenceOf(alpha, 1), [])).toEqual({ refused: ['network'] })
  expect((await renewed(nodes, alpha)).leases.network.row?.writes).toBe(handOverWrites)
  expect((await nodes.stored()).outbox).toMatchObject([
    { subject: { key: orders.key }, row: { last: { isNews: true } } },
  ])
})

test('W4 a process knows by the number of its last hand-over whether a failover has taken it, and a late one changes nothing', async () => {
  const nodes = answeringNodesOf(store.data)
  const alpha = await taken(nodes, 'alpha')
  const rows = [outboxRowOf(orders, 'mail', 1)]
  // It has no row yet.
  expect(await handedOver(nodes, { ...alpha, node: 'beta', process: 'process of beta' }, 1, rows)).toBe(false)
  const beta = await joined(nodes, 'beta')
  expect((await renewed(nodes, beta, 'machine')).handedOver).toBe(0)
  expect(await handedOver(nodes, beta, 2, rows)).toBe(true)
  const { writes } = (await renewed(nodes, alpha)).leases.network.row ?? {}
  expect(await handedOver(nodes, beta, 1, rows)).toBe(false)
  expect((await renewed(nodes, beta, 'machine')).handedOver).toBe(2)
  expect((await renewed(nodes, alpha)).leases.network.row?.writes).toBe(writes)
})

test('W4 W23 an end that another node has sent is stored as told when it hands that over, for the holder to read', async () => {
  const nodes = answeringNodesOf(store.data)
  const alpha = await taken(nodes, 'alpha')
  const one = outboxRowOf(orders, 'mail', 1)
  const end = { what: 'end', incident: 'i', level: 'failed', beganAt: 1, endedAt: 2, text: 'fine' } as const
  await nodes.writeOutbox(fenceOf(alpha, 1), [{ ...one, row: { ends: [end] } }])
  const { last } = one.row ?? {}
  const over = { ...one, row: { ends: [], ...(last ? { attempt: { ...last, isOver: true as const } } : {}) } }
  await handedOver(nodes, await joined(nodes, 'beta'), 1, [over])
  expect((await nodes.stored()).outbox).toMatchObject([
    { receiver: 'mail', row: { last: { incident: 'i', isOver: true, isNews: true }, ends: [] } },
  ])
})

test('W4 a row from the future is not live: the clock of the database was set back', async () => {
  const nodes = answeringNodesOf(store.data)
  const alpha = await joined(nodes, 'alpha')
  await store.setClock(noon - 3_600_000)
  expect(await nodes.list()).toMatchObject([{ isLive: false, silentMs: 0 }])
  await renewed(nodes, alpha, 'machine')
  expect(await nodes.list()).toMatchObject([{ isLive: true }])
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { openData } from '../../src/core/store/index.ts'
import { nodeVerdicts, reportedOutMs } from '../../src/core/watch/nodes/index.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import {
  answeringNodesOf,
  batchOf,
  type ClockedStore,
  clockedStore,
  compareWithModel,
  incidentOf,
  joined,
  monitorsOf,
  outboxRowOf,
  renewedBy,
  requestOf,
  stateOf,
  subjectOf,
} from '../support/store/nodes.ts'

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
  const counts = await compareWithModel(store, 2, 250)
  expect([...counts.keys()].toSorted()).toEqual([
    'forgotten',
    'lost',
    'not forgotten',
    'not live',
    'not taken over',
    'outbox lost',
    'outbox not live',
    'outbox stored',
    'renewed',
    'stored',
    'taken',
    'taken over',
    'taken over with other incidents',
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
  const rowsBefore = monitorsOf(['Sql/orders'])
  await nodes.putConfiguration('rowsBefore', rowsBefore)
  const alpha = await renewedBy(nodes, requestOf('alpha', { config: 'rowsBefore' }))
  await joined(nodes, 'broken')
  await store.admin.query(`UPDATE "nodes" SET ${change} WHERE "node" = 'broken'`)
  const again = await nodes.renew(requestOf('alpha', { config: 'rowsBefore', epoch: alpha.epoch, claims: false }))
  expect(again.what).toBe('renewed')
  const listed = await nodes.list()
  for (const rows of [again.rows, listed]) {
    expect(rows.map(({ node, isLive, facts }) => [node, isLive, facts === undefined])).toEqual([
      ['alpha', true, false],
      ['broken', true, true],
    ])
  }
  expect(await nodes.takeOver(alpha, () => ['Sql/orders'], [])).toMatchObject({ keys: ['Sql/orders'] })
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
    expect((await nodes.list()).map(({ node, isLive }) => [node, isLive])).toEqual([
      ['alpha', true],
      ['broken', false],
    ])
    expect((await nodes.renew(requestOf('alpha', { epoch: alpha.epoch, claims: false }))).what).toBe('renewed')
    expect(await nodes.takeOver(alpha, () => ['Sql/orders'], [])).toMatchObject({ keys: ['Sql/orders'] })
  },
)

test('W4 an unreadable configuration leaves those of the other nodes', async () => {
  const nodes = answeringNodesOf(store.data)
  for (const digest of ['good', 'bad']) await nodes.putConfiguration(digest, monitorsOf(['Sql/orders']))
  await store.admin.query(`UPDATE "nodeConfigurations" SET "body" = '\\x00ff' WHERE "digest" = 'bad'`)
  expect([...(await nodes.configurations(['good', 'bad'])).keys()]).toEqual(['good'])
})

test('W4 an embedded store has no nodes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-nodes-'))
  const data = await openData({ store: join(folder, 'svc.db'), create: true })
  expect(data.nodes).toBeUndefined()
  await data.close()
  rmSync(folder, { recursive: true, force: true })
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
  const fence = await joined(nodes, 'alpha')
  await storeAsBefore(501)
  const first = await nodes.takeOver(fence, (_, stored) => stored, [])
  expect([first?.keys.length, first?.states.length, first?.incidents.length, first?.outbox.length]).toEqual([
    501, 501, 501, 501,
  ])
  await storeAsBefore(1, 501)
  const second = await nodes.takeOver(fence, (_, stored) => stored.filter((key) => key === 'Sql/501'), [])
  expect(second).toMatchObject({
    states: [{ row: { key: 'Sql/501' } }],
    incidents: [{ key: 'Sql/501' }],
    outbox: [{ subject: { key: 'Sql/501' } }],
  })
})

test('W4 W6 (simulated) while a node renews its row, a server that stores the states of all monitors as a whole does not', async () => {
  const nodes = answeringNodesOf(store.data)
  const earlier = await openData({ store: store.url, create: false, now: Date.now })
  const isStored = (at: number, claims: 'now' | 'when free') => {
    const own = earlier.states.write(batchOf({ states: [stateOf(orders, `${at}`)], isWhole: true, claims }))
    return own
  }
  const start = Date.now()
  await store.setClock(start)
  // An earlier version that is running stores states, until the first node starts.
  expect(await isStored(1, 'now')).toBe(true)
  const fence = await joined(nodes, 'alpha')
  expect(await earlier.states.write(batchOf({ states: [stateOf(orders, '2')] }))).toBe(false)
  const taken = await nodes.takeOver(fence, (_, stored) => stored, [])
  expect(taken?.states).toMatchObject([{ state: { message: '1' } }])
  // It waits until nobody else stores states, while renewals say that somebody does.
  for (const at of [0, 6_000, 9_000, 15_000]) {
    await store.setClock(start + at)
    await nodes.renew(requestOf('alpha', { claims: false, epoch: fence.epoch }))
  }
  expect(await isStored(3, 'when free')).toBe(false)
  await earlier.close()
})

test('W4 W6 (simulated) when such a server has replaced what nodes stored, each of them detects that its writes are lost', async () => {
  const nodes = answeringNodesOf(store.data)
  const [alpha, beta] = [await joined(nodes, 'alpha'), await joined(nodes, 'beta')]
  await nodes.takeOver(alpha, () => ['Sql/orders'], [])
  const mine = batchOf({ states: [stateOf(orders, 'mine')], incidents: [incidentOf(orders, 'one')] })
  expect(await nodes.writeStates(alpha, 1, mine)).toBe('stored')
  expect(await nodes.writeOutbox(beta, 1, [])).toBe('stored')
  const renewed = async ({ node, epoch }: typeof alpha) => await nodes.renew(requestOf(node, { claims: false, epoch }))
  expect(await renewed(alpha)).toMatchObject({ epoch: alpha.epoch, writes: 1, stamped: 1 })
  // It starts beside them and replaces all that is stored.
  expect(await store.data.states.write(batchOf({ isWhole: true, claims: 'now' }))).toBe(true)
  expect(await nodes.takeOver(alpha, () => ['Sql/orders'], [])).toMatchObject({ states: [], incidents: [] })
  for (const one of [alpha, beta, beta, alpha]) {
    expect(await renewed(one)).toMatchObject({ epoch: one.epoch, writes: 0 })
  }
  expect(await nodes.writeStates(alpha, 2, mine)).toBe('stored')
  expect(await renewed(alpha)).toMatchObject({ writes: 2, stamped: 1 })
  expect(await renewed(beta)).toMatchObject({ writes: 1 })
  expect(await nodes.takeOver(alpha, () => ['Sql/orders'], [])).toMatchObject({
    states: [{ state: { message: 'mine' } }],
    incidents: [{ id: 'one' }],
  })
})

test('W4 rows of nodes that have been away for a day are deleted, and configurations that no row names', async () => {
  const nodes = answeringNodesOf(store.data)
  await nodes.putConfiguration('old', monitorsOf(['Sql/orders']))
  await nodes.renew(requestOf('alpha', { config: 'old' }))
  await store.setClock(noon + day - 1)
  await nodes.putConfiguration('new', monitorsOf(['Sql/orders']))
  await nodes.renew(requestOf('beta', { config: 'new' }))
  expect(await nodes.list()).toMatchObject([{ node: 'alpha', silentMs: day - 1 }, { node: 'beta' }])
  await store.setClock(noon + day + 1)
  // The first renewal deletes the row, and the next one what it named.
  for (let n = 0; n < 2; n += 1) await nodes.renew(requestOf('beta', { config: 'new' }))
  expect(await nodes.list()).toMatchObject([{ node: 'beta' }])
  expect([...(await nodes.configurations(['old', 'new'])).keys()]).toEqual(['new'])
})

test('W4 a late renewal does not end the epoch of its sender, and does not bring back a node that has left', async () => {
  const nodes = answeringNodesOf(store.data)
  const before = await joined(nodes, 'alpha')
  await store.setClock(noon + 10_000)
  const late = requestOf('alpha', { claims: false, epoch: before.epoch })
  const { epoch } = await renewedBy(nodes, late)
  expect(epoch).toBeGreaterThan(before.epoch)
  await nodes.takeOver({ node: 'alpha', epoch }, () => ['Sql/orders'], [])
  expect(await nodes.writeOutbox({ node: 'alpha', epoch }, 1, [])).toBe('stored')
  // It was held up on its way, or the answer to an earlier one was lost. So was the first one of the process.
  await store.setClock(noon + 19_999)
  for (const one of [late, requestOf('alpha')])
    expect(await nodes.renew(one)).toMatchObject({ what: 'renewed', epoch, writes: 1, stamped: 1 })
  await store.setClock(noon + 29_998)
  expect(await nodes.writeOutbox({ node: 'alpha', epoch }, 2, [])).toBe('stored')
  // A process that has had this epoch and has lost it since begins another one.
  const lost = requestOf('alpha', { claims: false, epoch: undefined, latestEpoch: epoch })
  const next = await renewedBy(nodes, lost)
  expect(next.epoch).toBeGreaterThan(epoch)
  await nodes.leave(next)
  for (const one of [late, requestOf('alpha'), requestOf('alpha', { claims: false, epoch: next.epoch })])
    expect(await nodes.renew(one)).toMatchObject({ what: 'taken' })
  expect(await nodes.list()).toMatchObject([{ epoch: next.epoch, isLive: false, hasLeft: true }])
  // Another process of this name begins.
  expect((await renewedBy(nodes, requestOf('alpha', { process: 'another' }))).epoch).toBeGreaterThan(next.epoch)
})

test('W4 a row from the future is not live: the clock of the database was set back', async () => {
  const nodes = answeringNodesOf(store.data)
  const alpha = await joined(nodes, 'alpha')
  await store.setClock(noon - 3_600_000)
  expect(await nodes.list()).toMatchObject([{ isLive: false, silentMs: 0 }])
  expect(await nodes.writeOutbox(alpha, 1, [])).toBe('not live')
  expect((await joined(nodes, 'alpha')).epoch).toBeGreaterThan(alpha.epoch)
  expect(await nodes.list()).toMatchObject([{ isLive: true }])
})

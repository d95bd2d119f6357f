import { expect, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { nodesOperations } from '../../../src/core/service/nodes/nodes-answer.ts'
import type { Data } from '../../../src/core/store/index.ts'
import { faultOf } from '../../support/store/data-fixture.ts'
import { monitorsOf } from '../../support/store/nodes.ts'
import { nodesInMemory } from '../../support/store/nodes-in-memory.ts'

const start = 1_700_000_000_000
const actor = { who: 'local:test', correlationId: 'nodes' }
const keys = ['Sql/tcp/a', 'Sql/tcp/b', 'App/http/c']

/** A store that has the configuration of the nodes. */
function storeInMemory(beforeForgetting?: () => void) {
  const { operations, ...memory } = nodesInMemory(start, 'a', beforeForgetting)
  memory.table.putConfiguration(memory.request('a').config, monitorsOf(keys))
  return { ...memory, ...operations }
}

test('W4 an answer has each node with what it says of itself, and which one answers', async () => {
  const { table, clock, request, getNodes } = storeInMemory()
  table.renew(request('b', { isIsolated: true }), clock.at)
  table.renew(request('a'), clock.at + 4_000)
  clock.at += 5_000
  const { Nodes, ...rest } = await getNodes()
  expect(Nodes).toEqual([
    {
      ...{ Name: 'a', State: 'Live', Isolated: false, Monitors: 3, Configuration: '01234567', Differs: false },
      ...{ Version: '1.2.3', Url: 'https://a.example.com', Current: true },
      ...{ SeenAt: new Date(start + 4_000), StartedAt: new Date(start - 60_000) },
    },
    expect.objectContaining({ Name: 'b', State: 'Live', Isolated: true, Monitors: 0, Current: false }),
  ])
  expect(rest).toEqual({ Unowned: [], MoreUnowned: undefined, OnIsolated: [], MoreOnIsolated: undefined })
})

test('W4 an answer lists at most 1,000 monitors without an owner, and counts the others', async () => {
  const { table, clock, request, getNodes } = storeInMemory()
  const many = Array.from({ length: 1_234 }, (_, at) => `Sql/tcp/${at}`)
  table.putConfiguration('many', monitorsOf(many))
  table.renew(request('b', { config: 'many' }), clock.at)
  clock.at += 10_000
  table.renew(request('a'), clock.at)
  const { Nodes, Unowned, MoreUnowned } = await getNodes()
  expect(Nodes?.map(({ Name, State, SeenAt }) => [Name, State, SeenAt?.getTime()])).toEqual([
    ['a', 'Live', start + 10_000],
    ['b', 'Out', start],
  ])
  expect([Unowned?.length, MoreUnowned]).toEqual([1_000, 234])
})

test('W4 a node that left in order is not out, and can be forgotten as one that is out', async () => {
  const { table, clock, request, forgotten, getNodes, forgetNode } = storeInMemory()
  table.renew(request('a'), clock.at)
  table.renew(request('c'), clock.at)
  const b = table.renew(request('b'), clock.at)
  if (b.what === 'renewed') table.leave({ node: 'b', epoch: b.epoch }, clock.at)
  clock.at += 10_000
  table.renew(request('a'), clock.at)
  expect((await getNodes()).Nodes?.map(({ State }) => State)).toEqual(['Live', 'Left', 'Out'])
  expect(await forgetNode({ Name: 'b' }, actor)).toMatchObject({ Node: { Name: 'b', State: 'Left' } })
  expect(await forgetNode({ Name: 'c' }, actor)).toMatchObject({ Node: { Name: 'c', State: 'Out' } })
  expect(forgotten).toEqual([
    ['b', actor],
    ['c', actor],
  ])
  expect((await getNodes()).Nodes?.map(({ Name }) => Name)).toEqual(['a'])
})

test.for([
  ['a', 'Conflict', 'The node a is live: stop its svc serve first', 'would come back'],
  ['node-ab', 'NotFound', 'No node is called "node-ab": the nodes are a, node-a', 'Did you mean node-a?'],
  ['elsewhere', 'NotFound', 'the nodes are a, node-a', ''],
  ['', 'NotEmpty', "'Name' must not be empty", ''],
] as const)('W4 forget %j is refused (%s), with the way out', async ([Name, fault, message, hint]) => {
  const { table, clock, request, forgotten, forgetNode } = storeInMemory()
  table.renew(request('node-a'), clock.at)
  table.renew(request('a'), clock.at)
  const refused = await faultOf(forgetNode({ Name }, actor))
  expect([refused.fault, refused.message, refused.details.hints?.join(' ') ?? '']).toEqual([
    fault,
    expect.stringContaining(message),
    expect.stringContaining(hint),
  ])
  expect(forgotten).toEqual([])
})

test('W4 a node that comes back while it is being forgotten stays, and the answer says so', async () => {
  const store = storeInMemory(() => store.table.renew(store.request('b'), store.clock.at))
  const { table, clock, request, getNodes, forgetNode } = store
  table.renew(request('b'), clock.at)
  clock.at += 10_000
  const refused = await faultOf(forgetNode({ Name: 'b' }, actor))
  expect([refused.fault, refused.message]).toEqual(['Conflict', expect.stringContaining('The node b is live')])
  expect((await getNodes()).Nodes).toHaveLength(1)
})

test('W4 without a PostgreSQL store there are no nodes, and the error says where to read about them', async () => {
  const without = { clock: { now: () => start }, nodes: undefined } as unknown as Data
  for (const data of [undefined, async () => without]) {
    const { getNodes, forgetNode } = nodesOperations({ data, own: () => undefined })
    for (const refused of [await faultOf(getNodes()), await faultOf(forgetNode({ Name: 'a' }, actor))]) {
      expect(refused).toBeInstanceOf(Fault)
      expect([refused.fault, refused.message]).toEqual([
        'Conflict',
        expect.stringContaining('several nodes need a PostgreSQL store (docs/several-nodes.md)'),
      ])
    }
  }
})

import { expect, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { nodesOperations } from '../../../src/core/service/nodes/nodes-answer.ts'
import type { Data } from '../../../src/core/store/index.ts'
import { faultOf } from '../../support/store/data-fixture.ts'
import { nodesInMemory } from '../../support/store/nodes-in-memory.ts'

const start = 1_700_000_000_000
const actor = { who: 'local:test', correlationId: 'nodes' }

function storeInMemory(beforeForgetting?: () => void) {
  const { operations, ...memory } = nodesInMemory(start, 'a', beforeForgetting)
  return { ...memory, ...operations }
}

test('W4 an answer has each node with what it says of itself, which one holds the lease, and which one answers', async () => {
  const { clock, beats, getNodes } = storeInMemory()
  beats('b', { isIsolated: true })
  clock.at += 4_000
  beats('a', { holds: true })
  clock.at += 1_000
  expect(await getNodes()).toEqual({
    Nodes: [
      {
        ...{ Name: 'a', State: 'Live', Isolated: false, Holds: true, Configuration: '01234567', Differs: false },
        ...{ Version: '1.2.3', Url: 'https://a.example.com', Current: true },
        ...{ SeenAt: new Date(start + 4_000), StartedAt: new Date(start - 60_000) },
      },
      expect.objectContaining({ Name: 'b', State: 'Live', Isolated: true, Holds: false, Current: false }),
    ],
  })
})

test('W4 a holder that is out holds nothing', async () => {
  const { clock, beats, getNodes } = storeInMemory()
  beats('b', { holds: true })
  clock.at += 10_000
  beats('a')
  expect((await getNodes()).Nodes?.map(({ Name, State, Holds }) => [Name, State, Holds])).toEqual([
    ['a', 'Live', false],
    ['b', 'Out', false],
  ])
})

test('W4 a node that left in order is not out, and can be forgotten as one that is out', async () => {
  const { table, clock, beats, forgotten, getNodes, forgetNode } = storeInMemory()
  for (const node of ['a', 'c', 'b']) beats(node)
  table.leave('b', 'process of b', clock.at)
  clock.at += 10_000
  beats('a')
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
  const { beats, forgotten, forgetNode } = storeInMemory()
  beats('node-a')
  beats('a')
  const refused = await faultOf(forgetNode({ Name }, actor))
  expect([refused.fault, refused.message, refused.details.hints?.join(' ') ?? '']).toEqual([
    fault,
    expect.stringContaining(message),
    expect.stringContaining(hint),
  ])
  expect(forgotten).toEqual([])
})

test('W4 a node that comes back while it is being forgotten stays, and the answer says so', async () => {
  const store = storeInMemory(() => store.beats('b'))
  const { clock, beats, getNodes, forgetNode } = store
  beats('b')
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

import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodesHeadline } from '../../src/cli/nodes/lists.ts'
import type { NodeEntry } from '../../src/core/protocol/index.ts'
import { type Site, startSite } from '../server/site.ts'
import { documentOf } from '../support/program/documents.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { monitorsOf } from '../support/store/nodes.ts'
import { nodesInMemory } from '../support/store/nodes-in-memory.ts'

const now = Date.now()
/** Two live nodes with different configurations, and one that left in order. */
const memory = nodesInMemory(now, 'node-a')
const keys = ['Sql/postgres/orders', 'Sql/postgres/replica', 'App/http/shop', 'App/http/cart']
let site: Site
let home: Home
let server: readonly string[]
beforeAll(async () => {
  const { table, clock, operations, request } = memory
  table.putConfiguration('0123456789abcdef', monitorsOf(keys))
  table.putConfiguration('fedcba9876543210', monitorsOf([...keys, 'Ftp/ftp/inbox']))
  table.renew(request('node-a'), clock.at)
  table.renew(request('node-b', { config: 'fedcba9876543210', isIsolated: true }), clock.at)
  const c = table.renew(request('node-c'), clock.at)
  if (c.what === 'renewed') table.leave({ node: 'node-c', epoch: c.epoch }, clock.at)
  const actor = { who: 'local:test', correlationId: 'nodes' }
  const service = {
    getNodes: operations.getNodes,
    forgetNode: async (request: { readonly Name?: string | undefined }) => await operations.forgetNode(request, actor),
  }
  home = svcHome()
  site = await startSite({ service })
  server = ['--server', `http://127.0.0.1:${site.port}`]
})
afterAll(async () => {
  await site.server.stop()
  home.remove()
})

test('W4 svc nodes shows a line for each node, and names in its first line what nobody runs as it should be', async () => {
  const { code, stdout } = await home.run(['nodes', ...server], { columns: 100 })
  expect(code).toBe(0)
  const [first = '', second = '', ...lines] = stdout.trimEnd().split('\n')
  expect(`${first}${second}`).toMatch(
    /^! 2 of 3 nodes are live; 1 network monitor is owned by an isolated node: Ftp\/ftp\/inbox; the nodes +have different configurations/,
  )
  expect(lines.filter((line) => line.includes('node-'))).toEqual([
    expect.stringMatching(/^ {2}node-a \* +live +4 +01234567 +1\.2\.3 +\d.* +node-a\.example\.com$/),
    expect.stringMatching(/^ {2}node-b +live, isolated +1 +fedcba98 +1\.2\.3 +\d.* +node-b\.example\.com$/),
    expect.stringMatching(/^ {2}node-c +left at .* +0 +1\.2\.3 +node-c\.example\.com$/),
  ])
})

test('W4 in a pipe, svc nodes prints a record for each node, and on standard error what is wrong', async () => {
  const { stdout, stderr } = await home.run(['nodes', ...server])
  const [header = '', ...records] = stdout.trimEnd().split('\n')
  expect(header.split('\t').slice(0, 6)).toEqual(['Target', 'Name', 'State', 'SeenAt', 'Isolated', 'Monitors'])
  expect(records.map((record) => record.split('\t')[1])).toEqual(['node-a', 'node-b', 'node-c'])
  expect(stderr).toContain('Warning: 2 of 3 nodes are live; 1 network monitor is owned by an isolated node')
  const quiet = await home.run(['nodes', ...server, '--no-header', '-q'])
  expect([quiet.stdout.split('\n').length, quiet.stderr]).toEqual([4, ''])
})

test('W4 svc nodes --json has what the table shows', async () => {
  const { stdout, stderr } = await home.run(['nodes', ...server, '--json'])
  expect(stderr).toBe('')
  expect(documentOf('nodes', stdout)).toMatchObject({
    ...{ target: server[1], unowned: [], moreUnowned: 0, onIsolated: ['Ftp/ftp/inbox'], moreOnIsolated: 0 },
    nodes: [
      { name: 'node-a', state: 'live', monitors: 4, isolated: false, differs: true, current: true },
      { name: 'node-b', state: 'live', monitors: 1, isolated: true, differs: true, current: false },
      { name: 'node-c', state: 'left', monitors: 0, isolated: false, differs: false, current: false },
    ],
  })
})

test('W4 svc nodes forget refuses a live node and an unknown one, and forgets one that has left', async () => {
  const live = await home.run(['nodes', 'forget', 'node-a', ...server])
  expect([live.code, live.stderr]).toEqual([
    9,
    expect.stringContaining('The node node-a is live: stop its svc serve first'),
  ])
  const unknown = await home.run(['nodes', 'forget', 'node-d', ...server])
  expect([unknown.code, unknown.stderr]).toEqual([9, expect.stringContaining('the nodes are node-a, node-b, node-c')])
  const left = await home.run(['nodes', 'forget', 'node-c', ...server, '--json'])
  expect(left.code).toBe(0)
  expect(documentOf('nodes forget', left.stdout)).toMatchObject({ nodes: [{ name: 'node-c', forgotten: true }] })
  const again = await home.run(['nodes', 'forget', 'node-c', ...server])
  expect([again.code, again.stderr]).toEqual([9, expect.stringContaining('No node is called "node-c"')])
})

test('W4 on a machine with an embedded store or none, svc nodes says that nodes need PostgreSQL', async () => {
  for (const args of [['nodes'], ['nodes', 'forget', 'node-a']]) {
    const { code, stderr } = await home.run(args)
    expect(code).toBe(9)
    expect(stderr).toContain('several nodes need a PostgreSQL store')
    expect(stderr).toContain('docs/several-nodes.md')
  }
})

const node = (Name: string, more: Partial<NodeEntry> = {}): NodeEntry => ({
  ...{ Name, State: 'Live', Isolated: false, Monitors: 7, Differs: false, Version: '1.0.0' },
  ...more,
})
const out = { State: 'Out', Monitors: 0, Isolated: undefined } as const
const many = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
test.for([
  ['ok', 'all 3 nodes are live; every network monitor has an owner', [node('a'), node('b'), node('c')], {}],
  ['ok', '1 node is live; every network monitor has an owner', [node('a')], {}],
  [
    'ok',
    'both nodes are live; there are no network monitors',
    [node('a', { Monitors: 0 }), node('b', { Monitors: 0 })],
  ],
  ['ok', '1 of 2 nodes is live; every network monitor has an owner', [node('a'), node('b', { ...out, State: 'Left' })]],
  ['warn', '1 of 2 nodes is live; every network monitor has an owner', [node('a'), node('b', out)], {}],
  ['warn', '2 of 3 nodes are live; every network monitor has an owner', [node('a'), node('b'), node('c', out)], {}],
  [
    'fail',
    '1 of 2 nodes is live; 9 network monitors have no owner: a, b, c, d, e and 4 more',
    [node('a'), node('b', out)],
    { Unowned: many, MoreUnowned: 2 },
  ],
  ['warn', 'both nodes are live; every network monitor has an owner', [node('a'), node('b', { Isolated: true })], {}],
  [
    'warn',
    '1 node is live; 2 network monitors are owned by isolated nodes: x, y',
    [node('a', { Isolated: true })],
    { OnIsolated: ['x', 'y'] },
  ],
  [
    'warn',
    'all 3 nodes are live; every network monitor has an owner; c has another configuration than most',
    [node('a'), node('b'), node('c', { Differs: true })],
    {},
  ],
  ['warn', 'both nodes are live; nobody knows the monitors of b', [node('a'), node('b', { Monitors: undefined })], {}],
  [
    'warn',
    'both nodes are live; the row of b in the store is unreadable',
    [node('a'), node('b', { Version: undefined })],
    {},
  ],
  ['fail', 'the only node is not live: nobody runs 7 network monitors', [node('a', out)], { Unowned: many }],
  ['fail', 'none of the 2 nodes is live: nobody runs the monitors', [node('a', out), node('b', out)], {}],
] as const)('W4 the first line of svc nodes: %s %s', ([mark, sentence, Nodes, more]) => {
  expect(nodesHeadline({ Nodes, ...more })).toEqual({ mark, sentence })
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodesHeadline } from '../../src/cli/nodes/lists.ts'
import type { NodeEntry } from '../../src/core/protocol/index.ts'
import { type Site, startSite } from '../server/site.ts'
import { documentOf } from '../support/program/documents.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { nodesInMemory } from '../support/store/nodes-in-memory.ts'

const now = Date.now()
/** Two live nodes, of which one is isolated, and one that left in order. */
const memory = nodesInMemory(now, 'node-a')
let site: Site
const home = temporaryHome()
let server: readonly string[]
beforeAll(async () => {
  const { table, clock, operations, beats } = memory
  beats('node-a', { holds: true })
  beats('node-b', { isIsolated: true })
  beats('node-c')
  table.leave('node-c', 'process of node-c', clock.at)
  const actor = { who: 'local:test', correlationId: 'nodes' }
  const service = {
    getNodes: operations.getNodes,
    forgetNode: async (request: { readonly Name?: string | undefined }) => await operations.forgetNode(request, actor),
  }
  site = await startSite({ service })
  server = ['--server', `http://127.0.0.1:${site.port}`]
})
afterAll(() => site.server.stop())

test('W4 svc nodes shows a line for each node, and names in its first line the one that runs the network monitors', async () => {
  const { code, stdout } = await home.run(['nodes', ...server], { columns: 100 })
  expect(code).toBe(0)
  const [first = '', ...lines] = stdout.trimEnd().split('\n')
  expect(first).toBe('! 2 of 3 nodes are live; node-a runs the network monitors')
  expect(lines.filter((line) => line.includes('node-'))).toEqual([
    expect.stringMatching(/^ {2}node-a \* +live +holds it +1\.2\.3 +\d.* +node-a\.example\.com$/),
    expect.stringMatching(/^ {2}node-b +live, isolated +1\.2\.3 +\d.* +node-b\.example\.com$/),
    expect.stringMatching(/^ {2}node-c +left at .* +1\.2\.3 +node-c\.example\.com$/),
  ])
})

test('W4 in a pipe, svc nodes prints a record for each node, and on standard error what is wrong', async () => {
  const { stdout, stderr } = await home.run(['nodes', ...server])
  const [header = '', ...records] = stdout.trimEnd().split('\n')
  expect(header.split('\t').slice(0, 6)).toEqual(['Target', 'Name', 'State', 'SeenAt', 'Isolated', 'Holds'])
  expect(records.map((record) => record.split('\t')[1])).toEqual(['node-a', 'node-b', 'node-c'])
  expect(stderr).toContain('Warning: 2 of 3 nodes are live; node-a runs the network monitors')
  const quiet = await home.run(['nodes', ...server, '--no-header', '-q'])
  expect([quiet.stdout.split('\n').length, quiet.stderr]).toEqual([4, ''])
})

test('W4 svc nodes --json has what the table shows', async () => {
  const { stdout, stderr } = await home.run(['nodes', ...server, '--json'])
  expect(stderr).toBe('')
  expect(documentOf('nodes', stdout)).toMatchObject({
    target: server[1],
    nodes: [
      { name: 'node-a', state: 'live', holds: true, isolated: false, differs: false, current: true },
      { name: 'node-b', state: 'live', holds: false, isolated: true, differs: false, current: false },
      { name: 'node-c', state: 'left', holds: false, isolated: false, differs: false, current: false },
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
  ...{ Name, State: 'Live', Isolated: false, Holds: Name === 'a', Differs: false, Version: '1.0.0' },
  ...more,
})
const out = { State: 'Out', Holds: false, Isolated: undefined } as const
test.for([
  ['ok', 'all 3 nodes are live; a runs the network monitors', [node('a'), node('b'), node('c')]],
  ['ok', '1 node is live; a runs the network monitors', [node('a')]],
  ['ok', '1 of 2 nodes is live; a runs the network monitors', [node('a'), node('b', { ...out, State: 'Left' })]],
  ['warn', '1 of 2 nodes is live; a runs the network monitors', [node('a'), node('b', out)]],
  ['fail', '1 of 2 nodes is live; nobody holds the lease of the network monitors', [node('a', out), node('b')]],
  ['warn', 'both nodes are live; a runs the network monitors', [node('a'), node('b', { Isolated: true })]],
  ['warn', '1 node is live; a runs the network monitors, and is isolated', [node('a', { Isolated: true })]],
  [
    'warn',
    'all 3 nodes are live; a runs the network monitors; c has another configuration than most',
    [node('a'), node('b'), node('c', { Differs: true })],
  ],
  [
    'warn',
    'both nodes are live; a runs the network monitors; the row of b in the store is unreadable',
    [node('a'), node('b', { Version: undefined })],
  ],
  ['fail', 'the only node is not live: nobody runs the monitors', [node('a', out)]],
  ['fail', 'none of the 2 nodes is live: nobody runs the monitors', [node('a', out), node('b', out)]],
] as const)('W4 the first line of svc nodes: %s %s', ([mark, sentence, Nodes]) => {
  expect(nodesHeadline({ Nodes })).toEqual({ mark, sentence })
})

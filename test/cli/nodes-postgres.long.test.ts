import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { serveDefaults } from '../../src/core/protocol/service/service.ts'
import { startServer } from '../../src/core/server/index.ts'
import { openCore } from '../../src/core/service/open.ts'
import { openData } from '../../src/core/store/index.ts'
import { machineKey } from '../../src/core/watch/nodes/index.ts'
import { documentOf } from '../support/program/documents.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { adminOver } from '../support/store/admin.ts'
import { actor, freshDatabase } from '../support/store/data-fixture.ts'
import {
  batchOf,
  type ClockedStore,
  clockedStore,
  fenceOf,
  incidentOf,
  joined,
  nodesOf,
  outboxRowOf,
  renewed,
  stateOf,
  subjectOf,
  taken,
} from '../support/store/nodes.ts'
import { cheapHash } from '../support/suite/cheap-hash.ts'

const noon = Date.UTC(2026, 5, 1, 12)
let postgres: PostgresServer
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(async () => await postgres.remove())

describe('the nodes of a PostgreSQL store', () => {
  let store: ClockedStore
  const home = temporaryHome()
  beforeAll(async () => {
    store = await clockedStore(postgres)
    await store.setClock(noon)
    const nodes = nodesOf(store.data)
    const [a, , c] = [await joined(nodes, 'node-a'), await joined(nodes, 'node-b'), await joined(nodes, 'node-c')]
    await taken(nodes, 'node-c')
    await store.setClock(noon + 12_000)
    for (const one of [a, c]) await renewed(nodes, one, 'machine')
  })
  afterAll(() => store.close())

  const svc = async (...args: readonly string[]) => await home.run(args, { env: { SVC_STORE: store.url } })

  test('W4 svc nodes reads the store of this machine, and names the node that runs the network monitors', async () => {
    const { code, stdout, stderr } = await svc('nodes', '--json')
    expect([code, stderr]).toEqual([0, ''])
    expect(documentOf('nodes', stdout)).toMatchObject({
      nodes: [
        { name: 'node-a', state: 'live', holds: false, current: false, differs: false },
        { name: 'node-b', state: 'out', holds: false, differs: false },
        { name: 'node-c', state: 'live', holds: true, current: false, differs: false },
      ],
    })
    const lines = await svc('nodes')
    expect(lines.stderr).toContain('Warning: 2 of 3 nodes are live; node-c runs the network monitors')
  })

  test('W4 at a server of the store, who may read health lists the nodes, and only an Admin forgets one', async () => {
    await using server = await serve(store.url, home.folder)
    const at = async (token: string, ...args: readonly string[]) =>
      await home.run([...args, '--server', server.url], { env: { SVC_TOKEN: token } })
    const list = await at(server.monitoring, 'nodes', '--json')
    expect(documentOf('nodes', list.stdout)).toMatchObject({
      target: server.url,
      nodes: [{ name: 'node-a' }, { name: 'node-b', state: 'out' }, { name: 'node-c' }],
    })
    const refused = await at(server.monitoring, 'nodes', 'forget', 'node-b')
    expect(refused.code).toBe(5)
    const live = await at(server.admin, 'nodes', 'forget', 'node-c')
    expect([live.code, live.stderr]).toEqual([9, expect.stringContaining('node-c is live: stop its svc serve first')])
    const unknown = await at(server.admin, 'nodes', 'forget', 'node-x')
    expect([unknown.code, unknown.stderr]).toEqual([9, expect.stringContaining('node-a, node-b, node-c')])
    expect((await store.data.audit.list({ limit: 10, events: ['node.forgotten'] })).length).toBe(0)
    expect((await at(server.admin, 'nodes', 'forget', 'node-b')).code).toBe(0)
    const after = await svc('nodes', '--json')
    expect(JSON.parse(after.stdout)).toMatchObject({ nodes: [{ name: 'node-a' }, { name: 'node-c' }] })
    const entries = await store.data.audit.list({ limit: 10, events: ['node.forgotten'] })
    expect(entries).toMatchObject([{ event: 'node.forgotten', who: 'ann', target: 'node-b' }])
  })

  test('W4 svc nodes forget in this process has the account in the audit', async () => {
    await store.setClock(noon + 60_000)
    const { code, stdout } = await svc('nodes', 'forget', 'node-c', '--json')
    expect(code).toBe(0)
    documentOf('nodes forget', stdout)
    const [entry] = await store.data.audit.list({ limit: 10, events: ['node.forgotten'] })
    expect(entry).toMatchObject({ target: 'node-c', who: expect.stringMatching(/^local:/) })
    const rest = await svc('nodes')
    expect(rest.stderr).toContain('Warning: the only node is not live: nobody runs the monitors')
  })
})

/** A server of a store, and keys of its users. It runs no schedule, so that it is not a node itself. */
async function serve(store: string, folder: string) {
  const { service, runtime } = await openCore({
    version: '1.2.3',
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    ...{ store, shared: false, hashCost: cheapHash, details: 'signed-in' },
  })
  const admin = adminOver(service)
  const by = { who: 'local:tester', correlationId: 'nodes' }
  const keyOf = async (userName: string, grants: object): Promise<string> => {
    await admin.users.add({ userName, password: 'violet-harbour-42', ...grants }, by)
    return (await admin.keys.create({ name: userName, userName }, by)).secret
  }
  const started = await startServer({
    ...{ service, runtime, options: serveDefaults, host: '127.0.0.1', port: 0, tls: undefined },
    ...{ log: () => {}, limits: { lingerMs: 200, drainDelayMs: 0 } },
  })
  return {
    url: `http://127.0.0.1:${started.port}`,
    admin: await keyOf('ann', { roles: ['Admin'] }),
    monitoring: await keyOf('mon', { permissions: ['health'] }),
    [Symbol.asyncDispose]: async () => {
      await started.stop()
      await runtime.close()
    },
  }
}

test('W4 what is stored of a node goes with it, and what has a similar name stays, whatever the collation', async () => {
  const name = 'collated'
  await postgres.query(`CREATE DATABASE ${name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'`)
  const data = await openData({ store: postgres.url('postgres', name), create: true })
  onTestFinished(() => data.close())

  const nodes = nodesOf(data)
  const names = ['db', 'DB', 'db-1', 'db1', 'd_b', 'db.0', 'db0']
  for (const node of names) {
    const machine = await joined(nodes, node)
    const subject = subjectOf(machineKey(node, '/host/'))
    const batch = batchOf({ states: [stateOf(subject, node)], incidents: [incidentOf(subject, node)] })
    expect(await nodes.writeStates(fenceOf(machine, 1, { shard: 'machine' }), batch)).toBe('stored')
    const row = outboxRowOf(subject, 'mail', 1)
    expect(await nodes.writeOutbox(fenceOf(machine, 2, { shard: 'machine' }), [row])).toBe('stored')
    await nodes.leave(node, machine.process)
  }
  expect(await nodes.forget('db', actor())).toBe(true)
  expect(await nodes.forget('db', actor())).toBe(false)
  const stored = await nodes.stored()
  const others = names.slice(1).map((node) => machineKey(node, '/host/'))
  expect(stored.states.map(({ row }) => row.key).toSorted()).toEqual(others.toSorted())
  expect(stored.incidents.map(({ key }) => key).toSorted()).toEqual(others.toSorted())
  expect(stored.outbox.map(({ subject }) => subject.key).toSorted()).toEqual(others.toSorted())
})

test('W4 a svc serve of a PostgreSQL store knows the name of its node, and one without a store has none', async () => {
  const store = await freshDatabase(postgres)
  for (const [place, expected] of [
    [store, 'node-z'],
    [undefined, undefined],
  ] as const) {
    const { runtime } = await openCore({
      version: '1.2.3',
      config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] },
      ...{ store: place, shared: true, node: 'node-z', hashCost: cheapHash, details: 'signed-in' },
    })
    expect(runtime.facts.node).toBe(expected)
    await runtime.close()
  }
})

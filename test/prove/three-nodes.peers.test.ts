import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { serveDefaults } from '../../src/core/protocol/service/service.ts'
import { openCore } from '../../src/core/service/open.ts'
import { aheadBy, fakeTimeMissing } from '../support/faults/clock.ts'
import { type CutProxy, cutProxy } from '../support/faults/cut-proxy.ts'
import { configured } from '../support/faults/postgres-faults.ts'
import { admin, ask, type ServeNode, signIn, startNode } from '../support/program/serve-node.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { adminOver } from '../support/store/admin.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'
import { type Night, nightTable, noFault, startNight } from './night-calls.ts'

const writers = ['writer-0', 'writer-1', 'writer-2'] as const
/** Long enough that every caller meets the fault, and that connections and pools notice it. */
const faultMs = 3_000
const recoveryMs = 90_000

async function addWriters(store: string): Promise<void> {
  const { service, runtime } = await openCore({
    version: '9.8.7',
    config: { origin: undefined, types: {}, serve: { ...serveDefaults }, warnings: [] },
    store,
    shared: false,
    details: 'signed-in',
  })
  const by = { who: 'local:test', correlationId: 'test' }
  for (const userName of writers) await adminOver(service).users.add({ userName, password: admin.password }, by)
  await runtime.close()
}

peerSuite(postgresMissing ?? fakeTimeMissing, 'three nodes on one PostgreSQL', () => {
  let server: PostgresServer
  let store: string
  let proxies: readonly CutProxy[]
  let nodes: readonly { current: ServeNode }[]
  let night: Night
  /** Nodes that were not ended by the test. */
  const ended: string[] = []
  let expecting = false

  const through = (proxy: CutProxy): string => {
    const url = new URL(store)
    url.port = String(proxy.port)
    return url.href
  }
  const start = async (index: number, env: Readonly<Record<string, string>> = {}): Promise<ServeNode> => {
    const proxy = proxies[index]
    if (!proxy) throw new Error(`no proxy ${index}`)
    const node = await startNode({ store: through(proxy), env })
    void node.ended.then((how) => {
      if (!expecting) ended.push(`node ${index} ended: ${how}: ${node.log().slice(-500)}`)
    })
    return node
  }
  const restart = async (index: number, signal: NodeJS.Signals, env?: Readonly<Record<string, string>>) => {
    const node = nodes[index]
    if (!node) throw new Error(`no node ${index}`)
    expecting = true
    node.current.signal(signal)
    await node.current.ended
    await node.current.stop()
    expecting = false
    node.current = await start(index, env)
  }
  const each = (work: (proxy: CutProxy) => void): void => {
    for (const proxy of proxies) work(proxy)
  }
  const first = (): CutProxy => proxies[0] as CutProxy
  const firstNode = (): ServeNode => nodes[0]?.current as ServeNode

  /** The faults, each with its cure. */
  const faults: Readonly<Record<string, () => Promise<() => Promise<unknown> | unknown>>> = {
    'a node is killed and starts again': async () => {
      await restart(0, 'SIGKILL')
      return () => {}
    },
    'a node is stopped and starts again': async () => {
      await restart(0, 'SIGTERM')
      return () => {}
    },
    'a node is frozen': async () => {
      firstNode().signal('SIGSTOP')
      return () => firstNode().signal('SIGCONT')
    },
    'a node has a clock 40 days ahead': async () => {
      await restart(0, 'SIGTERM', aheadBy('40d'))
      return async () => await restart(0, 'SIGTERM')
    },
    'the connections of a node are reset': async () => {
      first().cutNow({ client: 'reset', server: 'reset' })
      return () => {}
    },
    'the network of a node loses everything': async () => {
      first().stall()
      return () => first().heal('lost')
    },
    'the network of all nodes stalls': async () => {
      each((proxy) => proxy.stall())
      return () => each((proxy) => proxy.heal('flows'))
    },
    // Before it restarts: its process is not a child of the test any more then.
    'the database is frozen': async () => {
      server.freeze()
      return () => server.thaw()
    },
    'the database restarts': async () => {
      await server.restartInPlace('fast')
      return () => {}
    },
    'the database crashes': async () => {
      await server.restartInPlace('immediate')
      return () => {}
    },
    'the database ends all sessions': async () => {
      await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'svc'")
      return () => {}
    },
    'the database is read-only': async () => {
      const setting = await configured(server, { default_transaction_read_only: 'on' })
      return setting.end
    },
    'the database has no connection left': async () => {
      const others: pg.Client[] = []
      for (;;) {
        const client = await server.client().catch(() => undefined)
        if (!client) break
        others.push(client)
      }
      return async () => await Promise.all(others.map((client) => client.end()))
    },
    'another session locks the users': async () => {
      const client = await server.client(new URL(store).pathname.slice(1))
      await client.query('BEGIN')
      await client.query('LOCK TABLE users IN ACCESS EXCLUSIVE MODE')
      return async () => {
        await client.query('ROLLBACK')
        await client.end()
      }
    },
  }

  const allReady = async (): Promise<boolean> => {
    const statuses = await Promise.all(
      nodes.map(async ({ current }) => (await ask(`${current.url}/readyz`).catch(() => undefined))?.status),
    )
    return statuses.every((status) => status === 200)
  }

  beforeAll(async () => {
    server = await startPostgres(['max_connections=60'])
    store = await freshDatabase(server)
    proxies = await Promise.all([0, 1, 2].map(async () => await cutProxy(server.port)))
    nodes = [{ current: await start(0) }, { current: await start(1) }, { current: await start(2) }]
    await addWriters(store)
    night = await startNight(nodes, writers)
  }, 120_000)
  afterAll(async () => {
    expecting = true
    for (const node of nodes ?? []) await node.current.stop()
    for (const proxy of proxies ?? []) await proxy.close()
    await server?.remove()
  })

  test('D3 through fourteen faults no node ends, no acknowledged role change is lost or read late, and every node is ready again', async () => {
    await pause(faultMs)
    // Its calls end with the test, however that ends.
    onTestFinished(async () => await night.stop())
    for (const [name, begin] of Object.entries(faults)) {
      night.during(name)
      const end = await begin()
      await pause(faultMs)
      await end()
      await until(allReady, recoveryMs)
      night.during(noFault)
      await pause(500)
    }
    await night.stop()
    process.stdout.write(`${nightTable(night.calls)}\n`)
    expect(ended).toEqual([])
    expect(night.problems).toEqual([])
    const signIns = await Promise.all(nodes.map(async ({ current }) => (await signIn(current)).status))
    expect(signIns).toEqual([200, 200, 200])
    const names = new Set(night.calls.map(({ fault }) => fault))
    expect([...Object.keys(faults), noFault].filter((name) => !names.has(name))).toEqual([])
    // A busy machine may refuse a few for its own reasons.
    const calm = night.calls.filter(({ fault }) => fault === noFault)
    expect(calm.filter(({ outcome }) => outcome === 'ok').length).toBeGreaterThan(0.9 * calm.length)
  }, 900_000)
})

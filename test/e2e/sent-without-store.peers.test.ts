import { afterAll, beforeAll, expect, test } from 'vitest'
import { cutProxy } from '../support/faults/cut-proxy.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'
import { maxMs, nodeNamed, outlivesTheProcess, receivers, stepMs, watched } from './sent-without-store.ts'

peerSuite(postgresMissing, 'W23 what a node sends while its PostgreSQL does not answer', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres(['max_connections=60'])
  })
  afterAll(async () => await server?.remove())

  /** A database, and the way of one node to it. */
  async function wayTo(store: string) {
    const proxy = await cutProxy(server.port)
    const url = store.replace(`127.0.0.1:${server.port}`, `127.0.0.1:${proxy.port}`)
    return { url, proxy, away: async () => proxy.stall(), back: async () => proxy.heal('lost') }
  }

  test.concurrent.for(['SIGTERM', 'SIGKILL'] as const)(
    'W23 ends once for its receivers although %s ends the node before PostgreSQL answers again',
    { timeout: maxMs },
    async (signal, { onTestFinished }) => {
      const { url, proxy, away, back } = await wayTo(await freshDatabase(server))
      onTestFinished(async () => await proxy.close())
      await outlivesTheProcess({ signal, store: url, away, back, onEnd: onTestFinished })
    },
  )

  test.concurrent('W4 W23 ends once another node has taken the monitors over, and the next process of the node that sent it is back', {
    timeout: maxMs,
  }, async ({ onTestFinished }) => {
    const names = ['one', 'two', 'three']
    const got = await receivers(onTestFinished)
    const peers = await watched(names, onTestFinished)
    const store = await freshDatabase(server)
    const a = await wayTo(store)
    onTestFinished(async () => await a.proxy.close())
    const yaml = `${got.yaml}${peers.yaml}`
    const nodeA = nodeNamed('a', { store: a.url, yaml }, onTestFinished)
    const nodeB = nodeNamed('b', { store, yaml }, onTestFinished)
    const first = await nodeA.start()
    const logs = [first]
    const happens = async (holds: () => boolean): Promise<void> => {
      await until(holds, stepMs, 200).catch((error: unknown) =>
        expect.fail(
          `${error}\n${JSON.stringify(got.all())}\n${nodeA.text()}\n${logs.map((node) => node.log()).join('\n\n')}`,
        ),
      )
    }
    // It listens before it has the lease, which another node could take meanwhile.
    await happens(() => first.log().includes('a holds the lease'))
    const other = await nodeB.start()
    logs.push(other)
    await happens(() => other.log().includes('stands by: a holds the lease'))
    await a.away()
    for (const name of names) peers.of(name).fail()
    // Of each, one incident of either node: neither knows that of the other.
    await happens(() => names.every((name) => got.begins(name).length === 2))
    expect(await first.stop('SIGKILL')).toBe('SIGKILL')
    for (const name of names) peers.of(name).recover()
    await happens(() => names.every((name) => got.ended(name).length === 1))
    expect(nodeA.text()).not.toBe('')
    await a.back()
    logs.push(await nodeA.start())
    await happens(() => names.every((name) => got.ended(name).length === 2))
    for (const [id, times] of got.ends()) expect(times, id).toHaveLength(1)
    await happens(() => nodeA.text() === '')
  })
})

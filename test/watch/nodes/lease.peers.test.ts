import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CutProxy, cutProxy } from '../../support/faults/cut-proxy.ts'
import { maxGap, type ProbedPeer, probedPeer } from '../../support/faults/probed-peers.ts'
import { type AlertSink, alertSink } from '../../support/notify/alert-sink.ts'
import { ask, figure, type ServeNode, signIn, startNode, tokenOf } from '../../support/program/serve-node.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { freePort } from '../../support/servers/server.ts'
import { freshDatabase } from '../../support/store/data-fixture.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const everyMs = 10_000

peerSuite(postgresMissing, 'W4 three nodes of one PostgreSQL, of which one holds the lease', () => {
  let server: PostgresServer
  let store: string
  let way: CutProxy
  let peer: ProbedPeer
  let chat: AlertSink
  const nodes = new Map<string, ServeNode>()

  const start = async (name: string): Promise<void> => {
    const yaml = `serve: {node: ${name}, name: prod, url: "https://${name}.example.com", confirm: 5s, every: {Standard: 10s}}
notify:
  - {name: chat, webhook: {url: "${chat.url}"}}
types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: shop, host: 127.0.0.1, port: ${peer.port}, expect: hello}
`
    nodes.set(name, await startNode({ store: store.replace(`:${server.port}/`, `:${way.port}/`), yaml }))
  }
  const node = (name: string): ServeNode => {
    const one = nodes.get(name)
    if (!one) throw new Error(`no node ${name}`)
    return one
  }
  const logs = (): string => [...nodes].map(([name, one]) => `== ${name}\n${one.log().slice(-2_000)}`).join('\n')
  const wait = async <T>(work: () => Promise<T | undefined | false> | T | undefined | false, ms = 120_000) =>
    await until(work, ms, 100).catch((error: unknown) => expect.fail(`${error}\n${logs()}`))
  const holders = async (): Promise<readonly string[]> => {
    const all = await Promise.all(
      [...nodes].map(async ([name, one]) => ((await figure(one, 'svc_node_holds_lease')) === 1 ? [name] : [])),
    )
    return all.flat()
  }
  const holder = async (): Promise<string> => (await wait(async () => (await holders())[0])) ?? ''
  /** Acknowledges the fault at a node that stands by, and waits until the holder knows. */
  const acknowledged = async (own: string): Promise<void> => {
    const other = [...nodes.keys()].find((name) => name !== own) ?? own
    const headers = async (name: string) => ({
      authorization: `Bearer ${tokenOf(await signIn(node(name)))}`,
      accept: 'application/json',
      'content-type': 'application/json',
    })
    const body = JSON.stringify({ Monitor: 'tcp shop', Reason: 'we know', For: 'PT1H' })
    const answer = await ask(`${node(other).url}/silences/acknowledge`, {
      method: 'POST',
      headers: await headers(other),
      body,
    })
    expect([answer.status, answer.body]).toEqual([200, expect.stringContaining('"Source":"Ack"')])
    const all = { headers: await headers(own) }
    await wait(async () => (await ask(`${node(own).url}/silences`, all)).body.includes('"Source":"Ack"'), 10_000)
  }
  const end = async (name: string, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
    const one = node(name)
    nodes.delete(name)
    one.signal(signal)
    await one.ended
    await one.stop()
  }

  beforeAll(async () => {
    server = await startPostgres(['max_connections=80'])
    store = await freshDatabase(server)
    way = await cutProxy(server.port)
    peer = await probedPeer('shop', await freePort())
    chat = await alertSink()
    for (const name of ['a', 'b', 'c']) await start(name)
    await holder()
  }, 240_000)
  afterAll(async () => {
    for (const one of nodes.values()) await one[Symbol.asyncDispose]()
    await way?.close()
    await peer?.close()
    await chat?.[Symbol.asyncDispose]()
    await server?.remove()
  }, 120_000)

  test('one node runs the network monitors; the others have no series of them, and name it on their pages', async () => {
    const own = await holder()
    await wait(async () => (await figure(node(own), 'svc_check_up')) !== undefined || peer.probes.length > 0)
    expect(await holders()).toEqual([own])
    for (const [name, one] of nodes) {
      if (name === own) continue
      const { body } = await ask(`${one.url}/metrics`)
      expect(body).toContain(`svc_node_holds_lease{node="${name}"} 0`)
      expect(body.split('\n').filter((line) => line.includes('monitor="tcp shop"'))).toEqual([])
      const page = (await ask(`${one.url}/`, { headers: { accept: 'text/html' } })).body
      expect(page).toContain(`on ${own}`)
    }
  }, 240_000)

  test('a PostgreSQL that is away for 4 s moves no lease', async () => {
    const own = await holder()
    const epoch = async () =>
      (await server.query(`SELECT "node" FROM "leases" WHERE "shard" = 'network'`, new URL(store).pathname.slice(1)))[0]
    way.stall()
    await new Promise((resolve) => setTimeout(resolve, 4_000))
    way.heal('lost')
    await wait(async () => (await holders()).length === 1)
    expect([await holder(), await epoch()]).toEqual([own, { node: own }])
  }, 240_000)

  test('a fault is told once, and its end, although the holder is killed in between, and nothing is unwatched for long', async () => {
    peer.fail()
    await wait(() => chat.of('firing', /shop/).length > 0)
    const own = await holder()
    await acknowledged(own)
    const from = performance.now()
    await end(own, 'SIGKILL')
    const next = await holder()
    expect(next).not.toBe(own)
    const leases = await server.query(
      `SELECT "node" FROM "leases" WHERE "shard" = 'network'`,
      new URL(store).pathname.slice(1),
    )
    expect(leases).toEqual([{ node: next }])
    process.stdout.write(`from the kill to the next holder: ${Math.round(performance.now() - from)} ms\n`)
    peer.recover()
    await wait(() => chat.of('resolved', /shop/).length > 0)
    expect(maxGap([peer], from)).toBeLessThan(everyMs + 20_000)
    expect([chat.of('firing', /shop/).length, chat.of('resolved', /shop/).length]).toEqual([1, 1])
    await start(own)
  }, 300_000)

  test('a holder that ends in order leaves the lease to the next node at once, and nobody is told', async () => {
    const before = chat.alerts.length
    const own = await holder()
    await end(own, 'SIGTERM')
    const from = performance.now()
    expect(await holder()).not.toBe(own)
    process.stdout.write(`from SIGTERM to the next holder: ${Math.round(performance.now() - from)} ms\n`)
    expect(chat.alerts.length).toBe(before)
  }, 240_000)
})

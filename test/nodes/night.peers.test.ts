import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CutProxy, cutProxy } from '../support/faults/cut-proxy.ts'
import { ask, figure, type ServeNode, startNode } from '../support/program/serve-node.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

const everyMs = 10_000
const names = ['a', 'b', 'c'] as const
type Name = (typeof names)[number]

/** A server of a monitor, which notes when somebody connects. */
type Peer = { readonly name: string; readonly port: number; probes: number[]; server: Server | undefined }

async function listen(peer: Peer): Promise<void> {
  const server = createServer((socket) => {
    peer.probes.push(performance.now())
    socket.on('error', () => {})
    socket.on('end', () => socket.end())
  })
  await once(server.listen(peer.port, '127.0.0.1'), 'listening')
  peer.server = server
}

const fails = async (peer: Peer): Promise<void> => {
  const { server } = peer
  peer.server = undefined
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
}

type Alert = {
  readonly status: 'firing' | 'resolved'
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

peerSuite(postgresMissing, 'W4 three nodes divide the monitors of one PostgreSQL', () => {
  let server: PostgresServer
  let store: string
  let yaml: string
  const peers: Peer[] = []
  const proxies = new Map<Name, CutProxy>()
  const nodes = new Map<Name, ServeNode>()
  const alerts: Alert[] = []
  let closeHook = async (): Promise<void> => {}

  const start = async (name: Name): Promise<void> => {
    const url = new URL(store)
    url.port = String(proxies.get(name)?.port)
    nodes.set(name, await startNode({ store: url.href, yaml: yaml.replace('NODE', name) }))
  }
  const node = (name: Name): ServeNode => {
    const found = nodes.get(name)
    if (!found) throw new Error(`no node ${name}`)
    return found
  }
  const logs = (): string => [...nodes].map(([name, one]) => `== ${name}\n${one.log().slice(-3_000)}`).join('\n')
  const owned = async (): Promise<number> => {
    const running = await Promise.all(names.map(async (name) => await figure(node(name), 'svc_node_monitors')))
    return running.reduce<number>((sum, one) => sum + (one ?? 0), 0)
  }
  /** The longest time without a probe of any peer since then, in milliseconds. */
  const longestGap = (from: number): number =>
    Math.max(
      ...peers.map(({ probes }) => {
        const times = [from, ...probes.filter((at) => at > from), performance.now()]
        return Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? at)))
      }),
    )
  const told = (status: Alert['status'], item: RegExp): readonly Alert[] =>
    alerts.filter((one) => one.status === status && item.test(`${one.labels.monitor} ${one.labels.item ?? ''}`))

  beforeAll(async () => {
    server = await startPostgres(['max_connections=100'])
    store = await freshDatabase(server)
    const hook = await httpPeer((request, response) => {
      void textOf(request).then((body) => {
        alerts.push(...(JSON.parse(body) as { alerts: readonly Alert[] }).alerts)
        response.writeHead(204).end()
      })
    })
    closeHook = async () => await hook[Symbol.asyncDispose]()
    for (let at = 0; at < 12; at += 1) {
      const peer: Peer = { name: `peer-${at}`, port: await freePort(), probes: [], server: undefined }
      await listen(peer)
      peers.push(peer)
    }
    const monitors = peers.map(({ name, port }) => `      - {kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}}`)
    yaml = `serve: {node: NODE, name: prod, confirm: 5s, every: {Standard: 10s}}
notify:
  - {name: chat, webhook: {url: "${hook.origin}/hook"}}
types:
  App:
    host: false
    monitors:
${monitors.join('\n')}
`
    for (const name of names) proxies.set(name, await cutProxy(server.port))
    for (const name of names) await start(name)
    await until(async () => (await owned()) === peers.length, 60_000)
  }, 180_000)

  afterAll(async () => {
    for (const one of nodes.values()) await one[Symbol.asyncDispose]()
    for (const proxy of proxies.values()) await proxy.close()
    for (const peer of peers) await fails(peer)
    await closeHook()
    await server.remove()
  }, 120_000)

  test('each monitor has one owner, and its server sees the probes of one node', { timeout: 180_000 }, async () => {
    const shares = await Promise.all(names.map(async (name) => await figure(node(name), 'svc_node_monitors')))
    expect(shares.every((share) => (share ?? 0) > 0)).toBe(true)
    for (const peer of peers) peer.probes = []
    await pause(9 * everyMs)
    // From the first probe to the last one, so that the edges of the time do not count.
    const rates = peers.map(({ probes }) => {
      const [first = 0] = probes
      return (probes.length - 1) / (((probes.at(-1) ?? 0) - first) / everyMs)
    })
    const mean = rates.reduce((all, one) => all + one, 0) / rates.length
    const gaps = peers.map(({ probes }) =>
      probes.map((at, index) => Math.round(at - (probes[index - 1] ?? at))).join(' '),
    )
    expect(mean, gaps.join('\n')).toBeGreaterThan(0.9)
    expect(mean, gaps.join('\n')).toBeLessThan(1.1)
  })

  test('a node that is killed leaves no monitor unwatched, and its loss is told', { timeout: 300_000 }, async () => {
    const from = performance.now()
    node('a').signal('SIGKILL')
    await node('a').ended
    await pause(40_000)
    expect(longestGap(from), logs()).toBeLessThan(everyMs + 20_000)
    await until(() => told('firing', /svc a/).length > 0, 120_000).catch(() => expect.fail(logs()))
    await start('a')
    await until(() => told('resolved', /svc a/).length > 0, 120_000).catch(() => expect.fail(logs()))
  })

  test('a fault is told once, and its end, although its owner is killed in between', { timeout: 300_000 }, async () => {
    const peer = peers[0] as Peer
    await fails(peer)
    await until(() => told('firing', /peer-0 /).length > 0, 90_000).catch(() => expect.fail(logs()))
    const owner = await ownerOf(peer)
    // A message whose acceptance is not stored is sent once more.
    await pause(5_000)
    node(owner).signal('SIGKILL')
    await node(owner).ended
    await pause(25_000)
    await listen(peer)
    await until(() => told('resolved', /peer-0 /).length > 0, 90_000).catch(() => expect.fail(logs()))
    await start(owner)
    await pause(15_000)
    expect(told('firing', /peer-0 /)).toHaveLength(1)
    expect(told('resolved', /peer-0 /)).toHaveLength(1)
    const [begin] = told('firing', /peer-0 /)
    const [end] = told('resolved', /peer-0 /)
    expect(end?.annotations.incident).toBe(begin?.annotations.incident)
  })

  /** The node whose /metrics has the incident of this peer. */
  const ownerOf = async (peer: Peer): Promise<Name> => {
    for (const name of names) {
      const { body } = await ask(`${node(name).url}/metrics`)
      const line = body.split('\n').find((one) => one.startsWith('svc_incident_info{') && one.includes(peer.name))
      if (line !== undefined) return name
    }
    throw new Error(`no node has the incident of ${peer.name}`)
  }

  test('a frozen node, a node without the store and a restart of PostgreSQL tell nobody anything that did not happen', {
    timeout: 300_000,
  }, async () => {
    const before = alerts.length
    const from = performance.now()
    node('b').signal('SIGSTOP')
    await pause(25_000)
    node('b').signal('SIGCONT')
    await pause(15_000)
    proxies.get('c')?.stall()
    await pause(25_000)
    proxies.get('c')?.heal('lost')
    await pause(20_000)
    await server.restartInPlace('fast')
    await pause(20_000)
    expect(longestGap(from), logs()).toBeLessThan(everyMs + 20_000)
    expect(alerts.slice(before), logs()).toEqual([])
    await until(async () => (await owned()) === peers.length, 60_000).catch(() => expect.fail(logs()))
  })

  test('a fault that begins and ends while no node reaches the store is told, and its end', {
    timeout: 300_000,
  }, async () => {
    const peer = peers[1] as Peer
    for (const proxy of proxies.values()) proxy.stall()
    await pause(15_000)
    await fails(peer)
    await until(() => told('firing', /peer-1 /).length > 0, 150_000).catch(() => expect.fail(logs()))
    for (const proxy of proxies.values()) proxy.heal('lost')
    await pause(5_000)
    await listen(peer)
    await until(() => told('resolved', /peer-1 /).length > 0, 150_000).catch(() => expect.fail(logs()))
  })

  test('a node that ends in order hands its monitors over at once, and nobody is told', {
    timeout: 180_000,
  }, async () => {
    const before = alerts.length
    const from = performance.now()
    expect(await node('c').stop()).toBe(0)
    await pause(90_000)
    expect(longestGap(from), logs()).toBeLessThan(everyMs + 10_000)
    expect(alerts.slice(before), logs()).toEqual([])
    await start('c')
  })
})

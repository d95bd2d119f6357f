import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, figure, type ServeNode, startNode } from '../../support/program/serve-node.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { freePort } from '../../support/servers/server.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { freshDatabase } from '../../support/store/data-fixture.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const names = ['node-a', 'node-b'] as const
type Name = (typeof names)[number]

/** The way of one node to the server: a port of its own, which may be closed. */
type Way = { readonly port: number; server: Server | undefined; probes: number }

async function open(way: Way): Promise<void> {
  const server = createServer((socket) => {
    way.probes += 1
    socket.on('error', () => {})
    socket.on('end', () => socket.end())
  })
  await once(server.listen(way.port, '127.0.0.1'), 'listening')
  way.server = server
}

const close = async (way: Way): Promise<void> => {
  const { server } = way
  way.server = undefined
  await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
}

type Alert = {
  readonly status: 'firing' | 'resolved'
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

peerSuite(postgresMissing, 'W26 two nodes, of which one cannot reach a server', () => {
  let server: PostgresServer
  const nodes = new Map<Name, ServeNode>()
  const ways = new Map<Name, Way>()
  const alerts: Alert[] = []
  let closeHook = async (): Promise<void> => {}
  let owner: Name
  let other: Name

  const of = <T>(map: ReadonlyMap<Name, T>, name: Name): T => {
    const one = map.get(name)
    if (one === undefined) throw new Error(`nothing of ${name}`)
    return one
  }
  const logs = (): string =>
    [...[...nodes].map(([name, one]) => `== ${name}\n${one.log().slice(-1_500)}`), JSON.stringify(alerts)].join('\n')
  const shop = (status: Alert['status'], severity?: string): readonly Alert[] =>
    alerts.filter(
      ({ status: is, labels }) =>
        is === status && labels.monitor?.includes('shop') && (severity === undefined || labels.severity === severity),
    )
  const eventually = async (holds: () => boolean | Promise<boolean>, ms = 120_000): Promise<void> => {
    if (!(await until(holds, ms, 250).catch(() => false))) expect.fail(logs())
  }
  const metric = async (name: Name, family: string): Promise<string | undefined> => {
    const { body } = await ask(`${of(nodes, name).url}/metrics`)
    return body.split('\n').find((one) => one.startsWith(`${family}{`) && one.includes('shop'))
  }

  beforeAll(async () => {
    server = await startPostgres(['max_connections=60'])
    const store = await freshDatabase(server)
    const hook = await httpPeer((request, response) => {
      void textOf(request).then((body) => {
        alerts.push(...(JSON.parse(body) as { alerts: readonly Alert[] }).alerts)
        response.writeHead(204).end()
      })
    })
    closeHook = async () => await hook[Symbol.asyncDispose]()
    for (const name of names) {
      const way: Way = { port: await freePort(), server: undefined, probes: 0 }
      await open(way)
      ways.set(name, way)
      const yaml = `serve: {node: ${name}, name: prod, confirm: 5s, every: {Standard: 10s}}
notify:
  - {name: chat, webhook: {url: "${hook.origin}/hook"}}
types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: shop, host: 127.0.0.1, port: ${way.port}}
`
      nodes.set(name, await startNode({ store, yaml }))
    }
    const holds = async (name: Name): Promise<boolean> => (await figure(of(nodes, name), 'svc_node_holds_lease')) === 1
    await until(async () => (await holds('node-a')) || (await holds('node-b')), 60_000)
    owner = (await holds('node-a')) ? 'node-a' : 'node-b'
    other = owner === 'node-a' ? 'node-b' : 'node-a'
  }, 120_000)

  afterAll(async () => {
    for (const one of nodes.values()) await one[Symbol.asyncDispose]()
    for (const way of ways.values()) await close(way)
    await closeHook()
    await server.remove()
  }, 60_000)

  test('while the other node reaches it, the failure is a warning that names both', { timeout: 300_000 }, async () => {
    // The state is confirmed once, before the fault.
    await eventually(async () => (await metric(owner, 'svc_check_confirmed')) !== undefined)
    const probes = of(ways, other).probes
    await close(of(ways, owner))
    await eventually(() => shop('firing', 'warning').length > 0)
    const text = JSON.stringify(shop('firing', 'warning'))
    expect(text).toContain(`${owner} cannot reach it, ${other} can: `)
    expect(await metric(owner, 'svc_check_confirmed_warning')).toMatch(/ 1$/)
    expect(await metric(other, 'svc_check_confirmed_warning')).toBeUndefined()
    expect((await ask(`${of(nodes, owner).url}/`, { headers: { accept: 'text/html' } })).body).toContain(
      `${owner} cannot reach it, ${other} can`,
    )
    // It is asked again at each bad run.
    const probesSoFar = of(ways, other).probes
    expect(probesSoFar).toBeGreaterThan(probes)
    await eventually(() => of(ways, other).probes >= probesSoFar + 2)
    expect(shop('firing', 'critical')).toEqual([])
  })

  test('when the other node does not reach it either, it becomes a failure, and then recovers', {
    timeout: 300_000,
  }, async () => {
    await close(of(ways, other))
    await eventually(() => shop('firing', 'critical').length > 0)
    const [failed] = shop('firing', 'critical')
    expect(failed?.annotations.incident).toBe(shop('firing', 'warning')[0]?.annotations.incident)
    expect(JSON.stringify(failed)).not.toContain('cannot reach it')
    await open(of(ways, other))
    await open(of(ways, owner))
    await eventually(() => shop('resolved').length > 0)
    expect(await metric(owner, 'svc_check_confirmed_warning')).toBeUndefined()
  })

  test('a node that gives no answer prevents no message about a failure', { timeout: 300_000 }, async () => {
    const before = alerts.length
    of(nodes, other).signal('SIGSTOP')
    try {
      await close(of(ways, owner))
      await eventually(() => shop('firing', 'critical').some((one) => alerts.indexOf(one) >= before))
    } finally {
      of(nodes, other).signal('SIGCONT')
    }
    expect(shop('firing', 'warning').filter((one) => alerts.indexOf(one) >= before)).toEqual([])
    await open(of(ways, owner))
    const isEnded = (one: Alert): boolean => alerts.indexOf(one) >= before
    await eventually(() => shop('resolved').some(isEnded))
  })
})

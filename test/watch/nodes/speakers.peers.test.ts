import { text as textOf } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CutProxy, cutProxy } from '../../support/faults/cut-proxy.ts'
import { type ProbedPeer, probedPeer } from '../../support/faults/probed-peers.ts'
import { type AlertSink, alertSink, itemOf, type ReceivedAlert } from '../../support/notify/alert-sink.ts'
import { ask, figure, type ServeNode, startNode } from '../../support/program/serve-node.ts'
import { balancedNodes } from '../../support/servers/balanced-nodes.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { haproxyMissing, type ReverseProxy, startHaproxy } from '../../support/servers/reverse-proxy.ts'
import { freePort, lastingPort } from '../../support/servers/server.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'
import { freshDatabase } from '../../support/store/data-fixture.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

/** In an outage, the nodes send after this time. */
const aloneMs = 60_000
const names = ['a', 'b', 'c'] as const

/** An event as PagerDuty gets it. */
type Page = {
  readonly event_action: 'trigger' | 'resolve'
  readonly dedup_key: string
  readonly payload?: { readonly component: string; readonly custom_details: { readonly incident: string } }
}

peerSuite(
  postgresMissing ?? haproxyMissing,
  'W4 three nodes with one serve.url behind HAProxy, whose PostgreSQL goes away',
  () => {
    let server: PostgresServer
    let balancer: ReverseProxy
    /** Gets one message a minute at most. */
    let chat: AlertSink
    /** Gets each event at once. */
    let pager: HttpPeer
    const pages: Page[] = []
    /** To PostgreSQL, and to each node as the others reach it. */
    let way: CutProxy
    const ways: CutProxy[] = []
    const peers: ProbedPeer[] = []
    const nodes = new Map<string, ServeNode>()

    const peer = (n: number): ProbedPeer => {
      const one = peers[n]
      if (!one) throw new Error(`no peer ${n}`)
      return one
    }
    const about = ({ name }: ProbedPeer): RegExp => new RegExp(`${name} `)
    const incidents = (status: ReceivedAlert['status'], n: number): readonly string[] =>
      chat.of(status, about(peer(n))).map(({ annotations }) => String(annotations.incident))
    /** The begins or the ends of the fault of a peer. */
    const paged = (action: Page['event_action'], n: number): readonly Page[] => {
      const isOf = ({ payload }: Page): boolean => payload?.component.endsWith(` ${peer(n).name}`) === true
      const key = pages.find(isOf)?.dedup_key
      return pages.filter((one) => one.event_action === action && one.dedup_key === key)
    }
    const logs = (): string =>
      [...nodes].map(([name, one]) => `== ${name}\n${one.log().slice(-2_500)}`).join('\n') +
      chat.alerts.map((one) => `\n${one.status} ${itemOf(one)} ${one.annotations.incident}`).join('') +
      pages.map((one) => `\n${one.event_action} ${one.payload?.component ?? one.dedup_key}`).join('')
    const wait = async (holds: () => boolean | Promise<boolean>, ms = 180_000): Promise<void> => {
      await until(holds, ms, 200).catch((error: unknown) => expect.fail(`${error}\n${logs()}`))
    }
    const holders = async (): Promise<readonly string[]> => {
      const all = [...nodes].map(async ([name, one]) =>
        (await figure(one, 'svc_node_holds_lease')) === 1 ? [name] : [],
      )
      return (await Promise.all(all)).flat()
    }
    /** The lengths of the logs when the latest outage began. */
    const lengths = new Map<string, number>()
    const loseStore = (): void => {
      way.stall()
      for (const [name, one] of nodes) lengths.set(name, one.log().length)
    }
    /** The nodes whose log has this since then. */
    const saying = (text: string): readonly string[] =>
      [...nodes].flatMap(([name, one]) => (one.log().slice(lengths.get(name)).includes(text) ? [name] : []))

    beforeAll(async () => {
      server = await startPostgres(['max_connections=80'])
      const store = await freshDatabase(server)
      way = await cutProxy(server.port)
      chat = await alertSink()
      pager = await httpPeer((request, response) => {
        void textOf(request).then((body) => {
          pages.push(JSON.parse(body) as Page)
          response.writeHead(202).end('{}')
        })
      })
      for (let n = 0; n < 4; n += 1) peers.push(await probedPeer(`peer-${n}`, await freePort()))
      const ports: number[] = []
      for (let n = 0; n < names.length; n += 1) ports.push(await lastingPort())
      for (const port of ports) ways.push(await cutProxy(port))
      balancer = await startHaproxy(balancedNodes(ports, { answerWithin: '5s', tries: 4, passes503: true }))
      for (const [at, name] of names.entries()) {
        const yaml = `serve:
  node: ${name}
  name: prod
  url: "http://127.0.0.1:${balancer.port}"
  peer: "http://127.0.0.1:${ways[at]?.port}"
  confirm: 5s
  every: {Standard: 10s}
notify:
  - {name: chat, webhook: {url: "${chat.url}"}}
  - {name: pager, pagerduty: {url: "${pager.origin}", routingKey: {env: PAGER}}}
types:
  App:
    host: false
    monitors:
${peers.map((one) => `      - {kind: tcp, name: ${one.name}, host: 127.0.0.1, port: ${one.port}, expect: hello}\n`).join('')}`
        const own = store.replace(`:${server.port}/`, `:${way.port}/`)
        nodes.set(name, await startNode({ store: own, yaml, port: ports[at] ?? 0, env: { PAGER: 'key' } }))
      }
      await wait(async () => (await holders()).length === 1)
      await wait(async () => (await ask(`http://127.0.0.1:${balancer.port}/livez`)).status === 200)
      // Every node knows the others.
      const live = async (): Promise<readonly (number | undefined)[]> =>
        await Promise.all([...nodes.values()].map((one) => figure(one, 'svc_nodes{state="live"}')))
      await wait(async () => (await live()).every((one) => one === names.length))
    }, 240_000)
    afterAll(async () => {
      for (const one of nodes.values()) await one[Symbol.asyncDispose]()
      await balancer?.[Symbol.asyncDispose]()
      for (const one of [...ways, way]) await one?.close()
      for (const one of peers) await one.close()
      await chat?.[Symbol.asyncDispose]()
      await pager?.[Symbol.asyncDispose]()
      await server?.remove()
    }, 120_000)

    test('while PostgreSQL is away for 90 s, each fault has one begin and one end, whether it is older, younger or over by then', {
      timeout: 600_000,
    }, async () => {
      peer(0).fail()
      await wait(() => paged('trigger', 0).length > 0)
      const [holder] = await holders()
      const from = performance.now()
      loseStore()
      await pause(5_000)
      peer(0).recover()
      peer(1).fail()
      peer(2).fail()
      await wait(() => [1, 2].every((n) => paged('trigger', n).length > 0))
      expect(performance.now() - from).toBeGreaterThan(aloneMs)
      peer(1).recover()
      await wait(() => [0, 1].every((n) => paged('resolve', n).length > 0))
      await pause(Math.max(0, 90_000 - (performance.now() - from)))
      expect(saying('it sends messages by itself'), logs()).toEqual([holder])
      const others = names.filter((name) => name !== holder)
      expect(saying(`${holder} sends the messages about the network`), logs()).toEqual(others)
      way.heal('lost')
      await wait(async () => (await holders()).length === 1)
      // What stands is not sent once more.
      await pause(15_000)
      expect(paged('resolve', 2)).toEqual([])
      peer(2).recover()
      await wait(() => paged('resolve', 2).length > 0)
      for (const n of [0, 1, 2])
        expect([paged('trigger', n).length, paged('resolve', n).length], logs()).toEqual([1, 1])
      expect(pages.length, logs()).toBe(6)
    })

    test('nodes that lose each other as well tell it each, and each of their incidents ends', {
      timeout: 600_000,
    }, async () => {
      loseStore()
      peer(3).fail()
      await wait(() => paged('trigger', 3).length > 0)
      await wait(() => saying('sends the messages about the network').length === names.length - 1)
      expect(paged('trigger', 3).length, logs()).toBe(1)
      for (const one of ways) one.stall()
      await wait(() => incidents('firing', 3).length === names.length)
      const ids = new Set(paged('trigger', 3).map(({ payload }) => payload?.custom_details.incident))
      expect([ids.size, paged('trigger', 3).length], logs()).toEqual([names.length, names.length])
      for (const one of [...ways, way]) one.heal('lost')
      peer(3).recover()
      await wait(() => new Set(incidents('resolved', 3)).size === names.length)
      expect(new Set(incidents('resolved', 3)), logs()).toEqual(ids)
      // What began and ended between two messages of a webhook is one line, about its end.
      for (const n of [0, 1, 2]) {
        expect(incidents('resolved', n).length, logs()).toBe(1)
        expect(incidents('resolved', n), logs()).toEqual(expect.arrayContaining([...incidents('firing', n)]))
      }
    })
  },
)

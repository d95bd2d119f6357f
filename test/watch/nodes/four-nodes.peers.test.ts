import { text as textOf } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ProbedPeer, probedPeer } from '../../support/faults/probed-peers.ts'
import { type AlertSink, alertSink, type ReceivedAlert } from '../../support/notify/alert-sink.ts'
import { type LeaseNodes, leaseNodes } from '../../support/program/lease-nodes.ts'
import { balancedNodes } from '../../support/servers/balanced-nodes.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import {
  type PrometheusServer,
  prometheusMissing,
  shippedForPrometheus,
  startPrometheus,
} from '../../support/servers/prometheus.ts'
import { haproxyMissing, type ReverseProxy, startHaproxy } from '../../support/servers/reverse-proxy.ts'
import { asServer, freePort, lastingPort } from '../../support/servers/server.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'
import { freshDatabase } from '../../support/store/data-fixture.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const names = ['a', 'b', 'c', 'd'] as const
/** How long the outage lasts through which the nodes are restarted. Milliseconds. */
const outageMs = 90_000
/** The time within which a change by a caller reaches the other nodes. Milliseconds. */
const soonMs = 5_000

/** A request of `serve.ping`, or an alert for a simulated Alertmanager. */
type Received = { readonly node: string; readonly alert: ReceivedAlert | undefined; readonly at: number }

peerSuite(
  postgresMissing ?? haproxyMissing ?? prometheusMissing,
  'W4 four nodes with one serve.url behind HAProxy, scraped by Prometheus with the shipped rules',
  () => {
    let server: PostgresServer
    let balancer: ReverseProxy
    let prometheus: PrometheusServer
    let chat: AlertSink
    let web: HttpPeer
    let shop: ProbedPeer
    let calm: ProbedPeer
    /** Its fault is acknowledged. */
    let door: ProbedPeer
    let nodes: LeaseNodes
    const received: Received[] = []
    const startedAt = new Map<string, number>()

    const start = async (name: string): Promise<void> => {
      startedAt.set(name, performance.now())
      await nodes.start(name)
    }
    /** The nodes that sent alerts that match to Alertmanager since then. */
    const senders = (alert: RegExp, since = 0): readonly string[] => [
      ...new Set(
        received.flatMap(({ node, alert: one, at }) =>
          at >= since && one && alert.test(`${one.labels.alertname} ${one.labels.monitor}`) ? [node] : [],
        ),
      ),
    ]
    const messagesOf = (name: string): readonly number[] =>
      (['firing', 'resolved'] as const).map((status) => chat.of(status, new RegExp(`tcp ${name}`)).length)
    const hasBegin = (name: string) => (): boolean => (messagesOf(name)[0] ?? 0) > 0
    const alertOf = (name: string): string =>
      `ALERTS{alertname="SvcCheckFailed",monitor="tcp ${name}",alertstate="firing"}`
    const matches = async (name: string, series: RegExp): Promise<boolean> =>
      series.test(await nodes.text(name, '/metrics'))

    beforeAll(async () => {
      server = await startPostgres(['max_connections=120'])
      const store = await freshDatabase(server)
      chat = await alertSink()
      web = await httpPeer((request, response) => {
        const [, what = '', node = ''] = request.url?.split('/') ?? []
        const at = performance.now()
        if (what === 'ping') received.push({ node, alert: undefined, at })
        void textOf(request).then((body) => {
          if (what === 'am' && request.method === 'POST') {
            const alerts = JSON.parse(body) as readonly ReceivedAlert[]
            received.push(...alerts.map((alert) => ({ node, alert, at })))
          }
          response.writeHead(200, { 'content-type': 'application/json' }).end('[]')
        })
      })
      ;[shop, calm, door] = (await Promise.all(
        ['shop', 'calm', 'door'].map(async (name) => await probedPeer(name, await freePort())),
      )) as [ProbedPeer, ProbedPeer, ProbedPeer]
      const ports = new Map<string, number>()
      for (const name of names) ports.set(name, await lastingPort())
      balancer = await startHaproxy(balancedNodes([...ports.values()], { passes503: true }))
      nodes = leaseNodes((name) => ({
        store,
        port: ports.get(name) ?? 0,
        flags: ['--local-account', String(asServer.uid ?? process.getuid?.())],
        env: { PING_URL: `${web.origin}/ping/${name}` },
        yaml: `serve:
  node: ${name}
  name: prod
  url: http://127.0.0.1:${balancer.port}
  ping: {env: PING_URL}
  confirm: 5s
  every: {Standard: 10s}
notify:
  - {name: chat, webhook: {url: "${chat.url}"}}
  - {name: am, alertmanager: {urls: ["${web.origin}/am/${name}"]}}
drill: {through: [chat]}
types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: shop, host: 127.0.0.1, port: ${shop.port}, expect: hello}
      - {kind: tcp, name: calm, host: 127.0.0.1, port: ${calm.port}, expect: hello}
      - {kind: tcp, name: door, host: 127.0.0.1, port: ${door.port}, expect: hello}
      - {kind: file-age, name: here, path: '${process.execPath}', age: {warn: 3000d, limit: 3650d}}
`,
      }))
      for (const name of names) await start(name)
      await nodes.holder()
      const targets = [...ports.values()].map((port) => `'127.0.0.1:${port}'`).join(', ')
      // What takes minutes is as it is shipped: nothing of it may become an alert.
      prometheus = await startPrometheus(shippedForPrometheus(targets))
    }, 240_000)
    afterAll(async () => {
      await prometheus?.remove()
      await nodes?.[Symbol.asyncDispose]()
      await balancer?.[Symbol.asyncDispose]()
      for (const one of [shop, calm, door]) await one?.close()
      await chat?.[Symbol.asyncDispose]()
      await web?.[Symbol.asyncDispose]()
      await server?.remove()
    }, 120_000)

    test('a fault is told by the holder alone; acknowledgements, silences and drills at another node reach the holder within 5 s', async () => {
      door.fail()
      await nodes.wait(hasBegin('door'))
      const [own, other] = [await nodes.holder(), await nodes.standby()]
      expect([messagesOf('door'), senders(/door/)]).toEqual([[1, 0], [own]])
      await nodes.call(other, '/silences/acknowledge', { Monitor: 'tcp door', Reason: 'we know', For: 'PT1H' })
      await nodes.wait(() => matches(own, /svc_check_silenced\{.*tcp door.*source="ack"/), soonMs)
      const answer = await nodes.call(other, '/silences/monitors', {
        Monitors: ['tcp calm'],
        Reason: 'move',
        For: 'PT1H',
      })
      const { Silence } = JSON.parse(answer) as { readonly Silence: { readonly Id: string } }
      await nodes.wait(() => matches(own, /svc_check_silenced\{.*tcp calm.*source="hand"/), soonMs)
      await nodes.call(other, '/silences/end', { Id: Silence.Id })
      await nodes.wait(async () => !(await matches(own, /svc_check_silenced\{.*tcp calm/)), soonMs)
      const { Drill } = JSON.parse(await nodes.call(other, '/drills/start', {})) as {
        readonly Drill: { readonly Id: string }
      }
      await nodes.wait(async () => (await nodes.call(own, '/drills')).includes(Drill.Id), soonMs)
      await nodes.wait(() => chat.alerts.some(({ labels }) => labels.drill === 'true'))
      door.recover()
    }, 240_000)

    test('a fault of 90 s is told once while all nodes are restarted one by one and the holder is killed, and Prometheus has an alert of it all the time', async () => {
      const began = performance.now()
      shop.fail()
      for (const name of names) {
        await nodes.end(name, 'SIGTERM')
        await start(name)
        await nodes.wait(async () => (await fetch(`${nodes.get(name).url}/readyz`)).status === 200)
      }
      await nodes.wait(hasBegin('shop'))
      await nodes.wait(async () => (await prometheus.query(alertOf('shop'))).length > 0)
      const alerted = performance.now()
      // A message whose acceptance is not stored is sent once more.
      await pause(soonMs)
      const own = await nodes.holder()
      const killed = performance.now()
      await nodes.end(own, 'SIGKILL')
      const next = await nodes.holder()
      await start(own)
      // From the next holder before that of the one before is over.
      const address = new URL(nodes.get(next).url).host
      await nodes.wait(
        async () => (await prometheus.query(alertOf('shop'))).some(({ labels }) => labels.instance === address),
        60_000,
      )
      await pause(Math.max(0, outageMs - (performance.now() - began)))
      expect([messagesOf('shop'), senders(/shop/, killed + 10_000)]).toEqual([[1, 0], [next]])
      const seconds = Math.floor((performance.now() - alerted) / 1_000)
      const least = await prometheus.query(`min_over_time((count(${alertOf('shop')}) or vector(0))[${seconds}s:1s])`)
      expect(least[0]?.value).toBeGreaterThan(0)
      shop.recover()
      await nodes.wait(() => (messagesOf('shop')[1] ?? 0) > 0)
      expect([messagesOf('shop'), messagesOf('door')]).toEqual([
        [1, 1],
        [1, 1],
      ])

      // All of them have watched for a minute.
      await nodes.wait(() => senders(/^SvcWatchdog/, killed).length > 0)
      expect(senders(/^SvcWatchdog/, killed)).toEqual([next])
      for (const name of names) {
        const since = startedAt.get(name) ?? 0
        const ping = await nodes.wait(
          () => received.find((one) => one.node === name && !one.alert && one.at > since) ?? false,
        )
        expect(ping.at - since).toBeGreaterThan(60_000)
      }
      process.stdout.write(`the outage and what follows took ${Math.round((performance.now() - began) / 1_000)} s\n`)
    }, 400_000)

    test('Prometheus had no other alert, and none about a node that stands by', async () => {
      await nodes.wait(async () => (await prometheus.query('svc_check_confirmed{monitor=~"tcp .*"} == 0')).length === 0)
      const all = await prometheus.query('count_over_time(ALERTS{alertstate="firing"}[1h])')
      const alerts = new Set(all.map(({ labels }) => `${labels.alertname} ${labels.monitor}`))
      expect([...alerts].sort()).toEqual(['SvcCheckFailed tcp door', 'SvcCheckFailed tcp shop'])
      expect(await prometheus.query('svc_node_holds_lease == 1')).toHaveLength(1)
      expect(await prometheus.query('count by (monitor) (svc_monitor_info{scope="network"}) != 1')).toEqual([])
    }, 120_000)
  },
)

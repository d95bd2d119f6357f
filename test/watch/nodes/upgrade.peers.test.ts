import { afterAll, beforeAll, expect, test } from 'vitest'
import { maxGap, type ProbedPeer, probedPeer } from '../../support/faults/probed-peers.ts'
import { type AlertSink, alertSink, type ReceivedAlert } from '../../support/notify/alert-sink.ts'
import { type LeaseNodes, leaseNodes } from '../../support/program/lease-nodes.ts'
import { buildVersion, isHere } from '../../support/program/version-0.1.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { freePort, lastingPort } from '../../support/servers/server.ts'
import { freshDatabase } from '../../support/store/data-fixture.ts'
import { peerSuite } from '../../support/suite/peer.ts'

/** The last commit in which nodes share the monitors of the network among themselves. */
const sharing = '640ed162985d08c06772e15eb79347d1cd304216'
const names = ['a', 'b', 'c'] as const

peerSuite(
  postgresMissing ??
    (isHere(sharing) ? undefined : 'the version that shares monitors is not in the history that is here'),
  'W6 three nodes of the version that shares monitors, on one PostgreSQL',
  () => {
    let server: PostgresServer
    let earlier: ReturnType<typeof buildVersion>
    let shop: ProbedPeer
    let chat: AlertSink
    let nodes: LeaseNodes
    const messagesOf = (status: ReceivedAlert['status']): number => chat.of(status, /shop/).length
    /** Replaces a node by one of this version, or of the earlier one. */
    const replace = async (name: string, program?: string): Promise<void> => {
      await nodes.end(name, 'SIGTERM')
      await nodes.start(name, program === undefined ? {} : { program })
    }

    beforeAll(async () => {
      server = await startPostgres(['max_connections=80'])
      earlier = buildVersion(sharing)
      const store = await freshDatabase(server)
      shop = await probedPeer('shop', await freePort())
      chat = await alertSink()
      const ports = new Map<string, number>()
      for (const name of names) ports.set(name, await lastingPort())
      nodes = leaseNodes((name) => ({
        store,
        port: ports.get(name) ?? 0,
        yaml: `serve: {node: ${name}, name: prod, confirm: 5s, every: {Standard: 10s}}
notify:
  - {name: chat, webhook: {url: "${chat.url}"}}
types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: shop, host: 127.0.0.1, port: ${shop.port}, expect: hello}
`,
      }))
      for (const name of names) await nodes.start(name, { program: earlier.program })
    }, 240_000)
    afterAll(async () => {
      await nodes?.[Symbol.asyncDispose]()
      await shop?.close()
      await chat?.[Symbol.asyncDispose]()
      earlier?.remove()
      await server?.remove()
    }, 120_000)

    test('W6 they are replaced one by one while a fault is open, and back but for the last one: it is told once, and its end', async () => {
      shop.fail()
      await nodes.wait(() => messagesOf('firing') > 0)
      const from = performance.now()
      for (const name of names) {
        // While one of the earlier version is live, no node of this version takes the lease.
        expect(await nodes.holders()).toEqual([])
        await replace(name)
      }
      const own = await nodes.holder()
      await nodes.wait(async () => /^svc_incident_info\{.*tcp shop/m.test(await nodes.text(own, '/metrics')))
      for (const name of names.filter((one) => one !== own)) {
        await replace(name, earlier.program)
        expect(await nodes.holders()).toEqual([own])
      }
      expect([messagesOf('firing'), messagesOf('resolved')]).toEqual([1, 0])
      expect(maxGap([shop], from)).toBeLessThan(30_000)
      shop.recover()
      await nodes.wait(() => messagesOf('resolved') > 0)
      // The last one goes back, too. What those of the earlier version know of the fault is over by then.
      await replace(own, earlier.program)
      await nodes.wait(() => shop.probes.some((at) => at > performance.now() - 1_000))
      expect([messagesOf('firing'), messagesOf('resolved')]).toEqual([1, 1])
    }, 400_000)
  },
)

import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CutProxy, cutProxy } from '../../support/faults/cut-proxy.ts'
import { maxGap, type ProbedPeer, probedPeer } from '../../support/faults/probed-peers.ts'
import { type AlertSink, alertSink } from '../../support/notify/alert-sink.ts'
import { type LeaseNodes, leaseNodes } from '../../support/program/lease-nodes.ts'
import { ask } from '../../support/program/serve-node.ts'
import { type Pgbouncer, pgbouncerMissing, startPgbouncer } from '../../support/servers/pgbouncer.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { freePort } from '../../support/servers/server.ts'
import { freshDatabase, storePassword } from '../../support/store/data-fixture.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const everyMs = 10_000
/** Fewer connections of the database than the nodes have to PgBouncer: none of them has one of its own. */
const serverConnections = 4

peerSuite(
  postgresMissing ?? pgbouncerMissing,
  'W4 three nodes of one PostgreSQL behind PgBouncer in transaction mode, of which one holds the lease',
  () => {
    let server: PostgresServer
    let database: string
    let bouncer: Pgbouncer
    let way: CutProxy
    let peer: ProbedPeer
    let chat: AlertSink
    let nodes: LeaseNodes

    /** The lease in PostgreSQL, and the number of connections that PgBouncer has to it. */
    const stored = async () => {
      const [lease] = await server.query(`SELECT "node", "epoch" FROM "leases" WHERE "shard" = 'network'`, database)
      const of = `WHERE datname = '${database}' AND pid <> pg_backend_pid()`
      const [used] = await server.query(`SELECT count(*)::int AS n FROM pg_stat_activity ${of}`, database)
      return { lease, connections: Number(used?.n) }
    }

    beforeAll(async () => {
      server = await startPostgres(['max_connections=80'])
      const direct = await freshDatabase(server)
      database = new URL(direct).pathname.slice(1)
      bouncer = await startPgbouncer({
        users: { svc: storePassword },
        databases: {
          [database]: `host=127.0.0.1 port=${server.port} dbname=${database} user=svc password='${storePassword}'`,
        },
        settings: { default_pool_size: serverConnections },
      })
      way = await cutProxy(bouncer.port)
      peer = await probedPeer('shop', await freePort())
      chat = await alertSink()
      nodes = leaseNodes((name) => ({
        store: direct.replace(`:${server.port}/`, `:${way.port}/`),
        yaml: `serve: {node: ${name}, name: prod, url: "https://${name}.example.com", confirm: 5s, every: {Standard: 10s}}
notify:
  - {name: chat, webhook: {url: "${chat.url}"}}
types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: shop, host: 127.0.0.1, port: ${peer.port}, expect: hello}
      - {kind: file-age, name: here, path: '${process.execPath}', age: {warn: 3000d, limit: 3650d}}
`,
      }))
      for (const name of ['a', 'b', 'c']) await nodes.start(name)
      await nodes.holder()
    }, 240_000)
    afterAll(async () => {
      await nodes?.[Symbol.asyncDispose]()
      await way?.close()
      await bouncer?.remove()
      await peer?.close()
      await chat?.[Symbol.asyncDispose]()
      await server?.remove()
    }, 120_000)

    test('one node runs the network monitors; the others have those of their machine and no series of the network', async () => {
      const own = await nodes.holder()
      await nodes.wait(() => peer.probes.length > 0)
      for (const name of nodes.names()) {
        // What a caller learns at a node that stands by is no result of it.
        expect((await ask(`${nodes.get(name).url}/healthcheck?ServerType=App&ExecutionMode=Standard`)).status).toBe(200)
        const series = async (monitor: string): Promise<number> => {
          const body = await nodes.text(name, '/metrics')
          return body.split('\n').filter((line) => line.includes(`monitor="${monitor}"`)).length
        }
        await nodes.wait(async () => (await series('file-age here')) > 0)
        if (name === own) await nodes.wait(async () => (await series('tcp shop')) > 0)
        else expect([name, await series('tcp shop')]).toEqual([name, 0])
        expect([name, await nodes.figure(name, 'svc_node_holds_lease')]).toEqual([name, Number(name === own)])
        await nodes.wait(async () => (await nodes.figure(name, 'svc_nodes{state="live"}')) === 3)
      }
    }, 240_000)

    test('page and board of a node that stands by name the holder in their first line, with a link, and call nothing healthy', async () => {
      const [own, other] = [await nodes.holder(), await nodes.standby()]
      for (const path of ['/', '/board']) {
        const page = await nodes.text(other, path)
        const header = /<header class="([^"]*)">\s*(.*)/.exec(page)
        expect([path, header?.[1], header?.[2]]).toEqual([
          path,
          // Neither green nor red: what is healthy here is its machine, and the rest is not known here.
          'none',
          `<p><a href="https://${own}.example.com${path}">${own}</a> runs the monitors of the network.</p>`,
        ])
        expect(await nodes.text(own, path)).not.toContain('runs the monitors of the network')
        // Whoever asked for a run here sees what it found.
        if (path === '/') expect(page).toMatch(/tcp shop<\/a>.*(just now|s ago)/)
      }
    }, 240_000)

    test('what callers run at a node that stands by confirms nothing: no incident, no message and no series, although it fails there each time', async () => {
      const [own, other] = [await nodes.holder(), await nodes.standby()]
      const { config } = nodes.get(other)
      const yaml = readFileSync(config, 'utf8')
      const reload = async (text: string): Promise<void> => {
        const reloads = (): number => nodes.get(other).log().split('"reloaded: ').length
        const before = reloads()
        writeFileSync(config, text, { mode: 0o600 })
        nodes.get(other).signal('SIGHUP')
        await nodes.wait(() => reloads() > before)
      }
      // From there, the peer is elsewhere, where nothing listens.
      await reload(yaml.replace(`port: ${peer.port}`, `port: ${await freePort()}`))
      // Three times as long as a fault needs to be confirmed.
      for (let n = 0; n < 15; n += 1) {
        const { status, body } = await ask(`${nodes.get(other).url}/healthcheck?ServerType=App&ExecutionMode=Standard`)
        expect([status, body]).toEqual([503, expect.stringContaining('refused')])
        await pause(1_000)
      }
      expect(await server.query('SELECT "id" FROM "historyIncidents"', database)).toEqual([])
      for (const name of nodes.names()) expect(await nodes.text(name, '/metrics')).not.toContain('svc_incident_info{')
      expect(await nodes.text(other, '/metrics')).not.toContain('tcp shop')
      expect(await nodes.text(own, '/metrics')).toMatch(/^svc_check_confirmed\{[^}]*"tcp shop"[^}]*\} 1$/m)
      expect(chat.alerts).toEqual([])
      await reload(yaml)
      expect(await nodes.holder()).toBe(own)
    }, 240_000)

    test('a PostgreSQL that is away for 4 s moves no lease', async () => {
      const own = await nodes.holder()
      const { lease } = await stored()
      way.stall()
      await pause(4_000)
      way.heal('lost')
      expect(await nodes.holder()).toBe(own)
      expect((await stored()).lease).toEqual(lease)
    }, 240_000)

    test('a fault is told once, and its end, although the holder is killed in between, and nothing is unwatched for long', async () => {
      peer.fail()
      await nodes.wait(() => chat.of('firing', /shop/).length > 0)
      const [own, other] = [await nodes.holder(), await nodes.standby()]
      // It is acknowledged at a node that stands by, and the holder knows.
      const ack = await nodes.call(other, '/silences/acknowledge', {
        Monitor: 'tcp shop',
        Reason: 'we know',
        For: 'PT1H',
      })
      expect(ack).toContain('"Source":"Ack"')
      await nodes.wait(async () => (await nodes.call(own, '/silences')).includes('"Source":"Ack"'), 10_000)
      const from = performance.now()
      await nodes.end(own, 'SIGKILL')
      const killed = performance.now()
      const next = await nodes.holder()
      expect(next).not.toBe(own)
      const { lease, connections } = await stored()
      expect(lease).toMatchObject({ node: next })
      expect(connections).toBeLessThanOrEqual(serverConnections)
      process.stdout.write(`from the kill to the next holder: ${Math.round(performance.now() - from)} ms\n`)
      peer.recover()
      await nodes.wait(() => chat.of('resolved', /shop/).length > 0)
      expect(maxGap([peer], from)).toBeLessThan(everyMs + 20_000)
      const first = peer.probes.find((at) => at > killed) ?? Number.NaN
      process.stdout.write(`from the kill to the first run of the next holder: ${Math.round(first - killed)} ms\n`)
      expect([chat.of('firing', /shop/).length, chat.of('resolved', /shop/).length]).toEqual([1, 1])
      await nodes.start(own)
    }, 300_000)

    test('a holder that ends in order leaves the lease to the next node at once, and nobody is told', async () => {
      const before = chat.alerts.length
      const own = await nodes.holder()
      await nodes.end(own, 'SIGTERM')
      const from = performance.now()
      expect(await nodes.holder()).not.toBe(own)
      process.stdout.write(`from SIGTERM to the next holder: ${Math.round(performance.now() - from)} ms\n`)
      const first = await nodes.wait(() => peer.probes.find((at) => at > from) ?? false)
      process.stdout.write(`from SIGTERM to the first run of the next holder: ${Math.round(first - from)} ms\n`)
      expect(chat.alerts.length).toBe(before)
    }, 240_000)
  },
)

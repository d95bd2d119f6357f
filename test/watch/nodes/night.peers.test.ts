import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CutProxy, cutProxy } from '../../support/faults/cut-proxy.ts'
import { maxGap, type ProbedPeer, probedPeer, probeRate } from '../../support/faults/probed-peers.ts'
import { type AlertSink, alertSink, itemOf, type ReceivedAlert } from '../../support/notify/alert-sink.ts'
import { type BalancedCalls, startCalls } from '../../support/program/balanced-calls.ts'
import { ask, figure, type ServeNode, signIn, startNode, tokenOf } from '../../support/program/serve-node.ts'
import { svcHome } from '../../support/program/svc.ts'
import { type AlertmanagerServer, alertmanagerMissing, startAlertmanager } from '../../support/servers/alertmanager.ts'
import { balancedNodes } from '../../support/servers/balanced-nodes.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { haproxyMissing, type ReverseProxy, startHaproxy } from '../../support/servers/reverse-proxy.ts'
import { freePort, lastingPort } from '../../support/servers/server.ts'
import { freshDatabase } from '../../support/store/data-fixture.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const everyMs = 10_000
/** No monitor goes without a probe for longer. */
const watchedMs = everyMs + 20_000
/** `d` takes the place of `c`, which dies for good. */
type Name = 'a' | 'b' | 'c' | 'd'
const first = ['a', 'b', 'c'] as const
const placeOf: Record<Name, number> = { a: 0, b: 1, c: 2, d: 2 }
const users = Array.from({ length: 60 }, (_, n) => `user-${n}`)

/** Alertmanager that sends each alert of a failure by itself, at once. */
const pagerOf = (url: string): string => `route:
  receiver: none
  routes:
    - {matchers: [alertname="SvcFailed"], receiver: pager, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 4h}
receivers:
  - name: none
  - name: pager
    webhook_configs: [{url: "${url}"}]
`

/** The monitor of a peer, as a line of svc.yaml. */
const monitorOf = ({ name, port }: ProbedPeer): string =>
  `      - {kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}, expect: hello}\n`

/** The primary and the standby, as one node reaches them. */
type Way = { readonly primary: CutProxy; readonly standby: CutProxy }

peerSuite(
  postgresMissing ?? haproxyMissing ?? alertmanagerMissing,
  'W4 a night of three nodes behind HAProxy, on PostgreSQL with a standby',
  () => {
    let primary: PostgresServer
    let standby: PostgresServer
    /** Between the two. */
    let link: CutProxy
    let store: string
    let yaml: string
    let chat: AlertSink
    let pager: AlertSink
    let alertmanager: AlertmanagerServer
    let balancer: ReverseProxy
    let calls: BalancedCalls
    let greeting: ProbedPeer
    /** The one that only the new svc.yaml has. */
    let added: ProbedPeer
    const home = svcHome()
    const began = performance.now()
    const peers: ProbedPeer[] = []
    const ports: number[] = []
    const ways = new Map<Name, Way>()
    const nodes = new Map<Name, ServeNode>()
    /** The logs of nodes that have ended since. */
    const endedLogs: string[] = []
    /** The faults that were made, by the item of their alerts. */
    const made: string[] = []
    const figures: string[] = []
    const loads: number[] = []
    const sampler = setInterval(() => loads.push(loadavg()[0] ?? 0), 10_000)

    const database = (): string => new URL(store).pathname.slice(1)
    const start = async (name: Name): Promise<void> => {
      const way = ways.get(name) ?? { primary: await cutProxy(primary.port), standby: await cutProxy(standby.port) }
      ways.set(name, way)
      const hosts = `127.0.0.1:${way.primary.port},127.0.0.1:${way.standby.port}`
      const own = store.replace(`127.0.0.1:${new URL(store).port}`, hosts)
      const port = ports[placeOf[name]] ?? 0
      nodes.set(name, await startNode({ store: own, yaml: yaml.replace('NODE', name), port }))
    }
    const node = (name: Name): ServeNode => {
      const one = nodes.get(name)
      if (!one) throw new Error(`no node ${name}`)
      return one
    }
    const end = async (name: Name, signal: 'SIGKILL' | 'SIGTERM'): Promise<number | NodeJS.Signals> => {
      node(name).signal(signal)
      const how = await node(name).ended
      endedLogs.push(node(name).log())
      await node(name).stop()
      nodes.delete(name)
      return how
    }
    const logs = (): string =>
      [...nodes].map(([name, one]) => `== ${name}, load ${loadavg()[0]}\n${one.log().slice(-3_000)}`).join('\n')
    /** Waits, and says what the nodes logged if that is in vain. */
    const wait = async (holds: () => boolean | Promise<boolean>, ms = 120_000): Promise<void> => {
      await until(holds, ms, 200).catch((error: unknown) => expect.fail(`${error}\n${logs()}`))
    }
    /** All nodes are live, and one of them runs the monitors of the network. */
    const settled = async (): Promise<boolean> => {
      const holders = await Promise.all([...nodes.values()].map((one) => figure(one, 'svc_node_holds_lease')))
      const live = await Promise.all([...nodes.values()].map((one) => figure(one, 'svc_nodes{state="live"}')))
      return holders.filter((one) => one === 1).length === 1 && live.every((one) => one === nodes.size)
    }
    const enter = (name: string, ...roleCalls: readonly number[]): number => {
      calls.enter({ name, roleCalls })
      return performance.now()
    }
    /** No monitor was unwatched for long since then. `apartMs`: between the first and the last thing that happened to nodes. */
    const watched = (name: string, from: number, apartMs = 0): void => {
      const gap = maxGap(peers, from)
      figures.push(`${name} | longest time between two probes | ${(gap / 1_000).toFixed(1)} s`)
      expect(gap, logs()).toBeLessThan(watchedMs + apartMs)
    }
    const peer = (n: number): ProbedPeer => {
      const one = peers[n]
      if (!one) throw new Error(`no peer ${n}`)
      return one
    }
    const about = (item: string): RegExp => new RegExp(`${item}( |$)`)
    const isPaged = (item: string) => (): boolean => pager.of('firing', about(item)).length > 0
    const isOver = (item: string) => (): boolean => pager.of('resolved', about(item)).length > 0
    const fault = async (one: ProbedPeer): Promise<void> => {
      made.push(one.name)
      one.fail()
      await wait(isPaged(one.name))
    }
    const signInAgain = async (): Promise<void> => {
      const answer = await signIn({ url: `http://127.0.0.1:${balancer.port}` })
      calls.use(tokenOf(answer))
    }
    /** The node whose /metrics has the incident of this peer. */
    const ownerOf = async ({ name }: ProbedPeer): Promise<Name> => {
      for (const [own, one] of nodes) {
        const { body } = await ask(`${one.url}/metrics`)
        const isOwn = (line: string): boolean => line.startsWith('svc_incident_info{') && line.includes(name)
        if (body.split('\n').some(isOwn)) return own
      }
      throw new Error(`no node has the incident of ${name}`)
    }

    beforeAll(async () => {
      const server = await startPostgres(['hot_standby=on', 'max_connections=100', 'wal_sender_timeout=60s'])
      store = await freshDatabase(server)
      link = await cutProxy(server.port)
      ;({ primary, standby } = await server.standby(link.port))
      await until(async () => (await primary.query('SELECT 1 FROM pg_stat_replication')).length === 1, 30_000)
      ;[chat, pager] = [await alertSink(), await alertSink()]
      alertmanager = await startAlertmanager(pagerOf(pager.url), { isClustered: false })
      for (let n = 0; n < 12; n += 1) peers.push(await probedPeer(`peer-${n}`, await freePort()))
      greeting = await probedPeer('greeting', await freePort())
      added = await probedPeer('added', await freePort())
      yaml = `serve: {node: NODE, name: prod, confirm: 5s, every: {Standard: 10s}}
notify:
  - {name: chat, webhook: {url: "${chat.url}"}}
  - {name: am, alertmanager: {urls: ["${alertmanager.url}"]}}
types:
  Sql:
    host: false
    monitors:
${monitorOf(greeting)}  App:
    host: false
    monitors:
${peers.map(monitorOf).join('')}`
      for (let n = 0; n < first.length; n += 1) ports.push(await lastingPort())
      for (const name of first) await start(name)
      for (const name of users)
        await primary.query(
          `INSERT INTO "users" ("id", "userName", "nameKey", "disabled", "createdAt", "epoch") VALUES ('${name}', '${name}', '${name}', 0, 1, 0);
          INSERT INTO "names" ("key", "userId") VALUES ('${name}', '${name}')`,
          database(),
        )
      balancer = await startHaproxy(balancedNodes(ports, { answerWithin: '5s', tries: 4, passes503: true }))
      const url = `http://127.0.0.1:${balancer.port}`
      const token = tokenOf(await signIn(node('a')))
      await until(async () => (await signIn({ url })).status === 200, 30_000, 200)
      calls = startCalls({ url, users, type: 'Sql', everyMs: 250, token })
      await wait(settled, 60_000)
    }, 180_000)

    afterAll(async () => {
      clearInterval(sampler)
      await calls?.stop()
      for (const one of nodes.values()) await one[Symbol.asyncDispose]()
      await balancer?.[Symbol.asyncDispose]()
      for (const way of ways.values()) for (const one of [way.primary, way.standby]) await one.close()
      await link?.close()
      for (const one of [...peers, greeting, added]) await one?.close()
      await alertmanager?.remove()
      for (const sink of [chat, pager]) await sink?.[Symbol.asyncDispose]()
      await standby?.remove()
      await primary?.remove()
      home.remove()
    }, 120_000)

    test('one node holds the lease, and the servers see the probes of one node', { timeout: 180_000 }, async () => {
      const from = enter('calm')
      await pause(7 * everyMs)
      const { ratio, count, gaps } = probeRate(peers, from, everyMs)
      figures.push(`calm | probes, compared with one node | ${ratio.toFixed(3)} (${count} probes of 12 monitors)`)
      expect(ratio, gaps).toBeGreaterThan(0.9)
      expect(ratio, gaps).toBeLessThan(1.1)
      watched('calm', from)
    })

    test('two of three nodes are killed, one of them for good: nothing is unwatched, a fault and its end are told once although the holder is killed in between, and so is the loss of the two', {
      timeout: 300_000,
    }, async () => {
      const from = enter('two of three killed')
      await fault(peer(0))
      // A message whose acceptance is not stored is sent once more.
      await pause(5_000)
      const owner = await ownerOf(peer(0))
      const lost: Name = owner === 'c' ? 'b' : owner
      made.push(`svc ${lost}`, 'svc c')
      const killed = performance.now()
      await end(owner, 'SIGKILL')
      await pause(5_000)
      await end(owner === 'c' ? lost : 'c', 'SIGKILL')
      // What the second one would have taken over from the first one waits for the end of its lease, too.
      const apartMs = performance.now() - killed
      await pause(20_000)
      peer(0).recover()
      await wait(isOver(peer(0).name))
      await wait(() => isPaged(`svc ${lost}`)() && isPaged('svc c')())
      // The one comes back, and the other one has a successor.
      await start(lost)
      await start('d')
      const forgotten = await home.svc(['nodes', 'forget', 'c', '--store', store])
      expect(forgotten.code, forgotten.stderr).toBe(0)
      await wait(() => isOver(`svc ${lost}`)() && isOver('svc c')())
      await wait(settled, 60_000)
      watched('two of three killed', from, apartMs)
    })

    test('a frozen node and a node without the store tell nobody anything that did not happen', {
      timeout: 300_000,
    }, async () => {
      const before = pager.alerts.length
      let from = enter('frozen')
      node('b').signal('SIGSTOP')
      await pause(25_000)
      node('b').signal('SIGCONT')
      await pause(10_000)
      watched('frozen', from)
      from = enter('cut off', 503)
      const way = ways.get('d')
      for (const one of [way?.primary, way?.standby]) one?.stall()
      await pause(25_000)
      for (const one of [way?.primary, way?.standby]) one?.heal('lost')
      await pause(10_000)
      watched('cut off', from)
      expect(pager.alerts.slice(before).map(itemOf), logs()).toEqual([])
      await wait(settled, 60_000)
    })

    test('a new svc.yaml is rolled out node by node and PostgreSQL restarts in between: no incident ends', {
      timeout: 300_000,
    }, async () => {
      const from = enter('rollout, PostgreSQL restarted', 503)
      await fault(peer(2))
      const changed = new RegExp(`(name: ${peer(2).name}, .*)}`)
      yaml = `${yaml.replace(changed, '$1, timeout: 4s}')}${monitorOf(added)}`
      made.push(added.name)
      added.fail()
      const reload = async (name: Name): Promise<void> => {
        const reloads = (): number => node(name).log().split('reloaded: 1 added, 0 removed, 1 changed').length
        const earlier = reloads()
        writeFileSync(node(name).config, yaml.replace('NODE', name), { mode: 0o600 })
        node(name).signal('SIGHUP')
        await wait(() => reloads() > earlier, 30_000)
      }
      await reload('b')
      await primary.restartInPlace('fast')
      await pause(5_000)
      for (const name of ['d', 'a'] as const) {
        await reload(name)
        await pause(12_000)
      }
      await wait(isPaged(added.name))
      for (const one of [peer(2), added]) expect(isOver(one.name)(), logs()).toBe(false)
      for (const one of [peer(2), added]) one.recover()
      await wait(() => isOver(peer(2).name)() && isOver(added.name)())
      await wait(settled, 60_000)
      watched('rollout, PostgreSQL restarted', from)
    })

    test('at 300 ms from PostgreSQL, the nodes go on, and one ends in order: nobody is told', {
      timeout: 180_000,
    }, async () => {
      await signInAgain()
      const before = pager.alerts.length
      const from = enter('300 ms to PostgreSQL, one node ended in order', 503)
      for (const { primary: one } of ways.values()) one.slow(300)
      await pause(10_000)
      expect(await end('d', 'SIGTERM')).toBe(0)
      await pause(30_000)
      for (const { primary: one } of ways.values()) one.slow(0)
      // Longer than it takes until a node counts as out.
      await pause(40_000)
      watched('300 ms to PostgreSQL, one node ended in order', from)
      expect(pager.alerts.slice(before).map(itemOf), logs()).toEqual([])
      await start('d')
      await wait(settled, 60_000)
    })

    test('a fault that begins and ends while no node reaches the store is told, and its end', {
      timeout: 300_000,
    }, async () => {
      const from = enter('no store', 503)
      for (const { primary: one } of ways.values()) one.stall()
      await pause(10_000)
      await fault(peer(1))
      await wait(() => chat.of('firing', about(peer(1).name)).length > 0)
      for (const { primary: one } of ways.values()) one.heal('lost')
      await pause(5_000)
      peer(1).recover()
      await wait(isOver(peer(1).name))
      await wait(settled, 60_000)
      watched('no store', from)
    })

    test('PostgreSQL fails over to a standby that lacks the last second: the acknowledged role changes that are gone are those that svc reports, and a fault that was told in that second is told once', {
      timeout: 300_000,
    }, async () => {
      await signInAgain()
      const from = enter('failover', 503)
      // It has to have everything until then.
      const isEqual = 'SELECT 1 FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn() - 8192'
      await until(async () => (await primary.query(isEqual)).length === 1, 60_000)
      await fault(peer(3))
      link.stall()
      await pause(1_000)
      await primary.crash()
      for (const { primary: one } of ways.values()) one.cutNow({ client: 'reset', server: 'reset' })
      const down = performance.now()
      await pause(2_000)
      await standby.query('SELECT pg_promote()')
      const promoted = performance.now()
      const url = `http://127.0.0.1:${balancer.port}`
      await until(async () => (await signIn({ url })).status === 200, 60_000, 50)
      figures.push(
        `failover | from the promotion to a sign-in | ${Math.round(performance.now() - promoted)} ms (${Math.round(promoted - down)} ms after the crash)`,
      )
      await wait(() => [...nodes.values()].some((one) => reportedIn(one.log()).length > 0))
      await pause(15_000)
      peer(3).recover()
      await wait(isOver(peer(3).name))
      await wait(settled, 60_000)
      watched('failover', from)
    })

    test('every answer and every notification of the night is accounted for', { timeout: 180_000 }, async () => {
      enter('after')
      // A webhook gets one message a minute at most.
      await pause(65_000)
      await calls.stop()
      // Nobody reaches the earlier primary but this test.
      for (const { primary: one } of ways.values()) one.stall()
      primary = await primary.restart()
      const entries = 'SELECT "id", "correlationId", "after" FROM "audit"'
      const stored = new Set((await standby.query(entries, database())).map(keyOf))
      const gone = (await primary.query(entries, database())).filter((one) => !stored.has(keyOf(one)))
      const reported = [...endedLogs, ...[...nodes.values()].map((one) => one.log())].flatMap(reportedIn)
      const isReported = (id: number): boolean => reported.some(([low, high]) => low <= id && id <= high)
      const granted = await standby.query('SELECT "userId", "name" FROM "grants"', database())
      const present = new Set(granted.map((one) => `${one.userId} ${one.name}`))
      const all = [...calls.acknowledged].flatMap(([user, roles]) => [...roles].map((role) => ({ user, role })))
      const missing = all.filter(({ user, role }) => !present.has(`${user} ${role}`))
      const unexplained = missing.filter(
        ({ role }) => !gone.some(({ id, after }) => String(after).includes(role) && isReported(Number(id))),
      )
      const lasted = (performance.now() - began) / 1_000
      process.stdout.write(
        `${[
          `a night of ${Math.round(lasted)} s, load average ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)}`,
          `longest time between two probes of a monitor | ${(maxGap(peers, began + 1) / 1_000).toFixed(1)} s`,
          `${all.length} role changes acknowledged, ${missing.length} of them lost by the failover and reported`,
          `Alertmanager: ${pager.alerts.length} notifications; webhook: ${chat.alerts.length} alerts`,
          ...figures,
          ...calls.figures(),
          ...chat.alerts.map(
            (one) => `chat | ${one.status} ${itemOf(one)} ${one.annotations.incident} ${one.annotations.summary}`,
          ),
        ].join('\n')}\n`,
      )
      expect(unexplained).toEqual([])
      expect(missing.length).toBeGreaterThan(0)
      expect(calls.unexpected()).toEqual([])

      // Each fault once, and nothing else.
      const of = (sink: AlertSink, status: ReceivedAlert['status']): readonly string[] =>
        sink.alerts
          .filter((one) => one.status === status)
          .map(subjectOf)
          .sort()
      const faults = [...made].sort()
      expect(of(pager, 'firing')).toEqual(faults)
      expect(of(pager, 'resolved')).toEqual(faults)
      // What began and ended between two messages of a webhook is one line, about its end.
      const onsets = of(chat, 'firing')
      expect(onsets).toEqual(faults.filter((name) => onsets.includes(name)))
      expect(of(chat, 'resolved')).toEqual(faults)
      // One node told it while none had the store.
      expect(onsets).toContain(peer(1).name)
      const active = (await alertmanager.alerts()).filter(({ labels }) => labels.alertname !== 'SvcWatchdog')
      expect(active).toEqual([])
    })
  },
)

const keyOf = ({ id, correlationId }: Record<string, unknown>): string => `${id} ${correlationId}`

/** The monitor of a peer, or the node that is out. */
const subjectOf = ({ labels }: ReceivedAlert): string =>
  labels.monitor?.startsWith('tcp ') === true ? labels.monitor.slice('tcp '.length) : `${labels.monitor} ${labels.item}`

/** The first and the last number of the audit entries that a node says are gone. */
function reportedIn(log: string): readonly (readonly [number, number])[] {
  const lines = log.split('\n').filter((line) => line.includes('an earlier state of itself'))
  const ranges = lines.flatMap((line) => [...line.matchAll(/(?:entries |\()(\d+)(?: to (\d+))?/g)])
  return ranges.map(([, low, high]) => [Number(low), Number(high ?? low)] as const)
}

import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { shippedConfiguration } from '../../support/notify/shipped-alertmanager.ts'
import { startListener } from '../../support/program/confirmation.ts'
import { type ServeNode, startNode } from '../../support/program/serve-node.ts'
import { type AlertmanagerServer, alertmanagerMissing, startAlertmanager } from '../../support/servers/alertmanager.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'
import { until } from '../../support/suite/until.ts'

const waitMs = 180_000
/** The dead man's switch alerts when it has got nothing for so long; Alertmanager posts to it every 5 s. */
const switchMs = 20_000
/** The end of the watchdog, as svc posts it, and the time for which a process that is killed has posted it last. */
const watchdogMs = 120_000

type Message = {
  readonly path: string
  readonly at: number
  readonly alerts: readonly { readonly status: string; readonly labels: Readonly<Record<string, string>> }[]
}

vi.setConfig({ testTimeout: 900_000, hookTimeout: 240_000 })

peerSuite(alertmanagerMissing, 'svc serve and two real Alertmanagers with the shipped configuration', () => {
  test("M2 svc serve is killed with -9: within about 2 min its watchdog ends and the dead man's switch alerts, no incident resolves, and the next svc serve repeats nothing", async () => {
    const messages: Message[] = []
    await using sink = await httpPeer((request, response) => {
      void json(request).then((body) => {
        const { alerts } = body as Pick<Message, 'alerts'>
        messages.push({ path: request.url ?? '', at: Date.now(), alerts })
        response.writeHead(200).end()
      })
    })
    const all = (path: string): readonly string[] =>
      messages
        .filter((message) => message.path === path)
        .flatMap(({ alerts }) => alerts)
        .map(({ labels, status }) => `${labels['alertname']} ${labels['monitor'] ?? ''} ${status}`)
    const pings = (): readonly number[] => messages.filter(({ path }) => path === '/ping').map(({ at }) => at)
    const hasAlerted = (): boolean => Date.now() - (pings().at(-1) ?? 0) > switchMs

    const configuration = shippedConfiguration(sink.origin, { pingEvery: '5s' })
    const one = await startAlertmanager(configuration)
    const servers: readonly AlertmanagerServer[] = [one, await startAlertmanager(configuration, { peers: [one] })]
    onTestFinished(async () => {
      for (const server of servers) await server.remove()
    })
    const folder = temporaryFolder()
    const shop = await startListener('shop')
    await shop.down()
    onTestFinished(() => shop.down())
    const yaml = `serve: {confirm: 5s, name: prod}
notify:
  - {name: am, alertmanager: {urls: [${servers.map(({ url }) => `"${url}"`).join(', ')}]}}
types:
  App:
    host: false
    monitors: [{kind: tcp, name: shop, host: ${shop.host}, port: ${shop.port}, every: 10s}]
`
    const running: ServeNode[] = []
    onTestFinished(async () => {
      for (const node of running) await node[Symbol.asyncDispose]()
    })
    const begin = async (): Promise<ServeNode> => {
      const node = await startNode({ store: join(folder, 'svc.db'), yaml })
      running.push(node)
      return node
    }
    const firing = async (): Promise<readonly (readonly string[])[]> =>
      await Promise.all(
        servers.map(async ({ alerts }) => (await alerts()).map(({ labels }) => labels['alertname'] ?? '').toSorted()),
      )
    const onBoth = async (...names: readonly string[]): Promise<true> =>
      await until(async () => (await firing()).every((one) => one.join() === names.join()), waitMs, 500)

    const first = await begin()
    await onBoth('SvcFailed', 'SvcWarning', 'SvcWatchdog')
    await until(() => all('/oncall').length > 0 && pings().length > 2, waitMs)
    expect(all('/oncall')).toEqual(['SvcFailed tcp shop firing'])
    await pause(switchMs)
    expect(hasAlerted()).toBe(false)

    const killedAt = Date.now()
    first.signal('SIGKILL')
    await first.ended
    await onBoth('SvcFailed', 'SvcWarning')
    const endedAfter = Date.now() - killedAt
    await until(hasAlerted, waitMs, 500)
    const alertedAfter = Date.now() - killedAt
    // It was posted within the 30 s before the kill.
    expect(endedAfter).toBeGreaterThan(watchdogMs - 45_000)
    expect(endedAfter).toBeLessThan(watchdogMs + 30_000)
    expect(alertedAfter).toBeLessThan(watchdogMs + switchMs + 45_000)
    expect(await firing()).toEqual([
      ['SvcFailed', 'SvcWarning'],
      ['SvcFailed', 'SvcWarning'],
    ])
    expect(all('/oncall')).toEqual(['SvcFailed tcp shop firing'])
    expect(all('/ops')).toEqual([])

    const second = await begin()
    await onBoth('SvcFailed', 'SvcWarning', 'SvcWatchdog')
    await until(() => !hasAlerted(), waitMs)
    // Each query of the log of notifications is a decision whether to send.
    for (const { metric } of servers) {
      const queries = await metric('alertmanager_nflog_queries_total')
      await until(async () => (await metric('alertmanager_nflog_queries_total')) > queries + 5, waitMs, 500)
    }
    expect(all('/oncall')).toEqual(['SvcFailed tcp shop firing'])
    expect(all('/ops')).toEqual([])

    await shop.up()
    await until(() => all('/oncall').includes('SvcFailed tcp shop resolved'), waitMs)
    await onBoth('SvcWatchdog')
    expect(all('/oncall')).toEqual(['SvcFailed tcp shop firing', 'SvcFailed tcp shop resolved'])
    expect(all('/ping').filter((line) => line.includes('resolved'))).toEqual([])
    expect(await second.stop()).toBe(0)
    process.stderr.write(
      `after the kill, the watchdog ended within ${Math.round(endedAfter / 1_000)} s and the dead man's switch alerted after ${Math.round(alertedAfter / 1_000)} s\n`,
    )
  })
})

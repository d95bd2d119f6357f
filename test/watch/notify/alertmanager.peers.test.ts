import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { shippedConfiguration } from '../../support/notify/shipped-alertmanager.ts'
import {
  type AlertmanagerServer,
  alertmanagerMissing,
  type ShownAlert,
  startAlertmanager,
} from '../../support/servers/alertmanager.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { remove, serverFolder } from '../../support/servers/server.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

type Message = {
  readonly path: string
  readonly status: string
  readonly alerts: readonly { readonly status: string; readonly labels: Readonly<Record<string, string>> }[]
}

const patience = 60_000
const stateOf = (alerts: readonly ShownAlert[], check: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    alerts
      .filter(({ labels }) => labels['check'] === check)
      .map(({ labels, status }) => [labels['alertname'] ?? '', status.state] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })

peerSuite(alertmanagerMissing, 'two real Alertmanagers with the shipped configuration', () => {
  const messages: Message[] = []
  let sink: HttpPeer
  let servers: readonly AlertmanagerServer[] = []
  const receiver = (): string =>
    `{name: am, alertmanager: {urls: [${servers.map(({ url }) => `"${url}"`).join(', ')}]}}`
  /** The notifications of a check that the receivers of Alertmanager got, `alertname status`. */
  const news = (path: string, check: string): readonly string[] =>
    messages
      .filter((message) => message.path === path)
      .flatMap(({ alerts }) => alerts)
      .filter(({ labels }) => labels['check'] === check)
      .map(({ labels, status }) => `${labels['alertname']} ${status}`)
  const onBoth = async (check: string, expected: Readonly<Record<string, string>>): Promise<void> => {
    for (const server of servers) {
      await until(
        async () => JSON.stringify(stateOf(await server.alerts(), check)) === JSON.stringify(expected),
        patience,
        200,
      )
    }
  }

  beforeAll(async () => {
    sink = await httpPeer((request, response) => {
      void json(request).then((body) => {
        messages.push({ path: request.url ?? '', ...(body as Omit<Message, 'path'>) })
        response.writeHead(200).end()
      })
    })
    const first = await startAlertmanager(shippedConfiguration(sink.origin))
    servers = [first]
    servers = [first, await startAlertmanager(shippedConfiguration(sink.origin), { peers: [first] })]
  })
  afterAll(async () => {
    for (const server of servers) await server.remove()
    await sink?.[Symbol.asyncDispose]()
  })

  test('M2 a warning, a failure, a warning again and the recovery reach who is called for them, and no severity recovers in between', async () => {
    const { receiver: am, warnings } = await opened(receiver())
    const check = 'replication lag'
    const about = (changes: Parameters<typeof notice>[0]) =>
      notice({ beganAt: Date.now() - 60_000, ...changes }, { check, monitor: `tcp ${check}` })
    expect(await am.send([about({ id: 'a', level: 'warning' })], signal())).toEqual({ what: 'accepted' })
    await onBoth(check, { SvcWarning: 'active' })
    await until(() => news('/ops', check).includes('SvcWarning firing'), patience)
    expect(await am.send([about({ id: 'b', what: 'change', before: 'warning' })], signal())).toEqual({
      what: 'accepted',
    })
    await until(() => news('/oncall', check).includes('SvcFailed firing'), patience)
    await onBoth(check, { SvcFailed: 'active', SvcWarning: 'suppressed' })
    await am.send([about({ id: 'c', what: 'change', level: 'warning', before: 'failed' })], signal())
    await until(() => news('/oncall', check).includes('SvcFailed resolved'), patience)
    await onBoth(check, { SvcWarning: 'active' })
    expect(news('/ops', check)).not.toContain('SvcWarning resolved')
    await am.send([about({ id: 'd', what: 'end', level: 'warning', endedAt: Date.now() })], signal())
    await until(() => news('/ops', check).includes('SvcWarning resolved'), patience)
    await onBoth(check, {})
    expect(warnings).toEqual([])
  })

  test('M2 the warning of a failure is inhibited from the first message on, although both are older than group_wait', async () => {
    const { receiver: am } = await opened(receiver())
    const check = 'inhibited'
    // Before, it waits for its peers, and sends nothing.
    for (const { url } of servers) {
      const isReady = async () => (await (await fetch(`${url}/api/v2/status`)).text()).includes('"status":"ready"')
      await until(isReady, patience)
    }
    const faults = Array.from({ length: 20 }, (_, at) =>
      notice({ id: `f${at}`, beganAt: Date.now() - 60_000 }, { check, monitor: `tcp m${at}` }),
    )
    for (const fault of faults) await am.send([fault], signal())
    await until(() => news('/oncall', check).length >= faults.length, patience)
    // Two rounds of each group, in which a warning would be sent, too.
    for (const { metric } of servers) {
      const queries = await metric('alertmanager_nflog_queries_total')
      const isRound = async () => (await metric('alertmanager_nflog_queries_total')) > queries + 2 * faults.length
      await until(isRound, patience, 200)
    }
    expect(news('/ops', check)).toEqual([])
    const over = faults.map((fault): typeof fault => ({ ...fault, what: 'end', endedAt: Date.now() }))
    expect(await am.send(over, signal())).toEqual({ what: 'accepted' })
  })

  test("M2 after svc is killed, only the watchdog ends soon, and the dead man's switch gets it until then", async () => {
    const check = 'connect'
    const { receiver: am } = await opened(receiver())
    expect(
      await am.renew?.([notice({ beganAt: Date.now() - 60_000 }, { check, monitor: `tcp ${check}` })], true, signal()),
    ).toEqual({ what: 'accepted' })
    await until(
      () => messages.some(({ path, alerts }) => path === '/ping' && alerts[0]?.labels['alertname'] === 'SvcWatchdog'),
      patience,
    )
    for (const server of servers) {
      const ends = Object.fromEntries(
        (await server.alerts()).map(({ labels, endsAt }) => [
          labels['alertname'],
          Math.round((Date.parse(endsAt) - Date.now()) / 60_000),
        ]),
      )
      expect(ends['SvcWatchdog']).toBeLessThanOrEqual(2)
      expect(ends['SvcFailed']).toBeGreaterThan(230)
    }
    expect(messages.filter(({ path, status }) => path === '/ping' && status === 'resolved')).toEqual([])
  })

  test('M2 an Alertmanager that restarts repeats nothing, and knows the alerts again', async () => {
    const check = 'query'
    const { receiver: am, warnings } = await opened(receiver())
    const fault = notice({ id: 'r', beganAt: Date.now() - 60_000 }, { check, monitor: `tcp ${check}` })
    await am.send([fault], signal())
    await until(() => news('/oncall', check).includes('SvcFailed firing'), patience)
    const before = news('/oncall', check).length
    const [first, second] = servers
    await first?.stop()
    expect(await am.renew?.([fault], false, signal())).toEqual({ what: 'accepted' })
    expect(warnings).toEqual([expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+ refused the connection/)])
    await first?.restart()
    await am.renew?.([fault], false, signal())
    expect(warnings.at(-1)).toMatch(/accepts alerts again$/)
    await onBoth(check, { SvcFailed: 'active', SvcWarning: 'suppressed' })
    // Each look at the log of notifications is one at what was sent.
    for (const server of [first, second]) {
      const looks = (await server?.metric('alertmanager_nflog_queries_total')) ?? 0
      await until(
        async () => ((await server?.metric('alertmanager_nflog_queries_total')) ?? 0) > looks + 2,
        patience,
        200,
      )
    }
    expect(news('/oncall', check)).toHaveLength(before)
    await am.send([{ ...fault, id: 's', what: 'end', endedAt: Date.now() }], signal())
    await until(() => news('/oncall', check).includes('SvcFailed resolved'), patience)
  })

  test.for([
    ['10 min ahead', 600_000],
    ['10 min behind', -600_000],
  ] as const)(
    'M2 while the clock of this machine is %s, alerts fire and end in the time of Alertmanager',
    async ([which, ahead]) => {
      const check = `clock ${which}`
      const now = (): number => Date.now() + ahead
      const { receiver: am, warnings } = await opened(receiver(), { now })
      const fault = notice({ beganAt: now() - 60_000 }, { check, monitor: `tcp ${check}` })
      expect(await am.renew?.([fault], true, signal())).toEqual({ what: 'accepted' })
      await onBoth(check, { SvcFailed: 'active', SvcWarning: 'suppressed' })
      for (const server of servers) {
        const alerts = await server.alerts()
        const failed = alerts.find(({ labels }) => labels['check'] === check)
        expect(Math.abs(Date.parse(failed?.startsAt ?? '') - (Date.now() - 60_000))).toBeLessThan(30_000 + patience)
        expect(alerts.some(({ labels }) => labels['alertname'] === 'SvcWatchdog')).toBe(true)
      }
      expect(warnings).toHaveLength(2)
      await am.send([{ ...fault, id: 'e', what: 'end', endedAt: now() }], signal())
      await onBoth(check, {})
    },
  )

  test('M2 an alert that Alertmanager refuses is named, and all others arrive', async () => {
    const { receiver: am, warnings } = await opened(receiver())
    const many = Array.from({ length: 20 }, (_, at) =>
      notice(
        { id: `m${at}`, level: 'warning', beganAt: Date.now() - 60_000, ...(at === 7 ? { url: 'no url: %zz' } : {}) },
        { check: 'many', item: `${at}` },
      ),
    )
    expect(await am.send(many, signal())).toMatchObject({ what: 'refused', ids: ['m7'] })
    expect(warnings[0]).toMatch(/^the alert of Sql\/postgres orders: many \(7\) is left out: /)
    for (const server of servers) {
      const items = (await server.alerts()).filter(({ labels }) => labels['check'] === 'many')
      expect(items).toHaveLength(19)
    }
  })
})

peerSuite(alertmanagerMissing ?? opensslMissing(), 'a real Alertmanager with TLS and a password', () => {
  let certificates: Certificates
  let server: AlertmanagerServer
  let folder: string | undefined
  beforeAll(async () => {
    certificates = makeCertificates()
    folder = serverFolder('alertmanager-tls')
    writeFileSync(join(folder, 'cert.pem'), certificates.good.cert, { mode: 0o644 })
    writeFileSync(join(folder, 'key.pem'), certificates.good.key, { mode: 0o644 })
    const web = `tls_server_config: {cert_file: ${folder}/cert.pem, key_file: ${folder}/key.pem}
basic_auth_users: {svc: '$2y$05$3IqN9IdQyv5k3t0q64emuO/Mji9Fbb/YHm5IOBnmS2F5t4REauu4S'}
`
    server = await startAlertmanager('route: {receiver: none}\nreceivers: [{name: none}]\n', { web })
  })
  afterAll(async () => {
    await server?.remove()
    certificates?.remove()
    if (folder !== undefined) remove(folder)
  })

  const send = async (password: string, trust: string) => {
    const settings = `{name: am, alertmanager: {urls: ["${server.url}"], username: svc, password: {env: P}${trust}}}`
    const { receiver } = await opened(settings, { env: { P: password } })
    return await receiver.send([notice()], signal())
  }

  describe('M5 credentials', () => {
    test('M5 the right password over a trusted certificate is accepted', async () => {
      expect(await send('correct-horse-9', `, ca: "${certificates.caFile}"`)).toEqual({ what: 'accepted' })
    })

    test('M5 an untrusted certificate gets no password, and a wrong password is a refusal', async () => {
      expect(await send('correct-horse-9', '')).toMatchObject({ what: 'later', fault: 'tls', isPerhapsReceived: false })
      expect(await send('wrong-horse-9', `, ca: "${certificates.caFile}"`)).toMatchObject({
        what: 'refused',
        fault: 'auth',
      })
    })
  })
})

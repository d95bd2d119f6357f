import { Readable } from 'node:stream'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { isMonitor, type Mute, type NoticeSubject, type Receiver } from '../../../src/core/watch/notify/index.ts'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import {
  type AlertmanagerServer,
  alertmanagerMissing,
  type ShownAlert,
  type ShownSilence,
  startAlertmanager,
} from '../../support/servers/alertmanager.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const patience = 60_000
const hour = 3_600_000
const configuration = 'route: {receiver: none}\nreceivers: [{name: none}]\n'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })

let ids = 0
const mute = (changes: Partial<Mute> = {}): Mute => {
  ids += 1
  const [from, end] = [Date.now() - 1_000, Date.now() + hour]
  const one = { id: `q${ids}`, what: 'silence', from, until: end, by: 'alice', reason: 'patch night' } as const
  return { ...one, targets: [{ pattern: 'Sql/*' }], ...changes }
}

const urlsOf = (servers: readonly AlertmanagerServer[]): string =>
  `{name: am, alertmanager: {urls: [${servers.map(({ url }) => `"${url}"`).join(', ')}]}}`

/** The silences that are not over. */
const current = async (server: AlertmanagerServer | undefined): Promise<readonly ShownSilence[]> =>
  ((await server?.silences()) ?? [])
    .filter(({ status }) => status.state !== 'expired')
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))

const silenced = async (server: AlertmanagerServer | undefined): Promise<readonly ShownAlert[]> =>
  ((await server?.alerts()) ?? []).filter(({ status }) => status.silencedBy.length > 0)

const seconds = (text: string | undefined, than: number): number => Math.abs(Date.parse(text ?? '') - than) / 1_000

/** A proxy that shows which requests reach a server. */
const proxyOf = (url: string): Promise<HttpPeer> =>
  httpPeer((request, response) => {
    const { method = 'GET', headers } = request
    const body = method === 'POST' ? { body: Readable.toWeb(request), duplex: 'half' } : {}
    const type = headers['content-type'] === undefined ? {} : { 'content-type': headers['content-type'] }
    void fetch(`${url}${request.url}`, { method, headers: type, ...body } as RequestInit).then(async (answer) => {
      response.writeHead(answer.status, { date: answer.headers.get('date') ?? '' }).end(await answer.text())
    })
  })

/** Waits until two instances know each other: before, each one is a cluster of its own. */
const areJoined = async (servers: readonly AlertmanagerServer[]): Promise<true> =>
  await until(async () => {
    const answers = await Promise.all(servers.map(({ url }) => fetch(`${url}/api/v2/status`)))
    const all = (await Promise.all(answers.map((answer) => answer.json()))) as { cluster: { peers: unknown[] } }[]
    return all.every(({ cluster }) => cluster.peers.length === servers.length)
  }, patience)

/** Has a receiver make these silences, without a failure. */
const made = async (receiver: Receiver, mutes: readonly Mute[]): Promise<void> =>
  expect(await receiver.mute?.(mutes, signal())).toEqual([])

const subjects: readonly NoticeSubject[] = [
  ...['postgres orders', 'postgres orders eu', 'POSTGRES Orders', 'mysql (shop)', 'mysql shop', 'tcp a.b', 'tcp axb'],
  ...['http shop/cart', 'tcp Sql/x', 'http [1|2]^$+?', 'sqlserver', 'tcp über', 'tcp ÜBER'],
].flatMap((monitor): readonly NoticeSubject[] => [
  { server: 'prod', type: 'Sql', monitor, check: 'connect' },
  { server: 'prod', type: 'App', monitor, check: 'connect', item: 'one' },
  { server: 'prod', monitor, check: 'connect', node: 'web1' },
])
const patterns = [
  ...['*', '**', 'Sql/*', 'sql/POSTGRES*', 'postgres orders', 'Sql/postgres orders', 'App/*orders', '*orders', '*o*r*'],
  ...[
    'tcp a.b',
    'tcp a*b',
    'mysql (shop)',
    'http shop/*',
    '*/postgres orders',
    '*/x',
    'S*',
    'Sql*',
    'sql*shop',
    '*l/*shop',
  ],
  ...[
    'http [1|2]^$+?',
    '*[1|2]^$+*',
    'Sql/sqlserver',
    'tcp Sql/x',
    '*Sql/x',
    'App/tcp Sql/x',
    'TCP Über',
    '*BER',
    'A*/*p*p*',
    '*s*s',
  ],
]

peerSuite(alertmanagerMissing, 'two real Alertmanagers in a cluster', () => {
  let servers: readonly AlertmanagerServer[] = []
  const first = (): AlertmanagerServer => servers[0] as AlertmanagerServer
  beforeAll(async () => {
    const one = await startAlertmanager(configuration)
    servers = [one]
    servers = [one, await startAlertmanager(configuration, { peers: [one] })]
    await areJoined(servers)
  })
  afterAll(async () => {
    for (const server of servers) await server.remove()
  })
  afterEach(async () => {
    for (const { id } of await current(servers[0])) await first().expireSilence(id)
    await until(async () => (await current(servers[1])).length === 0, patience)
  })

  test('M10 a pattern silences exactly the alerts of the monitors that it covers, and never the watchdog, a test or a broken receiver', async () => {
    const { receiver } = await opened(urlsOf(servers))
    const other = await opened(urlsOf(servers), { server: 'staging' })
    const tested = await opened(urlsOf(servers), { isTest: true })
    const own = { server: 'prod', monitor: 'svc', check: 'receiver', item: 'ops', node: 'web1' }
    const all = subjects.map((subject, at) => notice({ id: `s${at}`, subject, beganAt: Date.now() - 60_000 }))
    await receiver.renew?.([...all, notice({ id: 'own', subject: own })], true, signal())
    await other.receiver.renew?.([notice({}, { server: 'staging' })], true, signal())
    await tested.receiver.send([notice()], signal())
    const count = (await first().alerts()).length
    // Each as a failure and as a warning, and two watchdogs and a test.
    expect(count).toBe(2 * (subjects.length + 2) + 3)
    for (const pattern of patterns) {
      await made(receiver, [mute({ targets: [{ pattern }] })])
      const names = (labels: ShownAlert['labels']): string =>
        [labels['alertname'], labels['type'] ?? '-', labels['monitor']].join(' ')
      const covered = subjects.filter((subject) => isMonitor(pattern, subject))
      const expected = covered.flatMap(({ type, monitor }) =>
        ['SvcFailed', 'SvcWarning'].map((alertname) => names({ alertname, type: type ?? '-', monitor })),
      )
      const silent = (await silenced(servers[0])).map(({ labels }) => names(labels))
      expect(silent.toSorted(), pattern).toEqual(expected.toSorted())
      expect(covered.length, pattern).toBeGreaterThan(0)
    }
  })

  test('M10 a cluster has one silence, which says who, why and which silence of svc', async () => {
    const { receiver } = await opened(urlsOf(servers))
    const one = mute({ by: 'alice', reason: 'patch night' })
    await made(receiver, [one])
    await until(async () => (await current(servers[1])).length === 1, patience)
    const [silence] = await current(servers[0])
    expect(await current(servers[0])).toHaveLength(1)
    expect(silence?.createdBy).toBe('alice')
    expect(silence?.comment).toMatch(
      new RegExp(
        `^patch night \\(svc prod: silence ${one.id}, [0-9a-f]{12}, until 20\\d\\d-\\d\\d-\\d\\dT[\\d:]{8}Z\\)$`,
      ),
    )
    expect(seconds(silence?.endsAt, one.until)).toBeLessThan(3)
    // The next process recognizes it.
    const next = await opened(urlsOf(servers))
    await made(next.receiver, [one])
    expect(await current(servers[0])).toEqual([silence])
    expect(next.warnings).toEqual([])
  })

  test('M10 a silence costs a request to each instance and two more, a call without changes none, and a new process verifies with three', async () => {
    const proxies = await Promise.all(servers.map(({ url }) => proxyOf(url)))
    const [one, two] = proxies as [HttpPeer, HttpPeer]
    const requests = (): readonly string[] =>
      proxies.flatMap(({ requestLines }) => requestLines().map((line) => line.replace('/api/v2/', '')))
    const urls = `{name: am, alertmanager: {urls: ["${one.origin}", "${two.origin}"]}}`
    const { receiver } = await opened(urls)
    const night = mute()
    await made(receiver, [night])
    const list = 'GET silences?filter=server%3D%22prod%22'
    const both = ['GET status', list, 'POST silences', 'GET status']
    expect(requests()).toEqual(both)
    for (let calls = 0; calls < 10; calls += 1) await made(receiver, [{ ...night }])
    expect(requests()).toEqual(both)
    await until(async () => (await current(servers[1])).length === 1, patience)
    await made((await opened(urls)).receiver, [night])
    expect(requests()).toHaveLength(both.length + 3)
    await made(receiver, [])
    expect(requests().filter((line) => line.startsWith('DELETE silence/'))).toHaveLength(1)
    for (const proxy of proxies) await proxy[Symbol.asyncDispose]()
  })

  test('M10 an end that moves later or earlier moves the same silence, also after a restart of svc', async () => {
    const { receiver } = await opened(urlsOf(servers))
    const one = mute()
    await made(receiver, [one])
    const [before] = await current(servers[0])
    for (const end of [one.until + hour, one.until - hour / 2, one.until - hour / 2 + 4_000]) {
      await made(receiver, [{ ...one, until: end }])
      const [silence, ...more] = await current(servers[0])
      expect([silence?.id, more]).toEqual([before?.id, []])
      expect(seconds(silence?.endsAt, end)).toBeLessThan(2)
    }
    const next = await opened(urlsOf(servers))
    await made(next.receiver, [{ ...one, until: one.until + 2 * hour, reason: 'it takes longer' }])
    const [silence, ...more] = await current(servers[0])
    expect([silence?.id, more]).toEqual([before?.id, []])
    expect(seconds(silence?.endsAt, one.until + 2 * hour)).toBeLessThan(2)
    expect(silence?.comment).toMatch(/^it takes longer \(svc prod: silence /)
  })

  test('M10 what is not listed any more ends, says that svc has ended it, and comes back when it is listed again', async () => {
    const { receiver, warnings } = await opened(urlsOf(servers))
    const [one, two] = [mute(), mute({ targets: [{ pattern: 'App/*' }] })]
    await made(receiver, [one, two])
    expect(await current(servers[0])).toHaveLength(2)
    await made(receiver, [two])
    expect((await current(servers[0])).map(({ comment }) => comment)).toEqual([expect.stringContaining(` ${two.id},`)])
    const over = (await first().silences()).filter(({ comment }) => comment.includes(` ${one.id},`))
    expect(over.map(({ comment }) => comment)).toEqual([expect.stringMatching(/, ended by svc\)$/)])
    // Also for the next process: it must not take that for the word of a person.
    const next = await opened(urlsOf(servers))
    await until(async () => (await current(servers[1])).length === 1, patience)
    await made(next.receiver, [one, two])
    expect(await current(servers[0])).toHaveLength(2)
    expect([...warnings, ...next.warnings]).toEqual([])
    // A process that starts without a silence ends what an earlier one has left.
    const last = await opened(urlsOf(servers))
    await made(last.receiver, [])
    expect(await current(servers[0])).toEqual([])
  })

  test('M10 a silence that a person ends is not made again for the same silence of svc, also by the next process, and the log says so', async () => {
    const { receiver, warnings } = await opened(urlsOf(servers))
    const one = mute()
    await made(receiver, [one])
    const [silence] = await current(servers[0])
    await first().expireSilence(silence?.id ?? '')
    await until(async () => (await current(servers[1])).length === 0, patience)
    const other = mute({ targets: [{ pattern: 'App/*' }] })
    await made(receiver, [one, other])
    expect((await current(servers[0])).map(({ comment }) => comment)).toEqual([
      expect.stringContaining(` ${other.id},`),
    ])
    expect(warnings).toEqual([
      expect.stringMatching(
        new RegExp(
          `^the silence of Alertmanager for the silence ${one.id} was ended by hand at http://127\\.0\\.0\\.1:\\d+: svc does not make it again$`,
        ),
      ),
    ])
    await made(receiver, [{ ...one, until: one.until + hour }, other])
    const next = await opened(urlsOf(servers))
    await made(next.receiver, [one, other])
    expect(await current(servers[0])).toHaveLength(1)
    // The next silence is another word of svc.
    await made(receiver, [mute({ targets: one.targets }), other])
    expect(await current(servers[0])).toHaveLength(2)
  })

  test('M10 an end that a person moves stays until the silence of svc itself gets another end', async () => {
    const { receiver } = await opened(urlsOf(servers))
    const one = mute()
    await made(receiver, [one])
    const [silence] = await current(servers[0])
    const later = new Date(one.until + 3 * hour).toISOString()
    expect(await first().postSilence({ ...silence, endsAt: later })).toBe(silence?.id)
    const next = await opened(urlsOf(servers))
    await made(next.receiver, [one])
    expect((await current(servers[0])).map(({ endsAt }) => endsAt)).toEqual([later])
    await made(next.receiver, [{ ...one, reason: 'INC-8' }])
    expect((await current(servers[0])).map(({ endsAt, comment }) => [endsAt, comment.slice(0, 5)])).toEqual([
      [later, 'INC-8'],
    ])
    await made(next.receiver, [{ ...one, until: one.until + hour }])
    const [moved] = await current(servers[0])
    expect(seconds(moved?.endsAt, one.until + hour)).toBeLessThan(2)
  })

  test('M10 silences of people, of another server, and those that a person makes from one of svc stay', async () => {
    const { receiver } = await opened(urlsOf(servers))
    const other = await opened(urlsOf(servers), { server: 'staging' })
    const one = mute()
    await made(other.receiver, [one])
    const matchers = [{ name: 'server', value: 'prod', isRegex: false, isEqual: true }]
    const times = { startsAt: new Date().toISOString(), endsAt: new Date(one.until).toISOString() }
    await first().postSilence({ matchers, ...times, createdBy: 'bob', comment: 'mine (svc prod: silence q1)' })
    await made(receiver, [one])
    const own = (await current(servers[0])).find(
      ({ comment }) => comment.includes('svc prod: silence q') && /until/.test(comment),
    )
    // A person edits it in the page of Alertmanager, so that it covers something else.
    await first().postSilence({
      ...own,
      matchers: [...(own?.matchers ?? []), { ...matchers[0], name: 'check', value: 'query' } as never],
    })
    await until(async () => (await current(servers[1])).length === 3, patience)
    const before = await current(servers[0])
    await made((await opened(urlsOf(servers))).receiver, [one])
    await made(receiver, [])
    await made(receiver, [mute({ targets: [{ pattern: 'App/*' }] })])
    await made(receiver, [])
    expect(await current(servers[0])).toEqual(before)
  })

  test('M10 an acknowledged item is silent, its neighbours and its check without an item are not', async () => {
    const { receiver } = await opened(urlsOf(servers))
    const subject = { server: 'prod', type: 'Sql', monitor: 'postgres ack', check: 'replication lag' } as const
    const web = { server: 'prod', monitor: 'host', check: 'disk', item: '/', node: 'web1' } as const
    const all = [
      ...[subject, { ...subject, item: 'a' }, { ...subject, item: 'b' }, { ...subject, check: 'connect', item: 'a' }],
      ...[web, { ...web, node: 'web2' }, { ...web, type: 'App' }, { ...subject, type: undefined, item: 'a' }],
    ].map((one, at) => notice({ id: `a${at}`, subject: one, beganAt: Date.now() - 60_000 }))
    await receiver.renew?.(all, true, signal())
    const silentNames = async () =>
      (await silenced(servers[0])).map(({ labels }) => {
        const { alertname, type, monitor, check, item, node } = labels
        return [alertname, type, monitor, check, item, node].filter((one) => one !== undefined).join(' ')
      })
    const ack = (target: NoticeSubject): Mute => mute({ what: 'ack', targets: [{ subject: target }], reason: 'INC-7' })
    await made(receiver, [ack({ ...subject, item: 'a' })])
    expect((await silentNames()).toSorted()).toEqual([
      'SvcFailed Sql postgres ack replication lag a',
      'SvcWarning Sql postgres ack replication lag a',
    ])
    await made(receiver, [ack(subject)])
    expect((await silentNames()).toSorted()).toEqual([
      'SvcFailed Sql postgres ack replication lag',
      'SvcWarning Sql postgres ack replication lag',
    ])
    await made(receiver, [ack(web)])
    expect((await silentNames()).toSorted()).toEqual(['SvcFailed host disk / web1', 'SvcWarning host disk / web1'])
  })

  test('M10 a silence that begins in 5 min is pending, moves with its begin, and ends before it began', async () => {
    const { receiver } = await opened(urlsOf(servers))
    const one = mute({ from: Date.now() + 300_000, until: Date.now() + 2 * hour })
    await made(receiver, [one])
    const [silence] = await current(servers[0])
    expect([silence?.status.state, seconds(silence?.startsAt, one.from) < 3]).toEqual(['pending', true])
    await made(receiver, [{ ...one, from: one.from + 120_000 }])
    const [moved, ...more] = await current(servers[0])
    expect([moved?.id, moved?.status.state, more]).toEqual([silence?.id, 'pending', []])
    expect(seconds(moved?.startsAt, one.from + 120_000)).toBeLessThan(3)
    await made(receiver, [])
    expect(await current(servers[0])).toEqual([])
  })

  test.for([
    ['10 min ahead', 600_000],
    ['10 min behind', -600_000],
  ] as const)(
    'M10 while the clock of this machine is %s, a silence begins at once and ends in the time of Alertmanager',
    async ([, ahead]) => {
      const now = (): number => Date.now() + ahead
      const { receiver, warnings } = await opened(urlsOf(servers), { now })
      const end = Date.now() + 60_000
      const one = mute({ from: now() - 1_000, until: end + ahead })
      await made(receiver, [one])
      const [silence] = await current(servers[0])
      expect(silence?.status.state).toBe('active')
      expect(seconds(silence?.endsAt, end)).toBeLessThan(4)
      expect(warnings).toHaveLength(2)
      // Once the clock is right again, the silence keeps its end, and no other one is made.
      const next = await opened(urlsOf(servers))
      await made(next.receiver, [{ ...one, from: one.from - ahead, until: end }])
      expect((await current(servers[0])).map(({ id }) => id)).toEqual([silence?.id])
      expect(seconds((await current(servers[0]))[0]?.endsAt, end)).toBeLessThan(4)
    },
  )

  test('M10 while one instance is down, the others have the silence, and it gets it when it is back', async () => {
    const { receiver } = await opened(urlsOf(servers))
    await made(receiver, [])
    await first().stop()
    const one = mute()
    await made(receiver, [one])
    expect(await current(servers[1])).toHaveLength(1)
    // A process that has not seen it yet cannot know that it belongs to the cluster.
    const next = await opened(urlsOf(servers))
    expect(await next.receiver.mute?.([one], signal())).toEqual([
      { place: first().url, message: expect.stringMatching(/refused the connection/) },
    ])
    await first().restart()
    await until(async () => (await current(servers[0])).length === 1, patience)
    await receiver.renew?.([], true, signal())
    await made(receiver, [one])
    expect(await current(servers[0])).toHaveLength(1)
    expect(await current(servers[1])).toHaveLength(1)
  })
})

peerSuite(alertmanagerMissing, 'two real Alertmanagers without clustering', () => {
  let servers: readonly AlertmanagerServer[] = []
  beforeAll(async () => {
    servers = [
      await startAlertmanager(configuration, { isClustered: false }),
      await startAlertmanager(configuration, { isClustered: false }),
    ]
  })
  afterAll(async () => {
    for (const server of servers) await server.remove()
  })

  test('M10 each one has its own silence, and one that is down is named and gets it when it is back', async () => {
    const [first, second] = servers as [AlertmanagerServer, AlertmanagerServer]
    const { receiver } = await opened(urlsOf(servers))
    const one = mute()
    await made(receiver, [one])
    expect([await current(first), await current(second)]).toEqual([[expect.anything()], [expect.anything()]])
    await first.stop()
    const other = mute({ targets: [{ pattern: 'App/*' }] })
    expect(await receiver.mute?.([one, other], signal())).toEqual([
      { place: first.url, message: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+ refused the connection/) },
    ])
    expect(await current(second)).toHaveLength(2)
    await receiver.renew?.([], true, signal())
    await first.restart()
    await receiver.renew?.([], true, signal())
    await made(receiver, [one, other])
    expect(await current(first)).toHaveLength(2)
    await made(receiver, [])
    expect([await current(first), await current(second)]).toEqual([[], []])
  })

  test('M10 an Alertmanager that has lost its data gets its silences again', async () => {
    const [first] = servers as [AlertmanagerServer, AlertmanagerServer]
    const { receiver } = await opened(urlsOf(servers))
    const one = mute()
    await made(receiver, [one])
    await first.stop()
    await receiver.renew?.([], true, signal())
    first.forget()
    await first.restart()
    expect(await current(first)).toEqual([])
    await receiver.renew?.([], true, signal())
    await made(receiver, [one])
    expect(await current(first)).toHaveLength(1)
    await made(receiver, [])
  })
})

peerSuite(alertmanagerMissing, 'two real Alertmanagers that do not know each other at first', () => {
  test('M10 each one gets a silence, and when they have become a cluster, one silence is left', async () => {
    const first = await startAlertmanager(configuration)
    const second = await startAlertmanager(configuration)
    const servers = [first, second]
    onTestFinished(async () => {
      for (const server of servers) await server.remove()
    })
    const { receiver, warnings } = await opened(urlsOf(servers))
    const one = mute()
    await made(receiver, [one])
    expect([await current(first), await current(second)]).toEqual([[expect.anything()], [expect.anything()]])
    await second.stop()
    await receiver.renew?.([], true, signal())
    await second.restart([first])
    await areJoined(servers)
    await until(async () => (await current(first)).length === 2 && (await current(second)).length === 2, patience)
    await receiver.renew?.([], true, signal())
    await made(receiver, [one])
    expect(await current(first)).toHaveLength(1)
    await until(async () => (await current(second)).length === 1, patience)
    await made(receiver, [])
    expect(await current(first)).toEqual([])
    expect(warnings.filter((text) => text.includes('by hand'))).toEqual([])
  })
})

import type { RequestListener } from 'node:http'
import { json } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'

type Alert = {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly startsAt: string
  readonly endsAt: string
}

/** The API of Alertmanager, simulated: `ahead` is its clock, `refuses` which alerts it does not read. */
async function simulated(
  options: { ahead?: number; status?: number; refuses?: (alert: Alert) => boolean } = {},
): Promise<{
  readonly peer: HttpPeer
  readonly posts: readonly (readonly Alert[])[]
  readonly options: typeof options
}> {
  const posts: (readonly Alert[])[] = []
  const answer: RequestListener = (request, response) => {
    response.setHeader('Date', new Date(Date.now() + (options.ahead ?? 0)).toUTCString())
    if (options.status !== undefined) return void response.writeHead(options.status).end('no')
    if (request.method === 'GET') return void response.writeHead(200).end('{}')
    void json(request).then((body) => {
      const alerts = body as readonly Alert[]
      posts.push(alerts)
      const isRefused = alerts.some((alert) => options.refuses?.(alert))
      response.writeHead(isRefused ? 400 : 200).end(isRefused ? '"bad alert"' : '')
    })
  }
  return { peer: await httpPeer(answer), posts, options }
}

const receiver = (...peers: readonly { readonly peer: HttpPeer }[]): string =>
  `{name: am, alertmanager: {urls: [${peers.map(({ peer }) => `"${peer.origin}"`).join(', ')}]}}`
const statesOf = (alerts: readonly Alert[] | undefined, now = Date.now()): readonly string[] =>
  (alerts ?? []).map(({ labels, endsAt }) => `${labels['alertname']} ${Date.parse(endsAt) > now ? 'fires' : 'ended'}`)
const minutes = ({ endsAt }: Alert): number => Math.round((Date.parse(endsAt) - Date.now()) / 60_000)

describe('a simulated Alertmanager', () => {
  test('M2 labels are the identity alone, and incidents end after 4 h without svc, the watchdog after 2 min', async () => {
    const one = await simulated()
    await using _ = one.peer
    const am = await opened(receiver(one))
    expect(await am.receiver.renew?.([notice({ runbook: 'https://wiki.example.com/o' })], true, signal())).toEqual({
      what: 'accepted',
    })
    const [failed, warning, watchdog] = one.posts.flat()
    const identity = { server: 'prod', type: 'Sql', monitor: 'postgres orders', check: 'connect' }
    expect(failed?.labels).toEqual({ alertname: 'SvcFailed', severity: 'critical', ...identity })
    expect(warning?.labels).toEqual({ alertname: 'SvcWarning', severity: 'warning', ...identity })
    expect(watchdog?.labels).toEqual({ alertname: 'SvcWatchdog', severity: 'none', server: 'prod' })
    expect(failed?.annotations).toMatchObject({
      incident: 'i1',
      fault: 'refused',
      runbook_url: 'https://wiki.example.com/o',
    })
    expect([failed, warning, watchdog].map((alert) => alert && minutes(alert))).toEqual([240, 240, 2])
  })

  test('M2 without health there is no watchdog', async () => {
    const one = await simulated()
    await using _ = one.peer
    const am = await opened(receiver(one))
    await am.receiver.renew?.([notice()], false, signal())
    expect(statesOf(one.posts.flat())).toEqual(['SvcFailed fires', 'SvcWarning fires'])
  })

  test('M2 a changed severity posts what begins before what ends, and a failure before its warning', async () => {
    const one = await simulated()
    await using _ = one.peer
    const am = await opened(receiver(one))
    await am.receiver.send([notice({ level: 'warning' })], signal())
    await am.receiver.send([notice({ what: 'change', before: 'warning' })], signal())
    await am.receiver.send([notice({ what: 'change', level: 'warning', before: 'failed' })], signal())
    await am.receiver.send([notice({ what: 'end', level: 'warning', endedAt: Date.now() - 1_000 })], signal())
    expect(one.posts.map((alerts) => statesOf(alerts))).toEqual([
      ['SvcWarning fires'],
      ['SvcFailed fires'],
      ['SvcWarning fires'],
      ['SvcWarning fires', 'SvcFailed ended'],
      ['SvcWarning ended'],
    ])
  })

  test('M2 an end is repeated until an instance has accepted it, and 5 min beyond', async () => {
    const [one, two] = [await simulated(), await simulated({ status: 503 })]
    await using _ = one.peer
    await using __ = two.peer
    let now = Date.now()
    const am = await opened(receiver(one, two), { now: () => now })
    expect(await am.receiver.send([notice({ what: 'end', endedAt: now - 1_000 })], signal())).toEqual({
      what: 'accepted',
    })
    expect(am.warnings).toEqual([`${two.peer.origin} answered 503: "no"`])
    now += 301_000
    await am.receiver.renew?.([], false, signal())
    now += 1_000
    await am.receiver.renew?.([], false, signal())
    const before = one.posts.length
    two.options.status = undefined as never
    delete two.options.status
    await am.receiver.renew?.([], false, signal())
    expect(one.posts).toHaveLength(before)
    expect(statesOf(two.posts.at(-1))).toEqual(['SvcWarning ended', 'SvcFailed ended'])
    expect(am.warnings.at(-1)).toBe(`${two.peer.origin} accepts alerts again`)
    now += 301_000
    await am.receiver.renew?.([], false, signal())
    await am.receiver.renew?.([], false, signal())
    expect(two.posts).toHaveLength(1)
  })

  test('M2 an end lies in the past of Alertmanager, which ignores an end in its future', async () => {
    const one = await simulated()
    await using _ = one.peer
    const am = await opened(receiver(one))
    await am.receiver.send([notice({ what: 'end', beganAt: Date.now(), endedAt: Date.now() + 500 })], signal())
    const alerts = one.posts[0] ?? []
    expect(alerts).toHaveLength(2)
    for (const { startsAt, endsAt } of alerts) {
      expect(Date.now() - Date.parse(endsAt)).toBeGreaterThanOrEqual(5_000)
      expect(Date.parse(startsAt)).toBeLessThanOrEqual(Date.parse(endsAt))
    }
  })

  test('M2 a fault that begins again takes back its end', async () => {
    const one = await simulated()
    await using _ = one.peer
    const am = await opened(receiver(one))
    await am.receiver.send([notice({ what: 'end', endedAt: Date.now() })], signal())
    await am.receiver.send([notice({ id: 'n2' })], signal())
    await am.receiver.renew?.([notice({ id: 'n2' })], false, signal())
    expect(statesOf(one.posts.slice(-2).flat())).toEqual(['SvcFailed fires', 'SvcWarning fires'])
  })

  test.for([
    ['10 min ahead', 600_000, 'ahead of'],
    ['10 min behind', -600_000, 'behind'],
  ] as const)('M2 an instance whose clock is %s gets its own times, and svc warns once', async ([, ahead, word]) => {
    const one = await simulated({ ahead })
    await using _ = one.peer
    const am = await opened(receiver(one))
    await am.receiver.renew?.([notice()], true, signal())
    await am.receiver.renew?.([notice()], true, signal())
    const theirs = Date.now() + ahead
    for (const alert of one.posts.flat()) {
      const left = Date.parse(alert.endsAt) - theirs
      const expected = alert.labels['alertname'] === 'SvcWatchdog' ? 120_000 : 14_400_000
      expect(Math.abs(left - expected)).toBeLessThan(60_000)
      expect(Date.parse(alert.startsAt)).toBeLessThanOrEqual(theirs + 60_000)
    }
    expect(am.warnings).toEqual([expect.stringContaining(`is 10 min ${word} that of this machine`)])
  })

  test('M2 a 400 is bisected: all other alerts arrive, and the bad one is named once and left out', async () => {
    const one = await simulated({ refuses: ({ labels }) => labels['monitor'] === 'tcp m7' })
    await using _ = one.peer
    const am = await opened(receiver(one))
    const many = Array.from({ length: 40 }, (__, at) =>
      notice({ id: `n${at}`, level: 'warning' }, { monitor: `tcp m${at}` }),
    )
    expect(await am.receiver.send(many, signal())).toEqual({
      what: 'refused',
      fault: 'data',
      ids: ['n7'],
      message: `${one.peer.origin} answered 400 and refuses the alerts: ""bad alert""`,
    })
    const accepted = one.posts.filter((alerts) => !alerts.some(({ labels }) => labels['monitor'] === 'tcp m7')).flat()
    expect(new Set(accepted.map(({ labels }) => labels['monitor'])).size).toBe(39)
    expect(am.warnings).toEqual([expect.stringMatching(/^the alert of Sql\/tcp m7: connect is left out: /)])
    const before = one.posts.length
    await am.receiver.renew?.(many, false, signal())
    expect(one.posts.slice(before).map((alerts) => alerts.length)).toEqual([39])
    expect(am.warnings).toHaveLength(1)
  })

  test('M2 a server that refuses everything costs a bounded number of requests', async () => {
    const one = await simulated({ refuses: () => true })
    await using _ = one.peer
    const am = await opened(receiver(one))
    const many = Array.from({ length: 100 }, (__, at) => notice({ id: `n${at}`, level: 'warning' }, { item: `${at}` }))
    expect(await am.receiver.send(many, signal())).toMatchObject({ what: 'refused', ids: { length: 100 } })
    expect(one.posts.length).toBeLessThan(140)
  })

  test('M2 one of two instances is enough, none is not, and credentials that are refused are a refusal', async () => {
    const [one, two] = [await simulated({ status: 401 }), await simulated({ status: 401 })]
    await using _ = one.peer
    await using __ = two.peer
    const am = await opened(receiver(one, two))
    expect(await am.receiver.send([notice()], signal())).toMatchObject({ what: 'refused', fault: 'auth' })
    two.options.status = 503
    expect(await am.receiver.send([notice()], signal())).toMatchObject({ what: 'later', isPerhapsReceived: true })
    delete two.options.status
    expect(await am.receiver.send([notice()], signal())).toEqual({ what: 'accepted' })
  })

  test('M2 a server that is no Alertmanager is named', async () => {
    await using peer = await httpPeer((_, response) => response.writeHead(404).end())
    const am = await opened(receiver({ peer }))
    const delivery = await am.receiver.send([notice()], signal())
    expect(delivery).toMatchObject({
      what: 'refused',
      message: expect.stringContaining('is not an Alertmanager at this path'),
    })
  })
})

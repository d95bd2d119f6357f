import { text as textOf } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import type { Notice } from '../../../src/core/watch/notify/index.ts'
import { services } from '../../../src/core/watch/notify/receivers/services/services.ts'
import { load, problemsOf, refused } from '../../config/given.ts'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { type ServiceAnswer, type ServiceRow, serviceRows, settingsAt } from '../../support/notify/service-rows.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'

const rowOf = (name: string): ServiceRow => serviceRows[name] ?? expect.fail(`${name} has no row`)

/** A simulated service at loopback, and a receiver that sends to it. `answer`: by default, it accepts. */
async function simulated(
  name: string,
  {
    answer = rowOf(name).accepts,
    headers = {},
    more = {},
    env = {},
    isTest = false,
    echoes = false,
  }: {
    readonly answer?: ServiceAnswer
    readonly headers?: Readonly<Record<string, string>>
    readonly more?: object
    readonly env?: Readonly<Record<string, string>>
    readonly isTest?: boolean
    readonly echoes?: boolean
  } = {},
) {
  const bodies: string[] = []
  const peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      bodies.push(body)
      const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body)
      const all = `${request.url} ${decodeURIComponent(request.url ?? '')} ${JSON.stringify(request.headers)} ${body}`
      const base64 = [request.url ?? '', ...Object.values(request.headers)]
        .flatMap((one) => String(one).split(/[ /?&=]/))
        .map((one) => Buffer.from(one).toString('base64'))
      response.writeHead(answer.status, headers).end(echoes ? `${all} ${base64.join(' ')}` : text)
    })
  })
  const yaml = JSON.stringify({ name: 'ops', [name]: settingsAt(name, peer.origin), ...more })
  const one = await opened(yaml, { env: { ...rowOf(name).env(peer.origin), ...env }, isTest })
  return { ...one, peer, bodies, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }
}

/** A text in which every service would find markup, mentions and links of its own. */
const hostile =
  '@channel @everyone @here <!here> <!channel> <@U1> <users/all> @**all** [x](https://evil.example) <https://evil.example|x> *b* _i_ `c` <b>h</b> &amp; https://evil.example'

/** Links that are about as long as svc permits, with characters that end a link in the markup of some services. */
const links = {
  runbook: `https://wiki.svc.test${'/r'.repeat(200)}/(a)|<b>`,
  url: `https://svc.svc.test/#${'s'.repeat(400)}(a)`,
}

/** A body without the encoding of a form. */
const decoded = (body: string): string => (body.startsWith('{') ? body : decodeURIComponent(body.replaceAll('+', ' ')))

const names = services.map(({ name }) => name)

test('M19 each service has a row, and no row has a service that does not exist', () => {
  expect(Object.keys(serviceRows).sort()).toEqual([...names].sort())
})

test('M19 each row says where its form is published', () => {
  expect(services.filter(({ source }) => !/^https:\/\/\S+,.* \d{4}-\d{2}$/.test(source))).toEqual([])
})

describe.each(names)('simulated %s', (name) => {
  test('M19 it is told the worst first, with what is invalid, in one message or in one for each', async () => {
    await using one = await simulated(name)
    const notices: readonly Notice[] = [
      notice({ id: 'n1' }),
      notice({ id: 'n2', level: 'warning', text: 'the certificate ends' }, { monitor: 'tls shop', type: 'App' }),
    ]
    expect(await one.receiver.send(notices, signal())).toEqual({ what: 'accepted' })
    expect(one.bodies).toHaveLength(one.receiver.sendsEach === true ? 2 : 1)
    const all = one.bodies.map((body) => decodeURIComponent(body.replaceAll('+', ' '))).join('\n')
    expect(all.indexOf('postgres orders')).toBeGreaterThan(-1)
    expect(all.indexOf('postgres orders')).toBeLessThan(all.indexOf('tls shop'))
    expect(all).toContain('refused the connection')
  })

  test('M19 an answer of its maker that refuses is a refusal, and 500 is tried again', async () => {
    await using refusing = await simulated(name, { answer: rowOf(name).refuses })
    expect(await refusing.receiver.send([notice()], signal())).toMatchObject({ what: 'refused' })
    await using broken = await simulated(name, { answer: { status: 500, body: 'no' } })
    expect(await broken.receiver.send([notice()], signal())).toMatchObject({ what: 'later', isPerhapsReceived: true })
  })

  test('M19 it is left alone for as long as it asks', async () => {
    const { slower } = rowOf(name)
    const body = typeof slower === 'object' ? slower.body : {}
    const afterMs = typeof slower === 'object' ? slower.afterMs : slower
    await using one = await simulated(name, { answer: { status: 429, body } })
    const delivery = await one.receiver.send([notice()], signal())
    expect(delivery).toMatchObject({ what: 'later', isPerhapsReceived: false })
    expect((delivery as { readonly afterMs?: number }).afterMs).toBe(afterMs)
    await using header = await simulated(name, { answer: { status: 429, body: {} }, headers: { 'Retry-After': '120' } })
    expect(await header.receiver.send([notice()], signal())).toMatchObject({ afterMs: 120_000 })
  })

  test('M19 its largest text is within its limit, is marked as cut, and keeps the links', async () => {
    await using one = await simulated(name)
    const { of, max, unit } = rowOf(name).limit
    const many = Array.from({ length: 300 }, (_, index) =>
      notice(
        { id: `n${index}`, text: 'ä<b>*`'.repeat(200), ...links },
        { monitor: `tcp m${index} ${'m'.repeat(300)}` },
      ),
    )
    const notices = one.receiver.sendsEach === true ? many.slice(0, 1) : many
    expect(await one.receiver.send(notices, signal())).toEqual({ what: 'accepted' })
    const text = of(one.bodies[0] ?? '')
    expect(unit === 'bytes' ? Buffer.byteLength(text) : text.length).toBeLessThanOrEqual(max)
    const body = decoded(one.bodies[0] ?? '')
    expect(body).toContain(`${'/r'.repeat(200)}/%28a%29%7C%3Cb%3E`)
    if (name !== 'pushover') expect(body).toContain(`${'s'.repeat(400)}%28a%29`)
    if (one.receiver.sendsEach !== true) expect(text).toContain('…')
  })

  test('M19 its longest title, lines and links are together within its limit', async () => {
    const { of, max, unit } = rowOf(name).limit
    const counts = [1, 2, 3, 4, 8, 300].flatMap((all) => [10, 200, 1_000].map((length) => [all, length] as const))
    for (const [all, length] of counts) {
      await using one = await simulated(name)
      const many = Array.from({ length: one.receiver.sendsEach === true ? 1 : all }, (_, at) =>
        notice(
          { id: `n${at}`, incident: `i${at}`, text: 't'.repeat(length), ...links },
          { type: 'App', monitor: `m${at}`, check: 'c' },
        ),
      )
      await one.receiver.send(many, signal())
      const cut = of(one.bodies[0] ?? '')
      expect(unit === 'bytes' ? Buffer.byteLength(cut) : cut.length).toBeLessThanOrEqual(max)
    }
  })

  test('M19 text of a peer is no markup, calls nobody and links nowhere', async () => {
    await using one = await simulated(name)
    await one.receiver.send([notice({ text: hostile }, { check: hostile.slice(0, 60) })], signal())
    const body = one.bodies.map((each) => decodeURIComponent(each.replaceAll('+', ' '))).join('\n')
    // PagerDuty's fields are plain text.
    if (name === 'pagerduty') return
    const text = name === 'jsm' || name === 'opsgenie' ? String(JSON.parse(one.bodies[0] ?? '').description) : body
    for (const active of ['@channel', '@everyone', '@here', '@**all**', '](https://evil', 'https://evil']) {
      expect(text).not.toContain(active)
    }
    const markup = { slack: ['<!here', '<https://evil'], googlechat: ['<users/all>'] }
    for (const active of (markup as Readonly<Record<string, readonly string[]>>)[name] ?? []) {
      // A plain_text of Slack shows what it contains.
      const parsed = name === 'slack' ? JSON.stringify({ text: JSON.parse(one.bodies[0] ?? '').text }) : text
      expect(parsed).not.toContain(active)
    }
  })

  test('M5 no answer that repeats its secrets brings them into a delivery, a list or a warning', async () => {
    const row = rowOf(name)
    const texts: string[] = []
    for (const status of [200, 202, 400, 401, 403, 404, 429, 503]) {
      await using one = await simulated(name, { answer: { status, body: '' }, echoes: true })
      const delivery = await one.receiver.send([notice({ id: `n${status}` })], signal())
      texts.push(JSON.stringify([delivery, one.receiver.describe(), one.warnings]))
    }
    const secrets = Object.values(row.env('http://127.0.0.1:1'))
      .flatMap((secret) => (secret.startsWith('http') ? secret.slice(18).split(/[/?&=]/) : [secret]))
      .filter((part) => part.length >= 8 && /[0-9]/.test(part) && !/^(?:api-version|workflows|[TB]0+)/.test(part))
    const forms = secrets.flatMap((one) => [
      one,
      encodeURIComponent(one),
      Buffer.from(one).toString('base64').replace(/=+$/, ''),
    ])
    expect(forms.filter((form) => texts.join('\n').includes(form))).toEqual([])
    expect(texts.join('\n')).toContain('answered 400')
  })

  test('M19 a secret that has not its form is not sent, and is not repeated', async () => {
    const { env } = rowOf(name)
    const [variable] = Object.keys(env(''))
    if (variable === undefined || name === 'pagerduty') return
    const invalid = variable.endsWith('URL') ? 'https://svc.test/hooks/wrong-Zq8nT3' : 'wrong Zq8nT3'
    await using one = await simulated(name, { env: { [variable]: invalid } })
    const delivery = await one.receiver.send([notice()], signal())
    expect(delivery).toMatchObject({ what: 'later', fault: 'internal', isPerhapsReceived: false })
    expect(JSON.stringify(delivery)).toContain(variable)
    expect(JSON.stringify(delivery)).not.toContain('Zq8nT3')
    expect(one.bodies).toEqual([])
  })

  test('M19 details: classes leaves out the message of the check', async () => {
    await using one = await simulated(name, { more: { details: 'classes' } })
    await one.receiver.send([notice()], signal())
    expect(one.bodies.join('\n')).not.toContain('10.0.0.7')
    expect(one.bodies.join('\n')).toContain('refused')
  })

  test('M19 a test says that nothing has failed, or opens nothing', async () => {
    await using one = await simulated(name, { isTest: true })
    const notices = notice({ text: 'ann tests this receiver', level: 'warning' })
    expect(await one.receiver.send([notices], signal())).toEqual({ what: 'accepted' })
    const body = one.bodies.map((each) => decodeURIComponent(each.replaceAll('+', ' '))).join('\n')
    expect(body).toMatch(/nothing has failed|"event_action":"resolve"/)
    expect(one.peer.requestLines().every((line) => !line.endsWith('/alerts'))).toBe(true)
  })
})

test('M19 credentials leave this machine only under TLS, at each service', async () => {
  for (const name of names) {
    const yaml = JSON.stringify({ notify: [{ name: 'ops', [name]: settingsAt(name, 'http://svc.example.com') }] })
    expect(problemsOf(await refused(yaml)).join('\n')).toContain('credentials leave this machine only under TLS')
  }
})

test('M19 a service that has an address needs none in svc.yaml', async () => {
  for (const { name, server } of services) {
    const { [name === 'pagerduty' ? 'url' : 'server']: _, ...settings } = settingsAt(name, '')
    const yaml = JSON.stringify({ notify: [{ name: 'ops', [name]: settings }] })
    const isComplete = server !== undefined || (rowOf(name).settings as { readonly url?: unknown }).url !== undefined
    if (isComplete) expect((await load(yaml)).notify).toHaveLength(1)
    else expect(problemsOf(await refused(yaml)).join('\n')).toContain('server is missing')
  }
})

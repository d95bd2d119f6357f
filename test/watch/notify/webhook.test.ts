import type { RequestListener } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** A real HTTP server that keeps what it got, and answers as `answer` says. */
async function receiving(answer: RequestListener = (_, response) => response.writeHead(204).end()) {
  const bodies: string[] = []
  const peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      bodies.push(body)
      answer(request, response)
    })
  })
  return { peer, bodies }
}

describe('a webhook', () => {
  test('M3 gets the body of Alertmanager, version 4, with a signature that the library of Standard Webhooks accepts', async () => {
    const { peer, bodies } = await receiving()
    await using _ = peer
    const { receiver } = await opened(`{name: chat, webhook: {url: "${peer.origin}/hook", secret: {env: KEY}}}`, {
      env: { KEY: secret },
    })
    const sent = notice({ victims: { count: 2, names: ['App/http shop'] }, runbook: 'https://wiki.example.com/o' })
    expect(await receiver.send([sent], signal())).toEqual({ what: 'accepted' })
    const headers = peer.requests()[0]?.headers as Record<string, string>
    expect(new Webhook(secret).verify(bodies[0] ?? '', headers)).toEqual({
      receiver: 'chat',
      status: 'firing',
      alerts: [
        {
          status: 'firing',
          labels: {
            alertname: 'SvcFailed',
            severity: 'critical',
            server: 'prod',
            type: 'Sql',
            monitor: 'postgres orders',
            check: 'connect',
          },
          annotations: {
            summary: 'Sql/postgres orders: connect failed',
            description: '10.0.0.7:5432 refused the connection',
            state: 'failed',
            fault: 'refused',
            incident: 'i1',
            victims: '2 monitors: App/http shop, and 1 more',
            runbook_url: 'https://wiki.example.com/o',
          },
          startsAt: '2026-11-24T11:42:54.000Z',
          endsAt: '0001-01-01T00:00:00Z',
          generatorURL: '',
          fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
        },
      ],
      groupLabels: { server: 'prod', type: 'Sql', monitor: 'postgres orders', check: 'connect' },
      commonLabels: expect.objectContaining({ alertname: 'SvcFailed' }),
      commonAnnotations: expect.objectContaining({ fault: 'refused' }),
      externalURL: '',
      version: '4',
      groupKey: '{}:{server="prod", type="Sql", monitor="postgres orders", check="connect"}',
      truncatedAlerts: 0,
    })
    expect(() => new Webhook(secret).verify(`${bodies[0]} `, headers)).toThrow()
  })

  test('M3 the id is the same in each attempt, and the fingerprint for each severity', async () => {
    const { peer, bodies } = await receiving()
    await using _ = peer
    const { receiver } = await opened(`{name: chat, webhook: {url: "${peer.origin}"}}`)
    await receiver.send([notice()], signal())
    await receiver.send([notice()], signal())
    await receiver.send([notice({ id: 'n2', what: 'change', level: 'warning', before: 'failed' })], signal())
    await receiver.send([notice({ id: 'n3', what: 'end', endedAt: Date.UTC(2026, 10, 24, 12) })], signal())
    const ids = peer.requests().map(({ headers }) => headers['webhook-id'])
    expect(ids[0]).toBe(ids[1])
    expect(new Set(ids).size).toBe(3)
    expect(peer.requests()[0]?.headers['webhook-signature']).toBeUndefined()
    const alerts = bodies.map(
      (body) =>
        (
          JSON.parse(body) as {
            readonly alerts: readonly {
              readonly fingerprint: string
              readonly status: string
              readonly endsAt: string
            }[]
          }
        ).alerts[0],
    )
    expect(new Set(alerts.map((alert) => alert?.fingerprint)).size).toBe(1)
    expect(alerts[3]).toMatchObject({ status: 'resolved', endsAt: '2026-11-24T12:00:00.000Z' })
  })

  test('M3 details: classes leaves out messages', async () => {
    const { peer, bodies } = await receiving()
    await using _ = peer
    const { receiver } = await opened(`{name: chat, details: classes, webhook: {url: "${peer.origin}"}}`)
    await receiver.send([notice({ text: 'db1.internal refused the connection' })], signal())
    expect(bodies[0]).toContain('"description":"refused"')
    expect(bodies[0]).not.toContain('db1.internal')
  })

  test.for([
    [200, { what: 'accepted' }],
    [
      302,
      {
        what: 'refused',
        fault: 'protocol',
        message: /redirects to http:\/\/elsewhere\.example \(302\): redirects are not followed/,
      },
    ],
    [400, { what: 'refused', fault: 'data', message: /answered 400 and refuses the message: "no"/ }],
    [401, { what: 'refused', fault: 'auth', message: /answered 401 and refuses the credentials/ }],
    [404, { what: 'refused', fault: 'data', message: /answered 404/ }],
    [408, { what: 'later', isPerhapsReceived: true }],
    [429, { what: 'later', isPerhapsReceived: false, afterMs: 120_000 }],
    [503, { what: 'later', isPerhapsReceived: true, message: /answered 503: "no"/ }],
  ] as const)('M3 the status %i decides whether it is sent again', async ([status, expected]) => {
    const { peer } = await receiving((_, response) =>
      response
        .writeHead(status, {
          Location: 'http://elsewhere.example/path?token=abc',
          ...(status === 429 ? { 'Retry-After': '120' } : {}),
        })
        .end('no'),
    )
    await using _ = peer
    const { receiver } = await opened(`{name: chat, webhook: {url: "${peer.origin}"}}`)
    const delivery = await receiver.send([notice()], signal())
    const { message, ...more } = expected as { readonly message?: RegExp }
    expect(delivery).toMatchObject(more)
    if (message) expect((delivery as { readonly message: string }).message).toMatch(message)
    expect(peer.requests()).toHaveLength(1)
  })

  test('M3 a server that refuses the connection has not received it, one that hangs up perhaps', async () => {
    const closed = await httpPeer(() => {})
    await closed[Symbol.asyncDispose]()
    const { receiver } = await opened(`{name: chat, webhook: {url: "${closed.origin}/secret-path-1"}}`)
    expect(await receiver.send([notice()], signal())).toMatchObject({
      what: 'later',
      fault: 'refused',
      isPerhapsReceived: false,
      message: expect.not.stringContaining('secret-path'),
    })
    await using rude = await httpPeer((request) => request.socket.destroy())
    const other = await opened(`{name: chat, webhook: {url: "${rude.origin}"}}`)
    expect(await other.receiver.send([notice()], signal())).toMatchObject({ what: 'later', isPerhapsReceived: true })
  })

  test('M3 a secret URL needs TLS beyond loopback, and its path appears nowhere', async () => {
    const { receiver } = await opened('{name: chat, webhook: {url: {env: URL}}}', {
      env: { URL: 'http://chat.internal/hooks/T0P-53CR3T' },
    })
    const delivery = await receiver.send([notice()], signal())
    expect(delivery).toMatchObject({ what: 'later', isPerhapsReceived: false })
    expect(JSON.stringify([delivery, receiver.describe()])).not.toContain('53CR3T')
    expect(JSON.stringify(delivery)).toContain('needs https://')
  })

  test('M3 a secret that is no key is named by its cure and not repeated', async () => {
    const { peer } = await receiving()
    await using _ = peer
    const { receiver } = await opened(`{name: chat, webhook: {url: "${peer.origin}", secret: {env: KEY}}}`, {
      env: { KEY: 'my password' },
    })
    const delivery = await receiver.send([notice()], signal())
    expect(JSON.stringify(delivery)).toContain('openssl rand -base64 32')
    expect(JSON.stringify(delivery)).not.toContain('my password')
    expect(peer.requests()).toHaveLength(0)
  })

  test('M3 of more than 1,000 alerts the message counts the rest', async () => {
    const { peer, bodies } = await receiving()
    await using _ = peer
    const { receiver } = await opened(`{name: chat, webhook: {url: "${peer.origin}"}}`)
    const many = Array.from({ length: 1_003 }, (__, at) => notice({ id: `n${at}` }, { item: `i${at}` }))
    await receiver.send(many, signal())
    expect(JSON.parse(bodies[0] ?? '')).toMatchObject({ truncatedAlerts: 3, alerts: { length: 1_000 } })
  })
})

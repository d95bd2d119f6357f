import { text as textOf } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { load, problemsOf, refused } from '../../config/given.ts'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'

/** A real HTTP server that keeps what it got, and a webhook with these settings. */
async function sending(
  settings: object,
  answer: { readonly status?: number; readonly body?: unknown } = {},
  isTest = false,
) {
  const bodies: string[] = []
  const peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      bodies.push(body)
      response.writeHead(answer.status ?? 200).end(JSON.stringify(answer.body ?? {}))
    })
  })
  const yaml = JSON.stringify({ name: 'tickets', webhook: { url: `${peer.origin}/new`, ...settings } })
  const { receiver } = await opened(yaml, { env: { TOKEN: 'planted-Zq8nT3', KEY: secret }, isTest })
  return { receiver, peer, bodies, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }
}
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const mistakesIn = async (settings: object): Promise<string> =>
  problemsOf(
    await refused(
      JSON.stringify({ notify: [{ name: 'tickets', webhook: { url: 'https://a.example', ...settings } }] }),
    ),
  ).join('\n')

test('M20 a body is sent as written, with its placeholders filled in', async () => {
  const body = {
    title: '{summary} ({count})',
    facts: [
      '{status}',
      '{severity}',
      '{server}',
      '{type}',
      '{monitor}',
      '{check}',
      '{message}',
      '{link}',
      '{incident}',
    ],
    since: '{since}',
    plain: [1, true, null],
  }
  await using one = await sending({ body, method: 'PUT' })
  const link = 'https://svc.example.com/#orders'
  expect(await one.receiver.send([notice({ url: link, timezone: 'UTC' })], signal())).toEqual({ what: 'accepted' })
  expect(JSON.parse(one.bodies[0] ?? '')).toEqual({
    title: 'Sql/postgres orders: connect failed (1)',
    facts: [
      'firing',
      'critical',
      'prod',
      'Sql',
      'Sql/postgres orders',
      'connect',
      '10.0.0.7:5432 refused the connection',
      link,
      'i1',
    ],
    since: '2026-11-24 11:42:54 UTC',
    plain: [1, true, null],
  })
  expect(one.peer.requestLines()).toEqual(['PUT /new'])
})

test('M20 no text of a peer adds to the JSON, the form, a header or the placeholders', async () => {
  const hostile = '"}, {incident} {env: X}\r\nX-Evil: 1&admin=1'
  await using json = await sending({ body: { text: '{message}' }, headers: { 'X-Text': '{message}' } })
  await json.receiver.send([notice({ text: hostile })], signal())
  const line = '"}, {incident} {env: X} X-Evil: 1&admin=1'
  expect(JSON.parse(json.bodies[0] ?? '')).toEqual({ text: line })
  expect(json.peer.requests()[0]?.headers['x-text']).toBe(line)
  expect(json.peer.requests()[0]?.headers['x-evil']).toBeUndefined()
  await using form = await sending({ form: { text: '{message}', token: { env: 'TOKEN' } } })
  await form.receiver.send([notice({ text: hostile })], signal())
  expect([...new URLSearchParams(form.bodies[0])]).toEqual([
    ['text', line],
    ['token', 'planted-Zq8nT3'],
  ])
})

test('M20 a body is about the worst incident of a message, or there is one for each incident', async () => {
  const notices = [notice({ id: 'n1' }), notice({ id: 'n2', level: 'warning' }, { monitor: 'tls shop' })]
  await using message = await sending({ body: { about: '{monitor}', all: '{summary}', count: '{count}' } })
  await message.receiver.send(notices, signal())
  expect(message.bodies.map((body) => JSON.parse(body) as unknown)).toEqual([
    {
      about: 'Sql/postgres orders',
      all: 'Sql/postgres orders: connect failed; Sql/tls shop: connect is a warning',
      count: '2',
    },
  ])
  await using each = await sending({ body: { about: '{monitor}' }, each: 'incident' })
  expect(each.receiver.sendsEach).toBe(true)
  await each.receiver.send(notices, signal())
  expect(each.bodies).toEqual(['{"about":"Sql/postgres orders"}', '{"about":"Sql/tls shop"}'])
})

test('M20 accept decides by the status and by the JSON of the answer', async () => {
  const accept = { status: ['200', '409'], json: { '$.ok': 'true' } }
  const outcomes = [
    [{ status: 200, body: { ok: true } }, { what: 'accepted' }],
    [{ status: 409, body: { ok: true } }, { what: 'accepted' }],
    [{ status: 200, body: { ok: false, why: 'planted-Zq8nT3' } }, { what: 'refused' }],
    [{ status: 204, body: {} }, { what: 'refused' }],
    [{ status: 400, body: {} }, { what: 'refused' }],
    [{ status: 503, body: {} }, { what: 'later' }],
  ] as const
  for (const [answer, expected] of outcomes) {
    await using one = await sending({ body: {}, accept, headers: { 'X-Token': { env: 'TOKEN' } } }, answer)
    const delivery = await one.receiver.send([notice()], signal())
    expect(delivery).toMatchObject(expected)
    expect(JSON.stringify(delivery)).not.toContain('Zq8nT3')
  }
})

test('M20 accept takes a value that the answer must not have, as checks do', async () => {
  for (const [ok, what] of [
    [true, 'accepted'],
    [false, 'refused'],
  ] as const) {
    await using one = await sending(
      { body: {}, accept: { json: { '$.ok': { not: 'false' } } } },
      { status: 200, body: { ok } },
    )
    expect(await one.receiver.send([notice()], signal())).toMatchObject({ what })
  }
})

test('M20 the signature is that of the bytes that are sent, and the id is the same in each attempt', async () => {
  await using one = await sending({ body: { text: '{message}' }, secret: { env: 'KEY' } })
  await one.receiver.send([notice()], signal())
  await one.receiver.send([notice()], signal())
  const [first, second] = one.peer.requests().map(({ headers }) => headers as Record<string, string>)
  expect(new Webhook(secret).verify(one.bodies[0] ?? '', first ?? {})).toEqual({
    text: '10.0.0.7:5432 refused the connection',
  })
  expect(second?.['webhook-id']).toBe(first?.['webhook-id'])
})

test('M20 a test and a drill say so in a body of its own', async () => {
  await using one = await sending({ body: { text: '{summary}', severity: '{severity}' } }, {}, true)
  await one.receiver.send([notice()], signal())
  await using drill = await sending({ body: { text: '{summary}', severity: '{severity}' } })
  await drill.receiver.send([notice({ drill: {} })], signal())
  expect([...one.bodies, ...drill.bodies]).toEqual([
    '{"text":"TEST of svc notify test: nothing has failed","severity":"info"}',
    '{"text":"DRILL of svc: nothing has failed","severity":"info"}',
  ])
})

test('M20 mistakes are named with their place and the way out', async () => {
  expect(await mistakesIn({ body: { a: [{ text: 'x {sumary}' }] } })).toMatch(
    /notify\[0\]\.webhook\.body\.a\[0\]\.text contains \{sumary\}, which stands for nothing: use \{summary\}/,
  )
  expect(await mistakesIn({ body: {}, form: {} })).toContain('cannot be used beside body')
  expect(await mistakesIn({ form: { a: ['b'] } })).toContain('must be a map of names to texts or secrets')
  expect(await mistakesIn({ each: 'incident' })).toContain('each needs body or form')
  expect(await mistakesIn({ headers: { 'a b': 'c' } })).toContain('is not the name of a header')
  expect(await mistakesIn({ headers: { Host: 'c' } })).toContain('svc sets itself')
  expect(await mistakesIn({ body: {}, accept: { json: { '$..x': 'a' } } })).toContain('$..x')
  expect(await mistakesIn({ url: 'http://a.example', body: { key: { env: 'TOKEN' } } })).toContain(
    'credentials leave this machine only under TLS',
  )
  expect(
    (await load('notify: [{name: t, webhook: {url: "https://a.example", body: "{summary}"}}]')).notify,
  ).toHaveLength(1)
})

import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../support/suite/until.ts'
import { operationAt, valid } from '../support/wire/openapi.ts'
import { ask, healthy, question, raw, type Site, startSite, withSite } from './site.ts'

/** Counterexamples of test/prove, one test each. */
let site: Site
beforeAll(async () => {
  site = await startSite()
})
afterAll(() => site.server.stop())

const statuses = (text: string): readonly string[] => text.match(/HTTP\/1\.1 \d+/g) ?? []

test.each([
  [
    'h2c, as Java asks for it',
    'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n',
  ],
  ['websocket', 'connection: keep-alive, Upgrade\r\nupgrade: websocket\r\n'],
])('a request that would upgrade to %s is answered and its connection closed', async (_, headers) => {
  const next = 'GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n'
  for (const [line, body, status] of [
    ['GET /livez', '', 200],
    ['POST /assignroles', 'Content-Length: 2\r\n\r\n{}', 501],
    ['POST /assignroles', 'Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n', 501],
  ] as const) {
    const got = await raw(site.port, `${line} HTTP/1.1\r\nHost: localhost\r\n${headers}${body || '\r\n'}${next}`)
    expect(statuses(got.text)).toEqual([`HTTP/1.1 ${status}`])
    expect(got.text).toMatch(/^Connection: close\r$/m)
    expect(got.closed).toBe(true)
  }
})

test('R3 R6 the description of a batch under /api with the suffix .json matches its answer', async () => {
  const target = '/api/AssignRoles[].json'
  const got = await ask(site.port, target, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '[{}]',
  })
  expect(operationAt('POST', target)?.operationId).toBe('postApiAssignRolesBatchJson')
  valid('POST', target, got.status, got.headers['content-type'], got.text)
  const options = await ask(site.port, target, { method: 'OPTIONS' })
  valid('OPTIONS', target, options.status, options.headers['content-type'], options.text)
})

const get = (path: string, id: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-Correlation-Id: ${id}\r\n\r\n`
const ids = (text: string): readonly string[] =>
  [...text.matchAll(/^X-Correlation-Id: (.*)\r$/gm)].map(([, id]) => id ?? '')

test('E2 a request whose Content-Length is too small is answered, and the connection closed', async () => {
  const head =
    'POST /assignroles HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Correlation-Id: short\r\n'
  const got = await raw(site.port, `${head}Content-Length: 2\r\n\r\n{}"}`)
  expect(statuses(got.text)).toEqual(['HTTP/1.1 501'])
  expect(ids(got.text)).toEqual(['short'])
  expect(got.text).toMatch(/^Connection: close\r$/m)
  expect(got.closed).toBe(true)
})

test('E2 an incomplete body is refused in its turn, as part of its own request', async () => {
  const head =
    'POST /access-token HTTP/1.1\r\nHost: localhost\r\nX-Correlation-Id: second\r\nTransfer-Encoding: chunked\r\n'
  const got = await raw(site.port, `${get('/livez', 'first')}${head}\r\n2\r\n{}x\r\n`)
  expect(statuses(got.text)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
  expect(ids(got.text)).toEqual(['first', 'second'])
  expect(got.closed).toBe(true)
  await until(() => site.log.some(({ correlationId, status }) => correlationId === 'second' && status === 400))
})

test('a caller that has closed its sending side, as nc does, gets its answers', async () => {
  await withSite({ health: async (_, call) => await sleep(50, healthy(call)) }, async ({ port }) => {
    const socket = connect(port, '127.0.0.1')
    socket.end(get(question, 'one') + get('/livez', 'two'))
    let text = ''
    socket.on('data', (chunk) => {
      text += String(chunk)
    })
    await once(socket, 'close')
    expect(statuses(text)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
    expect(ids(text)).toEqual(['one', 'two'])
  })
})

test('S2 CONNECT is refused after the earlier requests are answered, and a caller that leaves meanwhile disturbs nothing', async () => {
  await withSite({ health: async (_, call) => await sleep(100, healthy(call)) }, async ({ port }) => {
    const bytes = `${get(question, 'one')}CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n`
    expect(statuses((await raw(port, bytes)).text)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 405'])
    for (let i = 0; i < 5; i += 1) {
      const socket = connect(port, '127.0.0.1')
      await once(socket, 'connect')
      socket.write(bytes)
      await sleep(20)
      socket.resetAndDestroy()
    }
    await sleep(200)
    expect((await ask(port, '/livez')).status).toBe(200)
  })
})

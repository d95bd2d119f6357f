import { afterAll, beforeAll, expect, test } from 'vitest'
import { operationAt, valid } from '../support/openapi.ts'
import { ask, raw, type Site, startSite } from './site.ts'

/** What test/prove found, one test each. */
let site: Site
beforeAll(async () => {
  site = await startSite()
})
afterAll(() => site.server.stop())

const statuses = (text: string): readonly string[] => text.match(/^HTTP\/1\.1 \d+/gm) ?? []

test.each([
  ['h2c, as Java asks for it', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'],
  ['websocket', 'connection: keep-alive, Upgrade\r\nupgrade: websocket\r\n'],
])('a request that would upgrade to %s is answered and the connection closed: nothing would be answered on it any more', async (_, headers) => {
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

test('R3 R6 a batch under /api with the suffix .json is described as it is answered', async () => {
  const target = '/api/AssignRoles[].json'
  const got = await ask(site.port, target, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '[{}]' })
  expect(operationAt('POST', target)?.operationId).toBe('postApiAssignRolesBatchJson')
  valid('POST', target, got.status, got.headers['content-type'], got.text)
  const options = await ask(site.port, target, { method: 'OPTIONS' })
  valid('OPTIONS', target, options.status, options.headers['content-type'], options.text)
})

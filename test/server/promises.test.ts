import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, openSite, question, type Site, startSite } from './site.ts'

let site: Site
beforeAll(async () => {
  site = await startSite()
})
afterAll(() => site.server.stop())

test.each([
  ['nothing', {}],
  ['a bearer token that nobody gave out', { authorization: 'Bearer nonsense' }],
  ['a session that never was', { cookie: 'ss-id=nonsense; ss-opt=temp' }],
  ['a sign-in of another scheme', { authorization: 'Basic Zm9vOmJhcg==' }],
])('H7 a caller that presents %s gets health', async (_, headers) => {
  expect((await ask(site.port, question, { headers })).status).toBe(200)
})

test('S5 where JSONP is turned off, a callback is a 403 in plain JSON that names the option', async () => {
  for (const over of [{ options: { jsonp: false } }, { host: '0.0.0.0' }]) {
    const { port, calls } = await openSite(over)
    const got = await ask(port, `${question}&callback=cb`, { headers: { 'sec-fetch-site': 'same-origin' } })
    expect([got.status, got.headers['content-type']]).toEqual([403, 'application/json; charset=utf-8'])
    expect(got.json.ResponseStatus?.Message).toContain('serve.jsonp')
    expect(calls).toEqual([])
  }
})

test('S5 a server beyond loopback answers callbacks only where the configuration turns JSONP on', async () => {
  const { port } = await openSite({ host: '0.0.0.0', options: { jsonp: true } })
  const got = await ask(port, `${question}&callback=cb`, { headers: { 'sec-fetch-site': 'same-origin' } })
  expect([got.status, got.text.slice(0, 3)]).toEqual([200, 'cb('])
})

test('S8 no request names a target: unknown fields never reach the checks', async () => {
  const query = `${question}&url=http://127.0.0.1:9/&Host=10.0.0.1&Config=/etc/passwd&Monitors[0].kind=exec&types=x`
  const headers = { 'x-forwarded-host': '10.0.0.1', 'x-target': '10.0.0.1' }
  expect((await ask(site.port, query, { headers })).status).toBe(200)
  const { request, call } = site.calls.at(-1) ?? expect.fail('the service was not asked')
  expect(request).toEqual({ ExecutionMode: 'Basic', ServerType: 'Sql' })
  expect(JSON.stringify(call)).not.toMatch(/10\.0\.0\.1|passwd|exec/)
})

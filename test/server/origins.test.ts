import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, question, type Site, startSite } from './site.ts'

const ops = 'https://ops.example.com'
let site: Site
let closed: Site
beforeAll(async () => {
  site = await startSite({ options: { origins: [ops] } })
  closed = await startSite()
})
afterAll(() => Promise.all([site.server.stop(), closed.server.stop()]))

const cross = { 'sec-fetch-site': 'cross-site' }

describe('S11 pages of other sites', () => {
  test.each([question, `${question}&callback=cb`, `/json/reply/HealthCheckRequest${question.slice(12)}`])(
    'S11 %s is a 403 to a page of another site',
    async (path) => {
      const before = site.calls.length
      for (const headers of [cross, { ...cross, origin: 'https://evil.example' }, { ...cross, origin: 'null' }]) {
        const got = await ask(site.port, path, { headers })
        expect(got.status).toBe(403)
        expect(got.text).toContain('"ErrorCode":"Forbidden"')
      }
      expect(site.calls.length).toBe(before)
    },
  )

  test('S11 H14 the list of server types is a 403 to a page of another site', async () => {
    for (const path of ['/server-types', '/server-types?callback=cb', '/json/reply/GetServerTypes']) {
      for (const headers of [cross, { ...cross, origin: 'https://evil.example' }]) {
        const got = await ask(site.port, path, { headers })
        expect([path, got.status]).toEqual([path, 403])
      }
    }
  })

  test('S11 a listed origin is answered, whether its Origin or the Referer of a script names it', async () => {
    expect((await ask(site.port, question, { headers: { ...cross, origin: ops } })).status).toBe(200)
    const script = { ...cross, referer: `${ops}/board?x=1`, 'sec-fetch-dest': 'script' }
    expect((await ask(site.port, `${question}&callback=cb`, { headers: script })).status).toBe(200)
    const other = { ...cross, referer: 'https://ops.example.com.evil.example/' }
    expect((await ask(site.port, `${question}&callback=cb`, { headers: other })).status).toBe(403)
    // An Origin outranks a Referer.
    const mixed = { ...cross, origin: 'https://evil.example', referer: `${ops}/` }
    expect((await ask(site.port, question, { headers: mixed })).status).toBe(403)
  })

  test('S11 a browser without Sec-Fetch-Site is identified by its Origin', async () => {
    expect((await ask(closed.port, question, { headers: { origin: 'https://evil.example' } })).status).toBe(403)
    expect((await ask(closed.port, question, { headers: { origin: 'null' } })).status).toBe(403)
    const own = `http://127.0.0.1:${closed.port}`
    expect((await ask(closed.port, question, { headers: { origin: own } })).status).toBe(200)
  })

  test.each([question, `${question}&callback=cb`])(
    'S11 %s is a 403 to a page at another port of this host, unless that origin is listed',
    async (path) => {
      // What fetch() and a script tag send; a script tag has no Origin.
      const page = `http://127.0.0.1:${site.port + 1}`
      for (const headers of [
        { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors', origin: page },
        { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors', referer: `${page}/` },
        { 'sec-fetch-site': 'same-site' },
        // A frame: no script reads the answer, but the run would begin.
        { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
      ]) {
        expect((await ask(site.port, path, { headers })).status).toBe(403)
      }
      const listed = { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors', referer: `${ops}/board` }
      expect((await ask(site.port, path, { headers: listed })).status).toBe(200)
    },
  )

  test('S11 a link from another page of this host is answered', async () => {
    const link = { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    expect((await ask(closed.port, question, { headers: link })).status).toBe(200)
  })

  test('S11 the same site, a typed address and callers other than browsers pass', async () => {
    for (const headers of [{ 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }, {}]) {
      expect((await ask(closed.port, question, { headers })).status).toBe(200)
    }
  })
})

/** As a trusted proxy relays a caller of another machine, whose browser sends no Sec-Fetch-Site over plain http. */
describe('S5 JSONP for callers beyond loopback', () => {
  const callback = `${question}&callback=cb`
  const far = { 'x-forwarded-for': '203.0.113.9' }
  let own: string
  beforeAll(() => {
    own = `http://127.0.0.1:${site.port}`
  })

  test.each([
    ['no header', {}],
    ['a Referer of another origin', { referer: 'http://evil.example/' }],
    ['a Referer of another port', { referer: 'http://127.0.0.1:1/' }],
    ['an unreadable Referer', { referer: 'about:client' }],
    ['the Origin null', { origin: 'null' }],
    ['none and a foreign Referer', { 'sec-fetch-site': 'none', referer: 'http://evil.example/' }],
    ['same-site', { 'sec-fetch-site': 'same-site' }],
    ['an unknown relation', { 'sec-fetch-site': 'same-origin, cross-site' }],
  ])('S5 %s is a 403 in plain JSON, and nothing runs', async (_, headers) => {
    const before = site.calls.length
    const got = await ask(site.port, callback, { headers: { ...far, ...headers } })
    expect([got.status, got.headers['content-type']]).toEqual([403, 'application/json; charset=utf-8'])
    expect(got.json.ResponseStatus?.Message).toContain('serve.origins')
    expect(site.calls.length).toBe(before)
  })

  test('S5 a page of this server, a typed address and a listed origin are answered', async () => {
    for (const headers of [
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
      { referer: `${own}/board` },
      { origin: own },
      { referer: `${ops}/board` },
    ]) {
      const got = await ask(site.port, callback, { headers: { ...far, ...headers } })
      expect([headers, got.status, got.text.slice(0, 3)]).toEqual([headers, 200, 'cb('])
    }
  })

  test('S5 a caller on this machine is answered without these headers, and not with those of another page', async () => {
    expect((await ask(site.port, callback)).status).toBe(200)
    expect((await ask(site.port, callback, { headers: { referer: 'http://evil.example/' } })).status).toBe(403)
  })

  test('S5 the browser loads an answer only into pages of this server, and into those of a listed origin', async () => {
    const policy = async (headers: Readonly<Record<string, string>>) =>
      (await ask(site.port, question, { headers })).headers['cross-origin-resource-policy']
    expect(await policy({})).toBe('same-origin')
    expect(await policy({ referer: 'http://evil.example/' })).toBe('same-origin')
    expect(await policy({ referer: `${ops}/board` })).toBe('cross-origin')
  })
})

describe('CORS for listed origins', () => {
  const allowed = (headers: object) => Object.keys(headers).filter((name) => name.startsWith('access-control'))

  test('a listed origin may read the answer, and the header names exactly that origin', async () => {
    const { headers } = await ask(site.port, question, { headers: { origin: ops, 'sec-fetch-site': 'cross-site' } })
    expect(headers['access-control-allow-origin']).toBe(ops)
    expect(headers['access-control-allow-credentials']).toBe('true')
    expect(headers.vary).toBe('Accept, Origin')
  })

  test('a listed origin may read an error as well', async () => {
    const { status, headers } = await ask(site.port, '/healthcheck', { headers: { origin: ops } })
    expect(status).toBe(400)
    expect(headers['access-control-allow-origin']).toBe(ops)
  })

  test.each(['https://evil.example', 'https://ops.example.com.evil.example', 'http://ops.example.com', 'null', '*'])(
    'the origin %s gets no CORS header',
    async (origin) => {
      const { headers } = await ask(site.port, '/livez', { headers: { origin } })
      expect(allowed(headers)).toEqual([])
      expect(headers.vary).toBe('Accept, Origin')
    },
  )

  test('S1 without listed origins there are no CORS headers', async () => {
    const { headers } = await ask(closed.port, '/livez', { headers: { origin: ops } })
    expect(allowed(headers)).toEqual([])
  })

  test('R4 R5 a preflight allows every verb to a listed origin, which then sees the 405, and only Allow to another', async () => {
    const preflight = (origin: string) =>
      ask(site.port, '/healthcheck', {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'GET', 'sec-fetch-site': 'cross-site' },
      })
    const good = await preflight(ops)
    expect(good.status).toBe(200)
    expect(good.headers['access-control-allow-methods']).toBe('GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
    expect(good.headers.allow).toBe('GET, HEAD, OPTIONS')
    expect(good.headers['access-control-allow-headers']).toContain('Authorization')
    expect(good.headers['access-control-allow-origin']).toBe(ops)
    const bad = await preflight('https://evil.example')
    expect(bad.status).toBe(200)
    expect(allowed(bad.headers)).toEqual([])
  })
})

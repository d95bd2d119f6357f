import { request as httpsRequest } from 'node:https'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Accounts, bearer, by, password, type SignedIn, startAccounts } from './accounts.ts'
import { cert, key } from './certificate.ts'
import { ask, type Got, question, raw, withSite } from './site.ts'

const ops = 'https://ops.example.com'
let site: Accounts
let ann: SignedIn
let remembered: SignedIn
beforeAll(async () => {
  site = await startAccounts({ origins: [ops], trustProxy: ['127.0.0.1'] })
  ann = await site.signIn()
  remembered = await site.signIn({ RememberMe: true })
})
afterAll(() => site.close())

type Headers = Record<string, string>
const get = (path: string, headers: Headers = {}) => ask(site.port, path, { headers })
const whoIs = async (headers: Headers) => (await get('/auth', headers)).status

describe('A9 credentials of a request', () => {
  const cases: readonly (readonly [string, () => Headers])[] = [
    ['a bearer token', () => bearer(ann.BearerToken)],
    ['a bearer token in other letter case', () => ({ authorization: `bEARER ${ann.BearerToken}` })],
    ['the header X-ss-id', () => ({ 'X-ss-id': ann.SessionId })],
    ['the header X-ss-id with X-ss-opt: temp', () => ({ 'X-ss-id': ann.SessionId, 'X-ss-opt': 'temp' })],
    ['the header X-ss-pid', () => ({ 'X-ss-pid': remembered.SessionId, 'X-ss-opt': 'perm' })],
    ['a remembered session as X-ss-id', () => ({ 'X-ss-id': remembered.SessionId })],
    ['the cookies of a sign-in', () => ({ cookie: ann.cookie })],
    ['the cookies of a remembered sign-in', () => ({ cookie: remembered.cookie })],
    ['the cookie ss-id alone', () => ({ cookie: `ss-id=${ann.SessionId}` })],
    ['the cookie ss-tok', () => ({ cookie: `ss-tok=${ann.BearerToken}` })],
    ['ss-tok beside an empty ss-id', () => ({ cookie: `ss-id=; ss-tok=${ann.BearerToken}` })],
    ['a later cookie of a name that was empty', () => ({ cookie: `ss-id=; ss-id=${ann.SessionId}` })],
    [
      'cookies around what is not a pair',
      () => ({ cookie: `a=b; 20 Nov 2046 10:00:00 GMT=null; ${ann.cookie}; x; =y` }),
    ],
    ['a cookie in quotes with attributes', () => ({ cookie: `$Version="1"; ss-id="${ann.SessionId}"; $Path="/"` })],
    ['a header before a cookie', () => ({ 'X-ss-id': ann.SessionId, cookie: 'ss-id=wrong' })],
    ['a bearer token before everything', () => ({ ...bearer(ann.BearerToken), 'X-ss-id': 'wrong', cookie: 'ss-id=x' })],
    ['Basic is none, so that the cookie counts', () => ({ authorization: 'Basic QW5uOnB3', cookie: ann.cookie })],
    ['an empty bearer token is none', () => ({ authorization: 'Bearer ', cookie: ann.cookie })],
  ]
  test.each(cases)('A9 %s is accepted', async (_, headers) => {
    expect(await whoIs(headers())).toBe(200)
  })

  const refused: readonly (readonly [string, () => Headers])[] = [
    ['nothing', () => ({})],
    ['Basic', () => ({ authorization: `Basic ${Buffer.from(`Ann:${password}`).toString('base64')}` })],
    ['another scheme', () => ({ authorization: `Token ${ann.BearerToken}` })],
    ['a token without a scheme', () => ({ authorization: ann.BearerToken })],
    ['two tokens', () => ({ authorization: `Bearer ${ann.BearerToken} ${ann.BearerToken}` })],
    ['a wrong bearer token before a good cookie', () => ({ ...bearer('wrong'), cookie: ann.cookie })],
    ['a wrong header before a good cookie', () => ({ 'X-ss-id': 'wrong', cookie: ann.cookie })],
    ['X-ss-pid without X-ss-opt', () => ({ 'X-ss-pid': remembered.SessionId })],
    ['X-ss-id with X-ss-opt: perm', () => ({ 'X-ss-id': ann.SessionId, 'X-ss-opt': 'perm' })],
    ['ss-pid without ss-opt', () => ({ cookie: `ss-pid=${remembered.SessionId}` })],
    ['ss-pid with ss-opt=temp', () => ({ cookie: `ss-pid=${remembered.SessionId}; ss-opt=temp` })],
    ['an attribute of a cookie', () => ({ cookie: `$ss-id=${ann.SessionId}` })],
    ['a cookie in other letter case', () => ({ cookie: `SS-ID=${ann.SessionId}` })],
    ['a session as ss-tok', () => ({ cookie: `ss-tok=${ann.SessionId}` })],
    ['a token as ss-id', () => ({ cookie: `ss-id=${ann.BearerToken}` })],
    ['the refresh token as ss-reftok', () => ({ cookie: `ss-reftok=${ann.RefreshToken}` })],
    ['a tampered session', () => ({ 'X-ss-id': ann.SessionId.replace(/.$/, (end) => (end === 'A' ? 'B' : 'A')) })],
  ]
  test.each(refused)('A10 %s signs nobody in', async (_, headers) => {
    const got = await get('/auth', headers())
    expect([got.status, got.json.ResponseStatus?.Message]).toEqual([401, 'Not Authenticated'])
    expect(got.headers['www-authenticate']).toBeUndefined()
  })

  // Also from elsewhere, where it matters who asks (S11).
  test.each(refused)('H7 %s does not prevent a health check', async (_, headers) => {
    for (const where of [{}, { 'x-forwarded-for': '192.0.2.7' }]) {
      const got = await get(`${question}&SuppressErrorCodes=true`, { ...headers(), ...where })
      expect([got.status, typeof got.json.Status]).toEqual([200, 'string'])
    }
  })

  test('A9 a session in the query is not accepted', async () => {
    for (const query of [`ss-id=${ann.SessionId}`, `ss-tok=${ann.BearerToken}`, `X-ss-id=${ann.SessionId}`]) {
      expect((await get(`/auth?${query}`)).status).toBe(401)
    }
  })

  test('A9 two session headers count as none', async () => {
    const header = `X-ss-id: ${ann.SessionId}\r\n`
    const got = await raw(
      site.port,
      `GET /auth HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${header}${header}\r\n`,
    )
    expect(got.text).toMatch(/^HTTP\/1\.1 401 /)
  })

  test('A9 cookies in two headers form one list', async () => {
    const lines = `Cookie: a=b\r\nCookie: ss-id=${ann.SessionId}\r\n`
    const got = await raw(site.port, `GET /auth HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${lines}\r\n`)
    expect(got.text).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('T6 changes that a page asks for', () => {
  const own = () => `http://127.0.0.1:${site.port}`
  const change = (headers: Headers): Promise<Got> => site.post('/assignroles', { UserName: 'Ned' }, headers)
  const cases: readonly (readonly [number, string, () => Headers])[] = [
    [200, 'no browser', () => ({})],
    [200, 'a page of this server', () => ({ 'sec-fetch-site': 'same-origin' })],
    [
      200,
      'the same, where a proxy changed the Host',
      () => ({ 'sec-fetch-site': 'same-origin', origin: 'https://a.b' }),
    ],
    [200, 'a page of this server, in an old browser', () => ({ origin: own() })],
    [200, 'a listed origin', () => ({ 'sec-fetch-site': 'cross-site', origin: ops })],
    [200, 'a listed origin, in an old browser', () => ({ origin: ops })],
    [403, 'another site', () => ({ 'sec-fetch-site': 'cross-site' })],
    [403, 'another origin of the same site', () => ({ 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' })],
    [403, 'another origin', () => ({ 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' })],
    [403, 'a sandboxed page', () => ({ 'sec-fetch-site': 'cross-site', origin: 'null' })],
    [403, 'two answers', () => ({ 'sec-fetch-site': 'same-origin, cross-site' })],
    [403, 'a POST from nowhere', () => ({ 'sec-fetch-site': 'none' })],
    [403, 'another origin, in an old browser', () => ({ origin: 'https://evil.example' })],
    [403, 'a sandboxed page, in an old browser', () => ({ origin: 'null' })],
    [403, 'this host under another scheme', () => ({ origin: own().replace('http', 'https') })],
    [403, 'this host at another port', () => ({ origin: 'http://127.0.0.1:1' })],
    [403, 'a name that begins like a listed one', () => ({ origin: `${ops}.evil.example` })],
  ]
  test.each(cases)('T6 %i for a role change by cookie of %s', async (status, _, headers) => {
    const got = await change({ cookie: ann.cookie, ...headers() })
    expect(got.status).toBe(status)
    if (status === 403) {
      expect(got.json.ResponseStatus?.ErrorCode).toBe('Forbidden')
      expect(got.json['AllRoles']).toEqual([])
    }
  })

  test.each(cases)('T6 %i for a sign-out by cookie of %s', async (status, _, headers) => {
    const { cookie } = await site.signIn()
    const got = await ask(site.port, '/auth/logout', { method: 'POST', headers: { cookie, ...headers() } })
    expect(got.status).toBe(status)
    expect(await whoIs({ cookie })).toBe(status === 200 ? 401 : 200)
    if (status === 403) expect(got.headers['set-cookie']).toBeUndefined()
  })

  test('T6 a page cannot add a header, so a credential in a header may come from anywhere', async () => {
    const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
    expect((await change({ ...bearer(ann.BearerToken), ...foreign })).status).toBe(200)
    expect((await change({ 'x-ss-id': ann.SessionId, cookie: ann.cookie, ...foreign })).status).toBe(200)
    expect((await change({ cookie: `ss-tok=${ann.BearerToken}`, ...foreign })).status).toBe(403)
  })

  test('T6 GET /auth/logout is a change: a typed address passes, and a link or image of another site does not', async () => {
    const { cookie } = await site.signIn()
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }]) {
      for (const path of ['/auth/logout', '/auth?provider=logout', '/api/Authenticate?provider=logout']) {
        expect((await get(path, { cookie, ...headers })).status).toBe(403)
      }
      expect((await ask(site.port, '/auth', { method: 'DELETE', headers: { cookie, ...headers } })).status).toBe(403)
    }
    expect(await whoIs({ cookie })).toBe(200)
    expect((await get('/auth/logout', { cookie, 'sec-fetch-site': 'none' })).status).toBe(200)
    expect(await whoIs({ cookie })).toBe(401)
  })

  test('T6 beyond loopback GET /auth/logout with a cookie must show that a page of this server asks', async () => {
    const { cookie, SessionId } = await site.signIn()
    const far = { 'x-forwarded-for': '203.0.113.9' }
    const own = `http://127.0.0.1:${site.port}`
    for (const headers of [{}, { referer: 'http://evil.example/' }, { referer: 'http://127.0.0.1:1/' }] as Headers[]) {
      for (const path of ['/auth/logout', '/auth?provider=logout', '/api/Authenticate?provider=logout']) {
        const got = await get(path, { cookie, ...far, ...headers })
        expect([path, got.status, got.headers['set-cookie']]).toEqual([path, 403, undefined])
      }
    }
    expect((await get('/auth/logout', { cookie, referer: 'http://evil.example/' })).status).toBe(403)
    expect(await whoIs({ cookie })).toBe(200)
    expect((await get('/auth/logout', { ...far, 'x-ss-id': SessionId })).status).toBe(200)
    expect(await whoIs({ cookie })).toBe(401)
    const next = await site.signIn()
    expect((await get('/auth/logout', { cookie: next.cookie, ...far, referer: `${own}/page` })).status).toBe(200)
    expect(await whoIs({ cookie: next.cookie })).toBe(401)
  })

  test('T6 a POST that overrides its method with GET does not pass as a typed address', async () => {
    const { cookie } = await site.signIn()
    const headers = { cookie, 'sec-fetch-site': 'none', 'x-http-method-override': 'GET' }
    expect((await site.post('/auth/logout', {}, headers)).status).toBe(403)
    expect(await whoIs({ cookie })).toBe(200)
  })

  test('T6 no page of another site signs a browser in or removes its cookies', async () => {
    const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
    const form = { ...foreign, 'content-type': 'application/x-www-form-urlencoded' }
    const body = `UserName=Ned&Password=${password}`
    const got = await ask(site.port, '/auth/credentials', { method: 'POST', headers: form, body })
    expect([got.status, got.headers['set-cookie']]).toEqual([403, undefined])
    const out = await ask(site.port, '/auth/logout', { method: 'POST', headers: form })
    expect([out.status, out.headers['set-cookie']]).toEqual([403, undefined])
  })

  test('T6 reading is not a change', async () => {
    const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
    const got = await get('/auth', { cookie: ann.cookie, ...foreign })
    // Without CORS headers no page can read it.
    expect([got.status, got.headers['access-control-allow-origin']]).toEqual([200, undefined])
  })

  test('T6 over TLS only the https origin belongs to this server', async () => {
    const service = { assignRoles: async () => ({ AllRoles: [], AllPermissions: [] }) }
    await withSite({ service, tls: { cert, key } }, async ({ port }) => {
      const statusFor = (origin: string): Promise<number | undefined> =>
        new Promise((resolve, reject) => {
          const headers = { cookie: 'ss-id=x', origin }
          httpsRequest({ port, path: '/assignroles', method: 'POST', ca: cert, host: 'localhost', headers }, (got) => {
            got.resume()
            resolve(got.statusCode)
          })
            .on('error', reject)
            .end()
        })
      expect(await statusFor(`https://localhost:${port}`)).toBe(200)
      expect(await statusFor(`http://localhost:${port}`)).toBe(403)
    })
  })

  test('R5 a listed origin may send credentials', async () => {
    const got = await ask(site.port, '/assignroles', { method: 'OPTIONS', headers: { origin: ops } })
    expect(got.headers['access-control-allow-headers']).toMatch(/Authorization.*X-ss-id, X-ss-opt, X-ss-pid/)
  })
})

describe('callers from other machines', () => {
  const from = (address: string): Headers => ({ 'x-forwarded-for': address })
  const health = '/healthcheck?ExecutionMode=Basic&ServerType=Mongo&IncludeServerStateInformation=true'
  const secret = 'Mongo is not configured here'

  test('S11 beyond loopback only callers with a role or the permission see the whole health answer', async () => {
    const stranger = await get(health, from('203.0.113.9'))
    expect(stranger.json['ServerState']).toBeUndefined()
    expect(stranger.text).not.toContain(secret)
    const { secret: apiKey } = await site.admin.keys.create({ name: 'prometheus', userName: 'Ann' }, by)
    for (const headers of [
      bearer(ann.BearerToken),
      bearer(apiKey),
      { 'x-ss-id': ann.SessionId },
      { cookie: remembered.cookie },
      { cookie: `ss-tok=${ann.BearerToken}` },
    ] as Headers[]) {
      const got = await get(health, { ...from('203.0.113.9'), ...headers })
      expect(got.json['ServerState']).toBeDefined()
      expect(got.text).toContain(secret)
    }
  })

  test('S11 neither an invalid credential nor the cookie of a script that any page may load shows it', async () => {
    for (const [path, headers] of [
      [health, bearer('garbage')],
      [health, bearer(ann.RefreshToken)],
      [health, { cookie: 'ss-id=garbage' }],
      [`${health}&callback=cb`, { cookie: ann.cookie, 'sec-fetch-site': 'same-origin' }],
    ] as const) {
      const got = await get(path, { ...from('203.0.113.9'), ...headers })
      expect(got.status).toBe(503)
      expect(got.text).not.toContain(secret)
      expect(got.text).not.toContain('ServerState')
    }
  })

  test('P5 thirty failures of one address are a 429 with Retry-After for that address alone', async () => {
    const invalid = (address: string, i: number) =>
      site.post('/auth/credentials', { UserName: `nobody-${i}`, Password: 'wrong' }, from(address))
    for (let i = 0; i < 30; i += 1) expect((await invalid('203.0.113.30', i)).status).toBe(401)
    const got = await invalid('203.0.113.30', 30)
    expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([429, 'TooManyRequests'])
    expect(Number(got.headers['retry-after'])).toBeGreaterThan(0)
    expect((await invalid('203.0.113.31', 31)).status).toBe(401)
    // What is signed in already keeps working there.
    expect(await whoIs({ ...bearer(ann.BearerToken), ...from('203.0.113.30') })).toBe(200)
  })
})

test('S7 the log of these requests holds no password, no token and no part of a credential', async () => {
  const secrets = [password, ...[ann, remembered].flatMap((one) => [one.SessionId, one.BearerToken, one.RefreshToken])]
  for (const secret of secrets) {
    await get(`/auth?ss-id=${secret}&x=${secret}&format=${secret}&ServerType=${secret}`)
    await get('/auth', { authorization: `Bearer ${secret}`, cookie: `ss-id=${secret}` })
    await site.post(`/auth/credentials?Password=${secret}`, {})
    await site.post('/auth/credentials', { UserName: secret, Password: secret })
    await site.post('/auth/credentials', `{"Password":"${secret}`)
    await site.post('/access-token', { RefreshToken: `${secret}x` })
  }
  const whole = JSON.stringify(site.log)
  expect(site.log.length).toBeGreaterThan(100)
  for (const secret of secrets) {
    expect(whole.includes(secret.slice(0, 16))).toBe(false)
  }
  expect(/svc_(at|rt|ss|key)_/.exec(whole)?.[0]).toBeUndefined()
})

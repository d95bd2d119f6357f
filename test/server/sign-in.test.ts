import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { hashCost } from '../../src/core/accounts/auth/passwords.ts'
import { type Accounts, bearer, password, startAccounts } from './accounts.ts'
import { cert, key } from './certificate.ts'
import { ask, openSite, question, raw, withSite } from './site.ts'

let site: Accounts
beforeAll(async () => {
  site = await startAccounts()
})
afterAll(() => site.close())

const get = (path: string, headers: Record<string, string> = {}) => ask(site.port, path, { headers })
const whoIs = async (headers: Record<string, string>) => (await get('/auth', headers)).status
const notAuthenticated = { ErrorCode: 'Unauthorized', Message: 'Not Authenticated', Errors: [] }

describe('A1 signing in', () => {
  const credentials = { UserName: 'Ann', Password: password }

  test.each([
    ['/auth/credentials', {}],
    ['/auth/CREDENTIALS', {}],
    ['/auth/login', {}],
    ['/auth', { provider: 'credentials' }],
    ['/auth', { provider: 'Login' }],
    ['/auth', {}],
    ['/json/reply/Authenticate', { provider: 'credentials' }],
    ['/api/Authenticate', { provider: 'credentials' }],
  ])('A1 POST %s with %o', async (path, more) => {
    const got = await site.post(path, { ...credentials, ...more })
    expect([got.status, got.json['UserName']]).toEqual([200, 'Ann'])
  })

  test('A1 a request without provider and user name asks who is signed in', async () => {
    expect((await site.post('/auth', {})).json.ResponseStatus).toEqual(notAuthenticated)
    const { BearerToken } = await site.signIn()
    const got = await site.post('/auth', {}, bearer(BearerToken))
    expect([got.status, got.json['UserName'], got.headers['set-cookie']]).toEqual([200, 'Ann', undefined])
  })

  test('A2 the answer holds the details of the session and the tokens, in the order of the interface', async () => {
    const got = await site.post('/auth/credentials', { ...credentials, UserName: 'aNN' })
    expect(Object.keys(got.json)).toEqual([
      'UserId',
      'SessionId',
      'UserName',
      'DisplayName',
      'BearerToken',
      'RefreshToken',
      'Roles',
      'Permissions',
    ])
    expect(got.json).toMatchObject({
      UserId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      UserName: 'aNN',
      DisplayName: 'Ann Example',
      Roles: ['Admin', 'Editor'],
      Permissions: [],
    })
  })

  test('A2 ss-id holds the session until the browser closes', async () => {
    const got = await site.post('/auth/credentials', credentials)
    expect(got.headers['set-cookie']).toEqual([
      `ss-id=${got.json['SessionId']}; Path=/; HttpOnly; SameSite=Lax`,
      'ss-opt=temp; Path=/; HttpOnly; SameSite=Lax',
    ])
  })

  test('A2 with RememberMe, ss-pid holds it for 30 days instead of ss-id', async () => {
    const remembered = { ...credentials, RememberMe: true }
    const got = await site.post('/auth/credentials', remembered, { cookie: 'ss-id=old; ss-opt=temp' })
    expect(got.headers['set-cookie']).toEqual([
      `ss-pid=${got.json['SessionId']}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax`,
      'ss-opt=perm; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax',
      'ss-id=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax',
    ])
  })

  test('A2 no cookie has Expires, and none contains a comma', async () => {
    const body = JSON.stringify({ ...credentials, RememberMe: true })
    const head = `POST /auth/credentials HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    const lines = (await raw(site.port, head + body)).text.match(/^set-cookie: .*$/gim) ?? []
    expect(lines).toHaveLength(2)
    for (const line of lines) expect(line).not.toMatch(/expires|,/i)
  })

  test('A2 over TLS, or behind a trusted proxy that reports TLS, cookies are Secure', async () => {
    const service = { authenticate: async () => ({ SessionId: 'secret-1' }) }
    const secure = ['ss-id=secret-1; Path=/; HttpOnly; SameSite=Lax; Secure']
    await withSite({ service, tls: { cert, key } }, async ({ port }) => {
      const { request } = await import('node:https')
      const cookies = await new Promise((resolve, reject) => {
        request({ port, path: '/auth?UserName=x', method: 'POST', ca: cert, servername: 'localhost' }, (answer) => {
          answer.resume()
          resolve(answer.headers['set-cookie'])
        })
          .on('error', reject)
          .end()
      })
      expect(cookies).toEqual(expect.arrayContaining(secure))
    })
    await withSite({ service, options: { trustProxy: ['127.0.0.1'] } }, async ({ port }) => {
      const proto = { 'x-forwarded-proto': 'https' }
      const got = await ask(port, '/auth?UserName=x', { method: 'POST', headers: proto })
      expect(got.headers['set-cookie']).toEqual(expect.arrayContaining(secure))
    })
    const { port } = await openSite({ service })
    const proto = { 'x-forwarded-proto': 'https' }
    const got = await ask(port, '/auth?UserName=x', { method: 'POST', headers: proto })
    expect(got.headers['set-cookie']?.join()).not.toContain('Secure')
  })

  test('A2 only a sign-in and a sign-out set a cookie', async () => {
    const { cookie, BearerToken } = await site.signIn()
    const input = { cookie, ...bearer(BearerToken) }
    const answers = [
      await get('/healthcheck?ExecutionMode=Basic&ServerType=App', input),
      await get('/auth', input),
      await get('/auth'),
      await get('/', input),
      await site.post('/assignroles', { UserName: 'Ned' }, input),
      await site.post('/auth/credentials', { UserName: 'Ann', Password: 'wrong' }, input),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 200, 200, 401])
    for (const { headers } of answers) expect(headers['set-cookie']).toBeUndefined()
  })

  test('A3 a wrong password and an unknown user are the same 401, byte for byte', async () => {
    const bodies = [
      { UserName: 'Ann', Password: 'wrong-password' },
      { UserName: 'Nobody', Password: 'wrong-password' },
    ]
    const id = { 'x-correlation-id': 'same' }
    const [one, two] = await Promise.all(bodies.map((body) => site.post('/auth/credentials', body, id)))
    expect(one?.status).toBe(401)
    expect(one?.text).toBe(
      '{"ResponseStatus":{"ErrorCode":"Unauthorized","Message":"Invalid Username or Password","Errors":[]}}',
    )
    expect(two?.text).toBe(one?.text)
    expect({ ...two?.headers, date: '' }).toEqual({ ...one?.headers, date: '' })
    expect(one?.headers['www-authenticate']).toBeUndefined()
  })

  test('A4 an empty name and a blank password are named in one 400', async () => {
    const got = await site.post('/auth/credentials', { UserName: '', Password: ' ' })
    expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([400, 'ValidationException'])
    expect(got.json.ResponseStatus?.Errors).toEqual([
      {
        ErrorCode: 'NotEmpty',
        FieldName: 'UserName',
        Message: "'User Name' must not be empty.",
        Meta: { PropertyName: 'User Name' },
      },
      {
        ErrorCode: 'NotEmpty',
        FieldName: 'Password',
        Message: "'Password' must not be empty.",
        Meta: { PropertyName: 'Password' },
      },
    ])
  })

  test('A5 an unknown provider is a 404 with every verb', async () => {
    const status = {
      ErrorCode: 'NotFound',
      Message: "No configuration was added for OAuth provider 'nope'",
      Errors: [],
    }
    for (const got of [await site.post('/auth/nope', credentials), await get('/auth/nope')]) {
      expect([got.status, got.json.ResponseStatus]).toEqual([404, status])
    }
  })

  test('A5 a blank provider is a 400 that names the field, with every verb and in every place', async () => {
    const blanks = [
      await site.post('/auth/%20', credentials),
      await site.post('/auth/%20', {}),
      await site.post('/auth', { provider: ' ', ...credentials }),
      await site.post('/auth', { provider: '\t' }),
      await site.post('/api/Authenticate', { provider: '\u00a0' }),
      await ask(site.port, '/auth/%20%20'),
      await ask(site.port, '/auth?provider=+'),
      await ask(site.port, '/auth/%20', { method: 'DELETE' }),
    ]
    for (const got of blanks) {
      expect([got.status, got.json.ResponseStatus?.Errors[0]?.FieldName]).toEqual([400, 'provider'])
    }
    expect((await site.post('/auth', { provider: '', ...credentials })).status).toBe(200)
  })

  test('A5 GET /auth/credentials is a 405 that lists the allowed verbs', async () => {
    for (const path of ['/auth/credentials', '/auth?provider=credentials', '/api/Authenticate?provider=credentials']) {
      const got = await get(path)
      expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([405, 'NotSupportedException'])
      expect(got.headers.allow).toContain('POST')
    }
  })

  test('A6 GET /auth shows the details and no tokens, and the session only to the caller that presents it', async () => {
    expect((await get('/auth')).json.ResponseStatus).toEqual(notAuthenticated)
    const { UserId, SessionId, BearerToken, cookie } = await site.signIn()
    const facts = { UserId, UserName: 'Ann', DisplayName: 'Ann Example', Roles: ['Admin', 'Editor'], Permissions: [] }
    expect((await get('/auth', bearer(BearerToken))).json).toEqual(facts)
    expect((await get('/auth', { cookie })).json).toEqual({ ...facts, SessionId })
    expect((await get('/auth', { 'x-ss-id': SessionId })).json).toEqual({ ...facts, SessionId })
  })

  test('A8 a sign-in ends the session that came with it, even beside a bearer token', async () => {
    const first = await site.signIn()
    const second = await site.signIn({}, { cookie: first.cookie })
    expect(await whoIs({ cookie: first.cookie })).toBe(401)
    const third = await site.signIn({}, { cookie: second.cookie, ...bearer(second.BearerToken) })
    expect(await whoIs({ cookie: second.cookie })).toBe(401)
    expect(await whoIs({ cookie: third.cookie })).toBe(200)
  })

  test('A8 the server never adopts a session id that the client chose', async () => {
    const chosen = `svc_ss_${'A'.repeat(49)}`
    const { SessionId } = await site.signIn({}, { cookie: `ss-id=${chosen}`, 'x-ss-id': chosen })
    expect(SessionId).not.toBe(chosen)
    expect(await whoIs({ 'x-ss-id': chosen })).toBe(401)
  })

  test('A14 a continue URL stays on this origin, or is a 400', async () => {
    const to = (url: string) => site.post(`/auth/credentials?continue=${encodeURIComponent(url)}`, credentials)
    const own = `http://127.0.0.1:${site.port}`
    expect((await to('/board?x=1')).json['ReferrerUrl']).toBe(`${own}/board?x=1`)
    expect((await to(`${own}/board`)).json['ReferrerUrl']).toBe(`${own}/board`)
    for (const url of ['https://evil.example/', '//evil.example/', '/\\evil.example/', 'javascript:alert(1)']) {
      const got = await to(url)
      expect([got.status, got.json.ResponseStatus?.Message]).toEqual([400, 'External Redirects are not permitted'])
    }
  })

  test('T5 fields that no caller may set have no effect', async () => {
    const { Roles, Permissions, UserId } = await site.signIn({
      UserName: 'Ned',
      Roles: ['Admin'],
      Permissions: ['All'],
      UserId: 'root',
      isAdmin: true,
      Meta: { Roles: 'Admin' },
    })
    expect([Roles, Permissions]).toEqual([[], []])
    expect(UserId).not.toBe('root')
  })
})

describe('A7 signing out', () => {
  const expired = ['ss-id', 'ss-pid', 'ss-opt'].map((name) => `${name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax`)

  test.each([
    ['POST', '/auth/logout'],
    ['GET', '/auth/logout'],
    ['POST', '/auth?provider=logout'],
    ['GET', '/auth?provider=LogOut'],
    ['DELETE', '/auth'],
    ['DELETE', '/auth/credentials'],
    ['DELETE', '/auth/whatever'],
    ['DELETE', '/api/Authenticate'],
  ])('A7 %s %s ends the session, its tokens and its cookies', async (method, path) => {
    const { cookie, BearerToken, RefreshToken } = await site.signIn()
    const got = await ask(site.port, path, { method, headers: { cookie } })
    expect([got.status, got.text, got.headers['set-cookie']]).toEqual([200, '{}', expired])
    expect(await whoIs({ cookie })).toBe(401)
    expect(await whoIs(bearer(BearerToken))).toBe(401)
    expect((await site.post('/access-token', { RefreshToken })).status).toBe(401)
  })

  test('A7 a bearer token signs its session out as well', async () => {
    const { cookie, BearerToken } = await site.signIn()
    expect((await site.post('/auth', { provider: 'logout' }, bearer(BearerToken))).text).toBe('{}')
    expect(await whoIs({ cookie })).toBe(401)
  })

  test('A7 a caller that is not signed in may sign out', async () => {
    const got = await site.post('/auth/logout', {}, { cookie: 'ss-tok=left; ss-id=over' })
    expect([got.status, got.text]).toEqual([200, '{}'])
    expect(got.headers['set-cookie']).toEqual([...expired, 'ss-tok=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'])
  })

  test('A7 a failed sign-in leaves the current session alone', async () => {
    const { cookie } = await site.signIn()
    expect((await site.post('/auth/credentials', { UserName: 'Ann', Password: 'wrong' }, { cookie })).status).toBe(401)
    expect(await whoIs({ cookie })).toBe(200)
  })

  test('R4 HEAD /auth/logout changes nothing', async () => {
    const { cookie } = await site.signIn()
    const got = await ask(site.port, '/auth/logout', { method: 'HEAD', headers: { cookie } })
    expect([got.status, got.headers['set-cookie']]).toEqual([200, undefined])
    expect(await whoIs({ cookie })).toBe(200)
  })
})

describe('A11 refresh', () => {
  test.each(['/access-token', '/json/reply/GetAccessToken', '/api/GetAccessToken'])('A11 POST %s', async (path) => {
    const { RefreshToken, BearerToken } = await site.signIn()
    // Existing clients still carry the old token.
    const got = await site.post(path, { refreshToken: RefreshToken, useTokenCookie: false }, bearer(BearerToken))
    expect([got.status, Object.keys(got.json)]).toEqual([200, ['accessToken']])
    expect(await whoIs(bearer(String(got.json['accessToken'])))).toBe(200)
    expect((await site.post(path, { RefreshToken })).status).toBe(200)
  })

  test('A11 a rotating family returns its next refresh token', async () => {
    const { RefreshToken } = await site.signIn({ Meta: { refresh: 'rotate' } })
    const got = await site.post('/access-token', { RefreshToken })
    expect(Object.keys(got.json)).toEqual(['accessToken', 'refreshToken'])
    expect((await site.post('/access-token', { RefreshToken: got.json['refreshToken'] })).status).toBe(200)
  })

  test('A11 a missing or malformed token is a 400 that names it, and a cookie does not count', async () => {
    const { RefreshToken, BearerToken } = await site.signIn()
    for (const [body, headers] of [
      [{}, {}],
      [{}, { cookie: `ss-reftok=${RefreshToken}` }],
      [{ RefreshToken: '' }, {}],
      [{ RefreshToken: 'garbage' }, {}],
      [{ RefreshToken: BearerToken }, {}],
    ] as const) {
      const got = await site.post('/access-token', body, headers)
      expect(got.text).not.toContain('garbage')
      expect([got.status, got.json.ResponseStatus?.Errors[0]?.FieldName]).toEqual([400, 'RefreshToken'])
    }
  })

  test.each(['/access-token', '/json/reply/GetAccessToken', '/api/GetAccessToken'])(
    'A11 POST %s ignores an access token that is no longer valid',
    async (path) => {
      const { RefreshToken, BearerToken } = await site.signIn()
      for (const old of ['garbage', `${BearerToken}x`, BearerToken]) {
        const got = await site.post(path, { refreshToken: RefreshToken, useTokenCookie: false }, bearer(old))
        expect([got.status, typeof got.json['accessToken']]).toEqual([200, 'string'])
      }
    },
  )

  test('T5 a refresh token signs nobody in, neither as a bearer token nor as a session', async () => {
    const { RefreshToken, SessionId } = await site.signIn()
    for (const headers of [bearer(RefreshToken), { 'x-ss-id': RefreshToken }, bearer(SessionId)]) {
      expect(await whoIs(headers)).toBe(401)
    }
  })
})

describe('a busy server', () => {
  test('P3 more concurrent sign-ins than can be checked are a 503 with Retry-After, and health still answers', async () => {
    // With the cheap hash of the other tests, an idle machine checks passwords faster than requests arrive.
    const slow = await startAccounts({}, undefined, undefined, {}, hashCost)
    onTestFinished(() => slow.close())
    const many = Array.from({ length: 40 }, () =>
      slow.post('/auth/credentials', { UserName: 'Ned', Password: password }),
    )
    expect((await ask(slow.port, '/livez')).status).toBe(200)
    const answers = await Promise.all(many)
    const busy = answers.filter(({ status }) => status === 503)
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]))
    for (const got of busy) {
      expect(Number(got.headers['retry-after'])).toBeGreaterThan(0)
      expect(got.json.ResponseStatus?.ErrorCode).toBe('ServiceUnavailable')
    }
  })

  test('a health check needs no sign-in, and an invalid credential does not prevent it', async () => {
    const headers = { ...bearer('garbage'), cookie: 'ss-id=garbage' }
    expect((await get(question.replace('Sql', 'App'), headers)).status).toBe(200)
  })
})

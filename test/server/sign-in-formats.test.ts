import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Accounts, password, startAccounts } from './accounts.ts'
import { ask } from './site.ts'

let site: Accounts
beforeAll(async () => {
  site = await startAccounts()
})
afterAll(() => site.close())

const get = (path: string, headers: Record<string, string> = {}) => ask(site.port, path, { headers })
const whoIs = async (headers: Record<string, string>) => (await get('/auth', headers)).status

describe('bodies', () => {
  const send = (path: string, type: string | undefined, body: string | Buffer) =>
    ask(site.port, path, { method: 'POST', headers: type === undefined ? {} : { 'content-type': type }, body })
  const multipart = [
    '--b',
    'Content-Disposition: form-data; name="UserName"',
    '',
    'Ann',
    '--b',
    'Content-Disposition: form-data; name="Password"',
    '',
    password,
    '--b--',
    '',
  ].join('\r\n')
  const json = JSON.stringify({ UserName: 'Ann', Password: password })

  test.each([
    ['/auth/credentials', 'application/json', json],
    ['/auth/credentials', 'application/json; charset=utf-8', json.replace('UserName', 'username')],
    ['/auth/credentials', 'text/csv', `UserName,Password\r\nAnn,${password}\r\n`],
    ['/auth/credentials', 'application/x-www-form-urlencoded', `UserName=Ann&Password=${password}&RememberMe=on`],
    ['/auth/credentials', 'multipart/form-data; boundary=b', multipart],
    ['/auth?provider=credentials', 'application/x-www-form-urlencoded', `UserName=Ann&Password=${password}`],
    ['/api/Authenticate', 'text/plain', json],
    ['/json/reply/Authenticate', undefined, json],
  ])('N7 a sign-in at %s as %s', async (path, type, body) => {
    const got = await send(path, type, body)
    expect([got.status, got.json['UserName']]).toEqual([200, 'Ann'])
  })

  test('N7 a form overrides the query, the query the path, and the path the body', async () => {
    const form = await send(
      '/auth?provider=nope',
      'application/x-www-form-urlencoded',
      `provider=credentials&UserName=Ann&Password=${password}`,
    )
    expect(form.json['UserName']).toBe('Ann')
    const query = await send('/auth/nope?provider=credentials&UserName=Ann', 'application/json', json)
    expect(query.json['UserName']).toBe('Ann')
    const path = await send('/auth/credentials', 'application/json', json.replace('{', '{"provider":"nope",'))
    expect(path.json['UserName']).toBe('Ann')
  })

  test.each(['Password', 'passWORD', 'AccessToken', 'AccessTokenSecret', 'RefreshToken', 'oauth_verifier', 'response'])(
    'N7 %s is refused in the query of a sign-in',
    async (name) => {
      const got = await ask(site.port, `/auth/credentials?UserName=Ann&${name}=${password}`, { method: 'POST' })
      expect([got.status, got.json.ResponseStatus?.Errors[0]?.FieldName]).toEqual([400, name])
      expect(got.text).not.toContain(password)
      expect((await get(`/auth?${name}=${password}&callback=cb`)).status).toBe(400)
    },
  )

  test('N7 the refresh token is refused in the query of a refresh', async () => {
    const { RefreshToken } = await site.signIn()
    const got = await ask(site.port, `/access-token?RefreshToken=${RefreshToken}`, { method: 'POST' })
    expect([got.status, got.json.ResponseStatus?.Errors[0]?.FieldName]).toEqual([400, 'RefreshToken'])
    expect(got.text).not.toContain(RefreshToken)
  })

  test('N8 a text/plain body is ignored at /auth, and no body is an empty request', async () => {
    expect((await send('/auth', 'text/plain', json)).status).toBe(401)
    const headers = { 'content-type': 'application/json', 'content-length': '0' }
    expect((await ask(site.port, '/auth/logout', { method: 'POST', headers })).status).toBe(200)
    expect((await ask(site.port, '/auth', { method: 'DELETE', headers })).status).toBe(200)
  })

  test('E2 a body that does not parse is a 400 that repeats none of it', async () => {
    const got = await send('/auth/credentials', 'application/json', `{"Password":"${password}",`)
    expect([got.status, got.json.ResponseStatus?.ErrorCode]).toEqual([400, 'SerializationException'])
    expect(got.text).not.toContain(password)
  })

  test('N5 a wrong type in JSON is a 400 naming the field, and not its value', async () => {
    const got = await send('/auth/credentials', 'application/json', `{"UserName":"Ann","Password":["${password}"]}`)
    expect([got.status, got.json.ResponseStatus?.Errors[0]?.FieldName]).toEqual([400, 'Password'])
    expect(got.text).not.toContain(password)
  })

  test('F3 a sign-in and a refresh answer in CSV', async () => {
    const got = await send('/auth/credentials.csv', 'text/csv', `UserName,Password\r\nAnn,${password}\r\n`)
    expect(got.headers['content-disposition']).toBe('attachment;filename="Authenticate.csv"')
    const [header = '', row = ''] = got.text.split('\r\n')
    expect(header).toMatch(/^UserId,SessionId,UserName,/)
    const refreshToken = /svc_rt_[\w-]+/.exec(row)?.[0] ?? ''
    const next = await send('/access-token.csv', 'text/csv', `RefreshToken\r\n${refreshToken}\r\n`)
    expect([next.status, next.text]).toEqual([200, expect.stringMatching(/^accessToken,.*\r\nsvc_at_/)])
    expect(got.headers['set-cookie']?.[0]).toMatch(/^ss-id=svc_ss_/)
  })

  test('F4 no cache keeps anything under /auth', async () => {
    for (const [method, path] of [
      ['GET', '/auth'],
      ['POST', '/auth/credentials'],
      ['DELETE', '/auth'],
      ['OPTIONS', '/auth/credentials'],
      ['PATCH', '/auth'],
      ['POST', '/access-token'],
    ] as const) {
      expect((await ask(site.port, path, { method })).headers['cache-control']).toBe('no-store')
    }
  })
})

describe('F2 JSONP', () => {
  test('F2 a cookie never signs a script in', async () => {
    const { cookie } = await site.signIn()
    const got = await get('/auth?callback=cb', { cookie })
    expect([got.status, got.text]).toEqual([401, expect.stringMatching(/^cb\(\{"ResponseStatus":/)])
    expect((await get('/auth?callback=cb', { cookie: cookie.replace('ss-id=', 'ss-tok=') })).status).toBe(401)
  })

  test('F2 a script gets no token and no cookie, whatever it presents', async () => {
    const { SessionId, cookie } = await site.signIn()
    const got = await get('/auth?callback=cb', { 'x-ss-id': SessionId })
    expect(got.status).toBe(200)
    expect(got.text).toMatch(/^cb\(\{"UserId":.*"UserName":"Ann"/)
    expect(got.text).not.toContain(SessionId)
    const out = await get('/auth/logout?callback=cb', { cookie })
    expect([out.text, out.headers['set-cookie']]).toEqual(['cb({})', undefined])
    expect(await whoIs({ cookie })).toBe(200)
  })

  test('F2 a POST that overrides its method with GET is wrapped, and signs nobody in', async () => {
    const override = { 'x-http-method-override': 'GET' }
    const body = { UserName: 'Ann', Password: password }
    const got = await site.post('/auth?callback=cb', body, override)
    expect([got.status, got.text]).toEqual([401, expect.stringMatching(/^cb\(/)])
    expect(got.text).not.toContain('svc_')
  })
})

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Accounts, by, password, startAccounts } from './accounts.ts'
import { ask } from './site.ts'

const basic = (userName: string, word: string) => ({
  authorization: `Basic ${Buffer.from(`${userName}:${word}`, 'utf8').toString('base64')}`,
})
const change = { UserName: 'Ned', Roles: ['Ops'] }

describe('HTTP Basic', () => {
  let on: Accounts
  let off: Accounts
  beforeAll(async () => {
    on = await startAccounts({ basic: true, trustProxy: ['127.0.0.1'] })
    off = await startAccounts()
  })
  afterAll(() => Promise.all([on.close(), off.close()]))

  test('A9 HTTP Basic is off unless the configuration turns it on', async () => {
    expect((await off.post('/assignroles', change, basic('Ann', password))).status).toBe(401)
    expect((await ask(off.port, '/auth', { headers: basic('Ann', password) })).status).toBe(401)
  })

  test('A9 when it is on, it signs the caller in for one request and creates no session', async () => {
    const got = await on.post('/assignroles', change, basic('Ann', password))
    expect(got).toMatchObject({ status: 200, json: { AllRoles: ['Ops'] } })
    expect(got.headers['set-cookie']).toBeUndefined()
    const who = await ask(on.port, '/auth', { headers: basic('ann', password) })
    expect(who).toMatchObject({ status: 200, json: { UserName: 'Ann', Roles: ['Admin', 'Editor'] } })
    expect(who.json).not.toHaveProperty('SessionId')
    const audit = await on.admin.audit.list({ limit: 10 })
    expect(audit[0]).toMatchObject({ event: 'roles.changed', who: 'Ann', target: 'Ned' })
    expect(audit.map(({ event }) => event)).not.toContain('signin.ok')
  })

  test.each([
    ['a wrong password', basic('Ann', 'wrong')],
    ['a user who is not there', basic('Nobody', password)],
    ['an empty password', basic('Ann', '')],
    ['no colon', { authorization: `Basic ${Buffer.from('Ann').toString('base64')}` }],
    ['no base64', { authorization: 'Basic %%%' }],
    ['no UTF-8', { authorization: `Basic ${Buffer.from([0x41, 0xff, 0x3a, 0x42]).toString('base64')}` }],
  ])('A10 %s gets the same answer as an anonymous caller', async (_, headers) => {
    const got = await on.post('/assignroles', change, headers)
    expect(got.status).toBe(401)
    expect(got.json.ResponseStatus).toMatchObject({ ErrorCode: 'Unauthorized', Message: 'Not Authenticated' })
  })

  describe.each([
    ['/healthcheck', '/healthcheck?ServerType=Mongo&ExecutionMode=Basic', 503],
    ['/metrics', '/metrics', 200],
  ])('on %s', (_, path, status) => {
    const from = { 'x-forwarded-for': '192.0.2.77' }
    const get = (headers: object) => ask(on.port, path, { headers: { ...from, ...headers } })

    test('H7 a wrong password by HTTP Basic is a 401 with a challenge, none for scripts, and counts and is audited', async () => {
      const events = async () =>
        (await on.admin.audit.list({ limit: 100 })).filter((row) => row.event === 'signin.failed')
      const before = (await events()).length
      const got = await get(basic('Ned', 'wrong'))
      expect([got.status, got.headers['www-authenticate']]).toEqual([401, 'Basic realm="svc", charset="UTF-8"'])
      const script = await get({
        ...basic('Nobody', password),
        'sec-fetch-mode': 'cors',
        'sec-fetch-site': 'same-origin',
      })
      expect([script.status, script.headers['www-authenticate']]).toEqual([401, undefined])
      expect((await events()).length).toBe(before + 2)
      expect((await events())[0]).toMatchObject({ address: '192.0.2.77' })
    })

    test('H7 the right password, an unknown token, key or session, and no credential at all get the answer', async () => {
      for (const headers of [
        basic('Ned', password),
        { authorization: 'Bearer nonsense' },
        { authorization: `Bearer svc_key_${'a'.repeat(43)}` },
        { cookie: 'ss-id=nonsense' },
        {},
      ]) {
        expect((await get(headers)).status).toBe(status)
      }
    })

    test('H7 a password is not looked at where HTTP Basic is off', async () => {
      expect((await ask(off.port, path, { headers: basic('Ned', 'wrong') })).status).toBe(status)
    })
  })

  test('A9 a client that waits for a challenge gets one, and a sign-in does not', async () => {
    const request = await on.post('/assignroles', change)
    expect(request.headers['www-authenticate']).toBe('Basic realm="svc", charset="UTF-8"')
    expect((await off.post('/assignroles', change)).headers['www-authenticate']).toBeUndefined()
    const refusal = await on.post('/auth/credentials', { UserName: 'Ann', Password: 'wrong' })
    expect(refusal.status).toBe(401)
    expect(refusal.headers['www-authenticate']).toBeUndefined()
  })

  test('A9 POST /auth/basic signs in with HTTP Basic or a body, and creates a session', async () => {
    const body = { UserName: 'Ann', Password: password }
    for (const [path, dto, headers] of [
      ['/auth/basic', {}, basic('Ann', password)],
      ['/auth/Basic', body, {}],
      ['/auth', { provider: 'basic' }, basic('Ann', password)],
      ['/api/Authenticate', { provider: 'basic', ...body }, {}],
    ] as const) {
      const got = await on.post(path, dto, headers as Record<string, string>)
      expect([path, got.status, got.json['UserName']]).toEqual([path, 200, 'Ann'])
      expect(got.headers['set-cookie']?.join()).toContain('ss-id=')
    }
  })

  test('A9 POST /auth/basic refuses a wrong password without a challenge, and never mixes two sources', async () => {
    const refusal = await on.post('/auth/basic', {}, basic('Ann', 'wrong'))
    expect([refusal.status, refusal.headers['www-authenticate']]).toEqual([401, undefined])
    expect(refusal.json.ResponseStatus?.Message).toBe('Invalid Username or Password')
    expect((await on.post('/auth/basic', { UserName: 'Ann' }, basic('Ned', password))).status).toBe(400)
    expect((await on.post('/auth/basic', {})).status).toBe(400)
    expect(
      (await on.post('/auth/basic', {}, { ...basic('Ann', password), origin: 'http://evil.example' })).status,
    ).toBe(403)
  })

  test('A5 GET /auth/basic is a 405, and where HTTP Basic is off, basic is an unknown provider', async () => {
    expect((await ask(on.port, '/auth/basic', { headers: basic('Ann', password) })).status).toBe(405)
    const got = await off.post('/auth/basic', {}, basic('Ann', password))
    expect([got.status, got.json.ResponseStatus?.Message]).toEqual([
      404,
      "No configuration was added for OAuth provider 'basic'",
    ])
  })

  test.each([
    ['with an Origin', { origin: 'http://127.0.0.1' }],
    ['with X-Requested-With', { 'x-requested-with': 'XMLHttpRequest' }],
    ['in the mode cors', { 'sec-fetch-mode': 'cors' }],
    ['in the mode same-origin', { 'sec-fetch-mode': 'same-origin' }],
    ['of an image', { 'sec-fetch-mode': 'no-cors' }],
  ])('A9 a request %s gets no challenge, with which the browser would ask for a password', async (_, headers) => {
    const got = await on.post('/assignroles', change, headers)
    expect([got.status, got.headers['www-authenticate']]).toEqual([401, undefined])
    const navigation = await on.post('/assignroles', change, { 'sec-fetch-mode': 'navigate' })
    expect(navigation.headers['www-authenticate']).toMatch(/^Basic /)
  })

  test('O1 a user without Admin is refused because a role is missing', async () => {
    expect((await on.post('/assignroles', change, basic('Ned', password))).status).toBe(403)
  })

  test('P5 wrong passwords lock the name for that address, as they do at a sign-in', async () => {
    await on.admin.users.add({ userName: 'Zoe', password, roles: ['Admin'] }, by)
    const from = { 'x-forwarded-for': '203.0.113.9' }
    for (let i = 0; i < 10; i += 1) await on.post('/assignroles', change, { ...basic('Zoe', 'wrong'), ...from })
    expect((await on.post('/assignroles', change, { ...basic('Zoe', password), ...from })).status).toBe(401)
    expect((await on.post('/assignroles', change, basic('Zoe', password))).status).toBe(200)
    const audit = await on.admin.audit.list({ limit: 20 })
    expect(audit.some(({ event, target }) => event === 'signin.locked' && target === 'Zoe')).toBe(true)
    expect(JSON.stringify(on.log)).not.toContain(password)
  })

  test('T6 a page of another site cannot make a browser use its stored credentials', async () => {
    const foreign = { ...basic('Ann', password), origin: 'https://evil.example.com' }
    expect((await on.post('/assignroles', change, foreign)).status).toBe(403)
  })

  test('T2 a revocation takes effect on the next request', async () => {
    await on.admin.users.add({ userName: 'Tom', password, roles: ['Admin'] }, by)
    expect((await on.post('/assignroles', change, basic('Tom', password))).status).toBe(200)
    await on.post('/unassignroles', { UserName: 'Tom', Roles: ['Admin'] }, basic('Ann', password))
    expect((await on.post('/assignroles', change, basic('Tom', password))).status).toBe(403)
  })
})

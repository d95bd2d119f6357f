import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Accounts, by, password, startAccounts } from './accounts.ts'
import { challengesOf, type DigestParts, digestBody, digestHeader, freshNonce, responseOf } from './digest-client.ts'
import { ask } from './site.ts'

const change = { UserName: 'Ned', Roles: ['Ops'] }
const on = { digest: true, digestMd5: true }

describe('HTTP Digest', () => {
  let site: Accounts
  beforeAll(async () => {
    site = await startAccounts({ trustProxy: ['127.0.0.1'] }, '127.0.0.1', on)
    await site.admin.users.passwd('Ann', password, by, { DigestForAdmin: true })
    await site.admin.users.add({ userName: 'Dora', email: 'dora@example.com', password, digest: true }, by)
    await site.admin.users.add({ userName: 'Jäsøn Ödön', password, digest: true }, by)
  })
  afterAll(() => site.close())

  const parts = async (more: Partial<DigestParts> = {}): Promise<DigestParts> => ({
    userName: 'Dora',
    password,
    nonce: await freshNonce(site.port),
    uri: '/auth/digest',
    ...more,
  })
  const byHeader = (path: string, headers: Record<string, string>, method = 'GET') =>
    ask(site.port, path, { method, headers })
  const signIn = (body: object, headers: Record<string, string> = {}) => site.post('/auth/digest', body, headers)
  const refused = {
    status: 401,
    json: { ResponseStatus: { ErrorCode: 'Unauthorized', Message: 'Invalid Username or Password' } },
  }

  test('A12 POST /auth/digest without the challenge fields is a 401 with a challenge for each algorithm', async () => {
    const got = await signIn({})
    expect(got).toMatchObject(refused)
    const [first, second, ...more] = challengesOf(got)
    expect(more).toEqual([])
    expect(first).toEqual({
      realm: 'svc',
      qop: 'auth',
      algorithm: 'SHA-256',
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      opaque: expect.stringMatching(/^[\w-]{22}$/),
      charset: 'UTF-8',
    })
    expect(second).toEqual({ ...first, algorithm: 'MD5' })
  })

  test.each(['SHA-256', 'MD5'])('A12 POST /auth/digest signs in with the challenge fields (%s)', async (algorithm) => {
    const got = await signIn(digestBody(await parts({ algorithm })))
    expect(got).toMatchObject({ status: 200, json: { UserName: 'Dora', Roles: [] } })
    expect(got.headers['set-cookie']?.join()).toContain('ss-id=')
    const bearer = { authorization: `Bearer ${got.json['BearerToken']}` }
    const sessions = await byHeader('/sessions', bearer)
    expect(sessions.json['Sessions']).toContainEqual(expect.objectContaining({ Provider: 'digest', Current: true }))
    const [entry] = await site.admin.audit.list({ limit: 1 })
    expect(entry).toMatchObject({ event: 'signin.ok', who: 'Dora', after: '{"provider":"digest"}' })
  })

  test.each(['SHA-256', 'MD5'])('A12 the header on POST /auth/digest begins a session (%s)', async (algorithm) => {
    const got = await signIn({}, { authorization: digestHeader(await parts({ algorithm })) })
    expect(got).toMatchObject({ status: 200, json: { UserName: 'Dora' } })
    expect(got.json).toHaveProperty('SessionId')
  })

  test('A12 the header on any other request is valid for that request and begins no session', async () => {
    const own = await parts({ userName: 'Ann', uri: '/assignroles?x=1' })
    const got = await site.post('/assignroles?x=1', change, { authorization: digestHeader(own) })
    expect(got).toMatchObject({ status: 200, json: { AllRoles: ['Ops'] } })
    expect(got.headers['set-cookie']).toBeUndefined()
    expect((await site.admin.audit.list({ limit: 1 }))[0]).toMatchObject({ event: 'roles.changed', who: 'Ann' })
    const challenge = await parts({ method: 'GET', uri: '/auth' })
    const who = await byHeader('/auth', { authorization: digestHeader(challenge) })
    expect(who).toMatchObject({ status: 200, json: { UserName: 'Dora' } })
    expect(who.json).not.toHaveProperty('SessionId')
  })

  test('H7 a wrong digest on /healthcheck is a 401, with a challenge except for scripts, and a right one gets the answer', async () => {
    const uri = '/healthcheck?ServerType=Mongo&ExecutionMode=Basic'
    const right = async (more = {}) => ({ authorization: digestHeader(await parts({ method: 'GET', uri, ...more })) })
    expect((await byHeader(uri, await right())).status).toBe(503)
    const refusal = await byHeader(uri, await right({ password: 'wrong' }))
    expect([refusal.status, challengesOf(refusal).length]).toEqual([401, 2])
    expect((await site.admin.audit.list({ limit: 1 }))[0]).toMatchObject({ event: 'signin.failed' })
    const script = await byHeader(uri, { ...(await right({ password: 'wrong' })), 'x-requested-with': 'x' })
    expect([script.status, script.headers['www-authenticate']]).toEqual([401, undefined])
    const { authorization } = await right()
    expect((await byHeader(uri, { authorization })).status).toBe(503)
    const replayed = await byHeader(uri, { authorization })
    expect([replayed.status, challengesOf(replayed)[0]?.['stale']]).toEqual([401, 'true'])
  })

  test('A12 one digest authorizes every part of a batch', async () => {
    const uri = '/json/reply/AssignRoles[]'
    const own = await parts({ userName: 'Ann', uri })
    const got = await site.post(uri, [change, { UserName: 'Ned', Roles: ['Dev'] }], {
      authorization: digestHeader(own),
    })
    expect([got.status, got.headers['x-autobatch-completed']]).toEqual([200, '2'])
  })

  test('A12 refused requests carry the challenge, sign-ins by password and scripts of a browser get none', async () => {
    expect(challengesOf(await site.post('/assignroles', change))).toHaveLength(2)
    expect(challengesOf(await byHeader('/auth', {}))).toHaveLength(2)
    const refusal = await site.post('/auth/credentials', { UserName: 'Dora', Password: 'wrong' })
    expect([refusal.status, refusal.headers['www-authenticate']]).toEqual([401, undefined])
    for (const script of [{ 'sec-fetch-mode': 'cors' }, { 'x-requested-with': 'XMLHttpRequest' }]) {
      expect((await site.post('/assignroles', change, script)).headers['www-authenticate']).toBeUndefined()
      expect((await signIn({}, script)).headers['www-authenticate']).toBeUndefined()
    }
  })

  test('A12 each nonce and nc is accepted once, and nc must rise', async () => {
    const own = await parts()
    const attempt = async (nc: string) => {
      const got = await signIn(digestBody({ ...own, nc }))
      return [got.status, challengesOf(got)[0]?.['stale']]
    }
    expect(await attempt('00000002')).toEqual([200, undefined])
    expect(await attempt('00000002')).toEqual([401, 'true'])
    expect(await attempt('00000001')).toEqual([401, 'true'])
    expect(await attempt('00000003')).toEqual([200, undefined])
    expect(await attempt('ffffffff')).toEqual([200, undefined])
    expect(await attempt('00000004')).toEqual([401, 'true'])
    expect(await attempt('fffffffff')).toEqual([401, undefined])
  })

  test('A12 of many requests with the same nonce and nc at once, one is accepted', async () => {
    const body = digestBody(await parts())
    const got = await Promise.all(Array.from({ length: 20 }, () => signIn(body)))
    expect(got.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test('A12 a replay is not counted as a failure, and a used nonce is stale only for whoever knows the secret', async () => {
    const own = await parts()
    const from = { 'x-forwarded-for': '203.0.113.20' }
    expect((await signIn(digestBody(own), from)).status).toBe(200)
    for (let i = 0; i < 12; i += 1) expect((await signIn(digestBody(own), from)).status).toBe(401)
    expect((await signIn(digestBody({ ...own, nc: '00000002' }), from)).status).toBe(200)
    const refusal = await signIn(digestBody({ ...own, password: 'wrong' }), from)
    expect([refusal.status, challengesOf(refusal)[0]?.['stale']]).toEqual([401, undefined])
  })

  const header = async (more: Partial<DigestParts>, over: Record<string, string | undefined> = {}) =>
    await signIn({}, { authorization: digestHeader(await parts(more), over) })

  test.each<[string, Partial<DigestParts>, Record<string, string | undefined>]>([
    ['a wrong password', { password: 'wrong' }, {}],
    ['a user who is not there', { userName: 'Nobody' }, {}],
    ['a user without a digest secret', { userName: 'Ned' }, {}],
    ['the e-mail address instead of the name', { userName: 'dora@example.com' }, {}],
    ['the name in another letter case', { userName: 'dora' }, {}],
    ['another realm', { realm: 'other' }, {}],
    ['a nonce of another server', { nonce: Buffer.alloc(32, 7).toString('base64url') }, {}],
    ['a nonce of its own', { nonce: 'abc' }, {}],
    ['MD5-sess', { algorithm: 'MD5-sess' }, {}],
    ['SHA-256-sess', { algorithm: 'SHA-256-sess' }, {}],
    ['an unknown algorithm', {}, { algorithm: 'SHA-512-256' }],
    ['an algorithm that is a member of every object', {}, { algorithm: 'constructor' }],
    ['qop=auth-int', { qop: 'auth-int' }, {}],
    ['no qop, as before RFC 2617', {}, { qop: undefined }],
    ['userhash=true', {}, { userhash: 'true' }],
    ['another opaque', {}, { opaque: '"x"' }],
    ['a user name twice', {}, { 'username*': "UTF-8''Dora" }],
    ['an upper-case response', {}, { response: `"${'A'.repeat(64)}"` }],
    ['a response of the other length', {}, { response: `"${'a'.repeat(32)}"` }],
    ['nc of nine digits', { nc: '000000001' }, {}],
    ['another method', { method: 'GET' }, {}],
  ])('A12 %s is refused with the same answer', async (_, more, over) => {
    const got = await header(more, over)
    expect(got).toMatchObject(refused)
    expect(challengesOf(got).map(({ stale }) => stale)).toEqual([undefined, undefined])
  })

  test.each(['/auth', '/auth/digest?', '/auth/DIGEST', 'http://127.0.0.1/auth/digest', '*'])(
    'A12 a digest for %s is a 400: the uri must be the target of the request',
    async (uri) => {
      const got = await header({ uri })
      expect([got.status, got.json.ResponseStatus?.Message]).toEqual([
        400,
        'The digest is for another request: uri must be the target of this one',
      ])
      expect((await signIn(digestBody(await parts({ uri })))).status).toBe(400)
    },
  )

  test('A12 a user name outside ASCII is accepted as UTF-8 in quotes and as username*', async () => {
    const own = await parts({ userName: 'Jäsøn Ödön' })
    const bytes = Buffer.from(digestHeader(own), 'utf8').toString('latin1')
    // Without a body: with one, Node would encode the header a second time.
    const withBytes = async (authorization: string) => await byHeader('/auth/digest', { authorization }, 'POST')
    expect(await withBytes(bytes)).toMatchObject({ status: 200, json: { UserName: 'Jäsøn Ödön' } })
    const encoded = digestHeader(
      { ...own, nc: '00000002' },
      { username: undefined, 'username*': `UTF-8''${encodeURIComponent('Jäsøn Ödön')}` },
    )
    expect((await signIn({}, { authorization: encoded })).status).toBe(200)
    const latin = digestHeader({ ...own, nc: '00000003' })
    expect((await withBytes(latin)).status).toBe(401)
  })

  test('A12 a name in the body beside a digest in the header must be the same', async () => {
    const own = await parts()
    expect((await signIn({ UserName: 'Ann' }, { authorization: digestHeader(own) })).status).toBe(401)
    expect((await signIn({ UserName: 'Dora' }, { authorization: digestHeader(own) })).status).toBe(200)
  })

  test('A12 the response is never accepted in a query', async () => {
    const { response } = digestBody(await parts())
    expect((await ask(site.port, `/auth/digest?response=${response}`, { method: 'POST' })).status).toBe(400)
  })

  test('S2 two Authorization headers are a 400', async () => {
    const own = await parts()
    const got = await ask(site.port, '/auth/digest', {
      method: 'POST',
      headers: { authorization: [digestHeader(own), digestHeader({ ...own, nc: '00000002' })] as unknown as string },
    })
    expect(got.status).toBe(400)
  })

  test('T6 a page of another site cannot use a digest that the browser adds', async () => {
    const own = await parts({ userName: 'Ann', uri: '/assignroles' })
    const headers = { authorization: digestHeader(own), origin: 'http://evil.example' }
    expect((await site.post('/assignroles', change, headers)).status).toBe(403)
  })

  test('P5 wrong digests are counted, lock the name for that address, and are audited', async () => {
    const user = { userName: 'Zoe', password, digest: true }
    await site.admin.users.add(user, by)
    const from = { 'x-forwarded-for': '203.0.113.9' }
    const refusal = { userName: 'Zoe', password: 'wrong' }
    for (let i = 0; i < 10; i += 1) expect((await signIn(digestBody(await parts(refusal)), from)).status).toBe(401)
    const [last] = await site.admin.audit.list({ limit: 1 })
    expect(last).toMatchObject({ event: 'signin.locked', target: 'Zoe', after: '{"provider":"digest"}' })
    expect((await signIn(digestBody(await parts({ userName: 'Zoe' })), from)).status).toBe(401)
    expect((await site.post('/auth/credentials', { UserName: 'Zoe', Password: password }, from)).status).toBe(401)
    await site.admin.users.unlock('Zoe', undefined, by)
    expect((await signIn(digestBody(await parts({ userName: 'Zoe' })), from)).status).toBe(200)
  })

  test('A12 a disabled user is refused like an unknown one', async () => {
    await site.admin.users.add({ userName: 'Off', password, digest: true }, by)
    await site.admin.users.disable('Off', by)
    expect(await header({ userName: 'Off' })).toMatchObject(refused)
  })

  test('A12 a user who becomes Admin is refused, unless the secret was made for that', async () => {
    await site.admin.users.add({ userName: 'Eve', password, digest: true }, by)
    expect((await header({ userName: 'Eve' })).status).toBe(200)
    const assigned = await site.signIn()
    await site.post(
      '/assignroles',
      { UserName: 'Eve', Roles: ['Admin'] },
      { authorization: `Bearer ${assigned.BearerToken}` },
    )
    expect(await header({ userName: 'Eve' })).toMatchObject(refused)
    expect((await site.admin.users.show('Eve')).digest).toBe('not for Admin')
    const [last] = await site.admin.audit.list({ limit: 1 })
    expect(last).toMatchObject({ event: 'signin.failed', target: 'Eve', reason: expect.stringContaining('is Admin') })
    await site.admin.users.passwd('Eve', password, by, { DigestForAdmin: true })
    expect((await header({ userName: 'Eve' })).status).toBe(200)
  })

  test('A12 the own change of a password keeps the digest in step, and the password before no longer works', async () => {
    await site.admin.users.add({ userName: 'Pat', password, digest: true }, by)
    const next = 'copper-lantern-77'
    const own = await parts({ userName: 'Pat', uri: '/password' })
    const body = { CurrentPassword: password, NewPassword: next }
    const got = await site.post('/password', body, { authorization: digestHeader(own) })
    expect(got.status).toBe(200)
    expect((await header({ userName: 'Pat' })).status).toBe(401)
    expect((await header({ userName: 'Pat', password: next })).status).toBe(200)
  })

  test('A12 a password that is set without digest removes the secret, and so does its removal', async () => {
    await site.admin.users.add({ userName: 'Tom', password, digest: true }, by)
    expect((await header({ userName: 'Tom' })).status).toBe(200)
    await site.admin.users.passwd('Tom', password, by)
    expect((await header({ userName: 'Tom' })).status).toBe(401)
    expect((await site.admin.users.show('Tom')).digest).toBe('none')
    await site.admin.users.passwd('Tom', password, by, { Digest: true })
    expect(await site.admin.users.removeDigest('Tom', by)).toBe(true)
    expect(await site.admin.users.removeDigest('Tom', by)).toBe(false)
    expect((await header({ userName: 'Tom' })).status).toBe(401)
    expect((await site.post('/auth/credentials', { UserName: 'Tom', Password: password })).status).toBe(200)
  })

  test('A12 with digestMd5 off, only SHA-256 is offered and accepted', async () => {
    const strict = await startAccounts({}, '127.0.0.1', { digest: true, digestMd5: false })
    onTestFinished(() => strict.close())

    await strict.admin.users.add({ userName: 'Dora', password, digest: true }, by)
    const challenge = challengesOf(await strict.post('/auth/digest', {}))
    expect(challenge.map(({ algorithm }) => algorithm)).toEqual(['SHA-256'])
    const own = { userName: 'Dora', password, nonce: challenge[0]?.['nonce'] ?? '', uri: '/auth/digest' }
    expect((await strict.post('/auth/digest', digestBody({ ...own, algorithm: 'MD5' }))).status).toBe(401)
    expect((await strict.post('/auth/digest', digestBody(own))).status).toBe(200)
  })

  test('A9 where HTTP Basic is on too, Digest comes before it', async () => {
    const both = await startAccounts({ basic: true }, '127.0.0.1', on)
    onTestFinished(() => both.close())

    const { headers } = await both.post('/assignroles', change)
    const schemes = [...(headers['www-authenticate'] ?? '').matchAll(/(?:^|, )(Digest|Basic) /g)].map(
      ([, name]) => name,
    )
    expect(schemes).toEqual(['Digest', 'Digest', 'Basic'])
  })

  test('A12 without auth.digest, digest is an unknown provider, and no header or challenge has a meaning', async () => {
    const off = await startAccounts()
    onTestFinished(() => off.close())

    const got = await off.post('/auth/digest', {})
    expect([got.status, got.json.ResponseStatus?.Message]).toEqual([
      404,
      "No configuration was added for OAuth provider 'digest'",
    ])
    const header = digestHeader({ userName: 'Ann', password, nonce: 'x', uri: '/assignroles' })
    const refusal = await off.post('/assignroles', change, { authorization: header })
    expect([refusal.status, refusal.headers['www-authenticate']]).toEqual([401, undefined])
  })

  test('RFC 7616 3.9.1 the test client computes the responses of the example', () => {
    const example = {
      userName: 'Mufasa',
      password: 'Circle of Life',
      realm: 'http-auth@example.org',
      method: 'GET',
      uri: '/dir/index.html',
      nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v',
      cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
    }
    expect(responseOf(example)).toBe('753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1')
    expect(responseOf({ ...example, algorithm: 'MD5' })).toBe('8ca523f5e9506fed4657c9700eebdbec')
  })
})

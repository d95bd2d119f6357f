import { describe, expect, test } from 'vitest'
import { hashCost } from '../../../src/core/accounts/auth/passwords.ts'
import { bearer, by, faultFields, faultOf, from, openFixture, password, session } from './fixture.ts'

const address = '192.0.2.1'

describe('signing in', () => {
  test('A2 O4 the e-mail address signs in as well, and an exact name takes precedence', async () => {
    const { signIn, admin } = await openFixture()
    const [ann] = await admin.users.list()
    expect((await signIn({ UserName: 'ANN@example.com' })).UserId).toBe(ann?.id)
  })

  test('A3 P2 a wrong password, an unknown or disabled user, one without a password and a locked one get the same Fault, byte for byte', async () => {
    const { access, admin } = await openFixture()
    await admin.users.add({ userName: 'Gone', password }, by)
    await admin.users.disable('Gone', by)
    await admin.users.add({ userName: 'Nopass' }, by)
    const attempt = async (UserName: string, Password: string, place = address) =>
      faultFields(await faultOf(access.authenticate({ provider: 'credentials', UserName, Password }, from(place))))
    const refusal = await attempt('Ann', 'not her password')
    expect(refusal).toEqual({
      fault: 'Unauthorized',
      status: 401,
      errorCode: 'Unauthorized',
      message: 'Invalid Username or Password',
      details: {},
    })
    expect(await attempt('Nobody', 'not a password')).toEqual(refusal)
    expect(await attempt('Gone', password)).toEqual(refusal)
    expect(await attempt('Nopass', password)).toEqual(refusal)
    for (let n = 0; n < 10; n += 1) await attempt('Ann', 'not her password', '192.0.2.2')
    expect(await attempt('Ann', password, '192.0.2.2')).toEqual(refusal)
  })

  test.each([
    ['both', { UserName: '', Password: '' }, ['UserName', 'Password']],
    ['blanks', { UserName: '  ', Password: '\t' }, ['UserName', 'Password']],
    ['the name', { UserName: undefined, Password: 'x' }, ['UserName']],
    ['the password', { UserName: 'Ann', Password: undefined }, ['Password']],
  ])('A4 empty %s is a 400 that names each field', async (_, input, names) => {
    const { access } = await openFixture()
    const fault = await faultOf(access.authenticate({ provider: 'credentials', ...input }, from(address)))
    expect([fault.status, fault.errorCode]).toEqual([400, 'ValidationException'])
    expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual(names)
    expect(fault.details.fields?.every(({ ErrorCode }) => ErrorCode === 'NotEmpty')).toBe(true)
    if (names.includes('UserName')) expect(fault.message).toContain("'User Name' must not be empty.")
    if (names.includes('Password')) expect(fault.message).toContain("'Password' must not be empty.")
  })

  test.each(['nope', 'digest', 'constructor', '__proto__', 'toString'])(
    'A5 the provider %s is unknown',
    async (provider) => {
      const { access } = await openFixture()
      const fault = await faultOf(access.authenticate({ provider, UserName: 'Ann', Password: password }, from(address)))
      expect([fault.status, fault.errorCode]).toEqual([404, 'NotFound'])
      expect(fault.message).toBe(`No configuration was added for OAuth provider '${provider}'`)
    },
  )

  test('A7 a bearer token signs out too, even an expired one, and an anonymous caller may sign out', async () => {
    const { access, signIn, clock } = await openFixture()
    const { SessionId, BearerToken } = await signIn()
    clock.at += 16 * 60_000
    const out = (credential?: ReturnType<typeof bearer>) =>
      access.authenticate({ provider: 'logout' }, from(address, { credential }))
    expect(await out(bearer(BearerToken))).toEqual({})
    expect(await access.identify(session(SessionId))).toBeUndefined()
    expect(await out()).toEqual({})
    expect(await out(bearer('nonsense'))).toEqual({})
  })

  test.each([
    ['another origin', 'https://evil.example/'],
    ['two slashes', '//evil.example/'],
    ['a backslash', '/\\evil.example/'],
    ['a tab between slashes', '/\t/evil.example/'],
    ['a script', 'javascript:alert(1)'],
    ['another port', 'https://svc.example:8443/'],
    ['another scheme', 'http://svc.example/'],
    ['a name in front', 'https://svc.example@evil.example/'],
    ['a user of this origin', 'https://someone@svc.example/'],
    ['nonsense', 'https://['],
  ])('A14 a continue URL of %s is refused before the sign-in', async (_, url) => {
    const { signIn } = await openFixture()
    const continueTo = { url, origin: 'https://svc.example' }
    const fault = await faultOf(signIn({ Password: 'not her password' }, { continueTo }))
    expect([fault.status, fault.message]).toEqual([400, 'External Redirects are not permitted'])
  })

  test.each([
    ['/status?x=1#y', 'https://svc.example/status?x=1#y'],
    ['https://svc.example/status', 'https://svc.example/status'],
    ['/x/..//evil.example/', 'https://svc.example//evil.example/'],
  ])('A14 A2 a continue URL of %s is returned as an absolute URL', async (url, expected) => {
    const { signIn } = await openFixture()
    const answer = await signIn({}, { continueTo: { url, origin: 'https://svc.example' } })
    expect(answer.ReferrerUrl).toBe(expected)
  })

  test("S10 the audit records a sign-in, a failed one, a locked one and a sign-out, without the user's input", async () => {
    const { access, signIn, admin } = await openFixture()
    const { SessionId } = await signIn()
    await access.authenticate({ provider: 'logout' }, from(address, { credential: session(SessionId) }))
    await faultOf(signIn({ UserName: 'my-Secret-typed-here', Password: 'other-Secret' }))
    for (let n = 0; n < 10; n += 1) await faultOf(signIn({ Password: 'other-Secret' }))
    const rows = await admin.audit.list({ limit: 100 })
    const events = rows.map(({ event, target }) => `${event} ${target ?? '-'}`)
    expect(events[0]).toBe('signin.locked Ann')
    expect(events.filter((event) => event === 'signin.failed Ann')).toHaveLength(9)
    expect(events).toContain('signin.failed -')
    expect(rows.filter(({ who }) => who === 'Ann')).toHaveLength(2)
    expect(rows.every((row) => row.who.startsWith('local:') || row.address === address)).toBe(true)
    expect(JSON.stringify(rows)).not.toMatch(/Secret/)
    expect(JSON.stringify(rows)).not.toContain(SessionId)
  })

  test('P1 the next sign-in replaces a stored hash that has other parameters, and ends nothing', async () => {
    const { access, data, signIn } = await openFixture(undefined, hashCost)
    const user = await data.users.find('Ann')
    if (!user) throw new Error('Ann is gone')
    // Made by the reference implementation of argon2 for the word `password`.
    const foreign = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
    await data.users.setPassword(user.id, foreign, { who: 'local:tester', correlationId: 'test' })
    const { BearerToken } = await signIn({ Password: 'password' })
    const after = await data.users.find('Ann')
    expect(after?.passwordHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect(await access.identify(bearer(BearerToken))).toBeDefined()
    await signIn({ Password: 'password' })
    expect((await data.users.find('Ann'))?.passwordHash).toBe(after?.passwordHash)
  })
})

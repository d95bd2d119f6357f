import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readToken } from '../../../src/core/accounts/auth/tokens.ts'
import { bearer, by, faultOf, from, openFixture, password, session } from './fixture.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

describe('who is signed in', () => {
  test('A9 a session, a bearer token and a key each identify the caller', async () => {
    const { access, admin, signIn } = await openFixture()
    const { SessionId, BearerToken } = await signIn()
    const { secret } = await admin.keys.create({ name: 'ci', userName: 'Ann' }, by)
    const callerOf = async (credential: ReturnType<typeof bearer>) => {
      const result = await access.identify(credential)
      return result && [result.via, result.user.userName, result.roles, result.sessionId]
    }
    expect(await callerOf(session(SessionId))).toEqual(['session', 'Ann', ['Admin', 'Editor'], SessionId])
    expect(await callerOf(bearer(BearerToken))).toEqual(['bearer', 'Ann', ['Admin', 'Editor'], undefined])
    expect(await callerOf(bearer(secret))).toEqual(['key', 'Ann', ['Admin', 'Editor'], undefined])
  })

  test('A10 T5 nothing else identifies a caller: no other kind, nothing tampered with, nothing empty', async () => {
    const { access, admin, signIn } = await openFixture()
    const { SessionId, BearerToken, RefreshToken } = await signIn()
    const { secret } = await admin.keys.create({ name: 'ci', userName: 'Ann' }, by)
    const tampered = `${BearerToken.slice(0, 20)}${BearerToken[20] === 'A' ? 'B' : 'A'}${BearerToken.slice(21)}`
    for (const credential of [
      undefined,
      bearer(''),
      bearer('nonsense'),
      bearer(RefreshToken),
      bearer(SessionId),
      bearer(tampered),
      bearer(`${BearerToken} `),
      session(BearerToken),
      session(RefreshToken),
      session(secret),
      session(''),
    ]) {
      expect(await access.identify(credential)).toBeUndefined()
    }
  })

  test('A10 an expired token, session or key makes the caller anonymous', async () => {
    const { access, admin, clock, signIn } = await openFixture()
    const { SessionId, BearerToken } = await signIn()
    const { secret } = await admin.keys.create({ name: 'ci', userName: 'Ann', lifetime: day }, by)
    clock.at += day
    for (const credential of [session(SessionId), bearer(BearerToken), bearer(secret)]) {
      const fault = await faultOf(access.authenticate({}, from('192.0.2.1', { verb: 'GET', credential })))
      expect([fault.status, fault.errorCode, fault.message]).toEqual([401, 'Unauthorized', 'Not Authenticated'])
    }
  })

  test('T1 nothing in the store can sign anyone in', async () => {
    const { access, admin, signIn, store } = await openFixture()
    const { SessionId, BearerToken, RefreshToken } = await signIn()
    const { secret } = await admin.keys.create({ name: 'ci', userName: 'Ann' }, by)
    const folder = dirname(store)
    const bytes = Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))))
    for (const text of [SessionId, BearerToken, RefreshToken, secret, password]) {
      expect(bytes.includes(text)).toBe(false)
      expect(bytes.includes(text.slice(8, 40))).toBe(false)
    }
    expect(bytes.includes('Ann')).toBe(true)
    expect(await access.identify(bearer(BearerToken))).toBeDefined()
  })

  test('T3 an access token lives 15 minutes', async () => {
    const { access, clock, signIn } = await openFixture()
    const { BearerToken } = await signIn()
    clock.at += 15 * minute - 1
    expect(await access.identify(bearer(BearerToken))).toBeDefined()
    clock.at += 1
    expect(await access.identify(bearer(BearerToken))).toBeUndefined()
  })

  test.each([
    [false, 8 * hour, 7 * day],
    [true, 30 * day, 90 * day],
  ])(
    'T3 with RememberMe %s a session ends after its idle time, and after its absolute time however often it is used',
    async (RememberMe, idle, absolute) => {
      const { access, clock, signIn } = await openFixture()
      const idling = session((await signIn({ RememberMe })).SessionId)
      const used = session((await signIn({ RememberMe })).SessionId)
      const began = clock.at
      clock.at = began + idle - 1
      expect(await access.identify(used)).toBeDefined()
      clock.at = began + idle
      expect(await access.identify(idling)).toBeUndefined()
      while (clock.at < began + absolute - idle / 2) {
        expect(await access.identify(used)).toBeDefined()
        clock.at += idle / 2
      }
      clock.at = began + absolute - 1
      expect(await access.identify(used)).toBeDefined()
      clock.at = began + absolute
      expect(await access.identify(used)).toBeUndefined()
    },
  )

  test('T3 the last use is written at most once per 5 % of the idle time', async () => {
    const { access, clock, data, signIn } = await openFixture()
    const credential = session((await signIn()).SessionId)
    const identity = await access.identify(credential)
    expect(identity).toBeDefined()
    const hash = readToken('session', credential.kind === 'session' ? credential.secret : '') ?? ''
    const began = clock.at
    const share = (8 * hour) / 20
    clock.at = began + share - 1
    await access.identify(credential)
    expect((await data.sessions.find(hash))?.lastUsedAt).toBe(began)
    clock.at = began + share
    await access.identify(credential)
    expect((await data.sessions.find(hash))?.lastUsedAt).toBe(began + share)
  })

  test('T2 a new password ends sessions, tokens and families; a disabled user is anonymous at once', async () => {
    const { access, admin, signIn } = await openFixture()
    const { SessionId, BearerToken, RefreshToken } = await signIn()
    await admin.users.passwd('Ann', 'another-lantern-7', by)
    expect(await access.identify(session(SessionId))).toBeUndefined()
    expect(await access.identify(bearer(BearerToken))).toBeUndefined()
    expect((await faultOf(access.getAccessToken({ RefreshToken }, from('192.0.2.1')))).status).toBe(401)
    await faultOf(signIn())

    await admin.users.add({ userName: 'Second', password, roles: ['Admin'] }, by)
    const again = await signIn({ Password: 'another-lantern-7' })
    const { secret } = await admin.keys.create({ name: 'ci', userName: 'Ann' }, by)
    await admin.users.disable('Ann', by)
    for (const credential of [session(again.SessionId), bearer(again.BearerToken), bearer(secret)]) {
      expect(await access.identify(credential)).toBeUndefined()
    }
  })
})

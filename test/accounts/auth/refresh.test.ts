import { describe, expect, test } from 'vitest'
import { openAccess, Paces } from '../../../src/core/accounts/auth/index.ts'
import { HashQueue, passwords } from '../../../src/core/accounts/auth/passwords.ts'
import { readToken } from '../../../src/core/accounts/auth/tokens.ts'
import { cheapHash } from '../../support/suite/cheap-hash.ts'
import { bearer, by, type Fixture, faultOf, from, openFixture, password, session } from './fixture.ts'

const day = 24 * 60 * 60_000
const rotating = { Meta: { refresh: 'rotate' } }

const ask = ({ access }: Fixture, RefreshToken: string | undefined) =>
  access.getAccessToken({ RefreshToken }, from('192.0.2.1'))
const refused = async (fixture: Fixture, token: string | undefined): Promise<number> =>
  (await faultOf(ask(fixture, token))).status

describe('a fixed family', () => {
  test('A11 the refresh token stays the same over three expiries of the access token', async () => {
    const fixture = await openFixture()
    const { BearerToken, RefreshToken } = await fixture.signIn()
    let token = BearerToken
    for (let expiry = 0; expiry < 3; expiry += 1) {
      fixture.clock.at += 15 * 60_000
      expect(await fixture.access.identify(bearer(token))).toBeUndefined()
      const answer = await ask(fixture, RefreshToken)
      expect(Object.keys(answer)).toEqual(['accessToken'])
      token = answer.accessToken ?? ''
      expect((await fixture.access.identify(bearer(token)))?.user.userName).toBe('Ann')
    }
  })

  test.each([
    [false, 7, 30],
    [true, 30, 90],
  ])(
    'A11 T3 with RememberMe %s it ends after %d idle days, and after %d days however often it is used',
    async (RememberMe, idle, absolute) => {
      const fixture = await openFixture()
      const { RefreshToken: idling } = await fixture.signIn({ RememberMe })
      const { RefreshToken: used } = await fixture.signIn({ RememberMe })
      const began = fixture.clock.at
      fixture.clock.at = began + idle * day - 1
      await ask(fixture, used)
      fixture.clock.at = began + idle * day
      expect(await refused(fixture, idling)).toBe(401)
      while (fixture.clock.at < began + (absolute - idle / 2) * day) {
        await ask(fixture, used)
        fixture.clock.at += (idle / 2) * day
      }
      fixture.clock.at = began + absolute * day - 1
      const { accessToken } = await ask(fixture, used)
      fixture.clock.at = began + absolute * day
      expect(await refused(fixture, used)).toBe(401)
      expect(await fixture.access.identify(bearer(accessToken ?? ''))).toBeUndefined()
    },
  )

  test('A10 T5 an access token, a session and a key are not refresh tokens', async () => {
    const fixture = await openFixture()
    const { BearerToken, SessionId } = await fixture.signIn()
    const { secret } = await fixture.admin.keys.create({ name: 'ci', userName: 'Ann' }, by)
    for (const token of [BearerToken, SessionId, secret]) expect(await refused(fixture, token)).toBe(400)
  })
})

describe('a rotating family', () => {
  test('A11 T4 each exchange returns a new pair of the same family', async () => {
    const fixture = await openFixture()
    const first = await fixture.signIn(rotating)
    const second = await ask(fixture, first.RefreshToken)
    expect(second.refreshToken).toMatch(/^svc_rt_/)
    expect(second.refreshToken).not.toBe(first.RefreshToken)
    const third = await ask(fixture, second.refreshToken)
    expect((await fixture.access.identify(bearer(third.accessToken ?? '')))?.user.userName).toBe('Ann')
    const credential = bearer(third.accessToken ?? '')
    await fixture.access.authenticate({ provider: 'logout' }, from('192.0.2.1', { credential }))
    expect(await fixture.access.identify(session(first.SessionId))).toBeUndefined()
    expect(await refused(fixture, third.refreshToken)).toBe(401)
  })

  test('T4 a retry within ten seconds gets the same pair', async () => {
    const fixture = await openFixture()
    const { RefreshToken } = await fixture.signIn(rotating)
    const first = await ask(fixture, RefreshToken)
    fixture.clock.at += 9_000
    expect(await ask(fixture, RefreshToken)).toEqual(first)
    expect(await fixture.access.identify(bearer(first.accessToken ?? ''))).toBeDefined()
  })

  test('T4 later reuse revokes the family and is recorded in the audit', async () => {
    const fixture = await openFixture()
    const { RefreshToken, SessionId, BearerToken } = await fixture.signIn(rotating)
    const other = await fixture.signIn(rotating)
    const next = await ask(fixture, RefreshToken)
    fixture.clock.at += 10_001
    const before = (await fixture.admin.audit.list({ limit: 100 })).length
    expect(await refused(fixture, RefreshToken)).toBe(401)
    const rows = await fixture.admin.audit.list({ limit: 100 })
    expect(rows.length).toBe(before + 1)
    expect([rows[0]?.event, rows[0]?.address]).toEqual([expect.stringContaining('reuse'), '192.0.2.1'])
    expect(await refused(fixture, next.refreshToken)).toBe(401)
    for (const credential of [bearer(next.accessToken ?? ''), bearer(BearerToken), session(SessionId)]) {
      expect(await fixture.access.identify(credential)).toBeUndefined()
    }
    expect(await fixture.access.identify(bearer(other.BearerToken))).toBeDefined()
  })

  test('T4 reuse is detected however old the token is, while its family lives', async () => {
    const fixture = await openFixture()
    const { RefreshToken } = await fixture.signIn(rotating)
    let latest = RefreshToken
    for (let n = 0; n < 9; n += 1) {
      fixture.clock.at += day
      latest = (await ask(fixture, latest)).refreshToken ?? ''
    }
    expect(await refused(fixture, RefreshToken)).toBe(401)
    expect((await fixture.admin.audit.list({ limit: 1 }))[0]?.event).toContain('reuse')
    expect(await refused(fixture, latest)).toBe(401)
  })

  test('T4 fifty parallel refreshes cause one rotation', async () => {
    const fixture = await openFixture()
    const { RefreshToken } = await fixture.signIn(rotating)
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(fixture, RefreshToken)))
    expect(new Set(answers.map(({ refreshToken }) => refreshToken)).size).toBe(1)
    expect(new Set(answers.map(({ accessToken }) => accessToken)).size).toBe(1)
    expect(await ask(fixture, answers[0]?.refreshToken)).toBeDefined()
  })

  test('T3 it ends at its absolute end however often it rotates', async () => {
    const fixture = await openFixture()
    const { RefreshToken } = await fixture.signIn(rotating)
    const began = fixture.clock.at
    let token: string | undefined = RefreshToken
    while (fixture.clock.at < began + 24 * day) {
      fixture.clock.at += 6 * day
      token = (await ask(fixture, token)).refreshToken
    }
    fixture.clock.at = began + 30 * day
    expect(await refused(fixture, token)).toBe(401)
  })

  test('T4 the sealed successor is removed from the store after ten seconds', async () => {
    const fixture = await openFixture()
    const { RefreshToken } = await fixture.signIn(rotating)
    await ask(fixture, RefreshToken)
    const hash = readToken('refresh', RefreshToken) ?? ''
    expect((await fixture.data.tokens.refresh(hash))?.sealedSuccessor).toBeDefined()
    fixture.clock.at += 10_001
    await fixture.data.sweep(fixture.clock.at)
    expect((await fixture.data.tokens.refresh(hash))?.sealedSuccessor).toBeUndefined()
  })
})

describe('serve.refresh: rotating', () => {
  const only = ({ data, clock }: Fixture) =>
    openAccess({
      data,
      passwords: passwords(new HashQueue(2, 20_000), cheapHash),
      paces: new Paces(),
      now: () => clock.at,
      refresh: 'rotating',
    })
  const credentials = { provider: 'credentials', UserName: 'Ann', Password: password }

  test('A11 a sign-in that does not ask for rotation gets no refresh token, and works otherwise', async () => {
    const fixture = await openFixture()
    const answer = await only(fixture).authenticate(credentials, from('192.0.2.1'))
    expect(answer).not.toHaveProperty('RefreshToken')
    expect((await fixture.access.identify(bearer(answer.BearerToken ?? '')))?.user.userName).toBe('Ann')
    expect((await fixture.access.identify(session(answer.SessionId ?? '')))?.user.userName).toBe('Ann')
  })

  test('A11 a sign-in that asks for rotation gets a rotating token', async () => {
    const fixture = await openFixture()
    const access = only(fixture)
    const { RefreshToken } = await access.authenticate({ ...credentials, ...rotating }, from('192.0.2.1'))
    const answer = await access.getAccessToken({ RefreshToken }, from('192.0.2.1'))
    expect(answer.refreshToken).toMatch(/^svc_rt_/)
  })

  test('A11 an earlier fixed token is refused with the name of the setting, and works again without it', async () => {
    const fixture = await openFixture()
    const { RefreshToken } = await fixture.signIn()
    const fault = await faultOf(only(fixture).getAccessToken({ RefreshToken }, from('192.0.2.1')))
    expect([fault.status, fault.message]).toEqual([401, expect.stringContaining('serve.refresh')])
    expect(await ask(fixture, RefreshToken)).toHaveProperty('accessToken')
  })

  test('P9 the session that replaces one with a fixed token has none', async () => {
    const fixture = await openFixture()
    const { BearerToken } = await fixture.signIn()
    const identity = await fixture.access.identify(bearer(BearerToken))
    const actor = { who: 'Ann', correlationId: 'test' }
    const change = { CurrentPassword: password, NewPassword: 'copper-lantern-77' }
    const answer = await only(fixture).changePassword(change, from('192.0.2.1'), { identity, actor })
    expect(Object.keys(answer)).toEqual(['SessionId', 'RememberMe', 'BearerToken'])
  })
})

test('P9 ten wrong current passwords lock the name for the address, for sign-in too', async () => {
  const fixture = await openFixture()
  const { BearerToken } = await fixture.signIn()
  const identity = await fixture.access.identify(bearer(BearerToken))
  const actor = { who: 'Ann', correlationId: 'test' }
  const change = (CurrentPassword: string) =>
    fixture.access.changePassword({ CurrentPassword, NewPassword: 'copper-lantern-77' }, from('192.0.2.1'), {
      identity,
      actor,
    })
  for (let attempt = 0; attempt < 10; attempt += 1) expect((await faultOf(change('wrong'))).status).toBe(400)
  // Even the right one is refused now, in the same words.
  expect((await faultOf(change(password))).message).toBe((await faultOf(change('wrong'))).message)
  expect((await faultOf(fixture.signIn())).status).toBe(401)
  const events = (await fixture.admin.audit.list({ limit: 20 })).map(({ event }) => event)
  expect(events.filter((event) => event === 'signin.failed')).toHaveLength(9)
  expect(events).toContain('signin.locked')
  expect(events).not.toContain('password.changed')
  expect((await fixture.access.identify(bearer(BearerToken)))?.user.userName).toBe('Ann')
})

import { describe, expect, test } from 'vitest'
import { openAccess, Paces } from '../../src/core/auth/index.ts'
import { HashQueue, passwords } from '../../src/core/auth/passwords.ts'
import { readToken } from '../../src/core/auth/tokens.ts'
import { cheapHash } from '../support/suite/cheap-hash.ts'
import { bearer, by, faultOf, from, password, session, type World, withWorld } from './world.ts'

const day = 24 * 60 * 60_000
const rotating = { Meta: { refresh: 'rotate' } }

const ask = ({ access }: World, RefreshToken: string | undefined) =>
  access.getAccessToken({ RefreshToken }, from('192.0.2.1'))
const refused = async (world: World, token: string | undefined): Promise<number> =>
  (await faultOf(ask(world, token))).status

describe('a fixed family', () => {
  test('A11 the refresh token stays the same over three expiries of the access token', async () => {
    await withWorld(async (world) => {
      const { BearerToken, RefreshToken } = await world.signIn()
      let token = BearerToken
      for (let expiry = 0; expiry < 3; expiry += 1) {
        world.clock.at += 15 * 60_000
        expect(await world.access.identify(bearer(token))).toBeUndefined()
        const answer = await ask(world, RefreshToken)
        expect(Object.keys(answer)).toEqual(['accessToken'])
        token = answer.accessToken ?? ''
        expect((await world.access.identify(bearer(token)))?.user.userName).toBe('Ann')
      }
    })
  })

  test.each([
    [false, 7, 30],
    [true, 30, 90],
  ])(
    'A11 T3 with RememberMe %s it ends after %d idle days, and after %d days however often it is used',
    async (RememberMe, idle, absolute) => {
      await withWorld(async (world) => {
        const { RefreshToken: idling } = await world.signIn({ RememberMe })
        const { RefreshToken: used } = await world.signIn({ RememberMe })
        const began = world.clock.at
        world.clock.at = began + idle * day - 1
        await ask(world, used)
        world.clock.at = began + idle * day
        expect(await refused(world, idling)).toBe(401)
        while (world.clock.at < began + (absolute - idle / 2) * day) {
          await ask(world, used)
          world.clock.at += (idle / 2) * day
        }
        world.clock.at = began + absolute * day - 1
        const { accessToken } = await ask(world, used)
        world.clock.at = began + absolute * day
        expect(await refused(world, used)).toBe(401)
        expect(await world.access.identify(bearer(accessToken ?? ''))).toBeUndefined()
      })
    },
  )

  test.each([
    ['none', undefined],
    ['an empty one', ''],
    ['garbage', 'garbage'],
  ])('A11 %s is a 400 naming RefreshToken', async (_, token) => {
    await withWorld(async (world) => {
      const fault = await faultOf(ask(world, token))
      expect([fault.status, fault.details.fields?.map(({ FieldName }) => FieldName)]).toEqual([400, ['RefreshToken']])
      if (token) expect(JSON.stringify(fault.details)).not.toContain(token)
    })
  })

  test('A10 T5 an access token, a session and a key are not refresh tokens', async () => {
    await withWorld(async (world) => {
      const { BearerToken, SessionId } = await world.signIn()
      const { secret } = await world.admin.keys.create({ name: 'ci', userName: 'Ann' }, by)
      for (const token of [BearerToken, SessionId, secret]) expect(await refused(world, token)).toBe(400)
    })
  })
})

describe('a rotating family', () => {
  test('A11 T4 each exchange returns a new pair of the same family', async () => {
    await withWorld(async (world) => {
      const first = await world.signIn(rotating)
      const second = await ask(world, first.RefreshToken)
      expect(second.refreshToken).toMatch(/^svc_rt_/)
      expect(second.refreshToken).not.toBe(first.RefreshToken)
      const third = await ask(world, second.refreshToken)
      expect((await world.access.identify(bearer(third.accessToken ?? '')))?.user.userName).toBe('Ann')
      const credential = bearer(third.accessToken ?? '')
      await world.access.authenticate({ provider: 'logout' }, from('192.0.2.1', { credential }))
      expect(await world.access.identify(session(first.SessionId))).toBeUndefined()
      expect(await refused(world, third.refreshToken)).toBe(401)
    })
  })

  test('T4 a retry within ten seconds gets the same pair', async () => {
    await withWorld(async (world) => {
      const { RefreshToken } = await world.signIn(rotating)
      const first = await ask(world, RefreshToken)
      world.clock.at += 9_000
      expect(await ask(world, RefreshToken)).toEqual(first)
      expect(await world.access.identify(bearer(first.accessToken ?? ''))).toBeDefined()
    })
  })

  test('T4 later reuse revokes the family and is recorded in the audit', async () => {
    await withWorld(async (world) => {
      const { RefreshToken, SessionId, BearerToken } = await world.signIn(rotating)
      const other = await world.signIn(rotating)
      const next = await ask(world, RefreshToken)
      world.clock.at += 10_001
      const before = (await world.admin.audit.list({ limit: 100 })).length
      expect(await refused(world, RefreshToken)).toBe(401)
      const rows = await world.admin.audit.list({ limit: 100 })
      expect(rows.length).toBe(before + 1)
      expect([rows[0]?.event, rows[0]?.address]).toEqual([expect.stringContaining('reuse'), '192.0.2.1'])
      expect(await refused(world, next.refreshToken)).toBe(401)
      for (const credential of [bearer(next.accessToken ?? ''), bearer(BearerToken), session(SessionId)]) {
        expect(await world.access.identify(credential)).toBeUndefined()
      }
      expect(await world.access.identify(bearer(other.BearerToken))).toBeDefined()
    })
  })

  test('T4 reuse is detected however old the token is, while its family lives', async () => {
    await withWorld(async (world) => {
      const { RefreshToken } = await world.signIn(rotating)
      let latest = RefreshToken
      for (let n = 0; n < 9; n += 1) {
        world.clock.at += day
        latest = (await ask(world, latest)).refreshToken ?? ''
      }
      expect(await refused(world, RefreshToken)).toBe(401)
      expect((await world.admin.audit.list({ limit: 1 }))[0]?.event).toContain('reuse')
      expect(await refused(world, latest)).toBe(401)
    })
  })

  test('T4 fifty parallel refreshes cause one rotation', async () => {
    await withWorld(async (world) => {
      const { RefreshToken } = await world.signIn(rotating)
      const answers = await Promise.all(Array.from({ length: 50 }, () => ask(world, RefreshToken)))
      expect(new Set(answers.map(({ refreshToken }) => refreshToken)).size).toBe(1)
      expect(new Set(answers.map(({ accessToken }) => accessToken)).size).toBe(1)
      expect(await ask(world, answers[0]?.refreshToken)).toBeDefined()
    })
  })

  test('T3 it ends at its absolute end however often it rotates', async () => {
    await withWorld(async (world) => {
      const { RefreshToken } = await world.signIn(rotating)
      const began = world.clock.at
      let token: string | undefined = RefreshToken
      while (world.clock.at < began + 24 * day) {
        world.clock.at += 6 * day
        token = (await ask(world, token)).refreshToken
      }
      world.clock.at = began + 30 * day
      expect(await refused(world, token)).toBe(401)
    })
  })

  test('T4 the sealed successor is removed from the store after ten seconds', async () => {
    await withWorld(async (world) => {
      const { RefreshToken } = await world.signIn(rotating)
      await ask(world, RefreshToken)
      const hash = readToken('refresh', RefreshToken) ?? ''
      expect((await world.data.tokens.refresh(hash))?.sealedSuccessor).toBeDefined()
      world.clock.at += 10_001
      await world.data.sweep(world.clock.at)
      expect((await world.data.tokens.refresh(hash))?.sealedSuccessor).toBeUndefined()
    })
  })
})

describe('serve.refresh: rotating', () => {
  const only = ({ data, clock }: World) =>
    openAccess({
      data,
      passwords: passwords(new HashQueue(2, 20_000), cheapHash),
      paces: new Paces(),
      now: () => clock.at,
      refresh: 'rotating',
    })
  const credentials = { provider: 'credentials', UserName: 'Ann', Password: password }

  test('A11 a sign-in that does not ask for rotation gets no refresh token, and works otherwise', async () => {
    await withWorld(async (world) => {
      const answer = await only(world).authenticate(credentials, from('192.0.2.1'))
      expect(answer).not.toHaveProperty('RefreshToken')
      expect((await world.access.identify(bearer(answer.BearerToken ?? '')))?.user.userName).toBe('Ann')
      expect((await world.access.identify(session(answer.SessionId ?? '')))?.user.userName).toBe('Ann')
    })
  })

  test('A11 a sign-in that asks for rotation gets a rotating token', async () => {
    await withWorld(async (world) => {
      const access = only(world)
      const { RefreshToken } = await access.authenticate({ ...credentials, ...rotating }, from('192.0.2.1'))
      const answer = await access.getAccessToken({ RefreshToken }, from('192.0.2.1'))
      expect(answer.refreshToken).toMatch(/^svc_rt_/)
    })
  })

  test('A11 an earlier fixed token is refused with the name of the setting, and works again without it', async () => {
    await withWorld(async (world) => {
      const { RefreshToken } = await world.signIn()
      const fault = await faultOf(only(world).getAccessToken({ RefreshToken }, from('192.0.2.1')))
      expect([fault.status, fault.message]).toEqual([401, expect.stringContaining('serve.refresh')])
      expect(await ask(world, RefreshToken)).toHaveProperty('accessToken')
    })
  })

  test('P9 the session that replaces one with a fixed token has none', async () => {
    await withWorld(async (world) => {
      const { BearerToken } = await world.signIn()
      const identity = await world.access.identify(bearer(BearerToken))
      const actor = { who: 'Ann', correlationId: 'test' }
      const change = { CurrentPassword: password, NewPassword: 'copper-lantern-77' }
      const answer = await only(world).changePassword(change, from('192.0.2.1'), { identity, actor })
      expect(Object.keys(answer)).toEqual(['SessionId', 'RememberMe', 'BearerToken'])
    })
  })
})

test('P9 ten wrong current passwords lock the name for the address, for sign-in too', async () => {
  await withWorld(async (world) => {
    const { BearerToken } = await world.signIn()
    const identity = await world.access.identify(bearer(BearerToken))
    const actor = { who: 'Ann', correlationId: 'test' }
    const change = (CurrentPassword: string) =>
      world.access.changePassword({ CurrentPassword, NewPassword: 'copper-lantern-77' }, from('192.0.2.1'), {
        identity,
        actor,
      })
    for (let attempt = 0; attempt < 10; attempt += 1) expect((await faultOf(change('wrong'))).status).toBe(400)
    // Even the right one is refused now, in the same words.
    expect((await faultOf(change(password))).message).toBe((await faultOf(change('wrong'))).message)
    expect((await faultOf(world.signIn())).status).toBe(401)
    const events = (await world.admin.audit.list({ limit: 20 })).map(({ event }) => event)
    expect(events.filter((event) => event === 'signin.failed')).toHaveLength(9)
    expect(events).toContain('signin.locked')
    expect(events).not.toContain('password.changed')
    expect((await world.access.identify(bearer(BearerToken)))?.user.userName).toBe('Ann')
  })
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Operation, type OperationSpec, operations, readsHealth } from '../../src/core/protocol/index.ts'
import { type Accounts, bearer, by, password, type SignedIn, startAccounts } from './accounts.ts'
import { ask } from './site.ts'

let accounts: Accounts
beforeAll(async () => {
  accounts = await startAccounts({ basic: true })
  const roles = ['Admin']
  for (const userName of ['temp', 'next', 'kept']) {
    await accounts.admin.users.add({ userName, password, roles, mustChangePassword: true }, by)
  }
})
afterAll(() => accounts.close())

const signIn = (UserName: string, Password = password): Promise<SignedIn> => accounts.signIn({ UserName, Password })

const must = { status: 403, code: 'PasswordMustChange' } as const
const refusal = ({ status, json }: { readonly status: number; readonly json: { ResponseStatus?: object } }) => ({
  status,
  code: json?.ResponseStatus && Reflect.get(json.ResponseStatus, 'ErrorCode'),
})

/** The operations that the session may use, and one that asks nobody who is calling. */
const allowed = ['ChangePassword', 'GetAccessToken', 'GetServerTypes']
/** On this machine, health is for anybody (S11). */
const elsewhere = { 'x-forwarded-for': '203.0.113.9' }

test('P71 a sign-in with a password that must be changed is 200, and says so in its Meta', async () => {
  expect((await signIn('temp')).Meta).toMatchObject({ 'svc.mustChangePassword': '1' })
  expect((await accounts.signIn()).Meta?.['svc.mustChangePassword']).toBeUndefined()
})

test('P71 until then, every operation is 403 PasswordMustChange for the session, its tokens and the password itself', async () => {
  const { BearerToken, cookie } = await signIn('temp')
  const basic = `Basic ${Buffer.from(`temp:${password}`).toString('base64')}`
  for (const headers of [bearer(BearerToken), { cookie }, { authorization: basic }]) {
    for (const [key, { name, replyVerbs, request }] of Object.entries<OperationSpec>(operations)) {
      if (allowed.includes(name)) continue
      const query = 'ServerType' in request.fields ? '?ExecutionMode=Basic&ServerType=App&Monitor=x' : '?Monitor=x'
      const method = replyVerbs.includes('GET') ? 'GET' : 'POST'
      const got = await ask(accounts.port, `/json/reply/${name}${query}`, {
        method,
        headers: {
          ...(readsHealth(key as Operation) ? elsewhere : {}),
          ...headers,
          ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
        },
        ...(method === 'POST' ? { body: '{}' } : {}),
      })
      expect([name, refusal(got)]).toEqual([name, must])
    }
  }
})

test('P71 the session may change the password, after which everything is allowed, and sign out', async () => {
  const { BearerToken } = await signIn('next')
  const own = { CurrentPassword: password, NewPassword: password }
  const same = await accounts.post('/password', own, bearer(BearerToken))
  expect(same.status).toBe(400)
  const changed = await accounts.post('/password', { ...own, NewPassword: 'copper-lantern-77' }, bearer(BearerToken))
  expect(changed.status).toBe(200)
  const { BearerToken: token = '' } = changed.json as unknown as Partial<SignedIn>
  expect((await ask(accounts.port, '/users', { headers: bearer(token) })).status).toBe(200)
  expect((await accounts.admin.users.show('next')).mustChangePassword).toBe(false)

  const temp = await signIn('temp')
  const out = await ask(accounts.port, '/auth', { method: 'DELETE', headers: bearer(temp.BearerToken) })
  expect(out.status).toBe(200)
  expect((await ask(accounts.port, '/auth', { headers: bearer(temp.BearerToken) })).status).toBe(401)
})

test('P71 a key of such a user works on: it is no password', async () => {
  const { secret } = await accounts.admin.keys.create({ name: 'of-temp', userName: 'temp' }, by)
  expect((await ask(accounts.port, '/users', { headers: bearer(secret) })).status).toBe(200)
})

test('P71 a password that an earlier version or another Admin sets ends it, and a rehash does not', async () => {
  const mustChange = async () => (await accounts.admin.users.show('kept')).mustChangePassword
  // The sign-in stores another hash of the same password if the cost has changed.
  await signIn('kept')
  expect(await mustChange()).toBe(true)
  await accounts.admin.users.passwd('kept', 'copper-lantern-77', by)
  expect(await mustChange()).toBe(false)
  await accounts.admin.users.passwd('kept', 'silver-kettle-31', by, { MustChangePassword: true })
  expect(await mustChange()).toBe(true)
  const [entry] = await accounts.admin.audit.list({ limit: 1 })
  expect([entry?.event, entry?.after]).toEqual(['password.changed', '{"mustChange":true}'])
})

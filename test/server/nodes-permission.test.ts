import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Accounts, bearer, by, password, startAccounts } from './accounts.ts'
import { ask } from './site.ts'

/** As a proxy relays a caller of another machine. */
const far = { 'x-forwarded-for': '203.0.113.9' }

let site: Accounts
const keys = new Map<string, string>()
beforeAll(async () => {
  site = await startAccounts()
  const users = {
    operator: { roles: ['Ops'] },
    monitoring: { permissions: ['health'] },
    database: { permissions: ['health:Sql'] },
    agent: { permissions: ['heartbeat'] },
  }
  for (const [userName, grants] of Object.entries(users)) {
    await site.admin.users.add({ userName, password, ...grants }, by)
    keys.set(userName, (await site.admin.keys.create({ name: userName, userName }, by)).secret)
  }
  keys.set('Ann', (await site.signIn()).BearerToken)
})
afterAll(() => site.close())

const request = async (who: string | undefined, path: string, body?: object) => {
  const key = who === undefined ? undefined : keys.get(who)
  return await ask(site.port, path, {
    method: body ? 'POST' : 'GET',
    headers: {
      ...far,
      ...(key ? bearer(key) : {}),
      ...(body ? { 'content-type': 'application/json' } : {}),
      accept: 'application/json',
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
}

// 409: they may, but a server with an embedded store has no nodes.
test.for([
  [undefined, 401, 401],
  ['agent', 403, 403],
  ['database', 403, 403],
  ['monitoring', 409, 403],
  ['operator', 409, 403],
  ['Ann', 409, 409],
] as const)('W4 who may read and forget nodes at a server: %s gets %i and %i', async ([who, read, forget]) => {
  const got = await request(who, '/nodes')
  expect(got.status).toBe(read)
  expect((await request(who, '/nodes/forget', { Name: 'node-b' })).status).toBe(forget)
  if (read === 409) expect(got.text).toContain('several nodes need a PostgreSQL store')
})

test('W4 no page of another site reads the nodes', async () => {
  const { status } = await ask(site.port, '/nodes', { headers: { 'sec-fetch-site': 'cross-site' } })
  expect(status).toBe(403)
})

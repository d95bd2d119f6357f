import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Accounts, bearer, by, password, type SignedIn, startAccounts } from './accounts.ts'
import { ask, type Got } from './site.ts'

let site: Accounts
let ann: SignedIn
let ned: SignedIn
beforeAll(async () => {
  site = await startAccounts()
  ann = await site.signIn()
  ned = await site.signIn({ UserName: 'Ned' })
})
afterAll(() => site.close())

const assign = (body: unknown, headers: Record<string, string> = bearer(ann.BearerToken)): Promise<Got> =>
  site.post('/assignroles', body, headers)
const unassign = (body: unknown, headers: Record<string, string> = bearer(ann.BearerToken)): Promise<Got> =>
  site.post('/unassignroles', body, headers)

let number = 0
let someone = ''
/** Each test has its own user, so that none inherits the roles of another. */
beforeEach(async () => {
  number += 1
  someone = `user-${number}`
  await site.admin.users.add({ userName: someone }, by)
})

describe.each(['/assignroles', '/unassignroles', '/json/reply/AssignRoles', '/api/UnAssignRoles'])('O1 %s', (path) => {
  const status = ({ status: code, json }: Got) => [code, json.ResponseStatus?.ErrorCode, json.ResponseStatus?.Message]

  test('O1 an unreadable body is reported first, then the caller, then the request', async () => {
    const headers = { 'content-type': 'application/json' }
    const unreadable = await ask(site.port, path, { method: 'POST', headers, body: '{"UserName":' })
    expect(status(unreadable).slice(0, 2)).toEqual([400, 'SerializationException'])
    expect(status(await site.post(path, {}))).toEqual([401, 'Unauthorized', 'Not Authenticated'])
    const stale = await site.post(path, { UserName: 'nobody' }, bearer('svc_at_stale'))
    expect(status(stale)).toEqual([401, 'Unauthorized', 'Not Authenticated'])
    const asNed = bearer(ned.BearerToken)
    expect(status(await site.post(path, {}, asNed))).toEqual([403, 'Forbidden', 'Invalid Role'])
    expect(status(await site.post(path, { UserName: 'nobody' }, asNed))).toEqual([403, 'Forbidden', 'Invalid Role'])
    const asAnn = bearer(ann.BearerToken)
    const nameless = await site.post(path, { Roles: ['x'] }, asAnn)
    expect(status(nameless)).toEqual([400, 'ArgumentNullException', 'Value cannot be null.'])
    expect(nameless.json.ResponseStatus?.Errors[0]?.FieldName).toBe('UserName')
    expect(status(await site.post(path, { UserName: 'nobody' }, asAnn))).toEqual([404, 'NotFound', 'nobody'])
    expect((await site.post(path, { UserName: someone }, asAnn)).status).toBe(200)
  })

  test('O7 every error carries empty lists beside the ResponseStatus', async () => {
    for (const got of [
      await ask(site.port, path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '[' }),
      await site.post(path, {}),
      await site.post(path, {}, bearer(ned.BearerToken)),
      await site.post(path, {}, bearer(ann.BearerToken)),
      await site.post(path, { UserName: 'nobody' }, bearer(ann.BearerToken)),
    ]) {
      expect(Object.keys(got.json)).toEqual(['AllRoles', 'AllPermissions', 'ResponseStatus'])
      expect([got.json['AllRoles'], got.json['AllPermissions']]).toEqual([[], []])
      expect(got.json.ResponseStatus).toHaveProperty('Errors')
    }
  })

  test('R4 a link cannot change roles', async () => {
    const got = await ask(site.port, `${path}?UserName=${someone}&Roles=x`, { headers: bearer(ann.BearerToken) })
    expect(got.status).toBe(405)
    expect(got.headers.allow).toBe('POST, OPTIONS')
  })
})

describe('the answer to a change', () => {
  test('O2 lists the complete state after the change, in the order granted, without duplicates', async () => {
    await assign({ UserName: someone, Roles: ['B', 'A', 'B'], Permissions: ['p'] })
    const got = await assign({ UserName: someone.toUpperCase(), Roles: ['C', 'A'] })
    expect(got.text).toBe('{"AllRoles":["B","A","C"],"AllPermissions":["p"]}')
    expect((await unassign({ UserName: someone, Roles: ['A', 'b'] })).json).toEqual({
      AllRoles: ['B', 'C'],
      AllPermissions: ['p'],
    })
  })

  test('O2 a blank role is a 400 naming the list', async () => {
    const got = await assign({ UserName: someone, Roles: ['x'], Permissions: [' '] })
    expect([got.status, got.json.ResponseStatus?.Errors.map(({ FieldName }) => FieldName)]).toEqual([
      400,
      ['Permissions'],
    ])
    expect((await assign({ UserName: someone })).json['AllRoles']).toEqual([])
  })

  test.each([
    ['application/x-www-form-urlencoded', (name: string) => `UserName=${name}&Roles=a,b&Permissions=p`],
    ['application/x-www-form-urlencoded', (name: string) => `UserName=${name}&Roles=a&Roles=b&Permissions=[p]`],
    ['text/csv', (name: string) => `UserName,Roles,Permissions\r\n${name},"[a,b]",[p]\r\n`],
    [
      'multipart/form-data; boundary=b',
      (name: string) =>
        ['UserName', 'Roles', 'Permissions']
          .map(
            (field, i) => `--b\r\nContent-Disposition: form-data; name="${field}"\r\n\r\n${[name, 'a,b', 'p'][i]}\r\n`,
          )
          .join('')
          .concat('--b--\r\n'),
    ],
  ])('N6 lists arrive as %s', async (type, body) => {
    const headers = { 'content-type': type, ...bearer(ann.BearerToken) }
    const got = await ask(site.port, '/assignroles', { method: 'POST', headers, body: body(someone) })
    expect(got.json).toEqual({ AllRoles: ['a', 'b'], AllPermissions: ['p'] })
  })

  test('S4 too many roles, and a name too long, are a 400 naming the field', async () => {
    const many = await assign({ UserName: someone, Roles: Array.from({ length: 257 }, (_, i) => `r${i}`) })
    const long = await assign({ UserName: someone, Roles: ['r'.repeat(129)] })
    for (const got of [many, long]) {
      expect([got.status, got.json.ResponseStatus?.Errors[0]?.FieldName]).toEqual([400, 'Roles'])
    }
  })

  test('O6 the last Admin remains, and the audit records who changed what from which address', async () => {
    const last = await unassign({ UserName: 'Ann', Roles: ['Admin'] })
    expect([last.status, last.json.ResponseStatus?.ErrorCode, last.json['AllRoles']]).toEqual([409, 'Conflict', []])
    const headers = { ...bearer(ann.BearerToken), 'x-correlation-id': 'audit-1' }
    await assign({ UserName: someone, Roles: ['Reader'], Meta: { reason: 'ticket 7' } }, headers)
    const [entry] = await site.admin.audit.list({ limit: 1 })
    expect(entry).toMatchObject({
      who: 'Ann',
      address: '127.0.0.1',
      target: someone,
      correlationId: 'audit-1',
      reason: 'ticket 7',
    })
    expect(entry?.before).not.toContain('Reader')
    expect(entry?.after).toContain('Reader')
  })
})

describe('credentials from before a change', () => {
  /** Somebody signed in, by every means that there is. */
  async function presenting(userName: string): Promise<readonly Record<string, string>[]> {
    const { BearerToken, SessionId, cookie } = await site.signIn({ UserName: userName })
    const remembered = await site.signIn({ UserName: userName, RememberMe: true })
    const { secret } = await site.admin.keys.create({ name: `key of ${userName}`, userName }, by)
    return [
      bearer(BearerToken),
      bearer(secret),
      { 'x-ss-id': SessionId },
      { cookie },
      { cookie: remembered.cookie },
      { cookie: `ss-tok=${BearerToken}` },
    ]
  }
  const statuses = async (ways: readonly Record<string, string>[]): Promise<readonly number[]> =>
    await Promise.all(ways.map(async (headers) => (await assign({ UserName: 'Ned' }, headers)).status))
  const all = (status: number): readonly number[] => Array.from({ length: 6 }, () => status)

  test('O5 a grant and a revocation apply to every credential from the next request on', async () => {
    await site.admin.users.passwd(someone, password, by)
    const ways = await presenting(someone)
    expect(await statuses(ways)).toEqual(all(403))
    await assign({ UserName: someone, Roles: ['Admin'] })
    expect(await statuses(ways)).toEqual(all(200))
    await unassign({ UserName: someone, Roles: ['Admin'] })
    expect(await statuses(ways)).toEqual(all(403))
  })

  test('T2 a disabled user is anonymous from the next request on', async () => {
    await site.admin.users.passwd(someone, password, by)
    await assign({ UserName: someone, Roles: ['Admin'] })
    const ways = await presenting(someone)
    expect(await statuses(ways)).toEqual(all(200))
    await site.admin.users.disable(someone, by)
    expect(await statuses(ways)).toEqual(all(401))
  })

  test('T2 a new password ends every credential from before it', async () => {
    await site.admin.users.passwd(someone, password, by)
    await assign({ UserName: someone, Roles: ['Admin'] })
    const [token = {}, , id = {}] = await presenting(someone)
    await site.admin.users.passwd(someone, `${password}-anew`, by)
    expect(await statuses([token, id])).toEqual([401, 401])
  })

  test('O5 an Admin that gives the role away is refused at once', async () => {
    await site.admin.users.passwd(someone, password, by)
    await assign({ UserName: someone, Roles: ['Admin'] })
    const { cookie } = await site.signIn({ UserName: someone })
    expect((await unassign({ UserName: someone, Roles: ['Admin'] }, { cookie })).status).toBe(200)
    expect((await assign({ UserName: someone, Roles: ['Admin'] }, { cookie })).status).toBe(403)
  })
})

test('F2 a role change is never wrapped for a script', async () => {
  const got = await site.post('/assignroles?callback=cb', { UserName: someone }, { cookie: ann.cookie })
  expect(got.text).toBe('{"AllRoles":[],"AllPermissions":[]}')
})

test('a store that another process holds is a 503 with Retry-After that discloses nothing and changes nothing', async () => {
  const other = new DatabaseSync(site.store)
  try {
    other.exec('BEGIN IMMEDIATE')
    const order: string[] = []
    const inOrder = async <T>(name: string, answer: Promise<T>): Promise<T> => {
      const result = await answer
      order.push(name)
      return result
    }
    // The other process holds the store until after the answer, so svc gives up by itself, and answers others meanwhile.
    const [got, live] = await Promise.all([
      inOrder('assign', assign({ UserName: someone, Roles: ['Late'] })),
      inOrder('livez', ask(site.port, '/livez')),
    ])
    expect(order).toEqual(['livez', 'assign'])
    expect([got.status, got.json.ResponseStatus?.ErrorCode, live.status]).toEqual([503, 'ServiceUnavailable', 200])
    expect(Number(got.headers['retry-after'])).toBeGreaterThan(0)
    expect(got.text).not.toContain(site.store)
  } finally {
    other.exec('ROLLBACK')
    other.close()
  }
  expect((await assign({ UserName: someone })).json['AllRoles']).toEqual([])
})

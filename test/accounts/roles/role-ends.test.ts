import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openAccess, Paces, passwordsOfProcess } from '../../../src/core/accounts/auth/index.ts'
import { expiryOf } from '../../../src/core/accounts/roles/expiry.ts'
import { beyondOwnEnd } from '../../../src/core/accounts/roles/limits.ts'
import { type AssignRoles, readGrants } from '../../../src/core/protocol/index.ts'
import type { Call, Credential, Service } from '../../../src/core/protocol/service/service.ts'
import { localService } from '../../../src/core/service/local.ts'
import type { Data, Grant } from '../../../src/core/store/index.ts'
import { openData } from '../../../src/core/store/index.ts'
import { placeStore } from '../../support/store/embedded.ts'
import { cheapHash } from '../../support/suite/cheap-hash.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'
import { bearer, faultOf, from, password, session } from '../auth/fixture.ts'

const hour = 3_600_000
/** Ten, less than the life of an access token. */
const minutes = 600_000
const start = Date.parse('2026-11-28T10:00:00Z')

let folder = ''
let data: Data
let service: Service
let now = start
const by = { who: 'local:test', correlationId: 'test' }

/** The Service over a store whose clock the test moves: Ann is Admin permanently, Bob holds nothing. */
beforeEach(async () => {
  now = start
  folder = temporaryFolder()
  const store = join(folder, 'store', 'svc.db')
  placeStore(store)
  data = await openData({ store, create: false, now: () => now })
  const passwords = passwordsOfProcess(cheapHash)
  const passwordHash = await passwords.hash(password, new AbortController().signal)
  const user = { email: undefined, displayName: undefined, passwordHash, roles: [], permissions: [] }
  await data.users.add({ ...user, userName: 'Ann', roles: ['Admin'] }, by)
  await data.users.add({ ...user, userName: 'Bob' }, by)
  const access = openAccess({ data, passwords, paces: new Paces(), now: () => now })
  const accounts = async () => ({ data, access })
  // Nothing but accounts is asked of it.
  service = localService({ accounts } as Parameters<typeof localService>[0])
})
afterEach(() => data.close())

const over = (credential?: Credential, more: Partial<Call> = {}): Call => from('192.0.2.1', { credential, ...more })
const here: Call = { ...over(), caller: { kind: 'local', account: 'alice' } }
const signIn = async (UserName: string) => {
  const {
    BearerToken = '',
    SessionId = '',
    Meta,
  } = await service.authenticate({ UserName, Password: password }, over())
  return { token: bearer(BearerToken), session: session(SessionId), Meta }
}
const assign = (Meta: AssignRoles['Meta'], more: Partial<AssignRoles> = {}, call = here) =>
  service.assignRoles({ UserName: 'Bob', Roles: ['Deploy'], ...(Meta ? { Meta } : {}), ...more }, call)
const endsOf = async (name = 'Bob') =>
  ((await data.users.find(name))?.grants ?? []).map(({ name, endsAt }) => [name, endsAt])

describe('the end of an assignment', () => {
  test.each([
    ['2026-11-28T12:00:00Z', 2 * hour],
    ['2026-11-28T13:00:00+01:00', 2 * hour],
    ['2026-11-28T12:00:00.0000000Z', 2 * hour],
    ['2026-11-28t12:00z', 2 * hour],
    ['PT2H', 2 * hour],
    ['P1DT30M', 24.5 * hour],
    ['PT3S', 3_000],
    [' PT2H ', 2 * hour],
  ])('O8 Meta.expires %s is an instant or a duration in ISO 8601, and the answer repeats it', async (expires, ms) => {
    const answer = await assign({ expires })
    expect(answer).toEqual({ AllRoles: ['Deploy'], AllPermissions: [], Meta: { expires } })
    expect(await endsOf()).toEqual([['Deploy', start + ms]])
  })

  test.each([
    '',
    ' ',
    'tomorrow',
    '2h',
    '1732788000000',
    '/Date(1795867200000)/',
    '2026-11-28',
    '2026-11-28T12:00:00',
    '2026-02-30T12:00:00Z',
    '2026-11-28T25:00:00Z',
    'PT0S',
    '-PT2H',
    'P1Y',
    'P1000000D',
    '2026-11-28T10:00:00Z',
    '2020-01-01T00:00:00Z',
    'null',
  ])('O8 an unreadable or past Meta.expires is a 400 that names it and changes nothing: %j', async (expires) => {
    const fault = await faultOf(assign({ expires }))
    expect([fault.status, fault.details.fields?.map(({ FieldName }) => FieldName)]).toEqual([400, ['Meta.expires']])
    expect(await endsOf()).toEqual([])
  })

  test('O8 the key counts in any letter case: a mistyped one must not grant permanently', async () => {
    await assign({ Expires: 'PT2H' })
    expect(await endsOf()).toEqual([['Deploy', start + 2 * hour]])
    expect((await faultOf(assign({ expires: 'PT2H', EXPIRES: 'PT3H' }))).details.fields?.[0]?.FieldName).toBe(
      'Meta.expires',
    )
  })

  test('O8 an end without a role, and an end of a removal, are a 400 that names Meta.expires', async () => {
    const bob = (await signIn('Bob')).token
    for (const work of [
      () => assign({ expires: 'PT2H' }, { Roles: [] }),
      () => service.unAssignRoles({ UserName: 'Bob', Roles: ['Deploy'], Meta: { expires: 'PT2H' } }, here),
      () => service.giveBackRoles({ Roles: ['Deploy'], Meta: { expires: 'PT2H' } }, over(bob)),
    ]) {
      const fault = await faultOf(work())
      expect([fault.status, fault.details.fields?.[0]?.FieldName]).toEqual([400, 'Meta.expires'])
    }
  })

  test('O8 an assignment without an end leaves one alone and says so; never removes it', async () => {
    await assign({ expires: 'PT2H', reason: 'INC-1' })
    const again = await assign(undefined, { Roles: ['Deploy', 'Ops'] })
    const deploy = { kind: 'role', name: 'Deploy', endsAt: start + 2 * hour, grantedAt: start, reason: 'INC-1' }
    expect(readGrants(again.Meta?.['svc.grants'])).toEqual([{ ...deploy, grantedBy: 'local:alice' }])
    expect(await endsOf()).toEqual([
      ['Deploy', start + 2 * hour],
      ['Ops', undefined],
    ])
    expect((await assign({ expires: 'never' })).Meta).toEqual({ expires: 'never' })
    expect(await endsOf()).toEqual([
      ['Deploy', undefined],
      ['Ops', undefined],
    ])
  })

  test('O8 permissions end like roles', async () => {
    await assign({ expires: 'PT2H' }, { Roles: [], Permissions: ['orders:read'] })
    now += 2 * hour
    expect((await data.users.find('Bob'))?.permissions).toEqual([])
  })

  test('O8 the only permanent Admin gets no end: 409', async () => {
    await assign({ expires: 'PT2H' }, { Roles: ['Admin'] })
    const fault = await faultOf(assign({ expires: 'PT2H' }, { UserName: 'Ann', Roles: ['Admin'] }))
    expect([fault.status, fault.message]).toEqual([409, 'The only permanent Admin cannot get an end'])
  })

  test('O8 an extension moves an end that exists to a later one, and nothing else', async () => {
    const extend = (expires: string, more: Partial<AssignRoles> = {}) => assign({ expires, 'svc.extends': '1' }, more)
    const refused = async (work: Promise<unknown>) => {
      const { status, details } = await faultOf(work)
      return [status, details.fields?.[0]?.FieldName]
    }
    expect(await refused(extend('PT2H'))).toEqual([409, 'Roles'])
    await assign({ expires: 'PT2H' })
    await extend('PT3H')
    expect(await endsOf()).toEqual([['Deploy', start + 3 * hour]])
    expect(await refused(extend('PT1H'))).toEqual([409, 'Roles'])
    await assign({ expires: 'never' })
    expect(await refused(extend('PT9H'))).toEqual([409, 'Roles'])
    expect(await refused(assign({ 'svc.extends': '1' }))).toEqual([400, 'Meta.expires'])
    await assign({ expires: 'PT1H' })
    now += hour
    expect(await refused(extend('PT9H'))).toEqual([409, 'Roles'])
    expect(await endsOf()).toEqual([])
  })
})

describe('a role that has ended', () => {
  test('O8 is refused at the next request, with the token, the session and the key issued before', async () => {
    await assign({ expires: 'PT10M' }, { Roles: ['Admin'] })
    const bob = await signIn('Bob')
    const credentials = [bob.token, bob.session]
    const question = (credential: Credential) => service.assignRoles({ UserName: 'Ann', Roles: [] }, over(credential))
    for (const credential of credentials) expect((await question(credential)).AllRoles).toEqual(['Admin'])
    now += minutes - 1
    for (const credential of credentials) expect((await question(credential)).AllRoles).toEqual(['Admin'])
    now += 1
    for (const credential of credentials) {
      const { status, message } = await faultOf(question(credential))
      expect([status, message]).toEqual([403, 'Invalid Role'])
      expect((await service.authenticate({}, over(credential, { verb: 'GET' }))).Roles).toEqual([])
    }
  })

  test('O8 is refused although the clock goes back', async () => {
    await assign({ expires: 'PT10M' }, { Roles: ['Admin'] })
    const { token } = await signIn('Bob')
    const question = () => service.assignRoles({ UserName: 'Ann', Roles: [] }, over(token))
    now += minutes
    expect((await faultOf(question())).status).toBe(403)
    now -= minutes
    expect((await faultOf(question())).status).toBe(403)
  })

  test('O8 a sign-in and the question who is signed in say when roles end, by whom and why', async () => {
    await data.users.changeGrants(
      (await data.users.find('Bob'))?.id ?? '',
      { add: { roles: ['Ops'], permissions: [] }, remove: { roles: [], permissions: [] } },
      by,
    )
    expect((await signIn('Bob')).Meta).toBeUndefined()
    await assign({ expires: 'PT10M', reason: 'INC-1' }, {}, over((await signIn('Ann')).token))
    const bob = await signIn('Bob')
    const deploy = { kind: 'role', name: 'Deploy', endsAt: start + minutes, grantedAt: start, grantedBy: 'Ann' }
    expect(readGrants(bob.Meta?.['svc.grants'])).toEqual([{ ...deploy, reason: 'INC-1' }])
    const who = await service.authenticate({}, over(bob.token, { verb: 'GET' }))
    expect(who.Meta).toEqual(bob.Meta)
    now += minutes
    expect((await service.authenticate({}, over(bob.token, { verb: 'GET' }))).Meta).toBeUndefined()
  })
})

describe('giving back', () => {
  test('O8 a user removes own roles without being Admin, and nothing of others', async () => {
    await assign({ expires: 'PT1H' }, { Roles: ['Deploy', 'Ops'], Permissions: ['p'] })
    const { token } = await signIn('Bob')
    const answer = await service.giveBackRoles({ Roles: ['Deploy'], Permissions: ['p', 'q'] }, over(token))
    expect(answer).toEqual({ AllRoles: ['Ops'], AllPermissions: [] })
    const [entry] = await data.audit.list({ limit: 1 })
    expect(entry).toMatchObject({ event: 'roles.changed', who: 'Bob', target: 'Bob' })
    expect(await endsOf('Ann')).toEqual([['Admin', undefined]])
  })

  test('O8 is refused for the last Admin, in another letter case, without a sign-in and with a key', async () => {
    const ann = (await signIn('Ann')).token
    const refused = async (call: Call, ...Roles: readonly string[]) =>
      (await faultOf(service.giveBackRoles({ Roles }, call))).fault
    expect(await refused(over(ann), 'Admin')).toBe('Conflict')
    expect(await refused(over(ann), 'admin')).toBe('Conflict')
    expect(await refused(over(), 'Admin')).toBe('Unauthorized')
    expect(await refused(here, 'Admin')).toBe('Usage')
    expect(await endsOf('Ann')).toEqual([['Admin', undefined]])
  })
})

describe('pure decisions', () => {
  const grant = (name: string, endsAt?: number): Grant => ({
    kind: 'role',
    name,
    endsAt,
    grantedAt: 0,
    grantedBy: 'a',
    reason: undefined,
  })
  const edits = (added: readonly Grant[], changed: readonly Grant[] = []) => ({ removed: [], added, changed })

  test('O8 an Admin for a time grants until the own end, and no Admin', () => {
    expect(beyondOwnEnd(edits([grant('Ops')]), 1_000, 1_000)).toEqual([])
    for (const end of [1_001, 'never', undefined] as const) {
      expect(beyondOwnEnd(edits([grant('Ops')]), end, 1_000)[0]?.FieldName).toBe('Meta.expires')
      expect(beyondOwnEnd(edits([], [grant('Ops', 1)]), end, 1_000)[0]?.FieldName).toBe('Meta.expires')
      expect(beyondOwnEnd(edits([grant('Admin')]), end, 1_000)[0]?.FieldName).toBe('Roles')
      expect(beyondOwnEnd(edits([]), end, 1_000)).toEqual([])
    }
    expect(beyondOwnEnd(edits([grant('Admin')]), 500, 1_000)[0]?.FieldName).toBe('Roles')
  })

  test('O8 without the entry there is no end', () => {
    expect([expiryOf(undefined, 1), expiryOf({}, 1), expiryOf({ expire: 'PT1H' }, 1)]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })
})

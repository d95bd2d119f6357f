import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { operations } from '../../src/core/protocol/index.ts'
import { commands } from '../../src/registry.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { isQuick } from '../support/suite/tier.ts'
import { type Accounts, bearer, by, password, startAccounts } from './accounts.ts'
import { ask, type Got } from './site.ts'

const hour = 3_600_000
const inOneHour = new Date(Date.now() + hour).toISOString()
const later = new Date(Date.now() + hour + 60_000).toISOString()
const earlier = new Date(Date.now() + hour / 2).toISOString()

type Change = {
  readonly UserName: string
  readonly Roles?: readonly string[]
  readonly Permissions?: readonly string[]
  readonly Meta?: Readonly<Record<string, string>>
}

/** Changes that would last longer than Tim's own Admin, or make an Admin. */
const grants: Readonly<Record<string, Omit<Change, 'UserName'>>> = {
  'a role without an end': { Roles: ['Ops'] },
  'a permission without an end': { Permissions: ['orders'] },
  'a role for ever': { Roles: ['Ops'], Meta: { expires: 'never' } },
  'a role for longer': { Roles: ['Ops'], Meta: { expires: later } },
  'a role for longer, as a duration': { Roles: ['Ops'], Meta: { expires: 'P300D' } },
  'a role for longer, in another letter case': { Roles: ['Ops'], Meta: { EXPIRES: later } },
  'a role for longer, far to the west': { Roles: ['Ops'], Meta: { expires: earlier.replace('Z', '-23:59') } },
  'a permission for longer': { Permissions: ['orders'], Meta: { expires: later } },
  'Admin within the own end': { Roles: ['Admin'], Meta: { expires: earlier } },
  'Admin for longer': { Roles: ['Admin'], Meta: { expires: later } },
  'Admin for ever': { Roles: ['Admin'], Meta: { expires: 'never' } },
  'Admin beside another role': { Roles: ['Ops', 'Admin'], Meta: { expires: earlier } },
}
const targets = ['Tim', 'Tom', 'Ned', 'Ann'] as const

const text = (list: readonly string[] = []): string => `[${list.join(',')}]`
const metaText = (meta: Change['Meta'] = {}): string =>
  `{${Object.entries(meta)
    .map(([key, value]) => `${key}:"${value}"`)
    .join(',')}}`
const formOf = (change: Change): URLSearchParams =>
  new URLSearchParams({
    UserName: change.UserName,
    ...(change.Roles ? { Roles: text(change.Roles) } : {}),
    ...(change.Permissions ? { Permissions: text(change.Permissions) } : {}),
    ...(change.Meta ? { Meta: metaText(change.Meta) } : {}),
  })
const jsvOf = ({ UserName, Roles, Permissions, Meta }: Change): string =>
  `{UserName:${UserName},Roles:${text(Roles)},Permissions:${text(Permissions)}${Meta ? `,Meta:${metaText(Meta)}` : ''}}`
const csvOf = ({ UserName, Roles, Permissions, Meta }: Change): string => {
  const cell = (value: string): string => `"${value.replaceAll('"', '""')}"`
  const cells = [UserName, text(Roles), text(Permissions), ...(Meta ? [metaText(Meta)] : [])]
  return `UserName,Roles,Permissions${Meta ? ',Meta' : ''}\r\n${cells.map(cell).join(',')}\r\n`
}
type Form = { readonly path: string; readonly type: string; readonly body: (change: Change) => string }
const forms: readonly Form[] = [
  { path: '/assignroles', type: 'application/json', body: JSON.stringify },
  { path: '/ASSIGNROLES.json', type: 'application/json', body: JSON.stringify },
  { path: '/assignroles', type: 'application/x-www-form-urlencoded', body: (change) => formOf(change).toString() },
  { path: '/assignroles.csv', type: 'text/csv', body: csvOf },
  { path: '/json/reply/AssignRoles', type: 'application/json', body: JSON.stringify },
  { path: '/json/oneway/AssignRoles', type: 'application/json', body: JSON.stringify },
  { path: '/jsv/reply/AssignRoles', type: 'application/jsv', body: jsvOf },
  { path: '/api/AssignRoles', type: 'text/plain', body: JSON.stringify },
  { path: '/api/AssignRoles[]', type: 'application/json', body: (change) => JSON.stringify([change]) },
]

const everyRequest = Object.entries(grants).flatMap(([what, grant]) =>
  targets.flatMap((UserName) => forms.map((form) => ({ what, change: { UserName, ...grant }, form }))),
)
/** In the quick tier each grant, each target, each form and each credential, and in the slow one all of them with each other. */
const requests = isQuick() ? everyRequest.filter((_, at) => at % 5 === 0) : everyRequest

describe('O8 an Admin for a time', () => {
  let site: Accounts
  let credentials: readonly (readonly [name: string, headers: Readonly<Record<string, string>>])[]
  let refusals = 0
  beforeAll(async () => {
    site = await startAccounts({ basic: true })
    const ann = bearer((await site.signIn()).BearerToken)
    for (const name of ['Tim', 'Tom']) {
      await site.admin.users.add({ userName: name, password }, by)
      const request = { UserName: name, Roles: ['Admin'], Meta: { expires: inOneHour } }
      expect((await site.post('/assignroles', request, ann)).status).toBe(200)
    }
    const tim = await site.signIn({ UserName: 'Tim' })
    const key = await site.admin.keys.create({ name: 'tim', userName: 'Tim' }, by)
    credentials = [
      ['a token', bearer(tim.BearerToken)],
      ['a session', { 'x-ss-id': tim.SessionId }],
      ['cookies', { cookie: tim.cookie }],
      ['a key', bearer(key.secret)],
      ['a password', { authorization: `Basic ${Buffer.from(`Tim:${password}`).toString('base64')}` }],
    ]
  })
  afterAll(() => site.close())

  /** Everything that could outlast Tim: grants, users, keys and identities. */
  const rights = (): unknown => {
    const database = new DatabaseSync(site.store, { timeout: 5_000, readOnly: true })
    try {
      return ['grants', 'users', 'apiKeys', 'identities', 'names'].map((table) =>
        database.prepare(`SELECT * FROM "${table}" ORDER BY 1`).all(),
      )
    } finally {
      database.close()
    }
  }
  const send = (form: Form, change: Change, headers: Readonly<Record<string, string>>): Promise<Got> =>
    ask(site.port, form.path, {
      method: 'POST',
      headers: { 'content-type': form.type, accept: 'application/json', ...headers },
      body: form.body(change),
    })

  test('O8 grants nothing beyond the own end and makes no Admin, in every form and with every credential', async () => {
    const before = rights()
    for (const [turn, { what, change, form }] of requests.entries()) {
      const [credential, headers] = credentials[turn % credentials.length] ?? ['', {}]
      const { status, text } = await send(form, change, headers)
      // A permanent Admin who is to be one for ever stays one: nothing would change.
      const changesNothing = what === 'Admin for ever' && change.UserName === 'Ann'
      const why = `${what} for ${change.UserName}, ${form.path} as ${form.type}, with ${credential}: ${text}`
      expect(status, why).toBe(changesNothing ? 200 : 403)
      if (!changesNothing) refusals += 1
    }
    expect(rights()).toEqual(before)
    expect(refusals).toBeGreaterThanOrEqual(requests.length - forms.length)
  })

  test('O8 is told which field is wrong and until when the own role lasts', async () => {
    const [, headers] = credentials[0] ?? ['', {}]
    const { json } = await site.post('/assignroles', { UserName: 'Ned', Roles: ['Ops'] }, headers)
    expect(json).toMatchObject({
      AllRoles: [],
      ResponseStatus: {
        ErrorCode: 'Forbidden',
        Message: `'Meta.expires' must be ${inOneHour} or earlier: your own role Admin ends then, and nothing that you grant may last longer`,
        Errors: [{ FieldName: 'Meta.expires' }],
      },
    })
  })

  test('O8 grants what ends by then, and removes what a permanent Admin may remove, but not the only permanent Admin', async () => {
    const [, headers] = credentials[0] ?? ['', {}]
    const granted = await site.post(
      '/assignroles',
      { UserName: 'Ned', Roles: ['Ops'], Meta: { expires: inOneHour } },
      headers,
    )
    expect([granted.status, granted.json.AllRoles]).toEqual([200, ['Ops']])
    expect((await site.post('/unassignroles', { UserName: 'Ned', Roles: ['Ops'] }, headers)).status).toBe(200)
    expect((await site.post('/unassignroles', { UserName: 'Ann', Roles: ['Admin'] }, headers)).status).toBe(409)
  })

  test('O8 other operations take no rights, whatever fields a request has', async () => {
    const before = rights()
    const extra = {
      UserName: 'Tim',
      Roles: ['Admin'],
      Permissions: ['all'],
      Meta: { expires: 'never' },
      UserId: 'x',
      IsAdmin: true,
      endsAt: null,
    }
    let turn = 0
    for (const { name, routes } of Object.values(operations)) {
      const ends = ['Authenticate', 'EndSession', 'DisableUser', 'RemoveUser', 'UnlinkUser', 'EnableUser', 'UnlockUser']
      if (['AssignRoles', 'UnAssignRoles', 'GiveBackRoles', ...ends].includes(name)) continue
      for (const path of [routes[0].path.replace(/\{\w+\}/, 'x'), `/json/reply/${name}`]) {
        const [one] = credentials.slice(turn++ % credentials.length)
        for (const [, headers] of isQuick() && one ? [one] : credentials) await site.post(path, extra, headers)
      }
    }
    for (const [, headers] of credentials.slice(0, 3)) {
      await site.post('/auth/credentials', { ...extra, Password: password }, headers)
      await site.post('/roles/give-back', { ...extra, Roles: [], Permissions: [] }, headers)
    }
    expect(rights()).toEqual(before)
  })

  test('O8 no key of the user lasts longer, whoever makes it', async () => {
    const key = (name: string, more: object) => site.admin.keys.create({ name, userName: 'Tim', ...more }, by)
    const ends = [await key('k1', {}), await key('k2', { roles: ['Admin'] }), await key('k3', { lifetime: 60_000 })]
    for (const { key: made } of ends) expect(made.expiresAt?.getTime()).toBeLessThanOrEqual(Date.parse(inOneHour))
    for (const more of [{ lifetime: 2 * hour }, { roles: ['Admin'], lifetime: 2 * hour }]) {
      await expect(key('late', more)).rejects.toMatchObject({ fault: 'BadRequest' })
    }
  })

  test('O8 no command creates users, passwords, keys or links at a server', async () => {
    const home: Home = temporaryHome()
    const tim = await site.signIn({ UserName: 'Tim' })
    const before = rights()
    const at = ['--server', `http://127.0.0.1:${site.port}`]
    const own = Object.keys(commands).filter((id) => /^(?:users|keys|audit):|^(?:backup|restore)$/.test(id))
    expect(own.length).toBeGreaterThan(10)
    for (const id of own) {
      const words = [...id.split(':'), 'Ann', '--user', 'Tim', '--role', 'Admin', ...at]
      const { code } = await home.run(words, { env: { SVC_TOKEN: tim.BearerToken }, stdin: `${password}\n` })
      // A mistake in the command line, or the refusal of the server.
      expect([id, code === 2 || code === 5]).toEqual([id, true])
    }
    const assign = ['roles', 'assign', 'Ned', '--role', 'Ops', ...at]
    for (const more of [[], ['--permanent'], ['--for', '2h'], ['--until', later]]) {
      const ran = await home.run([...assign, ...more], { env: { SVC_TOKEN: tim.BearerToken } })
      expect([more, ran.code, ran.stderr]).toEqual([more, 5, expect.stringContaining('your own role Admin ends')])
    }
    expect(rights()).toEqual(before)
  })
})

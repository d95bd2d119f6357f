import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { looksLikeAdmin } from '../../src/core/base/names.ts'
import { type Accounts, bearer, by, type SignedIn, startAccounts } from './accounts.ts'

let site: Accounts
let ann: SignedIn
beforeAll(async () => {
  site = await startAccounts()
  ann = await site.signIn()
})
afterAll(() => site.close())

let number = 0
let someone = ''
/** Each test has its own user, so that none inherits the roles of another. */
beforeEach(async () => {
  number += 1
  someone = `user-${number}`
  await site.admin.users.add({ userName: someone }, by)
})

const unreadable = [
  ['a zero-width space', 'Ops\u200b'],
  ['a zero-width joiner', 'O\u200dps'],
  ['a byte order mark', '\ufeffOps'],
  ['a soft hyphen', 'O\u00adps'],
  ['a right-to-left override', 'Ops\u202enimdA'],
  ['a directional isolate', 'Ops\u2066'],
  ['a tab', 'O\tps'],
  ['an escape character', 'Ops\u001b[2J'],
  ['a line break', 'Ops\nAdmin'],
  ['a line separator', 'Ops\u2028'],
  ['a Hangul filler', 'Ops\u3164'],
  ['a combining grapheme joiner', 'O\u034fps'],
  ['a variation selector', 'Ops\ufe0f'],
  ['a tag character', 'Ops\u{e0041}'],
  ['a blank Braille pattern', 'Ops\u2800'],
  ['a space before it', ' Ops'],
  ['a no-break space after it', 'Ops\u00a0'],
] as const

describe.each(['Roles', 'Permissions'])('O2 %s', (list) => {
  test.each(unreadable)('O2 a name with %s is a 400 that names the list, wherever it is assigned', async (_, name) => {
    const change = { UserName: someone, [list]: ['Fine', name] }
    const batch = '/api/AssignRoles[]'
    for (const [path, body] of [
      ['/assignroles', change],
      ['/json/reply/AssignRoles', change],
      [batch, [change]],
    ] as const) {
      const got = await site.post(path, body, bearer(ann.BearerToken))
      expect([path, got.status, got.json.ResponseStatus?.Errors[0]?.FieldName]).toEqual([path, 400, list])
    }
    const field = list === 'Roles' ? 'roles' : 'permissions'
    const added = site.admin.users.add({ userName: `new-${number}`, [field]: [name] }, by)
    await expect(added).rejects.toMatchObject({ fault: 'BadRequest' })
    expect(await site.admin.roles.show(someone)).toMatchObject({ roles: [], permissions: [] })
  })

  test.each(unreadable.slice(0, 15))('O3 a stored name with %s can be removed', async (_, name) => {
    const { id } = await site.admin.roles.show(someone)
    const store = new DatabaseSync(site.store)
    const insert = store.prepare('INSERT INTO "grants" ("userId", "kind", "name") VALUES (?, ?, ?)')
    insert.run(id, list === 'Roles' ? 'role' : 'permission', name)
    store.close()
    const got = await site.post('/unassignroles', { UserName: someone, [list]: [name] }, bearer(ann.BearerToken))
    expect(got).toMatchObject({ status: 200, json: { AllRoles: [], AllPermissions: [] } })
  })
})

const lookalikes = [
  'admin',
  'ADMIN',
  '\u0410dmin',
  'Adm\u0456n',
  '\uff21\uff44\uff4d\uff49\uff4e',
  '\u{1d400}\u{1d41d}\u{1d426}\u{1d422}\u{1d427}',
  '\u00c1dmin',
  'Adm\u0131n',
  'Adm1n',
  'Admln',
  'Adrnin',
  '\u0391DM\u0399\u039d',
  '\u13aadmin',
] as const

describe('names that look like Admin', () => {
  test.each(lookalikes)('O2 %s is assigned, grants nothing, and the audit log warns of it', async (role) => {
    const got = await site.post('/assignroles', { UserName: someone, Roles: [role] }, bearer(ann.BearerToken))
    expect(got).toMatchObject({ status: 200, json: { AllRoles: [role] } })
    expect(Object.keys(got.json)).toEqual(['AllRoles', 'AllPermissions'])
    const [entry] = await site.admin.audit.list({ limit: 1 })
    expect(entry).toMatchObject({ event: 'roles.changed', target: someone })
    expect(JSON.parse(entry?.after ?? '')).toEqual({
      roles: [role],
      permissions: [],
      warning: expect.stringContaining('looks like Admin'),
    })
  })

  test('O2 the audit log also warns of one that a new user gets, and not of one that was there before', async () => {
    await site.admin.users.add({ userName: `new-${number}`, roles: ['\u0410dmin'] }, by)
    const [added] = await site.admin.audit.list({ limit: 1 })
    expect(added?.after).toContain('U+0410')
    await site.post('/assignroles', { UserName: `new-${number}`, Roles: ['Ops'] }, bearer(ann.BearerToken))
    const [changed] = await site.admin.audit.list({ limit: 1 })
    expect(changed?.after).not.toContain('warning')
  })

  test('O2 Admin, its derivatives and other words do not look like it', () => {
    for (const name of ['Admin', 'Admins', 'Administrator', 'Site Admin', 'Ops', 'Adman', 'main', '管理']) {
      expect([name, looksLikeAdmin(name)]).toEqual([name, false])
    }
  })
})

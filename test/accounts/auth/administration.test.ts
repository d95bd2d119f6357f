import { describe, expect, test } from 'vitest'
import { bearer, by, faultOf, openFixture, password } from './fixture.ts'

describe('users', () => {
  test('P4 one answer names each wrong field', async () => {
    const { admin } = await openFixture()
    const fault = await faultOf(
      admin.users.add(
        {
          userName: ' Bob',
          email: 'no address',
          displayName: 'Bob\u202egnp',
          password: 'short',
          roles: ['Editor', ' '],
          permissions: ['Ed\u200bit'],
        },
        by,
      ),
    )
    expect([fault.status, fault.errorCode]).toEqual([400, 'ValidationException'])
    expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual([
      'UserName',
      'Email',
      'DisplayName',
      'Roles',
      'Permissions',
      'Password',
    ])
    expect(JSON.stringify([fault.message, fault.details])).not.toContain('short')
    expect(await admin.users.list()).toHaveLength(1)
  })

  test.each([
    ['nothing', ''],
    ['blanks', '   '],
    ['129 characters', 'x'.repeat(129)],
    ['a control character', 'Bo\u0007b'],
    ['a line break', 'Bo\nb'],
    ['an invisible character', 'Bo\u200bb'],
    ['half a character', 'Bo\ud800b'],
    ['a blank at the end', 'Bob '],
    ['an account of this machine', 'local:alice'],
    ['such an account in capitals', 'LOCAL:alice'],
    ['nobody', '-'],
  ])('P8 %s is not a valid user name', async (_, userName) => {
    const { admin } = await openFixture()
    const fault = await faultOf(admin.users.add({ userName }, by))
    expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual(['UserName'])
  })

  test('O4 names and e-mail addresses share one name space, which ignores letter case', async () => {
    const { admin } = await openFixture()
    for (const user of [
      { userName: 'ANN' },
      { userName: 'ann@EXAMPLE.com' },
      { userName: 'Bob', email: 'ANN@example.com' },
    ]) {
      expect((await faultOf(admin.users.add(user, by))).fault).toBe('Conflict')
    }
    await admin.users.add({ userName: 'Zoe\u0301' }, by)
    expect((await admin.users.show('ZO\u00c9')).userName).toBe('Zo\u00e9')
    expect((await faultOf(admin.users.show('nobody'))).fault).toBe('NotFound')
  })

  test('P4 a new password is checked against the names of its user', async () => {
    const { admin } = await openFixture()
    await admin.users.add({ userName: 'Marguerite', displayName: 'Brightwater', password }, by)
    for (const weak of ['marguerite9', 'brightwater1', 'password1', 'seven77']) {
      const fault = await faultOf(admin.users.passwd('Marguerite', weak, by))
      expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual(['Password'])
      expect(fault.message).not.toContain(weak)
    }
    expect((await admin.users.passwd('marguerite', 'another-lantern-7', by)).hasPassword).toBe(true)
  })

  test('P6 there is no default account: the first Admin is created on the machine', async () => {
    const { admin, data } = await openFixture()
    expect(await data.users.anyAdmin()).toBe(true)
    expect((await faultOf(admin.users.disable('Ann', by))).fault).toBe('Conflict')
    expect((await faultOf(admin.users.remove('Ann', by))).fault).toBe('Conflict')
    await admin.users.add({ userName: 'Bob', roles: ['Admin'] }, by)
    expect((await admin.users.disable('Ann', by)).disabled).toBe(true)
    expect((await faultOf(admin.users.remove('Bob', by))).fault).toBe('Conflict')
    expect((await admin.users.enable('Ann', by)).disabled).toBe(false)
    expect((await admin.users.remove('Bob', by)).userName).toBe('Bob')
    expect((await admin.users.list()).map(({ userName }) => userName)).toEqual(['Ann'])
  })

  test('P7 the description of a user holds no hash', async () => {
    const { admin } = await openFixture()
    const description = JSON.stringify([
      await admin.users.list(),
      await admin.users.show('Ann'),
      await admin.roles.holders('Admin'),
      await admin.audit.list({ limit: 100 }),
    ])
    expect(description).not.toContain('argon2')
    expect(description).toContain('"hasPassword":true')
  })

  test('S10 the audit records each change of users and keys with its author, newest first', async () => {
    const { admin } = await openFixture()
    const alice = { who: 'local:alice', correlationId: 'c-1', reason: 'asked for' }
    const count = async (): Promise<number> => (await admin.audit.list({ limit: 1_000 })).length
    const steps = [
      () => admin.users.add({ userName: 'Bob', password }, alice),
      () => admin.users.passwd('Bob', 'another-lantern-7', alice),
      () => admin.users.disable('Bob', alice),
      () => admin.users.enable('Bob', alice),
      () => admin.users.unlock('Bob', undefined, alice),
      () => admin.keys.create({ name: 'ci', userName: 'Bob' }, alice),
      () => admin.keys.revoke('ci', alice),
      () => admin.users.remove('Bob', alice),
    ]
    for (const step of steps) {
      const before = await count()
      await step()
      const rows = await admin.audit.list({ limit: 1_000 })
      expect(rows.length).toBe(before + 1)
      expect([rows[0]?.who, rows[0]?.correlationId, rows[0]?.reason]).toEqual(['local:alice', 'c-1', 'asked for'])
    }
    const rows = await admin.audit.list({ limit: 3 })
    expect(rows).toHaveLength(3)
    expect(rows.map(({ id }) => id)).toEqual(rows.map(({ id }) => id).toSorted((a, b) => b - a))
    const older = await admin.audit.list({ limit: 3, before: rows[2]?.id })
    expect(older.every(({ id }) => id < (rows[2]?.id ?? 0))).toBe(true)
  })
})

describe('keys', () => {
  test('T1 a key is shown once, works until it is revoked, and its description does not contain it', async () => {
    const { admin, access } = await openFixture()
    const { key, secret } = await admin.keys.create({ name: 'ci', userName: 'ann' }, by)
    expect(key).toMatchObject({ name: 'ci', userName: 'Ann', roles: undefined, revokedAt: undefined })
    expect(JSON.stringify([key, await admin.keys.list()])).not.toContain(secret)
    expect(await access.identify(bearer(secret))).toBeDefined()
    await admin.keys.revoke('ci', by)
    expect(await access.identify(bearer(secret))).toBeUndefined()
    expect((await faultOf(admin.keys.revoke('nothing', by))).fault).toBe('NotFound')
  })

  test('T3 a key expires', async () => {
    const { admin, access, clock } = await openFixture()
    const { secret } = await admin.keys.create({ name: 'ci', userName: 'Ann', lifetime: 1_000 }, by)
    clock.at += 999
    expect(await access.identify(bearer(secret))).toBeDefined()
    clock.at += 1
    expect(await access.identify(bearer(secret))).toBeUndefined()
  })

  test('T2 a key with roles of its own has those of them that its user still has', async () => {
    const { admin, access, data } = await openFixture()
    const { secret } = await admin.keys.create({ name: 'ci', userName: 'Ann', roles: ['Editor'] }, by)
    expect((await access.identify(bearer(secret)))?.roles).toEqual(['Editor'])
    const ann = await data.users.find('Ann')
    const none = { roles: [], permissions: [] }
    await data.users.changeGrants(ann?.id ?? '', { add: none, remove: { ...none, roles: ['Editor'] } }, by)
    expect((await access.identify(bearer(secret)))?.roles).toEqual([])
    const fault = await faultOf(admin.keys.create({ name: 'more', userName: 'Ann', roles: ['Editor'] }, by))
    expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual(['Roles'])
  })

  test.each([
    ['Name', { name: ' ' }],
    ['Name', { name: 'a\u001bb' }],
    ['Roles', { name: 'ci', roles: [''] }],
    ['Lifetime', { name: 'ci', lifetime: 0 }],
    ['Lifetime', { name: 'ci', lifetime: Number.NaN }],
  ])('P8 a key with an invalid %s is refused: %j', async (field, input) => {
    const { admin } = await openFixture()
    const fault = await faultOf(admin.keys.create({ userName: 'Ann', ...input }, by))
    expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual([field])
  })
})

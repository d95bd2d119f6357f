import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import type { Data, Grants, StoredRoleChange } from '../../src/core/store/data.ts'
import { actor, backendsOfTier, faultOf, newUser, nobody, twoNodes } from '../support/store/data-fixture.ts'

const roles = (...names: readonly string[]): Grants => ({ roles: names, permissions: [] })
const assign = (endsAt: StoredRoleChange['endsAt'], ...names: readonly string[]): StoredRoleChange => ({
  add: roles(...names),
  remove: nobody,
  endsAt,
})

describe.each(backendsOfTier())('grants that end, in $name', ({ fresh, start, stop, raw }) => {
  let store = ''
  let data: Data
  let other: Data
  let clock = 1_000
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    clock = 1_000
    ;({ store, data, other } = await twoNodes(fresh, store, () => clock))
  })
  afterEach(async () => {
    await data.close()
    await other.close()
  })

  const bobWith = async (endsAt: StoredRoleChange['endsAt'], ...names: readonly string[]) => {
    const bob = await data.users.add(newUser('bob'), actor())
    await data.users.changeGrants(bob.id, assign(endsAt, ...names), actor('c', { who: 'ann', reason: 'INC-1' }))
    return bob.id
  }
  const rolesOf = async (at: Data, id: string) => (await at.users.byId(id))?.roles
  const endings = async () =>
    (await data.audit.list({ limit: 1_000 })).filter(({ event }) => event === 'roles.ended').toReversed()

  test('O8 a grant carries its end, who granted it, when and why, and holds until that instant on every node', async () => {
    const id = await bobWith(2_000, 'Deploy')
    expect((await other.users.byId(id))?.grants).toEqual([
      { kind: 'role', name: 'Deploy', endsAt: 2_000, grantedAt: 1_000, grantedBy: 'ann', reason: 'INC-1' },
    ])
    clock = 1_999
    expect([await rolesOf(data, id), await rolesOf(other, id)]).toEqual([['Deploy'], ['Deploy']])
    clock = 2_000
    expect([await rolesOf(other, id), await rolesOf(data, id)]).toEqual([[], []])
  })

  test('O8 every read compares the end: by name, session, list, holders, counts, names of roles, Admins', async () => {
    const id = await bobWith(2_000, 'Deploy', 'Admin')
    await data.identities.link(id, { issuer: 'i', subject: 's' }, actor())
    const reads: Readonly<Record<string, (at: Data) => Promise<unknown>>> = {
      find: async (at) => (await at.users.find('BOB'))?.roles,
      identity: async (at) => (await at.identities.find('i', 's'))?.roles,
      list: async (at) => (await at.users.list())[0]?.roles,
      holders: async (at) => (await at.users.holders('Deploy')).map(({ userName }) => userName),
      count: async (at) => await at.users.count('Deploy'),
      roleNames: async (at) => await at.users.roleNames(),
      anyAdmin: async (at) => await at.users.anyAdmin(),
    }
    for (const [name, read] of Object.entries(reads)) {
      clock = 1_999
      const again = assign(2_000, 'Deploy', 'Admin')
      await data.users.changeGrants(id, again, actor())
      const before = await read(other)
      clock = 2_000
      expect([name, before, await read(other)]).toEqual(
        {
          find: [name, ['Deploy', 'Admin'], []],
          identity: [name, ['Deploy', 'Admin'], []],
          list: [name, ['Deploy', 'Admin'], []],
          holders: [name, ['bob'], []],
          count: [name, 1, 0],
          roleNames: [name, ['Admin', 'Deploy'], []],
          anyAdmin: [name, true, false],
        }[name],
      )
    }
  })

  test('O8 an end that was seen is final when the clock goes back, on every node', async () => {
    const id = await bobWith(2_000, 'Deploy')
    clock = 5_000
    expect(await rolesOf(data, id)).toEqual([])
    clock = 1_500
    expect([await rolesOf(data, id), await rolesOf(other, id)]).toEqual([[], []])
    expect(await raw(store, 'SELECT "name" FROM "grants"')).toEqual([])
  })

  test('O8 an end that nobody saw is none: the clock went forward and back in between', async () => {
    const id = await bobWith(2_000, 'Deploy')
    clock = 5_000
    clock = 1_500
    expect(await rolesOf(data, id)).toEqual(['Deploy'])
  })

  test('O8 an end that the store did not accept is final in the process that saw it, and stored as soon as possible', async () => {
    const id = await bobWith(2_000, 'Deploy')
    clock = 2_000
    await raw(store, 'ALTER TABLE "audit" RENAME TO "elsewhere"')
    expect(await rolesOf(data, id)).toEqual([])
    expect(await raw(store, 'SELECT "name" FROM "grants"')).toHaveLength(1)
    clock = 1_500
    expect(await rolesOf(data, id)).toEqual([])
    await raw(store, 'ALTER TABLE "elsewhere" RENAME TO "audit"')
    // A grant that ended is not held: the assignment makes a new one, which counts.
    await data.users.changeGrants(id, assign(undefined, 'Deploy'), actor())
    expect([await rolesOf(data, id), await rolesOf(other, id)]).toEqual([['Deploy'], ['Deploy']])
    expect(await endings()).toHaveLength(1)
  })

  test('O8 the end of a grant is one audit entry, whichever nodes see it and however often', async () => {
    const id = await bobWith(2_000, 'Deploy', 'Ops')
    await data.users.changeGrants(id, { add: { roles: [], permissions: ['p'] }, remove: nobody }, actor())
    clock = 3_000
    const looks = Array.from({ length: 10 }, (_, n) => rolesOf(n % 2 ? data : other, id))
    await Promise.all([...looks, data.sweep(clock), other.sweep(clock), data.users.count('Ops')])
    const ended = (name: string) => ({ kind: 'role', name, endsAt: '1970-01-01T00:00:02.000Z' })
    const entries = (await endings()).map(({ who, target, at, before, after }) => [
      who,
      target,
      at,
      JSON.parse(before ?? ''),
      JSON.parse(after ?? ''),
    ])
    expect(entries).toEqual([
      [
        '-',
        'bob',
        3_000,
        { roles: ['Deploy', 'Ops'], permissions: ['p'], ends: [ended('Deploy'), ended('Ops')] },
        { roles: ['Ops'], permissions: ['p'], ends: [ended('Ops')], ended: ended('Deploy') },
      ],
      [
        '-',
        'bob',
        3_000,
        { roles: ['Ops'], permissions: ['p'], ends: [ended('Ops')] },
        { roles: [], permissions: ['p'], ended: ended('Ops') },
      ],
    ])
  })

  test('O8 the sweep ends grants that nobody looks at', async () => {
    await bobWith(2_000, 'Deploy')
    clock = 1_999
    await data.sweep(clock)
    expect(await endings()).toEqual([])
    clock = 2_000
    await data.sweep(clock)
    expect(await endings()).toHaveLength(1)
  })

  test('O8 the audit of a change has the ends before and after it', async () => {
    const id = await bobWith(2_000, 'Deploy')
    await data.users.changeGrants(id, assign('never', 'Deploy'), actor())
    const [second, first] = await data.audit.list({ limit: 2 })
    const ends = [{ kind: 'role', name: 'Deploy', endsAt: '1970-01-01T00:00:02.000Z' }]
    expect([first?.before, first?.after, second?.before, second?.after].map((text) => JSON.parse(text ?? ''))).toEqual([
      { roles: [], permissions: [] },
      { roles: ['Deploy'], permissions: [], ends },
      { roles: ['Deploy'], permissions: [], ends },
      { roles: ['Deploy'], permissions: [] },
    ])
  })

  test('O8 an assignment without an end leaves an end alone, and writes no entry; never removes it; another moves it', async () => {
    const id = await bobWith(2_000, 'Deploy')
    const end = async () => (await other.users.byId(id))?.grants.map(({ endsAt }) => endsAt)
    const entries = async () => (await data.audit.list({ limit: 100 })).length
    const before = await entries()
    await data.users.changeGrants(id, assign(undefined, 'Deploy'), actor())
    expect([await end(), await entries()]).toEqual([[2_000], before])
    await data.users.changeGrants(id, assign(3_000, 'Deploy'), actor())
    expect(await end()).toEqual([3_000])
    await data.users.changeGrants(id, assign('never', 'Deploy'), actor())
    expect(await end()).toEqual([undefined])
    await data.users.changeGrants(id, assign(1_500, 'Deploy'), actor())
    expect([await end(), await entries()]).toEqual([[1_500], before + 3])
  })

  test('O8 the only permanent Admin gets no end and stays, whatever Admins for a time there are', async () => {
    const root = await data.users.add(newUser('root', roles('Admin')), actor())
    const bob = await bobWith(9_000, 'Admin')
    const unassign = { add: nobody, remove: roles('Admin') }
    for (const work of [
      () => data.users.changeGrants(root.id, assign(5_000, 'Admin'), actor()),
      () => data.users.changeGrants(root.id, unassign, actor()),
      () => data.users.setDisabled(root.id, true, actor()),
      () => data.users.remove(root.id, actor()),
    ]) {
      expect((await faultOf(work())).fault).toBe('Conflict')
    }
    await data.users.changeGrants(bob, assign('never', 'Admin'), actor())
    await data.users.changeGrants(root.id, assign(5_000, 'Admin'), actor())
    expect((await faultOf(data.users.changeGrants(bob, unassign, actor()))).message).toBe(
      'The only permanent Admin cannot lose Admin',
    )
    await data.users.changeGrants(root.id, unassign, actor())
    expect((await faultOf(data.users.changeGrants(bob, unassign, actor()))).message).toBe(
      'The last Admin cannot lose Admin',
    )
  })

  test('O8 two permanent Admins who get an end at once: one keeps Admin', async () => {
    for (let round = 0; round < 5; round += 1) {
      const [a, b] = [
        await data.users.add(newUser(`a${round}`, roles('Admin')), actor()),
        await data.users.add(newUser(`b${round}`, roles('Admin')), actor()),
      ]
      for (const one of await data.users.list())
        if (one.id !== a.id && one.id !== b.id) await data.users.remove(one.id, actor())
      const outcomes = await Promise.allSettled([
        data.users.changeGrants(a.id, assign(9_000, 'Admin'), actor()),
        other.users.changeGrants(b.id, assign(9_000, 'Admin'), actor()),
      ])
      expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    }
  })

  test('O8 a key of an Admin for a time ends with the role at the latest', async () => {
    const id = await bobWith(5_000, 'Admin', 'Deploy')
    const key = (name: string, more: object = {}) =>
      data.keys.add({ name, hash: name, userId: id, roles: undefined, expiresAt: undefined, ...more }, actor())
    expect((await key('all')).expiresAt).toBe(5_000)
    expect((await key('admin', { roles: ['Admin'], expiresAt: 4_000 })).expiresAt).toBe(4_000)
    expect((await key('deploy', { roles: ['Deploy'] })).expiresAt).toBeUndefined()
    const late = await faultOf(key('late', { expiresAt: 5_001 }))
    expect([late.fault, late.details.fields?.[0]?.FieldName]).toEqual(['BadRequest', 'ExpiresInMs'])
    await data.users.add(newUser('root', roles('Admin')), actor())
    await data.users.changeGrants(id, assign('never', 'Admin'), actor())
    expect((await key('permanent')).expiresAt).toBeUndefined()
    await expect(key('all')).rejects.toBeInstanceOf(Fault)
  })

  test('O8 grants of an earlier version are permanent, and an earlier version can go on granting', async () => {
    const id = await bobWith(undefined, 'Deploy')
    await raw(store, `INSERT INTO "grants" ("userId", "kind", "name") VALUES ('${id}', 'role', 'Old')`)
    clock = 9_000_000_000_000
    expect(await rolesOf(data, id)).toEqual(['Deploy', 'Old'])
    expect((await data.users.byId(id))?.grants[1]).toEqual({
      kind: 'role',
      name: 'Old',
      endsAt: undefined,
      grantedAt: undefined,
      grantedBy: undefined,
      reason: undefined,
    })
  })
})

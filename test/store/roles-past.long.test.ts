import { randomInt } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RolesAt } from '../../src/core/store/audit/index.ts'
import type { Data } from '../../src/core/store/index.ts'
import { PastTable } from '../../src/core/store/rows/past-table.ts'
import { actor, backends, newUser, twoNodes } from '../support/store/data-fixture.ts'

const names = ['Admin', 'Ops', 'Deploy', 'ops']
const users = ['ann', 'ben', 'cem', 'dan', 'eve']
const pick = <T>(values: readonly T[]): T => values[randomInt(values.length)] as T
const some = (): readonly string[] => names.filter(() => randomInt(2) === 0)

async function rolesAt({ audit }: Data, time: number) {
  using table = new PastTable()
  const past = new RolesAt({ time, lastId: await audit.lastOfRoles(time) }, table)
  for (let after: number | undefined = 0; after !== undefined; ) {
    const { entries, next } = await audit.ofRoles(after)
    for (const entry of entries) past.add(entry)
    after = next
  }
  const end = past.end()
  return { ...end, users: [...end.users] }
}
type State = readonly (readonly [
  name: string,
  disabled: boolean,
  roles: readonly string[],
  permissions: readonly string[],
])[]
const sorted = (state: State): State => state.toSorted(([a], [b]) => (a < b ? -1 : 1))

describe.each(backends)('roles of the past on $name', ({ name, start, fresh, stop }) => {
  const operations = name === 'SQLite' ? 1_000 : 150
  let store = ''
  let clock = 0
  let data: Data
  let other: Data
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    clock = 1_000_000
    ;({ store, data, other } = await twoNodes(fresh, store, () => clock))
  })
  afterEach(() => Promise.all([data.close(), other.close()]))

  /** One random change by one of two nodes. What is refused changes nothing. */
  async function change(): Promise<void> {
    const { users: on } = pick([data, other])
    const user = await on.find(pick(users))
    if (!user) {
      await on.add(newUser(pick(users), { roles: some(), permissions: some() }), actor()).catch(() => {})
      return
    }
    const grants = () => ({ roles: some(), permissions: some() })
    const works = [
      () => on.changeGrants(user.id, { add: grants(), remove: grants() }, actor()),
      () => on.changeGrants(user.id, { add: grants(), remove: grants() }, actor()),
      () => on.changeGrants(user.id, { add: grants(), remove: grants() }, actor()),
      () => on.setDisabled(user.id, !user.disabled, actor()),
      () => on.remove(user.id, actor()),
      () => data.audit.write('signin.failed', user.userName, actor()),
      () => on.setPassword(user.id, 'hash', actor()),
    ]
    await pick<() => Promise<unknown>>(works)().catch(() => {})
  }
  const now = async (): Promise<State> =>
    sorted((await data.users.list()).map((user) => [user.userName, user.disabled, user.roles, user.permissions]))

  test(`O9 the roles that the audit says were held are those of the store after each of ${operations} random operations`, {
    timeout: 120_000,
  }, async () => {
    const states: { readonly at: number; readonly state: State }[] = []
    for (let n = 0; n < operations; n += 1) {
      clock += randomInt(1, 50)
      await change()
      states.push({ at: clock, state: await now() })
    }
    expect(states.filter(({ state }) => state.length > 2).length).toBeGreaterThan(operations / 10)
    for (const { at, state } of states) {
      const { users: then, ...rest } = await rolesAt(data, at)
      expect(rest).toMatchObject({ completeFrom: undefined, lacksBeginning: undefined, restored: undefined })
      expect(sorted(then.map((user) => [user.userName, user.disabled, user.roles, user.permissions]))).toEqual(state)
    }
  })
})

describe('roles of the past', () => {
  const ids = Array.from({ length: 100 }, (_, n) => n + 1).values()
  const entry = (at: number, event: string, target: string | undefined, before?: object, after?: object) => ({
    id: ids.next().value ?? 0,
    at,
    event,
    target,
    before: before && JSON.stringify(before),
    after: after && JSON.stringify(after),
  })
  const lists = (...roles: string[]) => ({ roles, permissions: [] })
  const ends = (at: number) => ({ ends: [{ kind: 'role', name: 'Deploy', endsAt: new Date(at).toISOString() }] })
  const at = (time: number, ...entries: ReturnType<typeof entry>[]) => {
    const past = new RolesAt({ time, lastId: entries.findLast((each) => each.at <= time)?.id })
    for (const each of entries) past.add(each)
    return past.end()
  }
  const rolesOf = (past: ReturnType<RolesAt['end']>) =>
    Object.fromEntries([...past.users].map(({ userName, roles }) => [userName, roles]))

  test('O9 a role that ends by itself is not held from its end on, with and without the entry of its end', () => {
    const entries = [
      entry(1_000, 'user.added', 'ann', undefined, lists('Ops')),
      entry(2_000, 'roles.changed', 'ann', lists('Ops'), { ...lists('Ops', 'Deploy'), ...ends(5_000) }),
    ]
    expect(rolesOf(at(4_999, ...entries))).toEqual({ ann: ['Ops', 'Deploy'] })
    expect(rolesOf(at(5_000, ...entries))).toEqual({ ann: ['Ops'] })
    const ended = entry(7_000, 'roles.ended', 'ann', { ...lists('Ops', 'Deploy'), ...ends(5_000) }, lists('Ops'))
    const next = entry(8_000, 'roles.changed', 'ann', lists('Ops'), lists())
    for (const [time, roles] of [
      [6_000, ['Ops']],
      [7_500, ['Ops']],
      [8_000, []],
    ] as const) {
      expect(at(time, ...entries, ended, next)).toMatchObject({ completeFrom: undefined, lacksBeginning: undefined })
      expect(rolesOf(at(time, ...entries, ended, next))).toEqual({ ann: roles })
      expect(rolesOf(at(time, ...entries, next))).toEqual({ ann: roles })
    }
  })
  test('O9 a removed end makes the role permanent', () => {
    const entries = [
      entry(1_000, 'user.added', 'ann', undefined, { ...lists('Deploy'), ...ends(5_000) }),
      entry(2_000, 'roles.changed', 'ann', { ...lists('Deploy'), ...ends(5_000) }, lists('Deploy')),
    ]
    expect(rolesOf(at(9_000, ...entries))).toEqual({ ann: ['Deploy'] })
  })
  test('O9 an audit that began later than its users says what they held from its beginning on, and that it does not know more', () => {
    const past = at(5_000, entry(6_000, 'roles.changed', 'ann', lists('Ops'), lists()))
    expect(rolesOf(past)).toEqual({ ann: ['Ops'] })
    expect(past.lacksBeginning).toBe(6_000)
  })
  test('O9 entries that contradict each other show from when on the audit is complete', () => {
    const past = at(
      9_000,
      entry(1_000, 'user.added', 'ann', undefined, lists('Ops')),
      entry(3_000, 'roles.changed', 'ann', lists('Ops', 'Admin'), lists('Ops')),
    )
    expect(rolesOf(past)).toEqual({ ann: ['Ops'] })
    expect(past.completeFrom).toBe(3_000)
  })
  test('O9 the time between a backup and its restore is not covered, and the times before and after are', () => {
    const entries = [
      entry(1_000, 'user.added', 'ann', undefined, lists('Ops')),
      entry(9_000, 'store.restored', undefined, undefined, { auditEntries: 4 }),
      entry(9_500, 'roles.changed', 'ann', lists('Ops'), lists()),
    ]
    expect(at(999, ...entries).restored).toBeUndefined()
    expect(at(5_000, ...entries).restored).toMatchObject({ from: 1_000, until: 9_000 })
    expect(at(9_000, ...entries).restored).toBeUndefined()
    expect(rolesOf(at(9_000, ...entries))).toEqual({ ann: ['Ops'] })
  })
  test('O9 the latest of two moments counts that a clock that was set back has shown', () => {
    const entries = [
      entry(9_000, 'user.added', 'ann', undefined, lists('Ops')),
      entry(3_000, 'user.added', 'ben', undefined, lists('Ops')),
    ]
    expect(rolesOf(at(4_000, ...entries))).toEqual({ ann: ['Ops'], ben: ['Ops'] })
  })
})

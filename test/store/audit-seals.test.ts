import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { headText, readHead, verifyStore } from '../../src/core/store/audit/index.ts'
import { refusalsKeptMs } from '../../src/core/store/audit-events.ts'
import type { Data } from '../../src/core/store/index.ts'
import { actor, backendsOfTier, newUser, nobody, twoNodes } from '../support/store/data-fixture.ts'

const dayMs = 86_400_000
const roles = (...names: string[]) => ({ roles: names, permissions: [] })

describe.each(backendsOfTier())('the seals of the audit on $name', ({ name, start, fresh, raw, stop }) => {
  let store = ''
  let clock = 0
  let data: Data
  let other: Data
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    clock = 1_000 * dayMs
    ;({ store, data, other } = await twoNodes(fresh, store, () => clock))
  })
  afterEach(() => Promise.all([data.close(), other.close()]))

  const sealed = async (on = data): Promise<string> => {
    const { head } = await on.audit.seal()
    return head ? headText(head) : ''
  }
  const verdict = async (head?: string) =>
    await verifyStore(data.audit, { now: clock, refusalsKeptMs, head: head === undefined ? undefined : readHead(head) })
  const problems = async (head?: string) =>
    (await verdict(head)).problems.map(({ seal, kind, sentence }) => `${seal} ${kind}: ${sentence}`)
  /** Users with roles, in seals of a second each. */
  async function history(changes = 4): Promise<readonly string[]> {
    const heads: string[] = []
    const { id } = await data.users.add(newUser('ann'), actor())
    for (let n = 0; n < changes; n += 1) {
      clock += 1_000
      await (n % 2 ? data : other).users.changeGrants(id, { add: roles(`r${n}`), remove: nobody }, actor())
      heads.push(await sealed(n % 2 ? other : data))
    }
    return heads
  }

  test('S13 the entries of all nodes are in one chain, each in one seal, and the chain is intact', async () => {
    const heads = await history()
    expect(heads.map((head) => head.split(':')[0])).toEqual(['1', '2', '3', '4'])
    expect(await verdict()).toMatchObject({ problems: [], seals: 4, entries: 5, unsealed: 0, entriesBefore: 1 })
    expect(await raw(store, 'SELECT "id", "seal" FROM "audit" ORDER BY "id"')).toEqual(
      [1, 1, 2, 3, 4]
        .map((seal, n) => ({ id: expect.anything(), seal: name === 'SQLite' ? seal : `${seal}`, n }))
        .map(({ n: _, ...row }) => row),
    )
  })
  test('S13 nodes that seal at once make one chain, and a second node does nothing within the second', async () => {
    const { id } = await data.users.add(newUser('ann'), actor())
    for (let round = 0; round < 10; round += 1) {
      await other.users.changeGrants(id, { add: roles(`r${round}`), remove: nobody }, actor())
      await Promise.all([sealed(data), sealed(other), sealed(data)])
    }
    expect(await verdict()).toMatchObject({ problems: [], entries: 11, unsealed: 0 })
    await other.users.changeGrants(id, { add: roles('late'), remove: nobody }, actor())
    clock += 500
    expect(await data.audit.seal({ unlessNewerThanMs: 900 })).toMatchObject({ entries: 0, isAll: false })
    clock += 500
    expect(await data.audit.seal({ unlessNewerThanMs: 900 })).toMatchObject({ entries: 1, isAll: true })
  })
  test('S13 a changed entry shows as an edit at its seal', async () => {
    await history()
    await raw(store, `UPDATE "audit" SET "who" = 'mallory' WHERE "seal" = 2`)
    expect(await problems()).toEqual([expect.stringMatching(/^2 edit: entry \d+ was changed$/)])
  })
  test('S13 a deleted entry shows as a deletion at its seal', async () => {
    await history()
    await raw(store, 'DELETE FROM "audit" WHERE "seal" = 3')
    expect(await problems()).toEqual([expect.stringMatching(/^3 deletion: entry \d+ is missing$/)])
  })
  test('S13 entries that have exchanged their contents show as a swap', async () => {
    await history()
    const [first, second] = await raw(store, 'SELECT * FROM "audit" WHERE "seal" IN (2, 4) ORDER BY "id"')
    const set = (row: Record<string, unknown> = {}) =>
      ['at', 'correlationId', 'before', 'after'].map((column) => `"${column}" = '${row[column]}'`).join(', ')
    await raw(store, `UPDATE "audit" SET ${set(second)} WHERE "id" = ${first?.['id']}`)
    await raw(store, `UPDATE "audit" SET ${set(first)} WHERE "id" = ${second?.['id']}`)
    expect(await problems()).toEqual([
      `2 swap: entry ${first?.['id']} has the content of entry ${second?.['id']}`,
      `4 swap: entry ${second?.['id']} has the content of entry ${first?.['id']}`,
    ])
  })
  test('S13 an entry that was added by hand shows as an insertion, wherever it was added', async () => {
    await history()
    clock += 2 * dayMs
    await raw(
      store,
      `INSERT INTO "audit" ("at", "event", "who", "correlationId") VALUES (${clock - dayMs}, 'roles.changed', 'eve', 'c')`,
    )
    expect(await problems()).toEqual([expect.stringMatching(/^4 insertion: entry \d+ is in no seal/)])
    await sealed()
    expect(await problems()).toHaveLength(1)
    await raw(store, `UPDATE "audit" SET "seal" = 2 WHERE "who" = 'eve'`)
    expect(await problems()).toEqual([expect.stringMatching(/^2 insertion: entry \d+ is not in seal 2/)])
  })
  test('S13 an entry that was added between others, as svc would mark it, shows as an insertion', async () => {
    await history()
    await raw(store, `DELETE FROM "audit" WHERE "seal" = 2`)
    const [row] = await raw(store, 'SELECT min("id") AS "id" FROM "audit" WHERE "seal" = 3')
    clock += dayMs
    const columns = '("id", "at", "event", "who", "correlationId", "seal")'
    const overriding = name === 'SQLite' ? '' : 'OVERRIDING SYSTEM VALUE'
    await raw(
      store,
      `INSERT INTO "audit" ${columns} ${overriding}
        VALUES (${Number(row?.['id']) - 1}, ${clock - 2 * dayMs}, 'roles.changed', 'eve', 'c', 0)`,
    )
    await sealed()
    expect(await problems()).toEqual([
      expect.stringMatching(/^2 edit|^2 deletion/),
      expect.stringMatching(/^5 seal: entry \d+ is in two seals$/),
      expect.stringMatching(/^5 insertion: entry \d+ was added after later entries were sealed$/),
    ])
  })
  test('S13 a changed, a missing and an exchanged seal break the chain', async () => {
    await history()
    await raw(store, `UPDATE "auditSeals" SET "at" = "at" + 1 WHERE "number" = 2`)
    expect(await problems()).toEqual([expect.stringMatching(/^2 seal: seal 2 does not match its hash/)])
    await raw(store, `UPDATE "auditSeals" SET "at" = "at" - 1 WHERE "number" = 2`)
    expect(await problems()).toEqual([])
    await raw(
      store,
      `UPDATE "auditSeals" SET "number" = CASE "number" WHEN 2 THEN -3 ELSE -2 END WHERE "number" IN (2, 3)`,
    )
    await raw(store, `UPDATE "auditSeals" SET "number" = -"number" WHERE "number" < 0`)
    expect((await problems()).slice(0, 2)).toEqual([
      expect.stringMatching(/^2 seal: seal 2 does not match its hash/),
      expect.stringMatching(/^3 seal: seal 3 does not match its hash/),
    ])
    await raw(store, `DELETE FROM "auditSeals" WHERE "number" = 2`)
    expect((await problems())[0]).toBe('2 deletion: seal 2 is missing')
  })
  test('S13 a cut end shows only against a head that was kept elsewhere', async () => {
    const heads = await history()
    await raw(store, 'DELETE FROM "audit" WHERE "seal" > 2')
    await raw(store, 'DELETE FROM "auditSeals" WHERE "number" > 2')
    expect(await verdict()).toMatchObject({ problems: [], head: readHead(heads[1] ?? '') })
    expect(await problems(heads[1])).toEqual([])
    expect(await problems(heads[3])).toEqual([
      expect.stringMatching(/^2 cut: the chain ends at seal 2, and the head 4:/),
    ])
    // Whoever has cut the end writes it again.
    const { id } = (await data.users.find('ann')) ?? { id: '' }
    for (const role of ['x', 'y']) {
      await data.users.changeGrants(id, { add: roles(role), remove: nobody }, actor())
      await sealed()
    }
    expect(await problems()).toEqual([])
    expect(await problems(heads[3])).toEqual([expect.stringMatching(/^4 cut: seal 4 is not the one of the head/)])
  })
  test('S13 seals that were cut without their entries show without a head', async () => {
    await history()
    await raw(store, 'DELETE FROM "auditSeals" WHERE "number" > 2')
    expect(await problems()).toEqual([
      expect.stringMatching(/^2 cut: entry \d+ was in seal 3, which is missing/),
      expect.stringMatching(/^2 cut: entry \d+ was in seal 4, which is missing/),
    ])
  })
  test('S13 refusals are deleted after 90 days with all of their seal, and the chain stays intact', async () => {
    await history(1)
    await data.audit.write('signin.failed', 'bob', actor())
    clock += dayMs
    await data.audit.write('signin.locked', 'bob', actor())
    await sealed()
    const refusals = async () =>
      (await data.audit.list({ limit: 100 })).filter(({ event }) => event.startsWith('signin')).length
    clock += 89.5 * dayMs
    await data.users.add(newUser('later'), actor())
    await sealed()
    await data.sweep(clock)
    expect(await refusals()).toBe(2)
    clock += dayMs
    await data.sweep(clock)
    expect(await refusals()).toBe(0)
    expect(await raw(store, `SELECT "number" FROM "auditSeals" WHERE "refusals" IS NULL`)).toHaveLength(1)
    expect(await verdict()).toMatchObject({ problems: [], pruned: 0, entries: 3 })
  })
  test('S13 refusals that are missing before their time show as a deletion', async () => {
    await history(1)
    await data.audit.write('signin.failed', 'bob', actor())
    await sealed()
    clock += 30 * dayMs
    await raw(store, `DELETE FROM "audit" WHERE "event" = 'signin.failed'`)
    expect(await problems()).toEqual([expect.stringMatching(/^2 deletion: entry \d+ is missing/)])
    await raw(store, `UPDATE "auditSeals" SET "refusals" = NULL WHERE "number" = 2`)
    expect(await problems()).toEqual(['2 deletion: the refusals of seal 2 are missing before their time'])
  })
  test('S13 a change that is marked as an old refusal is not deleted without a trace', async () => {
    await history(2)
    await raw(store, `UPDATE "auditSeals" SET "refusalsUntil" = 1 WHERE "number" = 2`)
    await raw(store, `DELETE FROM "audit" WHERE "seal" = 2`)
    expect((await problems())[0]).toMatch(/^2 seal: seal 2 does not match its hash/)
  })
  test('S13 entries of a version before are sealed within a day of the first seal, and then no longer', async () => {
    const old = (at: number) =>
      raw(store, `INSERT INTO "audit" ("at", "event", "who", "correlationId") VALUES (${at}, 'signin.ok', 'old', 'c')`)
    await old(1_000)
    await old(2_000)
    await sealed()
    await old(3_000)
    clock += dayMs - 1
    expect(await sealed()).toMatch(/^2:/)
    expect(await verdict()).toMatchObject({ problems: [], entries: 3, entriesBefore: 3 })
    await old(4_000)
    clock += 1
    expect(await sealed()).toMatch(/^2:/)
    expect(await problems()).toEqual([expect.stringMatching(/^2 insertion/)])
  })
})

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { maySilence } from '../../src/core/protocol/index.ts'
import { RolesAt } from '../../src/core/store/audit/index.ts'
import { type Data, openData } from '../../src/core/store/index.ts'
import { actor, backendsOfTier, newUser, nobody } from '../support/store/data-fixture.ts'

/** The schema before the step that renames the permission. */
const before = 13
/** More than the rows that one transaction of the step renames. */
const many = 1_200

describe.each(backendsOfTier())(
  'the permission quiet of earlier versions, in $name',
  ({ name, fresh, start, stop, raw }) => {
    let store = ''
    let data: Data
    beforeAll(start)
    afterAll(stop)
    beforeEach(async () => {
      store = await fresh()
      data = await openData({ store, create: true })
    })
    afterEach(() => data.close())

    /** Opens the store after it had the schema of the version before: the step changes rows only. */
    const upgraded = async (): Promise<void> => {
      await data.close()
      const header = name === 'SQLite' ? `; PRAGMA user_version = ${before}` : ''
      await raw(
        store,
        `ALTER TABLE "users" DROP COLUMN "temporaryHash"; DROP TABLE "leases"; UPDATE "meta" SET "version" = ${before}${header}`,
      )
      data = await openData({ store, create: false })
    }
    const stored = async (): Promise<readonly string[]> =>
      (await raw(store, `SELECT "kind", "name" FROM "grants" ORDER BY "seq"`)).map(
        (row) => `${row['kind']} ${row['name']}`,
      )
    const keyWith = (userId: string, permissions: readonly string[]) =>
      data.keys.add({ name: 'pager', hash: 'h', userId, roles: undefined, permissions, expiresAt: undefined }, actor())
    const add = async (permissions: readonly string[], roles: readonly string[] = []): Promise<string> =>
      (await data.users.add(newUser('ann', { roles, permissions }), actor())).id

    test('M8 an upgrade renames the permission quiet at users and keys, with its end, and no role and no other permission', async () => {
      const id = await add(['quiet', 'health', 'quietly'], ['quiet'])
      await raw(store, `UPDATE "grants" SET "endsAt" = 9000000000000 WHERE "kind" = 'permission' AND "name" = 'quiet'`)
      const others = ['heartbeat:quiet', 'a,"quiet"', '["quiet"', 'x"quiet']
      await keyWith(id, ['health', 'quiet', ...others])
      await upgraded()
      expect(await stored()).toEqual(['role quiet', 'permission silence', 'permission health', 'permission quietly'])
      const grants = (await data.users.byId(id))?.grants
      expect(grants?.find(({ kind, name }) => kind === 'permission' && name === 'silence')?.endsAt).toBe(9e12)
      const [key] = await raw(store, `SELECT "permissions" FROM "apiKeys"`)
      expect(JSON.parse(String(key?.['permissions']))).toEqual(['health', 'silence', ...others])
      expect((await data.keys.find('h'))?.permissions).toEqual(['health', 'silence', ...others])
    })

    test('M8 an upgrade renames the permission of any number of users, and keeps both names where a user has both', async () => {
      await raw(
        store,
        `WITH RECURSIVE "all" ("n") AS (SELECT 1 UNION ALL SELECT "n" + 1 FROM "all" WHERE "n" < ${many})
        INSERT INTO "users" ("id", "userName", "nameKey", "disabled", "createdAt", "epoch")
        SELECT 'u' || "n", 'u' || "n", 'u' || "n", 0, 1, 0 FROM "all"`,
      )
      await raw(
        store,
        `INSERT INTO "grants" ("userId", "kind", "name") SELECT "id", 'permission', 'quiet' FROM "users"`,
      )
      await raw(store, `INSERT INTO "grants" ("userId", "kind", "name") VALUES ('u7', 'permission', 'silence')`)
      await upgraded()
      const names = await raw(store, `SELECT "name", count(*) AS "n" FROM "grants" GROUP BY "name" ORDER BY "name"`)
      expect(names.map((row) => [row['name'], Number(row['n'])])).toEqual([
        ['quiet', 1],
        ['silence', many],
      ])
      expect((await data.users.byId('u7'))?.permissions).toEqual(['silence'])
    })

    test('M8 what a node of an earlier version grants by the former name counts as silence, gets an end and is removed as that', async () => {
      const id = await add(['quiet', 'silence', 'health'])
      await keyWith(id, ['quiet'])
      const ann = await data.users.byId(id)
      expect(ann?.permissions).toEqual(['silence', 'health'])
      expect(
        [ann, await data.keys.find('h')].map((one) => maySilence({ roles: [], permissions: one?.permissions ?? [] })),
      ).toEqual([true, true])
      const silence = { roles: [], permissions: ['silence'] }
      const bounded = await data.users.changeGrants(id, { add: silence, remove: nobody, endsAt: 9e12 }, actor())
      expect(bounded.after.grants.map(({ name: one, endsAt }) => [one, endsAt])).toEqual([
        ['silence', 9e12],
        ['silence', 9e12],
        ['health', undefined],
      ])
      expect((await data.users.byId(id))?.grants).toEqual(bounded.after.grants)
      const { after } = await data.users.changeGrants(id, { add: nobody, remove: silence }, actor())
      expect(after.permissions).toEqual(['health'])
      expect(await stored()).toEqual(['permission health'])
    })

    test('M8 O9 entries of earlier versions tell of the permission by its present name, which leaves no gap in the audit log', async () => {
      const id = await add(['silence'])
      await raw(store, `UPDATE "audit" SET "after" = replace("after", 'silence', 'quiet')`)
      const ops = { roles: ['Ops'], permissions: [] }
      await data.users.changeGrants(id, { add: ops, remove: nobody }, actor())
      const past = new RolesAt({ time: Date.now(), lastId: Number.POSITIVE_INFINITY })
      for (const entry of (await data.audit.ofRoles(0)).entries) past.add(entry)
      const { users, completeFrom } = past.end()
      expect([[...users][0]?.permissions, completeFrom]).toEqual([['silence'], undefined])
    })

    test('M8 silences are stored with the word of earlier versions, whose nodes read them', async () => {
      const [from, until] = [1, 9e12]
      const entry = { what: 'silence', id: 'a', monitors: ['*'], from, until, by: 'ann', reason: 'x' } as const
      await data.silences.add([entry], actor())
      const [row] = await raw(store, `SELECT "body" FROM "quiets"`)
      expect(JSON.parse(String(row?.['body']))).toEqual({ ...entry, what: 'quiet' })
      expect(await data.silences.list()).toEqual([entry])
    })
  },
)

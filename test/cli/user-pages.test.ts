import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, expect, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'

/** More than two pages. */
const count = 2_500
const home = temporaryHome()
beforeAll(async () => {
  expect((await home.run(['users', 'add', 'ann', '--role', 'Admin', '--no-password'])).code).toBe(0)
  const database = new DatabaseSync(join(home.folder, 'store', 'svc.db'))
  database.exec(`
    BEGIN;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
    INSERT INTO "users" ("id", "userName", "nameKey", "disabled", "createdAt", "epoch")
      SELECT 'u' || i, printf('User%04d', i), printf('user%04d', i), 0, 0, 0 FROM n;
    INSERT INTO "grants" ("userId", "kind", "name") SELECT "id", 'role', 'Ops' FROM "users";
    INSERT INTO "apiKeys" ("id", "name", "hash", "userId", "createdAt") SELECT "id", "userName", "id", "id", 0 FROM "users";
    INSERT INTO "grants" ("userId", "kind", "name") SELECT "id", 'role', 'Few' FROM "users" WHERE "userName" LIKE '%7';
    COMMIT`)
  database.close()
})

const everybody = ['ann', ...Array.from({ length: count - 1 }, (_, at) => `User${String(at + 1).padStart(4, '0')}`)]
const few = everybody.filter((name) => name.endsWith('7'))

test.each([
  ['users list', everybody],
  ['roles holders Ops', everybody],
  ['roles holders Few', few],
])('W11 svc %s has every user once, in the order of the names, in each format', async (line, names) => {
  const args = line.split(' ')
  const json = await home.run([...args, '--json'])
  const { users } = JSON.parse(json.stdout) as { users: readonly { userName: string; roles: readonly string[] }[] }
  expect(users.map(({ userName }) => userName)).toEqual(names)
  expect(users.at(-1)?.roles).toContain('Ops')
  const records = (await home.run(args)).stdout.trim().split('\n')
  const at = records[0]?.split('\t').indexOf('UserName') ?? -1
  expect(records.slice(1).map((record) => record.split('\t')[at])).toEqual(names)
  const table = await home.run(args, { columns: 100 })
  expect(table.stdout.split('\n')[0]).toContain(`${names.length} users`)
  expect(table.stdout.split('\n').flatMap((text) => /^ {2}(ann|User\d+)/.exec(text)?.[1] ?? [])).toEqual(names)
})

test('W11 svc keys list has every key once, in the order of the names, in each format', async () => {
  // Names of keys are compared as they are.
  const names = everybody.toSorted()
  const json = await home.run(['keys', 'list', '--json'])
  const { keys } = JSON.parse(json.stdout) as { keys: readonly { name: string }[] }
  expect(keys.map(({ name }) => name)).toEqual(names)
  const records = (await home.run(['keys', 'list'])).stdout.trim().split('\n')
  expect(records.slice(1).map((record) => record.split('\t')[1])).toEqual(names)
  const table = await home.run(['keys', 'list'], { columns: 100 })
  expect(table.stdout.split('\n')[0]).toContain(`${names.length} keys`)
  expect(table.stdout.split('\n').flatMap((text) => /^ {2}(ann|User\d+)/.exec(text)?.[1] ?? [])).toEqual(names)
})

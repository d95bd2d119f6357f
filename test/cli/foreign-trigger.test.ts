import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, test } from 'vitest'
import { homeWithAdmin } from '../support/program/admin-home.ts'
import type { Home } from '../support/program/svc.ts'

let home: Home
let store: string
beforeEach(async () => {
  home = await homeWithAdmin()
  store = join(home.folder, 'store', 'svc.db')
  return () => home.remove()
})
const exec = (path: string, sql: string): void => {
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
}
/** Grants Admin to everybody from whom a role is taken. */
const regrant = `CREATE TRIGGER "regrant" AFTER DELETE ON "grants" BEGIN
  INSERT OR IGNORE INTO "grants" ("userId", "kind", "name") VALUES (OLD."userId", 'role', 'Admin'); END`

describe('a store with a trigger of others', () => {
  test('W15 svc restore refuses a backup with a trigger, names it and the statement that removes it, and changes nothing', async () => {
    const file = join(home.folder, 'backup.db')
    expect((await home.run(['backup', file])).code).toBe(0)
    exec(file, regrant)
    await home.run(['users', 'add', 'bob', '--no-password'])
    const { code, stderr } = await home.run(['restore', file])
    expect([code, stderr]).toEqual([12, expect.stringContaining('the trigger "regrant" on the table "grants"')])
    expect(stderr).toContain('DROP TRIGGER "regrant";')
    expect((await home.run(['users', 'list', '--json'])).stdout).toContain('"bob"')
    exec(file, 'DROP TRIGGER "regrant"')
    expect((await home.run(['restore', file])).code).toBe(0)
    expect((await home.run(['users', 'list', '--json'])).stdout).not.toContain('"bob"')
  })
  test('W15 svc restore accepts a backup with a table of others, and warns by its name', async () => {
    const file = join(home.folder, 'backup.db')
    await home.run(['backup', file])
    exec(file, 'CREATE TABLE "notes" ("id" TEXT)')
    const { code, stderr } = await home.run(['restore', file])
    expect([code, stderr]).toEqual([0, expect.stringContaining('the table "notes"')])
  })
  test('D2 no command uses a store with a trigger; svc doctor names it and how to remove it', async () => {
    exec(store, regrant)
    for (const line of ['roles unassign ann --role Admin', 'users list', 'audit verify', 'roles holders Admin']) {
      const { code, stderr } = await home.run(line.split(' '))
      expect([line, code, stderr]).toEqual([line, 12, expect.stringContaining('the trigger "regrant"')])
    }
    const { stdout } = await home.run(['doctor', '--json'])
    const { checks } = JSON.parse(stdout) as { checks: readonly { check: string }[] }
    expect(checks.find(({ check }) => check === 'store')).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('the trigger "regrant" on the table "grants"'),
      next: expect.stringContaining('DROP TRIGGER "regrant";'),
    })
  })
  test('D2 svc doctor warns about a table of others in the store, which commands use all the same', async () => {
    exec(store, 'CREATE TABLE "notes" ("id" TEXT)')
    expect((await home.run(['users', 'list'])).code).toBe(0)
    const { stdout, stderr } = await home.run(['doctor', '--json'])
    expect(stderr).toBe('')
    const { checks } = JSON.parse(stdout) as { checks: readonly { check: string }[] }
    expect(checks.find(({ check }) => check === 'store')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('the table "notes"'),
    })
  })
  test('D2 the monitor of the own store fails for a trigger and names it', async () => {
    exec(store, regrant)
    const { code, stdout } = await home.run(['health', '--type', 'Sql', '--json'])
    expect([code, stdout]).toEqual([3, expect.stringContaining('the trigger \\"regrant\\" on the table')])
    expect(existsSync(store)).toBe(true)
  })
})

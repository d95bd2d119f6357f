import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Accounts, password, startAccounts } from '../server/accounts.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

let accounts: Accounts
let home: Home
beforeEach(async () => {
  accounts = await startAccounts()
  home = temporaryHome()
  const args = ['login', '--server', `http://127.0.0.1:${accounts.port}`, '-u', 'Ann', '--password-stdin']
  const ran = await home.run([...args, '--insecure-storage'], { stdin: password })
  expect(ran).toMatchObject({ code: 0 })
})
afterEach(() => accounts.close())
const profilesPath = () => join(home.folder, 'config.json')
type Profiles = { readonly profiles: Record<string, Record<string, unknown>> }
const profiles = (): Profiles => JSON.parse(readFileSync(profilesPath(), 'utf8')) as Profiles
/** The profile of a sign-in at a server that did not announce anything. */
function forget(): void {
  const { profiles: all, ...rest } = profiles()
  const without = Object.entries(all).map(([name, { roleChangesInOneRequest: _, ...profile }]) => [name, profile])
  writeFileSync(profilesPath(), JSON.stringify({ ...rest, profiles: Object.fromEntries(without) }), { mode: 0o600 })
}
/** The requests for role changes that the server answers meanwhile. */
async function requests(args: readonly string[]) {
  const before = accounts.log.length
  const ran = await home.run(['roles', ...args])
  const paths = accounts.log.slice(before).flatMap(({ path }) => path ?? [])
  return { ran, paths: paths.filter((path) => /assignroles$/.test(path)) }
}

describe('svc roles at a server that announces the lists before a change', () => {
  test('O8 the profile keeps the announcement, and a change is one request with the same output', async () => {
    expect(Object.values(profiles().profiles)).toMatchObject([{ roleChangesInOneRequest: true }])
    const one = await requests(['assign', 'Ned', '--role', 'Ops', '--permission', 'p', '--json'])
    expect([one.ran.code, one.paths]).toEqual([0, ['/assignroles']])
    const gone = await requests(['unassign', 'Ned', '--role', 'Ops', '--permission', 'p', '--json'])
    expect([gone.ran.code, gone.paths]).toEqual([0, ['/unassignroles']])
    forget()
    const two = await requests(['assign', 'Ned', '--role', 'Ops', '--permission', 'p', '--json'])
    expect(two.paths).toEqual(['/assignroles', '/assignroles'])
    expect(one.ran.stdout).toBe(two.ran.stdout)
  })

  test('O8 another letter case is refused with the same words, and nothing is changed', async () => {
    await accounts.admin.users.add(
      { userName: 'Max', roles: ['Ops', 'Other'] },
      { who: 'local:test', correlationId: 'test' },
    )
    const args = ['unassign', 'Max', '--role', 'Other', '--role', 'ops', '--json']
    const one = await requests(args)
    expect(one.paths).toEqual(['/unassignroles', '/assignroles'])
    expect((await accounts.admin.roles.show('Max')).roles).toEqual(['Ops', 'Other'])
    forget()
    const two = await requests(args)
    const error = ({ stdout, stderr }: typeof one.ran) =>
      `${stdout}${stderr}`.replace(/[0-9a-f-]{36}|[0-9a-f]{16,}/g, '')
    expect([one.ran.code, error(one.ran)]).toEqual([9, error(two.ran)])
    expect(error(one.ran)).toContain('but has')
  })

  test('O8 a dry run changes nothing', async () => {
    const dry = await requests(['assign', 'Ned', '--role', 'Ops', '--dry-run'])
    expect([dry.ran.code, dry.paths]).toEqual([0, ['/assignroles']])
    expect((await accounts.admin.roles.show('Ned')).roles).toEqual([])
  })
})

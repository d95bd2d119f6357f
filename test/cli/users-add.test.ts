import { chownSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { homeWithAdmin, password, userNames } from '../support/program/admin-home.ts'
import type { Home } from '../support/program/svc.ts'
import { suiteWith } from '../support/suite/peer.ts'

let home: Home
beforeAll(async () => {
  home = await homeWithAdmin()
})
afterAll(() => home.remove())
const names = (): Promise<readonly string[]> => userNames(home)

describe('svc users add', () => {
  test.each([
    [['-'], password, 'NAME is reserved for the audit log'],
    [[' bob'], password, 'NAME must not begin or end with whitespace'],
    [['bob'], 'short', 'the password must have at least 8 bytes (8 ASCII characters)'],
    [['bob'], 'x'.repeat(1_100), 'the password may have at most 1024 bytes'],
    [['zorblatt'], 'zorblatt99', 'the password is too similar to the name or e-mail address of the user'],
    [['bob', '--email', 'nowhere'], password, '--email must be an e-mail address, as in ann@example.com'],
    [['bob', '--display-name', 'a\u200bb'], password, '--display-name must not contain control or invisible'],
    [['bob', '--role', ' Ops'], password, '--role " Ops" must not begin or end with whitespace'],
    [['bob', '--permission', 'a '], password, '--permission "a " must not begin or end with whitespace'],
  ])('P4 refuses %j with exit 2, in words of the command line', async (args, stdin, why) => {
    const ran = await home.run(['users', 'add', ...args, '--password-stdin'], { stdin })
    expect([ran.code, ran.stdout]).toEqual([2, ''])
    expect(ran.stderr).toContain(`Error: ${why}`)
    expect(ran.stderr).not.toMatch(/'(?:UserName|Password|Email|DisplayName|Roles|Permissions)'/)
    const asJson = await home.run(['users', 'add', ...args, '--password-stdin', '--json'], { stdin })
    expect(JSON.parse(asJson.stdout)).toMatchObject({ error: { exitCode: 2, message: expect.stringContaining(why) } })
    expect(await names()).toEqual(['ann'])
  })

  test('names every value that is refused in one message', async () => {
    const args = ['users', 'add', '-', '--email', 'x', '--password-stdin']
    const { stderr } = await home.run(args, { stdin: 'short' })
    expect(stderr).toMatch(/NAME is reserved .*; --email must be .*; the password must have/)
  })

  test('P4 users passwd, users unlock and keys create refuse values with exit 2 and the words of their flags', async () => {
    const passwd = await home.run(['users', 'passwd', 'ann', '--password-stdin'], { stdin: 'short' })
    expect(passwd).toMatchObject({ code: 2, stderr: expect.stringContaining('Error: the password must have') })
    const unlock = await home.run(['users', 'unlock', 'ann', '--from', 'home'])
    expect(unlock).toMatchObject({ code: 2, stderr: expect.stringContaining('Error: --from must be an IP address') })
    const key = await home.run(['keys', 'create', ' ci', '--user', 'ann'])
    expect(key).toMatchObject({ code: 2, stderr: expect.stringContaining('Error: NAME must not begin') })
  })
})

/** An account that every Linux has. */
const nobody = 65_534

suiteWith(process.getuid?.() === 0 ? undefined : 'it needs root', 'a store of another account, for root', () => {
  const store = (): string => join(home.folder, 'store')
  const give = (uid: number): void => {
    for (const path of [store(), ...readdirSync(store()).map((file) => join(store(), file))]) chownSync(path, uid, uid)
  }
  beforeAll(() => give(nobody))
  afterAll(() => give(0))

  test.each([
    [['users', 'list']],
    [['users', 'show', 'ann']],
    [['users', 'add', 'eve', '--no-password', '--display-name', "Eve O'Hara"]],
    [['keys', 'list', '--json']],
    [['roles', 'show', 'ann', '--local']],
    [['serve', '--port', '0']],
  ])('P8 names the account, and the same command with sudo: %j', async (args) => {
    const ran = await home.run(args)
    expect(ran.code).toBe(12)
    const text = args.includes('--json') ? JSON.parse(ran.stdout).error : ran.stderr
    const all = typeof text === 'string' ? text : `${text.message}\n  ${text.hints.join('\n  ')}\n`
    expect(all).toContain(`${store()} belongs to the account nobody, and this command runs as root`)
    const words = args.map((word) => (/^[\w-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ')
    expect(all).toContain(`\n  sudo -u nobody SVC_HOME=${home.folder} svc ${words}`)
  })
})

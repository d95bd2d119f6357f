import { describe, expect, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'

const home = temporaryHome()

describe('a mistake on the command line', () => {
  test.each([
    [['users', 'add'], 'Error: NAME is missing\n  svc users add --help shows what it takes.\n'],
    [
      ['monitors', 'list', 'x'],
      'Error: unexpected argument "x": svc monitors list takes no argument\n  svc monitors list --help shows what it takes.\n',
    ],
    [['health', '--timeuot', '5s'], '  Did you mean --timeout?\n  svc health --help shows what it takes.\n'],
    [
      ['serve', '--port', 'abc'],
      'Error: --port must be an integer, not "abc"\n  svc serve --help shows what it takes.\n',
    ],
    [
      ['serve', '--port', '99999'],
      'Error: --port must be an integer less than or equal to 65535, not "99999"\n  svc serve --help shows what it takes.\n',
    ],
    [
      ['profile', 'add', 'prod'],
      'Error: --server is missing\n  svc profile add prod --server https://svc.example.com\n',
    ],
  ])('svc %j is answered with the next step', async (args, text) => {
    const { code, stderr } = await home.run(args)
    expect([code, stderr]).toEqual([2, expect.stringContaining(text)])
  })

  test('a missing or relative store names the flag that can name another one', async () => {
    const missing = await home.run(['users', 'list', '--store', '/nonexistent/svc.db'])
    expect(missing.code).toBe(12)
    expect(missing.stderr).toContain('To use another file: --store or SVC_STORE')
    expect(missing.stderr).toContain('svc users add --store /nonexistent/svc.db NAME --role Admin')
    const relative = await home.run(['users', 'list', '--store', 'svc.db'])
    expect(relative.stderr).toContain('the store (--store or SVC_STORE) must be the absolute path of a file')
  })
})

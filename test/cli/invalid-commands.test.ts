import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { invalidCommands } from './invalid-commands.ts'

const home = temporaryHome()
const yaml = `types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: shop, host: 127.0.0.1, port: 1}
`
beforeAll(async () => {
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  await home.run(['users', 'add', 'ann', '--role', 'Admin', '--role', 'Ops', '--no-password'])
})

/** The words of a line, without the quotes around them. */
const words = (line: string): readonly string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')

describe('K13 a wrong command line says what is wrong, why, and what to do next', () => {
  test.each(invalidCommands)('svc $line', async ({ line, code, what, why, next }) => {
    const ran = await home.run(words(line))
    expect([ran.code, ran.stdout || ran.stderr]).toEqual([code, expect.stringContaining(what)])
    const output = ran.stdout + ran.stderr
    expect(output).toContain(why)
    expect(output).toContain(next)
    expect(output).not.toMatch(/defect|undefined|\[object/)
  })
})

test('the collection of wrong command lines has a hundred different ones', () => {
  expect(new Set(invalidCommands.map(({ line }) => line)).size).toBeGreaterThanOrEqual(100)
})

test('K13 a role whose name has a separator can be granted from a file, and removed by its name', async () => {
  const file = join(home.folder, 'roles.json')
  writeFileSync(file, JSON.stringify([{ UserName: 'ann', Roles: ['Ops;Deploy'] }]))
  expect((await home.run(['roles', 'assign', '--from-file', file])).code).toBe(0)
  expect((await home.run(['roles', 'show', 'ann'])).stdout).toContain('Ops;Deploy')
  expect((await home.run(['roles', 'unassign', 'ann', '--role', 'Ops;Deploy'])).code).toBe(0)
})

test('K13 a name of a heartbeat that needs quotes is delivered, with a note on a terminal only', async () => {
  const onTerminal = await home.run(['heartbeat', 'bad name!'], { columns: 120 })
  expect(onTerminal.code).toBe(0)
  expect(onTerminal.stderr).toContain(
    'Note: "bad name!" has characters that scripts and URLs have to quote; bad-name has none.',
  )
  expect((await home.run(['heartbeat', 'bad-name'], { columns: 120 })).stderr).not.toContain('Note')
  const inScript = await home.run(['heartbeat', 'bad name!'])
  expect([inScript.code, inScript.stderr]).toEqual([0, ''])
})

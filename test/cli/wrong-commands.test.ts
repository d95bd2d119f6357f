import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Home, svcHome } from '../support/program/svc.ts'
import { wrongCommands } from './wrong-commands.ts'

let home: Home
const yaml = `types:
  App:
    host: false
    monitors:
      - {kind: tcp, name: shop, host: 127.0.0.1, port: 1}
`
beforeAll(async () => {
  home = svcHome()
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  await home.run(['users', 'add', 'ann', '--role', 'Admin', '--role', 'Ops', '--no-password'])
})
afterAll(() => home.remove())

/** The words of a line, without the quotes around them. */
const words = (line: string): readonly string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')

describe('K13 a wrong command line says what is wrong, why, and what to do next', () => {
  test.each(wrongCommands)('svc $line', async ({ line, code, what, why, next }) => {
    const ran = await home.run(words(line))
    expect([ran.code, ran.stdout || ran.stderr]).toEqual([code, expect.stringContaining(what)])
    const said = ran.stdout + ran.stderr
    expect(said).toContain(why)
    expect(said).toContain(next)
    expect(said).not.toMatch(/defect|undefined|\[object/)
  })
})

test('the collection of wrong command lines has a hundred different ones', () => {
  expect(new Set(wrongCommands.map(({ line }) => line)).size).toBeGreaterThanOrEqual(100)
})

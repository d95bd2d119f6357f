import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { type LoadOptions, loadConfig } from '../../src/core/config/index.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const folder = temporaryFolder()

const load = async (yaml: string, more: Partial<LoadOptions> = {}) => {
  writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  return await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder, ...more })
}
/** The mistakes, without the file. */
const mistakes = async (yaml: string): Promise<readonly string[]> => {
  try {
    await load(yaml)
    return []
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const text = [error.message, ...(error.details.places ?? []).map(({ line, message }) => `${line}: ${message}`)]
    return text.filter((line) => /^\d+: /.test(line))
  }
}
const entries = (...more: readonly string[]) =>
  `types:\n  Sql:\n${more.map((one) => `    - {kind: postgres, url: 'postgres://monitor@db1/a', ${one}}\n`).join('')}`

describe('formerly', () => {
  test('H41 carries the keys that a monitor had, in one form', async () => {
    const { types } = await load(
      entries("name: orders, formerly: [Sql/postgres/old, App/postgres/postgres, 'Sql/postgres/']"),
    )
    expect(types.Sql?.monitors[0]?.formerly).toEqual(['Sql/postgres/old', 'App/postgres/', 'Sql/postgres/'])
    expect((await load(entries('name: orders, formerly: Sql/postgres/a/b'))).types.Sql?.monitors[0]?.formerly).toEqual([
      'Sql/postgres/a/b',
    ])
    expect((await load(entries('name: orders'))).types.Sql?.monitors[0]?.formerly).toBeUndefined()
  })

  test.each([
    [
      'orders',
      'must be a key: type/kind/name, like Sql/postgres/orders, or Sql/postgres/ for a monitor without a name',
    ],
    ['Sql/postgres', 'must be a key: type/kind/name'],
    ['Sqll/postgres/x', 'begins with something other than a server type: did you mean `Sql`?'],
    ['Sql/mysql/x', 'has another kind than this monitor: write Sql/postgres/…, or remove it'],
    ['Sql/postgrs/x', 'has a kind that does not exist: write Sql/postgres/…, or remove it'],
  ])('H41 `%s` is a mistake with its line and what to write', async (key, message) => {
    const [mistake, ...others] = await mistakes(entries('name: first', `name: orders, formerly: ['${key}']`))
    expect(mistake).toMatch(/^4: types\.Sql\[1\]\.formerly\[0\] /)
    expect(mistake).toContain(message)
    expect(others).toEqual([])
  })

  test('H41 a key that a monitor still has is a mistake with both lines, in any type and in both forms of a type', async () => {
    expect(await mistakes(entries('name: old', 'name: orders, formerly: [Sql/postgres/old]'))).toEqual([
      '4: types.Sql[1].formerly[0] is the key of a monitor that exists, in line 3: remove the key here, or rename that monitor',
    ])
    expect(await mistakes(entries('formerly: [Sql/postgres/]'))).toEqual([
      '3: types.Sql[0].formerly[0] is the key of this monitor: remove it',
    ])
    const app = `  App:\n    host: false\n    monitors:\n      - {kind: postgres, name: x, url: 'postgres://monitor@db1/a', formerly: [Sql/postgres/]}\n`
    expect(await mistakes(`${entries('retries: 1')}${app}`)).toEqual([
      '7: types.App.monitors[0].formerly[0] is the key of a monitor that exists, in line 3: remove the key here, or rename that monitor',
    ])
  })

  test('H41 a key that two monitors had is a mistake in both lines', async () => {
    const two = entries(
      'name: a, formerly: [Sql/postgres/old]',
      'name: b, formerly: [Sql/postgres/x, Sql/postgres/old]',
    )
    expect(await mistakes(two)).toEqual([
      '3: types.Sql[0].formerly[0] is also in `formerly` in line 4: keep one of them',
      '4: types.Sql[1].formerly[1] is also in `formerly` in line 3: keep one of them',
    ])
  })

  test('H41 the key of an entry with another mistake counts as that of a monitor that exists', async () => {
    const [first, second] = await mistakes(
      entries('name: old, retries: 99', 'name: orders, formerly: [Sql/postgres/old]'),
    )
    expect(first).toContain('3: types.Sql[0].retries')
    expect(second).toContain('4: types.Sql[1].formerly[0] is the key of a monitor that exists, in line 3')
  })

  test('H41 a monitor of a profile is renamed by `change`, and its mistakes have the line of the entry', async () => {
    const use = (key: string) =>
      `types:\n  XcodeC:\n    - {kind: tcp, name: old port, host: a, port: 1}\n    - profile: carbon\n      host: carbon1\n      change:\n        port: {formerly: ['${key}']}\n`
    const { types } = await load(use('XcodeC/tcp/one port'))
    expect(types.XcodeC?.monitors.flatMap(({ formerly }) => formerly ?? [])).toEqual(['XcodeC/tcp/one port'])
    expect(await mistakes(use('XcodeC/tcp/old port'))).toEqual([
      expect.stringMatching(/^4: types\.XcodeC\[1\].*is the key of a monitor that exists, in line 3/),
    ])
  })

  test('H41 a command that runs the rest reports the entry as not checked, and checks the monitor that has the key', async () => {
    const { types, invalidEntries } = await load(entries('name: old', 'name: orders, formerly: [Sql/postgres/old]'), {
      tolerant: true,
    })
    expect(types.Sql?.monitors.map(({ name, kind }) => [name, kind.name])).toEqual([
      ['postgres old', 'postgres'],
      ['postgres orders', 'configuration'],
    ])
    expect(invalidEntries.map(({ name }) => name)).toEqual(['postgres orders'])
  })
})

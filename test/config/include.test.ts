import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { type LoadedConfig, type LoadOptions, loadConfig } from '../../src/core/config/index.ts'
import { svcHome } from '../support/program/svc.ts'
import { faultOf, folder, here } from './given.ts'

let home: string
beforeEach(async () => {
  home = await folder()
  mkdirSync(join(home, 'conf.d'), { mode: 0o700 })
})

const put = (name: string, content: string, mode = 0o600): void => {
  writeFileSync(join(home, name), content)
  chmodSync(join(home, name), mode)
}
const load = async (more: Partial<LoadOptions> = {}): Promise<LoadedConfig> =>
  await loadConfig({ ...here({}, home), path: join(home, 'svc.yaml'), ...more })
/** The messages of a refusal, with this folder left out. */
async function refused(): Promise<readonly string[]> {
  const { message, details } = await faultOf(load())
  return [message, ...(details.hints ?? [])].map((text) => text.replaceAll(`${home}/`, ''))
}
/** The mistakes, as `file:line message`, with this folder left out. */
async function mistakes(): Promise<readonly string[]> {
  const { places = [] } = (await faultOf(load())).details
  return places.map(({ file, line, message }) => `${file}:${line} ${message}`.replaceAll(`${home}/`, ''))
}
const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: a, port: 1${more}}`
const namesOf = ({ types }: LoadedConfig): object =>
  Object.fromEntries(Object.entries(types).map(([type, { monitors }]) => [type, monitors.map(({ name }) => name)]))

describe('include', () => {
  test('W21 the monitors of a type are those of svc.yaml and of all files that it includes, in both forms of a type', async () => {
    put(
      'svc.yaml',
      `include: [conf.d/*.yaml]\ntypes: {App: [${tcp('main')}], Sql: {tags: [shop], every: 30s, monitors: []}}\n`,
    )
    put('conf.d/a.yaml', `types:\n  App: [${tcp('a')}]\n  Sql: [${tcp('first')}]\n`)
    put(
      'conf.d/b.yaml',
      `types:\n  App: {host: false, monitors: [${tcp('b', ', dependsOn: [a, Sql/first]')}]}\n  Ftp: [${tcp('only')}]\n`,
    )
    put('conf.d/.hidden.yaml', 'no')
    put('conf.d/note.txt', 'no')
    const config = await load()
    expect(namesOf(config)).toEqual({ App: ['tcp main', 'tcp a', 'tcp b'], Sql: ['tcp first'], Ftp: ['tcp only'] })
    expect(config.types.App).toMatchObject({ host: false, monitors: [{}, {}, { dependsOn: ['tcp a'] }] })
    expect(config.types.Sql).toMatchObject({ every: { Standard: 30_000 }, monitors: [{ tags: ['shop'] }] })
    expect(config.included).toEqual(['a.yaml', 'b.yaml'].map((name) => join(home, 'conf.d', name)))
    expect(config.warnings).toEqual([])
  })

  test('W21 a profile of an included file can be used in svc.yaml and in other files', async () => {
    put('svc.yaml', 'include: conf.d/*.yaml\ntypes: {App: [{profile: pair, name: one}]}\n')
    put('conf.d/profiles.yaml', `profiles: {pair: {monitors: [${tcp('first')}]}}\n`)
    put('conf.d/use.yaml', 'types: {Sql: [{profile: pair, name: two}]}\n')
    expect(namesOf(await load())).toEqual({ App: ['tcp one first'], Sql: ['tcp two first'] })
  })

  test('W21 the order of the patterns and of the files decides nothing', async () => {
    const parts = [
      `types: {App: [${tcp('a', ', dependsOn: b')}]}\n`,
      `types: {App: {tags: [x], monitors: [${tcp('b')}]}, Sql: [{profile: own, name: p}]}\n`,
      `profiles: {own: {monitors: [${tcp('c')}]}}\ntypes: {App: {every: 30s}}\n`,
    ]
    const orders = [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ]
    const read = async (names: readonly string[]): Promise<object> => {
      put('svc.yaml', `include: [${names.map((name) => `conf.d/${name}.yaml`).join(', ')}]\n`)
      const { types } = await load()
      const all = Object.entries(types).map(([type, { monitors, host, every }]) => ({
        type,
        host,
        every,
        monitors: monitors
          .map(({ name, tags, dependsOn, settings }) => ({ name, tags, dependsOn, settings }))
          .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      }))
      return all.toSorted((a, b) => (a.type < b.type ? -1 : 1))
    }
    const names = ['one', 'two', 'three']
    const results: object[] = []
    for (const contents of orders) {
      for (const [at, name] of names.entries()) put(`conf.d/${name}.yaml`, parts[contents[at] ?? 0] ?? '')
      for (const order of orders) results.push(await read(order.map((at) => names[at] ?? '')))
    }
    expect(results).toHaveLength(36)
    for (const result of results) expect(result).toEqual(results[0])
    // The order of the patterns decides not even the order of the list.
    const list = async (...patterns: readonly string[]): Promise<object> => {
      put('svc.yaml', `include: [${patterns.join(', ')}]\n`)
      return namesOf(await load())
    }
    expect(await list('conf.d/two.yaml', 'conf.d/*.yaml')).toEqual(await list('conf.d/o*.yaml', 'conf.d/t*.yaml'))
  })

  test('W21 a mistake names the file and line that has it', async () => {
    put('svc.yaml', `include: [conf.d/*.yaml]\ntypes:\n  App:\n    - ${tcp('main')}\n`)
    put('conf.d/a.yaml', `types:\n  App:\n    - ${tcp('a')}\n    - ${tcp('b', ', hots: 1')}\n`)
    expect((await refused())[0]).toMatch(/^conf\.d\/a\.yaml:4:\d+: types\.App\[1\]\.hots is not a setting here/)
    put('conf.d/b.yaml', 'profiles:\n  x: 1\n')
    expect((await mistakes()).map((line) => line.split(' ')[0])).toEqual(['conf.d/a.yaml:4', 'conf.d/b.yaml:2'])
    expect((await refused())[0]).toMatch(
      /^svc\.yaml with the files that it includes has 2 problems, at conf\.d\/a\.yaml:4:\d+, conf/,
    )
    put('conf.d/b.yaml', 'types:\n  App: [\n')
    expect((await refused())[0]).toMatch(/^conf\.d\/b\.yaml:\d+:\d+: the file /)
  })

  test('W21 a monitor that two files have is a mistake that names both places', async () => {
    put('svc.yaml', `include: [conf.d/*.yaml]\ntypes:\n  App:\n    - ${tcp('main')}\n`)
    put('conf.d/a.yaml', `types:\n  App:\n    - ${tcp('other')}\n    - ${tcp('main')}\n`)
    expect((await refused())[0]).toMatch(
      /^conf\.d\/a\.yaml:4:\d+: types\.App\[1\] has the same name as another monitor, `tcp main`: give it another `name:`, which is in svc\.yaml:4$/,
    )
  })

  test('W21 what two files set is a mistake that names both places: a profile, a setting of a type', async () => {
    put('svc.yaml', 'include: [conf.d/*.yaml]\ntypes: {App: {every: 30s}}\n')
    const own = `profiles: {own: {monitors: [${tcp('c')}]}}\n`
    put('conf.d/a.yaml', `${own}types: {App: {every: 30s}}\n`)
    put('conf.d/b.yaml', own)
    expect(await mistakes()).toEqual([
      'conf.d/a.yaml:2 types.App.every is also set in svc.yaml:2: keep one of them',
      'conf.d/b.yaml:1 profiles.own is also defined in conf.d/a.yaml:1: give one of them another name',
    ])
  })

  test('W21 a former key that two files claim names the other file', async () => {
    put('svc.yaml', `include: [conf.d/*.yaml]\ntypes: {App: [${tcp('x', ', formerly: App/tcp/old')}]}\n`)
    put('conf.d/a.yaml', `types:\n  App:\n    - ${tcp('old')}\n`)
    expect(await mistakes()).toEqual([
      'svc.yaml:2 types.App[0].formerly[0] is the key of a monitor that exists, in conf.d/a.yaml:3: remove the key here, or rename that monitor',
    ])
  })

  test.each([
    ['serve: {every: off}', 'serve belongs in svc.yaml itself: an included file has only types and profiles'],
    ['include: [x.yaml]', 'include belongs in svc.yaml itself'],
    ['App: []', 'App belongs under `types:`'],
    ['types: []', 'types must map server types to their monitors'],
    ['types: {App: 1}', 'types.App must be a list of monitors'],
    ['types: {Sqll: []}', 'types.Sqll is not a server type: did you mean `Sql`?'],
  ])('W21 `%s` in an included file is a mistake', async (text, message) => {
    put('svc.yaml', `include: [conf.d/*.yaml]\ntypes: {App: [${tcp('main')}]}\n`)
    put('conf.d/a.yaml', `${text}\n`)
    expect((await mistakes())[0]).toContain(`conf.d/a.yaml:1 ${message}`)
  })

  test('W21 a pattern that matches nothing is a warning, and a name without a file is refused', async () => {
    put('svc.yaml', 'include: [conf.d/*.yaml, none/*.yaml]\n')
    expect((await load()).warnings.map((one) => one.replace(`${home}/`, ''))).toEqual([
      'svc.yaml:1:11: include[0] matches no file: conf.d/*.yaml',
      'svc.yaml:1:26: include[1] matches no file: none/*.yaml',
    ])
    put('svc.yaml', 'include: conf.d/none.yaml\n')
    expect((await refused())[0]).toBe('include names conf.d/none.yaml, which does not exist')
    for (const [pattern, message] of [
      ['conf?d/a.yaml', 'include may have `*` and `?` only in the name of the file'],
      ['svc.yaml', 'include is this file itself'],
      ['{a: 1}', 'include must be'],
    ] as const) {
      put('svc.yaml', `include: ${pattern}\n`)
      expect((await mistakes())[0]).toContain(message)
    }
    // By a pattern, svc.yaml does not include itself.
    put('svc.yaml', `include: '*.yaml'\ntypes: {App: [${tcp('main')}]}\n`)
    expect(namesOf(await load())).toEqual({ App: ['tcp main'] })
  })

  test('W21 an included file has at most 1 MiB, and all of them together 32 MiB', async () => {
    put('svc.yaml', 'include: [conf.d/*.yaml]\n')
    const comment = (bytes: number): string => `# ${'x'.repeat(bytes - 3)}\n`
    put('conf.d/a.yaml', comment(1024 * 1024 + 1))
    expect((await refused())[0]).toBe('conf.d/a.yaml is larger than 1 MiB')
    for (let at = 0; at < 33; at += 1) put(`conf.d/${at === 0 ? 'a' : at}.yaml`, comment(1024 * 1024))
    expect((await refused())[0]).toBe('svc.yaml includes more than 32 MiB')
  })

  test.skipIf(process.platform === 'win32')(
    'W21 an included file that others can write, or in a folder that they can, is not trusted',
    async () => {
      put('svc.yaml', 'include: [conf.d/*.yaml]\n')
      put('conf.d/a.yaml', `types: {App: [${tcp('a')}]}\n`, 0o666)
      expect((await refused())[0]).toContain(
        'The configuration is not trusted: conf.d/a.yaml can be written by others (mode 666)',
      )
      put('conf.d/a.yaml', `types: {App: [${tcp('a')}]}\n`)
      chmodSync(join(home, 'conf.d'), 0o777)
      expect((await refused())[0]).toMatch(/not trusted: conf\.d can be written by others/)
      chmodSync(join(home, 'conf.d'), 0o700)
      expect(namesOf(await load())).toEqual({ App: ['tcp a'] })
    },
  )

  test.skipIf(process.platform === 'win32')(
    'W21 a pattern whose folder is not trusted is refused, also one without a file and in a sticky folder',
    async () => {
      put('svc.yaml', 'include: [conf.d/*.yaml]\n')
      for (const mode of [0o777, 0o1777]) {
        chmodSync(join(home, 'conf.d'), mode)
        expect((await refused())[0]).toBe(
          `The configuration is not trusted: conf.d can be written by others (mode ${mode.toString(8)})`,
        )
      }
      chmodSync(join(home, 'conf.d'), 0o700)
      expect((await load()).warnings).toHaveLength(1)
    },
  )

  test('W21 a pattern that matched at the last load and matches nothing now is a mistake at a reload', async () => {
    put('svc.yaml', "include: ['conf.d/*.yaml', 'more/*.yaml']\n")
    put('conf.d/a.yaml', `types: {App: [${tcp('a')}]}\n`)
    const { matchedPatterns: matched = [] } = await load()
    expect(matched).toEqual([join(home, 'conf.d', '*.yaml')])
    const reload = (emptyInclude = false) => load({ reload: { matched, emptyInclude } })
    expect((await reload()).warnings).toHaveLength(1)
    rmSync(join(home, 'conf.d', 'a.yaml'))
    const { message } = await faultOf(reload())
    expect(message.replaceAll(`${home}/`, '')).toBe(
      'svc.yaml:1:11: include[0] matches no file any more: conf.d/*.yaml (if this is intended: svc serve reload --empty-include)',
    )
    // At a start, both are warnings.
    expect((await load()).warnings).toHaveLength(2)
    const emptied = await reload(true)
    expect([emptied.matchedPatterns, emptied.warnings]).toEqual([
      [],
      [expect.stringContaining('include[1] matches no file')],
    ])
    // Without its folder, or below one that others control, nobody can say who emptied it.
    const untrusted = 'matches no file any more: conf.d/*.yaml (its folder is missing or not trusted)'
    if (process.platform !== 'win32') {
      chmodSync(home, 0o777)
      const main = { path: join(home, 'safe', 'svc.yaml') }
      mkdirSync(join(home, 'safe', 'conf.d'), { recursive: true, mode: 0o755 })
      put('safe/svc.yaml', 'include: conf.d/*.yaml\n')
      const below = [join(home, 'safe', 'conf.d', '*.yaml')]
      expect((await faultOf(load({ ...main, reload: { matched: below, emptyInclude: true } }))).message).toContain(
        untrusted,
      )
      chmodSync(home, 0o700)
    }
    rmSync(join(home, 'conf.d'), { recursive: true })
    expect((await faultOf(reload(true))).message).toContain(untrusted)
  })

  test('W21 commands know the monitors of included files: validate, list, and completion', async () => {
    const at = svcHome(undefined, home)
    put('svc.yaml', `include: [conf.d/*.yaml, more/*]\ntypes: {App: [${tcp('main')}]}\n`)
    put('conf.d/a.yaml', `types: {App: [${tcp('extra')}], Sql: [${tcp('db')}]}\n`)
    const valid = await at.run(['monitors', 'validate'])
    expect(valid.code).toBe(0)
    expect(valid.stdout).toBe(`${home}/svc.yaml with the file that it includes is valid: App 2, Sql 1\n`)
    expect(valid.stderr).toContain('include[1] matches no file: more/*')
    expect(JSON.parse((await at.run(['monitors', 'validate', '--json'])).stdout)).toMatchObject({
      included: [join(home, 'conf.d', 'a.yaml')],
    })
    expect((await at.run(['monitors', 'list', '--type', 'Sql'])).stdout).toContain('tcp db')
    expect((await at.run(['__complete', 'fish', 'svc monitors test "tcp e'])).stdout).toContain('tcp extra')
    put('conf.d/a.yaml', `types:\n  Sql: [${tcp('db', ', prot: 1')}]\n`)
    const refusal = await at.run(['monitors', 'validate'])
    expect(refusal.code).toBe(12)
    expect(refusal.stderr).toContain(`${home}/conf.d/a.yaml:2:`)
  })
})

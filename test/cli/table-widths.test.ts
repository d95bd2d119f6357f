import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { brokenWords, width } from '../../src/cli/render/width.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const home = temporaryHome()
beforeAll(() =>
  writeFileSync(
    join(home.folder, 'svc.yaml'),
    'types:\n  Sql:\n    - {kind: tcp, name: replica with a rather long name, host: 127.0.0.1, port: 1}\n',
    { mode: 0o600 },
  ),
)

/** Lists whose texts are longer than a terminal. */
const commands: readonly (readonly string[])[] = [
  ['monitors', 'kinds', 'http'],
  ['monitors', 'kinds', 'postgres'],
  ['monitors', 'kinds'],
  ['monitors', 'list', '-t', 'Sql', '-m', 'Advanced'],
  ['monitors', 'list', '-t', 'Sql', '-m', 'Advanced', '-v'],
  ['monitors', 'profiles'],
  ['monitors', 'profiles', 'vantage'],
  ['config', 'list'],
]

const screen = async (args: readonly string[], columns: number): Promise<string> => {
  const { code, stdout } = await home.run(args, { columns })
  expect(code).toBe(0)
  return stdout
}
const wordsOf = (text: string): ReadonlySet<string> => new Set(text.toLowerCase().match(/[a-z]{6,24}/g))

describe.each(commands.map((args) => ({ args, line: args.join(' ') })))('svc $line', ({ args }) => {
  test.each([60, 80, 100])('in %i columns, no line is longer and no word is broken', async (columns) => {
    const whole = await screen(args, 400)
    const narrow = await screen(args, columns)
    expect(narrow.split('\n').filter((line) => width(line) > columns)).toEqual([])
    const visibleWords = wordsOf(narrow)
    expect([...wordsOf(whole)].filter((word) => !visibleWords.has(word))).toEqual([])
  })
})

test('at 80 columns, the longest texts get the width that the other columns do not need', async () => {
  for (const [args, last] of [
    [['monitors', 'kinds', 'http'], 'MEANING'],
    [['monitors', 'list', '-t', 'Sql', '-m', 'Advanced', '-v'], 'LOOKS AT'],
  ] as const) {
    const lines = (await screen(args, 80)).split('\n')
    const from = lines.findIndex((line) => line.endsWith(`  ${last}`))
    const rows = lines.slice(from, lines.indexOf('', from) < 0 ? undefined : lines.indexOf('', from))
    const starts = [...(rows[0] ?? expect.fail(`no ${last}`)).matchAll(/(?<= {2})\S/g)].map(({ index }) => index)
    // The widest text of each other column, and a gap of three columns or two.
    const needed = starts.slice(1).map((end, at) => {
      const cells = rows.map((line) => line.slice(starts[at], end).trimEnd())
      return end - (starts[at] ?? 0) - Math.max(...cells.map(width))
    })
    expect(new Set(needed).size).toBe(1)
    expect(needed[0]).toBeLessThanOrEqual(3)
    expect(80 - (starts.at(-1) ?? 0)).toBeGreaterThan(
      2 * Math.max(...starts.slice(1).map((end, at) => end - (starts[at] ?? 0) - 3)),
    )
  }
})

test('a list that fits has the widths of its content', async () => {
  const wide = await screen(['monitors', 'kinds'], 400)
  expect(Math.max(...wide.split('\n').map(width))).toBeLessThan(140)
})

test('a word is broken if no separator of it ends a line, and longer ones may end anywhere', () => {
  expect(brokenWords('the authorities that', 9)).toBe(1)
  expect(brokenWords('/var/lib/svc/store.db', 10)).toBe(0)
  expect(brokenWords('x'.repeat(60), 9)).toBe(0)
  expect(brokenWords('short', 9)).toBe(0)
})

test('K14 svc monitors list has a line for each monitor and one for the machine, and -v has each check', async () => {
  const config = join(home.folder, 'eleven.yaml')
  const monitors = (names: readonly string[]): string =>
    names.map((name) => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: 1}`).join(', ')
  const app = ['shop', 'worker', 'mail', 'admin', 'search']
  const sql = ['orders', 'stock', 'cache', 'queue', 'audit', 'replica with a rather long name']
  writeFileSync(config, `types: {App: [${monitors(app)}], Sql: [${monitors(sql)}]}\n`, { mode: 0o600 })
  for (const columns of [80, 200]) {
    const lines = (await screen(['monitors', 'list', '--config', config], columns)).trimEnd().split('\n')
    expect(lines[0]).toBe('✓ 12 monitors, Standard')
    expect(lines.slice(3).map((line) => line.trim().replace(/ {2}.*/, ''))).toEqual([
      ...['all', 'App', 'tcp worker', 'tcp mail', 'tcp admin', 'tcp search'],
      ...['Sql', 'tcp stock', 'tcp cache', 'tcp queue', 'tcp audit', 'tcp replica with a rather long name'],
    ])
  }
  const plan = await screen(['monitors', 'list', '--config', config, '-v'], 80)
  expect(plan.split('\n').length).toBeGreaterThan(100)
  // Where not every type checks the machine, its type is said.
  const own = `types: {App: {monitors: [${monitors(app)}]}, Sql: {host: false, monitors: [${monitors(sql)}]}}\n`
  writeFileSync(config, own, { mode: 0o600 })
  expect(await screen(['monitors', 'list', '--config', config], 80)).toMatch(/^ {2}App +host/m)
})

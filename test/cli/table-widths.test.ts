import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { brokenWords, width } from '../../src/cli/render/width.ts'
import { type Home, svcHome } from '../support/program/svc.ts'

let home: Home
beforeAll(() => {
  home = svcHome()
  writeFileSync(
    join(home.folder, 'svc.yaml'),
    'types:\n  Sql:\n    - {kind: tcp, name: replica with a rather long name, host: 127.0.0.1, port: 1}\n',
    { mode: 0o600 },
  )
})
afterAll(() => home.remove())

/** Lists whose texts are longer than a terminal. */
const commands: readonly (readonly string[])[] = [
  ['monitors', 'kinds', 'http'],
  ['monitors', 'kinds', 'postgres'],
  ['monitors', 'kinds'],
  ['monitors', 'list', '-t', 'Sql', '-m', 'Advanced'],
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
  const lines = (await screen(['monitors', 'kinds', 'http'], 80)).split('\n')
  const header = lines.find((line) => line.includes('MEANING')) ?? expect.fail('no settings')
  expect(80 - header.indexOf('MEANING')).toBeGreaterThan(35)
  const list = (await screen(['monitors', 'list', '-t', 'Sql', '-m', 'Advanced'], 80)).split('\n')
  const title = list.find((line) => line.includes('LOOKS AT')) ?? expect.fail('no list')
  expect(80 - title.indexOf('LOOKS AT')).toBeGreaterThan(35)
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

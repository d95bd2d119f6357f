import { beforeAll, expect, test } from 'vitest'
import { helpTopics } from '../../src/cli/help/help.ts'
import { main } from '../../src/main.ts'
import { commands, topics } from '../../src/registry.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { unclearPhrases } from '../support/suite/plain-language.ts'

type Outcome = { readonly stdout: string; readonly stderr: string; readonly code: number }
async function svc(...args: readonly string[]): Promise<Outcome> {
  const { io, stdout, stderr } = capturedIo({ env: { HOME: '/nonexistent' } })
  await main(io, args)
  return { stdout: stdout(), stderr: stderr(), code: io.exitCode ?? 0 }
}

const spaced = (id: string): string => id.replaceAll(':', ' ')
const names = Object.keys(commands).map(spaced)
const pages = [
  ...['', ...Object.keys(topics).map(spaced), ...names].map((name) => `${name} --help`.trimStart()),
  ...Object.keys(helpTopics).map((subject) => `help ${subject}`),
]
let helps: ReadonlyMap<string, Outcome>
beforeAll(async () => {
  helps = new Map(await Promise.all(pages.map(async (page) => [page, await svc(...page.split(' '))] as const)))
})
const helpOf = (page: string): string => helps.get(page)?.stdout ?? ''

const columns = 80
const tooWide = (lines: Iterable<string>): readonly string[] => [...lines].filter((line) => line.length > columns)

test('the summary of each command and each topic fits 80 columns', async () => {
  const summaries = await Promise.all(Object.values(commands).map(async (load) => (await load()).summary ?? ''))
  expect(tooWide([...summaries, ...Object.values(topics)])).toEqual([])
})

test.each(pages)('svc %s fits 80 columns, and says what it means in standard terms', (page) => {
  const { code, stdout, stderr } = helps.get(page) ?? {}
  expect([code, stderr]).toEqual([0, ''])
  expect(tooWide(stdout?.split('\n') ?? [])).toEqual([])
  expect(unclearPhrases(stdout ?? '')).toEqual([])
})

test.each([60, 80, 120, 200])('O11 svc alone is one screen of %i columns, with each topic once', async (wide) => {
  const { io, stdout } = capturedIo({ columns: wide })
  await main(io, [])
  const lines = stdout().trimEnd().split('\n')
  expect(lines.filter((line) => line.length > wide)).toEqual([])
  if (wide >= 80) expect(lines.length).toBeLessThanOrEqual(40)
  const listed = lines.flatMap((line) => /^ {2}([a-z]\S*(?:, \S+)?) {2,}\S/.exec(line)?.[1]?.split(', ') ?? [])
  const all = new Set([...Object.keys(topics), ...names.filter((name) => !name.includes(' '))])
  expect(listed.toSorted()).toEqual([...all].toSorted())
  // At the width of the terminal, no summary is broken that has room.
  if (wide >= 80) expect(lines.filter((line) => /^ {6}/.test(line))).toEqual([])
})

test.each(names)('svc %s --help shows its usage, and names only flags that svc help flags explains', (name) => {
  const text = helpOf(`${name} --help`)
  const usage = text.split('\n').find((line) => line.startsWith('  $ svc '))
  expect(usage).toMatch(new RegExp(`^  \\$ svc ${name}( .*)? \\[flags\\]$`))
  const [, list = ''] = /\nCOMMON FLAGS\n([\s\S]*)$/.exec(text) ?? []
  const flags = list.match(/--[a-z-]+/g) ?? []
  expect(flags).toContain('--json')
  const explained = helpOf('help flags')
  for (const flag of flags) expect(explained).toMatch(new RegExp(`^  .* ${flag}( <\\S+>)?  +\\S`, 'm'))
})

test.each([
  ['monitors test', 'NAME'],
  ['config set', 'KEY VALUE'],
  ['api', 'METHOD PATH'],
  ['roles assign', '[USER]'],
  ['profile show', '[NAME]'],
  ['health', '[TYPES...]'],
])('svc %s --help shows %s: brackets only around what may be absent', (name, args) => {
  const text = helpOf(`${name} --help`)
  expect(text).toContain(`  $ svc ${name} ${args} [flags]\n`)
  const [, listed = ''] = /\nARGUMENTS\n([\s\S]*?)\n\n/.exec(text) ?? []
  const words = [...listed.matchAll(/^ {2}(\S+)/gm)].map(([, word]) => word)
  expect(words.join(' ')).toBe(args)
})

test.each([
  [['-x'], 'unknown flag -x'],
  [['--bogus'], 'unknown flag --bogus'],
  [['--helpp'], 'Did you mean --help?'],
  [['-x', 'health'], 'unknown flag -x'],
  [['monitors', '-x'], 'unknown flag -x'],
  [['help', '--bogus'], 'unknown flag --bogus'],
  [['--json'], '--json without a command'],
  [['-q', 'health'], 'Flags follow the command: svc health -q'],
] as const)('svc %j exits with 2 and names what is wrong, instead of printing help', async (args, message) => {
  const { code, stdout, stderr } = await svc(...args)
  const asJson = args.some((arg) => arg === '--json')
  expect([code, asJson ? stderr : stdout]).toEqual([2, ''])
  expect(asJson ? stdout : stderr).toContain(message)
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { helpTopics } from '../../src/cli/help/help.ts'
import { commands, topics } from '../../src/registry.ts'
import { type Home, svcHome } from '../support/program/svc.ts'

let home: Home
beforeAll(() => {
  home = svcHome()
})
afterAll(() => home.remove())

test.each(Object.keys(commands).map((id) => id.replaceAll(':', ' ')))('svc %s --help shows its usage', async (name) => {
  const { code, stdout, stderr } = await home.svc([...name.split(' '), '--help'])
  expect([code, stderr]).toEqual([0, ''])
  const usage = stdout.split('\n').find((line) => line.startsWith('  $ svc '))
  expect(usage).toMatch(new RegExp(`^  \\$ svc ${name}( .*)? \\[flags\\]$`))
  expect(stdout).toMatch(/\nCOMMON FLAGS\n(?: {2}.*\n)*? {2}.*--json/)
  expect(tooWide(stdout)).toEqual([])
})

test.each([
  ['monitors test', 'NAME'],
  ['config set', 'KEY VALUE'],
  ['api', 'METHOD PATH'],
  ['roles assign', '[USER]'],
  ['profile show', '[NAME]'],
  ['health', '[TYPES...]'],
])('svc %s --help shows %s: brackets only around what may be absent', async (name, args) => {
  const { stdout } = await home.svc([...name.split(' '), '--help'])
  expect(stdout).toContain(`  $ svc ${name} ${args} [flags]\n`)
  const [, listed = ''] = /\nARGUMENTS\n([\s\S]*?)\n\n/.exec(stdout) ?? []
  const words = [...listed.matchAll(/^ {2}(\S+)/gm)].map(([, word]) => word)
  expect(words.join(' ')).toBe(args)
})

const tooWide = (text: string): readonly string[] => text.split('\n').filter((line) => line.length > 80)

test.each(['', ...Object.keys(topics)])('svc %s --help fits 80 columns', async (topic) => {
  const { code, stdout, stderr } = await home.svc([topic, '--help'].filter((word) => word !== ''))
  expect([code, stderr]).toEqual([0, ''])
  expect(tooWide(stdout)).toEqual([])
})

test.each(Object.keys(helpTopics))('svc help %s fits 80 columns', async (subject) => {
  const { code, stdout, stderr } = await home.svc(['help', subject])
  expect([code, stderr]).toEqual([0, ''])
  expect(tooWide(stdout)).toEqual([])
})

test('svc help flags explains every flag that the help of a command only names', { timeout: 60_000 }, async () => {
  const explained = (await home.svc(['help', 'flags'])).stdout
  for (const id of Object.keys(commands)) {
    const { stdout } = await home.svc([...id.split(':'), '--help'])
    const [, list = ''] = /\nCOMMON FLAGS\n([\s\S]*)$/.exec(stdout) ?? []
    const flags = list.match(/--[a-z-]+/g) ?? []
    expect(flags).toContain('--json')
    for (const flag of flags) expect(explained).toMatch(new RegExp(`^  .* ${flag}( <\\S+>)?  +\\S`, 'm'))
  }
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
  const { code, stdout, stderr } = await home.svc(args)
  const asJson = args.some((arg) => arg === '--json')
  expect([code, asJson ? stderr : stdout]).toEqual([2, ''])
  expect(asJson ? stdout : stderr).toContain(message)
})

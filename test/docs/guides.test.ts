import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { exits } from '../../src/core/base/errors.ts'
import { blocksOf, commandsOf } from '../../tools/pages/page.ts'
import { serveEnds } from '../support/program/serve-ends.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]
const commands = pages.flatMap((page) =>
  blocksOf(read(page))
    .filter(({ language }) => language === 'sh')
    .flatMap((block) => commandsOf(block).map(({ text }) => ({ page, text }))),
)

test('the guides write each key into a file that only its owner can read', () => {
  const writing = commands.filter(({ text }) => /\bsvc (?:keys create|login .*--print)[^|]*>/.test(text))
  expect(writing.length).toBeGreaterThan(2)
  expect(writing.filter(({ text }) => !text.startsWith('(umask 077; '))).toEqual([])
})

test('each certificate that the guides make has the name that clients compare (SAN)', () => {
  const made = commands.filter(({ text }) => text.includes('openssl req -x509'))
  expect(made.length).toBeGreaterThan(0)
  expect(made.filter(({ text }) => !/-addext subjectAltName=DNS:/.test(text))).toEqual([])
})

test('the README has two commands in a clone: one installs svc and checks the machine, one runs the tests', () => {
  const [, section = ''] = /^## Install\n(.*?)^## /ms.exec(read('README.md')) ?? []
  expect(section).toContain('git clone')
  const [block] = blocksOf(section)
  const texts = block ? commandsOf(block).map(({ text }) => text.replace(/\s+#.*$/, '')) : []
  expect(texts).toEqual(['npm ci && npx svc health', 'npm test'])
  expect(section).not.toMatch(/npm run (?:test|check)/)
})

test('the systemd unit does not restart svc serve after a mistake that no restart mends', () => {
  expect(notStartedAgain()).toEqual([exits.usage.code, exits.local.code])
})

test('W16 serve.md has each way in which svc serve ends by itself, and whether the systemd unit starts it again', () => {
  const [, section = ''] = /^### When it ends by itself\n(.*?)^## /ms.exec(read('docs/serve.md')) ?? []
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1)
    .map((line) => line.split('|').map((cell) => cell.trim()))
  expect(/^Restart=on-failure$/m.test(read('deploy/systemd/svc.service'))).toBe(true)
  const finals = notStartedAgain()
  const expected = serveEnds.map(({ way, exit }) => [
    way,
    String(exit),
    exit === 'signal' || !finals.includes(exit) ? 'yes' : 'no',
  ])
  expect(rows.map(([, ...cells]) => cells.slice(0, 3))).toEqual(expected)
  expect(rows.filter(([, , , , why = '']) => why === '')).toEqual([])
  for (const { by } of serveEnds) if (typeof by !== 'function') expect(read(by.test)).toContain('svc serve')
})

/** The exit codes after which the systemd unit leaves it at that. */
function notStartedAgain(): readonly number[] {
  const [, codes = ''] = /^RestartPreventExitStatus=(.*)$/m.exec(read('deploy/systemd/svc.service')) ?? []
  return codes.split(' ').map(Number)
}

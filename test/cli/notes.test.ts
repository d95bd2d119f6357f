import { describe, expect, test } from 'vitest'
import { note } from '../../src/cli/render/note.ts'
import { width } from '../../src/cli/render/width.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const terminal = (columns: number | undefined) => ({ isTTY: true, columns })
const url = `https://login.example.com/authorize?${'state=0123456789&'.repeat(9)}`
const sentence =
  'Warning: svc.service uses another store: /var/lib/svc/.local/share/svc/svc.db, of the account svc, and it took 12 s'

describe('a note on standard error', () => {
  test.each([20, 40, 80, undefined])('ends its lines at spaces on a terminal of %s columns', (columns) => {
    const lines = note(sentence, terminal(columns)).trimEnd().split('\n')
    expect(lines.length).toBeGreaterThan(1)
    for (const line of lines) if (line.trim().includes(' ')) expect(width(line)).toBeLessThanOrEqual(columns ?? 80)
    expect(lines.map((line) => line.trim()).join(' ')).toBe(sentence)
    expect(lines.slice(1).every((line) => /^ {2}\S/.test(line))).toBe(true)
  })

  test('is unchanged in a pipe', () => {
    expect(note(sentence, { isTTY: false, columns: undefined })).toBe(`${sentence}\n`)
  })

  test.each([
    ['an address', `Open this address:\n\n  ${url}\n`],
    ['a command on a line of its own', `Next:\n  svc users add ${'alice '.repeat(20)}`.trimEnd()],
    ['an excerpt of a file', `Error: wrong\n  12 | ${'monitors: '.repeat(12)}`.trimEnd()],
    ['a painted line', `\u001b[1m${'strong words '.repeat(12)}\u001b[0m`],
  ])('leaves %s in one piece', (_, text) => {
    expect(note(text, terminal(40))).toBe(`${text}\n`)
  })

  test('leaves a command at the end of a sentence in one piece, on a line of its own', () => {
    const text = 'There is no profile: all commands act on this machine. To create one: svc login --server URL'
    expect(note(text, terminal(60))).toBe(
      'There is no profile: all commands act on this machine. To\ncreate one: svc login --server URL\n',
    )
    expect(note(text, terminal(30))).toContain('\nsvc login --server URL\n')
  })

  test('keeps the indentation of a line', () => {
    expect(note('  one two three four', terminal(12))).toBe('  one two\n  three four\n')
  })
})

describe('a command with a long note', () => {
  const home = temporaryHome()

  test('breaks no word on a terminal, and none of its lines in a pipe', async () => {
    const args = ['profile', 'list']
    const pipe = await home.run(args)
    const text = pipe.stderr.trimEnd()
    expect(text).not.toContain('\n')
    const { stderr } = await home.run(args, { columns: 50 })
    const lines = stderr.trimEnd().split('\n')
    expect(lines.length).toBeGreaterThan(1)
    expect(lines.every((line) => width(line) <= 50)).toBe(true)
    expect(lines.join(' ')).toBe(text)
  })
})

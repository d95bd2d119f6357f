import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { type TextForm, withoutCommands } from '../../core/base/sanitize.ts'
import { leaveSignalsTo } from './command-child.ts'
import type { Io } from './io.ts'

export type Pager = {
  /** Resolves when the pager accepts more. False: nobody reads any more. */
  readonly write: (text: string) => Promise<boolean>
  /** Resolves when the reader has closed the pager. What a failing one did not show is then written plainly. */
  readonly end: () => Promise<void>
}

/** The options of `less` where nobody has set any: quit on one screen, show colours, leave the text on the screen. */
const optionsOfLess = 'FRX'

/** Characters that are kept for a pager that fails, which it does before it has read as many. */
const beginningLength = 1_048_576

/** The words of the pager, or undefined where a text is printed plainly. They are split at blanks: no shell reads them. */
export function pagerCommand(
  { env, stdin, stdout }: Pick<Io, 'env' | 'stdin' | 'stdout'>,
  argv: readonly string[],
): readonly string[] | undefined {
  const end = argv.indexOf('--')
  const flags = end === -1 ? argv : argv.slice(0, end)
  if (!stdin.isTTY || !stdout.isTTY || env['CI'] || env['TERM'] === 'dumb') return undefined
  if (['--no-pager', '--quiet', '-q'].some((flag) => flags.includes(flag))) return undefined
  const words = (env['SVC_PAGER'] ?? env['PAGER'] ?? 'less').split(/\s+/).filter(Boolean)
  return words.length === 0 || words[0] === 'cat' ? undefined : words
}

/** Starts the pager. Undefined where none is wanted, and where it cannot be started. */
export async function openPager(io: Io, argv: readonly string[], form: TextForm): Promise<Pager | undefined> {
  const [program, ...args] = pagerCommand(io, argv) ?? []
  if (program === undefined) return undefined
  const { descriptor: output = 'ignore' } = io.stdout
  const { descriptor: errors = 'ignore' } = io.stderr
  const child = spawn(program, args, { env: { LESS: optionsOfLess, ...io.env }, stdio: ['pipe', output, errors] })
  const release = leaveSignalsTo(child, io.signals)
  // `stdio` makes a pipe of it.
  const stdin = child.stdin as Writable
  // A reader who has seen enough, or pressed ctrl-C, ends it before it has read everything.
  stdin.on('error', () => {})
  child.on('error', () => {})
  const hasServed = new Promise<boolean>((resolve) => {
    child.once('close', (code, signal) => resolve(code === 0 || signal !== null))
  })
  try {
    await once(child, 'spawn')
  } catch {
    release()
    return undefined
  }
  let beginning = ''
  let isEnded = false
  void hasServed.then(() => {
    isEnded = true
  })
  return {
    write: async (text) => {
      if (beginning.length < beginningLength) beginning += text
      if (isEnded || stdin.destroyed) return false
      if (!stdin.write(withoutCommands(text, form))) {
        await Promise.race([once(stdin, 'drain'), once(stdin, 'close'), hasServed]).catch(() => {})
      }
      return true
    },
    end: async () => {
      stdin.end()
      const served = await hasServed
      release()
      if (!served) io.stdout.write(beginning, form)
    },
  }
}

/** Shows a text in the pager, or prints it. */
export async function showInPager(text: string, io: Io, argv: readonly string[], form: TextForm): Promise<void> {
  const pager = isLonger(text, io) ? await openPager(io, argv, form) : undefined
  if (!pager) {
    io.stdout.write(text, form)
    return
  }
  await pager.write(text)
  await pager.end()
}

/** Whether a text has more lines than the screen has above the prompt. */
export const isLonger = (text: string, { stdout }: Pick<Io, 'stdout'>): boolean =>
  stdout.rows !== undefined && text.split('\n').length > stdout.rows

import { addAbortListener } from 'node:events'
import { Fault } from '../../core/base/errors.ts'
import type { Io } from '../io/io.ts'
import { wrap } from '../render/width.ts'

/** True when a prompt is possible: only on a terminal, and never with `--json`. */
export const canAsk = ({ stdin, stderr }: Io): boolean => stdin.isTTY && stderr.isTTY

/** Asks for a line on standard error. Rejects with `Fault` Interrupted at ctrl-C or the end of input (K7). */
export async function askLine(question: string, io: Io, signal: AbortSignal): Promise<string> {
  const { default: input } = await import('@inquirer/input')
  return await prompt((context) => input({ message: question, required: true }, context), io, signal)
}

/** Like `askLine`, without echo. */
export async function askSecret(question: string, io: Io, signal: AbortSignal): Promise<string> {
  const { default: password } = await import('@inquirer/password')
  return await prompt((context) => password({ message: question, mask: false, toggleMask: false }, context), io, signal)
}

type Context = {
  readonly input: NodeJS.ReadableStream
  readonly output: NodeJS.WritableStream
  readonly signal: AbortSignal
}

async function prompt(
  ask: (context: Context) => Promise<string>,
  { stdin, stderr, whenIdle }: Io,
  signal: AbortSignal,
): Promise<string> {
  // At ctrl-D the prompt's input closes and the prompt never settles.
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const release = whenIdle(() => reject(new Fault('Interrupted', 'Interrupted: the input ended')))
  const input = stdin.stream
  try {
    return await Promise.race([ask({ input, output: stderr.stream, signal }), ended])
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Error && /^(?:Exit|Abort|Cancel)PromptError$/.test(error.name)) {
      throw new Fault('Interrupted', 'Interrupted')
    }
    throw error
  } finally {
    release()
    if (stdin.isTTY) input.setRawMode?.(false)
    input.pause()
  }
}

/** Characters. Passwords and tokens are far shorter. */
const maxBytes = 65_536

/** All of standard input without its final line feed (P7). `flag` is the flag that requested it. */
export async function secretFromStdin(flag: string, { stdin }: Io, signal: AbortSignal): Promise<string> {
  if (stdin.isTTY) {
    throw new Fault('Usage', `${flag} requires a pipe or file, but standard input is a terminal`, {
      hints: [`Omit ${flag} to be prompted, or use a pipe: svc … ${flag} < FILE`],
    })
  }
  const stop = (): void => void stdin.stream.destroy()
  using _listener = addAbortListener(signal, stop)
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of stdin.stream as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      if (size > maxBytes) throw new Fault('Usage', `${flag}: more than ${maxBytes} bytes of input`)
    }
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
  signal.throwIfAborted()
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks))
  } catch {
    throw new Fault('Usage', `${flag}: standard input is not UTF-8`)
  }
  const secret = text.replace(/\r?\n$/, '')
  if (secret === '')
    throw new Fault('Usage', `${flag}: standard input is empty`, {
      hints: ['Check that the secret is set in this environment.'],
    })
  return secret
}

type Ask = {
  /** The text of the prompt, e.g. `Password for alice:`. */
  readonly message: string
  /** The flag that reads it from standard input, and whether the command line has it. */
  readonly flag?: '--password-stdin' | '--stdin'
  readonly stdin: boolean
  /** The requirements of a new password: a sentence above the prompt. */
  readonly rule?: string
  /** Why a password is refused, as a sentence without its full stop; undefined if it is acceptable. */
  readonly refusal?: (password: string) => Promise<string | undefined>
  /** Other remedies when there is no terminal. */
  readonly otherwise?: readonly string[]
}

/**
 * A new password: one line of standard input, or typed twice without echo on a terminal (P7). The prompt shows the rule,
 * and a password that breaks it is prompted for again before it is confirmed. Throws Fault `Usage` naming the flag when
 * there is no terminal, and for a password that is refused; `Interrupted` at ctrl-C.
 */
export async function newPassword(ask: Ask, io: Io, signal: AbortSignal): Promise<string> {
  const { flag = '--password-stdin' } = ask
  if (ask.stdin) {
    const password = oneLine(await secretFromStdin(flag, io, signal), flag)
    const refusal = await ask.refusal?.(password)
    if (refusal === undefined) return password
    throw new Fault('Usage', refusal)
  }
  if (!canAsk(io)) {
    throw new Fault('Usage', `${flag} is missing: there is no terminal to prompt for the password`, {
      hints: [...(ask.otherwise ?? []), `Use standard input: svc … ${flag} < FILE`],
    })
  }
  // On lines of its own: in the question, it would break within words where the terminal is narrow.
  if (ask.rule !== undefined) io.stderr.write(`${inLines(ask.rule, io)}\n`)
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const first = await askSecret(ask.message, io, signal)
    const refusal = first === '' ? 'the password is empty' : await ask.refusal?.(first)
    if (refusal !== undefined) io.stderr.write(`${tryAgain(refusal, io)}\n`)
    else if (first === (await askSecret('Confirm password:', io, signal))) return first
    else io.stderr.write('The passwords do not match. Try again.\n')
  }
  throw new Fault('Usage', 'no password entered in three attempts; nothing was changed')
}

const tryAgain = (refusal: string, io: Io): string =>
  inLines(`${refusal.charAt(0).toUpperCase()}${refusal.slice(1)}. Try again, or press Ctrl-C to cancel.`, io)

const inLines = (sentence: string, { stderr }: Io): string => wrap(sentence, stderr.columns ?? 80).join('\n')

/** Exactly `count` lines of standard input, none of them empty (P7). */
export async function linesFromStdin(
  flag: string,
  count: number,
  io: Io,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const lines = (await secretFromStdin(flag, io, signal)).split(/\r?\n/)
  if (lines.length === count && !lines.includes('')) return lines
  throw new Fault('Usage', `${flag}: standard input must contain ${count} lines, none of them empty`)
}

/** Refuses several lines: they suggest a wrong file, and nobody could type them at a prompt. */
function oneLine(secret: string, flag: string): string {
  if (!/[\r\n]/.test(secret)) return secret
  throw new Fault('Usage', `${flag}: standard input contains more than one line`, {
    hints: ['A password must be a single line.'],
  })
}

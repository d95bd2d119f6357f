import { Fault } from '../core/errors.ts'

type Ask = {
  /** What the prompt says, e.g. `Password for alice`. */
  readonly message: string
  /** Asked twice, for a password that is new. */
  readonly confirm: boolean
  /** `--password-stdin` was given. */
  readonly stdin: boolean
  /** The flag as this command calls it. */
  readonly flag?: string | undefined
  /** Other ways out, where there is no terminal. */
  readonly otherwise?: readonly string[]
}

/** Longer than any password or token that a server takes. */
const mostBytes = 64 * 1024

/** Whether somebody can be asked: questions stand on stderr, so that stdout may be a pipe. */
export const canAsk = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true

/**
 * A password (P7): from standard input, or asked without echo on a terminal. Throws Fault `Usage`
 * naming the flag when there is no terminal, `Interrupted` at ctrl-C.
 */
export async function obtainPassword(ask: Ask, signal: AbortSignal): Promise<string> {
  const flag = ask.flag ?? 'password-stdin'
  if (ask.stdin) return await readSecret(flag)
  if (!canAsk()) {
    throw new Fault('Usage', `--${flag} is missing: there is no terminal to ask for the password`, {
      hints: [...(ask.otherwise ?? []), `Give it on standard input: svc … --${flag} < FILE`],
    })
  }
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const first = await askHidden(ask.message, signal)
    if (!ask.confirm || first === (await askHidden('The same again', signal))) return first
    process.stderr.write('The two differ. Once more, both:\n')
  }
  throw new Fault('Usage', 'the two passwords differed three times; nothing was changed')
}

/** One line without echo. An empty one is asked again. */
async function askHidden(message: string, signal: AbortSignal): Promise<string> {
  const { password } = await import('@inquirer/prompts')
  return await asked((context) =>
    password(
      {
        message: `${message}:`,
        mask: false,
        toggleMask: false,
        validate: (typed) => typed !== '' || 'It is empty. Ctrl-C leaves.',
        theme: { prefix: '', style: { maskedText: '(not shown)' } },
      },
      { ...context, signal },
    ),
  )
}

/** One line with echo, e.g. a name typed to confirm. */
export async function askLine(message: string, signal: AbortSignal): Promise<string> {
  const { input } = await import('@inquirer/prompts')
  return await asked((context) => input({ message, theme: { prefix: '' } }, { ...context, signal }))
}

type Context = { readonly output: NodeJS.WriteStream; readonly clearPromptOnDone?: boolean }

/** Runs a prompt; leaving it by ctrl-C or ctrl-D is an interruption (K7). */
async function asked(prompt: (context: Context) => Promise<string>): Promise<string> {
  const leave = new AbortController()
  // Ctrl-D closes the input, which the prompt would await for ever.
  const left = (): void => leave.abort()
  process.stdin.once('end', left)
  try {
    return await Promise.race([
      prompt({ output: process.stderr }),
      new Promise<never>((_, reject) => {
        leave.signal.addEventListener('abort', () => reject(new Fault('Interrupted', 'Interrupted')), { once: true })
      }),
    ])
  } catch (error) {
    if (error instanceof Error && (error.name === 'ExitPromptError' || error.name === 'AbortPromptError')) {
      throw new Fault('Interrupted', 'Interrupted')
    }
    throw error
  } finally {
    process.stdin.off('end', left)
  }
}

/**
 * Everything on standard input, exactly, but for one line end at its end (P4). Throws Fault `Usage`
 * when it is a terminal, empty, too long, not UTF-8 or several lines.
 */
export async function readSecret(flag: string): Promise<string> {
  if (process.stdin.isTTY) {
    throw new Fault('Usage', `--${flag} reads a file or a pipe, and standard input is a terminal`, {
      hints: [`Leave --${flag} out to be asked without echo, or add: < FILE`],
    })
  }
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin) {
    const part = Buffer.from(chunk as Uint8Array)
    bytes += part.length
    if (bytes > mostBytes) throw unusable(flag, `holds more than ${mostBytes} bytes`)
    chunks.push(part)
  }
  let text: string
  try {
    // A byte-order mark is kept: it may be part of the secret.
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks))
  } catch {
    throw unusable(flag, 'is not valid UTF-8')
  }
  const secret = text.replace(/\r?\n$/, '')
  if (secret === '') throw unusable(flag, 'is empty')
  if (/[\r\n]/.test(secret)) throw unusable(flag, 'holds more than one line')
  return secret
}

const unusable = (flag: string, what: string): Fault =>
  new Fault('Usage', `--${flag}: standard input ${what}`, {
    hints: ['Give one line, for example: < FILE'],
  })

import { Fault } from '../core/errors.ts'
import { askSecret, canAsk, secretFromStdin } from './prompt.ts'
import { writeError } from './standard-streams.ts'

type Ask = {
  /** What the prompt says, e.g. `Password for alice:`. */
  readonly message: string
  /** The flag that has it read from standard input, and whether it was given. */
  readonly flag?: '--password-stdin' | '--stdin'
  readonly stdin: boolean
  /** Other ways out, where there is no terminal. */
  readonly otherwise?: readonly string[]
}

/**
 * A new password (P7): one line of standard input, or asked twice without echo on a terminal. Throws
 * Fault `Usage` naming the flag when there is no terminal, `Interrupted` at ctrl-C.
 */
export async function newPassword(ask: Ask, signal: AbortSignal): Promise<string> {
  const { flag = '--password-stdin' } = ask
  if (ask.stdin) return oneLine(await secretFromStdin(flag, signal), flag)
  if (!canAsk()) {
    throw new Fault('Usage', `${flag} is missing: there is no terminal to ask for the password`, {
      hints: [...(ask.otherwise ?? []), `Give it on standard input: svc … ${flag} < FILE`],
    })
  }
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const first = await askSecret(ask.message, signal)
    if (first === '') writeError('It is empty. Once more; ctrl-C leaves.\n')
    else if (first === (await askSecret('The same again:', signal))) return first
    else writeError('The two differ. Once more, both:\n')
  }
  throw new Fault('Usage', 'no password was given in three attempts; nothing was changed')
}

/** Several lines are a slip, such as the wrong file, and nobody could type them at a prompt. */
function oneLine(secret: string, flag: string): string {
  if (!/[\r\n]/.test(secret)) return secret
  throw new Fault('Usage', `${flag}: standard input holds more than one line`, {
    hints: ['A password is one line.'],
  })
}

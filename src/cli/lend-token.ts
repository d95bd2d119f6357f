import { openClient } from '../core/client/index.ts'
import { Fault } from '../core/errors.ts'
import { revoke, type SignedIn } from './login-run.ts'
import { memoryCredential } from './memory-credential.ts'
import { runWithToken } from './run-with-token.ts'
import { safeLine } from './safe-text.ts'
import { localCall } from './session.ts'

/** Milliseconds to sign out again. */
const signOutMs = 10_000

/** Runs a command with a sign-in that is stored nowhere and ends with it. Gives the command's exit code. */
export async function lendToken(
  command: readonly string[],
  { kept, user }: SignedIn,
  at: { readonly connection: Parameters<typeof openClient>[0]; readonly server: string },
  say: (text: string) => void,
): Promise<number> {
  const { connection, server } = at
  const credential = memoryCredential(kept, () => openClient(connection))
  try {
    if (kept.at === undefined) {
      throw new Fault('NotImplemented', `${server} gives sessions and no tokens, so no command can be given one`, {
        hints: ['Sign in without -- COMMAND.'],
      })
    }
    say(`Signed in to ${server} as ${safeLine(user)} for this command only: ${safeLine(command[0] ?? '')}`)
    return await runWithToken(command, { token: kept.at, server, caFile: connection.caFile }, process.env)
  } finally {
    // ctrl-C has ended the command by now; the sign-in must end all the same.
    const call = localCall(AbortSignal.timeout(signOutMs))
    await revoke({ ...connection, credential }, call).then(
      (done) =>
        say(
          done === 'still valid'
            ? `Warning: ${server} does not revoke its tokens: this one stays valid there until it expires.`
            : `Signed out of ${server}.`,
        ),
      (error: unknown) => say(`Warning: the sign-in at ${server} could not be ended: ${told(error)}`),
    )
  }
}

const told = (error: unknown): string => (error instanceof Error ? safeLine(error.message) : 'unknown')

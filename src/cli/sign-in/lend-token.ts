import { Fault } from '../../core/base/errors.ts'
import { programProblem } from '../../core/base/file-errors.ts'
import { sanitizeLine } from '../../core/base/sanitize.ts'
import { type CredentialSource, openClient } from '../../core/client/index.ts'
import type { Service } from '../../core/protocol/service/service.ts'
import { credentialOf, isToken, type StoredCredential } from '../credentials/token-store.ts'
import { exitCodeOf, leaveSignalsTo, spawnOn } from '../io/command-child.ts'
import type { Io } from '../io/io.ts'
import { localCall } from '../session/session.ts'
import { revoke, type SignedIn } from './login-run.ts'

export type LentToken = {
  readonly token: string
  readonly server: string
  readonly caFile?: string | undefined
}

/**
 * Runs a command on this terminal with `SVC_TOKEN` and `SVC_SERVER` in its environment. Returns its exit code, which is
 * 128 plus the signal's number if a signal ended it. Rejects with `Fault` Local when it cannot be started.
 */
export async function runWithToken(command: readonly string[], lent: LentToken, io: Io): Promise<number> {
  const { SVC_PROFILE: _, ...rest } = io.env
  const child = spawnOn(io, command, {
    ...rest,
    SVC_TOKEN: lent.token,
    SVC_SERVER: lent.server,
    ...(lent.caFile === undefined ? {} : { SVC_CA_FILE: lent.caFile }),
  })
  const release = leaveSignalsTo(child, io.signals)
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        reject(new Fault('Local', `${command[0]} cannot be run: ${programProblem(error)}`))
      })
      child.once('close', (code, signal) => resolve(exitCodeOf(code, signal)))
    })
  } finally {
    release()
  }
}

/** A sign-in that only this process holds and renews; it is not stored. */
export function memoryCredential(
  first: StoredCredential,
  service: () => Pick<Service, 'getAccessToken'>,
): CredentialSource {
  let latest = first
  return {
    always: false,
    current: async () => credentialOf(latest),
    renew: async (_, signal) => {
      if (latest.rt === undefined) return undefined
      const { accessToken, refreshToken } = await service().getAccessToken(
        { RefreshToken: latest.rt },
        localCall(signal),
      )
      if (!isToken(accessToken)) return undefined
      latest = { at: accessToken, rt: isToken(refreshToken) ? refreshToken : latest.rt }
      return credentialOf(latest)
    },
  }
}

/** Milliseconds to sign out again. */
const signOutMs = 10_000

/** Runs a command with a sign-in that is not stored and ends with the command. Returns the command's exit code. */
export async function lendToken(
  command: readonly string[],
  { tokens: latest, user }: SignedIn,
  at: { readonly connection: Parameters<typeof openClient>[0]; readonly server: string },
  say: (text: string) => void,
  io: Io,
): Promise<number> {
  const { connection, server } = at
  const credential = memoryCredential(latest, () => openClient(connection))
  try {
    if (latest.at === undefined) {
      throw new Fault(
        'NotImplemented',
        `${server} issues sessions but no tokens, so it cannot sign in a single command`,
        {
          hints: ['Sign in without -- COMMAND.'],
        },
      )
    }
    say(`Signed in to ${server} as ${sanitizeLine(user)} for this command only: ${sanitizeLine(command[0] ?? '')}`)
    return await runWithToken(command, { token: latest.at, server, caFile: connection.caFile }, io)
  } finally {
    // ctrl-C may have ended the command; the sign-in must end nevertheless.
    const call = localCall(AbortSignal.timeout(signOutMs))
    await revoke({ ...connection, credential }, call).then(
      (done) =>
        say(
          done === 'still valid'
            ? `Warning: ${server} cannot revoke its tokens: this one stays valid until it expires.`
            : `Signed out of ${server}.`,
        ),
      (error: unknown) => say(`Warning: the sign-in at ${server} could not be ended: ${reasonOf(error)}`),
    )
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? sanitizeLine(error.message) : 'unknown')

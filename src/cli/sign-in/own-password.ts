import { Fault } from '../../core/base/errors.ts'
import { openClient } from '../../core/client/index.ts'
import type { Call } from '../../core/protocol/service/service.ts'
import { expired, serverOf, signedInAt, signedInProfile, signInOf } from '../credentials/credentials.ts'
import { credentialFrom, credentialOf, tokenStore, underLock } from '../credentials/token-store.ts'
import type { Io } from '../io/io.ts'
import { localCall } from '../session/session.ts'
import type { Settings } from '../settings/profiles.ts'
import type { CommandTarget } from '../settings/target.ts'
import { changeMs, unlessMustChange } from './login-run.ts'

/** The password of the user who is signed in at a server. */
export type OwnPassword = {
  readonly server: string
  /** Asks the server who is signed in, and renews an expired token. Returns the user name. */
  readonly verify: (call: Call) => Promise<string>
  /** Changes the password and stores the new session. Throws a Fault that says whether anything was changed. */
  readonly change: (
    passwords: { readonly current: string; readonly next: string },
    signal: AbortSignal,
  ) => Promise<void>
  readonly close: () => void
}

/** Throws Fault Unauthorized when nobody is signed in there. */
export async function openOwnPassword(
  target: Extract<CommandTarget, { kind: 'server' }>,
  settings: Settings,
  connection: Omit<Parameters<typeof openClient>[0], 'credential'>,
  io: Pick<Io, 'env' | 'stderr'>,
): Promise<OwnPassword> {
  const { env } = io
  const server = serverOf(target.url)
  const profile = signedInProfile(target, settings)
  const signIn = profile && signInOf(profile)
  const store = signIn && tokenStore(signIn, env)
  if (!signIn || !store || !(await store.read())) {
    throw new Fault('Unauthorized', `nobody is signed in at ${server}`, { hints: [`svc login --server ${server}`] })
  }
  const client = openClient({ ...connection, credential: signedInAt(target, settings, connection, io) })
  const verify = async (call: Call): Promise<string> => {
    const { UserName } = await client.authenticate({}, { ...call, verb: 'GET' }).catch(unlessMustChange)
    return UserName || signIn.user
  }
  return {
    server,
    verify,
    async change({ current, next }, signal) {
      // The prompts may have taken longer than an access token lives.
      await verify(localCall(signal))
      // No other process may renew a token that is about to end, and ctrl-C does not lose the answer of a change.
      await underLock(signIn, env, signal, async () => {
        const stored = await store.read()
        const credential = stored && credentialOf(stored)
        if (!credential) throw expired(signIn)
        const call = localCall(new AbortController().signal, { credential, timeoutMs: changeMs })
        const answer = await client
          .changePassword({ CurrentPassword: current, NewPassword: next }, call)
          .catch((error: unknown) => {
            throw explained(error)
          })
        const tokens = credentialFrom(answer, answer.RememberMe === true)
        const stays = tokens
          ? store.write(tokens)
          : Promise.reject(new Fault('Local', 'the server sent no new session'))
        await stays.catch((error: unknown) => {
          if (!(error instanceof Fault)) throw error
          throw new Fault(error.fault, `the password is changed, but the new session is not stored: ${error.message}`, {
            hints: [`svc login --server ${signIn.server} -u ${signIn.user}`],
          })
        })
      })
    },
    close: () => client.close(),
  }
}

/** A refusal in the words of the prompts. */
function explained(error: unknown): unknown {
  if (!(error instanceof Fault)) return error
  const { remoteStatus, fields: [field] = [] } = error.details
  if (field?.FieldName === 'CurrentPassword') {
    return new Fault('Unauthorized', 'the current password is wrong; nothing was changed', { remoteStatus })
  }
  if (field?.FieldName === 'NewPassword') {
    const refused = field.Message.replace("'NewPassword'", 'the new password')
    return new Fault('BadRequest', `${refused}; nothing was changed`, { remoteStatus })
  }
  // Without an answer, nobody knows whether the server has made the change.
  if (!unanswered.has(error.fault)) return error
  return new Fault(error.fault, `${error.message}; the password may have been changed`, error.details)
}

const unanswered: ReadonlySet<string> = new Set(['Timeout', 'Unreachable', 'UnreadableAnswer', 'ServerError'])

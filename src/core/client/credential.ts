import { Fault } from '../errors.ts'
import { type Operation, operations } from '../protocol/index.ts'
import type { Call, Credential } from '../service.ts'

/** Where a client gets what it presents. It belongs to one server: nothing of it goes anywhere else (K5). */
export type CredentialSource = {
  /** True: presented with what anyone may ask, too. Else that is asked without, and again with it after a 401 (K5). */
  readonly always: boolean
  readonly current: () => Promise<Credential | undefined>
  /** What stands for a credential that was answered with 401: renewed here, or meanwhile by another process (C5). */
  readonly renew: (rejected: Credential, signal: AbortSignal) => Promise<Credential | undefined>
}

/** True for what is answered to callers who are not known: asked without a credential at first. */
const forAnyone = (operation: Operation): boolean =>
  operations[operation].caller === 'anyone' && operation !== 'authenticate'
/** Sign-in, sign-out and renewal present what their call says, and nothing else. Asking who is signed in is a GET. */
const ofItsOwn = (operation: Operation, call: Call): boolean =>
  operation === 'getAccessToken' || (operation === 'authenticate' && call.verb !== 'GET')

const refused = (error: unknown): boolean =>
  error instanceof Fault && error.fault === 'Unauthorized' && error.details.remoteStatus === 401

/** What of a call's own credential is sent: a password is sent at a sign-in, and nowhere else. */
export const tokenOf = ({ credential }: Call): Credential | undefined =>
  credential?.kind === 'basic' ? undefined : credential

/** What a call presents at first, and whether a 401 to it is the end. */
export type Presenting = {
  readonly first: () => Promise<Credential | undefined>
  /** True: what is presented is the call's own affair, and nothing is renewed for it. */
  readonly own: boolean
}

export function presentingOf(operation: Operation, call: Call, source: CredentialSource | undefined): Presenting {
  const own = call.credential !== undefined || ofItsOwn(operation, call)
  const stored = !own && source && (source.always || !forAnyone(operation))
  return { own, first: async () => (stored ? await source.current() : tokenOf(call)) }
}

/**
 * Asks once with what there is; after a 401 once more with what is stored, if nothing was presented; and after a 401 to
 * that once more with what a renewal gives. Never a loop: three attempts at most (C5). `ask` rejects with the Fault.
 */
export async function presenting<R>(
  { first, own }: Presenting,
  source: CredentialSource | undefined,
  signal: AbortSignal,
  ask: (credential: Credential | undefined) => Promise<R>,
): Promise<R> {
  const presented = await first()
  try {
    return await ask(presented)
  } catch (error) {
    if (!refused(error) || !source || own) throw error
    if (presented) return await renewed(presented, error)
    const stored = await source.current()
    if (!stored) throw error
    try {
      return await ask(stored)
    } catch (second) {
      if (!refused(second)) throw second
      return await renewed(stored, second)
    }
  }

  async function renewed(rejected: Credential, error: unknown): Promise<R> {
    const next = await source?.renew(rejected, signal)
    if (!next) throw error
    return await ask(next)
  }
}

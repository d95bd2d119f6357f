import { Fault } from '../errors.ts'
import type { Call, PasswordCredential } from '../service.ts'
import { type Identity, identify } from './identify.ts'
import { findProvider } from './providers/index.ts'
import type { ProviderWorld } from './providers/provider.ts'

/** What of a call says who makes it. */
export type Presenting = Pick<Call, 'caller' | 'credential' | 'correlationId' | 'signal'>

/**
 * Who makes a call (A9, A10): undefined for whatever does not sign anybody in. A password is checked as
 * at a sign-in, counted and audited like one when it is wrong (P5), and begins no session. Throws what a
 * sign-in throws when too many are made at once.
 */
export async function whoever(world: ProviderWorld, call: Presenting): Promise<Identity | undefined> {
  const { credential } = call
  return credential?.kind === 'basic'
    ? await byPassword(world, credential, call)
    : await identify(world.data, world.now, credential)
}

async function byPassword(
  world: ProviderWorld,
  { userName, password }: PasswordCredential,
  call: Presenting,
): Promise<Identity | undefined> {
  if (userName.trim() === '' || password.trim() === '') return undefined
  const provider = await findProvider('credentials')
  if (!provider) return undefined
  try {
    const user = await provider.signIn(world, { UserName: userName, Password: password }, call)
    return { user, via: 'basic', sessionId: undefined, roles: user.roles, permissions: user.permissions }
  } catch (error) {
    if (error instanceof Fault && error.fault === 'Unauthorized') return undefined
    throw error
  }
}

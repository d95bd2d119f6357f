import type { Authenticate } from '../../protocol/index.ts'
import type { Call } from '../../service.ts'
import type { Data, User } from '../../store/index.ts'
import type { Delays } from '../delays.ts'
import type { Passwords } from '../passwords.ts'

/** The ways to sign in besides passwords, as svc.yaml turns them on. */
export type WaysToSignIn = {
  /** By HTTP Digest, for users that have a digest secret (A12). */
  readonly digest: boolean
}
export const passwordsOnly: WaysToSignIn = { digest: false }

/** What providers need to verify identities. */
export type ProviderContext = {
  readonly data: Data
  readonly passwords: Passwords
  readonly now: () => number
  readonly delays: Delays
  readonly ways: WaysToSignIn
}

export type Provider = {
  /** Returns the verified user; throws a Fault otherwise. Counts and audits failures itself. */
  readonly signIn: (
    world: ProviderContext,
    request: Authenticate,
    call: Pick<Call, 'caller' | 'correlationId' | 'signal'>,
  ) => Promise<User>
}

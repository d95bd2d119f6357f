import type { Authenticate } from '../../protocol/index.ts'
import type { Call } from '../../service.ts'
import type { Data, User } from '../../store/index.ts'
import type { Passwords } from '../passwords.ts'

/** What a provider proves identities with. */
export type ProviderContext = { readonly data: Data; readonly passwords: Passwords; readonly now: () => number }

export type Provider = {
  /** The user who is proved; throws a Fault when none is. Counts and audits a failure by itself. */
  readonly signIn: (
    world: ProviderContext,
    request: Authenticate,
    call: Pick<Call, 'caller' | 'correlationId' | 'signal'>,
  ) => Promise<User>
}

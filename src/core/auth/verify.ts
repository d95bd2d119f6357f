import type { Fault } from '../errors.ts'
import type { Call } from '../service.ts'
import type { User } from '../store/index.ts'
import { beginAttempt } from './attempts.ts'
import { addressOf } from './identify.ts'
import type { ProviderContext } from './providers/provider.ts'

export type Compared = {
  readonly right: boolean
  /** Why it is not right, for the audit, where that is not simply a wrong secret. */
  readonly reason?: string | undefined
}

/** How a provider compares what the caller presents with what the store has of a user. */
export type Comparison<C extends Compared> = {
  /** The user name as typed. */
  readonly name: string
  /** The provider by its name on the wire, for the audit. Absent: by password. */
  readonly how?: string | undefined
  /**
   * Does the same work when there is no such user, or none that may sign in (P2). Calls `admit` just before it compares,
   * and rejects if that does.
   */
  readonly compare: (user: User | undefined, admit: () => Promise<void>) => Promise<C>
  /** The last condition, for whoever has the right secret. If it throws, the attempt does not count as a failure. */
  readonly accept?: ((user: User, compared: C) => Promise<void>) | undefined
  readonly refusal: () => Fault
}

/**
 * Verifies a secret that strangers may guess at. Failures are counted, delayed, limited and audited (P5), the same for
 * users that do not exist, are disabled or locked (P2). Throws the refusal, and the faults of `beginAttempt`.
 */
export async function verifyUser<C extends Compared>(
  world: ProviderContext,
  { name, how, compare, accept, refusal }: Comparison<C>,
  call: Pick<Call, 'caller' | 'correlationId' | 'signal'>,
): Promise<{ readonly user: User; readonly compared: C }> {
  const attempt = await beginAttempt(world, name, call.caller, call.signal)
  const user = await world.data.users.find(name)
  const began = await attempt.locked()
  const usable = user && !user.disabled && !began ? user : undefined
  const compared = await compare(usable, attempt.admit)
  // Check the lock again: among many parallel attempts, only as many as the limit allows may learn the result.
  if (!usable || !compared.right || (await attempt.locked())) {
    const { locked, last } = await attempt.failed()
    const actor = {
      who: '-',
      userId: undefined,
      address: addressOf(call),
      correlationId: call.correlationId,
      reason: last ? limitReached : compared.reason,
    }
    // The user may have typed a password into the wrong field, so only existing names are recorded.
    await world.data.audit.write(locked ? 'signin.locked' : 'signin.failed', user?.userName, actor, how)
    throw refusal()
  }
  try {
    await accept?.(usable, compared)
  } catch (error) {
    await attempt.withdrawn()
    throw error
  }
  await attempt.succeeded(usable)
  return { user: usable, compared }
}

const limitReached = 'limit reached: addresses that have never signed in with this name are refused'

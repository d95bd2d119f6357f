import { randomUUID } from 'node:crypto'
import type { Fault } from '../../base/errors.ts'
import type { Call, Caller } from '../../protocol/service/service.ts'
import { type Data, nameKey, type Settlement, type User } from '../../store/index.ts'
import { type Attempt, beginAttempt, isRemembered, readState } from './attempts.ts'
import { addressOf } from './identify.ts'
import type { PacedAttempt } from './paces.ts'
import type { Passwords } from './passwords.ts'
import type { ProviderContext, VerifiedUser } from './providers/provider.ts'
import { newToken } from './tokens.ts'

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
  /** Does the same work when there is no such user, or none that may sign in (P2). */
  readonly compare: (user: User | undefined) => Promise<C>
  /**
   * Does all that reads the store and compares when it is the turn of this caller, for comparisons that cost so much that
   * they have a queue. Absent: at once.
   */
  readonly inTurn?: (<T>(work: () => Promise<T>, signal: AbortSignal, isKnown: boolean) => Promise<T>) | undefined
  /** The last condition, for whoever has the right secret. If it throws, the attempt does not count as a failure. */
  readonly accept?: ((user: User, compared: C) => Promise<void>) | undefined
  readonly refusal: () => Fault
}

/** `settles` is not stored yet: a sign-in stores it together with its session. */
type Verified<C> = { readonly user: User; readonly compared: C; readonly settles: Settlement | undefined }

/** Stores what a right secret changes where no session begins. */
export async function settleSignIn({ data }: Pick<ProviderContext, 'data'>, user: VerifiedUser): Promise<void> {
  if (user.settles) await data.settle(user, user.settles)
}

/**
 * Verifies a secret that strangers may guess at. Failures are counted, slowed down, limited and audited (P5), the same for
 * users that do not exist, are disabled or locked (P2). Throws the refusal, and the faults of the queues and of
 * `beginAttempt`. Asks the queues before it reads the store, so that a flood costs the store nothing.
 */
export async function verifyUser<C extends Compared>(
  context: ProviderContext,
  comparison: Comparison<C>,
  call: Pick<Call, 'caller' | 'correlationId' | 'signal'>,
): Promise<Verified<C>> {
  const { name } = comparison
  const { caller, signal } = call
  const isKnown = (group: string | undefined): boolean => isRemembered(context, name, caller, group)
  const paced = await context.paces.turn(caller, nameKey(name), isKnown, signal)
  let failed = false
  try {
    const inTurn = comparison.inTurn ?? ((work) => work())
    const outcome = await inTurn(() => tryOnce(context, comparison, caller, paced), signal, isKnown(paced.group))
    const { attempt, user, usable, compared } = outcome
    // Check the lock again: among many parallel attempts, only as many as the limit allows may learn the result.
    if (usable && compared.right && !(await attempt.locked())) return await accepted(comparison, outcome, usable)
    failed = true
    const { locked, last } = await attempt.failed()
    const actor = {
      who: '-',
      userId: undefined,
      address: addressOf(call),
      correlationId: call.correlationId,
      reason: last ? limitReached : compared.reason,
    }
    // The user may have typed a password into the wrong field, so only existing names are recorded.
    await context.data.audit.write(locked ? 'signin.locked' : 'signin.failed', user?.userName, actor, comparison.how)
    throw comparison.refusal()
  } finally {
    if (!failed) paced.withdrawn()
  }
}

async function tryOnce<C extends Compared>(
  context: ProviderContext,
  { name, compare }: Comparison<C>,
  caller: Caller,
  paced: PacedAttempt,
) {
  // Together they cost one round trip to a database server.
  const [attempt, user] = await Promise.all([beginAttempt(context, name, caller, paced), context.data.users.find(name)])
  const usable = user && !user.disabled && !attempt.began ? user : undefined
  await attempt.admit()
  return { attempt, user, usable, compared: await compare(usable) }
}

async function accepted<C extends Compared>(
  { accept }: Comparison<C>,
  { attempt, compared }: { readonly attempt: Attempt; readonly compared: C },
  user: User,
): Promise<Verified<C>> {
  try {
    await accept?.(user, compared)
  } catch (error) {
    await attempt.withdrawn()
    throw error
  }
  return { user, compared, settles: attempt.settlement() }
}

const limitReached = 'limit reached: addresses that have never signed in with this name are refused'

/**
 * Performs all reads of a sign-in, for a name and a session that do not exist. Writes nothing: no failure is counted or
 * audited. Throws the store's errors.
 */
export async function probeUserLookup(data: Data, now: () => number): Promise<void> {
  const name = `nobody-${randomUUID()}`
  await readState({ data, now }, name, '192.0.2.1')
  await data.users.find(name)
  await data.sessions.find(newToken('session').hash)
}

/**
 * Hashes a random password like a new one, and checks it and a wrong one against the hash. Throws Fault Unavailable
 * while too many sign-ins wait (P3).
 */
export async function probePasswordHash(passwords: Passwords, signal: AbortSignal): Promise<boolean> {
  const [right, otherPassword] = [randomUUID(), randomUUID()]
  const stored = await passwords.hash(right, signal)
  const [first, second] = await passwords.inTurn(
    async () => [await passwords.check(right, stored), await passwords.check(otherPassword, stored)] as const,
    signal,
  )
  return first.right && !first.outdated && !second.right
}

import type { FaultClass } from '../probe-error.ts'
import type { CheckContext } from './check-context.ts'
import { classify } from './classify.ts'
import { fail, type Result } from './result.ts'

/** Why one of several things could not be observed. */
export type Failure = { readonly fault: FaultClass; readonly message: string; readonly details: readonly string[] }

/** One of several things: what was observed of it, or why it could not be. */
export type Attempt<Observation> = { readonly observation: Observation } | { readonly failure: Failure }

/**
 * Observes one of several things that a check streams, so that one that cannot be observed does not hide the next.
 * Throws the cause on where the deadline or a broken connection ends them all.
 */
export async function attempt<Observation>(
  connection: { readonly address: string; readonly usable: boolean },
  { signal, now }: Pick<CheckContext, 'signal' | 'now'>,
  observe: () => Promise<Observation>,
): Promise<Attempt<Observation>> {
  const since = now()
  try {
    return { observation: await observe() }
  } catch (cause) {
    if (signal.aborted || !connection.usable) throw cause
    return { failure: classify(cause, connection.address, now() - since) }
  }
}

/** The result of an attempt that failed. */
export const failedAttempt = <const Name extends string>(
  check: Name,
  { fault, message, details }: Failure,
): Result<Name> => fail(check, fault, message, { details })

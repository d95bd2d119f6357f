import { classify } from './classify.ts'
import { fail, type Result } from './result.ts'

/** A part of a monitor that could not be looked at, while its other parts could. */
export type Broken = {
  readonly see: 'broken'
  readonly check: string
  readonly error: unknown
  readonly address?: string | undefined
  readonly afterMs: number
}

/**
 * Runs one part of a monitor and turns what it throws into an observation, so that one broken part
 * does not hide the others. Once the signal has aborted the deadline is the cause, and is thrown.
 */
export async function part<O>(
  check: string,
  context: { readonly signal: AbortSignal; readonly now: () => number },
  look: () => Promise<O>,
  address?: string,
): Promise<O | Broken> {
  const started = context.now()
  try {
    return await look()
  } catch (error) {
    context.signal.throwIfAborted()
    return { see: 'broken', check, error, address, afterMs: context.now() - started }
  }
}

export function evaluateBroken({ check, error, address, afterMs }: Broken): Result {
  const { fault, message, details } = classify(error, address, afterMs)
  return fail(check, fault, message, { details, address })
}

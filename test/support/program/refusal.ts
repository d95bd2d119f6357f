import { expect } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'

/** The Fault with which an attempt is refused; fails the test if there is none. */
export async function refusal(attempt: Promise<unknown>): Promise<Fault> {
  const error = await attempt.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  if (error instanceof Fault) return error
  return expect.fail(`this should have been a Fault: ${String(error)}`)
}

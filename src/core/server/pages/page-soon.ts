import { Fault } from '../../base/errors.ts'
import { orLate } from '../../base/pace.ts'

/** How long a page waits for optional data, in milliseconds: a store that hangs delays no page for longer. */
const pageMs = 1_000

/** The result of a promise, or undefined if that takes too long or the promise rejects with a Fault. */
export async function soon<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await orLate(promise, pageMs)
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

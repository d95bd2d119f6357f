import { Fault } from './errors.ts'

/**
 * Loads parts of the program before `svc serve` listens, so that no request has to find a file: one that
 * could not be opened for a moment, for want of descriptors, would fail the request, and Node itself keeps
 * the error of a module whose evaluation has failed. Throws Fault `Local` when a part cannot be loaded.
 */
export async function preload(...parts: readonly (() => Promise<unknown>)[]): Promise<void> {
  try {
    await Promise.all(parts.map((load) => load()))
  } catch (error) {
    if (error instanceof Fault) throw error
    const why = error instanceof Error ? error.message : String(error)
    throw new Fault('Local', `svc cannot load all that it needs to answer requests: ${why}`, {
      hints: ['Too many open files: raise the limit (ulimit -n, LimitNOFILE=). A missing file: install svc again.'],
      cause: error,
    })
  }
}

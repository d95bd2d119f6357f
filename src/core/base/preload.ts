import { Fault } from './errors.ts'
import { fileMeaning } from './file-errors.ts'

/**
 * Loads parts of the program before `svc serve` listens, so that no request has to load files. A file that cannot be
 * opened for a moment, e.g. for lack of descriptors, would fail the request, and Node keeps the error of a module
 * whose evaluation failed. Throws Fault `Local` when a part cannot be loaded.
 */
export async function preload(...parts: readonly (() => Promise<unknown>)[]): Promise<void> {
  try {
    await Promise.all(parts.map((load) => load()))
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('Local', `svc cannot load all that it needs to answer requests: ${reasonOf(error)}`, {
      hints: ['Too many open files: raise the limit (ulimit -n, LimitNOFILE=). A missing file: install svc again.'],
      cause: error,
    })
  }
}

function reasonOf(error: unknown): string {
  const { message, path } = (error ?? {}) as { readonly message?: unknown; readonly path?: unknown }
  const meaning = fileMeaning(error)
  if (meaning !== undefined) return `${typeof path === 'string' ? path : 'a file of svc'} ${meaning}`
  return typeof message === 'string' ? message : String(error)
}

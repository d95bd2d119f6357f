/** Rejects as soon as the signal aborts, whether or not the promise heeds it. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {})
    return Promise.reject(signal.reason as Error)
  }
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** A signal that aborts with its parent or after `ms`; `clear` leaves no timer and no listener. */
export function deadlineSignal(
  parent: AbortSignal,
  ms: number,
): { readonly signal: AbortSignal; readonly clear: () => void } {
  const controller = new AbortController()
  const abort = (): void => controller.abort(parent.reason)
  if (parent.aborted) abort()
  else parent.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(() => controller.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError')), ms)
  return {
    signal: controller.signal,
    clear: () => {
      clearTimeout(timer)
      parent.removeEventListener('abort', abort)
    },
  }
}

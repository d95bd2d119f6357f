import { setTimeout as pause } from 'node:timers/promises'

/**
 * The outcome of `work`, for work that only its own deadline can end. It fails when `times` timers of that length, each
 * set after the one before has fired, end first. No milliseconds are compared: a machine that stalls delays these
 * timers as much as the work, so the order in which the two end shows whether the deadline was honoured.
 *
 * @param deadlineMs the deadline of the work, in milliseconds
 */
export async function endsByDeadline<T>(deadlineMs: number, work: Promise<T>, times = 10): Promise<T> {
  const control = new AbortController()
  const timers = async (): Promise<never> => {
    for (let n = 0; n < times; n += 1) await pause(deadlineMs, undefined, { signal: control.signal })
    throw new Error(`the work went on for longer than ${times} deadlines of ${deadlineMs} ms, one after the other`)
  }
  try {
    return await Promise.race([work, timers()])
  } finally {
    control.abort()
  }
}

/**
 * Fails unless a timer of `ms`, set before `work` begins, fires before the work ends. For work that has to last that
 * long: Node fires timers in the order in which they are due, however late all of them are.
 */
export async function lastsAtLeast<T>(ms: number, work: () => Promise<T>): Promise<T> {
  let fired = false
  const timer = setTimeout(() => {
    fired = true
  }, ms)
  try {
    const result = await work()
    if (!fired) throw new Error(`the work ended before a timer of ${ms} ms`)
    return result
  } finally {
    clearTimeout(timer)
  }
}

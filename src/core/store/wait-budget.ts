import { maxWaitMs } from './link.ts'

/**
 * How long a caller may still wait for the store. Questions that follow one another use up the same time, so that a
 * request which asks six times waits no longer than one which asks once; questions that run side by side use it once.
 */
export class WaitBudget {
  #leftMs = maxWaitMs
  #running = 0
  #since = 0

  /** A question begins: the time by which it is answered or fails, by the monotonic clock. */
  begin(): number {
    if (this.#running === 0) this.#since = performance.now()
    this.#running += 1
    return this.#since + this.#leftMs
  }

  end(): void {
    this.#running -= 1
    if (this.#running === 0) this.#leftMs -= performance.now() - this.#since
  }
}

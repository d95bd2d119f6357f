import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../errors.ts'

/** Failures without a delay, and the delays of those that follow. */
const delays = { after: 5, firstMs: 250, longestMs: 8_000 } as const

/** A quarter of a second after the fifth consecutive failure, doubled with each further one, at most 8 s. */
export const delayMs = (count: number): number =>
  count < delays.after ? 0 : Math.min(delays.longestMs, delays.firstMs * 2 ** Math.min(10, count - delays.after))

/** At most so many requests wait at once, for one name and for all. */
const most = { ofName: 4, ofAll: 32 } as const

/**
 * Delays of sign-ins, once per process. Their number is limited, so that they cannot use up the connections of the
 * server. With four of them that wait 8 s each, one name can be guessed at every two seconds.
 */
export class Delays {
  readonly #ofName = new Map<string, number>()
  #ofAll = 0

  /** Throws Fault Unavailable when too many wait. Rejects when the caller disconnects. */
  async wait(name: string, ms: number, signal: AbortSignal): Promise<void> {
    const others = this.#ofName.get(name) ?? 0
    if (others >= most.ofName || this.#ofAll >= most.ofAll) {
      throw new Fault('Unavailable', 'Too many sign-ins at once', { retryAfter: Math.ceil(ms / 1_000) })
    }
    this.#ofName.set(name, others + 1)
    this.#ofAll += 1
    try {
      await pause(ms, undefined, { signal })
    } finally {
      const left = (this.#ofName.get(name) ?? 1) - 1
      if (left === 0) this.#ofName.delete(name)
      else this.#ofName.set(name, left)
      this.#ofAll -= 1
    }
  }
}

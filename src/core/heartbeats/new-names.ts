import { Fault } from '../errors.ts'

/** New names that a caller may send at once. */
const burst = 100
/** Milliseconds until a caller regains one: all 10,000 names of the store last 16 hours. */
const regainMs = 6_000
/** Callers to remember. */
const maxCallers = 1_000

type Bucket = { readonly left: number; readonly atMs: number }

/**
 * Limits how fast callers add names of heartbeats, so that one lost key does not fill the store. Each process counts for
 * itself. Times are milliseconds of a monotonic clock.
 */
export class NewNames {
  readonly #buckets = new Map<string, Bucket>()

  /**
   * The admission of one report, which the store asks for if the name is new; it counts once, however often the
   * transaction is tried. Throws Fault TooManyRequests when the caller has none left.
   */
  admission(caller: string, nowMs: number): () => void {
    let isCounted = false
    return () => {
      if (isCounted) return
      this.#take(caller, nowMs)
      isCounted = true
    }
  }

  #take(caller: string, nowMs: number): void {
    const { left, atMs } = this.#buckets.get(caller) ?? { left: burst, atMs: nowMs }
    const now = Math.min(burst, left + (nowMs - atMs) / regainMs)
    if (now < 1) {
      throw new Fault('TooManyRequests', 'Too many new names of heartbeats from this caller', {
        retryAfter: Math.ceil(((1 - now) * regainMs) / 1_000),
      })
    }
    // The caller moves to the end, so that the one that has been quiet for longest is forgotten first.
    this.#buckets.delete(caller)
    this.#buckets.set(caller, { left: now - 1, atMs: nowMs })
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size > maxCallers && oldest !== undefined) this.#buckets.delete(oldest)
  }
}

import { ProviderProblem } from './ask.ts'

/** Milliseconds. */
export type CacheTimes = {
  /** Used without another request. */
  readonly fresh: number
  /** Used while the provider does not answer. */
  readonly stale: number
}

/** After a failed request, the provider is left alone for this long. Milliseconds. */
export const pauseMs = 10_000

/** A document of the provider, requested again when it is old. Concurrent callers share one request. */
export class DocumentCache<T> {
  readonly #load: (now: () => number) => Promise<T>
  readonly #times: CacheTimes
  #value: { readonly it: T; readonly at: number } | undefined
  #triedAt = Number.NEGATIVE_INFINITY
  #failedAt = Number.NEGATIVE_INFINITY
  #problem: unknown
  #loading: Promise<void> | undefined

  constructor(times: CacheTimes, load: (now: () => number) => Promise<T>) {
    this.#times = times
    this.#load = load
  }

  /**
   * The document. `renewAfter`: milliseconds after the last request from which it is requested again although it is
   * fresh. Throws ProviderProblem when there is none that may still be used.
   */
  async get(now: () => number, renewAfter?: number): Promise<T> {
    const at = now()
    const age = this.#value === undefined ? Number.POSITIVE_INFINITY : Math.abs(at - this.#value.at)
    const isDue = age >= this.#times.fresh || (renewAfter !== undefined && at - this.#triedAt >= renewAfter)
    if (isDue && Math.abs(at - this.#failedAt) >= pauseMs) {
      this.#loading ??= this.#renew(now)
      await this.#loading
    }
    const current = this.#value
    if (current && Math.abs(at - current.at) < this.#times.stale) return current.it
    throw this.#problem ?? new ProviderProblem('the provider did not answer')
  }

  async #renew(now: () => number): Promise<void> {
    const at = now()
    this.#triedAt = at
    try {
      this.#value = { it: await this.#load(now), at }
      this.#failedAt = Number.NEGATIVE_INFINITY
    } catch (error) {
      this.#failedAt = now()
      this.#problem = error
    } finally {
      this.#loading = undefined
    }
  }
}

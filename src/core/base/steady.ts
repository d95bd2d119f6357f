/** How long something has to last before it is said. Milliseconds. */
export type Patience = { readonly failedMs: number; readonly wellMs: number }
/** That with a store: at load, it is late several times a minute, and then answers again. */
export const storePatience: Patience = { failedMs: 10_000, wellMs: 120_000 }

/** The news: that it has failed, and why, or that it is well again. */
export type News = { readonly what: 'failed'; readonly why: string } | { readonly what: 'well' }

/**
 * The words about something that may change many times a minute, such as a store at load: a failure that has lasted, a reason
 * that has lasted and differs from the one that was said, and that it is well once nothing has failed for long. It decides
 * about words only. It has no clock.
 *
 * @example
 * ```ts
 * const store = new Steady({ failedMs: 10_000, wellMs: 60_000 })
 * store.observe('cannot be reached', 0) // undefined
 * store.observe('cannot be reached', 10_000) // { what: 'failed', why: 'cannot be reached' }
 * store.observe(undefined, 11_000) // undefined
 * store.observe(undefined, 71_000) // { what: 'well' }
 * ```
 */
export class Steady {
  readonly #patience: Patience
  #latest: string | undefined
  /** Since when it has been well or failed, for whatever reason, and since when for this one. */
  #since: { readonly isWell: boolean; readonly at: number } | undefined
  #reason: { readonly why: string | undefined; readonly since: number } | undefined

  constructor(patience: Patience) {
    this.#patience = patience
  }

  /** `why`: undefined while it is well. `now` never goes back. */
  observe(why: string | undefined, now: number): News | undefined {
    const isWell = why === undefined
    if (this.#since?.isWell !== isWell) this.#since = { isWell, at: now }
    if (!this.#reason || this.#reason.why !== why) this.#reason = { why, since: now }
    const { failedMs, wellMs } = this.#patience
    // One failure may have many reasons, none of which lasts.
    const since = isWell || this.#latest === undefined ? this.#since.at : this.#reason.since
    if (why === this.#latest || now - since < (isWell ? wellMs : failedMs)) return undefined
    this.#latest = why
    return why === undefined ? { what: 'well' } : { what: 'failed', why }
  }
}

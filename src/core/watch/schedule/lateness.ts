/** The highest of the values of the last minute or two. */
export class RecentHighest {
  readonly #windowMs: number
  #since = Number.NEGATIVE_INFINITY
  #highest = 0
  #before = 0

  constructor(windowMs = 60_000) {
    this.#windowMs = windowMs
  }

  add(value: number, now: number): void {
    this.#roll(now)
    this.#highest = Math.max(this.#highest, value)
  }

  /** 0 if there was none. */
  at(now: number): number {
    this.#roll(now)
    return Math.max(this.#highest, this.#before)
  }

  #roll(now: number): void {
    const age = now - this.#since
    if (age < this.#windowMs) return
    this.#before = age < 2 * this.#windowMs ? this.#highest : 0
    this.#highest = 0
    this.#since = now
  }
}

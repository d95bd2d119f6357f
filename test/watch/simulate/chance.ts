/** Numbers that look random and are the same for the same seed (mulberry32). */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed + 1, 0x9e3779b1) >>> 0
  }

  /** From 0 up to, and without, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let value = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }

  between(low: number, high: number): number {
    return Math.floor(low + this.next() * (high - low))
  }

  is(probability: number): boolean {
    return this.next() < probability
  }

  of<T>(items: readonly T[]): T {
    const item = items[this.between(0, items.length)]
    if (item === undefined) throw new Error('nothing to choose from')
    return item
  }
}

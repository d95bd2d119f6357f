import type { InsertedEntry } from './audit-gate.ts'

/** How many entries are remembered at most, and for how many milliseconds. */
const maxEntries = 1_000
const rememberedMs = 600_000

/**
 * The audit entries that this process has written lately. Their changes were acknowledged, so that the store must have them:
 * if it does not, it is an earlier state of itself. The numbers of entries alone do not show that, because a standby that
 * becomes the primary skips up to 32 numbers.
 */
export class WrittenEntries {
  /** By number, the oldest first. */
  readonly #entries = new Map<number, { readonly correlationId: string; readonly at: number }>()
  readonly #now: () => number

  /** `now`: elapsed milliseconds of a clock that nobody sets. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  add(entries: readonly InsertedEntry[]): void {
    const at = this.#now()
    for (const { id, correlationId } of entries) {
      // The number may be used again after a loss.
      this.#entries.delete(id)
      this.#entries.set(id, { correlationId, at })
    }
    for (const [oldest] of this.#entries) {
      if (this.#entries.size <= maxEntries) break
      this.#entries.delete(oldest)
    }
  }

  /** The numbers to look for in the store. */
  remembered(): readonly number[] {
    const since = this.#now() - rememberedMs
    for (const [id, { at }] of this.#entries) {
      if (at >= since) break
      this.#entries.delete(id)
    }
    return [...this.#entries.keys()]
  }

  /** Of these numbers, those that the store does not have with the same entry, in order. They are forgotten. */
  lost(looked: readonly number[], present: readonly InsertedEntry[]): readonly number[] {
    const stored = new Map(present.map(({ id, correlationId }) => [id, correlationId]))
    const lost = looked.filter((id) => {
      const own = this.#entries.get(id)
      return own !== undefined && stored.get(id) !== own.correlationId
    })
    for (const id of lost) this.#entries.delete(id)
    return lost.toSorted((one, other) => one - other)
  }
}

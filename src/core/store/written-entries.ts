import type { InsertedEntry } from './audit-gate.ts'

/** How many entries are remembered at most, and for how many milliseconds. */
const maxEntries = 1_000
const rememberedMs = 600_000

type WrittenEntry = InsertedEntry & { readonly at: number }

/**
 * The audit entries that this process has written lately. Their changes were acknowledged, so that the store must have them:
 * if it does not, it is an earlier state of itself. The numbers of entries alone do not show that, because a standby that
 * becomes the primary skips up to 32 numbers.
 */
export class WrittenEntries {
  /** The oldest first. After a loss, two of them may have one number: the store counts on from where it went back to. */
  #entries: readonly WrittenEntry[] = []
  readonly #now: () => number

  /** `now`: elapsed milliseconds of a clock that nobody sets. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  add(entries: readonly InsertedEntry[]): void {
    const at = this.#now()
    this.#entries = [...this.#entries, ...entries.map((one) => ({ ...one, at }))].slice(-maxEntries)
  }

  /** Those to look for in the store. */
  remembered(): readonly WrittenEntry[] {
    const since = this.#now() - rememberedMs
    this.#entries = this.#entries.filter(({ at }) => at >= since)
    return this.#entries
  }

  /** The numbers of those of them that the store does not have, in order. They are forgotten. */
  lost(looked: readonly WrittenEntry[], present: readonly InsertedEntry[]): readonly number[] {
    const stored = new Set(present.map(nameOf))
    const lost = new Set(looked.filter((one) => !stored.has(nameOf(one))))
    this.#entries = this.#entries.filter((one) => !lost.has(one))
    return [...lost].map(({ id }) => id).toSorted((one, other) => one - other)
  }
}

const nameOf = ({ id, correlationId }: InsertedEntry): string => `${id} ${correlationId}`

import type { Shift } from '../schedule/index.ts'
import type { HistorySource } from './reader.ts'
import { dueBlocks } from './repack.ts'

/** How often longer periods are made of shorter ones that are complete, and for how many monitors at a time. */
const repackEveryMs = 5_000
const repackAtOnce = 5

/**
 * Stores what the recorder of a source has, and packs what is complete. It has no clock: `turn` is to be called about once a
 * second, one call after the other.
 */
export class HistoryKeeper {
  readonly source: HistorySource
  #isPacked = false
  #repackAt = Number.NEGATIVE_INFINITY

  constructor(source: HistorySource) {
    this.source = source
  }

  /**
   * Stores what is new in one transaction. Rejects with the faults of the store; nothing is lost then, and the next turn
   * tries again.
   */
  async turn(now: number): Promise<void> {
    const { rows, recorder, names } = this.source
    const { unnumbered } = recorder
    if (unnumbered.names.length > 0 || unnumbered.monitors.length > 0) {
      const numbered = await rows.number(unnumbered)
      for (const { number, text } of numbered.names) names.set(number, text)
      recorder.numbered(numbered)
    }
    const batch = recorder.batch(now, this.#isPacked)
    if (batch) {
      await rows.write(batch)
      recorder.stored(batch)
    }
    // What is not stored yet would be missing in the longer periods.
    if (!recorder.isBehind && now >= this.#repackAt) await this.#repack(now)
  }

  /** The line that people read has shifted. */
  shift(shift: Shift): void {
    this.source.recorder.shift(shift)
    this.#repackAt = Number.NEGATIVE_INFINITY
  }

  async #repack(now: number): Promise<void> {
    const { rows, recorder, names } = this.source
    const nameOf = (number: number): string | undefined => names.get(number)
    const blocks = await dueBlocks(rows, { nameOf, numberOf: recorder.numberOf }, now, repackAtOnce)
    this.#isPacked = blocks.length === 0
    this.#repackAt = this.#isPacked ? now + repackEveryMs : now
    if (!this.#isPacked) await rows.write({ blocks, deleteRunsBefore: 0 })
  }
}

import { type HistorySource, keysByNumber, replay } from './reader.ts'
import type { RunsId } from './rows.ts'

/** How often what other nodes store is read. Milliseconds. */
const followEveryMs = 5_000
/** Runs that another node stores later than this after they ended are not followed. Milliseconds. */
const lateMs = 600_000
/** How many rows of runs are read at once. */
const rowsAtOnce = 60

/**
 * Takes what other nodes store into the recorder of a source, so that the history of each node has the runs of all of them, and
 * whoever takes a monitor over goes on with what the node before has stored. It has no clock: `turn` is to be called about
 * once a second, one call after the other.
 */
export class HistoryFollower {
  readonly #source: HistorySource
  /** The rows that the recorder has, by `idOf`, with when they ended. */
  readonly #replayed: Map<string, number>
  /** The largest numbers that were read. Those that this node got itself do not count: others may have smaller ones. */
  #numbers: { readonly names: number; readonly monitors: number }
  #readAt = Number.NEGATIVE_INFINITY

  constructor(source: HistorySource) {
    const { recorder, names, replayed = [] } = source
    this.#source = source
    this.#replayed = new Map(replayed.map((row) => [idOf(row), row.at]))
    this.#numbers = {
      names: largest(names.keys()),
      monitors: largest(recorder.monitors.map(({ number = 0 }) => number)),
    }
  }

  /** Rejects with the faults of the store: the next turn tries again. */
  async turn(now: number): Promise<void> {
    if (now - this.#readAt < followEveryMs && now >= this.#readAt) return
    const { rows } = this.#source
    const since = now - lateMs
    // Before the numbers, so that these contain all that the rows name.
    const fresh = (await rows.othersSince(since)).filter((row) => !this.#replayed.has(idOf(row)))
    if (fresh.length > 0) await this.#adopt()
    const keys = keysByNumber(this.#source.recorder)
    for (let at = 0; at < fresh.length; at += rowsAtOnce) {
      const some = fresh.slice(at, at + rowsAtOnce)
      // What a clock that is ahead wrote ended now.
      replay(this.#source, keys, await rows.runsOf(some), (run) => (run.at <= now ? run : { ...run, at: now }))
      for (const row of some) this.#replayed.set(idOf(row), row.at)
    }
    for (const [id, at] of this.#replayed) if (at < since) this.#replayed.delete(id)
    this.#readAt = now
  }

  /** Monitors and names that others have added. */
  async #adopt(): Promise<void> {
    const { rows, recorder, names } = this.#source
    const numbered = await rows.numbered(this.#numbers)
    recorder.adopt(numbered)
    for (const { number, text } of numbered.names) names.set(number, text)
    this.#numbers = {
      names: Math.max(this.#numbers.names, largest(numbered.names.map(({ number }) => number))),
      monitors: Math.max(this.#numbers.monitors, largest(numbered.monitors.map(({ number }) => number))),
    }
  }
}

const idOf = ({ at, writer }: RunsId): string => `${at} ${writer}`

const largest = (numbers: Iterable<number>): number => {
  let most = 0
  for (const number of numbers) most = Math.max(most, number)
  return most
}

import { setTimeout as wait } from 'node:timers/promises'
import type { Runtime } from '../service.ts'

/** Milliseconds that a scrape waits for the store while the outcome of an earlier scrape is known. */
const scrapeWaitMs = 200
/** Milliseconds after which an outcome says nothing about the store any more: longer than the usual pause of scrapes. */
const outcomeLifeMs = 120_000

/** The number of audit entries that the store has; undefined when it did not answer in time. */
type Outcome = number | undefined

/**
 * Asks the store for what `/metrics` says of it. A store that hangs delays the first scrape by the whole time limit; after
 * that, a scrape waits for a moment and then repeats the outcome of the query before, which the next scrape replaces.
 */
export class StoreProbe {
  readonly #runtime: Pick<Runtime, 'ready' | 'auditEntries'>
  readonly #limitMs: number
  #last: { readonly outcome: Outcome; readonly at: number } | undefined
  /** Scrapes that overlap share a query. */
  #underWay: Promise<Outcome> | undefined

  /** `limitMs`: how long the store may take. */
  constructor(runtime: Pick<Runtime, 'ready' | 'auditEntries'>, limitMs: number) {
    this.#runtime = runtime
    this.#limitMs = limitMs
  }

  /** Never rejects. */
  async outcome(): Promise<Outcome> {
    this.#underWay ??= this.#query()
    const last = this.#last
    if (!last || performance.now() - last.at > outcomeLifeMs) return await this.#underWay
    return await Promise.race([this.#underWay, wait(scrapeWaitMs, last.outcome, { ref: false })])
  }

  async #query(): Promise<Outcome> {
    const outcome = await this.#answer()
    this.#last = { outcome, at: performance.now() }
    this.#underWay = undefined
    return outcome
  }

  async #answer(): Promise<Outcome> {
    const { ready, auditEntries } = this.#runtime
    const deadline = AbortSignal.timeout(this.#limitMs)
    const { promise: late, reject } = Promise.withResolvers<never>()
    deadline.addEventListener('abort', () => reject(deadline.reason as Error), { once: true })
    late.catch(() => {})
    try {
      await Promise.race([ready(deadline), late])
      return auditEntries === undefined ? 0 : await Promise.race([auditEntries(), late])
    } catch {
      return undefined
    }
  }
}

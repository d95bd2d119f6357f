import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../../base/errors.ts'
import type { Sample } from '../../protocol/service/family.ts'
import type { Data, Keeper, KeeperLog } from '../../store/index.ts'
import { loadInspection, loadKeeper } from '../../store/index.ts'
import type { Part } from '../part.ts'

/** The work of `svc serve` on its store beside the requests, and the metrics of the store. */
export function storePart(
  store: () => Promise<Data>,
  {
    ready,
    log = () => {},
  }: { readonly ready: (signal: AbortSignal) => Promise<void>; readonly log?: KeeperLog | undefined },
): Part {
  let keeper: Keeper | undefined
  let closed = false
  const metrics = storeMetrics(
    async (signal) => {
      await ready(signal)
      return (await (await store()).audit.list({ limit: 1 }))[0]?.id ?? 0
    },
    () => keeper?.state(),
  )
  return {
    preload: async () => await Promise.all([loadKeeper(), loadInspection()]),
    firstUse: async (opened) => {
      const keepStore = await loadKeeper()
      if (!closed) keeper ??= keepStore(opened, log)
    },
    ready: async () => {
      const reason = await keeper?.unready()
      if (reason !== undefined) throw new Fault('Unavailable', reason, { retryAfter: 5 })
    },
    metrics,
    close: async () => {
      closed = true
      keeper?.stop()
    },
  }
}

/**
 * The families of /metrics about the store. `auditEntries`: the number of audit entries since the store was made; rejects
 * when the store does not answer.
 */
export function storeMetrics(
  auditEntries: (signal: AbortSignal) => Promise<number>,
  stateNow: () => ReturnType<Keeper['state']> | undefined,
): NonNullable<Part['metrics']> {
  const probe = new StoreProbe(auditEntries)
  return async (limitMs) => {
    const audited = await probe.outcome(limitMs)
    const state = stateNow()
    return [
      {
        name: 'svc_store_up',
        type: 'gauge',
        help: '1 if the store answers, 0 if not.',
        samples: only(Number(audited !== undefined)),
      },
      {
        name: 'svc_audit_entries',
        type: 'counter',
        help: 'Audit entries written since the store was created.',
        samples: only(audited),
      },
      {
        name: 'svc_store_clock_skew_seconds',
        type: 'gauge',
        help: 'By how much the clock of this machine is ahead of the clock of the store.',
        samples: only(state?.clockSkewMs === undefined ? undefined : state.clockSkewMs / 1_000),
      },
      {
        name: 'svc_store_writable',
        type: 'gauge',
        help: '1 if the store can be written, 0 from a write that failed until one succeeds.',
        samples: only(state && Number(state.writable)),
      },
      {
        name: 'svc_store_sweeps_failed',
        type: 'counter',
        help: 'Attempts to delete expired rows that failed.',
        samples: only(state?.sweepFailures),
      },
    ]
  }
}

const only = (value: number | undefined): readonly Sample[] => (value === undefined ? [] : [{ value }])

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
class StoreProbe {
  readonly #ask: (signal: AbortSignal) => Promise<number>
  #last: { readonly outcome: Outcome; readonly at: number } | undefined
  /** Scrapes that overlap share a query. */
  #underWay: Promise<Outcome> | undefined

  /** `ask` rejects when the store does not answer. */
  constructor(ask: (signal: AbortSignal) => Promise<number>) {
    this.#ask = ask
  }

  /** `limitMs`: how long the store may take. Never rejects. */
  async outcome(limitMs: number): Promise<Outcome> {
    this.#underWay ??= this.#query(limitMs)
    const last = this.#last
    if (!last || performance.now() - last.at > outcomeLifeMs) return await this.#underWay
    return await Promise.race([this.#underWay, wait(scrapeWaitMs, last.outcome, { ref: false })])
  }

  async #query(limitMs: number): Promise<Outcome> {
    const outcome = await this.#answer(limitMs)
    this.#last = { outcome, at: performance.now() }
    this.#underWay = undefined
    return outcome
  }

  async #answer(limitMs: number): Promise<Outcome> {
    const deadline = AbortSignal.timeout(limitMs)
    const { promise: late, reject } = Promise.withResolvers<never>()
    deadline.addEventListener('abort', () => reject(deadline.reason as Error), { once: true })
    late.catch(() => {})
    try {
      return await Promise.race([this.#ask(deadline), late])
    } catch {
      return undefined
    }
  }
}

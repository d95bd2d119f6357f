import { availableParallelism } from 'node:os'
import { Fault } from '../errors.ts'

/** Seconds after which a refused caller may try again. */
const retryAfter = 1
const waitingPerSlot = 8

type Waiter = { readonly start: () => void; readonly refuse: (reason: unknown) => void }

/**
 * P3: how many hashes are made at once. Unbounded ones take every thread that Node reads files with,
 * and hundreds of megabytes; bounded ones are faster as well. Whoever finds the queue full, or waits
 * too long, is refused before any hash.
 */
export class HashQueue {
  readonly slots: number
  readonly #patienceMs: number
  readonly #waiting = new Set<Waiter>()
  #running = 0

  constructor(slots = defaultSlots(process.env.UV_THREADPOOL_SIZE), patienceMs = 2_000) {
    this.slots = slots
    this.#patienceMs = patienceMs
  }

  /** Throws Fault Unavailable when there is no room, and the signal's reason when the caller goes away. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted()
    if (this.#running < this.slots) this.#running += 1
    else await this.#turn(signal)
    try {
      return await work()
    } finally {
      const [next] = this.#waiting
      if (next) next.start()
      else this.#running -= 1
    }
  }

  /** Resolves with the slot of somebody who has finished. */
  #turn(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= this.slots * waitingPerSlot) throw full()
    return new Promise((resolve, reject) => {
      const settle = (done: () => void): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', aborted)
        this.#waiting.delete(waiter)
        done()
      }
      const waiter: Waiter = {
        start: () => settle(resolve),
        refuse: (reason) => settle(() => reject(reason)),
      }
      const aborted = (): void => waiter.refuse(signal.reason)
      const timer = setTimeout(() => waiter.refuse(full()), this.#patienceMs)
      signal.addEventListener('abort', aborted, { once: true })
      this.#waiting.add(waiter)
    })
  }
}

const full = (): Fault => new Fault('Unavailable', 'Too many sign-ins at once', { retryAfter })

/** Two of libuv's threads stay free for files and names; `poolSize` is UV_THREADPOOL_SIZE, 4 where unset. */
export function defaultSlots(poolSize: string | undefined, cores = availableParallelism()): number {
  const threads = /^\d{1,4}$/.test(poolSize ?? '') ? Number(poolSize) : 4
  return Math.max(1, Math.min(cores, threads - 2))
}

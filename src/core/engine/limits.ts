import { showDuration } from '../format.ts'
import type { Target } from '../settings/index.ts'

/** State that lasts from run to run: slots and refused sign-ins. Made once and passed down. */
export type Limits = { readonly slots: Slots; readonly refusals: Refusals }
export const limits = (): Limits => ({ slots: new Slots(), refusals: new Refusals() })

/** Concurrency limits: 200 at once, 4 per host, 1 per database. */
export class Slots {
  readonly #max: { readonly all: number; readonly host: number; readonly database: number }
  readonly #used = new Map<string, number>()
  #waiting: { readonly keys: readonly Key[]; readonly start: () => void }[] = []

  constructor(max = { all: 200, host: 4, database: 1 }) {
    this.#max = max
  }

  /** Resolves with a function that releases the slot. Rejects when the signal aborts first. */
  take(target: Target, signal: AbortSignal): Promise<() => void> {
    const keys: Key[] = [{ key: 'all', max: this.#max.all }]
    if (target.host) keys.push({ key: `host ${target.host.toLowerCase()}`, max: this.#max.host })
    if (target.database) keys.push({ key: `database ${target.database}`, max: this.#max.database })
    if (signal.aborted) return Promise.reject(signal.reason as Error)
    if (this.#free(keys)) return Promise.resolve(this.#occupy(keys))
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== entry)
        reject(signal.reason as Error)
      }
      const entry = {
        keys,
        start: (): void => {
          signal.removeEventListener('abort', abort)
          resolve(this.#occupy(keys))
        },
      }
      this.#waiting.push(entry)
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  #free(keys: readonly Key[]): boolean {
    return keys.every(({ key, max }) => (this.#used.get(key) ?? 0) < max)
  }

  #occupy(keys: readonly Key[]): () => void {
    for (const { key } of keys) this.#used.set(key, (this.#used.get(key) ?? 0) + 1)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      for (const { key } of keys) {
        const left = (this.#used.get(key) ?? 1) - 1
        if (left > 0) this.#used.set(key, left)
        else this.#used.delete(key)
      }
      this.#next()
    }
  }

  /** First come, first served, among those whose slots are free. */
  #next(): void {
    for (const entry of this.#waiting) {
      if (!this.#free(entry.keys)) continue
      this.#waiting = this.#waiting.filter((other) => other !== entry)
      entry.start()
    }
  }
}
type Key = { readonly key: string; readonly max: number }

const firstPauseMs = 5 * 60_000
const maxPauseMs = 60 * 60_000

/**
 * Does not repeat a refused sign-in for 5 minutes, doubling up to an hour: a wrong monitoring password that is tried
 * every ten seconds would lock an account that the application uses too.
 */
export class Refusals {
  readonly #refusals = new Map<string, { readonly at: number; readonly pause: number }>()

  blocked(key: string, now: number): { readonly ago: string; readonly next: string } | undefined {
    const refusal = this.#refusals.get(key)
    if (!refusal || now >= refusal.at + refusal.pause) return undefined
    return { ago: showDuration(now - refusal.at), next: showDuration(refusal.at + refusal.pause - now) }
  }

  refused(key: string, now: number): void {
    const before = this.#refusals.get(key)
    this.#refusals.set(key, { at: now, pause: before ? Math.min(before.pause * 2, maxPauseMs) : firstPauseMs })
  }

  accepted(key: string): void {
    this.#refusals.delete(key)
  }
}

/** Rejects as soon as the signal aborts, even if the promise ignores the signal. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {})
    return Promise.reject(signal.reason as Error)
  }
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** A signal that aborts with its parent or after `ms`. `clear` removes the timer and the listener. */
export function deadlineSignal(
  parent: AbortSignal,
  ms: number,
): { readonly signal: AbortSignal; readonly clear: () => void } {
  const controller = new AbortController()
  const abort = (): void => controller.abort(parent.reason)
  if (parent.aborted) abort()
  else parent.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(() => controller.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError')), ms)
  return {
    signal: controller.signal,
    clear: () => {
      clearTimeout(timer)
      parent.removeEventListener('abort', abort)
    },
  }
}

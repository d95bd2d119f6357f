import { Fault } from '../errors.ts'
import type { Db } from './tables.ts'

/** The way to one database: the same for SQLite and PostgreSQL, and all that the queries know of it. */
export type StoreLink = {
  /** Looks at what is committed. One statement sees one moment; two statements may see two. */
  readonly read: <T>(work: (db: Db) => Promise<T>) => Promise<T>
  /**
   * One transaction: all of `work` or nothing. It may run more than once, so it only talks to the
   * database, and awaits nothing else: others wait for it.
   */
  readonly write: <T>(work: (tx: Db) => Promise<T>) => Promise<T>
  /** Inside `write`: from here to its end no other transaction anywhere holds the lock of this name. */
  readonly lock: (tx: Db, name: string) => Promise<void>
  /** The same way for one caller: all that it asks, together, waits no longer than one question may. */
  readonly forRequest: () => StoreLink
  /** Waits for what runs. Safe to call twice. */
  readonly close: () => Promise<void>
}

/**
 * D3: nobody waits longer for the store. Milliseconds: an answer comes within 2 s, and a sign-in hashes a password
 * besides.
 */
export const maxWaitMs = 1_800

export const unavailable = (why: string, cause?: unknown): Fault =>
  new Fault('Unavailable', `The store ${why}`, { retryAfter: 5, ...(cause === undefined ? {} : { cause }) })
export const closed = (): Fault => unavailable('is closed')
export const taken = (what = 'That'): Fault => new Fault('Conflict', `${what} is taken`)
export const gone = (what = 'The user'): Fault => new Fault('NotFound', `${what} is gone`)

/**
 * How long a caller may still wait for the store. Questions that follow one another use up the same time, so that a
 * request which asks six times waits no longer than one which asks once; questions that run side by side use it once.
 */
export class WaitBudget {
  #leftMs = maxWaitMs
  #running = 0
  #since = 0

  /** A question begins: the time by which it is answered or fails, by the monotonic clock. */
  begin(): number {
    if (this.#running === 0) this.#since = performance.now()
    this.#running += 1
    return this.#since + this.#leftMs
  }

  end(): void {
    this.#running -= 1
    if (this.#running === 0) this.#leftMs -= performance.now() - this.#since
  }
}

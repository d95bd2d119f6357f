import { Fault, StoreOutage } from '../base/errors.ts'
import type { StoreFiles } from './path.ts'
import type { Db } from './tables.ts'

/** The connection to one database, the same for SQLite and PostgreSQL. The queries use nothing else. */
export type StoreLink = {
  /** Reads committed data. One statement sees one snapshot; two statements may see two. */
  readonly read: <T>(work: (db: Db) => Promise<T>) => Promise<T>
  /**
   * Runs `work` in one transaction, completely or not at all. `work` may run more than once, so it only uses the
   * database and awaits nothing else: other transactions wait for it.
   */
  readonly write: <T>(work: (tx: Db) => Promise<T>) => Promise<T>
  /**
   * Inside `write`: takes the lock of this name until the transaction ends. No other transaction on any node holds it
   * meanwhile.
   */
  readonly lock: (tx: Db, name: string) => Promise<void>
  /** The same connection for one caller: all its queries together wait no longer than a single query may. */
  readonly forRequest: () => StoreLink
  /** Throws when the files of an embedded store are no longer those that were opened. */
  readonly checkFiles?: (() => void) | undefined
  /** The files of an embedded store that were opened. */
  readonly files?: StoreFiles | undefined
  /** Reads the clock of the database server. Absent where the store's clock is that of this machine. */
  readonly readClock?: (() => Promise<number>) | undefined
  /** Waits for running queries, then closes. Safe to call twice. */
  readonly close: () => Promise<void>
}

/**
 * Maximum wait for the store, in milliseconds (D3): a response comes within 2 s, and a sign-in also hashes a password.
 */
export const maxWaitMs = 1_800

export const unavailable = (why: string, cause?: unknown): StoreOutage => new StoreOutage(why, { cause })
export const closed = (): Fault => unavailable('is closed')
export const taken = (what = 'The value'): Fault => new Fault('Conflict', `${what} is already in use`)
export const gone = (what = 'The user'): Fault => new Fault('NotFound', `${what} no longer exists`)

/**
 * The link, which reports each write, with the reason if the store has failed to make it. A change that is refused for
 * what it says is neither.
 */
export const watched = (link: StoreLink, wrote: (failure: string | undefined) => void): StoreLink => ({
  ...link,
  write: async (work) => {
    try {
      const result = await link.write(work)
      wrote(undefined)
      return result
    } catch (error) {
      if (!(error instanceof Fault)) wrote('The store cannot be written')
      // A fault with a code of its own is not one of the store.
      else if (error.fault === 'Unavailable' && error.details.errorCode === undefined) wrote(error.message)
      throw error
    }
  },
  forRequest: () => watched(link.forRequest(), wrote),
})

/** The link as long as `refusal` returns nothing. */
export const guarded = (link: StoreLink, refusal: () => Fault | undefined): StoreLink => {
  const refuse = (): void => {
    const fault = refusal()
    if (fault) throw fault
  }
  return {
    ...link,
    read: async (work) => {
      refuse()
      return await link.read(work)
    },
    write: async (work) => {
      refuse()
      return await link.write(async (tx) => {
        refuse()
        return await work(tx)
      })
    },
    forRequest: () => guarded(link.forRequest(), refusal),
  }
}

/**
 * The time that a caller may still wait for the store. Sequential queries share it, so a request with six queries waits
 * no longer than one with a single query. Parallel queries use the time once.
 */
export class WaitBudget {
  #leftMs: number
  #running = 0
  #since = 0

  constructor(patienceMs: number = maxWaitMs) {
    this.#leftMs = patienceMs
  }

  /** Begins a query. Returns the time by which it must have been answered or have failed, by the monotonic clock. */
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

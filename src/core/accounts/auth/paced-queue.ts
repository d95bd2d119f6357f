const minute = 60_000

/**
 * From the 30th failure in ten minutes on, one attempt a second. At most 32 attempts wait, so that they cannot use up
 * the connections of the server, and none of them longer than clients usually wait for an answer.
 */
export const pace = { failures: 30, windowMs: 10 * minute, everyMs: 1_000, waiting: 32, patienceMs: 40_000 } as const

/** The place of an attempt in a queue. */
export type Place<T> = { readonly start: (value: T) => void; readonly refuse: (reason: unknown) => void }

/**
 * Waits in a queue until `start` of the place is called, and resolves to its value. Rejects when the place is refused,
 * when it has waited for `patienceMs`, and with the signal's reason. `leave` removes the place in every case.
 */
export function waitForTurn<T>(
  signal: AbortSignal,
  { patienceMs, refusal }: { readonly patienceMs: number; readonly refusal: () => Error },
  { enter, leave }: { readonly enter: (place: Place<T>) => void; readonly leave: (place: Place<T>) => void },
): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = (done: () => void): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
      leave(place)
      done()
    }
    const place: Place<T> = {
      start: (value) => settle(() => resolve(value)),
      refuse: (reason) => settle(() => reject(reason)),
    }
    const aborted = (): void => place.refuse(signal.reason)
    const timer = setTimeout(() => place.refuse(refusal()), patienceMs)
    signal.addEventListener('abort', aborted, { once: true })
    enter(place)
  })
}

/** An attempt that waits. `isKnown`: whether the name has signed in from here before. */
type Waiting<T> = { readonly name: string; readonly isKnown: boolean; readonly item: T }

/**
 * The order of the attempts to sign in that share one address, as a pure function of the times that it is given
 * (milliseconds). It admits every attempt at once until 30 have failed or are undecided, counting those of the last ten
 * minutes; from then on one a second. Names that have signed in from here before go first, and names take turns, so that
 * a flood of guesses at other names does not keep a user out.
 */
export class PacedQueue<T> {
  /** The beginnings of attempts that have failed or are undecided, oldest first. Never more than the limit and those in progress. */
  readonly #attempts: number[] = []
  readonly #waiting: Waiting<T>[] = []
  /** The place in the order of turns that each waiting name had last. */
  readonly #turns = new Map<string, number>()
  #turn = 0
  #lastAt = Number.NEGATIVE_INFINITY

  get size(): number {
    return this.#waiting.length
  }

  /** Whether nothing would be lost with this queue. */
  isIdle(now: number): boolean {
    this.#forget(now)
    return this.#waiting.length === 0 && this.#attempts.length === 0
  }

  /** Whether an attempt must wait. */
  isSlow(now: number): boolean {
    this.#forget(now)
    return this.#waiting.length > 0 || this.#attempts.length >= pace.failures
  }

  /** Records the beginning of an attempt. Returns a function that takes it back: the attempt was not a failure. */
  begin(now: number): () => void {
    this.#attempts.push(now)
    this.#lastAt = now
    return () => {
      const at = this.#attempts.indexOf(now)
      if (at !== -1) this.#attempts.splice(at, 1)
    }
  }

  /**
   * Adds an attempt. In a full queue, it takes the place of another one, which is returned: for a name that is known
   * here, the youngest attempt with a name that is not; otherwise the youngest of the name with the most places, if that
   * name has at least two more. Where no place can be had, the attempt itself is returned.
   */
  enter(attempt: Waiting<T>): Waiting<T> | undefined {
    const out = this.#waiting.length < pace.waiting ? undefined : (this.#displaced(attempt) ?? attempt)
    if (out === attempt) return out
    if (out) this.leave(out.item)
    this.#waiting.push(attempt)
    return out
  }

  /** Removes an attempt that no longer waits. */
  leave(item: T): void {
    const at = this.#waiting.findIndex((one) => one.item === item)
    if (at === -1) return
    const [{ name } = { name: '' }] = this.#waiting.splice(at, 1)
    if (!this.#waiting.some((one) => one.name === name)) this.#turns.delete(name)
  }

  /** The time from which `take` returns an attempt. Undefined while none waits. */
  nextAt(now: number): number | undefined {
    if (this.#waiting.length === 0) return undefined
    this.#forget(now)
    return this.#attempts.length < pace.failures ? now : Math.max(now, this.#lastAt + pace.everyMs)
  }

  /** The attempt whose turn it is, no longer waiting. Undefined before its time. */
  take(now: number): T | undefined {
    const at = this.nextAt(now)
    if (at === undefined || at > now) return undefined
    const familiar = this.#waiting.filter(({ isKnown }) => isKnown)
    const candidates = familiar.length > 0 ? familiar : this.#waiting
    const turnOf = ({ name }: Waiting<T>): number => this.#turns.get(name) ?? 0
    const next = candidates.reduce((first, one) => (turnOf(one) < turnOf(first) ? one : first))
    this.#turn += 1
    this.#turns.set(next.name, this.#turn)
    this.leave(next.item)
    return next.item
  }

  #displaced({ name, isKnown }: Waiting<T>): Waiting<T> | undefined {
    const stranger = isKnown ? this.#waiting.findLast((one) => !one.isKnown) : undefined
    if (stranger) return stranger
    const places = new Map<string, number>()
    for (const one of this.#waiting) {
      if (one.isKnown === isKnown) places.set(one.name, (places.get(one.name) ?? 0) + 1)
    }
    const [crowd, most] = [...places].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0])
    if (most < (places.get(name) ?? 0) + 2) return undefined
    return this.#waiting.findLast((one) => one.name === crowd)
  }

  #forget(now: number): void {
    while (this.#attempts.length > 0 && (this.#attempts[0] ?? 0) <= now - pace.windowMs) this.#attempts.shift()
    // Further back than the limit nothing counts, and a flood must not fill the memory.
    if (this.#attempts.length > 2 * pace.failures) this.#attempts.splice(0, this.#attempts.length - 2 * pace.failures)
  }
}

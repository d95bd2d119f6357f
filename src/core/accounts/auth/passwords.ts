import { randomBytes, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Fault } from '../../base/errors.ts'
import { type Argon2Input, tagHere } from './argon2.ts'
import type { HashProcess } from './hash-process.ts'
import { type Place, waitForTurn } from './paced-queue.ts'
import { maxPasswordBytes } from './password-policy.ts'

/** The cost of one hash. Memory in KiB. */
export type HashCost = { readonly memory: number; readonly passes: number; readonly parallelism: number }

/** OWASP's first choice for argon2id (P1). */
export const hashCost: HashCost = { memory: 19_456, passes: 2, parallelism: 1 }
const sizes = { saltLength: 16, tagLength: 32 } as const

/** Upper limits for a stored hash: one from elsewhere must not overload this machine. */
const bounds = { memory: 1_048_576, passes: 10, parallelism: 16, saltLength: 64, tagLength: 64 } as const
const least = { saltLength: 8, tagLength: 16 } as const

export type Phc = HashCost & { readonly salt: Buffer; readonly tag: Buffer }

const shape = /^\$argon2id\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,9})\$([A-Za-z0-9+/]{1,128})\$([A-Za-z0-9+/]{1,128})$/

/** Reads a PHC string. Undefined for another algorithm, a damaged string or parameters out of bounds. */
export function readPhc(text: string): Phc | undefined {
  const match = shape.exec(text)
  if (!match) return undefined
  const [memory, passes, parallelism] = match.slice(1, 4).map(Number) as [number, number, number]
  const [salt, tag] = match.slice(4).map((part) => Buffer.from(part, 'base64')) as [Buffer, Buffer]
  const payable =
    parallelism >= 1 &&
    parallelism <= bounds.parallelism &&
    passes >= 1 &&
    passes <= bounds.passes &&
    memory >= 8 * parallelism &&
    memory <= bounds.memory
  const sized =
    salt.length >= least.saltLength &&
    salt.length <= bounds.saltLength &&
    tag.length >= least.tagLength &&
    tag.length <= bounds.tagLength
  return payable && sized ? { memory, passes, parallelism, salt, tag } : undefined
}

export const writePhc = ({ memory, passes, parallelism, salt, tag }: Phc): string =>
  `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(tag)}`

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replace(/={1,2}$/, '')

/** The PHC string of a password (P1). */
export async function hashPassword(password: string, cost: HashCost = hashCost, tagOf = tagHere): Promise<string> {
  const blank = { ...cost, salt: randomBytes(sizes.saltLength), tag: Buffer.alloc(sizes.tagLength) }
  return writePhc({ ...blank, tag: await tagOf(inputOf(password, blank)) })
}

export async function matches(password: string, phc: Phc, tagOf = tagHere): Promise<boolean> {
  return timingSafeEqual(await tagOf(inputOf(password, phc)), phc.tag)
}

const inputOf = (password: string, { salt, tag, memory, passes, parallelism }: Phc): Argon2Input => ({
  password,
  salt: salt.toString('base64'),
  memory,
  passes,
  parallelism,
  tagLength: tag.length,
})

/** True when the hash was made at another cost, or has other sizes. */
export const outdated = (phc: Phc, cost: HashCost = hashCost): boolean =>
  phc.memory !== cost.memory ||
  phc.passes !== cost.passes ||
  phc.parallelism !== cost.parallelism ||
  phc.salt.length !== sizes.saltLength ||
  phc.tag.length !== sizes.tagLength

/** A hash that matches no password, at the cost of a real one (P2). */
export const dummyPhc = (cost: HashCost = hashCost): Phc => ({
  ...cost,
  salt: randomBytes(sizes.saltLength),
  tag: randomBytes(sizes.tagLength),
})

/** Seconds after which a refused caller may try again. */
const retryAfter = 1
const waitingPerSlot = 8

/**
 * Limits how many hashes are computed at once (P3). Without a limit they would take all threads that Node reads files
 * with, and hundreds of megabytes; with one they are also faster. A caller that finds the queue full, or waits too
 * long, is refused before any hashing. In a full queue, a caller who has signed in before from the same place gets the
 * place of the youngest stranger, so that guessers do not keep users out.
 */
export class HashQueue {
  readonly slots: number
  readonly #patienceMs: number
  /** The callers that wait, oldest first, and whether each has signed in before from the same place. */
  readonly #waiting = new Map<Place<void>, boolean>()
  #running = 0

  constructor(slots = defaultSlots(process.env.UV_THREADPOOL_SIZE), patienceMs = 2_000) {
    this.slots = slots
    this.#patienceMs = patienceMs
  }

  /** Throws Fault Unavailable when there is no room, and the signal's reason when the caller disconnects. */
  async run<T>(work: () => Promise<T>, signal: AbortSignal, isKnown = false): Promise<T> {
    signal.throwIfAborted()
    if (this.#running < this.slots) this.#running += 1
    else await this.#turn(signal, isKnown)
    try {
      return await work()
    } finally {
      const [next] = this.#waiting.keys()
      if (next) next.start()
      else this.#running -= 1
    }
  }

  /** Resolves when a slot becomes free. */
  #turn(signal: AbortSignal, isKnown: boolean): Promise<void> {
    if (this.#waiting.size >= this.slots * waitingPerSlot) {
      const [stranger] = isKnown ? ([...this.#waiting].findLast(([, isUser]) => !isUser) ?? []) : []
      if (!stranger) throw full()
      stranger.refuse(full())
    }
    return waitForTurn<void>(
      signal,
      { patienceMs: this.#patienceMs, refusal: full },
      {
        enter: (place) => this.#waiting.set(place, isKnown),
        leave: (place) => this.#waiting.delete(place),
      },
    )
  }
}

const full = (): Fault => new Fault('Unavailable', 'Too many sign-ins at once', { retryAfter })

/** Two of libuv's threads stay free for files and DNS. `poolSize` is UV_THREADPOOL_SIZE, 4 when unset. */
export function defaultSlots(poolSize: string | undefined, cores = availableParallelism()): number {
  const threads = /^\d{1,4}$/.test(poolSize ?? '') ? Number(poolSize) : 4
  return Math.max(1, Math.min(cores, threads - 2))
}

export type Passwords = {
  /** Does work that contains a `check` when it is the caller's turn. See `HashQueue.run` for `isKnown` and the faults. */
  readonly inTurn: <T>(work: () => Promise<T>, signal: AbortSignal, isKnown?: boolean) => Promise<T>
  /**
   * Whether the password matches the stored hash, and whether to rehash it. Without a readable hash the same work is
   * done and the result is false (P2). Call it only in work that `inTurn` does.
   */
  readonly check: (
    password: string,
    stored: string | undefined,
  ) => Promise<{ readonly right: boolean; readonly outdated: boolean }>
  /** The PHC string of a new password, made when it is the caller's turn. */
  readonly hash: (password: string, signal: AbortSignal) => Promise<string>
  readonly close: () => void
}

/**
 * Passwords hashed in a queue, which exists once per process (P3). Tests that need no real hash give a lower cost.
 * `apart`: the process that makes the hashes; without one, this process makes them.
 */
export function passwords(queue: HashQueue, cost: HashCost = hashCost, apart?: HashProcess): Passwords {
  const { tagOf = tagHere } = apart ?? {}
  return {
    inTurn: (work, signal, isKnown) => queue.run(work, signal, isKnown),
    async check(password, stored) {
      const phc = stored === undefined ? undefined : readPhc(stored)
      // No user can have such a password (P4), and its length must not cost extra time.
      const possible = password.isWellFormed() && Buffer.byteLength(password) <= maxPasswordBytes
      const real = phc !== undefined && possible
      const same = await matches(possible ? password : '', real ? phc : dummyPhc(cost), tagOf)
      return { right: real && same, outdated: real && outdated(phc, cost) }
    },
    hash: (password, signal) => queue.run(() => hashPassword(password, cost, tagOf), signal),
    close: () => apart?.close(),
  }
}

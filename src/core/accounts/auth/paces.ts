import { performance } from 'node:perf_hooks'
import { Fault } from '../../base/errors.ts'
import { type Caller, isExempt } from '../../protocol/service/service.ts'
import { PacedQueue, type Place, pace, waitForTurn } from './paced-queue.ts'

/** `start` gets the function that withdraws the attempt. */
type Queue = { readonly order: PacedQueue<Place<() => void>>; timer: NodeJS.Timeout | undefined }

/** An attempt that has had its turn. */
export type PacedAttempt = {
  /** Whose turn it was, which takes the place of an address. Undefined for callers whose address counts, or nothing. */
  readonly group: string | undefined
  /** The attempt did not fail, or ended without a decision. */
  readonly withdrawn: () => void
}

/**
 * The callers on this machine who share one queue: all that an undeclared proxy relays, and otherwise those of one
 * account, because everybody has the same address here. Undefined for callers whose address counts.
 */
export async function groupOf(caller: Caller): Promise<string | undefined> {
  if (caller.kind === 'local') return undefined
  if (caller.relayed) return 'relay'
  if (!caller.loopback) return undefined
  const account = await caller.process?.account()
  return account === undefined ? 'loopback' : `account ${account}`
}

/** The queues of attempts from this machine, once per process (P5). */
export class Paces {
  readonly #queues = new Map<string, Queue>()
  readonly #now: () => number

  /** `now` in milliseconds of a clock that only rises. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /**
   * Resolves when it is the turn of this attempt: at once for callers whose address counts, and as long as few attempts
   * of the group have failed. Throws Fault Unavailable when too many wait, and the signal's reason when the caller
   * disconnects. `isKnown` tells whether the name has signed in from the group before.
   */
  async turn(
    caller: Caller,
    name: string,
    isKnown: (group: string) => boolean,
    signal: AbortSignal,
  ): Promise<PacedAttempt> {
    const group = await groupOf(caller)
    // A process of the account of svc can open the store itself (P8).
    if (group === undefined || (await isExempt(caller))) return { group, withdrawn: () => {} }
    signal.throwIfAborted()
    const queue = this.#queue(group)
    const withdraw = queue.order.isSlow(this.#now())
      ? await this.#wait(queue, name, isKnown(group), signal)
      : queue.order.begin(this.#now())
    return {
      group,
      withdrawn: () => {
        withdraw()
        this.#continue(queue)
      },
    }
  }

  #queue(group: string): Queue {
    const before = this.#queues.get(group)
    if (before) return before
    // The accounts of a machine are few, and each costs little. Those without recent failures are forgotten.
    for (const [name, { order }] of this.#queues) if (order.isIdle(this.#now())) this.#queues.delete(name)
    const queue: Queue = { order: new PacedQueue(), timer: undefined }
    this.#queues.set(group, queue)
    return queue
  }

  #wait(queue: Queue, name: string, isKnown: boolean, signal: AbortSignal): Promise<() => void> {
    return waitForTurn(
      signal,
      { patienceMs: pace.patienceMs, refusal: tooMany },
      {
        enter: (place) => {
          queue.order.enter({ name, isKnown, item: place })?.item.refuse(tooMany())
          this.#continue(queue)
        },
        leave: (place) => queue.order.leave(place),
      },
    )
  }

  /** Starts the attempts whose time has come, and sleeps until that of the next one. */
  #continue(queue: Queue): void {
    clearTimeout(queue.timer)
    const at = queue.order.nextAt(this.#now())
    if (at === undefined) return
    const run = (): void => {
      const now = this.#now()
      const next = queue.order.take(now)
      next?.start(queue.order.begin(now))
      this.#continue(queue)
    }
    queue.timer = setTimeout(run, Math.ceil(at - this.#now()))
  }
}

const tooMany = (): Fault =>
  new Fault('Unavailable', 'Too many sign-ins at once', {
    retryAfter: Math.ceil((pace.waiting * pace.everyMs) / 1_000),
  })

import type { Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { WaitingAnswers } from './waiting.ts'

/** Milliseconds of one turn of the event loop in which requests begin. The others wait for the next turn. */
const turnMs = 5
/** The requests that may begin in one turn at most, however little each takes. */
const mostInTurn = 64

/** Gives the requests of all connections their turn, in the order in which they ask, so that none blocks the loop for long. */
export class Turns {
  readonly #waiting: (() => void)[] = []
  #since: number | undefined

  /** Undefined where a request may begin at once. */
  next(): Promise<void> | undefined {
    if (this.#waiting.length === 0 && !this.#isOver()) return undefined
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #isOver(): boolean {
    const now = performance.now()
    if (this.#since === undefined) {
      this.#since = now
      setImmediate(() => this.#end())
    }
    return now - this.#since >= turnMs
  }

  /** Each request begins in a callback of its own, after which Node runs what that request leaves to promises. */
  #end(): void {
    this.#since = undefined
    for (let left = Math.min(this.#waiting.length, mostInTurn); left > 0; left -= 1) {
      setImmediate(() => {
        if (!this.#isOver()) this.#waiting.shift()?.()
      })
    }
  }
}

/** Resolves when the answer has been sent, or never will be. Never rejects. */
type Answering = () => Promise<void>

/**
 * Begins the answers to the requests of each connection in their order: the next one when the one before has been sent, or
 * takes longer than a turn of the loop, and not while more of the answers before wait unread than a connection may have.
 */
export class Pipelines {
  readonly #lines = new Map<Socket, Answering[]>()
  readonly #turns = new Turns()
  readonly #waiting: Pick<WaitingAnswers, 'capacity' | 'request'>

  constructor(waiting: Pick<WaitingAnswers, 'capacity' | 'request'>) {
    this.#waiting = waiting
  }

  /** `isProbe`: the request waits for no other connection. */
  add(socket: Socket, answering: Answering, isProbe: boolean): void {
    const line = this.#lines.get(socket)
    if (line) {
      line.push(this.#counted(socket, answering))
    } else if (isProbe) {
      void answering()
    } else {
      const fresh = [answering]
      this.#lines.set(socket, fresh)
      void this.#begin(socket, fresh)
    }
  }

  /** A request that waits for others of its connection takes memory, as answers do. */
  #counted(socket: Socket, answering: Answering): Answering {
    const begins = this.#waiting.request(socket)
    return () => {
      begins()
      return answering()
    }
  }

  async #begin(socket: Socket, line: Answering[]): Promise<void> {
    for (let answering = line.shift(); answering && !socket.destroyed; answering = line.shift()) {
      const capacity = this.#waiting.capacity(socket)
      if (capacity) await capacity
      const turn = this.#turns.next()
      if (turn) await turn
      await Promise.race([answering(), nextTurn()])
    }
    this.#lines.delete(socket)
  }
}

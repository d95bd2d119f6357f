import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The answers and requests that wait on a connection. Bytes. */
type Waiting = {
  answers: number
  requests: number
  capacity: (() => void) | undefined
  /** The listener of the connection's `close`. */
  readonly forget: () => void
}

/** The memory of a request that waits for others of its connection. Bytes; measured with Node 24. */
const requestBytes = 8 * 1024

/**
 * The answers that the system has not taken yet, because their callers do not read, and the requests that wait behind them
 * (S3). An answer counts with all its bytes until the system has taken the last one.
 */
export class WaitingAnswers {
  /** The connection that has waited for longest comes first. */
  readonly #connections = new Map<Socket, Waiting>()
  readonly #most: { readonly each: number; readonly all: number }
  readonly #closed: () => void
  #bytes = 0

  /**
   * `each`: bytes of answers with which a connection may wait and still get its next one. `all`: bytes of all connections
   * together. `closed` is called for each connection that is closed for the sake of the others.
   */
  constructor(most: { readonly each: number; readonly all: number }, closed: () => void) {
    this.#most = most
    this.#closed = closed
  }

  /** The bytes of all connections. */
  get bytes(): number {
    return this.#bytes
  }

  /** Call it when the answer has been written. Closes the slowest connections if too much waits. */
  answer(socket: Socket, response: Pick<ServerResponse, 'socket' | 'once'>, bytes: number): void {
    // An answer without a socket waits for earlier ones of its connection.
    if (response.socket !== null && socket.writableLength === 0) return
    response.once('close', this.#add(socket, 'answers', bytes))
  }

  /** Call it for a request that waits for others of its connection, and the function that it returns when that begins. */
  request(socket: Socket): () => void {
    return this.#add(socket, 'requests', requestBytes)
  }

  /** Resolves when the connection may get its next answer, or has closed. Undefined: it may at once. */
  capacity(socket: Socket): Promise<void> | undefined {
    const waiting = this.#connections.get(socket)
    if (waiting === undefined || waiting.answers <= this.#most.each) return undefined
    return new Promise((resolve) => {
      waiting.capacity = resolve
    })
  }

  /** Returns what ends the wait of these bytes. */
  #add(socket: Socket, kind: 'answers' | 'requests', bytes: number): () => void {
    const waiting = this.#connections.get(socket) ?? this.#connect(socket)
    waiting[kind] += bytes
    this.#bytes += bytes
    while (this.#bytes > this.#most.all && this.#connections.size > 1) this.#closeSlowest()
    return () => {
      if (this.#connections.get(socket) !== waiting) return
      waiting[kind] -= bytes
      this.#bytes -= bytes
      if (waiting.answers <= this.#most.each) waiting.capacity?.()
      if (waiting.answers + waiting.requests === 0) this.#forget(socket)
    }
  }

  #connect(socket: Socket): Waiting {
    const forget = (): void => this.#forget(socket)
    const waiting: Waiting = { answers: 0, requests: 0, capacity: undefined, forget }
    this.#connections.set(socket, waiting)
    socket.once('close', forget)
    return waiting
  }

  #closeSlowest(): void {
    const [slowest] = this.#connections.keys()
    if (slowest === undefined) return
    this.#forget(slowest)
    this.#closed()
    slowest.destroy()
  }

  #forget(socket: Socket): void {
    const waiting = this.#connections.get(socket)
    if (waiting === undefined) return
    socket.off('close', waiting.forget)
    this.#connections.delete(socket)
    this.#bytes -= waiting.answers + waiting.requests
    waiting.capacity?.()
  }
}

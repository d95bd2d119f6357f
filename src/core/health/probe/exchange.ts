import type { Socket } from 'node:net'
import { ProbeError } from '../monitor.ts'

/** Replies that wait although nobody asked for them: more are a flood. */
const mostUnasked = 16

/**
 * One question, one answer, over a socket that stays the caller's to destroy. `read` puts replies
 * together from bytes as they come, and throws for what is none.
 */
export class Exchange<R> {
  readonly address: string
  readonly #socket: Socket
  readonly #read: (chunk: Uint8Array) => readonly R[]
  readonly #replies: R[] = []
  #waiting: { readonly resolve: (reply: R) => void; readonly reject: (cause: unknown) => void } | undefined
  #broken: { readonly cause: unknown } | undefined
  #instead = 'before it said anything'

  constructor(socket: Socket, address: string, read: (chunk: Uint8Array) => readonly R[]) {
    this.address = address
    this.#socket = socket
    this.#read = read
    socket.on('data', this.#hear)
    socket.on('error', this.#fail)
    socket.on('end', this.#closed)
    socket.on('close', this.#closed)
  }

  /** False when no further question can be answered. */
  get usable(): boolean {
    return this.#broken === undefined
  }

  /** What was said and not asked for yet. */
  get unasked(): readonly R[] {
    return this.#replies
  }

  /**
   * The answer to what is said, or what the peer has said unasked before: with that it usually hangs
   * up. One at a time. `name` goes into messages, so it is no secret. Throws ProbeError, or what the
   * socket throws.
   */
  ask(words: string | Uint8Array, name: string): Promise<R> {
    const early = this.#replies.shift()
    if (early !== undefined) return Promise.resolve(early)
    if (this.#broken) return Promise.reject(this.#broken.cause)
    this.#instead = `instead of answering ${name}`
    this.#socket.write(words)
    return this.next()
  }

  /** The next reply, without a question. Throws as `ask`. */
  next(): Promise<R> {
    const early = this.#replies.shift()
    if (early !== undefined) return Promise.resolve(early)
    if (this.#broken) return Promise.reject(this.#broken.cause)
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  /** Gives the socket back, unread from here on. */
  detach(): Socket {
    const socket = this.#socket
    socket.off('data', this.#hear).off('error', this.#fail).off('end', this.#closed).off('close', this.#closed)
    return socket.pause()
  }

  readonly #hear = (chunk: Uint8Array): void => {
    try {
      this.#replies.push(...this.#read(chunk))
      if (this.#replies.length > mostUnasked) {
        throw new ProbeError('protocol', `${this.address} answers more than it is asked`)
      }
    } catch (cause) {
      this.#fail(cause)
      this.#socket.destroy()
      return
    }
    const waiting = this.#waiting
    const reply = waiting && this.#replies.shift()
    if (waiting === undefined || reply === undefined) return
    this.#waiting = undefined
    waiting.resolve(reply)
  }

  readonly #closed = (): void => {
    this.#fail(new ProbeError('protocol', `${this.address} closed the connection ${this.#instead}`))
  }

  readonly #fail = (cause: unknown): void => {
    this.#broken ??= { cause: this.#told(cause) }
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.reject(this.#broken.cause)
  }

  #told(cause: unknown): unknown {
    const code = String((cause as { readonly code?: unknown } | null)?.code)
    // With TLS 1.3 a server asks for the client's certificate, and refuses, after the handshake.
    if (/ALERT_(CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|BAD_CERTIFICATE)/.test(code)) {
      return new ProbeError('tls', `${this.address} wants a certificate of the client, and svc has none`, [code])
    }
    if (code !== 'ECONNRESET' && code !== 'EPIPE') return cause
    return new ProbeError('protocol', `${this.address} reset the connection ${this.#instead}`)
  }
}

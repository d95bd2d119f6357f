import type { Socket } from 'node:net'
import { showDuration } from '../format.ts'
import { ProbeError } from '../probe-error.ts'
import { quote, type Redact } from './text.ts'

/** Maximum number of unsolicited replies kept; more count as a flood. */
const maxUnsolicited = 16

/** Assembles replies from bytes as they arrive. Throws for malformed ones. */
type Reader<R> = {
  readonly push: (chunk: Uint8Array) => readonly R[]
  /** True when a reply has begun but not ended. */
  readonly started?: boolean
}
type ReplyOptions<R> = {
  /** Whether an unsolicited reply answers the next request; otherwise it is dropped. Default: every one does. */
  readonly accepts?: (reply: R) => boolean
  /** The next step to suggest when TLS breaks off. Without it, that error is thrown unchanged. */
  readonly brokenTls?: string
  /** A reply that may say why the peer then ends the connection: a refusal, safe to show. Undefined for any other. */
  readonly lastWords?: (reply: R) => string | undefined
}

/** A protocol of one request and one reply, over a socket that the caller destroys. */
export class RequestReplyConnection<R> {
  readonly address: string
  readonly #socket: Socket
  readonly #reader: Reader<R>
  readonly #manners: ReplyOptions<R>
  #replies: R[] = []
  #waiting: { readonly resolve: (reply: R) => void; readonly reject: (cause: unknown) => void } | undefined
  #broken: { readonly cause: unknown } | undefined
  #pending: string | undefined
  #received = false
  /** The request that was answered last, and the refusal in its reply. */
  #answered: { readonly name: string | undefined; readonly words: string | undefined } | undefined

  constructor(socket: Socket, address: string, reader: Reader<R>, manners: ReplyOptions<R> = {}) {
    this.address = address
    this.#socket = socket
    this.#reader = reader
    this.#manners = manners
    socket.on('data', this.#receive)
    socket.on('error', this.#fail)
    socket.on('end', this.#closed)
    socket.on('close', this.#closed)
  }

  /** False when no further request can be sent. */
  get usable(): boolean {
    return this.#broken === undefined
  }

  /** Replies received without a request. */
  get unasked(): readonly R[] {
    return this.#replies
  }

  /**
   * Sends a request and returns its reply, or a reply that the peer sent before without a request: peers usually close
   * the connection with one. One request at a time, within `ms` if given. `name` appears in messages, so it must not be
   * a secret. Throws ProbeError, or the socket's error.
   */
  ask(words: string | Uint8Array, name: string, ms?: number): Promise<R> {
    const { accepts } = this.#manners
    if (accepts) this.#replies = this.#replies.filter(accepts)
    if (this.#replies.length > 0 || this.#broken) return this.next()
    this.#pending = name
    this.#socket.write(words)
    return this.next(ms)
  }

  /** The next reply, without a request. Throws like `ask`. */
  next(ms?: number): Promise<R> {
    const early = this.#replies.shift()
    if (early !== undefined) return Promise.resolve(early)
    if (this.#broken) return Promise.reject(this.#broken.cause)
    return new Promise((resolve, reject) => {
      const late = (limit: number): void => this.#fail(new ProbeError('timeout', this.#silent(limit)))
      const timer = ms === undefined ? undefined : setTimeout(late, ms, ms)
      this.#waiting = {
        resolve: (reply) => {
          clearTimeout(timer)
          resolve(reply)
        },
        reject: (cause) => {
          clearTimeout(timer)
          reject(cause)
        },
      }
    })
  }

  /** Marks the connection as unusable for that cause, and returns the cause. */
  end<C>(cause: C): C {
    this.#broken ??= { cause }
    return cause
  }

  /**
   * Returns the socket, to begin TLS on it. Throws ProbeError `protocol` when there are unread cleartext replies: they
   * would count as sent under TLS.
   */
  detach(): Socket {
    const socket = this.#socket
    socket.off('data', this.#receive).off('error', this.#fail).off('end', this.#closed).off('close', this.#closed)
    socket.pause()
    if (this.#replies.length === 0 && this.#reader.started !== true) return socket
    throw new ProbeError('protocol', `${this.address} continued in clear text after it had agreed to TLS`)
  }

  readonly #receive = (chunk: Uint8Array): void => {
    try {
      this.#replies.push(...this.#reader.push(chunk))
      if (this.#replies.length > maxUnsolicited) {
        throw new ProbeError('protocol', `${this.address} sent an unexpected reply`)
      }
    } catch (cause) {
      this.#fail(cause)
      this.#socket.destroy()
      return
    }
    this.#received ||= this.#replies.length > 0
    const waiting = this.#waiting
    const reply = waiting && this.#replies.shift()
    if (waiting === undefined || reply === undefined) return
    this.#waiting = undefined
    this.#answered = { name: this.#pending, words: this.#manners.lastWords?.(reply) }
    waiting.resolve(reply)
  }

  readonly #closed = (): void => {
    this.#fail(new ProbeError('protocol', `${this.address} closed the connection ${this.#instead()}`))
  }

  readonly #fail = (cause: unknown): void => {
    this.#broken ??= { cause: this.#describe(cause) }
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.reject(this.#broken.cause)
  }

  #describe(cause: unknown): unknown {
    const code = String((cause as { readonly code?: unknown } | null)?.code)
    // With TLS 1.3, a server refuses a missing client certificate only after the handshake.
    if (/ALERT_(CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|BAD_CERTIFICATE)/.test(code)) {
      return new ProbeError('tls', `${this.address} requires a client certificate, which svc does not have`, [code])
    }
    const { brokenTls } = this.#manners
    if (brokenTls !== undefined && code.startsWith('ERR_SSL')) {
      const during = `during ${this.#pending ?? 'connecting'}`
      return new ProbeError('protocol', `${this.address} aborted the encrypted connection ${during}`, [brokenTls])
    }
    if (code !== 'ECONNRESET' && code !== 'EPIPE') return cause
    return new ProbeError('protocol', `${this.address} reset the connection ${this.#instead()}`)
  }

  #instead(): string {
    const { name, words } = this.#answered ?? {}
    const before = name === undefined || words === undefined ? undefined : `${name} with ${words}`
    if (this.#pending === undefined) return this.#received ? 'after its first message' : 'before sending anything'
    if (this.#waiting === undefined) return `after it had answered ${before ?? this.#pending}`
    const earlier = before === undefined ? '' : `; before that, it answered ${before}`
    return `instead of answering ${this.#pending}${earlier}`
  }

  #silent(ms: number): string {
    return this.#pending === undefined
      ? `${this.address} accepted the connection but sent nothing for ${showDuration(ms)}`
      : `${this.address} did not answer ${this.#pending} within ${showDuration(ms)}`
  }
}

/** The differences between the replies of FTP (RFC 959, 4.2) and SMTP (RFC 5321, 4.2). */
type Grammar<R> = {
  readonly name: 'FTP' | 'SMTP'
  /** The allowed first digits of a code. */
  readonly kinds: '1-5' | '2-5'
  /**
   * Whether the lines within a reply may be any text and empty lines may separate replies. Otherwise each line has the
   * code.
   */
  readonly free: boolean
  /** Builds a reply from its lines. */
  readonly make: (code: number, lines: readonly string[]) => R
}

/** Characters. A banner of several lines fits; a flood does not. */
const maxReply = 16 * 1024

/** The code at the start of a line, and what follows it. */
const starts = { '1-5': /^([1-5]\d\d)(?:([ -])|$)/, '2-5': /^([2-5]\d\d)(?:([ -])|$)/ } as const

/** Assembles replies from bytes as they arrive. Throws ProbeError `protocol` for malformed ones. */
export class CodedReplyReader<R> {
  readonly #grammar: Grammar<R>
  readonly #start: RegExp
  readonly #address: string
  readonly #redact: Redact
  readonly #decoder = new TextDecoder()
  #rest = ''
  #open: { readonly code: string; readonly lines: string[] } | undefined
  #length = 0

  constructor(grammar: Grammar<R>, address: string, redact: Redact) {
    this.#grammar = grammar
    this.#start = starts[grammar.kinds]
    this.#address = address
    this.#redact = redact
  }

  /** True when a reply has begun but not ended. */
  get started(): boolean {
    return this.#rest !== '' || this.#open !== undefined
  }

  push(chunk: Uint8Array): readonly R[] {
    // Only new data is searched: a peer may send a long line one byte at a time.
    const [first = '', ...others] = this.#decoder.decode(chunk, { stream: true }).split('\n')
    const lines = [this.#rest + first, ...others]
    this.#rest = lines.pop() ?? ''
    const replies = lines.flatMap((line) => this.#line(line.replace(/\r$/, '')))
    this.#bound(this.#rest)
    return replies
  }

  #line(line: string): readonly R[] {
    const { name, free, make } = this.#grammar
    this.#bound(line)
    if (free && !this.#open && line.trim() === '') return []
    const [, code = '', mark] = this.#start.exec(line) ?? []
    const fits = this.#open ? free || code === this.#open.code : code !== ''
    if (!fits) throw this.#protocolError(`does not speak ${name}: it sent ${quote(this.#redact(line), 80)}`)
    this.#open ??= { code, lines: [] }
    const { lines, code: started } = this.#open
    lines.push(line)
    // Count the line feed too: empty lines are also a flood.
    this.#length += line.length + 1
    if (code !== started || mark === '-') return []
    this.#open = undefined
    this.#length = 0
    return [make(Number(started), lines)]
  }

  #bound(more: string): void {
    if (this.#length + more.length > maxReply) throw this.#protocolError('sent a reply without an end')
  }

  #protocolError(how: string): ProbeError {
    return new ProbeError('protocol', `${this.#address} ${how}`)
  }
}

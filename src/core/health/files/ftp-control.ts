import type { Socket } from 'node:net'
import { showDuration } from '../judge.ts'
import { ProbeError } from '../monitor.ts'
import { type Hide, quoted } from '../probe/text.ts'
import { type Reply, ReplyReader } from './ftp-reply.ts'

/**
 * The control connection of an FTP session. Our own and not the driver's: that one skips lines which
 * are no FTP (an SSH banner would be a timeout), drops a 421 that comes between two commands, and
 * hides which step of a transfer failed. The socket stays the caller's to destroy.
 */
export class Control {
  readonly address: string
  readonly #socket: Socket
  readonly #hide: Hide
  readonly #reader: ReplyReader
  #replies: Reply[] = []
  #waiting: { readonly resolve: (reply: Reply) => void; readonly reject: (cause: unknown) => void } | undefined
  #broken: { readonly cause: unknown } | undefined
  #doing = 'connecting'

  constructor(socket: Socket, address: string, hide: Hide) {
    this.address = address
    this.#socket = socket
    this.#hide = hide
    this.#reader = new ReplyReader(address, hide)
    socket.on('data', this.#hear)
    socket.on('error', this.#fail)
    socket.on('end', this.#closed)
    socket.on('close', this.#closed)
  }

  /** False when no further command can be answered. */
  get usable(): boolean {
    return this.#broken === undefined
  }

  /** A reply, quoted and fit to be shown. */
  shown(reply: Reply): string {
    return quoted(this.#hide(reply.text), 200)
  }

  /** The banner, whatever it says. Throws as `reply`, but for a 421. */
  async first(ms: number): Promise<Reply> {
    const reply = await this.#next(ms)
    this.#doing = 'the banner'
    return reply
  }

  /**
   * The next reply, within `ms`. Throws ProbeError (`timeout`, `protocol`; `refused` for a 421, with
   * which a server ends a session whatever it was asked), or what the socket throws.
   */
  async reply(ms: number): Promise<Reply> {
    const reply = await this.#next(ms)
    if (reply.code !== 421) return reply
    const cause = new ProbeError('refused', `${this.address} ended the session: ${this.shown(reply)}`)
    this.#broken ??= { cause }
    throw cause
  }

  /** Says a command and waits for its reply. Throws as `reply`. */
  async ask(command: string, ms: number): Promise<Reply> {
    const name = command.split(' ', 1)[0] ?? ''
    if (/[\r\n\0]/.test(command)) {
      throw new ProbeError('data', `what ${name} should say holds a line break, which FTP cannot send`)
    }
    const early = this.#replies.find((reply) => reply.code === 421)
    // Anything else that came unasked (a second word about a transfer that was cut) answers nothing.
    this.#replies = early ? [early] : []
    if (early) return this.reply(ms)
    this.#doing = name
    if (this.#broken) throw this.#broken.cause
    this.#socket.write(`${command}\r\n`)
    return await this.reply(ms)
  }

  /** Gives the socket back, for TLS. Throws when more was said in the clear than was asked for. */
  detach(): Socket {
    const socket = this.#socket
    socket.off('data', this.#hear).off('error', this.#fail).off('end', this.#closed).off('close', this.#closed)
    socket.pause()
    if (this.#replies.length > 0 || this.#reader.begun) {
      throw new ProbeError('protocol', `${this.address} went on in the clear after it had agreed to TLS`)
    }
    return socket
  }

  #next(ms: number): Promise<Reply> {
    const early = this.#replies.shift()
    if (early) return Promise.resolve(early)
    if (this.#broken) return Promise.reject(this.#broken.cause)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#fail(new ProbeError('timeout', this.#silent(ms))), ms)
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

  #silent(ms: number): string {
    return this.#doing === 'connecting'
      ? `${this.address} accepted the connection and then said nothing for ${showDuration(ms)}`
      : `${this.address} gave no answer to ${this.#doing} for ${showDuration(ms)}`
  }

  readonly #hear = (chunk: Uint8Array): void => {
    try {
      this.#replies.push(...this.#reader.push(chunk))
      if (this.#replies.length > 50) throw new ProbeError('protocol', `${this.address} answers more than it is asked`)
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
    const how = this.#doing === 'connecting' ? 'before it said anything' : `instead of answering ${this.#doing}`
    this.#fail(new ProbeError('protocol', `${this.address} closed the connection ${how}`))
  }

  readonly #fail = (cause: unknown): void => {
    this.#broken ??= { cause: this.#told(cause) }
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.reject(this.#broken.cause)
  }

  #told(cause: unknown): unknown {
    const code = (cause as { readonly code?: unknown } | null)?.code
    if (typeof code === 'string' && code.startsWith('ERR_SSL')) {
      // vsftpd says its last words so, and they cannot be heard any more.
      const next = 'look into its log: a server that ends at once may say why in the clear (vsftpd: 500 OOPS)'
      return new ProbeError('protocol', `${this.address} broke its encryption off during ${this.#doing}`, [next])
    }
    if (code !== 'ECONNRESET' && code !== 'EPIPE') return cause
    const during = this.#doing === 'connecting' ? 'before it said anything' : `during ${this.#doing}`
    return new ProbeError('protocol', `${this.address} reset the connection ${during}`)
  }
}

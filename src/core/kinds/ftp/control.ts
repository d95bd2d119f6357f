import type { Socket } from 'node:net'
import type { CheckContext } from '../../engine/index.ts'
import type { PeerAddress } from '../../net/addresses.ts'
import type { Chain } from '../../net/certificates.ts'
import { CodedReplyReader } from '../../net/coded-reply.ts'
import { RequestReplyConnection } from '../../net/request-reply.ts'
import { quote, type Redact } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'

/** One reply of an FTP server: `text` is all of it, its code in front, as the server sent it. */
export type FtpReply = { readonly code: number; readonly text: string }

export class ReplyReader extends CodedReplyReader<FtpReply> {
  constructor(address: string, redact: Redact) {
    const make = (code: number, lines: readonly string[]): FtpReply => ({ code, text: lines.join('\n') })
    super({ name: 'FTP', kinds: '1-5', free: true, make }, address, redact)
  }
}

/**
 * The control connection of an FTP session. Our own and not the driver's: that one skips lines which
 * are no FTP (an SSH banner would be a timeout), drops a 421 that comes between two commands, and
 * hides which step of a transfer failed. The socket stays the caller's to destroy.
 */
export class Control {
  readonly address: string
  readonly #redact: Redact
  readonly #exchange: RequestReplyConnection<FtpReply>

  constructor(socket: Socket, address: string, redact: Redact) {
    this.address = address
    this.#redact = redact
    this.#exchange = new RequestReplyConnection(socket, address, new ReplyReader(address, redact), {
      // Anything else that came unasked (a second word about a transfer that was cut) answers nothing.
      accepts: ({ code }) => code === 421,
      // vsftpd says its last words so, and they cannot be heard any more.
      brokenTls: 'look into its log: a server that ends at once may say why in the clear (vsftpd: 500 OOPS)',
    })
  }

  /** False when no further command can be answered. */
  get usable(): boolean {
    return this.#exchange.usable
  }

  /** A reply, quoted and fit to be shown. */
  display(reply: FtpReply): string {
    return quote(this.#redact(reply.text), 200)
  }

  /** The banner, whatever it says. Throws as `reply`, but for a 421. */
  first(ms: number): Promise<FtpReply> {
    return this.#exchange.next(ms)
  }

  /**
   * The next reply, within `ms`. Throws ProbeError (`timeout`, `protocol`; `refused` for a 421, with
   * which a server ends a session whatever it was asked), or what the socket throws.
   */
  async reply(ms: number): Promise<FtpReply> {
    return this.#unended(await this.#exchange.next(ms))
  }

  /** Says a command and waits for its reply. Throws as `reply`. */
  async ask(command: string, ms: number): Promise<FtpReply> {
    const name = command.split(' ', 1)[0] ?? ''
    if (/[\r\n\0]/.test(command)) {
      throw new ProbeError('data', `what ${name} should say holds a line break, which FTP cannot send`)
    }
    return this.#unended(await this.#exchange.ask(`${command}\r\n`, name, ms))
  }

  /** Gives the socket back, for TLS. Throws when more was said in the clear than was asked for. */
  detach(): Socket {
    return this.#exchange.detach()
  }

  #unended(reply: FtpReply): FtpReply {
    if (reply.code !== 421) return reply
    throw this.#exchange.end(new ProbeError('refused', `${this.address} ended the session: ${this.display(reply)}`))
  }
}

/** A control connection, up to the sign-in or beyond it. */
export type FtpLink = {
  readonly control: Control
  readonly target: PeerAddress
  readonly context: CheckContext
  readonly redact: Redact
  readonly keep: Keep
  /** Addresses of data connections beside the control connection's own. */
  readonly dataHosts: readonly string[]
  /** With TLS. */
  readonly tls: LinkTls | undefined
}

/** Has a socket destroyed with the session, and at the deadline. */
export type Keep = <S extends Socket>(socket: S) => S

/** The encryption of the control connection, and what a data connection needs to be a part of it. */
export type LinkTls = {
  readonly host: string
  readonly chain: Chain
  /** The newest session to resume. */
  readonly session: () => Buffer | undefined
}

/** Milliseconds for one answer: one that does not come leaves time for the rest. */
export const wait = (context: CheckContext): number => Math.max(1, Math.min(5_000, context.msLeft() / 2))

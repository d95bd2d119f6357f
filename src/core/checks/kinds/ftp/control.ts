import type { Socket } from 'node:net'
import type { PeerAddress } from '../../../base/net/addresses.ts'
import type { Chain } from '../../../base/net/certificates.ts'
import { CodedReplyReader, RequestReplyConnection } from '../../../base/net/request-reply.ts'
import { quote, type Redact } from '../../../base/net/text.ts'
import type { ClientIdentity } from '../../../base/net/trust.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { CheckContext } from '../../engine/index.ts'

/** One reply of an FTP server. `text` is the whole reply as sent, including its code. */
export type FtpReply = { readonly code: number; readonly text: string }

export class ReplyReader extends CodedReplyReader<FtpReply> {
  constructor(address: string, redact: Redact) {
    const make = (code: number, lines: readonly string[]): FtpReply => ({ code, text: lines.join('\n') })
    super({ name: 'FTP', kinds: '1-5', free: true, make }, address, redact)
  }
}

/**
 * The control connection of an FTP session. svc does not use the driver's: the driver skips lines that are not FTP (so
 * an SSH banner becomes a timeout), drops a 421 between two commands, and hides which step of a transfer failed. The
 * caller destroys the socket.
 */
export class Control {
  readonly address: string
  readonly #redact: Redact
  readonly #exchange: RequestReplyConnection<FtpReply>

  constructor(socket: Socket, address: string, redact: Redact) {
    this.address = address
    this.#redact = redact
    this.#exchange = new RequestReplyConnection(socket, address, new ReplyReader(address, redact), {
      // Ignores any other unsolicited reply, such as a second reply about an aborted transfer.
      accepts: ({ code }) => code === 421,
      // vsftpd sends its last error message in clear text, which cannot be read inside TLS.
      brokenTls:
        'check its log: a server that closes the connection at once may report the reason in clear text (vsftpd: 500 OOPS)',
      lastWords: (reply) => (reply.code >= 400 ? this.display(reply) : undefined),
    })
  }

  /** False if no further command can be answered. */
  get usable(): boolean {
    return this.#exchange.usable
  }

  /** A reply in quotation marks, safe to show. */
  display(reply: FtpReply): string {
    return quote(this.#redact(reply.text), 200)
  }

  /** The banner, whatever its code. Throws like `reply`, except for a 421. */
  first(ms: number): Promise<FtpReply> {
    return this.#exchange.next(ms)
  }

  /**
   * The next reply, within `ms`. Throws ProbeError (`timeout`, `protocol`; `refused` for a 421, with which a server may
   * end a session after any command), or the socket's error.
   */
  async reply(ms: number): Promise<FtpReply> {
    return this.#unended(await this.#exchange.next(ms))
  }

  /** Sends a command and waits for its reply. Throws like `reply`. */
  async ask(command: string, ms: number): Promise<FtpReply> {
    const name = command.split(' ', 1)[0] ?? ''
    if (/[\r\n\0]/.test(command)) {
      throw new ProbeError('data', `the argument of ${name} contains a line break, which FTP cannot send`)
    }
    return this.#unended(await this.#exchange.ask(`${command}\r\n`, name, ms))
  }

  /** Releases the socket for TLS. Throws if the server sent unrequested data in clear text. */
  detach(): Socket {
    return this.#exchange.detach()
  }

  #unended(reply: FtpReply): FtpReply {
    if (reply.code !== 421) return reply
    throw this.#exchange.end(new ProbeError('refused', `${this.address} ended the session: ${this.display(reply)}`))
  }
}

/** A control connection, before or after the sign-in. */
export type FtpLink = {
  readonly control: Control
  readonly target: PeerAddress
  readonly context: CheckContext
  readonly redact: Redact
  readonly keep: Keep
  /** Addresses allowed for data connections, in addition to the control connection's own. */
  readonly dataHosts: readonly string[]
  /** Undefined without TLS. */
  readonly tls: LinkTls | undefined
}

/** Registers a socket, so that the end of the session or the deadline destroys it. */
export type Keep = <S extends Socket>(socket: S) => S

/** The encryption of the control connection, and what a data connection needs to resume its TLS session. */
export type LinkTls = {
  readonly host: string
  readonly chain: Chain
  /** The most recent TLS session to resume. */
  readonly session: () => Buffer | undefined
  readonly client?: ClientIdentity | undefined
}

/** The timeout of one answer in milliseconds. A missing answer leaves time for the remaining steps. */
export const wait = (context: CheckContext): number => Math.max(1, Math.min(5_000, context.msLeft() / 2))

/**
 * The same for the answer to a password, which may take longer: servers delay a refusal (Pure-FTPd by up to 5 s), and
 * no step follows it.
 */
export const waitForSignIn = (context: CheckContext): number =>
  Math.max(wait(context), Math.min(10_000, context.msLeft() - 500))

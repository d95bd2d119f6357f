import type { Socket } from 'node:net'
import { closeTimeoutMs, settleWithin } from '../../database/index.ts'
import { CodedReplyReader } from '../../net/coded-reply.ts'
import { RequestReplyConnection } from '../../net/request-reply.ts'
import { quote, type Redact } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'

/** One reply of an SMTP server: the text of each line, without its code. */
export type SmtpReply = { readonly code: number; readonly lines: readonly string[] }

export class SmtpReplyReader extends CodedReplyReader<SmtpReply> {
  constructor(address: string, redact: Redact) {
    const make = (code: number, lines: readonly string[]): SmtpReply => ({
      code,
      lines: lines.map((line) => line.slice(4)),
    })
    super({ name: 'SMTP', kinds: '2-5', free: false, make }, address, redact)
  }
}

/** The extensions that a server offers (EHLO): names in upper case, with their parameters. */
export type Extensions = ReadonlyMap<string, readonly string[]>

/** An SMTP session over a socket that the caller destroys. STARTTLS begins a new session. */
export class SmtpSession {
  readonly address: string
  readonly #redact: Redact
  readonly #exchange: RequestReplyConnection<SmtpReply>

  constructor(socket: Socket, address: string, redact: Redact) {
    this.address = address
    this.#redact = redact
    this.#exchange = new RequestReplyConnection(socket, address, new SmtpReplyReader(address, redact), {
      lastWords: (reply) => (reply.code >= 400 ? this.quote(reply) : undefined),
    })
  }

  /** False if no further command can be answered. */
  get usable(): boolean {
    return this.#exchange.usable
  }

  /** A reply in quotation marks, without secrets and control characters. */
  quote({ code, lines }: SmtpReply): string {
    return quote(this.#redact(`${code} ${lines.join(' ')}`), 200)
  }

  /** The banner, whatever its code. Throws like `ask`, except for a 421. */
  greeting(): Promise<SmtpReply> {
    return this.#exchange.next()
  }

  /**
   * Sends one line and returns the reply. `name` replaces the line in messages. Throws ProbeError: `refused` for a 421,
   * with which a server may end a session after any command; otherwise like `RequestReplyConnection.ask`.
   */
  async ask(line: string, name = line.split(' ', 1)[0] ?? ''): Promise<SmtpReply> {
    if (/[\r\n\0]/.test(line)) throw new ProbeError('data', `the argument of ${name} contains a line break`)
    const unsolicited = this.#exchange.unasked[0]
    const reply = await this.#exchange.ask(`${line}\r\n`, name)
    if (reply.code === 421) {
      throw new ProbeError('refused', `${this.address} closed the session: ${this.quote(reply)}`)
    }
    if (unsolicited) throw new ProbeError('protocol', `${this.address} sent an unexpected reply: ${this.quote(reply)}`)
    return reply
  }

  /** Sends EHLO. Throws ProbeError `protocol` if the server does not support it. */
  async hello(name: string): Promise<Extensions> {
    const reply = await this.ask(`EHLO ${name}`)
    if (reply.code !== 250) {
      throw new ProbeError('protocol', `${this.address} rejected EHLO ${name}: ${this.quote(reply)}`)
    }
    // The first line contains the server's name and greeting.
    return new Map(
      reply.lines.slice(1).map((line) => {
        const [extension = '', ...parameters] = line.toUpperCase().split(/[ =]+/)
        return [extension, parameters]
      }),
    )
  }

  /**
   * Sends STARTTLS and returns the socket on which TLS may begin. Throws ProbeError `tls` for a refusal, and `protocol`
   * if the server sent more than its reply: under TLS, that data would pass as authentic.
   */
  async startTls(): Promise<Socket> {
    const reply = await this.ask('STARTTLS')
    if (reply.code !== 220) throw new ProbeError('tls', `${this.address} refused STARTTLS: ${this.quote(reply)}`)
    return this.#exchange.detach()
  }

  /** Sends QUIT, so that the server does not log a lost connection. Never throws. */
  async quit(): Promise<void> {
    if (this.usable) await settleWithin(this.ask('QUIT'), closeTimeoutMs)
  }
}

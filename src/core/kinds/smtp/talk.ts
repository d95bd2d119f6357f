import type { Socket } from 'node:net'
import { partingMs, within } from '../../database/index.ts'
import { Exchange } from '../../net/request-reply.ts'
import { type Hide, quoted } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { type Reply, ReplyReader } from './reply.ts'

/** What a server says that it can do (EHLO): names in capitals, with their parameters. */
export type Abilities = ReadonlyMap<string, readonly string[]>

/** An SMTP conversation over a socket that stays the caller's to destroy. */
export class Talk {
  readonly address: string
  readonly #hide: Hide
  readonly #exchange: Exchange<Reply>

  constructor(socket: Socket, address: string, hide: Hide) {
    this.address = address
    this.#hide = hide
    this.#exchange = new Exchange(socket, address, new ReplyReader(address, hide))
  }

  get usable(): boolean {
    return this.#exchange.usable
  }

  /** A reply, quoted and fit to be shown. */
  shown({ code, lines }: Reply): string {
    return quoted(this.#hide(`${code} ${lines.join(' ')}`), 200)
  }

  /** The banner, whatever it says. Throws as `ask`, but for a 421. */
  greeting(): Promise<Reply> {
    return this.#exchange.next()
  }

  /**
   * Says one line and gives the reply. `name` stands for it in messages. Throws ProbeError: `refused`
   * for a 421, with which a server ends a session whatever it was asked; else as `Exchange.ask`.
   */
  async ask(line: string, name = line.split(' ', 1)[0] ?? ''): Promise<Reply> {
    if (/[\r\n\0]/.test(line)) throw new ProbeError('data', `what ${name} should say holds a line break`)
    const unasked = this.#exchange.unasked[0]
    const reply = await this.#exchange.ask(`${line}\r\n`, name)
    if (reply.code === 421) {
      throw new ProbeError('refused', `${this.address} ended the session: ${this.shown(reply)}`)
    }
    if (unasked) throw new ProbeError('protocol', `${this.address} answers more than it is asked: ${this.shown(reply)}`)
    return reply
  }

  /** EHLO. Throws ProbeError `protocol` when the server knows none. */
  async hello(name: string): Promise<Abilities> {
    const reply = await this.ask(`EHLO ${name}`)
    if (reply.code !== 250) {
      throw new ProbeError('protocol', `${this.address} does not take EHLO ${name}: ${this.shown(reply)}`)
    }
    // The first line is the server's name and greeting.
    return new Map(
      reply.lines.slice(1).map((line) => {
        const [ability = '', ...parameters] = line.toUpperCase().split(/[ =]+/)
        return [ability, parameters]
      }),
    )
  }

  /**
   * STARTTLS; gives the socket on which TLS may begin. Throws ProbeError `tls` for a refusal, and
   * `protocol` when the server has said more than was asked: under TLS that would pass for its word.
   */
  async startTls(): Promise<Socket> {
    const reply = await this.ask('STARTTLS')
    if (reply.code !== 220) throw new ProbeError('tls', `${this.address} refused STARTTLS: ${this.shown(reply)}`)
    return this.#exchange.detach()
  }

  /** Says goodbye, so that the server logs no lost connection. Never throws. */
  async quit(): Promise<void> {
    if (this.usable) await within(this.ask('QUIT'), partingMs)
  }
}

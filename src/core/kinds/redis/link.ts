import type { Socket } from 'node:net'
import { Exchange } from '../../net/request-reply.ts'
import type { Hide } from '../../net/text.ts'
import { encode, type Reply, RespReader } from './resp.ts'

/**
 * One connection to a Redis server. Not the driver's: that one takes no socket that is connected
 * already, so names and certificates could not be looked at as everywhere else, and it keeps as much
 * of an answer as a peer cares to send. The socket stays the caller's to destroy.
 */
export class RedisLink {
  readonly address: string
  /** Takes our secrets out of what the server says. */
  readonly hide: Hide
  readonly #exchange: Exchange<Reply>

  constructor(socket: Socket, address: string, hide: Hide) {
    this.address = address
    this.hide = hide
    this.#exchange = new Exchange(socket, address, new RespReader(address, hide))
  }

  /** False when no further command can be answered. */
  get usable(): boolean {
    return this.#exchange.usable
  }

  /**
   * Says a command and gives its reply, which may be an error of the server. A server that is full, or
   * that lets no one in, says so unasked: that is the reply then. Throws as `Exchange.ask`.
   */
  ask(...command: readonly [name: string, ...string[]]): Promise<Reply> {
    return this.#exchange.ask(encode(command), command[0])
  }
}

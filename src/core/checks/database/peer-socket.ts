import { type NetConnectOpts, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { showBytes } from '../../base/format.ts'
import { endpoint, hostPort, noteConnection } from '../../base/net/connect.ts'
import { ProbeError } from '../../base/probe-error.ts'

/** Bytes. Checks read little; a peer that sends more is either not a database or hostile. */
const maxBytes = 8 * 1024 * 1024

/**
 * A socket for a driver. Drivers parse input in the `data` event, where an exception about malformed input would end
 * the process. Here it ends the connection.
 */
export class PeerSocket extends Socket {
  #reached = false
  #taken = 0
  #most = maxBytes
  #secure: Duplex | undefined
  /** Why the server at the other end of a new TLS stream is not trusted: then the driver never learns of the stream. */
  verify: (secure: TLSSocket) => Error | undefined = () => undefined
  /** Explains why TLS has ended, from the certificate of the server. Undefined where the error says enough. */
  explain: (secure: TLSSocket, error: Error) => Error | undefined = () => undefined

  /** Connects. The signal destroys the socket with its reason, also after it has connected. */
  static reach(host: string, port: number, signal: AbortSignal, most = maxBytes): Promise<PeerSocket> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error)
      const socket = new PeerSocket()
      socket.#most = most
      const abort = (): void => void socket.destroy(signal.reason as Error)
      signal.addEventListener('abort', abort, { once: true })
      socket.once('close', () => signal.removeEventListener('abort', abort))
      // This listener stays: a late reset must not be fatal after the driver has removed its own.
      socket.on('error', reject)
      socket.once('connect', () => {
        signal.removeEventListener('abort', abort)
        socket.#reached = true
        noteConnection(socket, hostPort(host, port))
        resolve(socket)
      })
      socket.setNoDelay(true)
      socket.connect(endpoint(host, port))
    })
  }

  /** Resets the byte count, so that the next reply may be as large. */
  recount(): void {
    this.#taken = 0
  }

  /** For drivers that insist on connecting by themselves: reports the existing connection. */
  override connect(...where: unknown[]): this {
    if (!this.#reached) return super.connect(...(where as [NetConnectOpts]))
    process.nextTick(() => this.emit('connect'))
    return this
  }

  /** Watches the TLS stream that a driver has put on this socket. That stream bypasses the socket's events. */
  watch(secure: Duplex): void {
    this.#secure = secure
    const destroy = secure.destroy.bind(secure)
    // The certificate can be read only before the stream ends.
    secure.destroy = (error) => destroy(error && (this.explain(secure as TLSSocket, error) ?? error))
    const emit = secure.emit.bind(secure) as Emit
    secure.emit = (event: string | symbol, ...args: unknown[]): boolean => {
      if (event === 'secureConnect' && this.refuse(secure as TLSSocket)) return true
      return this.#guard(emit, event, args)
    }
  }

  /** Ends the connection if `verify` refuses the server. */
  refuse(secure: TLSSocket): boolean {
    const why = this.verify(secure)
    if (why) this.destroy(why)
    return why !== undefined
  }

  /** Passes the reason on to the TLS stream. */
  override destroy(error?: Error): this {
    this.#secure?.destroy(error)
    return super.destroy(error)
  }

  override emit(event: string | symbol, ...args: unknown[]): boolean {
    return this.#guard((name, ...all) => super.emit(name, ...all), event, args)
  }

  #guard(emit: Emit, event: string | symbol, args: readonly unknown[]): boolean {
    if (event !== 'data') return emit(event, ...args)
    this.#taken += (args[0] as Uint8Array).length
    if (this.#taken > this.#most) {
      this.destroy(new ProbeError('protocol', `the peer sent more than ${showBytes(this.#most)}`))
      return true
    }
    try {
      return emit(event, ...args)
    } catch {
      this.destroy(new ProbeError('protocol', 'the peer sent data that cannot be parsed'))
      return true
    }
  }
}

type Emit = (event: string | symbol, ...args: unknown[]) => boolean

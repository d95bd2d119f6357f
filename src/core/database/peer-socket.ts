import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { showBytes } from '../format.ts'
import { ProbeError } from '../probe-error.ts'

/** Bytes: what a check reads is small; a peer that sends more is no database, or a hostile one. */
const maxBytes = 8 * 1024 * 1024

/**
 * A socket to hand to a driver. Drivers parse what a peer says within its `data` event, where an
 * exception over garbage would end the process: here it ends the connection.
 */
export class PeerSocket extends Socket {
  #reached = false
  #taken = 0
  #most = maxBytes
  #secure: Duplex | undefined

  /** Connects. Destroyed with its reason when the signal aborts, also after it has connected. */
  static reach(host: string, port: number, signal: AbortSignal, most = maxBytes): Promise<PeerSocket> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error)
      const socket = new PeerSocket()
      socket.#most = most
      const abort = (): void => void socket.destroy(signal.reason as Error)
      signal.addEventListener('abort', abort, { once: true })
      socket.once('close', () => signal.removeEventListener('abort', abort))
      // Stays: a late reset must not be fatal where the driver has let go already.
      socket.on('error', reject)
      socket.once('connect', () => {
        signal.removeEventListener('abort', abort)
        socket.#reached = true
        resolve(socket)
      })
      socket.setNoDelay(true)
      socket.connect(port, host)
    })
  }

  /** What has come so far counts no more: another question may be answered as fully. */
  recount(): void {
    this.#taken = 0
  }

  /** A driver that insists on connecting by itself is told that it has. */
  override connect(...where: unknown[]): this {
    if (!this.#reached) return super.connect(...(where as [port: number, host: string]))
    process.nextTick(() => this.emit('connect'))
    return this
  }

  /**
   * Watches over a stream of TLS that a driver has laid over this socket: it reads past the events of the
   * socket, which then sees nothing of what comes.
   */
  watch(secure: Duplex): void {
    this.#secure = secure
    const emit = secure.emit.bind(secure) as Emit
    secure.emit = (event: string | symbol, ...args: unknown[]): boolean => this.#guard(emit, event, args)
  }

  /** Whoever listens to what lies over it is told the reason as well. */
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
      this.destroy(new ProbeError('protocol', 'the peer answered something that cannot be read'))
      return true
    }
  }
}

type Emit = (event: string | symbol, ...args: unknown[]) => boolean

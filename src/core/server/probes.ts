import type { Socket } from 'node:net'
import { type OwnPage, ownPages } from './routes.ts'

/** /livez, /readyz and /nodes/speaker: the pages that answer anybody under any Host. */
const paths: ReadonlySet<string> = new Set(
  Object.values<OwnPage>(ownPages).flatMap(({ paths, anyHost }) => (anyHost ? paths : [])),
)

/** Whether a request target is exactly that of a probe. */
export const isProbe = (target = ''): boolean => paths.has(target)

type Ends = Pick<Socket, 'remoteAddress' | 'remotePort'>

/** A connection by its peer: over TLS, it has one socket as accepted and one that speaks HTTP. */
export const peerOf = ({ remoteAddress, remotePort }: Ends): string => `${remoteAddress} ${remotePort}`

/**
 * The connections beyond the limits, on which the server answers one probe and nothing else (S3): a supervisor must not take a
 * server for dead because its connections are used up. A newer connection closes the oldest one, because probes ask at once.
 */
export class ProbeConnections {
  readonly #sockets = new Map<string, Socket>()
  readonly #most: number
  readonly #ms: number

  /** `ms`: how long such a connection may take, from its beginning to its end. */
  constructor(most: number, ms: number) {
    this.#most = most
    this.#ms = ms
  }

  add(socket: Socket): void {
    const peer = peerOf(socket)
    if (this.#sockets.has(peer) || socket.destroyed) return
    if (this.#sockets.size >= this.#most) this.#sockets.values().next().value?.destroy()
    this.#sockets.set(peer, socket)
    const timer = setTimeout(() => socket.destroy(), this.#ms)
    socket.once('close', () => {
      clearTimeout(timer)
      this.#sockets.delete(peer)
    })
  }

  has(ends: Ends): boolean {
    return this.#sockets.size > 0 && this.#sockets.has(peerOf(ends))
  }
}

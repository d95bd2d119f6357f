import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { hostPort, noteConnection } from '../../net/connect.ts'
import { ProbeError } from '../../probe-error.ts'

/** Maximum bytes received over all connections of one run. */
const maxBytes = 8 * 1024 * 1024
const headerBytes = 16
/** OP_REPLY and OP_MSG. svc requests no other operations, and no compression. */
const opCodes = new Set([1, 2_013])
/** Maximum rounds of PBKDF2. Servers request 10,000 to 15,000, and the computation cannot be interrupted. */
const maxRounds = 1_000_000

/** Tracks the sockets that a driver opens on its own, so that svc can guard them and destroy them at once. */
export type Wires = {
  /** Runs `act`, and tracks the sockets that are opened within it, even later. */
  readonly run: <T>(act: () => T) => T
  /** Destroys all tracked sockets, including later ones. */
  readonly end: () => void
  /** Stops tracking, once the driver opens no more sockets. */
  readonly forget: () => void
}

type Verify = (secure: TLSSocket) => Error | undefined

const opened = 'net.client.socket'

/** `verify` tells why the server at the other end of a new TLS socket is not trusted. */
export function wires(verify: Verify = () => undefined): Wires {
  const mine = new AsyncLocalStorage<true>()
  const sockets = new Set<Socket>()
  let taken = 0
  let ended = false
  const take = (message: unknown): void => {
    if (mine.getStore() !== true) return
    const { socket } = message as { readonly socket: Socket }
    socket.on('error', () => {})
    // Deferred, because a socket that is destroyed before it connects stays alive.
    if (ended) {
      queueMicrotask(() => void socket.destroy())
      return
    }
    sockets.add(socket)
    socket.once('connect', () => {
      const { remoteAddress = '', remotePort = 0 } = socket
      noteConnection(socket, hostPort(remoteAddress, remotePort))
    })
    socket.once('close', () => sockets.delete(socket))
    const count = (bytes: number): boolean => {
      taken += bytes
      return taken <= maxBytes
    }
    guard(socket, count, verify)
  }
  subscribe(opened, take)
  return {
    run: (act) => mine.run(true, act),
    end: () => {
      ended = true
      for (const socket of sockets) socket.destroy()
    },
    forget: () => void unsubscribe(opened, take),
  }
}

/**
 * Passes on only complete messages within limits. The driver itself accepts messages of any length, loops for ever on
 * one of length 0, decompresses any data, and computes as many rounds as the server requests.
 */
function guard(socket: Socket, count: (bytes: number) => boolean, verify: Verify): void {
  const pass = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean
  const refuse = (what: string): boolean => {
    socket.destroy(new ProbeError('protocol', what))
    return true
  }
  let buffered: Buffer[] = []
  let have = 0
  const emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event === 'secureConnect') {
      const why = verify(socket as TLSSocket)
      if (why) {
        // The driver begins the sign-in when it learns of the connection.
        socket.destroy(why)
        return true
      }
    }
    if (event !== 'data') return pass(event, ...args)
    const chunk = args[0] as Buffer
    if (!count(chunk.length)) return refuse('the peer sent more than 8 MiB')
    buffered.push(chunk)
    have += chunk.length
    while (have >= headerBytes) {
      if ((buffered[0]?.length ?? 0) < headerBytes) buffered = [Buffer.concat(buffered)]
      const [first] = buffered
      if (!first) break
      const length = first.readInt32LE(0)
      if (length < headerBytes || length > maxBytes) return refuse('the peer does not answer as MongoDB does')
      if (!opCodes.has(first.readInt32LE(12))) return refuse('the peer answered in a form that svc did not request')
      if (length > have) break
      const all = buffered.length === 1 ? first : Buffer.concat(buffered)
      const message = all.subarray(0, length)
      buffered = length < all.length ? [all.subarray(length)] : []
      have -= length
      if (asksTooMuch(message)) return refuse('the peer requests too many rounds of hashing')
      try {
        pass('data', message)
      } catch {
        return refuse('the peer sent an unreadable answer')
      }
      if (socket.destroyed) break
    }
    return true
  }
  socket.emit = emit
}

/** Searches for the `i=` of a SCRAM challenge in the same way as the driver. */
const asksTooMuch = (message: Buffer): boolean =>
  message.includes('i=') &&
  [...message.toString('latin1').matchAll(/i=([^,]{1,64})/g)].some(
    ([, rounds]) => Number.parseInt(rounds ?? '', 10) > maxRounds,
  )

import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { ProbeError } from '../../probe-error.ts'

/** Bytes that all connections of a visit together may bring. */
const maxBytes = 8 * 1024 * 1024
const headerBytes = 16
/** OP_REPLY and OP_MSG; nothing else is asked for, least of all compression. */
const opCodes = new Set([1, 2_013])
/** Rounds of PBKDF2: servers ask for 10,000 to 15,000, and what has begun cannot be called off. */
const maxRounds = 1_000_000

/** The sockets that a driver opens by itself, so that they can be guarded, and ended at once. */
export type Wires = {
  /** Sockets that are opened within, also later on from within, are counted in. */
  readonly run: <T>(act: () => T) => T
  /** Destroys them all, and every later one. */
  readonly end: () => void
  /** Once the driver has come to rest: no later one is waited for. */
  readonly forget: () => void
}

const opened = 'net.client.socket'

export function wires(): Wires {
  const mine = new AsyncLocalStorage<true>()
  const sockets = new Set<Socket>()
  let taken = 0
  let ended = false
  const take = (message: unknown): void => {
    if (mine.getStore() !== true) return
    const { socket } = message as { readonly socket: Socket }
    socket.on('error', () => {})
    // Not at once: a socket that is destroyed before it connects lives on.
    if (ended) {
      queueMicrotask(() => void socket.destroy())
      return
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    guard(socket, (bytes) => {
      taken += bytes
      return taken <= maxBytes
    })
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
 * Passes on whole messages only. The driver waits for messages of any length, turns for ever over
 * one of length 0, unpacks whatever is compressed, and computes as many rounds as it is told to.
 */
function guard(socket: Socket, count: (bytes: number) => boolean): void {
  const pass = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean
  const refuse = (what: string): boolean => {
    socket.destroy(new ProbeError('protocol', what))
    return true
  }
  let buffered: Buffer[] = []
  let have = 0
  const emit = (event: string | symbol, ...args: unknown[]): boolean => {
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
      if (!opCodes.has(first.readInt32LE(12))) return refuse('the peer answered in a form that was not asked for')
      if (length > have) break
      const all = buffered.length === 1 ? first : Buffer.concat(buffered)
      const message = all.subarray(0, length)
      buffered = length < all.length ? [all.subarray(length)] : []
      have -= length
      if (asksTooMuch(message)) return refuse('the peer asks for more rounds of hashing than is right')
      try {
        pass('data', message)
      } catch {
        return refuse('the peer answered something that cannot be read')
      }
      if (socket.destroyed) break
    }
    return true
  }
  socket.emit = emit
}

/** Looks for the `i=` of a SCRAM challenge as the driver would read it. */
const asksTooMuch = (message: Buffer): boolean =>
  message.includes('i=') &&
  [...message.toString('latin1').matchAll(/i=([^,]{1,64})/g)].some(
    ([, rounds]) => Number.parseInt(rounds ?? '', 10) > maxRounds,
  )

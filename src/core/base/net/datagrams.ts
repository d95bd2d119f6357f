import { isIP } from 'node:net'

/** A question that is asked again when a packet is lost, and how its answer is recognized. Times in milliseconds. */
export type DatagramQuestion<Answer> = {
  readonly tries: number
  /** How long each try waits for the answer. */
  readonly timeoutMs: number
  /** The packet of one more try. */
  readonly packet: () => Uint8Array
  /** Reads a reply. Undefined: it answers none of our packets, and the real one may still arrive. May throw. */
  readonly read: (reply: Buffer) => Answer | undefined
  /** The error when no try was answered. */
  readonly unanswered: () => Error
}

/**
 * Asks one peer over UDP. Throws what `read` throws, the error of `unanswered`, or the socket's error: a port that
 * nobody listens on is ECONNREFUSED. Ends with the signal.
 */
export async function askByDatagram<Answer>(
  address: string,
  port: number,
  { tries, timeoutMs, packet, read, unanswered }: DatagramQuestion<Answer>,
  signal: AbortSignal,
): Promise<Answer> {
  const { createSocket } = await import('node:dgram')
  signal.throwIfAborted()
  const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4')
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  let left = tries
  let timer: NodeJS.Timeout | undefined
  const aborted = (): void => reject(signal.reason as Error)
  const ask = (): void => {
    if (left === 0) {
      reject(unanswered())
      return
    }
    left -= 1
    socket.send(packet())
    timer = setTimeout(ask, timeoutMs)
  }
  socket.on('error', reject)
  socket.on('message', (reply) => {
    try {
      const answer = read(reply)
      if (answer !== undefined) resolve(answer)
    } catch (error) {
      reject(error)
    }
  })
  signal.addEventListener('abort', aborted, { once: true })
  try {
    // A connected socket receives only from this peer, and a closed port is an error instead of silence.
    socket.once('connect', ask)
    socket.connect(port, address)
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', aborted)
    socket.close()
  }
}

/**
 * Why this machine sends nothing from an address of its own, or nothing from there to another address: the code of the
 * system's error. Undefined if it does. Sends nothing: the system looks for a route when a socket connects.
 */
export async function routeError(from: string | undefined, to?: string): Promise<string | undefined> {
  const { createSocket } = await import('node:dgram')
  const socket = createSocket(isIP(to ?? from ?? '') === 6 ? 'udp6' : 'udp4')
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.once('error', reject)
  // The port does not matter: this is that of discard.
  const connect = (): void =>
    to === undefined
      ? resolve()
      : socket.connect(9, to, (...[error]: readonly (Error | undefined)[]) => (error ? reject(error) : resolve()))
  try {
    if (from === undefined) connect()
    else socket.bind(0, from, connect)
    await promise
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown error'
  } finally {
    socket.close()
  }
}

import type { Socket } from 'node:net'
import type { Chain } from '../../base/net/certificates.ts'
import type { Redact } from '../../base/net/text.ts'
import type { Connection } from '../engine/index.ts'
import { isPattern, patternMismatch } from './expectation.ts'
import type { Nonce } from './nonce.ts'

export type Conversation = {
  readonly bytes: Buffer
  /** Why listening ended. `met` is success; `silent` means that the time was over. */
  readonly ended: 'met' | 'closed' | 'silent' | 'full' | 'unjudged'
  /** Why it could not be evaluated. */
  readonly problem?: string | undefined
}

/** A connected socket, and the peer's answer once there is one. */
export type TalkingConnection = Connection & {
  readonly address: string
  readonly ip: string
  socket: Socket
  /** The certificates of the server. Undefined without TLS. */
  chain?: Chain | undefined
  /** Replaces {nonce} on this connection. */
  readonly nonce: Nonce
  /** Throws for a peer to which nothing may be sent. */
  readonly demandTrust?: () => void
  /** Begins TLS on the socket. `again` repeats on another socket what led to it. Throws for a server that is not trusted. */
  readonly beginTls?: (again: (socket: Socket) => Promise<void>) => Promise<void>
  /** Whether a dialogue has begun. */
  hasTalked?: true
  answer?: Answer
}

/** The peer's answer. */
type Answer = Conversation & {
  readonly address: string
  readonly ms: number
  readonly redact: Redact
  /** True if a whole document is expected. */
  readonly isDocument: boolean
  readonly nonce: Nonce
}

/** Maximum number of searches: a peer that sends single bytes must not trigger one for each. */
const maxLooks = 64

/** The condition to wait for: `/pattern/`, a text that the answer contains, or a test of everything received so far. */
export type Expected = string | ((received: Buffer) => boolean)

/**
 * Listens until the expectation is met, the peer closes the connection, `max` bytes have arrived or `ms` are over.
 * Without an expectation, any data meets it. Rejects with the error that destroyed the socket. The caller destroys the
 * socket.
 */
export function listen(socket: Socket, expected: Expected | undefined, max: number, ms: number): Promise<Conversation> {
  return new Promise((resolve, reject) => {
    // The buffer doubles, so that a peer that sends single bytes does not cause a copy each time.
    let space = Buffer.alloc(Math.min(max, 4096))
    let bytes = space.subarray(0, 0)
    let looks = 0
    const settle = (ended: Conversation['ended'], problem?: string): void => {
      stop()
      socket.pause()
      resolve({ bytes, ended, problem })
    }
    const look = (otherwise?: 'closed' | 'silent' | 'full'): void => {
      const mismatch = mismatchIn(bytes, expected)
      if (mismatch === undefined) settle('met')
      else if (mismatch.startsWith('cannot be evaluated')) settle('unjudged', mismatch)
      else if (otherwise) settle(otherwise)
    }
    const timer = setTimeout(() => look('silent'), ms)
    const receive = (chunk: Buffer): void => {
      const length = Math.min(bytes.length + chunk.length, max)
      if (length > space.length) {
        const larger = Buffer.alloc(Math.min(max, Math.max(length, space.length * 2)))
        bytes.copy(larger)
        space = larger
      }
      chunk.copy(space, bytes.length)
      bytes = space.subarray(0, length)
      looks += 1
      if (bytes.length >= max) look('full')
      // Our own tests are cheap; a pattern would run over everything each time.
      else if (looks <= maxLooks || typeof expected === 'function') look()
    }
    const close = (): void => look('closed')
    const fail = (error: Error): void => {
      stop()
      reject(error)
    }
    // A dialogue listens on one socket again and again.
    const stop = (): void => {
      clearTimeout(timer)
      socket.off('data', receive).off('end', close).off('error', fail).off('close', close)
    }
    socket.on('data', receive).on('end', close).on('error', fail).on('close', close).resume()
    if (socket.destroyed || socket.readableEnded) close()
  })
}

function mismatchIn(received: Buffer, expected: Expected | undefined): string | undefined {
  if (typeof expected === 'function') return expected(received) ? undefined : 'is incomplete'
  if (expected === undefined) return received.length > 0 ? undefined : 'is missing'
  const text = received.toString('utf8')
  if (isPattern(expected)) return patternMismatch(text, expected)
  return text.includes(expected) ? undefined : 'does not contain it'
}

import type { Socket } from 'node:net'
import { isPattern, unmatched } from './expectation.ts'

export type Heard = {
  readonly bytes: Buffer
  /** Why listening ended: `met` is the good one. `silent`: the time was over. */
  readonly ended: 'met' | 'closed' | 'silent' | 'full' | 'unjudged'
  /** Why it could not be judged. */
  readonly problem?: string | undefined
}

/** A peer that drips single bytes must not make us search as often. */
const mostLooks = 64

/**
 * Listens until what is expected was heard, the peer hangs up, `max` bytes are full or `ms` are over.
 * Expected is `/pattern/`, a text that the answer contains, or without either anything at all.
 * Rejects with what the socket was destroyed with. The caller destroys the socket.
 */
export function listen(socket: Socket, expected: string | undefined, max: number, ms: number): Promise<Heard> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0)
    let looks = 0
    const settle = (ended: Heard['ended'], problem?: string): void => {
      clearTimeout(timer)
      socket.removeListener('data', hear).pause()
      resolve({ bytes, ended, problem })
    }
    const look = (otherwise?: 'closed' | 'silent' | 'full'): void => {
      const missing = lacks(bytes, expected)
      if (missing === undefined) settle('met')
      else if (missing.startsWith('cannot be judged')) settle('unjudged', missing)
      else if (otherwise) settle(otherwise)
    }
    const timer = setTimeout(() => look('silent'), ms)
    const hear = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk]).subarray(0, max)
      looks += 1
      if (bytes.length >= max) look('full')
      else if (looks <= mostLooks) look()
    }
    socket.on('data', hear)
    socket.once('end', () => look('closed'))
    socket.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    socket.once('close', () => look('closed'))
  })
}

function lacks(heard: Buffer, expected: string | undefined): string | undefined {
  if (expected === undefined) return heard.length > 0 ? undefined : 'is missing'
  const text = heard.toString('utf8')
  if (isPattern(expected)) return unmatched(text, expected)
  return text.includes(expected) ? undefined : 'does not contain it'
}

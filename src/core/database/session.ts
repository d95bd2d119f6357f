import type { Column } from './column.ts'
import type { PeerSocket } from './peer-socket.ts'
import type { Row } from './rows.ts'
import type { DatabaseTarget } from './target.ts'

/** Runs one statement that only reads. Throws ProbeError, or what a socket throws. */
export type Ask = (sql: string) => Promise<readonly Row[]>

/**
 * Runs one statement of an operator's, which cannot change rows, and reads its first column. `dates`: it holds
 * dates, and where only the server knows their zone, the oldest of them is enough. Throws as `Ask`.
 */
export type Read = (sql: string, dates: boolean) => Promise<Column>

/** A database that svc has signed in to. */
export type Session = {
  readonly ask: Ask
  readonly read: Read
  /** The version of TLS, or undefined. */
  readonly encryption: string | undefined
  /** Signs off. After an abort: waits until the server has been told to stop, and hangs up. */
  readonly close: () => Promise<void>
}

/** The way to a server, up to the sign-in. */
export type Way = {
  /** Connected already; it stays the caller's to destroy. */
  readonly socket: PeerSocket
  readonly ip: string
  readonly address: string
  readonly signal: AbortSignal
  /** Milliseconds left until the deadline. */
  readonly msLeft: () => number
}

/**
 * Signs in. When the signal aborts, whatever then runs on the server is stopped there and the socket
 * is destroyed; should neither get through, the server itself ends a statement at the deadline.
 * Throws ProbeError, or what a socket throws.
 */
export type Open = (target: DatabaseTarget, way: Way) => Promise<Session>

/** Milliseconds for a polite end, or to stop what runs: within what the engine grants after a deadline. */
export const partingMs = 400

/** Milliseconds for one statement: half of the time is left to the others, so that a slow one does not hide them all. */
export const statementMs = (left: number): number => Math.max(1, Math.min(left, Math.max(3_000, Math.floor(left / 2))))

/** Waits until it is done, well or not, but no longer than `ms`. */
export async function within(done: Promise<unknown>, ms: number): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const end = (): void => resolve()
  done.then(end, end)
  await late
  clearTimeout(timer)
}

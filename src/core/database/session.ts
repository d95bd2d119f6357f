import { createRequire } from 'node:module'
import type { TLSSocket } from 'node:tls'
import { ProbeError } from '../probe-error.ts'
import type { PeerSocket } from './peer-socket.ts'
import type { Column, Row } from './rows.ts'
import { type Dialect, refuseToWrite } from './sql.ts'
import type { DatabaseTarget } from './target.ts'

/** Runs one statement that only reads. Throws ProbeError, or what a socket throws. */
export type Ask = (sql: string) => Promise<readonly Row[]>

/**
 * Runs one statement of an operator's, which cannot change rows, and reads its first column. `dates`: it holds
 * dates, and where only the server knows their zone, the oldest of them is enough. Throws as `Ask`.
 */
export type Read = (sql: string, dates: boolean) => Promise<Column>

/** A database that svc has signed in to. */
export type DatabaseSession = {
  readonly ask: Ask
  readonly read: Read
  /** The version of TLS, or undefined. */
  readonly encryption: string | undefined
  /** The encrypted stream, whose certificates can be read; undefined without TLS. */
  readonly secured: TLSSocket | undefined
  /** Signs off. After an abort: waits until the server has been told to stop, and hangs up. */
  readonly close: () => Promise<void>
}

/** The way to a server, up to the sign-in. */
export type Transport = {
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
export type OpenDatabase = (target: DatabaseTarget, way: Transport) => Promise<DatabaseSession>

/** Where an error came up: it means something else at the sign-in than in a check, or in a query of an operator's. */
export type ErrorPlace = {
  readonly target: DatabaseTarget
  readonly address: string
  readonly phase: 'sign-in' | 'check' | 'query'
}

/** What a driver does on its connection; `openSession` adds what is the same for all of them. */
export type Driver = {
  readonly signIn: () => Promise<unknown>
  /** The version of TLS, or undefined. Called after the sign-in. */
  readonly encryption: () => string | undefined
  /** The encrypted stream; undefined without TLS. Called after the sign-in. */
  readonly secured: () => TLSSocket | undefined
  /** Runs one statement that only reads, in at most `ms`. */
  readonly ask: (sql: string, ms: number) => Promise<readonly Row[]>
  /** Runs one statement of an operator's in a transaction that changes no rows, in at most `ms`. `dates` as for `Read`. */
  readonly read: (sql: string, options: { readonly ms: number; readonly dates: boolean }) => Promise<Column>
  /** Whose SQL it is, where the server would not refuse every statement that writes: svc refuses those itself. */
  readonly dialect?: Dialect
  /**
   * Has the server stop what runs, within `partingMs`. `running` returns undefined once that has ended. Never rejects.
   */
  readonly stop: (running: () => Promise<unknown> | undefined) => Promise<void>
  /** Signs off, where the protocol has a way; resolves when the server has hung up. */
  readonly signOff?: () => Promise<unknown>
  /** Frees what the driver has beside the socket. May be called again. */
  readonly release?: () => void
  /** What an error means: a ProbeError, or the error itself where `classify` knows it. */
  readonly fault: (error: unknown, phase: ErrorPlace['phase']) => unknown
}

/** Signs in with a driver, and gives it what `Open` promises. */
export async function openSession({ socket, signal, msLeft }: Transport, driver: Driver): Promise<DatabaseSession> {
  let running: Promise<unknown> | undefined
  let hungUp: Promise<void> | undefined
  const hangUp = async (): Promise<void> => {
    if (running) await driver.stop(() => running)
    driver.release?.()
    socket.destroy()
  }
  const abort = (): void => {
    hungUp = hangUp()
  }
  // While the driver was loaded, nothing listened to the signal.
  signal.throwIfAborted()
  signal.addEventListener('abort', abort, { once: true })
  try {
    await driver.signIn()
  } catch (error) {
    signal.removeEventListener('abort', abort)
    driver.release?.()
    throw driver.fault(error, 'sign-in')
  }
  const run = async <T>(phase: ErrorPlace['phase'], start: () => Promise<T>): Promise<T> => {
    try {
      const statement = start()
      running = statement
      return await statement
    } catch (error) {
      throw driver.fault(error, phase)
    } finally {
      running = undefined
    }
  }
  return {
    async ask(sql) {
      signal.throwIfAborted()
      return await run('check', () => driver.ask(sql, statementMs(msLeft())))
    },
    async read(sql, dates) {
      signal.throwIfAborted()
      if (socket.destroyed) throw new ProbeError('dependency', 'not asked: the connection had ended before it')
      socket.recount()
      if (driver.dialect) refuseToWrite(sql, driver.dialect)
      const ms = queryMs(msLeft())
      return await run('query', () => driver.read(sql, { ms, dates }))
    },
    encryption: driver.encryption(),
    secured: driver.secured(),
    async close() {
      signal.removeEventListener('abort', abort)
      if (driver.signOff && !signal.aborted && !socket.destroyed) await settleWithin(driver.signOff(), closeTimeoutMs)
      await hungUp
      driver.release?.()
      socket.destroy()
    },
  }
}

/** Milliseconds for a polite end, or to stop what runs: within what the engine grants after a deadline. */
export const closeTimeoutMs = 400

/** Milliseconds for one statement: half of the time is left to the others, so that a slow one does not hide them all. */
export const statementMs = (left: number): number => Math.max(1, Math.min(left, Math.max(3_000, Math.floor(left / 2))))

/** Milliseconds that no query gets: it is to be ended, and named, before the deadline names nothing. */
const reserveMs = 300
const minQueryMs = 50

/** Milliseconds for one query. Throws ProbeError `timeout` where too few are left. */
export function queryMs(left: number): number {
  const ms = Math.min(statementMs(left), left - reserveMs)
  if (ms < minQueryMs) throw new ProbeError('timeout', 'not asked: the time of this monitor was used up before it')
  return ms
}

/** It took longer than it may, and was ended. */
export const calledOff = (): ProbeError => new ProbeError('timeout', 'the query was called off: it took too long')

/** Waits until it is done, well or not, but no longer than `ms`. */
export async function settleWithin(done: Promise<unknown>, ms: number): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const end = (): void => resolve()
  done.then(end, end)
  await late
  clearTimeout(timer)
}

/**
 * Has iconv-lite, which a driver brings along, read its tables of encodings. It would do so in the midst of
 * the first answer that needs them, where nobody catches what it throws. Throws what loading throws.
 */
export function loadEncodings(driver: string): void {
  const requireHere = createRequire(import.meta.url)
  const requireThere = createRequire(requireHere.resolve(driver))
  const { decode } = requireThere('iconv-lite') as { readonly decode: (bytes: Buffer, encoding: string) => string }
  decode(Buffer.from('a'), 'cesu8')
}

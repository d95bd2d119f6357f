import { AsyncResource } from 'node:async_hooks'
import { createRequire } from 'node:module'
import type { TLSSocket } from 'node:tls'
import type { ConfiguredFiles } from '../../base/files/index.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { PeerSocket } from './peer-socket.ts'
import type { Column, Row } from './rows.ts'
import { type Dialect, refuseToWrite } from './sql.ts'
import type { DatabaseTarget } from './target.ts'

/** Runs one read-only statement. Throws ProbeError, or a socket's error. */
export type Ask = (sql: string) => Promise<readonly Row[]>

/**
 * Runs one statement from svc.yaml, which cannot change rows, and reads its first column. `dates`: the column holds
 * dates; where only the server knows their time zone, the oldest one is enough. Throws like `Ask`.
 */
export type Read = (sql: string, dates: boolean) => Promise<Column>

/**
 * Runs statements that write in one transaction and commits it. Each statement, and the COMMIT, may take `ms`. Only for
 * checks that `allowWrites` permits. Throws like `Ask`, and ProbeError `timeout` when the COMMIT does not return.
 */
export type Commit = (sql: string, ms: number) => Promise<void>

/** A database that svc has signed in to. */
export type DatabaseSession = {
  readonly ask: Ask
  readonly read: Read
  readonly commit: Commit
  /** The TLS version, or undefined without TLS. */
  readonly encryption: string | undefined
  /** The encrypted stream, to read its certificates. Undefined without TLS. */
  readonly secured: TLSSocket | undefined
  /** Whether the server has asked for a password. */
  readonly askedForPassword: boolean
  /** Signs off. After an abort it waits until the server has been told to stop the statement, and closes the socket. */
  readonly close: () => Promise<void>
}

/** The connection to a server, before the sign-in. */
export type Transport = {
  /** Already connected. The caller destroys it. */
  readonly socket: PeerSocket
  readonly ip: string
  readonly address: string
  readonly signal: AbortSignal
  /** Milliseconds left until the deadline. */
  readonly msLeft: () => number
  readonly files: ConfiguredFiles
}

/**
 * Signs in. When the signal aborts, the statement that runs on the server is stopped and the socket is destroyed. If
 * neither reaches the server, the server itself ends a statement at the deadline. Throws ProbeError, or a socket's
 * error.
 */
export type OpenDatabase = (target: DatabaseTarget, way: Transport) => Promise<DatabaseSession>

/** Where an error occurred. It means different things during the sign-in, in a check, in a query from svc.yaml and in a write. */
export type ErrorPlace = {
  readonly target: DatabaseTarget
  readonly address: string
  readonly phase: 'sign-in' | 'check' | 'query' | 'write'
}

/** The operations of a driver on its connection. `openSession` adds what all drivers have in common. */
export type Driver = {
  readonly signIn: () => Promise<unknown>
  /** The TLS version, or undefined without TLS. Called after the sign-in. */
  readonly encryption: () => string | undefined
  /** The encrypted stream, or undefined without TLS. Called after the sign-in. */
  readonly secured: () => TLSSocket | undefined
  /** Whether the server has asked for a password. Called after the sign-in. Default: it has. */
  readonly askedForPassword?: () => boolean
  /** Runs one read-only statement, for at most `ms`. */
  readonly ask: (sql: string, ms: number) => Promise<readonly Row[]>
  /**
   * Runs one statement from svc.yaml in a transaction that changes no rows, for at most `ms`. `dates` as for `Read`.
   */
  readonly read: (sql: string, options: { readonly ms: number; readonly dates: boolean }) => Promise<Column>
  /** As for `Commit`. Absent: svc never writes to this kind of server. */
  readonly commit?: Commit
  /** The SQL dialect, for servers that would not refuse every statement that writes. svc itself refuses those. */
  readonly dialect?: Dialect
  /**
   * Tells the server to stop the running statement, within `closeTimeoutMs`. `running` returns undefined once the statement
   * has ended. Never rejects.
   */
  readonly stop: (running: () => Promise<unknown> | undefined) => Promise<void>
  /** Signs off, if the protocol supports it. Resolves when the server has closed the connection. */
  readonly signOff?: () => Promise<unknown>
  /** Frees resources of the driver other than the socket. Safe to call again. */
  readonly release?: () => void
  /** Translates an error, perhaps later: returns a ProbeError, or the error itself when `classify` knows it. */
  readonly fault: (error: unknown, phase: ErrorPlace['phase']) => unknown
}

/** Signs in with a driver and adds what `OpenDatabase` promises. */
export async function openSession({ socket, signal, msLeft }: Transport, driver: Driver): Promise<DatabaseSession> {
  let running: Promise<unknown> | undefined
  let hungUp: Promise<void> | undefined
  const hangUp = async (): Promise<void> => {
    if (running) await driver.stop(() => running)
    driver.release?.()
    socket.destroy()
  }
  // Its connections belong to the observation, and leave this machine as the others do.
  const abort = AsyncResource.bind((): void => {
    hungUp = hangUp()
  })
  // Nothing listened to the signal while the driver was loaded.
  signal.throwIfAborted()
  signal.addEventListener('abort', abort, { once: true })
  try {
    await driver.signIn()
  } catch (error) {
    signal.removeEventListener('abort', abort)
    driver.release?.()
    throw await driver.fault(error, 'sign-in')
  }
  const run = async <T>(phase: ErrorPlace['phase'], start: () => Promise<T>): Promise<T> => {
    try {
      const statement = start()
      running = statement
      return await statement
    } catch (error) {
      throw await driver.fault(error, phase)
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
      if (socket.destroyed) throw new ProbeError('dependency', 'not run: the connection had already ended')
      socket.recount()
      if (driver.dialect) refuseToWrite(sql, driver.dialect)
      const ms = queryMs(msLeft())
      return await run('query', () => driver.read(sql, { ms, dates }))
    },
    async commit(sql, ms) {
      signal.throwIfAborted()
      const { commit } = driver
      if (!commit) throw new ProbeError('internal', 'svc does not write to this kind of server')
      await run('write', () => commit(sql, Math.min(ms, msLeft())))
    },
    encryption: driver.encryption(),
    secured: driver.secured(),
    askedForPassword: driver.askedForPassword?.() ?? true,
    async close() {
      signal.removeEventListener('abort', abort)
      if (driver.signOff && !signal.aborted && !socket.destroyed) await settleWithin(driver.signOff(), closeTimeoutMs)
      await hungUp
      driver.release?.()
      socket.destroy()
    },
  }
}

/** Milliseconds to sign off or to stop a statement. It fits into the time that the engine grants after a deadline. */
export const closeTimeoutMs = 400

/**
 * Milliseconds for one statement. It leaves half of the time to the others, so that a slow statement does not hide them
 * all.
 */
export const statementMs = (left: number): number => Math.max(1, Math.min(left, Math.max(3_000, Math.floor(left / 2))))

/**
 * Milliseconds kept back from queries: a slow query must end and be named in the result before the deadline, which
 * names nothing.
 */
const reserveMs = 300
const minQueryMs = 50

/** Milliseconds for one query. Throws ProbeError `timeout` when too few are left. */
export function queryMs(left: number): number {
  const ms = Math.min(statementMs(left), left - reserveMs)
  if (ms < minQueryMs) throw new ProbeError('timeout', 'not run: no time was left for this query')
  return ms
}

/** The error for a query that took too long and was ended. */
export const calledOff = (): ProbeError => new ProbeError('timeout', 'the query was cancelled because it took too long')

/** Waits until the promise settles, but no longer than `ms`. */
export async function settleWithin(done: Promise<unknown>, ms: number): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  const end = (): void => resolve()
  done.then(end, end)
  await late
  clearTimeout(timer)
}

/**
 * Makes iconv-lite, which a driver depends on, load its encoding tables. It would otherwise load them during the first
 * answer that needs them, where nothing catches its errors. Throws loading errors.
 */
export function loadEncodings(driver: string): void {
  const requireHere = createRequire(import.meta.url)
  const requireThere = createRequire(requireHere.resolve(driver))
  const { decode } = requireThere('iconv-lite') as { readonly decode: (bytes: Buffer, encoding: string) => string }
  decode(Buffer.from('a'), 'cesu8')
}

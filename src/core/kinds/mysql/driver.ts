import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { Connection, ConnectionOptions } from 'mysql2'
import {
  type Ask,
  type DatabaseTarget,
  loadEncodings,
  notAsked,
  type Open,
  PeerSocket,
  partingMs,
  queryMs,
  type Read,
  refuseToWrite,
  statementMs,
  tlsChoice,
  within,
} from '../../database/index.ts'
import { ProbeError } from '../../probe-error.ts'
import { mysqlFault, type Where } from './faults.ts'
import { killed, type Victim } from './kill.ts'
import { queried, readOnly, signedIn } from './read.ts'

/** Milliseconds for the end of a statement that has ended by itself to come in. */
const graceMs = 40

/** The driver. Rejects when it cannot be loaded whole. */
export async function loadMysql() {
  const driver = await import('mysql2')
  loadEncodings('mysql2')
  return driver
}

export const openMysql: Open = async (target, way) => {
  const { socket, ip, address, signal, msLeft } = way
  const at = (phase: Where['phase']): Where => ({ target, address, phase })
  const options = await optionsFor(target, ip)
  const { createConnection } = await loadMysql()
  const connect = (over: PeerSocket): Connection => watched(createConnection({ ...options, stream: over }), over)
  let underway: Promise<unknown> | undefined
  let mark = ''
  /** A comment that no other statement has, on whatever server it is. */
  const marked = (sql: string): string => {
    mark = `svc-health ${randomUUID()}`
    return `/* ${mark} */ ${sql}`
  }
  const kill = (what: Victim['what'], coming: () => boolean) =>
    killed({ what, thread, mark, coming }, { reach: (limit) => PeerSocket.reach(ip, target.port, limit), connect })
  let hungUp: Promise<void> | undefined
  let thread = 0
  const abort = (): void => {
    // A query goes on when its client is gone: it is ended from a second connection.
    const stopped = underway && thread > 0 ? kill('CONNECTION', () => underway !== undefined) : Promise.resolve()
    hungUp = stopped.then(() => void socket.destroy())
  }
  // Looked at here, for while the driver was loaded nobody listened.
  signal.throwIfAborted()
  signal.addEventListener('abort', abort, { once: true })
  try {
    const connection = connect(socket)
    await signedIn(connection)
    thread = connection.threadId ?? 0
    // The driver takes almost anything for a greeting.
    if (thread === 0) throw new ProbeError('protocol', `${address} does not answer as MySQL does`)
    const ask: Ask = async (sql) => {
      signal.throwIfAborted()
      try {
        const query = queried(connection, marked(limited(sql, statementMs(msLeft()))))
        underway = query
        return await query
      } catch (error) {
        throw mysqlFault(error, at('check'))
      } finally {
        underway = undefined
      }
    }
    const read: Read = async (sql, dates) => {
      signal.throwIfAborted()
      if (socket.destroyed) throw notAsked()
      socket.recount()
      refuseToWrite(sql, 'mysql')
      const stop = async (ended: Promise<void>): Promise<void> => {
        // Meanwhile nothing comes: a server is faster at sending rows than at being told not to.
        connection.pause()
        const outcome = await kill('QUERY', () => false)
        socket.recount()
        connection.resume()
        if (outcome !== 'not found') return
        // It may have ended by itself. Else it runs where there is no way to end it but to hang up.
        let over = false
        void ended.then(() => (over = true))
        await within(ended, graceMs)
        if (!over) socket.destroy()
      }
      const reading = readOnly(connection, sql, { ms: queryMs(msLeft()), dates, signal, marked, stop })
      underway = reading
      try {
        return await reading
      } catch (error) {
        throw mysqlFault(error, at('query'))
      } finally {
        underway = undefined
      }
    }
    const close = async (): Promise<void> => {
      signal.removeEventListener('abort', abort)
      if (!signal.aborted && !socket.destroyed) await within(ended(connection, socket), partingMs)
      await hungUp
      socket.destroy()
    }
    return { ask, read, encryption: options.ssl ? 'TLS' : undefined, close }
  } catch (error) {
    signal.removeEventListener('abort', abort)
    throw mysqlFault(error, at('sign-in'))
  }
}

async function optionsFor(target: DatabaseTarget, ip: string): Promise<ConnectionOptions> {
  const tls = await tlsChoice(target, ip)
  if (tls && tls.servername === undefined) {
    // The driver compares the certificate with a name only.
    throw new ProbeError('tls', 'a certificate is for a name, and the url has an address: set tls: {servername: …}')
  }
  return {
    // Connected already: this is the name to find in the certificate.
    host: tls?.servername ?? ip,
    user: target.user,
    password: (await target.password?.reveal()) ?? '',
    ...(target.database === '' ? {} : { database: target.database }),
    ...(tls ? { ssl: { ...(tls.ca ? { ca: tls.ca } : {}), rejectUnauthorized: true, verifyIdentity: true } } : {}),
    connectAttributes: { program_name: 'svc-health' },
    // The engine's deadline counts.
    connectTimeout: 0,
    // A hostile server could ask for any file of this machine.
    flags: ['-LOCAL_FILES'],
    disableEval: true,
    trace: false,
  }
}

/**
 * Has the server end a statement by itself: MariaDB reads the one comment, MySQL the other. Nothing
 * is set for the session, which behind a proxy may be others' next.
 */
function limited(sql: string, ms: number): string {
  const maria = `/*M!100101 SET STATEMENT max_statement_time = ${ms / 1_000}, lock_wait_timeout = 1 FOR */`
  return `${maria} ${sql.replace(/^SELECT /, `SELECT /*+ MAX_EXECUTION_TIME(${ms}) */ `)}`
}

/** Signs off, and waits until the server has hung up: then the session is gone there. */
function ended(connection: Connection, socket: PeerSocket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
    connection.end(() => {})
  })
}

/** TLS is laid over the socket in the midst of the sign-in. */
function watched(connection: Connection, socket: PeerSocket): Connection {
  const inner = connection as unknown as { startTLS: (done: unknown) => void; readonly stream: Duplex }
  const start = inner.startTLS.bind(connection)
  inner.startTLS = (done) => {
    start(done)
    socket.watch(inner.stream)
  }
  return connection
}

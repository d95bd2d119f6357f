import type { Connection, ConnectionOptions } from 'mysql2'
import { ProbeError } from '../monitor.ts'
import { mysqlFault, type Where } from './mysql-faults.ts'
import { queried, readOnly } from './mysql-read.ts'
import { PeerSocket } from './peer-socket.ts'
import { notAsked, queryMs } from './query.ts'
import { refuseToWrite } from './query-sql.ts'
import { type Ask, type Open, partingMs, type Read, statementMs, within } from './session.ts'
import { type DatabaseTarget, tlsChoice } from './target.ts'

export const openMysql: Open = async (target, way) => {
  const { socket, ip, address, signal, msLeft } = way
  const at = (phase: Where['phase']): Where => ({ target, address, phase })
  const options = await optionsFor(target, ip)
  const { createConnection } = await import('mysql2')
  const connect = (over: PeerSocket): Connection => createConnection({ ...options, stream: over })
  let underway: Promise<unknown> | undefined
  let hungUp: Promise<void> | undefined
  let thread = 0
  const abort = (): void => {
    // A query goes on when its client is gone: it is ended from a second connection.
    const stopped = underway && thread > 0 ? kill(`CONNECTION ${thread}`, ip, target.port, connect) : Promise.resolve()
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
        const query = queried(connection, limited(sql, statementMs(msLeft())))
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
      const stop = async (): Promise<void> => {
        // Meanwhile nothing comes: a server is faster at sending rows than at being told not to.
        connection.pause()
        await kill(`QUERY ${thread}`, ip, target.port, connect)
        socket.recount()
        connection.resume()
      }
      const reading = readOnly(connection, sql, { ms: queryMs(msLeft()), dates, stop })
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

function signedIn(connection: Connection): Promise<void> {
  return new Promise((resolve, reject) => {
    // Stays: a connection that breaks later also fails the query under way, and that is where it is told.
    connection.on('error', reject)
    connection.once('connect', () => resolve())
  })
}

/** Signs off, and waits until the server has hung up: then the session is gone there. */
function ended(connection: Connection, socket: PeerSocket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
    connection.end(() => {})
  })
}

/** Ends a session, or what it runs, from a connection of its own. Never throws; ends after `partingMs`. */
async function kill(
  what: `CONNECTION ${number}` | `QUERY ${number}`,
  ip: string,
  port: number,
  connect: (over: PeerSocket) => Connection,
): Promise<void> {
  const limit = AbortSignal.timeout(partingMs)
  const over = await PeerSocket.reach(ip, port, limit).catch(() => undefined)
  if (!over) return
  const second = connect(over)
  const killed = signedIn(second).then(() => queried(second, `KILL ${what}`))
  await within(killed, partingMs)
  over.destroy()
}

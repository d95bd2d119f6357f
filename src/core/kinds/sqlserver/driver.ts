import type { Connection, ConnectionConfiguration, Request } from 'tedious'
import {
  type Ask,
  type DatabaseTarget,
  loadEncodings,
  notAsked,
  type Open,
  type PeerSocket,
  partingMs,
  queryMs,
  type Read,
  type Row,
  refuseToWrite,
  statementMs,
  type TlsChoice,
  tlsChoice,
  within,
} from '../../database/index.ts'
import { optionalDriver } from '../../net/driver.ts'
import { hiding, quoted } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { type ServerError, sqlserverFault, type Where } from './faults.ts'
import { readAndTakeBack } from './read.ts'

/** Milliseconds: a check that needs longer for a lock is in the way of others, and says so instead. */
const lockMs = 500
/** Bytes: a handshake, certificates included, is far smaller, and what comes before is read piece by piece. */
const mostBeforeSignIn = 128 * 1024
const mostRows = 5_000
const prefix = `SET NOCOUNT ON; SET LOCK_TIMEOUT ${lockMs};`

export const loadTedious = () =>
  optionalDriver('tedious', async () => {
    const driver = await import('tedious')
    loadEncodings('tedious')
    return driver
  })

export const openSqlserver: Open = async (target, way) => {
  const { socket, ip, address, signal, msLeft } = way
  const password = (await target.password?.reveal()) ?? ''
  const hide = hiding([password])
  const at = (phase: Where['phase']): Where => ({ target, address, phase, hide })
  const tls = await tlsChoice(target, ip)
  const driver = await loadTedious()
  const connection = new driver.Connection(configuration(target, tls, password, once(socket, address)))
  // A connection that breaks also fails the request under way, and that is where it is told.
  connection.on('error', () => {})
  let version: string | undefined
  connection.on('secure', (secure) => {
    version = secure.getProtocol() ?? 'TLS'
  })
  let underway: Promise<unknown> | undefined
  let hungUp: Promise<void> | undefined
  const hangUp = async (): Promise<void> => {
    if (underway) {
      // An attention: the server ends the batch and says so.
      connection.cancel()
      await within(underway, partingMs)
    }
    connection.close()
    socket.destroy()
  }
  const abort = (): void => {
    hungUp = hangUp()
  }
  // Looked at here, for while the driver was loaded nobody listened.
  signal.throwIfAborted()
  signal.addEventListener('abort', abort, { once: true })
  try {
    await signedIn(connection, socket, (error, told) => sqlserverFault(error, at('sign-in'), told))
  } catch (error) {
    signal.removeEventListener('abort', abort)
    connection.close()
    throw error
  }
  const ask: Ask = async (sql) => {
    signal.throwIfAborted()
    try {
      const asked = rowsOf(connection, driver.Request, `${prefix} ${sql}`, msLeft())
      underway = asked
      return (await asked).map((row) => shown(row, hide))
    } catch (error) {
      throw sqlserverFault(error, at('check'))
    } finally {
      underway = undefined
    }
  }
  const read: Read = async (sql) => {
    signal.throwIfAborted()
    if (socket.destroyed) throw notAsked()
    socket.recount()
    refuseToWrite(sql, 'sqlserver')
    const reading = readAndTakeBack(connection, driver.Request, sql, { prefix, ms: queryMs(msLeft()), hide })
    underway = reading
    try {
      return await reading
    } catch (error) {
      throw sqlserverFault(error, at('query'))
    } finally {
      underway = undefined
    }
  }
  const close = async (): Promise<void> => {
    signal.removeEventListener('abort', abort)
    await hungUp
    // The protocol has no farewell: the session ends with its connection.
    connection.close()
    socket.destroy()
  }
  return { ask, read, encryption: tls ? (version ?? 'TLS') : undefined, close }
}

function configuration(
  target: DatabaseTarget,
  tls: TlsChoice | undefined,
  password: string,
  connector: () => Promise<PeerSocket>,
): ConnectionConfiguration {
  return {
    // Connected already: this is the name to find in the certificate.
    server: target.tls.servername ?? target.host,
    authentication: { type: 'default', options: { userName: target.user, password } },
    options: {
      connector,
      port: target.port,
      ...(target.database === '' ? {} : { database: target.database }),
      appName: 'svc-health',
      encrypt: tls !== undefined,
      cryptoCredentialsDetails: tls?.ca === undefined ? {} : { ca: tls.ca },
      trustServerCertificate: false,
      // Nothing is retried: a refused sign-in least of all.
      maxRetriesOnTransientErrors: 0,
      // The engine's deadline counts.
      connectTimeout: 2 ** 31 - 1,
      cancelTimeout: partingMs,
      // Looks past locks: a backup that is being written down must not hold up its own check.
      connectionIsolationLevel: 0x01,
      // Texts longer than this are nothing to look at.
      textsize: 8_192,
    },
  }
}

/** Hands the socket over. A server that sends its clients elsewhere would be sent the password there. */
function once(socket: PeerSocket, address: string): (where?: unknown) => Promise<PeerSocket> {
  let taken = false
  return async (where) => {
    if (!taken) {
      taken = true
      return socket
    }
    const { host, port } = where as { readonly host?: unknown; readonly port?: unknown }
    const other = quoted(`${String(host)}:${Number(port)}`, 128)
    throw new ProbeError('data', `${address} sends its clients on to ${other}`, [
      'next: where that is right, name that server in the url',
    ])
  }
}

async function signedIn(
  connection: Connection,
  socket: PeerSocket,
  fault: (error: unknown, told: readonly ServerError[]) => unknown,
): Promise<void> {
  const told: ServerError[] = []
  const hear = ({ number, state, message }: ServerError): void => {
    if (told.length < 10) told.push({ number, state, message })
  }
  let taken = 0
  const count = (chunk: Buffer): void => {
    taken += chunk.length
    if (taken > mostBeforeSignIn) {
      socket.destroy(new ProbeError('protocol', 'the peer sent more than 128 KiB before the sign-in was done'))
    }
  }
  connection.on('errorMessage', hear)
  try {
    await new Promise<void>((resolve, reject) => {
      connection.connect((error) => (error ? reject(error) : resolve()))
      socket.on('data', count)
    })
  } catch (error) {
    throw fault(error, told)
  } finally {
    connection.off('errorMessage', hear)
    socket.off('data', count)
  }
}

function rowsOf(connection: Connection, Batch: typeof Request, sql: string, msLeft: number): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    const rows: Row[] = []
    const batch = new Batch(sql, (error) => (error ? reject(error) : resolve(rows)))
    batch.setTimeout(statementMs(msLeft))
    batch.on('row', (columns: readonly Column[]) => {
      if (rows.length >= mostRows) return
      // A null prototype: the names are the server's.
      const row = Object.create(null) as Record<string, unknown>
      for (const { metadata, value } of columns) row[metadata.colName] = value
      rows.push(row)
    })
    connection.execSqlBatch(batch)
  })
}
type Column = { readonly metadata: { readonly colName: string }; readonly value: unknown }

/** Texts of a row without the secret: a login sends it in a form that the server can read, and give back. */
function shown(row: Row, hide: (heard: string) => string): Row {
  const clean = Object.create(null) as Record<string, unknown>
  for (const [name, value] of Object.entries(row)) clean[name] = typeof value === 'string' ? hide(value) : value
  return clean
}

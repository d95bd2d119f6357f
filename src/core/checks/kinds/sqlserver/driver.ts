import type { TLSSocket } from 'node:tls'
import type { Connection, ConnectionConfiguration, Request } from 'tedious'
import { createRedactor, quote, type Redact } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import {
  type Column,
  ColumnReader,
  closeTimeoutMs,
  type DatabaseTarget,
  loadEncodings,
  maxRows,
  type OpenDatabase,
  openSession,
  type PeerSocket,
  pemOf,
  type Row,
  settleWithin,
  type TlsChoice,
  type Transport,
  tlsChoice,
} from '../../database/index.ts'
import { driverPath, loadDriver } from '../../drivers/index.ts'
import { closedBeforeAnswer, type ServerError, sqlserverFault } from './errors.ts'

/** Milliseconds. A check that waits longer for a lock fails, because it would block others. */
const lockMs = 500
/** Maximum bytes before the sign-in, which are read in pieces; a handshake with certificates is much smaller. */
const maxBytesBeforeSignIn = 128 * 1024
const maxCheckRows = 5_000
const prefix = `SET NOCOUNT ON; SET LOCK_TIMEOUT ${lockMs};`

export async function loadTedious() {
  const driver = loadDriver('sqlserver')
  loadEncodings(driverPath('sqlserver'))
  return driver
}

export const openSqlserver: OpenDatabase = async (target, way) => {
  const { socket, ip, address, files } = way
  const password = (await target.password?.reveal(files)) ?? ''
  const redact = createRedactor([password])
  const tls = await tlsChoice(target, ip, files)
  const { Connection, Request } = await loadTedious()
  const connection = new Connection(configuration(target, tls, password, once(socket, address)))
  // A broken connection also fails the pending request, which reports the error.
  connection.on('error', () => {})
  let secured: TLSSocket | undefined
  connection.on('secure', (secure) => {
    secured = secure
    // Before the driver sends the password.
    socket.refuse(secure)
  })
  const signInErrors: ServerError[] = []
  return openSession(way, {
    dialect: 'sqlserver',
    signIn: () => signIn(connection, way, signInErrors),
    encryption: () => (tls ? (secured?.getProtocol() ?? 'TLS') : undefined),
    secured: () => secured,
    ask: async (sql, ms) => (await query(connection, Request, sql, ms)).map((row) => withoutSecret(row, redact)),
    read: (sql, { ms }) => readColumn(connection, Request, sql, { ms, redact }),
    stop: async (running) => {
      // Sends an attention signal: the server ends the batch and confirms that.
      connection.cancel()
      await settleWithin(running() ?? Promise.resolve(), closeTimeoutMs)
    },
    // The protocol has no logout: the session ends with its connection.
    release: () => connection.close(),
    fault: (error, phase) =>
      sqlserverFault(error, { target, address, phase, redact }, phase === 'sign-in' ? signInErrors : []),
  })
}

function configuration(
  target: DatabaseTarget,
  tls: TlsChoice | undefined,
  password: string,
  connector: () => Promise<PeerSocket>,
): ConnectionConfiguration {
  return {
    // The socket is already connected; this is the name to verify in the certificate.
    server: target.tls.servername ?? target.host,
    authentication: { type: 'default', options: { userName: target.user, password } },
    options: {
      connector,
      port: target.port,
      ...(target.database === '' ? {} : { database: target.database }),
      appName: 'svc-health',
      encrypt: tls !== undefined,
      cryptoCredentialsDetails: tls === undefined ? {} : pemOf(tls),
      // With a pinned certificate, `refuse` decides.
      trustServerCertificate: tls?.rejectUnauthorized === false,
      // Never retries, least of all a refused sign-in.
      maxRetriesOnTransientErrors: 0,
      // The engine's deadline applies instead.
      connectTimeout: 2 ** 31 - 1,
      cancelTimeout: closeTimeoutMs,
      // Read uncommitted, which ignores locks: a backup that is being recorded must not block its own check.
      connectionIsolationLevel: 0x01,
      // Longer texts are of no interest.
      textsize: 8_192,
    },
  }
}

/** Supplies the socket once. Rejects a redirect, which would send the password to another server. */
function once(socket: PeerSocket, address: string): (where?: unknown) => Promise<PeerSocket> {
  let taken = false
  return async (where) => {
    if (!taken) {
      taken = true
      return socket
    }
    const { host, port } = where as { readonly host?: unknown; readonly port?: unknown }
    const other = quote(`${String(host)}:${Number(port)}`, 128)
    throw new ProbeError('data', `${address} redirects its clients to ${other}`, [
      'next: if that is intended, name that server in the url',
    ])
  }
}

/** Signs in, and appends the error tokens that the server sends meanwhile to `errors`. */
async function signIn(connection: Connection, { socket, address }: Transport, errors: ServerError[]): Promise<void> {
  const keep = ({ number, state, message }: ServerError): void => {
    if (errors.length < 10) errors.push({ number, state, message })
  }
  let bytes = 0
  const count = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes > maxBytesBeforeSignIn) {
      socket.destroy(new ProbeError('protocol', 'the peer sent more than 128 KiB before the sign-in completed'))
    }
  }
  connection.on('errorMessage', keep)
  try {
    await new Promise<void>((resolve, reject) => {
      connection.connect((error) => (error ? reject(error) : resolve()))
      socket.on('data', count)
      // The driver waits for the rest of a packet even after the server has closed the connection.
      socket.once('close', () => setImmediate(() => reject(closedBeforeAnswer(address))))
    })
  } finally {
    connection.off('errorMessage', keep)
    socket.off('data', count)
  }
}

type Cells = readonly { readonly metadata: { readonly colName: string }; readonly value: unknown }[]

/** Sends one batch, and passes on its rows as they arrive. */
function send(
  connection: Connection,
  Batch: typeof Request,
  sql: string,
  { ms, take }: { readonly ms: number; readonly take: (cells: Cells) => void },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const batch = new Batch(sql, (error) => (error ? reject(error) : resolve()))
    batch.setTimeout(ms)
    batch.on('row', take)
    connection.execSqlBatch(batch)
  })
}

async function query(connection: Connection, Batch: typeof Request, sql: string, ms: number): Promise<readonly Row[]> {
  const rows: Row[] = []
  const take = (cells: Cells): void => {
    if (rows.length >= maxCheckRows) return
    // A null prototype, because the server chooses the names.
    const row = Object.create(null) as Record<string, unknown>
    for (const { metadata, value } of cells) row[metadata.colName] = value
    rows.push(row)
  }
  await send(connection, Batch, `${prefix} ${sql}`, { ms, take })
  return rows
}

/** Redacts the texts of a row: a sign-in sends the secret in a form that the server can read and return. */
function withoutSecret(row: Row, redact: Redact): Row {
  const cleanup = Object.create(null) as Record<string, unknown>
  for (const [name, value] of Object.entries(row)) cleanup[name] = typeof value === 'string' ? redact(value) : value
  return cleanup
}

/**
 * Reads the first column of one statement, in a transaction that is always rolled back, because SQL Server has no
 * read-only transactions. The server sends no more rows than svc reads.
 */
async function readColumn(
  connection: Connection,
  Batch: typeof Request,
  sql: string,
  { ms, redact }: { readonly ms: number; readonly redact: Redact },
): Promise<Column> {
  const reader = new ColumnReader()
  const take = ([first]: Cells): void => {
    const value = first?.value
    reader.take(typeof value === 'string' ? redact(value) : value)
  }
  try {
    const begin = `${prefix} SET ROWCOUNT ${maxRows + 1}; BEGIN TRANSACTION;`
    await send(connection, Batch, `${begin}\n${sql}`, { ms, take })
    return reader.column()
  } finally {
    // A broken connection has already ended its transaction.
    const end = 'SET ROWCOUNT 0; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION'
    await send(connection, Batch, end, { ms, take: () => {} }).catch(() => {})
  }
}

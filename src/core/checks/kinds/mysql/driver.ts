import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import type { Connection, ConnectionOptions } from 'mysql2'
import type { ConfiguredFiles } from '../../../base/files/index.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import {
  closeTimeoutMs,
  type DatabaseTarget,
  loadEncodings,
  type OpenDatabase,
  openSession,
  PeerSocket,
  pemOf,
  settleWithin,
  type TlsChoice,
  tlsChoice,
} from '../../database/index.ts'
import { closedBeforeAnswer, grantee, isPrivilegeLacking, mysqlFault } from './errors.ts'
import { type MysqlField, queried, readOnly, signedIn } from './statements.ts'

/** Milliseconds to wait for the result of a statement that has finished on its own. */
const graceMs = 40

/** Loads the driver. Rejects if any part of it cannot be loaded. */
export async function loadMysql() {
  const driver = await import('mysql2')
  loadEncodings('mysql2')
  return driver
}

export const openMysql: OpenDatabase = async (target, way) => {
  const { socket, ip, address, signal, files } = way
  const options = await optionsFor(target, ip, files)
  const { createConnection } = await loadMysql()
  const connect = (over: PeerSocket): Connection => {
    // The second connection signs in too.
    over.verify = socket.verify
    return watched(createConnection({ ...options, stream: over }), over)
  }
  const connection = connect(socket)
  // A broken connection also fails the pending query, which reports the error.
  connection.on('error', () => {})
  let thread = 0
  let mark = ''
  let account: Promise<string | undefined> | undefined
  /** Adds a comment that identifies this statement uniquely on any server. */
  const marked = (sql: string): string => {
    mark = `svc-health ${randomUUID()}`
    return `/* ${mark} */ ${sql}`
  }
  // A query keeps running after its client has disconnected or stopped reading, so a second connection ends it.
  const kill = (what: Victim['what'], coming: () => boolean) =>
    killed({ what, thread, mark, coming }, { reach: (limit) => PeerSocket.reach(ip, target.port, limit), connect })
  const stopReading = async (ended: Promise<void>): Promise<void> => {
    // Stops reading meanwhile: the server may send rows faster than it can be told to stop.
    connection.pause()
    const outcome = await kill('QUERY', () => false)
    socket.recount()
    connection.resume()
    if (outcome !== 'not found') return
    // The statement may have finished on its own. Otherwise, only closing the connection can end it.
    let over = false
    void ended.then(() => (over = true))
    await settleWithin(ended, graceMs)
    if (!over) socket.destroy()
  }
  return openSession(way, {
    dialect: 'mysql',
    signIn: async () => {
      // The driver does not notice an end that came before it listened, while the password was read.
      if (socket.readableEnded || socket.destroyed) throw closedBeforeAnswer(address)
      await signedIn(connection)
      thread = connection.threadId ?? 0
      // The driver accepts almost any data as a greeting.
      if (thread === 0) throw new ProbeError('protocol', `${address} does not answer as MySQL does`)
    },
    encryption: () => (options.ssl ? 'TLS' : undefined),
    secured: () => (options.ssl ? (streamOf(connection) as TLSSocket) : undefined),
    ask: (sql, ms) => queried(connection, marked(limited(sql, ms))),
    read: (sql, { ms, dates }) => readOnly(connection, sql, { ms, dates, signal, marked, stop: stopReading }),
    stop: async (running) => {
      if (thread > 0) await kill('CONNECTION', () => running() !== undefined)
    },
    signOff: () => ended(connection, socket),
    fault: async (error, phase) => {
      const place = { target, address, phase }
      if (phase !== 'sign-in' && isPrivilegeLacking(error)) account ??= signedInAs(connection)
      return mysqlFault(error, { ...place, account: await account }, !options.ssl && offersTls(connection))
    },
  })
}

const sslOf = (tls: TlsChoice) => ({
  ...pemOf(tls),
  rejectUnauthorized: tls.rejectUnauthorized,
  verifyIdentity: tls.rejectUnauthorized,
})

const byAccount = () => () => Buffer.alloc(0)

async function optionsFor(target: DatabaseTarget, ip: string, files: ConfiguredFiles): Promise<ConnectionOptions> {
  const tls = await tlsChoice(target, ip, files)
  if (tls?.rejectUnauthorized && tls.servername === undefined) {
    // The driver can verify a certificate only against a name.
    throw new ProbeError(
      'tls',
      'a certificate is verified against a name, but the url has an address: set tls: {servername: …}',
    )
  }
  return {
    // The socket is already connected; this is the name to verify in the certificate.
    host: tls?.servername ?? ip,
    user: target.user,
    password: (await target.password?.reveal(files)) ?? '',
    ...(target.database === '' ? {} : { database: target.database }),
    ...(tls ? { ssl: sslOf(tls) } : {}),
    // Over a Unix socket, the server asks the system for the account of this process, and this client for nothing.
    ...(ip.startsWith('/') ? { authPlugins: { auth_socket: byAccount, unix_socket: byAccount } } : {}),
    connectAttributes: { program_name: 'svc-health' },
    // The engine's deadline applies instead.
    connectTimeout: 0,
    // Otherwise, a hostile server could request any file of this machine.
    flags: ['-LOCAL_FILES'],
    disableEval: true,
    typeCast: plainValue,
    trace: false,
  }
}

const numbers: ReadonlySet<string> = new Set(['TINY', 'SHORT', 'INT24', 'LONG', 'LONGLONG', 'FLOAT', 'DOUBLE'])

/**
 * Converts only numbers; everything else stays text. The server chooses the types, and a geometry of a few megabytes
 * would keep the driver busy for minutes, or exhaust the memory.
 */
function plainValue(field: MysqlField): unknown {
  // Not utf8: for a JSON column of that name of the encoding, the driver prints the name of the column to standard error.
  const value = field.string('utf-8')
  return value !== null && numbers.has(field.type) ? Number(value) : value
}

/**
 * Limits the execution time on the server: MariaDB reads the first comment, MySQL the second. Changes no session
 * settings, because behind a proxy the session may be reused by others.
 */
function limited(sql: string, ms: number): string {
  const maria = `/*M!100101 SET STATEMENT max_statement_time = ${ms / 1_000}, lock_wait_timeout = 1 FOR */`
  return `${maria} ${sql.replace(/^SELECT /, `SELECT /*+ MAX_EXECUTION_TIME(${ms}) */ `)}`
}

/** The account that the server has chosen for the sign-in, as a GRANT names it. Undefined if it does not say so soon. */
async function signedInAs(connection: Connection): Promise<string | undefined> {
  let account: string | undefined
  const read = async (): Promise<void> => {
    const [row] = await queried(connection, 'SELECT CURRENT_USER() AS account')
    const { account: name } = row ?? {}
    account = typeof name === 'string' ? grantee(name) : undefined
  }
  await settleWithin(read(), closeTimeoutMs)
  return account
}

/** Ends the session, and waits until the server closes the connection, so that the session is gone there too. */
function ended(connection: Connection, socket: PeerSocket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
    connection.end(() => {})
  })
}

/** The bit of the greeting that offers TLS. */
const tlsBit = 0x800

/** Whether the server has offered TLS in its greeting. */
const offersTls = (connection: Connection): boolean =>
  ((connection as unknown as { readonly serverCapabilityFlags: number }).serverCapabilityFlags & tlsBit) !== 0

/** The stream that the driver uses: the socket, or the TLS stream over it. */
const streamOf = (connection: Connection): Duplex => (connection as unknown as { readonly stream: Duplex }).stream

type NumberedPacket = { sequenceId: number }
type Inner = NumberedPacket & {
  startTLS: (done: unknown) => void
  handlePacket: (packet: NumberedPacket | undefined) => void
}

/** Also watches the TLS stream that the driver starts over the socket during the sign-in. */
function watched(connection: Connection, socket: PeerSocket): Connection {
  const inner = connection as unknown as Inner
  const handle = inner.handlePacket.bind(connection)
  inner.handlePacket = (packet) => {
    // The driver only prints a line to standard error for each packet with another number, and a server can send millions.
    if (packet) packet.sequenceId = inner.sequenceId
    handle(packet)
  }
  const start = inner.startTLS.bind(connection)
  inner.startTLS = (done) => {
    start(done)
    socket.watch(streamOf(connection))
  }
  return connection
}

/** The target of a KILL: a whole session, or only its query. */
type Victim = {
  readonly what: 'CONNECTION' | 'QUERY'
  readonly thread: number
  /** A text that only the pending statement contains. */
  readonly mark: string
  /** True while a statement that was just sent may still show up on the server. */
  readonly coming: () => boolean
}

type Second = {
  readonly reach: (limit: AbortSignal) => Promise<PeerSocket>
  readonly connect: (over: PeerSocket) => Connection
}

/** Milliseconds until the next search for a statement that has not shown up yet. */
const againMs = 40

/**
 * Ends the session or the query over a second connection. Behind a load balancer, that may reach another server, where
 * a foreign session has the same id; therefore it kills only a session that runs this very statement. Never throws.
 * Returns after `closeTimeoutMs` at the latest, with `no answer` if there was none.
 */
async function killed(victim: Victim, { reach, connect }: Second): Promise<'killed' | 'not found' | 'no answer'> {
  const limit = AbortSignal.timeout(closeTimeoutMs)
  const over = await reach(limit).catch(() => undefined)
  if (!over) return 'no answer'
  let outcome: 'killed' | 'not found' | 'no answer' = 'no answer'
  const ended = async (): Promise<void> => {
    const second = connect(over)
    await signedIn(second)
    while (!(await isOurs(second, victim))) {
      outcome = 'not found'
      if (!victim.coming()) return
      await pause(againMs, undefined, { signal: limit })
    }
    await queried(second, `KILL ${victim.what} ${victim.thread}`)
    outcome = 'killed'
  }
  await settleWithin(ended(), closeTimeoutMs)
  over.destroy()
  return outcome
}

/** Every account may see its own sessions. This statement contains the mark too, so it excludes its own session. */
async function isOurs(second: Connection, { thread, mark }: Victim): Promise<boolean> {
  const threads = await queried(
    second,
    `SELECT id FROM information_schema.processlist
      WHERE id = ${thread} AND id <> CONNECTION_ID() AND LOCATE('${mark}', info) > 0`,
  )
  return threads.length === 1
}

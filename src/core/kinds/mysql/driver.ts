import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import type { Connection, ConnectionOptions } from 'mysql2'
import {
  closeTimeoutMs,
  type DatabaseTarget,
  loadEncodings,
  type OpenDatabase,
  openSession,
  PeerSocket,
  settleWithin,
  tlsChoice,
} from '../../database/index.ts'
import { ProbeError } from '../../probe-error.ts'
import { mysqlFault } from './errors.ts'
import { type MysqlField, queried, readOnly, signedIn } from './statements.ts'

/** Milliseconds for the end of a statement that has ended by itself to come in. */
const graceMs = 40

/** The driver. Rejects when it cannot be loaded whole. */
export async function loadMysql() {
  const driver = await import('mysql2')
  loadEncodings('mysql2')
  return driver
}

export const openMysql: OpenDatabase = async (target, way) => {
  const { socket, ip, address, signal } = way
  const options = await optionsFor(target, ip)
  const { createConnection } = await loadMysql()
  const connect = (over: PeerSocket): Connection => watched(createConnection({ ...options, stream: over }), over)
  const connection = connect(socket)
  // A connection that breaks also fails the query under way, and that is where it is reported.
  connection.on('error', () => {})
  let thread = 0
  let mark = ''
  /** A comment that no other statement has, on whatever server it is. */
  const marked = (sql: string): string => {
    mark = `svc-health ${randomUUID()}`
    return `/* ${mark} */ ${sql}`
  }
  // A query goes on when its client is gone, and when it is not listened to: it is ended from a second connection.
  const kill = (what: Victim['what'], coming: () => boolean) =>
    killed({ what, thread, mark, coming }, { reach: (limit) => PeerSocket.reach(ip, target.port, limit), connect })
  const stopReading = async (ended: Promise<void>): Promise<void> => {
    // Meanwhile nothing comes: a server is faster at sending rows than at being told not to.
    connection.pause()
    const outcome = await kill('QUERY', () => false)
    socket.recount()
    connection.resume()
    if (outcome !== 'not found') return
    // It may have ended by itself. Else it runs where there is no way to end it but to hang up.
    let over = false
    void ended.then(() => (over = true))
    await settleWithin(ended, graceMs)
    if (!over) socket.destroy()
  }
  return openSession(way, {
    dialect: 'mysql',
    signIn: async () => {
      await signedIn(connection)
      thread = connection.threadId ?? 0
      // The driver takes almost anything for a greeting.
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
    fault: (error, phase) => mysqlFault(error, { target, address, phase }),
  })
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
    typeCast: plainValue,
    trace: false,
  }
}

const numbers: ReadonlySet<string> = new Set(['TINY', 'SHORT', 'INT24', 'LONG', 'LONGLONG', 'FLOAT', 'DOUBLE'])

/**
 * Converts numbers; everything else stays the text of the server. The server chooses the types, and some megabytes that
 * it calls a geometry keep the driver busy for minutes, or until memory runs out.
 */
function plainValue(field: MysqlField): unknown {
  const value = field.string('utf8')
  return value !== null && numbers.has(field.type) ? Number(value) : value
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
/** What the driver reads and writes: the socket, or what it has laid over that for TLS. */
const streamOf = (connection: Connection): Duplex => (connection as unknown as { readonly stream: Duplex }).stream

function watched(connection: Connection, socket: PeerSocket): Connection {
  const inner = connection as unknown as { startTLS: (done: unknown) => void }
  const start = inner.startTLS.bind(connection)
  inner.startTLS = (done) => {
    start(done)
    socket.watch(streamOf(connection))
  }
  return connection
}

/** What is to be ended: a session, or only what it runs. */
type Victim = {
  readonly what: 'CONNECTION' | 'QUERY'
  readonly thread: number
  /** Stands in the statement under way, and in no other. */
  readonly mark: string
  /** Whether it may still come up, where it has just been sent. */
  readonly coming: () => boolean
}

type Second = {
  readonly reach: (limit: AbortSignal) => Promise<PeerSocket>
  readonly connect: (over: PeerSocket) => Connection
}

/** Milliseconds after which a statement that has not yet come up is looked for again. */
const againMs = 40

/**
 * Ends it from a connection of its own. Behind a balancer that may lead to another server, where a
 * stranger has the same id: killed is only what runs the very statement. Never throws; ends after
 * `partingMs`, without an answer where none has come until then.
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

/** Every account may see what it runs itself. This statement holds the mark as well. */
async function isOurs(second: Connection, { thread, mark }: Victim): Promise<boolean> {
  const threads = await queried(
    second,
    `SELECT id FROM information_schema.processlist
      WHERE id = ${thread} AND id <> CONNECTION_ID() AND LOCATE('${mark}', info) > 0`,
  )
  return threads.length === 1
}

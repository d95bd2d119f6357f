import type { EventEmitter } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Client, QueryArrayResult, QueryResult } from 'pg'
import type { ConfiguredFiles } from '../../../base/files/index.ts'
import { showDuration } from '../../../base/format.ts'
import { secureContextFor } from '../../../base/net/secure-context.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import {
  type Column,
  ColumnReader,
  calledOff,
  closeTimeoutMs,
  type DatabaseTarget,
  type ErrorPlace,
  type OpenDatabase,
  openSession,
  pemOf,
  type Row,
  settleWithin,
  type Transport,
  tlsChoice,
  whyUnpinned,
} from '../../database/index.ts'
import { inspectPools, postgresFault } from './errors.ts'

/** Milliseconds. A check that waits longer for a lock fails, because it would block others. */
const lockMs = 500
/** Milliseconds until a cancelled query that still runs is cancelled again. */
const againMs = 40
/** Rows per fetch. The driver keeps all columns of these rows in memory. */
const portion = 50

export const loadPg = async () => (await import('pg')).default

export const openPostgres: OpenDatabase = async (target, way) => {
  const { signal } = way
  const { client, ...shared } = await makeClient(target, way)
  return openSession(way, {
    ...shared,
    signIn: async () => {
      await shared.signIn()
      if (isConsole(client)) throw new ProbeError('data', `${way.address} is the console of PgBouncer`, [useKind])
    },
    ask: (sql, ms) => shared.answer(query(client, sql, ms), ms),
    read: (sql, { ms }) => shared.answer(readColumn(client, sql, { ms, signal }), ms),
    commit: (sql, ms) => commit(client, { sql, ms, stop: shared.stop }),
  })
}

const useKind = 'next: use the kind pgbouncer for it, and the kind postgres for a database behind it'

/** Opens the console of PgBouncer, which understands only commands such as SHOW POOLS. */
export const openConsole: OpenDatabase = async (target, way) => {
  const { client, ...shared } = await makeClient(target, way)
  return openSession(way, {
    ...shared,
    signIn: async () => {
      await shared.signIn()
      if (!isConsole(client)) throw new ProbeError('data', `${way.address} is not the console of PgBouncer`, [useKind])
    },
    ask: async (command) => (await client.query<Row>(command)).rows,
    read: () => Promise.reject(new ProbeError('internal', 'the console of PgBouncer has no queries')),
  })
}

/** The console reports its version like `1.18.0/bouncer`. */
const isConsole = (client: Client): boolean => (versions.get(client) ?? '').endsWith('/bouncer')
/** The `server_version` of each connection. */
const versions = new WeakMap<Client, string>()

/** The largest process ID of Linux. PgBouncer sends a random number of 32 bits in its place. */
const maxProcessId = 4_194_304
const isPooled = ({ processID }: Key): boolean => processID < 0 || processID > maxProcessId

/** Milliseconds before the deadline at which a sign-in that a pooler accepted fails with an explanation. */
const reserveMs = 300

async function makeClient(target: DatabaseTarget, way: Transport) {
  const { socket, ip, address, msLeft, files } = way
  const tls = await tlsChoice(target, ip, files)
  const ssl = tls && { ...tls, secureContext: secureContextFor(pemOf(tls)) }
  const pg = await loadPg()
  let isPasswordAsked = false
  const client = new pg.Client({
    host: ip,
    port: target.port,
    user: target.user,
    database: target.database || target.user,
    application_name: 'svc-health',
    ssl: ssl ?? false,
    stream: () => socket,
    // Called only if the server asks for a password, so another server never receives it. A function also keeps the
    // driver from using PGPASSWORD and ~/.pgpass.
    password: () => {
      isPasswordAsked = true
      return passwordOf(target, address, files)
    },
    types: plainTypes,
  })
  // A broken connection also fails the pending query, which reports the error.
  client.on('error', () => {})
  const { connection } = inner(client)
  const encrypt =
    ssl &&
    ((raw: Socket): TLSSocket => {
      const secure = process.getBuiltinModule('node:tls').connect({ ...ssl, socket: raw })
      secure.prependOnceListener('secureConnect', () => {
        if (whyUnpinned(secure, target, address)) secure.destroy()
      })
      return secure
    })
  connection.once('sslconnect', () => socket.watch(connection.stream))
  connection.on('parameterStatus', ({ parameterName, parameterValue }: ParameterStatus) => {
    if (parameterName === 'server_version') versions.set(client, String(parameterValue).slice(0, 64))
  })
  let isPasswordSent = false
  for (const request of ['authenticationMD5Password', 'authenticationSASLFinal']) {
    connection.once(request, () => {
      isPasswordSent = true
    })
  }
  /** Ends the connection with an explanation when a pooler waits for its server for longer than `ms`. */
  const explained = async <T>(work: Promise<T>, ms: number, why: () => string | undefined): Promise<T> => {
    const timer = setTimeout(
      () => {
        const message = why()
        if (message !== undefined) socket.destroy(new ProbeError('timeout', message, [inspectPools]))
      },
      Math.max(1, ms),
    )
    try {
      return await work
    } finally {
      clearTimeout(timer)
    }
  }
  return {
    client,
    signIn: () =>
      explained(client.connect(), msLeft() - reserveMs, () =>
        isPasswordSent
          ? `${address} accepts connections and took the password, but sends nothing more: if it is PgBouncer, its server does not answer`
          : undefined,
      ),
    /** The answer to a statement that may take `ms`. */
    answer: <T>(work: Promise<T>, ms: number): Promise<T> =>
      explained(work, Math.min(ms + reserveMs, msLeft() - reserveMs), () =>
        isPooled(inner(client))
          ? `${address} accepted the connection as PgBouncer does, but the server behind it does not answer`
          : undefined,
      ),
    askedForPassword: () => isPasswordAsked,
    encryption: () => (ssl ? protocolOf(client) : undefined),
    secured: () => (ssl ? (connection.stream as TLSSocket) : undefined),
    stop: async (running: () => Promise<unknown> | undefined) => {
      const end = performance.now() + closeTimeoutMs
      // Repeats the cancel request until the query has ended, because a request that arrives before the query has no
      // effect.
      for (let left = closeTimeoutMs; running() && left > 0; left = end - performance.now()) {
        // Without TLS one round trip suffices, and the next request gets the rest of the time.
        await cancelRequest({ host: ip, port: target.port, key: inner(client), encrypt }, encrypt ? left : left / 2)
        const query = running()
        if (query) await settleWithin(query, Math.min(againMs, Math.max(1, end - performance.now())))
      }
    },
    signOff: () => client.end(),
    fault: (error: unknown, phase: ErrorPlace['phase']) => postgresFault(error, { target, address, phase }),
  }
}

type ParameterStatus = { readonly parameterName: string; readonly parameterValue: string }

/** Type OIDs: boolean; int2, int4, oid, float4, float8. */
const boolean = 16
const numbers: ReadonlySet<number> = new Set([21, 23, 26, 700, 701])

/**
 * Converts the booleans and numbers that the checks read; everything else stays text. The server chooses the types, and
 * the driver matches presumed dates against patterns that would take hours for a few megabytes.
 */
const plainTypes = {
  getTypeParser: (oid: number) => (value: string) =>
    oid === boolean ? value === 't' : numbers.has(oid) ? Number(value) : value,
}

async function passwordOf(target: DatabaseTarget, address: string, files: ConfiguredFiles): Promise<string> {
  if (target.password) return await target.password.reveal(files)
  throw new ProbeError('auth', `${address} requires a password, and none is configured: add \`password:\``)
}

/**
 * Runs a statement of a check. Statements that are sent together form one transaction: this takes a single round trip,
 * and leaves no transaction open after an error. The timeout applies from its SET on. The search path contains only
 * schemas in which no user of the database can shadow a name.
 */
async function query(client: Client, sql: string, ms: number): Promise<readonly Row[]> {
  const results = (await client.query(`SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = ${ms};
    SET LOCAL lock_timeout = ${lockMs}; SET LOCAL search_path = pg_catalog, pg_temp; ${sql}`)) as unknown
  return (results as readonly QueryResult<Row>[]).at(-1)?.rows ?? []
}

/**
 * Reads the first column of one statement. A cursor accepts only a query and returns its rows in portions. The extended
 * protocol allows only one statement at a time. Names resolve as for the account's own programs.
 */
async function readColumn(
  client: Client,
  sql: string,
  { ms, signal }: { readonly ms: number; readonly signal: AbortSignal },
): Promise<Column> {
  const end = performance.now() + ms
  await client.query(`BEGIN READ ONLY; SET LOCAL lock_timeout = ${lockMs}; SET LOCAL statement_timeout = ${ms};
    SET LOCAL cursor_tuple_fraction = 1; SET LOCAL DateStyle = 'ISO, YMD'`)
  try {
    // The driver supports queryMode, but its types do not declare it.
    const declare = { text: `DECLARE svc_query NO SCROLL CURSOR FOR ${sql}`, queryMode: 'extended' }
    await client.query(declare)
    const reader = new ColumnReader()
    while (true) {
      // A cancel request between two portions has no effect, so the signal is checked here.
      signal.throwIfAborted()
      const rows = await fetchRows(client, end - performance.now())
      if (!rows.every(([value]) => reader.take(value)) || rows.length < portion) return reader.column()
    }
  } finally {
    // A broken connection needs no rollback.
    await client.query('ROLLBACK').catch(() => {})
  }
}

/** The next portion, within the remaining time. The server's own timeout applies to each statement separately. */
async function fetchRows(client: Client, msLeft: number): Promise<readonly (readonly unknown[])[]> {
  if (msLeft < 1) throw calledOff()
  const text = `SET LOCAL statement_timeout = ${Math.ceil(msLeft)}; FETCH FORWARD ${portion} FROM svc_query`
  const results = await client.query<unknown[]>({ text, rowMode: 'array', types: asText })
  return (results as unknown as readonly QueryArrayResult<unknown[]>[]).at(-1)?.rows ?? []
}

/** Leaves dates unchanged, so that those with a time zone keep it and the others get none. */
const asText = {
  getTypeParser: (oid: number) => (value: unknown) => (oid === boolean ? String(value === 't') : value),
}

type Writing = {
  readonly sql: string
  readonly ms: number
  readonly stop: (running: () => Promise<unknown> | undefined) => Promise<void>
}

/**
 * Commits statements that write, each of which may take `ms`. The server's timeout does not apply to the COMMIT, which
 * waits for standbys without end, so it is cancelled from here. The server then reports success with a warning: the
 * transaction is committed, but not confirmed.
 */
async function commit(client: Client, { sql, ms, stop }: Writing): Promise<void> {
  try {
    await client.query(`BEGIN; SET LOCAL statement_timeout = ${Math.max(1, Math.floor(ms))};
      SET LOCAL lock_timeout = ${lockMs}; SET LOCAL search_path = pg_catalog, pg_temp; ${sql}`)
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
  let running: Promise<unknown> | undefined = client.query('COMMIT')
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    void stop(() => running)
  }, ms)
  try {
    await running
  } finally {
    clearTimeout(timer)
    running = undefined
  }
  if (isLate) throw new ProbeError('timeout', `COMMIT did not return within ${showDuration(ms)}`, [inspectWaits])
}

const inspectWaits = "inspect: SELECT pid, wait_event FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

type Key = { readonly processID: number; readonly secretKey: number }

type CancelTarget = {
  readonly host: string
  readonly port: number
  readonly key: Key
  /** Encrypts a connection that the server is ready to encrypt. Undefined if the session is not encrypted. */
  readonly encrypt: ((socket: Socket) => TLSSocket) | undefined
}

/** A message of the protocol that begins a connection: its length, a code and numbers, all of 32 bits. */
function firstMessage(...numbers: readonly number[]): Buffer {
  const message = Buffer.alloc(4 * (numbers.length + 1))
  for (const [index, number] of [message.length, ...numbers].entries()) message.writeInt32BE(number, 4 * index)
  return message
}
const sslRequest = firstMessage(80_877_103)
const acceptsSsl = 'S'.charCodeAt(0)

/**
 * Sends a CancelRequest of the frontend/backend protocol for the query of one backend on a separate connection, over TLS
 * if the session uses it: whoever reads the key can cancel the queries of the session. The server sends no reply, and
 * closes the connection once it has forwarded the request. Never throws, and resolves after `ms` at the latest.
 */
function cancelRequest({ host, port, key, encrypt }: CancelTarget, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const message = firstMessage(80_877_102, key.processID, key.secretKey)
    const socket = connect({ host, port })
    const timer = setTimeout(() => socket.destroy(), ms)
    socket.on('error', () => {})
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
    if (!encrypt) {
      socket.once('connect', () => socket.write(message))
      socket.resume()
      return
    }
    socket.once('connect', () => socket.write(sslRequest))
    socket.once('data', (reply) => {
      // More than one byte would be an unencrypted part of what follows.
      if (reply.length !== 1 || reply[0] !== acceptsSsl) return void socket.destroy()
      const secure = encrypt(socket)
      secure.on('error', () => socket.destroy())
      secure.once('close', () => socket.destroy())
      secure.once('secureConnect', () => secure.writable && secure.write(message))
      secure.resume()
    })
  })
}

/** Properties that the driver does not declare: the key of the backend, and the TLS stream once there is one. */
type Inner = Key & {
  readonly connection: EventEmitter & { readonly stream: Duplex & Partial<TLSSocket> }
}
const inner = (client: Client): Inner => client as unknown as Inner
const protocolOf = (client: Client): string => inner(client).connection.stream.getProtocol?.() ?? 'TLS'

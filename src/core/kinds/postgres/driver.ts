import type { EventEmitter } from 'node:events'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Client, QueryArrayResult, QueryResult } from 'pg'
import {
  type Column,
  ColumnReader,
  calledOff,
  closeTimeoutMs,
  type DatabaseTarget,
  type OpenDatabase,
  openSession,
  type Row,
  settleWithin,
  tlsChoice,
} from '../../database/index.ts'
import { ProbeError } from '../../probe-error.ts'
import { postgresFault } from './errors.ts'

/** Milliseconds: what needs longer for a lock is in the way of others, and says so instead. */
const lockMs = 500
/** Milliseconds after which a cancelled query that still runs is cancelled again. */
const againMs = 40
/** Rows that come at once: their other columns are in memory as long as the driver has the portion. */
const portion = 50

export const loadPg = async () => (await import('pg')).default

export const openPostgres: OpenDatabase = async (target, way) => {
  const { socket, ip, address, signal } = way
  const ssl = await tlsChoice(target, ip)
  const pg = await loadPg()
  const client = new pg.Client({
    host: ip,
    port: target.port,
    user: target.user,
    database: target.database || target.user,
    application_name: 'svc-health',
    ssl: ssl ?? false,
    stream: () => socket,
    // Asked for when the server wants it, so a server that does not never sees it. A function also
    // keeps the driver from PGPASSWORD and ~/.pgpass.
    password: () => passwordOf(target, address),
    types: plainTypes,
  })
  // A connection that breaks also fails the query under way, and that is where it is reported.
  client.on('error', () => {})
  const { connection } = inner(client)
  connection.once('sslconnect', () => socket.watch(connection.stream))
  return openSession(way, {
    signIn: () => client.connect(),
    encryption: () => (ssl ? protocolOf(client) : undefined),
    secured: () => (ssl ? (connection.stream as TLSSocket) : undefined),
    ask: (sql, ms) => query(client, sql, ms),
    read: (sql, { ms }) => readColumn(client, sql, { ms, signal }),
    stop: async (running) => {
      const end = performance.now() + closeTimeoutMs
      // Asked again until the query has ended: a request that overtakes the query finds nothing to cancel.
      for (let left = closeTimeoutMs; running() && left > 0; left = end - performance.now()) {
        await cancelRequest(ip, target.port, inner(client), Math.min(left, closeTimeoutMs / 2))
        const query = running()
        if (query) await settleWithin(query, Math.min(againMs, Math.max(1, end - performance.now())))
      }
    },
    signOff: () => client.end(),
    fault: (error, phase) => postgresFault(error, { target, address, phase }),
  })
}

/** OIDs of types: boolean; int2, int4, oid, float4, float8. */
const boolean = 16
const numbers: ReadonlySet<number> = new Set([21, 23, 26, 700, 701])

/**
 * Converts what the checks read: truth values and numbers. Everything else stays the text of the server. The server
 * chooses the types, and the driver matches what it takes for a date against patterns that need hours for some megabytes.
 */
const plainTypes = {
  getTypeParser: (oid: number) => (value: string) =>
    oid === boolean ? value === 't' : numbers.has(oid) ? Number(value) : value,
}

async function passwordOf(target: DatabaseTarget, address: string): Promise<string> {
  if (target.password) return await target.password.reveal()
  throw new ProbeError('auth', `${address} wants a password, and none is configured: add \`password:\``)
}

/**
 * Runs a statement of a check. Statements that are sent together are one transaction: a single round trip, and
 * after an error none is left open. The limit counts from its SET on. Names are looked up where no user of the
 * database can have put something of the same name.
 */
async function query(client: Client, sql: string, ms: number): Promise<readonly Row[]> {
  const results = (await client.query(`SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = ${ms};
    SET LOCAL lock_timeout = ${lockMs}; SET LOCAL search_path = pg_catalog, pg_temp; ${sql}`)) as unknown
  return (results as readonly QueryResult<Row>[]).at(-1)?.rows ?? []
}

/**
 * Reads the first column of one statement. A cursor takes nothing but a query, and its rows one portion
 * at a time; sent by itself (in the extended protocol) a statement has no second one behind it. Names are
 * looked up as the account's programs do.
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
    // Known to the driver, and not to its types.
    const declare = { text: `DECLARE svc_query NO SCROLL CURSOR FOR ${sql}`, queryMode: 'extended' }
    await client.query(declare)
    const reader = new ColumnReader()
    while (true) {
      // A cancel may have come between two portions, where it finds nothing to end.
      signal.throwIfAborted()
      const rows = await fetchRows(client, end - performance.now())
      if (!rows.every(([value]) => reader.take(value)) || rows.length < portion) return reader.column()
    }
  } finally {
    // Of a connection that has gone there is nothing to take back.
    await client.query('ROLLBACK').catch(() => {})
  }
}

/** The next portion, in what is left of the time: the server's own limit is for each statement. */
async function fetchRows(client: Client, msLeft: number): Promise<readonly (readonly unknown[])[]> {
  if (msLeft < 1) throw calledOff()
  const text = `SET LOCAL statement_timeout = ${Math.ceil(msLeft)}; FETCH FORWARD ${portion} FROM svc_query`
  const results = await client.query<unknown[]>({ text, rowMode: 'array', types: asText })
  return (results as unknown as readonly QueryArrayResult<unknown[]>[]).at(-1)?.rows ?? []
}

/** Dates keep their zone, and none is given to those that have none. */
const asText = {
  getTypeParser: (oid: number) => (value: unknown) => (oid === boolean ? String(value === 't') : value),
}

type Key = { readonly processID: number; readonly secretKey: number }

/**
 * Asks a server to cancel what one of its backends runs (CancelRequest of the frontend/backend
 * protocol): 16 bytes on a connection of their own, never answered; the server closes it when it has
 * passed the wish on. The key is good for this one backend, which ends next, so the request is not
 * worth the round trips of TLS. Never throws, and resolves after `ms` at the latest.
 */
function cancelRequest(host: string, port: number, key: Key, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const message = Buffer.alloc(16)
    message.writeInt32BE(16, 0)
    message.writeInt32BE(80_877_102, 4)
    message.writeInt32BE(key.processID, 8)
    message.writeInt32BE(key.secretKey, 12)
    const socket = connect({ host, port })
    const timer = setTimeout(() => socket.destroy(), ms)
    socket.on('error', () => {})
    socket.once('connect', () => socket.write(message))
    socket.resume()
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** What the driver knows and does not declare: the key of the backend, and TLS once there is any. */
type Inner = Key & {
  readonly connection: EventEmitter & { readonly stream: Duplex & Partial<TLSSocket> }
}
const inner = (client: Client): Inner => client as unknown as Inner
const protocolOf = (client: Client): string => inner(client).connection.stream.getProtocol?.() ?? 'TLS'

import type { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Client, QueryResult } from 'pg'
import {
  type Ask,
  type DatabaseTarget,
  notAsked,
  type Open,
  partingMs,
  queryMs,
  type Read,
  type Row,
  statementMs,
  tlsChoice,
  within,
} from '../../database/index.ts'
import { ProbeError } from '../../probe-error.ts'
import { cancelRequest } from './cancel.ts'
import { postgresFault, type Where } from './faults.ts'
import { lockMs, readOnly } from './read.ts'

/** Milliseconds after which a cancelled query that still runs is cancelled again. */
const againMs = 40

export const loadPg = async () => (await import('pg')).default

export const openPostgres: Open = async (target, way) => {
  const { socket, ip, address, signal, msLeft } = way
  const at = (phase: Where['phase']): Where => ({ target, address, phase })
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
  })
  // A connection that breaks also fails the query under way, and that is where it is told.
  client.on('error', () => {})
  const { connection } = inner(client)
  connection.once('sslconnect', () => socket.watch(connection.stream))
  let underway: Promise<unknown> | undefined
  let hungUp: Promise<void> | undefined
  const hangUp = async (): Promise<void> => {
    const end = performance.now() + partingMs
    // Asked again until the query has ended: a request that overtakes the query finds nothing to cancel.
    for (let left = partingMs; underway && left > 0; left = end - performance.now()) {
      await cancelRequest(ip, target.port, inner(client), Math.min(left, partingMs / 2))
      if (underway) await within(underway, Math.min(againMs, Math.max(1, end - performance.now())))
    }
    socket.destroy()
  }
  const abort = (): void => {
    hungUp = hangUp()
  }
  // Looked at here, for while the driver was loaded nobody listened.
  signal.throwIfAborted()
  signal.addEventListener('abort', abort, { once: true })
  const ask: Ask = async (sql) => {
    signal.throwIfAborted()
    try {
      // Statements that are sent together are one transaction: a single round trip, and after an error
      // none is left open. The limit counts from its SET on. Names are looked up where no user of the
      // database can have put something of the same name.
      const sent = `SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = ${statementMs(msLeft())};
        SET LOCAL lock_timeout = ${lockMs}; SET LOCAL search_path = pg_catalog, pg_temp; ${sql}`
      const query = client.query(sent)
      underway = query
      const results = (await query) as unknown as readonly QueryResult<Row>[]
      return results.at(-1)?.rows ?? []
    } catch (error) {
      throw postgresFault(error, at('check'))
    } finally {
      underway = undefined
    }
  }
  const read: Read = async (sql) => {
    signal.throwIfAborted()
    if (socket.destroyed) throw notAsked()
    socket.recount()
    const reading = readOnly(client, sql, { ms: queryMs(msLeft()), signal })
    underway = reading
    try {
      return await reading
    } catch (error) {
      throw postgresFault(error, at('query'))
    } finally {
      underway = undefined
    }
  }
  const close = async (): Promise<void> => {
    signal.removeEventListener('abort', abort)
    if (!signal.aborted && !socket.destroyed) await within(client.end(), partingMs)
    await hungUp
    socket.destroy()
  }
  try {
    await client.connect()
  } catch (error) {
    signal.removeEventListener('abort', abort)
    throw postgresFault(error, at('sign-in'))
  }
  return { ask, read, encryption: ssl ? protocolOf(client) : undefined, close }
}

async function passwordOf(target: DatabaseTarget, address: string): Promise<string> {
  if (target.password) return await target.password.reveal()
  throw new ProbeError('auth', `${address} wants a password, and none is configured: add \`password:\``)
}

/** What the driver knows and does not declare: the key of the backend, and TLS once there is any. */
type Inner = {
  readonly processID: number
  readonly secretKey: number
  readonly connection: EventEmitter & { readonly stream: Duplex & Partial<TLSSocket> }
}
const inner = (client: Client): Inner => client as unknown as Inner
const protocolOf = (client: Client): string => inner(client).connection.stream.getProtocol?.() ?? 'TLS'

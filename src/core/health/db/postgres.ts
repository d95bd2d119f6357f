import type { TLSSocket } from 'node:tls'
import type { Client, QueryResult } from 'pg'
import { ProbeError } from '../monitor.ts'
import { type Column, ColumnReader, mostRows } from './column.ts'
import { cancelRequest } from './postgres-cancel.ts'
import { postgresFault, type Where } from './postgres-faults.ts'
import { notAsked, queryMs } from './query.ts'
import type { Row } from './rows.ts'
import { type Ask, type Open, partingMs, type Read, statementMs, within } from './session.ts'
import { type DatabaseTarget, tlsChoice } from './target.ts'

/** Milliseconds: a check that needs longer for a lock is in the way of others, and says so instead. */
const lockMs = 500
/** Milliseconds after which a cancelled query that still runs is cancelled again. */
const againMs = 40

export const openPostgres: Open = async (target, way) => {
  const { socket, ip, address, signal, msLeft } = way
  const at = (phase: Where['phase']): Where => ({ target, address, phase })
  const ssl = await tlsChoice(target, ip)
  const { default: pg } = await import('pg')
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
  let underway: Promise<unknown> | undefined
  let hungUp: Promise<void> | undefined
  const hangUp = async (): Promise<void> => {
    const end = performance.now() + partingMs
    // Asked again until the query has ended: a request that overtakes the query finds nothing to cancel.
    for (let left = partingMs; underway && left > 0; left = end - performance.now()) {
      await cancelRequest(ip, target.port, keyOf(client), Math.min(left, partingMs / 2))
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
    const reading = readOnly(client, sql, queryMs(msLeft()))
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

/**
 * A cursor takes nothing but a query, and its rows one portion at a time; sent by itself (in the extended
 * protocol) a statement has no second one behind it. Names are looked up as the account's programs do.
 */
async function readOnly(client: Client, sql: string, ms: number): Promise<Column> {
  await client.query(`BEGIN READ ONLY; SET LOCAL statement_timeout = ${ms}; SET LOCAL lock_timeout = ${lockMs};
    SET LOCAL cursor_tuple_fraction = 1; SET LOCAL DateStyle = 'ISO, YMD'`)
  try {
    // Known to the driver, and not to its types.
    const declare = { text: `DECLARE svc_query NO SCROLL CURSOR FOR ${sql}`, queryMode: 'extended' }
    await client.query(declare)
    const fetch = { text: `FETCH FORWARD ${mostRows + 1} FROM svc_query`, rowMode: 'array', types: asText } as const
    const { rows } = await client.query<unknown[]>(fetch)
    const reader = new ColumnReader()
    for (const [value] of rows) reader.take(value)
    return reader.column()
  } finally {
    // Of a connection that has gone there is nothing to take back.
    await client.query('ROLLBACK').catch(() => {})
  }
}

/** Dates keep their zone, and none is given to those that have none; OID 16 is boolean. */
const asText = {
  getTypeParser: (oid: number) => (value: unknown) => (oid === 16 ? String(value === 't') : value),
}

async function passwordOf(target: DatabaseTarget, address: string): Promise<string> {
  if (target.password) return await target.password.reveal()
  throw new ProbeError('auth', `${address} wants a password, and none is configured: add \`password:\``)
}

/** What the driver knows of the backend and does not declare. */
const keyOf = (client: Client): { readonly processID: number; readonly secretKey: number } =>
  client as unknown as { processID: number; secretKey: number }
const protocolOf = (client: Client): string =>
  (client as unknown as { connection: { stream: Partial<TLSSocket> } }).connection.stream.getProtocol?.() ?? 'TLS'

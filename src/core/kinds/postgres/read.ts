import type { Client, QueryArrayResult } from 'pg'
import { type Column, ColumnReader, calledOff } from '../../database/index.ts'

/** Milliseconds: what needs longer for a lock is in the way of others, and says so instead. */
export const lockMs = 500
/** Rows that come at once: their other columns are in memory as long as the driver has the portion. */
const portion = 50

type Reading = {
  /** Milliseconds that it may take altogether. */
  readonly ms: number
  readonly signal: AbortSignal
}

/**
 * Reads the first column of one statement. A cursor takes nothing but a query, and its rows one portion
 * at a time; sent by itself (in the extended protocol) a statement has no second one behind it. Names are
 * looked up as the account's programs do.
 */
export async function readOnly(client: Client, sql: string, { ms, signal }: Reading): Promise<Column> {
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
      const rows = await fetched(client, end - performance.now())
      if (!rows.every(([value]) => reader.take(value)) || rows.length < portion) return reader.column()
    }
  } finally {
    // Of a connection that has gone there is nothing to take back.
    await client.query('ROLLBACK').catch(() => {})
  }
}

/** The next portion, in what is left of the time: the server's own limit is for each statement. */
async function fetched(client: Client, msLeft: number): Promise<readonly (readonly unknown[])[]> {
  if (msLeft < 1) throw calledOff()
  const text = `SET LOCAL statement_timeout = ${Math.ceil(msLeft)}; FETCH FORWARD ${portion} FROM svc_query`
  const results = await client.query<unknown[]>({ text, rowMode: 'array', types: asText })
  return (results as unknown as readonly QueryArrayResult<unknown[]>[]).at(-1)?.rows ?? []
}

/** Dates keep their zone, and none is given to those that have none; OID 16 is boolean. */
const asText = {
  getTypeParser: (oid: number) => (value: unknown) => (oid === 16 ? String(value === 't') : value),
}

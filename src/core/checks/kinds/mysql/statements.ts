import type { Connection, RowDataPacket } from 'mysql2'
import { type Column, ColumnReader, calledOff, figure, maxRows, type Row } from '../../database/index.ts'

export function queried(connection: Connection, sql: string): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    connection.query<RowDataPacket[]>(sql, (error, rows) => (error ? reject(error) : resolve(rows)))
  })
}

export function signedIn(connection: Connection): Promise<void> {
  return new Promise((resolve, reject) => {
    // Stays registered: a connection that breaks later also fails the pending query, which reports the error.
    connection.on('error', reject)
    connection.once('connect', () => resolve())
  })
}

type Reading = {
  /** The timeout of the statement in milliseconds. */
  readonly ms: number
  readonly dates: boolean
  readonly signal: AbortSignal
  /** Marks a statement, so that it can be found on the server. */
  readonly marked: (sql: string) => string
  /** Ends the running statement, and closes the connection only if there is no other way. Never throws. */
  readonly stop: (ended: Promise<void>) => Promise<void>
}

/** Reads the first column of one statement, in a read-only transaction. */
export async function readOnly(connection: Connection, sql: string, reading: Reading): Promise<Column> {
  await queried(connection, 'START TRANSACTION READ ONLY')
  try {
    // Does not start a statement that nobody would end.
    reading.signal.throwIfAborted()
    const { column, type } = await columnOf(connection, reading.marked(limited(sql, reading.ms)), reading)
    if (!reading.dates || type !== 'TIMESTAMP') return column
    return { ...column, cells: await oldest(connection, column) }
  } finally {
    // Tries twice, because a late KILL ends the next statement.
    await queried(connection, 'ROLLBACK').catch(() => queried(connection, 'ROLLBACK').catch(() => {}))
  }
}

/** A value of a row before the driver converts it. */
export type MysqlField = { readonly type: string; readonly string: (encoding: string) => string | null }

/** Reads until there are enough rows or the time is up, and then makes the server stop. */
async function columnOf(connection: Connection, sql: string, { ms, stop }: Reading) {
  const reader = new ColumnReader()
  let type = ''
  let stopping: Promise<void> | undefined
  let late = false
  let enough = false
  const ended = Promise.withResolvers<void>()
  // A fallback: the server ends the statement itself only if it understands the hint and the hint is in the right
  // place.
  const timer = setTimeout(() => {
    late = true
    stopping ??= stop(ended.promise)
  }, ms + 50)
  try {
    await new Promise<void>((resolve, reject) => {
      const typeCast = (field: MysqlField): unknown => {
        type ||= field.type
        return field.string('utf8')
      }
      // A broken connection does not reach a streaming query by itself.
      connection.once('error', reject)
      const end = (settle: () => void) => (): void => {
        connection.off('error', reject)
        settle()
      }
      connection
        .query({ sql, rowsAsArray: true, typeCast })
        .on('result', (row) => {
          if (!Array.isArray(row)) return
          // If the server limits the rows, no row follows the last one, and the statement ends on its own.
          if (enough) stopping ??= stop(ended.promise)
          enough ||= !reader.take(row[0])
        })
        .on('error', (error) => end(() => reject(error))())
        .on('end', end(resolve))
    })
  } catch (error) {
    if (late) throw calledOff()
    // svc stopped the statement itself, so the rows read so far are the result.
    if (!stopping) throw error
  } finally {
    ended.resolve()
    clearTimeout(timer)
    await stopping
  }
  return { column: reader.column(), type }
}

/**
 * Converts a TIMESTAMP, which is in the session's time zone, on the server, which alone knows that zone. Leaves other
 * texts unchanged.
 */
async function oldest(connection: Connection, { cells }: Column): Promise<Column['cells']> {
  const [first] = cells.filter((cell) => typeof cell === 'string').sort()
  if (first === undefined || !/^[\d :.-]+$/.test(first)) return cells
  const [row] = await queried(connection, `SELECT UNIX_TIMESTAMP('${first}') AS at`)
  const seconds = figure(row, 'at')
  // A date whose parts are zero is none.
  return seconds ? [new Date(seconds * 1_000)] : [first]
}

/**
 * Makes the server limit the execution time and, unless the statement has its own LIMIT, the number of rows. MariaDB
 * reads the first comment, MySQL the second.
 */
function limited(sql: string, ms: number): string {
  const rows = maxRows + 1
  const maria = `SET STATEMENT max_statement_time = ${ms / 1_000}, lock_wait_timeout = 1, sql_select_limit = ${rows} FOR`
  const hints = `MAX_EXECUTION_TIME(${ms}) SET_VAR(sql_select_limit = ${rows})`
  return `/*M!100101 ${maria} */ ${sql.replace(/^\s*select\b/i, (select) => `${select} /*+ ${hints} */`)}`
}

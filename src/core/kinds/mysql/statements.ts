import type { Connection, RowDataPacket } from 'mysql2'
import { type Column, ColumnReader, calledOff, figure, maxRows, type Row } from '../../database/index.ts'

export function queried(connection: Connection, sql: string): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    connection.query<RowDataPacket[]>(sql, (error, rows) => (error ? reject(error) : resolve(rows)))
  })
}

export function signedIn(connection: Connection): Promise<void> {
  return new Promise((resolve, reject) => {
    // Stays: a connection that breaks later also fails the query under way, and that is where it is told.
    connection.on('error', reject)
    connection.once('connect', () => resolve())
  })
}

type Reading = {
  /** Milliseconds that the statement may take. */
  readonly ms: number
  readonly dates: boolean
  readonly signal: AbortSignal
  /** Marks a statement, so that it is known on the server. */
  readonly marked: (sql: string) => string
  /** Ends what the connection runs, and not the connection where there is another way. Never throws. */
  readonly stop: (ended: Promise<void>) => Promise<void>
}

/** Reads the first column of one statement, in a transaction that cannot write. */
export async function readOnly(connection: Connection, sql: string, reading: Reading): Promise<Column> {
  await queried(connection, 'START TRANSACTION READ ONLY')
  try {
    // Not begun where nobody would end it.
    reading.signal.throwIfAborted()
    const { column, type } = await columnOf(connection, reading.marked(limited(sql, reading.ms)), reading)
    if (!reading.dates || type !== 'TIMESTAMP') return column
    return { ...column, cells: await oldest(connection, column) }
  } finally {
    // Once more: a KILL that comes late ends what comes next.
    await queried(connection, 'ROLLBACK').catch(() => queried(connection, 'ROLLBACK').catch(() => {}))
  }
}

/** A value of a row that the driver has not converted. */
export type MysqlField = { readonly type: string; readonly string: (encoding: string) => string | null }

/** Reads until there is enough, or for long enough, and then has the server stop. */
async function columnOf(connection: Connection, sql: string, { ms, stop }: Reading) {
  const reader = new ColumnReader()
  let type = ''
  let stopping: Promise<void> | undefined
  let late = false
  let enough = false
  const ended = Promise.withResolvers<void>()
  // The server ends it by itself where it reads the hint, and the hint is in the right place.
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
      // A connection that breaks tells a query that streams nothing.
      connection.once('error', reject)
      const end = (settle: () => void) => (): void => {
        connection.off('error', reject)
        settle()
      }
      connection
        .query({ sql, rowsAsArray: true, typeCast })
        .on('result', (row) => {
          if (!Array.isArray(row)) return
          // The last row that the server was told to send is followed by none: then it has ended by itself.
          if (enough) stopping ??= stop(ended.promise)
          enough ||= !reader.take(row[0])
        })
        .on('error', (error) => end(() => reject(error))())
        .on('end', end(resolve))
    })
  } catch (error) {
    if (late) throw calledOff()
    // Stopped by ourselves: what was read is what we wanted.
    if (!stopping) throw error
  } finally {
    ended.resolve()
    clearTimeout(timer)
    await stopping
  }
  return { column: reader.column(), type }
}

/**
 * A TIMESTAMP is told in the time zone of the session, which only the server knows; NOW() in a statement
 * is in the same, so that is left alone.
 */
async function oldest(connection: Connection, { cells }: Column): Promise<Column['cells']> {
  const [first] = cells.filter((cell) => typeof cell === 'string').sort()
  if (first === undefined || !/^[\d :.-]+$/.test(first)) return cells
  const [row] = await queried(connection, `SELECT UNIX_TIMESTAMP('${first}') AS at`)
  return [new Date((figure(row, 'at') ?? Number.NaN) * 1_000)]
}

/**
 * Has the server end a statement by itself, and send no more rows than are read, unless the statement
 * has a LIMIT of its own: MariaDB reads the one comment, MySQL the other.
 */
function limited(sql: string, ms: number): string {
  const rows = maxRows + 1
  const maria = `SET STATEMENT max_statement_time = ${ms / 1_000}, lock_wait_timeout = 1, sql_select_limit = ${rows} FOR`
  const hints = `MAX_EXECUTION_TIME(${ms}) SET_VAR(sql_select_limit = ${rows})`
  return `/*M!100101 ${maria} */ ${sql.replace(/^\s*select\b/i, (select) => `${select} /*+ ${hints} */`)}`
}

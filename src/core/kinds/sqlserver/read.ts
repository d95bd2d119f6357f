import type { Connection, Request } from 'tedious'
import { type Column, ColumnReader, mostRows } from '../../database/index.ts'

/**
 * Reads the first column of one statement, in a transaction that is taken back whatever happens: SQL
 * Server has none that cannot write. The server sends no more rows than are read.
 */
export async function readAndTakeBack(
  connection: Connection,
  Batch: typeof Request,
  sql: string,
  { prefix, ms, hide }: { readonly prefix: string; readonly ms: number; readonly hide: (heard: string) => string },
): Promise<Column> {
  const reader = new ColumnReader()
  try {
    const begin = `${prefix} SET ROWCOUNT ${mostRows + 1}; BEGIN TRANSACTION;`
    await sent(connection, Batch, `${begin}\n${sql}`, ms, (value) => {
      reader.take(typeof value === 'string' ? hide(value) : value)
    })
    return reader.column()
  } finally {
    // A connection that has gone has taken its transaction with it.
    const end = 'SET ROWCOUNT 0; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION'
    await sent(connection, Batch, end, ms, () => {}).catch(() => {})
  }
}

function sent(
  connection: Connection,
  Batch: typeof Request,
  sql: string,
  ms: number,
  take: (value: unknown) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const batch = new Batch(sql, (error) => (error ? reject(error) : resolve()))
    batch.setTimeout(ms)
    batch.on('row', (columns: readonly { readonly value: unknown }[]) => take(columns[0]?.value))
    connection.execSqlBatch(batch)
  })
}

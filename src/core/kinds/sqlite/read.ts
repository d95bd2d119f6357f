import type { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { type Column, ColumnReader } from '../../database/index.ts'
import { showBytes } from '../../format.ts'
import { said } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { sqlite } from '../../sqlite.ts'
import { sqliteFault } from './file.ts'

export type ReadTask = {
  readonly task: 'read'
  readonly path: string
  readonly sql: string
  readonly busyMs: number
  /** Milliseconds that it may take. */
  readonly ms: number
}

/** Bytes of a value, and of a row: as many as a server may send. */
const mostBytes = 8 * 1024 ** 2

/** Reads the first column of one statement, over a connection that cannot write. */
export async function readOnly({ path, sql, busyMs, ms }: ReadTask): Promise<Column> {
  const database = new (sqlite().DatabaseSync)(path, { readOnly: true, timeout: busyMs, open: false })
  const limit = answerAfter(ms)
  try {
    database.open()
    // What the schema holds is not to be trusted: no functions of its own choosing.
    database.exec('PRAGMA trusted_schema = OFF; PRAGMA query_only = ON')
    return columnOf(database, sql)
  } catch (error) {
    throw queryFault(error, path, database)
  } finally {
    await limit.terminate()
    if (database.isOpen) database.close()
  }
}

function columnOf(database: DatabaseSync, sql: string): Column {
  const statement = database.prepare(sql)
  // SQLite reads the first statement, and leaves the others alone without a word.
  const rest = sql.slice(statement.sourceSQL.length).replace(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[\s;]/g, '')
  if (rest !== '') throw new ProbeError('data', 'the query failed: sql holds more than one statement')
  // All columns of a row come at once. Node knows this limit since 24.15.
  const each = Math.floor((8 * mostBytes) / Math.max(8, statement.columns().length))
  if (limitsOf(database)) database.limits.length = each
  statement.setReturnArrays(true)
  statement.setReadBigInts(true)
  const reader = new ColumnReader()
  for (const row of statement.iterate() as unknown as Iterable<readonly unknown[]>) if (!reader.take(row[0])) break
  return reader.column()
}

const limitsOf = (database: DatabaseSync) => (database as Partial<Pick<DatabaseSync, 'limits'>>).limits

/** An error of the statement itself is told in the words of SQLite; any other is one of the file. */
function queryFault(error: unknown, path: string, database: DatabaseSync): unknown {
  const { errcode, message } = error as { readonly errcode?: unknown; readonly message?: unknown }
  const told = said(String(message))
  if (errcode === 8) return new ProbeError('data', `it would write, and was refused: ${told}`)
  const most = database.isOpen ? limitsOf(database)?.length : undefined
  if (errcode === 18 && most !== undefined) {
    const instead = 'read less of it, by length(…) or substr(…)'
    return new ProbeError('data', `a value of it is larger than ${showBytes(most)}: ${instead}`)
  }
  if (errcode === 1) return new ProbeError('data', `the query failed: ${told}`)
  return sqliteFault(error, path)
}

/**
 * Nothing in this process stops SQLite at work: a thread beside it answers in its stead when the time is
 * up. The parent reads one line, the first, and then ends this process whatever it does.
 */
function answerAfter(ms: number): Worker {
  // In the words of the child's own answer.
  const late = {
    error: { message: 'the query was called off: it took too long', fault: 'timeout', details: [] },
  }
  const limit = new Worker(answerLate, { eval: true, workerData: { ms, line: `${JSON.stringify(late)}\n` } })
  limit.unref()
  return limit
}

const answerLate = `
const { writeSync } = require('node:fs')
const { workerData } = require('node:worker_threads')
setTimeout(() => writeSync(1, workerData.line), workerData.ms)
`

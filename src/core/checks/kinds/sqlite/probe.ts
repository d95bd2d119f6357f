import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { showBytes } from '../../../base/format.ts'
import { sqlite } from '../../../base/lazy.ts'
import { sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { type Column, ColumnReader } from '../../database/index.ts'
import { openToRead, type SqliteChoice, type SqlValues, sqliteFault, value } from './file.ts'

/** The request to the child process, which is killed if it takes too long. */
export type SqliteTask =
  | { readonly task: 'round trip'; readonly path: string; readonly busyMs: number }
  | QuickCheckTask
  | ({ readonly task: 'values'; readonly statements: readonly string[] } & SqliteChoice)
  | ReadTask
type QuickCheckTask = {
  readonly task: 'quick check'
  readonly path: string
  readonly busyMs: number
  /** Whether to compare each index with its table, which takes about thirty times as long. */
  readonly comparesIndexes: boolean
}
export type ReadTask = {
  readonly task: 'read'
  readonly path: string
  readonly sql: string
  readonly busyMs: number
  /** The timeout in milliseconds. */
  readonly ms: number
}

export type RoundTrip = { readonly ms: number }
export type QuickCheck = { readonly ms: number; readonly problems: readonly string[] }

export default async function probe(input: unknown): Promise<RoundTrip | QuickCheck | SqlValues | Column> {
  const task = input as SqliteTask
  if (task.task === 'read') return readOnly(task)
  if (task.task === 'values') return await valuesIn(task)
  const start = performance.now()
  const database = new (sqlite().DatabaseSync)(task.path, { timeout: task.busyMs, open: false })
  try {
    database.open()
    // Does not trust the schema: it must not call functions of its choice.
    database.exec('PRAGMA trusted_schema = OFF')
    if (task.task === 'quick check') {
      const problems = quickCheck(database, task)
      return { ms: performance.now() - start, problems }
    }
    roundTrip(database)
    return { ms: performance.now() - start }
  } catch (error) {
    throw sqliteFault(error, task.path)
  } finally {
    if (database.isOpen) database.close()
  }
}

/** For a file on a share. The time includes opening it. */
async function valuesIn({
  statements,
  ...choice
}: SqliteChoice & { readonly statements: readonly string[] }): Promise<SqlValues> {
  const start = performance.now()
  const database = await openToRead(choice)
  try {
    const values = statements.map((statement) => value(database, statement))
    return { values, ms: performance.now() - start }
  } catch (error) {
    throw sqliteFault(error, choice.path)
  } finally {
    database.close()
  }
}

function quickCheck(database: DatabaseSync, { comparesIndexes }: QuickCheckTask): readonly string[] {
  // Not opened read-only, which would skip the constraints and leave the log in place.
  database.exec('PRAGMA query_only = ON')
  return database
    .prepare(comparesIndexes ? 'PRAGMA integrity_check(10)' : 'PRAGMA quick_check(10)')
    .all()
    .map((row) => String(Object.values(row)[0]))
    .filter((line) => line !== 'ok')
}

/** Writes, reads and rolls back. Never commits, even if this process is killed at any point. */
function roundTrip(database: DatabaseSync): void {
  const table = `svc_probe_${randomUUID().replaceAll('-', '')}`
  const wrote = randomUUID()
  database.exec('BEGIN IMMEDIATE')
  try {
    database.exec(`CREATE TABLE "${table}" (written TEXT)`)
    database.prepare(`INSERT INTO "${table}" VALUES (?)`).run(wrote)
    const read = database.prepare(`SELECT written FROM "${table}"`).get()?.written
    if (read !== wrote) throw new ProbeError('data', 'the value read differs from the value written')
  } finally {
    database.exec('ROLLBACK')
  }
}

/** Maximum bytes of a value and of a row, the same as for a server. */
const maxBytes = 8 * 1024 ** 2

/** Reads the first column of one statement, over a read-only connection. */
export async function readOnly({ path, sql, busyMs, ms }: ReadTask): Promise<Column> {
  const database = new (sqlite().DatabaseSync)(path, { readOnly: true, timeout: busyMs, open: false })
  const limit = answerAfter(ms)
  try {
    database.open()
    // Does not trust the schema: it must not call functions of its choice.
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
  // SQLite prepares only the first statement, and silently ignores the rest.
  const rest = sql.slice(statement.sourceSQL.length).replace(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[\s;]/g, '')
  if (rest !== '') throw new ProbeError('data', 'the query failed: sql contains more than one statement')
  // SQLite returns all columns of a row at once. Node supports this limit since 24.15.
  const each = Math.floor((8 * maxBytes) / Math.max(8, statement.columns().length))
  if (limitsOf(database)) database.limits.length = each
  statement.setReturnArrays(true)
  statement.setReadBigInts(true)
  const reader = new ColumnReader()
  for (const row of statement.iterate() as unknown as Iterable<readonly unknown[]>) if (!reader.take(row[0])) break
  return reader.column()
}

const limitsOf = (database: DatabaseSync) => (database as Partial<Pick<DatabaseSync, 'limits'>>).limits

/** Explains an error of the statement in SQLite's own words; any other error concerns the file. */
function queryFault(error: unknown, path: string, database: DatabaseSync): unknown {
  const { errcode, message } = error as { readonly errcode?: unknown; readonly message?: unknown }
  const words = sanitize(String(message))
  if (errcode === 8) return new ProbeError('data', `the query was rejected because it writes: ${words}`)
  const max = database.isOpen ? limitsOf(database)?.length : undefined
  if (errcode === 18 && max !== undefined) {
    const instead = 'read only a part with substr(…), or its length(…)'
    return new ProbeError('data', `a value is larger than ${showBytes(max)}: ${instead}`)
  }
  if (errcode === 1) return new ProbeError('data', `the query failed: ${words}`)
  return sqliteFault(error, path)
}

/**
 * Nothing in this process can interrupt SQLite, so a worker thread answers in its place when the time is up. The parent
 * reads only the first line, and then kills this process.
 */
function answerAfter(ms: number): Worker {
  // The same format as the child's own answer.
  const late = {
    error: { message: 'the query was cancelled because it took too long', fault: 'timeout', details: [] },
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

import { closeSync, fsyncSync, openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { sqlite } from '../../base/lazy.ts'
import { refuseForeign, refuseNewer } from '../open.ts'
import { pragma } from '../schema.ts'
import { primaryCode } from '../sqlite-codes.ts'

/** Pages between two looks at the signal: about 4 MB. */
const pagesAtOnce = 1_000

/** Milliseconds that a copy waits while another process locks the database. */
const busyMs = 5_000

/**
 * Opens a store or a backup of one for reading. Throws a Fault if it is foreign or of a newer svc, and SQLite's errors.
 */
export function openForCopy(file: string): DatabaseSync {
  const source = new (sqlite().DatabaseSync)(file, { readOnly: true, timeout: busyMs })
  try {
    source.exec('PRAGMA trusted_schema = OFF')
    refuseForeign(file, source)
    refuseNewer(file, source)
    return source
  } catch (error) {
    source.close()
    throw error
  }
}

/** Whether the database that was read is damaged, or none. */
export const isDamage = (error: unknown): boolean => [11, 26].includes(primaryCode(error) ?? 0)

/** The number of rows of each table, by the name of the table. */
export type RowCounts = Readonly<Record<string, number>>

/**
 * Copies a database into `made`, a new file with mode 600, as it is at one moment: the writes of others go on meanwhile
 * and are not in the copy, and everything that they committed before is. Returns the number of rows at that moment.
 * Throws SQLite's errors, and the reason of the signal.
 *
 * The open transaction keeps the copy from starting again at each commit of others.
 */
export async function copyDatabase(source: DatabaseSync, made: string, signal: AbortSignal): Promise<RowCounts> {
  closeSync(openSync(made, 'wx', 0o600))
  source.exec('BEGIN')
  try {
    const rows = rowCounts(source)
    await sqlite().backup(source, made, { rate: pagesAtOnce, progress: () => signal.throwIfAborted() })
    signal.throwIfAborted()
    return rows
  } finally {
    if (source.isTransaction) source.exec('ROLLBACK')
  }
}

/**
 * The problem with the contents of a copy, as the end of a sentence. Undefined: the copy is sound and has all rows.
 * Reads the whole file. Also makes it a single file, without a write-ahead log.
 */
export function copyProblem(copy: DatabaseSync, rows: RowCounts): string | undefined {
  copy.exec('PRAGMA journal_mode = DELETE; PRAGMA trusted_schema = OFF')
  const integrity = String(Object.values(copy.prepare('PRAGMA integrity_check(1)').get() ?? {})[0])
  if (integrity !== 'ok') return `is damaged: ${integrity.replaceAll('\n', ' ')}`
  if (copy.prepare('PRAGMA foreign_key_check').get() !== undefined) return 'is damaged: rows refer to missing rows'
  const copied = rowCounts(copy)
  const table = Object.keys(rows).find((name) => rows[name] !== copied[name])
  if (table !== undefined) return `is incomplete: the table ${table} has ${copied[table]} of ${rows[table]} rows`
  if (pragma(copy, 'user_version') > 0) return undefined
  return 'has no schema'
}

function rowCounts(database: DatabaseSync): RowCounts {
  const tables = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all()
  return Object.fromEntries(
    tables.map(({ name }) => [String(name), countOf(database, `"${String(name).replaceAll('"', '""')}"`)]),
  )
}

/** The number of rows of a table, by its name in SQL. */
export const countOf = (database: DatabaseSync, table: string): number =>
  Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n)

/** Makes the contents of a file survive a power failure. */
export function syncFile(path: string): void {
  const descriptor = openSync(path, 'r+')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

import { randomUUID } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Column } from '../../database/index.ts'
import { ProbeError } from '../../probe-error.ts'
import { sqlite } from '../../sqlite.ts'
import { sqliteFault } from './file.ts'
import { type ReadTask, readOnly } from './read.ts'

/** What the child process is asked; it is killed when that takes too long. */
export type SqliteTask =
  | { readonly task: 'round trip' | 'quick check'; readonly path: string; readonly busyMs: number }
  | { readonly task: 'backup'; readonly path: string }
  | ReadTask

export type RoundTrip = { readonly see: 'round trip'; readonly ms: number }
export type QuickCheck = { readonly see: 'quick check'; readonly ms: number; readonly problems: readonly string[] }
export type Backup = {
  readonly see: 'backup'
  readonly name: string
  readonly bytes: number
  /** Milliseconds since 1970. */
  readonly modifiedAt: number
}

export default async function probe(input: unknown): Promise<RoundTrip | QuickCheck | Backup | Column> {
  const task = input as SqliteTask
  if (task.task === 'read') return readOnly(task)
  if (task.task === 'backup') return newest(task.path)
  const start = performance.now()
  const database = new (sqlite().DatabaseSync)(task.path, { timeout: task.busyMs, open: false })
  try {
    database.open()
    // What the schema holds is not to be trusted: no functions of its own choosing.
    database.exec('PRAGMA trusted_schema = OFF')
    const problems = task.task === 'quick check' ? quickCheck(database) : roundTrip(database)
    const ms = performance.now() - start
    return problems ? { see: 'quick check', ms, problems } : { see: 'round trip', ms }
  } catch (error) {
    throw sqliteFault(error, task.path)
  } finally {
    if (database.isOpen) database.close()
  }
}

function quickCheck(database: DatabaseSync): readonly string[] {
  // Not opened read-only: constraints would not be checked then, and the log would stay there.
  database.exec('PRAGMA query_only = ON')
  return database
    .prepare('PRAGMA quick_check(10)')
    .all()
    .map((row) => String(Object.values(row)[0]))
    .filter((line) => line !== 'ok')
}

/** Writes, reads and takes back. Nothing of it is ever committed, whenever this process is killed. */
function roundTrip(database: DatabaseSync): undefined {
  const table = `svc_probe_${randomUUID().replaceAll('-', '')}`
  const wrote = randomUUID()
  database.exec('BEGIN IMMEDIATE')
  try {
    database.exec(`CREATE TABLE "${table}" (written TEXT)`)
    database.prepare(`INSERT INTO "${table}" VALUES (?)`).run(wrote)
    const read = database.prepare(`SELECT written FROM "${table}"`).get()?.written
    if (read !== wrote) throw new ProbeError('data', 'what was written is not what was read')
  } finally {
    database.exec('ROLLBACK')
  }
}

/** More files than this are not looked at: a backup folder has few. */
const mostFiles = 100_000

/** A backup: the file itself, or the newest file of a folder. */
function newest(path: string): Backup {
  const found = look(path)
  if (!found) throw new ProbeError('data', `there is no backup: ${path} does not exist`)
  if (!found.isDirectory()) return { see: 'backup', name: path, bytes: found.size, modifiedAt: found.mtimeMs }
  let last: Backup | undefined
  for (const name of readdirSync(path).slice(0, mostFiles)) {
    const file = look(join(path, name))
    if (!file?.isFile() || (last && last.modifiedAt >= file.mtimeMs)) continue
    last = { see: 'backup', name, bytes: file.size, modifiedAt: file.mtimeMs }
  }
  if (!last) throw new ProbeError('data', `there is no backup: ${path} holds no file`)
  return last
}

const look = (path: string) => statSync(path, { throwIfNoEntry: false })

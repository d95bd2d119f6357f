import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { fileProblem } from '../../../base/file-errors.ts'
import { type ConfiguredFiles, isOnShare } from '../../../base/files/index.ts'
import { sqlite } from '../../../base/lazy.ts'
import { sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { type CheckContext, ObservationError } from '../../engine/index.ts'

/**
 * A database file. A local one is open for reading in this process, until a child process opens it. One on a share is
 * opened by a child process for each observation, because a share that does not answer would block this process.
 */
export type SqliteFile = {
  readonly path: string
  readonly database: DatabaseSync | 'on a share'
  /** The duration of opening it, in milliseconds. */
  readonly openMs: number
  /** `wal`, `delete` and so on; undefined until the check `wal` has read it. */
  journalMode?: string
}

export type SqliteChoice = { readonly path: string; readonly ownStore: boolean }

/** Throws ProbeError, or a file system error. */
export async function openFile(choice: SqliteChoice, context: CheckContext): Promise<SqliteFile> {
  const { path, ownStore } = choice
  context.step('open', path)
  const start = context.now()
  await refuseFile(choice, context.files)
  if (isOnShare(path)) {
    const { ms } = (await context.inChild('sqlite', { task: 'values', path, ownStore, statements: [] })) as SqlValues
    return { path, database: 'on a share', openMs: ms }
  }
  const database = await openToRead(choice, context.signal)
  return { path, database, openMs: context.now() - start }
}

export const closeFile = ({ database }: SqliteFile): void => {
  if (database !== 'on a share' && database.isOpen) database.close()
}

/** The first column of the first row of each statement, and the milliseconds that they took. */
export type SqlValues = { readonly values: readonly SqlValue[]; readonly ms: number }
export type SqlValue = string | number | null

/** Throws the errors of SQLite, and those of a child process. */
export async function valuesOf(
  { path, database }: SqliteFile,
  statements: readonly string[],
  { inChild, now }: CheckContext,
): Promise<SqlValues> {
  if (database === 'on a share') {
    return (await inChild('sqlite', { task: 'values', path, ownStore: false, statements })) as SqlValues
  }
  const start = now()
  const values = statements.map((statement) => value(database, statement))
  return { values, ms: now() - start }
}

/** Runs one observation. Explains its errors with `sqliteFault`, for this file. */
export async function explained<T>({ path }: SqliteFile, observe: () => T | Promise<T>): Promise<T> {
  try {
    return await observe()
  } catch (error) {
    throw new ObservationError(sqliteFault(error, path), { address: path })
  }
}

/** Maximum milliseconds to wait for a lock; a commit takes a few. */
const maxWaitMs = 1_000
const againMs = 25

/**
 * Opens a database for reading, and reads its first page. Never waits inside SQLite, which would block this whole
 * process. Throws ProbeError.
 */
export async function openToRead({ path, ownStore }: SqliteChoice, signal?: AbortSignal): Promise<DatabaseSync> {
  for (let waited = 0; ; waited += againMs) {
    const database = new (sqlite().DatabaseSync)(path, { readOnly: true, timeout: 0, open: false })
    try {
      database.open()
      pragma(database, 'schema_version')
      if (ownStore) refuseForeign(path, database)
      return database
    } catch (error) {
      if (database.isOpen) database.close()
      if (!isBusy(error) || waited >= maxWaitMs) throw sqliteFault(error, path)
      await pause(againMs, undefined, signal && { signal })
    }
  }
}

/** The first column of the first row. Throws the errors of SQLite. */
export function value(database: DatabaseSync, sql: string): SqlValue {
  const [first = null] = Object.values(database.prepare(sql).get() ?? {})
  return typeof first === 'number' || first === null ? first : String(first)
}
const pragma = (database: DatabaseSync, name: string): SqlValue => value(database, `PRAGMA ${name}`)

/** The application id in the header of a store of svc: `svc1`. The store writes the same value. */
export const storeApplicationId = 0x73766331

/** Throws ProbeError `data` for a database that is not a store of svc. */
function refuseForeign(path: string, database: DatabaseSync): void {
  const id = Number(pragma(database, 'application_id'))
  if (id === storeApplicationId) return
  throw new ProbeError('data', `${path} is a SQLite database, but not a store of svc`, [`application id ${id}`])
}

const dataError = (message: string, ...details: string[]): ProbeError => new ProbeError('data', message, details)

/**
 * Throws ProbeError `data` for a path that cannot be a database or must not be opened. Checks the store like
 * `openStore`. Does not open the file itself: closing another descriptor of it would drop the locks that SQLite holds
 * in this process.
 */
async function refuseFile({ path, ownStore }: SqliteChoice, files: ConfiguredFiles): Promise<void> {
  const file = await files('status', { path, link: ownStore }).catch((error: NodeJS.ErrnoException) => {
    throw dataError(`${path} ${fileProblem(error)}`)
  })
  if (file.isLink) throw dataError(`${path} is a symbolic link, which is not allowed for the store`)
  if (!file.isFile) throw dataError(`${path} is not a file`)
  if (file.bytes === 0) throw dataError(`${path} is empty (0 bytes): it is no longer a database`)
  if (process.platform === 'win32') return
  if (ownStore) {
    refuseMode(path, file.mode, '600')
    const folder = dirname(path)
    refuseMode(folder, (await files('status', { path: folder })).mode, '700')
  } else if (file.uid !== process.geteuid?.() && process.geteuid?.() !== 0) {
    await refuseToLeaveFiles(path, files)
  }
}

function refuseMode(place: string, mode: number, expected: '600' | '700'): void {
  if ((mode & 0o077) === 0) return
  const is = (mode & 0o777).toString(8).padStart(4, '0')
  throw dataError(
    `${place} is accessible to other accounts (mode ${is}, expected 0${expected})`,
    `next: chmod ${expected} ${place}`,
  )
}

/**
 * The first process that opens a database in WAL mode creates two files beside it, even for reading. If another account
 * owned them, they could lock out the owner of the database.
 */
async function refuseToLeaveFiles(path: string, files: ConfiguredFiles): Promise<void> {
  const there = await files('status', { path: `${path}-shm` }).catch(() => undefined)
  const mayMake = (await files('mayWrite', { path: dirname(path) })) === 'yes'
  if (there || !mayMake || !(await isWal(path, files))) return
  throw dataError(
    `${path} is in WAL mode and not in use: opening it would create files of this account beside it`,
    'next: run svc as the owner of the file, or keep the database in use',
  )
}

/** Reads the mode from the header. Only for files of other accounts, which this process has open nowhere else. */
async function isWal(path: string, files: ConfiguredFiles): Promise<boolean> {
  const head = await files('read', { path, maxBytes: 20, isHead: true }).catch(() => undefined)
  return head !== undefined && Buffer.from(head.content, 'base64')[18] === 2
}

/** SQLite's result codes, explained for operators: extended codes first, then primary ones. */
const meanings: Readonly<Record<number, string>> = {
  264: 'has a write-ahead log left by a crashed process: the next process that opens it for writing recovers it',
  776: 'has an unfinished write from a crashed process: the next process that opens it for writing rolls it back',
  8: 'is read-only for this account',
  10: 'cannot be read: the disk reports an error',
  11: 'is damaged: its pages are inconsistent',
  13: 'cannot be written: the disk is full',
  14: 'cannot be opened by this account',
  26: 'is not a SQLite database, or is damaged',
}
const damages: ReadonlySet<number> = new Set([11, 26])

/** True if another connection holds a lock, which may be released a moment later. */
const isBusy = (error: unknown): boolean => [5, 6].includes(codeOf(error) & 0xff)
const codeOf = (error: unknown): number => Number((error as { errcode?: unknown } | null)?.errcode ?? 0)

/** Explains an error of SQLite. Returns any other error unchanged. */
export function sqliteFault(error: unknown, path: string): unknown {
  if (error instanceof ProbeError || codeOf(error) === 0) return error
  const code = codeOf(error)
  const details = [sanitize(String((error as Error).message)), `SQLite code ${code}`]
  if (isBusy(error)) return new ProbeError('timeout', `${path} is locked by another process`, details)
  const meaning = meanings[code] ?? meanings[code & 0xff] ?? `cannot be used: ${details[0]}`
  if (damages.has(code & 0xff)) details.push('next: restore it from a backup')
  return new ProbeError('data', `${path} ${meaning}`, details)
}

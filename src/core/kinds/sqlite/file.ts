import { access, constants, lstat, open, stat } from 'node:fs/promises'
import { dirname, isAbsolute } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { type CheckContext, ObservationError } from '../../engine/index.ts'
import { sqlite } from '../../lazy.ts'
import { sanitize } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'

/** A database file that this process has open for reading, until a child process opens it. */
export type SqliteFile = {
  readonly path: string
  readonly database: DatabaseSync
  /** The duration of opening it, in milliseconds. */
  readonly openMs: number
  /** `wal`, `delete` and so on; undefined until the check `wal` has read it. */
  journalMode?: string
}

/** Throws ProbeError, or a file system error. */
export async function openFile(
  { path, ownStore }: { readonly path: string; readonly ownStore: boolean },
  context: CheckContext,
): Promise<SqliteFile> {
  context.step('open', path)
  const start = context.now()
  await refuseFile(path, ownStore)
  const database = await openToRead(path, context.signal)
  try {
    if (ownStore) refuseForeign(path, database)
    return { path, database, openMs: context.now() - start }
  } catch (error) {
    database.close()
    throw error
  }
}

export const closeFile = ({ database }: SqliteFile): void => {
  if (database.isOpen) database.close()
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
async function openToRead(path: string, signal: AbortSignal): Promise<DatabaseSync> {
  for (let waited = 0; ; waited += againMs) {
    const database = new (sqlite().DatabaseSync)(path, { readOnly: true, timeout: 0, open: false })
    try {
      database.open()
      pragma(database, 'schema_version')
      return database
    } catch (error) {
      if (database.isOpen) database.close()
      if (!isBusy(error) || waited >= maxWaitMs) throw sqliteFault(error, path)
      await pause(againMs, undefined, { signal })
    }
  }
}

/** The first column of the first row. Throws the errors of SQLite. */
export const value = (database: DatabaseSync, sql: string): unknown =>
  Object.values(database.prepare(sql).get() ?? {})[0]
export const pragma = (database: DatabaseSync, name: string): unknown => value(database, `PRAGMA ${name}`)

/** The application id in the header of a store of svc: `svc1`. The store writes the same value. */
export const storeApplicationId = 0x73766331

/** Throws ProbeError `data` for a database that is not a store of svc. */
function refuseForeign(path: string, database: DatabaseSync): void {
  const id = Number(pragma(database, 'application_id'))
  if (id === storeApplicationId) return
  throw new ProbeError('data', `${path} is a SQLite database, but not a store of svc`, [`application id ${id}`])
}

const wrong = (message: string, ...details: string[]): ProbeError => new ProbeError('data', message, details)

/**
 * Throws ProbeError `data` for a path that cannot be a database or must not be opened. Checks the store like
 * `openStore`. Does not open the file itself: closing another descriptor of it would drop the locks that SQLite holds
 * in this process.
 */
async function refuseFile(path: string, ownStore: boolean): Promise<void> {
  if (!isAbsolute(path)) throw new ProbeError('internal', 'path must be the absolute path of a file')
  const file = await (ownStore ? lstat : stat)(path).catch((error: NodeJS.ErrnoException) => {
    throw wrong(error.code === 'ENOENT' ? `${path} does not exist` : `${path} cannot be accessed: ${error.code}`)
  })
  if (file.isSymbolicLink()) throw wrong(`${path} is a symbolic link, which is not allowed for the store`)
  if (!file.isFile()) throw wrong(`${path} is not a file`)
  if (file.size === 0) throw wrong(`${path} is empty (0 bytes): it is no longer a database`)
  if (process.platform === 'win32') return
  if (ownStore) {
    refuseMode(path, file.mode, '600')
    refuseMode(dirname(path), (await stat(dirname(path))).mode, '700')
  } else if (file.uid !== process.geteuid?.() && process.geteuid?.() !== 0) {
    await refuseToLeaveFiles(path)
  }
}

function refuseMode(place: string, mode: number, expected: '600' | '700'): void {
  if ((mode & 0o077) === 0) return
  const is = (mode & 0o777).toString(8).padStart(4, '0')
  throw wrong(
    `${place} is accessible to other accounts (mode ${is}, expected 0${expected})`,
    `next: chmod ${expected} ${place}`,
  )
}

/**
 * The first process that opens a database in WAL mode creates two files beside it, even for reading. If another account
 * owned them, they could lock out the owner of the database.
 */
async function refuseToLeaveFiles(path: string): Promise<void> {
  const there = await stat(`${path}-shm`).catch(() => undefined)
  const mayMake = await access(dirname(path), constants.W_OK).then(
    () => true,
    () => false,
  )
  if (there || !mayMake || !(await isWal(path))) return
  throw wrong(
    `${path} is in WAL mode and not in use: opening it would create files of this account beside it`,
    'next: run svc as the owner of the file, or keep the database in use',
  )
}

/** Reads the mode from the header. Only for files of other accounts, which this process has open nowhere else. */
async function isWal(path: string): Promise<boolean> {
  const file = await open(path, 'r').catch(() => undefined)
  if (!file) return false
  try {
    const { buffer } = await file.read(Buffer.alloc(20), 0, 20, 0)
    return buffer[18] === 2
  } finally {
    await file.close()
  }
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

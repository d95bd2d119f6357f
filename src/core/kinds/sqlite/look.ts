import { access, constants, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { ProbeError } from '../../probe-error.ts'
import { sqlite } from '../../sqlite.ts'
import { isBusy, sqliteFault, storeApplicationId } from './file.ts'

/** Milliseconds for which a lock is waited for: a commit takes a few. */
const patienceMs = 1_000
const againMs = 25

/**
 * Opens a database to read, and reads its first page, without ever waiting inside SQLite, where
 * everything else in this process would wait too. Throws ProbeError.
 */
export async function openToRead(path: string, signal: AbortSignal): Promise<DatabaseSync> {
  for (let waited = 0; ; waited += againMs) {
    const database = new (sqlite().DatabaseSync)(path, { readOnly: true, timeout: 0, open: false })
    try {
      database.open()
      pragma(database, 'schema_version')
      return database
    } catch (error) {
      if (database.isOpen) database.close()
      if (!isBusy(error) || waited >= patienceMs) throw sqliteFault(error, path)
      await pause(againMs, undefined, { signal })
    }
  }
}

const value = (database: DatabaseSync, sql: string): unknown => Object.values(database.prepare(sql).get() ?? {})[0]
const pragma = (database: DatabaseSync, name: string): unknown => value(database, `PRAGMA ${name}`)

export function selectOne(database: DatabaseSync): void {
  if (value(database, 'SELECT 1') !== 1) throw new ProbeError('data', 'SELECT 1 was answered with something else')
}

/** Throws ProbeError `data` for a database that is no store of svc. */
export function refuseForeign(path: string, database: DatabaseSync): void {
  const id = Number(pragma(database, 'application_id'))
  if (id === storeApplicationId) return
  throw new ProbeError('data', `${path} is a SQLite database, but not a store of svc`, [`application id ${id}`])
}

export type Wal = { readonly see: 'wal'; readonly mode: string; readonly bytes: number }
export async function lookAtWal(path: string, database: DatabaseSync): Promise<Wal> {
  const mode = String(pragma(database, 'journal_mode'))
  const log = await stat(`${path}-wal`).catch(() => undefined)
  return { see: 'wal', mode, bytes: log?.size ?? 0 }
}

export type Schema = {
  readonly see: 'schema'
  readonly version: number
  /** What the store's own table says; undefined in another database. */
  readonly noted: number | undefined
}
export function lookAtSchema(database: DatabaseSync, ownStore: boolean): Schema {
  const version = Number(pragma(database, 'user_version'))
  const noted = ownStore ? value(database, 'SELECT version FROM meta WHERE id = 1') : undefined
  return { see: 'schema', version, noted: ownStore ? Number(noted ?? 0) : undefined }
}

export type Disk = { readonly see: 'disk'; readonly freeBytes: number; readonly percent: number }
export async function lookAtDisk(path: string): Promise<Disk> {
  // What an ordinary account may use, not what root may.
  const { bavail, blocks, bsize } = await statfs(dirname(path))
  return { see: 'disk', freeBytes: bavail * bsize, percent: blocks > 0 ? (bavail / blocks) * 100 : 100 }
}

/** False where this account was only given the right to read. Throws ProbeError for a disk that takes no writes. */
export async function mayWrite(path: string): Promise<boolean> {
  try {
    await access(path, constants.W_OK)
    return true
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'EROFS') return false
    throw new ProbeError('data', `${path} cannot be written: its file system is read-only`)
  }
}

import { linkSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { Fault } from '../../base/errors.ts'
import { fileProblem } from '../../base/file-errors.ts'
import { sqlite } from '../../base/lazy.ts'
import { quoted } from '../../base/own-files.ts'
import {
  allCompanions,
  damaged,
  missing,
  openingFault,
  refuseUnopenable,
  removeDatabase,
  removeLeftovers,
  syncFolder,
  unfinishedName,
} from '../open.ts'
import { fullFileSystem, refuseUnsafe, statOf, storeKind } from '../path.ts'
import { versionOf } from '../schema.ts'
import { primaryCode } from '../sqlite-codes.ts'
import { copyDatabase, copyProblem, countOf, isDamage, openForCopy, type RowCounts, syncFile } from './copy.ts'

export type Backup = {
  /** The absolute path. */
  readonly file: string
  readonly bytes: number
  readonly schemaVersion: number
  readonly users: number
  /** Keys that are not revoked. */
  readonly keys: number
}

export type BackupOptions = {
  /** The absolute path of the store. */
  readonly store: string
  /** The absolute path of the backup. */
  readonly file: string
  /** Replaces a file that exists. */
  readonly overwrite: boolean
  readonly signal: AbortSignal
}

/** How the name of a backup that is being made begins. */
const unfinished = '.svc-backup-'

/**
 * Copies the embedded store into a file, as it is at one moment, while others use it (W15). The file has mode 600, is
 * verified, and appears under its name only when it is complete: a failure or a kill leaves what was there before. Changes
 * nothing in the store, not even an old schema. Throws Fault `Local`, and the reason of the signal.
 */
export async function backUp({ store, file, overwrite, signal }: BackupOptions): Promise<Backup> {
  refuseDatabaseServer(store, dumpAdvice)
  refuseTarget(store, file, overwrite)
  await refuseUnopenable(store)
  const source = openForReading(store)
  const folder = dirname(file)
  const made = unfinishedName(folder, unfinished)
  try {
    removeLeftovers(folder, unfinished)
    const rows = await copyDatabase(source, made, signal)
    const facts = verified(made, rows)
    // Opening the store made sure that it is the one of a running server; a copy of one that was then replaced is not.
    await refuseUnopenable(store)
    syncFile(made)
    publish(made, file, overwrite)
    return { file, bytes: statOf(file)?.size ?? 0, ...facts }
  } catch (error) {
    throw signal.aborted ? signal.reason : copyingFault(store, file, error)
  } finally {
    source.close()
    removeDatabase(made)
  }
}

/** Refuses a file that must not become a backup. */
function refuseTarget(store: string, file: string, overwrite: boolean): void {
  if ([store, ...allCompanions(store)].includes(file)) {
    throw new Fault('Usage', `${file} is the store itself: name another file for the backup`)
  }
  const there = statOf(file)
  if (there === undefined) return
  if (!there.isFile()) throw new Fault('Local', `${file} exists and is not a regular file`)
  if (!overwrite) throw exists(file)
}

const exists = (file: string): Fault =>
  new Fault('Local', `${file} exists already`, { hints: ['Name another file, or replace this one with --overwrite.'] })

function openForReading(store: string): DatabaseSync {
  try {
    refuseUnsafe(store)
    const { size } = statOf(store) ?? {}
    if (size === undefined) throw missing(store)
    if (size === 0) throw damaged(store, 'is empty (0 bytes): its contents are lost')
    return openForCopy(store)
  } catch (error) {
    throw openingFault(store, error)
  }
}

/** The contents of a sound copy. Throws for any other copy. */
function verified(made: string, rows: RowCounts): Omit<Backup, 'file' | 'bytes'> {
  using copy = new (sqlite().DatabaseSync)(made)
  const problem = copyProblem(copy, rows)
  if (problem !== undefined) throw new Fault('Local', `The copy of the store ${problem}; no backup was written`)
  const schemaVersion = versionOf(copy)
  const hasAccounts = schemaVersion >= versionWithAccounts
  return {
    schemaVersion,
    users: hasAccounts ? countOf(copy, 'users') : 0,
    keys: hasAccounts ? countOf(copy, 'apiKeys WHERE "revokedAt" IS NULL') : 0,
  }
}

const versionWithAccounts = 2

/** Gives the finished file its name. Without `overwrite`, a file that another process has made meanwhile stays. */
function publish(made: string, file: string, overwrite: boolean): void {
  if (overwrite) renameSync(made, file)
  else linkOrRename(made, file)
  rmSync(made, { force: true })
  syncFolder(dirname(file))
}

function linkOrRename(made: string, file: string): void {
  try {
    linkSync(made, file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw exists(file)
    // FAT and some shares have no hard links.
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].includes(code ?? '')) throw error
    if (statOf(file)) throw exists(file)
    renameSync(made, file)
  }
}

/** Translates an error from copying the store into a backup. */
function copyingFault(store: string, file: string, error: unknown): unknown {
  if (error instanceof Fault) return error
  return isDamage(error) ? openingFault(store, error) : writingFault(file, error)
}

/**
 * Translates an error from writing a new database. SQLite's errors name no file, and those of the system the unfinished
 * one.
 */
export function writingFault(file: string, error: unknown): unknown {
  if (error instanceof Fault) return error
  const folder = dirname(file)
  const { code, message } = error as { code?: unknown; message?: unknown }
  const primary = primaryCode(error)
  if (primary === undefined && typeof code !== 'string') return error
  const problem =
    primary === 13 || code === 'ENOSPC'
      ? fullFileSystem(folder)
      : primary === undefined
        ? `${folder} ${fileProblem(error)}`
        : String(message)
  return new Fault('Local', `${file} cannot be written: ${problem}`, {
    hints: ['Nothing was changed.'],
    cause: error,
  })
}

/** Refuses a PostgreSQL store, for which its own tools make and restore backups. `advice` gets their options. */
export function refuseDatabaseServer(store: string, advice: (database: string) => readonly string[]): void {
  if (storeKind(store) === 'sqlite') return
  throw new Fault('Local', 'The store is a PostgreSQL database, which its own tools back up and restore', {
    hints: advice(databaseOptions(store)),
  })
}

/** The options that name a database to the tools of PostgreSQL. Without the password. */
function databaseOptions(store: string): string {
  const { hostname, port, username, pathname } = URL.parse(store) ?? new URL('postgres://')
  const options = { host: hostname, port, username, dbname: pathname.slice(1) || username }
  return Object.entries(options)
    .flatMap(([name, value]) => (value === '' ? [] : [`--${name}=${quoted(decoded(value))}`]))
    .join(' ')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const dumpAdvice = (database: string): readonly string[] => [`pg_dump --format=custom --file=svc.dump ${database}`]

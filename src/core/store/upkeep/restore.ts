import { closeSync, linkSync, openSync, readdirSync, readSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../base/errors.ts'
import { sqlite } from '../../base/lazy.ts'
import { makeFolder, othersMayWrite, quoted } from '../../base/own-files.ts'
import { isRunning } from '../../base/running-process.ts'
import { readMarker } from '../../base/system/serve-marker.ts'
import type { AuditEvent } from '../audit-events.ts'
import type { Actor } from '../data.ts'
import {
  allCompanions,
  prefix,
  refuseAltered,
  refuseForeign,
  refuseOrphans,
  refuseUnopenable,
  removeDatabase,
  removeLeftovers,
  syncFolder,
  unfinishedName,
} from '../open.ts'
import type { ForeignObject } from '../own-schema.ts'
import { reason, refuseUnsafe, statOf } from '../path.ts'
import { migrate, migrations, versionOf } from '../schema.ts'
import { primaryCode } from '../sqlite-codes.ts'
import { refuseDatabaseServer, writingFault } from './backup.ts'
import { copyDatabase, copyProblem, isDamage, openForCopy, type RowCounts, syncFile } from './copy.ts'
import { enabledAdmin, endSignIns, rollBack, type StoreComparison } from './rollback.ts'

export type Restored = {
  /** Where the previous store is now. Undefined: there was none. */
  readonly keptAs: string | undefined
  /** Sign-ins that the backup had and that have ended. */
  readonly sessions: number
  /** Whether an Admin can sign in. */
  readonly hasAdmin: boolean
  /** The changes since the backup, which are rolled back. Undefined if the previous store could not be read. */
  readonly comparison: StoreComparison | undefined
  /** Why the previous store could not be read. */
  readonly unreadable: string | undefined
  /** Objects that svc did not make and that change nothing of what it reads or writes, as `the table "notes"`. */
  readonly foreign: readonly string[]
}

export type RestoreOptions = {
  /** The absolute path of the store. */
  readonly store: string
  /** The absolute path of the backup. */
  readonly file: string
  /** Whether users and keys that were withdrawn after the backup work again. */
  readonly keep: boolean
  readonly actor: Actor
  readonly now: Date
  readonly signal: AbortSignal
}

/** Milliseconds to wait until other commands that use the store have ended. */
const patienceMs = 5_000

/**
 * Puts a backup in place of the embedded store (W15). No other process may use the store. The previous store is kept beside
 * it, and the new one takes its place in one step: a kill leaves the one or the other. All sign-ins end, and what was
 * withdrawn after the backup stays withdrawn, unless `keep`. Throws Fault `Local`, and the reason of the signal.
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { store, file, signal } = options
  refuseDatabaseServer(store, restoreAdvice)
  await refuseUnopenable(file)
  refuseSource(store, file)
  await refuseUnopenable(store)
  refuseServed(store)
  const folder = dirname(store)
  const made = unfinishedName(folder, prefix(store))
  const [source, foreign] = openBackup(file)
  try {
    makeFolder(folder)
    refuseUnsafe(store)
    removeLeftovers(folder, prefix(store))
    await copyBackup(source, file, made, signal)
    const old = await takeOver(store, signal)
    using _previous = old.database
    const restored = adjust(old, made, options)
    syncFile(made)
    signal.throwIfAborted()
    return { ...restored, foreign: foreign.map(({ label }) => label), keptAs: exchange(store, made, old, options.now) }
  } catch (error) {
    throw signal.aborted ? signal.reason : writingFault(store, error)
  } finally {
    source.close()
    removeDatabase(made)
  }
}

/** Refuses a file that cannot be a backup. */
function refuseSource(store: string, file: string): void {
  const stat = statOf(file)
  if (stat === undefined) throw new Fault('Local', `${file} does not exist`)
  if (stat.isSymbolicLink()) throw notRegular(`${file} is a symbolic link`)
  if (!stat.isFile()) throw notRegular(`${file} is not a regular file`)
  if (stat.size === 0) throw noBackup(file, 'it is empty')
  const own = statOf(store)
  if (own !== undefined && own.ino === stat.ino && own.dev === stat.dev) {
    throw new Fault('Usage', `${file} is the store itself`)
  }
  if (othersMayWrite(stat)) {
    throw new Fault('Local', `${file} can be changed by other accounts`, {
      hints: [`If you trust its contents: chmod 600 ${quoted(file)}`],
    })
  }
}

const notRegular = (message: string): Fault => new Fault('Local', message, { hints: ['Name the file itself.'] })
const noBackup = (file: string, why: string, cause?: unknown): Fault =>
  new Fault('Local', `${file} is not a backup of svc: ${why}`, { cause })

/** Refuses while a server has the store. One in another container, whose marker says nothing here, is noticed later. */
function refuseServed(store: string): void {
  const marker = readMarker(store)
  if (!marker || !isRunning(marker)) return
  throw new Fault('Local', `The svc serve with the process id ${marker.pid} uses the store ${store}`, {
    hints: [`Stop it first: kill ${marker.pid}, or systemctl stop svc`],
  })
}

/**
 * Opens a backup for reading, if this version of svc can use it and it has nothing that changes what svc reads or writes.
 * Returns also what svc did not make.
 */
function openBackup(file: string): readonly [DatabaseSync, readonly ForeignObject[]] {
  try {
    const source = openForCopy(file)
    try {
      return [source, refuseAltered(`The backup ${file}`, source)]
    } catch (error) {
      source.close()
      throw error
    }
  } catch (error) {
    throw readingFault(file, error)
  }
}

/** Copies a backup into a new store, verifies it and brings its schema up to date. */
async function copyBackup(source: DatabaseSync, file: string, made: string, signal: AbortSignal): Promise<void> {
  try {
    const rows = await copyDatabase(source, made, signal)
    finish(file, made, rows)
  } catch (error) {
    throw isDamage(error) ? readingFault(file, error) : error
  }
}

function finish(file: string, made: string, rows: RowCounts): void {
  using copy = new (sqlite().DatabaseSync)(made)
  const problem = copyProblem(copy, rows)
  if (problem !== undefined) throw new Fault('Local', `The backup ${file} ${problem}`)
  copy.exec('PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON')
  migrate(copy, migrations)
  const noted = copy.prepare('SELECT version FROM meta WHERE id = 1').get()?.version
  if (noted !== versionOf(copy)) throw noBackup(file, 'its schema has no version')
}

/** Translates an error from reading a backup. */
function readingFault(file: string, error: unknown): unknown {
  if (error instanceof Fault) return error
  const primary = primaryCode(error)
  if (primary === undefined) return error
  if (primary === 26) return noBackup(file, 'it is not a SQLite database', error)
  if (primary === 11) return new Fault('Local', `The backup ${file} is damaged`, { cause: error })
  if (primary === 14) return new Fault('Local', `${file} cannot be read by this account`, { cause: error })
  return new Fault('Local', `${file} cannot be read: ${reason(error)}`, { cause: error })
}

/** The previous store, locked so that no other process opens it until `database` is closed. */
type Old = {
  readonly database: DatabaseSync
  readonly state: 'none' | 'readable' | 'unreadable'
  readonly unreadable?: string
}

const nothing = (state: 'none' | 'unreadable', unreadable?: string): Old => ({
  database: new (sqlite().DatabaseSync)(':memory:'),
  state,
  ...(unreadable === undefined ? {} : { unreadable }),
})

/**
 * Locks the store, after its log has been written into it. Only the last process that uses a store can do that, whatever
 * its marker says. Throws Fault `Local` if another one still uses it.
 */
async function takeOver(store: string, signal: AbortSignal): Promise<Old> {
  const stat = statOf(store)
  if (stat === undefined) {
    refuseOrphans(store)
    return nothing('none')
  }
  // SQLite would remove the log of a file that is not a database.
  if (!isDatabase(store)) return nothing('unreadable', stat.size === 0 ? 'it is empty' : unreadable[26])
  const deadline = performance.now() + patienceMs
  for (;;) {
    const database = new (sqlite().DatabaseSync)(store)
    try {
      database.exec('PRAGMA trusted_schema = OFF')
      refuseForeign(store, database)
      database.prepare('PRAGMA journal_mode = DELETE').get()
      database.exec('PRAGMA main.locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT')
      return { database, state: 'readable' }
    } catch (error) {
      database.close()
      const primary = primaryCode(error) ?? 0
      const problem = unreadable[primary]
      if (problem !== undefined) return nothing('unreadable', problem)
      if (primary !== 5 && primary !== 6) throw error
      if (performance.now() > deadline) throw used(store)
    }
    await pause(50, undefined, { signal })
  }
}

/** Whether a file begins as every SQLite database does. Only before SQLite has opened it: see `openStore`. */
function isDatabase(path: string): boolean {
  const start = Buffer.alloc(16)
  const descriptor = openSync(path, 'r')
  try {
    readSync(descriptor, start)
  } finally {
    closeSync(descriptor)
  }
  return start.toString('latin1') === 'SQLite format 3\0'
}

/** SQLite's primary result codes of a store that nobody can read any more. */
const unreadable: Readonly<Record<number, string>> = {
  10: 'the disk reports an error',
  11: 'it is damaged',
  26: 'it is damaged or is not a SQLite database',
}

const used = (store: string): Fault =>
  new Fault('Local', `Another process uses the store ${store}`, {
    hints: ['Stop every svc serve that uses it, also in other containers, and try again.'],
  })

/** Ends the sign-ins of the copy, withdraws what was withdrawn, and writes the audit. */
function adjust(old: Old, made: string, { keep, actor, now }: RestoreOptions): Omit<Restored, 'keptAs' | 'foreign'> {
  const { database } = old
  database.prepare('ATTACH ? AS restored').run(made)
  database.exec('PRAGMA foreign_keys = ON; BEGIN IMMEDIATE')
  const [comparison, problem] = compared(old, { keep, at: now.getTime() })
  const sessions = endSignIns(database)
  const hasAdmin = database.prepare(enabledAdmin).get() !== undefined
  const after = JSON.stringify({
    sessions,
    ...(comparison && { auditEntries: comparison.auditEntries, changes: comparison.changes.length }),
  })
  database
    .prepare(
      `INSERT INTO restored."audit" ("at", "event", "who", "correlationId", "after", "reason", "seal")
       VALUES (?, ?, ?, ?, ?, ?, 0)`,
    )
    .run(
      now.getTime(),
      'store.restored' satisfies AuditEvent,
      actor.who,
      actor.correlationId,
      after,
      actor.reason ?? null,
    )
  database.exec('COMMIT; DETACH restored')
  return { sessions, hasAdmin, comparison, unreadable: problem }
}

function compared(
  { database, state, unreadable: problem }: Old,
  how: { readonly keep: boolean; readonly at: number },
): readonly [StoreComparison | undefined, string | undefined] {
  if (state !== 'readable') return [undefined, problem]
  try {
    return [rollBack(database, how), undefined]
  } catch (error) {
    return [undefined, reason(error)]
  }
}

/** Puts the new store in place of the one before. Returns where that one is now. */
function exchange(store: string, made: string, { state }: Old, now: Date): string | undefined {
  const folder = dirname(store)
  if (state === 'none') {
    linkSync(made, store)
    syncFolder(folder)
    return undefined
  }
  const place = keep(store, now)
  if (state === 'unreadable') {
    // A log that stays would be applied to the new store.
    for (const file of allCompanions(store)) {
      if (statOf(file)) renameSync(file, `${place}${file.slice(store.length)}`)
    }
  }
  syncFolder(folder)
  renameSync(made, store)
  syncFolder(folder)
  return place
}

/** Gives the store before another name, too. Until the new one takes its place, it has both. */
function keep(store: string, now: Date): string {
  const stamp = now.toISOString().slice(0, 19).replace(/[-:]/g, '')
  for (let at = 1; ; at++) {
    const name = `${store}.before-${stamp}${at === 1 ? '' : `-${at}`}`
    try {
      linkSync(store, name)
      removeOtherNames(store, name)
      return name
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST') continue
      if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EOPNOTSUPP') throw error
      throw new Fault('Local', `The file system of ${store} has no hard links, with which the previous store is kept`, {
        hints: ['Set SVC_STORE to a file on a local disk.'],
        cause: error,
      })
    }
  }
}

/** Removes the names that a restore which was killed has given the store: it is still the store. */
function removeOtherNames(store: string, name: string): void {
  const folder = dirname(store)
  const inode = statOf(store)?.ino
  for (const other of readdirSync(folder).map((one) => join(folder, one))) {
    if (other === name || !basename(other).startsWith(`${basename(store)}.before-`)) continue
    if (statOf(other)?.ino === inode) rmSync(other, { force: true })
  }
}

const restoreAdvice = (database: string): readonly string[] => [
  `pg_restore --clean --if-exists --single-transaction ${database} svc.dump`,
  'docs/serve.md says how to end the sign-ins of the dump afterwards.',
]

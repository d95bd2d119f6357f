import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { Fault, FileStoreOutage, isSystemError, NewerStore } from '../base/errors.ts'
import { isFileOutage } from '../base/file-errors.ts'
import { sqlite } from '../base/lazy.ts'
import { isReadOnly, makeFolder, quoted } from '../base/own-files.ts'
import { alteredStore, compareSchema, type ForeignObject, sqliteObjects } from './own-schema.ts'
import {
  companions,
  fullFileSystem,
  obstacleAt,
  outageAt,
  reason,
  refuseSilentShare,
  refuseUnsafe,
  refuseUrl,
  statOf,
  storeFiles,
} from './path.ts'
import { applicationId, migrate, migrations, ownSchema, pragma, unknownObjects, versionOf } from './schema.ts'
import { primaryCode } from './sqlite-codes.ts'

/** The remedies for every unusable store. */
const waysOut = (path: string): readonly string[] => [
  'Restore it from a backup.',
  `To start with an empty store instead, move this one away first: mv ${quoted(path)} ${quoted(`${path}.old`)}`,
]

export const damaged = (path: string, what: string, cause?: unknown): Fault =>
  new Fault('Local', `The store ${path} ${what}`, { hints: waysOut(path), cause })

/** SQLite's primary result codes that an operator can act on. A full or read-only file system shows itself in several. */
const meanings: Readonly<Record<number, (path: string, cause: unknown) => Fault>> = {
  5: locked,
  6: locked,
  8: (path, cause) => outageOrAccount(path, 'cannot be written', cause),
  10: (path, cause) => {
    const obstacle = obstacleAt(path)
    const why = obstacle === undefined ? 'read or written: the disk reports an error' : `written: ${obstacle}`
    return outageAt(path, `cannot be ${why}`, cause)
  },
  11: (path) => damaged(path, 'is damaged: the database file is corrupt'),
  13: (path, cause) => outageAt(path, `cannot be written: ${fullFileSystem(dirname(path))}`, cause),
  // SQLite also says this when it cannot create its files beside the store.
  14: (path, cause) => outageOrAccount(path, 'cannot be opened', cause),
  26: (path) => damaged(path, 'is damaged or is not a SQLite database'),
}

/** An outage where the file system is the reason. Otherwise it is the account, by owner or mode. */
function outageOrAccount(path: string, what: string, cause: unknown): Fault {
  const obstacle = obstacleAt(path)
  if (obstacle !== undefined) return outageAt(path, `${what}: ${obstacle}`, cause)
  return new Fault('Local', `The store ${path} ${what} by this account`, { cause })
}

function locked(path: string, cause: unknown): Fault {
  return new FileStoreOutage(`The store ${path}`, 'is locked by another process', {
    hints: ['A database tool may hold the lock: stop it and try again.'],
    cause,
  })
}

/** Translates an error from opening a store. A Fault stays as it is, unless a file system in trouble is its cause. */
export function openingFault(path: string, error: unknown): Fault {
  if (error instanceof FileStoreOutage) return error
  const meaning = error instanceof Fault ? undefined : meanings[primaryCode(error) ?? 0]
  if (meaning) return meaning(path, error)
  const cause = error instanceof Fault ? error.details.cause : error
  if (isFileOutage(cause)) return outageAt(path, `cannot be opened: ${obstacleAt(path) ?? reason(cause)}`, cause)
  if (error instanceof Fault) return error
  return new Fault('Local', `The store ${path} cannot be opened: ${reason(error)}`, { cause: error })
}

/**
 * Creates a complete store in a temporary file, then links it into place. Others see no store or a complete one,
 * whenever this process is killed; of two processes that create it at once, one wins. An empty or partial store is
 * therefore never ours, and is refused as damaged instead of being taken for a new one.
 */
export function createStore(path: string, steps: readonly string[], id = applicationId): void {
  const folder = dirname(path)
  makeFolder(folder)
  refuseUnsafe(path)
  refuseOrphans(path)
  const made = unfinishedName(folder, prefix(path))
  try {
    // Create the file before SQLite opens it: node:sqlite would make it readable by all.
    closeSync(openSync(made, 'wx', 0o600))
    const database = new (sqlite().DatabaseSync)(made)
    try {
      database.exec(`PRAGMA application_id = ${id}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`)
      migrate(database, steps)
    } finally {
      database.close()
    }
    link(made, path)
    syncFolder(folder)
  } finally {
    removeDatabase(made)
  }
  removeLeftovers(folder, prefix(path))
}

/** How the name of a store that is being made begins. */
export const prefix = (path: string): string => `.${basename(path)}.new-`

/**
 * Refuses a log without its database. It contains acknowledged writes, and would damage a new database in its place.
 */
export function refuseOrphans(path: string): void {
  for (const orphan of [`${path}-wal`, `${path}-journal`]) {
    const size = statOf(orphan)?.size ?? 0
    // Check again: another process may have created the store meanwhile.
    if (size > 0 && !statOf(path)) throw damaged(orphan, `belongs to a store, but ${basename(path)} itself is missing`)
  }
}

function link(made: string, path: string): void {
  try {
    linkSync(made, path)
  } catch (error) {
    // Another process was first, and its store is used.
    if ((error as { code?: unknown }).code !== 'EEXIST') throw error
  }
}

/** The files that SQLite keeps beside a database in any journal mode. */
export const allCompanions = (path: string): readonly string[] => [...companions(path), `${path}-journal`]

/** A name for a file that is being made. It begins with `prefix`, by which `removeLeftovers` recognizes it. */
export const unfinishedName = (folder: string, prefix: string): string => join(folder, `${prefix}${randomUUID()}`)

/** Removes a file and those that SQLite keeps beside it. */
export function removeDatabase(path: string): void {
  for (const file of [path, ...allCompanions(path)]) rmSync(file, { force: true })
}

const anHour = 3_600_000

/** Removes files that killed processes have left. Newer ones may belong to a process that is still running. */
export function removeLeftovers(folder: string, prefix: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(prefix)) continue
    const age = Date.now() - (statOf(join(folder, name))?.mtimeMs ?? Date.now())
    if (age > anHour) rmSync(join(folder, name), { force: true })
  }
}

/** Makes the names in a folder survive a power failure. */
export function syncFolder(folder: string): void {
  // Windows cannot open a folder, and does not need to.
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

export type Store = {
  readonly path: string
  readonly database: DatabaseSync
  readonly schemaVersion: number
  /** `wal`. */
  readonly journalMode: string
  /** Ends every use of `database`. Safe to call twice. */
  readonly close: () => void
}

export type StoreOptions = {
  /** The absolute path of the file. */
  readonly path: string
  /** Creates the store when there is none. If false, a missing store is a Fault. */
  readonly create: boolean
  /** Milliseconds to wait for another process's write, which usually takes a few. Node blocks meanwhile. */
  readonly busyMs?: number | undefined
}

const usualBusyMs = 2_000

/** The stores in files that `svc serve` of this account has used, remembered in a place that is not beside them. */
export type UsedStores = {
  /** The path of the note about a store. Undefined: there is none. */
  readonly noteOf: (store: string) => Promise<string | undefined>
  /** Writes it. */
  readonly note: (store: string) => Promise<void>
}

/**
 * Throws FileStoreOutage for a store that `svc serve` has used and whose file is missing: an unmounted disk, for example. What
 * was in it may come back, and an empty store in its place would have no users, no roles and no silences.
 */
export async function refuseGone(path: string, used: UsedStores | undefined): Promise<void> {
  if (used === undefined || statOf(path)) return
  const note = await used.noteOf(path).catch((error: unknown) => {
    if (!(error instanceof Fault) && !isSystemError(error)) throw error
    throw outageAt(path, `cannot be made: whether it was used before is unknown: ${reason(error)}`, error)
  })
  if (note === undefined) return
  throw new FileStoreOutage(`The store ${path}`, 'is gone: svc serve has used it, and there is no such file now', {
    hints: [
      'Mount its disk, move it back, or restore a backup: svc restore FILE',
      `To start with an empty store instead: rm ${quoted(note)}`,
    ],
  })
}

/**
 * Throws Fault `Local` for a store that must not even be opened: on a share that does not answer, because SQLite would
 * block this process for as long, and in place of the store that a running `svc serve` has open. Every other problem is
 * found when the store is opened.
 */
export async function refuseUnopenable(path: string): Promise<void> {
  await refuseSilentShare(path)
  // The path is that of `markerPath`, whose file a command loads only when there is a marker.
  if (statOf(`${path}.serve.json`)) (await import('./own-marker.ts')).refuseStray(path)
}

/** Creates an embedded store as `svc serve` would. Resolves with the error message when it cannot be opened. */
export async function prepareStore(path: string, used?: UsedStores): Promise<string | undefined> {
  try {
    await refuseUnopenable(path)
    await refuseGone(path, used)
    openStore({ path, create: true }).close()
    return undefined
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return [error.message, ...(error.details.hints ?? [])].map((part) => part.replace(/\.$/, '')).join('. ')
  }
}

/**
 * Opens the store and brings its schema up to date (D1, D2). Throws Fault `Local`, with the cause and the remedy, for a
 * store that is unsafe, missing, damaged, foreign or newer, and FileStoreOutage for one that is locked or whose file system
 * is full, read-only or out of order.
 *
 * Only SQLite may open the file: closing any other descriptor of it would release this process's locks on it, also
 * those of another connection (POSIX locks belong to a process).
 */
export function openStore(
  options: StoreOptions,
  steps: readonly string[] = migrations,
  id: number = applicationId,
): Store {
  const { path } = options
  refuseUrl(path)
  try {
    refuseUnsafe(path)
    if (!statOf(path)) {
      if (!options.create) throw missing(path)
      createStore(path, steps, id)
    }
    // SQLite would open it for reading, and not notice when it can be written.
    else if (options.create && isReadOnly(dirname(path))) throw outageAt(path, readOnlyStore, undefined)
    return openExisting(options, steps, id)
  } catch (error) {
    throw openingFault(path, error)
  }
}

const readOnlyStore = 'cannot be written: the file system is read-only'

export const missing = (path: string): Fault =>
  new Fault('Local', `No store exists at ${path}`, {
    hints: [
      'To use another file: --store or SVC_STORE',
      'To create it with the first user: svc users add NAME --role Admin',
      'To create it with a server that records what its monitors find: svc serve',
    ],
  })

function openExisting({ path, busyMs = usualBusyMs }: StoreOptions, steps: readonly string[], own: number): Store {
  if (statOf(path)?.size === 0) throw damaged(path, 'is empty (0 bytes): its contents are lost')
  const { database: opened } = storeFiles(path)
  const database = new (sqlite().DatabaseSync)(path, { timeout: busyMs })
  try {
    refuseForeign(path, database, own)
    refuseNewer(path, database, steps)
    refuseAltered(`The store ${path}`, database, steps)
    database.exec('PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF')
    const journalMode = walMode(path, database)
    migrate(database, steps)
    const schemaVersion = versionOf(database)
    const noted = database.prepare('SELECT version FROM meta WHERE id = 1').get()?.version
    if (noted !== schemaVersion) {
      throw damaged(path, `is damaged: its header has schema version ${schemaVersion}, its table ${String(noted)}`)
    }
    // Meanwhile SQLite has created its other files, with the mode of the database.
    refuseUnsafe(path)
    // `svc restore` may have put another file here while this one waited for its lock.
    if (storeFiles(path).database !== opened) {
      throw new Fault('Local', `The store ${path} was replaced while it was opened`, { hints: ['Try again.'] })
    }
    const close = (): void => {
      if (database.isOpen) database.close()
    }
    return { path, database, schemaVersion, journalMode, close }
  } catch (error) {
    database.close()
    throw error
  }
}

export function refuseForeign(path: string, database: DatabaseSync, own: number = applicationId): void {
  const id = pragma(database, 'application_id')
  if (id === own) return
  throw new Fault('Local', `${path} is a SQLite database, but not a store of svc`, {
    hints: [`Its application id is ${id}, not ${own}. Set SVC_STORE to another file.`],
  })
}

/**
 * Throws AlteredStore for a database of svc with a trigger, or anything else that changes what svc reads or writes. Returns
 * the objects that svc did not make and that change nothing. One query.
 */
export function refuseAltered(
  label: string,
  database: DatabaseSync,
  steps: readonly string[] = migrations,
): readonly ForeignObject[] {
  database.exec('PRAGMA trusted_schema = OFF')
  const objects = String(Object.values(database.prepare(sqliteObjects).get() ?? {})[0])
  const own = ownSchema('sqlite', steps)
  const { altering, foreign } = unknownObjects(objects, own)
  if (altering.length + foreign.length === 0) return []
  const report = compareSchema(objects, own)
  const altered = alteredStore(label, report.altering)
  if (altered) throw altered
  return report.foreign
}

export function refuseNewer(path: string, database: DatabaseSync, steps: readonly string[] = migrations): void {
  const version = versionOf(database)
  if (version <= steps.length) return
  throw new NewerStore(
    `The store ${path}`,
    { schema: version, supports: steps.length },
    'Update svc, or set SVC_STORE to another file.',
  )
}

/** WAL is a property of the file, so it is set only when something else has changed it. */
function walMode(path: string, database: DatabaseSync): string {
  const mode = (sql: string): string => String(database.prepare(sql).get()?.journal_mode)
  const journal = mode('PRAGMA journal_mode') === 'wal' ? 'wal' : mode('PRAGMA journal_mode = WAL')
  if (journal === 'wal') return journal
  throw new Fault('Local', `The store ${path} cannot use a write-ahead log (journal mode ${journal})`, {
    hints: ['Network file systems do not support it: set SVC_STORE to a file on a local disk.'],
  })
}

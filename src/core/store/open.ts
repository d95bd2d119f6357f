import type { DatabaseSync } from 'node:sqlite'
import { Fault } from '../errors.ts'
import { sqlite } from '../sqlite.ts'
import { createStore } from './create.ts'
import { damaged, openingFault } from './faults.ts'
import { found, refuseUnsafe } from './guard.ts'
import { applicationId, migrate, migrations, pragma, versionOf } from './migrate.ts'
import { refuseUrl } from './path.ts'

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
  /** The whole path of the file. */
  readonly path: string
  /** Makes the store when there is none; else that is a Fault. */
  readonly create: boolean
}

/** Milliseconds to wait for another process's write: theirs take a few. Node itself waits meanwhile. */
const busyMs = 2_000

/**
 * Opens the store and brings its schema up to date (D1, D2). Throws Fault `Local`, saying what is
 * wrong and the way out, for a store that is unsafe, missing, damaged, foreign, newer or locked.
 *
 * The file is only ever opened by SQLite: closing any other descriptor of it would drop this
 * process's locks on it, also those of another connection (POSIX locks belong to a process).
 */
export function openStore(options: StoreOptions, steps: readonly string[] = migrations): Store {
  const { path } = options
  refuseUrl(path)
  try {
    refuseUnsafe(path)
    if (!found(path)) {
      if (!options.create) throw missing(path)
      createStore(path, steps)
    }
    return openExisting(path, steps)
  } catch (error) {
    throw openingFault(path, error)
  }
}

const missing = (path: string): Fault =>
  new Fault('Local', `There is no store at ${path}`, {
    hints: ['`svc serve` makes it; SVC_STORE names another file.'],
  })

function openExisting(path: string, steps: readonly string[]): Store {
  if (found(path)?.size === 0) throw damaged(path, 'is empty (0 bytes): what it held is lost')
  const database = new (sqlite().DatabaseSync)(path, { timeout: busyMs })
  try {
    refuseForeign(path, database)
    refuseNewer(path, database, steps)
    database.exec('PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF')
    const journalMode = walMode(path, database)
    migrate(database, steps)
    const schemaVersion = versionOf(database)
    const noted = database.prepare('SELECT version FROM meta WHERE id = 1').get()?.version
    if (noted !== schemaVersion) {
      throw damaged(path, `is damaged: its header says schema ${schemaVersion}, its table ${String(noted)}`)
    }
    // Made meanwhile: SQLite gives them the mode of the database.
    refuseUnsafe(path)
    const close = (): void => {
      if (database.isOpen) database.close()
    }
    return { path, database, schemaVersion, journalMode, close }
  } catch (error) {
    database.close()
    throw error
  }
}

function refuseForeign(path: string, database: DatabaseSync): void {
  const id = pragma(database, 'application_id')
  if (id === applicationId) return
  throw new Fault('Local', `${path} is a SQLite database, but not a store of svc`, {
    hints: [`Its application id is ${id}, and not ${applicationId}. Name another file with SVC_STORE.`],
  })
}

function refuseNewer(path: string, database: DatabaseSync, steps: readonly string[]): void {
  const version = versionOf(database)
  if (version <= steps.length) return
  throw new Fault(
    'Local',
    `The store ${path} was written by a newer svc (schema ${version}; known here: ${steps.length})`,
    {
      hints: ['Update svc, or name another file with SVC_STORE.'],
    },
  )
}

/** WAL is a property of the file: it is only set where something else has changed it. */
function walMode(path: string, database: DatabaseSync): string {
  const mode = (sql: string): string => String(database.prepare(sql).get()?.journal_mode)
  const journal = mode('PRAGMA journal_mode') === 'wal' ? 'wal' : mode('PRAGMA journal_mode = WAL')
  if (journal === 'wal') return journal
  throw new Fault('Local', `The store ${path} cannot keep a write-ahead log there (journal mode ${journal})`, {
    hints: ['A network file system cannot: put the store on a local disk with SVC_STORE.'],
  })
}

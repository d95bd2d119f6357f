import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { SqliteAdapter, SqliteQueryCompiler } from 'kysely'
import { Fault, StoreError, StoreOutage } from '../base/errors.ts'
import { sqlite } from '../base/lazy.ts'
import { type DriverConnection, kysely, type QueryOutcome } from './dialect.ts'
import { closed, gone, maxWaitMs, type StoreLink, taken, WaitBudget } from './link.ts'
import { openStore, type StoreOptions } from './open.ts'
import { changeOf, storeFiles } from './path.ts'
import { applicationId, migrations } from './schema.ts'
import { isBusy, resultCode } from './sqlite-codes.ts'
import type { Db } from './tables.ts'

/**
 * Milliseconds that SQLite may block this process while it waits for another's write: as long as such a write usually
 * takes. After that we wait without blocking.
 */
const blockingMs = 20

/** The properties in which the databases of svc differ. */
export type SqliteForm = {
  /** The number in the header of the file. */
  readonly id: number
  readonly steps: readonly string[]
  /** With `NORMAL`, a power failure costs the last transactions; a killed process costs none. */
  readonly synchronous: 'FULL' | 'NORMAL'
}
const storeForm: SqliteForm = { id: applicationId, steps: migrations, synchronous: 'FULL' }

/**
 * Uses two connections: one writes, a transaction at a time, and one reads committed data, so that a token can be
 * checked while a transaction is open. Throws like `openStore`.
 */
export function linkSqlite(
  options: StoreOptions & { readonly patienceMs?: number | undefined },
  form: SqliteForm = storeForm,
): StoreLink {
  const store = openStore(options, form.steps, form.id)
  let reader: DatabaseSync
  try {
    reader = new (sqlite().DatabaseSync)(options.path, { readOnly: true, timeout: maxWaitMs })
    reader.exec('PRAGMA trusted_schema = OFF')
    store.database.exec(`PRAGMA busy_timeout = ${blockingMs}; PRAGMA synchronous = ${form.synchronous}`)
    // The first read opens the log.
    reader.prepare('SELECT 1 FROM meta').get()
  } catch (error) {
    store.close()
    throw runningFault(error)
  }
  const [reads, writes] = [hold(reader), hold(store.database)]
  const readDb = kysely(parts, async () => reads)
  const writeDb = kysely(parts, async () => writes)
  const files = storeFiles(options.path)
  const checkFiles = (): void => {
    const change = changeOf(files, storeFiles(options.path))
    if (change !== undefined) throw unavailable(`${change}: stop svc, which then saves what only it still holds`)
  }
  const newBudget = (): WaitBudget => new WaitBudget(options.patienceMs)
  let open = true
  let last: Promise<unknown> = Promise.resolve()
  // What is written to files that are no longer the store must not be acknowledged, also if they change during the write.
  const writeChecked = async <T>(work: (tx: Db) => Promise<T>): Promise<T> => {
    checkFiles()
    const result = await writeDb.transaction().execute(work)
    checkFiles()
    return result
  }
  const write = async <T>(work: (tx: Db) => Promise<T>, budget: WaitBudget): Promise<T> => {
    const deadline = budget.begin()
    const turn = last.then(() => retrying(deadline, () => writeChecked(work)))
    last = turn.catch(() => {})
    try {
      return await turn
    } finally {
      budget.end()
    }
  }
  const over = (budget: () => WaitBudget): StoreLink => ({
    read: async (work) => {
      if (!open) throw closed()
      try {
        return await work(readDb)
      } catch (error) {
        throw runningFault(error)
      }
    },
    write: async (work) => {
      if (!open) throw closed()
      return await write(work, budget())
    },
    checkFiles,
    files,
    // BEGIN IMMEDIATE already holds the only lock.
    lock: async () => {},
    forRequest: () => {
      const shared = newBudget()
      return over(() => shared)
    },
    close: async () => {
      open = false
      await last
      if (reader.isOpen) reader.close()
      store.close()
    },
  })
  return over(newBudget)
}

const unavailable = (why: string, cause?: unknown): StoreOutage => new StoreOutage(why, { cause, isFile: true })

const parts = {
  createAdapter: () => new SqliteAdapter(),
  createQueryCompiler: () => new SqliteQueryCompiler(),
}

const hold = (database: DatabaseSync): DriverConnection => heldBy(database, preparedOnce(database))

const heldBy = (database: DatabaseSync, prepare: (sql: string) => Prepared): DriverConnection => ({
  execute: async (sql, parameters) => execute(prepare(sql), parameters as readonly SQLInputValue[]),
  begin: async () => {
    // A transaction is left over when its rollback failed. It would keep every other one from beginning.
    if (database.isTransaction) database.exec('ROLLBACK')
    // A transaction that begins with a read and then writes fails when another process has written meanwhile.
    database.exec('BEGIN IMMEDIATE')
  },
  commit: async () => database.exec('COMMIT'),
  rollback: async () => {
    // SQLite rolls back by itself when the disk is full.
    if (database.isTransaction) database.exec('ROLLBACK')
  },
  release: () => {},
})

type Prepared = { readonly statement: StatementSync; readonly hasRows: boolean }

/** The queries of svc are fewer; only lists of values make a text of their own for each length. */
const preparedAtMost = 200

/** Prepares each text once: it takes longer than most queries do. Forgets the text that was used longest ago. */
function preparedOnce(database: DatabaseSync): (sql: string) => Prepared {
  const prepared = new Map<string, Prepared>()
  return (sql) => {
    const ready = prepared.get(sql) ?? prepare(database, sql)
    prepared.delete(sql)
    prepared.set(sql, ready)
    const [oldest] = prepared.keys()
    if (prepared.size > preparedAtMost && oldest !== undefined) prepared.delete(oldest)
    return ready
  }
}

function prepare(database: DatabaseSync, sql: string): Prepared {
  const statement = database.prepare(sql)
  return { statement, hasRows: statement.columns().length > 0 }
}

function execute({ statement, hasRows }: Prepared, parameters: readonly SQLInputValue[]): QueryOutcome {
  if (hasRows) return { rows: statement.all(...parameters), changed: undefined }
  return { rows: [], changed: Number(statement.run(...parameters).changes) }
}

async function retrying<T>(deadline: number, run: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw runningFault(error)
    }
    await wait(backOffMs(attempt))
  }
}

const maxBackOffMs = 250

/**
 * How long to wait after so many attempts at a lock that other processes hold: longer each time, because a hundred that
 * try all the time keep the processors from the one that has the lock.
 */
export const backOffMs = (attempt: number): number => 1 + Math.random() * Math.min(maxBackOffMs, 10 * 2 ** attempt)

/** Extended result codes, then primary ones. No path appears, because these faults go over HTTP (S6). */
const meanings: Readonly<Record<number, (cause: unknown) => Fault>> = {
  787: () => gone(),
  1555: () => taken(),
  2067: () => taken(),
  5: (cause) => unavailable('is locked by another process', cause),
  6: (cause) => unavailable('is locked by another process', cause),
  8: (cause) => unavailable('cannot be written', cause),
  10: (cause) => unavailable('cannot be read or written: the disk reports an error', cause),
  11: (cause) => unavailable('is damaged', cause),
  13: (cause) => unavailable('cannot be written: the disk is full', cause),
  14: (cause) => unavailable('cannot be opened', cause),
  26: (cause) => unavailable('is damaged', cause),
}

/** Translates an error of an open store. An error that is not from SQLite is a defect of ours, and stays as it is. */
function runningFault(error: unknown): unknown {
  if (error instanceof Fault) return error
  const code = resultCode(error)
  if (code === undefined) return error
  const fault = (meanings[code] ?? meanings[code & 0xff])?.(error)
  return fault ?? new StoreError(error instanceof Error ? error.message : String(error), { cause: error })
}

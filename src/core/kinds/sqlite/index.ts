import { stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { askQuery, type Column, queriesCheck, queriesProblem, queryMs, wanted } from '../../database/index.ts'
import { type CheckContext, evaluateProblem, includes, monitorKind, type Problem } from '../../engine/index.ts'
import { ProbeError } from '../../probe-error.ts'
import { refuseFile, sqliteFault } from './file.ts'
import { evaluateLook, type SqliteLook } from './judge.ts'
import {
  lookAtDisk,
  lookAtSchema,
  lookAtWal,
  mayWrite,
  openToRead,
  refuseForeign,
  selectOne,
  type Wal,
} from './look.ts'
import type { Backup, QuickCheck, RoundTrip, SqliteTask } from './probe.ts'
import { type SqliteSettings, sqliteSettings } from './settings.ts'

type Seen = { readonly see: 'look'; readonly look: SqliteLook } | Problem

/** Bytes: without WAL a check of the whole file keeps writers out, so only small files get one. */
const smallFile = 16 * 1024 ** 2

/** Reads; in Advanced also writes in a transaction that is always taken back. */
export default monitorKind({
  name: 'sqlite',
  title: 'A SQLite database can be used, and is sound',
  settings: sqliteSettings,
  checks: [
    { name: 'open', depth: 'Basic', doc: 'The file is a database that this account can open, in time' },
    { name: 'query', depth: 'Basic', doc: 'SELECT 1 is answered in time' },
    { name: 'wal', depth: 'Standard', doc: 'The write-ahead log is not too large; the own store has one' },
    { name: 'schema', depth: 'Standard', doc: 'The schema version is as expected' },
    { name: 'disk', depth: 'Standard', doc: 'The disk has space left' },
    {
      name: 'round trip',
      depth: 'Advanced',
      doc: 'A row is written, read and taken back',
    },
    { name: 'quick check', depth: 'Advanced', doc: 'No page of the file is damaged' },
    { name: 'backup', depth: 'Advanced', doc: 'The backup is not too old; left out without `backup`' },
    queriesCheck,
  ],
  validate: ({ queries }) => queriesProblem(queries, 'sqlite'),
  target: ({ path }) => ({ database: path }),
  async *observe(settings, context): AsyncGenerator<Seen> {
    const { path, ownStore } = settings
    const check = checker(context, path)
    context.step('open', path)
    const start = context.now()
    await refuseFile(path, ownStore)
    const database = await openToRead(path, context.signal)
    let wal: Wal | undefined
    try {
      if (ownStore) refuseForeign(path, database)
      yield { see: 'look', look: { see: 'open', ms: context.now() - start } }
      yield* check('query', async () => {
        const asked = context.now()
        selectOne(database)
        return { see: 'query', ms: context.now() - asked }
      })
      if (includes(context.mode, 'Standard')) {
        yield* check('wal', async () => {
          wal = await lookAtWal(path, database)
          return wal
        })
        yield* check('schema', async () => lookAtSchema(database, ownStore))
        yield* check('disk', () => lookAtDisk(path))
      }
    } finally {
      // Closed before a child opens the file: a lock of ours must not be in its way.
      database.close()
    }
    if (includes(context.mode, 'Advanced')) yield* advanced(settings, context, check, wal?.mode === 'wal')
    yield* asked(settings, context, check)
  },
  evaluate: (seen, settings) => (seen.see === 'problem' ? evaluateProblem(seen) : evaluateLook(seen.look, settings)),
})

type Checker = (name: string, look: () => Promise<SqliteLook>) => AsyncGenerator<Seen>

/** One check that cannot look does not hide the others; only the deadline ends them all. */
const checker = (context: CheckContext, path: string): Checker =>
  async function* (name, look) {
    context.step(name, path)
    const since = context.now()
    try {
      yield { see: 'look', look: await look() }
    } catch (error) {
      if (context.signal.aborted) throw error
      const cause = sqliteFault(error, path)
      yield { see: 'problem', check: name, address: path, cause, afterMs: context.now() - since }
    }
  }

async function* advanced(
  settings: SqliteSettings,
  context: CheckContext,
  check: Checker,
  isWal: boolean,
): AsyncGenerator<Seen> {
  const { path, ownStore, backup } = settings
  const ask = (task: SqliteTask): Promise<unknown> => context.inChild('sqlite', task)
  const busyMs = (): number => Math.min(2_000, Math.floor(context.msLeft() / 4))
  yield* check('round trip', async () => {
    if (!ownStore && !(await mayWrite(path))) return { see: 'round trip left out' }
    return (await ask({ task: 'round trip', path, busyMs: busyMs() })) as RoundTrip
  })
  yield* check('quick check', async () => {
    const { size } = await stat(path)
    if (!isWal && size > smallFile) return { see: 'quick check left out', bytes: size }
    return (await ask({ task: 'quick check', path, busyMs: busyMs() })) as QuickCheck
  })
  if (backup === undefined) return
  yield* check('backup', async () => {
    if (!isAbsolute(backup)) throw new ProbeError('internal', 'the setting backup must be a whole path')
    const found = (await ask({ task: 'backup', path: backup })) as Backup
    return { ...found, ageMs: context.date().getTime() - found.modifiedAt }
  })
}

async function* asked({ path, queries }: SqliteSettings, context: CheckContext, check: Checker): AsyncGenerator<Seen> {
  const busyMs = 500
  const read = async (sql: string): Promise<Column> => {
    const task: SqliteTask = { task: 'read', path, sql, busyMs, ms: queryMs(context.msLeft()) }
    return (await context.inChild('sqlite', task)) as Column
  }
  for (const query of wanted(queries, context.mode)) yield* check('queries', () => askQuery(query, context, read))
}

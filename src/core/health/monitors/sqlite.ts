import { stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import type { Column } from '../db/column.ts'
import { judgeProblem, type Problem } from '../db/problem.ts'
import { askQuery, queryMs, wanted } from '../db/query.ts'
import { queriesCheck, queriesProblem } from '../db/query-settings.ts'
import { refuseFile, sqliteFault } from '../db/sqlite-file.ts'
import { judgeLook, type SqliteLook } from '../db/sqlite-judge.ts'
import {
  lookAtDisk,
  lookAtSchema,
  lookAtWal,
  mayWrite,
  openToRead,
  refuseForeign,
  selectOne,
  type Wal,
} from '../db/sqlite-look.ts'
import type { Backup, QuickCheck, RoundTrip, SqliteTask } from '../db/sqlite-probe.ts'
import { type SqliteSettings, sqliteSettings } from '../db/sqlite-settings.ts'
import { includes } from '../engine.ts'
import { monitorKind, ProbeError, type World } from '../monitor.ts'

type Seen = { readonly see: 'look'; readonly look: SqliteLook } | Problem

/** Bytes: without WAL a check of the whole file keeps writers out, so only small files get one. */
const smallFile = 16 * 1024 ** 2

/** Reads; in Advanced also writes in a transaction that is always taken back. */
export default monitorKind({
  kind: 'sqlite',
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
  contradiction: ({ queries }) => queriesProblem(queries, 'sqlite'),
  target: ({ path }) => ({ database: path }),
  async *observe(settings, world): AsyncGenerator<Seen> {
    const { path, ownStore } = settings
    const check = checker(world, path)
    world.step('open', path)
    const start = world.now()
    await refuseFile(path, ownStore)
    const database = await openToRead(path, world.signal)
    let wal: Wal | undefined
    try {
      if (ownStore) refuseForeign(path, database)
      yield { see: 'look', look: { see: 'open', ms: world.now() - start } }
      yield* check('query', async () => {
        const asked = world.now()
        selectOne(database)
        return { see: 'query', ms: world.now() - asked }
      })
      if (includes(world.mode, 'Standard')) {
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
    if (includes(world.mode, 'Advanced')) yield* advanced(settings, world, check, wal?.mode === 'wal')
    yield* asked(settings, world, check)
  },
  judge: (seen, settings) => (seen.see === 'problem' ? judgeProblem(seen) : judgeLook(seen.look, settings)),
})

type Checker = (name: string, look: () => Promise<SqliteLook>) => AsyncGenerator<Seen>

/** One check that cannot look does not hide the others; only the deadline ends them all. */
const checker = (world: World, path: string): Checker =>
  async function* (name, look) {
    world.step(name, path)
    const since = world.now()
    try {
      yield { see: 'look', look: await look() }
    } catch (error) {
      if (world.signal.aborted) throw error
      const cause = sqliteFault(error, path)
      yield { see: 'problem', check: name, address: path, cause, afterMs: world.now() - since }
    }
  }

async function* advanced(settings: SqliteSettings, world: World, check: Checker, isWal: boolean): AsyncGenerator<Seen> {
  const { path, ownStore, backup } = settings
  const ask = (task: SqliteTask): Promise<unknown> => world.inChild('sqlite', task)
  const busyMs = (): number => Math.min(2_000, Math.floor(world.msLeft() / 4))
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
    return { ...found, ageMs: world.date().getTime() - found.modifiedAt }
  })
}

async function* asked({ path, queries }: SqliteSettings, world: World, check: Checker): AsyncGenerator<Seen> {
  const busyMs = 500
  const read = async (sql: string): Promise<Column> => {
    const task: SqliteTask = { task: 'read', path, sql, busyMs, ms: queryMs(world.msLeft()) }
    return (await world.inChild('sqlite', task)) as Column
  }
  for (const query of wanted(queries, world.mode)) yield* check('queries', () => askQuery(query, world, read))
}

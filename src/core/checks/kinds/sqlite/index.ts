import { dirname } from 'node:path'
import type { ConfiguredFiles, ListedFile } from '../../../base/files/index.ts'
import { showBytes, showDuration } from '../../../base/format.ts'
import { sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { SettingsSpec, Threshold } from '../../../base/settings/index.ts'
import { isMissing } from '../../../base/system/files.ts'
import { limitsOn } from '../../assert/limit-check.ts'
import {
  askQuery,
  type Column,
  dueQueries,
  evaluateAsked,
  itemOf,
  type QueryAnswer,
  queriesProblem,
  queriesSetting,
  queryMs,
} from '../../database/index.ts'
import {
  atMost,
  type CheckContext,
  checksOn,
  fail,
  latencySetting,
  machineKind,
  notChecked,
  ok,
} from '../../engine/index.ts'
import { closeFile, explained, openFile, type SqliteFile, valuesOf } from './file.ts'
import type { QuickCheck, RoundTrip, SqliteTask } from './probe.ts'

/** How svc compares the schema of its own store. */
type OwnSchemaCheck = {
  /** Returns all objects of the database as JSON. */
  readonly query: string
  /** The objects that change what svc reads or writes, and what removes them. Undefined: none, or a newer schema. */
  readonly altering: (
    objects: string,
    version: number,
  ) => { readonly names: string; readonly next: readonly string[] } | undefined
}
declare module '../../engine/index.ts' {
  interface Services {
    readonly ownSchema: () => Promise<OwnSchemaCheck>
  }
}

const hour = 3_600_000
const check = checksOn<SqliteFile>()
const limitCheck = limitsOn<SqliteFile>()

export const ownStoreSetting = {
  type: 'flag',
  default: false,
  doc: "Check the file as svc's own store",
} as const satisfies SettingsSpec[string]

const latency = latencySetting(
  { warn: 1_000, limit: 3_000 },
  'Maximum time to open the file, to answer SELECT 1, and to write and roll back, each',
)

const evaluateMs = <const Name extends string>(name: Name, what: string, ms: number, threshold: Threshold) =>
  atMost({ check: name, what, value: ms, unit: 'duration', threshold })

export const open = check({
  depth: 'Basic',
  results: { open: 'The file is a database that this account can open in time' },
  settings: { latency },
  observe: ({ openMs }) => Promise.resolve({ ms: openMs }),
  evaluate: ({ ms }, settings) => evaluateMs('open', 'opened in', ms, settings.latency),
})

export const query = check({
  depth: 'Basic',
  results: { query: 'The database answers SELECT 1 in time' },
  settings: { latency },
  observe: (file, _, context) =>
    explained(file, async () => {
      const { values, ms } = await valuesOf(file, ['SELECT 1'], context)
      if (values[0] !== 1) throw new ProbeError('data', 'SELECT 1 returned an unexpected value')
      return { ms }
    }),
  evaluate: ({ ms }, settings) => evaluateMs('query', 'SELECT 1 answered in', ms, settings.latency),
})

/** The size of the write-ahead log. Without the file, there is nothing in it. Throws the error of the file system. */
async function walBytes(path: string, files: ConfiguredFiles): Promise<number> {
  try {
    return (await files('status', { path: `${path}-wal` })).bytes
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return 0
    throw error
  }
}

export const wal = limitCheck({
  depth: 'Standard',
  check: 'wal',
  proves: "The write-ahead log is not too large; svc's own store must have one",
  setting: 'walSize',
  unit: 'bytes',
  default: { warn: 64 * 1024 ** 2 },
  doc: 'Maximum size of the write-ahead log; a long-running reader prevents its checkpoint',
  settings: { ownStore: ownStoreSetting },
  observe: (file, _, context) =>
    explained(file, async () => {
      const mode = String((await valuesOf(file, ['PRAGMA journal_mode'], context)).values[0])
      file.journalMode = mode
      return { mode, bytes: mode === 'wal' ? await walBytes(file.path, context.files) : 0 }
    }),
  evaluate: ({ mode, bytes }, compare, { ownStore }) => {
    if (mode === 'wal') {
      return compare({ what: 'write-ahead log', value: bytes })
    }
    if (!ownStore) return ok('wal', `journal mode ${mode}: no write-ahead log`)
    return fail('wal', 'data', `journal mode ${mode}, expected wal`, {
      details: ['next: `svc serve` sets it when it opens the store'],
    })
  },
})

export const schema = check({
  depth: 'Standard',
  results: { schema: "The database has the expected schema version, and svc's own store no trigger or view of others" },
  settings: {
    ownStore: ownStoreSetting,
    schemaVersion: {
      type: 'integer',
      min: 0,
      doc: 'Expected schema version (user_version); a difference is deployment-related',
    },
  },
  observe: (file, { ownStore }, context) =>
    explained(file, async () => {
      const own = ownStore ? await context.services.ownSchema?.() : undefined
      const ofStore = ownStore ? ['SELECT version FROM meta WHERE id = 1', ...(own ? [own.query] : [])] : []
      const [version, table, objects] = (await valuesOf(file, ['PRAGMA user_version', ...ofStore], context)).values
      return {
        version: Number(version),
        // The version in the store's own table; undefined for any other database.
        table: ownStore ? Number(table ?? Number.NaN) : undefined,
        altering: own?.altering(String(objects), Number(version)),
      }
    }),
  evaluate: ({ version, table, altering }, { schemaVersion }) => {
    const facts = { schema: String(version) }
    if (altering) {
      return fail('schema', 'data', `the store has what svc did not make: ${altering.names}`, {
        details: altering.next.map((next) => `next: ${next}`),
      })
    }
    if (table !== undefined && table !== version) {
      const there = Number.isNaN(table) ? 'none' : table
      return fail('schema', 'data', `schema ${version} in the header, but ${there} in the table: the store is damaged`)
    }
    if (schemaVersion === undefined || version === schemaVersion) return ok('schema', `schema ${version}`, { facts })
    return fail('schema', 'data', `schema ${version}, expected ${schemaVersion}`, { deployment: true, facts })
  },
})

export const disk = limitCheck({
  depth: 'Standard',
  check: 'disk',
  proves: 'The disk has enough free space',
  setting: 'diskFree',
  unit: 'percent',
  default: { warn: 20, limit: 10 },
  doc: 'Minimum free disk space, in percent',
  bound: 'atLeast',
  observe: (file, _, { files }) =>
    explained(file, async () => {
      const { available, blocks, blockBytes } = await files('space', { path: dirname(file.path) })
      return { freeBytes: available * blockBytes, percent: blocks > 0 ? (available / blocks) * 100 : undefined }
    }),
  evaluate: ({ freeBytes, percent }, compare) => {
    if (percent === undefined) return notChecked('disk', 'missing', 'the file system does not report its size')
    return compare({ what: `${showBytes(freeBytes)} of disk space free:`, value: percent })
  },
})

/**
 * Runs a task in a child process, because it could not be stopped in this one. First closes the file, so that our own
 * lock does not block the child.
 */
function inChild(file: SqliteFile, task: SqliteTask, context: CheckContext): Promise<unknown> {
  closeFile(file)
  return context.inChild('sqlite', task)
}

/** Maximum milliseconds that a child waits for a lock. */
const busyMs = (context: CheckContext): number => Math.min(2_000, Math.floor(context.msLeft() / 4))

export const roundTrip = check({
  depth: 'Advanced',
  results: {
    'round trip': 'A row can be written, read and rolled back; omitted where the file is read-only for this account',
  },
  settings: { latency, ownStore: ownStoreSetting },
  observe: (file, { ownStore }, context): Promise<RoundTrip | undefined> =>
    explained(file, async () => {
      const { path } = file
      if (!ownStore && !(await mayWrite(path, context.files))) return undefined
      return (await inChild(file, { task: 'round trip', path, busyMs: busyMs(context) }, context)) as RoundTrip
    }),
  evaluate: (trip, settings) =>
    trip ? evaluateMs('round trip', 'row written, read and rolled back in', trip.ms, settings.latency) : [],
})

/** False if this account may only read. Throws ProbeError for a disk that accepts no writes. */
async function mayWrite(path: string, files: ConfiguredFiles): Promise<boolean> {
  const answer = await files('mayWrite', { path })
  if (answer === 'read-only file system') {
    throw new ProbeError('data', `${path} cannot be written: its file system is read-only`)
  }
  return answer === 'yes'
}

/** Maximum bytes of a database without WAL to check: there, a check of the whole file blocks writers. */
const maxCheckedBytes = 16 * 1024 ** 2

/** Maximum bytes of a database whose indexes are compared with their tables: 81 MiB took 5 s. */
const maxComparedBytes = 64 * 1024 ** 2

export const quickCheck = check({
  depth: 'Advanced',
  results: {
    'quick check':
      'The file has no damaged page and, up to 64 MiB, no index that differs from its table; omitted above 16 MiB without WAL, where the check would block writers',
  },
  observe: (file, _, context): Promise<QuickCheck | undefined> =>
    explained(file, async () => {
      const { path } = file
      const { bytes } = await context.files('status', { path })
      if (file.journalMode !== 'wal' && bytes > maxCheckedBytes) return undefined
      const comparesIndexes = bytes <= maxComparedBytes
      const task = { task: 'quick check', path, busyMs: busyMs(context), comparesIndexes } as const
      return (await inChild(file, task, context)) as QuickCheck
    }),
  evaluate: (observation) => {
    if (!observation) return []
    const { problems, ms } = observation
    const [first, ...others] = problems.map((problem) => sanitize(problem, 200))
    if (first === undefined) return ok('quick check', `no damage found in ${showDuration(ms)}`)
    return fail('quick check', 'data', `the database is damaged: ${first}`, {
      details: [...others, nextStep(problems)],
    })
  },
})

/** An index can be made again from its table. */
const nextStep = (problems: readonly string[]): string =>
  problems.every((problem) => /\bindex\b/.test(problem))
    ? 'next: REINDEX makes the indexes again'
    : 'next: restore it from a backup'

export const backup = limitCheck({
  depth: 'Advanced',
  check: 'backup',
  proves: 'The backup is not too old; omitted without `backup`',
  setting: 'backupAge',
  unit: 'duration',
  default: { warn: 48 * hour, limit: 72 * hour },
  doc: 'Maximum age of the backup; ignored without `backup`',
  settings: {
    backup: {
      type: 'text',
      observed: true,
      absolute: true,
      doc: 'Absolute path of a backup file, or of a folder whose newest file is the backup',
    },
  },
  applies: (_, settings) => settings.backup !== undefined,
  observe: (file, { backup: path = '' }, context) =>
    explained(file, async () => {
      const { name, bytes, modified } = await newestBackup(path, context.files)
      return { name, bytes, ageMs: context.date().getTime() - modified }
    }),
  evaluate: ({ name: file, bytes, ageMs }, compare) => {
    const name = sanitize(file, 128)
    if (bytes === 0) return fail('backup', 'data', `newest backup ${name} is empty (0 bytes)`)
    return compare({ what: `newest backup ${name} (${showBytes(bytes)}): age`, value: Math.max(0, ageMs) })
  },
})

/** Maximum number of files to inspect; a backup folder has few. */
const maxFiles = 100_000

/** A backup: the file itself, or the newest file of a folder. Throws ProbeError `data` if there is none. */
export async function newestBackup(path: string, files: ConfiguredFiles): Promise<ListedFile> {
  const { isFile, isFolder, bytes, modified } = await files('status', { path }).catch((error: unknown) => {
    throw isMissing(error) ? new ProbeError('data', `no backup: ${path} does not exist`) : error
  })
  if (isFile) return { name: path, bytes, modified }
  if (!isFolder) throw new ProbeError('data', `no backup: ${path} is neither a file nor a folder`)
  const { newest, more } = await files('list', { path, ending: '', hidden: true, maxFiles })
  // The newest file may be among those that are not inspected.
  if (more) throw new ProbeError('data', `${path} contains more than ${maxFiles} files`)
  if (!newest) throw new ProbeError('data', `no backup: ${path} contains no files`)
  return newest
}

/** Maximum milliseconds that an operator's query waits for a lock. */
const queryBusyMs = 500

export const queries = check({
  depth: 'Standard',
  results: { queries: 'Each of `queries` returns what it should; one result per query' },
  settings: { queries: queriesSetting },
  when: ['queries'],
  emptyWhere: 'all queries have `depth: Advanced`, in a Standard run',
  items: ({ queries }, mode) => dueQueries(queries, mode).map(itemOf),
  async *observe(file, settings, context): AsyncGenerator<QueryAnswer> {
    const read = async (sql: string): Promise<Column> => {
      const ms = queryMs(context.msLeft())
      return (await inChild(file, { task: 'read', path: file.path, sql, busyMs: queryBusyMs, ms }, context)) as Column
    }
    for (const one of dueQueries(settings.queries, context.mode)) {
      context.step('queries', file.path)
      yield await explained(file, () => askQuery(one, context, read))
    }
  },
  evaluate: (answer) => evaluateAsked(answer),
})

/** Only reads; in Advanced, it also writes in a transaction that is always rolled back. */
export default machineKind({
  name: 'sqlite',
  title: 'A SQLite database is usable and undamaged',
  cost: { machine: 'It opens a file.' },
  settings: {
    path: {
      type: 'text',
      observed: true,
      required: true,
      absolute: true,
      doc: 'Absolute path of the database file',
    },
    ownStore: ownStoreSetting,
  },
  target: ({ path }) => ({ database: path }),
  validate: (settings) => queriesProblem(settings.queries, 'sqlite'),
  open: openFile,
  close: closeFile,
  checks: [open, query, wal, schema, disk, roundTrip, quickCheck, backup, queries],
})

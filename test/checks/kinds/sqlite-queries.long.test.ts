import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import sqlite from '../../../src/core/checks/kinds/sqlite/index.ts'
import { type ReadTask, readOnly } from '../../../src/core/checks/kinds/sqlite/probe.ts'
import { runInChild } from '../../support/engine/cached-child.ts'
import { type RunKindOptions, runKind } from '../../support/engine/run-kind.ts'
import { ownChildren as children } from '../../support/suite/processes.ts'
import { sqlSuite } from './sql/suite.ts'

type Settings = Partial<Values<typeof sqlite.settings>>
type Mode = 'Basic' | 'Standard' | 'Advanced'

const forever = 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n'
const counting = (n: number): string => `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ${n})`
let jobsFolder = ''
let jobs = ''
const runOnJobs = (settings: Settings = {}, mode: Mode = 'Basic', options: RunKindOptions = {}) =>
  runKind(sqlite, { path: jobs, diskFree: {}, ...settings }, mode, { inChild: runInChild, ...options })

sqlSuite(
  {
    name: 'SQLite',
    start: async () => {
      jobsFolder = mkdtempSync(join(tmpdir(), 'svc-queries-'))
      jobs = join(jobsFolder, 'jobs.db')
      const database = new DatabaseSync(jobs)
      database.exec(`CREATE TABLE jobs
          (id INTEGER, state TEXT, created_at TEXT, naive TEXT, unix INTEGER, large INTEGER, photo BLOB);
        INSERT INTO jobs VALUES (1, 'waiting', datetime('now', '-1 hour'), datetime('now', '-2 hours'),
            unixepoch('now', '-2 hours'), 9007199254740993, x'6162'),
          (2, 'waiting', datetime('now'), NULL, unixepoch('now'), 1, NULL),
          (3, 'failed', NULL, NULL, NULL, NULL, NULL)`)
      database.close()
    },
    stop: async () => rmSync(jobsFolder, { recursive: true, force: true }),
    run: runOnJobs,
    runWell: runOnJobs,
    checks: {
      Basic: ['open', 'query'],
      Standard: ['open', 'query', 'wal', 'schema', 'disk'],
      Advanced: ['open', 'query', 'wal', 'schema', 'disk', 'round trip', 'quick check'],
    },
    messages: { mode: 'Basic', of: { open: /^opened in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/ } },
    open: children,
    log: () => '',
    network: { absent: 'SQLite is a file: there is no server' },
    queries: {
      judged: [
        [
          { name: 'unix', sql: 'SELECT unix FROM jobs;  -- seconds', age: { warn: 60_000 } },
          'warning',
          'unix: oldest 2 h (warn 1 min)',
        ],
        [
          { name: 'large', sql: 'SELECT max(large), 5 FROM jobs', expect: '9007199254740993' },
          'ok',
          'large: is "9007199254740993"',
        ],
        [{ name: 'photo', sql: 'SELECT photo FROM jobs', expect: 'ab' }, 'ok', 'photo: is "ab"'],
      ],
      fails: [
        {
          query: { name: 'gone', sql: 'SELECT 1 FROM gone', leastRows: { limit: 0 } },
          message: 'gone: the query failed: no such table: gone',
          fault: 'data',
        },
      ],
      writes: {
        sql: [
          [
            'two statements',
            // svc itself refuses a second statement that it can see.
            'SELECT 1; DELETE FROM jobs; "',
            'jobs: the query failed: sql contains more than one statement',
          ],
          [
            'a WITH that deletes',
            'WITH one AS (SELECT 1) DELETE FROM jobs',
            /^jobs: the query was rejected because it writes: /,
          ],
        ],
        state: () => readFileSync(jobs),
      },
      slow: {
        sql: forever,
        message: 'slow: the query was cancelled because it took too long',
        next: /^next: 1 \(fail 1\)$/,
        timeoutMs: 8_000,
      },
      wide: (rows) => `${counting(rows)} SELECT printf('%.*c', 1000, x) FROM n`,
      powers: { absent: 'A file has no accounts' },
    },
  },
  ({ ask }) => {
    const task = (sql: string, ms = 30_000): ReadTask => ({ task: 'read', path: jobs, sql, busyMs: 0, ms })
    describe('queries', () => {
      test.each(['INSERT INTO jobs (id) VALUES (9)', 'CREATE TABLE made (id)', 'PRAGMA user_version = 9'])(
        'SQLite: not even a statement that svc would not send can write: %s',
        async (sql) => {
          const before = readFileSync(jobs)
          await readOnly(task(sql)).catch(() => {})
          expect(readFileSync(jobs).equals(before)).toBe(true)
          if (!sql.startsWith('PRAGMA'))
            await expect(readOnly(task(sql))).rejects.toThrow('the query was rejected because it writes')
        },
      )
      test('SQLite: a query that runs when the run is called off is killed', async () => {
        const control = new AbortController()
        const reading = runInChild('sqlite', task(forever), control.signal).catch((error: unknown) => error)
        expect(children()).toHaveLength(1)
        control.abort(new Error('called off'))
        expect(await reading).toMatchObject({ message: 'called off' })
        expect(children()).toEqual([])
      })

      test('SQLite: of a million rows a thousand are read, and wide values are cut', async () => {
        const million = `${counting(1_000_000)} SELECT x FROM n`
        expect(await readOnly(task(million))).toMatchObject({ rows: 1_000, more: true })
        const wide = await runInChild(
          'sqlite',
          task("SELECT printf('%.*c', 5000000, 'x')"),
          new AbortController().signal,
        )
        expect(wide).toEqual({ cells: ['x'.repeat(1_024)], rows: 1, retained: 1, more: false, cut: true })
        const result = await ask([{ sql: `${million} ORDER BY x`, atMost: { limit: 5_000 } }])
        expect(result.map(({ status, message }) => [status, message])).toEqual([
          ['ok', 'jobs: 1000 (fail 5000)'],
          ['warning', 'jobs: only the first 1000 rows were evaluated; there are more'],
        ])
      })

      test('SQLite: a value too large to be judged is named, and does not fill the memory', async () => {
        const most = 8 * 1024 ** 2
        const wide = (n: number, bytes: number) => task(`SELECT ${Array(n).fill(`zeroblob(${bytes})`).join()}`)
        expect(await readOnly(wide(1, most))).toMatchObject({ rows: 1, cut: true })
        await expect(readOnly(wide(1, most + 1))).rejects.toThrow(
          'a value is larger than 8 MiB: read only a part with substr(…), or its length(…)',
        )
        // All columns of a row come at once.
        expect(await readOnly(wide(64, most / 8))).toMatchObject({ rows: 1 })
        await expect(readOnly(wide(64, most / 8 + 1))).rejects.toThrow('larger than 1 MiB')
        const other = join(jobsFolder, 'large.db')
        const database = new DatabaseSync(other)
        database.exec('CREATE TABLE files (id INTEGER, body BLOB); INSERT INTO files VALUES (1, zeroblob(600000000))')
        database.close()
        const read = (sql: string) => runInChild('sqlite', { ...task(sql), path: other }, new AbortController().signal)
        // What lies beside a large value can be read, and so can its size.
        expect(await read('SELECT id FROM files')).toMatchObject({ cells: ['1'] })
        expect(await read('SELECT length(body) FROM files')).toMatchObject({ cells: ['600000000'] })
        await expect(read('SELECT body FROM files')).rejects.toMatchObject({ fault: 'data' })
        rmSync(other)
      })
    })
  },
)

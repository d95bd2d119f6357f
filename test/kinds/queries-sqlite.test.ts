// @module-tag long
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Query } from '../../src/core/database/index.ts'
import type { Result } from '../../src/core/engine/index.ts'
import sqlite from '../../src/core/kinds/sqlite/index.ts'
import { type ReadTask, readOnly } from '../../src/core/kinds/sqlite/probe.ts'
import { runInChild } from '../support/cached-child.ts'
import { ownChildren } from '../support/processes.ts'
import { type RunKindOptions, runKind } from '../support/run-kind.ts'

type PartialQuery = Partial<Query> & { readonly sql: string }
const forever = 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n'

describe('queries of sqlite', () => {
  let folder = ''
  let path = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-queries-'))
    path = join(folder, 'jobs.db')
    const database = new DatabaseSync(path)
    database.exec(`CREATE TABLE jobs (id INTEGER, state TEXT, created_at TEXT, unix INTEGER, large INTEGER, photo BLOB);
      INSERT INTO jobs VALUES (1, 'waiting', datetime('now', '-1 hour'), unixepoch('now', '-2 hours'), 9007199254740993, x'6162'),
        (2, 'waiting', datetime('now'), unixepoch('now'), 1, NULL), (3, 'failed', NULL, NULL, NULL, NULL)`)
    database.close()
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const ask = async (
    queries: readonly PartialQuery[],
    mode: 'Basic' | 'Standard' | 'Advanced' = 'Standard',
    options: RunKindOptions = {},
  ): Promise<readonly Result[]> => {
    const namedQueries = queries.map((query) => ({ name: 'jobs', depth: 'Standard' as const, ...query }))
    const settings = { path, diskFree: {}, queries: namedQueries }
    const results = await runKind(sqlite, settings, mode, { inChild: runInChild, ...options })
    expect(results.filter(({ check, status }) => check !== 'queries' && status !== 'ok')).toEqual([])
    return results.filter(({ check }) => check === 'queries')
  }
  const task = (sql: string, ms = 30_000): ReadTask => ({ task: 'read', path, sql, busyMs: 0, ms })

  test('the numbers, dates and texts of a job table are evaluated, and nothing is written', async () => {
    const before = readFileSync(path)
    const results = await ask([
      { name: 'queue', sql: "SELECT count(*) FROM jobs WHERE state = 'waiting'", atMost: { limit: 2 } },
      { name: 'oldest', sql: "SELECT min(created_at) FROM jobs WHERE state = 'waiting'", age: { limit: 60_000 } },
      { name: 'unix', sql: 'SELECT unix FROM jobs;  -- seconds', age: { warn: 60_000 } },
      { name: 'dead', sql: "SELECT max(created_at) FROM jobs WHERE state = 'dead'", age: { limit: 1 } },
      { name: 'stuck', sql: "SELECT id FROM jobs WHERE state = 'stuck'", rows: { limit: 0 } },
      { name: 'large', sql: 'SELECT max(large), 5 FROM jobs', expect: '9007199254740993' },
      { name: 'photo', sql: 'SELECT photo FROM jobs', expect: 'ab' },
      { name: 'text', sql: "SELECT 'many'", atMost: { limit: 1 } },
    ])
    expect(results.map(({ message }) => message)).toEqual([
      'queue: 2 (limit 2)',
      'oldest: oldest 1 h (limit 1 min)',
      'unix: oldest 2 h (warns above 1 min)',
      'dead: none (NULL)',
      'stuck: rows 0 (limit 0)',
      'large: is "9007199254740993"',
      'photo: is "ab"',
      'text: "many" is not a number',
    ])
    expect(readFileSync(path).equals(before)).toBe(true)
  })
  test('a query of Advanced does not run in Standard, and none in Basic', async () => {
    const both: readonly PartialQuery[] = [
      { name: 'a', sql: 'SELECT 1', atMost: { limit: 1 } },
      { name: 'b', sql: 'SELECT 1', atMost: { limit: 1 }, depth: 'Advanced' },
    ]
    const counts = async (mode: 'Basic' | 'Standard' | 'Advanced') => (await ask(both, mode)).length
    expect([await counts('Basic'), await counts('Standard'), await counts('Advanced')]).toEqual([0, 1, 2])
  })
  test.each([
    ['two statements', 'SELECT 1; DELETE FROM jobs', 'the query failed: sql contains more than one statement'],
    ['a WITH that deletes', 'WITH one AS (SELECT 1) DELETE FROM jobs', 'the query was rejected because it writes: '],
    ['a missing table', 'SELECT 1 FROM gone', 'the query failed: no such table: gone'],
  ])('a query that fails is one result, and does not hide others: %s', async (_, sql, message) => {
    const before = readFileSync(path)
    const results = await ask([
      { sql, leastRows: { limit: 0 } },
      { sql: 'SELECT 1', atMost: { limit: 1 } },
    ])
    expect(results.map(({ status }) => status)).toEqual(['failed', 'ok'])
    expect(results[0]?.fault).toBe('data')
    expect(results[0]?.message).toContain(`jobs: ${message}`)
    expect(readFileSync(path).equals(before)).toBe(true)
  })
  test.each(['INSERT INTO jobs (id) VALUES (9)', 'CREATE TABLE made (id)', 'PRAGMA user_version = 9'])(
    'even a statement that svc would not send cannot write: %s',
    async (sql) => {
      const before = readFileSync(path)
      await readOnly(task(sql)).catch(() => {})
      expect(readFileSync(path).equals(before)).toBe(true)
      if (!sql.startsWith('PRAGMA'))
        await expect(readOnly(task(sql))).rejects.toThrow('the query was rejected because it writes')
    },
  )
  test('a query that takes too long is ended on its own, and does not hide others', async () => {
    const results = await ask(
      [
        { name: 'slow', sql: forever, atMost: { limit: 1 } },
        { name: 'next', sql: 'SELECT 1', atMost: { limit: 1 } },
      ],
      'Standard',
      { timeoutMs: 8_000 },
    )
    expect(results.map(({ message }) => message)).toEqual([
      'slow: the query was cancelled because it took too long',
      'next: 1 (limit 1)',
    ])
    expect(results[0]?.fault).toBe('timeout')
    expect(ownChildren()).toEqual([])
  }, 30_000)
  test('a query is killed when its run is cancelled', async () => {
    const control = new AbortController()
    const reading = runInChild('sqlite', task(forever), control.signal).catch((error: unknown) => error)
    expect(ownChildren()).toHaveLength(1)
    control.abort(new Error('called off'))
    expect(await reading).toMatchObject({ message: 'called off' })
    expect(ownChildren()).toEqual([])
  })
  test('of a million rows a thousand are read, and wide values are truncated', async () => {
    const million = `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000000) SELECT x FROM n`
    expect(await readOnly(task(million))).toMatchObject({ rows: 1_000, more: true })
    const wide = await runInChild('sqlite', task("SELECT printf('%.*c', 5000000, 'x')"), new AbortController().signal)
    expect(wide).toEqual({ cells: ['x'.repeat(1_024)], rows: 1, retained: 1, more: false, cut: true })
    const results = await ask([{ sql: `${million} ORDER BY x`, atMost: { limit: 5_000 } }])
    expect(results.map(({ status, message }) => [status, message])).toEqual([
      ['ok', 'jobs: 1000 (limit 5000)'],
      ['warning', 'jobs: only the first 1000 rows were evaluated; there are more'],
    ])
  })
  test('rows are counted beyond the text that is stored', async () => {
    const wide = (n: number) =>
      `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ${n}) SELECT printf('%.*c', 1000, x) FROM n`
    const results = await ask([
      { sql: wide(1_000), rows: { limit: 600 } },
      { sql: wide(600), rows: { limit: 600 } },
      { sql: wide(1_000), leastRows: { limit: 900 } },
      { sql: wide(899), leastRows: { limit: 900 } },
    ])
    expect(results.map(({ status, message }) => [status, message])).toEqual([
      ['failed', 'jobs: rows 1000 (limit 600)'],
      ['ok', 'jobs: rows 600 (limit 600)'],
      ['ok', 'jobs: rows 1000 (at least 900)'],
      ['failed', 'jobs: rows 899 (at least 900)'],
    ])
  })
  test('a value that is too large to evaluate is named, and does not fill the memory', async () => {
    const most = 8 * 1024 ** 2
    const wide = (n: number, bytes: number) => task(`SELECT ${Array(n).fill(`zeroblob(${bytes})`).join()}`)
    expect(await readOnly(wide(1, most))).toMatchObject({ rows: 1, cut: true })
    await expect(readOnly(wide(1, most + 1))).rejects.toThrow(
      'a value is larger than 8 MiB: read only a part with substr(…), or its length(…)',
    )
    // All columns of a row come at once.
    expect(await readOnly(wide(64, most / 8))).toMatchObject({ rows: 1 })
    await expect(readOnly(wide(64, most / 8 + 1))).rejects.toThrow('larger than 1 MiB')
    const other = join(folder, 'large.db')
    const database = new DatabaseSync(other)
    database.exec('CREATE TABLE files (id INTEGER, body BLOB); INSERT INTO files VALUES (1, zeroblob(600000000))')
    database.close()
    const rowsOf = (sql: string) => runInChild('sqlite', { ...task(sql), path: other }, new AbortController().signal)
    // What lies beside a large value can be read, and so can its size.
    expect(await rowsOf('SELECT id FROM files')).toMatchObject({ cells: ['1'] })
    expect(await rowsOf('SELECT length(body) FROM files')).toMatchObject({ cells: ['600000000'] })
    await expect(rowsOf('SELECT body FROM files')).rejects.toMatchObject({ fault: 'data' })
    rmSync(other)
  })
})

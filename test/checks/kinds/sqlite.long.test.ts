import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { withoutSqliteWarning } from '../../../src/core/base/lazy.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { storeApplicationId } from '../../../src/core/checks/kinds/sqlite/file.ts'
import sqlite, {
  backup as backupCheck,
  disk,
  newestBackup,
  open as openCheck,
  query,
  roundTrip,
  wal,
} from '../../../src/core/checks/kinds/sqlite/index.ts'
import { applicationId, openStore } from '../../../src/core/store/index.ts'
import { migrations } from '../../../src/core/store/schema.ts'
import { files } from '../../support/engine/files.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { checked, evaluated, type RunKindOptions } from '../../support/engine/run-kind.ts'
import { bad, eachInFolder, folder, type Mode, path, plain, posix, run, type Settings, store } from './sqlite-files.ts'

eachInFolder()

const own = (settings: Settings = {}, mode: Mode = 'Basic', options: RunKindOptions = {}): Promise<readonly Result[]> =>
  run({ ownStore: true, ...settings }, mode, options)
/** Another process that holds the file as `sql` says, until it is killed. */
async function holding(sql: string): Promise<() => Promise<void>> {
  const program = `const { DatabaseSync } = require('node:sqlite')
    const d = new DatabaseSync(${JSON.stringify(path)}); d.exec(${JSON.stringify(sql)}); console.log('held')
    setInterval(() => d.isOpen, 1000)`
  const child = spawn(process.execPath, ['--no-warnings', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return async () => {
    child.kill('SIGKILL')
    await once(child, 'close')
  }
}

describe("svc's own store", () => {
  test('SQLite: the store of svc is well in every mode, and nothing is written to it', async () => {
    store()
    const names = async (mode: Mode): Promise<string[]> => {
      const results = await own({}, mode)
      expect(bad(results)).toEqual([])
      return results.map((result) => result.check)
    }
    const all = sqlite.checks.map((check) => check.name)
    const before = readFileSync(path)
    expect(await names('Basic')).toEqual(all.slice(0, 2))
    expect(await names('Standard')).toEqual(all.slice(0, 5))
    // Without a configured backup there is no age to judge.
    expect(await names('Advanced')).toEqual(all.slice(0, 7))
    expect(readFileSync(path).equals(before)).toBe(true)
    if (posix) {
      for (const name of readdirSync(dirname(path))) {
        expect([name, statSync(join(dirname(path), name)).mode & 0o077]).toEqual([name, 0])
      }
    }
    store()
    expect(readdirSync(dirname(path))).toEqual(['svc.db'])
  })
  test('SQLite: each check of the store of svc says what it saw', async () => {
    store()
    const results = await own({}, 'Advanced')
    const message = (check: string): string => checked(results, check).message
    expect(message('open')).toMatch(/^opened in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/)
    expect(message('wal')).toMatch(/^write-ahead log [\d.]+ (B|KiB) \(warn 64 MiB\)$/)
    expect(message('schema')).toBe(`schema ${migrations.length}`)
    expect(message('round trip')).toMatch(/^row written, read and rolled back in [\d.]+ m?s/)
    expect(message('quick check')).toMatch(/^no damage found in/)
  })
  test('SQLite: the store of svc is checked while this process holds it and writes', async () => {
    const store = openStore({ path, create: true })
    store.database.exec('CREATE TABLE t (x); INSERT INTO t VALUES (1)')
    const entries = () => store.database.prepare('SELECT count(*) AS n FROM sqlite_schema').get()
    const before = entries()
    expect(bad(await own({}, 'Advanced'))).toEqual([])
    // Still ours: no lock was lost, and nothing of the probe has stayed.
    store.database.exec('INSERT INTO t VALUES (2)')
    expect(entries()).toEqual(before)
    store.close()
  })
  test('SQLite: a store that does not exist is reported and not created', async () => {
    expect(await own()).toMatchObject([{ check: 'open', fault: 'data', message: `${path} does not exist` }])
    expect(existsSync(dirname(path))).toBe(false)
  })
  test('SQLite: the store and the monitor know it by the same mark', () => {
    expect(storeApplicationId).toBe(applicationId)
  })
  test('SQLite: a database of another program is reported as such', async () => {
    plain()
    chmodSync(path, 0o600)
    chmodSync(dirname(path), 0o700)
    expect(await own()).toMatchObject([
      { fault: 'data', message: `${path} is a SQLite database, but not a store of svc` },
    ])
  })
  test.runIf(posix)('SQLite: modes that let others in are said, with the chmod to type', async () => {
    store()
    chmodSync(path, 0o644)
    expect(await own()).toMatchObject([
      {
        fault: 'data',
        message: `${path} is accessible to other accounts (mode 0644, expected 0600)`,
        details: [`next: chmod 600 ${path}`],
      },
    ])
    chmodSync(path, 0o600)
    chmodSync(dirname(path), 0o755)
    expect(await own()).toMatchObject([{ details: [`next: chmod 700 ${dirname(path)}`] }])
  })
  test.runIf(posix)('SQLite: a symbolic link in its place is refused; another database may be one', async () => {
    store()
    const link = join(folder, 'link.db')
    symlinkSync(path, link)
    const [first] = await own({ path: link })
    expect(first?.message).toBe(`${link} is a symbolic link, which is not allowed for the store`)
    expect(bad(await run({ path: link }))).toEqual([])
  })
  test('SQLite: another journal mode fails, and so does a header that contradicts the table', async () => {
    store()
    const database = new DatabaseSync(path)
    database.exec('PRAGMA journal_mode = DELETE; PRAGMA user_version = 7')
    database.close()
    const results = await own({}, 'Standard')
    expect(checked(results, 'wal')).toMatchObject({ fault: 'data', message: 'journal mode delete, expected wal' })
    expect(checked(results, 'schema')).toMatchObject({
      fault: 'data',
      message: `schema 7 in the header, but ${migrations.length} in the table: the store is damaged`,
    })
  })
  test('SQLite: another schema version than expected is deployment-related', async () => {
    store()
    expect(checked(await own({ schemaVersion: migrations.length + 1 }, 'Standard'), 'schema')).toMatchObject({
      status: 'failed',
      deployment: true,
      message: `schema ${migrations.length}, expected ${migrations.length + 1}`,
    })
  })
})

describe('a file that is not a sound database', () => {
  test.each([
    ['a damaged header', () => overwrite(0, 40), /is not a SQLite database/],
    ['damaged first page', () => overwrite(100, 3_000), /is damaged: its pages are inconsistent/],
    ['a cut within the first page', () => truncateSync(path, 60), /is damaged: its pages are inconsistent/],
  ])('SQLite: %s is said, in Basic already, and the file is left as it is', async (_, damage, text) => {
    plain(50)
    damage()
    const before = readFileSync(path)
    const results = await run()
    expect(bad(results)).toMatchObject([{ status: 'failed', fault: 'data', message: expect.stringMatching(text) }])
    expect(readFileSync(path).equals(before)).toBe(true)
    expect(readdirSync(dirname(path))).toEqual(['svc.db'])
  })
  test('SQLite: a folder', async () => {
    mkdirSync(path, { recursive: true })
    expect((await run())[0]?.message).toBe(`${path} is not a file`)
  })
  test('SQLite: a page damaged further in is found by the quick check, and by nothing shallower', async () => {
    plain(200)
    overwrite(5 * 4_096, 3_000)
    expect(bad(await run({}, 'Standard'))).toEqual([])
    const [result, ...others] = bad(await run({}, 'Advanced'))
    expect(others).toEqual([])
    expect(result).toMatchObject({ check: 'quick check', fault: 'data' })
    expect(result?.message).toMatch(/is damaged: its pages are inconsistent$/)
    expect(result?.details?.at(-1)).toBe('next: restore it from a backup')
  })
})

describe('a database that others use', () => {
  test('SQLite: a database that another process has locked is reported as locked, and this process is never blocked', async () => {
    plain()
    const release = await holding('BEGIN EXCLUSIVE')
    let beats = 0
    const beat = setInterval(() => {
      beats += 1
    }, 5)
    const results = await run()
    clearInterval(beat)
    await release()
    expect(results).toMatchObject([
      { check: 'open', fault: 'timeout', message: `${path} is locked by another process` },
    ])
    // Who waits for the lock in this process stands still for all of it.
    expect(beats).toBeGreaterThan(10)
    expect(bad(await run())).toEqual([])
  })
  test('SQLite: a lock that is let go in time is waited for', async () => {
    plain()
    const release = await holding('BEGIN EXCLUSIVE')
    // The time is not what this test is about, and on a busy machine it includes that of starting the child.
    const results = run({ latency: { warn: 20_000, limit: 30_000 } }, 'Basic', { timeoutMs: 30_000 })
    await wait(200)
    await release()
    expect(bad(await results)).toEqual([])
  })
})

describe('what cannot be cancelled runs in a child', () => {
  test('SQLite: a large file without WAL gets no check that would keep its writers out', async () => {
    plain()
    const database = new DatabaseSync(path)
    database.exec('CREATE TABLE large (x); INSERT INTO large VALUES (zeroblob(17000000))')
    database.close()
    expect((await run({}, 'Advanced')).map(({ check }) => check)).not.toContain('quick check')
  })
  test('SQLite: a write-ahead log that cannot be read is not an empty one', async () => {
    plain()
    const database = new DatabaseSync(path)
    database.exec('PRAGMA journal_mode = WAL; CREATE TABLE logged (x)')
    renameSync(`${path}-wal`, `${path}-kept`)
    // A link to itself cannot be followed.
    symlinkSync(`${path}-wal`, `${path}-wal`)
    try {
      const file = { path, database, openMs: 0 }
      await expect(
        wal.observe(file, { ownStore: false, walSize: {} }, { files, now: () => 0 } as never) as Promise<unknown>,
      ).rejects.toMatchObject({ cause: { code: 'ELOOP' } })
    } finally {
      rmSync(`${path}-wal`)
      renameSync(`${path}-kept`, `${path}-wal`)
      database.close()
    }
  })
})

describe('backup', () => {
  /** As the child would answer, and judged as the kind would. */
  const at = async (backup: string): Promise<Result> => {
    const newest = await newestBackup(backup, files)
    return evaluated(backupCheck, { ...newest, ageMs: Date.now() - newest.modified })[0] as Result
  }
  const aged = (file: string, hours: number, text = 'x'): void => {
    writeFileSync(file, text)
    const when = new Date(Date.now() - hours * 3_600_000)
    utimesSync(file, when, when)
  }
  test('SQLite: its age is that of the file, or of the newest file of a folder', async () => {
    const backups = join(folder, 'backups')
    mkdirSync(backups)
    await expect(at(backups)).rejects.toThrow(`no backup: ${backups} contains no files`)
    mkdirSync(join(backups, 'newer-folder'))
    aged(join(backups, 'monday.db'), 100)
    expect(await at(backups)).toMatchObject({ status: 'failed', fault: 'threshold' })
    aged(join(backups, 'tuesday.db'), 50)
    expect((await at(backups)).status).toBe('warning')
    expect((await at(backups)).message).toBe('newest backup tuesday.db (1 B): age 50 h (warn 48 h, fail 3 d)')
    aged(join(backups, 'wednesday.db'), 47)
    expect((await at(backups)).status).toBe('ok')
    expect((await at(join(backups, 'monday.db'))).status).toBe('failed')
  })
  test('SQLite: a run looks at it, in Advanced only, and says when there is none', async () => {
    plain()
    const backup = join(folder, 'backup.db')
    expect((await run({ backup }, 'Standard')).map((result) => result.check)).not.toContain('backup')
    expectResult(checked(await run({ backup }, 'Advanced'), 'backup'), `(data): no backup: ${backup} does not exist`)
    aged(backup, 1)
    expect(bad(await run({ backup }, 'Advanced'))).toEqual([])
  })
})

describe('figures against limits', () => {
  test.runIf(process.platform === 'linux')('SQLite: a file system without a size is not 100 % free', async () => {
    const file = { path: '/proc/version', database: new DatabaseSync(':memory:'), openMs: 0 }
    const observed = await (disk.observe(file, { diskFree: {} }, { files } as never) as Promise<never>)
    expect(evaluated(disk, observed)[0]).toMatchObject({ check: 'disk', status: 'failed', notChecked: 'missing' })
  })
  const status = (results: readonly Result[]): string => results[0]?.status ?? ''

  test('SQLite: boundaries belong to what is well', () => {
    expect(status(evaluated(openCheck, { ms: 1_000 }))).toBe('ok')
    expect(status(evaluated(openCheck, { ms: 1_001 }))).toBe('warning')
    expect(status(evaluated(query, { ms: 3_001 }))).toBe('failed')
    expect(status(evaluated(roundTrip, { ms: 3_001 }))).toBe('failed')
    expect(status(evaluated(wal, { mode: 'wal', bytes: 64 * 1024 ** 2 }))).toBe('ok')
    expect(status(evaluated(wal, { mode: 'wal', bytes: 64 * 1024 ** 2 + 1 }))).toBe('warning')
    expect(status(evaluated(wal, { mode: 'delete', bytes: 0 }))).toBe('ok')
    expect(status(evaluated(wal, { mode: 'delete', bytes: 0 }, { ownStore: true }))).toBe('failed')
    expect(status(evaluated(disk, { freeBytes: 1, percent: 20 }))).toBe('ok')
    expect(status(evaluated(disk, { freeBytes: 1, percent: 19.9 }))).toBe('warning')
    expect(status(evaluated(disk, { freeBytes: 1, percent: 9.9 }))).toBe('failed')
    const aged = (ageMs: number) => status(evaluated(backupCheck, { name: 'b', bytes: 1, ageMs }))
    expect(aged(48 * 3_600_000)).toBe('ok')
    expect(aged(72 * 3_600_000)).toBe('warning')
    expect(aged(72 * 3_600_000 + 1)).toBe('failed')
    expect(aged(-5)).toBe('ok')
  })
})

describe('node:sqlite', () => {
  test('SQLite: its ExperimentalWarning is dropped while it is loaded, and no other warning', () => {
    const messages: unknown[] = []
    const emit = process.emitWarning
    process.emitWarning = ((...parameters: unknown[]) => void messages.push(parameters)) as typeof emit
    try {
      const loaded = withoutSqliteWarning(() => {
        process.emitWarning('SQLite is an experimental feature and might change at any time', 'ExperimentalWarning')
        process.emitWarning('Another is an experimental feature', 'ExperimentalWarning')
        process.emitWarning('SQLite is deprecated', 'DeprecationWarning')
        return 'loaded'
      })
      expect(loaded).toBe('loaded')
      process.emitWarning('SQLite is an experimental feature and might change at any time', 'ExperimentalWarning')
    } finally {
      process.emitWarning = emit
    }
    expect(messages.map((parameters) => (parameters as string[])[1])).toEqual([
      'ExperimentalWarning',
      'DeprecationWarning',
      'ExperimentalWarning',
    ])
    expect((messages[0] as string[])[0]).toContain('Another')
  })
})

function overwrite(from: number, length: number): void {
  const bytes = readFileSync(path)
  bytes.fill(0xa5, from, from + length)
  writeFileSync(path, bytes)
}

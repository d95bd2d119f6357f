import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { checked } from '../../support/engine/run-kind.ts'
import { ownChildren as children } from '../../support/suite/processes.ts'
import { bad, eachInFolder, folder, type Mode, path, plain, posix, run, store } from './sqlite-files.ts'

eachInFolder()
const root = process.getuid?.() === 0

describe('as another account than that of the file', () => {
  /** The findings of a process that runs as nobody. */
  async function asNobody(mode: Mode): Promise<readonly Result[]> {
    const from = (file: string): string => JSON.stringify(new URL(`../../../${file}`, import.meta.url).href)
    const program = `
      import { runKind } from ${from('test/support/engine/run-kind.ts')}
      import { runInChild } from ${from('src/core/checks/child/index.ts')}
      import sqlite from ${from('src/core/checks/kinds/sqlite/index.ts')}
      const settings = { path: ${JSON.stringify(path)}, diskFree: {} }
      console.log(JSON.stringify(await runKind(sqlite, settings, '${mode}', { inChild: runInChild })))`
    const args = ['--input-type=module', '-e', program]
    const child = spawn(process.execPath, args, {
      uid: 65_534,
      gid: 65_534,
      stdio: ['ignore', 'pipe', 'inherit'],
      cwd: '/',
    })
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => {
      out += String(chunk)
    })
    await once(child, 'close')
    return JSON.parse(out) as Result[]
  }
  const open = (modes: { folder: number; file: number }): void => {
    chmodSync(folder, 0o755)
    chmodSync(dirname(path), modes.folder)
    chmodSync(path, modes.file)
  }
  test.runIf(posix && root)('SQLite: a file that it may not read', async () => {
    plain()
    open({ folder: 0o755, file: 0 })
    expect(bad(await asNobody('Basic'))).toMatchObject([
      { fault: 'data', message: `${path} cannot be opened by this account` },
    ])
  })
  test.runIf(posix && root)('SQLite: what it may only read gets no round trip, says so, and is well', async () => {
    plain()
    open({ folder: 0o755, file: 0o644 })
    const results = await asNobody('Advanced')
    expect(bad(results)).toEqual([])
    expect(results.map(({ check }) => check)).not.toContain('round trip')
  })
  test.runIf(posix && root)(
    'SQLite: a database in WAL mode is not opened when that would leave files of its own',
    async () => {
      store()
      open({ folder: 0o777, file: 0o644 })
      expect((await asNobody('Basic'))[0]?.message).toContain('is in WAL mode and not in use')
      expect(readdirSync(dirname(path))).toEqual(['svc.db'])
      const reader = new DatabaseSync(path)
      reader.prepare('SELECT * FROM meta').get()
      expect(bad(await asNobody('Basic'))).toEqual([])
      reader.close()
      expect(readdirSync(dirname(path))).toEqual(['svc.db'])
    },
  )
})

/** A check constraint that quick_check evaluates for every row, at great cost. */
function endless(): void {
  mkdirSync(dirname(path), { recursive: true })
  const database = new DatabaseSync(path)
  database.exec(`PRAGMA ignore_check_constraints = ON;
    CREATE TABLE slow (x INT CHECK (length(hex(zeroblob(20000000 + x))) > 0));
    WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2000) INSERT INTO slow SELECT x FROM n`)
  database.close()
}
test('SQLite: a quick check that does not end is killed at the deadline; what was seen before is kept', async () => {
  endless()
  const started = performance.now()
  const results = await run({}, 'Advanced', { timeoutMs: 1_500 })
  expect(performance.now() - started).toBeLessThan(10_000)
  expect(checked(results, 'quick check')).toMatchObject({ status: 'failed', fault: 'timeout' })
  expect(checked(results, 'round trip').status).toBe('ok')
  expect(children()).toEqual([])
  // And nothing of it holds the file.
  const database = new DatabaseSync(path, { timeout: 0 })
  database.exec('BEGIN EXCLUSIVE; ROLLBACK')
  database.close()
})

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import sqlite from '../../../src/core/checks/kinds/sqlite/index.ts'
import { openStore } from '../../../src/core/store/index.ts'
import { runInChild } from '../../support/engine/cached-child.ts'
import { type RunKindOptions, runKind } from '../../support/engine/run-kind.ts'

export type Settings = Partial<Values<typeof sqlite.settings>>
export type Mode = 'Basic' | 'Standard' | 'Advanced'
export const posix = process.platform !== 'win32'

/** A folder of its own for each test, and where in it the file will be. */
export let folder = ''
export let path = ''
export function eachInFolder(): void {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-sqlite-'))
    path = join(folder, 'home', 'svc.db')
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))
}

export const run = (
  settings: Settings = {},
  mode: Mode = 'Basic',
  options: RunKindOptions = {},
): Promise<readonly Result[]> =>
  runKind(sqlite, { path, diskFree: {}, ...settings }, mode, { inChild: runInChild, ...options })
export const store = (): void => openStore({ path, create: true }).close()
/** A database of some application, with rollback journal. */
export function plain(rows = 10): void {
  mkdirSync(dirname(path), { recursive: true })
  const database = new DatabaseSync(path)
  database.exec('BEGIN; CREATE TABLE songs (name TEXT)')
  const insert = database.prepare('INSERT INTO songs VALUES (?)')
  for (let row = 0; row < rows; row += 1) insert.run(`song ${row} ${'la'.repeat(200)}`)
  database.exec('COMMIT')
  database.close()
}
export const bad = (results: readonly Result[]): Result[] => results.filter((result) => result.status !== 'ok')

import { randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, openSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { makeFolder } from '../folder.ts'
import { sqlite } from '../sqlite.ts'
import { damaged } from './faults.ts'
import { companions, found, refuseUnsafe } from './guard.ts'
import { applicationId, migrate } from './migrate.ts'

/**
 * Makes a store whole beside its place, then links it in: whoever looks sees no store or a complete
 * one, whenever this process is killed, and of two that do so at once one wins. So an empty or half
 * store is never ours, and can be refused as damaged instead of being taken for a new one.
 */
export function createStore(path: string, steps: readonly string[]): void {
  const folder = dirname(path)
  makeFolder(folder)
  refuseUnsafe(path)
  refuseOrphans(path)
  const made = join(folder, `${prefix(path)}${randomUUID()}`)
  try {
    // Made before SQLite opens it: node:sqlite would create it readable by all.
    closeSync(openSync(made, 'wx', 0o600))
    const database = new (sqlite().DatabaseSync)(made)
    try {
      database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`)
      migrate(database, steps)
    } finally {
      database.close()
    }
    link(made, path)
    syncFolder(folder)
  } finally {
    for (const file of [made, ...companions(made)]) rmSync(file, { force: true })
  }
  sweep(path)
}

const prefix = (path: string): string => `.${basename(path)}.new-`

/** A log without its database holds acknowledged writes; a new database in its place would be spoilt by it. */
function refuseOrphans(path: string): void {
  for (const orphan of [`${path}-wal`, `${path}-journal`]) {
    const size = found(orphan)?.size ?? 0
    // Looked at again: another process may have made the store meanwhile.
    if (size > 0 && !found(path)) throw damaged(orphan, `is left of a store, but ${basename(path)} itself is gone`)
  }
}

function link(made: string, path: string): void {
  try {
    linkSync(made, path)
  } catch (error) {
    // Another process was first; its store is the one.
    if ((error as { code?: unknown }).code !== 'EEXIST') throw error
  }
}

function syncFolder(folder: string): void {
  // Windows cannot open a folder, and needs no such call.
  if (process.platform === 'win32') return
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

const anHour = 3_600_000

/** Removes what killed creations have left. Younger ones may be another process's, still at it. */
function sweep(path: string): void {
  const folder = dirname(path)
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(prefix(path))) continue
    const age = Date.now() - (found(join(folder, name))?.mtimeMs ?? Date.now())
    if (age > anHour) rmSync(join(folder, name), { force: true })
  }
}

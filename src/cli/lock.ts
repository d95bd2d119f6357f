import { closeSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../core/errors.ts'
import { sqlite } from '../core/sqlite.ts'
import { ownFolder, trouble } from './private-file.ts'

export type Lock = {
  /** True when another process held it first: whatever it guards may have changed. */
  readonly waited: boolean
  /** Safe to call twice. */
  readonly release: () => void
}

/** Milliseconds. */
const patience = 30_000
const busy = 5

/**
 * Holds a lock among all processes of this machine, which the kernel frees when its holder dies: an exclusive
 * transaction of SQLite on a file that stays empty (docs/decisions/0008-refresh-lock.md). The file is never removed:
 * whoever waits has it open. Rejects with the signal's reason, or `Fault` Timeout after `waitMs`.
 */
export async function acquire(path: string, signal: AbortSignal, waitMs = patience): Promise<Lock> {
  ownFolder(dirname(path))
  try {
    // Made before SQLite opens it, which would make it readable by all.
    closeSync(openSync(path, 'a', 0o600))
  } catch (error) {
    throw trouble(path, 'written', error)
  }
  const database = new (sqlite().DatabaseSync)(path, { timeout: 0 })
  const ends = performance.now() + waitMs
  try {
    for (let waited = false; ; waited = true) {
      signal.throwIfAborted()
      if (begin(database)) return { waited, release: () => close(database) }
      if (performance.now() > ends) {
        throw new Fault('Timeout', `another svc has held ${path} for more than ${waitMs / 1_000} s`, {
          hints: ['Look for a svc that hangs, and end it.'],
        })
      }
      // A waiting SQLite would block ctrl-C; uneven pauses keep many waiters from asking at once.
      await pause(15 + Math.random() * 25, undefined, { signal }).catch(() => {})
    }
  } catch (error) {
    close(database)
    throw error
  }
}

type Database = InstanceType<ReturnType<typeof sqlite>['DatabaseSync']>

function begin(database: Database): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if ((error as { errcode?: unknown }).errcode === busy) return false
    throw error
  }
}

/** Closing ends the transaction. */
function close(database: Database): void {
  if (database.isOpen) database.close()
}

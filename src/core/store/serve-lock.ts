import { closeSync, openSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { sqlite } from '../base/lazy.ts'
import { accountNamed, makeFolder } from '../base/own-files.ts'
import { isRunning } from '../base/running-process.ts'
import { readMarker } from '../base/system/serve-marker.ts'
import { identityOf, obstacleAt, reason, refuseUnsafe, statOf } from './path.ts'
import { isBusy } from './sqlite-codes.ts'

/** The `svc serve` that uses a store, as far as that is known. */
export type StoreUser = {
  readonly pid?: number | undefined
  /** The origin of its URL. */
  readonly url?: string | undefined
  readonly account?: string | undefined
  /** When it began to use the store, as an ISO time. */
  readonly since?: string | undefined
}

/** The outcome of an attempt to become the only `svc serve` of a store. */
export type Claim =
  | { readonly is: 'held'; readonly release: () => void }
  | { readonly is: 'taken'; readonly by: StoreUser }
  /** The file system takes no lock, or no file for one. `why` continues the name of the store. */
  | { readonly is: 'impossible'; readonly why: string }

/**
 * The file beside a store that one `svc serve` at a time has locked. It is never removed: another process may be about to
 * lock it.
 *
 * @example
 * ```ts
 * lockPath('/var/lib/svc/svc.db') // '/var/lib/svc/svc.db.serve.lock'
 * ```
 */
export const lockPath = (store: string): string => `${store}.serve.lock`

/**
 * The locks of this process. Closing any other descriptor of such a file would release its lock (POSIX locks belong to a
 * process), and so would the end of the connection.
 */
const ownLocks = new Map<string, DatabaseSync>()

/**
 * Tries to become the only `svc serve` of an embedded store. The lock is a transaction of SQLite on an empty database: every
 * system that SQLite knows has it, a frozen process keeps it, and the kernel frees it with its holder, however that ends. An
 * earlier version of svc has no lock, but a marker beside the store.
 */
export function claimStore(store: string): Claim {
  const path = lockPath(store)
  if (ownLocks.has(path)) return { is: 'taken', by: { pid: process.pid } }
  try {
    // A store that others could read is refused when it is opened, and gets no file of this account here.
    refuseUnsafe(store)
    makeFolder(dirname(store))
    const stat = statOf(path)
    if (stat === undefined) closeSync(openSync(path, 'wx', 0o600))
    else if (!stat.isFile()) return { is: 'impossible', why: `cannot be locked: ${path} is not a regular file` }
    const database = new (sqlite().DatabaseSync)(path, { timeout: 0 })
    try {
      // Without a file for its journal, which a full disk would refuse.
      database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    } catch (error) {
      database.close()
      throw error
    }
    ownLocks.set(path, database)
  } catch (error) {
    if (isBusy(error)) return { is: 'taken', by: userOf(store) }
    return { is: 'impossible', why: `cannot be locked: ${obstacleAt(store) ?? reason(error)}` }
  }
  const release = (): void => {
    ownLocks.get(path)?.close()
    ownLocks.delete(path)
  }
  if (!isUsedWithout(store)) return { is: 'held', release }
  release()
  return { is: 'taken', by: userOf(store) }
}

/** The identity of the lock's file, for the marker of the server that holds it. */
export const lockIdentity = (store: string): string | undefined =>
  ownLocks.has(lockPath(store)) ? identityOf(lockPath(store)) : undefined

/**
 * Whether a server uses the store that does not hold this lock: one of an earlier version, or one whose file was removed. The
 * process of a marker that names this very file has lost the lock, and has ended.
 */
function isUsedWithout(store: string): boolean {
  const marker = readMarker(store)
  // Without the start, its process id may be that of another process now.
  if (marker?.started === undefined || marker.pid === process.pid) return false
  return marker.files?.lock !== identityOf(lockPath(store)) && isRunning(marker)
}

/** The server that has the store, by its marker, or before there is one, by the kernel. */
function userOf(store: string): StoreUser {
  const marker = readMarker(store)
  const owner = statOf(lockPath(store))?.uid
  const account = owner === undefined ? undefined : (accountNamed(owner) ?? `uid ${owner}`)
  if (!marker || !isRunning(marker)) return { pid: lockHolder(lockPath(store)), account }
  const { pid, url, since } = marker
  return { pid, url: url.origin, account, since }
}

/** The process that has a lock on a file, as Linux lists them. Undefined where nothing tells, as in another container. */
function lockHolder(path: string): number | undefined {
  try {
    const inode = `:${statOf(path)?.ino}`
    const locks = readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
    const pid = Number(locks.find(([, kind, , , , place]) => kind === 'POSIX' && place?.endsWith(inode))?.[4])
    return pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}

import { lstatSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Fault } from '../errors.ts'

/** The store and what SQLite keeps beside it. */
export const companions = (path: string): readonly string[] => [`${path}-wal`, `${path}-shm`]

/** What lies at a path, a link itself and not what it points to; undefined when nothing does. */
export const found = (path: string): Stats | undefined => look(path, lstatSync)
const followed = (path: string): Stats | undefined => look(path, statSync)

function look(path: string, stat: typeof lstatSync): Stats | undefined {
  try {
    return stat(path, { throwIfNoEntry: false })
  } catch (error) {
    throw new Fault('Local', `${path} cannot be looked at: ${reason(error)}`, { cause: error })
  }
}

/**
 * Refuses a store that others could read or replace: D1 asks for 0600 in a folder of 0700, both this
 * account's own. The file must not be a link: SQLite would keep its log beside the link's target, in
 * a folder nobody has judged. Windows has access lists instead of modes, and they are not judged.
 */
export function refuseUnsafe(path: string): void {
  const folder = dirname(path)
  const stat = followed(folder)
  if (stat && !stat.isDirectory()) {
    throw new Fault('Local', `${folder} is not a folder`, { hints: ['Name another file with SVC_STORE.'] })
  }
  if (stat) refuseMode(folder, stat, '700')
  for (const file of [path, ...companions(path)]) {
    const stat = found(file)
    if (!stat) continue
    if (stat.isSymbolicLink()) {
      throw new Fault('Local', `${file} is a symbolic link, and the store is not opened over one`, {
        hints: ['Name the file itself with SVC_STORE.'],
      })
    }
    if (!stat.isFile()) {
      throw new Fault('Local', `${file} is not a regular file`, { hints: ['Name another file with SVC_STORE.'] })
    }
    refuseMode(file, stat, '600')
  }
}

function refuseMode(place: string, stat: Stats, wanted: '600' | '700'): void {
  if (process.platform === 'win32') return
  const account = process.geteuid?.()
  if (account !== undefined && stat.uid !== account) {
    throw new Fault('Local', `${place} belongs to another account (uid ${stat.uid}; this is uid ${account})`, {
      hints: ['Run svc as the account that owns the store, or name another file with SVC_STORE.'],
    })
  }
  if ((stat.mode & 0o077) === 0) return
  const mode = (stat.mode & 0o777).toString(8).padStart(4, '0')
  throw new Fault('Local', `${place} is open to other accounts (mode ${mode})`, {
    hints: [`chmod ${wanted} ${quoted(place)}`],
  })
}

/** A path as a shell takes it. */
export const quoted = (path: string): string =>
  /^[A-Za-z0-9_./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`

/** Why the operating system or SQLite refused, in a few words. */
export function reason(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (code === 'EACCES' || code === 'EPERM') return 'this account may not'
  if (code === 'EROFS') return 'the file system is read-only'
  if (code === 'ENOSPC') return 'the disk is full'
  return String(message ?? error)
}

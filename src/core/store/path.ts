import { existsSync, lstatSync, type Stats, statfsSync, statSync } from 'node:fs'
import { dirname, join, type PlatformPath, posix, win32 } from 'node:path'
import { asAccount, Fault, FileStoreOutage } from '../base/errors.ts'
import { fileMeaning } from '../base/file-errors.ts'
import { fileSystemOf, filesWithin, isOnShare, patienceMs, SilentShareError } from '../base/files/index.ts'
import { accountNamed, isReadOnly, quoted } from '../base/own-files.ts'
import { shownPostgresUrl } from './postgres/address.ts'

type Env = Readonly<Record<string, string | undefined>>

/**
 * The place of the store: `SVC_STORE` (a file, or a postgres:// URL), else under `SVC_HOME`, else in the platform's
 * folder for user data. A file always has a folder of its own, whose mode svc can enforce. Throws Fault `Local`.
 *
 * @example
 * ```ts
 * storePathFor({ SVC_HOME: '/srv/svc' }, 'linux', '/home/ops') // '/srv/svc/store/svc.db'
 * storePathFor({}, 'linux', '/home/ops') // '/home/ops/.local/share/svc/svc.db'
 * ```
 */
export function storePathFor(env: Env, platform: NodeJS.Platform, home: string): string {
  const path = platform === 'win32' ? win32 : posix
  if (env.SVC_STORE) {
    if (storeKind(env.SVC_STORE) === 'postgres') return env.SVC_STORE
    if (!path.isAbsolute(env.SVC_STORE)) {
      throw new Fault('Local', 'the store (--store or SVC_STORE) must be the absolute path of a file', {
        hints: ['A relative path would refer to a different store in each folder.'],
      })
    }
    return env.SVC_STORE
  }
  if (env.SVC_HOME) return path.join(absolute(env.SVC_HOME, path), 'store', file)
  if (platform === 'win32') return path.join(env.LOCALAPPDATA || path.join(home, 'AppData', 'Local'), 'svc', file)
  if (platform === 'darwin') return path.join(home, 'Library', 'Application Support', 'svc', file)
  // The XDG specification says to ignore a relative path.
  const data =
    env.XDG_DATA_HOME && path.isAbsolute(env.XDG_DATA_HOME) ? env.XDG_DATA_HOME : path.join(home, '.local', 'share')
  return path.join(data, 'svc', file)
}

const file = 'svc.db'

function absolute(home: string, path: PlatformPath): string {
  if (path.isAbsolute(home)) return home
  throw new Fault('Local', 'SVC_HOME must be the absolute path of a folder', {
    hints: ['A relative path would refer to a different folder in each place.'],
  })
}

/** The systemd unit that the packages install. */
export const unitName = 'svc.service'
/** Where systemd looks for units. An earlier folder takes precedence. */
export const unitFolders = [
  'etc/systemd/system',
  'run/systemd/system',
  'usr/local/lib/systemd/system',
  'usr/lib/systemd/system',
]
/** Whether this machine may have that unit. What it says is read on demand. */
export const hasUnit = (): boolean => unitFolders.some((folder) => existsSync(join('/', folder, unitName)))

const schemeOf = (store: string): string | undefined => /^([a-z][a-z0-9+.-]+):/i.exec(store)?.[1]?.toLowerCase()

/**
 * The kind of a store. Throws Fault `Local` for another URL, without repeating it: it may contain a password.
 *
 * @example
 * ```ts
 * storeKind('postgres://db1.internal/svc') // 'postgres'
 * ```
 */
export function storeKind(store: string): 'sqlite' | 'postgres' {
  const scheme = schemeOf(store)
  if (scheme === undefined) return 'sqlite'
  if (scheme === 'postgres' || scheme === 'postgresql') return 'postgres'
  throw new Fault('Local', `The store must be a file or a postgres:// URL, not a ${scheme}: URL`, {
    hints: ['Set SVC_STORE to the absolute path of a file, or unset it.'],
  })
}

/**
 * The store as shown to people: its path, or its URL without password and parameters.
 *
 * @example
 * ```ts
 * shownStore('postgres://svc:secret@db1.internal/svc') // 'postgres://svc@db1.internal/svc'
 * ```
 */
export function shownStore(store: string): string {
  if (schemeOf(store) === undefined) return store
  return shownPostgresUrl(store) ?? `${schemeOf(store)}://…`
}

/** Refuses a URL where only a path works. */
export function refuseUrl(path: string): void {
  if (storeKind(path) === 'sqlite') return
  throw new Fault('Local', 'This requires a store in a file, but the store is a PostgreSQL database')
}

/** The files that SQLite keeps beside the store. */
export const companions = (path: string): readonly string[] => [`${path}-wal`, `${path}-shm`]

/** A file by its device and inode. Undefined: there is none. */
type FileIdentity = string | undefined

/** The files of an embedded store. */
export type StoreFiles = {
  readonly database: FileIdentity
  /** The write-ahead log: while a process uses the store, it contains acknowledged writes that the database lacks. */
  readonly log: FileIdentity
  /** The memory that all processes share, with their locks. */
  readonly index: FileIdentity
}

/** The files at this path now. Throws the system's error when the folder cannot be read. */
export function storeFiles(path: string): StoreFiles {
  const [log = '', index = ''] = companions(path)
  return { database: identityOf(path), log: identityOf(log), index: identityOf(index) }
}

export function identityOf(path: string): FileIdentity {
  // With bigint, because an inode may be larger than 2^53.
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
  return stat && `${stat.dev}:${stat.ino}`
}

/**
 * The change to the files of a store that a process has opened, as the end of a sentence. Undefined: none. A process
 * writes to the files that it has opened, wherever they are now: what is acknowledged after such a change is lost.
 */
export function changeOf(opened: StoreFiles, now: StoreFiles): string | undefined {
  if (now.database === undefined) return 'has been moved or removed while svc uses it'
  if (now.database !== opened.database) return 'has been replaced by another file while svc uses it'
  if (now.log !== opened.log) return 'has lost its write-ahead log while svc uses it'
  if (now.index !== opened.index) return 'has lost its shared memory file while svc uses it'
  return undefined
}

/** The status of a path; of a link itself, not of its target. Undefined when nothing is there. */
export const statOf = (path: string): Stats | undefined => look(path, lstatSync)
const followed = (path: string): Stats | undefined => look(path, statSync)

function look(path: string, stat: typeof lstatSync): Stats | undefined {
  try {
    return stat(path, { throwIfNoEntry: false })
  } catch (error) {
    throw new Fault('Local', `${path} cannot be accessed: ${reason(error)}`, { cause: error })
  }
}

/**
 * Throws Fault `Local` for a store on a share that does not answer: SQLite would block this process for as long. Every
 * other problem is found when the store is opened.
 */
export async function refuseSilentShare(path: string): Promise<void> {
  if (!isOnShare(path)) return
  try {
    await filesWithin(patienceMs)('status', { path })
  } catch (error) {
    if (!(error instanceof SilentShareError)) return
    throw new Fault('Local', `The store ${path} cannot be opened: ${error.message}`, {
      hints: ['Keep the store on a disk of this machine, or in PostgreSQL.'],
      cause: error,
    })
  }
}

/**
 * Refuses a store that others could read or replace. The file must have mode 0600 in a folder of mode 0700, both owned
 * by this account (D1). The file must not be a link: SQLite would keep its log beside the link's target, in an
 * unchecked folder. Windows has access lists instead of modes; they are not checked.
 */
export function refuseUnsafe(path: string): void {
  const folder = dirname(path)
  const stat = followed(folder)
  if (stat && !stat.isDirectory()) {
    throw new Fault('Local', `${folder} is not a folder`, { hints: ['Set SVC_STORE to another file.'] })
  }
  if (stat) refuseMode(folder, stat, '700')
  for (const file of [path, ...companions(path)]) {
    const stat = statOf(file)
    if (!stat) continue
    if (stat.isSymbolicLink()) {
      throw new Fault('Local', `${file} is a symbolic link; svc does not open a store through a link`, {
        hints: ['Set SVC_STORE to the file itself.'],
      })
    }
    if (!stat.isFile()) {
      throw new Fault('Local', `${file} is not a regular file`, { hints: ['Set SVC_STORE to another file.'] })
    }
    refuseMode(file, stat, '600')
  }
}

function refuseMode(place: string, stat: Stats, expected: '600' | '700'): void {
  if (process.platform === 'win32') return
  const account = process.geteuid?.()
  if (account !== undefined && stat.uid !== account) {
    const owner = accountNamed(stat.uid)
    const whose = owner === undefined ? `the account with uid ${stat.uid}` : `the account ${owner}`
    const own = accountNamed(account) ?? `uid ${account}`
    throw new Fault('Local', `${place} belongs to ${whose}, and this command runs as ${own}`, {
      hints: ['For another store: --store or SVC_STORE', asAccount(owner ?? `'#${stat.uid}'`)],
    })
  }
  if ((stat.mode & 0o077) === 0) return
  const mode = (stat.mode & 0o777).toString(8).padStart(4, '0')
  throw new Fault('Local', `${place} is accessible to other accounts (mode ${mode})`, {
    hints: [`chmod ${expected} ${quoted(place)}`],
  })
}

/** The folder of a file, or the nearest one above it that exists, even if its disk does not say what it is. */
function existingFolder(path: string): string {
  let folder = dirname(path)
  while (isMissing(folder) && folder !== dirname(folder)) folder = dirname(folder)
  return folder
}

function isMissing(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
  } catch {
    return false
  }
}

/** Why nothing can be written beside a file, whatever its permissions. Undefined: its file system takes more. */
export function obstacleAt(path: string): string | undefined {
  const folder = existingFolder(path)
  if (isReadOnly(folder)) return 'the file system is read-only'
  return hasNoInode(folder) || hasNoSpace(folder) ? fullFileSystem(folder) : undefined
}

/** The outage of a store in a file. Names its file system, which is what somebody has to look at. */
export function outageAt(path: string, why: string, cause: unknown): FileStoreOutage {
  const place = fileSystemOf(existingFolder(path))
  const hints = place === undefined ? [] : [`The file system is ${place}.`]
  return new FileStoreOutage(`The store ${path}`, why, { hints, cause })
}

/** Why nothing more can be written to the file system of a folder, after it said that it has no space. */
export const fullFileSystem = (folder: string): string =>
  hasNoInode(folder) ? 'no inode is left on its file system' : 'the disk is full'

/** Whether a file system has no inode left, so that no file can be created although there is space. */
export function hasNoInode(folder: string): boolean {
  try {
    const { files, ffree } = statfsSync(folder)
    // Btrfs and others make inodes as needed, and report none.
    return files > 0 && ffree === 0
  } catch {
    return false
  }
}

function hasNoSpace(folder: string): boolean {
  try {
    const { blocks, bavail } = statfsSync(folder)
    return blocks > 0 && bavail === 0
  } catch {
    return false
  }
}

/** Why the operating system or SQLite refused, in a few words. */
export function reason(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied'
  if (code === 'EROFS') return 'the file system is read-only'
  if (code === 'ENOSPC') return 'the disk is full'
  const meaning = fileMeaning(error)
  return meaning === undefined ? String(message ?? error) : `it ${meaning}`
}

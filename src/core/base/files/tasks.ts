import {
  close as callClose,
  fstat as callFstat,
  lstat as callLstat,
  open as callOpen,
  read as callRead,
  stat as callStat,
  constants,
  type Stats,
} from 'node:fs'
import { access, open, opendir, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type PathPlace, placeOf } from '../own-files.ts'
import { isMissing, isWaiting, matchesGlob } from '../system/files.ts'
import { readSpace, type Space } from '../system/space.ts'

// node:fs/promises takes 2 ms to load, and most commands only look whether a file exists, and read svc.yaml.
const stat = promisify(callStat)
const lstat = promisify(callLstat)
const openDescriptor = promisify(callOpen)
const statDescriptor = promisify(callFstat)
const readDescriptor = promisify(callRead)
const closeDescriptor = promisify(callClose)

/** The status of a file, which is read without opening the file. Times are milliseconds since 1970. */
export type FileStatus = {
  readonly isFile: boolean
  readonly isFolder: boolean
  readonly isLink: boolean
  readonly inode: number
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly bytes: number
  readonly modified: number
}

export type ReadInput = { readonly path: string; readonly maxBytes: number; readonly isHead?: boolean }
export type FileContent = {
  /** The bytes in base64. */
  readonly content: string
  readonly status: FileStatus
}

export type NamesInput = { readonly path: string; readonly pattern: string; readonly most: number }

/** A file among the files of a folder. */
export type ListedFile = { readonly name: string; readonly bytes: number; readonly modified: number }
export type Listing = {
  /** How many files there are. */
  readonly files: number
  readonly oldest: ListedFile | undefined
  /** Without the files that are being written under a temporary name, unless only these are asked for. */
  readonly newest: ListedFile | undefined
  /** True if the folder has more entries or files than were read. */
  readonly more: boolean
}
export type ListInput = {
  readonly path: string
  /** Only files whose names end with this; empty for all. */
  readonly ending: string
  /** Only files whose names match this: `*` stands for any characters, `?` for one. */
  readonly pattern?: string | undefined
  /** Includes names that begin with a dot. */
  readonly hidden: boolean
  /** The most files that are dated. */
  readonly maxFiles: number
}

/**
 * Called with a path that an entry of a folder leads to. In the main process it throws where the path leads to a share.
 */
type Follow = (path: string) => void

/**
 * Everything that svc does with configured paths. A task runs in the main process for a local path, and in the reader
 * process for any other. So it takes and returns JSON, and waits for nothing but the file system. Rejects with the
 * error of the file system, or with one of its kind whose message completes "the file …": `EFTYPE` for what is not a
 * regular file, `EFBIG` for a file that is too large.
 */
export const tasks = {
  /**
   * The content of a regular file; with `isHead`, only what is within `maxBytes`. A pipe or a device is refused without being opened, because opening it may wait or
   * have an effect.
   */
  read: async ({ path, maxBytes, isHead = false }: ReadInput): Promise<FileContent> => {
    if (!(await stat(path)).isFile()) throw notRegular()
    // It may have become a pipe since.
    const file = await openDescriptor(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      const stats = await statDescriptor(file)
      if (!stats.isFile()) throw notRegular()
      const buffer = Buffer.alloc(Math.min(maxBytes, stats.size + spare) + 1)
      let bytes = Buffer.alloc(0)
      for (;;) {
        const { bytesRead } = await readDescriptor(file, buffer, 0, buffer.length, bytes.length)
        if (bytesRead === 0 || (isHead && bytes.length >= maxBytes)) break
        bytes = Buffer.concat([bytes, buffer.subarray(0, bytesRead)])
        if (bytes.length > maxBytes && !isHead) throw withCode('EFBIG', `is larger than ${maxBytes} bytes`)
        // The buffer had room for more than the file had.
        if (bytesRead < buffer.length && stats.size > 0 && bytes.length >= stats.size) break
      }
      return { content: bytes.subarray(0, maxBytes).toString('base64'), status: statusOf(stats) }
    } finally {
      await closeDescriptor(file)
    }
  },

  /** Whether the first and the last bytes of a regular file are all zero, as of one that was only reserved. */
  zeros: async ({ path }: { path: string }): Promise<{ readonly allZero: boolean }> => {
    if (!(await stat(path)).isFile()) throw notRegular()
    const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      const { size } = await file.stat()
      const buffer = Buffer.alloc(endBytes)
      let sum = 0
      for (const from of [0, Math.max(0, size - endBytes)]) {
        const { bytesRead } = await file.read(buffer, 0, endBytes, from)
        sum += bytesRead
        if (buffer.subarray(0, bytesRead).some((byte) => byte !== 0)) return { allZero: false }
      }
      return { allZero: sum > 0 }
    } finally {
      await file.close()
    }
  },

  /** The status of a path. `link`: of a link itself, not of its target. */
  status: async ({ path, link = false }: { path: string; link?: boolean }): Promise<FileStatus> =>
    statusOf(await (link ? lstat : stat)(path)),

  /** The folder, link or file at a real path, for the decision whether it is trusted. */
  place: async ({ path }: { path: string }): Promise<PathPlace> => placeOf(path),

  realPath: ({ path }: { path: string }): Promise<string> => realpath(path),

  /** Whether this account may write. Rejects only with the errors of a path that does not answer the question. */
  mayWrite: async ({ path }: { path: string }): Promise<'yes' | 'no' | 'read-only file system'> => {
    try {
      await access(path, constants.W_OK)
      return 'yes'
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EROFS' ? 'read-only file system' : 'no'
    }
  },

  space: ({ path }: { path: string }): Promise<Space> => readSpace(path),

  /** The regular files of a folder: names, sizes and dates. Does not descend. A link counts as its target. */
  list,

  /**
   * The names in a folder, except for folders, that match a pattern: `*` stands for any characters, `?` for one. Names that
   * begin with a dot match only a pattern that does. At most `most` of them.
   */
  names: async ({ path, pattern, most }: NamesInput): Promise<{ readonly names: readonly string[] }> => {
    const names: string[] = []
    for await (const entry of await opendir(path)) {
      if (entry.isDirectory() || entry.name.startsWith('.') !== pattern.startsWith('.')) continue
      if (matchesGlob(entry.name, pattern)) names.push(entry.name)
      if (names.length >= most) break
    }
    return { names }
  },

  /** Who may read a file by its mode, and by the modes of the folders above it. A link is judged by its target. */
  exposure: async ({ path }: { path: string }): Promise<'missing' | 'private' | 'readable by everyone'> => {
    if (process.platform === 'win32') return 'private'
    try {
      const real = await realpath(path)
      if (((await stat(real)).mode & 0o004) === 0) return 'private'
      for (let at = dirname(real); ; at = dirname(at)) {
        if (((await stat(at)).mode & 0o001) === 0) return 'private'
        if (at === dirname(at)) return 'readable by everyone'
      }
    } catch (error) {
      return isMissing(error) ? 'missing' : 'private'
    }
  },
}

const withCode = (code: string, message: string): Error => Object.assign(new Error(message), { code })
const notRegular = (): Error => withCode('EFTYPE', 'is not a regular file')
/** Bytes. Files of /proc say that they have none. */
const spare = 4_096
/** Bytes of each end of a file that are read to see whether it has content. */
const endBytes = 64 * 1_024

export type TaskName = keyof typeof tasks
export type TaskInput<T extends TaskName> = Parameters<(typeof tasks)[T]>[0]
export type TaskOutput<T extends TaskName> = Awaited<ReturnType<(typeof tasks)[T]>>

const statusOf = (stats: Stats): FileStatus => ({
  isFile: stats.isFile(),
  isFolder: stats.isDirectory(),
  isLink: stats.isSymbolicLink(),
  inode: stats.ino,
  mode: stats.mode,
  uid: stats.uid,
  gid: stats.gid,
  bytes: stats.size,
  modified: stats.mtimeMs,
})

/** The endings of files that a program is writing, and renames when they are complete. */
const temporary = /\.(?:part|tmp|partial|filepart|crdownload)$/i

/** The most entries that are searched for files. */
const maxEntries = 200_000

async function list(
  { path, ending, pattern, hidden, maxFiles }: ListInput,
  follow: Follow = () => {},
): Promise<Listing> {
  let files = 0
  let oldest: ListedFile | undefined
  let newest: ListedFile | undefined
  let entries = 0
  const asksForTemporary = temporary.test(ending) || temporary.test(pattern ?? '')
  // Ends with the loop, however that ends.
  for await (const entry of await opendir(path, { bufferSize: 256 })) {
    if (entries >= maxEntries || files >= maxFiles) return { files, oldest, newest, more: true }
    entries += 1
    const { name } = entry
    if (!(hidden ? name.endsWith(ending) : isWaiting(name, ending))) continue
    if (pattern !== undefined && !matchesGlob(name, pattern)) continue
    if (!entry.isFile() && !entry.isSymbolicLink()) continue
    const whole = join(path, name)
    if (entry.isSymbolicLink()) follow(whole)
    const file = await fileAt(whole, name)
    if (file === undefined) continue
    files += 1
    if (oldest === undefined || file.modified < oldest.modified) oldest = file
    if (!asksForTemporary && temporary.test(name)) continue
    if (newest === undefined || file.modified > newest.modified) newest = file
  }
  return { files, oldest, newest, more: false }
}

/**
 * Undefined for anything but a file, and for a file that was removed after it was listed, because it no longer waits.
 * A link may be broken or circular.
 */
async function fileAt(path: string, name: string): Promise<ListedFile | undefined> {
  try {
    const stats = await stat(path)
    return stats.isFile() ? { name, bytes: stats.size, modified: stats.mtimeMs } : undefined
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'ENOENT' || code === 'ELOOP') return undefined
    throw error
  }
}

import { constants, readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'

/** Reads a small system text file. Undefined when it is missing or not readable. */
export type ReadText = (path: string) => string | undefined

/** Only for /proc and /sys: the kernel answers from memory, so a synchronous read never waits for a disk. */
export const readText: ReadText = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** The first of these files that exists. */
export async function firstFile(paths: readonly string[]): Promise<string | undefined> {
  const { access } = process.getBuiltinModule('node:fs/promises')
  for (const path of paths) {
    const exists = await access(path).then(
      () => true,
      () => false,
    )
    if (exists) return path
  }
  return undefined
}

/** Rethrows the errors that say something about this machine, and nothing about a file. */
export function throwIfExhausted(error: unknown): void {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM') throw error
}

/**
 * The same for a check. Throws when this program has no file descriptors left: a limit that cannot be read would look
 * like no limit.
 */
export const readTextOrThrow: ReadText = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throwIfExhausted(error)
    return undefined
  }
}

export type SmallFile = { readonly text: string; readonly modified: Date }

/**
 * Reads a small regular file completely. It refuses a pipe or a device without waiting for it, so a replaced path
 * cannot block a run. Throws file system errors (`ENOENT` for a missing file), or an Error that says why the file is
 * not suitable.
 */
export async function readSmallFile(path: string, maxBytes: number, signal: AbortSignal): Promise<SmallFile> {
  signal.throwIfAborted()
  const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new Error('is not a regular file')
    const buffer = Buffer.alloc(maxBytes + 1)
    let length = 0
    while (length < buffer.length) {
      signal.throwIfAborted()
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    if (length > maxBytes) throw new Error(`is larger than ${maxBytes} bytes`)
    return { text: buffer.toString('utf8', 0, length), modified: stats.mtime }
  } finally {
    await handle.close()
  }
}

/** True when an error means that the file does not exist. */
export const isMissing = (error: unknown): boolean => {
  const code = (error as { code?: unknown } | undefined)?.code
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** The message of a file system error, without the path that it repeats. */
export function fileTrouble(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (isMissing(error)) return 'does not exist'
  if (code === 'EACCES' || code === 'EPERM') return 'is not readable by this account'
  if (code === 'EISDIR') return 'is not a regular file'
  if (typeof code === 'string') return `cannot be read (${code})`
  return typeof message === 'string' ? message : 'cannot be read'
}

/**
 * Whether a file of a folder waits to be processed: its name ends with `ending`, and does not begin with a dot unless
 * `ending` is the whole name. Programs hide the files that they still write behind a dot, and shells their settings.
 */
export const isWaiting = (name: string, ending: string): boolean =>
  name.endsWith(ending) && (!name.startsWith('.') || name === ending)

/** One line of /proc/self/mountinfo (proc_pid_mountinfo(5)). */
export type Mount = {
  /** `major:minor` of the file system, the same for every bind of it. */
  readonly device: string
  /** The part of the file system that is mounted: `/` for all of it. */
  readonly root: string
  readonly point: string
  /** The mount point is read-only, e.g. in the sandbox of a service; the file system may be writable elsewhere. */
  readonly isReadOnly: boolean
  readonly type: string
  /** Options of the file system itself, e.g. `ro`, or the controllers of a cgroup hierarchy. */
  readonly options: readonly string[]
}

/** The visible mounts: the last of several at one mount point hides the others. */
export function parseMountinfo(content: string): Mount[] {
  const byPoint = new Map<string, Mount>()
  for (const line of content.split('\n')) {
    const [front, back] = line.split(' - ')
    const [, , device, root, point, mountOptions] = (front ?? '').split(' ')
    const [type, , superOptions] = (back ?? '').split(' ')
    if (!device || !root || !point || !mountOptions || !type) continue
    const path = unescaped(point)
    byPoint.delete(path)
    byPoint.set(path, {
      device,
      root: unescaped(root),
      point: path,
      isReadOnly: mountOptions.split(',').includes('ro'),
      type,
      options: (superOptions ?? '').split(','),
    })
  }
  return [...byPoint.values()]
}

/** The mount points that /etc/fstab mounts read-only (fstab(5)). */
export const readOnlyInFstab = (content: string): ReadonlySet<string> =>
  new Set(
    content.split('\n').flatMap((line) => {
      const [device = '', point, , options = ''] = line.trim().split(/[ \t]+/, 4)
      return point === undefined || device.startsWith('#') || !options.split(',').includes('ro')
        ? []
        : [unescaped(point)]
    }),
  )

/** The kernel writes blanks, tabs, line feeds and backslashes of a path in octal. */
const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** Provides on macOS and Windows what Linux has in /proc. */
export const loadSystemInformation = async () => (await import('systeminformation')).default

/** Preloads it on systems that need it. */
export const preloadSystemInformation = async (): Promise<void> => {
  if (process.platform !== 'linux') await loadSystemInformation()
}

import { readFileSync } from 'node:fs'

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

/** True when an error means that the file does not exist. */
export const isMissing = (error: unknown): boolean => {
  const code = (error as { code?: unknown } | undefined)?.code
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/**
 * Whether a file of a folder waits to be processed: its name ends with `ending`, and does not begin with a dot unless
 * `ending` is the whole name. Programs hide the files that they still write behind a dot, and shells their settings.
 */
export const isWaiting = (name: string, ending: string): boolean =>
  name.endsWith(ending) && (!name.startsWith('.') || name === ending)

/**
 * Whether a name matches a pattern, in which `*` stands for any characters and `?` for one. Takes time in proportion to
 * the product of their lengths, whatever they contain.
 */
export function matchesGlob(name: string, pattern: string): boolean {
  let [at, place] = [0, 0]
  /** The last star, and the place in the name up to which it reaches. */
  let [star, reach] = [-1, 0]
  while (at < name.length) {
    const sign = pattern[place]
    if (sign === '*') {
      star = place
      reach = at
      place += 1
    } else if (sign === '?' || sign === name[at]) {
      at += 1
      place += 1
    } else if (star >= 0) {
      reach += 1
      at = reach
      place = star + 1
    } else return false
  }
  return /^\**$/.test(pattern.slice(place))
}

/** One line of /proc/self/mountinfo (proc_pid_mountinfo(5)). */
export type Mount = {
  readonly id: string
  /** The id of the mount that it is mounted on. */
  readonly parent: string
  /** `major:minor` of the file system, the same for every bind of it. */
  readonly device: string
  /** The part of the file system that is mounted: `/` for all of it. */
  readonly root: string
  readonly point: string
  /** The mount point is read-only, e.g. in the sandbox of a service; the file system may be writable elsewhere. */
  readonly isReadOnly: boolean
  readonly type: string
  /** The source of the mount: a device, or the address of a share, e.g. `nas:/media`. */
  readonly source: string
  /** Options of the file system itself, e.g. `ro`, or the controllers of a cgroup hierarchy. */
  readonly options: readonly string[]
}

/** The visible mounts: the last of several at one mount point hides the others. */
export const parseMountinfo = (content: string): Mount[] => {
  const byPoint = new Map<string, Mount>()
  for (const mount of everyMount(content)) {
    byPoint.delete(mount.point)
    byPoint.set(mount.point, mount)
  }
  return [...byPoint.values()]
}

/** All mounts, also those that others hide. */
export const everyMount = (content: string): Mount[] =>
  content.split('\n').flatMap((line) => {
    const [front, back] = line.split(' - ')
    const [id, parent, device, root, point, mountOptions] = (front ?? '').split(' ')
    const [type, source, superOptions] = (back ?? '').split(' ')
    if (!id || !parent || !device || !root || !point || !mountOptions || !type) return []
    return [
      {
        id,
        parent,
        device,
        root: unescaped(root),
        point: unescaped(point),
        isReadOnly: mountOptions.split(',').includes('ro'),
        type,
        source: unescaped(source ?? ''),
        options: (superOptions ?? '').split(','),
      },
    ]
  })

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

/** File systems on disks of this machine. Reading their usage cannot hang on a peer. */
export const diskTypes: ReadonlySet<string> = new Set(
  'ext2 ext3 ext4 xfs btrfs zfs f2fs jfs nilfs2 reiserfs bcachefs vfat exfat ntfs ntfs3 ufs hfs hfsplus apfs'.split(
    ' ',
  ),
)

/** Provides on macOS and Windows what Linux has in /proc. */
export const loadSystemInformation = async () => (await import('systeminformation')).default

/** Preloads it on systems that need it. */
export const preloadSystemInformation = async (): Promise<void> => {
  if (process.platform !== 'linux') await loadSystemInformation()
}

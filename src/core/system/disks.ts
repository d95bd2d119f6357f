import { readFile, stat, statfs } from 'node:fs/promises'
import { loadSystemInformation, type Mount, parseMountinfo } from './files.ts'

/** File systems on disks of this machine. Reading their usage cannot hang on a peer. */
const localTypes = new Set(
  'ext2 ext3 ext4 xfs btrfs zfs f2fs jfs nilfs2 reiserfs bcachefs vfat exfat ntfs ntfs3 ufs hfs hfsplus apfs'.split(
    ' ',
  ),
)

/**
 * The writable local file systems, each once. Among its mounts, the whole file system comes before a bind of a part,
 * then the shortest path. Each file system comes with all its mount points in that order, because a container binds
 * single files of the host's disk. The overlay at `/` is a container's own disk; any other overlay shows the space of a
 * disk that is already listed.
 */
export function localDisks(mounts: readonly Mount[]): { readonly type: string; readonly points: readonly string[] }[] {
  const devices = new Map<string, Mount[]>()
  for (const mount of mounts) {
    const local = localTypes.has(mount.type) || (mount.type === 'overlay' && mount.point === '/')
    if (!local || !mount.writable) continue
    devices.set(mount.device, [...(devices.get(mount.device) ?? []), mount])
  }
  const rank = (mount: Mount): number => (mount.root === '/' ? 0 : 1)
  return [...devices.values()].map((same) => {
    const sorted = same.toSorted((a, b) => rank(a) - rank(b) || a.point.length - b.point.length)
    return { type: sorted[0]?.type ?? '', points: sorted.map((mount) => mount.point) }
  })
}

/** One writable local file system. Bytes; `available` is what an unprivileged program may still write. */
export type Disk = {
  readonly mount: string
  readonly type: string
  readonly total: number
  readonly available: number
  /** Absent when the file system creates inodes on demand. */
  readonly inodes?: { readonly total: number; readonly free: number } | undefined
}
/** A file system whose usage could not be read. */
export type SilentDisk = { readonly mount: string; readonly error: unknown }

/** Maximum number of single-file binds skipped before a file system is given up. */
const maxBinds = 20

/** Every writable local file system of this machine, once, one after the other. */
export async function* disks(): AsyncGenerator<Disk | SilentDisk> {
  if (process.platform !== 'linux') {
    const system = await loadSystemInformation()
    yield* fromListing(await system.fsSize(), process.platform)
    return
  }
  const mounted = localDisks(parseMountinfo(await readFile('/proc/self/mountinfo', 'utf8')))
  for (const { type, points } of mounted) {
    const mount = await firstFolder(points)
    if (mount === undefined) continue
    const disk = await sizeOf(mount, type).catch((error: NodeJS.ErrnoException) => {
      // Unmounted meanwhile, or in a folder that this account cannot read: skipped.
      return error.code === 'ENOENT' || error.code === 'EACCES' ? undefined : { mount, error }
    })
    if (disk !== undefined) yield disk
  }
}

async function sizeOf(mount: string, type: string): Promise<Disk | undefined> {
  const { bsize, blocks, bavail, files, ffree } = await statfs(mount)
  if (blocks <= 0) return undefined
  return {
    mount,
    type,
    total: blocks * bsize,
    available: Math.max(0, bavail) * bsize,
    inodes: files > 0 ? { total: files, free: ffree } : undefined,
  }
}

async function firstFolder(points: readonly string[]): Promise<string | undefined> {
  for (const point of points.slice(0, maxBinds)) {
    const stats = await stat(point).catch(() => undefined)
    if (stats?.isDirectory()) return point
  }
  return undefined
}

/** A row of systeminformation's `fsSize`. */
export type ListedDisk = {
  readonly fs: string
  readonly type: string
  readonly size: number
  readonly available: number
  readonly mount: string
  readonly rw: boolean | null
}

const networkTypes = /^(nfs|cifs|smb|smbfs|afpfs|webdav|9p|fuse|macfuse|osxfuse|sshfs|autofs|devfs)/i

/**
 * Converts the listing of macOS and Windows. It leaves out network and read-only file systems and, on macOS, the system
 * volumes, which share the space of `/System/Volumes/Data`. The root there is a sealed snapshot; the data volume fills
 * up.
 */
export function fromListing(rows: readonly ListedDisk[], platform: NodeJS.Platform): Disk[] {
  const local = rows.filter(
    (row) => row.size > 0 && row.rw !== false && !networkTypes.test(row.type) && !row.fs.startsWith('//'),
  )
  const mounts =
    platform === 'darwin'
      ? local.filter(
          ({ mount }) =>
            mount === '/System/Volumes/Data' ||
            (!mount.startsWith('/System/Volumes/') && !mount.startsWith('/private/')),
        )
      : local
  return mounts.map(({ mount, type, size, available }) => ({ mount, type, total: size, available }))
}

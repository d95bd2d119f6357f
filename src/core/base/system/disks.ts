import { readFile, readlink, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { ProbeError } from '../probe-error.ts'
import {
  diskTypes,
  isMissing,
  loadSystemInformation,
  type Mount,
  parseMountinfo,
  readOnlyInFstab,
  throwIfExhausted,
} from './files.ts'
import { readSpace, type Space } from './space.ts'

/** A local file system, and the mount points at which it may be visible. */
export type LocalDisk = {
  readonly type: string
  readonly points: readonly string[]
  /** The file system itself refuses writes, as after an error of its disk. */
  readonly isReadOnly: boolean
}

/** Options with which a file system refuses writes. Newer kernels report an error so, and keep `rw`. */
const refusesWrites = ['ro', 'emergency_ro', 'shutdown']

/** Where container engines mount images and read-only volumes. */
const imageFolders = /^\/(?:var\/lib|run)\/(?:docker|containers|containerd|kubelet|lxc|lxd|incus|snapd|machines)\//

/**
 * The local file systems, each once, without those that are read-only by design. Among its mounts, the whole file
 * system comes before a bind of a part, then the shortest path. Each file system comes with all its mount points in
 * that order, because a container binds single files of the host's disk. The overlay at `/` is a container's own disk;
 * any other overlay shows the space of a disk that is already listed.
 *
 * Read-only by design are mount points in `fstabReadOnly`, images of containers, and read-only mount points of a
 * container or of a part of a file system. A read-only mount point of a whole file system that is writable is the view
 * of a service in a sandbox (ProtectSystem= of systemd), so its space counts.
 *
 * File systems in memory (tmpfs) count only if they are mounted at one of `inMemory`.
 */
export function localDisks(
  mounts: readonly Mount[],
  fstabReadOnly: ReadonlySet<string> = new Set(),
  inMemory: readonly string[] = [],
): LocalDisk[] {
  const inContainer = mounts.some(({ type, point }) => type === 'overlay' && point === '/')
  const devices = new Map<string, Mount[]>()
  for (const mount of mounts) {
    const local =
      diskTypes.has(mount.type) ||
      (mount.type === 'overlay' && mount.point === '/') ||
      (mount.type === 'tmpfs' && inMemory.includes(mount.point))
    const byDesign =
      fstabReadOnly.has(mount.point) ||
      imageFolders.test(mount.point) ||
      (mount.isReadOnly && (inContainer || mount.root !== '/'))
    if (!local || byDesign) continue
    devices.set(mount.device, [...(devices.get(mount.device) ?? []), mount])
  }
  const rank = (mount: Mount): number => (mount.root === '/' ? 0 : 1)
  return [...devices.values()].map((same) => {
    const sorted = same.toSorted((a, b) => rank(a) - rank(b) || a.point.length - b.point.length)
    const isReadOnly = same.some(({ options }) => refusesWrites.some((option) => options.includes(option)))
    return { type: sorted[0]?.type ?? '', points: sorted.map((mount) => mount.point), isReadOnly }
  })
}

/** One local file system. Bytes; `available` is what an unprivileged program may still write. */
export type Disk = {
  readonly mount: string
  readonly type: string
  readonly total: number
  readonly available: number
  /** Absent when the file system creates inodes on demand. */
  readonly inodes?: { readonly total: number; readonly free: number } | undefined
  /** It refuses writes, and nothing says that this is by design. */
  readonly readOnly?: ReadOnly | undefined
}

/** The report of errors by a file system that refuses writes: some, none, or no report at all. */
export type ReadOnly = 'error' | 'no error' | 'unknown'
/** A file system whose usage could not be read. */
export type SilentDisk = { readonly mount: string; readonly error: unknown }

/** Maximum number of single-file binds skipped before a file system is given up. */
const maxBinds = 20

async function readMounts(): Promise<readonly Mount[]> {
  const mounts = parseMountinfo(await readFile('/proc/self/mountinfo', 'utf8'))
  if (mounts.length === 0) throw new ProbeError('data', '/proc/self/mountinfo lists no file system')
  return mounts
}

/**
 * Every local file system of this machine that is not read-only by design, once, one after the other. Those in memory
 * only at the mount points `inMemory`. Throws ProbeError `data` if the system lists no file system at all.
 */
export async function* disks(inMemory: readonly string[] = []): AsyncGenerator<Disk | SilentDisk> {
  if (process.platform !== 'linux') {
    const system = await loadSystemInformation()
    yield* fromListing(await system.fsSize(), process.platform)
    return
  }
  // Many containers have none.
  const fstab = await readFile('/etc/fstab', 'utf8').catch((error: unknown) => {
    throwIfExhausted(error)
    return ''
  })
  const mounts = await readMounts()
  for (const { type, points, isReadOnly } of localDisks(mounts, readOnlyInFstab(fstab), inMemory)) {
    const disk = await diskAt(points, type)
    if (disk === undefined) continue
    const mount = mounts.find(({ point }) => points.includes(point))
    if (!('error' in disk)) yield { ...disk, readOnly: isReadOnly && mount ? await whyReadOnly(mount) : undefined }
    // Unmounted meanwhile: no longer a file system of this machine.
    else if (!isMissing(disk.error) || (await readMounts()).some(({ point }) => point === disk.mount)) yield disk
  }
}

/** Evaluates what the kernel reports of a file system that refuses writes. */
async function whyReadOnly({ type, device, options }: Mount): Promise<ReadOnly> {
  if (options.includes('emergency_ro') || options.includes('shutdown')) return 'error'
  // After an error, XFS shuts down and never becomes read-only.
  if (type === 'xfs') return 'no error'
  if (!/^ext[234]$/.test(type)) return 'unknown'
  const errors = await readlink(`/sys/dev/block/${device}`)
    .then((link) => readFile(`/sys/fs/ext4/${basename(link)}/errors_count`, 'utf8'))
    .catch((error: unknown) => {
      throwIfExhausted(error)
      return ''
    })
  return errors.trim() === '' ? 'unknown' : Number(errors) > 0 ? 'error' : 'no error'
}

/**
 * The mount points among these at which a file system of any type is mounted, with its type. Only on Linux: elsewhere
 * nothing lists them without waiting for them.
 */
export async function mountedAt(points: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (process.platform !== 'linux' || points.length === 0) return new Map()
  const mounts = await readMounts()
  return new Map(mounts.flatMap(({ point, type }) => (points.includes(point) ? [[point, type]] : [])))
}

/** Undefined for an empty file system, and for one of which only single files are visible. */
async function diskAt(points: readonly string[], type: string): Promise<Disk | SilentDisk | undefined> {
  let silent: SilentDisk | undefined
  for (const mount of points.slice(0, maxBinds)) {
    try {
      if ((await stat(mount)).isDirectory()) return await sizeOf(mount, type)
    } catch (error) {
      silent ??= { mount, error }
    }
  }
  return silent
}

async function sizeOf(mount: string, type: string): Promise<Disk | undefined> {
  return diskOf(mount, type, await readSpace(mount))
}

/** A disk from the figures of its file system. Undefined for one without a size. */
export function diskOf(mount: string, type: string, figures: Space): Disk | undefined {
  const { blocks, blockBytes, available, inodes, freeInodes } = figures
  if (blocks <= 0) return undefined
  return {
    mount,
    type,
    total: blocks * blockBytes,
    available: Math.max(0, available) * blockBytes,
    inodes: inodes > 0 ? { total: inodes, free: freeInodes } : undefined,
  }
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
 * up. Throws ProbeError `data` for an empty listing, which is what systeminformation makes of an error.
 */
export function fromListing(rows: readonly ListedDisk[], platform: NodeJS.Platform): Disk[] {
  if (rows.length === 0) throw new ProbeError('data', 'the system lists no file system')
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

/** One line of /proc/self/mountinfo (proc_pid_mountinfo(5)). */
export type Mount = {
  /** `major:minor` of the file system, the same for every bind of it. */
  readonly device: string
  /** The part of the file system that is mounted: `/` for all of it. */
  readonly root: string
  readonly point: string
  readonly writable: boolean
  readonly type: string
  /** Options of the file system itself, e.g. the controllers of a cgroup hierarchy. */
  readonly options: readonly string[]
}

/** The mounts that a path leads to: of several at one point, the last is the one that is seen. */
export function parseMountinfo(content: string): Mount[] {
  const seen = new Map<string, Mount>()
  for (const line of content.split('\n')) {
    const [front, back] = line.split(' - ')
    const [, , device, root, point, mountOptions] = (front ?? '').split(' ')
    const [type, , superOptions] = (back ?? '').split(' ')
    if (!device || !root || !point || !mountOptions || !type) continue
    const options = (superOptions ?? '').split(',')
    const path = unescaped(point)
    seen.delete(path)
    seen.set(path, {
      device,
      root: unescaped(root),
      point: path,
      writable: !mountOptions.split(',').includes('ro') && !options.includes('ro'),
      type,
      options,
    })
  }
  return [...seen.values()]
}

/** The kernel writes blanks, tabs, line ends and backslashes of a path in octal. */
const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** File systems on disks of this machine: asking one how full it is cannot hang on a peer. */
const localTypes = new Set(
  'ext2 ext3 ext4 xfs btrfs zfs f2fs jfs nilfs2 reiserfs bcachefs vfat exfat ntfs ntfs3 ufs hfs hfsplus apfs'.split(
    ' ',
  ),
)

/**
 * The writable local file systems, each once: of its mounts the whole one before a bind of a part,
 * then the shortest path. Every file system comes with all its mount points in that order, because a
 * container binds single files of the host's disk. The overlay at `/` is a container's own disk;
 * any other overlay shows the space of a disk that is listed already.
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

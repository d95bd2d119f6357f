import { lstatSync, readFileSync, readlinkSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { sanitizeLine } from '../sanitize.ts'
import { diskTypes, everyMount, type Mount } from '../system/files.ts'

/** A mount that may stop answering: its server, or the program behind it, may be gone. */
export type Share = {
  /** Differs from that of every other mount, also of a later one at the same place. */
  readonly key: string
  /** For messages: `/mnt/media (nfs4 from nas:/media)`. */
  readonly name: string
}

/** File systems in memory, in an image, or in the kernel itself. A process cannot make them wait for another machine. */
const otherLocalTypes: ReadonlySet<string> = new Set(
  `tmpfs ramfs rootfs devtmpfs hugetlbfs overlay aufs squashfs erofs cramfs romfs iso9660 udf ubifs jffs2
  proc sysfs devpts mqueue cgroup cgroup2 debugfs tracefs securityfs configfs pstore bpf efivarfs binfmt_misc fusectl nsfs`.split(
    /\s+/,
  ),
)

/** svc itself runs from the root of the file system: where that does not answer, nothing can be reported. */
const isLocal = ({ point, type }: Mount): boolean => point === '/' || diskTypes.has(type) || otherLocalTypes.has(type)

/**
 * The share that a path leads to or through, or undefined where every part of it is local. Reads only links, only on
 * local file systems, so that it never waits. A part that does not exist or may not be read ends the search: whoever
 * opens the path learns that at once. Throws the error of the system when this process has no file descriptor left.
 */
export function shareAt(path: string): Share | undefined {
  if (process.platform !== 'linux') return foreignShare(path, process.platform)
  const mounts = mountTree()
  if (mounts === undefined) return { key: 'unknown', name: '/ (without /proc/self/mountinfo)' }
  const mount = walk(path, mounts, linkAt)
  return mount && { key: `${mount.id} ${mount.point}`, name: nameOf(mount) }
}

const nameOf = ({ point, type, source }: Mount): string => sanitizeLine(`${point} (${type} from ${source})`)

/** Finds mounts by the mount and the point that they are mounted on. Undefined stands for what is below the root. */
export type MountTree = (on: Mount | undefined, point: string) => Mount | undefined

/** Milliseconds. Monitors that begin together read the list once; some machines have thousands of mounts. */
const keepMs = 100
let last: { readonly at: number; readonly tree: MountTree } | undefined

/** Undefined where /proc is not mounted. */
function mountTree(): MountTree | undefined {
  const now = performance.now()
  if (last !== undefined && now - last.at < keepMs) return last.tree
  try {
    last = { at: now, tree: treeOf(readFileSync('/proc/self/mountinfo', 'utf8')) }
    return last.tree
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'EACCES') return undefined
    throw error
  }
}

export function treeOf(mountinfo: string): MountTree {
  const mounts = everyMount(mountinfo)
  const ids = new Set(mounts.map(({ id }) => id))
  const key = (parent: string | undefined, point: string): string => `${parent ?? ''} ${point}`
  // The mount below the root is not in the list. In a changed root (chroot), neither is the root itself.
  const parentOf = ({ id, parent }: Mount): string | undefined =>
    parent !== id && ids.has(parent) ? parent : undefined
  const all = new Map(mounts.map((mount) => [key(parentOf(mount), mount.point), mount]))
  return (on, point) => all.get(key(on?.id, point))
}

/** What is at a path: the target of a link, something else, or nothing that can be read. */
export type LinkAt = (path: string) => { readonly target: string } | 'no link' | 'nothing'

const linkAt: LinkAt = (path) => {
  try {
    return lstatSync(path).isSymbolicLink() ? { target: readlinkSync(path) } : 'no link'
  } catch {
    return 'nothing'
  }
}

/** As many as the kernel follows. */
const maxLinks = 40
type Place = { readonly path: string; readonly mount: Mount | undefined }

/** The first mount on the way along a path that is not local. Follows the path as the kernel does, link by link. */
export function walk(path: string, tree: MountTree, links: LinkAt, pid: number = process.pid): Mount | undefined {
  const root: Place = { path: '', mount: mountedOn(undefined, '/', tree) }
  let way: Place[] = []
  let linksLeft = maxLinks
  const parts = partsOf(isAbsolute(path) ? path : `${process.cwd()}/${path}`)
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    if (part === '..') way.pop()
    if (part === '..' || part === '.') continue
    const above = way.at(-1) ?? root
    const here = `${above.path}/${part}`
    const mount = mountedOn(above.mount, here, tree)
    if (mount !== undefined && !isLocal(mount)) return mount
    const link = links(here)
    if (link === 'nothing') return undefined
    if (link === 'no link') {
      way.push({ path: here, mount })
      continue
    }
    // The kernel goes to the file itself; the text may be a path in other mounts.
    if (mount?.type === 'proc' && /^\/proc\/\d+\//.test(here) && !here.startsWith(`/proc/${pid}/`)) return mount
    linksLeft -= 1
    if (linksLeft < 0) return undefined
    if (link.target.startsWith('/')) way = []
    parts.push(...partsOf(link.target))
  }
  return undefined
}

/** The parts of a path in reverse: the next one is the last. */
const partsOf = (path: string): string[] =>
  path
    .split('/')
    .filter((part) => part !== '')
    .reverse()

/** The topmost mount at a path: mounts at one point lie on each other. */
function mountedOn(below: Mount | undefined, path: string, tree: MountTree): Mount | undefined {
  let top = below
  for (let next = tree(top, path); next !== undefined; next = tree(top, path)) top = next
  return top
}

/** Folders of a macOS installation that lie on its own disk, if nobody has mounted anything there. */
const macFolders = /^\/(?:Applications|Library|System|Users|bin|etc|opt|private|sbin|tmp|usr|var)\//

/** On other systems nothing lists the mounts without waiting for them: the usual folders of the system's disk are local. */
export function foreignShare(path: string, platform: NodeJS.Platform, env = process.env): Share | undefined {
  if (platform === 'win32') {
    const drive = /^[a-z]:/i.exec(path)?.[0] ?? (/^[\\/]{2}/.test(path) ? path.split(/[\\/]/, 4).join('\\') : undefined)
    const isSystem = drive === undefined || drive.toLowerCase() === (env['SystemDrive'] ?? 'C:').toLowerCase()
    return isSystem ? undefined : { key: drive.toLowerCase(), name: sanitizeLine(drive) }
  }
  if (!isAbsolute(path) || macFolders.test(path)) return undefined
  const point = path.split('/', path.startsWith('/Volumes/') ? 3 : 2).join('/')
  return { key: point, name: sanitizeLine(point) }
}

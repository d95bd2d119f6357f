import { lstatSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import { decodeText } from '../encoding.ts'
import { fileProblem } from '../file-errors.ts'
import { lazy } from '../lazy.ts'
import { follow, type LinkAt } from '../own-files.ts'
import { ProbeError } from '../probe-error.ts'
import { sanitizeLine } from '../sanitize.ts'
import { diskTypes, everyMount, type Mount } from '../system/files.ts'
import type { Share } from './reader.ts'
import { type FileStatus, type TaskInput, type TaskName, type TaskOutput, tasks } from './tasks.ts'

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
type MountTree = (on: Mount | undefined, point: string) => Mount | undefined

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

export type LinkReader = (path: string) => LinkAt

const linkAt: LinkReader = (path) => {
  try {
    return lstatSync(path).isSymbolicLink() ? { target: readlinkSync(path) } : 'no link'
  } catch {
    return 'nothing'
  }
}

/** The first mount on the way along a path that is not local. Follows the path as the kernel does, link by link. */
export function walk(path: string, tree: MountTree, links: LinkReader, pid: number = process.pid): Mount | undefined {
  const mounts = new Map([['/', mountedOn(undefined, '/', tree)]])
  const steps = follow(isAbsolute(path) ? path : `${process.cwd()}/${path}`)
  for (let step = steps.next(); !step.done; ) {
    const here = step.value
    const mount = mountedOn(mounts.get(dirname(here)), here, tree)
    if (mount !== undefined && !isLocal(mount)) return mount
    mounts.set(here, mount)
    const link = links(here)
    // The kernel goes to the file itself; the text may be a path in other mounts.
    const isLink = typeof link === 'object'
    if (isLink && mount?.type === 'proc' && /^\/proc\/\d+\//.test(here) && !here.startsWith(`/proc/${pid}/`))
      return mount
    step = steps.next(link)
  }
  return undefined
}

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

export type { FileContent, FileStatus, ListedFile } from './tasks.ts'

/**
 * Does something with a path of the configuration: `files('read', {path, maxBytes})`. The one way to such paths (H30): a
 * path on a local file system is used directly, and any other by the reader process. Rejects with the error of the file
 * system.
 */
export type ConfiguredFiles = <T extends TaskName>(task: T, input: TaskInput<T>) => Promise<TaskOutput<T>>

/** A regular file of at most `maxBytes`, as text. */
export async function readText(
  files: ConfiguredFiles,
  path: string,
  maxBytes: number,
): Promise<{ readonly text: string; readonly status: FileStatus }> {
  const { content, status } = await files('read', { path, maxBytes })
  return { text: decodeText(Buffer.from(content, 'base64')), status }
}

/** The share that a path leads to, for messages: `/mnt/media (nfs4 from nas:/media)`. Undefined for a local path. */
export const shareOf = (path: string): string | undefined => shareAt(path)?.name

/**
 * The file system that has a path, in the same words. Undefined where the system does not list its mounts, and for a
 * path that leads to nothing.
 */
export function fileSystemOf(path: string): string | undefined {
  try {
    const tree = process.platform === 'linux' ? mountTree() : undefined
    if (tree === undefined) return undefined
    const parts = realpathSync(path).split('/').filter(Boolean)
    const places = parts.map((_, at) => `/${parts.slice(0, at + 1).join('/')}`)
    const mount = ['/', ...places].reduce<Mount | undefined>((below, place) => mountedOn(below, place, tree), undefined)
    return mount && nameOf(mount)
  } catch {
    return undefined
  }
}

/** Whether a path leads to a share, where a program or a library that opens it needs a process of its own. */
export const isOnShare = (path: string): boolean => shareAt(path) !== undefined

/** Milliseconds that a share or a pipe may take where no deadline of a monitor applies. */
export const patienceMs = 5_000

/** Milliseconds that all shares together may take for a look that only a warning or an answer to a question needs. */
export const lookMs = 500

/** Whether something is at a path. Throws SilentShareError when a share does not answer. */
export async function isThere(path: string): Promise<boolean> {
  try {
    await filesWithin(lookMs)('status', { path })
    return true
  } catch (error) {
    if (error instanceof SilentShareError) throw error
    return false
  }
}

/** Milliseconds that a share may take to deliver a file of a command line, once it has shown that it answers. */
const deliveryMs = 60_000

/**
 * The bytes of a regular file on a share, for a command that ctrl-C ends. Throws SilentShareError, the reason of the signal
 * or the error of the file system. `isOnShare` says whether a path needs this.
 */
export async function readFromShare(path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
  await filesWithin(patienceMs, signal)('status', { path })
  const { content } = await filesWithin(deliveryMs, signal)('read', { path, maxBytes })
  return Buffer.from(content, 'base64')
}

/** The text of a file that a command line or the environment names. It may be a pipe, such as `<(…)` of a shell. */
export async function readNamed(path: string, maxBytes: number): Promise<string> {
  const files = filesWithin(patienceMs)
  const { isFile, isFolder } = await files('status', { path })
  if (isFolder) throw Object.assign(new Error('is a folder'), { code: 'EISDIR' })
  if (isFile || isOnShare(path)) return (await readText(files, path, maxBytes)).text
  return await (await import('./pipe.ts')).readPipe(path, maxBytes, patienceMs)
}

/** The reader process of this program. It starts with the first path on a share. */
const reader = lazy(async () => new (await import('./reader.ts')).Reader(program()))

/** The file that it runs: beside this file in the sources, beside the bundle in a build. */
const program = (): URL =>
  new URL(import.meta.url.endsWith('.ts') ? './reader-main.ts' : './file-reader.cjs', import.meta.url)

/** A share that a task waits for. */
export type AwaitedShare = {
  /** `/mnt/media (nfs4 from nas:/media)` */
  readonly share: string
  readonly path: string
}

/**
 * Paths in a monitor. When the signal aborts, tasks reject with its reason. `awaits` is called when a task begins to
 * wait for a share; what it returns, when the task has ended.
 */
export const filesUntil = (signal: AbortSignal, awaits: (share: AwaitedShare) => () => void): ConfiguredFiles =>
  filesOver(async (share, path, run) => {
    const end = awaits({ share: share.name, path })
    try {
      return await run(signal)
    } finally {
      end()
    }
  })

/** Paths outside of monitors. All shares together have `ms` from the first use of one; `stop` ends the wait before. */
export function filesWithin(ms: number, stop?: AbortSignal): ConfiguredFiles {
  let limit: AbortSignal | undefined
  return filesOver(async (share, _, run) => {
    limit ??= AbortSignal.timeout(ms)
    try {
      return await run(stop ? AbortSignal.any([limit, stop]) : limit)
    } catch (error) {
      throw error === limit.reason ? new SilentShareError(share.name, ms) : error
    }
  })
}

/** A share that did not answer. The message names it. */
export class SilentShareError extends ProbeError {
  constructor(share: string, ms: number) {
    super('timeout', `the share ${share} did not answer within ${Number((ms / 1_000).toFixed(1))} s`)
  }
}

/** Why a file on a share was not read, in words that continue its path. */
export const problemOnShare = (error: unknown): string =>
  error instanceof SilentShareError ? `cannot be read: ${error.message}` : fileProblem(error)

/** The next step after a file of a command line was not read from its share. */
export const copyOfShare = 'Name a copy of the file on a local disk, or mount the share again.'

/** An entry of a local folder leads to a share. */
class LeadsToShare extends Error {
  readonly share: Share
  constructor(share: Share) {
    super(`leads to ${share.name}`)
    this.share = share
  }
}

const refuseShare = (path: string): void => {
  const share = shareAt(path)
  if (share) throw new LeadsToShare(share)
}

type OnShare = (share: Share, path: string, run: (signal: AbortSignal) => Promise<unknown>) => Promise<unknown>

function filesOver(onShare: OnShare): ConfiguredFiles {
  const run = async (name: TaskName, input: { readonly path: string }): Promise<unknown> => {
    const local = shareAt(input.path) ?? (await here(name, input))
    if (!isShare(local)) return local.value
    return await onShare(local, input.path, async (signal) => (await reader.get()).run(local, name, input, signal))
  }
  return run as ConfiguredFiles
}

const isShare = (local: Share | { readonly value: unknown }): local is Share => 'key' in local

/** Runs a task in this process. Gives the share instead, if it turns out to lead to one. */
async function here(name: TaskName, input: unknown): Promise<{ readonly value: unknown } | Share> {
  const task = tasks[name] as (input: unknown, follow: typeof refuseShare) => Promise<unknown>
  try {
    return { value: await task(input, refuseShare) }
  } catch (error) {
    if (error instanceof LeadsToShare) return error.share
    throw error
  }
}

import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  type Stats,
} from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and its missing parents, accessible to this account only (0700). Throws file system errors. Does not
 * use `mkdir` with `recursive`: below /proc and similar file systems, where folders cannot be made, Node retries
 * forever.
 */
export function makeFolder(path: string): void {
  const missing: string[] = []
  for (let at = resolve(path); !existsSync(at) && at !== dirname(at); at = dirname(at)) missing.push(at)
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder, { mode: 0o700 })
    } catch (error) {
      // Another process may have made it in the meantime.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/**
 * Whether anyone but the owner may write to a file or folder, by its mode. A group that only the owner has does not
 * count: with umask 002, which Debian and Fedora set for such groups, every new file is writable for it.
 *
 * The members of a group come from /etc/passwd and /etc/group. A group that is not in these files, or that an account
 * outside them might have, counts as shared. Always false on Windows, where access lists take the place of modes.
 */
export function othersMayWrite(
  stats: Pick<Stats, 'mode' | 'uid' | 'gid'>,
  files: AccountFiles = systemAccounts,
): boolean {
  if (process.platform === 'win32' || (stats.mode & 0o022) === 0) return false
  return (stats.mode & 0o002) !== 0 || !isPrivateGroup(stats, files)
}

/** The texts of /etc/passwd and /etc/group. A reader throws when its file cannot be read. */
export type AccountFiles = { readonly passwd: () => string; readonly group: () => string }
export const systemAccounts: AccountFiles = {
  passwd: () => readFileSync('/etc/passwd', 'utf8'),
  group: () => readFileSync('/etc/group', 'utf8'),
}

/** Whether the group is the primary group of the owner and of nobody else, bears its name, and has no other member. */
function isPrivateGroup({ uid, gid }: Pick<Stats, 'uid' | 'gid'>, files: AccountFiles): boolean {
  try {
    const accounts = rows(files.passwd()).map(([name = '', , id, group]) => ({ name, id, group }))
    const owners = accounts.filter(({ group }) => group === String(gid))
    const groups = rows(files.group()).filter(([, , id]) => id === String(gid))
    const [owner] = owners
    const [group] = groups
    if (owners.length !== 1 || groups.length !== 1 || !owner || !group) return false
    const [name, , , members = ''] = group
    const others = members.split(',').filter((member) => member !== '' && member !== owner.name)
    return owner.id === String(uid) && name === owner.name && others.length === 0
  } catch {
    return false
  }
}

/**
 * The name of an account of this machine. Undefined if /etc/passwd does not list it.
 *
 * @example
 * ```ts
 * accountNamed(33, { passwd: () => 'www-data:x:33:33::/var/www:/bin/sh' }) // 'www-data'
 * ```
 */
export function accountNamed(uid: number, files: Pick<AccountFiles, 'passwd'> = systemAccounts): string | undefined {
  try {
    return rows(files.passwd()).find(([, , id]) => id === String(uid))?.[0]
  } catch {
    return undefined
  }
}

/**
 * The home folder of an account of this machine, an absolute path. Undefined if /etc/passwd does not list it.
 *
 * @example
 * ```ts
 * homeFolderOf('www-data', { passwd: () => 'www-data:x:33:33::/var/www:/bin/sh' }) // '/var/www'
 * ```
 */
export function homeFolderOf(
  account: string,
  files: Pick<AccountFiles, 'passwd'> = systemAccounts,
): string | undefined {
  try {
    const home = rows(files.passwd()).find(([name]) => name === account)?.[5]
    return home?.startsWith('/') ? home : undefined
  } catch {
    return undefined
  }
}

const rows = (text: string): readonly (readonly string[])[] => text.split('\n').map((line) => line.split(':'))

/** A folder, a link or a file on the way along a path, as `lstat` reads it. */
export type PathPlace = Pick<Stats, 'mode' | 'uid' | 'gid'> & {
  /** Its real path: it contains no link, except for the place itself. */
  readonly path: string
  /** The target of a link. Undefined for anything else. */
  readonly target?: string | undefined
  readonly isFolder: boolean
  /** Nobody can write to its file system. Read only where the mode lets others write. */
  readonly isReadOnly: boolean
}

/** The entry at a path: the target of a link, another entry, or none that can be read. */
export type LinkAt = { readonly target: string } | 'no link' | 'nothing'

/** As many as the kernel follows. */
const maxLinks = 40

/**
 * Follows an absolute path as the kernel does, link by link. Yields each place below the root by its real path, and takes
 * what is there. Returns the real path of the end, or undefined if the path leads to nothing.
 */
export function* follow(path: string): Generator<string, string | undefined, LinkAt> {
  let way: string[] = []
  let linksLeft = maxLinks
  const parts = partsOf(path)
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    if (part === '..') way.pop()
    if (part === '..' || part === '.') continue
    const link = yield pathOf([...way, part])
    if (link === 'nothing') return undefined
    if (link === 'no link') {
      way.push(part)
      continue
    }
    linksLeft -= 1
    if (linksLeft < 0) return undefined
    if (link.target.startsWith('/')) way = []
    parts.push(...partsOf(link.target))
  }
  return pathOf(way)
}

const pathOf = (names: readonly string[]): string => `/${names.join('/')}`

/** The parts of a path in reverse: the next one is the last. */
const partsOf = (path: string): string[] =>
  path
    .split('/')
    .filter((part) => part !== '')
    .reverse()

/** Every place on the way along an absolute path, from the root. */
export type Way = {
  readonly places: readonly PathPlace[]
  /** The real path of the end. Undefined if the path leads to nothing. */
  readonly end: string | undefined
}

/** The way along a path. Rejects with what `placeAt` rejects with. */
export async function wayAlong(path: string, placeAt: (path: string) => Promise<PathPlace | undefined>): Promise<Way> {
  const root = await placeAt('/')
  const places = root ? [root] : []
  const steps = follow(path)
  let step = steps.next()
  while (!step.done) {
    const place = await placeAt(step.value)
    if (place) places.push(place)
    step = steps.next(linkOf(place))
  }
  return { places, end: step.value }
}

/** The same without waiting, for a path that is certainly local. */
export function localWay(path: string): Way {
  const places = [placeOf('/')]
  const steps = follow(path)
  let step = steps.next()
  while (!step.done) {
    const place = placeIfAny(step.value)
    if (place) places.push(place)
    step = steps.next(linkOf(place))
  }
  return { places, end: step.value }
}

const linkOf = (place: PathPlace | undefined): LinkAt =>
  place === undefined ? 'nothing' : place.target === undefined ? 'no link' : { target: place.target }

const placeIfAny = (path: string): PathPlace | undefined => {
  try {
    return placeOf(path)
  } catch {
    return undefined
  }
}

/** The folder, link or file at a real path. Throws file system errors. */
export function placeOf(path: string): PathPlace {
  const stats = lstatSync(path)
  const { mode, uid, gid } = stats
  return {
    path,
    mode,
    uid,
    gid,
    target: stats.isSymbolicLink() ? readlinkSync(path) : undefined,
    isFolder: stats.isDirectory(),
    isReadOnly: !stats.isSymbolicLink() && (mode & 0o022) !== 0 && isReadOnly(path),
  }
}

/** Whether the file system at a path is read-only, whatever the permissions there. False if nothing is at the path. */
export function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS'
  }
}

/** A place that accounts other than root and the trusted one control, and what to run against that. */
export type UntrustedPlace = { readonly path: string; readonly reason: string; readonly cure: string }

export type TrustRule = {
  /** The account that is trusted besides root. Undefined: every owner is trusted, where accounts have no numbers. */
  readonly uid: number | undefined
  readonly accounts?: AccountFiles | undefined
}

/**
 * The places of a way that are not trusted, in its order. Trusted is what belongs to root or the account and is not
 * writable by others. Not counted as writable are a group that only the owner has, a read-only file system, and a sticky
 * folder if everything in it that the way goes through belongs to root or the account: others can neither rename nor
 * replace that. Of a link, only the owner counts, and only in a sticky folder.
 */
export function untrustedPlaces(places: readonly PathPlace[], { uid, accounts }: TrustRule): readonly UntrustedPlace[] {
  const isOwn = (place: Pick<PathPlace, 'uid'>): boolean => place.uid === 0 || uid === undefined || place.uid === uid
  const isGuarded = (folder: PathPlace): boolean => {
    const below = places.filter(({ path }) => path !== folder.path && dirname(path) === folder.path)
    return folder.isFolder && (folder.mode & 0o1000) !== 0 && below.length > 0 && below.every(isOwn)
  }
  return places.flatMap((place): readonly UntrustedPlace[] => {
    const { path } = place
    if (place.target !== undefined) return []
    const problems: UntrustedPlace[] = []
    if (!isOwn(place)) {
      problems.push({
        path,
        reason: `${path} belongs to another user (uid ${place.uid})`,
        cure: `chown ${uid === 0 ? 'root' : uid} ${quoted(path)}`,
      })
    }
    if (!place.isReadOnly && othersMayWrite(place, accounts) && !isGuarded(place)) {
      problems.push({
        path,
        reason: `${path} can be written by others (mode ${(place.mode & 0o7777).toString(8)})`,
        cure: `chmod go-w ${quoted(path)}`,
      })
    }
    return problems
  })
}

/** A path, quoted for a POSIX shell if needed. */
export const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`)

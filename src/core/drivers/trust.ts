import { accessSync, constants, lstatSync, readlinkSync, type Stats } from 'node:fs'
import { dirname, resolve, sep } from 'node:path'
import { fileProblem } from '../file-errors.ts'
import { othersMayWrite } from '../own-files.ts'

export type AccountOfTrust = {
  /** The account whose files are trusted besides root's. Undefined on Windows, where access lists protect a folder. */
  readonly uid: number | undefined
}

/** Why a path is not trusted, and the commands that change that. */
export type Distrust = { readonly reason: string; readonly cures: readonly string[] }

/** More links than any sound path has. */
const maxLinks = 40

/**
 * Why another account could decide what these paths contain. Each folder from the root to the path, and to what each link
 * on the way names, must belong to root or this account and be writable for its owner only. A folder such as /tmp, where
 * others can create entries but not replace these, counts if what is below it belongs to root or this account.
 */
export function distrustOf(paths: readonly string[], { uid }: AccountOfTrust): Distrust | undefined {
  if (uid === undefined) return undefined
  const problems = new Map<string, { readonly reason: string; readonly cure: string }>()
  for (const path of paths) {
    const way = wayTo(path)
    if (typeof way === 'string') return { reason: way, cures: [] }
    const last = [...way.keys()].at(-1)
    for (const [place, stats] of way) {
      const quoted = /^[\w./-]+$/.test(place) ? place : `'${place.replaceAll("'", "'\\''")}'`
      if (stats.uid !== 0 && stats.uid !== uid) {
        const cure = `chown ${uid === 0 ? 'root' : uid} ${quoted}`
        problems.set(place, { reason: `${place} belongs to another user (uid ${stats.uid})`, cure })
      } else if (
        !stats.isSymbolicLink() &&
        othersMayWrite(stats) &&
        !(place !== last && isSticky(stats)) &&
        !isReadOnly(place)
      ) {
        const mode = (stats.mode & 0o7777).toString(8)
        problems.set(place, {
          reason: `${place} can be written by others (mode ${mode})`,
          cure: `chmod go-w ${quoted}`,
        })
      }
    }
  }
  if (problems.size === 0) return undefined
  const all = [...problems.values()]
  return { reason: all.map(({ reason }) => reason).join('; '), cures: all.map(({ cure }) => cure) }
}

const isSticky = (stats: Stats): boolean => stats.isDirectory() && (stats.mode & 0o1000) !== 0

function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS'
  }
}

/** The path and every folder and link that leads to it, or why it cannot be followed. */
function wayTo(path: string): ReadonlyMap<string, Stats> | string {
  const way = new Map<string, Stats>()
  let pending = resolve(path)
    .split(sep)
    .filter((part) => part !== '')
  let [at, links] = [resolve(path, '/'), 0]
  try {
    way.set(at, lstatSync(at))
    while (pending.length > 0) {
      const [part = '', ...rest] = pending
      const next = resolve(at, part)
      const stats = lstatSync(next)
      way.set(next, stats)
      pending = rest
      if (!stats.isSymbolicLink()) {
        at = next
        continue
      }
      links += 1
      if (links > maxLinks) return `${path} has too many links`
      const target = resolve(dirname(next), readlinkSync(next))
      pending = [...target.split(sep).filter((each) => each !== ''), ...rest]
      at = resolve(path, '/')
    }
    return way
  } catch (error) {
    return `${path} ${fileProblem(error)}`
  }
}

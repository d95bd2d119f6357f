import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { Fault } from '../core/errors.ts'
import { makeFolder } from '../core/folder.ts'

const windows = process.platform === 'win32'
const code = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown'
/** What keeps this account from a file. */
export const trouble = (path: string, does: string, error: unknown): Fault =>
  new Fault('Local', `${path} cannot be ${does} (${code(error)})`)

/** Which modes are refused: what others may change, or also what they may read. */
export type Privacy = 'unwritable' | 'unreadable'

function refuse(path: string, stat: Stats, privacy: Privacy, wanted: '600' | '700'): void {
  // Windows has access lists instead of modes, and a profile's folder is its account's own.
  if (windows) return
  const account = process.geteuid?.()
  if (stat.uid !== account && !(privacy === 'unwritable' && stat.uid === 0)) {
    throw new Fault('Local', `${path} belongs to another account (uid ${stat.uid}; this is uid ${account})`, {
      hints: ['Run svc as the account that owns it, or remove it.'],
    })
  }
  if ((stat.mode & (privacy === 'unreadable' ? 0o077 : 0o022)) === 0) return
  const mode = (stat.mode & 0o777).toString(8).padStart(4, '0')
  throw new Fault('Local', `${path} is open to other accounts (mode ${mode})`, {
    hints: [`chmod ${wanted} '${path.replaceAll("'", "'\\''")}'`],
  })
}

/** A folder of this account's own, made when it is missing. Refused when it is a link, another's, or open to others. */
export function ownFolder(path: string): void {
  try {
    makeFolder(path)
  } catch (error) {
    throw trouble(path, 'made', error)
  }
  judgeFolder(path)
}

function judgeFolder(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (!stat) return
  if (!stat.isDirectory()) throw new Fault('Local', `${path} is not a folder of its own (a link, or a file)`)
  refuse(path, stat, 'unreadable', '700')
}

/**
 * The text of a file, or undefined when there is none. Judged by the open file, so nothing can be put in its place
 * between the look and the reading. `unreadable` judges its folder too. Throws `Fault` Local.
 */
export function readPrivate(path: string, privacy: Privacy): string | undefined {
  if (privacy === 'unreadable') judgeFolder(dirname(path))
  let descriptor: number
  try {
    const noLink = privacy === 'unreadable' && !windows ? constants.O_NOFOLLOW | constants.O_NONBLOCK : 0
    descriptor = openSync(path, constants.O_RDONLY | noLink)
  } catch (error) {
    if (code(error) === 'ENOENT') return undefined
    if (code(error) === 'ELOOP') throw new Fault('Local', `${path} is a symbolic link, and is not read`)
    throw trouble(path, 'read', error)
  }
  try {
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) throw new Fault('Local', `${path} is not a regular file`)
    refuse(path, stat, privacy, '600')
    return readFileSync(descriptor, 'utf8')
  } finally {
    closeSync(descriptor)
  }
}

/** Writes a file of mode 0600 at once: whoever looks sees the old or the new text, whenever this process is killed. */
export function writePrivate(path: string, text: string): void {
  try {
    replaceFile(path, text, 0o600)
  } catch (error) {
    throw trouble(path, 'written', error)
  }
}

/** The same for any mode. Throws what the file system throws; nothing is left behind then. */
export function replaceFile(path: string, text: string, mode: number): void {
  const made = `${path}.${process.pid}-${Math.random().toString(36).slice(2)}`
  try {
    // `wx` neither follows nor takes over what somebody else put there.
    const descriptor = openSync(made, 'wx', mode)
    try {
      writeSync(descriptor, text)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(made, path)
  } catch (error) {
    rmSync(made, { force: true })
    throw error
  }
}

/** True when there was something to remove. */
export function removePrivate(path: string): boolean {
  const there = lstatSync(path, { throwIfNoEntry: false }) !== undefined
  try {
    rmSync(path, { force: true })
  } catch (error) {
    throw trouble(path, 'removed', error)
  }
  return there
}

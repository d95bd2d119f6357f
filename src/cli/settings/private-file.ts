import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, posix, win32 } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../core/base/errors.ts'
import { fileMeaning, fileProblem } from '../../core/base/file-errors.ts'
import { sqlite } from '../../core/base/lazy.ts'
import { makeFolder, othersMayWrite } from '../../core/base/own-files.ts'
import type { OpenOptions } from '../../core/service/open.ts'
import { variable } from '../command/flags.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { homeOf, machine } from '../io/process.ts'

const windows = machine.platform === 'win32'
const code = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown'
/** The fault for a file that this account cannot use. */
export const trouble = (path: string, does: string, error: unknown): Fault =>
  new Fault('Local', `${path} cannot be ${does}: ${reason(error)}`, { cause: error })

function reason(error: unknown): string {
  const meaning = fileMeaning(error)
  if (meaning !== undefined) return `it ${meaning}`
  const { errno } = error as NodeJS.ErrnoException
  return errno === undefined ? fileProblem(error) : machine.errorText(errno)
}

/** Which modes are refused: those that let others write, or also those that let others read. */
export type Privacy = 'unwritable' | 'unreadable'

function refuse(path: string, stat: Stats, privacy: Privacy, allowed: '600' | '700'): void {
  // Windows has access lists instead of modes, and a profile folder belongs to its account.
  if (windows) return
  const account = machine.accountId()
  if (stat.uid !== account && !(privacy === 'unwritable' && stat.uid === 0)) {
    throw new Fault('Local', `${path} belongs to another account (uid ${stat.uid}; this is uid ${account})`, {
      hints: ['Run svc as the account that owns it, or remove it.'],
    })
  }
  if (privacy === 'unreadable' ? (stat.mode & 0o077) === 0 : !othersMayWrite(stat)) return
  const mode = (stat.mode & 0o777).toString(8).padStart(4, '0')
  throw new Fault('Local', `${path} is accessible to other accounts (mode ${mode})`, {
    hints: [`chmod ${allowed} '${path.replaceAll("'", "'\\''")}'`],
  })
}

/**
 * Ensures a private folder of this account; creates it if missing. Refuses a link, another account's folder, and one
 * open to others.
 */
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
  if (!stat.isDirectory()) throw new Fault('Local', `${path} is not a folder (it is a link or a file)`)
  refuse(path, stat, 'unreadable', '700')
}

/**
 * Waits until the share answers that a path of the settings leads to, if it leads to one. The functions below use such
 * paths directly, and would block this process for as long as the share does not answer. Throws `Fault` Local.
 */
export async function awaitShare(path: string): Promise<void> {
  const { filesWithin, isOnShare, patienceMs, SilentShareError } = await import('../../core/base/files/index.ts')
  if (!isOnShare(path)) return
  const isRecent = silence !== undefined && performance.now() - silence.at < patienceMs
  if (!isRecent) {
    try {
      await filesWithin(patienceMs)('status', { path })
      return
    } catch (error) {
      // Any other error is for whoever uses the path.
      if (!(error instanceof SilentShareError)) return
      silence = { at: performance.now(), message: error.message }
    }
  }
  throw new Fault('Local', `${path} cannot be used: ${silence?.message}`, {
    hints: ['Mount the share again, or set SVC_HOME to a local folder for settings of its own.'],
  })
}

/** The last time that the share of the settings was silent: a command that needs several of its files waits only once. */
let silence: { readonly at: number; readonly message: string } | undefined

/**
 * The text of a file, or undefined when there is none. Checks the open file, so nothing can be swapped between check
 * and read. `unreadable` checks its folder too. Throws `Fault` Local.
 */
export function readPrivate(path: string, privacy: Privacy): string | undefined {
  if (privacy === 'unreadable') judgeFolder(dirname(path))
  let descriptor: number
  try {
    const noLink = privacy === 'unreadable' && !windows ? constants.O_NOFOLLOW | constants.O_NONBLOCK : 0
    descriptor = openSync(path, constants.O_RDONLY | noLink)
  } catch (error) {
    if (code(error) === 'ENOENT') return undefined
    if (code(error) === 'ELOOP') throw new Fault('Local', `${path} is a symbolic link, which svc does not read`)
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

/** Writes a file of mode 0600 atomically: readers see the old or the new text, whenever this process is killed. */
export function writePrivate(path: string, text: string): void {
  try {
    replaceFile(path, text, 0o600)
  } catch (error) {
    throw trouble(path, 'written', error)
  }
}

/**
 * Adds text at the end of a file of mode 0600, which it makes if there is none. Returns once the disk has it; a full disk
 * leaves the file as it was. Follows no link. Throws `Fault` Local.
 */
export function appendPrivate(path: string, text: string): void {
  let descriptor: number
  try {
    const noLink = windows ? 0 : constants.O_NOFOLLOW | constants.O_NONBLOCK
    const { O_WRONLY, O_APPEND, O_CREAT } = constants
    descriptor = openSync(path, O_WRONLY | O_APPEND | O_CREAT | noLink, 0o600)
  } catch (error) {
    if (code(error) === 'ELOOP') throw new Fault('Local', `${path} is a symbolic link, which svc does not write`)
    throw trouble(path, 'written', error)
  }
  try {
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) throw new Fault('Local', `${path} is not a regular file`)
    refuse(path, stat, 'unreadable', '600')
    try {
      // Where only a part fits, that is all that is written, and the next write fails.
      const bytes = Buffer.from(text)
      for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at)
      fsyncSync(descriptor)
    } catch (error) {
      ftruncateSync(descriptor, stat.size)
      throw error
    }
  } catch (error) {
    throw error instanceof Fault ? error : trouble(path, 'written', error)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * As `writePrivate`, for any mode. With an owner, the file has exactly that mode; without one, the mask of the process
 * narrows it. Throws file system errors and leaves nothing behind then.
 */
export function replaceFile(path: string, text: string, mode: number, owner?: Pick<Stats, 'uid' | 'gid'>): void {
  const made = `${path}.${machine.pid}-${Math.random().toString(36).slice(2)}`
  try {
    // `wx` neither follows a link nor overwrites an existing file.
    const descriptor = openSync(made, 'wx', mode)
    try {
      // All of it, or an error: a full disk may take a part.
      writeFileSync(descriptor, text)
      if (owner && !windows) {
        fchownSync(descriptor, owner.uid, owner.gid)
        fchmodSync(descriptor, mode)
      }
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

/** Returns whether there was something to remove. */
export function removePrivate(path: string): boolean {
  const there = lstatSync(path, { throwIfNoEntry: false }) !== undefined
  try {
    rmSync(path, { force: true })
  } catch (error) {
    throw trouble(path, 'removed', error)
  }
  return there
}

export type Lock = {
  /** True when another process held it first: the protected data may have changed. */
  readonly waited: boolean
  /** Safe to call twice. */
  readonly release: () => void
  readonly [Symbol.dispose]: () => void
}

/** Milliseconds. */
const patience = 30_000
const busy = 5

/**
 * Takes a lock across all processes of this machine; the kernel releases it when its holder dies. It is an exclusive
 * SQLite transaction on a file that stays empty (docs/decisions/0008-refresh-lock.md). The file is never removed,
 * because waiting processes have it open. Rejects with the signal's reason, or `Fault` Timeout after `waitMs`.
 */
export async function acquire(path: string, signal: AbortSignal, waitMs = patience): Promise<Lock> {
  await awaitShare(path)
  ownFolder(dirname(path))
  try {
    // Create the file before SQLite, which would make it readable by all.
    closeSync(openSync(path, 'a', 0o600))
  } catch (error) {
    throw trouble(path, 'written', error)
  }
  const database = new (sqlite().DatabaseSync)(path, { timeout: 0 })
  const ends = performance.now() + waitMs
  try {
    for (let waited = false; ; waited = true) {
      signal.throwIfAborted()
      const release = (): void => close(database)
      if (begin(database)) return { waited, release, [Symbol.dispose]: release }
      if (performance.now() > ends) {
        throw new Fault('Timeout', `another svc has locked ${path} for more than ${waitMs / 1_000} s`, {
          hints: ['Find the svc process that hangs, and end it.'],
        })
      }
      // SQLite's own wait would block ctrl-C. Random pauses keep many waiting processes from retrying at the same time.
      await pause(15 + Math.random() * 25, undefined, { signal }).catch(() => {})
    }
  } catch (error) {
    close(database)
    throw error
  }
}

type Database = InstanceType<ReturnType<typeof sqlite>['DatabaseSync']>

function begin(database: Database): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if ((error as { errcode?: unknown }).errcode === busy) return false
    throw error
  }
}

/** Closing ends the transaction. */
function close(database: Database): void {
  if (database.isOpen) database.close()
}

/** The folder of an account's settings: `SVC_HOME`, else the platform's. svc.yaml is searched for in the same one. */
export function settingsFolder(env: ProcessEnvironment, platform: NodeJS.Platform = machine.platform): string {
  const paths = platform === 'win32' ? win32 : posix
  const folder = variable(env, 'SVC_HOME')
  if (folder !== undefined) {
    if (paths.isAbsolute(folder)) return folder
    throw new Fault('Local', 'SVC_HOME must be an absolute path of a folder', {
      hints: ['A relative path would depend on the current folder.'],
    })
  }
  const home = homeOf(env)
  if (platform === 'win32') return win32.join(env['APPDATA'] || win32.join(home, 'AppData', 'Roaming'), 'svc')
  if (platform === 'darwin') return posix.join(home, 'Library', 'Application Support', 'svc')
  const xdg = env['XDG_CONFIG_HOME']
  // The XDG specification says to ignore an empty or relative path.
  return posix.join(xdg !== undefined && posix.isAbsolute(xdg) ? xdg : posix.join(home, '.config'), 'svc')
}

/** The folder of what `svc` notes for its later processes: refusals, stores in use, what was sent without the store. */
export const stateFolder = (env: ProcessEnvironment): string => `${settingsFolder(env)}/state`

/** The notes about the stores that `svc serve` of this account uses: each a file, which somebody may remove. */
export function usedStores(env: ProcessEnvironment): NonNullable<OpenOptions['usedStores']> {
  const place = async (store: string) => {
    const folder = stateFolder(env)
    const name = createHash('sha256').update(store).digest('hex').slice(0, 16)
    const file = `${folder}/store-${name}.json`
    await awaitShare(file)
    return { folder, file }
  }
  return {
    noteOf: async (store) => {
      const { file } = await place(store)
      return existsSync(file) ? file : undefined
    },
    note: async (store) => {
      const { folder, file } = await place(store)
      if (existsSync(file)) return
      ownFolder(folder)
      writePrivate(file, `${JSON.stringify({ store })}\n`)
    },
  }
}

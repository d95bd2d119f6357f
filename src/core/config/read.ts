import type { Stats } from 'node:fs'
import { access, constants, type FileHandle, open, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Fault } from '../errors.ts'
import type { Candidate } from './find.ts'

/** Bytes: what a person writes is far smaller, and parsing more would only cost memory. */
const largestFile = 1024 * 1024

export type TrustOptions = {
  readonly platform: NodeJS.Platform
  /** Whose files are trusted beside root's: the numeric id of this account. */
  readonly uid: number | undefined
}

/**
 * The text of the file, or undefined when it does not exist. Throws Fault `Local` when it cannot be
 * read, when it is not a UTF-8 file of at most 1 MiB, or when somebody else could have written it.
 */
export async function readFile(candidate: Candidate, options: TrustOptions): Promise<string | undefined> {
  const { path } = candidate
  const file = await opened(candidate)
  if (!file) return undefined
  try {
    const stats = await file.stat()
    if (!stats.isFile())
      throw local(`${path} is not a regular file`, ['Name a file: svc reads nothing else as its configuration.'])
    // Windows keeps access lists that a mode cannot show: there the folder's own rights protect it.
    if (options.platform !== 'win32') await demandTrust(path, stats, options.uid)
    return decode(path, await content(path, file))
  } finally {
    await file.close()
  }
}

async function opened(candidate: Candidate): Promise<FileHandle | undefined> {
  const { path, from } = candidate
  try {
    // Non-blocking, so that a named pipe is refused instead of waited for.
    return await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    const missing = code === 'ENOENT' || code === 'ENOTDIR'
    if (missing && (from === 'user' || from === 'system')) return undefined
    if (missing)
      throw local(`${from} names ${path}, and there is no such file`, [`Correct ${from}, or create the file.`])
    if (code === 'EACCES') throw local(`${path} may not be read by this account`, [`chmod u+r ${quoted(path)}`])
    throw local(`${path} cannot be read (${code ?? 'unknown error'})`, ['Check the file.'], error)
  }
}

/** The file, and the folder that holds it, must be writable by their owner alone: this account, or root. */
async function demandTrust(path: string, stats: Stats, uid: number | undefined): Promise<void> {
  // Where the path is a link, both its own folder and that of the file it leads to decide what is read.
  const folders = new Set([dirname(path), dirname(await realpath(path))])
  const looked = [{ path, stats }]
  for (const folder of folders) looked.push({ path: folder, stats: await stat(folder) })
  const reasons: string[] = []
  const cures: string[] = []
  for (const place of looked) {
    if (place.stats.uid !== 0 && uid !== undefined && place.stats.uid !== uid) {
      reasons.push(`${place.path} belongs to another user (uid ${place.stats.uid})`)
      cures.push(`chown ${uid === 0 ? 'root' : uid} ${quoted(place.path)}`)
    }
    if ((place.stats.mode & 0o022) !== 0 && !(await readOnly(place.path))) {
      reasons.push(`${place.path} can be written by others (mode ${(place.stats.mode & 0o7777).toString(8)})`)
      cures.push(`chmod go-w ${quoted(place.path)}`)
    }
  }
  if (reasons.length === 0) return
  throw local(`The configuration is not trusted: ${reasons.join('; ')}`, [
    'Whoever can write it chooses what svc looks at, and where passwords are sent.',
    ...cures,
  ])
}

/** Whether nobody can write it, whatever its mode: a file system mounted read-only, as containers do. */
async function readOnly(path: string): Promise<boolean> {
  const error: unknown = await access(path, constants.W_OK).catch((reason: unknown) => reason)
  return (error as NodeJS.ErrnoException | undefined)?.code === 'EROFS'
}

async function content(path: string, file: FileHandle): Promise<Uint8Array> {
  const buffer = Buffer.alloc(largestFile + 1)
  let length = 0
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  if (length > largestFile) throw local(`${path} is larger than 1 MiB`, ['Is it the right file?'])
  return buffer.subarray(0, length)
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw local(`${path} is not UTF-8 text`, ['Save it as UTF-8.'])
  }
}

const local = (message: string, hints: readonly string[], cause?: unknown): Fault =>
  new Fault('Local', message, { hints, cause })

/** A path as a POSIX shell takes it. */
const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`)

import { constants, readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'

/** Reads a small text file of the system; undefined when it is not there or may not be read. */
export type ReadText = (path: string) => string | undefined

/** Only for /proc and /sys: the kernel answers from memory, so reading synchronously never waits for a disk. */
export const readText: ReadText = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

export type SmallFile = { readonly text: string; readonly modified: Date }

/**
 * A small regular file, whole. A pipe or a device is refused without waiting for it, so a path that
 * someone replaced cannot hang a run. Throws what the file system throws, or an Error that says why
 * the file is not one to read; `ENOENT` when there is none.
 */
export async function readSmallFile(path: string, maxBytes: number, signal: AbortSignal): Promise<SmallFile> {
  signal.throwIfAborted()
  const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new Error('is not a regular file')
    const buffer = Buffer.alloc(maxBytes + 1)
    let length = 0
    while (length < buffer.length) {
      signal.throwIfAborted()
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    if (length > maxBytes) throw new Error(`is larger than ${maxBytes} bytes`)
    return { text: buffer.toString('utf8', 0, length), modified: stats.mtime }
  } finally {
    await handle.close()
  }
}

/** True when an error means that there is no such file. */
export const isMissing = (error: unknown): boolean => {
  const code = (error as { code?: unknown } | undefined)?.code
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** What an error of the file system says, without the path that its message repeats. */
export function fileTrouble(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (isMissing(error)) return 'is not there'
  if (code === 'EACCES' || code === 'EPERM') return 'may not be read by this account'
  if (code === 'EISDIR') return 'is not a regular file'
  if (typeof code === 'string') return `cannot be read (${code})`
  return typeof message === 'string' ? message : 'cannot be read'
}

/** Asks macOS and Windows what Linux tells in /proc. */
export const loadSystemInformation = async () => (await import('systeminformation')).default

/** Loads it where it is used. */
export const preloadSystemInformation = async (): Promise<void> => {
  if (process.platform !== 'linux') await loadSystemInformation()
}

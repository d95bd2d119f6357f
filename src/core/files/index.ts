import { decodeText } from '../encoding.ts'
import { fileProblem } from '../file-errors.ts'
import { lazy } from '../lazy.ts'
import { ProbeError } from '../probe-error.ts'
import { type Share, shareAt } from './share.ts'
import { type FileStatus, type TaskInput, type TaskName, type TaskOutput, tasks } from './tasks.ts'

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

/** Whether a path leads to a share, where a program or a library that opens it needs a process of its own. */
export const isOnShare = (path: string): boolean => shareAt(path) !== undefined

/** Milliseconds that a share or a pipe may take where no deadline of a monitor applies. */
export const patienceMs = 5_000

/** Milliseconds that a share may take to say whether something is at a path. */
const lookMs = 500

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

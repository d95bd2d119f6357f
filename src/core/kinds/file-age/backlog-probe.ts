import { opendirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileTrouble, isWaiting } from '../../system/files.ts'

/** The request to the child process. A share that hangs blocks only the child. */
export type BacklogTask = {
  readonly path: string
  /** Whether to read the entries of a folder, or only to test whether it can be listed. */
  readonly list: boolean
  /** Considers only files whose names end with this; empty for all. */
  readonly ending: string
  /** Includes names that begin with a dot. */
  readonly hidden: boolean
}

/** Times are milliseconds since 1970. */
export type BacklogAnswer =
  | { readonly type: 'missing'; readonly why: string }
  | { readonly type: 'file'; readonly modified: number; readonly bytes: number }
  | {
      readonly type: 'folder'
      readonly files: number
      readonly oldest: { readonly name: string; readonly modified: number } | undefined
      /** True if the folder contains more entries than were read. */
      readonly more: boolean
    }

/** Maximum number of dated files, and of entries that are searched for them. */
export const maxFiles = 10_000
const maxEntries = 200_000

export default async function probe(input: unknown): Promise<BacklogAnswer> {
  const task = input as BacklogTask
  try {
    return look(task)
  } catch (error) {
    return { type: 'missing', why: fileTrouble(error) }
  }
}

function look(task: BacklogTask): BacklogAnswer {
  const target = statSync(task.path)
  if (target.isFile()) return { type: 'file', modified: target.mtimeMs, bytes: target.size }
  // The date of a pipe or a device means nothing.
  if (!target.isDirectory()) return { type: 'missing', why: 'is neither a file nor a folder' }
  return folder(task)
}

/** Reads only names and dates, and does not descend into folders. A link counts as its target. */
function folder({ path, list, ending, hidden }: BacklogTask): BacklogAnswer {
  const entries = opendirSync(path)
  let files = 0
  let oldest: { name: string; modified: number } | undefined
  let more = false
  try {
    for (let entryCount = 0; ; entryCount += 1) {
      const entry = entries.readSync()
      if (entry === null || !list) break
      if (entryCount >= maxEntries || files >= maxFiles) {
        more = true
        break
      }
      const { name } = entry
      if (!(hidden ? name.endsWith(ending) : isWaiting(name, ending))) continue
      if (!entry.isFile() && !entry.isSymbolicLink()) continue
      const modified = dateOf(join(path, name))
      if (modified === undefined) continue
      files += 1
      if (oldest === undefined || modified < oldest.modified) oldest = { name, modified }
    }
  } finally {
    entries.closeSync()
  }
  return { type: 'folder', files, oldest, more }
}

/**
 * The date of a file. Undefined for anything but a file, and for a file that was removed after it was listed, because
 * it no longer waits. A link may be broken or circular.
 */
function dateOf(path: string): number | undefined {
  try {
    const stats = statSync(path)
    return stats.isFile() ? stats.mtimeMs : undefined
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code === 'ENOENT' || code === 'ELOOP') return undefined
    throw error
  }
}

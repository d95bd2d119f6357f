import { opendirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileTrouble } from '../../system/files.ts'

/** What the child process is asked: a share that hangs can hold up nothing but the child. */
export type BacklogTask = {
  readonly path: string
  /** Whether to look into a folder, or only whether it can be listed. */
  readonly list: boolean
  /** Only files whose names end so; empty for all. */
  readonly ending: string
  /** Names that begin with a dot count too. */
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
      /** True when the folder holds more than was read. */
      readonly more: boolean
    }

/** Files that are dated, and entries that are gone through for them. */
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
  // A pipe or a device has a date too, and it means nothing.
  if (!target.isDirectory()) return { type: 'missing', why: 'is neither a file nor a folder' }
  return folder(task)
}

/** Names and dates only; does not descend. A link counts as the file that it leads to. */
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
      if (!name.endsWith(ending) || (!hidden && name.startsWith('.'))) continue
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
 * Undefined for what is no file, or not any more: taken away between its listing and this look, it
 * waits no longer. A link may lead nowhere, or in a circle.
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

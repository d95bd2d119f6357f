import { atMost, fail, ok, type Result, warn } from '../engine/index.ts'
import { count, quoted } from '../net/text.ts'
import type { FolderSettings } from './folder-settings.ts'

/** What waits in a drop folder. */
export type Backlog = {
  readonly see: 'backlog'
  readonly folder: string
  readonly files: number
  /** True when there are more entries than were looked at. */
  readonly more: boolean
  readonly oldest: { readonly name: string; readonly ms: number } | undefined
  /** Files wait, but the server tells no date that can be trusted. */
  readonly undated: boolean
}

/** A folder with more entries than this is judged by so many of them, and says so. */
export const mostEntries = 10_000

export function evaluateBacklog(seen: Backlog, given: FolderSettings): readonly Result[] {
  const { folder, files, more, oldest, undated } = seen
  const at = quoted(folder, 100)
  const aside = more ? ', the first of those that were looked at' : ''
  const known = (): Result => {
    if (undated)
      return warn(
        'oldest file',
        `${count(files, 'file waits', 'files wait')} in ${at}, but the server dates none (neither MLSD nor MDTM)`,
      )
    if (oldest === undefined)
      return more
        ? fail('oldest file', 'data', `none of the first ${mostEntries} entries of ${at} is a file that counts`)
        : ok('oldest file', `no file waits in ${at}`)
    const what = `oldest file of ${at}, ${quoted(oldest.name, 80)}${aside}, waits`
    return atMost({ check: 'oldest file', what, value: oldest.ms, unit: 'duration', threshold: given.age })
  }
  if (given.files === undefined) return [known()]
  const what = more ? 'files waiting, of those that were looked at:' : 'files waiting:'
  return [known(), atMost({ check: 'backlog', what, value: files, unit: 'count', threshold: given.files })]
}

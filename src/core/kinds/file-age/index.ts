import { isAbsolute } from 'node:path'
import { atMost, fail, includes, monitorKind, ok, type Result, warn } from '../../engine/index.ts'
import { showBytes } from '../../format.ts'
import { count, said } from '../../net/text.ts'
import type { Threshold } from '../../settings/index.ts'
import { type BacklogAnswer, type BacklogTask, mostFiles } from './backlog-probe.ts'

type Seen =
  | { readonly see: 'missing'; readonly why: string }
  | { readonly see: 'there'; readonly folder: boolean }
  | { readonly see: 'file'; readonly ms: number; readonly bytes: number }
  | {
      readonly see: 'backlog'
      readonly files: number
      readonly oldest: { readonly name: string; readonly ms: number } | undefined
      readonly more: boolean
    }

/**
 * A file that must be fresh (a backup, a report), or a folder whose backlog must stay small and
 * young. Reads names and times only, never what a file holds; does not descend into folders. Looks
 * in a child process: a share whose server is gone would hold up this one for ever.
 */
export default monitorKind({
  name: 'file-age',
  title: 'A file is fresh, or the backlog of a folder is small and young',
  settings: {
    path: { type: 'text', required: true, doc: 'The whole path of a file or a folder' },
    ending: { type: 'text', doc: 'Of a folder, only files whose names end so, for example .xml' },
    hidden: { type: 'flag', default: false, doc: 'Of a folder, also files whose names begin with a dot' },
    age: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 15 * 60_000, limit: 60 * 60_000 },
      doc: 'How old the file, or the oldest file of the folder, may be',
    },
    files: { type: 'threshold', unit: 'count', doc: 'How many files may wait in the folder' },
    size: { type: 'bytes', doc: 'How large the file must be at least: an empty backup is none' },
  },
  checks: [
    { name: 'there', depth: 'Basic', doc: 'The file is there, or the folder, and can be listed' },
    { name: 'age', depth: 'Standard', doc: 'The file, or the oldest of the folder, is young enough' },
    { name: 'size', depth: 'Standard', doc: 'The file is large enough; left out without `size`', when: ['size'] },
    {
      name: 'backlog',
      depth: 'Standard',
      doc: 'No more files wait in the folder than should; left out without `files`',
      when: ['files'],
    },
  ],
  validate: ({ path }) => (isAbsolute(path) ? undefined : `path is no whole path: ${said(path, 100)}`),
  async *observe(settings, context): AsyncGenerator<Seen> {
    const { path, ending = '', hidden } = settings
    const list = includes(context.mode, 'Standard')
    context.step('there', said(path, 200))
    const task: BacklogTask = { path, list, ending, hidden }
    const found = (await context.inChild('backlog', task)) as BacklogAnswer
    if (found.see === 'missing') return yield found
    yield { see: 'there', folder: found.see === 'folder' }
    if (!list) return
    // A clock that is ahead elsewhere makes no file younger than new.
    const now = context.date().getTime()
    const age = (modified: number): number => Math.max(0, now - modified)
    if (found.see === 'file') return yield { see: 'file', ms: age(found.modified), bytes: found.bytes }
    const { files, oldest, more } = found
    yield { see: 'backlog', files, oldest: oldest && { name: oldest.name, ms: age(oldest.modified) }, more }
  },
  evaluate: (seen, settings): Result | readonly Result[] => {
    const path = said(settings.path, 200)
    switch (seen.see) {
      case 'missing':
        return fail('there', 'data', `${path} ${seen.why}`)
      case 'there':
        return ok('there', `${path} is ${seen.folder ? 'a folder' : 'a file'}`)
      case 'file':
        return [
          evaluateAge(`file ${path}`, seen.ms, settings.age),
          ...(settings.size === undefined ? [] : [evaluateSize(path, seen.bytes, settings.size)]),
        ]
      case 'backlog': {
        const { files, oldest, more } = seen
        const told = more ? 'files waiting, and there are more:' : 'files waiting:'
        return [
          evaluateOldest(path, oldest, more, settings.age),
          ...(settings.files
            ? [atMost({ check: 'backlog', what: told, value: files, unit: 'count', threshold: settings.files })]
            : []),
        ]
      }
    }
  },
})

const evaluateAge = (what: string, ms: number, threshold: Threshold): Result =>
  atMost({ check: 'age', what: `${what}: age`, value: ms, unit: 'duration', threshold })

function evaluateOldest(
  path: string,
  oldest: { readonly name: string; readonly ms: number } | undefined,
  more: boolean,
  threshold: Threshold,
): Result {
  const unknown = `of more than can be dated (${count(mostFiles, 'file')})`
  if (oldest === undefined)
    return more ? warn('age', `${path} holds too much to find a file`) : ok('age', 'no file waits')
  const name = said(oldest.name, 100)
  const found = evaluateAge(`oldest file ${name}${more ? `, ${unknown}` : ''}`, oldest.ms, threshold)
  const judged = threshold.warn !== undefined || threshold.limit !== undefined
  // The oldest may be among those that were not looked at.
  return more && judged && found.status === 'ok' ? { ...found, status: 'warning' } : found
}

function evaluateSize(path: string, bytes: number, least: number): Result {
  const told = `file ${path} has ${showBytes(bytes)} (at least ${showBytes(least)})`
  const more: Partial<Result> = { measurement: { value: bytes, unit: 'bytes', limit: least } }
  return bytes < least ? fail('size', 'threshold', told, more) : ok('size', told, more)
}

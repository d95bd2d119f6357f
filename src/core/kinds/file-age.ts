import { isAbsolute } from 'node:path'
import {
  atLeast,
  atMost,
  type CheckContext,
  checksOn,
  fail,
  includes,
  machineKind,
  notChecked,
  ok,
  sharedRead,
  warn,
} from '../engine/index.ts'
import { fileProblem } from '../file-errors.ts'
import { evaluateAge } from '../folders/index.ts'
import { count, sanitize } from '../net/text.ts'
import type { SettingsSpec, Values } from '../settings/index.ts'

const selection = {
  path: { type: 'text', required: true, doc: 'Absolute path of a file or a folder' },
  ending: { type: 'text', doc: 'In a folder, only files whose names end with this, for example .xml' },
  hidden: { type: 'flag', default: false, doc: 'In a folder, include files whose names begin with a dot' },
} as const satisfies SettingsSpec

/** The most files of a folder that are dated. */
const maxFiles = 10_000

/** `name` is the path as shown in messages. */
type Path = { readonly name: string; readonly path: string; readonly ending: string; readonly hidden: boolean }
const check = checksOn<Path>()

const content = sharedRead(
  'there',
  'The file or folder',
  async ({ name, path, ...names }: Path, context: CheckContext) => {
    context.step('there', name)
    const now = context.date().getTime()
    const age = (modified: number) => ({ ms: now - modified, at: new Date(modified) })
    try {
      const { isFile, isFolder, modified, bytes } = await context.files('status', { path })
      if (isFile) return { name, file: { ...age(modified), bytes } }
      // The date of a pipe or a device means nothing.
      if (!isFolder) return { name, why: 'is neither a file nor a folder' }
      // In Basic, it is enough that the folder can be listed.
      const most = includes(context.mode, 'Standard') ? maxFiles : 0
      const { files, oldest, more } = await context.files('list', { path, ...names, maxFiles: most })
      return { name, folder: { files, oldest: oldest && { name: oldest.name, ...age(oldest.modified) }, more } }
    } catch (error) {
      context.signal.throwIfAborted()
      return { name, why: fileProblem(error) }
    }
  },
)

export const there = check({
  depth: 'Basic',
  results: { there: 'The file exists, or the folder exists and can be listed' },
  settings: {},
  gate: true,
  observe: content,
  evaluate: ({ name, why, folder }) =>
    why === undefined
      ? ok('there', `${name} is ${folder ? 'a folder' : 'a file'}`)
      : fail('there', 'data', `${name} ${why}`),
})

export const age = check({
  depth: 'Standard',
  results: { age: 'The age of the file, or of the oldest file in the folder' },
  settings: {
    age: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 15 * 60_000, limit: 60 * 60_000 },
      doc: 'Maximum age of the file, or of the oldest file in the folder',
    },
  },
  observe: content,
  evaluate: ({ name, file, folder }, { age: threshold }) => {
    if (file) return evaluateAge('age', `file ${name}: age`, file, threshold)
    if (!folder) return []
    const { oldest, more } = folder
    if (oldest === undefined) {
      return more ? warn('age', `${name} has too many entries to search for a file`) : ok('age', 'no file is waiting')
    }
    const part = more ? `, of more than can be dated (${count(maxFiles, 'file')})` : ''
    const result = evaluateAge('age', `oldest file ${sanitize(oldest.name, 100)}${part}: age`, oldest, threshold)
    const hasLimits = threshold.warn !== undefined || threshold.limit !== undefined
    // The oldest file may be among those that were not read.
    return more && hasLimits && result.status === 'ok' ? { ...result, status: 'warning' } : result
  },
})

export const size = check({
  depth: 'Standard',
  results: { size: 'The size of the file; left out without `size`' },
  settings: { size: { type: 'bytes', doc: 'Minimum size of the file: an empty backup is not a backup' } },
  when: ['size'],
  observe: content,
  evaluate: ({ name, file }, { size: limit = 0 }) =>
    file
      ? atLeast({ check: 'size', what: `file ${name} has`, value: file.bytes, unit: 'bytes', threshold: { limit } })
      : notChecked('size', 'missing', `${name} is a folder, and only a file has a size`),
})

export const backlog = check({
  depth: 'Standard',
  results: { backlog: 'The number of files waiting in the folder; left out without `files`' },
  settings: { files: { type: 'threshold', unit: 'count', doc: 'How many files may wait in the folder' } },
  when: ['files'],
  observe: content,
  evaluate: ({ name, folder }, { files: threshold = {} }) => {
    if (!folder) return notChecked('backlog', 'missing', `${name} is a file, and files wait only in a folder`)
    const what = folder.more ? 'files waiting (there are more):' : 'files waiting:'
    return atMost({ check: 'backlog', what, value: folder.files, unit: 'count', threshold })
  },
})

/**
 * A file that must be fresh (a backup, a report), or a folder whose backlog must stay small and young. Reads only names
 * and dates, never the content of a file. Does not descend into folders.
 */
export default machineKind({
  name: 'file-age',
  title: 'A file is fresh, or the backlog of a folder is small and young',
  settings: selection,
  validate: ({ path }) => (isAbsolute(path) ? undefined : `path is not an absolute path: ${sanitize(path, 100)}`),
  open: ({ path, ending = '', hidden }: Values<typeof selection>): Path => ({
    name: sanitize(path, 200),
    path,
    ending,
    hidden,
  }),
  checks: [there, age, size, backlog],
})

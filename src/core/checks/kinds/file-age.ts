import { basename, dirname, isAbsolute, join } from 'node:path'
import { fileProblem } from '../../base/file-errors.ts'
import type { ListedFile } from '../../base/files/index.ts'
import { count } from '../../base/format.ts'
import { sanitize } from '../../base/net/text.ts'
import type { SettingsSpec, Values } from '../../base/settings/index.ts'
import { limitsOn } from '../assert/limit-check.ts'
import {
  atLeast,
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
import { evaluateAge } from '../folders/index.ts'

const selection = {
  path: {
    type: 'text',
    observed: true,
    required: true,
    doc: 'Absolute path of a file or a folder. With * or ? in its last part, the files of the folder that match: /backup/db-*.dump',
  },
  ending: { type: 'text', observed: true, doc: 'In a folder, only files whose names end with this, for example .xml' },
  hidden: {
    type: 'flag',
    observed: true,
    default: false,
    doc: 'In a folder, include files whose names begin with a dot',
  },
} as const satisfies SettingsSpec

const isPattern = (path: string): boolean => /[*?]/.test(path)

/** The most files of a folder that are dated. */
const maxFiles = 10_000

/** `name` is the path as shown in messages. */
type Path = {
  readonly name: string
  readonly path: string
  readonly ending: string
  readonly hidden: boolean
  /** The pattern for the names of the files, if the path is a pattern. */
  readonly pattern: string | undefined
  /** False where only the newest file matters: a folder of backups keeps old ones. */
  readonly judgesOldest: boolean
  /** True where the newest file matters. */
  readonly judgesNewest: boolean
}
const check = checksOn<Path>()
const limitCheck = limitsOn<Path>()

const content = sharedRead(
  'there',
  'The file or folder',
  async ({ name, path, ending, hidden, pattern }: Path, context: CheckContext) => {
    context.step('there', name)
    const now = context.date().getTime()
    const age = (modified: number) => ({ ms: now - modified, at: new Date(modified) })
    try {
      const { isFile, isFolder, modified, bytes } = await context.files('status', { path })
      if (isFile && pattern === undefined) return { name, file: { ...age(modified), bytes } }
      // The date of a pipe or a device means nothing.
      if (!isFolder)
        return { name, why: pattern === undefined ? 'is neither a file nor a folder' : 'is not in a folder' }
      // In Basic, it is enough that the folder can be listed.
      const most = includes(context.mode, 'Standard') ? maxFiles : 0
      const listed = await context.files('list', { path, ending, hidden, pattern, maxFiles: most })
      const dated = (one: ListedFile | undefined) => one && { name: one.name, bytes: one.bytes, ...age(one.modified) }
      const { files, oldest, newest, more } = listed
      return { name, folder: { files, oldest: dated(oldest), newest: dated(newest), more } }
    } catch (error) {
      context.signal.throwIfAborted()
      return { name, why: fileProblem(error) }
    }
  },
)

export const there = check({
  depth: 'Basic',
  results: { there: 'The file exists, or the folder exists and can be listed' },
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
      doc: 'Maximum age of the file, or of the oldest file in the folder; with `newest`, only if it is set',
    },
  },
  applies: ({ judgesOldest }) => judgesOldest,
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

const newestSetting = {
  type: 'threshold',
  unit: 'duration',
  doc: 'Maximum age of the newest file in the folder: a folder of backups needs a recent one, however old the others are. Names that end with .part, .tmp, .partial, .filepart or .crdownload do not count',
} as const satisfies SettingsSpec[string]

export const newest = check({
  depth: 'Standard',
  results: { newest: 'The age of the newest file in the folder; left out without `newest`' },
  settings: { newest: newestSetting },
  when: ['newest'],
  observe: content,
  evaluate: ({ name, folder }, { newest: threshold = {} }) => {
    if (!folder) return notChecked('newest', 'missing', `${name} is a file, and only a folder has a newest one`)
    const { newest: file, more } = folder
    if (!file && !more) {
      const unfinished = folder.files > 0 ? `, only ${count(folder.files, 'file')} under a temporary name` : ''
      return fail('newest', 'data', `${name}: there is no file${unfinished}`)
    }
    const result = file && evaluateAge('newest', `newest file ${sanitize(file.name, 100)}: age`, file, threshold)
    if (result && (result.status === 'ok' || !more)) return result
    return notChecked('newest', 'missing', `${name} has more than ${maxFiles} files, so the newest one is unknown`)
  },
})

export const size = check({
  depth: 'Standard',
  results: { size: 'The size of the file, or with `newest` of the newest one; left out without `size`' },
  settings: {
    size: {
      type: 'bytes',
      doc: 'Minimum size of the file, or of the newest one: an empty backup is not a backup. Names that end with .part, .tmp, .partial, .filepart or .crdownload do not count',
    },
    newest: newestSetting,
  },
  when: ['size'],
  emptyWhere: 'the folder has no file, which the check `newest` reports',
  observe: content,
  evaluate: ({ name, file, folder }, { size: limit, newest: age }) => {
    if (limit === undefined) return []
    const latest = age === undefined ? undefined : folder?.newest
    const [value, of] = [
      file?.bytes ?? latest?.bytes,
      latest ? `newest file ${sanitize(latest.name, 100)}` : `file ${name}`,
    ]
    if (value !== undefined)
      return atLeast({ check: 'size', what: `${of} has`, value, unit: 'bytes', threshold: { limit } })
    if (age !== undefined) return []
    return notChecked(
      'size',
      'missing',
      `${name} is a folder, and only a file has a size: set newest for its newest one`,
    )
  },
})

export const zeros = check({
  depth: 'Advanced',
  results: {
    zeros:
      'The first and last 64 KiB of the file, or with `newest` of the newest one, are not all zero; left out for a file that svc may not read',
  },
  observe: async (path: Path, _, context: CheckContext) => {
    const { file, folder } = await content(path, _, context)
    const newest = path.judgesNewest ? folder?.newest : undefined
    if ((file?.bytes ?? newest?.bytes ?? 0) === 0) return undefined
    const name = newest ? `newest file ${sanitize(newest.name, 100)}` : `file ${path.name}`
    try {
      const { allZero } = await context.files('zeros', { path: newest ? join(path.path, newest.name) : path.path })
      return { name, allZero }
    } catch {
      context.signal.throwIfAborted()
      return undefined
    }
  },
  evaluate: (observed) => {
    if (observed === undefined) return []
    const { name, allZero } = observed
    if (!allZero) return ok('zeros', `${name} has content`)
    return warn(
      'zeros',
      `${name} begins and ends with nothing but zero bytes: it was reserved, and perhaps never written`,
    )
  },
})

export const backlog = limitCheck({
  depth: 'Standard',
  check: 'backlog',
  proves: 'The number of files waiting in the folder; left out without `files`',
  setting: 'files',
  unit: 'count',
  doc: 'How many files may wait in the folder',
  observe: content,
  evaluate: ({ name, folder }, compare) => {
    if (!folder) return notChecked('backlog', 'missing', `${name} is a file, and files wait only in a folder`)
    const what = folder.more ? 'files waiting (there are more):' : 'files waiting:'
    return compare({ what, value: folder.files })
  },
})

/**
 * A file that must be fresh (a backup, a report), or a folder whose backlog must stay small and young. Reads names and
 * dates, and in Advanced both ends of one file. Does not descend into folders.
 */
export default machineKind({
  name: 'file-age',
  title: 'A file is fresh, or the backlog of a folder is small and young',
  cost: { machine: 'It reads a file or a folder.' },
  settings: selection,
  validate: ({ path, ending }: Values<typeof selection>) => {
    if (!isAbsolute(path)) return `path is not an absolute path: ${sanitize(path, 100)}`
    if (isPattern(dirname(path))) return `path may have * and ? in its last part only: ${sanitize(path, 100)}`
    return isPattern(path) && ending !== undefined ? 'path has a pattern, so that ending cannot be set' : undefined
  },
  open: (
    { path, ending = '', hidden, newest: newestLimits }: Values<typeof selection & { newest: typeof newestSetting }>,
    { isConfigured }: CheckContext,
  ): Path => ({
    name: sanitize(path, 200),
    path: isPattern(path) ? dirname(path) : path,
    ending,
    // A pattern that begins with a dot names hidden files.
    hidden: hidden || (isPattern(path) && basename(path).startsWith('.')),
    pattern: isPattern(path) ? basename(path) : undefined,
    judgesNewest: newestLimits !== undefined,
    judgesOldest: newestLimits === undefined || isConfigured('age'),
  }),
  checks: [there, age, newest, size, backlog, zeros],
})

import { atMost, fail, ok } from '../judge.ts'
import { type Finding, monitorKind } from '../monitor.ts'
import { fileTrouble } from '../system/files.ts'

type Seen =
  | { readonly see: 'missing'; readonly why: string }
  | { readonly see: 'there'; readonly folder: boolean }
  | { readonly see: 'age'; readonly name: string; readonly ms: number }
  | { readonly see: 'backlog'; readonly files: number; readonly oldest: { name: string; ms: number } | undefined }

/** A folder with more entries than this is judged by so many of them, and says so. */
const mostRead = 10_000

/**
 * A file that must be fresh (a backup, a report), or a folder whose backlog must stay small and
 * young. Reads names and times only, never what a file holds; does not descend into folders.
 */
export default monitorKind({
  kind: 'file-age',
  title: 'A file is fresh, or the backlog of a folder is small and young',
  settings: {
    path: { type: 'text', required: true, doc: 'The whole path of a file or a folder' },
    ending: { type: 'text', doc: 'Of a folder, only files whose names end so, for example .xml' },
    age: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 15 * 60_000, limit: 60 * 60_000 },
      doc: 'How old the file, or the oldest file of the folder, may be',
    },
    files: { type: 'threshold', unit: 'count', doc: 'How many files may wait in the folder' },
  },
  checks: [
    { name: 'there', depth: 'Basic', doc: 'The file or folder is there and can be read' },
    { name: 'age', depth: 'Standard', doc: 'The file, or the oldest of the folder, is young enough' },
    { name: 'backlog', depth: 'Standard', doc: 'No more files wait in the folder than should' },
  ],
  async *observe(settings, world): AsyncGenerator<Seen> {
    const { opendir, stat } = await import('node:fs/promises')
    const { join } = await import('node:path')
    world.step('there', settings.path)
    const found = await stat(settings.path).catch((error: unknown) => ({ why: fileTrouble(error) }))
    if ('why' in found) return yield { see: 'missing', why: found.why }
    yield { see: 'there', folder: found.isDirectory() }
    if (world.mode === 'Basic') return
    world.step('age', settings.path)
    const now = world.date().getTime()
    if (!found.isDirectory()) return yield { see: 'age', name: settings.path, ms: now - found.mtimeMs }
    let files = 0
    let oldest: { name: string; ms: number } | undefined
    for await (const entry of await opendir(settings.path)) {
      world.signal.throwIfAborted()
      if (!entry.isFile() || !entry.name.endsWith(settings.ending ?? '')) continue
      files += 1
      if (files > mostRead) break
      // It may be taken away between its listing and this look: then it waits no more.
      const age = await stat(join(settings.path, entry.name)).then(
        (file) => now - file.mtimeMs,
        () => undefined,
      )
      if (age !== undefined && (oldest === undefined || age > oldest.ms)) oldest = { name: entry.name, ms: age }
    }
    yield { see: 'backlog', files, oldest }
  },
  judge: (seen, settings): Finding | readonly Finding[] => {
    if (seen.see === 'missing') return fail('there', 'data', `${settings.path} ${seen.why}`)
    if (seen.see === 'there') return ok('there', `${settings.path} is ${seen.folder ? 'a folder' : 'a file'}`)
    const old = (name: string, ms: number, what: string): Finding =>
      atMost({ check: 'age', what: `${what} ${name} is`, value: ms, unit: 'duration', threshold: settings.age })
    if (seen.see === 'age') return old(seen.name, seen.ms, 'file')
    const many =
      seen.files > mostRead ? `more than ${mostRead} files, of which as many were looked at` : 'files waiting:'
    return [
      seen.oldest ? old(seen.oldest.name, seen.oldest.ms, 'oldest file') : ok('age', 'no file waits'),
      ...(settings.files
        ? [atMost({ check: 'backlog', what: many, value: seen.files, unit: 'count', threshold: settings.files })]
        : []),
    ]
  },
})

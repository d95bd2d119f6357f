import { atMost, checksOn, fail, ok, type Result, warn } from '../engine/index.ts'
import { count, quoted } from '../net/text.ts'
import { type FolderConnection, maxEntries } from './folder-connection.ts'

export const backlog = checksOn<FolderConnection>()({
  depth: 'Advanced',
  results: {
    'oldest file': 'With `folder`: its oldest file does not wait too long',
    backlog: { doc: 'With `folder` and `files`: no more files wait than should', when: ['files'] },
  },
  settings: {
    folder: { type: 'text', doc: 'Drop folder whose oldest file is dated (Advanced)' },
    ending: { type: 'text', doc: 'Of the drop folder, only files whose names end so, for example .xml' },
    age: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 15 * 60_000, limit: 60 * 60_000 },
      doc: 'How long the oldest file of the drop folder may wait',
    },
    files: { type: 'threshold', unit: 'count', doc: 'How many files may wait in the drop folder' },
  },
  when: ['folder'],
  applies: ({ hasFolders }) => hasFolders,
  observe: async (connection, { folder = '', ending = '' }) => ({
    ...(await connection.backlog(folder, ending)),
    folder,
  }),
  evaluate({ folder, files, more, oldest, undated }, settings) {
    const at = quoted(folder, 100)
    const aside = more ? ', the first of those that were looked at' : ''
    const age = (): Result<'oldest file'> => {
      if (undated)
        return warn(
          'oldest file',
          `${count(files, 'file waits', 'files wait')} in ${at}, but the server dates none (neither MLSD nor MDTM)`,
        )
      if (oldest === undefined)
        return more
          ? fail('oldest file', 'data', `none of the first ${maxEntries} entries of ${at} is a file that counts`)
          : ok('oldest file', `no file waits in ${at}`)
      const what = `oldest file of ${at}, ${quoted(oldest.name, 80)}${aside}, waits`
      return atMost({ check: 'oldest file', what, value: oldest.ms, unit: 'duration', threshold: settings.age })
    }
    if (settings.files === undefined) return [age()]
    const what = more ? 'files waiting, of those that were looked at:' : 'files waiting:'
    return [age(), atMost({ check: 'backlog', what, value: files, unit: 'count', threshold: settings.files })]
  },
})

import { figure, flag, onDatabase, text, truth } from '../../database/index.ts'
import { atMost, notChecked, ok } from '../../engine/index.ts'
import { privilege } from './checks.ts'

export const archiveBacklog = onDatabase({
  depth: 'Advanced',
  results: { 'archive backlog': 'Few WAL files wait to be archived' },
  settings: {
    archiveBacklog: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 10, limit: 100 },
      doc: 'Maximum number of WAL files that wait to be archived',
    },
  },
  privilege,
  observe: async ({ ask }) => {
    const [row] = await ask(`SELECT current_setting('archive_mode') AS mode, pg_is_in_recovery() AS standby,
      to_regprocedure('pg_ls_archive_statusdir()') IS NOT NULL AS listed`)
    const mode = text(row, 'mode')
    const isArchiving = mode === 'always' || (mode === 'on' && flag(row, 'standby') === false)
    const [files] =
      isArchiving && truth(row, 'listed')
        ? await ask("SELECT count(*) AS ready FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'")
        : []
    return { mode, isArchiving, ready: figure(files, 'ready') }
  },
  evaluate: ({ mode, isArchiving, ready }, { archiveBacklog: threshold }) => {
    const check = 'archive backlog'
    if (mode === '') return notChecked(check, 'missing', 'archive_mode is not reported')
    if (mode === 'off') return ok(check, 'archive_mode is off, so there is nothing to archive')
    if (!isArchiving) return ok(check, 'the primary archives, not this standby')
    return atMost({ check, what: 'WAL files that wait:', value: ready, unit: 'count', threshold })
  },
})

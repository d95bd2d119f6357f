import { fileProblem } from '../../../base/file-errors.ts'
import { type ConfiguredFiles, readText } from '../../../base/files/index.ts'
import { sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { Threshold } from '../../../base/settings/index.ts'
import { figure, flag, limitOnDatabase, onDatabase, text, truth } from '../../database/index.ts'
import { atMost, fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { privilege, worstFirst } from './checks.ts'

export const archiveBacklog = limitOnDatabase({
  depth: 'Advanced',
  check: 'archive backlog',
  proves: 'Few WAL files wait to be archived',
  setting: 'archiveBacklog',
  unit: 'count',
  default: { warn: 10, limit: 100 },
  doc: 'Maximum number of WAL files that wait to be archived',
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
  evaluate: ({ mode, isArchiving, ready }, compare) => {
    const check = 'archive backlog'
    if (mode === '') return notChecked(check, 'missing', 'archive_mode is not reported')
    if (mode === 'off') return ok(check, 'archive_mode is off, so there is nothing to archive')
    if (!isArchiving) return ok(check, 'the primary archives, not this standby')
    return compare({ what: 'WAL files that wait:', value: ready })
  },
})

/** The backups of one stanza, according to `pgbackrest info --output=json`. */
type Stanza = ReturnType<typeof stanzasOf>[number]

/** Bytes. A thousand backups take about 1 MB. */
const maxInfoBytes = 8 * 1024 ** 2

export const backupAge = onDatabase({
  depth: 'Advanced',
  results: { 'backup age': 'The newest backup of pgBackRest is recent and complete; omitted without `pgbackrest`' },
  settings: {
    pgbackrest: {
      type: 'text',
      observed: true,
      doc: 'Absolute path of a file on this machine with the output of `pgbackrest info --output=json`. svc does not run pgbackrest: write the file where it runs, e.g. `pgbackrest info --output=json > FILE.new && mv FILE.new FILE` after each backup',
    },
    stanza: { type: 'text', observed: true, doc: 'The stanza of the file to check; by default all of them' },
    backupAge: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 26 * 3_600_000, limit: 50 * 3_600_000 },
      doc: 'Maximum age of the newest backup',
    },
  },
  when: ['pgbackrest'],
  elsewhere: true,
  observe: async (_, { pgbackrest: path = '', stanza }, { date, files }) => {
    const all = stanzasOf(await readInfo(path, files), path)
    const stanzas = all.filter(({ name }) => stanza === undefined || name === stanza)
    if (stanzas.length > 0) return { stanzas, now: date().getTime() }
    const which = stanza === undefined ? 'no stanza' : `no stanza ${sanitize(stanza, 64)}`
    throw new ProbeError('data', `${sanitize(path, 200)} contains ${which}`)
  },
  evaluate: ({ stanzas, now }, { backupAge: threshold }) => {
    const [worst, ...others] = worstFirst(stanzas.map((stanza) => evaluateStanza(stanza, now, threshold)))
    if (!worst) return notChecked('backup age', 'missing', 'no stanza is reported')
    return { ...worst, details: others.slice(0, 20).map(({ message }) => message) }
  },
})

function evaluateStanza(
  { name, code, message, newestAt, hasErrors }: Stanza,
  now: number,
  threshold: Threshold,
): Result<'backup age'> {
  const check = 'backup age'
  if (code !== 0)
    return fail(check, 'data', `stanza ${name}: ${message === '' ? 'its state is not reported' : message}`)
  if (newestAt === undefined) return fail(check, 'data', `stanza ${name} has no backup`)
  const result = atMost({
    check,
    what: `newest backup of stanza ${name} ended`,
    value: Math.max(0, now - newestAt),
    unit: 'duration',
    after: 'ago',
    threshold,
    at: new Date(newestAt),
  })
  if (!hasErrors || result.status === 'failed') return result
  const { measurement } = result
  return warn(check, `the newest backup of stanza ${name} contains pages with wrong checksums`, { measurement })
}

/** The text of the file. Throws ProbeError `data`, naming the file. */
async function readInfo(path: string, files: ConfiguredFiles): Promise<string> {
  try {
    return (await readText(files, path, maxInfoBytes)).text
  } catch (error) {
    throw new ProbeError('data', `${sanitize(path, 200)} ${fileProblem(error)}`)
  }
}

type Json = Readonly<Record<string, unknown>>
const asObject = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {})
const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Throws ProbeError `data` for anything other than the output of `pgbackrest info --output=json`. */
function stanzasOf(json: string, path: string) {
  let info: unknown
  try {
    info = JSON.parse(json)
  } catch {
    info = undefined
  }
  if (!Array.isArray(info)) {
    const what = 'is not the output of pgbackrest info --output=json'
    throw new ProbeError('data', `${sanitize(path, 200)} ${what}`)
  }
  return info.slice(0, 1_000).map((one) => {
    const stanza = asObject(one)
    const status = asObject(stanza['status'])
    const ended = asList(stanza['backup']).flatMap((backup) => {
      const { timestamp, error } = asObject(backup)
      const stop = figure(asObject(timestamp), 'stop')
      return stop === undefined ? [] : [{ at: stop * 1_000, hasErrors: error === true }]
    })
    const newest = ended.reduce<(typeof ended)[number] | undefined>(
      (latest, backup) => (latest === undefined || backup.at > latest.at ? backup : latest),
      undefined,
    )
    return {
      name: text(stanza, 'name'),
      /** 0 if all is well. */
      code: figure(status, 'code'),
      message: text(status, 'message'),
      /** When the newest backup ended, in milliseconds since 1970. Undefined without a backup. */
      newestAt: newest?.at,
      /** True if pages with wrong checksums were found during the newest backup. */
      hasErrors: newest?.hasErrors ?? false,
    }
  })
}

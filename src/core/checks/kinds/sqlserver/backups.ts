import type { SettingsSpec, Threshold } from '../../../base/settings/index.ts'
import { figure, type Row, text } from '../../database/index.ts'
import { atMost, notChecked, type Result } from '../../engine/index.ts'
import { grants, onSqlserver } from './access.ts'
import { ignore, listNames, withoutIgnored } from './checks.ts'
import { UnreadableError } from './errors.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/**
 * The time since the last event of a database, or since its creation if there has been none. Undefined if the server
 * reports neither.
 */
type Age = {
  readonly name: string
  readonly ageMs: number | undefined
  readonly at: Date | undefined
  readonly never: boolean
}

/** `column` and `made` are in minutes. */
function ageOf(row: Row, column: string, now: Date): Age {
  const minutes = figure(row, column)
  const since = minutes ?? figure(row, 'made')
  const of = { name: text(row, 'name'), never: minutes === undefined }
  if (since === undefined) return { ...of, ageMs: undefined, at: undefined }
  const ageMs = Math.max(0, since) * minute
  // The server reports whole minutes.
  return { ...of, ageMs, at: new Date(Math.floor((now.getTime() - ageMs) / minute) * minute) }
}

/** Evaluates the oldest one; the details name the others that are too old. */
function evaluateAges<const Name extends string>(
  { check, event, none }: { readonly check: Name; readonly event: string; readonly none?: string },
  all: readonly Age[],
  threshold: Threshold,
  ignored: readonly string[],
): readonly Result<Name>[] {
  if (threshold.warn === undefined && threshold.limit === undefined) return []
  if (all.length === 0 && none !== undefined) return [notChecked(check, 'missing', none)]
  const rank = ({ ageMs = Number.POSITIVE_INFINITY }: Age): number => ageMs
  const [oldest, ...others] = [...withoutIgnored(all, ignored)].sort((a, b) => rank(b) - rank(a))
  if (!oldest) return []
  if (oldest.ageMs === undefined) {
    return [notChecked(check, 'missing', `the server does not report the age of ${oldest.name}`)]
  }
  const { warn = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY } = threshold
  const old = others.filter((one) => rank(one) > Math.min(warn, limit)).map(({ name }) => name)
  return [
    atMost({
      check,
      what: oldest.never ? `${oldest.name}: no ${event} since it was created:` : `${oldest.name}: last ${event}: age`,
      value: oldest.ageMs,
      unit: 'duration',
      threshold,
      at: oldest.at,
      details: old.length === 0 ? [] : [`also too old: ${listNames(old)}`],
    }),
  ]
}

/** Every server has the database master. */
const noDatabase = 'the server lists no database'

const backupSettings = {
  ignore,
  fullBackup: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 48 * hour, limit: 72 * hour },
    doc: 'Maximum age of the last full backup of each database; {} disables this',
  },
  logBackup: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 30 * minute, limit: 60 * minute },
    doc: 'Maximum age of the last log backup of each database in FULL recovery; {} disables this',
  },
} as const satisfies SettingsSpec

/** Reads msdb of this server; skips databases that another replica backs up. */
export const backups = onSqlserver({
  depth: 'Advanced',
  results: {
    'full backup': 'Every database has a recent full backup',
    'log backup': 'Every database in FULL recovery has a recent log backup',
  },
  settings: backupSettings,
  grant: grants.backups,
  observe: async ({ ask }, now) => {
    const rows = await ask(`SELECT TOP (2000) d.name AS name, d.recovery_model_desc AS recovery, d.database_id AS id,
        DATEDIFF(MINUTE, d.create_date, GETDATE()) AS made,
        DATEDIFF(MINUTE, MAX(CASE WHEN b.type = 'D' THEN b.backup_finish_date END), GETDATE()) AS fullAge,
        DATEDIFF(MINUTE, MAX(CASE WHEN b.type = 'L' THEN b.backup_finish_date END), GETDATE()) AS logAge
      FROM sys.databases AS d LEFT JOIN msdb.dbo.backupset AS b ON b.database_name = d.name
      WHERE d.state = 0 AND d.source_database_id IS NULL AND d.is_in_standby = 0 AND d.name NOT IN ('tempdb', 'model')
        AND sys.fn_hadr_backup_is_preferred_replica(d.name) = 1
      GROUP BY d.name, d.recovery_model_desc, d.database_id, d.create_date ORDER BY d.name`)
    const own = rows.filter(
      (row) => text(row, 'recovery') === 'FULL' && (figure(row, 'id') ?? Number.POSITIVE_INFINITY) > 4,
    )
    return {
      full: rows.map((row) => ageOf(row, 'fullAge', now)),
      // A database has no chain of log backups before its first full backup.
      log: own.filter((row) => figure(row, 'fullAge') !== undefined).map((row) => ageOf(row, 'logAge', now)),
    }
  },
  evaluate: ({ full, log }, { fullBackup, logBackup, ignore: ignored }) => [
    ...evaluateAges({ check: 'full backup', event: 'full backup', none: noDatabase }, full, fullBackup, ignored),
    ...evaluateAges({ check: 'log backup', event: 'log backup' }, log, logBackup, ignored),
  ],
})

export const checkdb = onSqlserver({
  depth: 'Advanced',
  results: { checkdb: 'Every database has recently passed DBCC CHECKDB' },
  settings: {
    ignore,
    checkdb: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 14 * day },
      doc: 'Maximum age of the last DBCC CHECKDB without errors, for each database',
    },
  },
  grant: grants.definitions,
  observe: async ({ ask }, now) => {
    const rows = await ask(`SELECT TOP (2000) d.name AS name, DATEDIFF(MINUTE, d.create_date, GETDATE()) AS made,
        CASE WHEN c.good > '19000102' THEN DATEDIFF(MINUTE, c.good, GETDATE()) END AS age,
        CASE WHEN c.good IS NULL THEN 0 ELSE 1 END AS known
      FROM sys.databases AS d
        CROSS APPLY (SELECT CAST(DATABASEPROPERTYEX(d.name, 'LastGoodCheckDbTime') AS datetime) AS good) AS c
      WHERE d.state = 0 AND d.source_database_id IS NULL AND d.name <> 'tempdb' ORDER BY d.name`)
    // Servers before 2016 SP2 do not have this property.
    if (rows.length > 0 && rows.every((row) => figure(row, 'known') === 0)) {
      throw new UnreadableError('absent', 'this version does not report when DBCC CHECKDB last ran', [])
    }
    return rows.map((row) => ageOf(row, 'age', now))
  },
  evaluate: (ages, { ignore: ignored, checkdb: threshold }) =>
    evaluateAges({ check: 'checkdb', event: 'successful DBCC CHECKDB', none: noDatabase }, ages, threshold, ignored),
})

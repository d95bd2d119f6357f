import { show } from '../../../base/format.ts'
import type { SettingsSpec, Threshold } from '../../../base/settings/index.ts'
import { figure, type Row, text } from '../../database/index.ts'
import { atLeast, notChecked, type Result } from '../../engine/index.ts'
import { grants, onSqlserver, requireCounters } from './access.ts'
import { ignore, withoutIgnored } from './checks.ts'
import { UnreadableError } from './errors.ts'

/** The bytes in use in the files of a database, and the maximum that they can hold. Undefined: not reported. */
type Space = { readonly name: string; readonly used: number | undefined; readonly capacity: number | undefined }

const pageBytes = 8_192
/** The size of an unlimited log file: 2 TiB, in pages. */
const unlimitedLog = 268_435_456

/** Throws if there are no files, because every database has some. */
function requireFiles(files: readonly Row[]): readonly Row[] {
  if (files.length > 0) return files
  throw new UnreadableError('permission', 'this account cannot see the files without VIEW ANY DEFINITION', [])
}

const columns = `CAST(f.size AS bigint) AS size, f.max_size AS most, f.growth AS growth,
  v.volume_mount_point AS volume, v.available_bytes AS free`

const bytesOf = (pages: number | undefined): number | undefined => (pages === undefined ? undefined : pages * pageBytes)

/**
 * Sums the files by database. Their growth is limited by the files' own limits and by their volumes, each of which
 * counts once. A figure that is missing for one file makes the sum undefined.
 */
export function spaces(files: readonly Row[], usedIn: (file: Row) => number | undefined): readonly Space[] {
  // NaN in a sum stays NaN.
  type Volume = { growth: number; readonly free: number }
  const databases = new Map<string, { used: number; size: number; readonly volumes: Map<string, Volume> }>()
  for (const file of files) {
    const name = text(file, 'name')
    const of = databases.get(name) ?? { used: 0, size: 0, volumes: new Map<string, Volume>() }
    databases.set(name, of)
    const size = bytesOf(figure(file, 'size')) ?? Number.NaN
    of.used += usedIn(file) ?? Number.NaN
    of.size += size
    const mountPoint = text(file, 'volume', 200)
    const volume = of.volumes.get(mountPoint) ?? { growth: 0, free: figure(file, 'free') ?? Number.NaN }
    of.volumes.set(mountPoint, volume)
    volume.growth += Math.max(0, maxBytes(file) - size)
  }
  const reported = (sum: number): number | undefined => (Number.isNaN(sum) ? undefined : sum)
  // The free space of a volume does not matter to files that cannot grow.
  const usable = ({ growth, free }: Volume): number => (growth === 0 ? 0 : Math.min(growth, free))
  return [...databases].map(([name, { used, size, volumes }]) => ({
    name,
    used: reported(used),
    capacity: reported(size + [...volumes.values()].reduce((sum, volume) => sum + usable(volume), 0)),
  }))
}

function maxBytes(file: Row): number {
  const pages = figure(file, 'most') ?? Number.NaN
  if (figure(file, 'growth') === 0 || pages === 0) return bytesOf(figure(file, 'size')) ?? Number.NaN
  return pages < 0 || pages >= unlimitedLog ? Number.POSITIVE_INFINITY : pages * pageBytes
}

/** Evaluates the database with the least free space. `prefix` precedes its name. */
function evaluateSpaces<const Name extends string>(
  { check, prefix = '' }: { readonly check: Name; readonly prefix?: string },
  all: readonly Space[],
  threshold: Threshold,
  ignored: readonly string[],
): readonly Result<Name>[] {
  const free = ({ used = Number.NaN, capacity = Number.NaN }: Space): number =>
    capacity === 0 ? 0 : Math.max(0, ((capacity - used) / capacity) * 100)
  const databases = withoutIgnored(all, ignored)
  const unknown = databases.find((one) => Number.isNaN(free(one)))
  if (unknown) return [notChecked(check, 'missing', `the server does not report the space of ${prefix}${unknown.name}`)]
  const [tightest] = [...databases].sort((a, b) => free(a) - free(b))
  if (!tightest) return []
  const { name, used = 0, capacity = 0 } = tightest
  const what = `${prefix}${name}: ${show(used, 'bytes')} of ${show(capacity, 'bytes')} used, free`
  return [atLeast({ check, what, value: free(tightest), unit: 'percent', threshold })]
}

export const dataSpace = onSqlserver({
  depth: 'Standard',
  results: { 'data space': 'The database of the url has free space for data' },
  settings: {
    ignore,
    dataSpace: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 10, limit: 5 },
      doc: "Minimum free space for the data of the url's database, in percent of the maximum size of its files",
    },
  },
  grant: grants.definitions,
  observe: async ({ ask }) => {
    const files =
      await ask(`SELECT TOP (5000) DB_NAME() AS name, CAST(FILEPROPERTY(f.name, 'SpaceUsed') AS bigint) AS used,
        ${columns}
      FROM sys.database_files AS f OUTER APPLY sys.dm_os_volume_stats(DB_ID(), f.file_id) AS v WHERE f.type = 0`)
    return spaces(requireFiles(files), (file) => bytesOf(figure(file, 'used')))
  },
  evaluate: (all, { dataSpace: threshold, ignore: ignored }) =>
    evaluateSpaces({ check: 'data space' }, all, threshold, ignored),
})

const logSpaceSettings = {
  ignore,
  logSpace: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 10, limit: 5 },
    doc: 'Minimum free space for the log of each database, in percent of the maximum size of its files',
  },
} as const satisfies SettingsSpec

export const logSpace = onSqlserver({
  depth: 'Standard',
  results: { 'log space': 'Every log has free space' },
  settings: logSpaceSettings,
  grant: grants.definitions,
  observe: async ({ ask }) => {
    const counters = await ask(`SELECT TOP (5000) RTRIM(instance_name) AS name, cntr_value AS used
      FROM sys.dm_os_performance_counters
      WHERE counter_name = 'Log File(s) Used Size (KB)' AND object_name LIKE '%:Databases%'`)
    const files = await ask(`SELECT TOP (5000) d.name AS name, ${columns}
      FROM sys.databases AS d JOIN sys.master_files AS f ON f.database_id = d.database_id
        OUTER APPLY sys.dm_os_volume_stats(f.database_id, f.file_id) AS v
      WHERE f.type = 1 AND d.state = 0 AND d.source_database_id IS NULL AND d.name <> 'tempdb'`)
    const used = new Map(
      requireCounters(counters).flatMap((row): readonly (readonly [string, number])[] => {
        const kibibytes = figure(row, 'used')
        return kibibytes === undefined ? [] : [[text(row, 'name'), kibibytes * 1_024]]
      }),
    )
    return spaces(requireFiles(files), () => 0).map((space) => ({ ...space, used: used.get(space.name) }))
  },
  evaluate: (all, { logSpace: threshold, ignore: ignored }) =>
    evaluateSpaces({ check: 'log space', prefix: 'log of ' }, all, threshold, ignored),
})

export const tempdb = onSqlserver({
  depth: 'Advanced',
  results: { tempdb: 'tempdb has free space' },
  settings: {
    ignore,
    tempdb: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 10 },
      isMinimum: true,
      doc: 'Minimum free space in tempdb, in percent of the maximum size of its files',
    },
  },
  grant: grants.definitions,
  observe: async ({ ask }) => {
    const files = await ask(`SELECT TOP (5000) 'tempdb' AS name, ${columns}
      FROM tempdb.sys.database_files AS f OUTER APPLY sys.dm_os_volume_stats(2, f.file_id) AS v WHERE f.type = 0`)
    const [row] = await ask(`SELECT SUM(CAST(total_page_count - unallocated_extent_page_count AS bigint)) AS used
      FROM tempdb.sys.dm_db_file_space_usage`)
    const used = bytesOf(figure(row, 'used'))
    return spaces(requireFiles(files), () => 0).map((space) => ({ ...space, used }))
  },
  evaluate: (all, { tempdb: threshold, ignore: ignored }) =>
    evaluateSpaces({ check: 'tempdb' }, all, threshold, ignored),
})

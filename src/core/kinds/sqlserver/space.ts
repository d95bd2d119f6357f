import { type Ask, figure, type Row, text } from '../../database/index.ts'
import { Unlooked } from './faults.ts'
import { mustCount } from './look.ts'

/** Bytes that files hold by now, and all that they may come to hold. */
export type Space = { readonly name: string; readonly used: number; readonly room: number }
export type Spaces = { readonly see: 'spaces'; readonly check: SpaceCheck; readonly spaces: readonly Space[] }
export type SpaceCheck = 'data space' | 'log space' | 'tempdb'

const page = 8_192
/** The size of a log file that is called unlimited: 2 TiB, in pages. */
const unlimitedLog = 268_435_456

/** Not a silent green: no database is without files. */
function mustSee(files: readonly Row[]): readonly Row[] {
  if (files.length > 0) return files
  throw new Unlooked('permission', 'this account sees no files without VIEW ANY DEFINITION', [])
}

const columns = `CAST(f.size AS bigint) AS size, f.max_size AS most, f.growth AS growth,
  v.volume_mount_point AS volume, v.available_bytes AS free`

export async function lookAtDataSpace(ask: Ask): Promise<Spaces> {
  const files =
    await ask(`SELECT TOP (5000) DB_NAME() AS name, CAST(FILEPROPERTY(f.name, 'SpaceUsed') AS bigint) AS used,
      ${columns}
    FROM sys.database_files AS f OUTER APPLY sys.dm_os_volume_stats(DB_ID(), f.file_id) AS v WHERE f.type = 0`)
  return {
    see: 'spaces',
    check: 'data space',
    spaces: spaces(mustSee(files), (file) => (figure(file, 'used') ?? 0) * page),
  }
}

export async function lookAtTempdb(ask: Ask): Promise<Spaces> {
  const files = await ask(`SELECT TOP (5000) 'tempdb' AS name, ${columns}
    FROM tempdb.sys.database_files AS f OUTER APPLY sys.dm_os_volume_stats(2, f.file_id) AS v WHERE f.type = 0`)
  const [row] = await ask(`SELECT SUM(CAST(total_page_count - unallocated_extent_page_count AS bigint)) AS used
    FROM tempdb.sys.dm_db_file_space_usage`)
  const used = (figure(row, 'used') ?? 0) * page
  const all = spaces(mustSee(files), () => 0).map((space) => ({ ...space, used }))
  return { see: 'spaces', check: 'tempdb', spaces: all }
}

export async function lookAtLogSpace(ask: Ask): Promise<Spaces> {
  const counted = await ask(`SELECT TOP (5000) RTRIM(instance_name) AS name, cntr_value AS used
    FROM sys.dm_os_performance_counters
    WHERE counter_name = 'Log File(s) Used Size (KB)' AND object_name LIKE '%:Databases%'`)
  const files = await ask(`SELECT TOP (5000) d.name AS name, ${columns}
    FROM sys.databases AS d JOIN sys.master_files AS f ON f.database_id = d.database_id
      OUTER APPLY sys.dm_os_volume_stats(f.database_id, f.file_id) AS v
    WHERE f.type = 1 AND d.state = 0 AND d.source_database_id IS NULL AND d.name <> 'tempdb'`)
  const used = new Map(mustCount(counted).map((row) => [text(row, 'name'), (figure(row, 'used') ?? 0) * 1_024]))
  const all = spaces(mustSee(files), () => 0).map((space) => ({ ...space, used: used.get(space.name) ?? 0 }))
  return { see: 'spaces', check: 'log space', spaces: all }
}

/** Files by database. What they may grow by is bounded by their own limits and by their volumes, each counted once. */
export function spaces(files: readonly Row[], usedIn: (file: Row) => number): readonly Space[] {
  const found = new Map<string, { used: number; size: number; growth: Map<string, { wanted: number; free: number }> }>()
  for (const file of files) {
    const name = text(file, 'name')
    const of = found.get(name) ?? { used: 0, size: 0, growth: new Map() }
    found.set(name, of)
    const size = (figure(file, 'size') ?? 0) * page
    of.used += usedIn(file)
    of.size += size
    const volume = text(file, 'volume', 200)
    const on = of.growth.get(volume) ?? { wanted: 0, free: figure(file, 'free') ?? 0 }
    of.growth.set(volume, on)
    on.wanted += Math.max(0, mostOf(file) - size)
  }
  return [...found].map(([name, { used, size, growth }]) => ({
    name,
    used,
    room: size + [...growth.values()].reduce((sum, { wanted, free }) => sum + Math.min(wanted, free), 0),
  }))
}

function mostOf(file: Row): number {
  const most = figure(file, 'most') ?? 0
  if (figure(file, 'growth') === 0 || most === 0) return (figure(file, 'size') ?? 0) * page
  return most < 0 || most >= unlimitedLog ? Number.POSITIVE_INFINITY : most * page
}

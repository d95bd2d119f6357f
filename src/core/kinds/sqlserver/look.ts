import { type Ask, figure, type Row, text } from '../../database/index.ts'
import { Unlooked } from './faults.ts'

/** What an account has to be granted for a look. */
export type Need = 'databases' | 'server state' | 'definitions' | 'backups' | 'jobs'
/** The account, the edition or the version keeps a check from looking; `told` says which. */
export type Hidden = {
  readonly see: 'hidden'
  readonly check: string
  readonly told: string
  readonly need: Need | undefined
}

/** A look that turns a missing permission into an observation. */
export const allowed =
  <L>(check: string, need: Need, look: (ask: Ask) => Promise<L>) =>
  async (ask: Ask): Promise<L | Hidden> => {
    try {
      return await look(ask)
    } catch (error) {
      if (!(error instanceof Unlooked)) throw error
      return { see: 'hidden', check, told: error.message, need: error.why === 'permission' ? need : undefined }
    }
  }

/** Views that show an account without the permission only itself, or nothing, and no error. */
export function mustSee(row: Row | undefined, permission: string): void {
  if (figure(row, 'may') === 1) return
  throw new Unlooked('permission', `this account sees only a part without ${permission}`, [])
}
export const mayState = "HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE')"

/** The counters are empty where they could not be set up when the server was installed. */
export function mustCount(rows: readonly Row[]): readonly Row[] {
  if (rows.length > 0) return rows
  throw new Unlooked('absent', 'the performance counters of this server are empty (lodctr /R sets them up anew)', [])
}

export type Databases = {
  readonly see: 'databases'
  readonly databases: readonly { readonly name: string; readonly state: string }[]
}
export async function lookAtDatabases(ask: Ask): Promise<Databases> {
  const rows = await ask(`SELECT TOP (2000) HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DATABASE') AS may,
    name, state_desc AS state FROM sys.databases ORDER BY name`)
  mustSee(rows[0], 'VIEW ANY DATABASE')
  return { see: 'databases', databases: rows.map((row) => ({ name: text(row, 'name'), state: text(row, 'state') })) }
}

export type LogReuse = {
  readonly see: 'log reuse'
  readonly logs: readonly { readonly name: string; readonly waits: string; readonly used: number }[]
}
/** How full each log is by now, and what keeps its space from being used again. */
export async function lookAtLogReuse(ask: Ask): Promise<LogReuse> {
  const rows = await ask(`SELECT TOP (2000) d.name AS name, d.log_reuse_wait_desc AS waits, p.cntr_value AS used
    FROM sys.databases AS d JOIN sys.dm_os_performance_counters AS p ON p.instance_name = d.name
    WHERE d.state = 0 AND p.counter_name = 'Percent Log Used' AND p.object_name LIKE '%:Databases%' ORDER BY d.name`)
  return {
    see: 'log reuse',
    logs: mustCount(rows).map((row) => ({
      name: text(row, 'name'),
      waits: text(row, 'waits'),
      used: figure(row, 'used') ?? 0,
    })),
  }
}

export type Sessions = { readonly see: 'sessions'; readonly used: number; readonly most: number }
export async function lookAtSessions(ask: Ask): Promise<Sessions> {
  const [row] = await ask(`SELECT ${mayState} AS may,
    (SELECT COUNT(*) FROM sys.dm_exec_sessions WHERE is_user_process = 1) AS used,
    (SELECT CAST(value_in_use AS int) FROM sys.configurations WHERE name = 'user connections') AS configured,
    @@MAX_CONNECTIONS AS most`)
  mustSee(row, 'VIEW SERVER STATE')
  // 0 stands for as many as there can be.
  return {
    see: 'sessions',
    used: figure(row, 'used') ?? 0,
    most: figure(row, 'configured') || (figure(row, 'most') ?? 0),
  }
}

export type Blocked = {
  readonly see: 'blocked'
  readonly requests: number
  readonly longestMs: number
  readonly session: number | undefined
  readonly by: number | undefined
  readonly wait: string
}
export async function lookAtBlocked(ask: Ask): Promise<Blocked> {
  const rows =
    await ask(`SELECT TOP (1000) ${mayState} AS may, r.session_id AS session, r.blocking_session_id AS holder,
      r.wait_time AS waited, r.wait_type AS wait
    FROM (VALUES (1)) AS always (one) LEFT JOIN sys.dm_exec_requests AS r ON r.blocking_session_id <> 0
    ORDER BY r.wait_time DESC`)
  mustSee(rows[0], 'VIEW SERVER STATE')
  const blocked = rows.filter((row) => figure(row, 'session') !== undefined)
  const [longest] = blocked
  return {
    see: 'blocked',
    requests: blocked.length,
    longestMs: figure(longest, 'waited') ?? 0,
    session: figure(longest, 'session'),
    by: figure(longest, 'holder'),
    wait: text(longest, 'wait'),
  }
}

/** Minutes since something was last done to a database; undefined for never. */
export type Aged = { readonly name: string; readonly ageMs: number; readonly never: boolean }
const minutes = 60_000
const aged = (row: Row, age: string): Aged => {
  const known = figure(row, age)
  // What was never done counts from when the database was made.
  const since = known ?? figure(row, 'made') ?? 0
  return { name: text(row, 'name'), ageMs: Math.max(0, since) * minutes, never: known === undefined }
}

export type Backups = { readonly see: 'backups'; readonly full: readonly Aged[]; readonly log: readonly Aged[] }
/** What msdb of this server knows; databases that are to be backed up on another replica are left out. */
export async function lookAtBackups(ask: Ask): Promise<Backups> {
  const rows = await ask(`SELECT TOP (2000) d.name AS name, d.recovery_model_desc AS recovery, d.database_id AS id,
      DATEDIFF(MINUTE, d.create_date, GETDATE()) AS made,
      DATEDIFF(MINUTE, MAX(CASE WHEN b.type = 'D' THEN b.backup_finish_date END), GETDATE()) AS fullAge,
      DATEDIFF(MINUTE, MAX(CASE WHEN b.type = 'L' THEN b.backup_finish_date END), GETDATE()) AS logAge
    FROM sys.databases AS d LEFT JOIN msdb.dbo.backupset AS b ON b.database_name = d.name
    WHERE d.state = 0 AND d.source_database_id IS NULL AND d.is_in_standby = 0 AND d.name NOT IN ('tempdb', 'model')
      AND sys.fn_hadr_backup_is_preferred_replica(d.name) = 1
    GROUP BY d.name, d.recovery_model_desc, d.database_id, d.create_date ORDER BY d.name`)
  const own = rows.filter((row) => text(row, 'recovery') === 'FULL' && (figure(row, 'id') ?? 0) > 4)
  return {
    see: 'backups',
    full: rows.map((row) => aged(row, 'fullAge')),
    // Until its first full backup a database has no chain of log backups.
    log: own.filter((row) => figure(row, 'fullAge') !== undefined).map((row) => aged(row, 'logAge')),
  }
}

export type Checkdb = { readonly see: 'checkdb'; readonly databases: readonly Aged[] }
export async function lookAtCheckdb(ask: Ask): Promise<Checkdb> {
  const rows = await ask(`SELECT TOP (2000) d.name AS name, DATEDIFF(MINUTE, d.create_date, GETDATE()) AS made,
      CASE WHEN c.good > '19000102' THEN DATEDIFF(MINUTE, c.good, GETDATE()) END AS age,
      CASE WHEN c.good IS NULL THEN 0 ELSE 1 END AS known
    FROM sys.databases AS d
      CROSS APPLY (SELECT CAST(DATABASEPROPERTYEX(d.name, 'LastGoodCheckDbTime') AS datetime) AS good) AS c
    WHERE d.state = 0 AND d.source_database_id IS NULL AND d.name <> 'tempdb' ORDER BY d.name`)
  // Servers before 2016 SP2 do not tell.
  if (rows.length > 0 && rows.every((row) => figure(row, 'known') === 0)) {
    throw new Unlooked('absent', 'this version does not tell when DBCC CHECKDB last ran', [])
  }
  return { see: 'checkdb', databases: rows.map((row) => aged(row, 'age')) }
}

export type Jobs = { readonly see: 'jobs'; readonly enabled: number; readonly failed: readonly string[] }
export async function lookAtJobs(ask: Ask): Promise<Jobs> {
  const rows = await ask(`SELECT TOP (1000) j.name AS name, COUNT(*) OVER () AS enabled,
      CASE WHEN s.last_run_outcome = 0 AND s.last_run_date > 0 THEN 1 ELSE 0 END AS failed
    FROM msdb.dbo.sysjobs AS j JOIN msdb.dbo.sysjobservers AS s ON s.job_id = j.job_id
    WHERE j.enabled = 1 ORDER BY failed DESC, j.name`)
  return {
    see: 'jobs',
    enabled: figure(rows[0], 'enabled') ?? 0,
    failed: rows.filter((row) => figure(row, 'failed') === 1).map((row) => text(row, 'name')),
  }
}

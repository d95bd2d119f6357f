import type { TdsAnswer } from './tds.ts'

/** Pages of 8 KiB in a GiB. */
export const GiB = 1024 ** 3 / 8_192

/** The answer of a server whose clock is off by so many milliseconds. */
export const clockAt = (ms: number) => [{ at: Date.now() + ms }]
/** The answers of a healthy server: a part of each statement, and its rows. */
export const healthy: Readonly<Record<string, readonly Readonly<Record<string, string | number | null>>[]>> = {
  'SELECT 1 AS one': [{ one: 1 }],
  'state_desc AS state FROM sys.databases': [
    { may: 1, name: 'master', state: 'ONLINE' },
    { may: 1, name: 'orders', state: 'ONLINE' },
  ],
  'Percent Log Used': [
    { name: 'master', waits: 'NOTHING', used: 60 },
    { name: 'orders', waits: 'LOG_BACKUP', used: 12 },
  ],
  'sys.dm_exec_sessions': [{ may: 1, used: 41, configured: 0, most: 32_767 }],
  'sys.dm_exec_requests': [{ may: 1, session: null, holder: null, waited: null, wait: null }],
  SpaceUsed: [
    { name: 'orders', used: 3 * GiB, size: 4 * GiB, most: -1, growth: 8_192, volume: 'D:\\', free: 6 * 1024 ** 3 },
  ],
  'Log File(s) Used Size': [{ name: 'orders', used: 1_048_576 }],
  'sys.master_files': [{ name: 'orders', size: 4 * GiB, most: 0, growth: 0, volume: 'L:\\', free: 0 }],
  'msdb.dbo.backupset': [
    { name: 'master', recovery: 'SIMPLE', id: 1, made: 9_000_000, fullAge: 600, logAge: null },
    { name: 'orders', recovery: 'FULL', id: 7, made: 900_000, fullAge: 1_200, logAge: 15 },
  ],
  IsHadrEnabled: [{ hadr: 1, may: 1 }],
  'r.role_desc AS role': [{ name: 'ag1', holder: 'DB01', role: 'PRIMARY', health: 'HEALTHY' }],
  is_suspended: [],
  'tempdb.sys.database_files': [
    { name: 'tempdb', size: GiB, most: 8 * GiB, growth: 8_192, volume: 'T:\\', free: 10 * 1024 ** 3 },
  ],
  'tempdb.sys.dm_db_file_space_usage': [{ used: GiB / 2 }],
  'msdb.dbo.sysjobs': [{ name: 'nightly', enabled: 1, failed: 0 }],
  LastGoodCheckDbTime: [{ name: 'orders', made: 900_000, age: 4_320, known: 1 }],
}
/** Answers by what a statement contains; `over` comes first. */
export const answers =
  (over: Readonly<Record<string, TdsAnswer>> = {}) =>
  (sql: string): TdsAnswer => {
    for (const [part, answer] of Object.entries(over)) if (sql.includes(part)) return answer
    if (sql.includes('SYSUTCDATETIME()')) return { rows: clockAt(0) }
    for (const [part, rows] of Object.entries(healthy)) if (sql.includes(part)) return { rows }
    return { error: { number: 208, message: `Invalid object name '${sql.slice(0, 40)}'.` } }
  }

import {
  databaseTarget,
  evaluateVisit,
  type Look,
  lookAtClock,
  queriesCheck,
  queriesProblem,
  queryLooks,
  slotOf,
  sqlserverAccount,
  type Visit,
  visit,
} from '../../database/index.ts'
import { includes, monitorKind } from '../../engine/index.ts'
import { loadTedious, openSqlserver } from './driver.ts'
import { lookAtGroups } from './groups.ts'
import { evaluateLook, type SqlserverLook } from './judge.ts'
import {
  allowed,
  lookAtBackups,
  lookAtBlocked,
  lookAtCheckdb,
  lookAtDatabases,
  lookAtJobs,
  lookAtLogReuse,
  lookAtSessions,
} from './look.ts'
import { sqlserverSettings } from './settings.ts'
import { lookAtDataSpace, lookAtLogSpace, lookAtTempdb } from './space.ts'

const standard: readonly Look<SqlserverLook>[] = [
  ['databases', allowed('databases', 'databases', lookAtDatabases)],
  ['log reuse', allowed('log reuse', 'server state', lookAtLogReuse)],
  ['sessions', allowed('sessions', 'server state', lookAtSessions)],
  ['blocked', allowed('blocked', 'server state', lookAtBlocked)],
  ['data space', allowed('data space', 'definitions', lookAtDataSpace)],
  ['log space', allowed('log space', 'definitions', lookAtLogSpace)],
]
const advanced: readonly Look<SqlserverLook>[] = [
  ['full backup', allowed('full backup', 'backups', lookAtBackups)],
  ['availability group', allowed('availability group', 'definitions', lookAtGroups)],
  ['tempdb', allowed('tempdb', 'definitions', lookAtTempdb)],
  ['failed jobs', allowed('failed jobs', 'jobs', lookAtJobs)],
  ['checkdb', allowed('checkdb', 'definitions', lookAtCheckdb)],
]
/**
 * Milliseconds since 1970. Counted from 2020, for DATEDIFF counts seconds in 32 bits, and whole
 * milliseconds at once only since SQL Server 2016.
 */
const clockSql = `SELECT (CAST(DATEDIFF(SECOND, '20200101', t) AS bigint) + 1577836800) * 1000
  + DATEPART(MILLISECOND, t) AS [at] FROM (VALUES (SYSUTCDATETIME())) AS clock (t)`
const defaultPort = 1_433

/** Signs in and only reads. Nothing of it stays on the server after the deadline. */
export default monitorKind({
  name: 'sqlserver',
  title: 'A Microsoft SQL Server works, and would survive the night',
  preload: loadTedious,
  settings: sqlserverSettings,
  checks: [
    { name: 'connect', depth: 'Basic', doc: 'The server lets the login in, in time' },
    { name: 'query', depth: 'Basic', doc: 'SELECT 1 is answered in time' },
    { name: 'databases', depth: 'Standard', doc: 'Every database is ONLINE' },
    { name: 'log reuse', depth: 'Standard', doc: 'No log fills up because something keeps its space' },
    { name: 'sessions', depth: 'Standard', doc: 'Connections are left' },
    { name: 'blocked', depth: 'Standard', doc: 'No request waits too long for another' },
    { name: 'data space', depth: 'Standard', doc: "The url's database has room for data" },
    { name: 'log space', depth: 'Standard', doc: 'Every log has room' },
    { name: 'full backup', depth: 'Advanced', doc: 'Every database has a full backup that is young enough' },
    { name: 'log backup', depth: 'Advanced', doc: 'So has every log of a database in FULL recovery' },
    {
      name: 'availability group',
      depth: 'Advanced',
      doc: 'Its availability groups are healthy, as far as this is their primary; left out without any',
    },
    { name: 'tempdb', depth: 'Advanced', doc: 'tempdb has room' },
    { name: 'failed jobs', depth: 'Advanced', doc: 'No enabled Agent job failed when it last ran' },
    { name: 'checkdb', depth: 'Advanced', doc: 'DBCC CHECKDB found every database sound, not long ago' },
    { name: 'clock', depth: 'Advanced', doc: "The server's clock agrees with ours" },
    queriesCheck,
  ],
  target: (settings) => slotOf(settings, defaultPort),
  signsIn: () => true,
  validate: ({ queries }) => queriesProblem(queries, 'sqlserver'),
  async *observe(settings, context): AsyncGenerator<Visit<SqlserverLook>> {
    const looks = [
      ...(includes(context.mode, 'Standard') ? standard : []),
      ...(includes(context.mode, 'Advanced') ? advanced : []),
      ...(includes(context.mode, 'Advanced') ? [['clock', lookAtClock(context, clockSql)] as const] : []),
      ...queryLooks(settings.queries, context, sqlserverAccount),
    ]
    // Not in the time that the server is said to take.
    await loadTedious()
    yield* visit(context, databaseTarget(settings, defaultPort), openSqlserver, looks)
  },
  evaluate: (seen, settings) => evaluateVisit(seen, settings.latency, (look) => evaluateLook(look, settings)),
})

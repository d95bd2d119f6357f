import { count } from '../../../base/format.ts'
import { skipSetting, withoutSkipped } from '../../assert/skip.ts'
import { figure, type Row, text } from '../../database/index.ts'
import { atMost, fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { grants, mayState, onSqlserver, requireCounters, requirePermission } from './access.ts'

/** A setting that all checks of the server's databases share. */
export const ignore = skipSetting('Databases')

/** The databases without the ignored ones. */
export const withoutIgnored = <T extends { readonly name: string }>(
  databases: readonly T[],
  names: readonly string[],
): readonly T[] =>
  withoutSkipped(databases, ({ name }) => name, names).filter(
    ({ name }) => !names.some((one) => one.toLowerCase() === name.toLowerCase()),
  )

/** The first few names, and the number of the others. */
export const listNames = (names: readonly string[]): string =>
  names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ')

/** States on the way to ONLINE, or in which log shipping keeps a database on purpose. */
const passing = new Set(['RESTORING', 'RECOVERING', 'COPYING'])

export const databases = onSqlserver({
  depth: 'Standard',
  results: { databases: 'Every database is ONLINE' },
  settings: { ignore },
  grant: grants.databases,
  observe: async ({ ask }) => {
    const rows = await ask(`SELECT TOP (2000) HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DATABASE') AS may,
      name, state_desc AS state FROM sys.databases ORDER BY name`)
    requirePermission(rows[0], 'VIEW ANY DATABASE')
    return rows.map((row) => ({ name: text(row, 'name'), state: text(row, 'state') }))
  },
  evaluate: (all, { ignore: names }) => {
    const databases = withoutIgnored(all, names)
    const bad = databases.filter(({ state }) => state !== 'ONLINE')
    if (bad.length === 0) return ok('databases', `${count(databases.length, 'database')} ONLINE`)
    const states = [...bad]
      .sort((a, b) => Number(passing.has(a.state)) - Number(passing.has(b.state)))
      .map(({ name, state }) => `${name} is ${state}`)
    const message = `${bad.length} of ${count(databases.length, 'database')} not ONLINE: ${listNames(states)}`
    return bad.every(({ state }) => passing.has(state))
      ? warn('databases', message)
      : fail('databases', 'data', message)
  },
})

/** Reasons for which every log waits occasionally and briefly. */
const usualWaits = new Set(['NOTHING', 'CHECKPOINT', 'OLDEST_PAGE', 'XTP_CHECKPOINT'])
const causes: Readonly<Record<string, string>> = {
  LOG_BACKUP: 'log backups have stopped, or are too infrequent',
  ACTIVE_TRANSACTION: 'a transaction has been open for a long time',
  AVAILABILITY_REPLICA: 'a secondary replica does not keep up',
  REPLICATION: 'replication or change data capture does not keep up',
  DATABASE_MIRRORING: 'the mirror does not keep up',
  ACTIVE_BACKUP_OR_RESTORE: 'a backup or restore is running',
}

export const logReuse = onSqlserver({
  depth: 'Standard',
  results: { 'log reuse': 'No log is filling up because its space cannot be reused' },
  settings: {
    ignore,
    logReuse: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 50 },
      doc: 'Maximum fill level of a log whose space cannot be reused',
    },
  },
  grant: grants.serverState,
  observe: async ({ ask }) => {
    const rows = await ask(`SELECT TOP (2000) d.name AS name, d.log_reuse_wait_desc AS waits, p.cntr_value AS used
      FROM sys.databases AS d JOIN sys.dm_os_performance_counters AS p ON p.instance_name = d.name
      WHERE d.state = 0 AND p.counter_name = 'Percent Log Used' AND p.object_name LIKE '%:Databases%' ORDER BY d.name`)
    return requireCounters(rows).map((row) => ({
      name: text(row, 'name'),
      /** The reason why the space of the log cannot be reused. */
      waits: text(row, 'waits'),
      /** Percent; undefined if it is not reported. */
      used: figure(row, 'used'),
    }))
  },
  evaluate: (logs, { ignore: names, logReuse: threshold }) => {
    const waiting = withoutIgnored(logs, names).filter(({ waits }) => !usualWaits.has(waits))
    const unknown = waiting.find(({ waits }) => waits === '')
    if (unknown) return notChecked('log reuse', 'missing', `the state of the log of ${unknown.name} is not reported`)
    const rank = ({ used = Number.POSITIVE_INFINITY }: { readonly used?: number | undefined }): number => used
    const [worst] = [...waiting].sort((a, b) => rank(b) - rank(a))
    if (!worst) return ok('log reuse', 'the space of every log can be reused')
    const cause = causes[worst.waits]
    return atMost({
      check: 'log reuse',
      what: `log of ${worst.name} waits for ${worst.waits}; fill level`,
      value: worst.used,
      unit: 'percent',
      threshold,
      details: cause === undefined ? [] : [`${worst.waits}: ${cause}`],
    })
  },
})

export const sessions = onSqlserver({
  depth: 'Standard',
  results: { sessions: 'Enough connections remain' },
  settings: {
    sessions: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 80, limit: 95 },
      doc: 'Maximum number of user connections, in percent of the limit of the server',
    },
  },
  grant: grants.serverState,
  observe: async ({ ask }) => {
    const [row] = await ask(`SELECT ${mayState} AS may,
      (SELECT COUNT(*) FROM sys.dm_exec_sessions WHERE is_user_process = 1) AS used,
      (SELECT CAST(value_in_use AS int) FROM sys.configurations WHERE name = 'user connections') AS configured,
      @@MAX_CONNECTIONS AS most`)
    requirePermission(row, 'VIEW SERVER STATE')
    // 0 means the maximum of the server.
    return { used: figure(row, 'used'), max: figure(row, 'configured') || figure(row, 'most') }
  },
  evaluate: ({ used, max }, { sessions: threshold }) =>
    used === undefined || !max
      ? notChecked('sessions', 'missing', 'the server does not report the number of sessions or its limit')
      : atMost({
          check: 'sessions',
          what: `${used} of ${max} sessions:`,
          value: (used / max) * 100,
          unit: 'percent',
          threshold,
        }),
})

export const blocked = onSqlserver({
  depth: 'Standard',
  results: { blocked: 'No request is blocked for too long' },
  settings: {
    blocked: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 60_000 },
      doc: 'Maximum time that a request is blocked by another',
    },
  },
  grant: grants.serverState,
  observe: async ({ ask }) => {
    const rows =
      await ask(`SELECT TOP (1000) ${mayState} AS may, r.session_id AS session, r.blocking_session_id AS holder,
        r.wait_time AS waited, r.wait_type AS wait
      FROM (VALUES (1)) AS always (one) LEFT JOIN sys.dm_exec_requests AS r ON r.blocking_session_id <> 0
      ORDER BY r.wait_time DESC`)
    requirePermission(rows[0], 'VIEW SERVER STATE')
    const requests = rows.filter((row) => figure(row, 'session') !== undefined)
    const [first] = requests
    return {
      requests: requests.length,
      maxMs: figure(first, 'waited'),
      session: figure(first, 'session'),
      /** The session that blocks it. */
      blocker: figure(first, 'holder'),
      wait: text(first, 'wait'),
    }
  },
  evaluate: ({ requests, maxMs, session, blocker, wait }, { blocked: threshold }) => {
    if (requests === 0) return ok('blocked', 'no request is blocked')
    const by = blocker !== undefined && blocker > 0 ? `by session ${blocker}` : 'by a transaction without a session'
    return atMost({
      check: 'blocked',
      what: `${count(requests, 'blocked request')}; session ${session ?? '?'} is blocked ${by} for`,
      value: maxMs,
      unit: 'duration',
      threshold,
      details: wait === '' ? [] : [`wait type: ${wait}`],
    })
  },
})

const mayDefinition = "HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DEFINITION')"

type Group = {
  readonly name: string
  /** The primary replica; empty if there is none. */
  readonly primary: string
  /** The role of this server. */
  readonly role: string
  readonly health: string
  /** The databases that do not keep up, one per line. */
  readonly unhealthy: readonly string[]
}

export const availabilityGroups = onSqlserver({
  depth: 'Advanced',
  results: {
    'availability group': 'The availability groups whose primary is this server are healthy; omitted without any',
  },
  grant: grants.definitions,
  observe: async ({ ask }): Promise<readonly Group[]> => {
    const [server] = await ask(
      `SELECT CAST(SERVERPROPERTY('IsHadrEnabled') AS int) AS hadr, ${mayState} & ${mayDefinition} AS may`,
    )
    if (figure(server, 'hadr') !== 1) return []
    requirePermission(server, 'VIEW SERVER STATE and VIEW ANY DEFINITION')
    const groups = await ask(`SELECT TOP (100) g.name AS name, s.primary_replica AS holder, r.role_desc AS role,
        s.synchronization_health_desc AS health
      FROM sys.availability_groups AS g
        LEFT JOIN sys.dm_hadr_availability_group_states AS s ON s.group_id = g.group_id
        LEFT JOIN sys.dm_hadr_availability_replica_states AS r ON r.group_id = g.group_id AND r.is_local = 1
      ORDER BY g.name`)
    const unhealthy = await ask(`SELECT TOP (100) g.name AS name, a.replica_server_name AS replica, d.name AS dbase,
        s.synchronization_state_desc AS state, s.suspend_reason_desc AS reason,
        s.log_send_queue_size AS toSend, s.redo_queue_size AS toRedo
      FROM sys.dm_hadr_database_replica_states AS s JOIN sys.availability_groups AS g ON g.group_id = s.group_id
        JOIN sys.availability_replicas AS a ON a.replica_id = s.replica_id
        LEFT JOIN sys.databases AS d ON d.database_id = s.database_id
      WHERE s.synchronization_health_desc <> 'HEALTHY' OR s.is_suspended = 1 ORDER BY g.name, a.replica_server_name`)
    return groups.map((row) => ({
      name: text(row, 'name'),
      primary: text(row, 'holder'),
      role: text(row, 'role'),
      health: text(row, 'health'),
      unhealthy: unhealthy.filter((one) => text(one, 'name') === text(row, 'name')).map(describeUnhealthy),
    }))
  },
  evaluate: (groups) => groups.map(evaluateGroup),
})

function describeUnhealthy(row: Row): string {
  const reason = text(row, 'reason')
  const state = `${text(row, 'dbase')} on ${text(row, 'replica')}: ${text(row, 'state')}`
  const queues = `${figure(row, 'toSend') ?? 0} KiB to send, ${figure(row, 'toRedo') ?? 0} KiB to redo`
  return `${state}${reason === '' ? '' : ` (suspended: ${reason})`}, ${queues}`
}

function evaluateGroup({ name, primary, role, health, unhealthy }: Group): Result<'availability group'> {
  const check = 'availability group'
  if (primary === '') return fail(check, 'data', `${name} has no primary replica`, { details: unhealthy })
  const facts = { role: role || 'none' }
  // Only the primary has the state of all replicas.
  if (role !== 'PRIMARY') {
    return ok(check, `${name}: this is ${role || 'no replica'}; its health is checked at the primary ${primary}`, {
      facts,
    })
  }
  if (health === 'HEALTHY') return ok(check, `${name} is HEALTHY and this is its primary`, { facts })
  const [first, ...details] = unhealthy
  const message = `${name} is ${health || 'in an unknown state'}${first === undefined ? '' : `: ${first}`}`
  return health === 'PARTIALLY_HEALTHY'
    ? warn(check, message, { details, facts })
    : fail(check, 'data', message, { details, facts })
}

export const failedJobs = onSqlserver({
  depth: 'Advanced',
  results: { 'failed jobs': 'The last run of every enabled Agent job succeeded; omitted without enabled jobs' },
  settings: {
    failedJobs: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 0 },
      doc: 'Maximum number of enabled Agent jobs whose last run failed',
    },
  },
  grant: grants.jobs,
  observe: async ({ ask }) => {
    const rows = await ask(`SELECT TOP (1000) j.name AS name, COUNT(*) OVER () AS enabled,
        CASE WHEN s.last_run_outcome = 0 AND s.last_run_date > 0 THEN 1 ELSE 0 END AS failed
      FROM msdb.dbo.sysjobs AS j JOIN msdb.dbo.sysjobservers AS s ON s.job_id = j.job_id
      WHERE j.enabled = 1 ORDER BY failed DESC, j.name`)
    return {
      enabled: rows.length === 0 ? 0 : figure(rows[0], 'enabled'),
      failed: rows.filter((row) => figure(row, 'failed') === 1).map((row) => text(row, 'name')),
    }
  },
  evaluate: ({ enabled, failed }, { failedJobs: threshold }) => {
    if (enabled === 0) return []
    if (enabled === undefined) {
      return notChecked('failed jobs', 'missing', 'the server does not report the number of enabled Agent jobs')
    }
    const jobs = count(enabled, 'enabled Agent job')
    if (failed.length === 0) return ok('failed jobs', `no failure in the last runs of ${jobs}`)
    return atMost({
      check: 'failed jobs',
      what: `last run failed: ${listNames(failed)}; of ${jobs}`,
      value: failed.length,
      unit: 'count',
      threshold,
    })
  },
})

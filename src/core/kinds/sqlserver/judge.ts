import {
  type Account,
  type Asked,
  type Clock,
  evaluateAccount,
  evaluateAsked,
  evaluateClock,
} from '../../database/index.ts'
import { atLeast, atMost, fail, ok, type Result, warn } from '../../engine/index.ts'
import { show } from '../../format.ts'
import { count } from '../../net/text.ts'
import type { Threshold } from '../../settings/index.ts'
import type { Group, Groups } from './groups.ts'
import { evaluateHidden } from './hidden.ts'
import type { Aged, Backups, Blocked, Checkdb, Databases, Hidden, Jobs, LogReuse, Sessions } from './look.ts'
import type { SqlserverSettings } from './settings.ts'
import type { Space, SpaceCheck, Spaces } from './space.ts'

export type SqlserverLook =
  | Databases
  | LogReuse
  | Sessions
  | Blocked
  | Spaces
  | Backups
  | Checkdb
  | Jobs
  | Groups
  | Hidden
  | Clock
  | Account
  | Asked

/** Judges what one question saw. */
export function evaluateLook(seen: SqlserverLook, settings: SqlserverSettings): Result | readonly Result[] {
  switch (seen.see) {
    case 'databases':
      return evaluateDatabases(seen, settings)
    case 'log reuse':
      return evaluateLogReuse(seen, settings)
    case 'sessions':
      return evaluateSessions(seen, settings)
    case 'blocked':
      return evaluateBlocked(seen, settings)
    case 'spaces':
      return evaluateSpaces(seen, settings)
    case 'backups':
      return [
        ...evaluateAges('full backup', seen.full, settings.fullBackup, settings),
        ...evaluateAges('log backup', seen.log, settings.logBackup, settings),
      ]
    case 'checkdb':
      return evaluateAges('checkdb', seen.databases, settings.checkdb, settings)
    case 'jobs':
      return evaluateJobs(seen, settings)
    case 'groups':
      return seen.groups.map(evaluateGroup)
    case 'clock':
      return evaluateClock(seen, settings.clock)
    case 'account':
      return evaluateAccount(seen)
    case 'asked':
      return evaluateAsked(seen)
    case 'hidden':
      return evaluateHidden(seen, settings)
  }
}

const named = (names: readonly string[]): string =>
  names.length > 5 ? `${names.slice(0, 5).join(', ')} and ${names.length - 5} more` : names.join(', ')

/** Without what an operator does not want looked at. */
const kept = <T extends { readonly name: string }>(all: readonly T[], { ignore }: SqlserverSettings): readonly T[] =>
  all.filter(({ name }) => !ignore.some((one) => one.toLowerCase() === name.toLowerCase()))

/** On the way to ONLINE, or kept there on purpose by log shipping. */
const passing = new Set(['RESTORING', 'RECOVERING', 'COPYING'])

function evaluateDatabases(seen: Databases, settings: SqlserverSettings): Result {
  const databases = kept(seen.databases, settings)
  const bad = databases.filter(({ state }) => state !== 'ONLINE')
  if (bad.length === 0) return ok('databases', `${count(databases.length, 'database')} ONLINE`)
  const told = named(
    [...bad]
      .sort((a, b) => Number(passing.has(a.state)) - Number(passing.has(b.state)))
      .map((one) => `${one.name} is ${one.state}`),
  )
  const message = `${bad.length} of ${count(databases.length, 'database')} not ONLINE: ${told}`
  return bad.every(({ state }) => passing.has(state)) ? warn('databases', message) : fail('databases', 'data', message)
}

/** What every log waits for now and then, and for a moment. */
const usual = new Set(['', 'NOTHING', 'CHECKPOINT', 'OLDEST_PAGE', 'XTP_CHECKPOINT'])
const causes: Readonly<Record<string, string>> = {
  LOG_BACKUP: 'log backups have stopped, or are too rare',
  ACTIVE_TRANSACTION: 'a transaction is open for long',
  AVAILABILITY_REPLICA: 'a secondary replica does not keep up',
  REPLICATION: 'replication or change data capture does not keep up',
  DATABASE_MIRRORING: 'the mirror does not keep up',
  ACTIVE_BACKUP_OR_RESTORE: 'a backup or restore runs',
}

function evaluateLogReuse(seen: LogReuse, settings: SqlserverSettings): Result {
  const waiting = kept(seen.logs, settings).filter(({ waits }) => !usual.has(waits))
  const [worst] = [...waiting].sort((a, b) => b.used - a.used)
  if (!worst) return ok('log reuse', 'the space of every log can be used again')
  const cause = causes[worst.waits]
  return atMost({
    check: 'log reuse',
    what: `the log of ${worst.name} waits for ${worst.waits}, and is full to`,
    value: worst.used,
    unit: 'percent',
    threshold: settings.logReuse,
    details: cause === undefined ? [] : [`${worst.waits}: ${cause}`],
  })
}

const evaluateSessions = ({ used, most }: Sessions, settings: SqlserverSettings): Result =>
  atMost({
    check: 'sessions',
    what: `${used} of ${most} sessions:`,
    value: most > 0 ? (used / most) * 100 : 100,
    unit: 'percent',
    threshold: settings.sessions,
  })

function evaluateBlocked({ requests, longestMs, session, by, wait }: Blocked, settings: SqlserverSettings): Result {
  if (requests === 0) return ok('blocked', 'no request waits for another')
  const held = by !== undefined && by > 0 ? `by session ${by}` : 'by a transaction without a session'
  return atMost({
    check: 'blocked',
    what: `${count(requests, 'request waits', 'requests wait')}; session ${session ?? '?'} is blocked ${held} for`,
    value: longestMs,
    unit: 'duration',
    threshold: settings.blocked,
    details: wait === '' ? [] : [`it waits for ${wait}`],
  })
}

const spaceThreshold = (check: SpaceCheck, settings: SqlserverSettings): Threshold =>
  check === 'tempdb' ? settings.tempdb : check === 'log space' ? settings.logSpace : settings.dataSpace

function evaluateSpaces({ check, spaces }: Spaces, settings: SqlserverSettings): readonly Result[] {
  const share = ({ used, room }: Space): number => (room > 0 ? Math.max(0, ((room - used) / room) * 100) : 0)
  const [tightest] = [...kept(spaces, settings)].sort((a, b) => share(a) - share(b))
  if (!tightest) return []
  const { name, used, room } = tightest
  const held = `${show(used, 'bytes')} of ${show(room, 'bytes')} used`
  const what = check === 'log space' ? `log of ${name}: ${held}, free` : `${name}: ${held}, free`
  return [atLeast({ check, what, value: share(tightest), unit: 'percent', threshold: spaceThreshold(check, settings) })]
}

const doneTo = {
  'full backup': 'full backup',
  'log backup': 'log backup',
  checkdb: 'good DBCC CHECKDB',
} as const

/** Tells the oldest; the others that are too old are named beside it. */
function evaluateAges(
  check: keyof typeof doneTo,
  all: readonly Aged[],
  threshold: Threshold,
  settings: SqlserverSettings,
): readonly Result[] {
  if (threshold.warn === undefined && threshold.limit === undefined) return []
  const sorted = [...kept(all, settings)].sort((a, b) => b.ageMs - a.ageMs)
  const [oldest] = sorted
  if (!oldest) return []
  const bound = Math.min(threshold.warn ?? Number.POSITIVE_INFINITY, threshold.limit ?? Number.POSITIVE_INFINITY)
  const others = sorted.slice(1).filter(({ ageMs }) => ageMs > bound)
  return [
    atMost({
      check,
      what: oldest.never
        ? `${oldest.name}: no ${doneTo[check]} since it was made:`
        : `${oldest.name}: age of its last ${doneTo[check]}:`,
      value: oldest.ageMs,
      unit: 'duration',
      threshold,
      details: others.length === 0 ? [] : [`too old as well: ${named(others.map(({ name }) => name))}`],
    }),
  ]
}

function evaluateJobs({ enabled, failed }: Jobs, settings: SqlserverSettings): Result {
  if (failed.length === 0) return ok('failed jobs', `none of ${count(enabled, 'enabled Agent job')} failed last`)
  return atMost({
    check: 'failed jobs',
    what: `failed when last run: ${named(failed)}; of ${count(enabled, 'enabled Agent job')}`,
    value: failed.length,
    unit: 'count',
    threshold: settings.failedJobs,
  })
}

function evaluateGroup({ name, primary, role, health, sick }: Group): Result {
  const check = 'availability group'
  if (primary === '') return fail(check, 'data', `${name} has no primary replica`, { details: sick })
  // Only the primary knows of all replicas.
  if (role !== 'PRIMARY')
    return ok(check, `${name}: this is ${role || 'no replica'}; its health is asked of ${primary}`)
  if (health === 'HEALTHY') return ok(check, `${name} is HEALTHY, and this is its primary`)
  const message = `${name} is ${health || 'in an unknown state'}${sick[0] === undefined ? '' : `: ${sick[0]}`}`
  const details = sick.slice(1)
  return health === 'PARTIALLY_HEALTHY' ? warn(check, message, { details }) : fail(check, 'data', message, { details })
}

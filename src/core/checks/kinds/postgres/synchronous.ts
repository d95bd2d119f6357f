import { setTimeout as pause } from 'node:timers/promises'
import { count } from '../../../base/format.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { Threshold } from '../../../base/settings/index.ts'
import { figure, flag, limitOnDatabase, type Row, text, truth } from '../../database/index.ts'
import { notChecked, ok, warn } from '../../engine/index.ts'
import { hiddenFrom, inMs, privilege, readRole } from './checks.ts'

/**
 * The number of standbys that a commit waits for, according to synchronous_standby_names: `FIRST 2 (a, b, c)`, `ANY 2
 * (*)`, `2 (a, b)`, and one for a plain list.
 */
function requiredStandbys(names: string): number {
  if (names === '') return 0
  const [, number] = /^(?:(?:first|any) ?)?(\d{1,9}) ?\(/i.exec(names) ?? []
  return number === undefined ? 1 : Number(number)
}

/** Values of synchronous_commit with which a commit waits for no standby. */
const localCommits = new Set(['off', 'local'])

export const synchronousStandbys = limitOnDatabase({
  depth: 'Standard',
  check: 'synchronous standbys',
  proves: 'The standbys that commits wait for are connected; omitted on a standby',
  setting: 'spareStandbys',
  unit: 'count',
  default: { limit: 0 },
  doc: 'Number of standbys in synchronous_standby_names that stream beyond those that a commit waits for',
  bound: 'atLeast',
  privilege,
  observe: async (connection) => {
    const { ask, user } = connection
    const role = await readRole(connection)
    const isStandby = truth(role, 'standby')
    const required = requiredStandbys(text(role, 'names'))
    const facts = { user, isStandby, required, commit: text(role, 'commit') }
    if (typeof role?.names === 'string' && (isStandby || required === 0)) {
      return { ...facts, streaming: 0, hidden: 0, waiting: 0 }
    }
    const [row] = await ask(`SELECT (SELECT count(*) FROM pg_stat_replication
        WHERE state = 'streaming' AND sync_state IN ('sync', 'potential', 'quorum')) AS streaming,
      (SELECT count(*) FROM pg_stat_replication WHERE state IS NULL) AS hidden,
      (SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep') AS waiting`)
    const streaming = figure(row, 'streaming')
    const hidden = figure(row, 'hidden')
    if (typeof role?.names !== 'string' || streaming === undefined || hidden === undefined) {
      throw new ProbeError('protocol', 'the server does not report its synchronous standbys')
    }
    return {
      ...facts,
      streaming,
      /** The number of replicas whose details this account cannot see. */
      hidden,
      /** The number of visible sessions whose commit is waiting. */
      waiting: figure(row, 'waiting'),
    }
  },
  evaluate: (
    { user, isStandby, required, streaming, hidden, waiting = 0, commit },
    compare,
    { spareStandbys: spare },
  ) => {
    const check = 'synchronous standbys'
    if (isStandby) return []
    if (required === 0) return ok(check, 'no commit waits for a standby (synchronous_standby_names is empty)')
    const what = `a commit waits for ${count(required, 'standby')}; streaming standbys:`
    const threshold: Threshold = {
      ...(spare.warn === undefined ? {} : { warn: required + spare.warn }),
      ...(spare.limit === undefined ? {} : { limit: required + spare.limit }),
    }
    const waits = waiting === 0 ? [] : [`${count(waiting, 'commit is', 'commits are')} waiting for a standby now`]
    const details = [...waits, 'inspect: SELECT application_name, state, sync_state FROM pg_stat_replication']
    const result = compare({ what, value: streaming, threshold })
    if (result.status === 'ok') return result
    if (hidden > 0) return hiddenFrom(check, user, hidden, 'replica')
    if (!localCommits.has(commit)) return { ...result, details }
    const message = `${result.message}; synchronous_commit is ${commit}, so only a session that sets it otherwise waits`
    return warn(check, message, { measurement: result.measurement, details })
  },
})

/** Milliseconds between the two reads of `commitWait`. */
const secondReadMs = 200

export const commitWait = limitOnDatabase({
  depth: 'Standard',
  check: 'commit wait',
  proves: 'No commit hangs because no standby confirms it; omitted on a standby',
  setting: 'commitWait',
  unit: 'duration',
  default: { warn: 5_000, limit: 30_000 },
  doc: 'Maximum duration of a statement whose commit waits for a standby',
  privilege,
  observe: async (connection) => {
    const { ask, user } = connection
    const read = async () => {
      const rows =
        await ask(`SELECT pid, query_start::text AS started, ${inMs('clock_timestamp() - query_start')} AS since
        FROM pg_stat_activity WHERE wait_event = 'SyncRep' ORDER BY query_start LIMIT 1000`)
      return rows.map((row) => ({ session: `${text(row, 'pid')} ${text(row, 'started')}`, row }))
    }
    const role = await readRole(connection)
    const isStandby = flag(role, 'standby')
    /** True if commits wait for standbys at all. */
    const isSynchronous = typeof role?.names === 'string' ? role.names !== '' : undefined
    if (isStandby || isSynchronous === false) return { user, isStandby, isSynchronous, hidden: 0, waiting: 0, pid: '' }
    const [row] = await ask(
      'SELECT count(*) AS hidden FROM pg_stat_activity WHERE backend_type IS NULL AND usesysid IS NOT NULL',
    )
    const first = await read()
    // Only a commit that still waits counts: the server reports when its statement began, and not when the wait did.
    if (first.length > 0) await pause(secondReadMs)
    const sessions = new Set(first.map(({ session }) => session))
    const waiting: readonly Row[] =
      first.length === 0 ? [] : (await read()).filter(({ session }) => sessions.has(session)).map((one) => one.row)
    return {
      user,
      isStandby,
      isSynchronous,
      /** The number of sessions whose details this account cannot see. */
      hidden: figure(row, 'hidden'),
      waiting: waiting.length,
      /** Milliseconds since the oldest of their statements began. */
      maxMs: figure(waiting[0], 'since'),
      pid: text(waiting[0], 'pid'),
    }
  },
  evaluate: ({ user, isStandby, isSynchronous, hidden, waiting, maxMs, pid }, compare) => {
    const check = 'commit wait'
    if (isStandby) return []
    if (isSynchronous === undefined || hidden === undefined) {
      return notChecked(check, 'missing', 'the sessions are not reported')
    }
    if (!isSynchronous) return ok(check, 'no commit waits for a standby (synchronous_standby_names is empty)')
    const what = `${count(waiting, 'commit is', 'commits are')} waiting for a standby, ${waiting === 1 ? 'its' : 'the longest'} statement for`
    const details = [`inspect: SELECT * FROM pg_stat_activity WHERE pid = ${pid}`]
    const none = ok(check, 'no commit hangs')
    const result = waiting === 0 ? none : compare({ what, value: maxMs, details })
    return hidden > 0 && result.status !== 'failed' ? hiddenFrom(check, user, hidden, 'session') : result
  },
})

/** In the order of their results. */
export const synchronousChecks = [synchronousStandbys, commitWait]

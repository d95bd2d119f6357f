import { setTimeout as pause } from 'node:timers/promises'
import { type DatabaseConnection, figure, flag, onDatabase, text, truth } from '../../database/index.ts'
import { atMost, fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { count } from '../../net/text.ts'
import type { Threshold } from '../../settings/index.ts'
import { inMs, worstFirst } from './checks.ts'

type Subscription = {
  /** `name in database`. */
  readonly name: string
  readonly enabled: boolean
  /** The process of its worker, or undefined while none runs. */
  readonly pid: number | undefined
  /** Milliseconds since the last message of the publisher; undefined if the worker has received none. */
  readonly silentMs: number | undefined
  /** Errors of its workers since the statistics were reset; undefined before PostgreSQL 15. */
  readonly errors: number | undefined
}

/** A subscription, and whether its worker runs on. */
type Watched = Subscription & { readonly state: 'disabled' | 'running' | 'stopped' | 'restarting' }

/** Milliseconds after which suspicious subscriptions are read again. A worker that fails starts again after 5 s. */
const secondReadMs = 500

export const subscriptions = onDatabase({
  depth: 'Advanced',
  results: { subscriptions: 'The workers of all logical subscriptions run and hear from their publishers' },
  settings: {
    subscriptions: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 35_000, limit: 60_000 },
      doc: 'Maximum time since a logical subscription received a message from its publisher',
    },
  },
  observe: async ({ ask }) => {
    const [row] = await ask(`SELECT pg_is_in_recovery() AS standby,
      to_regclass('pg_catalog.pg_stat_subscription_stats') IS NOT NULL AS counted`)
    const isStandby = flag(row, 'standby')
    // On a standby, no worker runs.
    if (isStandby !== false) return { isStandby, watched: [] }
    const first = await readSubscriptions(ask, truth(row, 'counted'))
    if (first.every(({ enabled, pid, errors }) => !enabled || (pid !== undefined && errors === 0))) {
      return { isStandby, watched: first.map((one) => watch(one, one)) }
    }
    await pause(secondReadMs)
    const before = new Map(first.map((one) => [one.name, one]))
    const second = await readSubscriptions(ask, truth(row, 'counted'))
    return { isStandby, watched: second.map((one) => watch(before.get(one.name) ?? one, one)) }
  },
  evaluate: ({ isStandby, watched }, { subscriptions: threshold }) => {
    const check = 'subscriptions'
    if (isStandby === undefined) return notChecked(check, 'missing', 'the server does not report its role')
    if (isStandby) return []
    if (watched.length === 0) return ok(check, 'none')
    const results = worstFirst(watched.map((one) => evaluateSubscription(one, threshold)))
    const [worst, ...others] = results.filter(({ status }) => status !== 'ok')
    if (worst) {
      const details = [...(worst.details ?? []), ...others.map(({ message }) => message)]
      return { ...worst, details: details.slice(0, 20) }
    }
    const [quietest] = results.toSorted((a, b) => (b.measurement?.value ?? 0) - (a.measurement?.value ?? 0))
    return watched.length === 1 && quietest
      ? quietest
      : ok(check, `${count(watched.length, 'subscription')}, all running`, { measurement: quietest?.measurement })
  },
})

async function readSubscriptions(ask: DatabaseConnection['ask'], isCounted: boolean): Promise<readonly Subscription[]> {
  // Rows of workers that copy a table, or apply a large transaction in parallel, do not describe the subscription.
  const rows = await ask(`SELECT s.subname AS name, d.datname AS database, s.subenabled AS enabled, w.pid,
      ${inMs('clock_timestamp() - w.last_msg_receipt_time')} AS silent,
      ${isCounted ? '(SELECT apply_error_count + sync_error_count FROM pg_stat_subscription_stats AS e WHERE e.subid = s.oid)' : 'NULL'}
        AS errors
    FROM pg_subscription AS s JOIN pg_database AS d ON d.oid = s.subdbid
    LEFT JOIN pg_stat_subscription AS w ON w.subid = s.oid AND w.relid IS NULL AND to_jsonb(w)->>'leader_pid' IS NULL
    ORDER BY 1 LIMIT 200`)
  return rows.map((row) => ({
    name: `${text(row, 'name')} in ${text(row, 'database')}`,
    enabled: truth(row, 'enabled'),
    pid: figure(row, 'pid'),
    silentMs: figure(row, 'silent'),
    errors: figure(row, 'errors'),
  }))
}

/** A worker that fails is gone most of the time, or has another process than a moment ago. */
function watch(before: Subscription, now: Subscription): Watched {
  if (!now.enabled) return { ...now, state: 'disabled' }
  if (now.pid === undefined) return { ...now, state: before.pid === undefined ? 'stopped' : 'restarting' }
  const hasFailed = now.errors === undefined || now.errors > 0
  return { ...now, state: now.pid !== before.pid && hasFailed ? 'restarting' : 'running' }
}

function evaluateSubscription(
  { name, state, silentMs: value, errors = 0 }: Watched,
  threshold: Threshold,
): Result<'subscriptions'> {
  const check = 'subscriptions'
  const counted = errors === 0 ? '' : `, ${count(errors, 'error')} since the statistics were reset`
  const details = ["check the server's log", `inspect: SELECT * FROM pg_stat_subscription`]
  if (state === 'disabled') {
    const message = `${name} is disabled${counted}`
    return errors > 0 ? fail(check, 'data', message, { details }) : warn(check, message)
  }
  if (state === 'stopped')
    return fail(check, 'data', `${name} is enabled, but its worker does not run${counted}`, { details })
  if (state === 'restarting')
    return fail(check, 'data', `the worker of ${name} fails and restarts${counted}`, { details })
  return atMost({
    check,
    what: `${name}: last message from its publisher`,
    value,
    unit: 'duration',
    after: 'ago',
    threshold,
  })
}

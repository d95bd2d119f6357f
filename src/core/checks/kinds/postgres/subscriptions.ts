import { setTimeout as pause } from 'node:timers/promises'
import { count, showDuration } from '../../../base/format.ts'
import type { Threshold } from '../../../base/settings/index.ts'
import { type DatabaseConnection, figure, flag, onDatabase, type Row, text, truth } from '../../database/index.ts'
import {
  atMost,
  type CheckContext,
  fail,
  type HistoryReading,
  notChecked,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import { hiddenWithout, inMs, worstFirst } from './checks.ts'
import { identifier } from './errors.ts'

type Ask = DatabaseConnection['ask']

type Subscription = Awaited<ReturnType<typeof readSubscriptions>>[number]

/** A table of a subscription whose first copy has not been completed. */
type Unready = Awaited<ReturnType<typeof readCopies>>['unready'][number]

/** A subscription, and whether its worker runs on. */
type Watched = Subscription & {
  readonly state: 'disabled' | 'running' | 'stopped' | 'restarting'
  /** Its tables that are not ready. */
  readonly unready: readonly string[]
  /** True if nothing copies tables that are not ready. */
  readonly isStuck: boolean
  /** The growth of its errors, from the counts of earlier runs. */
  readonly growth: Growth
}

/** Errors since the run before this one and in the interval before that, and milliseconds since the first of both. */
type Growth = { readonly last: number; readonly before: number; readonly withinMs: number }

/** Milliseconds after which suspicious subscriptions are read again. A worker that fails starts again after 5 s. */
const secondReadMs = 500
/** Milliseconds between reads of the tables that are not ready, and their number. A copy may begin after a second. */
const copyReadMs = 300
const maxCopyReads = 8
/** Milliseconds between stored counts of errors, the age of the oldest that counts, and the number of subscriptions. */
const readEveryMs = 60_000
const maxReadingMs = 1_800_000
const maxRecorded = 50

/** Before version 14, everyone may read the other columns, except the connection strings, which nobody needs. */
const grant = 'GRANT SELECT (oid) ON pg_subscription TO'

export const subscriptions = onDatabase({
  depth: 'Standard',
  results: {
    subscriptions:
      'The workers of all logical subscriptions run, hear from their publishers and report no new errors, and in this database, their tables are copied; omitted on a standby. Needs the privilege before PostgreSQL 14',
  },
  settings: {
    subscriptions: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 35_000, limit: 60_000 },
      doc: 'Maximum time since a logical subscription received a message from its publisher',
    },
  },
  privilege: `${grant} <account>`,
  observe: async ({ ask, user }, _, { history }: CheckContext) => {
    const [row] = await ask(`SELECT pg_is_in_recovery() AS standby,
      to_regclass('pg_catalog.pg_stat_subscription_stats') IS NOT NULL AS counted,
      has_column_privilege('pg_catalog.pg_subscription', 'oid', 'SELECT') AS readable,
      (SELECT count(DISTINCT subid) FROM pg_stat_subscription)::int AS subscriptions`)
    const isStandby = flag(row, 'standby')
    const none = { user, isStandby, hidden: 0, watched: [] }
    // On a standby, no worker runs.
    if (isStandby !== false) return none
    const subscriptions = figure(row, 'subscriptions')
    if (subscriptions === 0) return none
    if (!truth(row, 'readable')) return { ...none, hidden: subscriptions }
    const isCounted = truth(row, 'counted')
    const first = await readSubscriptions(ask, isCounted)
    const isSound = first.every(({ enabled, pid, errors }) => !enabled || (pid !== undefined && errors === 0))
    if (!isSound) await pause(secondReadMs)
    const before = new Map(first.map((one) => [one.name, one]))
    const second = isSound ? first : await readSubscriptions(ask, isCounted)
    const { unready, isStuck } = await watchCopies(ask)
    const watched: Watched[] = []
    for (const one of second) {
      const { errors } = one
      const isRecorded = errors !== undefined && watched.length < maxRecorded
      const readings = isRecorded ? await history(`errors of ${one.name}`, errors, readEveryMs) : undefined
      const tables = unready.filter(({ subscription }) => subscription === one.name).map(({ table }) => table)
      watched.push({
        ...one,
        state: stateOf(before.get(one.name) ?? one, one),
        unready: tables,
        isStuck: isStuck && tables.length > 0,
        growth: growthOf(readings),
      })
    }
    return { ...none, watched }
  },
  evaluate: ({ user, isStandby, hidden, watched }, { subscriptions: threshold }) => {
    const check = 'subscriptions'
    if (isStandby === undefined || hidden === undefined) {
      return notChecked(check, 'missing', 'the server does not report its role')
    }
    if (isStandby) return []
    if (hidden > 0) {
      const missing = `${grant} ${identifier(user)}`
      const what = `${count(hidden, 'subscription is', 'subscriptions are')}`
      return notChecked(check, 'permission', hiddenWithout(what, missing), { details: [missing] })
    }
    if (watched.length === 0) return ok(check, 'none')
    const results = worstFirst(watched.map((one) => evaluateSubscription(one, threshold)))
    const [worst, ...others] = results.filter(({ status }) => status !== 'ok')
    if (worst) {
      const details = [...(worst.details ?? []), ...others.map(({ message }) => message)]
      return { ...worst, details: details.slice(0, 20) }
    }
    const [quietest] = results.toSorted((a, b) => (b.measurement?.value ?? 0) - (a.measurement?.value ?? 0))
    if (watched.length === 1 && quietest) return quietest
    const copying = watched.reduce((sum, { unready }) => sum + unready.length, 0)
    const message = `${count(watched.length, 'subscription')}, all running${copied(copying)}`
    return ok(check, message, { measurement: quietest?.measurement })
  },
})

const copied = (tables: number): string =>
  tables === 0 ? '' : `; ${count(tables, 'table is', 'tables are')} being copied`

async function readSubscriptions(ask: Ask, isCounted: boolean) {
  // Rows of workers that copy a table, or apply a large transaction in parallel, do not describe the subscription.
  const rows = await ask(`SELECT s.subname AS name, d.datname AS database, s.subenabled AS enabled, w.pid,
      ${inMs('clock_timestamp() - w.last_msg_receipt_time')} AS silent,
      ${isCounted ? '(SELECT apply_error_count + sync_error_count FROM pg_stat_subscription_stats AS e WHERE e.subid = s.oid)' : 'NULL'}
        AS errors
    FROM pg_subscription AS s JOIN pg_database AS d ON d.oid = s.subdbid
    LEFT JOIN pg_stat_subscription AS w ON w.subid = s.oid AND w.relid IS NULL AND to_jsonb(w)->>'leader_pid' IS NULL
    ORDER BY 1 LIMIT 200`)
  return rows.map((row) => ({
    /** `name in database`. */
    name: nameOf(row),
    enabled: truth(row, 'enabled'),
    /** The process of its worker, or undefined while none runs. */
    pid: figure(row, 'pid'),
    /** Milliseconds since the last message of the publisher; undefined if the worker has received none. */
    silentMs: figure(row, 'silent'),
    /** Errors of its workers since the statistics were reset; undefined before PostgreSQL 15. */
    errors: figure(row, 'errors'),
  }))
}

const nameOf = (row: Row): string => `${text(row, 'name')} in ${text(row, 'database')}`

/** The tables of this database that are not ready, and the processes that copy any table. */
async function readCopies(ask: Ask) {
  const rows = await ask(`SELECT s.subname AS name, current_database() AS database, r.srsubstate::text AS state,
      n.nspname || '.' || c.relname AS table
    FROM pg_subscription_rel AS r JOIN pg_subscription AS s ON s.oid = r.srsubid
      JOIN pg_class AS c ON c.oid = r.srrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE s.subenabled AND r.srsubstate <> 'r' ORDER BY 1, 4 LIMIT 1000`)
  if (rows.length === 0) return { unready: [], pids: [] }
  const workers = await ask(
    'SELECT pid FROM pg_stat_subscription WHERE relid IS NOT NULL AND pid IS NOT NULL LIMIT 200',
  )
  return {
    unready: rows.map((row) => ({
      /** As in `Subscription.name`. */
      subscription: nameOf(row),
      /** `schema.table`. */
      table: text(row, 'table', 128),
      /** `srsubstate`: i, d, f or s. */
      state: text(row, 'state'),
    })),
    pids: workers.flatMap((row) => figure(row, 'pid') ?? []),
  }
}

/**
 * Whether the tables that are not ready are being copied. A worker whose copy fails ends at once, and starts again
 * after 5 s; one that copies keeps its process. Waiting for another copy counts as copying.
 */
async function watchCopies(ask: Ask): Promise<{ readonly unready: readonly Unready[]; readonly isStuck: boolean }> {
  let { unready, pids } = await readCopies(ask)
  const states = (): string => unready.map(({ table, state }) => `${table} ${state}`).join('\n')
  const before = states()
  for (let reads = 0; reads < maxCopyReads && unready.length > 0; reads += 1) {
    const earlier = new Set(pids)
    await pause(copyReadMs)
    ;({ unready, pids } = await readCopies(ask))
    if (states() !== before || pids.some((pid) => earlier.has(pid))) return { unready, isStuck: false }
  }
  return { unready, isStuck: unready.length > 0 }
}

/** A worker that fails is gone most of the time, or has another process than a moment ago. */
function stateOf(before: Subscription, now: Subscription): Watched['state'] {
  if (!now.enabled) return 'disabled'
  if (now.pid === undefined) return before.pid === undefined ? 'stopped' : 'restarting'
  const hasFailed = now.errors === undefined || now.errors > 0
  return now.pid !== before.pid && hasFailed ? 'restarting' : 'running'
}

/** `readings` are counts of errors, oldest first; the last one is the present. A reset of the statistics does not count as growth. */
function growthOf(readings: readonly HistoryReading[] | undefined): Growth {
  const [third, second, present] = [readings?.at(-3), readings?.at(-2), readings?.at(-1)]
  const isRecent = (reading: HistoryReading | undefined): reading is HistoryReading =>
    reading !== undefined && present !== undefined && present.at - reading.at <= maxReadingMs
  if (!present || !isRecent(second)) return { last: 0, before: 0, withinMs: 0 }
  return {
    last: Math.max(0, present.value - second.value),
    before: isRecent(third) ? Math.max(0, second.value - third.value) : 0,
    withinMs: present.at - (isRecent(third) ? third : second).at,
  }
}

function evaluateSubscription(
  { name, state, silentMs: value, errors = 0, unready, isStuck, growth }: Watched,
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
  if (isStuck) {
    const [first = ''] = unready
    const others = unready.length === 1 ? '' : ` and ${unready.length - 1} more`
    const inspect = "inspect: SELECT srrelid::regclass, srsubstate FROM pg_subscription_rel WHERE srsubstate <> 'r'"
    const message = `${name}: ${first}${others} never copied completely, and no worker copies now${counted}`
    return fail(check, 'data', message, { details: ["check the server's log", inspect] })
  }
  const result = atMost({
    check,
    what: `${name}: last message from its publisher`,
    value,
    unit: 'duration',
    after: `ago${copied(unready.length)}`,
    threshold,
  })
  if (growth.last === 0 || result.status === 'failed') return result
  const message = `${name}: ${count(growth.last + growth.before, 'new error')} of its workers within ${showDuration(growth.withinMs)}`
  return growth.before > 0 ? fail(check, 'data', message, { details }) : warn(check, message, { details })
}

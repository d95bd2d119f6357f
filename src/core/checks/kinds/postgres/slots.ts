import { count, showBytes } from '../../../base/format.ts'
import type { SettingsSpec, Threshold } from '../../../base/settings/index.ts'
import { skipSetting, withoutSkipped } from '../../assert/skip.ts'
import { figure, onDatabase, text, truth } from '../../database/index.ts'
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
import { inMs, worstFirst } from './checks.ts'
import { hereLsn } from './replication.ts'

/** How long a slot has been without its consumer, in milliseconds, as far as it is known. */
type Idle = { readonly atLeastMs: number; readonly atMostMs: number | undefined }

type Slot = {
  readonly name: string
  readonly active: boolean
  /** Undefined while the slot is active. */
  readonly idle: Idle | undefined
  /** Bytes of WAL that the slot retains. */
  readonly bytes: number | undefined
  readonly lost: boolean
  /**
   * True on a standby, where a slot has no consumer for as long as its member follows another server: Patroni keeps such
   * slots on all members and advances them itself.
   */
  readonly isSpare: boolean
}

const slotSettings = {
  slots: {
    type: 'threshold',
    unit: 'bytes',
    default: { warn: 10 * 1024 ** 3 },
    doc: 'Maximum amount of WAL that a replication slot retains',
  },
  inactiveSlots: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 600_000 },
    doc: 'Maximum time that a replication slot is without its consumer. PostgreSQL before 17 does not report it: the readings of earlier runs then count, and without them any such slot is a warning',
  },
  skipSlots: skipSetting('Replication slots'),
} as const satisfies SettingsSpec

/** Milliseconds between stored readings. */
const readEveryMs = 60_000
/** The number of slots for which readings are stored. */
const maxRecorded = 50

/**
 * How long a slot has been idle, according to readings of 1 (active) or 0, oldest first. The last one is the present.
 */
function idleOf(readings: readonly HistoryReading[] | undefined): Idle {
  const now = readings?.at(-1)?.at
  if (!readings || now === undefined) return { atLeastMs: 0, atMostMs: undefined }
  const active = readings.findLast(({ value }) => value === 1)
  const first = readings.find(({ at }) => !active || at > active.at)
  return { atLeastMs: now - (first?.at ?? now), atMostMs: active && now - active.at }
}

export const slots = onDatabase({
  depth: 'Advanced',
  results: {
    slots:
      'No replication slot has lost WAL that its consumer needs, is abandoned, or retains too much WAL. On a standby, a slot without a consumer is not abandoned',
  },
  settings: slotSettings,
  observe: async ({ ask }, _, { history }: CheckContext) => {
    // A slot that is synchronized from the primary is always inactive on a standby.
    const rows = await ask(`SELECT slot_name AS name, active, pg_is_in_recovery() AS spare,
        coalesce(to_jsonb(s)->>'wal_status' = 'lost' OR to_jsonb(s)->>'conflicting' = 'true', false) AS lost,
        CASE WHEN restart_lsn IS NULL THEN 0 ELSE pg_wal_lsn_diff(${hereLsn}, restart_lsn) END::float8 AS bytes,
        to_jsonb(s) ? 'inactive_since' AS timed,
        ${inMs(`clock_timestamp() - (to_jsonb(s)->>'inactive_since')::timestamptz`)} AS inactive
      FROM pg_replication_slots AS s WHERE NOT temporary AND coalesce(to_jsonb(s)->>'synced', 'false') = 'false'
      ORDER BY active, slot_name LIMIT 1000`)
    const observed: Slot[] = []
    for (const row of rows) {
      const [name, active, inactiveMs] = [text(row, 'name'), truth(row, 'active'), figure(row, 'inactive')]
      const isSpare = truth(row, 'spare')
      const isRecorded = !truth(row, 'timed') && !isSpare && observed.length < maxRecorded
      const readings = isRecorded ? await history(`active slot ${name}`, active ? 1 : 0, readEveryMs) : undefined
      const time = inactiveMs === undefined ? idleOf(readings) : { atLeastMs: inactiveMs, atMostMs: inactiveMs }
      const idle = active ? undefined : time
      observed.push({ name, active, idle, bytes: figure(row, 'bytes'), lost: truth(row, 'lost'), isSpare })
    }
    return observed
  },
  evaluate: (all, settings) => {
    const slots = withoutSkipped(all, ({ name }) => name, settings.skipSlots)
    if (slots.length === 0) return ok('slots', 'none')
    const results = worstFirst(slots.map((slot) => evaluateSlot(slot, settings.slots, settings.inactiveSlots)))
    const [first, ...others] = results.filter(({ status }) => status !== 'ok')
    if (first) return { ...first, details: others.slice(0, 19).map(({ message }) => message) }
    const idle = slots.filter(({ active }) => !active).length
    const message = `${count(slots.length, 'slot')}, ${idle === 0 ? 'all in use' : `${idle} without a consumer for a short time`}`
    const bytes = Math.max(...slots.map((slot) => slot.bytes ?? 0))
    return ok('slots', message, {
      measurement: { value: bytes, unit: 'bytes', ...settings.slots, bound: 'atMost' },
    })
  },
})

function evaluateSlot(
  { name, idle, bytes, lost, isSpare }: Slot,
  size: Threshold,
  inactive: Threshold,
): Result<'slots'> {
  const check = 'slots'
  if (lost) {
    const details = [`next: set up the consumer of ${name} again, or drop the slot`]
    return fail(check, 'data', `${name} has lost WAL that its consumer needs`, { details })
  }
  if (bytes === undefined) return notChecked(check, 'missing', `the WAL that ${name} retains is not reported`)
  const result = atMost({ check, what: `${name} retains`, value: bytes, unit: 'bytes', threshold: size })
  if (result.status === 'failed' || !idle || isSpare) return result
  const { atLeastMs, atMostMs } = idle
  const isExact = atLeastMs === atMostMs
  const long = atMost({
    check,
    what: `${name} has had no consumer for${isExact ? '' : ' at least'}`,
    value: atLeastMs,
    unit: 'duration',
    after: `and retains ${showBytes(bytes)}`,
    threshold: inactive,
  })
  if (long.status !== 'ok') return long
  const { warn: bound = inactive.limit } = inactive
  if (bound === undefined || (atMostMs !== undefined && atMostMs <= bound)) return result
  const unknown = 'PostgreSQL before 17 does not report since when'
  return warn(check, `${name} has no consumer and retains ${showBytes(bytes)} (${unknown})`, {
    measurement: result.measurement,
  })
}

import { figure, onDatabase, text, truth } from '../../database/index.ts'
import { atMost, fail, ok, type Result, warn } from '../../engine/index.ts'
import { show, showBytes, showDuration } from '../../format.ts'
import { count } from '../../net/text.ts'
import type { SettingsSpec, Threshold } from '../../settings/index.ts'
import { inMs } from './checks.ts'
import { hereLsn } from './replication.ts'

type Slot = {
  readonly name: string
  readonly active: boolean
  /** Undefined before PostgreSQL 17, or while the slot is active. */
  readonly inactiveMs: number | undefined
  /** Bytes of WAL that the slot retains. */
  readonly bytes: number | undefined
  readonly lost: boolean
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
    doc: 'Maximum time that a replication slot is without its consumer; before PostgreSQL 17, any such time counts',
  },
} as const satisfies SettingsSpec

export const slots = onDatabase({
  depth: 'Advanced',
  results: { slots: 'No replication slot is abandoned or retains too much WAL' },
  settings: slotSettings,
  observe: async ({ ask }) => {
    // A slot that is synchronized from the primary is always inactive on a standby.
    const rows = await ask(`SELECT slot_name AS name, active, to_jsonb(s)->>'wal_status' = 'lost' AS lost,
        CASE WHEN restart_lsn IS NULL THEN 0 ELSE pg_wal_lsn_diff(${hereLsn}, restart_lsn) END::float8 AS bytes,
        ${inMs(`clock_timestamp() - (to_jsonb(s)->>'inactive_since')::timestamptz`)} AS inactive
      FROM pg_replication_slots AS s WHERE NOT temporary AND coalesce(to_jsonb(s)->>'synced', 'false') = 'false'
      LIMIT 1000`)
    return rows.map(
      (row): Slot => ({
        name: text(row, 'name'),
        active: truth(row, 'active'),
        inactiveMs: figure(row, 'inactive'),
        bytes: figure(row, 'bytes'),
        lost: truth(row, 'lost'),
      }),
    )
  },
  evaluate: (slots, settings) => {
    if (slots.length === 0) return ok('slots', 'none')
    const results = slots
      .map((slot) => evaluateSlot(slot, settings.slots, settings.inactiveSlots))
      .sort((a, b) => severity[b.status] - severity[a.status])
    const [first, ...others] = results.filter(({ status }) => status !== 'ok')
    if (!first) return ok('slots', `${count(slots.length, 'slot')}, all in use`)
    return { ...first, details: others.slice(0, 19).map(({ message }) => message) }
  },
})

const severity: Record<Result['status'], number> = { ok: 0, warning: 1, failed: 2 }

function evaluateSlot(
  { name, active, inactiveMs, bytes, lost }: Slot,
  size: Threshold,
  inactive: Threshold,
): Result<'slots'> {
  if (lost) return warn('slots', `${name} has lost WAL that its consumer needs: set up the replica again`)
  const what = `${name} retains`
  const result = atMost({ check: 'slots', what, value: bytes, unit: 'bytes', threshold: size })
  if (result.status === 'failed' || active) return result
  const since = inactiveMs ?? Number.POSITIVE_INFINITY
  const time = inactiveMs === undefined ? '' : ` for ${showDuration(inactiveMs)}`
  const retains = bytes === undefined ? '' : ` and retains ${showBytes(bytes)}`
  const message = `${name} has had no consumer${time}${retains}`
  const more: Partial<Result> =
    inactiveMs === undefined
      ? {}
      : { measurement: { value: inactiveMs, unit: 'milliseconds', ...inactive, bound: 'atMost' } }
  if (inactive.limit !== undefined && since > inactive.limit) {
    return fail('slots', 'threshold', `${message} (limit ${show(inactive.limit, 'duration')})`, more)
  }
  if (inactive.warn === undefined || since <= inactive.warn) return result
  return warn('slots', `${message} (warns above ${show(inactive.warn, 'duration')})`, more)
}

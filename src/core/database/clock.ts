import { atMost, type CheckContext, ok, type Result, withThreshold } from '../engine/index.ts'
import { showDuration } from '../format.ts'
import { ProbeError } from '../probe-error.ts'
import type { SettingsSpec, Threshold } from '../settings/index.ts'
import { figure } from './rows.ts'
import type { Ask } from './session.ts'

/** The difference between a server's clock and ours, as far as it is certain: the round trip takes time. */
export type Clock = {
  /** Milliseconds that the server is ahead of us (negative: behind); 0 when no difference is certain. */
  readonly aheadMs: number
  /** Milliseconds of the round trip. A smaller difference is not measurable. */
  readonly tripMs: number
}

export const clockSetting = {
  type: 'threshold',
  unit: 'duration',
  default: { warn: 2_000, limit: 30_000 },
  doc: "Maximum difference between the server's clock and that of this machine",
} as const satisfies SettingsSpec[string]

/** `sql` selects one `at`: milliseconds since 1970, in UTC. */
export async function readClock(ask: Ask, sql: string, { date }: Pick<CheckContext, 'date'>): Promise<Clock> {
  const sentAt = date().getTime()
  const [row] = await ask(sql)
  const receivedAt = date().getTime()
  const at = figure(row, 'at')
  if (at === undefined) throw new ProbeError('protocol', 'the server returned no time')
  return clockOf(at, sentAt, receivedAt)
}

/**
 * The difference between a server's clock and ours. `theirs` is its time in a reply that arrived at `receivedAt` to a
 * query sent at `sentAt`; all in milliseconds since 1970.
 */
export function clockOf(theirs: number, sentAt: number, receivedAt: number): Clock {
  // Our clock has a resolution of whole milliseconds.
  const at = Math.floor(theirs)
  const aheadMs = at > receivedAt ? at - receivedAt : Math.min(0, at - sentAt)
  return { aheadMs, tripMs: receivedAt - sentAt }
}

export function evaluateClock({ aheadMs, tripMs }: Clock, threshold: Threshold): Result<'clock'> {
  if (aheadMs === 0) {
    const within = `server clock in sync, ±${showDuration(tripMs)}`
    return ok('clock', withThreshold(within, threshold, 'duration', 'atMost'), {
      measurement: { value: 0, unit: 'milliseconds', ...threshold, bound: 'atMost' },
    })
  }
  const what = `the server's clock is ${aheadMs < 0 ? 'behind' : 'ahead of'} ours by`
  return atMost({ check: 'clock', what, value: Math.abs(aheadMs), unit: 'duration', threshold })
}

import { atMost, type CheckContext, ok, type Result } from '../engine/index.ts'
import { show, showDuration } from '../format.ts'
import { ProbeError } from '../probe-error.ts'
import type { SettingsSpec, Threshold } from '../settings/index.ts'
import { figure } from './rows.ts'
import type { Ask } from './session.ts'

/** How far a server's clock is from ours, as far as it is proved: a question and its answer take a while. */
export type Clock = {
  /** Milliseconds by which it is ahead of ours (negative: behind); 0 where no difference is proved. */
  readonly aheadMs: number
  /** Milliseconds of the round trip: a smaller difference cannot be seen. */
  readonly tripMs: number
}

export const clockSetting = {
  type: 'threshold',
  unit: 'duration',
  default: { warn: 2_000, limit: 30_000 },
  doc: "How far the server's clock may be from ours",
} as const satisfies SettingsSpec[string]

/** `sql` asks for one `at`: milliseconds since 1970, in UTC. */
export async function readClock(ask: Ask, sql: string, { date }: Pick<CheckContext, 'date'>): Promise<Clock> {
  const sentAt = date().getTime()
  const [row] = await ask(sql)
  const receivedAt = date().getTime()
  const at = figure(row, 'at')
  if (at === undefined) throw new ProbeError('protocol', 'the server was asked for its time and told none')
  return clockOf(at, sentAt, receivedAt)
}

/**
 * How far a server's clock is from ours. `theirs` is its time, in an answer that we received at `receivedAt` to a
 * question that we sent at `sentAt`; all in milliseconds since 1970.
 */
export function clockOf(theirs: number, sentAt: number, receivedAt: number): Clock {
  // Our clock shows whole milliseconds.
  const at = Math.floor(theirs)
  const aheadMs = at > receivedAt ? at - receivedAt : Math.min(0, at - sentAt)
  return { aheadMs, tripMs: receivedAt - sentAt }
}

export function evaluateClock({ aheadMs, tripMs }: Clock, threshold: Threshold): Result<'clock'> {
  if (aheadMs === 0) {
    const bound = threshold.limit ?? threshold.warn
    const within = `the server's clock agrees with ours, within ±${showDuration(tripMs)}`
    const limit = bound === undefined ? '' : ` (limit ${show(bound, 'duration')})`
    return ok('clock', `${within}${limit}`, {
      measurement: { value: 0, unit: 'milliseconds', ...threshold, bound: 'atMost' },
    })
  }
  const what = `the server's clock is ${aheadMs < 0 ? 'behind' : 'ahead of'} ours by`
  return atMost({ check: 'clock', what, value: Math.abs(aheadMs), unit: 'duration', threshold })
}

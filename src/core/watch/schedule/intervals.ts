import type { Every } from '../../base/settings/index.ts'
import { deadlines, type PlannedMonitor } from '../../checks/engine/index.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import { covers, depths, type Intervals } from './due.ts'

export type OwnIntervals = {
  /** `every:` of all monitors, of the type and of the monitor. */
  readonly all: Every | undefined
  readonly ofType: Every | undefined
  readonly own: Every | undefined
  /** The shallowest depth at which it runs. */
  readonly depth: ExecutionMode
  /** The longest that a run may take at each depth, in milliseconds. */
  readonly takes: Readonly<Record<ExecutionMode, number>>
}

/**
 * The intervals of a monitor. What it has itself comes before what its type has, and that before what all have, for each
 * depth. `off` for all turns everything off. No interval is shorter than what a run may take.
 *
 * @example
 * ```ts
 * const takes = { Basic: 15_000, Standard: 30_000, Advanced: 60_000 }
 * intervalsOf({ all: { Basic: 30_000, Advanced: 10_000 }, ofType: undefined, own: undefined, depth: 'Basic', takes }) // { Basic: 30_000, Advanced: 60_000 }
 * ```
 */
export function intervalsOf({ all, ofType, own, depth, takes }: OwnIntervals): Intervals {
  if (all === 'off') return {}
  const general = ofType === 'off' ? {} : { ...all, ...ofType }
  const merged = own === 'off' ? {} : { ...general, ...own }
  const entries = depths.flatMap((one) => {
    const interval = merged[one]
    const runs = covers(one, depth) && interval !== undefined && interval !== 'off'
    return runs ? [[one, Math.max(interval, takes[one])] as const] : []
  })
  return Object.fromEntries(entries)
}

/** The intervals of a planned monitor, which may take its own timeout or the deadline of the mode. */
export function intervalsOfMonitor(
  { every: own, depth, timeoutMs }: Pick<PlannedMonitor, 'every' | 'depth' | 'timeoutMs'>,
  general: Pick<OwnIntervals, 'all' | 'ofType'>,
): Intervals {
  const take = (mode: ExecutionMode): number => timeoutMs ?? deadlines[mode].monitor
  const takes = { Basic: take('Basic'), Standard: take('Standard'), Advanced: take('Advanced') }
  return intervalsOf({ ...general, own, depth, takes })
}

/**
 * Runs a minute that one process was measured to carry (bench/engine-load.ts): none of them late by more than 1 s at the
 * 99th percentile, beside other programs on two processors.
 */
export const measuredRunsPerMinute = 10_000

/**
 * How many runs a minute these intervals make. A deeper run serves few of the shallower due times.
 *
 * @example
 * ```ts
 * runsPerMinute({ Basic: 30_000, Advanced: 300_000 }) // 2.2
 * ```
 */
export const runsPerMinute = (intervals: Intervals): number =>
  depths.reduce((sum, depth) => sum + 60_000 / (intervals[depth] ?? Number.POSITIVE_INFINITY), 0)

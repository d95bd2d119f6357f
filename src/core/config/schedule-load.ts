import { intervalsOfMonitor, measuredRunsPerMinute, runsPerMinute } from '../watch/schedule/index.ts'
import type { ServeConfig } from './load.ts'
import type { TypeConfig, Types } from './types.ts'

/** The runs of a schedule a minute. */
export const scheduledRuns = (types: Types, { every: all }: Pick<ServeConfig, 'every'>): number =>
  Object.values(types).reduce((sum, { monitors, every: ofType }: TypeConfig) => {
    const each = monitors.map((monitor) => runsPerMinute(intervalsOfMonitor(monitor, { all, ofType })))
    return each.reduce((total, one) => total + one, sum)
  }, 0)

/** A warning about a schedule with more runs than one process was measured to carry. */
export function scheduleWarnings(types: Types, serve: Pick<ServeConfig, 'every'>): readonly string[] {
  const runs = scheduledRuns(types, serve)
  if (runs <= measuredRunsPerMinute) return []
  const [planned, measured] = [Math.round(runs), measuredRunsPerMinute].map((count) => count.toLocaleString('en'))
  return [
    `the schedule has ${planned} runs a minute, and one svc serve was measured to carry ${measured}: runs may begin late. ` +
      'Give longer intervals with `every:`, or share the monitors among several servers',
  ]
}

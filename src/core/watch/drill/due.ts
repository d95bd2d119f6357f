import { type Cron, cronOf, readCronOnce } from '../../base/cron.ts'
import type { DrillConfig } from './settings.ts'

/** A drill that is later than this is overdue. Milliseconds, as all times here. */
const overdueMs = 2 * 86_400_000
/**
 * After a start, a drill that is already due waits for this time: until then, svc knows too little about its own
 * condition.
 */
const settleMs = 300_000
/** A drill that could not begin, or did not end, is tried again after this time. */
const retryMs = 3_600_000

/** The history of the scheduled drills. Instants are milliseconds since 1970. */
export type DrillHistory = {
  /** When this process started. */
  readonly startedAt: number
  /** When the last complete drill through every receiver of the schedule began. */
  readonly lastAt: number | undefined
  /** When the last attempt began, whatever its outcome. */
  readonly triedAt: number | undefined
}

export type DrillTimes = {
  /** When the next drill by schedule is to begin. Undefined: never. */
  readonly nextAt: number | undefined
  /** Since when a drill has been overdue. Undefined: none is. */
  readonly overdueSince: number | undefined
}

/** When drills are due and overdue. `now`: milliseconds since 1970. */
export function drillTimes(
  { every, when, timezone }: Pick<DrillConfig, 'every' | 'when' | 'timezone'>,
  { startedAt, lastAt, triedAt }: DrillHistory,
  now: number,
): DrillTimes {
  const since = Math.min(lastAt ?? startedAt, now)
  // Without any drill so far, nothing has proved the path: do not wait for another interval.
  const dueAt = every === undefined ? cronAfter(when, timezone, since) : lastAt === undefined ? since : since + every
  if (dueAt === undefined) return { nextAt: undefined, overdueSince: undefined }
  const retryAt = triedAt === undefined ? Number.NEGATIVE_INFINITY : Math.min(triedAt, now) + retryMs
  const nextAt = Math.max(dueAt, startedAt + settleMs, retryAt)
  return { nextAt, overdueSince: now - dueAt > overdueMs ? dueAt + overdueMs : undefined }
}

function cronAfter(when: string | undefined, timezone: string, time: number): number | undefined {
  const cron = when === undefined ? undefined : cronOf('when', when, timezone, readCronOnce)
  return cron === undefined || isProblem(cron) ? undefined : cron.after(time)
}

const isProblem = (cron: Cron | { readonly problem: string }): cron is { readonly problem: string } => 'problem' in cron

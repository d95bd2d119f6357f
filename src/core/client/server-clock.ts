import type { HealthCheckResponse } from '../protocol/index.ts'
import type { OffsetDate } from '../wire/index.ts'

/** `OffsetDate` of wire, which is loaded after the request is sent. */
type OffsetDateClass = typeof OffsetDate

/** How old an answer from a cache may be. Below half of the smallest step between time zones, a quarter of an hour. */
const nearMs = 7 * 60_000

/**
 * Corrects the dates of an answer that carry an offset, such as `/Date(1614834367089-0500)/`. Older servers write the
 * time of their wall clock as milliseconds, others the instant; the text alone does not tell which. The answer's `Date`
 * header does: if the run ended within minutes of it only when the milliseconds are read as wall clock, that holds for
 * all dates of the answer. Otherwise the milliseconds are the instant (N3).
 */
export function byServerClock(
  answer: HealthCheckResponse,
  dateHeader: string | undefined,
  offsetDate: OffsetDateClass,
): HealthCheckResponse {
  const { ExecutionMetrics: metrics } = answer
  const sentAt = Date.parse(dateHeader ?? '')
  const reference = metrics?.EndDateTime ?? metrics?.StartDateTime
  if (Number.isNaN(sentAt) || !(reference instanceof offsetDate)) return answer
  const isNear = (date: Date): boolean => Math.abs(date.getTime() - sentAt) < nearMs
  if (isNear(reference) || !isNear(reference.readAsWallClock())) return answer
  const corrected = (date: Date | undefined): Date | undefined =>
    date instanceof offsetDate ? date.readAsWallClock() : date
  return {
    ...answer,
    ExecutionMetrics: {
      ...metrics,
      StartDateTime: corrected(metrics?.StartDateTime),
      EndDateTime: corrected(metrics?.EndDateTime),
    },
  }
}

import type { HealthCheckResponse, MonitorSummary } from '../protocol/index.ts'

/**
 * Makes an answer as bad as its worst part. A server may send Success together with a failed monitor, a failed result,
 * a FailedMonitorCount above 0, or no monitor at all; none of these is healthy. Other answers are returned unchanged,
 * and a Failure stays one whatever its parts say.
 */
export function worstPart(answer: HealthCheckResponse): HealthCheckResponse {
  const summaries = answer.MonitorSummaries ?? []
  const MonitorSummaries = summaries.some(hides) ? summaries.map(asBadAsItsResults) : summaries
  const failed = MonitorSummaries.filter(hasFailed).length
  const count = Math.max(failed, answer.FailedMonitorCount ?? 0)
  if (MonitorSummaries === summaries && (answer.Status !== 'Success' || (count === 0 && summaries.length > 0))) {
    return answer
  }
  const corrected = { ...answer, MonitorSummaries, FailedMonitorCount: count }
  if (answer.Status !== 'Success') return corrected
  const contradiction =
    count === 0
      ? 'the server reports Success, but no monitor: nothing was checked'
      : `the server reports Success, but also ${count} failed ${count === 1 ? 'monitor' : 'monitors'}`
  const { StatusMessage: message = '' } = answer
  return {
    ...corrected,
    Status: 'Failure',
    StatusMessage: message.trim() === '' ? contradiction : `${contradiction} (${message})`,
  }
}

const hasFailed = ({ Status }: { readonly Status?: string | undefined }): boolean => Status === 'Failure'

/** Whether a monitor that passed has a failed result. */
const hides = (summary: MonitorSummary): boolean => !hasFailed(summary) && (summary.Results ?? []).some(hasFailed)

const asBadAsItsResults = (summary: MonitorSummary): MonitorSummary =>
  hides(summary) ? { ...summary, Status: 'Failure' } : summary

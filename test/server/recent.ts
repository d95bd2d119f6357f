import { worstStatus } from '../../src/core/checks/reports/run-document.ts'
import type {
  ExecutionMode,
  HealthCheckResponse,
  MonitoringResult,
  RunDocument,
  ServerType,
} from '../../src/core/protocol/index.ts'
import type { RecentRun } from '../../src/core/protocol/service/service.ts'

/** The results of a run that ended some seconds ago, as the core hands them to `/metrics` and the page. */
export const recentRun = (run: RunDocument, ageSeconds: number, more: Partial<RecentRun> = {}): RecentRun => ({
  type: run.type,
  mode: run.mode,
  run,
  ageSeconds,
  places: run.monitors.map(({ name, kind }) => ({ key: name ?? kind, beganAt: -1_000 * ageSeconds })),
  complete: true,
  expired: false,
  ...more,
})

/** The run that has these results. */
export function runOfResponse(type: ServerType, mode: ExecutionMode, response: HealthCheckResponse): RunDocument {
  const { StartDateTime, EndDateTime, Duration = 0 } = response.ExecutionMetrics ?? {}
  const monitors = (response.MonitorSummaries ?? []).map(({ MonitorName = '', Results = [] }) => {
    const results = Results.map(resultOf)
    return { name: MonitorName, kind: MonitorName.split(' ')[0] ?? '', status: worstStatus(results), results }
  })
  return {
    version: 1,
    type,
    mode,
    view: 'full',
    status: worstStatus(monitors),
    message: response.StatusMessage ?? '',
    correlationId: response.CorrelationId ?? '',
    startedAt: StartDateTime ?? new Date(0),
    endedAt: EndDateTime ?? new Date(0),
    durationMs: Duration,
    monitors,
  }
}

function resultOf({ MonitoringName = '', Status, StatusMessage = '', ErrorMessages = [] }: MonitoringResult) {
  const isWarning = StatusMessage.startsWith('warning: ')
  return {
    check: MonitoringName,
    status: Status === 'Failure' ? ('failed' as const) : isWarning ? ('warning' as const) : ('ok' as const),
    message: StatusMessage.replace('warning: ', ''),
    fault: ErrorMessages.find((line) => line.startsWith('fault: '))?.slice('fault: '.length),
  }
}

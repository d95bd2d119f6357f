import {
  faultPrefix,
  type HealthCheckRequest,
  type HealthCheckResponse,
  type MonitoringResult,
  type MonitorSummary,
  type ServerType,
  warningPrefix,
} from '../protocol/index.ts'
import type { Result } from './result.ts'
import type { MonitorReport, Run } from './run.ts'

export type AnswerOptions = {
  readonly type: ServerType
  readonly correlationId: string
  readonly flags: Pick<HealthCheckRequest, 'IncludeServerStateInformation' | 'SuppressDeploymentErrors'>
  /** `brief` is what a stranger off loopback may know: no messages, no hosts, no server state (S11). */
  readonly view: 'full' | 'brief'
}

/** Shapes one run into one answer. The flags shape the answer and never cause a run. */
export function answer(run: Run, options: AnswerOptions): HealthCheckResponse {
  const suppress = options.flags.SuppressDeploymentErrors === true
  const reports = run.monitors.map((report) => ({
    ...report,
    results: report.results.map((result) => (suppress ? suppressed(result) : result)),
  }))
  const summaries = reports.map((report) => summarise(report, options.view))
  const failed = summaries.filter((summary) => summary.Status === 'Failure').length
  const status = failed === 0 ? 'Success' : 'Failure'
  return {
    ...(options.flags.IncludeServerStateInformation === true && options.view === 'full'
      ? { ServerState: run.serverState }
      : {}),
    Status: status,
    StatusMessage: headline(options.type, reports, failed, options.view),
    CorrelationId: options.correlationId,
    FailedMonitorCount: failed,
    MonitorSummaries: summaries,
    ExecutionMetrics: { StartDateTime: run.startedAt, EndDateTime: run.endedAt, Duration: run.durationMs },
  }
}

/** H5: a deployment-related failure counts as Success and says what was suppressed. */
function suppressed(result: Result): Result {
  if (result.status !== 'failed' || !result.deployment) return result
  return { ...result, status: 'ok', fault: undefined, message: `suppressed (deployment): ${result.message}` }
}

function summarise(report: MonitorReport, view: 'full' | 'brief'): MonitorSummary {
  const results = report.results.map((one) => monitoringResult(one, view))
  const failures = report.results.filter((result) => result.status === 'failed')
  return {
    MonitorName: view === 'full' ? report.name : report.kind,
    Status: failures.length === 0 ? 'Success' : 'Failure',
    Results: results,
    ErrorMessages: view === 'full' ? failures.map((result) => `${result.check}: ${result.message}`) : [],
  }
}

function monitoringResult(result: Result, view: 'full' | 'brief'): MonitoringResult {
  const failed = result.status === 'failed'
  const fault = failed ? [`${faultPrefix}${result.fault ?? 'internal'}`] : []
  const message = result.status === 'warning' ? `${warningPrefix}${result.message}` : result.message
  return {
    MonitoringName: result.check,
    Status: failed ? 'Failure' : 'Success',
    StatusMessage: view === 'full' ? message : briefly(result),
    ErrorMessages: view === 'full' ? [...(result.details ?? []), ...fault] : fault,
  }
}

function briefly(result: Result): string {
  if (result.status === 'ok') return 'ok'
  return result.status === 'warning' ? `${warningPrefix}see the server` : `failed: ${result.fault ?? 'internal'}`
}

/** The line a pager shows: root causes only, never the monitors that were not run because of them. */
function headline(type: ServerType, reports: readonly MonitorReport[], failed: number, view: 'full' | 'brief'): string {
  const total = reports.length
  const told = (status: Result['status']): string[] =>
    reports.flatMap((report) =>
      report.results
        .filter((result) => result.status === status && result.fault !== 'dependency')
        .map((result) => spoken(report, result)),
    )
  if (failed > 0) {
    const opening = `${type} is unhealthy: ${failed} of ${total} ${total === 1 ? 'monitor' : 'monitors'} failed`
    return view === 'full' ? `${opening}: ${told('failed').join('; ')}` : opening
  }
  const warnings = told('warning')
  if (warnings.length === 0) return `${type} is healthy: ${total} ${total === 1 ? 'monitor' : 'monitors'} passed`
  const opening = `${type} is healthy, ${warnings.length} ${warnings.length === 1 ? 'warning' : 'warnings'}`
  return view === 'full' ? `${opening}: ${warnings.join('; ')}` : opening
}

/** A Configuration monitor speaks for itself; others are named before what they say. */
const spoken = (report: MonitorReport, result: Result): string =>
  report.kind === 'configuration' ? result.message : `${report.name} ${result.check}: ${result.message}`

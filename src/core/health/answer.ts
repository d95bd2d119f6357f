import {
  faultPrefix,
  type HealthCheckRequest,
  type HealthCheckResponse,
  type MonitoringResult,
  type MonitorSummary,
  type ServerType,
  warningPrefix,
} from '../protocol/index.ts'
import type { MonitorReport, Run } from './engine.ts'
import type { Finding } from './monitor.ts'

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
    findings: report.findings.map((finding) => (suppress ? suppressed(finding) : finding)),
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
function suppressed(finding: Finding): Finding {
  if (finding.level !== 'fail' || !finding.deployment) return finding
  return { ...finding, level: 'ok', fault: undefined, message: `suppressed (deployment): ${finding.message}` }
}

function summarise(report: MonitorReport, view: 'full' | 'brief'): MonitorSummary {
  const results = report.findings.map((finding) => result(finding, view))
  const failures = report.findings.filter((finding) => finding.level === 'fail')
  return {
    MonitorName: view === 'full' ? report.name : report.kind,
    Status: failures.length === 0 ? 'Success' : 'Failure',
    Results: results,
    ErrorMessages: view === 'full' ? failures.map((finding) => `${finding.check}: ${finding.message}`) : [],
  }
}

function result(finding: Finding, view: 'full' | 'brief'): MonitoringResult {
  const failed = finding.level === 'fail'
  const fault = failed ? [`${faultPrefix}${finding.fault ?? 'internal'}`] : []
  const message = finding.level === 'warn' ? `${warningPrefix}${finding.message}` : finding.message
  return {
    MonitoringName: finding.check,
    Status: failed ? 'Failure' : 'Success',
    StatusMessage: view === 'full' ? message : briefly(finding),
    ErrorMessages: view === 'full' ? [...(finding.details ?? []), ...fault] : fault,
  }
}

function briefly(finding: Finding): string {
  if (finding.level === 'ok') return 'ok'
  return finding.level === 'warn' ? `${warningPrefix}see the server` : `failed: ${finding.fault ?? 'internal'}`
}

/** The line a pager shows: root causes only, never the monitors that were not run because of them. */
function headline(type: ServerType, reports: readonly MonitorReport[], failed: number, view: 'full' | 'brief'): string {
  const total = reports.length
  const told = (level: Finding['level']): string[] =>
    reports.flatMap((report) =>
      report.findings
        .filter((finding) => finding.level === level && finding.fault !== 'dependency')
        .map((finding) => spoken(report, finding)),
    )
  if (failed > 0) {
    const opening = `${type} is unhealthy: ${failed} of ${total} ${total === 1 ? 'monitor' : 'monitors'} failed`
    return view === 'full' ? `${opening}: ${told('fail').join('; ')}` : opening
  }
  const warnings = told('warn')
  if (warnings.length === 0) return `${type} is healthy: ${total} ${total === 1 ? 'monitor' : 'monitors'} passed`
  const opening = `${type} is healthy, ${warnings.length} ${warnings.length === 1 ? 'warning' : 'warnings'}`
  return view === 'full' ? `${opening}: ${warnings.join('; ')}` : opening
}

/** A Configuration monitor speaks for itself; others are named before what they say. */
const spoken = (report: MonitorReport, finding: Finding): string =>
  report.kind === 'configuration' ? finding.message : `${report.name} ${finding.check}: ${finding.message}`

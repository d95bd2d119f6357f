import { sanitizeLine, sanitizeText } from '../../base/sanitize.ts'
import {
  faultIn,
  type HealthCheckResponse,
  isLoadSubject,
  isMarked,
  type MonitoringResult,
  type MonitorSummary,
  rehearsalMember,
  warningIn,
} from '../../protocol/index.ts'
import {
  type Answered,
  counting,
  figure,
  type Level,
  type MonitorReading,
  type Reading,
  readState,
  valid,
  worst,
} from './reading.ts'
import { slugOf, stateOf } from './run-document.ts'

/**
 * Reads the interface's document from a server that sends no run; its text contains warnings and fault classes.
 * Accepts whatever a foreign server sends: missing parts, empty lists, unexpected text.
 */
export function fromForeignDocument(response: HealthCheckResponse): Answered {
  const monitors = (response.MonitorSummaries ?? []).map(readMonitor)
  const warns = monitors.some(({ results }) => counting(results).some(({ level }) => level === 'warn'))
  const level: Level = response.Status !== 'Success' ? 'fail' : warns ? 'warn' : 'ok'
  const metrics = response.ExecutionMetrics
  return {
    level,
    message: sanitizeLine(response.StatusMessage ?? ''),
    monitors,
    unnamed: monitors.length === 0 && level === 'fail' ? Math.max(1, figure(response.FailedMonitorCount) ?? 1) : 0,
    duration: figure(metrics?.Duration),
    startedAt: valid(metrics?.StartDateTime),
    endedAt: valid(metrics?.EndDateTime),
    correlationId: sanitizeLine(response.CorrelationId ?? ''),
    node: '',
    state: response.ServerState && readState(stateOf(response.ServerState)),
    ...(isMarked(response.StatusMessage ?? '') && rehearsalMember),
  }
}

/** Whether a document without a run contains a warning. */
export const foreignWarning = (response: HealthCheckResponse): boolean =>
  (response.MonitorSummaries ?? []).some((summary) =>
    (summary.Results ?? []).some(
      ({ MonitoringName: check = '', StatusMessage = '' }) =>
        warningIn(StatusMessage) !== undefined && !isLoadSubject({ monitor: summary.MonitorName ?? '', check }),
    ),
  )

function readMonitor(summary: MonitorSummary): MonitorReading {
  const name = sanitizeLine(summary.MonitorName ?? '')
  const read = (summary.Results ?? []).map((result): Reading => {
    const one = readResult(name, result)
    return isLoadSubject({ monitor: name, check: one.check }) && one.level !== 'fail' ? { ...one, isLoad: true } : one
  })
  const failing = read.filter((reading) => reading.level === 'fail')
  const further = furtherMessages(summary.ErrorMessages ?? [], failing)
  const results = withFurther(name, summary, read, failing, further)
  const level = summary.Status === 'Failure' ? 'fail' : worst(counting(results).map((result) => result.level))
  const unknown = { kind: undefined, scope: undefined, depth: undefined, duration: undefined }
  return { ...unknown, name, host: false, level, results, notRun: [] }
}

/** A monitor's ErrorMessages without those that only repeat its results. */
function furtherMessages(messages: readonly string[], failing: readonly Reading[]): readonly string[] {
  if (messages.length === 0) return []
  const repeated = new Set(failing.map((reading) => `${reading.check}: ${reading.message}`))
  return messages.map(sanitizeText).filter((text) => text !== '' && !repeated.has(sanitizeLine(text)))
}

/** Attaches a monitor's additional messages to the result that they most likely explain. */
function withFurther(
  monitor: string,
  summary: MonitorSummary,
  read: readonly Reading[],
  failing: readonly Reading[],
  further: readonly string[],
): readonly Reading[] {
  const failed = summary.Status !== 'Success'
  if (read.length === 0 || (failed && failing.length === 0)) {
    const message = sanitizeLine(further[0] ?? '') || (failed ? 'failed without an explanation' : 'passed')
    const own: Reading = {
      monitor,
      check: '',
      slug: 'monitor',
      depth: undefined,
      level: failed ? 'fail' : 'ok',
      message,
      details: further.slice(1),
      fault: undefined,
      cause: undefined,
      item: undefined,
      measurement: undefined,
      notChecked: undefined,
    }
    return [...read, own]
  }
  const host = failing.at(-1) ?? read.at(-1)
  if (further.length === 0 || !host) return read
  return read.map((reading) => (reading === host ? { ...reading, details: [...reading.details, ...further] } : reading))
}

function readResult(monitor: string, result: MonitoringResult): Reading {
  const failed = result.Status !== 'Success'
  const statusText = sanitizeLine(result.StatusMessage ?? '')
  const warning = failed ? undefined : warningIn(statusText)
  const details = (result.ErrorMessages ?? []).map(sanitizeText).filter((text) => text !== '')
  const fault = failed ? faultIn(details.at(-1) ?? '') : undefined
  const check = sanitizeLine(result.MonitoringName ?? '')
  return {
    monitor,
    check,
    slug: slugOf(check),
    depth: undefined,
    level: failed ? 'fail' : warning !== undefined ? 'warn' : 'ok',
    message: (warning ?? statusText) || (failed ? 'failed without an explanation' : 'ok'),
    details: fault === undefined ? details : details.slice(0, -1),
    fault: fault === undefined ? undefined : sanitizeLine(fault),
    cause: undefined,
    item: undefined,
    measurement: undefined,
    notChecked: undefined,
  }
}

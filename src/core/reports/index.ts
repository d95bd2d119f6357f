/** Reports: health answers in the formats of other tools. */
import type { Report } from './reading.ts'

export type { ExpositionFormat, Family, Sample } from './exposition.ts'
export { foreignWarning } from './foreign.ts'
export { type NagiosState, nagiosState } from './nagios-state.ts'
export { type ResultRecord, read, records, renderPlain } from './read.ts'
export {
  bySeverity,
  count,
  describeResult,
  type Entry,
  type EntryReading,
  isBad,
  isConsequence,
  type Level,
  type MonitorReading,
  type Reading,
  type Report,
  type ReportedError,
  results,
  stateWord,
  stateWords,
  worst,
  worstFirst,
} from './reading.ts'
export {
  type DocumentsOf,
  healthCheckResponse,
  type RunDocumentOptions,
  type RunView,
  rememberDocuments,
  runDocument,
  selectRun,
} from './run-document.ts'

export type ReportName =
  | 'nagios'
  | 'prtg'
  | 'prometheus'
  | 'junit'
  | 'github'
  | 'health+json'
  | 'csv'
  | 'tsv'
  | 'ndjson'

/** The metrics of health answers and the writer of all metrics. */
export const loadPrometheus = () => import('./prometheus.ts')

/** One row per format. Each format is loaded on first use. */
export const reports: Record<ReportName, () => Promise<{ readonly default: Report }>> = {
  nagios: () => import('./nagios.ts'),
  prtg: () => import('./prtg.ts'),
  prometheus: loadPrometheus,
  junit: () => import('./junit.ts'),
  github: () => import('./github.ts'),
  'health+json': () => import('./health-json.ts'),
  csv: () => import('./csv.ts'),
  tsv: () => import('./tsv.ts'),
  ndjson: () => import('./ndjson.ts'),
}

/** The reports that `/healthcheck` offers besides the protocol's own formats (F5), by `?format=` and by `Accept`. */
export const overHttp = {
  format: ['nagios', 'prtg', 'prometheus'],
  accept: { 'application/health+json': 'health+json' },
} as const satisfies {
  readonly format: readonly ReportName[]
  readonly accept: Readonly<Record<string, ReportName>>
}

/** Loads the formats that are served over HTTP. */
export const preloadReports = async (): Promise<void> => {
  const names: readonly ReportName[] = [...overHttp.format, ...Object.values(overHttp.accept)]
  await Promise.all(names.map((name) => reports[name]()))
}

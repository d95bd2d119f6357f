/** Reports: health answers in the formats of other tools. */
import { loadConfirmed, loadLive, reports } from './formats.ts'

export type { ExpositionFormat } from './exposition.ts'
export { foreignWarning } from './foreign.ts'
export { loadConfirmed, loadLive, loadPrometheus, type ReportName, reports } from './formats.ts'
export type { LiveOptions, LiveSeries } from './live.ts'
export { type ResultRecord, read, readMonitor, records } from './read.ts'
export {
  bySeverity,
  counting,
  describeResult,
  type Entry,
  type EntryReading,
  isBad,
  isConsequence,
  type Level,
  type MonitorReading,
  messageIn,
  type Reading,
  type Report,
  type ReportedError,
  results,
  shorten,
  shownLevel,
  silencedSentence,
  stateWord,
  stateWords,
  worst,
  worstFirst,
} from './reading.ts'
export {
  type DocumentsOf,
  depthOfCheck,
  documentOf,
  healthCheckResponse,
  isDeclaredBy,
  type RunDocumentOptions,
  type RunView,
  rememberDocuments,
  reportUpTo,
  runDocument,
  type SilencedResults,
  selectRun,
  slugIn,
  withSilences,
} from './run-document.ts'

/** Loads the formats that are served over HTTP. */
export const preloadReports = async (): Promise<void> => {
  const served = Object.values(reports).filter(({ overHttp }) => overHttp !== undefined)
  await Promise.all([loadLive(), loadConfirmed(), ...served.map(({ load }) => load())])
}

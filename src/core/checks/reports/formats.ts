import type { TextForm } from '../../base/sanitize.ts'
import type { Report } from './reading.ts'

/** A format of health answers. */
type ReportRow = {
  readonly load: () => Promise<{ readonly default: Report }>
  /** How the command line keeps text in it from commanding a CI runner. */
  readonly form: TextForm
  /**
   * The text of `svc help formatting` about it; formats with the same words share a line. Absent: not for `--output`.
   */
  readonly help?: string
  /** How `/healthcheck` offers it besides the protocol's own formats (F5): by `?format=`, or by this media type. */
  readonly overHttp?: 'format' | { readonly accept: string }
  /** A monitoring system starts svc as its plugin, and reads standard output only. */
  readonly isPlugin?: true
  /** A file for a program: the log of a CI job shows the screen beside it. */
  readonly besideScreen?: true
}

/** The metrics of health answers and the writer of all metrics. */
export const loadPrometheus = () => import('./prometheus.ts')
/** The writer of the latest results for `/metrics`. */
export const loadLive = () => import('./live.ts')
/** The metrics of what is confirmed. */
export const loadConfirmed = () => import('./confirmed.ts')

const recordHelp = 'one record per result'
const ciHelp = 'for CI: a test report, annotations'
const monitoringHelp = 'for monitoring tools; nagios also maps the exit code'

/** One row per format, in the order in which the help lists them. Each format is loaded on first use. */
const rows = {
  csv: { load: () => import('./csv.ts'), form: 'records', help: recordHelp },
  tsv: { load: () => import('./tsv.ts'), form: 'records', help: recordHelp },
  ndjson: { load: () => import('./ndjson.ts'), form: 'json', help: recordHelp },
  junit: { load: () => import('./junit.ts'), form: 'xml', help: ciHelp, besideScreen: true },
  // Its lines are commands: it escapes text by their rule.
  github: { load: () => import('./github.ts'), form: 'verbatim', help: ciHelp },
  nagios: { load: () => import('./nagios.ts'), form: 'text', help: monitoringHelp, overHttp: 'format', isPlugin: true },
  prtg: { load: () => import('./prtg.ts'), form: 'json', help: monitoringHelp, overHttp: 'format', isPlugin: true },
  prometheus: { load: loadPrometheus, form: 'records', help: monitoringHelp, overHttp: 'format' },
  'health+json': {
    load: () => import('./health-json.ts'),
    form: 'json',
    overHttp: { accept: 'application/health+json' },
  },
} as const satisfies Readonly<Record<string, ReportRow>>

export type ReportName = keyof typeof rows
export const reports: Readonly<Record<ReportName, ReportRow>> = rows

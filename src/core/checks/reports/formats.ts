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
  /**
   * Whether `svc health` also writes what failed to standard error (O10), for people who read a log while a program
   * reads standard output.
   */
  readonly logsFailures: boolean
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

const plugin = { help: monitoringHelp, overHttp: 'format', isPlugin: true, logsFailures: false } as const

/** One row per format, in the order in which the help lists them. Each format is loaded on first use. */
const rows = {
  csv: { load: () => import('./csv.ts'), form: 'records', help: recordHelp, logsFailures: true },
  tsv: { load: () => import('./tsv.ts'), form: 'records', help: recordHelp, logsFailures: true },
  ndjson: { load: () => import('./ndjson.ts'), form: 'json', help: recordHelp, logsFailures: true },
  junit: { load: () => import('./junit.ts'), form: 'xml', help: ciHelp, logsFailures: true },
  // Its lines are commands: it escapes text by their rule. They are the log.
  github: { load: () => import('./github.ts'), form: 'verbatim', help: ciHelp, logsFailures: false },
  nagios: { load: () => import('./nagios.ts'), form: 'text', ...plugin },
  prtg: { load: () => import('./prtg.ts'), form: 'json', ...plugin },
  prometheus: { load: loadPrometheus, form: 'records', help: monitoringHelp, overHttp: 'format', logsFailures: true },
  'health+json': {
    load: () => import('./health-json.ts'),
    form: 'json',
    overHttp: { accept: 'application/health+json' },
    logsFailures: false,
  },
} as const satisfies Readonly<Record<string, ReportRow>>

export type ReportName = keyof typeof rows
export const reports: Readonly<Record<ReportName, ReportRow>> = rows

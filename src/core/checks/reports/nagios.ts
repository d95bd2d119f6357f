import { markText } from '../../protocol/index.ts'
import { divided, type MeasuredReading, measuredResults } from './figure.ts'
import { read } from './read.ts'
import {
  bySeverity,
  detailsWithFault,
  type Entry,
  type EntryReading,
  figureName,
  isBad,
  type Level,
  type Reading,
  type Report,
  type ReportOptions,
  results,
  shorten,
} from './reading.ts'

const words: Record<NagiosState, string> = { 0: 'OK', 1: 'WARNING', 2: 'CRITICAL', 3: 'UNKNOWN' }
/**
 * Characters of the status line before the performance data. No address or cause of ours is that long; the bound leaves
 * room for the performance data in the 8 KiB that Nagios reads.
 */
const lineLength = 2_000

/** Removes `|`, which would start the performance data anywhere in the text. */
const plain = (text: string): string => text.replaceAll('|', '¦')

/**
 * A status line with performance data, then every result, the worst first, because a transport may truncate the output
 * (monitoring-plugins.org, development guidelines).
 */
export default {
  name: 'nagios',
  contentType: 'text/plain; charset=utf-8',
  render: (entries, options) => {
    const readings = entries.map(read)
    const status = `SVC ${words[nagiosState(entries, options)]} - `
    const line = status + shorten(plain(summary(entries, readings)), lineLength - status.length)
    const data = performanceData(readings)
    const first = data === '' ? line : `${line} | ${data}`
    return `${[first, ...readings.flatMap(longOutput)].join('\n')}\n`
  },
  exitCode: nagiosState,
} satisfies Report

/** The exit codes of a Nagios plugin: OK, WARNING, CRITICAL, UNKNOWN. */
export type NagiosState = 0 | 1 | 2 | 3

/** A host that does not answer is critical, not unknown (plugin guidelines). */
const critical = new Set([3, 6, 7, 8])
/** The exit code of a target that did not answer in time. */
const timeoutExit = 7
/** The exit code of a local configuration that cannot be used. */
const localExit = 12
const badness: Record<NagiosState, number> = { 0: 0, 1: 1, 3: 2, 2: 3 }

function stateOf(entry: Entry, { timeoutState }: ReportOptions): NagiosState {
  const reading = read(entry)
  // Nothing is known of what was not checked.
  if (reading.level === 'not checked') return 3
  if (reading.level === 'fail') return entry.ExitCode === localExit ? 3 : 2
  if (reading.level === 'warn') return 1
  if (reading.level === 'ok' && entry.ExitCode === 0) return 0
  const code = reading.error?.exitCode ?? entry.ExitCode
  if (code === timeoutExit && timeoutState === 'unknown') return 3
  return critical.has(code) ? 2 : 3
}

/** The worst state of the entries: CRITICAL, then UNKNOWN, then WARNING. Without entries it is UNKNOWN. */
export function nagiosState(entries: readonly Entry[], options: ReportOptions = {}): NagiosState {
  if (entries.length === 0) return 3
  return entries
    .map((entry) => stateOf(entry, options))
    .reduce((most, state) => (badness[state] > badness[most] ? state : most), 0)
}

function summary(entries: readonly Entry[], readings: readonly EntryReading[]): string {
  const [only] = readings
  if (!only) return 'nothing was checked'
  const own = readings.every(({ ownPart }) => ownPart !== undefined)
  if (readings.some(({ drill }) => drill)) return markText(outcome(entries, readings))
  return own
    ? `nothing is configured, only svc itself was checked: ${outcome(entries, readings)}`
    : outcome(entries, readings)
}

function outcome(entries: readonly Entry[], readings: readonly EntryReading[]): string {
  const [only] = readings
  if (only && readings.length === 1) return cause(only)
  const bad = readings.filter((reading) => isBad(reading.level)).toSorted((a, b) => urgency(a) - urgency(b))
  const decisive = bad[0] ?? readings.find((reading) => reading.level === 'warn')
  if (!decisive) return `all ${entries.length} healthy`
  const all = bad.length > 0 ? `${bad.length} of ${entries.length} not healthy` : `${entries.length} healthy, warnings`
  return `${all}: ${cause(decisive)}`
}

/** Failed entries come before unknown ones. */
const urgency = ({ level }: EntryReading): number => (level === 'not checked' ? 1 : 0)

function cause(reading: EntryReading): string {
  const [first, ...others] = reading.causes
  if (first === undefined) return reading.headline
  const more = others.length > 0 ? ` (+${others.length})` : ''
  return `${reading.type === 'all' || first.startsWith(reading.type) ? '' : `${reading.type}: `}${first}${more}`
}

const levelWords: Record<Level, string> = { fail: 'FAIL', 'not checked': 'UNKNOWN', warn: 'WARN', ok: 'OK' }

function longOutput(reading: EntryReading): readonly string[] {
  const subject = [reading.type, reading.mode].filter(Boolean).join(' ')
  const head = `${subject} at ${reading.target}: ${reading.headline}`
  const more = reading.error ? [reading.error.message, ...reading.error.hints] : []
  const lines = results(reading).toSorted(bySeverity).flatMap(resultLines)
  const correlation = reading.correlationId === '' ? [] : [`Correlation ${reading.correlationId}`]
  return [head, ...more.flatMap(indented), ...lines, ...correlation].map(plain)
}

function resultLines(reading: Reading): readonly string[] {
  const name = [reading.monitor, reading.check].filter(Boolean).join(' / ')
  return [`${levelWords[reading.level]} ${name}: ${reading.message}`, ...detailsWithFault(reading).flatMap(indented)]
}

const indented = (text: string): readonly string[] => text.split('\n').map((line) => `  ${line}`)

/** Units of performance data: a check's unit → divisor and UOM. Other units have no UOM. */
const uoms: Readonly<Record<string, { readonly by: number; readonly uom: string }>> = {
  milliseconds: { by: 1_000, uom: 's' },
  bytes: { by: 1, uom: 'B' },
  percent: { by: 1, uom: '%' },
}

/** A measurement as `value[UOM];warn;crit`. The ranges depend on whether the limits are upper or lower bounds. */
function figureData({ measurement }: MeasuredReading): string {
  const { by, uom } = (Object.hasOwn(uoms, measurement.unit) && uoms[measurement.unit]) || { by: 1, uom: '' }
  const { value, warn, limit, bound } = divided(measurement, by)
  const range = (edge: number | undefined): string =>
    edge === undefined || bound === undefined ? '' : `${fine(edge)}${bound === 'atLeast' ? ':' : ''}`
  const parts = [`${fine(value)}${uom}`, range(warn), range(limit)]
  return parts.slice(0, parts.findLastIndex((part) => part !== '') + 1).join(';')
}

/** `'label'=value[UOM];[warn];[crit];[min];[max]`, labels unique. */
function performanceData(readings: readonly EntryReading[]): string {
  const taken = new Set<string>()
  const types = readings.map((reading) => reading.type)
  const of = (reading: EntryReading): string => {
    if (readings.length === 1) return ''
    const twice = types.indexOf(reading.type) !== types.lastIndexOf(reading.type)
    return twice ? `${reading.type} ${reading.target} ` : `${reading.type} `
  }
  return readings
    .filter((reading) => reading.error === undefined)
    .flatMap((reading) => {
      const name = (what: string): string => label(of(reading) + what, taken)
      const total = reading.monitors.length
      const { state } = reading
      return [
        `${name('failed')}=${reading.failed};;0;0;${Math.max(total, reading.failed)}`,
        `${name('not_checked')}=${reading.unchecked};;;0;${total}`,
        `${name('warnings')}=${reading.warnings};0;;0`,
        reading.duration === undefined ? undefined : `${name('duration')}=${decimal(reading.duration / 1_000)}s;;;0`,
        state?.cpu === undefined ? undefined : `${name('cpu')}=${decimal(state.cpu)}%`,
        state?.freeMb === undefined || state.totalMb === undefined
          ? undefined
          : `${name('ram_available')}=${decimal(state.freeMb)}MB;;;0;${decimal(state.totalMb)}`,
        ...measuredResults(reading).map((result) => {
          const what = figureName(result)
          return `${name(what)}=${figureData(result)}`
        }),
      ]
    })
    .filter((item) => item !== undefined)
    .join(' ')
}

function label(text: string, taken: Set<string>): string {
  // A server may send an empty name, but a label must not be empty.
  const safe = plain(text).replaceAll("'", '’').replaceAll('=', '-') || 'figure'
  let name = safe
  for (let n = 2; taken.has(name); n += 1) name = `${safe} ${n}`
  taken.add(name)
  return /\s/.test(name) ? `'${name}'` : name
}

/** At most six decimals and no exponent: some answers take microseconds. */
const fine = (value: number): string => String(Number(value.toFixed(6)))
/** At most three decimals and no exponent. */
const decimal = (value: number): string => String(Number(value.toFixed(3)))

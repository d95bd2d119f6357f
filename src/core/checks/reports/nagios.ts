import { count, plainNumber } from '../../base/format.ts'
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
/** Characters of the status line before the performance data. No address or cause of ours is that long. */
const lineLength = 2_000
/** Bytes of the whole output. Nagios Core 4.4 reads 4 KiB at once, and under load cuts what is longer inside a value. */
const defaultSize = 4_000
/** Bytes that the text leaves for the performance data: the counts, and a few figures. */
const reservedSize = 500

/** Removes `|`, which would start the performance data anywhere in the text. */
const plain = (text: string): string => text.replaceAll('|', '¦')

/**
 * A status line with performance data, then every result, the worst first, because a transport may truncate the output
 * (monitoring-plugins.org, development guidelines). What does not fit is counted: healthy results first, then others,
 * and each figure is there whole or not at all.
 */
export default {
  name: 'nagios',
  contentType: 'text/plain; charset=utf-8',
  render: (entries, options) => {
    const readings = entries.map(read)
    const status = `SVC ${words[nagiosState(entries, options)]} - `
    const size = options?.size ?? defaultSize
    const length = Math.min(lineLength, size - reservedSize) - status.length
    const line = status + shorten(plain(summary(entries, readings)), length)
    const data = performanceData(readings)
    const whole = output(
      line,
      data,
      readings.flatMap((reading) => longOutput(reading)),
    )
    if (bytes(whole) <= size) return whole
    const budget = { left: size - bytes(line) - reservedSize }
    const text = readings.flatMap((reading) => longOutput(reading, budget))
    return output(line, fitting(data, size - bytes(output(line, [], text))), text)
  },
  exitCode: nagiosState,
} satisfies Report

const bytes = (text: string): number => Buffer.byteLength(text)

function output(line: string, data: readonly Datum[], more: readonly string[]): string {
  const first = data.length === 0 ? line : `${line} | ${data.map(({ text }) => text).join(' ')}`
  return `${[first, ...more].join('\n')}\n`
}

/** One value with its label. The counts of an answer are as important as a failure. */
type Datum = { readonly level: Level; readonly text: string }

/** As much performance data as fits into `size` bytes, value by value, those of failures first, and how many are left out. */
function fitting(data: readonly Datum[], size: number): readonly Datum[] {
  const leftOut = (values: number): string => `perfdata_left_out=${values}`
  // The separator, and a blank before each value.
  let left = size - ' |'.length - bytes(leftOut(data.length)) - 1
  const whole = data.toSorted(bySeverity).filter(({ text }) => {
    left -= bytes(text) + 1
    return left >= 0
  })
  return [...whole, { level: 'ok', text: leftOut(data.length - whole.length) }]
}

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
  return `${all}: ${[decisive.server, cause(decisive)].filter(Boolean).join(' ')}`
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

/**
 * The lines about one answer. With a budget of bytes, which it uses up, healthy results are only counted, and of the
 * others those that fit are there.
 */
function longOutput(reading: EntryReading, budget?: { left: number }): readonly string[] {
  const subject = [reading.type, reading.mode].filter(Boolean).join(' ')
  const head = `${subject} at ${reading.target}: ${reading.headline}`
  const more = reading.error ? [reading.error.message, ...reading.error.hints] : []
  const all = results(reading).toSorted(bySeverity)
  const correlation = reading.correlationId === '' ? [] : [plain(`Correlation ${reading.correlationId}`)]
  const notOk = (left: number): string => `and ${count(left, 'other result')} that are not ok`
  const healthy = (left: number): string => `and ${count(left, 'healthy result')}`
  const isThere = (lines: readonly string[]): boolean => {
    if (budget === undefined) return true
    budget.left -= lines.reduce((sum, line) => sum + bytes(line) + 1, 0)
    return budget.left >= 0
  }
  const base = [head, ...more.flatMap(indented)].map(plain)
  if (!isThere([...base, notOk(all.length), healthy(all.length), ...correlation])) return []
  const listed = all.filter(({ level }) => budget === undefined || level !== 'ok').map(resultLines)
  const lines = listed.filter(isThere)
  return [
    ...base,
    ...lines.flat(),
    ...(lines.length < listed.length ? [notOk(listed.length - lines.length)] : []),
    ...(listed.length < all.length ? [healthy(all.length - listed.length)] : []),
    ...correlation,
  ]
}

function resultLines(reading: Reading): readonly string[] {
  const name = [reading.monitor, reading.check].filter(Boolean).join(' / ')
  const first = `${levelWords[reading.level]} ${name}: ${reading.message}`
  return [first, ...detailsWithFault(reading).flatMap(indented)].map(plain)
}

const indented = (text: string): readonly string[] => text.split('\n').map((line) => `  ${line}`)

/** Units of performance data: a check's unit → divisor and UOM. Other units have no UOM. */
const uoms: Readonly<Record<string, { readonly by: number; readonly uom: string }>> = {
  milliseconds: { by: 1_000, uom: 's' },
  bytes: { by: 1, uom: 'B' },
  percent: { by: 1, uom: '%' },
}

/** The checks whose figure is any number that somebody's own statement or document has. */
const ownFigures = new Set(['queries', 'measure'])
/** Units of which nothing can be negative. */
const positiveUnits = new Set(['bytes', 'count'])

/**
 * Whether the figure of an upper bound may be negative, by its declaration: a range `10` means 0 to 10, and then a
 * healthy -5 would be CRITICAL.
 */
function mayBeNegative({ slug, item, measurement }: MeasuredReading, all: readonly MeasuredReading[]): boolean {
  const { unit, warn = 0, limit = 0 } = measurement
  if (warn < 0 || limit < 0) return true
  if (!ownFigures.has(slug) || positiveUnits.has(unit)) return false
  const hasFloor = all.some(
    (other) =>
      other.slug === slug && other.item === item && other.measurement.bound === 'atLeast' && floorOf(other) >= 0,
  )
  return !hasFloor
}
const floorOf = ({ measurement: { limit, warn } }: MeasuredReading): number => limit ?? warn ?? Number.NEGATIVE_INFINITY

/** A measurement as `value[UOM];warn;crit`. The ranges depend on whether the limits are upper or lower bounds. */
function figureData(reading: MeasuredReading, all: readonly MeasuredReading[]): string {
  const { measurement } = reading
  const { by, uom } = (Object.hasOwn(uoms, measurement.unit) && uoms[measurement.unit]) || { by: 1, uom: '' }
  const { value, warn, limit, bound } = divided(measurement, by)
  const prefix = bound === 'atMost' && mayBeNegative(reading, all) ? '~:' : ''
  const range = (edge: number | undefined): string =>
    edge === undefined || bound === undefined ? '' : `${prefix}${plainNumber(edge)}${bound === 'atLeast' ? ':' : ''}`
  const parts = [`${plainNumber(value)}${uom}`, range(warn), range(limit)]
  return parts.slice(0, parts.findLastIndex((part) => part !== '') + 1).join(';')
}

/**
 * `'label'=value[UOM];[warn];[crit];[min];[max]` each, labels unique. The order does not depend on the results, because
 * some readers know a value by its place.
 */
function performanceData(readings: readonly EntryReading[]): readonly Datum[] {
  const taken = new Set<string>()
  const types = readings.map((reading) => reading.type)
  const of = (reading: EntryReading): string => {
    if (reading.server !== '') return `${reading.server} ${reading.type} `
    if (readings.length === 1) return ''
    const twice = types.indexOf(reading.type) !== types.lastIndexOf(reading.type)
    return twice ? `${reading.type} ${reading.target} ` : `${reading.type} `
  }
  const answered = readings.filter((reading) => reading.error === undefined)
  const counts = answered
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
      ]
    })
    .filter((item) => item !== undefined)
    .map((text): Datum => ({ level: 'fail', text }))
  const figures = answered.flatMap((reading) => {
    const all = measuredResults(reading)
    return all.map((result) => ({
      level: result.level,
      text: `${label(of(reading) + figureName(result), taken)}=${figureData(result, all)}`,
    }))
  })
  return [...counts, ...figures]
}

function label(text: string, taken: Set<string>): string {
  // A server may send an empty name, but a label must not be empty.
  const safe = plain(text).replaceAll("'", '’').replaceAll('=', '-') || 'figure'
  let name = safe
  for (let n = 2; taken.has(name); n += 1) name = `${safe} ${n}`
  taken.add(name)
  return /\s/.test(name) ? `'${name}'` : name
}

/** At most three decimals and no exponent. */
const decimal = (value: number): string => String(Number(value.toFixed(3)))

import {
  faultPrefix,
  type MonitoringResult,
  type MonitoringStatus,
  type MonitorSummary,
  type ServerState,
  warningPrefix,
} from '../protocol/index.ts'
import { sanitizeLine, sanitizeText } from '../sanitize.ts'
import type { Entry, ReportedError } from './entry.ts'

/** At most `length` characters, the last three being dots when something was cut. Never splits a pair. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text
  const kept = text.slice(0, Math.max(0, length - 3))
  return `${kept.replace(/[\ud800-\udbff]$/, '').trimEnd()}...`
}

/** `1 monitor`, `2 monitors`. */
export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`

export type MachineState = {
  readonly name: string
  readonly totalMb?: number
  readonly freeMb?: number
  /** Percent. */
  readonly cpu?: number
}

/** Reads a ServerState, leaving out what is no figure. */
export function readState(state: ServerState | undefined): MachineState | undefined {
  if (!state) return undefined
  const totalMb = figure(state.TotalRamInMb)
  const freeMb = figure(state.AvailableRamInMb)
  const cpu = figure(state.UsedCpuPercent)
  return {
    name: sanitizeLine(state.ServerName ?? ''),
    ...(totalMb === undefined ? {} : { totalMb }),
    ...(freeMb === undefined ? {} : { freeMb }),
    ...(cpu === undefined ? {} : { cpu }),
  }
}

/** A figure that a server of this world can have; NaN, below nothing and absurdly large ones are none. */
export const figure = (value: number | undefined): number | undefined =>
  value !== undefined && value >= 0 && value <= 1e12 ? value : undefined
/** Dates of four-digit years, so that ISO 8601 has one shape. */
export const valid = (date: Date | undefined): Date | undefined =>
  date !== undefined && date.getTime() >= 0 && date.getTime() < 253_402_300_800_000 ? date : undefined

/** The interface's two states and the warning that it has no word for. */
export type Level = 'ok' | 'warn' | 'fail'

/** One result, as a reader needs it: safe text, its level told, its fault class apart. */
export type Reading = {
  readonly monitor: string
  /** Empty when a monitor failed without a result that says why. */
  readonly check: string
  readonly level: Level
  /** One line, without the warning prefix. */
  readonly message: string
  /** Further text; an item may hold several lines. */
  readonly details: readonly string[]
  readonly fault: string | undefined
}

export type MonitorReading = { readonly name: string; readonly level: Level; readonly results: readonly Reading[] }

/** One entry, read: what every format and the terminal are made from. */
export type EntryReading = {
  readonly target: string
  readonly type: string
  readonly mode: string
  readonly exitCode: number
  /** `unknown`: there is no answer, `error` says why. */
  readonly level: Level | 'unknown'
  /** One sentence without causes, e.g. `Sql is unhealthy: 1 of 2 monitors failed`. */
  readonly headline: string
  /** Why it is not ok, each on one line: root causes only, never what was not run because of them. */
  readonly causes: readonly string[]
  readonly monitors: readonly MonitorReading[]
  readonly failed: number
  readonly warnings: number
  /** Milliseconds. */
  readonly duration: number | undefined
  readonly startedAt: Date | undefined
  readonly endedAt: Date | undefined
  readonly correlationId: string
  readonly state: MachineState | undefined
  readonly error: ReportedError | undefined
}

const order: Record<Level, number> = { ok: 0, warn: 1, fail: 2 }
/** The worst of some levels; ok when there are none. */
export const worst = (levels: readonly Level[]): Level =>
  levels.reduce<Level>((most, level) => (order[level] > order[most] ? level : most), 'ok')

export const results = (entry: EntryReading): readonly Reading[] => entry.monitors.flatMap((monitor) => monitor.results)

/** Not run because something else failed: a consequence, not a cause. */
export const isConsequence = (reading: Reading): boolean => reading.level === 'fail' && reading.fault === 'dependency'

/** A result in one line, e.g. `postgres orders round trip: 14 ms (limit 3 s)`. */
export function spoken(reading: Reading): string {
  // The monitor that says what is not configured speaks for itself.
  if (reading.check === 'configured') return reading.message
  return `${[reading.monitor, reading.check].filter(Boolean).join(' ')}: ${reading.message}`
}

/** Reads one entry. Takes whatever a foreign server sent: missing parts, empty lists, odd text. */
export function read(entry: Entry): EntryReading {
  const base = {
    target: sanitizeLine(entry.Target),
    type: sanitizeLine(entry.ServerType) || 'unknown',
    mode: sanitizeLine(entry.ExecutionMode),
    exitCode: entry.ExitCode,
  }
  const response = entry.Response
  if (!response) return { ...base, ...unanswered(base.type, entry.Error) }
  const monitors = (response.MonitorSummaries ?? []).map(readMonitor)
  const readings = monitors.flatMap((monitor) => monitor.results)
  const warned = readings.filter((reading) => reading.level === 'warn')
  const failed = monitors.filter((monitor) => monitor.level === 'fail').length
  const level: Level = response.Status !== 'Success' ? 'fail' : warned.length > 0 ? 'warn' : 'ok'
  const headline = sentence(base.type, level, failed, monitors.length, warned.length)
  const said = sanitizeLine(response.StatusMessage ?? '')
  const metrics = response.ExecutionMetrics
  return {
    ...base,
    level,
    headline,
    causes: causes(base.type, level, readings, said),
    monitors,
    failed: monitors.length === 0 && level === 'fail' ? Math.max(1, figure(response.FailedMonitorCount) ?? 1) : failed,
    warnings: warned.length,
    duration: figure(metrics?.Duration),
    startedAt: valid(metrics?.StartDateTime),
    endedAt: valid(metrics?.EndDateTime),
    correlationId: sanitizeLine(response.CorrelationId ?? ''),
    state: readState(response.ServerState),
    error: undefined,
  }
}

function unanswered(type: string, error: ReportedError | undefined): Omit<EntryReading, keyof BaseReading> {
  const told: ReportedError = error
    ? {
        ...error,
        code: sanitizeLine(error.code),
        message: sanitizeLine(error.message),
        hints: error.hints.map(sanitizeText),
      }
    : { code: 'UnreadableAnswer', exitCode: 8, message: 'no answer and no error', hints: [] }
  return {
    level: 'unknown',
    headline: `${type} could not be checked`,
    causes: [told.message],
    monitors: [],
    failed: 0,
    warnings: 0,
    duration: undefined,
    startedAt: undefined,
    endedAt: undefined,
    correlationId: '',
    state: undefined,
    error: told,
  }
}
type BaseReading = Pick<EntryReading, 'target' | 'type' | 'mode' | 'exitCode'>

function sentence(type: string, level: Level, failed: number, total: number, warnings: number): string {
  if (level === 'fail') {
    return `${type} is unhealthy${total === 0 ? '' : `: ${failed} of ${count(total, 'monitor')} failed`}`
  }
  if (level === 'warn') return `${type} is healthy, ${count(warnings, 'warning')}`
  if (total === 0) return `${type} is healthy`
  return `${type} is healthy: ${failed === 0 ? '' : `${total - failed} of `}${count(total, 'monitor')} passed`
}

function causes(type: string, level: Level, readings: readonly Reading[], said: string): readonly string[] {
  if (level === 'ok') return []
  const told = readings.filter((reading) => reading.level === level && !isConsequence(reading)).map(spoken)
  // Our own StatusMessage repeats headline and causes; a foreign one may say what nothing else does.
  const ours = said.startsWith(`${type} is healthy`) || said.startsWith(`${type} is unhealthy`)
  return said === '' || (ours && told.length > 0) ? told : [said, ...told]
}

function readMonitor(summary: MonitorSummary): MonitorReading {
  const name = sanitizeLine(summary.MonitorName ?? '')
  const read = (summary.Results ?? []).map((result) => readResult(name, result))
  const failing = read.filter((reading) => reading.level === 'fail')
  const further = unsaid(summary.ErrorMessages ?? [], failing)
  const results = withFurther(name, summary, read, failing, further)
  return { name, level: summary.Status === 'Failure' ? 'fail' : worst(results.map((r) => r.level)), results }
}

/** A monitor's ErrorMessages without those that only repeat its results. */
function unsaid(messages: readonly string[], failing: readonly Reading[]): readonly string[] {
  if (messages.length === 0) return []
  const said = new Set(failing.map((reading) => `${reading.check}: ${reading.message}`))
  return messages.map(sanitizeText).filter((text) => text !== '' && !said.has(sanitizeLine(text)))
}

/** What a monitor says beside its results is kept with the result that it most likely explains. */
function withFurther(
  monitor: string,
  summary: MonitorSummary,
  read: readonly Reading[],
  failing: readonly Reading[],
  further: readonly string[],
): readonly Reading[] {
  const failed = summary.Status !== 'Success'
  if (read.length === 0 || (failed && failing.length === 0)) {
    const message = sanitizeLine(further[0] ?? '') || (failed ? 'failed without saying why' : 'passed')
    const told: Reading = {
      monitor,
      check: '',
      level: failed ? 'fail' : 'ok',
      message,
      details: further.slice(1),
      fault: undefined,
    }
    return [...read, told]
  }
  const host = failing.at(-1) ?? read.at(-1)
  if (further.length === 0 || !host) return read
  return read.map((reading) => (reading === host ? { ...reading, details: [...reading.details, ...further] } : reading))
}

function readResult(monitor: string, result: MonitoringResult): Reading {
  const failed = result.Status !== 'Success'
  const said = sanitizeLine(result.StatusMessage ?? '')
  const warned = !failed && said.startsWith(warningPrefix)
  const details = (result.ErrorMessages ?? []).map(sanitizeText).filter((text) => text !== '')
  const last = details.at(-1)
  const fault = failed && last?.startsWith(faultPrefix) ? last.slice(faultPrefix.length) : undefined
  return {
    monitor,
    check: sanitizeLine(result.MonitoringName ?? ''),
    level: failed ? 'fail' : warned ? 'warn' : 'ok',
    message: (warned ? said.slice(warningPrefix.length) : said) || (failed ? 'failed without saying why' : 'ok'),
    details: fault === undefined ? details : details.slice(0, -1),
    fault: fault === undefined ? undefined : sanitizeLine(fault),
  }
}

/** One MonitoringResult with what it belongs to: a line of csv, tsv, ndjson and of a pipe. */
export type ResultRecord = {
  readonly Target: string
  readonly ServerType: string
  readonly ExecutionMode: string
  readonly MonitorName: string
  readonly MonitoringName: string
  readonly Status: MonitoringStatus
  readonly StatusMessage: string
  readonly ErrorMessages: readonly string[]
}

export const columns = [
  'Target',
  'ServerType',
  'ExecutionMode',
  'MonitorName',
  'MonitoringName',
  'Status',
  'StatusMessage',
  'ErrorMessages',
] as const satisfies readonly (keyof ResultRecord)[]

/**
 * Every result of every entry, in order. An entry without results is one record without a
 * MonitorName, so that none goes missing: what could not be asked is a Failure, and its last
 * ErrorMessages entry names the error, e.g. `error: Unreachable`.
 */
export function records(entries: readonly Entry[]): readonly ResultRecord[] {
  return entries.flatMap((entry) => {
    const reading = read(entry)
    const place = { Target: reading.target, ServerType: reading.type, ExecutionMode: reading.mode }
    const alone = { ...place, MonitorName: '', MonitoringName: '' }
    if (reading.error) {
      const { code, message, hints } = reading.error
      return [
        { ...alone, Status: 'Failure' as const, StatusMessage: message, ErrorMessages: [...hints, `error: ${code}`] },
      ]
    }
    const found = reading.monitors.flatMap((monitor) =>
      monitor.results.map((result) => ({
        ...place,
        MonitorName: monitor.name,
        MonitoringName: result.check,
        Status: result.level === 'fail' ? ('Failure' as const) : ('Success' as const),
        StatusMessage: `${result.level === 'warn' ? warningPrefix : ''}${result.message}`,
        ErrorMessages: result.fault === undefined ? result.details : [...result.details, faultPrefix + result.fault],
      })),
    )
    if (found.length > 0) return found
    const message = [reading.headline, ...reading.causes].join('; ')
    const status = reading.level === 'fail' ? ('Failure' as const) : ('Success' as const)
    return [{ ...alone, Status: status, StatusMessage: message, ErrorMessages: [] }]
  })
}

/** One record on one line: tabs between the cells, `\t`, `\n` and `\\` for those characters inside one. */
export const tabbed = (record: ResultRecord): string =>
  columns.map((column) => escapeTabs(cell(record[column]))).join('\t')

/** A cell's text: the ErrorMessages one a line. */
export const cell = (value: string | readonly string[]): string =>
  typeof value === 'string' ? value : value.join('\n')

const escapeTabs = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n')

/**
 * What a pipe gets: one record a line, its cells between tabs in the order of the tsv report,
 * without a header, never truncated, never coloured.
 */
export const renderPlain = (entries: readonly Entry[]): string =>
  records(entries)
    .map((record) => `${tabbed(record)}\n`)
    .join('')

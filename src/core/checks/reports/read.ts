import { count } from '../../base/format.ts'
import { oncePerObject } from '../../base/lazy.ts'
import { sanitizeLine, sanitizeText } from '../../base/sanitize.ts'
import {
  faultPrefix,
  isLoadOf,
  isSelectedHeadline,
  type MonitoringStatus,
  markText,
  type RunDocument,
  type RunMeasurement,
  type RunMonitor,
  type RunResult,
  type RunStatus,
  rehearsalMember,
  warningPrefix,
  withoutMark,
} from '../../protocol/index.ts'
import { fromForeignDocument } from './foreign.ts'
import {
  type Answered,
  bySeverity,
  counting,
  describeResult,
  type Entry,
  type EntryReading,
  figure,
  isBad,
  isConsequence,
  type Level,
  type Measured,
  type MonitorReading,
  type Reading,
  type ReportedError,
  readState,
  silencedSentence,
  unhealthySentence,
  valid,
  withoutNoise,
  worst,
} from './reading.ts'
import { messageOf, slugOf } from './run-document.ts'

/** Reads one entry: its run, or the document of a server that sends no runs. */
export function read(entry: Entry): EntryReading {
  const base = {
    target: sanitizeLine(entry.Target),
    type: sanitizeLine(entry.ServerType) || 'unknown',
    mode: sanitizeLine(entry.ExecutionMode),
    exitCode: entry.ExitCode,
    server: entry.IsOfMany ? sanitizeLine(entry.Target) : '',
  }
  if (!entry.Run && !entry.Response) return { ...base, ...unanswered(base.type, entry.Error) }
  const answered = entry.Run ? readRun(entry.Run) : fromForeignDocument(entry.Response ?? {})
  const { level, monitors, message: written, unnamed, ...more } = answered
  const message = more.drill ? withoutMark(written) : written
  const all = counting(monitors.flatMap((monitor) => monitor.results))
  const warnings = all.filter((result) => result.level === 'warn').length
  const failed = monitors.filter((monitor) => monitor.level === 'fail').length
  const unchecked = monitors.filter((monitor) => monitor.level === 'not checked').length
  const headline =
    more.ownPart !== undefined && level === 'warn'
      ? ownSentence(base.type, more.ownPart, warnings)
      : [
          sentence(base.type, level, { failed, unchecked, total: monitors.length, warnings }),
          silencedSentence(more.silencedResults) ?? [],
        ]
          .flat()
          .join('; ')
  return {
    ...base,
    ...more,
    level,
    headline: more.drill ? markText(headline) : headline,
    causes: causes(base.type, level, all, message),
    monitors,
    failed: Math.max(failed, unnamed),
    unchecked,
    warnings,
    error: undefined,
  }
}

const levels = { ok: 'ok', warning: 'warn', failed: 'fail' } as const satisfies Record<RunStatus, Level>

/**
 * The level of a whole: a failure that its parts do not explain is its own. An earlier version gave a whole the warning
 * of the load of its machine, which counts for nothing (M15): the other parts decide then.
 */
function levelOf(
  status: RunStatus,
  parts: readonly { readonly level: Level }[],
  results: () => readonly Reading[],
): Level {
  const own = worst(parts.map(({ level }) => level))
  if (status === 'failed' && own === 'not checked') return own
  const isOfLoad = status === 'warning' && results().some(({ level, isLoad }) => level === 'warn' && isLoad)
  return isOfLoad && parts.length > 0 ? own : levels[status]
}

/** Reads a run from its fields, without parsing any text. `monitors`: its own, where they are read already. */
export function readRun(
  run: RunDocument,
  monitors: readonly MonitorReading[] = run.monitors.map(readMonitor),
): Answered {
  return {
    level: levelOf(run.status, monitors, () => monitors.flatMap(({ results }) => results)),
    message: sanitizeLine(run.message),
    monitors,
    unnamed: 0,
    duration: figure(run.durationMs),
    startedAt: valid(run.startedAt),
    endedAt: valid(run.endedAt),
    correlationId: sanitizeLine(run.correlationId ?? ''),
    node: sanitizeLine(run.node ?? ''),
    state: readState(run.serverState),
    silencedResults: run.silencedResults === undefined ? undefined : figure(run.silencedResults),
    ownPart: run.ownPart === undefined ? undefined : sanitizeLine(run.ownPart),
    ...(run.drill && rehearsalMember),
  }
}

/** Once for each monitor of a document: pages and scrapes read the same documents again and again. */
export const readMonitor = oncePerObject((monitor: RunMonitor): MonitorReading => {
  const name = sanitizeLine(monitor.name ?? monitor.kind)
  const { notRun = [] } = monitor
  const itemOf = itemsOf([...monitor.results, ...notRun])
  const results = monitor.results.map((result): Reading => {
    const reading = readResult(name, result, itemOf(result))
    return isLoadOf(monitor, result.check) ? { ...reading, isLoad: true } : reading
  })
  return {
    name,
    kind: sanitizeLine(monitor.kind),
    scope: monitor.scope,
    host: monitor.host === true,
    depth: monitor.depth,
    level: levelOf(monitor.status, counting(results), () => results),
    duration: figure(monitor.durationMs),
    results,
    notRun: notRun.map((one) => ({
      monitor: name,
      check: sanitizeLine(one.check),
      item: itemOf(one),
      message: sanitizeLine(one.message ?? 'no result'),
    })),
  }
})

type Itemized = Pick<RunResult, 'check' | 'subject' | 'address'>

/** The item of each result: its subject, plus its address when the check has results of several addresses for it. */
function itemsOf(results: readonly Itemized[]): (result: Itemized) => string | undefined {
  const keyOf = ({ check, subject }: Itemized): string => JSON.stringify([check, subject])
  // Mostly each check has one result, whose address distinguishes it from none.
  const isSingle = new Set(results.map(({ check }) => check)).size === results.length
  const alike = isSingle ? undefined : Map.groupBy(results, keyOf)
  const hasSeveral = (result: Itemized): boolean =>
    alike !== undefined && new Set(alike.get(keyOf(result))?.map(({ address }) => address)).size > 1
  return (result) => {
    const address = hasSeveral(result) ? result.address : undefined
    if (!result.subject && !address) return undefined
    const item = sanitizeLine([result.subject, address].filter(Boolean).join(' '))
    return item === '' ? undefined : item
  }
}

/** The largest figure that stays finite in every unit. */
const maxFigure = 1e100

function measuredOf({ value, unit, warn, limit, bound, at }: RunMeasurement): Measured | undefined {
  const finite = (number: number | undefined): number | undefined =>
    number !== undefined && Math.abs(number) <= maxFigure ? number : undefined
  if (finite(value) === undefined) return undefined
  return withoutNoise({
    value,
    unit: sanitizeLine(unit),
    warn: finite(warn),
    limit: finite(limit),
    bound,
    at: valid(at),
  })
}

const noDetails: readonly string[] = []

function readResult(monitor: string, result: RunResult, item: string | undefined): Reading {
  const { status, fault, measurement, notChecked } = result
  return {
    monitor,
    check: sanitizeLine(result.check),
    slug: slugOf(result.slug ?? result.check),
    depth: result.depth,
    level: status === 'failed' && notChecked !== undefined ? 'not checked' : levels[status],
    message: sanitizeLine(messageOf(result)) || (status === 'failed' ? 'failed without an explanation' : 'ok'),
    details: result.details?.map(sanitizeText).filter((text) => text !== '') ?? noDetails,
    fault: status === 'failed' ? sanitizeLine(fault ?? 'internal') : undefined,
    cause: result.cause === undefined ? undefined : sanitizeLine(result.cause),
    item,
    measurement: measurement && measuredOf(measurement),
    silencedUntil: valid(result.silence?.until),
    notChecked: notChecked === undefined ? undefined : sanitizeLine(notChecked),
  }
}

function unanswered(type: string, error: ReportedError | undefined): Omit<EntryReading, keyof BaseReading> {
  const reported: ReportedError = error
    ? {
        ...error,
        code: sanitizeLine(error.code),
        message: sanitizeLine(error.message),
        hints: error.hints.map(sanitizeText),
      }
    : { code: 'UnreadableAnswer', exitCode: 8, message: 'no answer and no error', hints: [] }
  // Without any answer, nobody said which types there are.
  const headline = `${type === 'all' ? 'the server types' : type} could not be checked`
  return {
    level: 'unknown',
    headline: error?.drill ? markText(headline) : headline,
    ...(error?.drill && rehearsalMember),
    causes: [reported.message],
    monitors: [],
    failed: 0,
    unchecked: 0,
    warnings: 0,
    duration: undefined,
    startedAt: undefined,
    endedAt: undefined,
    correlationId: '',
    node: '',
    state: undefined,
    error: reported,
  }
}
type BaseReading = Pick<EntryReading, 'target' | 'type' | 'mode' | 'exitCode' | 'server'>

/** One of the warnings says that nothing is configured, as this sentence does. */
function ownSentence(type: string, ownPart: string, warnings: number): string {
  const others = warnings > 1 ? `; ${count(warnings - 1, 'other warning')}` : ''
  return `${ownPart} is healthy; no ${type} server is configured${others}`
}

type Counts = Pick<EntryReading, 'failed' | 'unchecked' | 'warnings'> & { readonly total: number }

function sentence(type: string, level: Level, { failed, unchecked, total, warnings }: Counts): string {
  if (isBad(level)) return unhealthySentence(type, failed, unchecked, total)
  if (level === 'warn') return `${type} is healthy, ${count(warnings, 'warning')}`
  if (total === 0) return `${type} is healthy`
  return `${type} is healthy: ${failed === 0 ? '' : `${total - failed} of `}${count(total, 'monitor')} passed`
}

function causes(type: string, level: Level, readings: readonly Reading[], message: string): readonly string[] {
  if (level === 'ok') return []
  const ofLevel = readings.filter((reading) => reading.level === level || (isBad(level) && isBad(reading.level)))
  const roots = ofLevel.filter((reading) => !isConsequence(reading))
  // Without a root cause among them, it is a monitor of another type.
  const decisive =
    roots.length > 0
      ? roots.toSorted(bySeverity).map(describeResult)
      : [...new Set(ofLevel.map((reading) => reading.message))]
  // Our own StatusMessage repeats the headline and causes. A foreign one may contain unique information.
  const ours =
    ['healthy', 'unhealthy', 'not fully checked'].some((state) => message.startsWith(`${type} is ${state}`)) ||
    isSelectedHeadline(message)
  return message === '' || (ours && decisive.length > 0) ? decisive : [message, ...decisive]
}

/** One MonitoringResult with its context: a line of csv, tsv, ndjson and of piped output. */
export type ResultRecord = {
  readonly Target: string
  readonly ServerType: string
  readonly ExecutionMode: string
  readonly MonitorName: string
  readonly MonitoringName: string
  readonly Status: MonitoringStatus
  readonly StatusMessage: string
  readonly ErrorMessages: readonly string[]
  /** Includes `warn` and `not checked`, which the interface does not have. `unknown`: there is no answer. */
  readonly Level: Level | 'unknown'
  /** The measured value, in `Unit`. */
  readonly Value?: number | undefined
  /** `milliseconds`, `bytes`, `percent`, `ratio`, `count` or `days`. */
  readonly Unit?: string | undefined
  /** Beyond this value the result is a warning. */
  readonly Warn?: number | undefined
  /** Beyond this value the result is a failure. */
  readonly Limit?: number | undefined
  readonly Bound?: Measured['bound']
  /** Which of several items: a queue, a mount point, an address. */
  readonly Item?: string | undefined
  /** How long the monitor took. */
  readonly DurationMs?: number | undefined
  /** The machine that the monitor ran on. */
  readonly Host?: string | undefined
  /** The fault class. */
  readonly Fault?: string | undefined
  /** Why the check came to no verdict: `configuration`, `missing`, `starved`, `budget`, `refused`, `permission` or `rehearsal`. */
  readonly NotChecked?: string | undefined
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
  'Level',
  'Value',
  'Unit',
  'Warn',
  'Limit',
  'Bound',
  'Item',
  'DurationMs',
  'Host',
  'Fault',
  'NotChecked',
] as const satisfies readonly (keyof ResultRecord)[]

/**
 * Every result of every entry, in order. An entry without results has one record without a MonitorName, and so has one
 * whose failure no result explains, before its results. A target without an answer is a Failure whose last
 * ErrorMessages entry names the error, e.g. `error: Unreachable`.
 */
export function records(entries: readonly Entry[]): readonly ResultRecord[] {
  return entries.flatMap((entry): readonly ResultRecord[] => {
    const reading = read(entry)
    const place = { Target: reading.target, ServerType: reading.type, ExecutionMode: reading.mode }
    const alone = { ...place, MonitorName: '', MonitoringName: '' }
    if (reading.error) {
      const { code, message, hints } = reading.error
      return [
        {
          ...alone,
          Status: 'Failure',
          StatusMessage: message,
          ErrorMessages: [...hints, `error: ${code}`],
          Level: 'unknown',
        },
      ]
    }
    const rows = reading.monitors.flatMap((monitor) =>
      monitor.results.map((result) => ({
        ...place,
        MonitorName: monitor.name,
        MonitoringName: result.check,
        Status: statusOf(result.level),
        StatusMessage: `${result.level === 'warn' ? warningPrefix : ''}${result.message}`,
        ErrorMessages: result.fault === undefined ? result.details : [...result.details, faultPrefix + result.fault],
        Level: result.level,
        Value: result.measurement?.value,
        Unit: result.measurement?.unit,
        Warn: result.measurement?.warn,
        Limit: result.measurement?.limit,
        Bound: result.measurement?.bound,
        Item: result.item,
        DurationMs: monitor.duration === undefined ? undefined : Number(monitor.duration.toFixed(3)) + 0,
        Host: reading.node === '' ? undefined : reading.node,
        Fault: result.fault,
        NotChecked: result.notChecked,
      })),
    )
    const isExplained = !isBad(reading.level) || rows.some(({ Status }) => Status === 'Failure')
    if (rows.length > 0 && isExplained) return rows
    const message = [reading.headline, ...reading.causes].join('; ')
    return [
      { ...alone, Status: statusOf(reading.level), StatusMessage: message, ErrorMessages: [], Level: reading.level },
      ...rows,
    ]
  })
}

const statusOf = (level: EntryReading['level']): MonitoringStatus => (isBad(level) ? 'Failure' : 'Success')

/** One record on one line: cells separated by tabs, with `\t`, `\n` and `\\` as escapes inside cells. */
export const tabbed = (record: ResultRecord): string =>
  columns.map((column) => escapeTabs(String(cell(record[column])))).join('\t')

/**
 * The content of a cell: one ErrorMessage per line, figures as numbers, empty when absent.
 *
 * @example
 * ```ts
 * cell(['Admin', 'Ops']) // 'Admin\nOps'
 * ```
 */
export const cell = (value: string | number | readonly string[] | undefined): string | number =>
  typeof value === 'object' ? value.join('\n') : (value ?? '')

const escapeTabs = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('\t', '\\t').replaceAll('\n', '\\n')

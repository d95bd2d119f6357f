import { faultPrefix, type MonitoringStatus, warningPrefix } from '../protocol/index.ts'
import type { Entry } from './entry.ts'
import { read } from './reading.ts'

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

import { showAvailability, showDuration, showFigure } from '../../core/format.ts'
import type { HistoryPeriod, HistoryStatus, MonitorHistory } from '../../core/protocol/index.ts'
import {
  dateTime,
  integer,
  listOf,
  number,
  objectOf,
  oneOf,
  optional,
  orNull,
  string,
  strings,
} from '../render/document.ts'
import { type Headline, list } from '../render/list.ts'
import { type CellText, moment, styles } from '../render/table.ts'

/** A time of a monitor: the whole time that was asked for, or one of its periods. */
export type HistoryRow = {
  readonly type: string
  readonly monitor: string
  readonly from: Date
  readonly to: Date
  readonly status: HistoryStatus
  /** Undefined: nothing was observed. */
  readonly availabilityPercent: number | undefined
  readonly downMs: number
  readonly unobservedMs: number
  readonly failedChecks: readonly string[]
  readonly worst: readonly {
    readonly from: Date
    readonly to: Date
    readonly downMs: number
    readonly checks: readonly string[]
  }[]
  readonly figures: NonNullable<HistoryPeriod['Figures']>
}

const epoch = new Date(0)

/** The rows of a monitor: one for the whole time, or one for each period if the answer has periods. */
export function historyRows({
  ServerType = 'App',
  MonitorName = '',
  Worst = [],
  Periods,
  ...whole
}: MonitorHistory): readonly HistoryRow[] {
  const row = (time: HistoryPeriod, worst: HistoryRow['worst']): HistoryRow => ({
    type: ServerType,
    monitor: MonitorName,
    from: time.From ?? epoch,
    to: time.To ?? epoch,
    status: time.Status ?? 'Unobserved',
    availabilityPercent: time.AvailabilityPercent,
    downMs: time.Down ?? 0,
    unobservedMs: time.Unobserved ?? 0,
    failedChecks: time.FailedChecks ?? [],
    worst,
    figures: time.Figures ?? [],
  })
  if (Periods) return Periods.map((period) => row(period, []))
  const worst = Worst.map(({ From = epoch, To = epoch, Down = 0, FailedChecks = [] }) => ({
    from: From,
    to: To,
    downMs: Down,
    checks: FailedChecks,
  }))
  return [row({ ...whole, FailedChecks: [...new Set(worst.flatMap(({ checks }) => checks))] }, worst)]
}

const marks: Readonly<Record<HistoryStatus, CellText>> = {
  Ok: 'ok',
  Warning: { text: 'warning', style: styles.warn },
  Failed: { text: 'failed', style: styles.fail },
  Unobserved: { text: 'unobserved', style: 'caution' },
}

/** `24 Nov 10:05, 1 h: round trip`: when it was down for longest. */
const worstText = ({ worst: [first] }: HistoryRow): string =>
  first === undefined ? '' : `${moment(first.from)}, ${showDuration(first.downMs)}: ${first.checks.join(', ')}`

/** `round trip 1.2 ms (0.8 ms to 14 ms)` for each figure. */
const figureTexts = ({ figures }: HistoryRow): string =>
  figures
    .map(({ MonitoringName, Unit, Minimum = 0, Average = 0, Maximum = 0 }) => {
      const text = (value: number): string => showFigure(value, Unit)
      const range = Minimum === Maximum ? '' : ` (${text(Minimum)} to ${text(Maximum)})`
      return `${MonitoringName} ${text(Average)}${range}`
    })
    .join('; ')

/** `4 monitors, 1 of them was down`; with periods, of one monitor. */
function headlineOf(rows: readonly HistoryRow[]): Headline {
  const monitors = new Set(rows.map(({ type, monitor }) => `${type} ${monitor}`))
  const down = new Set(rows.flatMap(({ type, monitor, downMs }) => (downMs > 0 ? `${type} ${monitor}` : [])))
  const counted = `${monitors.size} ${monitors.size === 1 ? 'monitor' : 'monitors'}`
  if (down.size === 0) return { mark: 'ok', sentence: `${counted}, never down` }
  const sentence = monitors.size === 1 ? `${counted}, which was down` : `${counted}, ${down.size} of them was down`
  return { mark: 'warn', sentence: down.size > 1 ? sentence.replace(' was ', ' were ') : sentence }
}

const figureShape = objectOf({
  check: string,
  unit: string,
  minimum: number,
  average: number,
  maximum: number,
  count: integer,
})

export const history = list<HistoryRow>()({
  around: ['target'],
  beneath: 'target',
  // The target is the first member.
  documentOnly: { target: string, notKept: optional(string), hiddenMonitors: optional(integer) },
  rows: 'history',
  headline: (rows) => headlineOf(rows),
  empty: { sentence: 'Nothing is recorded for this time', next: 'To record what monitors find:   svc serve' },
  columns: [
    { key: 'type', is: string, title: 'TYPE', once: true },
    { key: 'monitor', is: string, title: 'MONITOR', once: true, shrink: 3 },
    { key: 'from', is: dateTime, title: 'FROM', cell: ({ from }) => moment(from) },
    { key: 'to', is: dateTime },
    {
      key: 'status',
      is: oneOf('Ok', 'Warning', 'Failed', 'Unobserved'),
      title: 'WORST',
      cell: ({ status }) => marks[status],
    },
    {
      key: 'availabilityPercent',
      is: orNull(number),
      title: 'AVAILABLE',
      align: 'right',
      cell: ({ availabilityPercent }) => showAvailability(availabilityPercent),
    },
    {
      key: 'downSeconds',
      value: ({ downMs }) => downMs / 1_000,
      is: number,
      title: 'DOWN',
      align: 'right',
      cell: ({ downMs }) => (downMs === 0 ? '' : showDuration(downMs)),
    },
    {
      key: 'unobservedSeconds',
      value: ({ unobservedMs }) => unobservedMs / 1_000,
      is: number,
      title: 'UNOBSERVED',
      align: 'right',
      cell: ({ unobservedMs }) => (unobservedMs < 1_000 ? '' : showDuration(unobservedMs)),
    },
    {
      key: 'worstTime',
      value: worstText,
      title: 'DOWN FOR LONGEST',
      shrink: 1,
      least: 20,
      optional: true,
      field: false,
      json: false,
    },
    { key: 'failedChecks', is: strings, field: 'FailedChecks', text: ({ failedChecks }) => failedChecks.join(', ') },
    {
      key: 'figureTexts',
      value: figureTexts,
      title: 'FIGURES',
      shrink: 2,
      least: 20,
      optional: true,
      field: 'Figures',
      json: false,
    },
    {
      key: 'worst',
      value: ({ worst }) =>
        worst.map(({ from, to, downMs, checks }) => ({ from, to, downSeconds: downMs / 1_000, failedChecks: checks })),
      is: listOf(objectOf({ from: dateTime, to: dateTime, downSeconds: number, failedChecks: strings })),
      field: false,
    },
    {
      key: 'figures',
      value: ({ figures }) =>
        figures.map(({ MonitoringName, Unit, Minimum, Average, Maximum, Count }) => ({
          check: MonitoringName,
          unit: Unit,
          minimum: Minimum,
          average: Average,
          maximum: Maximum,
          count: Count,
        })),
      is: listOf(figureShape),
      field: false,
    },
  ],
})

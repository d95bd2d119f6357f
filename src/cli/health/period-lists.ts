import { count, showAvailability, showDuration, showFigure } from '../../core/base/format.ts'
import type { HistoryIncident, HistoryPeriod, HistoryStatus, MonitorHistory } from '../../core/protocol/index.ts'
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
import { everyType, type Headline, list } from '../render/list.ts'
import { type CellText, moment, styles } from '../render/table.ts'

/** A time of a monitor: the whole time that was asked for, or one of its periods. */
export type HistoryRow = {
  readonly type: string
  readonly monitor: string
  readonly from: Date
  /** Whether the headline has its beginning. */
  readonly beginsWithAll?: boolean
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
  /** Of a period: those that began in it. The latest first. */
  readonly incidents: readonly IncidentRow[]
}

const epoch = new Date(0)

/** The rows of a monitor: one for the whole time, or one for each period if the answer has periods. */
export function historyRows({
  ServerType = 'App',
  MonitorName = '',
  Worst = [],
  Periods = [],
  Incidents = [],
  ...whole
}: MonitorHistory): readonly HistoryRow[] {
  const all = Incidents.map((one) => incidentRow(one, { type: ServerType, monitor: MonitorName }))
  const row = (time: HistoryPeriod, worst: HistoryRow['worst'], incidents: HistoryRow['incidents']): HistoryRow => ({
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
    incidents,
  })
  if (Periods.length > 0) {
    // One that began before all periods belongs to the first, and one that began between two, when nothing ran, to the one before.
    const starts = Periods.map(({ From = epoch }) => From.getTime())
    const of = Map.groupBy(all, ({ from }) =>
      Math.max(
        0,
        starts.findLastIndex((start) => start <= from.getTime()),
      ),
    )
    return Periods.map((period, at) => row(period, [], of.get(at) ?? []))
  }
  const worst = Worst.map(({ From = epoch, To = epoch, Down = 0, FailedChecks = [] }) => ({
    from: From,
    to: To,
    downMs: Down,
    checks: FailedChecks,
  }))
  return [row({ ...whole, FailedChecks: [...new Set(worst.flatMap(({ checks }) => checks))] }, worst, all)]
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

/** The monitor that each type has of the machine. */
const isHost = ({ monitor }: { readonly monitor: string }): boolean => monitor === 'host'
/** A monitor among all: the machine is one, whatever the number of types. */
const identityOf = ({ type, monitor }: { readonly type: string; readonly monitor: string }): string =>
  isHost({ monitor }) ? monitor : `${type} ${monitor}`

const worstFirst: readonly HistoryStatus[] = ['Failed', 'Warning', 'Unobserved', 'Ok']

/** Rows that begin within this time of each other have been observed for the same time. */
const sameStartMs = 10 * 60_000

/**
 * The whole times of all monitors as people read them: the machine once, with its worst type, failures first, and the
 * beginning only where it is later than the first.
 */
export function rowsForPeople(rows: readonly HistoryRow[]): readonly HistoryRow[] {
  const sorted = rows.toSorted(
    (one, other) => worstFirst.indexOf(one.status) - worstFirst.indexOf(other.status) || other.downMs - one.downMs,
  )
  const first = Math.min(...rows.map(({ from }) => +from))
  const isFirst = (row: HistoryRow, at: number): boolean =>
    sorted.findIndex((one) => identityOf(one) === identityOf(row)) === at
  return sorted.filter(isFirst).map((row) => ({
    ...row,
    ...(isHost(row) ? { type: everyType, incidents: row.incidents.map((one) => ({ ...one, type: everyType })) } : {}),
    beginsWithAll: +row.from - first < sameStartMs,
  }))
}

/** `4 monitors, 1 of them was down`; with periods, of one monitor. */
function headlineOf(rows: readonly HistoryRow[]): Headline {
  const monitors = new Set(rows.map(identityOf))
  const down = new Set(rows.flatMap((row) => (row.downMs > 0 ? identityOf(row) : [])))
  const since = Math.min(...rows.flatMap(({ from, beginsWithAll }) => (beginsWithAll ? +from : [])))
  const counted = count(monitors.size, 'monitor') + (Number.isFinite(since) ? ` since ${moment(new Date(since))}` : '')
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

/** An incident of a time. */
export type IncidentRow = {
  readonly id: string
  readonly type: string
  readonly monitor: string
  readonly check: string
  readonly item: string | undefined
  readonly from: Date
  /** Undefined while it is open. */
  readonly to: Date | undefined
  readonly durationMs: number
  readonly status: HistoryStatus
  readonly ending: HistoryIncident['Ending']
  readonly fault: string | undefined
  readonly message: string
  readonly cause: string | undefined
  readonly victims: readonly string[]
  readonly victimCount: number
}

function incidentRow(
  incident: HistoryIncident,
  { type, monitor }: { readonly type: string; readonly monitor: string },
): IncidentRow {
  return {
    id: incident.Id ?? '',
    type,
    monitor,
    check: incident.MonitoringName ?? '',
    item: incident.Item,
    from: incident.From ?? epoch,
    to: incident.To,
    durationMs: incident.Duration ?? 0,
    status: incident.Status ?? 'Failed',
    ending: incident.Ending,
    fault: incident.Fault,
    message: incident.Message ?? '',
    cause: incident.Cause,
    victims: incident.Victims ?? [],
    victimCount: incident.VictimCount ?? 0,
  }
}

/** `open`, `removed` or `end unknown`; of a recovery, nothing. */
const endingText = ({ to, ending }: IncidentRow): CellText => {
  if (to === undefined) return { text: 'open', style: styles.fail }
  return ending === 'Recovered' ? '' : ending === 'Removed' ? 'removed' : 'end unknown'
}

/** `3 victims: App/tcp shop, …` */
const victimsText = ({ victims, victimCount, cause }: IncidentRow): string => {
  if (cause !== undefined) return `victim of ${cause}`
  if (victimCount === 0) return ''
  const counted = `${count(victimCount, 'victim')}`
  return victims.length === 0 ? counted : `${counted}: ${victims.join(', ')}`
}

/** `2026-11-24T10:00:00.000Z connect: 1 h, refused` for each incident. */
const incidentTexts = ({ incidents }: HistoryRow): string =>
  incidents
    .map(({ from, check, durationMs, to, fault }) =>
      [`${from.toISOString()} ${check}: ${showDuration(durationMs)}`, to ? [] : 'open', fault ?? []].flat().join(', '),
    )
    .join('; ')

/** The most incidents that a terminal lists. */
const mostOnTerminal = 50

/**
 * The incidents that a terminal lists below the availability, the latest first: without those of victims that are named
 * beside their cause.
 */
export function incidentsToShow(rows: readonly HistoryRow[]): {
  readonly visible: readonly IncidentRow[]
  readonly left: number
} {
  const all = rows.flatMap(({ incidents }) => incidents).toSorted((one, other) => +other.from - +one.from)
  const causes = new Set(
    all.filter(({ cause }) => cause === undefined).map(({ type, monitor }) => `${type}/${monitor}`),
  )
  const own = all.filter(({ cause }) => cause === undefined || !causes.has(cause))
  return { visible: own.slice(0, mostOnTerminal), left: Math.max(0, own.length - mostOnTerminal) }
}

/** The incidents beneath the availability: part of the answer of `svc history`. */
export const incidentList = list<IncidentRow>()({
  columns: [
    { key: 'id', is: string },
    { key: 'type', is: string, title: 'INCIDENT', once: true, json: false },
    { key: 'monitor', is: string, title: 'MONITOR', shrink: 3, json: false },
    { key: 'check', is: string, title: 'CHECK', shrink: 3 },
    { key: 'item', is: string, absent: 'json' },
    { key: 'from', is: dateTime, title: 'BEGAN', cell: ({ from }) => moment(from), shrink: 4, least: 10 },
    { key: 'to', is: dateTime, absent: 'json', title: 'ENDED', optional: true, cell: endingText },
    {
      key: 'durationSeconds',
      value: ({ durationMs }) => durationMs / 1_000,
      is: number,
      title: 'LASTED',
      align: 'right',
      cell: ({ durationMs }) => showDuration(durationMs),
    },
    {
      key: 'status',
      is: oneOf('Ok', 'Warning', 'Failed', 'Unobserved'),
      title: 'WORST',
      cell: ({ status }) => marks[status],
    },
    { key: 'ending', is: oneOf('Recovered', 'Removed', 'Unknown'), absent: 'json' },
    { key: 'fault', is: string, absent: 'json', title: 'FAULT', optional: true, spare: 1 },
    { key: 'cause', is: string, absent: 'json' },
    {
      key: 'victimsText',
      value: victimsText,
      title: 'VICTIMS',
      shrink: 1,
      least: 20,
      optional: true,
      spare: 2,
      json: false,
    },
    { key: 'message', is: string, title: 'MESSAGE', shrink: 2, least: 20, spare: 3 },
    { key: 'victims', is: strings },
    { key: 'victimCount', is: integer },
  ],
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
    {
      key: 'from',
      is: dateTime,
      title: 'FROM',
      optional: true,
      cell: ({ from, beginsWithAll }) => (beginsWithAll ? '' : moment(from)),
    },
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
      optional: true,
      spare: 2,
      cell: ({ unobservedMs }) => (unobservedMs < 1_000 ? '' : showDuration(unobservedMs)),
    },
    {
      key: 'worstTime',
      value: worstText,
      title: 'DOWN FOR LONGEST',
      spare: 1,
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
    {
      key: 'incidents',
      value: ({ incidents }) => incidents.map((one) => incidentList.json(one)),
      is: listOf(incidentList.rowShape()),
      text: incidentTexts,
    },
  ],
})

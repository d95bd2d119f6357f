import { Fault } from '../../base/errors.ts'
import {
  ExecutionMode,
  GetHistory,
  type GetHistoryResponse,
  type HistoryFigure,
  type HistoryPeriod,
  type HistoryStatus,
  type MonitorHistory,
  monitorsNamed,
  ServerType,
} from '../../protocol/index.ts'
import type { HistorySource, MonitorPeriods, Pack, Period, Rank } from '../../watch/periods/index.ts'
import type { IncidentRecord, IncidentsQuery } from '../../watch/states/index.ts'
import { incidentsByMonitor, mostRead } from '../watch/incident-answer.ts'

type History = typeof import('../../watch/periods/index.ts')

export type HistoryQuestion = {
  readonly library: History
  readonly source: HistorySource
  readonly request: GetHistory
  /** Whether the caller may read the details of a type. */
  readonly reads: (type: ServerType) => boolean
  /** Milliseconds since 1970. */
  readonly now: number
  /** Whether a monitor of this key exists. Absent: all do. */
  readonly keys: ((key: string) => boolean) | undefined
  readonly notKept: string | undefined
  /** Incidents that were open at some time, the latest first. */
  readonly incidents: (query: IncidentsQuery) => Promise<readonly IncidentRecord[]>
  /** The types that show what the machine itself has under this key. Undefined: all. */
  readonly typesOfHost: (key: string) => readonly string[] | undefined
}

const minute = 60_000
const day = 86_400_000
/** How many times of each monitor the answer names. */
const worstOfMonitor = 3

/** The answer of GetHistory. Throws Fault NotFound for a monitor that history does not know. */
export async function answerOf({
  library,
  source,
  request,
  reads,
  now,
  keys,
  notKept,
  incidents,
  typesOfHost,
}: HistoryQuestion): Promise<GetHistoryResponse> {
  const {
    ServerType: type,
    MonitorName: name,
    SinceMinutes = day / minute,
    ExecutionMode: depth = 'Advanced',
  } = request
  const rank = ExecutionMode.values.indexOf(depth) as Rank
  refuseOutside(SinceMinutes)
  const from = now - SinceMinutes * minute
  const step = library.stepFor(SinceMinutes * minute)
  const visible = (one: { readonly type: string }): boolean =>
    ServerType.values.includes(one.type as ServerType) && reads(one.type as ServerType)
  const [visibleKeys, hidden] = [true, false].map((isShown) => {
    const ofType = source.recorder.monitors.filter(
      (one) => visible(one) === isShown && (type === undefined || one.type === type),
    )
    return new Set((name === undefined ? ofType : withName(name, ofType)).map(({ key }) => key))
  })
  const includes = ({ key }: { readonly key: string }): boolean => visibleKeys?.has(key) === true
  const query = { from, to: now, step, figures: name !== undefined, includes }
  const isKnown = visibleKeys !== undefined && visibleKeys.size > 0
  if (name !== undefined && !isKnown) {
    throw new Fault('NotFound', `The history knows no monitor "${name}"`, {
      hints: ['svc history shows those that it knows.'],
    })
  }
  const records = isKnown ? await incidents({ from, to: now, most: mostRead }) : []
  const incidentsOf = incidentsByMonitor({ records, reads, typesOfHost, now })
  const monitors: MonitorHistory[] = []
  for await (const monitor of library.eachPeriods(source, query, now)) {
    const exists = keys?.(monitor.key) !== false
    const history = historyOf(library, monitor, { from, now, rank, exists, step, withPeriods: name !== undefined })
    const { From, To } = history
    const Incidents = incidentsOf(monitor)
    if (Incidents.length > 0 || (From !== undefined && To !== undefined && To > From))
      monitors.push({ ...history, Incidents })
  }
  return {
    From: new Date(library.startOf(from, now)),
    To: new Date(now),
    ExecutionMode: depth,
    NotKept: notKept,
    HiddenMonitors: hidden?.size || undefined,
    Monitors: monitors,
  }
}

/** The monitors that have this name, in any letter case. A list shows all of them. */
const withName = (
  written: string,
  all: readonly { readonly key: string; readonly type: string; readonly name: string }[],
) =>
  monitorsNamed(
    written.toLowerCase(),
    all.map(({ key, type, name }) => ({ key, type: type.toLowerCase(), name: name.toLowerCase() })),
  )

/** Throws Fault BadRequest for a time that history cannot have. */
function refuseOutside(minutes: number): void {
  const { min = 0, max = 0 } = GetHistory.fields.SinceMinutes
  if (Number.isInteger(minutes) && minutes >= min && minutes <= max) return
  const message = `'SinceMinutes' must be a whole number, ${min} to ${max}`
  throw new Fault('BadRequest', message, {
    errorCode: 'ValidationException',
    fields: [{ ErrorCode: 'InvalidValue', FieldName: 'SinceMinutes', Message: message }],
  })
}

type View = {
  readonly from: number
  readonly now: number
  readonly rank: Rank
  readonly exists: boolean
  readonly step: number
  readonly withPeriods: boolean
}

function historyOf(library: History, monitor: MonitorPeriods, view: View): MonitorHistory {
  const { rank, step } = view
  const span = library.timeKnown(monitor, view)
  const { upMs, downMs, unobservedMs, percent } = library.availability(monitor.periods, rank, span.from, span.to)
  const worst = library.worstMoments(monitor.periods, rank, worstOfMonitor)
  const periods = view.withPeriods ? library.inSteps(monitor.periods, step) : []
  return {
    ServerType: monitor.type as ServerType,
    MonitorName: monitor.name,
    From: new Date(span.from),
    To: new Date(span.to),
    Status: statusOf(library.packed(monitor.periods.map(({ pack }) => pack)), rank),
    AvailabilityPercent: percent,
    Up: upMs,
    Down: downMs,
    Unobserved: unobservedMs,
    Worst: worst.map(({ from, to, downMs: down, checks }) => ({
      From: new Date(Math.max(from, span.from)),
      To: new Date(Math.min(to, span.to)),
      Status: 'Failed' as const,
      Down: down,
      FailedChecks: checks,
    })),
    Periods: view.withPeriods ? periods.map((period) => periodOf(library, period, span, rank)) : undefined,
  }
}

function periodOf(
  library: History,
  { from, to, pack }: Period,
  span: { readonly from: number; readonly to: number },
  rank: Rank,
): HistoryPeriod {
  const [begin, end] = [Math.max(from, span.from), Math.min(to, span.to)]
  const { upMs, downMs, unobservedMs, percent } = library.availability([{ from, to, pack }], rank, begin, end)
  const failing = [...(pack.failing ?? [])].sort(([, one], [, other]) => other - one).map(([check]) => check)
  return {
    From: new Date(begin),
    To: new Date(Math.max(begin, end)),
    Status: statusOf(pack, rank),
    AvailabilityPercent: percent,
    Up: upMs,
    Down: downMs,
    Unobserved: unobservedMs,
    FailedChecks: failing,
    Figures: figuresOf(library, pack),
  }
}

function statusOf({ up, down, warned }: Pack, rank: Rank): HistoryStatus {
  if (down[rank] > 0) return 'Failed'
  if (warned & (2 ** (rank + 1) - 1)) return 'Warning'
  return up[rank] > 0 ? 'Ok' : 'Unobserved'
}

/** In three digits, as those of older periods are, so that a figure does not change when its period is stored. */
function figuresOf({ codeOf, valueOfCode }: History, { figures }: Pack): readonly HistoryFigure[] {
  const rounded = (value: number): number => valueOfCode(codeOf(value))
  return [...figures].map(([name, { count, sum, min, max }]) => {
    const [check, unit] = JSON.parse(name) as [string, string]
    return {
      MonitoringName: check,
      Unit: unit,
      Minimum: rounded(min),
      Average: rounded(sum / count),
      Maximum: rounded(max),
      Count: count,
    }
  })
}

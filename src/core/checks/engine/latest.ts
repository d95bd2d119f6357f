import { entryOf } from '../../base/lazy.ts'
import { ExecutionMode, type ServerType } from '../../protocol/index.ts'
import { includes } from './kind.ts'
import type { MonitorReport, PlannedMonitor, RunCause } from './monitor.ts'

/** When a monitor ran, in monotonic milliseconds, and why. */
export type TimesOfRun = { readonly beganAt: number; readonly endedAt: number; readonly cause: RunCause }

/** The latest report of a monitor at one depth. */
export type LatestReport = TimesOfRun & {
  /** The name of the monitor. */
  readonly key: string
  readonly mode: ExecutionMode
  readonly report: MonitorReport
  /** When it ended, by the clock of the wall. Milliseconds since 1970. */
  readonly endedOn: number
  /** Whether a scrape has shown it. */
  isShown: boolean
}

/** A monitor with its latest report at each depth that has one, the one that began last first. Never empty. */
export type LatestOfMonitor = readonly LatestReport[]

/** The latest reports of one server type. */
export type LatestOfType = {
  /** Those with reports that count, in the order of the plan. */
  readonly monitors: readonly LatestOfMonitor[]
  /** The same with the reports that have expired. */
  readonly all: readonly LatestOfMonitor[]
  /** The depths at which each monitor of the plan has a report, at that depth or a deeper one. */
  readonly complete: ReadonlySet<ExecutionMode>
  /** Whether callers have found something here of a monitor that another node runs. */
  readonly isMixed: boolean
}

export type LatestOptions = {
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly date: () => Date
  /** Called with the report of each run that is added and not ignored, once for each run. */
  readonly onReport?:
    | ((type: ServerType, mode: ExecutionMode, report: MonitorReport, cause: RunCause) => void)
    | undefined
  /** Called when a report takes the place of one that a scrape has shown. */
  readonly onReplaced?: ((before: LatestOfMonitor, reports: LatestOfMonitor) => void) | undefined
}

/**
 * Milliseconds between the scheduled runs of a monitor at a depth. Undefined where no schedule runs it at that depth.
 */
export type IntervalOf = (type: ServerType, monitor: string, mode: ExecutionMode) => number | undefined

/** Whether another node runs a monitor: that node shows its results, and none of them is missing here. What callers find here
 * is a result of this node only for who asks for it, as a person at its page. */
export type IsElsewhere = (type: ServerType, monitor: string) => boolean

/** How many intervals a report of the schedule counts. */
const intervals = 3
/** Milliseconds that a report counts that no schedule repeats: an old success proves nothing. */
const lifeMs: Readonly<Record<ExecutionMode, number>> = { Basic: 900_000, Standard: 900_000, Advanced: 10_800_000 }

type OfType = {
  readonly reports: Map<string, LatestOfMonitor>
  /** By depth, the names of the monitors that run at it, in their order. */
  readonly plans: Map<ExecutionMode, readonly string[]>
  /** `inOrder`, until the plans or the names with reports change. */
  order: readonly Place[] | undefined
}

/** A monitor in the order of its type, and the depths at which the plans have it. */
type Place = { readonly name: string; readonly planned: readonly ExecutionMode[] }

/**
 * Of each monitor and depth the latest report, whoever caused its run. Adding one costs the same however many there are.
 */
export class LatestReports {
  readonly #types = new Map<ServerType, OfType>()
  readonly #options: LatestOptions
  #intervalOf: IntervalOf = () => undefined
  #isElsewhere: IsElsewhere = () => false

  constructor(options: LatestOptions) {
    this.#options = options
  }

  /** From now on a schedule repeats runs at these intervals, except those of monitors that another node runs. */
  followSchedule(intervalOf: IntervalOf, isElsewhere: IsElsewhere = () => false): void {
    this.#intervalOf = intervalOf
    this.#isElsewhere = isElsewhere
  }

  /**
   * Takes the report of a monitor that has ended. `type`: that of its plan, for the host block too, which types may
   * configure differently. Ignores a report that began before the one at the same depth, every report of a run for a
   * peer, and, where a schedule runs the monitor, one that a caller's run skipped or cut.
   */
  add(type: ServerType, mode: ExecutionMode, report: MonitorReport, { beganAt, endedAt, cause }: TimesOfRun): void {
    if (cause === 'peer') return
    const ofType = this.#ofType(type)
    const endedOn = Math.trunc(this.#options.date().getTime() - (this.#options.now() - endedAt))
    if (cause === 'caller' && isCutShort(report) && this.#isScheduled(type, report.name)) return
    const existing = ofType.reports.get(report.name)
    const others = existing?.filter((latest) => latest.mode !== mode) ?? []
    const before = existing?.find((latest) => latest.mode === mode)
    if (before !== undefined && before.beganAt > beganAt) return
    // What a caller takes from the schedule is no other run.
    const isNew = existing?.some((latest) => latest.beganAt === beganAt && latest.endedAt === endedAt) !== true
    const made = { key: report.name, mode, report, beganAt, endedAt, cause, endedOn, isShown: false }
    const reports = others.length === 0 ? [made] : [...others, made].sort(latestFirst)
    ofType.reports.set(report.name, reports)
    if (!existing) ofType.order = undefined
    else if (before?.isShown) this.#options.onReplaced?.(existing, reports)
    if (isNew) this.#options.onReport?.(type, mode, report, cause)
  }

  /**
   * The monitors that a type has at this depth from now on, in their order. Reports at this depth of all others leave.
   */
  planned(type: ServerType, mode: ExecutionMode, monitors: readonly Pick<PlannedMonitor, 'name' | 'depth'>[]): void {
    const ofType = this.#ofType(type)
    const names = monitors.filter(({ depth }) => includes(mode, depth)).map(({ name }) => name)
    ofType.plans.set(mode, names)
    ofType.order = undefined
    const stay = new Set(names)
    for (const [name, reports] of ofType.reports) {
      if (stay.has(name)) continue
      const left = reports.filter((latest) => latest.mode !== mode)
      if (left.length === 0) ofType.reports.delete(name)
      else ofType.reports.set(name, left)
    }
  }

  /** Forgets everything about the types that are not among these. */
  keepTypes(types: readonly ServerType[]): void {
    for (const type of this.#types.keys()) if (!types.includes(type)) this.#types.delete(type)
  }

  /**
   * The results of a type that count now. Reports that have expired are not part of them. `own`: without what callers have
   * found of monitors that another node runs.
   */
  of(type: ServerType, which?: 'own'): LatestOfType {
    const ofType = this.#types.get(type)
    if (!ofType) return { monitors: [], all: [], complete: new Set(), isMixed: false }
    ofType.order ??= inOrder(ofType)
    const { plans, order } = ofType
    const now = this.#options.now()
    const [monitors, ofAnyAge] = [[] as LatestOfMonitor[], [] as LatestOfMonitor[]]
    const incomplete = new Set<ExecutionMode>()
    let isMixed = false
    const counts = (latest: LatestReport): boolean => now - latest.endedAt <= this.#lifeOf(type, latest)
    for (const { name, planned } of order) {
      const isOwn = !this.#isElsewhere(type, name)
      const reports = ofType.reports.get(name) ?? []
      const foreign = isOwn ? [] : reports.filter(isOfCaller)
      isMixed ||= foreign.length > 0
      const all = isOwn ? reports : which === 'own' ? [] : foreign
      // Mostly all of them count: no other list is then made.
      const counting = all.every(counts) ? all : all.filter(counts)
      if (counting.length > 0) monitors.push(counting)
      if (all.length > 0) ofAnyAge.push(all)
      if (!isOwn) continue
      for (const mode of planned) if (!counting.some((latest) => includes(latest.mode, mode))) incomplete.add(mode)
    }
    const complete = ExecutionMode.values.filter((mode) => plans.has(mode) && !incomplete.has(mode))
    return { monitors, all: ofAnyAge, complete: new Set(complete), isMixed }
  }

  /** Whether the schedule of this node repeats each monitor of a type, at this depth or a deeper one. */
  repeats(type: ServerType, mode: ExecutionMode): boolean {
    const names = this.#types.get(type)?.plans.get(mode) ?? []
    return (
      names.length > 0 && names.every((name) => !this.#isElsewhere(type, name) && this.#isScheduled(type, name, mode))
    )
  }

  #isScheduled(type: ServerType, monitor: string, least: ExecutionMode = 'Basic'): boolean {
    return ExecutionMode.values.some(
      (mode) => includes(mode, least) && this.#intervalOf(type, monitor, mode) !== undefined,
    )
  }

  #lifeOf(type: ServerType, { report, mode }: LatestReport): number {
    const interval = this.#intervalOf(type, report.name, mode)
    return interval === undefined ? lifeMs[mode] : interval * intervals
  }

  #ofType(type: ServerType): OfType {
    const existing = this.#types.get(type)
    if (existing) return existing
    const made: OfType = { reports: new Map(), plans: new Map(), order: undefined }
    this.#types.set(type, made)
    return made
  }
}

/** Of two that began together, the deeper one says more. */
const latestFirst = (a: LatestReport, b: LatestReport): number =>
  b.beganAt - a.beganAt || ExecutionMode.values.indexOf(b.mode) - ExecutionMode.values.indexOf(a.mode)

/** Of a monitor that another node runs, whether callers have found it here. */
const isOfCaller = ({ cause }: LatestReport): boolean => cause === 'caller'

/** In the order of the deepest plan that has the monitor; those of no plan come last. */
function inOrder({ plans, reports }: OfType): readonly Place[] {
  const planned = new Map<string, ExecutionMode[]>()
  for (const mode of ExecutionMode.values.toReversed()) {
    for (const name of plans.get(mode) ?? []) entryOf(planned, name, () => []).push(mode)
  }
  for (const name of reports.keys()) entryOf(planned, name, () => [])
  return [...planned].map(([name, modes]) => ({ name, planned: modes }))
}

/** Whether a run did not look: because of another monitor, or because its time limit left none. */
const isCutShort = ({ results }: MonitorReport): boolean =>
  results.length > 0 &&
  results.every(
    ({ status, fault, notChecked }) => status === 'failed' && (fault === 'dependency' || notChecked === 'budget'),
  )

import { ExecutionMode, type ServerType } from '../../protocol/index.ts'
import { includes } from './kind.ts'
import type { MonitorReport, PlannedMonitor, RunCause } from './monitor.ts'

/** When a monitor ran, in monotonic milliseconds, and why. */
export type TimesOfRun = { readonly beganAt: number; readonly endedAt: number; readonly cause: RunCause }

/** The latest report of a monitor at one depth. */
export type LatestReport = TimesOfRun & {
  readonly mode: ExecutionMode
  readonly report: MonitorReport
  /** When it ended, by the clock of the wall. */
  readonly endedOn: Date
}

/** A monitor with its latest report at each depth that has one, the one that began last first. Never empty. */
export type LatestOfMonitor = readonly LatestReport[]

/** The latest reports of one server type. */
export type LatestOfType = {
  /** Those with reports that count, in the order of the plan. */
  readonly monitors: readonly LatestOfMonitor[]
  /** The same with the reports that have expired. */
  readonly all: () => readonly LatestOfMonitor[]
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
  readonly reports: Map<string, Map<ExecutionMode, LatestReport>>
  /** By depth, the names of the monitors that run at it, in their order. */
  readonly plans: Map<ExecutionMode, readonly string[]>
}

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
    const endedOn = new Date(this.#options.date().getTime() - (this.#options.now() - endedAt))
    if (cause === 'caller' && isCutShort(report) && this.#isScheduled(type, report.name)) return
    const byMode = ofType.reports.get(report.name) ?? new Map<ExecutionMode, LatestReport>()
    const before = byMode.get(mode)
    if (before !== undefined && before.beganAt > beganAt) return
    // What a caller takes from the schedule is no other run.
    const isNew = ![...byMode.values()].some((latest) => latest.beganAt === beganAt && latest.endedAt === endedAt)
    byMode.set(mode, { mode, report, beganAt, endedAt, cause, endedOn })
    ofType.reports.set(report.name, byMode)
    if (isNew) this.#options.onReport?.(type, mode, report, cause)
  }

  /**
   * The monitors that a type has at this depth from now on, in their order. Reports at this depth of all others leave.
   */
  planned(type: ServerType, mode: ExecutionMode, monitors: readonly Pick<PlannedMonitor, 'name' | 'depth'>[]): void {
    const ofType = this.#ofType(type)
    const names = monitors.filter(({ depth }) => includes(mode, depth)).map(({ name }) => name)
    ofType.plans.set(mode, names)
    const stay = new Set(names)
    for (const [name, byMode] of ofType.reports) {
      if (!stay.has(name)) byMode.delete(mode)
      if (byMode.size === 0) ofType.reports.delete(name)
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
    if (!ofType) return { monitors: [], all: () => [], complete: new Set(), isMixed: false }
    const now = this.#options.now()
    const { plans } = ofType
    const isOwn = (name: string): boolean => !this.#isElsewhere(type, name)
    const isForeign = ({ report, cause }: LatestReport): boolean => cause === 'caller' && !isOwn(report.name)
    const isMixed = [...ofType.reports.values()].some((byMode) => [...byMode.values()].some(isForeign))
    const isShown = (latest: LatestReport): boolean =>
      isOwn(latest.report.name) || (which !== 'own' && isForeign(latest))
    const counting = reportsOf(
      ofType,
      (latest) => isShown(latest) && now - latest.endedAt <= this.#lifeOf(type, latest),
    )
    const complete = ExecutionMode.values.filter((mode) =>
      plans
        .get(mode)
        ?.every((name) => !isOwn(name) || counting.get(name)?.some((latest) => includes(latest.mode, mode))),
    )
    const all = (): readonly LatestOfMonitor[] => inOrder(reportsOf(ofType, isShown), plans)
    return { monitors: inOrder(counting, plans), all, complete: new Set(complete), isMixed }
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
    const made: OfType = { reports: new Map(), plans: new Map() }
    this.#types.set(type, made)
    return made
  }
}

/** Of two that began together, the deeper one says more. */
const latestFirst = (a: LatestReport, b: LatestReport): number =>
  b.beganAt - a.beganAt || ExecutionMode.values.indexOf(b.mode) - ExecutionMode.values.indexOf(a.mode)

/** The reports of each monitor that count, the one that began last first. */
function reportsOf(
  { reports }: OfType,
  counts: (latest: LatestReport) => boolean = () => true,
): ReadonlyMap<string, LatestOfMonitor> {
  const chosen = new Map<string, LatestOfMonitor>()
  for (const [name, byMode] of reports) {
    const some: LatestReport[] = []
    for (const latest of byMode.values()) if (counts(latest)) some.push(latest)
    if (some.length > 0) chosen.set(name, some.length < 2 ? some : some.sort(latestFirst))
  }
  return chosen
}

/** In the order of the deepest plan that has the monitor; those of no plan come last. */
function inOrder(
  counting: ReadonlyMap<string, LatestOfMonitor>,
  plans: ReadonlyMap<ExecutionMode, readonly string[]>,
): readonly LatestOfMonitor[] {
  const names = new Set(ExecutionMode.values.toReversed().flatMap((mode) => plans.get(mode) ?? []))
  for (const name of counting.keys()) names.add(name)
  const ordered: LatestOfMonitor[] = []
  for (const name of names) {
    const latest = counting.get(name)
    if (latest !== undefined) ordered.push(latest)
  }
  return ordered
}

/** Whether a run did not look: because of another monitor, or because its time limit left none. */
const isCutShort = ({ results }: MonitorReport): boolean =>
  results.length > 0 &&
  results.every(
    ({ status, fault, notChecked }) => status === 'failed' && (fault === 'dependency' || notChecked === 'budget'),
  )

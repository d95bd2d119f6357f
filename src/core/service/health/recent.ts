import { setImmediate as nextTurn } from 'node:timers/promises'
import { lazy } from '../../base/lazy.ts'
import { mapPaced, type Pace, pace } from '../../base/pace.ts'
import type {
  EngineContext,
  LatestOfMonitor,
  LatestReport,
  LatestReports,
  Run,
  Shared,
} from '../../checks/engine/index.ts'
import { documentOf, loadLive, reportUpTo, runDocument } from '../../checks/reports/index.ts'
import { ExecutionMode, ServerType } from '../../protocol/index.ts'
import type { HealthViews, RecentRun } from '../../protocol/service/service.ts'

/** The latest reports at one depth of a type, as if one run had made them. */
type Composed = {
  readonly run: Run
  readonly sources: readonly LatestReport[]
  /** By reader. */
  readonly byReader: Map<string, Pick<RecentRun, 'run' | 'places'>>
}

const everyType = (): boolean => true

/** A dynamic import costs as much as a report to prepare, also of a module that is loaded. */
const live = lazy(loadLive)

/** The latest results of all types, as `/metrics` and the status page show them. */
export class RecentRuns {
  readonly #latest: LatestReports
  readonly #context: EngineContext
  readonly #whole = new Map<string, Run>()
  readonly #composed = new Map<string, Composed>()
  /** The reports that take the place of some that a scrape has shown, until they are prepared. */
  readonly #replaced: (readonly [before: LatestOfMonitor, reports: LatestOfMonitor])[] = []
  /** Resolves when all results that have arrived are prepared for the next scrape. */
  prepared: Promise<void> = Promise.resolve()
  /** Measures the machine since the reader before. */
  #measure: ReturnType<EngineContext['measureState']>

  constructor(latest: LatestReports, context: EngineContext) {
    this.#latest = latest
    this.#context = context
    this.#measure = context.measureState()
  }

  /** A run of all monitors of a type has ended. While its reports are the latest, they are shown as this run. */
  ended(type: ServerType, run: Run): void {
    this.#whole.set(`${run.mode} ${type}`, run)
  }

  /**
   * Makes what the next scrape shows of these reports, in a turn of its own. Without a scrape in between, that of a monitor is
   * made once, and one that comes earlier makes the rest itself. Only for readers who may see everything.
   */
  replaced(before: LatestOfMonitor, reports: LatestOfMonitor): void {
    if (this.#replaced.push([before, reports]) > 1) return
    // What fails here fails again in the scrape, which says so.
    this.prepared = this.#prepare()
      .catch(() => {})
      .finally(() => {
        this.#replaced.length = 0
      })
  }

  async #prepare(): Promise<void> {
    await nextTurn()
    const { prepareLines } = await live.get()
    // What arrives meanwhile is in the list, too.
    await mapPaced(this.#replaced, pace(), ([[latest], reports]) => {
      if (!latest) return
      prepareLines(documentOf(latest.report, everyType, 'full'), (mode) => {
        const source = atDepth(mode, reports)
        return source && { monitor: documentOf(source.report, everyType, 'full'), beganAt: source.beganAt }
      })
    })
  }

  /** The runs of each of these types and depths with results, for a reader with these views. `which`: `LatestReports.of` */
  async of(types: readonly ServerType[], views: HealthViews, which?: 'own'): Promise<readonly RecentRun[]> {
    const recent: RecentRun[] = []
    const breathe = pace()
    for (const type of types) {
      const { monitors, complete, all, isMixed } = this.#latest.of(type, which)
      const scope = which === 'own' && isMixed ? 'own ' : ''
      for (const mode of ExecutionMode.values) {
        const counting = await this.#compose(`${scope}${mode} ${type}`, mode, monitors, breathe)
        const composed = counting ?? (await this.#compose(`${scope}${mode} ${type}`, mode, all, breathe))
        if (!composed) continue
        if (which === 'own' && views(type) === 'full') for (const source of composed.sources) source.isShown = true
        const documents = await this.#documentsOf(type, composed, views, breathe)
        const ageSeconds = this.#ageOf(composed)
        recent.push({
          type,
          mode,
          ...documents,
          ageSeconds,
          complete: complete.has(mode),
          expired: counting === undefined,
        })
      }
    }
    return recent
  }

  /**
   * The latest results that the schedule has of a type at a depth, as old as its oldest result. Undefined where it does not repeat each
   * monitor, or one has no result that counts.
   */
  async stored(type: ServerType, mode: ExecutionMode): Promise<Shared | undefined> {
    if (!this.#latest.repeats(type, mode)) return undefined
    const { monitors, complete } = this.#latest.of(type)
    const composed = complete.has(mode) ? await this.#compose(`${mode} ${type}`, mode, monitors, pace()) : undefined
    if (!composed) return undefined
    const oldest = composed.sources.reduce((first, { endedAt }) => Math.min(first, endedAt), Number.POSITIVE_INFINITY)
    return { run: composed.run, ageMs: this.#context.now() - oldest, stored: true }
  }

  #ageOf({ run, sources }: Composed): number {
    const end = sources.reduce((latest, { endedAt }) => Math.max(latest, endedAt), 0)
    return Math.floor((this.#context.now() - end + (run.reused?.ageMs ?? 0)) / 1_000)
  }

  /** Undefined if no monitor has a report at this depth. The same object as long as the reports are the same. */
  async #compose(
    key: string,
    mode: ExecutionMode,
    monitors: readonly LatestOfMonitor[],
    breathe: Pace,
  ): Promise<Composed | undefined> {
    await breathe()
    if (!monitors.some((reports) => reports.some((latest) => latest.mode === mode))) return undefined
    const sources: LatestReport[] = []
    await mapPaced(monitors, breathe, (reports) => {
      const source = atDepth(mode, reports)
      if (source) sources.push(source)
    })
    await breathe()
    const before = this.#composed.get(key)
    if (before && isSame(before.sources, sources)) return before
    const made = { run: this.#runOf(key, mode, sources), sources, byReader: new Map() }
    this.#composed.set(key, made)
    return made
  }

  #runOf(key: string, mode: ExecutionMode, sources: readonly LatestReport[]): Run {
    const whole = this.#whole.get(key)
    const reports = sources.map((source) => source.report)
    if (whole && whole.monitors.length === reports.length && whole.monitors.every((one, at) => one === reports[at])) {
      return whole
    }
    // Never again: what has replaced one of its reports stays newer.
    this.#whole.delete(key)
    const measured = this.#measure
    this.#measure = this.#context.measureState()
    let [first, last, durationMs] = [undefined as LatestReport | undefined, 0, 0]
    // Of the clock of the wall, which may be set between two of them.
    let firstMs = Number.POSITIVE_INFINITY
    for (const source of sources) {
      if (source.mode !== mode) continue
      const ms = source.endedOn
      if (ms < firstMs) [first, firstMs] = [source, ms]
      last = Math.max(last, ms)
      durationMs = Math.max(durationMs, source.report.durationMs)
    }
    const startedAt = new Date(firstMs - (first?.report.durationMs ?? 0))
    const endedAt = new Date(last)
    return { id: '', mode, startedAt, endedAt, durationMs, monitors: reports, serverState: measured() }
  }

  async #documentsOf(type: ServerType, { run, sources, byReader }: Composed, views: HealthViews, breathe: Pace) {
    const view = views(type)
    const hidden = view === 'full' ? hiddenFrom(views) : []
    const key = `${view} ${hidden.join(' ')}`
    const existing = byReader.get(key)
    if (existing) return existing
    const reads = (other: ServerType): boolean => !hidden.includes(other)
    const monitors = await mapPaced(run.monitors, breathe, (report) => documentOf(report, reads, view))
    await breathe()
    const flags = { IncludeServerStateInformation: true }
    const whole = view === 'full' ? monitors : undefined
    const document = runDocument(run, { type, correlationId: run.id, flags, view, reads, monitors: whole })
    const made = { run: document, places: sources }
    byReader.set(key, made)
    return made
  }
}

/** The types of which a reader may not read the details. */
const hiddenFrom = (views: HealthViews): readonly ServerType[] =>
  ServerType.values.filter((type) => views(type) !== 'full')

/** The report of a monitor at this depth or, where it has none, what a deeper one says of the checks of this depth. */
function atDepth(mode: ExecutionMode, reports: LatestOfMonitor): LatestReport | undefined {
  const own = reports.find((latest) => latest.mode === mode)
  if (own) return own
  const depth = ExecutionMode.values.indexOf(mode)
  const deeper = reports.find((latest) => ExecutionMode.values.indexOf(latest.mode) > depth)
  const report = deeper && reportUpTo(mode, deeper.report)
  return deeper && report && { ...deeper, report }
}

const isSame = (a: readonly LatestReport[], b: readonly LatestReport[]): boolean =>
  a.length === b.length && a.every(({ report, beganAt }, at) => report === b[at]?.report && beganAt === b[at]?.beganAt)

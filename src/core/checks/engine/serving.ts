import { uniqueId } from '../../base/format.ts'
import { ExecutionMode, lifeFor } from '../../protocol/index.ts'
import { reportOf, withLeftOut } from './attempts.ts'
import { type ResultRequest, type ServingCandidate, type Source, sourceFor } from './callers.ts'
import { type DeclaredResult, includes } from './kind.ts'
import { lifeOf, type Observation } from './limits.ts'
import type {
  EngineContext,
  MonitorReport,
  PlannedMonitor,
  Reused,
  Run,
  RunOptions,
  Serving,
  ServingObservation,
  WaitingMonitor,
} from './monitor.ts'
import { mayJoin, observationKey, ownerOf, ownTime } from './observe.ts'
import type { Result } from './result.ts'
import { dependenciesIn, elsewhereIn, naming, parentsIn, reusedIn } from './run.ts'

type Choice = ServingCandidate & ServingObservation

/** Whether a declaration includes the result of this check. */
type IsDeclaredBy = (check: string, declared: DeclaredResult) => boolean

/** Serves callers from the observations of all runs, also of deeper ones (W2). */
export function servingFrom(context: EngineContext, isDeclaredBy: IsDeclaredBy): Serving {
  const { observations } = context.limits
  const candidates = (
    monitor: PlannedMonitor,
    depths: readonly ExecutionMode[],
    mode: ExecutionMode,
    cause: RunOptions['cause'],
  ): readonly Choice[] =>
    depths.flatMap((depth) => {
      if (!includes(depth, mode)) return []
      const key = observationKey(monitor, depth, cause)
      const observation = observations.latest({ kind: monitor.kind, key })
      return observation && !observation.signal.aborted ? [candidateOf(observation, monitor, depth, mode)] : []
    })
  const sourceOf = (monitor: PlannedMonitor, cause: RunOptions['cause'], request: ResultRequest): Source<Choice> => {
    // The usual case: deeper ones need not be looked at.
    const own = sourceFor(request, candidates(monitor, [request.mode], request.mode, cause))
    return own.from === 'result'
      ? own
      : sourceFor(request, candidates(monitor, ExecutionMode.values, request.mode, cause))
  }
  return {
    depthOf: ({ check }, { kind }) => {
      const depths = new Set(kind.checks.filter((one) => isDeclaredBy(check, one)).map(({ depth }) => depth))
      return depths.size === 1 ? [...depths][0] : undefined
    },
    deeperFor: (monitor, { mode, cause }, when) => {
      // The schedule decides by itself what a deeper run serves.
      if (mode === 'Advanced' || cause === 'schedule') return undefined
      const source = sourceOf(monitor, cause, { mode, ...when })
      return source.from === 'run' || source.candidate.depth === mode ? undefined : source.candidate
    },
    allFor: (monitors, mode, now, isOwed = () => false) => {
      const chosen = new Map<PlannedMonitor, ServingObservation>()
      let isSoon = false
      for (const monitor of monitors) {
        const source = sourceOf(monitor, 'caller', { mode, now, notBefore: Number.NEGATIVE_INFINITY })
        if (isCertain(source, monitor, mode)) chosen.set(monitor, source.candidate)
        else if (source.from === 'run' && isOwed(monitor, mode)) isSoon = true
        else return undefined
      }
      return isSoon ? 'soon' : chosen
    },
    runOfEnded: (plan, options, began) => runOfEnded(plan, context, options, began),
  }
}

/** Whether a source serves a monitor whatever happens: a failure that is worth another attempt, or a deeper run, may not. */
function isCertain(
  source: Source<Choice>,
  { retries }: PlannedMonitor,
  mode: ExecutionMode,
): source is Exclude<Source<Choice>, { from: 'run' }> {
  if (source.from === 'run') return false
  if (source.from === 'result') return source.candidate.outcome === 'passed' || retries === 0
  return source.candidate.depth === mode && retries === 0
}

function candidateOf(
  observation: Observation<WaitingMonitor>,
  monitor: PlannedMonitor,
  depth: ExecutionMode,
  mode: ExecutionMode,
): Choice {
  const { begunAt, endedAt, joinable, isQueued } = observation
  const results =
    endedAt === undefined || depth === mode ? observation.results : observation.upTo(mode, ownTime(monitor, mode))
  return {
    depth,
    observation,
    begunAt,
    endedAt,
    // A deeper one that waits for its slot may wait for long.
    joinable: joinable && (depth === mode ? mayJoin(observation, { cause: 'caller' }) : !isQueued),
    outcome: endedAt === undefined ? undefined : outcomeOf(results, mode),
  }
}

function outcomeOf(results: Observation['results'] | undefined, mode: ExecutionMode): ServingCandidate['outcome'] {
  if (!results || lifeOf(results, mode) === 0) return 'unusable'
  return results.some(({ status }) => status === 'failed') ? 'failed' : 'passed'
}

/** `Serving.runOfEnded` */
function runOfEnded(
  plan: readonly PlannedMonitor[],
  context: EngineContext,
  { mode, elsewhere = [], pinned }: Parameters<Serving['runOfEnded']>[1],
  began: number,
): Run | undefined {
  const isDue = ({ depth }: PlannedMonitor): boolean => includes(mode, depth)
  const [due, others] = [plan.filter(isDue), elsewhere.filter(isDue)]
  const groupsOf = dependenciesIn(due, others)
  const reused: Reused[] = []
  const reports: MonitorReport[] = []
  for (const monitor of [...due, ...others]) {
    const chosen = pinned?.get(monitor)
    const report = chosen && reportOfChosen(monitor, mode, chosen, context, () => parentsIn(groupsOf(monitor)))
    if (!report?.observed) return undefined
    reports.push(report)
    const { endedAt } = report.observed
    if (endedAt <= began) reused.push({ ageMs: began - endedAt, leftMs: endedAt + lifeFor(mode, 'passed') - began })
  }
  const durationMs = context.now() - began
  const endedAt = context.date()
  return {
    id: uniqueId(),
    mode,
    startedAt: new Date(endedAt.getTime() - durationMs),
    endedAt,
    durationMs,
    monitors: reports.slice(0, due.length),
    serverState: context.measureState()(),
    reused: reusedIn({ reused }),
  }
}

/** Made once for each observation: callers ask again and again, and documents are made once for each report. */
const chosenReports = new WeakMap<object, { readonly monitor: PlannedMonitor; readonly report: MonitorReport }>()

function reportOfChosen(
  monitor: PlannedMonitor,
  mode: ExecutionMode,
  { depth, observation }: ServingObservation,
  context: EngineContext,
  parents: () => readonly PlannedMonitor[],
): MonitorReport | undefined {
  const before = depth === mode ? chosenReports.get(observation) : undefined
  if (before?.monitor === monitor) return before.report
  const results = depth === mode ? observation.whole() : observation.upTo(mode, ownTime(monitor, mode))
  const made = results && reportOfEnded(monitor, mode, observation, results, context)
  const report = made && naming(made, elsewhereIn(monitor, parents()))
  if (report && depth === mode) chosenReports.set(observation, { monitor, report })
  return report
}

/**
 * The report that a run makes of these results of an observation that has ended. Undefined where a run does more with them:
 * it repeats what failed, weighs since when a threshold is exceeded, or keeps readings that were made for another monitor.
 */
function reportOfEnded(
  monitor: PlannedMonitor,
  mode: ExecutionMode,
  { begunAt, startedAt = begunAt, endedAt, readings }: Observation<WaitingMonitor>,
  results: readonly Result[],
  { exceeded }: Pick<EngineContext, 'exceeded'>,
): MonitorReport | undefined {
  const isWeighed = monitor.forMs !== undefined || (monitor.kind.hold !== undefined && exceeded !== undefined)
  const isFinal = ({ status }: Result): boolean => status === 'ok' || (status === 'warning' && !isWeighed)
  if (endedAt === undefined || results.length === 0 || !results.every(isFinal)) return undefined
  if (readings.some(({ by }) => by !== ownerOf(monitor))) return undefined
  const report = reportOf(monitor, mode, withLeftOut(results, monitor), endedAt - begunAt, 1)
  return { ...report, observed: { beganAt: startedAt, endedAt } }
}

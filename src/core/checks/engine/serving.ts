import { uniqueId } from '../../base/format.ts'
import { ExecutionMode, lifeFor } from '../../protocol/index.ts'
import { firstReports, reportOf, withLeftOut } from './attempts.ts'
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
import { dependenciesIn, dependenciesOfMonitor, elsewhereIn, naming, parentsIn, reusedIn } from './run.ts'

type Choice = ServingCandidate & ServingObservation

/** Whether a declaration includes the result of this check. */
type IsDeclaredBy = (check: string, declared: DeclaredResult) => boolean

/** Serves callers from the observations of all runs, also of deeper ones (W2). */
export function servingFrom(context: EngineContext, isDeclaredBy: IsDeclaredBy): Serving {
  const { observations } = context.limits
  const observationOf = (monitor: PlannedMonitor, depth: ExecutionMode, cause: RunOptions['cause']) => {
    const key = observationKey(monitor, depth, cause)
    const observation = observations.latest({ kind: monitor.kind, key })
    return observation?.signal.aborted ? undefined : observation
  }
  const candidates = (monitor: PlannedMonitor, mode: ExecutionMode, cause: RunOptions['cause']): readonly Choice[] =>
    ExecutionMode.values.flatMap((depth) => {
      const observation = includes(depth, mode) ? observationOf(monitor, depth, cause) : undefined
      return observation ? [candidateOf(observation, monitor, depth, mode)] : []
    })
  const sourceOf = (monitor: PlannedMonitor, cause: RunOptions['cause'], request: ResultRequest): Source<Choice> =>
    sourceFor(request, candidates(monitor, request.mode, cause))
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
      const missing: PlannedMonitor[] = []
      for (const monitor of monitors) {
        const latest = observationOf(monitor, mode, 'caller')
        if (latest && isValid(latest, mode, now)) {
          chosen.set(monitor, { depth: mode, observation: latest })
          continue
        }
        const source = sourceOf(monitor, 'caller', { mode, now, notBefore: Number.NEGATIVE_INFINITY })
        if (isCertain(source, monitor, mode)) chosen.set(monitor, source.candidate)
        else if (source.from === 'run' && (isQueued(latest) || isOwed(monitor, mode))) missing.push(monitor)
        else return undefined
      }
      return { chosen, missing }
    },
    runOfEnded: (plan, options, began) => runOfEnded(plan, context, options, began),
  }
}

/** Whether an observation at this depth has passed and still counts, as nearly all do that a caller asks for. */
const isValid = ({ endedAt, results }: Observation<WaitingMonitor>, mode: ExecutionMode, now: number): boolean =>
  endedAt !== undefined && now < endedAt + lifeFor(mode, 'passed') && outcomeOf(results, mode) === 'passed'

/** Whether an observation waits for its slot. */
const isQueued = (observation: Observation<WaitingMonitor> | undefined): boolean =>
  observation?.endedAt === undefined && observation?.isQueued === true

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
  return results.some(hasFailed) ? 'failed' : 'passed'
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
  let groupsOf: ReturnType<typeof dependenciesIn> | undefined
  const withElsewhere = (monitor: PlannedMonitor, report: MonitorReport): MonitorReport => {
    if (dependenciesOfMonitor(monitor).length === 0) return naming(report, monitor.elsewhere ?? [])
    groupsOf ??= dependenciesIn(due, others)
    return naming(report, elsewhereIn(monitor, parentsIn(groupsOf(monitor))))
  }
  const reused: Reused[] = []
  const reports: MonitorReport[] = []
  for (const monitor of [...due, ...others]) {
    const chosen = pinned?.get(monitor)
    const report = chosen && reportOfEnded(monitor, mode, chosen, context)
    if (!report?.observed) return undefined
    reports.push(withElsewhere(monitor, report))
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

const hasFailed = ({ status }: Result): boolean => status === 'failed'

/**
 * The report that a run makes of an observation that has ended. Undefined where a run does more with its results: it repeats
 * what failed, weighs since when a threshold is exceeded, or keeps readings that were made for another monitor.
 */
function reportOfEnded(
  monitor: PlannedMonitor,
  mode: ExecutionMode,
  { depth, observation }: ServingObservation,
  { exceeded }: Pick<EngineContext, 'exceeded'>,
): MonitorReport | undefined {
  const { begunAt, startedAt = begunAt, endedAt, readings } = observation
  if (endedAt === undefined || readings.some(({ by }) => by !== ownerOf(monitor))) return undefined
  // What is exceeded, and ok until that has lasted, may count by now.
  const isWeighed = monitor.forMs !== undefined || (monitor.kind.hold !== undefined && exceeded !== undefined)
  if (isWeighed && observation.results.some(({ status }) => status !== 'ok')) return undefined
  const before = depth === mode ? firstReports.get(observation) : undefined
  if (before?.monitor === monitor) return before.report.results.some(hasFailed) ? undefined : before.report
  const results = depth === mode ? observation.whole() : observation.upTo(mode, ownTime(monitor, mode))
  if (!results || results.length === 0 || results.some(hasFailed)) return undefined
  const made = reportOf(monitor, mode, withLeftOut(results, monitor), endedAt - begunAt, 1)
  const report = { ...made, observed: { beganAt: startedAt, endedAt } }
  if (depth === mode) firstReports.set(observation, { monitor, report })
  return report
}

import { ExecutionMode } from '../../protocol/index.ts'
import { type ResultRequest, type ServingCandidate, type Source, sourceFor } from './callers.ts'
import { type DeclaredResult, includes } from './kind.ts'
import { lifeOf, type Observation } from './limits.ts'
import type {
  EngineContext,
  PlannedMonitor,
  RunOptions,
  Serving,
  ServingObservation,
  WaitingMonitor,
} from './monitor.ts'
import { mayJoin, observationKey, ownTime } from './observe.ts'

type Choice = ServingCandidate & ServingObservation

/** Whether a declaration includes the result of this check. */
type IsDeclaredBy = (check: string, declared: DeclaredResult) => boolean

/** Serves callers from the observations of all runs, also of deeper ones (W2). */
export function servingFrom(
  { limits: { observations } }: Pick<EngineContext, 'limits'>,
  isDeclaredBy: IsDeclaredBy,
): Serving {
  const candidates = (monitor: PlannedMonitor, mode: ExecutionMode, cause: RunOptions['cause']): readonly Choice[] =>
    ExecutionMode.values.flatMap((depth) => {
      if (!includes(depth, mode)) return []
      const key = observationKey(monitor, depth, cause)
      const observation = observations.latest({ kind: monitor.kind, key })
      return observation && !observation.signal.aborted ? [candidateOf(observation, monitor, depth, mode)] : []
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
    allFor: (monitors, mode, now) => {
      const chosen = new Map<PlannedMonitor, ServingObservation>()
      for (const monitor of monitors) {
        const source = sourceOf(monitor, 'caller', { mode, now, notBefore: Number.NEGATIVE_INFINITY })
        if (!isCertain(source, monitor, mode)) return undefined
        if (source.from !== 'run') chosen.set(monitor, source.candidate)
      }
      return chosen
    },
  }
}

/** Whether a source serves a monitor whatever happens: a failure that is worth another attempt, or a deeper run, may not. */
function isCertain(source: Source<Choice>, { retries }: PlannedMonitor, mode: ExecutionMode): boolean {
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

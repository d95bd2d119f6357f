import { ExecutionMode, lifeFor } from '../../protocol/index.ts'

/**
 * The decisions on how a caller is served, as pure functions. Times are milliseconds of the monotonic clock.
 */

/** An observation of a monitor that may serve a caller. */
export type ServingCandidate = {
  readonly depth: ExecutionMode
  readonly begunAt: number
  /** Undefined while it is in progress. */
  readonly endedAt: number | undefined
  /** Whether others may wait for it while it is in progress. */
  readonly joinable: boolean
  /**
   * The verdict of its results on the checks of the requested depth. `unusable`: the results may differ from those of a
   * run at that depth. Undefined while it is in progress.
   */
  readonly outcome: 'passed' | 'failed' | 'unusable' | undefined
}

/** The request of a caller for the result of a monitor. */
export type ResultRequest = {
  readonly mode: ExecutionMode
  readonly now: number
  /** An observation that began earlier does not serve. */
  readonly notBefore: number
}

/** Where the result of a monitor comes from. `leftMs`: for how long the result still counts. */
export type Source<C extends ServingCandidate> =
  | { readonly from: 'result'; readonly candidate: C; readonly leftMs: number }
  | { readonly from: 'progress'; readonly candidate: C }
  | { readonly from: 'run' }

const rank = (depth: ExecutionMode): number => ExecutionMode.values.indexOf(depth)

/**
 * A result at the requested depth that still counts, then a deeper one; otherwise an observation in progress, again the
 * shallowest first; otherwise a run. The life of a result is that of the requested mode, however deep the result is.
 */
export function sourceFor<C extends ServingCandidate>(
  { mode, now, notBefore }: ResultRequest,
  candidates: readonly C[],
): Source<C> {
  const serving = candidates
    .filter(({ depth, begunAt }) => rank(depth) >= rank(mode) && begunAt >= notBefore)
    .toSorted((a, b) => rank(a.depth) - rank(b.depth))
  for (const candidate of serving) {
    const { endedAt, outcome } = candidate
    if (endedAt === undefined || outcome === undefined || outcome === 'unusable') continue
    const leftMs = endedAt + lifeFor(mode, outcome) - now
    if (leftMs > 0) return { from: 'result', candidate, leftMs }
  }
  const candidate = serving.find(({ endedAt, joinable }) => endedAt === undefined && joinable)
  return candidate ? { from: 'progress', candidate } : { from: 'run' }
}

/**
 * How long a caller waits for a deeper observation in progress before it makes its own. Its own one then still has its full
 * time before the run ends.
 */
export const patienceFor = ({ leftMs, ownMs }: { readonly leftMs: number; readonly ownMs: number }): number =>
  Math.max(0, Math.min(1_000, leftMs - ownMs))

/** Whoever may not read the details of health waits this long between runs, whatever a run costs. */
export const maxRunPauseMs = 1_000
const minRunPauseMs = 50
/** Runs that callers cause take at most a tenth of the time. */
const pausesPerRun = 9

/**
 * Milliseconds from the last start and from the last end of a run to the next start. `lastMs`: how long the last run took.
 * `byCost`: for a caller who may read the details of health.
 */
export const pauseAfter = ({ lastMs, byCost }: { readonly lastMs: number; readonly byCost: boolean }): number =>
  byCost ? Math.min(maxRunPauseMs, Math.max(minRunPauseMs, pausesPerRun * lastMs)) : maxRunPauseMs

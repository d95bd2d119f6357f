import { uniqueId } from '../../base/format.ts'
import { lazy } from '../../base/lazy.ts'
import type { FaultClass } from '../../base/probe-error.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import { attempts, nameFor, reportOf } from './attempts.ts'
import { fingerprint, includes } from './kind.ts'
import { deadlineSignal, Observations, Slots } from './limits.ts'
import type {
  EngineContext,
  Limits,
  MonitorReport,
  PlannedMonitor,
  Reused,
  Run,
  RunClock,
  RunOptions,
} from './monitor.ts'
import { deadlines } from './observe.ts'
import type { RefusalStore } from './refusal-file.ts'
import { type DependencyGroup, type NamedElsewhere, type Result, reallyFailed } from './result.ts'

export const loadSignIns = () => import('./sign-ins.ts')

/** `refusals`: where refused sign-ins outlive this process. */
export function limits(refusals?: RefusalStore): Limits {
  const signIns = lazy(async () => new (await loadSignIns()).SignIns(refusals))
  return {
    slots: new Slots(),
    signIns: () => signIns.get(),
    lastPassed: new Map(),
    observations: new Observations(),
  }
}

/**
 * Runs every monitor of a plan that the mode includes, in parallel. Each has its own deadline within the run's
 * deadline. Never throws for a failing monitor; rejects only when `signal` aborts.
 */
export async function runMonitors(
  plan: readonly PlannedMonitor[],
  context: EngineContext,
  options: RunOptions,
): Promise<Run> {
  const startedAt = context.date()
  const start = context.now()
  const state = context.measureState()
  const runMs = options.timeoutMs ?? deadlines[options.mode].run
  const runDeadline = deadlineSignal(options.signal, runMs)
  const isDue = ({ depth }: PlannedMonitor): boolean => includes(options.mode, depth)
  const due = plan.filter(isDue)
  const groupsOf = dependenciesIn(due, (options.elsewhere ?? []).filter(isDue))
  const reports = new Map<PlannedMonitor, Promise<MonitorReport>>()
  const priorities = new Map(due.map((monitor) => [monitor, priorityOf(monitor, context, options)]))
  const run = clockOf(options, { signal: runDeadline.signal, began: start, ms: runMs, priorities })
  const priority = (monitor: PlannedMonitor): number => priorities.get(monitor) ?? 0

  const pending = new Set(due)
  options.onBegin?.({ monitors: due, pending })

  const report = (monitor: PlannedMonitor): Promise<MonitorReport> => {
    const existing = reports.get(monitor)
    if (existing) return existing
    // Stored before its parents are awaited, so that siblings share one run of each parent.
    const made = Promise.resolve().then(async () => {
      const groups = groupsOf(monitor)
      const parents = parentsIn(groups)
      const ended = await Promise.all(parents.map(async (parent) => ({ parent, ...(await report(parent)) })))
      const down = new Set(ended.filter(isOutOfReach).map(({ parent }) => parent))
      const missing = groups.map(({ members }) => members.filter((member) => down.has(member)))
      const failed = missing.find((members, at) => lacks(groups[at], members.length))
      if (failed) return notRun(monitor, options.mode, failed)
      return naming(await attempts(monitor, context, options, run, parents), elsewhereIn(monitor, parents))
    })
    const ended = made.finally(() => pending.delete(monitor))
    reports.set(monitor, ended)
    return ended
  }
  try {
    const byPriority = due.toSorted((a, b) => priority(a) - priority(b))
    const handOver = async (monitor: PlannedMonitor): Promise<void> => {
      const ended = await report(monitor)
      options.onReport?.(ended, run.times.get(monitor))
    }
    await Promise.all(byPriority.map(handOver))
    const monitors = await Promise.all(due.map(report))
    options.signal.throwIfAborted()
    const durationMs = context.now() - start
    return {
      id: uniqueId(),
      mode: options.mode,
      startedAt,
      endedAt: context.date(),
      durationMs,
      monitors,
      serverState: state(),
      reused: reusedIn(run),
    }
  } finally {
    runDeadline.clear()
  }
}

/**
 * Runs one monitor of a schedule, with its own deadline only: a machine that does not keep up makes runs late, and cuts none.
 * Undefined where the mode does not include it. Never throws for a failing monitor; rejects only when `signal` aborts.
 */
export async function runMonitor(
  monitor: PlannedMonitor,
  context: EngineContext,
  options: Omit<RunOptions, 'timeoutMs' | 'elsewhere'>,
): Promise<MonitorReport | undefined> {
  const { mode, signal } = options
  if (!includes(mode, monitor.depth)) return undefined
  const priorities = new Map([[monitor, priorityOf(monitor, context, options)]])
  const run = clockOf(options, { signal, began: context.now(), ms: Number.POSITIVE_INFINITY, priorities })
  const report = await attempts(monitor, context, options, run, [])
  signal.throwIfAborted()
  return naming(report, elsewhereIn(monitor, []))
}

const clockOf = (
  { notBefore }: Pick<RunOptions, 'notBefore'>,
  clock: Pick<RunClock, 'signal' | 'began' | 'ms' | 'priorities'>,
): RunClock => ({
  ...clock,
  ends: clock.began + clock.ms,
  acceptedSignIns: new Set(),
  notBefore: notBefore ?? clock.began,
  reused: [],
  times: new Map(),
})

export const reusedIn = ({ reused }: Pick<RunClock, 'reused'>): Reused | undefined =>
  reused.length === 0
    ? undefined
    : {
        ageMs: Math.max(...reused.map(({ ageMs }) => ageMs)),
        leftMs: Math.min(...reused.map(({ leftMs }) => leftMs)),
      }

/**
 * Monitors that passed last time come first, then those without a last time, then those that did not pass. Among those of
 * a schedule the deepest runs come first: they serve the others.
 */
function priorityOf(
  monitor: PlannedMonitor,
  { limits: { lastPassed } }: EngineContext,
  { cause, mode }: RunOptions,
): number {
  const passed = lastPassed.size === 0 ? undefined : lastPassed.get(fingerprint(monitor))
  const rank = passed === undefined ? 1 : passed ? 0 : 2
  return cause === 'schedule' ? 3 * rank + (includes(mode, 'Advanced') ? 0 : includes(mode, 'Standard') ? 1 : 2) : rank
}

/** The faults of what cannot be reached. What depends on it would fail for the same reason. */
const outOfReach: ReadonlySet<FaultClass | undefined> = new Set(['dns', 'refused', 'timeout', 'tls'] as const)

/** The check of a monitor that did not run because of another one. */
const notRunCheck = 'not run'

/**
 * Whether what a monitor observes cannot be reached, or the monitor did not run because of another one that cannot. A
 * monitor that answers with a failure says nothing against those that depend on it, and neither does one without a verdict.
 */
const isOutOfReach = ({ results }: Pick<MonitorReport, 'results'>): boolean =>
  results.some(
    (result) =>
      reallyFailed(result) &&
      (outOfReach.has(result.fault) || (result.check === notRunCheck && result.fault === 'dependency')),
  )

/** All on which a monitor depends: each single name is a group of one. */
export const dependenciesOfMonitor = ({
  type,
  dependsOn,
  dependsOnElsewhere = [],
  dependsOnGroups = [],
}: Pick<
  PlannedMonitor,
  'type' | 'dependsOn' | 'dependsOnElsewhere' | 'dependsOnGroups'
>): readonly DependencyGroup[] => {
  const own = type === undefined ? [] : dependsOn.map((name) => ({ type, name }))
  return [...[...own, ...dependsOnElsewhere].map((one) => ({ atLeast: 1, of: [one] })), ...dependsOnGroups]
}

/** A group of `dependsOn`, with those of its members that are in a run. */
type GroupInRun = { readonly atLeast: number; readonly size: number; readonly members: readonly PlannedMonitor[] }

export const parentsIn = (groups: readonly GroupInRun[]): readonly PlannedMonitor[] => [
  ...new Set(groups.flatMap(({ members }) => members)),
]

/** Whether a group has too few members within reach. A member that does not run may be within reach. */
const lacks = (group: GroupInRun | undefined, missing: number): boolean =>
  group !== undefined && missing > 0 && group.size - missing < group.atLeast

/**
 * Makes the function that finds the groups on which a monitor depends, with the members among those of this run and
 * those of other types.
 */
export function dependenciesIn(
  due: readonly PlannedMonitor[],
  elsewhere: readonly PlannedMonitor[],
): (monitor: PlannedMonitor) => readonly GroupInRun[] {
  const all = [...due, ...elsewhere]
  const keyOf = ({ type, name }: Pick<PlannedMonitor, 'type' | 'name'>): string => `${type} ${name}`
  const byKey = new Map(all.map((monitor) => [keyOf(monitor), monitor]))
  return ({ type, dependsOn, dependsOnElsewhere, dependsOnGroups }) => {
    const own = dependsOn.map((name) => ({ atLeast: 1, of: [{ type, name }] }))
    const others = dependenciesOfMonitor({ dependsOn: [], dependsOnElsewhere, dependsOnGroups })
    return [...own, ...others].map(({ atLeast, of }) => ({
      atLeast,
      size: of.length,
      members: of.flatMap((one) => byKey.get(keyOf(one)) ?? []),
    }))
  }
}

/** The monitors of other types among those that the texts of a monitor may name. */
export const elsewhereIn = (monitor: PlannedMonitor, others: readonly PlannedMonitor[]): readonly NamedElsewhere[] =>
  others
    .flatMap((other) =>
      other.type === undefined || other.type === monitor.type
        ? []
        : [{ type: other.type, text: nameFor(monitor, other) }],
    )
    .concat(monitor.elsewhere ?? [])

export const naming = (report: MonitorReport, elsewhere: readonly NamedElsewhere[]): MonitorReport =>
  elsewhere.length === 0
    ? report
    : {
        ...report,
        results: report.results.map((result) => ({
          ...result,
          elsewhere: [...(result.elsewhere ?? []), ...elsewhere],
        })),
      }

/** The report of a monitor that does not run because of these. The first of them is its cause. */
function notRun(monitor: PlannedMonitor, mode: ExecutionMode, causes: readonly PlannedMonitor[]): MonitorReport {
  const names = causes.map((cause) => nameFor(monitor, cause))
  const result: Result = {
    check: notRunCheck,
    status: 'failed',
    fault: 'dependency',
    cause: names[0],
    message: `not run: ${names.join(' and ')} failed`,
  }
  return naming(reportOf(monitor, mode, [result], 0, 0), elsewhereIn(monitor, causes))
}

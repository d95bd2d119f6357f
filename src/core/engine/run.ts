import { randomUUID } from 'node:crypto'
import { lazy } from '../lazy.ts'
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
import { type NamedElsewhere, type Result, reallyFailed } from './result.ts'

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
  const parentsOf = dependenciesIn(due, (options.elsewhere ?? []).filter(isDue))
  const reports = new Map<PlannedMonitor, Promise<MonitorReport>>()

  const priorities = new Map(due.map((monitor) => [monitor, priorityOf(monitor, context, options)]))
  const run: RunClock = {
    signal: runDeadline.signal,
    began: start,
    ends: start + runMs,
    ms: runMs,
    priorities,
    acceptedSignIns: new Set(),
    notBefore: options.notBefore ?? start,
    reused: [],
    times: new Map(),
  }
  const priority = (monitor: PlannedMonitor): number => priorities.get(monitor) ?? 0

  const pending = new Set(due)
  options.onBegin?.({ monitors: due, pending })

  const report = (monitor: PlannedMonitor): Promise<MonitorReport> => {
    const existing = reports.get(monitor)
    if (existing) return existing
    // Stored before its parents are awaited, so that siblings share one run of each parent.
    const made = Promise.resolve().then(async () => {
      const parents = parentsOf(monitor)
      const ended = await Promise.all(parents.map(async (parent) => ({ parent, ...(await report(parent)) })))
      const failed = ended.filter(hasFailed)
      // A parent that really failed decides before one that was not checked.
      const cause = failed.find((parent) => parent.results.some(reallyFailed)) ?? failed[0]
      if (cause) return notRun(monitor, cause.parent, cause)
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
      id: randomUUID(),
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

const reusedIn = ({ reused }: RunClock): Reused | undefined =>
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

const hasFailed = ({ results }: Pick<MonitorReport, 'results'>): boolean =>
  results.some((result) => result.status === 'failed')

/** What finds the monitors on which one depends, among those of this run and those of other types, in their order. */
function dependenciesIn(
  due: readonly PlannedMonitor[],
  elsewhere: readonly PlannedMonitor[],
): (monitor: PlannedMonitor) => readonly PlannedMonitor[] {
  const all = [...due, ...elsewhere]
  const keyOf = ({ type, name }: Pick<PlannedMonitor, 'type' | 'name'>): string => `${type} ${name}`
  const places = new Map(all.map((monitor, at) => [keyOf(monitor), at]))
  return ({ type, dependsOn, dependsOnElsewhere = [] }) => {
    const keys = [...dependsOn.map((name) => keyOf({ type, name })), ...dependsOnElsewhere.map(keyOf)]
    const at = [...new Set(keys)].flatMap((key) => places.get(key) ?? [])
    return at.sort((a, b) => a - b).flatMap((place) => all[place] ?? [])
  }
}

/** The monitors of other types among those that the texts of a monitor may name. */
const elsewhereIn = (monitor: PlannedMonitor, others: readonly PlannedMonitor[]): readonly NamedElsewhere[] =>
  others
    .flatMap((other) =>
      other.type === undefined || other.type === monitor.type
        ? []
        : [{ type: other.type, text: nameFor(monitor, other) }],
    )
    .concat(monitor.elsewhere ?? [])

const naming = (report: MonitorReport, elsewhere: readonly NamedElsewhere[]): MonitorReport =>
  elsewhere.length === 0
    ? report
    : {
        ...report,
        results: report.results.map((result) => ({
          ...result,
          elsewhere: [...(result.elsewhere ?? []), ...elsewhere],
        })),
      }

function notRun(
  monitor: PlannedMonitor,
  parent: PlannedMonitor,
  { results }: Pick<MonitorReport, 'results'>,
): MonitorReport {
  const name = nameFor(monitor, parent)
  const why = results.some(reallyFailed) ? undefined : results.find(({ status }) => status === 'failed')?.notChecked
  const result: Result = {
    check: 'not run',
    status: 'failed',
    fault: 'dependency',
    cause: name,
    message: `not run: ${name} ${why === undefined ? 'failed' : 'was not checked'}`,
    notChecked: why,
  }
  return naming(reportOf(monitor, [result], 0, 0), elsewhereIn(monitor, [parent]))
}

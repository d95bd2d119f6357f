import { randomUUID } from 'node:crypto'
import type { ExecutionMode, ServerState } from '../protocol/index.ts'
import { classify } from './classify.ts'
import { deadlineSignal, orAborted } from './deadline.ts'
import { historyOf, lasting, type Memory, wholeName } from './history.ts'
import type { Limits } from './limits.ts'
import { type AnyMonitorKind, type Finding, ProbeError, type World } from './monitor.ts'
import { lookupWith } from './net.ts'

/** One monitor of a plan: a kind on one target, with settings that its table has validated. */
export type PlannedMonitor = {
  /** MonitorName: kind and name, e.g. `postgres orders`. Unique in a plan. */
  readonly name: string
  readonly kind: AnyMonitorKind
  readonly settings: unknown
  /** The shallowest mode that runs it. */
  readonly depth: ExecutionMode
  /** Part of the host block: never counts as "something found". */
  readonly host: boolean
  readonly dependsOn: readonly string[]
  /** Milliseconds; overrides the mode's deadline. */
  readonly timeoutMs?: number | undefined
  /** Extra attempts after a failure; never after a refused sign-in. */
  readonly retries: number
  /** Its failures are deployment-related (H5). */
  readonly deployment: boolean
  /** Milliseconds for which a threshold must have been passed before that counts. */
  readonly forMs?: number | undefined
}

export type MonitorReport = {
  readonly name: string
  readonly kind: string
  readonly host: boolean
  readonly findings: readonly Finding[]
  readonly durationMs: number
  readonly attempts: number
}

/** What one run of a plan saw: the source of every answer shaped from it. */
export type Run = {
  readonly id: string
  readonly mode: ExecutionMode
  readonly startedAt: Date
  readonly endedAt: Date
  /** From the monotonic clock: the wall clock may step during a run. */
  readonly durationMs: number
  readonly monitors: readonly MonitorReport[]
  readonly serverState: ServerState
}

/** Milliseconds: what one monitor, and a whole run, may take. */
export const deadlines: Record<ExecutionMode, { readonly monitor: number; readonly run: number }> = {
  Basic: { monitor: 5_000, run: 8_000 },
  Standard: { monitor: 10_000, run: 20_000 },
  Advanced: { monitor: 30_000, run: 45_000 },
}
const order: Record<ExecutionMode, number> = { Basic: 0, Standard: 1, Advanced: 2 }

/** True when a run at `mode` includes what belongs to `depth`: each mode includes the shallower. */
export const includes = (mode: ExecutionMode, depth: ExecutionMode): boolean => order[mode] >= order[depth]

/** How long an abandoned observation gets to close what it opened before the run goes on without it. */
const graceMs = 500

/** What the engine takes from outside. */
export type EngineWorld = Pick<World, 'now' | 'ownSignIn' | 'heartbeats' | 'exec' | 'ownUrl'> &
  Memory & {
    readonly resolve: (host: string, signal: AbortSignal) => Promise<readonly string[]>
    readonly inChild: (probe: string, input: unknown, signal: AbortSignal) => Promise<unknown>
    /** Begins to measure this machine; the answer covers the time since. */
    readonly measureState: () => () => ServerState
    readonly limits: Limits
  }

export type RunOptions = {
  readonly mode: ExecutionMode
  readonly signal: AbortSignal
  /** Milliseconds for the whole run; the mode's deadline when absent. */
  readonly timeoutMs?: number | undefined
  readonly calledByPeer?: boolean | undefined
}

/**
 * Runs every monitor of a plan that the mode includes: in parallel, each under its deadline, all
 * under the run's. Never throws for what a monitor does. Rejects only when `signal` aborts.
 */
export async function runMonitors(
  plan: readonly PlannedMonitor[],
  world: EngineWorld,
  options: RunOptions,
): Promise<Run> {
  const startedAt = world.date()
  const start = world.now()
  const state = world.measureState()
  const runMs = options.timeoutMs ?? deadlines[options.mode].run
  const runDeadline = deadlineSignal(options.signal, runMs)
  const due = plan.filter((monitor) => includes(options.mode, monitor.depth))
  const reports = new Map<string, Promise<MonitorReport>>()

  const report = (monitor: PlannedMonitor): Promise<MonitorReport> => {
    const known = reports.get(monitor.name)
    if (known) return known
    // Entered before its parents are awaited, so that siblings share one run of each.
    const made = Promise.resolve().then(async () => {
      const parents = due.filter((other) => monitor.dependsOn.includes(other.name))
      const failed = (await Promise.all(parents.map(report))).find(failedReport)
      if (failed) return notRun(monitor, failed.name)
      return await attempts(monitor, world, options, runDeadline.signal, start + runMs)
    })
    reports.set(monitor.name, made)
    return made
  }
  try {
    const monitors = await Promise.all(due.map(report))
    options.signal.throwIfAborted()
    const durationMs = world.now() - start
    return {
      id: randomUUID(),
      mode: options.mode,
      startedAt,
      endedAt: world.date(),
      durationMs,
      monitors,
      serverState: state(),
    }
  } finally {
    runDeadline.clear()
  }
}

const failedReport = (report: MonitorReport): boolean => report.findings.some((finding) => finding.level === 'fail')

function notRun(monitor: PlannedMonitor, parent: string): MonitorReport {
  const finding: Finding = {
    check: 'not run',
    level: 'fail',
    fault: 'dependency',
    message: `not run: ${parent} failed`,
  }
  return base(monitor, [finding], 0, 0)
}

function base(
  monitor: PlannedMonitor,
  findings: readonly Finding[],
  durationMs: number,
  attemptCount: number,
): MonitorReport {
  const marked = monitor.deployment ? findings.map((finding) => ({ ...finding, deployment: true })) : findings
  return {
    name: monitor.name,
    kind: monitor.kind.kind,
    host: monitor.host,
    findings: marked,
    durationMs,
    attempts: attemptCount,
  }
}

async function attempts(
  monitor: PlannedMonitor,
  world: EngineWorld,
  options: RunOptions,
  signal: AbortSignal,
  runEnds: number,
): Promise<MonitorReport> {
  const started = world.now()
  let findings: readonly Finding[] = []
  let attempt = 0
  const { refusals } = world.limits
  const refusalKey = signInKey(monitor, options.mode)
  const blocked = refusalKey === undefined ? undefined : refusals.blocked(refusalKey, world.now())
  if (blocked) {
    const message = `not signed in: the sign-in was refused ${blocked.ago} ago; tried again in ${blocked.next}, so that the account is not locked`
    return base(monitor, [{ check: 'sign-in', level: 'fail', fault: 'auth', message }], 0, 0)
  }
  do {
    attempt += 1
    findings = await observeOnce(monitor, world, options, signal, runEnds)
    if (findings.some((finding) => finding.fault === 'auth')) break
  } while (attempt <= monitor.retries && findings.some((f) => f.level === 'fail') && !signal.aborted)
  if (refusalKey !== undefined) {
    if (findings.some((finding) => finding.fault === 'auth')) refusals.refused(refusalKey, world.now())
    // A server that is down has accepted nothing.
    else if (findings.some((finding) => finding.level !== 'fail')) refusals.accepted(refusalKey)
  }
  const counted =
    monitor.forMs === undefined ? findings : await lasting(findings, monitor.forMs, monitor, world, signal)
  const said = attempt > 1 ? counted.map((f) => passedLate(f, attempt)) : counted
  return base(monitor, said, world.now() - started, attempt)
}

/** Retries hide flapping: a late pass says so. */
const passedLate = (finding: Finding, attempt: number): Finding =>
  finding.level === 'fail' ? finding : { ...finding, message: `${finding.message} (passed on attempt ${attempt})` }

const signInKey = (monitor: PlannedMonitor, mode: ExecutionMode): string | undefined =>
  monitor.kind.signsIn?.(monitor.settings as never, mode) ? wholeName(monitor) : undefined

async function observeOnce(
  monitor: PlannedMonitor,
  world: EngineWorld,
  options: RunOptions,
  runSignal: AbortSignal,
  runEnds: number,
): Promise<readonly Finding[]> {
  const unusable = monitor.kind.contradiction?.(monitor.settings as never)
  if (unusable !== undefined) return [{ check: 'settings', level: 'fail', fault: 'data', message: unusable }]
  const target = monitor.kind.target?.(monitor.settings as never) ?? {}
  let release: () => void
  try {
    release = await world.limits.slots.take(target, runSignal)
  } catch {
    return [
      {
        check: 'not run',
        level: 'fail',
        fault: 'timeout',
        message: 'not run: the deadline of the whole run came first',
      },
    ]
  }
  const started = world.now()
  const allowed = Math.min(monitor.timeoutMs ?? deadlines[options.mode].monitor, Math.max(1, runEnds - started))
  const deadline = deadlineSignal(runSignal, allowed)
  const { signal } = deadline
  let step: { check: string; address: string | undefined; since: number } = {
    check: monitor.kind.checks[0]?.name ?? 'probe',
    address: undefined,
    since: started,
  }
  const resolve = (host: string): Promise<readonly string[]> => world.resolve(host, signal)
  const seen: World = {
    mode: options.mode,
    signal,
    msLeft: () => Math.max(1, Math.floor(started + allowed - world.now())),
    now: world.now,
    date: world.date,
    step: (check, address) => {
      step = { check, address: address ?? step.address, since: world.now() }
    },
    resolve,
    lookup: lookupWith(resolve),
    inChild: (probe, input) => world.inChild(probe, input, signal),
    ownSignIn: world.ownSignIn,
    heartbeats: world.heartbeats,
    history: historyOf(monitor, world, signal),
    exec: world.exec,
    ownUrl: world.ownUrl,
    calledByPeer: options.calledByPeer ?? false,
  }
  const findings: Finding[] = []
  const iterator = monitor.kind.observe(monitor.settings as never, seen)[Symbol.asyncIterator]()
  const failedStep = (error: unknown): Finding => {
    const took = world.now() - step.since
    // Whatever a driver throws once the deadline has passed is the deadline's doing.
    const cause =
      signal.aborted && !(error instanceof ProbeError)
        ? new ProbeError(
            'timeout',
            `${step.address ? `${step.address} gave ` : ''}no answer within ${seconds(allowed)}`,
          )
        : error
    const { fault, message, details } = classify(cause, step.address, took)
    return { check: step.check, level: 'fail', fault, message, details, address: step.address }
  }
  try {
    for (;;) {
      const next = await orAborted(iterator.next(), signal)
      if (next.done) break
      const judged = monitor.kind.judge(next.value as never, monitor.settings as never)
      findings.push(...(Array.isArray(judged) ? (judged as readonly Finding[]) : [judged as Finding]))
    }
  } catch (error) {
    findings.push(failedStep(error))
    // Also after a judge that threw: the observation waits at its `yield`, with what it holds.
    await closed(iterator)
  } finally {
    deadline.clear()
    release()
  }
  if (findings.length === 0) {
    findings.push({ check: step.check, level: 'fail', fault: 'internal', message: 'looked at nothing' })
  }
  return findings
}

const seconds = (ms: number): string => `${Number((ms / 1_000).toFixed(1))} s`

/** Waits until an aborted observation has run its `finally` blocks, but not for ever. */
async function closed(iterator: AsyncIterator<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, graceMs)
  const returned = iterator.return?.().then(
    () => {},
    () => {},
  )
  await Promise.race([late, returned])
  clearTimeout(timer)
}

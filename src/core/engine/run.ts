import { randomUUID } from 'node:crypto'
import { type AwaitedShare, filesUntil, filesWithin, SilentShareError } from '../files/index.ts'
import { lazy } from '../lazy.ts'
import { Conversations, lookupWith, withConversations } from '../net/connect.ts'
import { ProbeError } from '../probe-error.ts'
import type { ExecutionMode, ServerState, ServerType } from '../protocol/index.ts'
import { classify, shortageOf } from './classify.ts'
import {
  type AnyKind,
  applyHoldDuration,
  type CheckContext,
  type DeclaredResult,
  fingerprint,
  historyOf,
  includes,
  type RunMemory,
} from './kind.ts'
import {
  deadlineSignal,
  lifeOf,
  NoSlot,
  Observation,
  Observations,
  orAborted,
  type Slot,
  Slots,
  type Underway,
  type Waiter,
} from './limits.ts'
import type { RefusalStore } from './refusal-file.ts'
import {
  decideReading,
  type MonitorOfType,
  type NamedElsewhere,
  notChecked,
  type Result,
  reallyFailed,
  writeMonitorOfType,
} from './result.ts'
import type { Blocked, SignIns } from './sign-ins.ts'

/** One monitor of a plan: a kind on one target, with settings that its table has validated. */
export type PlannedMonitor = {
  /** MonitorName: kind and name, e.g. `postgres orders`. Unique in a plan. */
  readonly name: string
  readonly kind: AnyKind
  readonly settings: unknown
  /** The names of the settings that are given, not defaults. Absent: none is. */
  readonly configured?: ReadonlySet<string> | undefined
  /** The shallowest mode that runs it. */
  readonly depth: ExecutionMode
  /** Part of the host block, which does not count as a check of the server type. */
  readonly host: boolean
  /** The names of the monitors of the same type on which it depends. */
  readonly dependsOn: readonly string[]
  /** The monitors of other types on which it depends. */
  readonly dependsOnElsewhere?: readonly MonitorOfType[] | undefined
  /** The monitors of other types that its own texts name. */
  readonly elsewhere?: readonly NamedElsewhere[] | undefined
  /** Milliseconds; overrides the mode's deadline. */
  readonly timeoutMs?: number | undefined
  /** Additional attempts after a failure; never after a refused sign-in. */
  readonly retries: number
  /** Its failures are deployment-related (H5). */
  readonly deployment: boolean
  /** Milliseconds that a threshold must stay exceeded before it counts. */
  readonly forMs?: number | undefined
  /** The part of svc that is checked because nothing is configured for the type. */
  readonly ownPart?: string | undefined
  /** Its server type. Absent for the host block, which every type has, and for what no type has. */
  readonly type?: ServerType | undefined
  /** The keys that it had before: what is stored under them continues under its own. */
  readonly formerly?: readonly string[] | undefined
}

export type MonitorReport = {
  readonly name: string
  readonly kind: string
  readonly runsOn: AnyKind['runsOn']
  /** The shallowest mode that runs it. */
  readonly depth: ExecutionMode
  readonly host: boolean
  /** The results that its kind declares. */
  readonly checks: readonly DeclaredResult[]
  readonly results: readonly Result[]
  readonly durationMs: number
  readonly attempts: number
  readonly ownPart?: PlannedMonitor['ownPart']
}

/** One run of a plan. Every document and report is built from it. */
export type Run = {
  readonly id: string
  readonly mode: ExecutionMode
  readonly startedAt: Date
  readonly endedAt: Date
  /** From the monotonic clock: the wall clock may change during a run. */
  readonly durationMs: number
  readonly monitors: readonly MonitorReport[]
  readonly serverState: ServerState
  /** Of the results from before the run. Absent: it observed everything itself, or together with another run. */
  readonly reused?: Reused | undefined
}

/** Milliseconds, at the start of a run: the age of the oldest result that it reuses, and what is left of the first to expire. */
export type Reused = { readonly ageMs: number; readonly leftMs: number }

/** Milliseconds: the deadlines of one monitor and of a whole run. */
export const deadlines: Record<ExecutionMode, { readonly monitor: number; readonly run: number }> = {
  Basic: { monitor: 5_000, run: 8_000 },
  Standard: { monitor: 10_000, run: 20_000 },
  Advanced: { monitor: 30_000, run: 45_000 },
}
/** How long an aborted observation may take to clean up before the run continues without it. */
const graceMs = 500
/** A peer that shows nothing for this long is silent: no step, no result. Its slot is then free for others. */
const silentMs = 1_000
/** A monitor may lose this much of its own time and still count as having had it. */
const toleranceMs = 250

/** State that lasts from run to run. Made once and passed down. */
export type Limits = {
  readonly slots: Slots
  /** The sign-ins and their refusals. Loaded by the first monitor that signs in. */
  readonly signIns: () => Promise<SignIns>
  /** The outcome of the last run of each monitor, by its fingerprint: true when nothing failed. */
  readonly lastPassed: Map<string, boolean>
  /** What is observed for all runs. */
  readonly observations: Observations<Asking>
}
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

/** The engine's external dependencies. */
export type EngineContext = Pick<CheckContext, 'now'> &
  RunMemory & {
    readonly resolve: (host: string, signal: AbortSignal) => Promise<readonly string[]>
    readonly inChild: (probe: string, input: unknown, signal: AbortSignal) => Promise<unknown>
    /** Starts to measure this machine. The returned function gives the state for the time since. */
    readonly measureState: () => () => ServerState
    readonly limits: Limits
    /** What svc provides to kinds. Absent: nothing. */
    readonly services?: CheckContext['services'] | undefined
    /** What tries a monitor at once, also one that must not sign in now: `try now: svc monitors test …`. */
    readonly tryNow?: ((monitor: PlannedMonitor) => Promise<string | undefined>) | undefined
  }

/**
 * Why a run takes place: a caller asks for it, it is due, or another svc asks for it. The monitors of a run for a peer
 * query no further svc.
 */
export type RunCause = 'caller' | 'schedule' | 'peer'

export type RunOptions = {
  readonly mode: ExecutionMode
  readonly signal: AbortSignal
  /** Milliseconds for the whole run. Defaults to the mode's deadline. */
  readonly timeoutMs?: number | undefined
  /** Default: `caller`. */
  readonly cause?: RunCause | undefined
  /**
   * Observations that began before this time, in monotonic milliseconds, do not serve. Default: the start of the run.
   */
  readonly notBefore?: number | undefined
  /**
   * Repeats, once, sign-ins that were refused until this time, in milliseconds since 1970: somebody wants to know now.
   */
  readonly repeatsRefusedUntil?: number | undefined
  /**
   * The monitors of other types on which those of the plan depend, and those on which these depend. They run, within the
   * deadline of this run, and are not part of its result.
   */
  readonly elsewhere?: readonly PlannedMonitor[] | undefined
  /** Called when the run begins. `pending` shrinks as its monitors end. */
  readonly onBegin?:
    | ((run: { readonly monitors: readonly PlannedMonitor[]; readonly pending: ReadonlySet<PlannedMonitor> }) => void)
    | undefined
  /** Called with the report of each monitor of the plan as soon as that monitor ends, whatever the others wait for. */
  readonly onReport?: ((report: MonitorReport) => void) | undefined
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

  const priorities = new Map(due.map((monitor) => [monitor, priorityOf(monitor, context)]))
  const run: RunClock = {
    signal: runDeadline.signal,
    began: start,
    ends: start + runMs,
    ms: runMs,
    priorities,
    acceptedSignIns: new Set(),
    notBefore: options.notBefore ?? start,
    reused: [],
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
      options.onReport?.(ended)
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

/** The time of a run, in monotonic milliseconds, and its order. */
type RunClock = {
  /** Aborts at the deadline of the run. */
  readonly signal: AbortSignal
  readonly began: number
  readonly ends: number
  readonly ms: number
  /** The order in which monitors get slots, the lowest first. */
  readonly priorities: ReadonlyMap<PlannedMonitor, number>
  /** The keys of the sign-ins that servers have accepted in this run. */
  readonly acceptedSignIns: Set<string>
  /** Observations that began earlier do not serve. */
  readonly notBefore: number
  /** Grows by each result that is older than the run. */
  readonly reused: Reused[]
}

const reusedIn = ({ reused }: RunClock): Reused | undefined =>
  reused.length === 0
    ? undefined
    : {
        ageMs: Math.max(...reused.map(({ ageMs }) => ageMs)),
        leftMs: Math.min(...reused.map(({ leftMs }) => leftMs)),
      }

/** Monitors that passed last time come first, then those without a last time, then those that did not pass. */
function priorityOf(monitor: PlannedMonitor, { limits: { lastPassed } }: EngineContext): number {
  const passed = lastPassed.size === 0 ? undefined : lastPassed.get(fingerprint(monitor))
  return passed === undefined ? 1 : passed ? 0 : 2
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

/** The name of a monitor in the texts of another one. */
const nameFor = ({ type: reader }: PlannedMonitor, { type, name }: PlannedMonitor): string =>
  type === undefined || type === reader ? name : writeMonitorOfType({ type, name })

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
  return naming(base(monitor, [result], 0, 0), elsewhereIn(monitor, [parent]))
}

function base(
  monitor: PlannedMonitor,
  results: readonly Result[],
  durationMs: number,
  attemptCount: number,
): MonitorReport {
  const marked = monitor.deployment ? results.map((result) => ({ ...result, deployment: true })) : results
  return {
    name: monitor.name,
    kind: monitor.kind.name,
    runsOn: monitor.kind.runsOn,
    depth: monitor.depth,
    host: monitor.host,
    checks: monitor.kind.checks,
    results: marked,
    durationMs,
    attempts: attemptCount,
    ownPart: monitor.ownPart,
  }
}

async function attempts(
  monitor: PlannedMonitor,
  context: EngineContext,
  options: RunOptions,
  run: RunClock,
  parents: readonly PlannedMonitor[],
): Promise<MonitorReport> {
  const { signal } = run
  const started = context.now()
  const late = started - run.began
  const waits = late > toleranceMs && parents.length > 0 ? [waitText(late, namesFor(monitor, parents))] : []
  let signIn: HeldSignIn | undefined
  try {
    signIn = await beginSignIn(monitor, context, options, run)
  } catch (error) {
    if (error instanceof SilentShareError)
      return base(monitor, [silentShare(monitor, error)], context.now() - started, 1)
    if (!(error instanceof NoSlot)) throw error
    return base(monitor, [neverBegun(options, run, [...waits, waitText(context.now() - started, error.message)])], 0, 0)
  }
  try {
    const refusal = await signIn?.refusal()
    if (refusal) return base(monitor, [refusal], 0, 0)
    const waited = context.now() - started
    if (signIn?.waitedFor !== undefined && waited > toleranceMs) waits.push(waitText(waited, signIn.waitedFor))
    let results: readonly Result[] = []
    let attempt = 0
    let tookMs = 0
    let notBefore = run.notBefore
    do {
      const before = results
      const once = await observeOnce(monitor, context, options, run, { waits, observed: signIn?.observed, notBefore })
      results = once.results
      tookMs += once.tookMs
      // Another monitor may have made the next attempt already.
      notBefore = once.endedAt
      // A further attempt that had no time proves nothing; the one before did.
      if (attempt > 0 && results.some(({ notChecked: reason }) => reason === 'starved' || reason === 'budget')) {
        results = before
        break
      }
      attempt += 1
      if (results.some(isRefusal)) break
    } while (attempt <= monitor.retries && results.some(isWorthRepeating) && !signal.aborted)
    await signIn?.settle(results)
    remember(monitor, results, context)
    const counted =
      monitor.forMs === undefined ? results : await applyHoldDuration(results, monitor.forMs, monitor, context, signal)
    const reported = attempt > 1 ? counted.map((f) => passedLate(f, attempt)) : counted
    return base(monitor, await advised(reported, monitor, context, options), tookMs, attempt)
  } finally {
    signIn?.end()
  }
}

/** Only a failure needs them. A server loads them before it listens: at a failure it may have no descriptor left. */
export const loadNextSteps = () => import('./next-steps.ts')

/** The results with the next step, where the context knows a command that tries the monitor. */
async function advised(
  results: readonly Result[],
  monitor: PlannedMonitor,
  { tryNow }: EngineContext,
  { mode }: RunOptions,
): Promise<readonly Result[]> {
  const trial = results.some(reallyFailed) ? await tryNow?.(monitor) : undefined
  if (trial === undefined) return results
  const { withNextStep } = await loadNextSteps()
  const { secrets = [] } = monitor.kind.signsIn?.(monitor.settings as never, mode) ?? {}
  const origins = secrets.flatMap((secret) => (typeof secret === 'object' ? [secret.origin] : []))
  return withNextStep(results, { origins, tryNow: trial })
}

/** The monitor did not begin: its secret lies on a share that does not answer. */
const silentShare = ({ kind }: PlannedMonitor, { fault, message, details }: SilentShareError): Result => ({
  check: kind.checks[0]?.name ?? 'probe',
  status: 'failed',
  fault,
  message,
  details,
})

/** The sign-in of one monitor in one run. */
type HeldSignIn = {
  readonly waitedFor: string | undefined
  /** The result of a monitor that must not sign in now. */
  readonly refusal: () => Promise<Result | undefined>
  /** Sees each result as soon as it is known. */
  readonly observed: (result: Result) => void
  /** Remembers whether the server accepted the sign-in. */
  readonly settle: (results: readonly Result[]) => Promise<void>
  readonly end: () => void
}

/**
 * Waits for the turn of a monitor that signs in. Undefined for one that does not, or whose secret cannot be read: it
 * reports that itself. Rejects with `NoSlot` when the run ends first, and with `SilentShareError` when a secret lies on
 * a share that does not answer within the time of the monitor.
 */
async function beginSignIn(
  monitor: PlannedMonitor,
  context: EngineContext,
  { mode, repeatsRefusedUntil }: RunOptions,
  { signal, acceptedSignIns: accepted }: RunClock,
): Promise<HeldSignIn | undefined> {
  const account = monitor.kind.signsIn?.(monitor.settings as never, mode)
  if (!account) return undefined
  const signIns = await context.limits.signIns()
  const target = monitor.kind.target?.(monitor.settings as never) ?? {}
  const files = filesWithin(ownTime(monitor, mode))
  const key = await orAborted(signIns.keyOf(target, account, files), signal).catch((error: unknown) => {
    // Without a key, nothing would keep the account from being locked.
    if (error instanceof SilentShareError || !(signal.aborted || error instanceof ProbeError)) throw error
  })
  if (!key) return undefined
  const { waitedFor, end } = await signIns.turn(key, monitor.name, accepted, signal)
  const now = (): number => context.date().getTime()
  const isAccepted = (result: Result): boolean =>
    account.result === undefined ? result.status !== 'failed' : result.check === account.result && hasAnswered(result)
  return {
    waitedFor,
    end,
    refusal: async () => {
      const blocked = await signIns.blocked(key, now(), repeatsRefusedUntil)
      return blocked && blockedResult(monitor, blocked, await context.tryNow?.(monitor))
    },
    observed: (result) => {
      if (account.result === undefined || !isAccepted(result)) return
      accepted.add(key.id)
      end()
    },
    settle: async (results) => {
      const refusal = results.find(isRefusal)
      if (refusal) {
        // Refused to this monitor alone: the server has accepted the account.
        if (accepted.has(key.id)) return
        await signIns.refused(key, { by: monitor.name, cause: refusal.refusal ?? refusal.message }, now())
      } else if (results.some(isAccepted)) await signIns.accepted(key, now())
    },
  }
}

/** The server answered the question of a result, whatever the answer was. */
const hasAnswered = ({ status, fault, notChecked: reason }: Result): boolean =>
  reason === undefined && (status !== 'failed' || fault === 'threshold' || fault === 'data')

/** The monitor whose sign-in was refused has failed; the others with its account are not to blame. */
function blockedResult({ name }: PlannedMonitor, { by, cause, ago, next }: Blocked, tryNow?: string): Result {
  const pause = `next attempt in ${next}, so that the account is not locked`
  const details = tryNow === undefined ? [] : [tryNow]
  if (by !== name) {
    const why = cause === undefined ? '' : ` (${cause})`
    const message = `the sign-in of ${by} was refused${why} ${ago} ago and is not repeated; ${pause}`
    return notChecked('sign-in', 'refused', message, { details })
  }
  const message = cause === undefined ? `refused ${ago} ago; ${pause}` : `refused: ${cause} (${ago} ago); ${pause}`
  return { check: 'sign-in', status: 'failed', fault: 'auth', message, details }
}

/** Whether the server refused our own sign-in. */
const isRefusal = ({ fault, foundElsewhere, temporaryAccount, notChecked }: Result): boolean =>
  fault === 'auth' && foundElsewhere !== true && temporaryAccount !== true && notChecked === undefined

/** Another attempt gets neither more time nor more privileges. */
const isWorthRepeating = ({ status, notChecked: reason }: Result): boolean =>
  status === 'failed' && (reason === undefined || reason === 'missing')

/** Keeps the outcome for the order of the next run. What was not checked does not change it. */
function remember(
  monitor: PlannedMonitor,
  results: readonly Result[],
  { limits: { lastPassed } }: EngineContext,
): void {
  if (results.some(reallyFailed)) lastPassed.set(fingerprint(monitor), false)
  else if (results.every(({ status }) => status !== 'failed')) lastPassed.set(fingerprint(monitor), true)
}

const namesFor = (reader: PlannedMonitor, monitors: readonly PlannedMonitor[]): string =>
  monitors.map((monitor) => nameFor(reader, monitor)).join(', ')
const waitText = (ms: number, what: string): string => `waited ${seconds(ms)} for ${what}`

/** A result that passes after a retry says so, because retries hide flapping. */
const passedLate = (result: Result, attempt: number): Result =>
  result.status === 'failed' ? result : { ...result, message: `${result.message} (passed on attempt ${attempt})` }

/** A monitor that waits for an observation. */
type Asking = Waiter & { readonly options: RunOptions; readonly run: RunClock; readonly waits: readonly string[] }

/** The results of one attempt. Times are monotonic milliseconds. */
type Observed = {
  readonly results: readonly Result[]
  readonly endedAt: number
  /** How long the observation has taken. */
  readonly tookMs: number
}

/**
 * Observes a monitor, unless an equal one is being observed or its results are still valid (H8). The deadline of a run
 * ends only its own waiting.
 */
async function observeOnce(
  monitor: PlannedMonitor,
  context: EngineContext,
  options: RunOptions,
  run: RunClock,
  {
    waits,
    observed,
    notBefore,
  }: {
    readonly waits: readonly string[]
    readonly observed: HeldSignIn['observed'] | undefined
    readonly notBefore: number
  },
): Promise<Observed> {
  const askedAt = context.now()
  const unusable = monitor.kind.validate?.(monitor.settings as never)
  if (unusable !== undefined) {
    const result: Result = { check: 'settings', status: 'failed', fault: 'data', message: unusable }
    return { results: [result], endedAt: askedAt, tookMs: 0 }
  }
  const { observations } = context.limits
  const { signal, ends } = run
  const asking: Asking = { signal, ends, observed, options, run, waits }
  const { mode, cause } = options
  const key = JSON.stringify([mode, cause === 'peer', ownTime(monitor, mode), fingerprint(monitor)])
  const request = { kind: monitor.kind, key, notBefore }
  const existing = observations.find(request, askedAt)
  const observation = existing ?? new Observation(askedAt, asking, (made) => observe(monitor, context, made))
  const lifeMs = (): number => lifeOf(observation.results, mode)
  if (!existing) observations.add(request, observation, lifeMs)
  const results = await observation.outcome(asking)
  const endedAt = observation.endedAt ?? context.now()
  if (existing) await keepReadings(monitor, context, observation, signal)
  if (existing && endedAt <= run.began) {
    run.reused.push({ ageMs: run.began - endedAt, leftMs: endedAt + lifeMs() - run.began })
  }
  return { results, endedAt, tookMs: endedAt - observation.begunAt }
}

/** Adds the values of an observation that was made for another monitor to the series of this one. */
async function keepReadings(
  monitor: PlannedMonitor,
  context: EngineContext,
  { readings }: Observation<Asking>,
  signal: AbortSignal,
): Promise<void> {
  const history = historyOf(monitor, context, signal)
  const own = ownerOf(monitor)
  for (const { by, series, value, everyMs } of readings) if (by !== own) await history(series, value, everyMs)
}

/** Tells the series of monitors with one kind apart, as their keys do. */
const ownerOf = ({ type, name }: PlannedMonitor): string => JSON.stringify([type, name])

type SlotTime = { readonly started: number; readonly time: Time }

/** How far an observation is. Times are monotonic milliseconds. */
type Progress = {
  /** What it waited for, if it ended before it got a slot. */
  noSlot?: string | undefined
  /** Once it has a slot. */
  slotTime?: SlotTime & { readonly waits: readonly string[] }
  step: { readonly check: string; readonly address: string | undefined; readonly since: number }
}

/** Makes an observation for all who wait for it. */
function observe(monitor: PlannedMonitor, context: EngineContext, observation: Observation<Asking>): Underway<Asking> {
  const { kind, settings } = monitor
  const { mode, cause } = observation.latest.options
  const { begunAt } = observation
  const target = kind.target?.(settings as never) ?? {}
  const awaited = new Set<AwaitedShare>()
  const conversations = new Conversations()
  /** What the end of the run may have cut: it proves nothing about the server. */
  const cut = new Set<Result>()
  const progress: Progress = { step: { check: kind.checks[0]?.name ?? 'probe', address: undefined, since: begunAt } }

  const failedStep = (error: unknown): Result => {
    const { check, address, since } = progress.step
    const shortage = shortageOf(error)
    if (shortage !== undefined) return notChecked(check, 'starved', shortage, { address })
    return { check, status: 'failed', ...classify(error, address, context.now() - since), address }
  }
  /** A timeout at the end of a time that was cut short proves nothing about the server. */
  const judged = (result: Result, { started, time }: SlotTime, reason: ReturnType<typeof reasonOf>): Result => {
    const { fault, message } = result
    const isLate = context.now() >= started + time.allowed - toleranceMs
    if (!time.isCut || !isLate || !reallyFailed(result) || fault !== 'timeout') return result
    const text = message.endsWith(time.text) ? message : `${message}; it had ${time.text}`
    const one = notChecked(result.check, reason, text, result)
    cut.add(one)
    return one
  }
  // After a sign-in, what the server shows to everybody counts for nothing.
  const hasSignedIn = kind.signsIn?.(settings as never, mode) !== undefined
  const decided = (results: readonly Result[]): readonly Result[] =>
    decideReading(
      results,
      (check) => !hasSignedIn || kind.checks.every(({ name, provesNoReading }) => name !== check || !provesNoReading),
    )

  /** The results as one of those who wait sees them: each has waited for something else before. */
  const view = ({ options, run, waits }: Asking, hasLeft: boolean): readonly Result[] => {
    const { slotTime, noSlot } = progress
    if (!slotTime) {
      const slotWait = hasLeft ? waitText(context.now() - begunAt, 'its turn') : noSlot
      return [neverBegun(options, run, slotWait === undefined ? waits : [...waits, slotWait])]
    }
    const reason = reasonOf(options, run)
    const own = { ...slotTime, time: timeOf(monitor, options, run, slotTime.started) }
    const last = hasLeft ? [judged(failedStep(noAnswer(progress.step.address, awaited, own.time)), own, reason)] : []
    const before = [...waits, ...slotTime.waits].map((wait) => `it ${wait}`)
    const results = [...observation.results, ...last].map((result) =>
      cut.has(result) ? { ...result, details: [...(result.details ?? []), ...before] } : result,
    )
    return decided(results)
  }

  const recorded =
    (history: CheckContext['history']): CheckContext['history'] =>
    async (series, value, everyMs) => {
      observation.readings.push({ by: ownerOf(monitor), series, value, everyMs })
      return await history(series, value, everyMs)
    }

  const work = async (): Promise<void> => {
    let slot: Slot
    try {
      const { run } = observation.latest
      const request = { target, name: monitor.name, priority: run.priorities.get(monitor) ?? 0 }
      slot = await context.limits.slots.take(request, observation.signal)
    } catch (error) {
      // Whoever asks after the end of the run has not waited for a slot.
      const isLast = error instanceof NoSlot && begunAt < observation.latest.ends
      if (isLast) progress.noSlot = waitText(context.now() - begunAt, error.message)
      return
    }
    const started = context.now()
    const { options, run } = observation.latest
    const time = timeOf(monitor, options, run, started)
    const waits = slot.waitedFor === undefined ? [] : [waitText(started - begunAt, slot.waitedFor)]
    const slotTime = { started, time, waits }
    progress.slotTime = slotTime
    progress.step = { ...progress.step, since: started }
    observation.joinable = time.own - time.allowed <= toleranceMs
    // Without a timer for what is left of the run: whoever still waits for a slot then would get one without any time.
    const deadline = deadlineSignal(observation.signal, time.own)
    const { signal } = deadline
    const resolve = (host: string): Promise<readonly string[]> => context.resolve(host, signal)
    const checkContext: CheckContext = {
      mode,
      signal,
      msLeft: () => Math.max(1, Math.floor(started + time.allowed - context.now())),
      now: context.now,
      date: context.date,
      step: (check, address) => {
        progress.step = { check, address: address ?? progress.step.address, since: context.now() }
        watch.progress()
      },
      resolve,
      lookup: lookupWith(resolve),
      files: filesUntil(signal, (share) => {
        awaited.add(share)
        // What has not answered by the deadline is named in the result.
        return () => {
          if (!signal.aborted) awaited.delete(share)
        }
      }),
      inChild: (probe, input) => context.inChild(probe, input, signal),
      services: context.services ?? {},
      history: recorded(historyOf(monitor, context, signal)),
      calledByPeer: cause === 'peer',
      isConfigured: (setting) => monitor.configured?.has(setting) ?? false,
    }
    const judge = (result: Result): Result => judged(result, slotTime, reasonOf(options, run))
    // A database that has answered is at work, not silent.
    const watch = watchSilence(() => slot.detach({ keepDatabase: observation.results.length > 0 }))
    const iterator = kind.run(settings as never, checkContext)[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await orAborted(
          withConversations(conversations, () => iterator.next()),
          signal,
        )
        if (next.done) break
        watch.progress()
        observation.add([next.value].flat().map(judge))
      }
    } catch (error) {
      // An error after the deadline is a consequence of the deadline.
      const isLate = signal.aborted && !(error instanceof ProbeError)
      const thrown = isLate ? noAnswer(progress.step.address, awaited, time) : error
      observation.add([withConversations(conversations, () => judge(failedStep(thrown)))])
      // Needed even when `evaluate` throws: the generator is suspended at its `yield` and holds resources.
      await closed(iterator)
    } finally {
      deadline.clear()
      watch.end()
      slot.release()
    }
    if (observation.results.length === 0) {
      const { check } = progress.step
      observation.add([{ check, status: 'failed', fault: 'internal', message: 'the check produced no result' }])
    }
  }
  return {
    view,
    ended: work().finally(() => {
      observation.endedAt = context.now()
    }),
  }
}

/** The error at a deadline. A share that hangs keeps everything waiting that comes after it. */
function noAnswer(address: string | undefined, [silent]: ReadonlySet<AwaitedShare>, { text }: Time): ProbeError {
  if (silent)
    return new ProbeError('timeout', `the share ${silent.share} did not answer within ${text}`, [
      `while reading ${silent.path}`,
    ])
  return new ProbeError(
    'timeout',
    `${address === undefined ? 'no answer' : `${address} did not answer`} within ${text}`,
  )
}

/** Milliseconds that a monitor may take, if the run does not end before. */
const ownTime = ({ timeoutMs }: PlannedMonitor, mode: ExecutionMode): number => timeoutMs ?? deadlines[mode].monitor

/** How long a monitor may run, and how that reads: `3 s of its 10 s: the run ended after 20 s`. */
type Time = { readonly own: number; readonly allowed: number; readonly isCut: boolean; readonly text: string }

/**
 * The time of a monitor that begins now. It is cut when the monitor waited so long, or the caller's time limit is so
 * short, that less is left than a run of this mode gives it.
 */
function timeOf(monitor: PlannedMonitor, options: RunOptions, run: RunClock, started: number): Time {
  const { mode } = options
  const own = ownTime(monitor, mode)
  const allowed = Math.min(own, Math.max(1, run.ends - started))
  const full = Math.min(own, Math.max(run.ms, deadlines[mode].run))
  const isCut = full - allowed > toleranceMs
  if (own - allowed <= toleranceMs) return { own, allowed, isCut, text: seconds(own) }
  return { own, allowed, isCut, text: `${seconds(allowed)} of its ${seconds(own)}: ${endOf(run, options)}` }
}

const endOf = ({ ms }: RunClock, { mode }: RunOptions): string =>
  ms < deadlines[mode].run ? `the time limit of this run is ${seconds(ms)}` : `the run ended after ${seconds(ms)}`

/** Why a monitor did not have its time. */
const reasonOf = ({ mode }: RunOptions, { ms }: RunClock): 'budget' | 'starved' =>
  ms < deadlines[mode].run ? 'budget' : 'starved'

/** The result of a monitor that the run ended before it began. */
const neverBegun = (options: RunOptions, run: RunClock, waits: readonly string[]): Result =>
  notChecked('not run', reasonOf(options, run), [waits.join(', then '), endOf(run, options)].filter(Boolean).join('; '))

/** Calls `silent` each time that nothing has happened for `silentMs`, until it returns true. */
function watchSilence(silent: () => boolean) {
  let timer: NodeJS.Timeout | undefined
  let done = false
  const arm = (): void => {
    clearTimeout(timer)
    if (done) return
    timer = setTimeout(() => {
      done = silent()
      arm()
    }, silentMs)
  }
  arm()
  return {
    progress: arm,
    end: (): void => {
      done = true
      clearTimeout(timer)
    },
  }
}

const seconds = (ms: number): string => `${Number((ms / 1_000).toFixed(1))} s`

/** Waits, for a limited time, until an aborted observation has run its `finally` blocks. */
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

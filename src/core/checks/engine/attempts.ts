import { filesWithin, SilentShareError } from '../../base/files/index.ts'
import { ProbeError } from '../../base/probe-error.ts'
import { type ExecutionMode, rehearsalMember } from '../../protocol/index.ts'
import { type MissingDriverError, missingDriver } from '../drivers/index.ts'
import { plannedChecks } from './check.ts'
import { applyHoldDuration, fingerprint } from './kind.ts'
import { NoSlot, orAborted } from './limits.ts'
import type { EngineContext, MonitorReport, PlannedMonitor, PlannedResult, RunClock, RunOptions } from './monitor.ts'
import { neverBegun, observeOnce, ownTime, toleranceMs, waitText } from './observe.ts'
import { asDrill, isSignInRefusal, notChecked, type Result, reallyFailed, writeMonitorOfType } from './result.ts'
import type { Blocked } from './sign-ins.ts'

/** The name of a monitor in the texts of another one. */
export const nameFor = ({ type: reader }: PlannedMonitor, { type, name }: PlannedMonitor): string =>
  type === undefined || type === reader ? name : writeMonitorOfType({ type, name })

/** A schedule runs the same monitors again and again. */
const plans = new WeakMap<PlannedMonitor, Map<ExecutionMode, readonly PlannedResult[]>>()

function plannedIn(monitor: PlannedMonitor, mode: ExecutionMode): readonly PlannedResult[] {
  const byMode = plans.get(monitor) ?? new Map<ExecutionMode, readonly PlannedResult[]>()
  plans.set(monitor, byMode)
  const existing = byMode.get(mode)
  if (existing) return existing
  const made = plannedChecks(monitor, mode).map(({ name, elsewhere, items }) => ({
    name,
    elsewhere,
    items: items?.(monitor.settings as never, mode) ?? [],
  }))
  byMode.set(mode, made)
  return made
}

/**
 * The report of the first attempt that an observation was, for the monitor of the latest run that took it at its own depth. Callers
 * get the same one, of which documents are made once.
 */
export const firstReports = new WeakMap<object, { readonly monitor: PlannedMonitor; readonly report: MonitorReport }>()

/** The report of a monitor with these results. */
export function reportOf(
  monitor: PlannedMonitor,
  mode: ExecutionMode,
  results: readonly Result[],
  durationMs: number,
  attemptCount: number,
): MonitorReport {
  const deployed = monitor.deployment ? results.map((result) => ({ ...result, deployment: true })) : results
  const marked = monitor.drill ? deployed.map(asDrill) : deployed
  return {
    name: monitor.name,
    kind: monitor.kind.name,
    runsOn: monitor.kind.runsOn,
    depth: monitor.depth,
    host: monitor.host,
    checks: monitor.kind.checks,
    results: marked,
    ...(monitor.drill ? {} : { planned: plannedIn(monitor, mode) }),
    durationMs,
    attempts: attemptCount,
    ownPart: monitor.ownPart,
    ...(monitor.tags ? { tags: monitor.tags } : {}),
    ...(monitor.drill && rehearsalMember),
  }
}

/**
 * Observes a monitor as often as its retries allow, within its sign-in, and reports what counts. Rejects for a defect only.
 */
export async function attempts(
  monitor: PlannedMonitor,
  context: EngineContext,
  options: RunOptions,
  run: RunClock,
  parents: readonly PlannedMonitor[],
): Promise<MonitorReport> {
  const { signal } = run
  const withoutDriver = monitor.kind.driver && missingDriver(monitor.kind.driver)
  if (withoutDriver) return reportOf(monitor, options.mode, [notCheckedWithout(monitor, withoutDriver)], 0, 0)
  const started = context.now()
  const late = started - run.began
  const waits = late > toleranceMs && parents.length > 0 ? [waitText(late, namesFor(monitor, parents))] : []
  let signIn: HeldSignIn | undefined
  try {
    signIn = await beginSignIn(monitor, context, options, run)
  } catch (error) {
    if (error instanceof SilentShareError)
      return reportOf(monitor, options.mode, [silentShare(monitor, error)], context.now() - started, 1)
    if (!(error instanceof NoSlot)) throw error
    return reportOf(
      monitor,
      options.mode,
      [neverBegun(options, run, [...waits, waitText(context.now() - started, error.message)])],
      0,
      0,
    )
  }
  try {
    const refusal = await signIn?.refusal()
    if (refusal) return reportOf(monitor, options.mode, [refusal], 0, 0)
    const waited = context.now() - started
    if (signIn?.waitedFor !== undefined && waited > toleranceMs) waits.push(waitText(waited, signIn.waitedFor))
    let results: readonly Result[] = []
    let attempt = 0
    let tookMs = 0
    let notBefore = run.notBefore
    let observed: MonitorReport['observed']
    let made: object | undefined
    do {
      const before = results
      const once = await observeOnce(monitor, context, options, run, { waits, observed: signIn?.observed, notBefore })
      results = once.results
      tookMs += once.tookMs
      const { beganAt, endedAt } = once
      observed = { beganAt, endedAt }
      made = once.made
      // Another monitor may have made the next attempt already.
      notBefore = once.endedAt
      // A further attempt that had no time proves nothing; the one before did.
      if (attempt > 0 && results.some(({ notChecked: reason }) => reason === 'starved' || reason === 'budget')) {
        results = before
        break
      }
      attempt += 1
      if (results.some(isSignInRefusal)) break
    } while (attempt <= monitor.retries && results.some(isWorthRepeating) && !signal.aborted)
    await signIn?.settle(results)
    remember(monitor, results, context)
    const counted = await applyHoldDuration(results, monitor, options.mode, context, signal)
    const reported = attempt > 1 ? counted.map((f) => passedLate(f, attempt)) : counted
    const complete = withLeftOut(await advised(reported, monitor, context, options), monitor)
    const report = { ...reportOf(monitor, options.mode, complete, tookMs, attempt), observed }
    if (attempt === 1 && made) firstReports.set(made, { monitor, report })
    return report
  } finally {
    signIn?.end()
  }
}

/** The results, of which the first says which checks svc.yaml leaves out. */
export function withLeftOut(results: readonly Result[], { without = [] }: PlannedMonitor): readonly Result[] {
  const [first, ...rest] = results
  if (first === undefined || without.length === 0) return results
  return [{ ...first, details: [...(first.details ?? []), `left out (without): ${without.join(', ')}`] }, ...rest]
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

const notCheckedWithout = ({ kind }: PlannedMonitor, { message, details }: MissingDriverError): Result =>
  notChecked(kind.checks[0]?.name ?? 'probe', 'missing driver', message, { details, isLast: true })

/** The monitor did not begin: its secret lies on a share that does not answer. */
const silentShare = ({ kind }: PlannedMonitor, { fault, message, details }: SilentShareError): Result => ({
  check: kind.checks[0]?.name ?? 'probe',
  status: 'failed',
  fault,
  message,
  details,
  isLast: true,
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
  const target = account.target ?? monitor.kind.target?.(monitor.settings as never) ?? {}
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
      const refusal = results.find(isSignInRefusal)
      if (refusal) {
        // Refused to this monitor alone: the server has accepted the account.
        if (accepted.has(key.id)) return
        await signIns.refused(key, { by: monitor.name, cause: refusal.refusal ?? refusal.message }, now())
      } else if (results.some(isAccepted)) await signIns.accepted(key, now())
    },
  }
}

/** The server answered the question of a result, whatever the answer was. */
const hasAnswered = ({ status, fault, notChecked: reason, isUnreached }: Result): boolean =>
  !isUnreached && reason === undefined && (status !== 'failed' || fault === 'threshold' || fault === 'data')

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
  return { check: 'sign-in', status: 'failed', fault: 'auth', message, details, remembered: true }
}

/** Another attempt gets neither more time nor more privileges. */
const isWorthRepeating = ({ status, notChecked: reason }: Result): boolean =>
  status === 'failed' && (reason === undefined || reason === 'missing' || reason === 'route')

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

/** A result that passes after a retry says so, because retries hide flapping. */
const passedLate = (result: Result, attempt: number): Result =>
  result.status === 'failed' ? result : { ...result, message: `${result.message} (passed on attempt ${attempt})` }

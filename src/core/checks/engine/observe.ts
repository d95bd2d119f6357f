import { type AwaitedShare, filesUntil } from '../../base/files/index.ts'
import { entryOf, oncePerObject } from '../../base/lazy.ts'
import { Conversations, lookupWith, withConversations } from '../../base/net/connect.ts'
import { ProbeError } from '../../base/probe-error.ts'
import { processorWaitMs, roughProcessorWaitMs } from '../../base/system/resources.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import { patienceFor } from './callers.ts'
import { classify, withoutVerdict } from './classify.ts'
import {
  type AnyKind,
  type CheckContext,
  countingMode,
  fingerprint,
  historyOf,
  includes,
  ModeUse,
  ownProblem,
} from './kind.ts'
import {
  abortOf,
  deadlineSignal,
  lifeOf,
  NoSlot,
  Observation,
  orAborted,
  type Slot,
  type Underway,
  type Waiter,
} from './limits.ts'
import type { EngineContext, PlannedMonitor, RunClock, RunOptions, WaitingMonitor } from './monitor.ts'
import { decideReading, notChecked, type Result, reallyFailed, withOwnWait } from './result.ts'
import type { SlotLane } from './waiting-list.ts'

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
export const toleranceMs = 250

/** The results of one attempt. Times are monotonic milliseconds. */
type Observed = {
  readonly results: readonly Result[]
  readonly beganAt: number
  readonly endedAt: number
  /** How long the observation has taken. */
  readonly tookMs: number
  /** The observation itself, if it was made at the depth of the run. */
  readonly made?: object
}

/**
 * Observes a monitor, unless an equal one is being observed or its results are still valid (H8). The deadline of a run
 * ends only its own waiting.
 */
export async function observeOnce(
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
    readonly observed: Waiter['observed'] | undefined
    readonly notBefore: number
  },
): Promise<Observed> {
  const askedAt = context.now()
  const unusable = await mistakeIn(monitor)
  if (unusable !== undefined) {
    const result: Result = { ...notChecked('settings', 'configuration', unusable), message: unusable }
    return { results: [result], beganAt: askedAt, endedAt: askedAt, tookMs: 0 }
  }
  const { observations } = context.limits
  const { signal, ends } = run
  const waiter: WaitingMonitor = { signal, ends, observed, options, run, waits }
  const { mode } = options
  const pinned = options.pinned?.get(monitor)
  const chosen = pinned ?? context.serving?.deeperFor(monitor, options, { notBefore, now: askedAt })
  const deeper = chosen?.depth === mode ? undefined : chosen
  const served = deeper && (await fromDeeper(deeper.observation, monitor, context, waiter))
  if (served) return served
  const at = deeper ? context.now() : askedAt
  const request = { kind: monitor.kind, key: observationKey(monitor, mode, options.cause), notBefore }
  const same = pinned?.depth === mode && !pinned.observation.signal.aborted ? pinned.observation : undefined
  const latest = same ?? observations.find(request, at)
  const existing = latest && mayJoin(latest, options) ? latest : undefined
  const observation = existing ?? new Observation(at, waiter, (made) => observe(monitor, context, made))
  if (!existing) observations.add(request, observation, mode)
  const results = await observation.outcome(waiter)
  const endedAt = observation.endedAt ?? context.now()
  if (existing) {
    await keepReadings(monitor, context, observation, signal)
    reuse(monitor, run, observation, endedAt + lifeOf(observation.results, mode))
  } else run.times.delete(monitor)
  const { begunAt, startedAt = begunAt } = observation
  return { results, beganAt: startedAt, endedAt, tookMs: endedAt - begunAt, made: observation }
}

/** The settings that need `reach.ts`. */
const ofReach = ['family', 'sourceAddress', 'proxy', 'proxyUsername', 'proxyPassword', 'socket']

/** Only monitors whose settings say how they reach their server need it. */
const loadReach = async (settings: object) =>
  ofReach.some((name) => Object.hasOwn(settings, name)) ? await import('./reach.ts') : undefined

/** Why settings that are valid by themselves cannot be combined: a sentence that continues after the monitor's name. */
export const settingsProblem = async (kind: AnyKind, settings: object): Promise<string | undefined> =>
  (await loadReach(settings))?.reachProblem(kind, settings) ?? ownProblem(kind, settings)

/**
 * The mistakes that `validate` of their kinds found in monitors that have run before. A schedule runs the same monitors
 * again and again.
 */
const mistakes = new WeakMap<PlannedMonitor, string | undefined>()

/** Why the settings of a monitor cannot be used, or undefined. */
async function mistakeIn(monitor: PlannedMonitor): Promise<string | undefined> {
  if (mistakes.has(monitor)) return mistakes.get(monitor)
  const mistake = await settingsProblem(monitor.kind, monitor.settings as object)
  mistakes.set(monitor, mistake)
  return mistake
}

/** A caller does not queue behind the schedule: it has slots of its own. */
export const mayJoin = (observation: Observation<WaitingMonitor>, { cause }: Pick<RunOptions, 'cause'>): boolean =>
  !observation.isQueued ||
  observation.endedAt !== undefined ||
  cause === 'schedule' ||
  observation.latest.options.cause !== 'schedule'

/** Equal for monitors that observe the same in the same way, in runs of this mode. */
export function observationKey(monitor: PlannedMonitor, mode: ExecutionMode, cause: RunOptions['cause']): string {
  const spares = sparesSamples(monitor, mode, cause)
  const which = `${mode}${cause === 'peer' ? ' for peers' : ''}${spares ? ' without samples' : ''}`
  return entryOf(keysOf(monitor), which, () => JSON.stringify([which, ownTime(monitor, mode), fingerprint(monitor)]))
}
/** A schedule runs the same monitors again and again, and callers ask for all of them. */
const keysOf = oncePerObject((_: PlannedMonitor) => new Map<string, string>())

/**
 * Whether a run leaves out the samples of a monitor that has them: a run of the schedule below Advanced, unless the
 * monitor has an interval of its own for that mode.
 */
function sparesSamples({ settings, every }: PlannedMonitor, mode: ExecutionMode, cause: RunOptions['cause']): boolean {
  if (cause !== 'schedule' || mode === 'Advanced' || !('samples' in (settings as object))) return false
  return every === undefined || every === 'off' || every[mode] === undefined
}

/** Notes that a run uses an observation that it did not make. `until`: how long its results count. */
function reuse(
  monitor: PlannedMonitor,
  { reused, times, began }: RunClock,
  { begunAt, endedAt }: Observation<WaitingMonitor>,
  until: number,
): void {
  if (endedAt === undefined) return
  times.set(monitor, { beganAt: begunAt, endedAt })
  if (endedAt <= began) reused.push({ ageMs: began - endedAt, leftMs: until - began })
}

/**
 * The results of a deeper observation that concern the mode of this run, once it has ended. Undefined if it takes too long,
 * or does not tell what this run would find.
 */
async function fromDeeper(
  observation: Observation<WaitingMonitor>,
  monitor: PlannedMonitor,
  context: EngineContext,
  { run, options: { mode }, signal, observed }: WaitingMonitor,
): Promise<Observed | undefined> {
  const own = ownTime(monitor, mode)
  if (observation.endedAt === undefined) {
    const patience = deadlineSignal(signal, patienceFor({ leftMs: run.ends - context.now(), ownMs: own }))
    await orAborted(observation.ended, patience.signal).catch(() => {})
    patience.clear()
  }
  const results = observation.upTo(mode, own)
  const { endedAt, begunAt, startedAt = begunAt } = observation
  if (!results || endedAt === undefined) return undefined
  if (observed) for (const result of results) observed(result)
  await keepReadings(monitor, context, observation, signal)
  reuse(monitor, run, observation, endedAt + lifeOf(results, mode))
  return { results, beganAt: startedAt, endedAt, tookMs: endedAt - begunAt }
}

/** Adds the values of an observation that was made for another monitor to the series of this one. */
async function keepReadings(
  monitor: PlannedMonitor,
  context: EngineContext,
  { readings }: Observation<WaitingMonitor>,
  signal: AbortSignal,
): Promise<void> {
  const history = historyOf(monitor, context, signal)
  const own = ownerOf(monitor)
  for (const { by, series, value, everyMs } of readings) if (by !== own) await history(series, value, everyMs)
}

/** Tells the series of monitors with one kind apart, as their keys do. */
export const ownerOf = ({ type, name }: PlannedMonitor): string => JSON.stringify([type, name])

type SlotTime = { readonly started: number; readonly time: Time }

/** How far an observation is. Times are monotonic milliseconds. */
type Progress = {
  /** The text about its wait for a slot, if it ended before it got one. */
  noSlot?: string | undefined
  /** Once it has a slot. */
  slotTime?: SlotTime & { readonly waits: readonly string[] }
  step: { readonly check: string; readonly address: string | undefined; readonly since: number }
  /** Shares that have not answered. */
  awaited?: Set<AwaitedShare>
  /** The results that the end of the run may have cut: they prove nothing about the server. */
  cut?: Set<Result>
}

/** The conversations of every observation that has ended. */
const over = new Conversations()
over.end()

/** Makes an observation for all who wait for it. */
function observe(
  monitor: PlannedMonitor,
  context: EngineContext,
  observation: Observation<WaitingMonitor>,
): Underway<WaitingMonitor> {
  const { kind, settings } = monitor
  const { mode, cause } = observation.latest.options
  const { begunAt } = observation
  const target = kind.target?.(settings as never) ?? {}
  let conversations = new Conversations()
  const progress: Progress = { step: { check: kind.checks[0]?.name ?? 'probe', address: undefined, since: begunAt } }

  const failedStep = (error: unknown): Result => {
    const { check, address, since } = progress.step
    return (
      withoutVerdict(check, error, { address, isLast: true }) ?? {
        check,
        status: 'failed',
        ...classify(error, address, context.now() - since),
        address,
        isLast: true,
      }
    )
  }
  /** A timeout at the end of a time that was cut short proves nothing about the server. */
  const judged = (result: Result, { started, time }: SlotTime, reason: ReturnType<typeof reasonOf>): Result => {
    const { fault, message } = result
    const isLate = context.now() >= started + time.allowed - toleranceMs
    if (!time.isCut || !isLate || !reallyFailed(result) || fault !== 'timeout') return result
    const text = message.endsWith(time.text) ? message : `${message}; it had ${time.text}`
    const one = notChecked(result.check, reason, text, result)
    progress.cut ??= new Set()
    progress.cut.add(one)
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
  const view = ({ options, run, waits }: WaitingMonitor, hasLeft: boolean): readonly Result[] => {
    const { slotTime, noSlot } = progress
    if (!slotTime) {
      const slotWait = hasLeft ? waitText(context.now() - begunAt, 'its turn') : noSlot
      return [neverBegun(options, run, slotWait === undefined ? waits : [...waits, slotWait])]
    }
    const reason = reasonOf(options, run)
    const own = { ...slotTime, time: timeOf(monitor, options, run, slotTime.started) }
    const last = hasLeft ? [judged(failedStep(noAnswer(progress, own.time, conversations)), own, reason)] : []
    const before = [...waits, ...slotTime.waits].map((wait) => `it ${wait}`)
    const results = [...observation.results, ...last].map((result) =>
      progress.cut?.has(result) ? { ...result, details: [...(result.details ?? []), ...before] } : result,
    )
    return decided(results)
  }

  const whole = (): readonly Result[] | undefined =>
    progress.slotTime && !progress.cut ? decided(observation.results) : undefined

  const modeUse = new ModeUse(mode)
  const upTo = (shallower: ExecutionMode, ownMs: number): readonly Result[] | undefined => {
    const { slotTime } = progress
    const { endedAt = Number.POSITIVE_INFINITY, results } = observation
    if (!slotTime || endedAt - slotTime.started > ownMs || !modeUse.isSameIn(shallower)) return undefined
    if (!signsInAlike(monitor, mode, shallower) || !results.every(cameThrough)) return undefined
    const depths = results.map((result) => context.serving?.depthOf(result, monitor))
    if (depths.includes(undefined)) return undefined
    const own = results.filter((_, at) => includes(shallower, depths[at] ?? mode))
    return own.length > 0 ? own : undefined
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
      const lane: SlotLane = cause === 'schedule' ? 'schedule' : 'callers'
      const request = { target, name: monitor.name, priority: run.priorities.get(monitor) ?? 0, lane }
      observation.isQueued = context.limits.slots.mustWait(request)
      slot = await context.limits.slots.take(request, observation.signal)
    } catch (error) {
      // Whoever asks after the end of the run has not waited for a slot.
      const isLast = error instanceof NoSlot && begunAt < observation.latest.ends
      if (isLast) progress.noSlot = waitText(context.now() - begunAt, error.message)
      return
    }
    const started = context.now()
    observation.startedAt = started
    const { options, run } = observation.latest
    const time = timeOf(monitor, options, run, started)
    const waits = slot.waitedFor === undefined ? [] : [waitText(started - begunAt, slot.waitedFor)]
    const slotTime = { started, time, waits }
    progress.slotTime = slotTime
    observation.isQueued = false
    const onEnd = context.onObservation?.({ monitor, mode, cause: cause ?? 'caller', at: started })
    progress.step = { ...progress.step, since: started }
    observation.joinable = time.own - time.allowed <= toleranceMs
    // Without a timer for what is left of the run: whoever still waits for a slot then would get one without any time.
    const deadline = deadlineSignal(observation.signal, time.own)
    const { signal } = deadline
    const files = filesUntil(signal, (share) => {
      const awaited = progress.awaited ?? new Set()
      progress.awaited = awaited
      awaited.add(share)
      // What has not answered by the deadline is named in the result.
      return () => {
        if (!signal.aborted) awaited.delete(share)
      }
    })
    const counted = ({ resolve, bothFamilies }: Pick<CheckContext, 'resolve' | 'bothFamilies'>): CheckContext =>
      countingMode(modeUse, {
        signal,
        msLeft: () => Math.max(1, Math.floor(started + time.allowed - context.now())),
        now: context.now,
        date: context.date,
        step: (check, address) => {
          progress.step = { check, address: address ?? progress.step.address, since: context.now() }
          watch.progress()
        },
        resolve,
        bothFamilies,
        lookup: lookupWith(resolve),
        files,
        inChild: (probe, input) => context.inChild(probe, input, signal),
        services: context.services ?? {},
        history: recorded(historyOf(monitor, context, signal)),
        calledByPeer: cause === 'peer',
        sparesSamples: sparesSamples(monitor, mode, cause),
        without: monitor.without,
        isConfigured: (setting) => monitor.configured?.has(setting) ?? false,
      })
    const waitedBefore = (context.processorWaitMs ?? roughProcessorWaitMs)()
    const waitMs = (): number => ((context.processorWaitMs ?? processorWaitMs)() ?? 0) - (waitedBefore ?? 0)
    const judgeAll = (results: readonly Result[]): readonly Result[] => {
      const all = results.map((result) => judged(result, slotTime, reasonOf(options, run)))
      return withOwnWait(all, { ms: context.now() - started, waitMs })
    }
    // A database that has answered is at work, not silent.
    const watch = watchSilence(() => slot.detach({ keepDatabase: observation.results.length > 0 }))
    let iterator: AsyncIterator<Result | readonly Result[]> | undefined
    const abort = abortOf(signal)
    try {
      const direct = { way: {}, resolve: (host: string) => context.resolve(host, signal) }
      const { wayTo } = (await loadReach(settings as object)) ?? {}
      const outside = { resolve: context.resolve, signal, files }
      const { way, ...reach } = (await wayTo?.(settings as object, target, outside)) ?? direct
      conversations = new Conversations(way)
      const results = kind.run(settings as never, counted(reach))
      const running = results[Symbol.asyncIterator]()
      iterator = running
      // As a whole: each of its parts would otherwise enter and leave the conversations.
      await withConversations(conversations, async () => {
        for (;;) {
          const next = await Promise.race([running.next(), abort.aborted])
          if (next.done) return
          watch.progress()
          observation.add(judgeAll([next.value].flat()))
        }
      })
    } catch (error) {
      // An error after the deadline is a consequence of the deadline.
      const isLate = signal.aborted && !(error instanceof ProbeError)
      const thrown = isLate ? noAnswer(progress, time, conversations) : error
      observation.add(withConversations(conversations, () => judgeAll([failedStep(thrown)])))
      // Needed even when `evaluate` throws: the generator is suspended at its `yield` and holds resources.
      if (iterator) await closed(iterator)
    } finally {
      deadline.clear()
      abort.clear()
      watch.end()
      conversations.end()
      slot.release()
      onEnd?.(observation.results)
    }
    if (observation.results.length === 0) {
      const { check } = progress.step
      observation.add([{ check, status: 'failed', fault: 'internal', message: 'the check produced no result' }])
    }
  }
  return {
    view,
    whole,
    upTo,
    ended: work().finally(() => {
      observation.end(context.now())
      // It is kept as long as its results are, and its way to the peer is not.
      conversations = over
    }),
  }
}

/**
 * Whether a result says that all of its observation took place: it has a verdict, and nothing failed that may have kept
 * something else from being checked.
 */
const cameThrough = ({ status, fault, notChecked: reason }: Result): boolean =>
  reason === undefined && (status !== 'failed' || fault === 'threshold')

/** Whether runs of both modes sign in with the same account, or not at all. */
function signsInAlike({ kind, settings }: PlannedMonitor, mode: ExecutionMode, other: ExecutionMode): boolean {
  const [a, b] = [mode, other].map((one) => kind.signsIn?.(settings as never, one))
  if (a === undefined || b === undefined) return a === b
  return a.account === b.account && a.secrets.every((secret, at) => secret === b.secrets[at])
}

/** The error at a deadline. A share that hangs keeps everything waiting that comes after it. */
function noAnswer({ step: { address }, awaited }: Progress, { text }: Time, { late }: Conversations): ProbeError {
  const [silent] = awaited ?? []
  if (silent)
    return new ProbeError('timeout', `the share ${silent.share} did not answer within ${text}`, [
      `while reading ${silent.path}`,
    ])
  if (late) return late(text)
  return new ProbeError(
    'timeout',
    `${address === undefined ? 'no answer' : `${address} did not answer`} within ${text}`,
  )
}

/** Milliseconds that a monitor may take, if the run does not end before. */
export const ownTime = ({ timeoutMs }: PlannedMonitor, mode: ExecutionMode): number =>
  timeoutMs ?? deadlines[mode].monitor

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
export const neverBegun = (options: RunOptions, run: RunClock, waits: readonly string[]): Result =>
  notChecked('not run', reasonOf(options, run), [waits.join(', then '), endOf(run, options)].filter(Boolean).join('; '))

/** Calls `silent` each time that nothing has happened for `silentMs`, until it returns true. */
function watchSilence(silent: () => boolean) {
  let isOver = false
  const timer = setTimeout(() => {
    isOver = silent()
    if (!isOver) timer.refresh()
  }, silentMs)
  return {
    progress: (): void => {
      if (!isOver) timer.refresh()
    },
    end: (): void => {
      isOver = true
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

/** How long a monitor has waited, and for what. */
export const waitText = (ms: number, what: string): string => `waited ${seconds(ms)} for ${what}`

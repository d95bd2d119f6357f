import { Fault } from '../../base/errors.ts'
import { type ExecutionMode, lifeFor, type ServerType } from '../../protocol/index.ts'
import { maxRunPauseMs, pauseAfter } from './callers.ts'
import { deadlineSignal, orAborted } from './limits.ts'
import type { MonitorReport, Run, RunCause } from './monitor.ts'

/** All anonymous callers together start at most this many runs per window. */
const maxStrangerStarts = 4
const strangerWindowMs = 1_000

/**
 * Starts a run. It completes even if nobody waits for it any more. `fresh`: what others have observed before does not
 * serve.
 */
type Start = (mode: ExecutionMode, type: ServerType, options: RunStart) => Promise<Run>
export type RunStart = { readonly cause: RunCause; readonly fresh: boolean }

/** An answer from what other runs observe, without an observation of its own. Undefined if that is impossible. */
type Serve = (mode: ExecutionMode, type: ServerType) => Promise<Run | undefined>

/**
 * Milliseconds from one such answer to the next. Where a result expires every few milliseconds, each caller would get one of its
 * own, of which each is work for all monitors.
 */
const composedMs = 100
const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export type SharedCall = {
  readonly signal: AbortSignal
  /** Accepts only a run that starts after this call. */
  readonly fresh: boolean
  /**
   * Whether the limits on strangers apply: they may start few runs, so that nobody can use this server to load the
   * servers that it monitors. A function is called only if the caller needs a new run.
   */
  readonly stranger: boolean | (() => Promise<boolean>)
  /**
   * Whether the pause between runs follows their cost also for a stranger: it may read the details of health because it runs
   * on this machine. Called only for a stranger.
   */
  readonly readsHere?: (() => boolean | Promise<boolean>) | undefined
  /** The longest time that the caller waits, in milliseconds. */
  readonly callerTimeoutMs?: number | undefined
  /**
   * Default: `caller`. A run for a peer queries no further svc, so only peers share it. Anybody can send the header, so
   * these runs and the others share one pace. They can overlap: two svc that query each other would otherwise wait for
   * each other.
   */
  readonly cause?: RunCause | undefined
}

export type Shared = { readonly run: Run; readonly ageMs: number; readonly stored?: true }

/** Times are monotonic milliseconds. */
type Result = {
  readonly run: Run
  /** When the run ended, or earlier by the age of what it reused. */
  readonly observedAt: number
  readonly expiresAt: number
  /** Anonymous callers have used up their one run during the life of this result. */
  renewed: boolean
}

type Kind = 'trusted' | 'readers' | 'strangers'

/** A run that callers wait for: in progress or pending. */
class Demand {
  /** The number of callers that want it to start. */
  readonly callers: Record<Kind, number> = { trusted: 0, readers: 0, strangers: 0 }
  /** Whether any of them accepts only what is observed after its call. */
  fresh = false
  /** Set when its plan is no longer in force: it still serves its callers, and nobody joins it. */
  outdated: IsKept | undefined
  readonly #waiting = new Set<PromiseWithResolvers<Result>>()

  /** Resolves with the result of the run. A caller whose signal aborts is forgotten at once, however long the wait. */
  async outcome(signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted()
    const waiter = Promise.withResolvers<Result>()
    const leave = (): void => waiter.reject(signal.reason)
    signal.addEventListener('abort', leave)
    this.#waiting.add(waiter)
    try {
      return await waiter.promise
    } finally {
      this.#waiting.delete(waiter)
      signal.removeEventListener('abort', leave)
    }
  }

  resolve(result: Result): void {
    for (const waiter of this.#waiting) waiter.resolve(result)
  }

  reject(error: unknown): void {
    for (const waiter of this.#waiting) waiter.reject(error)
  }
}

/** Whether a report still belongs to the plan of its type. */
type IsKept = (report: MonitorReport) => boolean

/** The runs of one mode and type that share their results. */
type Lane = {
  readonly mode: ExecutionMode
  readonly type: ServerType
  readonly cause: RunCause
  /**
   * When a run of this mode and type last started and ended, in the lane of peers or of other callers, and until when the pauses
   * last that follow from their cost.
   */
  readonly pace: { startedAt: number; endedAt: number; restsUntil: number }
  result: Result | undefined
  running: Demand | undefined
  next: Demand | undefined
  /** How often its plan has changed. */
  plans: number
  /** An answer without a run that is being composed. Never rejects. */
  serving: Promise<Result | undefined> | undefined
  /** When the latest such answer was complete. */
  composedAt: number
}

/**
 * Runs at most one run per mode and type at a time; callers that arrive meanwhile share it. Never serves an expired
 * result: the caller waits for a run. Callers cause runs, but neither end them nor start them faster than the limits
 * above.
 */
export class SharedRuns {
  readonly #lanes = new Map<string, Lane>()
  readonly #paces = new Map<string, Lane['pace']>()
  /** Lanes with a pending run, in the order of their requests. */
  readonly #waiting = new Set<Lane>()
  /** The times of the latest starts for anonymous callers, oldest first. */
  readonly #strangerStarts: number[] = []
  readonly #now: () => number
  readonly #start: Start
  readonly #serve: Serve | undefined
  #timer: NodeJS.Timeout | undefined
  #closed: Fault | undefined

  constructor(now: () => number, start: Start, serve?: Serve) {
    this.#now = now
    this.#start = start
    this.#serve = serve
  }

  /**
   * Returns a valid result at once, otherwise that of the current or the next run. With `fresh`, always that of a run
   * that starts after this call. Rejects when the caller's signal aborts, and with the error of the run. A caller
   * whose `callerTimeoutMs` ends first gets Unavailable; the run continues and can serve its next attempt.
   */
  async get(mode: ExecutionMode, type: ServerType, call: SharedCall): Promise<Shared> {
    const { stranger, cause = 'caller' } = call
    const askedAt = this.#now()
    const lane = this.#laneOf(mode, type, cause)
    const before = lane.running
    let source = this.#find(lane, call, before)
    let since: number | undefined
    // What is being composed may contain what expired before this call. The next one does not.
    for (let attempt = 0; !source && attempt < 2; attempt += 1) {
      const serving = this.#servingOf(lane, call)
      if (!serving) break
      since = askedAt
      const composed = await this.#patiently(call, askedAt, (signal) => orAborted(serving, signal))
      source = this.#find(lane, call, before)
      if (!composed) break
      if (askedAt < composed.expiresAt) source ??= composed
    }
    let kind: Kind = 'trusted'
    if (!source) {
      if (typeof stranger === 'function') {
        kind = await kindOf(call, stranger)
        // A run that began in the meantime serves all callers.
        source = this.#find(lane, call, before)
      } else if (stranger) kind = 'strangers'
    }
    if (source && 'run' in source) return this.#shared(source)

    const demand = source ?? this.#demand(lane, kind, call.fresh)
    try {
      return this.#shared(await this.#patiently(call, since ?? this.#now(), (signal) => demand.outcome(signal)))
    } catch (error) {
      if (call.signal.aborted && demand === lane.next) this.#leave(lane, demand, kind)
      throw error
    }
  }

  /** Waits as long as the caller does, which has waited since `since`. */
  async #patiently<T>(
    { signal, callerTimeoutMs }: SharedCall,
    since: number,
    wait: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const leftMs = callerTimeoutMs === undefined ? undefined : callerTimeoutMs - (this.#now() - since)
    const patience = leftMs === undefined ? undefined : deadlineSignal(signal, leftMs)
    try {
      return await wait(patience?.signal ?? signal)
    } catch (error) {
      if (!patience?.signal.aborted || signal.aborted) throw error
      throw new Fault('Unavailable', 'The run is still in progress; its result will be available shortly', {
        retryAfter: 5,
      })
    } finally {
      patience?.clear()
    }
  }

  /** The answer without a run that is being composed, or a new one. Undefined where this call needs a run. */
  #servingOf(lane: Lane, { fresh }: SharedCall): Lane['serving'] {
    if (!this.#serve || fresh || lane.cause !== 'caller' || lane.next) return undefined
    if (lane.serving) return lane.serving
    const serve = this.#serve
    const restMs = lane.composedAt + composedMs - this.#now()
    const composing = restMs > 0 ? rest(restMs).then(() => this.#composed(lane, serve)) : this.#composed(lane, serve)
    const serving = composing.finally(() => {
      lane.composedAt = this.#now()
      if (lane.serving === serving) lane.serving = undefined
    })
    lane.serving = serving
    return serving
  }

  /** Keeps the answer as the result of the lane. It is no run: it counts for no pause and no limit. */
  async #composed(lane: Lane, serve: Serve): Promise<Result | undefined> {
    const { plans } = lane
    // A defect appears in the run that the callers then wait for.
    const run = await serve(lane.mode, lane.type).catch(() => undefined)
    if (!run || lane.plans !== plans) return undefined
    const endedAt = this.#now()
    const result = { run, ...validityOf(run, lane.mode, endedAt), renewed: false }
    lane.result = result
    return result
  }

  /**
   * A valid result, or a run that the caller may join; with `fresh`, only a run that began after the call, which found
   * `before` in progress. Throws when the caller has left or no runs start any more.
   */
  #find(lane: Lane, { signal, fresh }: SharedCall, before: Demand | undefined): Result | Demand | undefined {
    signal.throwIfAborted()
    if (this.#closed) throw this.#closed
    // Applies even during another caller's fresh run, which does not invalidate the current result.
    const running = lane.running?.outdated ? undefined : lane.running
    if (!fresh) return isValid(lane.result, this.#now()) ? lane.result : running
    return lane.running === before ? undefined : running
  }

  /**
   * Another plan is in force for a type: no result from before answers a caller any more. What the last run reported about
   * monitors that remain stays for the page and /metrics, until the next run. A run in progress answers those who wait for
   * it already, and nobody else.
   */
  replan(type: ServerType, isKept: IsKept): void {
    for (const lane of this.#lanes.values()) {
      if (lane.type !== type) continue
      lane.plans += 1
      lane.serving = undefined
      lane.result = lane.result && withKept(lane.result, isKept)
      if (!lane.running) continue
      const { outdated = () => true } = lane.running
      lane.running.outdated = (report) => outdated(report) && isKept(report)
    }
  }

  /** Starts no further runs and rejects the callers of pending ones. Does not end runs in progress. */
  close(reason: Fault): void {
    this.#closed = reason
    clearTimeout(this.#timer)
    for (const lane of this.#waiting) {
      lane.next?.reject(reason)
      lane.next = undefined
    }
    this.#waiting.clear()
  }

  #shared({ run, observedAt }: Result): Shared {
    return { run, ageMs: this.#now() - observedAt }
  }

  #laneOf(mode: ExecutionMode, type: ServerType, cause: RunCause): Lane {
    const key = keyOf(mode, type, cause)
    const existing = this.#lanes.get(key)
    if (existing) return existing
    const paceKey = keyOf(mode, type, 'caller')
    const pace = this.#paces.get(paceKey) ?? {
      startedAt: Number.NEGATIVE_INFINITY,
      endedAt: Number.NEGATIVE_INFINITY,
      restsUntil: Number.NEGATIVE_INFINITY,
    }
    this.#paces.set(paceKey, pace)
    const lane: Lane = {
      mode,
      type,
      cause,
      pace,
      result: undefined,
      running: undefined,
      next: undefined,
      plans: 0,
      serving: undefined,
      composedAt: Number.NEGATIVE_INFINITY,
    }
    this.#lanes.set(key, lane)
    return lane
  }

  /** Registers a caller for the next run, and starts that run if it is due. */
  #demand(lane: Lane, kind: Kind, fresh: boolean): Demand {
    const demand = lane.next ?? new Demand()
    lane.next = demand
    demand.callers[kind] += 1
    if (fresh) demand.fresh = true
    this.#waiting.add(lane)
    this.#beginDue()
    return demand
  }

  /** Removes a caller from a pending run. A run without callers does not start. */
  #leave(lane: Lane, { callers }: Demand, kind: Kind): void {
    callers[kind] -= 1
    if (callers.trusted + callers.readers + callers.strangers > 0) return
    lane.next = undefined
    this.#waiting.delete(lane)
  }

  /** Starts every run that is due, and sets a timer for the next one. */
  #beginDue(): void {
    clearTimeout(this.#timer)
    const now = this.#now()
    let soonest = Number.POSITIVE_INFINITY
    for (const lane of this.#waiting) {
      const at = this.#mayBeginAt(lane)
      if (at <= now) this.#begin(lane, now)
      else soonest = Math.min(soonest, at)
    }
    // A timer may fire early by the monotonic clock; it is then set again.
    if (soonest < Number.POSITIVE_INFINITY) {
      this.#timer = setTimeout(() => this.#beginDue(), Math.max(1, Math.ceil(soonest - now)))
    }
  }

  /** Infinity during a run; its end calls `#beginDue` again. */
  #mayBeginAt({ running, next, pace, result }: Lane): number {
    if (running || !next) return Number.POSITIVE_INFINITY
    const byCost = next.callers.trusted + next.callers.readers > 0
    const { startedAt, endedAt, restsUntil } = pace
    const earliest = Math.max(
      startedAt + pauseAfter({ lastMs: 0, byCost }),
      byCost ? restsUntil : endedAt + maxRunPauseMs,
    )
    if (next.callers.trusted > 0) return earliest
    const [oldest = 0] = this.#strangerStarts
    const inQuota =
      this.#strangerStarts.length < maxStrangerStarts ? earliest : Math.max(earliest, oldest + strangerWindowMs)
    return result?.renewed && inQuota < result.expiresAt ? result.expiresAt : inQuota
  }

  #begin(lane: Lane, now: number): void {
    const { next: demand, result } = lane
    if (!demand) return
    const forStrangers = demand.callers.trusted === 0
    const renews = forStrangers && isValid(result, now)
    if (renews) result.renewed = true
    if (forStrangers) {
      this.#strangerStarts.push(now)
      if (this.#strangerStarts.length > maxStrangerStarts) this.#strangerStarts.shift()
    }
    lane.next = undefined
    this.#waiting.delete(lane)
    lane.running = demand
    lane.pace.startedAt = now
    const ended = (settle: (endedAt: number) => void, brokeOff: boolean): void => {
      const { pace } = lane
      pace.endedAt = this.#now()
      // What a run costs that broke off is not known.
      const lastMs = brokeOff ? Number.POSITIVE_INFINITY : pace.endedAt - now
      pace.restsUntil = Math.max(pace.restsUntil, pace.endedAt + pauseAfter({ lastMs, byCost: true }))
      lane.running = undefined
      settle(pace.endedAt)
      this.#beginDue()
    }
    this.#start(lane.mode, lane.type, { cause: lane.cause, fresh: demand.fresh }).then(
      (run) =>
        ended((endedAt) => {
          const result = { run, ...validityOf(run, lane.mode, endedAt), renewed: renews }
          lane.result = demand.outdated ? withKept(result, demand.outdated) : result
          demand.resolve(result)
        }, false),
      (error: unknown) => ended(() => demand.reject(error), true),
    )
  }
}

async function kindOf({ readsHere }: SharedCall, isStranger: () => Promise<boolean>): Promise<Kind> {
  if (!(await isStranger())) return 'trusted'
  return (await readsHere?.()) === true ? 'readers' : 'strangers'
}

/** Only the runs for peers differ from the others. */
const keyOf = (mode: ExecutionMode, type: ServerType, cause: RunCause): string =>
  cause === 'peer' ? `${mode} ${type} for peers` : `${mode} ${type}`

/** An expired result, of the monitors that remain. Undefined without any. */
function withKept({ run, observedAt }: Result, isKept: IsKept): Result | undefined {
  const monitors = run.monitors.filter(isKept)
  if (monitors.length === 0) return undefined
  const remaining = monitors.length === run.monitors.length ? run : { ...run, monitors }
  return { run: remaining, observedAt, expiresAt: Number.NEGATIVE_INFINITY, renewed: false }
}

const isValid = (result: Result | undefined, now: number): result is Result =>
  result !== undefined && now < result.expiresAt

/** A run that reuses results from before its start is as old as the oldest of them, and does not outlive them. */
function validityOf({ monitors, reused, durationMs }: Run, mode: ExecutionMode, endedAt: number) {
  const failed = monitors.some(({ results }) => results.some(({ status }) => status === 'failed'))
  const expiresAt = endedAt + lifeFor(mode, failed ? 'failed' : 'passed')
  if (!reused) return { observedAt: endedAt, expiresAt }
  const begunAt = endedAt - durationMs
  return { observedAt: begunAt - reused.ageMs, expiresAt: Math.min(expiresAt, begunAt + reused.leftMs) }
}

import { Fault } from '../errors.ts'
import type { ExecutionMode, ServerType } from '../protocol/index.ts'
import { deadlineSignal, orAborted } from './limits.ts'
import type { Run } from './run.ts'

/** Milliseconds for which a result serves everyone; a quarter of that for a failure. */
const cacheTtlMs: Record<ExecutionMode, number> = { Basic: 2_000, Standard: 10_000, Advanced: 60_000 }
/**
 * Milliseconds from the start of a run, and from its end, to the next start of the same mode and type.
 * Whatever callers do, a monitored server is asked no more often.
 */
const pauseMs = 1_000
/** Strangers together start at most so many runs in so many milliseconds. */
const maxStrangerStarts = 4
const strangerWindowMs = 1_000

/** Begins a run. It ends by itself, whether or not anybody still waits for it. */
type Start = (mode: ExecutionMode, type: ServerType, forPeer: boolean) => Promise<Run>

export type SharedCall = {
  readonly signal: AbortSignal
  /** Takes no result of a run that had begun before this call. */
  readonly fresh: boolean
  /**
   * Somebody of whom nothing is known. Strangers may start few runs, so that nobody can use this
   * server to load the servers that it monitors.
   */
  readonly stranger: boolean
  /** Milliseconds that the caller waits at most. */
  readonly callerTimeoutMs?: number | undefined
  /**
   * Another svc asks. Such a run asks no further svc, so it is not the run of everyone else; it is
   * shared among peers, and started no more often, because anybody can send the header that says so.
   */
  readonly forPeer?: boolean | undefined
}

export type Shared = { readonly run: Run; readonly ageMs: number }

/** Times are milliseconds of the monotonic clock. */
type Result = {
  readonly run: Run
  readonly endedAt: number
  readonly expiresAt: number
  /** Strangers have started the one run that they may start in the life of a result. */
  renewed: boolean
}

/** A run that somebody waits for, which has begun or is to begin. */
type Demand = {
  readonly outcome: Promise<Result>
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
  /** How many callers wait for it to begin. */
  readonly callers: { trusted: number; strangers: number }
}

/** The runs of one mode and type that share their results. */
type Lane = {
  readonly mode: ExecutionMode
  readonly type: ServerType
  readonly forPeer: boolean
  /** Of the mode and type, for peers and for everyone else. */
  readonly pace: { startedAt: number }
  endedAt: number
  result: Result | undefined
  running: Demand | undefined
  next: Demand | undefined
}

/**
 * One run per mode and type at a time, joined by everyone who asks meanwhile. An expired result is
 * never served: the caller waits for a run. Callers cause runs; they neither end them nor make them
 * come faster than the bounds above allow.
 */
export class SharedRuns {
  readonly #lanes = new Map<string, Lane>()
  readonly #paces = new Map<string, Lane['pace']>()
  /** Those with a run that is to begin, in the order in which it was asked for. */
  readonly #waiting = new Set<Lane>()
  /** When strangers started their last runs, oldest first. */
  readonly #strangerStarts: number[] = []
  readonly #now: () => number
  readonly #start: Start
  #timer: NodeJS.Timeout | undefined
  #closed: Fault | undefined

  constructor(now: () => number, start: Start) {
    this.#now = now
    this.#start = start
  }

  /**
   * A valid result at once, else that of the run under way or of the next one; with `fresh` always
   * that of a run that begins after this call. Rejects when the caller's signal aborts, and with what
   * the run rejects with. A caller with less time than that (`patienceMs`) is refused with Unavailable
   * when its time is up, and the run is there for its next attempt.
   */
  async get(mode: ExecutionMode, type: ServerType, call: SharedCall): Promise<Shared> {
    const { signal, fresh, stranger, callerTimeoutMs, forPeer = false } = call
    signal.throwIfAborted()
    if (this.#closed) throw this.#closed
    const lane = this.#laneOf(mode, type, forPeer)
    // Also while another caller's fresh run is under way: that one takes the valid result from nobody.
    if (!fresh && isValid(lane.result, this.#now())) return this.#shared(lane.result)

    const kind = stranger ? 'strangers' : 'trusted'
    const demand = (!fresh && lane.running) || this.#demand(lane, kind)
    const patience = callerTimeoutMs === undefined ? undefined : deadlineSignal(signal, callerTimeoutMs)
    try {
      return this.#shared(await orAborted(demand.outcome, patience?.signal ?? signal))
    } catch (error) {
      if (patience?.signal.aborted && !signal.aborted) {
        throw new Fault('Unavailable', 'The run takes longer than the caller waits; its result will be there shortly', {
          retryAfter: 5,
        })
      }
      if (demand === lane.next) this.#leave(lane, demand, kind)
      throw error
    } finally {
      patience?.clear()
    }
  }

  /** The last finished run, expired or not: for a page that shows its age. Never an answer to a caller. */
  last(mode: ExecutionMode, type: ServerType): Shared | undefined {
    const result = this.#lanes.get(keyOf(mode, type, false))?.result
    return result && this.#shared(result)
  }

  /** Begins no further run, and refuses whoever waits for one to begin. Runs under way are not its to end. */
  close(reason: Fault): void {
    this.#closed = reason
    clearTimeout(this.#timer)
    for (const lane of this.#waiting) {
      lane.next?.reject(reason)
      lane.next = undefined
    }
    this.#waiting.clear()
  }

  #shared({ run, endedAt }: Result): Shared {
    return { run, ageMs: this.#now() - endedAt }
  }

  #laneOf(mode: ExecutionMode, type: ServerType, forPeer: boolean): Lane {
    const key = keyOf(mode, type, forPeer)
    const existing = this.#lanes.get(key)
    if (existing) return existing
    const paceKey = keyOf(mode, type, false)
    const pace = this.#paces.get(paceKey) ?? { startedAt: Number.NEGATIVE_INFINITY }
    this.#paces.set(paceKey, pace)
    const lane: Lane = {
      mode,
      type,
      forPeer,
      pace,
      endedAt: Number.NEGATIVE_INFINITY,
      result: undefined,
      running: undefined,
      next: undefined,
    }
    this.#lanes.set(key, lane)
    return lane
  }

  /** Counts a caller in for the next run, and begins it if it may begin now. */
  #demand(lane: Lane, kind: keyof Demand['callers']): Demand {
    const demand = lane.next ?? newDemand()
    lane.next = demand
    demand.callers[kind] += 1
    this.#waiting.add(lane)
    this.#beginDue()
    return demand
  }

  /** Counts a caller out of a run that has not begun; a run that nobody waits for does not begin. */
  #leave(lane: Lane, { callers }: Demand, kind: keyof Demand['callers']): void {
    callers[kind] -= 1
    if (callers.trusted + callers.strangers > 0) return
    lane.next = undefined
    this.#waiting.delete(lane)
  }

  /** Begins every run that may begin now, and comes back when the next one may. */
  #beginDue(): void {
    clearTimeout(this.#timer)
    const now = this.#now()
    let soonest = Number.POSITIVE_INFINITY
    for (const lane of this.#waiting) {
      const at = this.#mayBeginAt(lane)
      if (at <= now) this.#begin(lane, now)
      else soonest = Math.min(soonest, at)
    }
    // A timer may be early by the clock that counts here; then it is set again.
    if (soonest < Number.POSITIVE_INFINITY) {
      this.#timer = setTimeout(() => this.#beginDue(), Math.max(1, Math.ceil(soonest - now)))
    }
  }

  /** Infinity while a run is under way: its end comes back to this. */
  #mayBeginAt({ running, next, pace, endedAt, result }: Lane): number {
    if (running || !next) return Number.POSITIVE_INFINITY
    const earliest = Math.max(pace.startedAt, endedAt) + pauseMs
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
    const ended = (settle: (endedAt: number) => void): void => {
      lane.endedAt = this.#now()
      lane.running = undefined
      settle(lane.endedAt)
      this.#beginDue()
    }
    this.#start(lane.mode, lane.type, lane.forPeer).then(
      (run) =>
        ended((endedAt) => {
          lane.result = { run, endedAt, expiresAt: endedAt + lifeOf(run, lane.mode), renewed: renews }
          demand.resolve(lane.result)
        }),
      (error: unknown) => ended(() => demand.reject(error)),
    )
  }
}

const keyOf = (mode: ExecutionMode, type: ServerType, forPeer: boolean): string =>
  forPeer ? `${mode} ${type} for peers` : `${mode} ${type}`

const isValid = (result: Result | undefined, now: number): result is Result =>
  result !== undefined && now < result.expiresAt

function lifeOf({ monitors }: Run, mode: ExecutionMode): number {
  const failed = monitors.some(({ results }) => results.some(({ status }) => status === 'failed'))
  return failed ? cacheTtlMs[mode] / 4 : cacheTtlMs[mode]
}

function newDemand(): Demand {
  const { promise: outcome, resolve, reject } = Promise.withResolvers<Result>()
  // Everyone who waited may have left.
  outcome.catch(() => {})
  return { outcome, resolve, reject, callers: { trusted: 0, strangers: 0 } }
}

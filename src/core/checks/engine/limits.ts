import { count } from '../../base/format.ts'
import { entryOf } from '../../base/lazy.ts'
import type { Target } from '../../base/settings/index.ts'
import { type ExecutionMode, lifeFor } from '../../protocol/index.ts'
import type { Result } from './result.ts'
import { type SlotKey, type SlotLane, type SlotWaiter, WaitingList } from './waiting-list.ts'

/** One request for a slot. */
export type SlotRequest = {
  readonly target: Target
  /** The monitor's name, for those who wait for it. */
  readonly name: string
  /** The lowest comes first among those that wait: healthy servers do not wait behind silent ones. */
  readonly priority?: number
  /** Defaults to that of callers. */
  readonly lane?: SlotLane | undefined
}

export type Slot = {
  /** The monitors that the request had to wait for; undefined when the slot was free at once. */
  readonly waitedFor: string | undefined
  readonly release: () => void
  /**
   * Frees the slot for others although its monitor continues: its peer is silent, which does not load this machine.
   * Keeps the slot of the database with `keepDatabase`. Returns false, and keeps everything, when too many others continue
   * so.
   */
  readonly detach: (options: { readonly keepDatabase: boolean }) => boolean
}

/** Why a request never got its slot: the signal aborted first. The message says what it waited for. */
export class NoSlot extends Error {
  override readonly name = 'NoSlot'
}

/** How many monitors may run at once: in each lane, and in all lanes together per host and per database. */
export type SlotCounts = Readonly<Record<SlotLane | 'host' | 'database', number>>
const units = {
  callers: 'at a time',
  schedule: 'of the schedule at a time',
  host: 'at a time per host',
  database: 'at a time per database',
}
const leastScheduled = 200
/** Each takes a file descriptor. */
const mostScheduled = 4_000
const usual: SlotCounts = { callers: 200, schedule: leastScheduled, host: 4, database: 1 }
/** How many detached monitors may wait for silent peers besides them. */
const maxDetached = { lane: 200, host: 32, database: 32 }

/** The load of a schedule: how many runs of monitors become due a minute, and how long one takes, in milliseconds. */
export type ScheduledLoad = { readonly runsPerMinute: number; readonly runMs: number }

/**
 * The number of slots for a schedule: rate × time is the mean number of runs in progress, and half of the slots remain
 * for runs that take longer. At least 200, at most 4,000.
 */
export function scheduleSlots({ runsPerMinute, runMs }: ScheduledLoad): number {
  const inProgress = (runsPerMinute / 60_000) * runMs
  return Math.min(mostScheduled, Math.max(leastScheduled, Math.ceil(2 * inProgress)))
}

type Holders = { readonly attached: Set<object>; readonly detached: Set<object> }
type Entry = SlotWaiter & { readonly signal: AbortSignal; readonly start: () => void; readonly abort: () => void }

/** Bounds how many monitors run at once: 200 for callers, those of the schedule, 4 per host, 1 per database. */
export class Slots {
  #max: SlotCounts
  readonly #holders: Readonly<Record<SlotKey['scope'], Map<string, Holders>>> = {
    lane: new Map(),
    host: new Map(),
    database: new Map(),
  }
  /** The names of the monitors that hold slots. */
  readonly #names = new Map<object, string>()
  /** Made when something has to wait for the first time, which most commands never see. */
  #waiting: WaitingList<Entry> | undefined
  /** One listener for all entries of a signal, because a signal searches its listeners whenever one comes or goes. */
  readonly #waitingWith = new Map<AbortSignal, { readonly entries: Set<Entry>; readonly abort: () => void }>()
  #arrivals = 0

  constructor(max: Partial<SlotCounts> = {}) {
    this.#max = { ...usual, ...max }
  }

  /** Makes as many slots as a schedule with this load needs. Whoever holds one keeps it. */
  expect(load: ScheduledLoad): void {
    this.#max = { ...this.#max, schedule: scheduleSlots(load) }
    this.#next()
  }

  /** Whether a request that is made now would wait. */
  mustWait({ target, lane = 'callers' }: Pick<SlotRequest, 'target' | 'lane'>): boolean {
    return keysOf(slotsOf(target, lane)).some((key) => this.#isFull(key))
  }

  /** Resolves when the slot is free. Rejects with `NoSlot` when the signal aborts first. */
  take({ target, name, priority = 0, lane = 'callers' }: SlotRequest, signal: AbortSignal): Promise<Slot> {
    const slots = slotsOf(target, lane)
    const keys = keysOf(slots)
    if (signal.aborted) return Promise.reject(new NoSlot('its turn', { cause: signal.reason }))
    if (!keys.some((key) => this.#isFull(key))) return Promise.resolve(this.#occupy(keys, name))
    return new Promise((resolve, reject) => {
      const waitedFor = this.#taken(keys)
      const entry: Entry = {
        ...slots,
        signal,
        priority,
        arrival: this.#arrivals,
        start: () => resolve(this.#occupy(keys, name, waitedFor)),
        abort: () => reject(new NoSlot(this.#taken(keys) ?? waitedFor, { cause: signal.reason })),
      }
      this.#arrivals += 1
      this.#waiting ??= new WaitingList<Entry>((key) => this.#isFull(key))
      this.#waiting.add(entry)
      this.#listen(entry)
    })
  }

  #listen(entry: Entry): void {
    const { signal } = entry
    const existing = this.#waitingWith.get(signal)
    if (existing) {
      existing.entries.add(entry)
      return
    }
    const entries = new Set([entry])
    const abort = (): void => {
      this.#waitingWith.delete(signal)
      for (const one of entries) this.#waiting?.delete(one)
      for (const one of entries) one.abort()
    }
    this.#waitingWith.set(signal, { entries, abort })
    signal.addEventListener('abort', abort, { once: true })
  }

  #begin(entry: Entry): void {
    this.#waiting?.delete(entry)
    const same = this.#waitingWith.get(entry.signal)
    same?.entries.delete(entry)
    if (same?.entries.size === 0) {
      this.#waitingWith.delete(entry.signal)
      entry.signal.removeEventListener('abort', same.abort)
    }
    entry.start()
  }

  #of(key: SlotKey): Holders {
    return entryOf(this.#holders[key.scope], key.name, () => ({ attached: new Set(), detached: new Set() }))
  }

  #mostOf(key: SlotKey): number {
    return this.#max[boundOf(key)]
  }

  #isFull(key: SlotKey): boolean {
    return (this.#holders[key.scope].get(key.name)?.attached.size ?? 0) >= this.#mostOf(key)
  }

  /** Who holds the slots of the first full key: `http a, http b and 2 more (4 monitors at a time per host)`. */
  #taken(keys: readonly SlotKey[]): string | undefined {
    const full = keys.findLast((key) => this.#isFull(key))
    if (!full) return undefined
    const { attached } = this.#of(full)
    const names: string[] = []
    for (const holder of attached) {
      if (names.length === 3) break
      names.push(this.#names.get(holder) ?? '')
    }
    const more = attached.size > 3 ? ` and ${attached.size - 3} more` : ''
    const most = this.#mostOf(full)
    return `${names.join(', ')}${more} (${count(most, 'monitor')} ${units[boundOf(full)]})`
  }

  #occupy(keys: readonly SlotKey[], name: string, waitedFor?: string): Slot {
    const holder = {}
    this.#names.set(holder, name)
    for (const key of keys) this.#of(key).attached.add(holder)
    this.#changed(keys)
    return {
      waitedFor,
      release: () => {
        this.#names.delete(holder)
        for (const key of keys) {
          const { attached, detached } = this.#of(key)
          attached.delete(holder)
          detached.delete(holder)
          if (attached.size + detached.size === 0) this.#holders[key.scope].delete(key.name)
        }
        this.#changed(keys)
        this.#next()
      },
      detach: ({ keepDatabase }) => {
        const freed = keepDatabase ? keys.filter(({ scope }) => scope !== 'database') : keys
        if (freed.some((key) => this.#of(key).detached.size >= maxDetached[key.scope])) return false
        for (const key of freed) {
          const { attached, detached } = this.#of(key)
          if (attached.delete(holder)) detached.add(holder)
        }
        this.#changed(freed)
        this.#next()
        return true
      },
    }
  }

  #changed(keys: readonly SlotKey[]): void {
    for (const key of keys) this.#waiting?.changed(key)
  }

  /** By priority, then first come, first served, among those whose slots are free. */
  #next(): void {
    for (let entry = this.#waiting?.next(); entry; entry = this.#waiting?.next()) this.#begin(entry)
  }
}

type NeededSlots = Pick<SlotWaiter, 'lane' | 'host' | 'database'>
const slotsOf = ({ host, database }: Target, lane: SlotLane): NeededSlots => ({
  lane: { scope: 'lane', name: lane },
  host: host ? { scope: 'host', name: host.toLowerCase() } : undefined,
  database: database ? { scope: 'database', name: database } : undefined,
})
const keysOf = ({ lane, host, database }: NeededSlots): readonly SlotKey[] =>
  [lane, host, database].filter((key) => key !== undefined)

/** The bound that applies to these slots. */
const boundOf = ({ scope, name }: SlotKey): keyof SlotCounts => (scope === 'lane' ? name : scope)

/** Rejects as soon as the signal aborts, even if the promise ignores the signal. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { aborted, clear } = abortOf(signal)
  return Promise.race([promise, aborted]).finally(clear)
}

/** A promise that rejects as soon as the signal aborts, for several waits. `clear` removes the listener. */
export function abortOf(signal: AbortSignal): { readonly aborted: Promise<never>; readonly clear: () => void } {
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => {})
  const abort = (): void => reject(signal.reason as Error)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return { aborted: promise, clear: () => signal.removeEventListener('abort', abort) }
}

/** A signal that aborts with its parent or after `ms`. `clear` removes the timer and the listener. */
export function deadlineSignal(
  parent: AbortSignal,
  ms: number,
): { readonly signal: AbortSignal; readonly clear: () => void } {
  const controller = new AbortController()
  const abort = (): void => controller.abort(parent.reason)
  if (parent.aborted) abort()
  else parent.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(() => controller.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError')), ms)
  return {
    signal: controller.signal,
    clear: () => {
      clearTimeout(timer)
      parent.removeEventListener('abort', abort)
    },
  }
}

/** A monitor of a run that waits for an observation. */
export type Waiter = {
  /** Aborts when the run ends: the waiter leaves. */
  readonly signal: AbortSignal
  /** When its run ends, in monotonic milliseconds. */
  readonly ends: number
  /** Sees each result as soon as it is known, including those from before it joined. */
  readonly observed?: ((result: Result) => void) | undefined
}

/** A value that an observation added to a series, and the monitor that it was made for. */
export type SharedReading = {
  readonly by: string
  readonly series: string
  readonly value: number
  readonly everyMs: number
}

/** The work of an observation. */
export type Underway<W extends Waiter> = {
  /** Rejects for a defect only. Ends soon after the signal of the observation aborts. */
  readonly ended: Promise<void>
  /** The results for one who waits: all of them at the end, those so far when it leaves others behind. */
  readonly view: (waiter: W, hasLeft: boolean) => readonly Result[]
  /** `Observation.whole` */
  readonly whole: () => readonly Result[] | undefined
  /** `Observation.upTo` */
  readonly upTo: (mode: ExecutionMode, ownMs: number) => readonly Result[] | undefined
}

/** One observation, for all who wait for it. It continues until it ends or nobody waits any more. */
export class Observation<W extends Waiter = Waiter> {
  /** Monotonic milliseconds. */
  readonly begunAt: number
  /** When it got its slot. Undefined before that. */
  startedAt: number | undefined
  #endedAt: number | undefined
  /** False once it has less time than others would give it: they then observe for themselves. */
  joinable = true
  /** Whether it waits for its slot. */
  isQueued = false
  readonly readings: SharedReading[] = []
  #nobodyWaits = new AbortController()
  /** Absent once it has ended. */
  #waiters: Set<W> | undefined = new Set()
  readonly #results: Result[] = []
  readonly #underway: Underway<W>
  /** Absent once it has ended. */
  #latest: W | undefined

  constructor(begunAt: number, first: W, observe: (observation: Observation<W>) => Underway<W>) {
    this.begunAt = begunAt
    this.#latest = first
    this.#waiters?.add(first)
    if (first.signal.aborted) this.#nobodyWaits.abort(first.signal.reason)
    this.#underway = observe(this)
  }

  /** Monotonic milliseconds. Undefined while it is under way. */
  get endedAt(): number | undefined {
    return this.#endedAt
  }

  /** It has ended. Its results are kept for long, and what it worked with is not: the runs of those who waited. */
  end(now: number): void {
    this.#endedAt = now
    this.#latest = undefined
    this.#waiters = undefined
    this.#nobodyWaits = this.signal.aborted ? abandoned : completed
  }

  /** Aborts when nobody waits any more. */
  get signal(): AbortSignal {
    return this.#nobodyWaits.signal
  }

  /** Of all who have waited, the one whose run ends last. Throws once it has ended. */
  get latest(): W {
    if (this.#latest === undefined) throw new Error('the observation has ended')
    return this.#latest
  }

  get results(): readonly Result[] {
    return this.#results
  }

  /** Resolves when it ends, for one who does not keep it going. Rejects for a defect only. */
  get ended(): Promise<void> {
    return this.#underway.ended
  }

  /**
   * Once it has ended: the results that a run at a shallower mode would have had, whose time is `ownMs`. Undefined where
   * that is not certain: where anything of this observation came to no verdict, failed other than by a threshold, took
   * longer, or depends on the mode.
   */
  upTo(mode: ExecutionMode, ownMs: number): readonly Result[] | undefined {
    return this.endedAt === undefined ? undefined : this.#underway.upTo(mode, ownMs)
  }

  /** Once it has ended: its results for one who asks later. Undefined where anything cut its time short. */
  whole(): readonly Result[] | undefined {
    return this.endedAt === undefined ? undefined : this.#underway.whole()
  }

  add(results: readonly Result[]): void {
    this.#results.push(...results)
    for (const { observed } of this.#waiters ?? []) if (observed) for (const result of results) observed(result)
  }

  /**
   * The results for one who waits. Whoever leaves while others stay gets those so far. The last one who leaves ends the
   * observation, and gets its results once it has cleaned up.
   */
  async outcome(waiter: W): Promise<readonly Result[]> {
    const { ended, view } = this.#underway
    if (this.endedAt !== undefined) {
      await ended
      if (waiter.observed) for (const result of this.#results) waiter.observed(result)
      return view(waiter, false)
    }
    if (this.#waiters?.has(waiter) !== true) this.#join(waiter)
    const { promise: left, resolve } = Promise.withResolvers<readonly Result[]>()
    const all = ended.then(() => view(waiter, false))
    // At once, and not in a later microtask: whoever ends with the same run must not get the slot of this one first.
    const leave = (): void => {
      this.#waiters?.delete(waiter)
      const continues = this.#waiters !== undefined && this.#waiters.size > 0
      if (this.endedAt === undefined && !continues) this.#nobodyWaits.abort(waiter.signal.reason)
      resolve(continues ? view(waiter, true) : all)
    }
    if (waiter.signal.aborted) leave()
    else waiter.signal.addEventListener('abort', leave)
    try {
      return await Promise.race([all, left])
    } finally {
      waiter.signal.removeEventListener('abort', leave)
      this.#waiters?.delete(waiter)
    }
  }

  #join(waiter: W): void {
    this.#waiters?.add(waiter)
    if (waiter.ends > this.latest.ends) this.#latest = waiter
    if (waiter.observed) for (const result of this.#results) waiter.observed(result)
  }
}

/** The signals of observations that have ended, with somebody who waited and without. */
const completed = new AbortController()
const abandoned = new AbortController()
abandoned.abort()

/** Which observation would serve a monitor. */
export type ObservationRequest = {
  readonly kind: object
  /** Equal for monitors of this kind that observe the same in the same way. */
  readonly key: string
  /** The observation must not have begun before this time, in monotonic milliseconds. */
  readonly notBefore: number
}

type LatestObservation<W extends Waiter> = { readonly observation: Observation<W>; readonly mode: ExecutionMode }

/**
 * The observations of all runs: of each kind and key the latest one, while it is under way and for the life of its
 * results. Their number is bounded by the monitors of svc.yaml.
 */
export class Observations<W extends Waiter = Waiter> {
  readonly #byKind = new WeakMap<object, Map<string, LatestObservation<W>>>()

  /** An observation that may serve in place of a new one. */
  find({ kind, key, notBefore }: ObservationRequest, now: number): Observation<W> | undefined {
    const entry = this.#byKind.get(kind)?.get(key)
    if (!entry || entry.observation.begunAt < notBefore || entry.observation.signal.aborted) return undefined
    const { joinable, endedAt } = entry.observation
    if (endedAt === undefined) return joinable ? entry.observation : undefined
    return now < endedAt + lifeOf(entry.observation.results, entry.mode) ? entry.observation : undefined
  }

  /** The latest observation of a kind and key, whether it may serve or not. */
  latest({ kind, key }: Omit<ObservationRequest, 'notBefore'>): Observation<W> | undefined {
    return this.#byKind.get(kind)?.get(key)?.observation
  }

  /** Makes an observation in this mode available to others. */
  add({ kind, key }: ObservationRequest, observation: Observation<W>, mode: ExecutionMode): void {
    const ofKind = this.#byKind.get(kind) ?? new Map<string, LatestObservation<W>>()
    this.#byKind.set(kind, ofKind)
    ofKind.set(key, { observation, mode })
  }
}

/** Milliseconds for which results count after their end (H8). What had no time of its own says nothing to others. */
export function lifeOf(results: readonly Result[], mode: ExecutionMode): number {
  const hadTime = results.every(({ notChecked: reason }) => reason !== 'starved' && reason !== 'budget')
  if (results.length === 0 || !hadTime) return 0
  return lifeFor(mode, results.some(({ status }) => status === 'failed') ? 'failed' : 'passed')
}

import { type DrillFacts, type Hop, hopsOf, type ReceiverFacts, traceKey } from '../../watch/drill/index.ts'
import type { Delivery, DrillTrace, Notice, Receiver } from '../../watch/notify/index.ts'
import type { OutboxRows } from '../../watch/outbox/index.ts'
import { States, type Transition } from '../../watch/states/index.ts'
import type { NotifyDriver } from '../notify/notify-driver.ts'
import { isFolding } from '../notify/open-receiver.ts'
import { drillDriver, drillNotice } from './drill-driver.ts'

/** Milliseconds, like all times here. */
export type DrillSpans = {
  /** How long the fault must last before it is confirmed. */
  readonly confirmMs: number
  /** How long it remains after that. */
  readonly faultMs: number
  /** How long the end may take to arrive. */
  readonly endMs: number
}

/** A receiver of a drill, opened for it alone. */
export type DrillReceiver = {
  readonly name: string
  readonly receiver: Receiver
  /** The URL that shows that somebody got the message. */
  readonly callback: string | undefined
  /** When that was opened. */
  readonly openedAt: () => number | undefined
}

export type DrillRunOptions = {
  readonly server: string
  readonly by: string
  readonly receivers: readonly DrillReceiver[]
  readonly spans: DrillSpans
  /** Where the outbox of the drill is stored. Absent without a store. */
  readonly rows: OutboxRows | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Why the running svc does not watch as it should. Absent in a command, which does not watch. */
  readonly watching?: (() => string | undefined) | undefined
  readonly log: (entry: { readonly level: 'info' | 'warn'; readonly msg: string }) => void
  readonly signal: AbortSignal
}

/** How often time passes, and how often the fault of the drill is observed. */
const tickMs = 1_000
const observeEveryMs = 5_000
/** How often the hops behind a receiver are queried. */
const lookEveryMs = 5_000
/** Two healthy observations at least this far apart are a recovery. */
const recoverMs = 10_500

/** The monitor of a drill, which no schedule has. */
const key = '/svc/drill'
const check = 'drill'
const monitor = 'svc drill'

/**
 * Takes a fault through confirmation, outbox and receivers, with the classes that svc uses for incidents, but with its
 * own states, outbox and rows: nothing else in svc learns of it, and each receiver is on its own.
 */
export class DrillRun {
  readonly #options: DrillRunOptions
  readonly #states: States
  readonly #ways: readonly Way[]
  #beganAt: number
  #confirmedAt: number | undefined
  #recoveredAt: number | undefined
  #observedAt = Number.NEGATIVE_INFINITY
  #askedAt = Number.POSITIVE_INFINITY
  #isOver = false

  constructor(options: DrillRunOptions) {
    this.#options = options
    this.#beganAt = options.now()
    this.#states = new States(this.#beganAt)
    this.#ways = options.receivers.map((one) => new Way(one, options, this.#states))
    const { confirmMs } = options.spans
    const never = Number.POSITIVE_INFINITY
    const facts = { type: undefined, runsOn: 'machine', dependsOn: [], formerly: [], fingerprint: 'drill' } as const
    const watched = { key, name: monitor, every: { Standard: observeEveryMs }, confirmMs, flapping: never, ...facts }
    this.#states.configure([watched], this.#beganAt)
  }

  /** Runs to the end, or until the signal aborts. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#options
    await Promise.all(this.#ways.map(async (way) => await way.begin()))
    this.#beganAt = this.#options.now()
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const tick = (): void => {
      this.#tick()
      if (this.#isOver || signal.aborted) resolve()
    }
    const timer = setInterval(tick, tickMs)
    signal.addEventListener('abort', () => resolve(), { once: true })
    tick()
    await over
    clearInterval(timer)
    this.#isOver = true
    await Promise.all(this.#ways.map(async (way) => await way.close()))
  }

  /** The current observations. */
  hops(): readonly Hop[] {
    return hopsOf(this.facts())
  }

  facts(): DrillFacts {
    const { watching } = this.#options
    return {
      beganAt: this.#beganAt,
      confirmedAt: this.#confirmedAt,
      recoveredAt: this.#recoveredAt,
      isOver: this.#isOver,
      ...(watching ? { watching: { reason: watching() } } : {}),
      receivers: this.#ways.map((way) => way.facts()),
    }
  }

  #tick(): void {
    const { now, spans } = this.#options
    const at = now()
    if (at - this.#observedAt >= observeEveryMs || at >= this.#askedAt) this.#observe(at)
    this.#carryOut(this.#states.tick(at))
    for (const way of this.#ways) way.tick(at)
    const healsAt = this.#confirmedAt === undefined ? undefined : this.#confirmedAt + spans.faultMs
    const lastAt = (healsAt ?? this.#beganAt + spans.confirmMs + spans.faultMs) + recoverMs + spans.endMs
    const isDone = this.#recoveredAt !== undefined && this.#ways.every((way) => way.isDone())
    if (isDone || at >= lastAt) this.#isOver = true
  }

  #observe(at: number): void {
    const { faultMs } = this.#options.spans
    const isHealed = this.#confirmedAt !== undefined && at - this.#confirmedAt >= faultMs
    this.#observedAt = at
    this.#askedAt = Number.POSITIVE_INFINITY
    const verdict = isHealed
      ? ({ check, level: 'ok', message: 'the drill is over', depth: 'Standard' } as const)
      : ({ check, level: 'warning', message: 'this is a drill: nothing has failed', depth: 'Standard' } as const)
    const run = { key, depth: 'Standard', beganAt: at, endedAt: at, verdicts: [verdict] } as const
    this.#carryOut(this.#states.ran(run, at))
  }

  #carryOut(effects: ReturnType<States['tick']>): void {
    for (const effect of effects) {
      if (effect.type === 'ask') this.#askedAt = Math.min(this.#askedAt, effect.at)
      else if (effect.type === 'transition') this.#follow(effect.transition)
    }
  }

  #follow(transition: Transition): void {
    const at = this.#options.now()
    if (transition.what === 'begin') this.#confirmedAt = at
    if (transition.what === 'end') this.#recoveredAt = at
    for (const way of this.#ways) way.transition(transition)
  }
}

/** The path through one receiver. */
class Way {
  readonly #one: DrillReceiver
  readonly #options: DrillRunOptions
  readonly #states: States
  readonly #trace: DrillTrace | undefined
  #driver: NotifyDriver | undefined
  #incident: string | undefined
  #storeFailure: string | undefined
  #sentAt: number | undefined
  #attempts = 0
  #acceptedAt: number | undefined
  #failure: string | undefined
  #receipt: string | undefined
  #traced: ReceiverFacts['traced'] = []
  readonly #provenAt = new Map<string, number>()
  #isLooking = false
  #isEnding = false
  #lookedAt = Number.NEGATIVE_INFINITY
  #endSent: Delivery | undefined
  #endedAt: number | undefined

  constructor(one: DrillReceiver, options: DrillRunOptions, states: States) {
    this.#one = one
    this.#options = options
    this.#trace = one.receiver.trace?.()
    this.#states = states
  }

  /** Sends what earlier drills could not send, and reads the counters before this drill. */
  async begin(): Promise<void> {
    const { name, receiver, callback } = this.#one
    const { now, server, by, log, rows, signal } = this.#options
    await this.#trace?.begin(signal)
    this.#driver = await drillDriver({
      name,
      receiver,
      folds: isFolding(receiver),
      send: async (notices, stop) => await this.#send(notices, stop),
      rows: rows && this.#watchedRows(rows),
      lookup: (subject) => {
        const state = this.#states.stateOf(subject)
        return state === undefined || state === 'removed' ? 'unknown' : { subject, state, isSilenced: false }
      },
      noticeOf: (item) => drillNotice(server, by, item, callback),
      now,
      log,
    })
  }

  transition(transition: Transition): void {
    if (transition.what === 'end') this.#isEnding = true
    this.#incident ??= transition.incident
    this.#driver?.transition(transition)
  }

  tick(at: number): void {
    if (this.#acceptedAt === undefined || this.#isEnding || !this.#trace) return
    if (this.#isLooking || at - this.#lookedAt < lookEveryMs) return
    void this.#look(this.#trace)
  }

  /** Whether nothing more has to be sent or observed. */
  isDone(): boolean {
    return this.#endedAt !== undefined && !this.#isLooking
  }

  async close(): Promise<void> {
    await this.#driver?.close()
  }

  facts(): ReceiverFacts {
    const { name, callback, openedAt } = this.#one
    return {
      name,
      hasStore: this.#options.rows !== undefined,
      folds: isFolding(this.#one.receiver),
      storeFailure: this.#storeFailure,
      sentAt: this.#sentAt,
      attempts: this.#attempts,
      acceptedAt: this.#acceptedAt,
      failure: this.#failure,
      receipt: this.#receipt,
      traced: this.#traced,
      provenAt: this.#provenAt,
      hasCallback: callback !== undefined,
      openedAt: openedAt(),
      endSent: this.#endSent,
      endedAt: this.#endedAt,
    }
  }

  async #look({ look }: DrillTrace): Promise<void> {
    const { now, signal } = this.#options
    this.#isLooking = true
    this.#lookedAt = now()
    const hops = await look(this.#incident ?? '', signal)
    this.#isLooking = false
    // The end of the alert is not a fault of the path.
    if (this.#isEnding || signal.aborted) return
    this.#traced = hops.length < this.#traced.length ? this.#traced : hops
    for (const hop of hops) {
      const name = traceKey(hop)
      if (hop.result === 'proven' && !this.#provenAt.has(name)) this.#provenAt.set(name, now())
    }
  }

  #watchedRows({ read, write }: OutboxRows): OutboxRows {
    return {
      read,
      write: async (rows) => {
        try {
          await write(rows)
          this.#storeFailure = undefined
        } catch (error) {
          this.#storeFailure = error instanceof Error ? error.message : String(error)
          throw error
        }
      },
    }
  }

  /** Records the outcome of the messages of this drill. */
  async #send(notices: readonly Notice[], signal: AbortSignal): Promise<Delivery> {
    const { now } = this.#options
    const own = notices.filter(({ incident }) => incident === this.#incident)
    const isEnd = own.some(({ endedAt }) => endedAt !== undefined)
    const isBegin = own.length > 0 && !isEnd
    if (isBegin) {
      this.#sentAt ??= now()
      this.#attempts += 1
    }
    const delivery = await this.#one.receiver.send(notices, signal)
    if (signal.aborted) return delivery
    if (isBegin) this.#began(delivery)
    if (isEnd) this.#ended(delivery)
    return delivery
  }

  #began(delivery: Delivery): void {
    if (delivery.what === 'accepted') {
      this.#acceptedAt = this.#options.now()
      this.#receipt = delivery.receipt
    } else this.#failure = delivery.message
  }

  #ended(delivery: Delivery): void {
    this.#endSent = delivery
    if (delivery.what === 'accepted') this.#endedAt = this.#options.now()
  }
}

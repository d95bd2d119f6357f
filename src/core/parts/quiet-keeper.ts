import type { Config } from '../config/index.ts'
import { isStoreFailure } from '../errors.ts'
import {
  acksThatEnd,
  ClockWindows,
  isInForce,
  loudSince,
  type QuietRules,
  type Silence,
  type StateOfSubject,
  type StoredQuiet,
  silencesOf,
  silencesOfMonitors,
} from '../quiet/index.ts'
import type { StoredSubject } from '../states/index.ts'
import type { Actor, KeeperLog, QuietRows } from '../store/index.ts'

/** How often svc reads what others have silenced. Milliseconds. */
const readEveryMs = 3_000
/** How often svc looks whether acknowledged faults are still the same. Milliseconds. */
const tickMs = 1_000

/** What a subject is silent for. */
export type SubjectQuiet = {
  /** The longest first. */
  readonly silences: readonly Silence[]
  /** Since when the fault is no longer the one that somebody acknowledged. */
  readonly loudSince: number | undefined
}

export type QuietStore = {
  readonly rows: () => Promise<QuietRows>
  /** The store's clock, by which everything in it ends. */
  readonly now: () => number
}

/**
 * What is silent: windows of svc.yaml, and entries that the store has. A store that fails changes nothing: what was known
 * stays in force until its time.
 */
export class QuietKeeper {
  readonly #store: QuietStore | undefined
  readonly #now: () => number
  readonly #stateOf: ((subject: StoredSubject) => StateOfSubject) | undefined
  readonly #log: KeeperLog
  readonly #onChange: () => void
  /** Acknowledgements that have ended here, and that the store does not know yet. */
  readonly #ending = new Map<string, NonNullable<StoredQuiet['ended']>>()
  #clock: readonly ClockWindows[]
  #entries: readonly StoredQuiet[] = []
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #failure: string | undefined
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({
    config,
    store,
    now,
    stateOf,
    log = () => {},
    onChange = () => {},
  }: {
    readonly config: Config
    /** Absent without a store: then there is quiet by the clock only. */
    readonly store: QuietStore | undefined
    /** Milliseconds since 1970, for quiet by the clock. */
    readonly now: () => number
    /** Absent where no schedule runs: acknowledgements then end with their time or by hand. */
    readonly stateOf?: ((subject: StoredSubject) => StateOfSubject) | undefined
    readonly log?: KeeperLog | undefined
    /** Called when entries have begun, ended or changed. */
    readonly onChange?: (() => void) | undefined
  }) {
    this.#store = store
    this.#now = now
    this.#stateOf = stateOf
    this.#log = log
    this.#onChange = onChange
    this.#clock = windowsIn(config)
  }

  /** Another svc.yaml. */
  use(config: Config): void {
    this.#clock = windowsIn(config)
    this.#onChange()
  }

  get now(): number {
    // The monotonic clock has fractions, which no store keeps.
    return Math.round(this.#store?.now() ?? this.#now())
  }

  get rules(): QuietRules {
    return { clock: this.#clock, entries: this.#entries }
  }

  /** Whether anything may be silent at all. */
  get isIdle(): boolean {
    return this.#clock.length === 0 && this.#entries.length === 0
  }

  /** Entries in force. */
  get inForce(): readonly StoredQuiet[] {
    const { now } = this
    return this.#entries.filter((entry) => isInForce(entry, now))
  }

  /** Why notifications about one of these monitors wait, whatever its state. */
  ofMonitors(monitors: Parameters<typeof silencesOfMonitors>[0]): readonly Silence[] {
    return this.isIdle ? [] : silencesOfMonitors(monitors, this.rules, this.now)
  }

  /** What a subject is silent for. Ends acknowledgements that no longer apply to it. */
  of(subject: StoredSubject, state: StateOfSubject): SubjectQuiet {
    if (this.isIdle) return { silences: [], loudSince: undefined }
    this.#endAcks(
      this.#entries.filter((entry) => entry.what === 'ack' && isSame(entry.subject, subject)),
      () => state,
    )
    const incident = state === 'removed' ? undefined : state?.incident?.id
    return {
      silences: silencesOf(subject, state, this.rules, this.now),
      loudSince: loudSince(incident, this.#entries),
    }
  }

  /** Reads the entries. Throws the faults of the store. */
  async read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    await this.#reading
  }

  /** Reads the entries from now on again and again. */
  begin(): void {
    this.#timer ??= setInterval(() => void this.#tick(), tickMs)
  }

  async add(entries: readonly StoredQuiet[], actor: Actor): Promise<void> {
    await (await this.#rows()).add(entries, actor)
    this.#take([...this.#entries, ...entries])
  }

  /** Undefined: there is none of this id, or it has ended. */
  async end(id: string, by: string, actor: Actor): Promise<StoredQuiet | undefined> {
    const ended = await (await this.#rows()).end(id, { at: this.now, by, why: 'ended' }, actor)
    if (ended) this.#take(this.#entries.map((entry) => (entry.id === id ? ended : entry)))
    return ended
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  async #rows(): Promise<QuietRows> {
    if (!this.#store) throw new Error('there is no store')
    return await this.#store.rows()
  }

  async #read(): Promise<void> {
    const stored = await (await this.#rows()).list()
    this.#readAt = performance.now()
    this.#take(
      stored.map((entry) => {
        const ended = entry.ended ?? this.#ending.get(entry.id)
        return ended ? { ...entry, ended } : entry
      }),
    )
  }

  #take(entries: readonly StoredQuiet[]): void {
    const isSameAsBefore = JSON.stringify(entries) === JSON.stringify(this.#entries)
    this.#entries = entries
    if (!isSameAsBefore) this.#onChange()
  }

  async #tick(): Promise<void> {
    const stateOf = this.#stateOf
    if (stateOf) this.#endAcks(this.#entries, stateOf)
    if (!this.#store || performance.now() - this.#readAt < readEveryMs) return
    try {
      await this.#storeEndings()
      await this.read()
      this.#failed(undefined)
    } catch (error) {
      if (!this.#isClosed) this.#failed(reasonOf(error))
    }
  }

  #failed(reason: string | undefined): void {
    if (reason === this.#failure) return
    this.#failure = reason
    if (reason !== undefined) this.#log({ level: 'warn', msg: `silences cannot be read: ${reason}` })
  }

  #endAcks(entries: readonly StoredQuiet[], stateOf: (subject: StoredSubject) => StateOfSubject): void {
    const ending = acksThatEnd(entries, stateOf, this.now)
    if (ending.length === 0) return
    const endings = new Map(ending.map(({ entry, why }) => [entry.id, { at: this.now, by: svcItself, why }] as const))
    for (const [id, ended] of endings) this.#ending.set(id, ended)
    this.#take(
      this.#entries.map((entry) => {
        const ended = endings.get(entry.id)
        return ended ? { ...entry, ended } : entry
      }),
    )
  }

  async #storeEndings(): Promise<void> {
    for (const [id, ended] of this.#ending) {
      const actor = { who: svcItself, correlationId: '-', reason: endingReasons[ended.why] }
      await (await this.#rows()).end(id, ended, actor)
      this.#ending.delete(id)
    }
  }
}

/** Who ends what nobody ended. */
const svcItself = '-'

const endingReasons = {
  ended: 'ended by hand',
  over: 'the incident is over',
  worse: 'the fault became worse',
  'other fault': 'the fault became another one',
} as const

const windowsIn = ({ quiet = [] }: Config): readonly ClockWindows[] => quiet.map((one) => new ClockWindows(one))

const isSame = (one: StoredSubject, other: StoredSubject): boolean =>
  one.key === other.key && one.check === other.check && one.item === other.item

/** Defects are reported with their stack. */
const reasonOf = (error: unknown): string =>
  isStoreFailure(error)
    ? (error as Error).message
    : `svc failed unexpectedly: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`

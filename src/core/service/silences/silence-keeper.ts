import { isStoreFailure } from '../../base/errors.ts'
import type { Config } from '../../config/index.ts'
import type { Actor, KeeperLog, SilenceRows } from '../../store/index.ts'
import { machineKey, nodeOfKey, plainKey } from '../../watch/nodes/index.ts'
import {
  acksThatEnd,
  ClockWindows,
  isAbout,
  isInForce,
  lapsedAcks,
  type Silence,
  type SilenceRules,
  type StateOfSubject,
  type StoredSilence,
  silencesOf,
  silencesOfMonitors,
  warningAckedAt,
} from '../../watch/silences/index.ts'
import type { StoredSubject } from '../../watch/states/index.ts'
import { type MonitorName, renamesIn } from '../watch/renames.ts'

/** How often svc reads what other processes have silenced. Milliseconds. */
const readEveryMs = 3_000
/** How often svc checks whether acknowledged faults are still the same. Milliseconds. */
const tickMs = 1_000

/** Why a subject is silenced. */
export type SubjectSilences = {
  /** The longest first. */
  readonly silences: readonly Silence[]
  /** The acknowledgements of its incident that ended because the fault is no longer the same. */
  readonly lapsed: readonly string[]
  /** When a warning was acknowledged, if nothing else silences it. */
  readonly warningAckedAt?: number | undefined
}

export type SilenceStore = {
  readonly rows: () => Promise<SilenceRows>
  /** The clock of the store, by which all of its entries end. */
  readonly now: () => number
}

/**
 * The silences in force: windows of svc.yaml, and entries in the store. While the store fails, nothing changes: the
 * known entries remain in force until their ends.
 */
export class SilenceKeeper {
  readonly #store: SilenceStore | undefined
  readonly #now: () => number
  readonly #stateOf: ((subject: StoredSubject, incident?: string) => StateOfSubject) | undefined
  readonly #log: KeeperLog
  readonly #onChange: () => void
  /** The ids of acknowledgements whose incidents have been in the states of this process. */
  readonly #own = new Set<string>()
  /** Acknowledgements that have ended here but not yet in the store. */
  readonly #ending = new Map<string, NonNullable<StoredSilence['ended']>>()
  #clock: readonly ClockWindows[]
  #renames: ReadonlyMap<string, MonitorName>
  #entries: readonly StoredSilence[] = []
  #rules: SilenceRules = { clock: [], entries: [] }
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #failure: string | undefined
  /** How often this process has changed the store. */
  #writes = 0
  #isBusy = false
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
    /** Absent without a store: then only `silences:` silences. */
    readonly store: SilenceStore | undefined
    /** Milliseconds since 1970, for silences by the clock. */
    readonly now: () => number
    /** Absent if no schedule runs: acknowledgements then end at their time or by hand. */
    readonly stateOf?: ((subject: StoredSubject, incident?: string) => StateOfSubject) | undefined
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
    this.#renames = renamesByKey(config)
  }

  /** Applies another svc.yaml. */
  use(config: Config): void {
    this.#clock = windowsIn(config)
    this.#renames = renamesByKey(config)
    this.#entries = this.#renamed(this.#entries)
    this.#onChange()
  }

  get now(): number {
    // The monotonic clock has fractions, which stores do not keep.
    return Math.round(this.#store?.now() ?? this.#now())
  }

  /** The same object until something changes. */
  get rules(): SilenceRules {
    const { clock, entries } = this.#rules
    if (clock !== this.#clock || entries !== this.#entries) this.#rules = { clock: this.#clock, entries: this.#entries }
    return this.#rules
  }

  /**
   * Whether all entries are known. Until the store has answered once, nobody may conclude that something is not silenced.
   */
  get isComplete(): boolean {
    return this.#store === undefined || Number.isFinite(this.#readAt)
  }

  /** Whether nothing can be silenced: svc.yaml has no windows, and the store no entries. */
  get isIdle(): boolean {
    return this.#clock.length === 0 && this.#entries.length === 0
  }

  /** Entries in force. */
  get inForce(): readonly StoredSilence[] {
    const { now } = this
    return this.#entries.filter((entry) => isInForce(entry, now))
  }

  /** Why notifications about one of these monitors wait, whatever its state. */
  ofMonitors(monitors: Parameters<typeof silencesOfMonitors>[0]): readonly Silence[] {
    return this.isIdle ? [] : silencesOfMonitors(monitors, this.rules, this.now)
  }

  /** Why a subject is silenced. Ends acknowledgements that no longer apply to it. */
  of(subject: StoredSubject, state: StateOfSubject): SubjectSilences {
    if (this.isIdle) return { silences: [], lapsed: [] }
    this.#endAcks(
      this.#entries.filter((entry) => entry.what === 'ack' && isAbout(entry, subject, state)),
      () => state,
    )
    const incident = state === 'removed' ? undefined : state?.incident?.id
    const silences = silencesOf(subject, state, this.rules, this.now)
    return {
      silences,
      lapsed: lapsedAcks(incident, this.#entries),
      warningAckedAt: warningAckedAt(silences, this.#entries),
    }
  }

  /** Reads the entries. Throws the faults of the store. */
  async read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    await this.#reading
  }

  /** Reads the entries regularly from now on. */
  begin(): void {
    this.#timer ??= setInterval(() => void this.#tick(), tickMs)
  }

  async add(entries: readonly StoredSilence[], actor: Actor): Promise<void> {
    await (await this.#rows()).add(entries, actor)
    this.#writes += 1
    const ids = new Set(entries.map(({ id }) => id))
    this.#take([...this.#entries.filter(({ id }) => !ids.has(id)), ...entries])
  }

  /** Undefined: there is no entry with this id, or it has ended. */
  async end(id: string, by: string, actor: Actor): Promise<StoredSilence | undefined> {
    const ended = await (await this.#rows()).end(id, { at: this.now, by, why: 'ended' }, actor)
    this.#writes += 1
    if (ended) this.#take(this.#entries.map((entry) => (entry.id === id ? ended : entry)))
    return ended
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  async #rows(): Promise<SilenceRows> {
    if (!this.#store) throw new Error('there is no store')
    return await this.#store.rows()
  }

  async #read(): Promise<void> {
    const rows = await this.#rows()
    let stored: readonly StoredSilence[]
    let writes: number
    // Entries that this process writes meanwhile may be missing in the list.
    do {
      writes = this.#writes
      stored = await rows.list()
    } while (writes !== this.#writes)
    this.#readAt = performance.now()
    const ids = new Set(stored.map(({ id }) => id))
    for (const id of this.#ending.keys()) if (!ids.has(id)) this.#ending.delete(id)
    for (const id of this.#own) if (!ids.has(id)) this.#own.delete(id)
    this.#take(
      this.#renamed(stored).map((entry) => {
        const ended = entry.ended ?? this.#ending.get(entry.id)
        return ended ? { ...entry, ended } : entry
      }),
    )
  }

  /** Moves the acknowledgements of each renamed monitor to its name in svc.yaml. */
  #renamed(entries: readonly StoredSilence[]): readonly StoredSilence[] {
    if (this.#renames.size === 0) return entries
    return entries.map((entry) => {
      if (entry.what !== 'ack') return entry
      const { key } = entry.subject
      const to = this.#renames.get(plainKey(key))
      if (!to) return entry
      const node = nodeOfKey(key)
      const subject = { type: to.type, monitor: to.name, key: node === undefined ? to.key : machineKey(node, to.key) }
      return { ...entry, subject: { ...entry.subject, ...subject } }
    })
  }

  #take(entries: readonly StoredSilence[]): void {
    if (JSON.stringify(entries) === JSON.stringify(this.#entries)) return
    this.#entries = entries
    this.#onChange()
  }

  async #tick(): Promise<void> {
    const stateOf = this.#stateOf
    if (stateOf) this.#endAcks(this.#entries, stateOf)
    if (!this.#store || this.#isBusy || performance.now() - this.#readAt < readEveryMs) return
    this.#isBusy = true
    // A store that cannot be written can often be read.
    const results = await Promise.allSettled([this.#storeEndings(), this.read()])
    this.#isBusy = false
    const failed = results.find((one) => one.status === 'rejected')
    if (!this.#isClosed) this.#failed(failed && reasonOf(failed.reason))
  }

  #failed(reason: string | undefined): void {
    if (reason === this.#failure) return
    this.#failure = reason
    if (reason !== undefined) this.#log({ level: 'warn', msg: `silences cannot be read or ended: ${reason}` })
  }

  #endAcks(
    entries: readonly StoredSilence[],
    stateOf: (subject: StoredSubject, incident: string) => StateOfSubject,
  ): void {
    for (const entry of entries) {
      if (entry.what !== 'ack') continue
      const state = stateOf(entry.subject, entry.incident)
      if (typeof state === 'object' && state.incident?.id === entry.incident) this.#own.add(entry.id)
    }
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
      // Another process on the same store may have the incident.
      if (ended.why === 'over' && !this.#own.has(id)) continue
      const actor = { who: svcItself, correlationId: '-', reason: endingReasons[ended.why] }
      await (await this.#rows()).end(id, ended, actor)
      this.#writes += 1
      this.#ending.delete(id)
    }
  }
}

/** The actor of ends that no person causes. */
const svcItself = '-'

const endingReasons = {
  ended: 'ended by hand',
  over: 'the incident is over',
  worse: 'the fault became worse',
  'other fault': 'the fault became another one',
} as const

const renamesByKey = (config: Config): ReadonlyMap<string, MonitorName> =>
  new Map(renamesIn(config).map(({ from, to }) => [from, to]))

const windowsIn = ({ silences = [] }: Config): readonly ClockWindows[] => silences.map((one) => new ClockWindows(one))

/** Reports defects with their stack. */
const reasonOf = (error: unknown): string =>
  isStoreFailure(error)
    ? (error as Error).message
    : `svc failed unexpectedly: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`

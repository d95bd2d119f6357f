import { setTimeout as pause } from 'node:timers/promises'
import { count } from '../../base/format.ts'
import { Steady, storePatience } from '../../base/steady.ts'
import type { ExecutionMode, NotSilenced } from '../../protocol/index.ts'
import { type NodeLease, soleNode, type Taken, type Voice } from '../../watch/nodes/index.ts'
import {
  type Delivery,
  type Mute,
  type MuteFailure,
  type Notice,
  type Receiver,
  worstFirst,
} from '../../watch/notify/index.ts'
import {
  isOfReceiver,
  type Lookup,
  type NoticeItem,
  Outbox,
  type OutboxEffect,
  type OutboxRows,
  type ReceiverRules,
  receiverKey,
  type StoredRow,
  withNews,
  withoutSentEnds,
} from '../../watch/outbox/index.ts'
import type { Shift } from '../../watch/schedule/index.ts'
import type { StoredSubject, Transition } from '../../watch/states/index.ts'
import { isFolding } from './open-receiver.ts'
import type { SentWithoutStore } from './sent-without-store.ts'

/** How often time passes for the outbox. Milliseconds. */
const tickMs = 1_000
/** The pause after a write that failed. Milliseconds. */
const retryMs = 1_000
/** How often what stands is repeated to receivers that forget. Milliseconds. */
const renewMs = 30_000
/** How long a message, and a command, wait for the silences of a receiver. Milliseconds. */
const muteWaitMs = 15_000

/** Marks messages that were sent although nothing could be stored: they may come twice, or from several nodes. */
const uncoordinated = 'uncoordinated'

/** An open receiver, and the rules for its messages. */
export type OpenedReceiver = { readonly receiver: Receiver; readonly rules: ReceiverRules }

/** How attempts ended, and what waits. */
export type ReceiverFigures = {
  readonly name: string
  readonly results: { readonly [R in 'accepted' | 'failed' | 'refused' | 'given_up']: number }
  readonly pending: number
  /** Milliseconds since 1970. */
  readonly successAt: number | undefined
}

export type DriverOptions = {
  /** Absent without a store. */
  readonly rows: (() => Promise<OutboxRows>) | undefined
  /** Stores the states first: otherwise, after a kill, an incident goes on that receivers believe to be over. */
  readonly storeStates?: (() => Promise<void>) | undefined
  /** The file of what it sends without the store. Absent: that ends with this process. */
  readonly sentWithoutStore?: SentWithoutStore | undefined
  readonly lookup: Lookup
  /** Default: `soleNode`. */
  readonly lease?: NodeLease | undefined
  /** Asks for a run of a monitor. */
  readonly look: (key: string, depth: ExecutionMode) => void
  /** The message about a subject. `marks`: tags besides those of its monitor. */
  readonly noticeOf: (item: NoticeItem, marks: readonly string[]) => Notice
  /**
   * The silences for a receiver that has silences of its own. Undefined while they are not known: its silences then
   * stay as they are. Absent: none.
   */
  readonly mutes?: ((receiver: string) => readonly Mute[] | undefined) | undefined
  /** How long messages and commands wait for these. Milliseconds; default: 15 s. */
  readonly muteWaitMs?: number | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Milliseconds of a clock that nobody sets. Default: that of the process. */
  readonly steady?: (() => number) | undefined
  /** Whether the watchdog may say that svc watches. */
  readonly isHealthy: () => boolean
  readonly log: (entry: { readonly level: 'info' | 'warn'; readonly msg: string }) => void
}

type Counts = { accepted: number; failed: number; refused: number; given_up: number; successAt: number | undefined }

/**
 * Carries out what the outbox decides: stores rows, sends messages, asks for runs. A message leaves only after its attempt
 * has been stored, unless there is no store.
 */
export class NotifyDriver {
  readonly #options: DriverOptions
  readonly #lease: NodeLease
  readonly #outbox: Outbox
  readonly #stop = new AbortController()
  readonly #dirty = new Map<string, StoredRow>()
  readonly #counts = new Map<string, Counts>()
  readonly #renewedAt = new Map<string, number>()
  readonly #renewing = new Set<string>()
  readonly #muting = new Map<string, Promise<unknown>>()
  readonly #nextMute = new Map<string, Promise<readonly MuteFailure[]>>()
  readonly #notSilenced = new Map<string, string>()
  #receivers = new Map<string, OpenedReceiver>()
  #writing: Promise<boolean> | undefined
  #hasNew = false
  #isRestored = false
  #wasHealthy = false
  #storeFailingSince: number | undefined
  #storeFault: string | undefined
  /** Whether rows are stored, as the log has it. */
  readonly #storing = new Steady(storePatience)
  #timer: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined

  constructor(options: DriverOptions) {
    this.#options = options
    this.#lease = options.lease ?? soleNode
    const { keyOf, isUpToOther } = this.#lease
    this.#outbox = new Outbox(options.now(), options.lookup, keyOf(receiverKey), isUpToOther)
  }

  /** Takes back what an earlier process stored. A store that cannot be read leaves nothing to take back. */
  async restore(): Promise<void> {
    if (!this.#options.rows || this.#lease.isShared) this.#isRestored = true
    try {
      await this.#restoreOnce()
    } catch (error) {
      this.#storeFailed(error)
    }
  }

  async #restoreOnce(): Promise<void> {
    const { rows, sentWithoutStore, now } = this.#options
    if (this.#isRestored || !rows) return
    const stored = new Map((await (await rows()).read()).map((one) => [rowKey(one), one]))
    const sent = (await sentWithoutStore?.rows()) ?? []
    for (const one of sent) {
      const before = stored.get(rowKey(one))?.row
      const row = one.row && (before ? withNews(before, one.row, isOfReceiver(one.subject)) : withoutSentEnds(one.row))
      if (row && row !== before) stored.set(rowKey(one), { ...one, row })
    }
    this.#outbox.restore([...stored.values()], now())
    this.#isRestored = true
    for (const one of sent) {
      const row = stored.get(rowKey(one))
      if (row) this.#dirty.set(rowKey(one), row)
    }
    for (const one of this.#outbox.rows()) this.#dirty.set(rowKey(one), one)
  }

  /** Replaces what it has of these monitors by what is stored. Returns what it had. */
  takeOver({ keys, outbox, states }: Pick<Taken, 'keys' | 'outbox' | 'states'>): readonly StoredRow[] {
    for (const [id, { subject }] of this.#dirty) if (keys.has(subject.key)) this.#dirty.delete(id)
    const before = this.#outbox.takeOver(keys, outbox, this.#options.now())
    // Also an incident that no receiver knows.
    for (const { row, state } of states) if (state.incident) this.#outbox.watch(row)
    return before
  }

  /** The store has lost what it had acknowledged, and has these rows instead. */
  again(stored: readonly StoredRow[]): void {
    void this.#store(this.#outbox.again(stored, this.#options.now()))
  }

  /** The receivers from now on. Returns those of before. */
  use(receivers: readonly OpenedReceiver[]): readonly Receiver[] {
    const before = [...this.#receivers.values()].map(({ receiver }) => receiver)
    this.#receivers = new Map(receivers.map((one) => [one.rules.name, one]))
    const rules = receivers.map((one) => one.rules)
    this.#carryOut(this.#outbox.configure(rules, this.#options.now()))
    return before
  }

  /** Begins to send. `everyMs`: how often time passes. */
  begin(subjects: readonly StoredSubject[], everyMs = tickMs): void {
    if (this.#dirty.size > 0) void this.#store([])
    for (const subject of subjects) this.#outbox.watch(subject)
    this.#timer ??= setInterval(() => this.tick(), everyMs)
  }

  transition(transition: Transition): void {
    if (!this.#stop.signal.aborted) this.#carryOut(this.#outbox.transition(transition, this.#options.now()))
  }

  tick(): void {
    if (this.#stop.signal.aborted) return
    this.#sayStored()
    this.#carryOut(this.#outbox.tick(this.#options.now()).effects)
    const isHealthy = this.#options.isHealthy() && this.#lease.leads()
    // So that the watchdog of the process before does not end at a restart.
    if (isHealthy && !this.#wasHealthy) this.#renewedAt.clear()
    this.#wasHealthy = isHealthy
    for (const [name, one] of this.#receivers) this.#renew(name, one, isHealthy)
  }

  /** The line that people read has shifted. */
  shift(shift: Shift): void {
    const { move, correct } = shift
    for (const { receiver } of this.#receivers.values()) receiver.shifted?.(shift.ms)
    this.#carryOut(this.#outbox.shift(shift))
    for (const [name, at] of this.#renewedAt) this.#renewedAt.set(name, move(at))
    for (const counts of this.#counts.values()) counts.successAt &&= correct(counts.successAt)
    if (this.#storeFailingSince !== undefined) this.#storeFailingSince = move(this.#storeFailingSince)
  }

  /** Brings the silences of receivers up to date. Resolves with the places where that failed. */
  async mute(): Promise<readonly NotSilenced[]> {
    const failures = await Promise.all([...this.#receivers.values()].map(async (one) => await this.#mute(one)))
    return failures.flat()
  }

  figures(): readonly ReceiverFigures[] {
    return [...this.#receivers.keys()].map((name) => {
      const { successAt, ...results } = this.#countsOf(name)
      return { name, results, pending: this.#outbox.pendingFor(name).count, successAt }
    })
  }

  /** Whether rows are stored, and since when the oldest message waits for a receiver. */
  backlog(): { readonly isStored: boolean; readonly waitingSince: number | undefined } {
    const times = [...this.#receivers.keys()].flatMap((name) => this.#outbox.pendingFor(name).since ?? [])
    const waitingSince = times.length === 0 ? undefined : Math.min(...times)
    return { isStored: this.#storeFailingSince === undefined, waitingSince }
  }

  /** From now on nothing is sent: what was not accepted is sent by the next process. */
  cancel(): void {
    this.#stop.abort(new Error('svc is shutting down'))
    clearInterval(this.#timer)
    clearTimeout(this.#retry)
  }

  async close(): Promise<void> {
    this.cancel()
    await this.#writing
    if (this.#dirty.size > 0 && this.#storeFailingSince === undefined) await this.#write()
    for (const { receiver } of this.#receivers.values()) await receiver.close()
  }

  #countsOf(name: string): Counts {
    const counts = this.#counts.get(name) ?? { accepted: 0, failed: 0, refused: 0, given_up: 0, successAt: undefined }
    this.#counts.set(name, counts)
    return counts
  }

  #carryOut(effects: readonly OutboxEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'store') void this.#store(effect.rows)
      else if (effect.type === 'ask') this.#options.look(effect.key, effect.depth)
      else if (effect.type === 'send') void this.#send(effect)
      else if (effect.type === 'given up') this.#gaveUp(effect.receiver, effect.count)
      else this.#log(effect.level, `receiver ${effect.receiver}: ${effect.message}`)
    }
  }

  #gaveUp(receiver: string, ends: number): void {
    this.#countsOf(receiver).given_up += ends
    this.#log(
      'warn',
      `receiver ${receiver}: ${count(ends, 'end of an incident is', 'ends of incidents are')} given up after 7 days`,
    )
  }

  #log(level: 'info' | 'warn', msg: string): void {
    this.#options.log({ level, msg })
  }

  async #send(effect: Extract<OutboxEffect, { type: 'send' }>): Promise<void> {
    const { receiver: name, attempt, message, rows, items } = effect
    const { now, noticeOf } = this.#options
    const wasRestored = this.#isRestored
    const isStored = await this.#store(rows)
    const { signal } = this.#stop
    if (signal.aborted) return
    // With what an earlier process stored, read only now, the receiver may know it already.
    const isOutdated = !wasRestored && this.#isRestored
    const needed: Voice = isStored ? 'coordinated' : 'alone'
    const unstoredMs = isStored ? 0 : this.#unstoredMs
    const may = (): boolean => items.every(({ subject }) => this.#lease.voice(subject.key, unstoredMs) === needed)
    if (isOutdated || !may()) {
      this.#carryOut(this.#outbox.withheld(name, attempt, now()))
      return
    }
    const open = this.#receivers.get(name)
    if (!open) return
    const marks = isStored && this.#options.rows ? [] : [uncoordinated]
    // What begins during a silence must not be loud for the moment until the silence is there.
    await this.#mute(open)
    if (signal.aborted) return
    // The process may have stood still since it stored the attempt, and another node sends by now.
    if (!may()) {
      this.#carryOut(this.#outbox.withheld(name, attempt, now()))
      return
    }
    if (needed === 'alone') {
      await this.#note(name, items, false)
      if (signal.aborted) return
    }
    const made = items.map((item) => noticeOf(item, marks))
    const notices = isFolding(open.receiver) ? worstFirst(made) : made
    const delivery = await sent(() => open.receiver.send(notices, signal, message))
    // A receiver that was interrupted says nothing about itself.
    if (signal.aborted) return
    this.#count(name, delivery)
    if (needed === 'alone' && delivery.what === 'accepted') await this.#note(name, items, true)
    this.#carryOut(this.#outbox.answered(name, attempt, delivery, now()))
  }

  async #note(receiver: string, items: readonly NoticeItem[], isAccepted: boolean): Promise<void> {
    this.#lease.sentAlone()
    if (this.#options.rows) await this.#options.sentWithoutStore?.note(receiver, items, isAccepted)
  }

  #count(name: string, { what }: Delivery): void {
    const counts = this.#countsOf(name)
    if (what === 'accepted') {
      counts.accepted += 1
      counts.successAt = this.#options.now()
    } else if (what === 'later') counts.failed += 1
    else counts.refused += 1
  }

  /** Brings the silences of a receiver up to date, but waits for that only for a while. */
  async #mute({ receiver, rules: { name } }: OpenedReceiver): Promise<readonly NotSilenced[]> {
    if (!receiver.mute) return []
    const { signal } = this.#stop
    const late = { place: receiver.describe().to, message: 'no answer yet: svc goes on trying' }
    const isOver = new AbortController()
    const waited = pause(this.#options.muteWaitMs ?? muteWaitMs, [late], {
      signal: AbortSignal.any([signal, isOver.signal]),
    }).catch((): readonly MuteFailure[] => [])
    const failures = await Promise.race([this.#muteNext(name), waited])
    isOver.abort()
    return failures.map(({ place, message }) => ({ Receiver: name, Place: place, Message: message }))
  }

  /**
   * One call after the other: an older list must not undo a newer one. What waits reads its list when it begins, so that one
   * is enough for all who wait.
   */
  #muteNext(name: string): Promise<readonly MuteFailure[]> {
    const waiting = this.#nextMute.get(name)
    if (waiting) return waiting
    const next = (this.#muting.get(name) ?? Promise.resolve()).then(async () => {
      this.#nextMute.delete(name)
      return await this.#muteNow(name)
    })
    this.#nextMute.set(name, next)
    this.#muting.set(name, next)
    return next
  }

  /** Never rejects. */
  async #muteNow(name: string): Promise<readonly MuteFailure[]> {
    const { signal } = this.#stop
    const receiver = this.#receivers.get(name)?.receiver
    if (!receiver?.mute || signal.aborted) return []
    let failures: readonly MuteFailure[]
    try {
      const mutes = this.#options.mutes ? this.#options.mutes(name) : []
      failures = mutes ? await receiver.mute(mutes, signal) : []
    } catch (error) {
      failures = [{ place: receiver.describe().to, message: defectOf(error) }]
    }
    const text = failures.map(({ place, message }) => `${place}: ${message}`).join('; ')
    if (text !== (this.#notSilenced.get(name) ?? '') && !signal.aborted) {
      this.#notSilenced.set(name, text)
      if (text === '') this.#log('info', `receiver ${name}: its silences are up to date again`)
      else this.#log('warn', `receiver ${name}: its silences are not up to date: ${text}`)
    }
    return failures
  }

  #renew(name: string, open: OpenedReceiver, isHealthy: boolean): void {
    const { receiver } = open
    const { now, noticeOf } = this.#options
    const isDue = now() - (this.#renewedAt.get(name) ?? Number.NEGATIVE_INFINITY) >= renewMs
    const isSilent = this.#lease.voice(this.#lease.keyOf(receiverKey), 0) === 'silent'
    if (!receiver.renew || !isDue || this.#renewing.has(name) || isSilent) return
    this.#renewedAt.set(name, now())
    this.#renewing.add(name)
    const { signal } = this.#stop
    const items = this.#outbox.openFor(name).map((item) => noticeOf(item, []))
    const renew = async (): Promise<Delivery> => {
      await this.#mute(open)
      return (await receiver.renew?.(items, isHealthy, signal)) ?? { what: 'accepted' }
    }
    void sent(renew).then((delivery) => {
      this.#renewing.delete(name)
      if (signal.aborted) return
      if (delivery.what === 'accepted') this.#countsOf(name).successAt = now()
      this.#carryOut(this.#outbox.renewed(name, delivery, now()))
    })
  }

  // The store.

  /** For how long nothing could be stored. */
  get #unstoredMs(): number {
    const { rows, now } = this.#options
    if (!rows) return Number.POSITIVE_INFINITY
    return this.#storeFailingSince === undefined ? 0 : now() - this.#storeFailingSince
  }

  /** Stores rows, with those that could not be stored before. Resolves to whether that succeeded. */
  async #store(rows: readonly StoredRow[]): Promise<boolean> {
    if (!this.#options.rows) return false
    for (const row of rows) this.#dirty.set(rowKey(row), row)
    this.#hasNew = true
    // A write in progress may lack these rows.
    await this.#writing
    if (this.#hasNew || this.#dirty.size > 0) {
      this.#writing ??= this.#write().finally(() => {
        this.#writing = undefined
      })
      return await this.#writing
    }
    return this.#storeFailingSince === undefined
  }

  async #write(): Promise<boolean> {
    this.#hasNew = false
    try {
      await this.#restoreOnce()
      const batch = [...this.#dirty]
      // Without anything to store, a store that failed shows only by a write whether it works again.
      const tries = batch.length > 0 || this.#storeFailingSince !== undefined
      if (tries && !(await this.#writeRows(batch.map(([, row]) => row)))) return false
      for (const [key, row] of batch) if (this.#dirty.get(key) === row) this.#dirty.delete(key)
      this.#storeFailingSince = undefined
      this.#storeFault = undefined
      // Of several nodes, whoever takes over has the store get it.
      if (!this.#lease.isShared && this.#dirty.size === 0) void this.#options.sentWithoutStore?.forget()
      return true
    } catch (error) {
      this.#storeFailed(error)
      return false
    }
  }

  /** False: another node has the lease by now. */
  async #writeRows(batch: readonly StoredRow[]): Promise<boolean> {
    const { rows, storeStates } = this.#options
    if (rows === undefined) return true
    await storeStates?.()
    return await this.#lease.writeOutbox(batch, rows)
  }

  #storeFailed(error: unknown): void {
    this.#storeFault = error instanceof Error ? error.message : String(error)
    this.#storeFailingSince ??= this.#options.now()
    if (this.#stop.signal.aborted) return
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => void this.#store([]), retryMs)
    this.#retry.unref()
  }

  #sayStored(): void {
    const { steady = () => performance.now() } = this.#options
    const news = this.#storing.observe(this.#storeFault, steady())
    if (news?.what === 'failed') this.#log('warn', `notifications are not stored: ${news.why}`)
    else if (news) this.#log('info', 'notifications are stored again')
  }
}

const rowKey = ({ receiver, subject: { key, check, item } }: StoredRow): string =>
  JSON.stringify([receiver, key, check, item])

/** Receivers never reject; a defect of one must not end svc. */
async function sent(send: () => Promise<Delivery>): Promise<Delivery> {
  try {
    return await send()
  } catch (error) {
    return { what: 'later', message: defectOf(error), isPerhapsReceived: true }
  }
}

const defectOf = (error: unknown): string =>
  `svc failed unexpectedly: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`

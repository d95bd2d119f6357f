import { entryOf } from '../../base/lazy.ts'
import type { Delivery } from '../notify/index.ts'
import { hash, type Shift } from '../schedule/index.ts'
import {
  type Effect,
  type Incident,
  type KeyedMonitor,
  type StoredSubject,
  subjectId,
  subjectOf,
  type Transition,
} from '../states/index.ts'
import {
  brokenMs,
  firstPauseMs,
  foldMs,
  lookAtMostMs,
  lookEveryMs,
  maxPauseMs,
  maxRetryAfterMs,
  messageEveryMs,
  refusedEveryMs,
  withheldMs,
} from './policy.ts'
import {
  aboutIn,
  afterAccepted,
  afterFailure,
  type DueMessage,
  dueFor,
  type End,
  emptyRow,
  isEmpty,
  isFresh,
  isTellingEnds,
  isWell,
  joinedRow,
  messagesIn,
  nameIn,
  newsIn,
  type OutboxRow,
  type Present,
  type ReceiverRules,
  readRow,
  renamedPart,
  renamedRow,
  restoredRow,
  type SentPart,
  shiftedRow,
  shiftedWord,
  stampOf,
  toldAt,
  unansweredIn,
  type Word,
  waitingSince,
  withEnd,
  withLostEnd,
  withLostName,
  withNews,
  withoutEnded,
  withoutLine,
  withoutOldEnds,
  withoutToldEnds,
  withWaitingEnds,
  wordOf,
} from './row.ts'

/** A row as it is stored. Undefined: it says nothing any more. */
export type StoredRow = {
  readonly receiver: string
  readonly subject: StoredSubject
  readonly row: OutboxRow | undefined
}

/** Where rows are stored. Every method may throw the faults of a store. */
export type OutboxRows = {
  readonly read: () => Promise<readonly StoredRow[]>
  /** One transaction. */
  readonly write: (rows: readonly StoredRow[]) => Promise<void>
}

/** One line of a message, without what only the sender knows of the subject. */
export type NoticeItem = {
  /** Stable over retries of the same state. */
  readonly id: string
  readonly subject: StoredSubject
  /** The name by which the receiver knows the monitor. Absent: the present one. */
  readonly as?: KeyedMonitor | undefined
  readonly what: DueMessage['what'] | 'end' | 'removed'
  readonly level: 'warning' | 'failed'
  readonly before?: 'warning' | 'failed' | undefined
  readonly incident: string
  readonly beganAt: number
  readonly endedAt?: number | undefined
  readonly observedAt: number
  readonly fault?: string | undefined
  readonly text: string
  /** The stamp of the message of the incident before this one. Absent: none. */
  readonly lastStamp?: number | undefined
}

/** The actions that a driver carries out. */
export type OutboxEffect =
  | { readonly type: 'store'; readonly rows: readonly StoredRow[] }
  /** Store the rows, then send the items, then report the outcome to `answered`; or to `withheld` if it cannot store. */
  | {
      readonly type: 'send'
      readonly receiver: string
      readonly attempt: number
      /** The id of the message: the same in each attempt, of which the later ones have no other lines. */
      readonly message: string
      readonly rows: readonly StoredRow[]
      readonly items: readonly NoticeItem[]
    }
  /** Run a monitor: a message needs to know how it is now. */
  | Pick<Extract<Effect, { type: 'ask' }>, 'type' | 'key' | 'depth'>
  | { readonly type: 'log'; readonly level: 'info' | 'warn'; readonly receiver: string; readonly message: string }
  /** Ends that nobody accepted for too long. */
  | { readonly type: 'given up'; readonly receiver: string; readonly count: number }

/** How a subject is now. `removed`: it no longer exists. `unknown`: nothing is known of it yet. */
export type Lookup = (subject: StoredSubject) => Present | 'removed' | 'unknown'

export type OutboxStep = {
  readonly effects: readonly OutboxEffect[]
  /** When the next tick is due if nothing happens before. */
  readonly nextAt: number
}

type Part = SentPart & { readonly id: string; readonly items: readonly NoticeItem[] }
type Sending = { readonly attempt: number; readonly message: string; readonly parts: readonly Part[] }
type Address = {
  rules: ReceiverRules
  readonly rows: Map<string, OutboxRow>
  sending: Sending | undefined
  nextTryAt: number
  failures: number
  failingSince: number | undefined
  failure: string
  /** Since when it has an incident of its own, and the id of that. */
  brokenSince: number | undefined
  brokenAs: string
  /** The instant that the id of its latest incident follows from. */
  brokenNamedAt: number
  /** When it last accepted a message, or gave no answer to one, as far as this process or its rows know. */
  messageAt: number
  /** Whether the last attempt sent a message again: what is new has its turn then. */
  isAgain: boolean
  /** Rows that it refuses, and until when they wait. */
  readonly refused: Map<string, number>
  pending: number
  /** Since when the oldest message waits. */
  pendingSince: number | undefined
}
type Candidate = {
  readonly id: string
  readonly row: OutboxRow
  readonly present: Present | undefined
  readonly due: DueMessage | undefined
  /** Whether it may be sent now. Otherwise its verdict is too old. */
  readonly isReady: boolean
}
/** The lines of a message that is about to be sent. `ends`: those of a row that it contains. */
type Lines = readonly (Candidate & { readonly ends: readonly End[] })[]
/** Without an id, it is a new one. */
type Message = { readonly id?: string; readonly lines: Lines }

/** The key of what svc says of its own receivers. */
export const receiverKey = '/svc/receivers'
/** Whether only the process that says it knows how the subject is. */
export const isOfReceiver = ({ key }: StoredSubject): boolean => key.endsWith(receiverKey)
/** The text of the end of such an incident. */
export const worksAgain = 'it accepts messages again'

/**
 * The state of each incident at each receiver, and the next messages. Decides over time and has none of its own: no
 * clock, no timer, no randomness, no store and no network. A tick takes time in proportion to the incidents that stand
 * and the rows that wait.
 */
export class Outbox {
  readonly #lookup: Lookup
  readonly #subjects = new Map<string, StoredSubject>()
  readonly #addresses = new Map<string, Address>()
  /** Rows of receivers that are not configured yet. */
  readonly #orphans = new Map<string, Map<string, OutboxRow>>()
  /** Since when svc waits for a verdict, and when it last asked for one. */
  readonly #looks = new Map<string, { readonly since: number; at: number }>()
  #now: number
  #attempts = 0
  #nextAt = Number.POSITIVE_INFINITY
  #effects: OutboxEffect[] = []
  #changes = new Map<string, StoredRow>()
  /** The rows that were taken over and that the next step is to store. */
  #taken = new Map<string, StoredRow>()

  readonly #receiverKey: string
  readonly #isShared: boolean
  readonly #isUpToOther: (key: string) => boolean

  /**
   * `ownKey`: the key of what this process says of its receivers, another one where several nodes store what they told together.
   * Each then has rows of some subjects only, and keeps those of receivers that other nodes know. `isUpToOther`: whether
   * another process speaks of a monitor now. What is due about it waits, and holds nothing else up.
   */
  constructor(now: number, lookup: Lookup, ownKey = receiverKey, isUpToOther: (key: string) => boolean = () => false) {
    this.#now = now
    this.#lookup = lookup
    this.#receiverKey = ownKey
    this.#isShared = ownKey !== receiverKey
    this.#isUpToOther = isUpToOther
  }

  /**
   * Takes back what was stored. To be called before `configure`, which forgets the rows of other receivers; or, if the
   * store did not answer then, as soon as it does.
   */
  restore(rows: readonly StoredRow[], now: number): void {
    for (const { receiver, subject, row } of rows) {
      if (!row) continue
      const id = subjectId(subject)
      const address = this.#addresses.get(receiver)
      const own = address?.rows ?? this.#orphans.get(receiver) ?? new Map<string, OutboxRow>()
      const since = own.get(id)
      const restored = restoredRow(row, now)
      own.set(id, since ? withNews(withoutEnded(restored, since.ends), since) : restored)
      if (!address) this.#orphans.set(receiver, own)
      else address.messageAt = Math.max(address.messageAt, toldAt(restored))
      this.#subjects.set(id, subject)
    }
  }

  /** The rows of the subjects of these monitors are those that are stored. Returns what was known of them. */
  takeOver(keys: ReadonlySet<string>, stored: readonly StoredRow[], now: number): readonly StoredRow[] {
    const before = this.#release(keys)
    for (const { receiver, subject, row } of stored) {
      if (!row) continue
      const id = subjectId(subject)
      const address = this.#addresses.get(receiver)
      const rows = address?.rows ?? this.#orphans.get(receiver) ?? new Map<string, OutboxRow>()
      if (!address) this.#orphans.set(receiver, rows)
      const own = readRow(row, now)
      rows.set(id, own)
      this.#subjects.set(id, subjectOf(subject))
      // Noted by the membership, and not stored yet.
      if (own.isInDoubt) this.#taken.set(`${receiver} ${id}`, { receiver, subject: subjectOf(subject), row: own })
    }
    for (const { rows } of this.#addresses.values()) for (const row of rows.values()) forgetTold(rows, row)
    return before
  }

  #release(keys: ReadonlySet<string>): readonly StoredRow[] {
    const out: StoredRow[] = []
    const all = [...[...this.#addresses].map(([name, { rows }]) => [name, rows] as const), ...this.#orphans]
    for (const [id, subject] of this.#subjects) {
      if (!keys.has(subject.key)) continue
      for (const [receiver, rows] of all) {
        const row = rows.get(id)
        if (row) out.push({ receiver, subject, row })
        rows.delete(id)
        this.#taken.delete(`${receiver} ${id}`)
      }
      for (const { refused } of this.#addresses.values()) refused.delete(id)
      this.#drop(id)
    }
    for (const address of this.#addresses.values()) this.#leaveToOthers(address)
    return out
  }

  /** If another node sends what could not be sent from here, nobody tries any more whether the receiver works from here. */
  #leaveToOthers(address: Address): void {
    const isWaiting = ({ last, attempt, need, ends }: OutboxRow): boolean =>
      ends.length > 0 || attempt !== undefined || (need !== undefined && last === undefined)
    if ([...address.rows.values()].some(isWaiting)) return
    address.failingSince = undefined
    address.brokenSince = undefined
    address.failures = 0
  }

  /**
   * The rows to write to a store that has lost some and has these now. Rows that other nodes have handed over since
   * then are taken over.
   */
  again(stored: readonly StoredRow[], now: number): readonly StoredRow[] {
    for (const { receiver, subject, row } of stored) {
      const rows = this.#addresses.get(receiver)?.rows
      const id = subjectId(subject)
      const own = rows?.get(id) ?? emptyRow
      const news = row && newsIn(readRow(row, now), own)
      if (!rows || !news || isEmpty(news)) continue
      rows.set(id, withNews(own, news))
      this.#subjects.set(id, subjectOf(subject))
      forgetTold(rows, news)
    }
    const rows = this.rows()
    const names = new Set(rows.map(({ receiver, subject }) => `${receiver} ${subjectId(subject)}`))
    const over = stored.filter(({ receiver, subject }) => !names.has(`${receiver} ${subjectId(subject)}`))
    return [...rows, ...over.map((one) => ({ ...one, row: undefined }))]
  }

  /** All rows that say something: others have no place in the store. */
  rows(): readonly StoredRow[] {
    return [...this.#addresses].flatMap(([receiver, { rows }]) =>
      [...rows].flatMap(([id, row]): readonly StoredRow[] => {
        const subject = this.#subjects.get(id)
        return subject && !isEmpty(row) ? [{ receiver, subject, row }] : []
      }),
    )
  }

  /** The receivers from now on. What they refused, or had no answer for, is tried at once. */
  configure(receivers: readonly ReceiverRules[], now: number): readonly OutboxEffect[] {
    return this.#during(now, () => {
      const names = new Set(receivers.map(({ name }) => name))
      for (const [name, { rows }] of this.#addresses) {
        if (names.has(name)) continue
        this.#forget(name, rows)
        this.#addresses.delete(name)
      }
      for (const rules of receivers) {
        const address = this.#addresses.get(rules.name) ?? this.#address(rules)
        address.rules = rules
        address.nextTryAt = now
        address.refused.clear()
      }
      for (const [name, rows] of this.#orphans) {
        if (names.has(name)) this.#orphans.delete(name)
        else if (!this.#isShared) this.#forget(name, rows)
      }
      if (!this.#isShared) this.#orphans.clear()
      this.#restoreBroken(names)
    }).effects
  }

  /** The line that people read has shifted. Nothing is due earlier or later by that, and rows are stored with their new times. */
  shift(shift: Shift): readonly OutboxEffect[] {
    const { move } = shift
    const moved = (at: number | undefined): number | undefined => (at === undefined ? undefined : move(at))
    // What was sent is recognized in its row.
    const words = new Map<Word, Word>()
    const ofRow = (row: OutboxRow): OutboxRow => shiftedRow(row, shift, words)
    this.#now = move(this.#now)
    for (const [id, { since, at }] of this.#looks) this.#looks.set(id, { since: move(since), at: move(at) })
    for (const rows of this.#orphans.values()) for (const [id, row] of rows) rows.set(id, ofRow(row))
    for (const [name, one] of this.#taken) this.#taken.set(name, { ...one, row: one.row && ofRow(one.row) })
    return this.#during(this.#now, () => {
      for (const address of this.#addresses.values()) {
        for (const id of address.rows.keys()) this.#change(address, id, ofRow)
        address.sending &&= {
          ...address.sending,
          parts: address.sending.parts.map((part) => ({
            ...part,
            word: part.word && shiftedWord(part.word, shift, words),
            before: ofRow(part.before),
          })),
        }
        address.nextTryAt = move(address.nextTryAt)
        address.failingSince = moved(address.failingSince)
        address.brokenSince = moved(address.brokenSince)
        address.messageAt = move(address.messageAt)
        address.pendingSince = moved(address.pendingSince)
        for (const [id, until] of address.refused) address.refused.set(id, move(until))
      }
    }).effects
  }

  /** Something happened to a subject. */
  transition({ what, incident, at, message, goesOnAs, ...subject }: Transition, now: number): readonly OutboxEffect[] {
    return this.#during(now, () => {
      const row = subjectOf(subject)
      this.watch(row)
      if (goesOnAs) this.#joinOther(row, goesOnAs)
      if (incident === undefined || (what !== 'end' && what !== 'removed' && what !== 'observed')) return
      const present = this.#lookup(row)
      if (typeof present === 'object' && present.state.incident?.id === incident) return
      this.#joinFormer(new Map([[incident, row]]))
      this.#end(row, { incident, what: what === 'removed' ? 'removed' : 'end', endedAt: at, text: message })
    }).effects
  }

  /** A subject has an incident, so that ticks look at it. */
  watch(subject: StoredSubject): void {
    this.#subjects.set(subjectId(subject), subjectOf(subject))
  }

  /** To be called when `nextAt` is reached, and after anything has changed. */
  tick(now: number): OutboxStep {
    return this.#during(now, () => {
      const all = [...this.#subjects].map(([id, subject]) => [id, this.#presentOf(subject)] as const)
      const presents = new Map(all.flatMap(([id, one]) => (typeof one === 'object' ? [[id, one] as const] : [])))
      const open = [...presents.values()].flatMap(({ subject, state: { incident } }) =>
        incident ? [[incident.id, subject] as const] : [],
      )
      this.#joinFormer(new Map(open))
      this.#joinRemoved(all, presents)
      for (const [id, present] of all) this.#follow(id, present)
      const unknown = new Set(all.flatMap(([id, one]) => (one === 'unknown' ? [id] : [])))
      for (const address of this.#addresses.values()) this.#advance(address, presents, unknown)
      for (const address of this.#addresses.values()) this.#noteBroken(address)
    })
  }

  /** How an attempt ended. One that is not in progress any more counts for nothing. */
  answered(receiver: string, attempt: number, delivery: Delivery, now: number): readonly OutboxEffect[] {
    const address = this.#addresses.get(receiver)
    const sending = address?.sending
    if (!address || sending?.attempt !== attempt) return []
    return this.#during(now, () => {
      address.sending = undefined
      if (delivery.what === 'accepted') this.#accepted(address, sending.parts)
      else if (delivery.what === 'later') this.#failed(address, sending, delivery)
      else this.#refused(address, sending, delivery)
    }).effects
  }

  /** Takes the outcome after the incidents that stand were repeated to a receiver that forgets. */
  renewed(receiver: string, delivery: Delivery, now: number): readonly OutboxEffect[] {
    const address = this.#addresses.get(receiver)
    if (!address) return []
    return this.#during(now, () => {
      if (delivery.what === 'accepted') this.#works(address)
      else this.#fails(address, delivery.message)
    }).effects
  }

  /** An attempt was not made, because it could not be stored. */
  withheld(receiver: string, attempt: number, now: number): readonly OutboxEffect[] {
    const address = this.#addresses.get(receiver)
    if (!address || address.sending?.attempt !== attempt) return []
    const { parts } = address.sending
    return this.#during(now, () => {
      address.sending = undefined
      address.nextTryAt = now + withheldMs
      for (const part of parts) this.#change(address, part.id, (row) => afterFailure(row, part, false))
    }).effects
  }

  /** The incidents that stand and that the receiver knows, for a receiver that forgets. */
  openFor(receiver: string): readonly NoticeItem[] {
    const address = this.#addresses.get(receiver)
    if (!address) return []
    // What is about to leave is not known yet: it may have to wait for the store.
    const leaving = new Map((address.sending?.parts ?? []).map(({ id, before }) => [id, before]))
    return [...address.rows].flatMap(([id, row]) => {
      const subject = this.#subjects.get(id)
      const present = subject && this.#presentOf(subject)
      const { last, attempt } = leaving.get(id) ?? row
      const isKnown = attempt !== undefined || (last !== undefined && !last.isOver)
      if (typeof present !== 'object' || !present.state.incident || !isKnown) return []
      return itemsOf(present, { ends: [], row, due: { what: 'reminder', needsVerdict: false } })
    })
  }

  /** How many messages wait for a receiver, as of the last tick, and since when the oldest of them does. */
  pendingFor(receiver: string): { readonly count: number; readonly since: number | undefined } {
    const address = this.#addresses.get(receiver)
    return { count: address?.pending ?? 0, since: address?.pendingSince }
  }

  // Each call of the table collects its effects.

  #during(now: number, work: () => void): OutboxStep {
    this.#now = Math.max(this.#now, now)
    this.#effects = []
    this.#changes = this.#taken
    this.#taken = new Map()
    this.#nextAt = Number.POSITIVE_INFINITY
    work()
    const rows = [...this.#changes.values()]
    const store: readonly OutboxEffect[] = rows.length > 0 ? [{ type: 'store', rows }] : []
    return { effects: [...store, ...this.#effects], nextAt: this.#nextAt }
  }

  #wakeAt(at: number): void {
    if (at > this.#now) this.#nextAt = Math.min(this.#nextAt, at)
  }

  #address(rules: ReceiverRules): Address {
    const rows = this.#orphans.get(rules.name) ?? new Map<string, OutboxRow>()
    const address: Address = {
      rules,
      rows,
      sending: undefined,
      nextTryAt: this.#now,
      failures: 0,
      failingSince: undefined,
      failure: '',
      brokenSince: undefined,
      brokenAs: '',
      brokenNamedAt: Number.NEGATIVE_INFINITY,
      messageAt: Math.max(...[...rows.values()].map(toldAt)),
      isAgain: false,
      refused: new Map(),
      pending: 0,
      pendingSince: undefined,
    }
    this.#addresses.set(rules.name, address)
    return address
  }

  #forget(receiver: string, rows: ReadonlyMap<string, OutboxRow>): void {
    for (const id of rows.keys()) {
      const subject = this.#subjects.get(id)
      if (subject) this.#changes.set(`${receiver} ${id}`, { receiver, subject, row: undefined })
    }
  }

  #change(address: Address, id: string, change: (row: OutboxRow) => OutboxRow): OutboxRow {
    const before = address.rows.get(id) ?? emptyRow
    const changed = change(before)
    const subject = this.#subjects.get(id)
    if (changed === before || !subject) return changed
    const row = withWaitingEnds(changed, this.#now)
    if (isEmpty(row)) address.rows.delete(id)
    else address.rows.set(id, row)
    const receiver = address.rules.name
    this.#changes.set(`${receiver} ${id}`, { receiver, subject, row: isEmpty(row) ? undefined : row })
    return row
  }

  #end(subject: StoredSubject, end: Parameters<typeof withEnd>[1]): void {
    const id = subjectId(subject)
    for (const address of this.#addresses.values()) {
      const before = address.rows.get(id)
      if (!before) continue
      const row = this.#change(address, id, (own) => withEnd(own, end))
      if (row !== before && row.ends.length === before.ends.length)
        this.#effects.push({ type: 'given up', receiver: address.rules.name, count: 1 })
    }
  }

  #presentOf(subject: StoredSubject): ReturnType<Lookup> {
    return subject.key === this.#receiverKey ? this.#receiverAsPresent(subject) : this.#lookup(subject)
  }

  /** Rows follow the state of a subject where no transition did. */
  #follow(id: string, present: ReturnType<Lookup>): void {
    let isUsed = false
    for (const address of this.#addresses.values()) {
      const { rows } = address
      if (!rows.has(id)) continue
      const row = this.#change(address, id, (before) => this.#followed(before, present))
      isUsed ||= !isEmpty(row)
    }
    const isOver = present === 'removed' || (present !== 'unknown' && present.state.incident === undefined)
    if (!isUsed && isOver) this.#drop(id)
  }

  /** Moves what receivers know of an incident to the present name of its monitor. `open`: subjects by their incidents. */
  #joinFormer(open: ReadonlyMap<string, StoredSubject>): void {
    for (const address of this.#addresses.values()) {
      for (const [former, row] of address.rows) {
        const about = aboutIn(row)
        const name = this.#subjects.get(former)
        const subject = about && open.get(about.incident)
        if (!subject || !name || subjectId(subject) === former) continue
        const { incident, beganAt } = about
        this.#move(address, name, subject, (own, moved) => joinedRow(own, moved, { id: incident, beganAt }))
      }
    }
  }

  /** Receivers get the end of an incident with that of the same fault, which goes on under another name of its monitor. */
  #joinOther(former: StoredSubject, subject: StoredSubject): void {
    this.watch(subject)
    for (const address of this.#addresses.values()) {
      if (!address.rows.has(subjectId(former))) continue
      this.#move(address, former, subject, withNews)
    }
  }

  /**
   * Joins what a node without the store told under a former name, and handed over later, with the incident that goes on under
   * the present one: receivers know both by the former name, and must not believe that the subject no longer exists.
   */
  #joinRemoved(all: Iterable<readonly [string, ReturnType<Lookup>]>, presents: ReadonlyMap<string, Present>): void {
    for (const [id, one] of all) {
      const former = one === 'removed' ? this.#subjects.get(id) : undefined
      if (!former) continue
      const { key, check, item } = former
      const heir = [...presents.values()].find(
        ({ subject, state: { incident } }) =>
          subject.check === check && subject.item === item && incident?.formerly?.some((name) => name.key === key),
      )
      if (heir) this.#joinOther(former, heir.subject)
    }
  }

  /** Moves a row, and what is on its way of it, to the present name of its monitor. */
  #move(
    address: Address,
    name: StoredSubject,
    subject: StoredSubject,
    join: (own: OutboxRow, moved: OutboxRow) => OutboxRow,
  ): void {
    const [former, id] = [subjectId(name), subjectId(subject)]
    const parts = new Map<object, object>()
    const moved = renamedRow(address.rows.get(former) ?? emptyRow, name, parts)
    this.#change(address, former, () => emptyRow)
    this.#change(address, id, (own) => join(own, moved))
    address.sending &&= {
      ...address.sending,
      parts: address.sending.parts.map((part) =>
        part.id === former
          ? {
              ...part,
              id,
              ends: part.ends.map((end) => renamedPart(end, name, parts)),
              word: part.word && renamedPart(part.word, name, parts),
              before: renamedRow(part.before, name, parts),
            }
          : part,
      ),
    }
  }

  #drop(id: string): void {
    this.#subjects.delete(id)
    this.#looks.delete(id)
  }

  #followed(row: OutboxRow, present: ReturnType<Lookup>): OutboxRow {
    const about = aboutIn(row)
    if (!about || present === 'unknown') return row
    const { incident } = about
    const now = this.#now
    if (present === 'removed')
      return withEnd(row, { incident, what: 'removed', endedAt: now, text: 'it no longer exists' })
    const current = present.state.incident
    // Nobody would be told that a victim still fails: the end of what was sent before waits until it has recovered or is
    // told again. A node without the store may have sent it as a fault of its own.
    if (current?.cause !== undefined) return row
    if (current) return withLostName(withLostEnd(row, current), present, current, now)
    if (present.needsNoVerdict || isWell(present, (row.attempt ?? row.last)?.observedAt ?? about.beganAt)) {
      const { latest, message } = present.state
      return withEnd(row, { incident, what: 'end', endedAt: latest?.since ?? now, text: message })
    }
    return row
  }

  /** Sends what a receiver has to know, if it is time. */
  #advance(address: Address, presents: ReadonlyMap<string, Present>, unknown: ReadonlySet<string>): void {
    const candidates: Candidate[] = []
    address.pending = 0
    address.pendingSince = undefined
    const isPending = (since: number): void => {
      address.pending += 1
      address.pendingSince = Math.min(address.pendingSince ?? since, since)
    }
    for (const [id, before] of address.rows) {
      const row = this.#change(address, id, (own) => withoutOldEnds(own, this.#now))
      const lost = before.ends.length - row.ends.length
      if (lost > 0) this.#effects.push({ type: 'given up', receiver: address.rules.name, count: lost })
      for (const { endedAt } of row.ends) isPending(endedAt)
      // Nobody must believe that it is well before anything is known of it.
      const endsWait = row.isInDoubt === true && unknown.has(id)
      if (row.ends.length > 0 && !presents.has(id) && !endsWait)
        candidates.push({ id, row, present: undefined, due: undefined, isReady: true })
    }
    for (const [id, present] of presents) {
      const due = this.#dueAt(address, id, present)
      if (due) isPending(address.rows.get(id)?.need?.since ?? this.#now)
      const isReady =
        due !== undefined && !this.#isUpToOther(present.subject.key) && this.#maySend(address, id, present, due)
      const row = address.rows.get(id) ?? emptyRow
      // Nobody must believe meanwhile that it is well.
      const endsWait = due !== undefined && row.isInDoubt === true
      if (due || (row.ends.length > 0 && !endsWait))
        candidates.push({ id, row, present, due, isReady: isReady || !due })
    }
    this.#send(
      address,
      this.#next(
        address,
        candidates.filter(
          ({ id }) => !this.#isRefused(address, id) && !this.#isUpToOther(this.#subjects.get(id)?.key ?? ''),
        ),
        unknown,
      ),
    )
  }

  /**
   * The next message: one without an answer, with the lines that still hold, or what is new. They take turns, so that a
   * receiver that never answers gets both. One with a line of which nothing is known waits: sent without that line, it would
   * leave the line to another message. Empty: none, or not yet.
   */
  #next({ rules, rows, isAgain }: Address, candidates: readonly Candidate[], unknown: ReadonlySet<string>): Message {
    const again = new Map<string, Lines[number][]>()
    const added: Lines[number][] = []
    for (const one of candidates) {
      const { row, present, due } = one
      const part = rules.folds ? unansweredIn(row, { due, incident: present?.state.incident }) : undefined
      if (part)
        entryOf(again, part.message, (): Lines[number][] => []).push({
          ...one,
          ...part,
          due: part.hasWord ? due : undefined,
        })
      const isWordNew = due !== undefined && one.isReady && !part?.hasWord
      const ends = row.isInDoubt && due && !one.isReady ? [] : row.ends.filter((end) => !part?.ends.includes(end))
      // What precedes it is sent first.
      const waits = part !== undefined && part.ends.length > 0
      if (!waits && (isWordNew || ends.length > 0)) added.push({ ...one, ends, due: isWordNew ? due : undefined })
    }
    for (const id of unknown) for (const message of messagesIn(rows.get(id))) again.delete(message)
    const [first] = again
    if (!first || (isAgain && added.length > 0)) return { lines: added }
    const [id, lines] = first
    return { id, lines: lines.every(({ due, isReady }) => isReady || !due) ? lines : [] }
  }

  #isRefused({ refused }: Address, id: string): boolean {
    const until = refused.get(id)
    if (until === undefined) return false
    this.#wakeAt(until)
    if (until > this.#now) return true
    refused.delete(id)
    return false
  }

  /** The message that is due to a receiver about an incident that stands. */
  #dueAt(address: Address, id: string, present: Present): DueMessage | undefined {
    const { rules } = address
    if (present.subject.key === this.#receiverKey && present.subject.item === rules.name) return undefined
    const row = address.rows.get(id) ?? emptyRow
    const due = dueFor(present, row, rules, this.#now)
    if (row.last) this.#wakeAt(row.last.at + rules.remindMs)
    const { incident } = present.state
    if (!due || !incident) {
      // Silenced before anybody was told: its end is no news either.
      if (present.isSilenced && row.need && !row.last && !row.attempt)
        this.#change(address, id, (own) => ({ ...own, need: undefined }))
      return undefined
    }
    if (row.need?.incident === incident.id) return due
    const { id: of, level, beganAt, fault } = incident
    this.#change(address, id, (before) => ({
      ...before,
      need: { incident: of, ...nameIn(incident), level, beganAt, since: this.#now, fault },
    }))
    return due
  }

  /** Whether the verdict is young enough. If it is not, svc looks again first, but not without end. */
  #maySend(address: Address, id: string, present: Present, { needsVerdict }: DueMessage): boolean {
    if (!needsVerdict || isFresh(present, address.rows.get(id) ?? emptyRow, this.#now)) {
      if (needsVerdict) this.#looks.delete(id)
      return true
    }
    // Nothing can be sent now: what is looked at now would be old then.
    if (address.nextTryAt > this.#now || address.sending) {
      this.#wakeAt(address.nextTryAt)
      return false
    }
    const before = this.#looks.get(id)
    const isCurrent = before !== undefined && this.#now - before.at <= lookAtMostMs
    const look = isCurrent ? before : { since: this.#now, at: Number.NEGATIVE_INFINITY }
    this.#looks.set(id, look)
    if (this.#now - look.since >= lookAtMostMs) return true
    if (this.#now - look.at >= lookEveryMs) {
      look.at = this.#now
      this.#effects.push({ type: 'ask', key: present.subject.key, depth: present.state.depth })
    }
    this.#wakeAt(look.at + lookEveryMs)
    return false
  }

  #send(address: Address, { id: again, lines }: Message): void {
    if (address.sending || lines.length === 0) return
    const { folds, name } = address.rules
    const since = Math.min(...lines.map((one) => waitingSince(one, this.#now)))
    const foldedAt = folds ? Math.max(since + foldMs, address.messageAt + messageEveryMs) : this.#now
    const at = Math.max(address.nextTryAt, foldedAt)
    if (at > this.#now) {
      this.#wakeAt(at)
      return
    }
    this.#attempts += 1
    const claims = lines.map((one) => ({
      ...one,
      items: itemsOf(one.present, one, this.#subjects.get(one.id)),
    }))
    const ids = claims.flatMap(({ items }) => items.map(({ id }) => id))
    // Another message with the same lines is another one.
    const message = again ?? digestOf([name, String(this.#now), ...ids.toSorted()])
    const parts = claims.map((one) => this.#claim(address, one, message))
    address.sending = { attempt: this.#attempts, message, parts }
    address.isAgain = again !== undefined
    // What no longer holds is not part of the message any more, should it hold again.
    const contained = new Set(parts.map(({ id }) => id))
    for (const id of again === undefined ? [] : [...address.rows.keys()])
      if (!contained.has(id)) this.#change(address, id, (row) => withoutLine(row, message))
    const keys = parts.map(({ id }) => `${name} ${id}`)
    const rows = keys.flatMap((key) => this.#changes.get(key) ?? [])
    for (const key of keys) this.#changes.delete(key)
    const items = parts.flatMap((part) => part.items)
    this.#effects.push({ type: 'send', receiver: name, attempt: this.#attempts, message, rows, items })
  }

  /** From now on the receiver has perhaps received it. */
  #claim(
    address: Address,
    { id, row, present, due, ends, items }: Lines[number] & { readonly items: readonly NoticeItem[] },
    message: string,
  ): Part {
    const own = due && present && wordOf(present, this.#now)
    // What is sent again knows no more acknowledgements than before.
    const isAgain = row.attempt?.line?.message === message
    const lapsedAcks = isAgain ? row.attempt?.lapsedAcks : own?.lapsedAcks
    // The ids of later messages follow from it, also where the clock was set back since the last one.
    const stampAfter = (row.last ? stampOf(row.last) : Number.NEGATIVE_INFINITY) + 1
    const stamp = stampAfter > this.#now ? { stamp: stampAfter } : {}
    const word = own && due && { ...own, ...stamp, lapsedAcks, line: { message, what: due.what } }
    const incidents = new Set(ends.map(({ incident }) => incident))
    this.#change(address, id, (before) => {
      const left = isAgain && !word ? withoutLine(before, message) : before
      const marked = left.ends.map((end) =>
        incidents.has(end.incident) ? { ...end, line: { message, what: end.what } } : end,
      )
      return word || ends.length > 0 ? { ...left, ...(word ? { attempt: word } : {}), ends: marked } : left
    })
    return { id, items, ends, word, before: row }
  }

  #accepted(address: Address, parts: readonly Part[]): void {
    for (const part of parts) this.#change(address, part.id, (row) => afterAccepted(row, part))
    address.messageAt = this.#now
    this.#works(address)
  }

  #works(address: Address): void {
    const { failingSince, brokenSince, brokenAs: incident, rules } = address
    address.failures = 0
    address.failingSince = undefined
    address.brokenSince = undefined
    if (failingSince !== undefined)
      this.#effects.push({ type: 'log', level: 'info', receiver: rules.name, message: 'accepts messages again' })
    if (brokenSince === undefined) return
    const subject = this.#receiverSubject(rules.name)
    this.#end(subject, { incident, what: 'end', endedAt: this.#now, text: worksAgain })
  }

  #fails(address: Address, message: string): void {
    address.failure = message
    if (address.failingSince === undefined)
      this.#effects.push({ type: 'log', level: 'warn', receiver: address.rules.name, message })
    address.failingSince ??= this.#now
  }

  #failed(address: Address, { parts }: Sending, delivery: Extract<Delivery, { what: 'later' }>): void {
    for (const part of parts)
      this.#change(address, part.id, (row) => afterFailure(row, part, delivery.isPerhapsReceived))
    // The receiver perhaps has it: it gets the next one no sooner than after one that it accepted.
    if (delivery.isPerhapsReceived) address.messageAt = this.#now
    this.#fails(address, delivery.message)
    const pauseMs = Math.min(maxPauseMs, firstPauseMs * 2 ** Math.min(address.failures, 16))
    const demandedMs = Math.min(delivery.afterMs ?? 0, maxRetryAfterMs)
    address.failures += 1
    address.nextTryAt = this.#now + Math.max(pauseMs, demandedMs)
    if (this.#isShared) this.#leaveToOthers(address)
  }

  #refused(
    address: Address,
    { message: sent, parts }: Sending,
    { message, ids }: Extract<Delivery, { what: 'refused' }>,
  ): void {
    const isBad = ({ items }: Part): boolean => ids === undefined || items.some(({ id }) => ids.includes(id))
    const refusedRow = (row: OutboxRow, part: Part): OutboxRow => {
      const after = afterFailure(row, part, false)
      // The message is accepted without it.
      return ids === undefined ? after : withoutLine(after, sent)
    }
    for (const part of parts) {
      const bad = isBad(part)
      this.#change(address, part.id, (row) => (bad ? refusedRow(row, part) : afterAccepted(row, part)))
      if (bad && ids) address.refused.set(part.id, this.#now + refusedEveryMs)
    }
    const { name } = address.rules
    if (ids !== undefined) {
      // It is well, and refuses some.
      if (!parts.every(isBad)) this.#works(address)
      const lines = parts.filter(isBad).flatMap(({ items }) => items.map(({ subject }) => subject.monitor))
      this.#effects.push({ type: 'log', level: 'warn', receiver: name, message: `${message} (${lines.join(', ')})` })
      return
    }
    this.#effects.push({ type: 'log', level: 'warn', receiver: name, message })
    address.failure = message
    address.failingSince ??= this.#now
    address.nextTryAt = this.#now + refusedEveryMs
  }

  // A receiver that fails is an incident, which the others tell.

  #noteBroken(address: Address): void {
    const { failingSince, rules } = address
    if (failingSince === undefined || address.brokenSince !== undefined) return
    if (this.#now - failingSince < brokenMs) {
      this.#wakeAt(failingSince + brokenMs)
      return
    }
    address.brokenSince = failingSince
    // The clock may have been set back since the one before.
    address.brokenNamedAt = Math.max(failingSince, address.brokenNamedAt + 1)
    address.brokenAs = receiverIncident(rules.name, address.brokenNamedAt)
    this.watch(this.#receiverSubject(rules.name))
    this.#nextAt = this.#now
  }

  #receiverSubject(name: string): StoredSubject {
    return { key: this.#receiverKey, monitor: 'svc', check: 'receiver', item: name }
  }

  #receiverAsPresent(subject: StoredSubject): ReturnType<Lookup> {
    const address = this.#addresses.get(subject.item ?? '')
    if (!address) return 'removed'
    const { brokenSince, brokenAs, failure, rules } = address
    const text = `the receiver ${rules.name} fails: ${failure}`
    const incident: Incident | undefined =
      brokenSince === undefined
        ? undefined
        : {
            id: brokenAs,
            beganAt: brokenSince,
            confirmedAt: brokenSince,
            level: 'failed',
            message: text,
            isFlapping: false,
            isUnobserved: false,
          }
    const level = incident ? 'failed' : 'ok'
    const message = incident ? text : worksAgain
    return { subject, state: { level, message, depth: 'Basic', incident }, isSilenced: false, needsNoVerdict: true }
  }

  /** The incident of a receiver stands until the receiver accepts something, also after a restart. */
  #restoreBroken(names: ReadonlySet<string>): void {
    const all = [...this.#addresses.values()].flatMap(({ rows }) => [...rows.values()])
    // A process without the store has told the end, or tried to.
    const over = new Set(all.flatMap(({ last, ends }) => [...(last?.isOver ? [last] : []), ...ends].map(incidentOf)))
    for (const { rows } of this.#addresses.values()) {
      for (const [id, row] of rows) {
        const subject = this.#subjects.get(id)
        const about = aboutIn(row)
        const broken = subject?.key === this.#receiverKey && names.has(subject.item ?? '') ? subject.item : undefined
        const address = broken === undefined ? undefined : this.#addresses.get(broken)
        if (address && about && !over.has(about.incident)) {
          if (address.brokenSince === undefined) address.brokenAs = about.incident
          address.brokenSince ??= about.beganAt
          address.failingSince ??= about.beganAt
        }
      }
    }
  }
}

/** Another row of a receiver may have such an end under the present name of the monitor. */
function forgetTold(rows: Map<string, OutboxRow>, news: OutboxRow): void {
  if (isTellingEnds(news)) for (const [id, row] of rows) rows.set(id, withoutToldEnds(row, news))
}

const incidentOf = ({ incident }: Pick<Word, 'incident'>): string => incident

const receiverIncident = (name: string, since: number): string =>
  digestOf([receiverKey, name, String(since)]).slice(0, 12)

const digestOf = (parts: readonly string[]): string =>
  [hash(...parts, 'a'), hash(...parts, 'b')].map((one) => one.toString(36).padStart(7, '0')).join('')

/** The lines about one subject: what is over, and then what stands. */
function itemsOf(
  present: Present | undefined,
  {
    ends,
    row: { last, attempt },
    due,
  }: { readonly ends: readonly End[]; readonly row: OutboxRow; readonly due: DueMessage | undefined },
  subject = present?.subject,
): readonly NoticeItem[] {
  if (!subject) return []
  // The ids of what a receiver knows stay.
  const idOf = (as: KeyedMonitor | undefined): string => subjectId({ ...subject, ...as })
  const over = ends.map(
    ({ isAssumed, isNews, line, since, ...end }): NoticeItem => ({
      id: digestOf([idOf(end.as), end.incident, end.what, end.level]),
      subject,
      observedAt: end.endedAt,
      ...end,
    }),
  )
  const incident = present?.state.incident
  if (!due || !incident) return over
  const { id: of, level, beganAt } = incident
  // A change of the fault alone leaves the incident as it began.
  const { fault, message } = due.what === 'change' && present.state.level === level ? present.state : incident
  const before = last && last.level !== level ? last.level : undefined
  const name = nameIn(incident)
  const word = attempt ?? last
  const item: NoticeItem = {
    id: digestOf([idOf(name.as), of, due.what, level, String(last ? stampOf(last) : 0)]),
    subject,
    ...name,
    what: due.what,
    level,
    before,
    incident: of,
    beganAt,
    observedAt: present.state.latest?.at ?? beganAt,
    fault,
    text: message,
    ...(word?.incident === of ? { lastStamp: stampOf(word) } : {}),
  }
  return [...over, item]
}

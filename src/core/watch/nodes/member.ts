import type { StoredRow } from '../outbox/index.ts'
import type { NodeAnswer, OtherNode, Question } from '../states/index.ts'
import { afterFailure, afterRenewal, afterStandstill, type Lease, type Mode, modeOf, noLease } from './lease.ts'
import { nodeOfKey, ownersOf, secondFor } from './owner.ts'
import { aloneMs, awayMs, mostQuestions, renewEveryMs, renewTimeoutMs, standstillMs } from './policy.ts'
import { type Choose, type Fenced, ownedBy, type RenewalAnswer, type RenewalRequest, type Taken } from './table.ts'
import type { Configurations, Fence, KnownMonitors, NodeFacts, NodeRow, OthersQuestion } from './types.ts'

/** The monitors that a node could run. */
export type MemberSettings = {
  /** The digest of `monitors`: the same on every node that has the same monitors. */
  readonly digest: string
  /** Monitors of the network. */
  readonly monitors: KnownMonitors
  /** The keys of the monitors of this machine (`machineKey`), also of what svc says of itself here. */
  readonly own: ReadonlySet<string>
}

/** The actions that a driver carries out, in this order, before it reports the next event. */
export type MemberEffect =
  /** Call `renew`, after `putConfiguration` if `publishes` is there. Then `renewed` or `renewalFailed` with `id`. */
  | {
      readonly type: 'renew'
      readonly id: number
      readonly request: RenewalRequest
      readonly publishes: KnownMonitors | undefined
    }
  /** Call `configurations`, then `configurationsRead`. A failure needs no report. */
  | { readonly type: 'read configurations'; readonly digests: readonly string[] }
  /** Call `takeOver`, then `taken` or `takeOverFailed` with `id`. */
  | {
      readonly type: 'take over'
      readonly id: number
      readonly fence: Fence
      readonly choose: Choose
      /** To be called when the effect is carried out: after `released`. */
      readonly news: () => readonly StoredRow[]
    }
  /** Forget these keys in states, ledger and outbox, and hand what the outbox knew of them to `released`. */
  | { readonly type: 'release'; readonly keys: ReadonlySet<string> }
  /** Go on with what is stored of these keys: release them, restore states, `Ledger.takeOver`, `Outbox.takeOver`. */
  | { readonly type: 'adopt'; readonly keys: ReadonlySet<string>; readonly stored: Taken }
  /** The store has lost writes: what memory has of these keys counts. `Ledger.again`, `Outbox.again`. */
  | { readonly type: 'write again'; readonly keys: ReadonlySet<string>; readonly stored: Taken }
  /** `watches`, `runs` or `isElsewhere` have changed: configure states and schedule. */
  | { readonly type: 'share' }
  /** Run the monitor of the question once, for its answer only, then `looked`. */
  | { readonly type: 'look'; readonly question: OthersQuestion }
  /** Other nodes have answered: `States.takeAnswers`. */
  | { readonly type: 'crossChecks'; readonly answers: readonly NodeAnswer[] }
  /** For people. */
  | { readonly type: 'mode'; readonly mode: Mode; readonly before: Mode }
  /** Call `leave`. */
  | { readonly type: 'leave'; readonly fence: Fence }

/** A write that may be made now. One at a time. */
export type WritePermit = { readonly fence: Fence; readonly number: number }

/** Whether messages about a key may be sent: after their attempt is stored, without the store and marked, or not now. */
export type Voice = 'coordinated' | 'alone' | 'silent'

type Renewing = {
  readonly sentAt: number
  readonly epoch: number | undefined
  readonly publishes: string | undefined
  readonly acknowledged: number
  /** Whether the number of stamps proves anything: none was set or lost meanwhile. */
  isCounted: boolean
}
type TakingOver = {
  readonly id: number
  readonly sentAt: number
  readonly epoch: number
  news: readonly StoredRow[]
  /** Memory counts for what it has already: the store has gone back in time. */
  readonly restamps: boolean
  /** The rows that decided. Undefined until the store asks. */
  rows: readonly NodeRow[] | undefined
}

/**
 * One node among several: when it renews its row, which monitors it takes over and gives up, and whether it may store and send.
 * It has no clock, no timer and no store: `now` is milliseconds of the monotonic clock of the process, and the same events
 * give the same effects. Each event first looks whether the process stood still.
 */
export class Membership {
  readonly #node: string
  readonly #process: string
  readonly #facts: NodeFacts
  #settings: MemberSettings
  #isIsolated = false
  #lease: Lease = noLease
  #mode: Mode = 'joining'
  #memberSince: number | undefined
  /** Until when what it takes over may be something of which it has sent an end by itself. */
  #doubtsUntil = Number.NEGATIVE_INFINITY
  /** The highest epoch that it has had. */
  #latestEpoch = 0
  #hasLeft = false
  #ids = 0
  #seenAt: number
  /** When the process last went on after it had stood still: what was requested before is out of date. */
  #stillUntil = Number.NEGATIVE_INFINITY
  #renewAt: number
  readonly #renewing = new Map<number, Renewing>()
  #published: string | undefined
  #configurations: Configurations
  /** Digests that the store does not have. */
  readonly #unreadable = new Set<string>()
  /** The rows of which configurations are being read. */
  #unread: readonly NodeRow[] | undefined
  /** The keys that have the stamp of the epoch and of which memory is up to date. */
  readonly #keys = new Set<string>()
  /** Keys of this machine of which memory is up to date, whatever the epoch. */
  readonly #ownKnown = new Set<string>()
  #takingOver: TakingOver | undefined
  /** The rows for which it took over. */
  #takenFor = ''
  #needsTakeOver = true
  #restamps = false
  /** When to try again after a takeover that failed. */
  #takeOverAt = Number.NEGATIVE_INFINITY
  /** The rows of messages that it sent without the store, as far as the store does not have them yet. */
  #news: readonly StoredRow[] = []
  /** Those of these rows that the store got a short while ago, and when it first got them. */
  #handedOver: ReadonlyMap<StoredRow, number> = new Map()
  /** The keys that a svc.yaml removed while the node was without the store, which may lack all the rows of them. */
  readonly #droppedKeys = new Set<string>()
  /** The incidents in messages that it sent without the store, by receiver. */
  readonly #sentWithoutStore = new Map<string, Set<string>>()
  /** The number of the last write that was acknowledged, and of the last one that was tried. */
  #acknowledged = 0
  #attempts = 0
  #writing: WritePermit | undefined
  #effects: MemberEffect[] = []
  /** The questions that it asks other nodes. */
  #questions: readonly Question[] = []
  /** The open questions of other nodes, with its answer once it has one. */
  #inquiries = new Map<string, { readonly question: OthersQuestion; reaches: boolean | undefined }>()
  /** Whether others do not know yet what it asks and answers. */
  #hasCrossChecks = false

  constructor(
    {
      node,
      process,
      facts,
      settings,
    }: {
      readonly node: string
      /** A random text that no other process has. */
      readonly process: string
      readonly facts: NodeFacts
      readonly settings: MemberSettings
    },
    now: number,
  ) {
    this.#node = node
    this.#process = process
    this.#facts = facts
    this.#settings = settings
    this.#configurations = new Map([[settings.digest, settings.monitors]])
    this.#seenAt = now
    this.#renewAt = now
  }

  // Events.

  /** To be called once a second, and at the start. */
  tick(now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      for (const [id, { sentAt }] of this.#renewing) if (now - sentAt >= renewTimeoutMs) this.#notRenewed(id, now)
      if (this.#hasCrossChecks && this.#lease.epoch !== undefined && this.mode(now) === 'member') this.#renewNow(now)
      else this.#renewIfDue(now)
      this.#takeOverIfNeeded(now)
    })
  }

  /** Takes the questions of the states to other nodes, before each tick. */
  asks(questions: readonly Question[]): void {
    const some = questions.slice(0, mostQuestions)
    const before = new Set(this.#questions.map(({ id }) => id))
    if (some.some(({ id }) => !before.has(id))) this.#hasCrossChecks = true
    this.#questions = some
  }

  /** Whether this node reaches what another one has asked about. Undefined: its run came to no verdict. */
  looked({ from, epoch, id }: OthersQuestion, reaches: boolean | undefined): void {
    const inquiry = this.#inquiries.get(questionName(from, epoch, id))
    if (!inquiry || reaches === undefined || this.#isIsolated) return
    inquiry.reaches = reaches
    this.#hasCrossChecks = true
  }

  /** Who can be asked now whether it reaches a monitor. */
  otherNode(key: string, now: number): OtherNode | undefined {
    if (this.#isIsolated || this.mode(now) !== 'member') return undefined
    const other = secondFor(key, this.#node, this.#lease.rows, this.#configurations)
    return other === undefined ? undefined : { own: this.#node, other }
  }

  /** The monitors from now on. */
  configured(settings: MemberSettings, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      const earlier = this.#settings.monitors
      this.#settings = settings
      this.#configurations = new Map([...this.#configurations, [settings.digest, settings.monitors]])
      // What has another name from now on is read again under both.
      const { groups, formerly } = settings.monitors
      this.#release([...this.#keys].filter((key) => !groups.has(key) && formerly.has(key)))
      // Whether other nodes still have what this one no longer has is known by the owner alone, who gets what was sent of it.
      if (isByItself(this.#mode)) {
        const dropped = [...earlier.groups.keys()].filter((key) => !groups.has(key))
        for (const key of dropped) this.#droppedKeys.add(key)
        this.#release(dropped)
      }
      this.#evaluate(this.#lease.rows)
      this.#effects.push({ type: 'share' })
      this.#renewNow(now)
    })
  }

  /** Whether none of its witnesses answers. */
  isolated(isIsolated: boolean, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      if (isIsolated === this.#isIsolated) return
      this.#isIsolated = isIsolated
      this.#renewNow(now)
    })
  }

  renewed(id: number, answer: RenewalAnswer, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      const request = this.#renewing.get(id)
      this.#renewing.delete(id)
      if (!request || request.sentAt < Math.max(this.#stillUntil, this.#lease.sentAt)) return
      const { epoch: before, isTaken } = this.#lease
      this.#lease = afterRenewal(this.#lease, answer, request.sentAt)
      if (answer.what === 'taken') {
        if (!isTaken) this.#forgetEpoch(true)
        return
      }
      this.#latestEpoch = Math.max(this.#latestEpoch, answer.epoch)
      this.#published = request.publishes ?? this.#published
      if (answer.epoch !== before) this.#forgetEpoch(false)
      else if (request.epoch === before && answer.writes < request.acknowledged) this.#wentBack(answer.writes)
      this.#applyMode(now)
      this.#look(answer.rows)
      this.#receive(answer.rows)
      // What another node has taken over meanwhile is given up by now.
      if (request.isCounted && !this.#unread && !this.#restamps && answer.stamped < this.#keys.size) this.#lostStamps()
      this.#takeOverIfNeeded(now)
    })
  }

  /** It failed, or had no answer in time: the store may have it or not. */
  renewalFailed(id: number, now: number): readonly MemberEffect[] {
    return this.#during(now, () => this.#notRenewed(id, now))
  }

  /** Those of them that the store has. */
  configurationsRead(configurations: Configurations, digests: readonly string[], now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      this.#configurations = new Map([...this.#configurations, ...configurations])
      for (const digest of digests) if (!configurations.has(digest)) this.#unreadable.add(digest)
      const rows = this.#unread
      this.#unread = undefined
      if (rows && this.#lease.epoch !== undefined) this.#evaluate(rows)
      this.#takeOverIfNeeded(now)
    })
  }

  /** `stored` is undefined if the row of the node is not live. */
  taken(id: number, stored: Taken | undefined, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      const request = this.#takingOver
      if (request?.id !== id) return
      this.#takingOver = undefined
      if (request.epoch !== this.#lease.epoch || request.sentAt < this.#stillUntil) {
        this.#needsTakeOver = true
      } else if (!stored) {
        this.#needsTakeOver = true
        this.#renewNow(now)
        return
      } else this.#adopt(request, stored)
      this.#takeOverIfNeeded(now)
    })
  }

  takeOverFailed(id: number, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      if (this.#takingOver?.id !== id) return
      this.#takingOver = undefined
      this.#needsTakeOver = true
      this.#takeOverAt = now + takeOverAgainMs
    })
  }

  /** Takes the rows that the outbox had of keys that were released. */
  released(rows: readonly StoredRow[]): void {
    const news = rows.flatMap((one): readonly StoredRow[] => {
      const incidents = this.#sentWithoutStore.get(one.receiver)
      const { row } = one
      if (row && this.#droppedKeys.has(one.subject.key)) return [one]
      if (!incidents || !row) return []
      const { last, attempt, ends } = row
      const wasSent = incidents.has((attempt ?? last)?.incident ?? '')
      const over = ends.filter(({ incident }) => incidents.has(incident))
      if (wasSent) return [{ ...one, row: { ...row, ends: over } }]
      return over.length === 0 ? [] : [{ ...one, row: { ends: over } }]
    })
    this.#news = [...this.#news, ...news]
  }

  /** A message about these incidents was sent without the store. */
  sentAlone(receiver: string, incidents: readonly string[]): void {
    const all = this.#sentWithoutStore.get(receiver) ?? new Set()
    for (const one of incidents) all.add(one)
    this.#sentWithoutStore.set(receiver, all)
  }

  /** Undefined: it may not write now, or another write is in progress. `wrote` has to follow. */
  beginWrite(now: number): WritePermit | undefined {
    const { epoch } = this.#lease
    // Before it has taken over, its keys do not have the stamp of the epoch.
    if (this.#writing || this.#restamps || this.#takenFor === '') return undefined
    if (epoch === undefined || this.mode(now) !== 'member') return undefined
    this.#attempts += 1
    this.#writing = { fence: this.#fence(epoch), number: this.#attempts }
    return this.#writing
  }

  /** How it ended. `failed`: nobody knows whether the store has it. */
  wrote({ fence: { epoch }, number }: WritePermit, outcome: Fenced | 'failed', now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      if (this.#writing?.number !== number || this.#writing.fence.epoch !== epoch) return
      this.#writing = undefined
      if (epoch !== this.#lease.epoch || outcome === 'failed') return
      if (outcome === 'stored') this.#acknowledged = number
      else if (outcome === 'not live') this.#renewNow(now)
      else {
        this.#release(outcome.lost)
        for (const one of this.#renewing.values()) one.isCounted = false
        this.#needsTakeOver = true
        this.#effects.push({ type: 'share' })
        this.#takeOverIfNeeded(now)
      }
    })
  }

  /** The process ends in order, and has stored what it could. */
  leave(now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      const { epoch } = this.#lease
      this.#hasLeft = true
      if (epoch !== undefined) this.#effects.push({ type: 'leave', fence: this.#fence(epoch) })
      this.#effects.push({ type: 'share' })
    })
  }

  // What is true now.

  /** Also sees that the process has just stood still, before any event tells. */
  mode(now: number): Mode {
    return now - this.#seenAt >= standstillMs ? 'joining' : modeOf(this.#lease, now)
  }

  /** The rows as of the latest answer, and for how long this node has been a member without a break. */
  rows(now: number): { readonly rows: readonly NodeRow[]; readonly ageMs: number; readonly memberMs: number } {
    const memberMs = this.#memberSince === undefined ? 0 : now - this.#memberSince
    return { rows: this.#lease.rows, ageMs: now - this.#lease.sentAt, memberMs }
  }

  get configurations(): Configurations {
    return this.#configurations
  }

  /** Whether states, ledger and outbox of this process are to have a monitor. What it watches but does not run waits. */
  watches(key: string): boolean {
    if (isByItself(this.#mode) || this.#keys.has(key)) return true
    return this.#settings.own.has(key) && (this.#ownKnown.has(key) || this.#mode === 'displaced')
  }

  /** Whether this process runs a monitor. */
  runs(key: string, now: number): boolean {
    return !this.#hasLeft && this.mode(now) !== 'joining' && this.watches(key)
  }

  /** Whether other nodes take care of what is known of a key that this one does not watch. */
  isElsewhere(key: string): boolean {
    return !this.#keys.has(key) || isByItself(this.#mode)
  }

  /** To be asked right before a message leaves. */
  voice(key: string, now: number): Voice {
    const mode = this.mode(now)
    if (this.#hasLeft) return 'silent'
    if (mode === 'member') return this.#keys.has(key) && !this.#restamps ? 'coordinated' : 'silent'
    return mode === 'alone' ? 'alone' : 'silent'
  }

  // Each event collects its effects.

  #during(now: number, work: () => void): readonly MemberEffect[] {
    this.#effects = []
    if (now - this.#seenAt >= standstillMs) {
      this.#lease = afterStandstill(this.#lease)
      this.#stillUntil = now
      this.#renewing.clear()
      this.#renewAt = now
    }
    this.#seenAt = now
    // First, so that what follows acts as what the node is by now.
    this.#applyMode(now)
    work()
    this.#applyMode(now)
    return this.#effects
  }

  #applyMode(now: number): void {
    const before = this.#mode
    const mode = modeOf(this.#lease, now)
    if (mode === before) return
    this.#mode = mode
    this.#memberSince = mode === 'member' ? now : undefined
    // Nodes that come back at the same time take over from each other, so that nobody seems to have been silent.
    if (before === 'alone') this.#doubtsUntil = now + aloneMs
    const wasByItself = isByItself(before) || before === 'displaced'
    if (wasByItself && !isByItself(mode)) this.#releaseStrangers()
    this.#effects.push({ type: 'mode', mode, before }, { type: 'share' })
  }

  #fence(epoch: number): Fence {
    return { node: this.#node, epoch, acknowledged: this.#acknowledged }
  }

  // Renewals.

  #renewNow(now: number): void {
    this.#renewAt = now
    this.#renewIfDue(now, true)
  }

  #renewIfDue(now: number, isUrgent = false): void {
    if (this.#hasLeft || now < this.#renewAt) return
    const { epoch } = this.#lease
    // Two that begin an epoch at once would begin two.
    if (this.#renewing.size > 0 && (!isUrgent || epoch === undefined)) return
    this.#renewAt = now + renewEveryMs
    const { digest, monitors } = this.#settings
    const publishes = this.#published === digest ? undefined : monitors
    this.#ids += 1
    this.#renewing.set(this.#ids, {
      sentAt: now,
      epoch,
      publishes: publishes && digest,
      acknowledged: this.#acknowledged,
      isCounted: this.#takingOver === undefined,
    })
    const request: RenewalRequest = {
      node: this.#node,
      process: this.#process,
      epoch,
      latestEpoch: this.#latestEpoch,
      claims: this.#latestEpoch === 0,
      config: digest,
      isIsolated: this.#isIsolated,
      facts: { ...this.#facts, crossChecks: this.#crossChecks() },
    }
    this.#hasCrossChecks = false
    this.#effects.push({ type: 'renew', id: this.#ids, request, publishes })
  }

  #notRenewed(id: number, now: number): void {
    if (!this.#renewing.delete(id)) return
    this.#lease = afterFailure(this.#lease, now)
    this.#published = undefined
  }

  /** The store has another epoch for this node, or none: nothing of the network that it knows is certain any more. */
  #forgetEpoch(isTaken: boolean): void {
    this.#handOverAgain()
    const keep = isTaken ? new Set<string>() : this.#ownKnown
    this.#release([...this.#keys].filter((key) => !keep.has(key)))
    this.#keys.clear()
    if (isTaken) this.#ownKnown.clear()
    this.#published = undefined
    this.#takingOver = undefined
    this.#writing = undefined
    this.#acknowledged = 0
    this.#attempts = 0
    this.#restamps = false
    this.#needsTakeOver = true
    this.#takenFor = ''
    this.#takeOverAt = Number.NEGATIVE_INFINITY
    this.#effects.push({ type: 'share' })
  }

  /** A store that has gone back in time may lack it. Where it does not, nothing changes. */
  #handOverAgain(): void {
    this.#handedOver = new Map([...this.#handedOver].filter(([, at]) => this.#seenAt - at < handOverAgainMs))
    this.#news = [...new Set([...this.#handedOver.keys(), ...this.#news])]
  }

  /** The store has gone back in time, to before the last writes: what memory has is written again. */
  #wentBack(writes: number): void {
    this.#handOverAgain()
    this.#acknowledged = writes
    this.#restamps = true
    this.#needsTakeOver = true
    this.#published = undefined
  }

  /** Another node had some of the keys, or told something of them: nobody knows which, so that all are read again. */
  #lostStamps(): void {
    this.#handOverAgain()
    this.#release([...this.#keys])
    this.#ownKnown.clear()
    this.#needsTakeOver = true
    this.#effects.push({ type: 'share' })
  }

  // Cross-checks.

  #crossChecks(): NodeFacts['crossChecks'] {
    const answers = [...this.#inquiries.values()].flatMap(({ question, reaches }) =>
      reaches === undefined ? [] : [{ node: question.from, epoch: question.epoch, id: question.id, reaches }],
    )
    return { questions: this.#questions, answers }
  }

  /** Looks for questions to this node, and for answers to its own. */
  #receive(rows: readonly NodeRow[]): void {
    const { epoch: own } = this.#lease
    const others = rows.filter(({ node, isLive, isIsolated }) => node !== this.#node && isLive && !isIsolated)
    const open = new Map<string, OthersQuestion>()
    for (const { node: from, epoch, facts } of others)
      for (const question of (facts?.crossChecks?.questions ?? []).slice(0, mostQuestions))
        if (question.node === this.#node) open.set(questionName(from, epoch, question.id), { ...question, from, epoch })
    for (const name of this.#inquiries.keys()) if (!open.has(name)) this.#inquiries.delete(name)
    for (const [name, question] of open) {
      if (this.#inquiries.has(name) || this.#isIsolated || !this.#settings.monitors.groups.has(question.key)) continue
      this.#inquiries.set(name, { question, reaches: undefined })
      this.#effects.push({ type: 'look', question })
    }
    const answers = others.flatMap(({ node, facts }) =>
      (facts?.crossChecks?.answers ?? []).flatMap(({ node: of, epoch, id, reaches }): readonly NodeAnswer[] => {
        const isOpen = this.#questions.some((one) => one.id === id && one.node === node)
        return of === this.#node && epoch === own && isOpen ? [{ id, reaches }] : []
      }),
    )
    if (answers.length > 0) this.#effects.push({ type: 'crossChecks', answers })
  }

  // Ownership.

  #look(rows: readonly NodeRow[]): void {
    this.#unread = undefined
    const digests = new Set(rows.map(({ config }) => config))
    const missing = [...digests].filter((digest) => !this.#configurations.has(digest))
    // Only those that somebody has are worth keeping.
    this.#configurations = new Map(
      [...this.#configurations].filter(([digest]) => digests.has(digest) || digest === this.#settings.digest),
    )
    for (const digest of this.#unreadable) if (!digests.has(digest)) this.#unreadable.delete(digest)
    if (missing.length > 0) this.#effects.push({ type: 'read configurations', digests: missing })
    // Until it knows what the others know, it keeps what it has.
    if (missing.some((digest) => !this.#unreadable.has(digest))) this.#unread = rows
    else this.#evaluate(rows)
  }

  /** Gives up what others own by these rows, and notes whether it has something to take over. */
  #evaluate(rows: readonly NodeRow[]): void {
    if (rows.length === 0) return
    const { digest: config } = this.#settings
    const current = rows.map((row) => (row.node === this.#node ? { ...row, config } : row))
    const ownerOf = ownersOf(current, this.#configurations)
    const lost = [...this.#keys].filter((key) => ownerOf(key) !== this.#node && nodeOfKey(key) !== this.#node)
    if (lost.length > 0) {
      this.#release(lost)
      this.#effects.push({ type: 'share' })
    }
    if (signatureOf(rows, this.#settings) !== this.#takenFor) this.#needsTakeOver = true
  }

  #takeOverIfNeeded(now: number): void {
    const { epoch } = this.#lease
    const isMember = epoch !== undefined && this.mode(now) === 'member'
    if (!isMember || !this.#needsTakeOver || this.#takingOver || this.#unread || this.#hasLeft) return
    if (now < this.#takeOverAt) return
    this.#needsTakeOver = false
    this.#ids += 1
    for (const one of this.#renewing.values()) one.isCounted = false
    const request: TakingOver = {
      id: this.#ids,
      sentAt: now,
      epoch,
      news: [],
      restamps: this.#restamps,
      rows: undefined,
    }
    this.#takingOver = request
    const owned = ownedBy(this.#node, this.#configurations)
    const choose: Choose = (rows, stored) => {
      request.rows = rows
      const keys = new Set([...owned(rows, stored), ...this.#settings.own])
      return request.restamps ? [...keys] : [...keys].filter((key) => !this.#keys.has(key))
    }
    const news = (): readonly StoredRow[] => {
      request.news = this.#news
      return request.news
    }
    this.#effects.push({ type: 'take over', id: this.#ids, fence: this.#fence(epoch), choose, news })
  }

  #adopt({ rows = [], news, restamps }: TakingOver, stored: Taken): void {
    const ownKeys = new Set(stored.keys.filter((key) => this.#keys.has(key) || this.#ownKnown.has(key)))
    const keys = new Set(stored.keys.filter((key) => !ownKeys.has(key)))
    // What this machine knew in an epoch before counts, whatever the store has.
    const againKeys = new Set([...ownKeys].filter((key) => restamps || !this.#keys.has(key)))
    for (const key of stored.keys) {
      this.#keys.add(key)
      if (nodeOfKey(key) === this.#node) this.#ownKnown.add(key)
    }
    if (keys.size > 0)
      this.#effects.push({
        type: 'adopt',
        keys,
        stored: inDoubt(storedOf(stored, keys), this.#seenAt < this.#doubtsUntil),
      })
    if (restamps) this.#restamps = false
    if (againKeys.size > 0)
      this.#effects.push({ type: 'write again', keys: againKeys, stored: storedOf(stored, againKeys) })
    this.#news = this.#news.filter((one) => !news.includes(one))
    this.#handedOver = new Map([...news.map((one) => [one, this.#seenAt] as const), ...this.#handedOver])
    if (this.#news.length === 0) {
      this.#sentWithoutStore.clear()
      this.#droppedKeys.clear()
    }
    this.#takenFor = signatureOf(rows, this.#settings)
    if (keys.size > 0) this.#effects.push({ type: 'share' })
    this.#evaluate(rows)
  }

  #release(some: readonly string[]): void {
    if (some.length === 0) return
    const keys = new Set([...some, ...this.#otherNamesOf(some)])
    for (const key of keys) this.#keys.delete(key)
    if (keys.size > some.length) this.#needsTakeOver = true
    this.#effects.push({ type: 'release', keys })
  }

  /**
   * The other names of the same monitors. The rows of an earlier name continue under the present one in memory, but
   * perhaps not yet in the store: whoever reads one of them again has to read both.
   */
  #otherNamesOf(keys: readonly string[]): readonly string[] {
    const { groups, formerly } = this.#settings.monitors
    const groupOf = (key: string): string | undefined => groups.get(key) ?? formerly.get(key)
    const touched = new Set(keys.map(groupOf))
    const changed = new Set([...formerly.values()].filter((group) => touched.has(group)))
    return changed.size === 0 ? [] : [...this.#keys].filter((key) => changed.has(groupOf(key) ?? ''))
  }

  /** Releases the monitors that it ran only because it did not reach the store. */
  #releaseStrangers(): void {
    const { monitors, own } = this.#settings
    const all = [...monitors.groups.keys(), ...monitors.formerly.keys(), ...own]
    this.#release(all.filter((key) => !this.#keys.has(key) && !this.#ownKnown.has(key)))
  }
}

const questionName = (from: string, epoch: number, id: number): string => `${from} ${epoch} ${id}`

/** The pause after a takeover that failed. Milliseconds. */
const takeOverAgainMs = 1_000
/** Until when a failover may lose what was handed over. Milliseconds. */
const handOverAgainMs = 60_000

/** A node that does not reach the store acts by itself. */
export const isByItself = (mode: Mode): boolean => mode === 'cut off' || mode === 'alone'

/** Whatever decides about owners. */
const signatureOf = (rows: readonly NodeRow[], { digest, own }: MemberSettings): string =>
  JSON.stringify([
    rows
      .map(({ node, epoch, isLive, isIsolated, config, silentMs }) => {
        return [node, epoch, isLive, isIsolated, config, silentMs < awayMs] as const
      })
      .sort(([one], [other]) => (one < other ? -1 : 1)),
    digest,
    [...own].sort(),
  ])

/**
 * Whoever had a monitor before and was without the store for so long that it sent by itself may have sent an end that the
 * store does not know. If the fault stands, receivers must not go on believing that it is over. `all`: this node was.
 */
function inDoubt(stored: Taken, all: boolean): Taken {
  const keys = new Set(stored.states.flatMap(({ row, silentMs = 0 }) => (silentMs >= aloneMs ? [row.key] : [])))
  const outbox = stored.outbox.map((one): StoredRow => {
    const isInDoubt = all || keys.has(one.subject.key)
    return isInDoubt && one.row?.last ? { ...one, row: { ...one.row, isInDoubt: true } } : one
  })
  return { ...stored, outbox }
}

const storedOf = ({ states, incidents, outbox }: Taken, keys: ReadonlySet<string>): Taken => ({
  keys: [...keys],
  states: states.filter(({ row }) => keys.has(row.key)),
  incidents: incidents.filter(({ key }) => keys.has(key)),
  outbox: outbox.filter(({ subject }) => keys.has(subject.key)),
})

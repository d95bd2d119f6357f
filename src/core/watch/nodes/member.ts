import type { StoredRow } from '../outbox/index.ts'
import type { NodeAnswer, OtherNode, Question } from '../states/index.ts'
import { CrossCheckBook } from './cross-checks.ts'
import {
  answered,
  askOf,
  holds,
  isOthers,
  isTakenAway,
  type Lease,
  type LeaseAsk,
  lapsed,
  newLease,
  unanswered,
  unsure,
} from './lease.ts'
import { nodeOfKey } from './names.ts'
import { usualDigest } from './overview.ts'
import {
  aloneMs,
  answerTimeoutMs,
  beatMs,
  isolatedMs,
  lookMs,
  minorityMs,
  rolloutMs,
  standstillMs,
  stopMs,
} from './policy.ts'
import { nodesKey } from './report.ts'
import { type AddressedNode, maySpeakFor, Speakers, type Stand } from './speakers.ts'
import {
  type BeatAnswer,
  type BeatRequest,
  type Fence,
  type Fenced,
  type HandOver,
  leaseConfig,
  type NodeFacts,
  type NodeRow,
  type OthersQuestion,
  type Shard,
  type Stored,
  shards,
  type Taken,
} from './types.ts'

/** The monitors that a node could run. */
export type MemberSettings = {
  /** The digest of `network`: the same on every node that has the same monitors. */
  readonly digest: string
  /** The keys of monitors of the network, and those that they had before, with their present ones. */
  readonly network: ReadonlyMap<string, string>
  /** The keys of the monitors of this machine (`machineKey`), also of what svc says of itself here. */
  readonly own: ReadonlySet<string>
}

/**
 * - `member`: has the store. It runs the monitors of the network if it holds their lease.
 * - `joining`: has just started or gone on after a standstill, and asks the store before it does anything.
 * - `cut off`: does not reach the store. It runs everything, because nobody can say who else does, and stores nothing.
 * - `alone`: has been cut off for so long that it also sends, unless another node speaks.
 * - `displaced`: another process has its name. It runs nothing that others could run.
 */
export type Mode = 'member' | 'joining' | 'cut off' | 'alone' | 'displaced'

/** The actions that a driver carries out, in this order, before it reports the next event. */
export type MemberEffect =
  /** Call `beat`, then `answered` or `unanswered` with `id`. */
  | { readonly type: 'beat'; readonly id: number; readonly request: BeatRequest }
  /** Call `stored`, then `read` with `id`, without an answer if it failed. */
  | { readonly type: 'read'; readonly id: number; readonly shard: Shard }
  /** Read what this and earlier processes of the node have sent without the store, then call `takeSent`; without it if that failed. */
  | { readonly type: 'find' }
  /** All of it is stored by now. */
  | { readonly type: 'forget' }
  /** Call `handOver`, then `handedOver`. */
  | { readonly type: 'hand over'; readonly what: HandOver }
  /** Go on with what is stored of these keys in states, ledger and outbox. */
  | { readonly type: 'adopt'; readonly stored: Taken }
  /** The same with nothing that is stored: forget these keys. Then pass what the outbox had of them to `released`. */
  | { readonly type: 'release'; readonly stored: Taken; readonly fate: Fate }
  /** Memory of these keys counts, and the store has this of them: `Ledger.again`, `Outbox.again`. */
  | { readonly type: 'write again'; readonly stored: Taken }
  /** Run the monitor of the question once, for its answer only, then `looked`. */
  | { readonly type: 'look'; readonly question: OthersQuestion }
  /** Ask these nodes whether they speak, then call `otherSpeaks` for each that says so. */
  | { readonly type: 'ask'; readonly nodes: readonly AddressedNode[] }
  /** Other nodes have answered: `States.takeAnswers`. */
  | { readonly type: 'crossChecks'; readonly answers: readonly NodeAnswer[] }
  /** `watches`, `runs` or `isElsewhere` have changed: configure states and schedule, and tell people. The last one of an event. */
  | { readonly type: 'changed'; readonly mode: Mode; readonly before: Mode; readonly holder: string | undefined }

/**
 * The fate of rows that the outbox gives up: the store has them; it lacks them, and they are handed over; or they are handed
 * over if a failover has taken them.
 */
export type Fate = 'stored' | 'lost' | 'perhaps lost'

/** Whether messages about a key may be sent: after their attempt is stored, without the store and marked, or not now. */
export type Voice = 'coordinated' | 'alone' | 'silent'

/** One of the two leases that a node asks for, and whether its memory has what belongs to it. */
type Part = {
  lease: Lease
  /** Memory is up to date: nobody else has stored anything since. */
  isKnown: boolean
  /** The store has gone back in time to before what memory has. */
  isLost: boolean
  /** Whether what is stored has to be read before anything is written. */
  mustRead: boolean
  reading: { readonly id: number; readonly epoch: number } | undefined
  /** For how long the holder before was silent. */
  silentMs: number | undefined
  /** The highest number of writes that the store is known to have had, and the number of the last one that was tried. */
  acknowledged: number
  attempts: number
}
type Beat = {
  readonly sentAt: number
  readonly asks: BeatRequest['asks']
  readonly acknowledged: Readonly<Record<Shard, number>>
  /** The number of the last hand-over that the store had. */
  readonly handedOver: number
}

/**
 * One node among several: when it renews or takes its leases, and whether it may run, store and send. It has no clock, no timer
 * and no store: `now` is milliseconds of the monotonic clock of the process, and the same events give the same effects. Each
 * event first looks whether the process stood still.
 */
export class Membership {
  readonly #node: string
  readonly #process: string
  readonly #facts: NodeFacts
  #settings: MemberSettings
  readonly #parts: Readonly<Record<Shard, Part>>
  #isolatedSince: number | undefined
  #mode: Mode = 'joining'
  #shared = ''
  #memberSince: number | undefined
  /** When the last question was sent that the store has answered. */
  #answeredAt = Number.NEGATIVE_INFINITY
  /** Since when attempts have failed. Silence alone proves nothing: the process may have stood still. */
  #failingSince: number | undefined
  #rows: readonly NodeRow[] = []
  #hasLeft = false
  #ids = 0
  #seenAt: number
  #beatAt: number
  readonly #beats = new Map<number, Beat>()
  /** The configurations that nodes have, and since when one that none had before is among several. */
  #digests: ReadonlySet<string> = new Set()
  #differSince: number | undefined
  /** Network keys that memory has although no monitor of this node has them. */
  readonly #strange = new Set<string>()
  /** Keys that wait for the end of a roll-out: the store has them, and memory does not. */
  #leftOver: ReadonlySet<string> = new Set()
  /** Until when what it takes may be something of which it has sent an end by itself. */
  #doubtsUntil = Number.NEGATIVE_INFINITY
  readonly #speakers = new Speakers()
  /** Whether all that processes of this node have noted before they sent it without the store is among the news, or stored. */
  #sent: 'unread' | 'in reading' | 'read' = 'unread'
  /** The rows of messages that it sent without the store and that a holder has to know. */
  #news: readonly StoredRow[] = []
  /** Those that the store got a short while ago, and what was given up then: a failover may lose them. */
  #handedOver: readonly { readonly row: StoredRow; readonly at: number }[] = []
  /** Whether a hand-over is in progress. */
  #isHandingOver = false
  /** The numbers of the last hand-over, and of the last one that the store has. */
  #handOvers = 0
  #storedHandOver = 0
  /** Whether a write is in progress. */
  #writing: readonly Fence[] | undefined
  readonly #crossChecks: CrossCheckBook
  #effects: MemberEffect[] = []

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
    this.#crossChecks = new CrossCheckBook(node)
    this.#parts = { network: newPart(process), machine: newPart(process) }
    this.#seenAt = now
    this.#beatAt = now
  }

  // Events.

  /** To be called once a second, and at the start. */
  tick(now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      for (const [id, { sentAt }] of this.#beats) if (now - sentAt >= answerTimeoutMs) this.#failed(id, now)
      if (now >= this.#beatAt) this.#beat(now)
      this.#handOverIfNeeded(now)
      this.#readIfNeeded(now)
      const nodes = this.#speakers.ask(this.#stand(now), this.#rows, now)
      if (nodes.length > 0) this.#effects.push({ type: 'ask', nodes })
    })
  }

  /** The monitors from now on. */
  configured(settings: MemberSettings, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      const removed = [...this.#settings.network.keys()].filter((key) => !settings.network.has(key))
      this.#settings = settings
      // Whether other nodes still have what this one no longer has is known to a holder alone.
      if (isByItself(this.#mode)) this.#release(removed, 'lost')
      // What is known under a former name and what others have stored under the new one are read together.
      const former = [...settings.network].filter(([key, present]) => key !== present && this.#leftOver.has(present))
      this.#leaveOver(former.map(([key]) => key))
      this.#differs(now)
      if (!isByItself(this.#mode) && removed.length > 0) {
        if (!this.#isSettled(now)) this.#leaveOver(removed)
        // Its outbox has them until receivers are told.
        else if (this.#parts.network.isKnown) for (const key of removed) this.#strange.add(key)
      }
      this.#shared = ''
      this.#beat(now)
    })
  }

  /** Whether none of its witnesses answers. */
  isolated(isIsolated: boolean, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      if (isIsolated === (this.#isolatedSince !== undefined)) return
      this.#isolatedSince = isIsolated ? now : undefined
      this.#beat(now)
    })
  }

  answered(id: number, { rows, leases, handedOver }: BeatAnswer, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      const beat = this.#beats.get(id)
      this.#beats.delete(id)
      if (!beat) return
      if (beat.sentAt >= this.#answeredAt) this.#rows = rows
      this.#answeredAt = Math.max(this.#answeredAt, beat.sentAt)
      this.#failingSince = undefined
      for (const shard of shards) this.#take(shard, beat, leases[shard], now)
      if (handedOver < beat.handedOver) {
        // A failover has taken it.
        this.#storedHandOver = handedOver
        this.#handOverAgain(now)
      }
      this.#differs(now)
      this.#applyMode(now)
      const isAble = (key: string): boolean => this.#isolatedSince === undefined && this.#settings.network.has(key)
      const { questions, answers } = this.#crossChecks.receive(this.#rows, isAble, now)
      for (const question of questions) this.#effects.push({ type: 'look', question })
      if (answers.length > 0) this.#effects.push({ type: 'crossChecks', answers })
      this.#handOverIfNeeded(now)
      this.#readIfNeeded(now)
      // What a look has shown to be free is taken at once.
      if (shards.some((shard) => this.#ask(shard, now).type === 'take')) this.#beat(now)
    })
  }

  /** It failed, or had no answer in time: the store may have it or not. */
  unanswered(id: number, now: number): readonly MemberEffect[] {
    return this.#during(now, () => this.#failed(id, now))
  }

  /** Undefined: what is stored cannot be read now. */
  read(id: number, shard: Shard, stored: Stored | undefined, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      const part = this.#parts[shard]
      const { reading, lease } = part
      if (reading?.id !== id) return
      part.reading = undefined
      if (!stored || lease.hold?.epoch !== reading.epoch) part.mustRead = true
      else this.#adopt(shard, stored, now)
    })
  }

  released(fate: Fate, rows: readonly StoredRow[]): void {
    if (fate === 'lost') this.#news = [...this.#news, ...rows]
    if (fate === 'perhaps lost')
      this.#handedOver = [...this.#handedOver, ...rows.map((row) => ({ row, at: this.#seenAt }))]
  }

  /** Takes the rows of what this and earlier processes of the node have sent without the store. Undefined: they cannot be read now. */
  takeSent(rows: readonly StoredRow[] | undefined, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      // If it has sent something meanwhile, that is read as well.
      if (this.#sent === 'in reading') this.#sent = rows ? 'read' : 'unread'
      this.#news = [...this.#news, ...(rows ?? [])]
      if (!this.#isBusy) this.#effects.push({ type: 'forget' })
      this.#readIfNeeded(now)
    })
  }

  /** `isStored`: false also if nobody knows. */
  handedOver({ number, rows }: HandOver, isStored: boolean, now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      this.#isHandingOver = false
      if (!isStored) return
      this.#storedHandOver = number
      this.#news = this.#news.filter((one) => !rows.includes(one))
      const before = this.#handedOver.filter(({ at }) => now - at < handOverAgainMs)
      this.#handedOver = [...before, ...rows.map((row) => ({ row, at: now }))]
      if (!this.#isBusy) this.#effects.push({ type: 'forget' })
    })
  }

  /** The store has lost something. Where it has what was handed over, nothing changes. */
  #handOverAgain(now: number): void {
    const again = this.#handedOver.filter(({ at }) => now - at < handOverAgainMs).map(({ row }) => row)
    this.#news = [...new Set([...again, ...this.#news])]
  }

  /** Something was noted that leaves without the store. */
  sentAlone(): void {
    this.#sent = 'unread'
  }

  /**
   * The fences of a write that may be made now, one at a time. `wrote` has to follow. Undefined: it may not write about these now,
   * or another write is in progress.
   */
  beginWrite(of: readonly Shard[], now: number): readonly Fence[] | undefined {
    const parts = shards.filter((shard) => of.includes(shard))
    const isReady = parts.every((shard) => this.#isCoordinated(shard, now))
    if (this.#writing || !isReady) return undefined
    this.#writing = parts.map((shard): Fence => {
      const part = this.#parts[shard]
      part.attempts += 1
      const { acknowledged, attempts, lease } = part
      const epoch = lease.hold?.epoch ?? 0
      return { shard, node: this.#node, process: this.#process, epoch, acknowledged, number: attempts }
    })
    return this.#writing
  }

  /** How it ended. `failed`: nobody knows whether the store has it. */
  wrote(fences: readonly Fence[], outcome: Fenced | 'failed', now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      if (this.#writing === fences) this.#writing = undefined
      if (outcome === 'failed') return
      for (const { shard, epoch, number } of fences) {
        const part = this.#parts[shard]
        if (part.lease.hold?.epoch !== epoch) continue
        if (outcome === 'stored') part.acknowledged = Math.max(part.acknowledged, number)
        else if (outcome.refused.includes(shard)) part.lease = unsure(part.lease)
      }
      if (outcome !== 'stored') this.#beat(now)
    })
  }

  /** Another node has said in answer to a question of `askedAt` that it speaks. */
  otherSpeaks(node: string, askedAt: number, now: number): readonly MemberEffect[] {
    return this.#during(now, () => this.#speakers.note(node, askedAt))
  }

  /** The process ends in order, and has stored what it could. */
  leave(now: number): readonly MemberEffect[] {
    return this.#during(now, () => {
      this.#hasLeft = true
    })
  }

  // Cross-checks.

  /** Takes the questions of the states to other nodes, before each tick. */
  asks(questions: readonly Question[], now: number): void {
    this.#crossChecks.asks(questions, this.#rows, now)
  }

  /** Whether this node reaches what another one has asked about. Undefined: its run came to no verdict. */
  looked(question: OthersQuestion, reaches: boolean | undefined): void {
    if (this.#isolatedSince === undefined) this.#crossChecks.looked(question, reaches)
  }

  /** Who can be asked now whether it reaches a monitor: the next node by name with the same monitors and a network. */
  otherNode(key: string, now: number): OtherNode | undefined {
    const isAble = this.#isolatedSince === undefined && this.#isCoordinated('network', now)
    if (!isAble || nodeOfKey(key) !== undefined || key === nodesKey) return undefined
    const names = this.#others().map(({ node }) => node)
    const other = names.find((name) => name > this.#node) ?? names[0]
    return other === undefined ? undefined : { own: this.#node, other, mayAsk: this.#crossChecks.mayAsk(now) }
  }

  /** The live nodes with the same monitors and a network, by name. */
  #others(): readonly NodeRow[] {
    const all = this.#rows.filter(({ node, isLive, isIsolated }) => node !== this.#node && isLive && !isIsolated)
    const same = all.filter(({ facts }) => facts?.digest === this.#settings.digest)
    return same.toSorted((one, other) => (one.node < other.node ? -1 : 1))
  }

  // What is true now.

  /** Also sees that the process has just stood still, before any event tells. */
  mode(now: number): Mode {
    if (now - this.#seenAt >= standstillMs) return 'joining'
    const { lease } = this.#parts.machine
    if (now - this.#answeredAt < stopMs) return isTakenAway(lease) ? 'displaced' : 'member'
    if (this.#failingSince === undefined) return 'joining'
    return now - this.#failingSince < aloneMs ? 'cut off' : 'alone'
  }

  /** Whether this node runs the monitors of the network for all. */
  holdsLease(now: number): boolean {
    return this.mode(now) === 'member' && holds(this.#parts.network.lease, now) && !this.#hasLeft
  }

  /** The node that holds the lease of the network, as far as this one has seen it renewed. */
  holder(now: number): string | undefined {
    const { view } = this.#parts.network.lease
    if (this.mode(now) !== 'member' || !view?.row || view.row.hasLeft) return undefined
    return this.holdsLease(now) ? this.#node : now - view.since < stopMs + beatMs ? view.row.node : undefined
  }

  /** The rows as of the latest answer, and for how long this node has been a member without a break. */
  rows(now: number): { readonly rows: readonly NodeRow[]; readonly ageMs: number; readonly memberMs: number } {
    const memberMs = this.#memberSince === undefined ? 0 : now - this.#memberSince
    return { rows: this.#rows, ageMs: now - this.#answeredAt, memberMs }
  }

  /** Whether states, ledger and outbox of this process are to have a monitor. What it watches but does not run waits. */
  watches(key: string): boolean {
    if (isByItself(this.#mode)) return true
    const isOfMachine = nodeOfKey(key) !== undefined
    if (isOfMachine) return this.#settings.own.has(key) && (this.#parts.machine.isKnown || this.#mode === 'displaced')
    return this.#parts.network.isKnown
  }

  /** Whether this process runs a monitor. */
  runs(key: string, now: number): boolean {
    const mode = this.mode(now)
    if (this.#hasLeft || mode === 'joining' || !this.watches(key)) return false
    return isByItself(mode) || nodeOfKey(key) !== undefined || this.holdsLease(now)
  }

  /** Whether others take care of what is known of a key that this node does not watch, or may still do so. */
  isElsewhere(key: string): boolean {
    const byItself = isByItself(this.#mode)
    if (nodeOfKey(key) !== undefined) return nodeOfKey(key) !== this.#node || !(byItself || this.#parts.machine.isKnown)
    if (!byItself && !this.#parts.network.isKnown) return true
    // A former name is its own as well.
    return !this.#settings.network.has(key) && (byItself || !this.#isSettled(this.#seenAt))
  }

  /** To be asked right before a message leaves. */
  voice(key: string, now: number): Voice {
    if (this.#hasLeft || !this.#remembers(key)) return 'silent'
    if (this.#isCoordinated(nodeOfKey(key) === undefined ? 'network' : 'machine', now)) return 'coordinated'
    return this.mode(now) === 'alone' && !this.isUpToOther(key, now) ? 'alone' : 'silent'
  }

  /** Whether memory may have it. What was released while its attempt was about to be stored is not stored. */
  #remembers(key: string): boolean {
    if (nodeOfKey(key) !== undefined) return true
    return this.#settings.network.has(key) || key === nodesKey || this.#strange.has(key)
  }

  /** The node that speaks of the network instead of this one while neither has the store. */
  speaker(now: number): string | undefined {
    return this.mode(now) === 'alone' ? this.#speakers.other(this.#stand(now).holder, now) : undefined
  }

  /** Whether that node sends the messages about a key. Each node sends those about its own machine. */
  isUpToOther(key: string, now: number): boolean {
    return nodeOfKey(key) === undefined && this.speaker(now) !== undefined
  }

  /** Whether it tells a node that asks that this one speaks. `keepsUp`: runs of its schedule begin in time. */
  speaksFor(asker: string, keepsUp: boolean, now: number): boolean {
    return keepsUp && !this.#hasLeft && maySpeakFor(asker, this.#stand(now))
  }

  #stand(now: number): Stand {
    const { row } = this.#parts.network.lease.view ?? {}
    return {
      node: this.#node,
      holder: row?.hasLeft === false ? row.node : undefined,
      withoutStoreMs: isByItself(this.mode(now)) ? now - (this.#failingSince ?? now) : undefined,
      isIsolated: this.#isolatedSince !== undefined,
    }
  }

  #isCoordinated(shard: Shard, now: number): boolean {
    const { lease, isKnown, mustRead, reading } = this.#parts[shard]
    return this.mode(now) === 'member' && holds(lease, now) && isKnown && !mustRead && !reading && !this.#hasLeft
  }

  /** Whether what no monitor of this node has may be removed: all nodes have the same monitors, or have had time. */
  #isSettled(now: number): boolean {
    return this.#differSince === undefined || now - this.#differSince >= rolloutMs
  }

  #differs(now: number): void {
    // One that restarts may be the only one that has the configuration of all.
    const others = this.#rows.filter(({ node, silentMs }) => silentMs < rolloutMs && node !== this.#node)
    const digests = new Set([this.#settings.digest, ...others.flatMap(({ facts }) => facts?.digest ?? [])])
    // A svc.yaml that comes during a roll-out has all of its time.
    if ([...digests].some((one) => !this.#digests.has(one))) this.#differSince = now
    this.#digests = digests
    if (digests.size === 1) this.#differSince = undefined
    const { network } = this.#parts
    const isDue = (key: string): boolean => this.#isSettled(now) || this.#settings.network.has(key)
    const isReady = network.isKnown && !network.reading && holds(network.lease, now)
    if (isReady && [...this.#leftOver].some(isDue)) network.mustRead = true
  }

  // Each event collects its effects.

  #during(now: number, work: () => void): readonly MemberEffect[] {
    this.#effects = []
    if (now - this.#seenAt >= standstillMs) {
      this.#answeredAt = Number.NEGATIVE_INFINITY
      this.#failingSince = undefined
      this.#beats.clear()
    }
    this.#seenAt = now
    for (const part of Object.values(this.#parts)) part.lease = lapsed(part.lease, now)
    const before = this.#mode
    // First, so that what follows acts as what the node is by now.
    this.#applyMode(now)
    work()
    this.#applyMode(now)
    const shared = this.#sharedAt(now)
    if (shared !== this.#shared)
      this.#effects.push({ type: 'changed', mode: this.#mode, before, holder: this.holder(now) })
    this.#shared = shared
    return this.#effects
  }

  #applyMode(now: number): void {
    const before = this.#mode
    const mode = this.mode(now)
    this.#mode = mode
    if (mode !== before) {
      this.#memberSince = mode === 'member' ? now : undefined
      if (before === 'alone') this.#doubtsUntil = now + aloneMs
      const wasByItself = isByItself(before) && !isByItself(mode)
      // What it ran only because it did not reach the store.
      if (wasByItself && !this.#parts.network.isKnown) this.#release(this.#networkKeys())
      if (wasByItself && !this.#parts.machine.isKnown) this.#release([...this.#settings.own])
      if (mode === 'displaced') this.#parts.machine.isKnown = false
    }
  }

  /** Everything that `watches`, `runs` and `isElsewhere` depend on besides the configuration. */
  #sharedAt(now: number): string {
    const { network, machine } = this.#parts
    const who = `${this.holdsLease(now)} ${this.holder(now)} ${this.speaker(now)}`
    return `${this.#mode} ${who} ${network.isKnown} ${machine.isKnown} ${this.#isSettled(now)} ${this.#hasLeft}`
  }

  // Leases.

  #ask(shard: Shard, now: number): LeaseAsk {
    const { lease } = this.#parts[shard]
    if (shard === 'machine')
      return askOf(lease, now, { isCandidate: true, claims: lease.last === 0 && !isTakenAway(lease) })
    const holdsMachine = holds(this.#parts.machine.lease, now)
    const isOfEarlier = lease.view?.row?.node === this.#node && lease.last === 0
    const usual = usualDigest(this.#rows)
    return askOf(lease, now, {
      isCandidate: this.#isCandidate(now) && holdsMachine,
      // The process before it of the same name has lost its machine by now.
      claims: isOfEarlier,
      extraMs: usual === undefined || usual === this.#settings.digest ? 0 : minorityMs,
    })
  }

  #isCandidate(now: number): boolean {
    return this.#mayLead(now) && (!this.#isBusy || holds(this.#parts.network.lease, now))
  }

  #mayLead(now: number): boolean {
    // Nodes of versions before share the monitors among themselves.
    if (this.#rows.some(({ isLive, config }) => isLive && config !== leaseConfig)) return false
    const isAlone = this.#others().length === 0
    const isBrief = now - (this.#isolatedSince ?? now) < isolatedMs && holds(this.#parts.network.lease, now)
    return isAlone || this.#isolatedSince === undefined || isBrief
  }

  #beat(now: number): void {
    if (this.#hasLeft) return
    const asks = { network: this.#ask('network', now), machine: this.#ask('machine', now) }
    const isOnlyRenewal = asks.machine.type === 'renew' && asks.network.type === 'renew'
    // Two that take a lease at once would compare with each other.
    if (this.#beats.size > (isOnlyRenewal ? mostBeats : 0)) return
    this.#beatAt = now + (holds(this.#parts.network.lease, now) ? beatMs : lookMs)
    this.#ids += 1
    const { network, machine } = this.#parts
    // What it gives up is no longer its own, whenever the store knows.
    if (asks.network.type === 'leave') network.lease = { ...network.lease, hold: undefined }
    // Nor does it wait in memory, where it would hold up what is written and told about the machine.
    if (network.isKnown && !isByItself(this.#mode) && !this.#mayLead(now)) {
      network.isKnown = false
      this.#release(this.#networkKeys(), 'perhaps lost')
    }
    const acknowledged = { network: network.acknowledged, machine: machine.acknowledged }
    this.#beats.set(this.#ids, { sentAt: now, asks, acknowledged, handedOver: this.#storedHandOver })
    const facts = { ...this.#facts, digest: this.#settings.digest, crossChecks: this.#crossChecks.facts }
    const isIsolated = this.#isolatedSince !== undefined
    const request = { node: this.#node, process: this.#process, isIsolated, facts, asks }
    this.#effects.push({ type: 'beat', id: this.#ids, request })
  }

  #failed(id: number, now: number): void {
    const beat = this.#beats.get(id)
    if (!beat) return
    this.#beats.delete(id)
    // A holder whose lease lapses meanwhile takes it back before others do.
    this.#beatAt = now
    for (const shard of shards) this.#parts[shard].lease = unanswered(this.#parts[shard].lease, beat.asks[shard])
    // A later question may have been answered.
    if (now - this.#answeredAt >= beatMs) this.#failingSince ??= now
  }

  #take(shard: Shard, { sentAt, asks, acknowledged }: Beat, answer: BeatAnswer['leases'][Shard], now: number): void {
    const part = this.#parts[shard]
    const [ask, before] = [asks[shard], part.lease]
    part.lease = answered(before, ask, answer, { sentAt, now })
    const { hold } = part.lease
    const writes = answer.row?.writes ?? 0
    // The number of writes never falls, unless the store has gone back in time.
    const isBack = writes < acknowledged[shard] || (before.view?.row !== undefined && answer.row === undefined)
    if (isBack) {
      this.#handOverAgain(now)
      part.isLost = part.isKnown
    }
    if (isOthers(part.lease) && part.isKnown) {
      part.isKnown = false
      // The next holder has begun without writes of this one that the store had acknowledged.
      const isLost = part.isLost || (answer.row?.base ?? 0) < part.acknowledged
      if (shard === 'network') this.#release(this.#networkKeys(), isLost ? 'lost' : 'stored')
    }
    if (isBack) part.acknowledged = writes
    else if (!part.isKnown) part.acknowledged = Math.max(part.acknowledged, writes)
    if (hold === undefined) return
    if (hold.epoch !== before.hold?.epoch) {
      const isFirst = before.view?.row?.process !== this.#process
      if (ask.type === 'take' && isFirst) part.silentMs = ask.expected?.silentMs
      Object.assign(part, { acknowledged: writes, attempts: writes, mustRead: true, reading: undefined })
      // One in an epoch that is over is refused, whenever the store gets it.
      if (this.#writing?.some((one) => one.shard === shard)) this.#writing = undefined
    } else if (isBack) part.lease = unsure(part.lease)
    else if (writes > part.attempts) {
      // Another node has handed something over.
      Object.assign(part, { acknowledged: writes, attempts: writes, mustRead: true })
    }
  }

  #handOverIfNeeded(now: number): void {
    const isMember = this.mode(now) === 'member' && !isOthers(this.#parts.machine.lease)
    if (this.#isHandingOver || !isMember || this.#hasLeft) return
    if (this.#sent === 'unread') {
      this.#sent = 'in reading'
      this.#effects.push({ type: 'find' })
    }
    if (this.#news.length === 0 || this.#sent !== 'read') return
    this.#handOvers += 1
    this.#isHandingOver = true
    const what = { node: this.#node, process: this.#process, number: this.#handOvers, rows: this.#news }
    this.#effects.push({ type: 'hand over', what })
  }

  /** Whether something that it has told without the store may not be stored yet. That comes before it reads or leads anything. */
  get #isBusy(): boolean {
    return this.#sent !== 'read' || this.#news.length > 0
  }

  #readIfNeeded(now: number): void {
    if (this.#isBusy) return
    for (const shard of shards) {
      const part = this.#parts[shard]
      const { mustRead, reading, lease } = part
      if (!mustRead || reading || !lease.hold || this.mode(now) !== 'member' || !holds(lease, now)) continue
      this.#ids += 1
      part.mustRead = false
      part.reading = { id: this.#ids, epoch: lease.hold.epoch }
      this.#effects.push({ type: 'read', id: this.#ids, shard })
    }
  }

  #adopt(shard: Shard, stored: Stored, now: number): void {
    const part = this.#parts[shard]
    const isOf = (key: string): boolean =>
      shard === 'network' ? nodeOfKey(key) === undefined : nodeOfKey(key) === this.#node
    const { network, own } = this.#settings
    const all = new Set(
      [...stored.states.map(({ row }) => row.key), ...stored.outbox.map(({ subject }) => subject.key)]
        .concat(stored.incidents.map(({ key }) => key))
        .filter(isOf),
    )
    const configured = shard === 'network' ? this.#networkKeys() : [...own, ...all]
    const settled = this.#isSettled(now)
    const strange = [...all].filter((key) => !this.#remembers(key))
    const isInMemory = (key: string): boolean => part.isKnown && !this.#leftOver.has(key)
    const inMemory = new Set(configured.filter(isInMemory))
    if (part.isKnown) this.#effects.push({ type: 'write again', stored: takenOf(stored, inMemory) })
    // Nodes with a newer svc.yaml have renamed it, and this one goes on under the name that it has.
    const isRenamed = ({ state: { incident } }: Stored['states'][number]): boolean =>
      incident?.formerly?.some(({ key }) => network.get(key) === key && !isInMemory(key)) === true
    const renamed = new Set(stored.states.filter(isRenamed).map(({ row }) => row.key))
    const isTaken = (key: string): boolean => settled || renamed.has(key)
    const keys = new Set([...configured.filter((key) => !isInMemory(key)), ...strange.filter(isTaken)])
    if (keys.size > 0) {
      const silentMs = part.silentMs ?? (shard === 'network' ? stored.ageMs : undefined)
      const taken = takenOf(stored, keys, silentMs)
      const isInDoubt = (silentMs ?? 0) >= aloneMs || now < this.#doubtsUntil
      this.#effects.push({ type: 'adopt', stored: isInDoubt ? inDoubt(taken) : taken })
    }
    if (shard === 'network') {
      this.#leftOver = new Set(strange.filter((key) => !isTaken(key)))
      if (settled) for (const key of strange) this.#strange.add(key)
    }
    Object.assign(part, { isKnown: true, isLost: false })
    this.#shared = ''
  }

  #networkKeys(): readonly string[] {
    return [...this.#settings.network.keys(), nodesKey, ...this.#strange]
  }

  #leaveOver(keys: readonly string[]): void {
    this.#leftOver = new Set([...this.#leftOver, ...keys])
    this.#release(keys, 'perhaps lost')
  }

  #release(keys: readonly string[], likely: Fate = 'stored'): void {
    if (keys.length === 0) return
    for (const key of keys) this.#strange.delete(key)
    const fate = likely === 'perhaps lost' && this.#parts.network.isLost ? 'lost' : likely
    this.#effects.push({ type: 'release', stored: takenOf(nothing, new Set(keys)), fate })
  }
}

const newPart = (process: string): Part => ({
  lease: newLease(process),
  isKnown: false,
  isLost: false,
  mustRead: false,
  reading: undefined,
  silentMs: undefined,
  acknowledged: 0,
  attempts: 0,
})

/** Until when a failover may lose what was handed over. Milliseconds. */
const handOverAgainMs = 60_000
/** How many renewals may be on their way besides another one. */
const mostBeats = 2

/** A node that does not reach the store acts by itself. */
export const isByItself = (mode: Mode): boolean => mode === 'cut off' || mode === 'alone'

/** The shards of these keys. */
export const shardsOf = (keys: Iterable<string>): readonly Shard[] => [
  ...new Set([...keys].map((key): Shard => (nodeOfKey(key) === undefined ? 'network' : 'machine'))),
]

/**
 * Whoever held the lease before and was without the store for so long that it sent by itself may have sent an end that the store
 * does not know. If the fault stands, receivers must not go on believing that it is over.
 */
const inDoubt = (taken: Taken): Taken => ({
  ...taken,
  outbox: taken.outbox.map((one) => (one.row?.last ? { ...one, row: { ...one.row, isInDoubt: true } } : one)),
})

const nothing: Stored = { ageMs: undefined, states: [], incidents: [], outbox: [] }
const takenOf = ({ states, incidents, outbox }: Stored, keys: ReadonlySet<string>, silentMs?: number): Taken => ({
  keys,
  silentMs,
  states: states.filter(({ row }) => keys.has(row.key)),
  incidents: incidents.filter(({ key }) => keys.has(key)),
  outbox: outbox.filter(({ subject }) => keys.has(subject.key)),
})

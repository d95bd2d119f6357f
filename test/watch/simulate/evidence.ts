import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import type * as Shipped from '../../../src/core/watch/states/index.ts'

/** The parts of the simulation that the rules below use. Times are its milliseconds. */
export type EvidenceContext = {
  readonly broken: (rule: string, text: string) => void
  readonly now: () => number
  /** Whether neither svc, its line nor its configuration was disturbed, and every run came to a verdict. */
  readonly isQuiet: (peer: string, from: number, to: number) => boolean
  /** Whether the faults of a peer are all its own. */
  readonly isFree: (peer: string) => boolean
  /** Whether the clock of the wall was never set back, so that an hour by it is an hour. */
  readonly hasRealHours: () => boolean
  readonly flappingOf: (peer: string) => number
  /** The kind of the open incident of a subject: `begin`, `change`, `flapping`. */
  readonly openAs: (id: string) => string | undefined
  readonly confirmMs: number
  readonly recoverMs: number
}

type Observation = {
  readonly beganAt: number
  readonly endedAt: number
  /** When the states were called with it. */
  readonly reportedAt: number
  readonly depth: ExecutionMode
  readonly level: 'ok' | 'warning' | 'failed'
  readonly isHeld: boolean
  /** It began before another one that was reported earlier. */
  readonly isLate: boolean
}

/** Consecutive bad observations. */
type Streak = {
  readonly firstAt: number
  firstFailedAt: number | undefined
  lastAt: number
  /** When the store had it first. */
  storedAt: number | undefined
  deepest: ExecutionMode
  isHeld: boolean
}

type SubjectEvidence = {
  readonly check: string
  readonly item: string | undefined
  checkDepth: ExecutionMode
  readonly all: Observation[]
  newestAt: number
  streak: Streak | undefined
  /** When streaks began, of which all can tell. */
  onsets: number[]
  /** Every change from healthy to bad in the order of the reports, and every start while it was bad. */
  readonly changes: number[]
  readonly blips: number[]
  /** The streak that the last report ended unconfirmed. */
  ended: Streak | undefined
  hasBegun: boolean
  /** When it has to be flapping: a witness may have to answer first. */
  flapsBy: number | undefined
}

const hour = 3_600_000
/** The promise of svc: how old the run of a cause may be. */
const causeFreshMs = 10_000
const depths: readonly ExecutionMode[] = ['Basic', 'Standard', 'Advanced']
const covers = (depth: ExecutionMode, other: ExecutionMode): boolean => depths.indexOf(depth) >= depths.indexOf(other)
const deeper = (a: ExecutionMode, b: ExecutionMode): ExecutionMode => (covers(a, b) ? a : b)
const rank = { ok: 0, warning: 1, failed: 2 } as const
const stops = new Set(['dns', 'refused', 'timeout', 'tls', 'protocol', 'auth', 'internal', 'dependency'])

export const subjectId = (peer: string, check: string, item: string | undefined): string =>
  JSON.stringify([peer, check, item ?? ''])

/**
 * The observations of runs, and whether transitions follow from them. The rules of the simulation compare transitions
 * with the script of the peers; these compare them with the observations, which is how a wrong beginning and a missing
 * blip show.
 */
export class Evidence {
  readonly #context: EvidenceContext
  readonly #subjects = new Map<string, SubjectEvidence>()
  readonly #ofPeer = new Map<string, Set<string>>()
  /** Since when observations of a peer prove anything: its last change of settings, or the start of svc. */
  readonly #anewAt = new Map<string, number>()
  #startedAt = 0
  #storedAt = 0
  /** From the last time when svc stored something to its next start. */
  readonly #lost: { readonly from: number; readonly to: number }[] = []
  readonly #seenAt = new Map<string, number>()

  constructor(context: EvidenceContext) {
    this.#context = context
  }

  started(): void {
    this.#startedAt = this.#context.now()
    this.#lost.push({ from: this.#storedAt, to: this.#startedAt })
    // After a start, a fault that stands may count anew.
    for (const { all, changes } of this.#subjects.values())
      if ((all.at(-1)?.level ?? 'ok') !== 'ok') changes.push(this.#startedAt)
  }

  stored(): void {
    const now = this.#context.now()
    this.#storedAt = now
    for (const { streak } of this.#subjects.values()) if (streak) streak.storedAt ??= now
  }

  /** However often svc is killed: what was seen once, and stands, is an incident soon. */
  isOverdue(id: string, ms: number): boolean {
    const storedAt = this.#subjects.get(id)?.streak?.storedAt
    return storedAt !== undefined && this.#context.now() - storedAt > ms && this.#context.openAs(id) === undefined
  }

  /** A victim is one of a cause that a run has seen just before the fault was confirmed. */
  blames(peer: string, id: string, at: number, causes: readonly string[], text: string): void {
    const confirmedAt = this.confirmedAt(id, at, 'warning')
    if (confirmedAt === undefined || this.#isBeforeAnew(peer, at)) return
    const seenLast = Math.max(...causes.map((cause) => this.#seenAt.get(cause) ?? Number.NEGATIVE_INFINITY))
    if (seenLast < confirmedAt - causeFreshMs - 1)
      this.#context.broken('a cause is seen', `${text}: no run has seen one for ${confirmedAt - seenLast} ms`)
  }

  /** When the first run began that can confirm a fault that is this bad. Its incident may have to wait for its causes. */
  confirmedAt(id: string, at: number, level: 'warning' | 'failed'): number | undefined {
    const confirms = (one: Observation): boolean =>
      one.beganAt >= at + this.#context.confirmMs - 1 && rank[one.level] >= rank[level]
    return this.#subjects.get(id)?.all.find(confirms)?.beganAt
  }

  /** When the bad observations of a subject began. */
  badSince(id: string, level: 'warning' | 'failed'): number | undefined {
    const { streak } = this.#subjects.get(id) ?? {}
    return level === 'failed' ? streak?.firstFailedAt : streak?.firstAt
  }

  /** Whether svc was killed before it stored an observation. */
  #isLost({ reportedAt }: Observation): boolean {
    return this.#lost.some(({ from, to }) => from < reportedAt && reportedAt <= to)
  }

  /** When the latest run of a peer began that came to a verdict. */
  seenAt(peer: string): number {
    return this.#seenAt.get(peer) ?? Number.NEGATIVE_INFINITY
  }

  changed(peer: string): void {
    this.#anewAt.set(peer, this.#context.now())
  }

  /** To be called before the states are. */
  observed(
    peer: string,
    { depth, beganAt, endedAt, verdicts }: Pick<Shipped.RunOfStates, 'depth' | 'beganAt' | 'endedAt' | 'verdicts'>,
  ): void {
    if (verdicts.some(({ level }) => level !== undefined))
      this.#seenAt.set(peer, Math.max(beganAt, this.#seenAt.get(peer) ?? beganAt))
    const reported = new Set<string>()
    for (const { check, item, level, depth: checkDepth, isHeld } of verdicts) {
      const id = subjectId(peer, check, item)
      reported.add(id)
      if (level !== undefined) {
        const subject = this.#take(peer, id, check, item, checkDepth)
        this.#observe(subject, { depth, beganAt, endedAt, level, isHeld: isHeld === true })
      }
    }
    const isWhole = verdicts.every(
      ({ level, fault }) => level !== undefined && !(level === 'failed' && stops.has(fault ?? '')),
    )
    if (!isWhole) return
    for (const id of this.#ofPeer.get(peer) ?? []) {
      const subject = this.#subjects.get(id)
      const isContained = subject && covers(depth, subject.checkDepth)
      if (!subject || reported.has(id) || subject.item !== undefined || !isContained) continue
      this.#observe(subject, { depth, beganAt, endedAt, level: 'ok', isHeld: false })
    }
  }

  /** To be called after the effects of the states were carried out. */
  settled(peer: string): void {
    const { isQuiet, isFree, broken, now, confirmMs, flappingOf, openAs } = this.#context
    for (const id of this.#ofPeer.get(peer) ?? []) {
      const subject = this.#subjects.get(id)
      if (!subject) continue
      const { ended, onsets, hasBegun } = subject
      subject.ended = undefined
      subject.hasBegun = false
      if (!isFree(peer)) continue
      if (
        ended &&
        ended.lastAt - ended.firstAt < confirmMs &&
        !ended.isHeld &&
        !this.#isBeforeAnew(peer, ended.firstAt)
      ) {
        const times = subject.blips.filter((at) => isNear(at, ended.firstAt) || isNear(at, ended.firstFailedAt)).length
        if (times === 0 && isQuiet(peer, ended.firstAt - 60_000, now()) && openAs(id) === undefined)
          broken('each restart is one blip', `${id} was bad for ${ended.lastAt - ended.firstAt} ms`)
      }
      const inAnHour = onsets.filter((at) => at > now() - hour + 60_000).length
      if (inAnHour <= flappingOf(peer) || openAs(id) === 'flapping') subject.flapsBy = undefined
      else if (hasBegun) subject.flapsBy ??= now() + 15_000
      if (now() >= (subject.flapsBy ?? Number.POSITIVE_INFINITY) && isQuiet(peer, now() - hour, now()))
        broken('flapping is one incident', `${id} with ${inAnHour} faults in an hour is ${openAs(id)}`)
    }
  }

  /** A transition, and when it says that it began. To be called before the simulation takes note of it. */
  takeTransition(peer: string, { what, check, item, to }: Shipped.Transition, at: number, text: string): void {
    const id = subjectId(peer, check, item)
    const subject = this.#subjects.get(id)
    if (!subject) return
    const { broken, openAs } = this.#context
    const isFlapping = openAs(id) === 'flapping'
    if (what === 'begin') this.#begins(peer, subject, at, to === 'failed' ? 'failed' : 'warning', text)
    if (what === 'blip') {
      // The store has none, so that one right before a kill is reported again.
      const isAgain = subject.blips.some((one) => isNear(one, at))
      if (isAgain && at >= this.#startedAt) broken('each restart is one blip', `${text} twice`)
      subject.blips.push(at)
    }
    if (what === 'end') this.#ends(peer, subject, at, text)
    if (what === 'change' && to === 'warning' && !isFlapping) this.#eases(peer, subject, at, text)
    if (what === 'end' && isFlapping) this.#calms(peer, subject, text)
    if (isFlapping && (what === 'end' || what === 'settled')) subject.onsets = []
    if (what === 'flapping') this.#flaps(peer, subject, text)
    if (what === 'removed') this.#subjects.delete(id)
  }

  #take(peer: string, id: string, check: string, item: string | undefined, checkDepth: ExecutionMode): SubjectEvidence {
    const subject = this.#subjects.get(id)
    if (subject) {
      subject.checkDepth = checkDepth
      return subject
    }
    const made: SubjectEvidence = {
      check,
      item,
      checkDepth,
      all: [],
      newestAt: Number.NEGATIVE_INFINITY,
      streak: undefined,
      onsets: [],
      changes: [],
      blips: [],
      ended: undefined,
      hasBegun: false,
      flapsBy: undefined,
    }
    this.#subjects.set(id, made)
    this.#ofPeer.set(peer, (this.#ofPeer.get(peer) ?? new Set()).add(id))
    return made
  }

  #observe(
    subject: SubjectEvidence,
    { depth, beganAt, endedAt, level, isHeld }: Omit<Observation, 'isLate' | 'reportedAt'>,
  ): void {
    const isLate = beganAt <= subject.newestAt
    const before = subject.all.at(-1)
    subject.newestAt = Math.max(subject.newestAt, beganAt)
    subject.all.push({ depth, beganAt, endedAt, level, isHeld, isLate, reportedAt: this.#context.now() })
    if (level !== 'ok' && (before === undefined || before.level === 'ok')) subject.changes.push(this.#context.now())
    if (isLate) return
    const { streak } = subject
    if (level === 'ok') {
      if (!streak || !covers(depth, streak.deepest)) return
      subject.ended = streak
      subject.streak = undefined
      return
    }
    const failedAt = level === 'failed' ? beganAt : undefined
    if (streak) {
      streak.firstFailedAt ??= failedAt
      streak.lastAt = beganAt
      streak.deepest = deeper(streak.deepest, depth)
      streak.isHeld ||= isHeld
      return
    }
    subject.streak = {
      firstAt: beganAt,
      firstFailedAt: failedAt,
      lastAt: beganAt,
      storedAt: undefined,
      deepest: depth,
      isHeld,
    }
    subject.onsets.push(beganAt)
    subject.hasBegun = true
  }

  #isBeforeAnew(peer: string, at: number): boolean {
    return at < Math.max(this.#startedAt, this.#anewAt.get(peer) ?? 0)
  }

  #begins(peer: string, { all }: SubjectEvidence, at: number, to: 'warning' | 'failed', text: string): void {
    const { isFree, isQuiet, broken, now, confirmMs } = this.#context
    if (!isFree(peer)) return
    const isBad = ({ level }: Observation): boolean => rank[level] >= rank[to]
    const isQuietNow = isQuiet(peer, at - 60_000, now())
    const first = all.find((one) => isNear(one.beganAt, at) && isBad(one))
    if (!first) {
      if (isQuietNow) broken('right beginning', `${text}: no bad run began then`)
      return
    }
    const anewAt = this.#anewAt.get(peer) ?? 0
    // Over a start, nobody knows the settings of before.
    if (at < anewAt && this.#startedAt < anewAt) broken('right beginning', `${text}: it began under other settings`)
    const confirms = ({ beganAt }: Observation): boolean => beganAt >= at + confirmMs - 1
    if (!first.isHeld && !all.some((one) => isBad(one) && confirms(one)))
      broken('confirmed by time', `${text}: no second run was bad`)
    const later = all.filter(({ beganAt, isLate }) => beganAt > at && !isLate)
    if (later.some((one) => one.level === 'ok' && covers(one.depth, first.depth) && !this.#isLost(one)))
      broken('right beginning', `${text}: a run was healthy since`)
    if (!isQuietNow) return
    const earlier = all.findLast(({ beganAt, isLate }) => beganAt < at - 1 && !isLate)
    const isKnown = earlier !== undefined && isQuiet(peer, earlier.beganAt, now())
    if (isKnown && isBad(earlier) && !this.#isBeforeAnew(peer, earlier.beganAt))
      broken('right beginning', `${text}: it failed ${at - earlier.beganAt} ms before`)
    const runMs = Math.max(...all.filter(({ beganAt }) => beganAt >= at).map((one) => one.endedAt - one.beganAt))
    if (now() - at > confirmMs + 2 * runMs + 10_000) broken('confirmed soon', `${text} after ${now() - at} ms`)
  }

  /** Of a recovery in steps, the worst run counts. */
  #eases(peer: string, { all }: SubjectEvidence, at: number, text: string): void {
    const { isQuiet, isFree, broken, now } = this.#context
    if (!isFree(peer) || !isQuiet(peer, at - 1_000, now())) return
    const since = all.filter(({ beganAt, isLate }) => beganAt >= at - 1 && !isLate)
    if (since.some(({ level }) => level === 'failed')) broken('recovery in steps', `${text}: a run failed since`)
    if (!since.some(({ level }) => level === 'warning')) broken('recovery in steps', `${text}: no run warned since`)
  }

  #ends(peer: string, { all }: SubjectEvidence, at: number, text: string): void {
    const { isQuiet, broken, now, recoverMs } = this.#context
    if (!isQuiet(peer, at - 1_000, now())) return
    const since = all.filter(({ beganAt, isLate }) => beganAt >= at - 1 && !isLate)
    if (since.some(({ level }) => level !== 'ok')) broken('no recovery while it stands', `${text}: a run failed since`)
    if (!since.some(({ level, beganAt }) => level === 'ok' && beganAt >= at + recoverMs))
      broken('recovery by time', `${text}: no second run was healthy`)
  }

  #flaps(peer: string, { changes }: SubjectEvidence, text: string): void {
    const { now, broken, flappingOf, hasRealHours } = this.#context
    if (!hasRealHours()) return
    // With half a minute for what was reported after its beginning. What flaps because of its cause is told once that is over.
    const hourBefore = (end: number): number => changes.filter((at) => at > end - hour - 30_000 && at <= end).length
    const inAnHour = Math.max(0, ...changes.filter((at) => at > now() - hour).map(hourBefore))
    if (inAnHour <= flappingOf(peer)) broken('no flapping without many faults', `${text}: ${inAnHour} in an hour`)
  }

  #calms(peer: string, { all }: SubjectEvidence, text: string): void {
    const { now, broken, isQuiet } = this.#context
    const lastBad = all.findLast(({ level, isLate }) => level !== 'ok' && !isLate)
    if (lastBad && now() - lastBad.beganAt < hour / 2 && isQuiet(peer, now() - hour / 2, now()))
      broken('flapping ends by time', `${text} ${now() - lastBad.beganAt} ms after its last fault`)
  }
}

const isNear = (a: number, b: number | undefined): boolean => b !== undefined && Math.abs(a - b) <= 1

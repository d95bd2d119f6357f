import { entryOf } from '../../../src/core/base/lazy.ts'
import type { Delivery } from '../../../src/core/watch/notify/receiver.ts'
import * as Shipped from '../../../src/core/watch/outbox/index.ts'
import type { SilenceRules, StoredSilence } from '../../../src/core/watch/silences/index.ts'
import * as ShippedSilences from '../../../src/core/watch/silences/index.ts'
import type {
  Incident,
  StoredSubject,
  SubjectState,
  Verdict,
  WatchedMonitor,
} from '../../../src/core/watch/states/index.ts'
import { Chance } from './chance.ts'
import { type Look, Process, type Subject as Watching, shipped as watching } from './process.ts'
import { Queue } from './queue.ts'
import { Texts } from './texts.ts'
import { hour, isWithin, minute, type Outcome, type Span, second, Trial } from './trial.ts'

/** The subject of the simulation: the shipped states, outbox and silences, or copies with a defect. */
export type Subject = Watching &
  Pick<typeof Shipped, 'Outbox' | 'rowsOfSent' | 'withNews' | 'withoutSentEnds'> &
  Pick<typeof ShippedSilences, 'ClockWindows' | 'acksThatEnd' | 'lapsedAcks' | 'silencesOf' | 'warningAckedAt'>

export const shipped: Subject = { ...watching, ...Shipped, ...ShippedSilences }

const day = 24 * hour
const confirmMs = 20 * second
/** A peer that flaps is down for this part of each minute. */
const flapMs = 14 * second
/** In calm times, everything is told within this time: a message a minute, a pause of 5 min, a look at the monitor. */
const boundMs = 10 * minute
const giveUpMs = 7 * day
const brokenMs = 10 * minute

type Level = 'ok' | 'warning' | 'failed'
/** The level of a peer from `begin` on. */
type Segment = { readonly begin: number; readonly level: Level; readonly isFlapping: boolean }

type Peer = {
  readonly subject: StoredSubject
  readonly everyMs: number
  readonly segments: readonly Segment[]
  /** It fails while the first peer cannot be reached, which is its cause then. */
  readonly isVictim: boolean
  readonly silences: readonly Span[]
  /** When somebody acknowledges what stands. */
  readonly acksAt: readonly number[]
  /** When its fault becomes another one. */
  readonly turnsAt: readonly number[]
  /** Runs come to no verdict. */
  readonly starved: readonly Span[]
  readonly removedAt: number
  // What svc says.
  state: SubjectState | undefined
  incident: Incident | undefined
  changedAt: number
  acked: Acked | undefined
  /** The latest verdict of which svc knows, and since when it does. */
  latest: { readonly at: number; readonly level: string; readonly knownAt: number } | undefined
}

/** A fault as it was when somebody acknowledged it, and since when it is no longer that one. */
type Acked = {
  readonly incident: string
  readonly level: string
  readonly kind: string
  readonly from: number
  brokenAt: number | undefined
}

/** `mute`: it receives all, and each answer is lost. */
type Mode = 'up' | 'down' | 'dark' | 'lossy' | 'mute' | 'slow' | 'refuses' | 'picky' | 'busy'
type View = {
  incident: string
  isOpen: boolean
  level: string
  isFlapping: boolean
  beganAt: number
  at: number
  /** When the message was tried first: what is sent again knows no more acknowledgements than it did then. */
  firstAt: number
}
type Receiver = {
  readonly rules: Shipped.ReceiverRules
  readonly windows: readonly (Span & { readonly mode: Mode })[]
  readonly views: Map<string, View>
  /** Incidents of which it received anything but the end, and the subjects that they are of. */
  readonly begins: Map<string, string>
  /** Incidents of which it received the end, and whether that left without the store, which knows them longer then. */
  readonly over: Map<string, boolean>
  readonly incidents: Set<string>
  /** Items that it accepted, of which svc has stored the answer. */
  readonly certain: Set<string>
  /** The lines of each message that it received, by the id of the message. */
  readonly messages: Map<string, { readonly at: number; readonly lines: ReadonlySet<string> }>
  /** The messages to which it gave no answer. */
  readonly unanswered: Set<string>
  /** When it last accepted one of these. */
  repeatedAt: number
  /** When each message was tried first, by its id. */
  readonly triedAt: Map<string, number>
  /** When it was last told of a failure of each subject without the store. */
  readonly worseAt: Map<string, number>
  readonly poisoned: string
  /** It always takes seconds to answer, so that what it is told ends meanwhile. */
  readonly isSlow: boolean
  gaveUp: boolean
  messageAt: number
  /** When the sender last gave up waiting for its answer. */
  unansweredAt: number
  attemptAt: number
  attempts: number
  failingSince: number | undefined
  notBefore: number
}
type OwnIncident = {
  readonly peer: Peer
  readonly id: string
  readonly from: number
  level: string
  to: number
  isTroubled: boolean
}

const idOf = ({ key, check, item }: StoredSubject): string => JSON.stringify([key, check, item])

function segmentsOf(chance: Chance, endAt: number): readonly Segment[] {
  const segments: Segment[] = [{ begin: 0, level: 'ok', isFlapping: false }]
  const isLong = endAt > 2 * day
  let at = chance.between(minute, isLong ? 6 * hour : 20 * minute)
  while (at < endAt - 2 * hour) {
    const isFlapping = chance.is(0.1)
    const changes = isFlapping ? 1 : chance.of([1, 1, 1, 2, 3, 12])
    // What gets worse and eases again and again does so between the attempts at a receiver.
    const lengths = [40 * second, 3 * minute, ...(changes > 3 ? [] : [12 * minute, isLong ? 30 * hour : 2 * hour])]
    let level: Level = chance.of(['failed', 'failed', 'warning'] as const)
    for (let left = changes; left > 0; left -= 1) {
      segments.push({ begin: at, level, isFlapping })
      at += chance.of(lengths) + chance.between(0, minute)
      level = level === 'failed' ? 'warning' : 'failed'
    }
    if (chance.is(0.1)) return segments
    segments.push({ begin: at, level: 'ok', isFlapping: false })
    at += chance.of([45 * second, 10 * minute, isLong ? 20 * hour : 90 * minute]) + chance.between(0, 5 * minute)
  }
  return segments
}

/** 22:13 in UTC. */
const origin = 1_700_000_000_000
/** A silence by the clock begins with a minute. */
const toMinute = (at: number): number => Math.ceil((origin + at) / minute) * minute - origin

function spansOf(chance: Chance, endAt: number, probability: number, lengths: readonly number[]): Span[] {
  const spans: Span[] = []
  if (!chance.is(probability)) return spans
  for (let at = chance.between(0, endAt / 2); at < endAt - 3 * hour; at += chance.between(hour, endAt / 2)) {
    const to = Math.min(endAt - 2 * hour, at + chance.of(lengths))
    spans.push({ from: at, to })
    at = to
  }
  return spans
}

const momentsOf = (chance: Chance, endAt: number, count: number): readonly number[] =>
  Array.from({ length: count }, () => chance.between(minute, endAt - 2 * hour)).toSorted((a, b) => a - b)

const faults = ['refused', 'timeout', 'auth', 'data', 'tls', 'auth'] as const
const unreachableFaults: ReadonlySet<string> = new Set(['refused', 'timeout', 'tls'])

function peersOf(chance: Chance, hands: Chance, endAt: number): readonly Peer[] {
  return Array.from({ length: chance.between(2, 8) }, (_, at): Peer => {
    const key = `Sql/postgres/${at}`
    return {
      subject: { key, type: 'Sql', monitor: `postgres ${at}`, check: 'connect', ...(at === 1 ? { item: '/a' } : {}) },
      everyMs: chance.of(endAt > day ? [5 * minute] : [30 * second, minute, 5 * minute]),
      segments: segmentsOf(chance, endAt),
      isVictim: at > 0 && chance.is(0.15),
      silences: spansOf(chance, endAt, 0.2, [5 * minute, hour]).map(({ from, to }) => ({ from: toMinute(from), to })),
      acksAt: momentsOf(hands, endAt, hands.is(0.4) ? hands.between(4, 30) : 0),
      turnsAt: momentsOf(hands, endAt, hands.is(0.5) ? hands.between(3, 20) : 0),
      starved: spansOf(chance, endAt, 0.1, [4 * minute, 20 * minute]),
      removedAt: chance.is(0.1) ? chance.between(hour, endAt - 2 * hour) : Number.POSITIVE_INFINITY,
      state: undefined,
      incident: undefined,
      changedAt: 0,
      acked: undefined,
      latest: undefined,
    }
  })
}

function receiversOf(chance: Chance, endAt: number): readonly Receiver[] {
  return Array.from({ length: chance.between(2, 4) }, (_, at): Receiver => {
    const windows: (Span & { readonly mode: Mode })[] = []
    let from = chance.between(0, hour)
    while (from < endAt - 3 * hour) {
      const mode = chance.of(['down', 'dark', 'lossy', 'mute', 'mute', 'slow', 'refuses', 'picky', 'busy'] as const)
      // Whoever never answers is sent the same for as long as it does not: hours show no more than minutes.
      const isLong = endAt > day && mode !== 'mute'
      const long = !isLong ? [] : endAt > 8 * day ? [25 * hour, 7.5 * day] : [25 * hour]
      const ms = chance.of([2 * minute, 15 * minute, 40 * minute, ...long])
      const to = Math.min(from + ms, endAt - 2.5 * hour)
      windows.push({ from, to, mode })
      from = to + chance.between(10 * minute, 3 * hour)
    }
    const isStrict = at === 1 && chance.is(0.5)
    return {
      rules: {
        name: `r${at}`,
        folds: chance.is(0.6),
        remindMs: chance.of([Number.POSITIVE_INFINITY, hour, 4 * hour]),
        accepts: (_subject, level) => !isStrict || level === 'failed',
      },
      windows,
      views: new Map(),
      begins: new Map(),
      over: new Map(),
      incidents: new Set(),
      certain: new Set(),
      messages: new Map(),
      unanswered: new Set(),
      repeatedAt: 0,
      triedAt: new Map(),
      worseAt: new Map(),
      poisoned: 'Sql/postgres/0',
      isSlow: chance.is(0.4),
      gaveUp: false,
      messageAt: Number.NEGATIVE_INFINITY,
      unansweredAt: Number.NEGATIVE_INFINITY,
      attemptAt: Number.NEGATIVE_INFINITY,
      attempts: 0,
      failingSince: undefined,
      notBefore: 0,
    }
  })
}

/**
 * A scenario in which much goes wrong at once: the store stays away for up to 40 min, and meanwhile levels change, receivers fail
 * or give no answer, monitors are removed, and svc is killed.
 */
function direOf(
  chance: Chance,
  endAt: number,
  { peers, receivers }: { readonly peers: readonly Peer[]; readonly receivers: readonly Receiver[] },
) {
  const outages: Span[] = []
  const kills: { readonly at: number; readonly downMs?: number }[] = []
  const late: { readonly from: number; readonly at: number; readonly to: number }[] = []
  const lastAt = endAt - 3.5 * hour
  for (let at = chance.between(10 * minute, 40 * minute); at < lastAt; at += chance.between(5 * minute, 45 * minute)) {
    const to = at + chance.of([5 * minute, 12 * minute, 25 * minute, 40 * minute])
    outages.push({ from: at, to })
    for (let left = chance.between(0, 2); left > 0; left -= 1) kills.push({ at: chance.between(at, to) })
    // Once svc runs again, the store is back, and levels have changed meanwhile.
    const lateAt = chance.between(to - 5 * minute, to)
    if (chance.is(0.5)) {
      kills.push({ at: lateAt, downMs: to - lateAt + chance.between(second, 3 * minute) })
      late.push({ from: at, at: lateAt, to })
    }
    at = to
  }
  const changing = (peer: Peer): Peer => {
    const segments: Segment[] = [{ begin: 0, level: 'ok', isFlapping: false }]
    for (let at = chance.between(minute, 20 * minute); at < lastAt; ) {
      let level: Level = chance.of(['failed', 'warning'] as const)
      for (let left = chance.of([1, 2, 4, 8]); left > 0; left -= 1) {
        segments.push({ begin: at, level, isFlapping: false })
        at += chance.of([40 * second, 3 * minute, 25 * minute]) + chance.between(0, minute)
        level = level === 'failed' ? 'warning' : 'failed'
      }
      segments.push({ begin: at, level: 'ok', isFlapping: false })
      at += chance.of([45 * second, 3 * minute, 15 * minute]) + chance.between(0, 2 * minute)
    }
    // It gets worse in an outage, and eases while svc is down.
    const dip = late.length > 0 && chance.is(0.4) ? chance.of(late) : undefined
    if (dip) {
      const [from, to] = [dip.from - 8 * minute, dip.to + 45 * minute]
      const around = segments.splice(0).filter(({ begin }) => begin < from || begin >= to)
      const levels = [
        [from, 'warning'],
        [dip.from + minute, 'failed'],
        [dip.at, 'warning'],
        [to, 'ok'],
      ] as const
      const own = levels.map(([begin, level]): Segment => ({ begin: Math.max(1, begin), level, isFlapping: false }))
      segments.push(...[...around, ...own].toSorted((a, b) => a.begin - b.begin))
    }
    const { begin } = chance.of(segments)
    const removedAt = chance.is(0.4) ? begin + chance.between(2 * minute, 12 * minute) : Number.POSITIVE_INFINITY
    return { ...peer, segments, removedAt }
  }
  const failing = (receiver: Receiver): Receiver => {
    const windows: (Span & { readonly mode: Mode })[] = []
    for (let at = chance.between(0, 20 * minute); at < lastAt; at += chance.between(2 * minute, 30 * minute)) {
      const to = at + chance.of([2 * minute, 14 * minute, 25 * minute])
      windows.push({ from: at, to, mode: chance.of(['down', 'dark', 'mute', 'mute', 'lossy', 'slow'] as const) })
      at = to
    }
    return { ...receiver, windows }
  }
  return { outages, kills, peers: peers.map(changing), receivers: receivers.map(failing) }
}

/** The silences of the peers, as svc has them: half of them are silenced by hand, the others by the clock. */
function silencesIn(
  { ClockWindows }: Subject,
  peers: readonly Peer[],
  seed: number,
): { readonly clock: SilenceRules['clock']; readonly byHand: readonly StoredSilence[] } {
  const clock: ShippedSilences.ClockWindows[] = []
  const byHand: StoredSilence[] = []
  for (const [at, { subject, silences }] of peers.entries()) {
    const monitors = [`Sql/${subject.monitor}`]
    for (const { from, to } of silences) {
      const wish = { monitors, reason: 'patches' }
      if ((at + seed) % 2 === 0) {
        const id = `silence-${at}-${from}`
        byHand.push({ what: 'silence', id, from: origin + from, until: origin + to, by: 'alice', ...wish })
        continue
      }
      const begin = new Date(origin + from)
      const when = [begin.getUTCMinutes(), begin.getUTCHours(), begin.getUTCDate(), begin.getUTCMonth() + 1, '*']
      clock.push(new ClockWindows({ ...wish, when: when.join(' '), timezone: 'UTC', forMs: to - from }))
    }
  }
  return { clock, byHand }
}

/**
 * One process with its outbox, its store and its receivers, for 6 hours to 9 days. `lastRule`: it ends as soon as this rule
 * is broken.
 */
export function simulate(subject: Subject, seed: number, keepLines = false, lastRule?: string): Outcome {
  const queue = new Queue()
  const chance = new Chance(seed)
  // Most are short, so that many fit into a second.
  const endAt = seed % 200 === 0 ? 9 * day : chance.is(0.06) ? 40 * hour : 6 * hour
  const usual = {
    peers: peersOf(chance, new Chance(seed + 1_000_003), endAt).map((peer) =>
      // A silence is one by the clock of the wall.
      seed % 25 === 24 ? { ...peer, silences: [] } : peer,
    ),
    receivers: receiversOf(chance, endAt),
  }
  const isDire = seed > 26 && seed % 16 === 1 && seed % 25 !== 24 && endAt < day
  const dire = isDire ? direOf(new Chance(seed + 5_000_011), endAt, usual) : undefined
  const { peers, receivers } = dire ?? usual
  const byName = new Map(receivers.map((one) => [one.rules.name, one]))
  const byId = new Map(peers.map((peer) => [idOf(peer.subject), peer]))
  const byKey = new Map(peers.map((peer) => [peer.subject.key, peer]))
  /** Decides about runs, so that the rest of a scenario is the same with more of them. */
  const runs = new Chance(seed + 3_000_017)
  /** In some scenarios, people set the clock of the wall, and nobody kills svc. */
  const setsClock = seed % 25 === 24
  /** In others, somebody kills it again and again, and the store stays away for long. */
  const isRough = isDire || (seed > 400 && seed % 4 === 1)
  let [ahead, setAt] = [0, Number.NEGATIVE_INFINITY]
  const wall = (): number => origin + ahead + queue.now
  let now = wall
  /** An instant as people read it, in the time of the simulation. */
  const timeOf = (at: number): number => at - now() + queue.now
  const trial = new Trial(queue, keepLines, lastRule)
  const { trace, broken, count } = trial

  // The truth.

  const segmentAt = (peer: Peer, at: number): Segment => {
    let current = peer.segments[0] as Segment
    for (const segment of peer.segments) {
      if (segment.begin > at) break
      current = segment
    }
    return current
  }
  const isSilenced = (peer: Peer): boolean => isWithin(peer.silences, queue.now)
  const faultOf = ({ turnsAt }: Peer, at: number): (typeof faults)[number] => {
    const turns = turnsAt.filter((one) => one <= at).length
    return faults[turns % faults.length] ?? 'auth'
  }
  const kindOf = (fault: string | undefined): string =>
    unreachableFaults.has(fault ?? '') ? 'unreachable' : `${fault}`
  const [first] = peers
  /** The verdict of a run of that time. */
  const verdictOf = (peer: Peer, at: number): Pick<Verdict, 'level' | 'fault' | 'reason'> => {
    if (isWithin(peer.starved, at)) return { level: undefined, reason: 'starved' }
    const cause = peer.isVictim && first ? verdictOf(first, at) : undefined
    if (cause?.level === 'failed' && unreachableFaults.has(cause.fault ?? ''))
      return { level: 'failed', fault: 'timeout' }
    const { level, begin, isFlapping } = segmentAt(peer, at)
    if (level === 'ok' || (isFlapping && (at - begin) % minute >= flapMs)) return { level: 'ok' }
    return level === 'failed' ? { level, fault: faultOf(peer, at) } : { level }
  }
  const texts = new Texts(broken)
  const look = (peer: Peer, at: number): Look => {
    const { check, item, key } = peer.subject
    const verdict = { check, item, depth: 'Basic' as const, message: '', ...verdictOf(peer, at) }
    return {
      verdicts: [texts.of(key, verdict, at)],
      ms: verdict.fault === 'timeout' ? 5 * second : runs.between(5, 900),
    }
  }
  const monitors = (): readonly WatchedMonitor[] =>
    peers
      .filter(({ removedAt }) => queue.now < removedAt)
      .map(({ subject: { key, type, monitor }, everyMs, isVictim }) => ({
        ...{ key, type, name: monitor, runsOn: 'network', every: { Basic: everyMs }, confirmMs, flapping: 6 },
        ...{ dependsOn: isVictim ? [{ atLeast: 1, of: ['Sql/postgres/0'] }] : [], formerly: [], fingerprint: '' },
      }))
  const { clock, byHand } = silencesIn(subject, peers, seed)
  /** The silences and acknowledgements by hand, which the store keeps. */
  let entries: readonly StoredSilence[] = byHand
  let rules: SilenceRules = { clock, entries }
  const keepEntries = (next: readonly StoredSilence[]): void => {
    // What is over decides nothing any more. A store keeps it for a week, which only takes time here.
    entries = next.filter((one) => one.ended === undefined || isInForce(one))
    rules = { clock, entries }
  }
  const isInForce = (one: StoredSilence): boolean =>
    one.what === 'ack' && byId.get(idOf(one.subject))?.incident?.id === one.incident
  /** The acknowledgement, by the truth. */
  const ackOf = ({ acked, incident }: Peer): Acked | undefined =>
    acked && acked.incident === incident?.id ? acked : undefined
  const isAcked = (peer: Peer): boolean => {
    const acked = ackOf(peer)
    return acked !== undefined && acked.brokenAt === undefined
  }
  /** Whether a kill in an outage of the store lost what ended an acknowledgement, so that it holds again. */
  const holdsAgain = ({ incident, acked }: Peer): boolean =>
    acked?.brokenAt !== undefined &&
    startedAt > acked.brokenAt &&
    isWithin(storeDown, acked.brokenAt) &&
    entries.some((one) => one.what === 'ack' && one.incident === incident?.id && one.ended === undefined)
  const compareWithAck = (peer: Peer): void => {
    const acked = ackOf(peer)
    // What changes while svc is down, and changes back, nobody sees.
    if (!acked || acked.brokenAt !== undefined || !peer.incident || isDown) return
    const isWorse = peer.incident.level === 'failed' && acked.level === 'warning'
    const { level, fault } = peer.state ?? {}
    if (isWorse || (level === acked.level && kindOf(fault) !== acked.kind)) acked.brokenAt = queue.now
  }
  let settled = (): void => {}
  const acknowledge = (peer: Peer): void => {
    const { incident, subject: of, state: { fault } = {} } = peer
    if (!incident || incident.cause || isDown || isAcked(peer) || isStoreDown()) return
    trace(`acknowledged ${incident.id} ${incident.level} ${fault}`)
    count('ack')
    const { id, level } = incident
    const wish = { id: `ack-${queue.now}`, from: now(), until: now() + 30 * day, by: 'alice', reason: 'INC-7' }
    keepEntries([...entries, { ...wish, what: 'ack', subject: of, incident: id, level, fault }])
    peer.acked = { incident: id, level, kind: kindOf(fault), from: queue.now, brokenAt: undefined }
    settled()
  }
  for (const peer of peers) for (const at of peer.acksAt) queue.at(at, () => acknowledge(peer))
  /** The last time at which anything was not as usual, for all receivers. */
  let disturbedUntil = 0
  const disturbances: Span[] = []
  const disturb = (what: string, ms: number): void => {
    trace(`disturbed by ${what} for ${ms}`)
    count(what)
    disturbances.push({ from: queue.now, to: queue.now + ms })
    disturbedUntil = Math.max(disturbedUntil, queue.now + ms)
  }
  const windowOf = ({ windows }: Receiver, at: number) => windows.find(({ from, to }) => from <= at && at < to)
  const calmSince = (receiver: Receiver): number =>
    receiver.windows.reduce(
      (latest, { from, to }) => (from <= queue.now ? Math.max(latest, Math.min(to, queue.now)) : latest),
      Math.max(disturbedUntil, receiver.notBefore),
    )

  const isStoreDown = (): boolean => isWithin(storeDown, queue.now)
  const storeDown = spansOf(chance, endAt, 0.3, [5 * second, 45 * second])
  // Some stay away for so long that messages leave without the store.
  if (dire) storeDown.splice(0, storeDown.length, ...dire.outages)
  else if (seed % 4 === 1 && endAt < day)
    storeDown.push(...spansOf(new Chance(seed + 2_000_003), endAt, 1, [3 * minute, 12 * minute, 40 * minute]))
  for (const { from, to } of storeDown) queue.at(from, () => disturb('store down', to - from))

  // What is stored, and what a kill leaves.

  const table = new subject.StatesTable()
  const stored = new Map<string, Shipped.StoredRow>()
  /** The file of what was sent without the store. */
  let file = ''
  /** The process and the file in which it noted an incident first, by the receiver and the incident. */
  const noted = new Map<string, string>()
  let files = 0
  const own = new Map<string, OwnIncident>()
  let startedAt = 0
  let isDown = true
  /**
   * Whether the process has not read yet what is stored: it may say again what was said before. `unawareUntil`: when that, or
   * the file of what was sent without the store, was read.
   */
  let isUnaware = false
  let unawareUntil = Number.NEGATIVE_INFINITY
  let kill = (_what: string, _ms?: number): void => {}

  const live = (): void => {
    isDown = false
    startedAt = queue.now
    trace('started')
    const process = new Process({
      ...{ queue, subject, table, wall, monitors, witnesses: [] },
      look: ({ key, at }) => look(byKey.get(key) as Peer, at),
      ended: (run) => {
        const { key, at, verdicts } = run
        const peer = byKey.get(key) as Peer
        const [{ level } = { level: undefined }] = verdicts
        trace(`ended ${key} ${level}`)
        const isNews = level !== peer.latest?.level || peer.incident !== undefined
        if (level !== peer.latest?.level) liven()
        if (level !== undefined && level !== 'ok' && peer.incident) badAt.set(peer.incident.id, at)
        if (level !== undefined) peer.latest = { at, level, knownAt: queue.now }
        process.report(run)
        follow(peer)
        if (isNews && !process.isDead) tick()
      },
      transition: (one) => {
        const peer = byKey.get(one.key)
        if (!peer) return
        trace(`transition ${one.what} ${one.key} ${one.incident} ${timeOf(one.at)}`)
        if (one.incident && one.what === 'begin') beganAt.set(one.incident, timeOf(one.at))
        liven()
        follow(peer)
        // An incident that ends while nothing observes it is over for receivers once something does.
        const isOver = one.what === 'end' || (one.what === 'observed' && !peer.incident)
        if (one.incident && isOver && overNow !== `${queue.now} ${one.incident}`)
          endedAt.set(one.incident, timeOf(one.at))
        if (isOver) overNow = `${queue.now} ${one.incident}`
        // What is stored of the states says that it is over, and what is stored of the messages does not.
        const lost =
          one.what === 'end' && chance.is(isRough ? 0.2 : 0.04) ? chance.of(['transition', 'row'] as const) : undefined
        if (lost) process.flush()
        keyOfNews = one.key
        if (lost !== 'transition') carryOut(outbox.transition(one, now()))
        keyOfNews = undefined
        if (lost) kill(`between a state and its ${lost}`, downMsOf(peer))
        else tick()
      },
      takes: () => !isStoreDown(),
      stored: () => true,
    })
    now = process.line.now
    const after = (ms: number, run: () => void): void => process.after(ms, run)
    const follow = (peer: Peer): void => {
      const state = process.states.stateOf(peer.subject)
      peer.state = typeof state === 'object' ? state : undefined
      changeState(peer, peer.state?.incident)
    }
    /** The end of the time in which something is in doubt, and in which the states look each second. */
    let livelyUntil = 0
    const liven = (): void => {
      const isLively = livelyUntil >= queue.now
      livelyUntil = queue.now + minute
      if (!isLively) hurry()
    }
    const hurry = (): void => {
      if (livelyUntil >= queue.now) {
        after(second, () => {
          process.beat()
          hurry()
        })
      }
    }
    /** The monitor of which the states report something. */
    let keyOfNews: string | undefined
    const lookup: Shipped.Lookup = (one) => {
      const state = process.states.stateOf(one) ?? 'unknown'
      // It takes a moment until a process has read all states.
      if (state === 'unknown' || (queue.now < startedAt + 2 * second && one.key !== keyOfNews)) return 'unknown'
      if (state === 'removed') return state
      const silences = subject.silencesOf(one, state, rules, now())
      const lapsed = subject.lapsedAcks(state.incident?.id, entries)
      const warningAckedAt = subject.warningAckedAt(silences, entries)
      return { subject: one, state, isSilenced: silences.length > 0, warningAckedAt, lapsedAcks: lapsed }
    }
    const endAcks = (): void => {
      if (isStoreDown()) return
      const ending = subject.acksThatEnd(entries, (one) => process.states.stateOf(one), now())
      for (const { entry, why } of ending) {
        trace(`acknowledgement of ${entry.incident} ends: ${why}`)
        count(`ack ${why}`)
        keepEntries(entries.map((one) => (one.id === entry.id ? { ...one, ended: { at: now(), by: '-', why } } : one)))
      }
    }
    const outbox = new subject.Outbox(now(), lookup)
    const dirty = new Map<string, Shipped.StoredRow>()
    let isRestored = false
    let failingSince: number | undefined
    let waiters: ((isStored: boolean) => void)[] = []
    let isWriting = false
    /** Whether the file has the head of this process. */
    let hasHead = false

    const write = (): void => {
      if (isWriting) return
      isWriting = true
      if (!isStoreDown()) restore()
      const batch = [...dirty]
      const calls = waiters
      waiters = []
      after(chance.between(2, 30), () => {
        isWriting = false
        // Nothing is written before everything has been read.
        const isStored = isRestored && !isStoreDown()
        if (isStored) {
          // States are stored before the messages about them.
          if (batch.length > 0) process.flush()
          for (const [key, row] of batch) {
            if (row.row) stored.set(key, JSON.parse(JSON.stringify(row)) as Shipped.StoredRow)
            else stored.delete(key)
            if (dirty.get(key) === row) dirty.delete(key)
          }
          failingSince = undefined
          if (dirty.size === 0) {
            file = ''
            files += 1
            hasHead = false
          }
        } else {
          failingSince ??= queue.now
          after(second, write)
        }
        for (const call of calls) call(isStored)
        if (waiters.length > 0) write()
      })
    }
    const store = (rows: readonly Shipped.StoredRow[], done: (isStored: boolean) => void = () => {}): void => {
      for (const row of rows) dirty.set(`${row.receiver} ${idOf(row.subject)}`, row)
      waiters.push(done)
      write()
    }

    const note = (receiver: string, items: readonly Shipped.NoticeItem[], isAccepted: boolean): void => {
      if (!hasHead) file += Shipped.headOf('store', 'node')
      hasHead = true
      for (const { what, incident, subject: of } of items) {
        if (what === 'end' || what === 'removed') continue
        const { last, attempt, need } = stored.get(`${receiver} ${idOf(of)}`)?.row ?? {}
        // What the store has goes on, whatever the file says.
        const isStored = [last, attempt, need].some((one) => one?.incident === incident)
        entryOf(noted, `${receiver} ${incident}`, () => (isStored ? incident : `${startedAt} ${files}`))
      }
      file += Shipped.linesOf(receiver, items, now(), isAccepted).join('')
    }

    const carryOut = (effects: readonly Shipped.OutboxEffect[]): void => {
      const wasRestored = isRestored
      for (const effect of effects) {
        if (effect.type === 'store') store(effect.rows)
        else if (effect.type === 'ask') {
          count('ask')
          process.ask({ ...effect, at: now(), repeatsRefused: false })
          process.tick()
        } else if (effect.type === 'given up') {
          const receiver = byName.get(effect.receiver)
          if (receiver) receiver.gaveUp = true
          count('given up')
        } else if (effect.type === 'send') {
          const { receiver, attempt, message, items, rows } = effect
          store(rows, (isStored) => {
            const isOutdated = !wasRestored && isRestored
            const isAlone = !isOutdated && !isStored && failingSince !== undefined && queue.now - failingSince >= minute
            if (isAlone) {
              count('alone')
              note(receiver, items, false)
            }
            if (!isOutdated && (isStored || isAlone)) send(receiver, attempt, items, { message, isAlone })
            else {
              carryOut(outbox.withheld(receiver, attempt, now()))
              tick()
            }
          })
        }
      }
    }

    const send = (
      name: string,
      attempt: number,
      items: readonly Shipped.NoticeItem[],
      { message, isAlone }: { readonly message: string; readonly isAlone: boolean },
    ): void => {
      const receiver = byName.get(name)
      if (!receiver) return
      count('attempt')
      observeAttempt(receiver)
      const ids = items.map(({ id }) => id)
      if (new Set(ids).size < ids.length) broken('nothing twice', `${name} gets an item twice in one message`)
      for (const item of items) {
        checkTruth(receiver, item)
        if (!isAlone) checkStored(receiver, item)
        else if (item.level === 'failed') receiver.worseAt.set(idOf(item.subject), queue.now)
      }
      if (chance.is(isRough ? 0.04 : 0.01) && !setsClock) {
        kill('before sending')
        return
      }
      const sentAt = queue.now
      const firstAt = entryOf(receiver.triedAt, message, () => sentAt)
      const answer = (ms: number, delivery: Delivery): void => {
        after(ms, () => {
          if (delivery.what === 'accepted') receiver.failingSince = undefined
          else if (delivery.what === 'later' || delivery.ids === undefined) receiver.failingSince ??= queue.now
          if (delivery.what === 'later' && delivery.isPerhapsReceived) {
            receiver.unansweredAt = queue.now
            receiver.unanswered.add(message)
          }
          if (delivery.what === 'accepted' && receiver.unanswered.delete(message)) receiver.repeatedAt = queue.now
          if (delivery.what === 'later' && delivery.afterMs !== undefined)
            receiver.notBefore = queue.now + Math.min(hour, delivery.afterMs)
          if (delivery.what === 'refused' && delivery.ids === undefined) receiver.notBefore = queue.now + 5 * minute
          trace(`answer of ${name}: ${delivery.what}`)
          if (isAlone && delivery.what === 'accepted') note(name, items, true)
          carryOut(outbox.answered(name, attempt, delivery, now()))
          if (delivery.what === 'accepted') {
            receiver.messageAt = queue.now
            store([], (isStored) => {
              if (isStored && !isAlone) for (const { id } of items) receiver.certain.add(id)
            })
          }
          tick()
        })
      }
      const receive = (ms: number, some: readonly Shipped.NoticeItem[]): void => {
        // A request on its way arrives even if its sender is killed, unless the next process has worked by then.
        queue.after(ms, () => {
          if (startedAt > sentAt) return
          if (sentAt - receiver.messageAt < minute && receiver.rules.folds && receiver.messageAt > startedAt)
            broken('one message a minute', `${name} after ${sentAt - receiver.messageAt} ms`)
          const isAgain = receiver.messages.has(message)
          // What leaves without the store may come twice, from this process or from the next one.
          if (!isAlone) observeMessage(receiver, message, items, sentAt)
          for (const item of some) observe(receiver, item, { isAgain, isAlone, firstAt })
          if (!process.isDead && chance.is(isRough ? 0.1 : 0.02)) kill('before the answer')
        })
      }
      const mode = windowOf(receiver, queue.now)?.mode ?? (receiver.isSlow ? 'slow' : 'up')
      const later = (isPerhapsReceived: boolean, afterMs?: number): Delivery => ({
        what: 'later',
        message: mode,
        isPerhapsReceived,
        ...(afterMs === undefined ? {} : { afterMs }),
      })
      if (mode === 'down') answer(5, later(false))
      else if (mode === 'dark') answer(10 * second, later(true))
      else if (mode === 'busy') answer(20, later(false, chance.of([20 * minute, 2 * hour])))
      else if (mode === 'refuses') answer(20, { what: 'refused', message: 'HTTP 403' })
      else if (mode === 'mute' || (mode === 'lossy' && chance.is(0.6))) {
        receive(20, items)
        answer(10 * second, later(true))
      } else if (mode === 'picky' && items.some((item) => item.subject.key === receiver.poisoned)) {
        const bad = items.filter((item) => item.subject.key === receiver.poisoned)
        const good = items.filter((item) => !bad.includes(item))
        receive(20, good)
        answer(30, { what: 'refused', message: 'HTTP 400', ids: bad.map(({ id }) => id) })
      } else {
        const ms = mode === 'slow' ? chance.between(second, 9 * second) : chance.between(5, 60)
        receive(ms, items)
        answer(ms + 5, { what: 'accepted' })
      }
    }

    let cancelTimer = (): void => {}
    const tick = (): void => {
      endAcks()
      cancelTimer()
      const { effects, nextAt } = outbox.tick(now())
      carryOut(effects)
      if (nextAt === Number.POSITIVE_INFINITY) return
      let isCancelled = false
      cancelTimer = () => {
        isCancelled = true
      }
      after(Math.max(1, nextAt - now()), () => {
        if (!isCancelled) tick()
      })
    }

    settled = () => {
      if (!process.isDead) tick()
    }

    /** Often the next fault of a peer has begun before svc runs again, so that no run shows that it was well. */
    const downMsOf = (peer: Peer): number | undefined => {
      const next = peer.segments.find(({ begin, level }) => begin > queue.now && level !== 'ok')
      if (!next || next.begin - queue.now > 3 * hour || chance.is(0.3)) return undefined
      return next.begin - queue.now + chance.between(0, 30 * second)
    }

    kill = (what, downMs) => {
      if (process.isDead || setsClock) return
      process.isDead = true
      isDown = true
      const ms = downMs ?? chance.of([500, 5 * second, 2 * minute, 20 * minute])
      disturb(`killed ${what}`, ms + 2 * minute)
      queue.after(ms, live)
    }

    /** Once, as soon as the store answers. */
    const restore = (): void => {
      if (isRestored) return
      isRestored = true
      const rows = new Map(stored)
      const sent = subject.rowsOfSent(file, { store: 'store', node: 'node', now: now() }).rows
      // The file does not say which of two incidents is over: they end together.
      if (isUnaware || sent.length > 0) unawareUntil = queue.now
      isUnaware = false
      for (const one of sent) {
        const key = `${one.receiver} ${idOf(one.subject)}`
        const before = rows.get(key)?.row
        const row =
          one.row &&
          (before
            ? subject.withNews(before, one.row, Shipped.isOfReceiver(one.subject))
            : subject.withoutSentEnds(one.row))
        if (row) rows.set(key, { ...one, row })
        if (row && row !== before) dirty.set(key, { ...one, row })
      }
      outbox.restore([...rows.values()], now())
      for (const row of outbox.rows()) dirty.set(`${row.receiver} ${idOf(row.subject)}`, row)
    }
    if (isStoreDown()) {
      isUnaware = true
      failingSince = queue.now
      after(second, write)
    } else {
      process.restore()
      restore()
    }
    carryOut(
      outbox.configure(
        receivers.map(({ rules }) => rules),
        now(),
      ),
    )
    process.configure()
    for (const peer of peers) {
      follow(peer)
      if (peer.incident) outbox.watch(peer.subject)
    }
    for (const receiver of receivers) {
      receiver.failingSince = undefined
      receiver.notBefore = 0
    }
    const beat = (): void => {
      process.beat()
      const shift = process.look()
      if (shift) carryOut(outbox.shift(shift))
      tick()
      if (keepLines) {
        for (const { rules: one } of receivers) {
          const { count: waiting, since } = outbox.pendingFor(one.name)
          if (since !== undefined) trace(`${waiting} wait for ${one.name} since ${timeOf(since)}`)
        }
      }
      after(endAt > day && !setsClock ? 5 * minute : 30 * second, beat)
    }
    beat()
    liven()
    after(3 * second, tick)
    for (const peer of peers) {
      for (const { to } of peer.silences) if (to > queue.now) after(to - queue.now, tick)
      if (peer.removedAt > queue.now && peer.removedAt < endAt) {
        after(peer.removedAt - queue.now, () => {
          process.schedule.forget(peer.subject.key)
          process.configure()
          follow(peer)
          tick()
        })
      }
    }
    if (chance.is(0.5)) after(chance.between(minute, endAt), () => kill('at random'))
  }

  const changeState = (peer: Peer, incident: Incident | undefined): void => {
    const { incident: before } = peer
    if (sayOf(before) !== sayOf(incident)) {
      trace(`${peer.subject.key}: ${sayOf(incident)}`)
      if (incident && !incident.cause) {
        const mine = own.get(incident.id)
        const { id, level } = incident
        if (mine) mine.level = level === 'failed' ? 'failed' : mine.level
        else
          own.set(id, { peer, id, from: queue.now, level, to: Number.POSITIVE_INFINITY, isTroubled: isSilenced(peer) })
      }
      const ended = before && before.id !== incident?.id ? own.get(before.id) : undefined
      if (ended) ended.to = queue.now
      peer.changedAt = queue.now
    }
    peer.incident = incident
    compareWithAck(peer)
  }
  const sayOf = (one: Incident | undefined): string =>
    one ? `${one.level} ${one.id}${one.isFlapping ? ' flapping' : ''}${one.cause ? ' because of a cause' : ''}` : 'ok'

  // The rules.

  /** When incidents of the process began and ended. */
  const beganAt = new Map<string, number>()
  const endedAt = new Map<string, number>()
  let overNow = ''
  /** When the latest run began that showed the fault of an incident. */
  const badAt = new Map<string, number>()
  /** A minute after somebody has set the clock, all times of what svc has seen since its start are those of that clock. */
  const checkTime = (truth: number | undefined, at: number, text: string): void => {
    if (truth === undefined || truth < startedAt || queue.now - setAt < minute) return
    const ms = at - (truth + wall() - queue.now)
    if (Math.abs(ms) > 10 * second) broken('times follow the wall clock', `${text} ${ms} ms late`)
  }
  const checkTimes = (): void => {
    checkTime(queue.now, now(), 'now is')
    if (isStoreDown()) return
    for (const one of table.incidents({ from: 0, to: Number.POSITIVE_INFINITY, most: 1_000 }))
      if (one.endedAt === undefined) checkTime(beganAt.get(one.id), one.beganAt, `the store has ${one.id} as begun`)
    for (const { row } of stored.values()) {
      const word = row?.attempt ?? row?.last ?? row?.need
      if (word) checkTime(beganAt.get(word.incident), word.beganAt, `the rows have ${word.incident} as begun`)
      for (const end of row?.ends ?? []) checkTime(endedAt.get(end.incident), end.endedAt, `${end.incident} ended`)
    }
  }

  const observeAttempt = (receiver: Receiver): void => {
    const { name } = receiver.rules
    if (queue.now < receiver.notBefore && receiver.notBefore > startedAt && receiver.attemptAt > startedAt)
      broken('pauses', `${name} is tried ${receiver.notBefore - queue.now} ms early`)
    const isFailing = receiver.failingSince !== undefined
    receiver.attempts = isFailing ? receiver.attempts + 1 : 0
    const ms = queue.now - (receiver.failingSince ?? queue.now)
    // Pauses double from a second on up to five minutes.
    if (receiver.attempts > 10 + ms / (4.9 * minute))
      broken('pauses', `${name} is tried ${receiver.attempts} times in ${ms} ms`)
    receiver.attemptAt = queue.now
  }

  /** Checks that a sent item is true at that time. */
  const checkTruth = (receiver: Receiver, item: Shipped.NoticeItem): void => {
    const text = `${receiver.rules.name} ${item.what} ${item.subject.key} ${item.incident} ${item.level}`
    const peer = byId.get(idOf(item.subject))
    if (!peer) return
    const { incident } = peer
    const isOver = item.what === 'end' || item.what === 'removed'
    texts.takeItem(peer.subject, item, text)
    checkTime(beganAt.get(item.incident), item.beganAt, `${text} began`)
    if (isOver) {
      if (incident?.id === item.incident) broken('ends are true', text)
      // What a process without the store saw of an incident after it was told, nobody knows after a kill.
      if (!receivers.some(({ rules: { name } }) => noted.has(`${name} ${item.incident}`))) checkEnd(item, text)
      if (now() - (item.endedAt ?? 0) > giveUpMs + minute) broken('given up by age', text)
      return
    }
    // It takes a moment to store the attempt.
    if ((peer.latest?.knownAt ?? 0) < queue.now - 100)
      checkTime(peer.latest?.at, item.observedAt, `${text} was observed`)
    const isNewer = peer.changedAt > queue.now - 100
    if (!incident) {
      if (!isNewer) broken('nothing stale', `${text}: it is well`)
      return
    }
    if ((incident.id !== item.incident && !isNewer) || (incident.level !== item.level && !isNewer))
      broken('nothing stale', `${text}: it is ${incident.level} ${incident.id}`)
    if (incident.cause || (item.what === 'begin' && isBehind(peer, timeOf(item.beganAt)))) broken('victims fold', text)
    if (isWithin(peer.silences, queue.now - second) && isSilenced(peer)) broken('silences', text)
    // Whoever was told of a failure without the store is told once that it is the acknowledged warning.
    const { from: ackedAt = 0, level: ackedAs } = peer.acked ?? {}
    const isEased = ackedAs === 'warning' && (receiver.worseAt.get(idOf(peer.subject)) ?? -1) > ackedAt
    if (isAcked(peer) && queue.now - ackedAt > second && !isEased) broken('what was acknowledged is silenced', text)
    const isRise = item.what === 'change' && item.level === 'failed' && item.before === 'warning'
    const isNews = item.what === 'begin' || isRise
    const { latest } = peer
    // What a process without the store saw is lost with it.
    const isLost = latest && latest.knownAt < startedAt && isWithin(storeDown, latest.knownAt)
    if (
      isNews &&
      !isLost &&
      !incident.isFlapping &&
      !incident.isUnobserved &&
      latest?.level === 'ok' &&
      latest.at < queue.now - second
    )
      broken('no begin while it heals', `${text}: a run was healthy ${queue.now - latest.at} ms ago`)
    if (item.what === 'begin') checkFirst(receiver, peer, text)
    const wasStarved = peer.starved.some(({ from, to }) => from <= queue.now && to >= queue.now - 5 * minute)
    if (isNews && now() - item.observedAt > minute + 2 * second && !wasStarved && !incident.isUnobserved)
      broken('young verdicts', `${text} rests on a verdict of ${now() - item.observedAt} ms ago`)
  }

  const checkEnd = ({ incident, endedAt: at = 0 }: Shipped.NoticeItem, text: string): void => {
    checkTime(endedAt.get(incident), at, `${text} ended`)
    const last = badAt.get(incident) ?? 0
    if (timeOf(at) < last || at > now())
      broken('ends have their time', `${text}: it ended at ${timeOf(at)}, and a run failed at ${last}`)
  }

  /** A fault that is nothing but that of its cause, which every run has shown since then. */
  const isBehind = (peer: Peer, since: number): boolean => {
    const isFree = segmentAt(peer, queue.now).level === 'ok' && segmentAt(peer, since).level === 'ok'
    if (!peer.isVictim || !first || !isFree || first.removedAt <= queue.now || disturbedUntil > since) return false
    for (let at = since - minute; at <= queue.now; at += 5 * second) {
      const { isFlapping } = segmentAt(first, at)
      const { level, fault } = verdictOf(first, at)
      if (isFlapping || level !== 'failed' || !unreachableFaults.has(fault ?? '')) return false
    }
    return true
  }

  /** A receiver that works gets the first message as soon as a run has shown the fault again, or a minute after its last one. */
  const checkFirst = (receiver: Receiver, peer: Peer, text: string): void => {
    const { rules, isSlow, messageAt } = receiver
    const from = peer.changedAt
    const isOther = isSlow || from < Math.max(calmSince(receiver), disturbedUntil) + 5 * minute
    const isHeld = [...peer.silences, ...peer.starved].some((one) => one.from <= queue.now && one.to >= from - minute)
    const wasAcked = peer.acksAt.some((at) => at <= queue.now && at >= timeOf(peer.incident?.beganAt ?? 0))
    if (isOther || isHeld || wasAcked || !rules.accepts(peer.subject, 'warning')) return
    const due = rules.folds ? Math.max(from + 10 * second, messageAt + minute) : from
    // A run takes up to 5 s, and svc looks every 30 s.
    if (queue.now - due > 40 * second) broken('first message in time', `${text} after ${queue.now - from} ms`)
  }

  /** A kill leaves what the receiver has perhaps received. */
  const checkStored = ({ rules: { name } }: Receiver, item: Shipped.NoticeItem): void => {
    const row = stored.get(`${name} ${idOf(item.subject)}`)?.row
    const isEnd = item.what === 'end' || item.what === 'removed'
    const isAttempt = row?.attempt?.incident === item.incident && row.attempt.level === item.level
    // It may have ended before it left: then its end is to be sent.
    const isStored = row?.ends.some(({ incident }) => incident === item.incident) || (!isEnd && isAttempt)
    if (!isStored) broken('stored before it is sent', `${name} ${item.what} ${item.incident} ${item.level}`)
  }

  /** A message that is sent again has the id and no other lines, so that a receiver that had it can leave it out. */
  const observeMessage = (
    { rules: { name, folds }, messages, unansweredAt, poisoned }: Receiver,
    message: string,
    items: readonly Shipped.NoticeItem[],
    sentAt: number,
  ): void => {
    if (!folds || items.length === 0 || isUnaware) return
    const before = messages.get(message)
    if (before && items.some(({ id }) => !before.lines.has(id)))
      broken('one id for the same lines', `${name} gets other lines under ${message}`)
    messages.set(message, { at: queue.now, lines: new Set(items.map(({ id }) => id)) })
    if (sentAt - unansweredAt < minute && unansweredAt > startedAt)
      broken('one message a minute', `${name} ${sentAt - unansweredAt} ms after one without an answer`)
    for (const { id, subject: of, incident, what } of items) {
      const peer = byId.get(idOf(of))
      for (const [other, { at, lines }] of messages) {
        // It did not hold for a while, or was refused alone, or an end comes with what is told again after an acknowledgement.
        const isAgain =
          (what === 'end' || what === 'removed') &&
          items.some((one) => idOf(one.subject) === idOf(of) && one.endedAt === undefined)
        const lapsedAt = (isAgain && peer && ackOf(peer)?.brokenAt) || Number.NEGATIVE_INFINITY
        const wasOver =
          peer === undefined || of.key === poisoned || Math.max(peer.changedAt, sinceOf(peer), lapsedAt) >= at - second
        if (other !== message && lines.has(id) && !wasOver && at > unawareUntil)
          broken('one id for the same lines', `${name} ${what} of ${incident}`)
      }
    }
  }

  const observe = (
    receiver: Receiver,
    item: Shipped.NoticeItem,
    { isAgain, isAlone, firstAt }: { readonly isAgain: boolean; readonly isAlone: boolean; readonly firstAt: number },
  ): void => {
    const { name } = receiver.rules
    const id = idOf(item.subject)
    const text = `${name} ${item.what} ${item.subject.key}${item.subject.item ?? ''} ${item.incident} ${item.level}`
    trace(`received ${text} ${timeOf(item.beganAt)} ${timeOf(item.endedAt ?? now())}`)
    count(item.what)
    const view = receiver.views.get(id)
    // The clock may have been set while it was on its way.
    const began = (setsClock && beganAt.get(item.incident)) || timeOf(item.beganAt)
    if (receiver.certain.has(item.id) && !isAlone) broken('nothing twice', text)
    const isEnd = item.what === 'end' || item.what === 'removed'
    if (!isAgain) checkReason(receiver, item)
    const wasAlone = receiver.over.get(item.incident)
    // What the store has of a check goes on after such an end. How a receiver is, only the process knows that has noted it.
    if (!isEnd && (wasAlone === false || (wasAlone && item.subject.key === '/svc/receivers')))
      broken('order', `${text} after its end`)
    if (
      view &&
      view.beganAt > unawareUntil &&
      !receiver.over.has(item.incident) &&
      began < view.beganAt &&
      view.incident !== item.incident
    )
      broken('order', `${text} after ${view.incident}`)
    if (item.what === 'change' && view?.incident === item.incident && view.isOpen)
      if (view.level === item.level && receiver.certain.size > 0 && item.before === item.level)
        broken('order', `${text}: it is no change`)
    if (isEnd) receiver.over.set(item.incident, isAlone)
    else {
      receiver.over.delete(item.incident)
      receiver.begins.set(item.incident, id)
    }
    receiver.incidents.add(item.incident)
    receiver.views.set(id, {
      incident: item.incident,
      isOpen: !isEnd,
      level: item.level,
      isFlapping:
        item.what === 'flapping' || (view?.isFlapping === true && byId.get(id)?.incident?.isFlapping === true),
      beganAt: began,
      at: queue.now,
      firstAt,
    })
  }

  /** A change says something new: another level, another fault than the one that was acknowledged, or that it no longer flaps. */
  const checkReason = (receiver: Receiver, item: Shipped.NoticeItem): void => {
    const view = receiver.views.get(idOf(item.subject))
    const peer = byId.get(idOf(item.subject))
    if (item.what !== 'change' || view?.incident !== item.incident || !view.isOpen || !peer) return
    // Its level may have changed back before it was sent.
    if (view.level !== item.level || peer.changedAt >= view.at || view.isFlapping || disturbedUntil >= view.at) return
    const acked = ackOf(peer)
    // What was sent again knew no more acknowledgements than at first.
    const firstAt = Math.min(view.firstAt, acked?.brokenAt ?? view.at)
    if (receiver.windows.some(({ from, to }) => from <= queue.now && to >= firstAt - minute)) return
    if (queue.now - view.at < minute) return
    // It was on its way when somebody acknowledged the fault once more.
    if (acked && queue.now - acked.from < minute) return
    if (acked?.brokenAt === undefined || view.firstAt > acked.brokenAt + minute)
      broken('nothing without a reason', `${receiver.rules.name} gets ${item.what} of ${item.incident} again`)
  }

  const check = (): void => {
    if (isDown) return
    if (setsClock) checkTimes()
    for (const peer of peers) checkScript(peer)
    for (const receiver of receivers) {
      // What had no answer goes out again first, a message a minute.
      const calm = Math.max(calmSince(receiver), receiver.repeatedAt)
      if (queue.now - calm < boundMs) continue
      for (const peer of peers) checkPeer(receiver, peer, calm)
      for (const one of own.values()) checkLost(receiver, one, calm)
      for (const other of receivers) if (other !== receiver) checkReceiver(receiver, other)
    }
  }

  /** The last time until now at which anything changed for a peer, or for its cause. */
  const sinceOf = (peer: Peer): number => {
    const ends = [...peer.silences, ...peer.starved].flatMap(({ from, to }) => (from <= queue.now ? [to] : []))
    const turnedAt = peer.turnsAt.findLast((at) => at <= queue.now) ?? 0
    const ofCause = peer.isVictim && first ? sinceOf(first) : 0
    return Math.max(...ends, turnedAt, segmentAt(peer, queue.now).begin, ofCause)
  }

  /** Checks that svc says of a peer what every run of the last minutes has shown. */
  const checkScript = (peer: Peer): void => {
    const since = Math.max(sinceOf(peer), startedAt, disturbedUntil)
    const flaps = ({ segments }: Peer): boolean =>
      segments.some(({ begin, isFlapping }, at) => {
        const until = (segments[at + 1]?.begin ?? endAt) + 45 * minute
        return isFlapping && begin <= queue.now && until > queue.now
      })
    // Each fault of the half hour after that counts as well.
    const isFlapping =
      (peer.incident?.isFlapping && queue.now - since < 40 * minute) ||
      flaps(peer) ||
      (peer.isVictim && first !== undefined && flaps(first))
    if (queue.now - since < boundMs || isFlapping || queue.now >= peer.removedAt) return
    const { level } = verdictOf(peer, queue.now)
    const says = peer.incident?.level ?? 'ok'
    if (says !== level) broken('agrees with the truth', `${peer.subject.key} is ${level}, and svc says ${says}`)
  }

  const checkPeer = (receiver: Receiver, peer: Peer, calm: number): void => {
    const { name, remindMs, accepts } = receiver.rules
    const view = receiver.views.get(idOf(peer.subject))
    const { level, isFlapping: comesAndGoes } = segmentAt(peer, queue.now)
    const since = Math.max(peer.changedAt, sinceOf(peer))
    const text = `${name} shows ${peer.subject.key} ${view?.isOpen ? view.level : 'well'} of ${view?.incident}`
    if (queue.now - since < boundMs) return
    const { incident } = peer
    // For a process that did not know the one before, both are incidents of the same fault, which end together. An end that a
    // kill has lost waits while the next incident is that of a victim.
    const isSame = incident !== undefined && (incident.cause !== undefined || timeOf(incident.beganAt) <= unawareUntil)
    // An end that a kill has lost is told once the check is well, or flaps.
    if (!incident && comesAndGoes && queue.now - startedAt < hour + boundMs) return
    const noteOf = (id: string | undefined): string | undefined => noted.get(`${name} ${id}`)
    for (const [id, of] of receiver.begins) {
      if (of !== idOf(peer.subject) || id === incident?.id || receiver.over.has(id) || receiver.gaveUp) continue
      // The file of one process says which of them is over.
      const isExcused =
        isSame && (incident.cause !== undefined || noteOf(id) === undefined || noteOf(id) !== noteOf(incident.id))
      if (!isExcused) broken('each end is told', `${name} knows ${id}, and not its end`)
    }
    if (!incident) {
      if (view?.isOpen && !receiver.gaveUp) broken('each end is told', text)
      return
    }
    if (incident.cause || level === 'ok') return
    // Nobody is told how it goes on.
    if (isAcked(peer)) return
    const brokenAt = ackOf(peer)?.brokenAt
    const isHeldAgain = holdsAgain(peer)
    // Only who was told that it had become worse is told how it is now.
    if (isHeldAgain && !(view?.isOpen && view.at > (brokenAt ?? 0))) return
    // Two runs show that it is another fault.
    const isLate = brokenAt !== undefined && queue.now - brokenAt >= boundMs
    if (isLate && view?.isOpen && view.incident === incident.id && view.at < brokenAt)
      broken('what was not acknowledged is told', text)
    if (!view?.isOpen && !accepts(peer.subject, incident.level)) return
    // It may still show an older one, of which the end was given up.
    if (receiver.gaveUp && view?.incident !== incident.id) return
    // Of a fault that two processes have told, it knows both incidents, and shows the last one.
    const isKnown = view?.incident === incident.id || (receiver.begins.has(incident.id) && isSame)
    if (!view?.isOpen || !isKnown || receiver.over.has(incident.id))
      broken('what stands is told', `${text}, and it is ${incident.level} of ${incident.id}`)
    else if (
      // Of what flaps, receivers are told only when it gets worse.
      (incident.isFlapping && view.isFlapping
        ? view.level === 'warning' && incident.level === 'failed'
        : view.level !== incident.level) ||
      (view.isFlapping !== incident.isFlapping && view.incident === incident.id)
    )
      broken('right level', `${text}, and it is ${incident.level}`)
    else if (!isHeldAgain && queue.now - Math.max(view.at, calm, since) > remindMs + boundMs) broken('reminded', text)
  }

  /** Nobody who was away misses what began and ended meanwhile. */
  const checkLost = (receiver: Receiver, one: OwnIncident, calm: number): void => {
    const { peer, from, to, id } = one
    if (to === Number.POSITIVE_INFINITY || queue.now - Math.max(to, calm) < boundMs || one.isTroubled) return
    const isTroubled =
      to - from < minute ||
      disturbances.some((each) => each.from <= to && each.to >= from - minute) ||
      peer.silences.some((each) => each.from <= to && each.to >= from) ||
      peer.acksAt.some((at) => from <= at && at <= to) ||
      peer.starved.some((each) => each.from <= to && each.to >= from)
    if (
      isTroubled ||
      receiver.gaveUp ||
      !receiver.rules.accepts(peer.subject, one.level === 'failed' ? 'failed' : 'warning')
    )
      return
    if (queue.now - to > 6 * day) return
    if (!receiver.incidents.has(id)) broken('nothing is lost', `${receiver.rules.name} never got ${id}`)
  }

  const checkReceiver = (receiver: Receiver, other: Receiver): void => {
    const { name } = other.rules
    if (receiver.gaveUp) return
    const view = receiver.views.get(JSON.stringify(['/svc/receivers', 'receiver', name]))
    const failingMs = queue.now - Math.max(other.failingSince ?? queue.now, disturbedUntil)
    const window = windowOf(other, queue.now)
    if (failingMs > brokenMs + boundMs && window && window.mode !== 'picky' && window.mode !== 'lossy' && !view?.isOpen)
      broken('a broken receiver is told', `${receiver.rules.name} does not know that ${name} fails`)
    if (
      other.failingSince === undefined &&
      view?.isOpen &&
      other.messageAt > view.at &&
      queue.now - other.messageAt > boundMs
    )
      broken('a broken receiver is told', `${receiver.rules.name} still shows that ${name} fails`)
  }

  if (setsClock) {
    const clock = new Chance(seed + 4_000_037)
    for (let at = clock.between(5 * minute, hour); at < endAt; at += clock.between(20 * minute, 2 * hour)) {
      queue.at(at, () => {
        ahead += clock.of([-2 * hour, 2 * hour, -11 * second, 11 * second, -10 * minute, 10 * minute])
        setAt = queue.now
        trace(`the clock is ${ahead} ms ahead`)
        count('clock set')
      })
    }
  }
  queue.at(1, live)
  for (const { at, downMs } of dire?.kills ?? []) queue.at(at, () => kill('in an outage of the store', downMs))
  const everyMs = endAt > day ? hour : 10 * minute
  for (let at = everyMs; at < endAt; at += everyMs) queue.at(at, check)
  queue.at(endAt - 1, check)
  queue.runUntil(endAt)
  return trial.outcome()
}

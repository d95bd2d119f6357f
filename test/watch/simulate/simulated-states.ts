import type { FaultClass } from '../../../src/core/base/probe-error.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import type * as ShippedStates from '../../../src/core/watch/states/index.ts'
import { Chance } from './chance.ts'
import { Evidence, subjectId } from './evidence.ts'
import { type Ended, Process, type Site, type Subject } from './process.ts'
import { Queue } from './queue.ts'
import { Texts } from './texts.ts'
import { minute, type Outcome, second, Trial } from './trial.ts'

const depths: readonly ExecutionMode[] = ['Basic', 'Standard', 'Advanced']
const rank = (depth: ExecutionMode): number => depths.indexOf(depth)
const includes = (depth: ExecutionMode, other: ExecutionMode): boolean => rank(depth) >= rank(other)
const deadlineMs = { Basic: 5 * second, Standard: 10 * second, Advanced: 30 * second }
const confirmMs = 20 * second
const recoverMs = 10 * second
const firstPauseMs = 5 * minute

/** The faults that peers can have. */
type Kind =
  /** Nothing answers, for minutes. */
  | 'outage'
  /** It answers with an error, and in one run of five it does not answer. */
  | 'wavering'
  /** A warning is worse for a moment. */
  | 'dip'
  /** Nothing answers for 3 to 15 s. */
  | 'restart'
  /** Nothing answers for 14 of every 28 s. */
  | 'flaky'
  /** One packet in twenty is lost, and with it the run. */
  | 'loss'
  | 'auth'
  | 'data'
  | 'warning'
  /** A threshold with `for`. */
  | 'threshold'
  /** The deepest check alone. */
  | 'deep'
  /** The first check, but only when it looks deeper. */
  | 'deepConnect'
  /** One of two disks. */
  | 'disk'
  /** The second disk is taken out while it is full. */
  | 'diskGone'
  /** Runs come to no verdict. */
  | 'starved'

type Fault = {
  readonly kind: Kind
  readonly peer: string
  readonly check: string
  readonly item?: string | undefined
  readonly fault: FaultClass | undefined
  readonly level: 'warning' | 'failed'
  readonly depth: ExecutionMode
  readonly begin: number
  readonly end: number
}

type Peer = {
  readonly name: string
  readonly runsOn: 'network' | 'machine'
  readonly every: { readonly [D in ExecutionMode]?: number }
  readonly dependsOn: readonly { readonly atLeast: number; readonly of: readonly string[] }[]
  readonly latencyMs: number
  readonly flapping: number
  readonly faults: Fault[]
}

const steady: ReadonlySet<Kind> = new Set([
  'outage',
  'wavering',
  'auth',
  'data',
  'warning',
  'threshold',
  'deep',
  'deepConnect',
  'disk',
])
const unreachable: readonly FaultClass[] = ['refused', 'timeout', 'dns', 'tls', 'protocol']

/** How a fault of a kind looks. */
function faultOf(kind: Kind, peer: string, begin: number, end: number, chance: Chance): Fault {
  const looks = {
    wavering: { check: 'connect', fault: 'protocol', depth: 'Basic' },
    dip: { check: 'content', fault: 'data', depth: 'Standard' },
    outage: { check: 'connect', fault: chance.of(unreachable), depth: 'Basic' },
    restart: { check: 'connect', fault: chance.of(unreachable), depth: 'Basic' },
    flaky: { check: 'connect', fault: 'refused', depth: 'Basic' },
    loss: { check: 'connect', fault: 'timeout', depth: 'Basic' },
    auth: { check: 'sign-in', fault: 'auth', depth: 'Standard' },
    data: { check: 'content', fault: 'data', depth: 'Standard' },
    warning: { check: 'content', fault: undefined, depth: 'Standard', level: 'warning' },
    threshold: { check: 'content', fault: 'threshold', depth: 'Standard' },
    deep: { check: 'deep', fault: 'data', depth: 'Advanced' },
    deepConnect: { check: 'connect', fault: 'tls', depth: 'Advanced' },
    disk: { check: 'disk', item: '/a', fault: 'threshold', depth: 'Standard' },
    diskGone: { check: 'disk', item: '/b', fault: 'threshold', depth: 'Standard' },
    starved: { check: 'connect', fault: undefined, depth: 'Basic' },
  } as const
  return { kind, peer, level: 'failed', begin, end, ...looks[kind] }
}

const durations: Readonly<Record<Kind, readonly [number, number]>> = {
  outage: [2 * minute, 15 * minute],
  wavering: [8 * minute, 20 * minute],
  dip: [3 * second, 15 * second],
  restart: [3 * second, 15 * second],
  flaky: [12 * minute, 25 * minute],
  loss: [10 * minute, 30 * minute],
  auth: [8 * second, 25 * minute],
  data: [2 * minute, 15 * minute],
  warning: [2 * minute, 15 * minute],
  threshold: [2 * minute, 15 * minute],
  deep: [6 * minute, 25 * minute],
  deepConnect: [6 * minute, 25 * minute],
  disk: [3 * minute, 15 * minute],
  diskGone: [3 * minute, 8 * minute],
  starved: [14 * minute, 20 * minute],
}

const faultsUntil = 70 * minute
const endAt = 125 * minute

function peersOf(chance: Chance, groups: Chance): readonly Peer[] {
  const count = chance.between(3, 12)
  const peers: Peer[] = []
  for (let at = 0; at < count; at += 1) {
    const earlier = peers.map(({ name }) => name)
    const dependsOn =
      at < 2 || chance.is(0.5)
        ? []
        : chance.is(0.6)
          ? [{ atLeast: 1, of: [chance.of(earlier)] }]
          : [groupOf([chance.of(earlier), chance.of(earlier)], earlier, groups)]
    const runsOn = at > 1 && dependsOn.length === 0 && chance.is(0.2) ? 'machine' : 'network'
    const flapping = chance.is(0.2) ? Number.POSITIVE_INFINITY : 6
    const peer: Peer = {
      name: `Sql/postgres/${at}`,
      runsOn,
      every: chance.of([
        { Standard: minute, Advanced: 5 * minute },
        { Standard: minute, Advanced: 10 * minute },
        { Basic: 10 * second, Standard: minute, Advanced: 10 * minute },
        { Standard: 30 * second },
        { Standard: 2 * minute, Advanced: 8 * minute },
      ]),
      dependsOn,
      latencyMs: chance.between(2, 400),
      flapping,
      faults: [],
    }
    let from = chance.between(2 * minute, 12 * minute)
    while (from < faultsUntil) {
      const kind = kindFor(peer, chance)
      const [least, most] = durations[kind]
      const ms = chance.between(least, most)
      const isLast = steady.has(kind) && chance.is(0.06)
      peer.faults.push(
        faultOf(
          kind,
          peer.name,
          from,
          isLast ? Number.POSITIVE_INFINITY : Math.min(from + ms, faultsUntil + 5 * minute),
          chance,
        ),
      )
      if (isLast) break
      from += ms + chance.between(4 * minute, 15 * minute)
    }
    peers.push(peer)
  }
  return peers
}

/** One of two or of three, or two of three. */
function groupOf(two: readonly string[], earlier: readonly string[], chance: Chance): Peer['dependsOn'][number] {
  const third = chance.is(0.7) ? [chance.of(earlier)] : []
  const of = [...new Set([...two, ...third])]
  return { atLeast: of.length === 3 && chance.is(0.6) ? 2 : 1, of }
}

function kindFor({ runsOn, every, flapping }: Peer, chance: Chance): Kind {
  if (runsOn === 'machine') return chance.of(['disk', 'disk', 'diskGone', 'warning', 'threshold', 'starved'])
  const deep: readonly Kind[] = every.Advanced === undefined ? [] : ['deep', 'deepConnect']
  const flaky: readonly Kind[] = flapping === 6 ? ['flaky'] : []
  return chance.of([
    'outage',
    'outage',
    'outage',
    'restart',
    'restart',
    'loss',
    'auth',
    'auth',
    'data',
    'warning',
    'threshold',
    'starved',
    ...deep,
    ...flaky,
  ])
}

/** Faults of which the distance matters, in place of those of one peer in six. */
function addPatterns(peers: readonly Peer[], chance: Chance): void {
  for (const peer of peers) {
    if (peer.runsOn === 'machine' || !chance.is(0.18)) continue
    peer.faults.splice(0, peer.faults.length, ...chance.of(patterns)(peer.name, chance))
    const [first] = peer.faults
    if (first?.kind !== 'wavering') continue
    // What depends on it fails by itself meanwhile.
    for (const other of peers) {
      if (!other.dependsOn.some(({ of }) => of.includes(peer.name))) continue
      const begins = [3 * minute, 8 * minute, 13 * minute].map(
        (after) => first.begin + after + chance.between(0, minute),
      )
      other.faults.splice(0, other.faults.length)
      for (const begin of begins) other.faults.push(faultOf('data', other.name, begin, begin + 2 * minute, chance))
    }
  }
}

const patterns: readonly ((peer: string, chance: Chance) => readonly Fault[])[] = [
  // It fails again soon after it was well.
  (peer, chance) => {
    const faults: Fault[] = []
    for (let from = chance.between(5 * minute, 20 * minute); from < 55 * minute; ) {
      const end = from + chance.between(2 * minute, 5 * minute)
      faults.push({ ...faultOf('outage', peer, from, end, chance), fault: 'refused' })
      from = end + (chance.is(0.6) ? chance.between(15 * second, 60 * second) : 10 * minute)
    }
    return faults
  },
  // Restarts that are too rare, or frequent enough, to be flapping.
  (peer, chance) => {
    const every = chance.of([11 * minute, 11 * minute, 7 * minute])
    const first = chance.between(4 * minute, 9 * minute)
    return Array.from({ length: Math.floor((95 * minute) / every) }, (_, at) => {
      const begin = first + at * every
      return { ...faultOf('restart', peer, begin, begin + 13 * second, chance), fault: 'refused' as const }
    })
  },
  // It answers with an error, and later not always.
  (peer, chance) => {
    const begin = chance.between(5 * minute, 30 * minute)
    return [faultOf('wavering', peer, begin, begin + chance.between(15 * minute, 40 * minute), chance)]
  },
  // A warning, with a moment of failure soon after it begins.
  (peer, chance) => {
    const faults: Fault[] = []
    for (let from = chance.between(5 * minute, 15 * minute); from < faultsUntil; from += 12 * minute) {
      const [dip, end] = [from + chance.between(5 * second, 90 * second), from + 6 * minute]
      const up = dip + chance.between(3 * second, 15 * second)
      faults.push(faultOf('warning', peer, from, dip, chance))
      faults.push(faultOf('dip', peer, dip, up, chance), faultOf('warning', peer, up, end, chance))
    }
    return faults
  },
  // A warning that becomes a failure.
  (peer, chance) => {
    const begin = chance.between(5 * minute, 40 * minute)
    const [worse, end] = [begin + 6 * minute, begin + chance.between(14 * minute, 20 * minute)]
    return [faultOf('warning', peer, begin, worse, chance), faultOf('data', peer, worse, end, chance)]
  },
]

/** Every fourth scenario has the edges of a process and of a fault. */
const hasEdges = (seed: number): boolean => seed % 4 === 0
const killEvery = 8 * second

/** Recoveries in steps, causes that nothing observes any more, and an outage under kills. Returns when those begin. */
function addEdges(peers: readonly Peer[], chance: Chance): number {
  const from = chance.between(10 * minute, 50 * minute)
  for (const [at, { name, faults, runsOn, dependsOn }] of peers.entries()) {
    if (runsOn === 'machine' || dependsOn.length > 0) continue
    const others = peers.filter(({ dependsOn: [one, more] }) => !more && one?.of.length === 1 && one.of[0] === name)
    if (at === 0) {
      // svc is killed then as if it were restarted again and again, for want of memory.
      const outage = { ...faultOf('outage', name, from, from + 4 * minute, chance), fault: 'refused' as const }
      faults.splice(0, faults.length, outage)
    } else if (chance.is(0.6) && others.length > 0) {
      const begin = chance.between(5 * minute, 20 * minute)
      const blind = begin + chance.between(3 * minute, 5 * minute)
      const observedAt = blind + 20 * minute
      const cause = { ...faultOf('outage', name, begin, blind, chance), fault: 'refused' as const }
      faults.splice(0, faults.length, cause, faultOf('starved', name, blind, observedAt, chance))
      for (const other of others) {
        const own = faultOf('outage', other.name, begin + 30 * second, observedAt + 10 * minute, chance)
        other.faults.splice(0, other.faults.length, { ...own, fault: 'refused' })
      }
    } else if (chance.is(0.6)) {
      faults.splice(0)
      for (let begin = chance.between(5 * minute, 15 * minute); begin < faultsUntil; begin += 9 * minute) {
        const eases = begin + chance.between(3 * minute, 4 * minute)
        const ends = eases + chance.between(5 * second, chance.of([40 * second, 3 * minute]))
        faults.push(faultOf('data', name, begin, eases, chance), faultOf('warning', name, eases, ends, chance))
      }
    }
  }
  return from
}

type Open = {
  readonly id: string
  readonly beganAt: number
  /** The same in the time of the simulation. */
  readonly since: number
  /** When it last changed. */
  readonly knownAt: number
  readonly what: string
  readonly level: string
  cause: string | undefined
  readonly isUnobserved: boolean
  readonly fault: FaultClass | undefined
}

type Closed = { readonly beganAt: number; readonly endedAt: number }

/**
 * One process with its schedule and its states, its peers and its callers, for two simulated hours. `lastRule`: it ends as
 * soon as this rule is broken.
 */
export function simulate(subject: Subject, seed: number, keepLines = false, lastRule?: string): Outcome {
  const queue = new Queue()
  const chance = new Chance(seed)
  const peers = peersOf(chance, new Chance(seed + 1_000_000))
  /** Decides about the store, so that the rest of a scenario is the same without it. */
  const storeChance = new Chance(seed + 500_000)
  const byName = new Map(peers.map((peer) => [peer.name, peer]))
  const origin = 1_700_000_000_000 + chance.between(0, 10 * minute)
  // What is newer than the first scenarios has chances of its own, so that those stay as they were.
  const extra = new Chance(seed + 1_000_003)
  addPatterns(peers, extra)
  const edges = new Chance(seed + 3_000_017)
  const huntedSince = hasEdges(seed) ? addEdges(peers, edges) : Number.POSITIVE_INFINITY
  /** How far the clock of the wall was set when svc started. */
  let shift = 0
  const now = (): number => origin + shift + queue.now
  const hasWitnesses = chance.is(0.5)
  const witnesses = hasWitnesses ? ['w1', 'w2'] : []
  /** A witness that is down by itself for a while. */
  const lone = {
    name: extra.of(['w1', 'w2', '']),
    from: extra.between(0, 40 * minute),
    ms: extra.between(minute, 50 * minute),
  }
  const trial = new Trial(queue, keepLines, lastRule)
  const { trace, broken, count } = trial

  for (const { name, every, dependsOn, faults, ...one } of peers) {
    trace(`script ${JSON.stringify({ name, every, dependsOn, ...one })}`)
    for (const fault of faults) trace(`script ${JSON.stringify(fault)}`)
  }

  // The truth.

  const cutAt: { readonly from: number; readonly to: number }[] = []
  /** When svc noticed that its line was away. */
  const leftLineAt: number[] = []
  const isCut = (at: number): boolean => cutAt.some(({ from, to }) => from <= at && at < to)
  const disturbances: {
    readonly from: number
    readonly to: number
    readonly peer?: string | undefined
    readonly what: string
  }[] = []
  const disturb = (what: string, ms: number, peer?: string): void => {
    trace(`disturbed by ${what} for ${ms}`)
    count(what)
    disturbances.push({ from: queue.now, to: queue.now + ms, peer, what })
  }
  const calmSince = (peer: string): number =>
    disturbances.reduce(
      (latest, one) => (one.peer === undefined || one.peer === peer ? Math.max(latest, one.to) : latest),
      0,
    )
  const isDisturbed = (peer: string, from: number, to: number): boolean =>
    disturbances.some((one) => (one.peer === undefined || one.peer === peer) && one.from <= to && one.to >= from)

  const texts = new Texts(broken)
  const evidence = new Evidence({
    broken,
    now: () => queue.now,
    isQuiet: (name, from, to) => {
      const faults = byName.get(name)?.faults ?? []
      const hides = ({ kind, begin, end }: Fault): boolean =>
        (kind === 'starved' || kind === 'auth') && begin <= to && end >= from
      const isPaused = pauses.has(name) || (pausedUntil.get(name) ?? Number.NEGATIVE_INFINITY) >= from
      return !isDisturbed(name, from, to) && !wasCut(from - minute, to) && !faults.some(hides) && !isPaused
    },
    isFree: (name) => byName.get(name)?.dependsOn.length === 0,
    hasRealHours: () => shift === 0,
    flappingOf: (name) => byName.get(name)?.flapping ?? 0,
    openAs: (id) => open.get(id)?.what,
    confirmMs,
    recoverMs,
  })
  /** Since when a peer has answered all runs, with an error or without. */
  const answersSince = new Map<string, number>()
  const reachedAt = new Map<string, number>()
  /** Since when a peer explains nothing, because nothing observes it. Until a run shows that it is down. */
  const unseenSince = new Map<string, number>()
  const observeReach = (peer: string, verdicts: readonly ShippedStates.Verdict[]): void => {
    const { level, fault } = verdicts.find(({ check }) => check === 'connect') ?? {}
    if (level === undefined) return
    if (level === 'ok') reachedAt.set(peer, queue.now)
    else unseenSince.delete(peer)
    if (level === 'ok' || fault === 'protocol') answersSince.set(peer, answersSince.get(peer) ?? queue.now)
    else answersSince.delete(peer)
  }
  /** When a peer last had an incident that takes the blame for others. */
  const blamableAt = new Map<string, number>()
  const isBlamable = ({ level, fault, what }: Open): boolean =>
    level === 'failed' && what !== 'flapping' && fault !== 'protocol' && unreachable.includes(fault ?? 'data')
  const hasOpen = (name: string, which: (one: Open) => boolean): boolean =>
    [...open].some(([id, one]) => peerOfId(id)?.name === name && which(one))

  const ownFault = (peer: Peer, at: number): Fault | undefined =>
    peer.faults.find(({ begin, end }) => begin <= at && at < end)
  const isFlakyDown = ({ begin }: Fault, at: number): boolean => Math.floor((at - begin) / (14 * second)) % 2 === 0
  const isDown = (peer: Peer, at: number): boolean => {
    const fault = ownFault(peer, at)
    if (fault?.kind === 'outage' || fault?.kind === 'restart') return true
    return fault?.kind === 'flaky' && isFlakyDown(fault, at)
  }
  /** Whether what a peer depends on is down, itself or because of its own causes. */
  const isOut = (name: string, at: number): boolean => {
    const peer = byName.get(name)
    return peer !== undefined && (isDown(peer, at) || causeOut(peer, at))
  }
  const causeOut = ({ dependsOn }: Peer, at: number): boolean =>
    dependsOn.some(({ of, atLeast }) => of.filter((name) => !isOut(name, at)).length < atLeast)
  const outClass = (peer: Peer, at: number): FaultClass => {
    const fault = ownFault(peer, at)
    return fault !== undefined && isDown(peer, at) ? (fault.fault ?? 'timeout') : 'timeout'
  }
  /** The faults that make a subject bad at some time of a span, and whether a cause does. */
  const reasons = (peer: Peer, check: string, item: string | undefined, from: number, to: number) => {
    const own = peer.faults.filter(
      (one) => one.check === check && one.item === item && one.begin <= to && one.end >= from,
    )
    let byCause = false
    if (check === 'connect') for (let at = from; at <= to && !byCause; at += second) byCause = causeOut(peer, at)
    return { own, byCause }
  }
  const isPresentAt = (peer: Peer, check: string, item: string | undefined, at: number): boolean => {
    if (check === 'connect' && causeOut(peer, at)) return true
    const fault = ownFault(peer, at)
    if (fault === undefined || !steady.has(fault.kind) || fault.check !== check || fault.item !== item) return false
    // What shows at the deepest runs only is not known of while shallower ones fail as well.
    if (fault.kind !== 'deepConnect') return true
    return !reasons(peer, check, item, fault.begin - minute, at).byCause && !wasCut(fault.begin - minute, at)
  }

  // What is stored, and what survives a kill.

  const table = new subject.StatesTable()
  /** The incidents as they were when the store last took everything. */
  let openInStore = new Map<string, Open>()
  let overInStore = new Map<string, Closed>()
  const storeFails = storeChance.is(0.3) ? storeChance.between(10 * minute, 60 * minute) : Number.POSITIVE_INFINITY
  const storeFailsUntil = storeFails + storeChance.of([3 * second, 30 * second, 5 * minute])
  const failsNow = (): boolean => queue.now >= storeFails && queue.now < storeFailsUntil
  const pauses = new Map<string, { at: number; ms: number; fault: Fault }>()
  /** When the latest pause of sign-ins of a peer ended. */
  const pausedUntil = new Map<string, number>()
  const open = new Map<string, Open>()
  /** The peers that were silent in their last run only. */
  const silent = new Set<string>()
  /** The incidents that have ended, by their ids. */
  const over = new Map<string, Closed>()
  let removed: string | undefined
  const renamed = new Map<string, string>()
  const settingsOf = new Map<string, number>()
  const keyOf = (peer: Peer): string => renamed.get(peer.name) ?? peer.name
  const peerOf = (key: string): Peer | undefined =>
    byName.get(key) ?? peers.find((peer) => renamed.get(peer.name) === key)

  const monitors = (): readonly ShippedStates.WatchedMonitor[] =>
    peers
      .filter(({ name }) => name !== removed)
      .map((peer) => ({
        key: keyOf(peer),
        type: 'Sql',
        name: keyOf(peer),
        runsOn: peer.runsOn,
        every: peer.every,
        dependsOn: peer.dependsOn.map(({ atLeast, of }) => ({
          atLeast,
          of: of.map((name) => renamed.get(name) ?? name),
        })),
        confirmMs,
        flapping: peer.flapping,
        formerly: renamed.has(peer.name) ? [peer.name] : [],
        fingerprint: String(settingsOf.get(peer.name) ?? 0),
      }))

  let current: Process | undefined
  let startedAt = 0
  /** When svc did not run. */
  const absences: { readonly from: number; to: number }[] = []
  let kill = (): void => {}
  let restartNow = (_ms: number): void => {}
  const isKill = (what: string): boolean => what === 'kill in doubt' || what === 'restart of svc'
  /** From the first run that shows it on, svc is killed again and again. */
  let isHunted = false
  const hunt = ({ name }: Peer, from: number): void => {
    isHunted = true
    for (let at = from + 2 * second; at < from + 90 * second; at += killEvery)
      queue.at(at, () => restartNow(edges.between(200, 900)))
    queue.at(from + 80 * second, () => {
      const isOther = disturbances.some((one) => !isKill(one.what) && one.to >= from - minute)
      const isOverdue = evidence.isOverdue(subjectId(name, 'connect', undefined), confirmMs + 3 * killEvery)
      const isStored = from > storeFailsUntil || queue.now < storeFails
      const stands = byName.get(name)?.faults.some(({ begin, end }) => begin === huntedSince && end > queue.now)
      if (isOverdue && stands && isStored && !isOther && !wasCut(from - minute, queue.now))
        broken('told in spite of kills', `an outage of ${name} since ${from} has no incident`)
    })
  }
  let killsInDoubt = hasEdges(seed) ? 6 : 0

  const live = (): void => {
    const asksOf = new Map<string, number>()
    /** The newest try of each witness that came to a result. */
    const latestTries = new Map<string, { readonly at: number; readonly isUp: boolean }>()

    let isAllStored = true
    let hasReloaded = false
    /** Where the store has taken everything, it has the levels and incidents of all that exists, and of nothing else. */
    const checkStored = (when: string): void => {
      if (!isAllStored) return
      const rows = table.read(now()).states
      const keys = new Set([...monitors().map(({ key }) => key), '/svc/'])
      for (const { row } of rows) if (!keys.has(row.key)) broken('stored', `${row.key} still is, ${when}`)
      const storedStates = new Map(rows.map(({ row, state }) => [subjectId(row.key, row.check, row.item), state]))
      for (const { key, check, item, state } of states.views(now())) {
        const there = storedStates.get(subjectId(key, check, item))
        if (there?.incident?.id !== state.incident?.id || (there?.level ?? 'ok') !== state.level)
          broken('stored', `${key} ${check} ${item ?? ''} as ${there?.level}, and it is ${state.level}, ${when}`)
      }
    }

    const stored = (): boolean => {
      openInStore = new Map(open)
      overInStore = new Map(over)
      isAllStored = true
      evidence.stored()
      if (hasReloaded) checkStored('after a reload')
      hasReloaded = false
      return storeChance.is(0.9)
    }

    const askWitnesses = (): void => {
      const at = now()
      for (const witness of witnesses) {
        const isAway = witness === lone.name && queue.now >= lone.from && queue.now < lone.from + lone.ms
        const isUp = !isCut(queue.now) && !isAway
        after(isUp ? extra.of([20, 20, 900]) : extra.of([3 * second, 3 * second, 9 * second]), () => {
          const wasIsolated = states.isIsolated
          process.take(states.witnessed(witness, { at, isUp }, now()))
          if (states.isIsolated && !wasIsolated) leftLineAt.push(queue.now)
          if (at >= (latestTries.get(witness)?.at ?? Number.NEGATIVE_INFINITY)) latestTries.set(witness, { at, isUp })
          const isAlone = witnesses.every((one) => latestTries.get(one)?.isUp === false)
          if (states.isIsolated !== isAlone)
            broken('isolated', `${states.isIsolated}, although the newest tries say ${isAlone}`)
        })
      }
    }

    const verdictsOf = (
      peer: Peer,
      depth: ExecutionMode,
      at: number,
      repeats: boolean,
    ): readonly ShippedStates.Verdict[] => {
      const fault = ownFault(peer, at)
      const one = (
        check: string,
        of: ExecutionMode,
        more: Partial<ShippedStates.Verdict> = {},
      ): ShippedStates.Verdict => ({
        check,
        level: 'ok',
        message: 'fine',
        depth: of,
        ...more,
      })
      const bad = (of: Fault): Partial<ShippedStates.Verdict> => ({
        level: of.level,
        ...(of.fault === undefined ? {} : { fault: of.fault }),
        message: of.kind,
        ...(of.item === undefined ? {} : { item: of.item }),
        ...(of.kind === 'threshold' ? { isHeld: true } : {}),
      })
      const noVerdict = { level: undefined, message: 'not checked' }
      if (fault?.kind === 'starved') return [one('connect', 'Basic', { ...noVerdict, reason: 'starved' })]
      const isLost = (fault?.kind === 'loss' && chance.is(0.05)) || (peer.runsOn === 'network' && isCut(at))
      if (isLost) return [one('connect', 'Basic', { level: 'failed', fault: 'timeout', message: 'lost' })]
      if (fault?.kind === 'wavering' && !causeOut(peer, at)) {
        // Never twice in a row: that would be another fault.
        const isSilent = at > fault.begin + 2 * minute && !silent.has(peer.name) && extra.is(0.25)
        if (isSilent) silent.add(peer.name)
        else silent.delete(peer.name)
        return [one('connect', 'Basic', { ...bad(fault), ...(isSilent ? { fault: 'timeout' } : {}) })]
      }
      if (isOut(peer.name, at))
        return [one('connect', 'Basic', { level: 'failed', fault: outClass(peer, at), message: 'down' })]
      if (fault?.kind === 'deepConnect' && depth === 'Advanced') return [one('connect', 'Basic', bad(fault))]
      if (depth === 'Basic') return [one('connect', 'Basic')]
      const pause = pauses.get(peer.name)
      const isPaused = pause !== undefined && queue.now < pause.at + pause.ms && !repeats
      if (isPaused) return [one('sign-in', 'Basic', { ...noVerdict, reason: 'remembered' })]
      if (fault?.kind === 'auth') {
        pauses.set(peer.name, { at: queue.now, ms: pause ? Math.min(pause.ms * 2, 60 * minute) : firstPauseMs, fault })
        return [one('connect', 'Basic'), one('sign-in', 'Basic', bad(fault))]
      }
      if (pause) pausedUntil.set(peer.name, queue.now)
      pauses.delete(peer.name)
      const disks = (): readonly ShippedStates.Verdict[] => {
        const hasLeft = peer.faults.some((of) => of.kind === 'diskGone' && of.end <= at)
        return [
          one('disk', 'Standard', fault?.item === '/a' ? bad(fault) : { item: '/a' }),
          ...(hasLeft ? [] : [one('disk', 'Standard', fault?.item === '/b' ? bad(fault) : { item: '/b' })]),
        ]
      }
      return [
        one('connect', 'Basic'),
        one('content', 'Standard', fault?.check === 'content' ? bad(fault) : {}),
        ...(peer.runsOn === 'machine' ? disks() : []),
        ...(depth === 'Advanced' ? [one('deep', 'Advanced', fault?.check === 'deep' ? bad(fault) : {})] : []),
      ]
    }

    const look: Site['look'] = ({ key, depth, at, repeatsRefused }) => {
      count('runs')
      const peer = peerOf(key) as Peer
      const withText = (one: ShippedStates.Verdict): ShippedStates.Verdict => texts.of(peer.name, one, at)
      const verdicts = verdictsOf(peer, depth, at, repeatsRefused).map(withText)
      const ms = verdicts.some(({ fault }) => fault === 'timeout') ? deadlineMs[depth] : peer.latencyMs
      const frozen = { check: 'connect', level: 'failed', fault: 'timeout', message: 'frozen', depth: 'Basic' } as const
      return { verdicts, ms, frozen: chance.is(0.6) ? [withText(frozen)] : undefined }
    }

    const ended = (run: Ended): void => {
      const { key, depth, by, at, endedAt, verdicts, counts } = run
      const peer = peerOf(key) as Peer
      trace(
        `ended ${by} ${key} ${depth} ${verdicts.map(({ check, item = '', level }) => `${check}${item} ${level}`).join(', ')}${counts ? '' : ' does not count'}`,
      )
      if (!counts) return
      const report = (): void => {
        evidence.observed(peer.name, { depth, verdicts, beganAt: at, endedAt })
        observeReach(peer.name, verdicts)
        process.report(run)
        evidence.settled(peer.name)
        for (const one of verdicts) {
          const state = states.stateOf({ key, check: one.check, item: one.item })
          if (typeof state === 'object') texts.takeState(peer.name, one, state)
        }
      }
      report()
      const failed = verdicts.some(({ level }) => level === 'failed')
      const isKilled = failed && edges.is(0.5) && !hasOpen(peer.name, () => true)
      if (failed && peer === peers[0] && ownFault(peer, at)?.begin === huntedSince && !isHunted) hunt(peer, endedAt)
      else if (isKilled && killsInDoubt > 0 && Math.abs(at - huntedSince) > 5 * minute) {
        killsInDoubt -= 1
        const ms = edges.of([500, 30 * second, 4 * minute, 9.5 * minute, 12 * minute])
        after(edges.between(1_500, 4_000), () => restartNow(ms))
      }
      if (failed && extra.is(0.01)) after(extra.between(3 * second, 18 * second), () => change(peer))
      // Another run has shared this observation, and ends later.
      if (extra.is(0.05))
        after(extra.between(second, 40 * second), () => keyOf(peer) === key && peer.name !== removed && report())
    }

    const beat = (): void => {
      process.beat()
      after(900, beat)
    }

    const hammer = (): void => {
      const peer = chance.of(peers)
      const depth = chance.of(depths)
      const pace = chance.between(200, 3_000)
      const until = queue.now + chance.between(10 * second, 90 * second)
      const again = (): void => {
        const key = keyOf(peer)
        const isBusy = process.running.has(`${key} caller`) || process.running.has(`${key} schedule`)
        if (!isBusy && peer.name !== removed) process.run({ key, depth, by: 'caller' })
        if (queue.now < until) after(pace, again)
      }
      again()
      after(chance.between(3 * minute, 12 * minute), hammer)
    }

    const freeze = (): void => {
      const ms = chance.of([800, 1_500, 5_000, 70_000])
      disturb('freeze', ms + 15 * second)
      process.freeze(ms, (left) => chance.between(0, left))
      after(ms + chance.between(10 * minute, 40 * minute), freeze)
    }

    const reload = (): void => {
      const peer = chance.of(peers)
      const what = chance.of(['renamed', 'changed', 'removed'] as const)
      if (what !== 'changed') disturb(what, 0, peer.name)
      if (what === 'renamed' && !renamed.has(peer.name)) {
        const former = keyOf(peer)
        const before = incidentsOf(former)
        renamed.set(peer.name, `${peer.name}-new`)
        schedule.forget(former)
        reconfigure()
        const lost = before.filter((id) => !incidentsOf(keyOf(peer)).includes(id))
        if (lost.length > 0) broken('renamed', `${lost.join(' ')} of ${former} did not go on`)
        for (const { incident } of states.incidents())
          if (before.includes(incident.id) && incident.formerly?.[0]?.key !== former)
            broken('renamed', `nobody knows that ${incident.id} began as ${former}`)
      } else if (what === 'changed') {
        change(peer)
      } else if (
        removed === undefined &&
        peers.every(({ dependsOn }) => !dependsOn.some(({ of }) => of.includes(peer.name)))
      ) {
        removed = peer.name
        schedule.forget(keyOf(peer))
        reconfigure()
        const left = [...open.keys()].filter((id) => peerOfId(id) === peer)
        if (left.length > 0) broken('removed', `${left.join(' ')} is open although it no longer exists`)
      }
      after(chance.between(5 * minute, 40 * minute), reload)
    }
    const change = (peer: Peer): void => {
      disturb('changed', 0, peer.name)
      settingsOf.set(peer.name, (settingsOf.get(peer.name) ?? 0) + 1)
      evidence.changed(peer.name)
      reconfigure()
    }
    const incidentsOf = (key: string): readonly string[] =>
      [...states.views(now())].flatMap(({ key: of, state }) =>
        of === key && state.incident ? [state.incident.id] : [],
      )
    const reconfigure = (): void => {
      process.configure()
      hasReloaded = true
    }

    kill = () => {
      checkStored('before a restart')
      process.isDead = true
      absences.push({ from: queue.now, to: Number.POSITIVE_INFINITY })
      disturb('restart of svc', 0)
    }
    const process = new Process({
      ...{ queue, subject, table, wall: now, witnesses, monitors, look, ended, askWitnesses, stored },
      transition: observeTransition,
      onAsk: (key) => asksOf.set(key, (asksOf.get(key) ?? 0) + 1),
      changed: () => {
        isAllStored = false
      },
      takes: () => !failsNow(),
    })
    current = process
    const { schedule, states } = process
    const after = (ms: number, run: () => void): void => process.after(ms, run)
    trace('started')
    evidence.started()
    startedAt = queue.now
    const absence = absences.at(-1)
    if (absence) absence.to = queue.now
    restore(process)
    reconfigure()
    checkRestored(states)
    if (chance.is(0.6)) after(chance.between(minute, 10 * minute), hammer)
    if (chance.is(0.4)) after(chance.between(5 * minute, 50 * minute), freeze)
    if (chance.is(0.4)) after(chance.between(5 * minute, 50 * minute), reload)
    beat()
    restartNow = (ms) => {
      if (process.isDead) return
      kill()
      disturb('kill in doubt', ms + 30 * second)
      queue.after(ms, live)
    }
    if (chance.is(0.4)) {
      queue.after(chance.between(10 * minute, 60 * minute), () => {
        if (!process.isDead) restart()
      })
    }
    queue.at(endAt - 1, () => {
      if (process.isDead) return
      process.flush()
      checkEnd(states, asksOf)
      checkHistory()
    })
  }

  /** Restores the states as confirmed up to a second before a kill, with which the next process begins. */
  const restore = (process: Process): void => {
    open.clear()
    for (const [id, one] of openInStore) open.set(id, one)
    over.clear()
    for (const [id, one] of overInStore) over.set(id, one)
    const { ageMs, states, incidents } = process.restore()
    trace(`restored ${states.length} states and ${incidents.length} incidents`)
    awayMs = ageMs ?? 0
  }
  let awayMs = 0
  const checkRestored = (states: InstanceType<Subject['States']>): void => {
    const restored = new Map(
      [...states.views(now())].flatMap(({ key, check, item, state: { incident, depth } }) =>
        incident && key !== '/svc/'
          ? [[JSON.stringify([peerOf(key)?.name ?? key, check, item ?? '']), { ...incident, depth }] as const]
          : [],
      ),
    )
    for (const [id, { id: incident, beganAt }] of open) {
      const one = restored.get(id)
      if (one?.id !== incident || one.beganAt !== beganAt)
        broken('stands after a kill', `${id} began at ${beganAt}, and after the kill at ${one?.beganAt}`)
      // What only deeper runs than those of the schedule have shown, no schedule observes.
      const { every: all = {} } = peerOfId(id) ?? {}
      const every = depths.flatMap((depth) => (includes(depth, one?.depth ?? depth) ? (all[depth] ?? []) : []))
      const isLong = every.length > 0 && awayMs > Math.max(10 * minute, 3 * Math.max(...every)) + second
      if (isLong && open.get(id)?.level !== 'unobserved' && !open.get(id)?.isUnobserved)
        broken('unknown after a long absence', `${id} after ${awayMs} ms`)
    }
    for (const [id, { id: incident }] of restored)
      if (!open.has(id)) broken('stands after a kill', `${id} has ${incident} after the kill, and had none before`)
  }
  /** The history has each incident once, as it was observed. */
  const checkHistory = (): void => {
    if (failsNow()) return
    const records = table.incidents({ from: 0, to: origin + endAt, most: 10_000 }).filter(({ key }) => key !== '/svc/')
    for (const { id, beganAt, endedAt, ending } of records) {
      const truth = over.get(id) ?? [...open.values()].find((one) => one.id === id)
      const end = truth && 'endedAt' in truth ? truth.endedAt : undefined
      if (truth?.beganAt !== beganAt || end !== endedAt)
        broken('history', `${id} is from ${beganAt} to ${endedAt} ${ending}, and was from ${truth?.beganAt} to ${end}`)
    }
    const ids = new Set(records.map(({ id }) => id))
    for (const id of [...over.keys(), ...[...open.values()].map((one) => one.id)])
      if (!ids.has(id)) broken('history', `${id} is missing`)
  }

  const restart = (): void => {
    if (queue.now > faultsUntil) return
    kill()
    const isLong = storeChance.is(0.2) && queue.now < 50 * minute
    const ms = chance.between(0, 60 * second) + (isLong ? storeChance.between(11, 18) * minute : 0)
    const wasAwake = queue.now > (current?.frozenUntil ?? 0) + 2 * second && queue.now > storeFailsUntil + 2 * second
    const isBehind = [...open].some(([id, one]) => openInStore.get(id) !== one && queue.now - one.knownAt > second)
    if (isBehind && wasAwake) broken('stored each second', 'an incident was not stored')
    disturb('restart of svc', ms + 30 * second)
    if (extra.is(0.3)) shift -= extra.between(minute, 40 * minute)
    queue.after(ms, live)
  }
  const cut = (): void => {
    if (!hasWitnesses || queue.now > faultsUntil) return
    const ms = chance.of([8 * second, 40 * second, 3 * minute, 14 * minute])
    cutAt.push({ from: queue.now, to: queue.now + ms })
    disturb('cut line', ms + 15 * second)
    queue.after(ms + chance.between(15 * minute, 60 * minute), cut)
  }

  // The rules.

  const peerOfId = (id: string): Peer | undefined => peerOf((JSON.parse(id) as readonly string[])[0] ?? '')

  const observeTransition = (one: ShippedStates.Transition, whole: ShippedStates.Incident | undefined): void => {
    const { what, key, check, item, from, to, at: began, confirmedAt, fault, incident, cause } = one
    const text = `${what} ${key} ${check}${item ?? ''} ${from} → ${to} ${fault ?? ''} ${cause ? `because of ${cause.key}` : ''}`
    trace(
      `transition ${text} ${incident ?? ''} ${began - origin} ${(whole?.confirmedAt ?? origin) - origin} ${one.depth}`,
    )
    count(what)
    if (Math.abs(confirmedAt - now()) > 1) broken('in order', `${text} was confirmed at another time`)
    if (key === '/svc/') {
      checkLine(what, began - origin - shift, text)
      return
    }
    const peer = peerOf(key)
    if (!peer) {
      broken('no transition without a monitor', text)
      return
    }
    const id = subjectId(peer.name, check, item)
    const before = open.get(id)
    const at = began - origin - shift
    evidence.takeTransition(peer.name, one, at, text)
    // Texts name the time of the simulation, and a clock that was set back is another one.
    texts.takeTransition(peer.name, one, whole, shift === 0 ? at : Number.NEGATIVE_INFINITY, text)
    if (before && isBlamable(before)) blamableAt.set(peer.name, queue.now)
    if (what === 'begin' && cause) expectIncidentOf(cause.key, peer, text)
    if (what === 'begin' && cause && !isDisturbed(peer.name, queue.now - 2 * minute, queue.now))
      evidence.blames(
        peer.name,
        id,
        at,
        peer.dependsOn.flatMap(({ of }) => of),
        text,
      )
    if (what === 'unobserved') {
      expectNoVictims(peer)
      if (check === 'connect') unseenSince.set(peer.name, queue.now)
    }
    if (what === 'freed' && before?.cause !== undefined) checkFreed(peer, before.cause, text)
    if (
      what === 'unobserved' &&
      // What stood when svc was killed is unobserved at its start.
      (before === undefined || queue.now > startedAt) &&
      hasOpen(peer.name, ({ isUnobserved, level }) => isUnobserved || level === 'unobserved')
    )
      broken('one unobserved check for each monitor', text)
    if (what === 'begin' || what === 'flapping' || (what === 'unobserved' && !before)) {
      const isStill = before !== undefined && what !== 'flapping'
      if (isStill && !isDisturbed(peer.name, queue.now - minute, queue.now))
        broken('one incident at a time', `${text}, and ${before.id} is open`)
      // A clock that was set back shows the same time twice.
      if (!before && over.has(incident ?? '') && shift === 0)
        broken('one incident at a time', `${text} has the id of one that is over`)
      const beganAt = whole?.beganAt ?? began
      over.delete(incident ?? '')
      if (what === 'begin' && beganAt !== began) broken('right beginning', `${text} says ${beganAt - began} ms later`)
      open.set(id, {
        ...{ id: incident ?? '', beganAt, since: before?.since ?? at, knownAt: queue.now, what, level: to, fault },
        ...{ cause: cause?.key, isUnobserved: what === 'unobserved' },
      })
    } else if (what === 'end' || what === 'removed' || (what === 'observed' && before?.isUnobserved)) {
      if (!before) broken('begin before end', text)
      else if (before.id !== incident)
        broken('one incident at a time', `${text} ends ${incident}, and ${before.id} is open`)
      if (before && began < before.beganAt && shift === 0) broken('begin before end', `${text} before it began`)
      open.delete(id)
      closedAt.set(peer.name, queue.now)
      const beganAt = whole?.beganAt ?? began
      over.set(incident ?? '', { beganAt, endedAt: Math.max(began, beganAt) })
    } else if ((what === 'unobserved' || what === 'observed') && before)
      open.set(id, { ...before, level: to, knownAt: queue.now })
    else if (what === 'change' || what === 'settled' || what === 'freed') {
      if (before)
        open.set(id, {
          ...before,
          knownAt: queue.now,
          // What flaps goes on flapping when it gets worse.
          what: what === 'change' && before.what === 'flapping' ? before.what : what,
          level: to,
          fault,
          cause: what === 'freed' ? undefined : before.cause,
        })
      else broken('begin before end', text)
    }
    checkTruth(peer, one, at, text, before?.since ?? at)
  }

  const causesOf = ({ dependsOn }: Peer): readonly string[] =>
    dependsOn
      .flatMap(({ of }) => of)
      .flatMap((name) => {
        const cause = byName.get(name)
        return cause ? [name, ...causesOf(cause)] : []
      })
  /** A cause that takes the blame has an incident of its own, or soon has. */
  const expectIncidentOf = (key: string, { dependsOn }: Peer, text: string): void => {
    const isDirect = dependsOn.every(({ of }) => of.every((name) => name === peerOf(key)?.name))
    const from = queue.now
    const was = (name: string): boolean =>
      hasOpen(name, ({ level }) => level !== 'warning') || (closedAt.get(name) ?? -1) >= from - second
    const peer = peerOf(key)
    if (!peer || !isDirect || was(peer.name)) return
    queue.at(from + 50 * second, () => {
      if (!was(peer.name) && !isDisturbed(peer.name, from - 3 * minute, queue.now))
        broken('a cause has an incident', text)
    })
  }
  /** A cause that nothing observes explains nothing: its victims soon speak for themselves. */
  const expectNoVictims = (peer: Peer): void => {
    const from = queue.now
    queue.at(from + 7 * minute, () => {
      const { name } = peer
      if (!hasOpen(name, ({ level, knownAt }) => level === 'unobserved' && knownAt <= from)) return
      for (const [id, { cause, since }] of open) {
        const victim = peerOfId(id)
        if (!victim || cause === undefined || peerOf(cause) !== peer || since > from - minute) continue
        const isSteady = victim.faults.some(
          ({ kind, begin, end }) => kind === 'outage' && begin < from && end > queue.now,
        )
        if (isSteady && !isDisturbed(victim.name, from - 3 * minute, queue.now) && !wasCut(from, queue.now))
          broken('a cause is observed', `${id} because of ${cause}, which nothing has observed for 7 min`)
      }
    })
  }
  const closedAt = new Map<string, number>()
  /** The cause of a victim has been gone for the time of a confirmation. */
  const checkFreed = ({ name, dependsOn }: Peer, key: string, text: string): void => {
    const cause = peerOf(key)
    const isOnly = cause?.dependsOn.length === 0 && dependsOn.every(({ of }) => of.length === 1 && of[0] === cause.name)
    // What answers some runs is reached without a transition.
    const isWavering = cause?.faults.some(({ kind }) => kind === 'wavering' || kind === 'deepConnect') === true
    if (!cause || !isOnly || isWavering || isDisturbed(name, queue.now - 2 * minute, queue.now)) return
    const endedAt = hasOpen(cause.name, isBlamable)
      ? queue.now
      : (blamableAt.get(cause.name) ?? Number.NEGATIVE_INFINITY)
    // What shallower runs reach, or what answers with an error by now, takes no blame, although its incident goes on.
    const goneAt = Math.min(endedAt, answersSince.get(cause.name) ?? endedAt, unseenSince.get(cause.name) ?? endedAt)
    if (queue.now - goneAt < confirmMs)
      broken('freed when the cause is gone', `${text}: ${queue.now - goneAt} ms after the cause`)
  }

  const checkTruth = (
    peer: Peer,
    { what, check, item, to, fault, cause, key }: ShippedStates.Transition,
    reportedAt: number,
    text: string,
    since: number,
  ): void => {
    const confirmed = queue.now
    const getsWorse = what === 'begin' || what === 'freed' || (what === 'change' && to === 'failed')
    // Where the clock was set back over a start, what svc saw before lies further back than it says.
    const isFromBefore = getsWorse && shift !== 0 && reportedAt <= startedAt + 1
    const seenAt = evidence.badSince(subjectId(peer.name, check, item), to === 'failed' ? to : 'warning')
    const at = isFromBefore ? Math.min(reportedAt, seenAt ?? reportedAt) : reportedAt
    if (getsWorse) {
      const { own, byCause } = reasons(peer, check, item, at - 2, confirmed)
      // A short cut is all that a victim shows after a pause of its sign-in, which hid that it was well.
      const wasHidden = pauses.has(peer.name) && (reachedAt.get(peer.name) ?? 0) < since
      const isCutAfterPause = what === 'freed' && wasHidden && wasCut(at - minute, confirmed)
      if (own.length === 0 && !byCause && !isCutAfterPause) broken('no transition without a fault', text)
      // With the time for which an incident waits for its causes, anew after each start.
      const wasAway = absences.some(({ from, to }) => from <= confirmed && to >= at)
      const hadLeft = !wasAway && leftLineAt.some((left) => at < left && left < confirmed - 35 * second)
      if (what === 'begin' && hadLeft && peer.runsOn === 'network' && unreachable.includes(fault ?? 'data'))
        broken('isolated', `${text} with what was seen before the line went`)
      const isHeld = own.some(({ kind }) => kind === 'threshold')
      if (what === 'begin' && !isHeld && confirmed - at < confirmMs && !isClamped(at))
        broken('confirmed by time', `${text} after ${confirmed - at} ms`)
      const lasts = own.some(
        (one) =>
          (one.begin <= at + 2 && one.end >= at + confirmMs - 2 && (one.level === to || one.level === 'failed')) ||
          lastsTogether(own, at, to) ||
          isBeforeAndAfterAbsence(own, at, subjectId(peer.name, check, item), to === 'failed' ? to : 'warning'),
      )
      const isUnsteady = own.some(({ kind }) => kind === 'flaky' || kind === 'diskGone')
      if (what !== 'freed' && !lasts && !byCause && !isHeld && !isUnsteady && !wasCut(at, confirmed)) {
        broken(
          'no restart is an outage',
          `${text}: ${own.map(({ kind, begin, end }) => `${kind} of ${end - begin} ms`).join(', ')}`,
        )
      }
      const oneFault = own.length === 1 && !byCause ? own[0] : undefined
      if (oneFault && what === 'begin' && oneFault.fault !== fault && to === 'failed' && !wasCut(at, confirmed))
        broken('right class', `${text}: it is ${oneFault.fault}`)
      if (oneFault && what === 'begin' && oneFault.level !== to)
        broken('right level', `${text}: it is ${oneFault.level}`)
      const isCalm = ![peer.name, ...causesOf(peer)].some((name) => isDisturbed(name, at - 3 * minute, confirmed))
      if (what === 'begin' && cause === undefined && own.length === 0 && isCalm && hasSteadyCause(peer, at, confirmed))
        broken('victims fold', text)
      if (what === 'begin' && cause !== undefined && !wasOut(cause.key, at - 5 * minute, confirmed))
        broken('no blame without a cause', text)
      if (what === 'begin' && cause !== undefined && isCalm && !couldBeOut(peer, at - 3 * minute, confirmed))
        broken('no blame without a cause', `${text}: enough others are well`)
      if (
        what === 'freed' &&
        ((isSteadyOut(peer, confirmed) && isSeen(peer, confirmed)) ||
          (own.length === 0 &&
            hasSteadyCause(peer, at - 15 * second, confirmed) &&
            isCalm &&
            !comesAndGoes(peer, at - 3 * minute, confirmed)))
      )
        broken('freed when the cause is gone', text)
    }
    if (what === 'end') {
      // What fails in the first seconds of a cut looks like a fault that every run shows, as does what follows one of these.
      const isShallower = peer.faults.some(
        ({ kind, begin }) => kind === 'deepConnect' && begin <= at && (wasCut(begin, at) || since < begin),
      )
      const stood = isPresentAt(peer, check, item, at) && isPresentAt(peer, check, item, at + recoverMs)
      if (stood && !isShallower && !isClamped(at)) broken('no recovery while it stands', text)
      const isFlaky = peer.faults.some(
        ({ kind, begin, end }) => kind === 'flaky' && begin <= confirmed && end >= at - 35 * minute,
      )
      if (confirmed - at < recoverMs) broken('recovery by time', `${text} after ${confirmed - at} ms`)
      const back = peer.faults.filter(
        (one) => one.kind === 'outage' && one.check === check && one.begin > at && one.begin < at + recoverMs - second,
      )
      if (back.length > 0 && !isFlaky) broken('no recovery while it stands', `${text}: it fails again`)
      if (key !== keyOf(peer)) broken('renamed', `${text} under its former key`)
    }
    if (what === 'blip') {
      const { own, byCause } = reasons(peer, check, item, at - 2, confirmed)
      if (
        own.length === 0 &&
        !byCause &&
        !cutAt.some(({ from, to: until }) => from <= confirmed && until >= at - minute) &&
        !isClamped(at)
      )
        broken('no transition without a fault', text)
    }
    if (
      what === 'flapping' &&
      !peer.faults.some(({ kind, begin }) => kind === 'flaky' && begin <= confirmed && begin > confirmed - 70 * minute)
    ) {
      const faults = peer.faults.filter(
        ({ begin, kind }) => kind !== 'starved' && begin <= confirmed && begin > confirmed - 61 * minute,
      )
      const isSimple = faults.every(
        ({ kind }) =>
          kind === 'restart' || kind === 'outage' || kind === 'data' || kind === 'warning' || kind === 'threshold',
      )
      if (
        faults.length <= (isSimple ? 6 : 3) &&
        peer.dependsOn.length === 0 &&
        shift === 0 &&
        !wasCut(confirmed - 61 * minute, confirmed) &&
        !peer.faults.some(
          ({ kind, begin, end }) => kind === 'loss' && begin <= confirmed && end > confirmed - 61 * minute,
        )
      )
        broken('no flapping without many faults', `${text} ${faults.length}`)
    }
    if (what === 'unobserved') {
      // A refusal that is known counts as observed, for as long as its pauses take.
      const starved = peer.faults.some(
        ({ kind, begin, end }) => kind === 'starved' && begin <= confirmed && end >= confirmed - 35 * minute,
      )
      const isCalm = !disturbances.some((one) => one.from >= confirmed - 40 * minute && one.from <= confirmed)
      if (!starved && isCalm) broken('unobserved only without verdicts', text)
      if (confirmed - at < 10 * minute) broken('unobserved only without verdicts', `${text} after ${confirmed - at} ms`)
    }
  }

  /** No instant of before a start lies in the future, where the clock was set back. */
  const isClamped = (at: number): boolean => shift !== 0 && Math.abs(at - startedAt) <= 1
  /** Whether several faults, one after the other, are at least this bad for the time of a confirmation. */
  const lastsTogether = (faults: readonly Fault[], at: number, to: string): boolean => {
    const bad = faults.filter(({ level }) => level === to || level === 'failed')
    for (let time = at; time <= at + confirmMs; time += second)
      if (!bad.some(({ begin, end }) => begin <= time + 2 && end >= time - 2)) return false
    return true
  }
  /** Over a start, the runs before and after it show one fault, if they are not too far apart. */
  const isBeforeAndAfterAbsence = (
    faults: readonly Fault[],
    at: number,
    id: string,
    to: 'warning' | 'failed',
  ): boolean => {
    const isBadAt = (time: number): boolean =>
      faults.some(
        ({ level, begin, end }) => (level === to || level === 'failed') && begin <= time + 2 && end >= time - 2,
      )
    // The incident may begin long after that run: it waits for its causes, anew after each start.
    const confirmed = evidence.confirmedAt(id, at, to) ?? Number.POSITIVE_INFINITY
    const absence = absences.find((one) => one.from > at && one.from < at + confirmMs && one.to <= confirmed)
    return absence !== undefined && confirmed - at < 10 * minute && isBadAt(at) && isBadAt(confirmed)
  }
  const hasSteadyCause = (peer: Peer, at: number, confirmed: number): boolean => {
    for (let time = at; time <= confirmed; time += second) if (!steadyOut(peer, time, true)) return false
    return true
  }
  /** Whether a run has seen a cause in the time for which a victim waits for one, and the 10 s before. A standstill is none. */
  const isSeen = ({ dependsOn }: Peer, at: number): boolean =>
    disturbances.some(({ what, from, to }) => what === 'freeze' && from <= at && to >= at - 40 * second) ||
    dependsOn.some(({ of }) => of.some((name) => evidence.seenAt(name) >= at - 40 * second))
  const isSteadyOut = (peer: Peer, at: number): boolean => {
    for (let time = at - 60 * second; time <= at; time += second) if (!steadyOut(peer, time)) return false
    return true
  }
  /** Down because of an outage of a cause that cannot be reached, and of nothing that comes and goes. */
  const steadyOut = ({ dependsOn }: Peer, at: number, isQuick = false): boolean =>
    dependsOn.some(({ of, atLeast }) => {
      const down = of.filter((name) => {
        const cause = byName.get(name)
        const fault = cause && ownFault(cause, at)
        // What takes until the deadline may take longer than dependents wait.
        return (
          fault?.kind === 'outage' &&
          fault.fault !== 'protocol' &&
          !(isQuick && (fault.fault === 'timeout' || cause?.dependsOn.length !== 0))
        )
      })
      return of.length - down.length < atLeast
    })
  const wasCut = (from: number, to: number): boolean => cutAt.some((one) => one.from <= to && one.to >= from)
  const wasOut = (key: string, from: number, to: number): boolean => {
    const peer = peerOf(key)
    if (!peer) return false
    for (let time = from; time <= to; time += second) if (isOut(peer.name, time) || isCut(time)) return true
    return peer.faults.some(
      ({ kind, begin, end }) =>
        // Until it counts as unobserved, nobody knows how it is.
        (kind === 'loss' || kind === 'flaky' || kind === 'deepConnect' || kind === 'starved') &&
        begin <= to &&
        end >= from,
    )
  }

  /** Whether a cause has a fault that not every run shows. */
  const comesAndGoes = ({ dependsOn }: Peer, from: number, to: number): boolean =>
    dependsOn.some(({ of }) =>
      of.some((name) => {
        const cause = byName.get(name)
        if (!cause) return false
        const isUnsteady = cause.faults.some(
          ({ kind, begin, end }) =>
            (kind === 'loss' || kind === 'flaky' || kind === 'deepConnect' || kind === 'restart') &&
            begin <= to &&
            end >= from,
        )
        // One that answers with an error takes no blame, although those behind it fail.
        const answers = cause.faults.some(({ fault, begin, end }) => fault === 'protocol' && begin <= to && end >= from)
        if (answers) return true
        return isUnsteady || comesAndGoes(cause, from, to)
      }),
    )
  const couldBeOut = (peer: Peer, from: number, to: number): boolean => {
    if (comesAndGoes(peer, from, to) || wasCut(from, to)) return true
    for (let at = from; at <= to; at += second) if (causeOut(peer, at)) return true
    return false
  }

  const checkLine = (what: string, at: number, text: string): void => {
    if (what === 'begin' && !cutAt.some(({ from, to }) => from <= at + second && to >= at + 10 * minute))
      broken('isolated', `${text} without a cut`)
    if (what === 'end' && isCut(queue.now)) broken('isolated', `${text} while it is cut`)
  }

  /** A lasting fault is known in time. */
  const expectReport = (fault: Fault, peer: Peer): void => {
    const interval = Math.min(
      ...depths.flatMap((depth) => (includes(depth, fault.depth) ? (peer.every[depth] ?? []) : [])),
    )
    // A deeper run may be due before the one that confirms it, and a fault without an answer takes until its deadline.
    const slowest = fault.fault === 'timeout' && peer.every.Advanced !== undefined ? 'Advanced' : fault.depth
    const boundMs = interval + confirmMs + deadlineMs[slowest] + 45 * second
    const from = Math.max(fault.begin, calmSince(peer.name))
    // The beginning of a sign-in that was refused before a restart is not known: its pauses decide.
    const wasDisturbed = from > fault.begin
    const pausedMs = fault.kind === 'auth' && (wasDisturbed || pauses.has(peer.name)) ? 21 * minute : 0
    const dueAt = from + boundMs + pausedMs
    if (dueAt >= fault.end || dueAt >= endAt || peer.name === removed) return
    queue.at(dueAt, () => {
      if (peer.name === removed) return
      if (calmSince(peer.name) + boundMs + pausedMs > queue.now) {
        expectReport(fault, peer)
        return
      }
      const isHidden = hiddenWithin(peer, fault, queue.now - boundMs, queue.now)
      const id = JSON.stringify([peer.name, fault.check, fault.item ?? ''])
      const incident = open.get(id)
      if (isHidden) {
        const again = queue.now + boundMs
        if (again < fault.end && again < endAt) queue.at(again, () => expectAgain(fault, peer, boundMs))
      } else if (!incident || isMilder(incident, fault))
        broken('known in time', `${fault.kind} of ${peer.name} ${fault.check} has lasted ${queue.now - fault.begin} ms`)
    })
  }
  const isMilder = ({ level }: Open, fault: Fault): boolean => level === 'warning' && fault.level === 'failed'
  /** A fault that is over has no incident after an interval, and the time of a recovery. */
  const expectRecovery = (fault: Fault, peer: Peer): void => {
    const interval = Math.min(
      ...depths.flatMap((depth) => (includes(depth, fault.depth) ? (peer.every[depth] ?? []) : [])),
    )
    const boundMs = interval + recoverMs + 2 * deadlineMs[fault.depth] + 45 * second
    const id = subjectId(peer.name, fault.check, fault.item)
    const before = open.get(id)
    if (!before || before.what === 'flapping' || before.isUnobserved || fault.kind === 'auth') return
    queue.at(fault.end + boundMs, () => {
      const from = fault.end - minute
      const isSame = open.get(id)?.id === before.id && open.get(id)?.what !== 'flapping'
      const isAgain = peer.faults.some((one) => one !== fault && one.begin <= queue.now && one.end >= from)
      const isPaused = pauses.has(peer.name) || (pausedUntil.get(peer.name) ?? 0) >= from
      const isHidden = isPaused || hiddenWithin(peer, fault, from, queue.now) || couldBeOut(peer, from, queue.now)
      if (isSame && !isAgain && !isHidden && !isDisturbed(peer.name, from, queue.now) && peer.name !== removed)
        broken('recovered in time', `${fault.kind} of ${peer.name} ${fault.check} ended ${boundMs} ms ago`)
    })
  }
  /** A victim whose cause is gone has an incident of its own before long. */
  const checkOwn = (fault: Fault, peer: Peer): void => {
    const again = queue.now + 4 * minute
    if (again < fault.end && again < endAt) queue.at(again, () => checkOwn(fault, peer))
    const { cause } = open.get(JSON.stringify([peer.name, fault.check, fault.item ?? ''])) ?? {}
    const from = queue.now - Math.max(...Object.values(peer.every)) - 4 * minute
    const isBlind = causesOf(peer).some(
      (name) =>
        // A run that leaves out a refused sign-in does not show that it reaches the peer.
        pauses.has(name) ||
        (pausedUntil.get(name) ?? 0) > from ||
        byName.get(name)?.faults.some((one) => one.kind === 'starved' && one.begin <= queue.now && one.end >= from),
    )
    if (cause === undefined || isBlind || isDisturbed(peer.name, from, queue.now) || couldBeOut(peer, from, queue.now))
      return
    if (fault.kind === 'auth' || pauses.has(peer.name) || (pausedUntil.get(peer.name) ?? 0) > from) return
    broken('no blame without a cause', `${fault.kind} of ${peer.name} because of ${cause}, which is well`)
  }
  /** A fault that no run can confirm: a cause or the line was down, or svc did not run, from the time of a confirmation on. */
  const isBehindCause = (peer: Peer, { begin, check }: Fault): boolean => {
    if (check === 'connect') return false
    const isAway = (at: number): boolean => absences.some(({ from, to }) => from <= at && at < to)
    for (let at = begin + confirmMs; at <= queue.now; at += 5 * second)
      if (!causeOut(peer, at) && !isCut(at) && !isAway(at)) return false
    return true
  }
  const expectAgain = (fault: Fault, peer: Peer, boundMs: number): void => {
    if (peer.name === removed || calmSince(peer.name) + 2 * boundMs > queue.now) return
    const id = JSON.stringify([peer.name, fault.check, fault.item ?? ''])
    const isHidden = hiddenWithin(peer, fault, queue.now - 2 * boundMs, queue.now)
    if (!isHidden && !open.has(id))
      broken('known in time', `${fault.kind} of ${peer.name} ${fault.check} has lasted ${queue.now - fault.begin} ms`)
  }
  /** Behind a cause that is down, its own fault cannot be seen; the same goes for a pause after a refusal. */
  const hiddenWithin = (peer: Peer, fault: Fault, from: number, to: number): boolean => {
    for (let at = from; at <= to; at += 5 * second) {
      if (causeOut(peer, at)) return true
      if (peer.runsOn === 'network' && isCut(at)) return true
    }
    // A run that paused may have been the first one to show that only deeper ones see it.
    if (fault.kind === 'auth' || (fault.check === 'connect' && fault.kind !== 'deepConnect')) return false
    return pauses.has(peer.name) || (pausedUntil.get(peer.name) ?? Number.NEGATIVE_INFINITY) > from
  }
  const checkEnd = (states: InstanceType<Subject['States']>, asksOf: ReadonlyMap<string, number>): void => {
    const blamed = new Map(
      [...states.views(now())].flatMap(({ key, check, state }) =>
        check === 'connect' ? [[key, state.incident?.cause] as const] : [],
      ),
    )
    for (const view of states.views(now())) {
      const { key, check, item, state } = view
      const peer = peerOf(key)
      if (key === '/svc/' || !peer) {
        if (state.level !== 'ok') broken('agrees with the truth', `${key} ${check} is ${state.level}`)
        continue
      }
      const first = state.incident?.cause
      const beyond = first && blamed.get(first.key)
      if (beyond) broken('the first cause takes the blame', `${key} blames ${first.key}, a victim of ${beyond.key}`)
      const fault = ownFault(peer, queue.now)
      const isBad = fault !== undefined && fault.check === check && fault.item === item
      const isOwn = isBad && !isBehindCause(peer, fault) ? fault.level : 'ok'
      const expected =
        check === 'connect' && (isOut(peer.name, queue.now) || causeOut(peer, queue.now)) ? 'failed' : isOwn
      const isHidden = fault !== undefined || causeOut(peer, queue.now)
      if (state.level !== expected && !(isHidden && expected === 'ok') && !pauses.has(peer.name)) {
        broken('agrees with the truth', `${key} ${check} ${item ?? ''} is ${state.level}, and ${expected} is right`)
      }
      // Until the sign-in went on, no run showed that it was well, and flapping ends half an hour after that.
      const flapsAfterPause =
        state.isFlapping &&
        (pausedUntil.get(peer.name) ?? 0) > queue.now - 30 * minute - Math.min(...Object.values(peer.every))
      if (state.incident && expected === 'ok' && !isHidden && !pauses.has(peer.name) && !flapsAfterPause)
        broken('agrees with the truth', `${key} ${check} has an incident: ${state.incident.message}`)
      if (item === '/b' && peer.faults.some((one) => one.kind === 'diskGone' && one.end < queue.now - 10 * minute))
        broken('removed', `${key} still has ${item}`)
    }
    for (const [key, asks] of asksOf) if (asks > 1_200) broken('few runs', `${asks} more runs of ${key}`)
  }

  for (const peer of peers) {
    for (const fault of peer.faults) {
      if (steady.has(fault.kind)) {
        queue.at(fault.begin, () => expectReport(fault, peer))
        queue.at(fault.begin + 6 * minute, () => checkOwn(fault, peer))
        if (fault.end < endAt) queue.at(fault.end, () => expectRecovery(fault, peer))
      }
      if (fault.kind === 'flaky') queue.at(fault.end, () => checkFlaky(fault, peer))
      if (fault.kind === 'starved') queue.at(fault.end, () => checkStarved(fault, peer))
    }
  }
  const checkFlaky = (fault: Fault, peer: Peer): void => {
    if (
      peer.name === removed ||
      isDisturbed(peer.name, fault.begin - minute, queue.now) ||
      hiddenWithin(peer, fault, fault.begin, queue.now)
    )
      return
    const id = JSON.stringify([peer.name, 'connect', ''])
    const isQuick = (peer.every.Basic ?? minute) <= 10 * second
    if (isQuick && open.get(id)?.what !== 'flapping')
      broken('flapping is one incident', `${peer.name} ${open.get(id)?.what}`)
  }
  const checkStarved = (fault: Fault, peer: Peer): void => {
    const limit = Math.max(10 * minute, 3 * Math.min(...Object.values(peer.every))) + minute + 30 * second
    if (
      peer.name === removed ||
      fault.end - fault.begin < limit + minute ||
      isDisturbed(peer.name, fault.begin, queue.now)
    )
      return
    const isKnown = [...open].some(
      ([id, one]) =>
        peerOfId(id) === peer && (one.isUnobserved || one.level === 'unobserved' || one.level === 'failed'),
    )
    const isCutNow = cutAt.some(({ from, to }) => from <= queue.now && to >= fault.begin)
    if (!isKnown && !isCutNow)
      broken('what nobody observes is known', `${peer.name} came to no verdict for ${fault.end - fault.begin} ms`)
  }

  queue.at(1, live)
  queue.at(chance.between(5 * minute, 60 * minute), () => {
    if (chance.is(0.6)) cut()
  })
  queue.runUntil(endAt)
  return trial.outcome()
}

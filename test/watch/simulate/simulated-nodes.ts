import { entryOf } from '../../../src/core/base/lazy.ts'
import * as shippedNodes from '../../../src/core/watch/nodes/index.ts'
import { mostQuestions } from '../../../src/core/watch/nodes/policy.ts'
import type { Delivery } from '../../../src/core/watch/notify/receiver.ts'
import * as shippedOutbox from '../../../src/core/watch/outbox/index.ts'
import { headOf, linesOf, rowsOfSent } from '../../../src/core/watch/outbox/index.ts'
import * as shippedStates from '../../../src/core/watch/states/index.ts'
import { LeasesTable, nameOf } from '../../support/store/leases-table.ts'
import { Chance } from './chance.ts'
import { Queue } from './queue.ts'
import { minute, type Outcome, type Span, second, Trial } from './trial.ts'

/** The subject of the simulation: the shipped folders, or copies with a defect. */
export type Subject = {
  readonly nodes: typeof shippedNodes
  readonly states: typeof shippedStates
  readonly outbox: typeof shippedOutbox
}
export const shipped: Subject = { nodes: shippedNodes, states: shippedStates, outbox: shippedOutbox }

/** Events that are written out, in place of random ones. Times are milliseconds. */
export type Script = {
  /**
   * Disturbances: when, which one, what it is about, and for how long. `renamed`: a node gets a svc.yaml with another name
   * of p1, `removed`: the `holder`, or the `others`, get one without it.
   */
  readonly events: readonly (readonly [at: number, what: string, about: string | undefined, ms: number])[]
  /** When what is observed fails: `p1`, or `disk of a`. */
  readonly failures: Readonly<Record<string, Span>>
}

const endAt = 40 * minute
/** From here on nothing is disturbed any more, and no fault stands. */
const calmAt = 29 * minute
const confirmMs = 20 * second
/** For how long a lease is held after its renewal, and when another node takes it at the earliest. */
const holdMs = 7 * second
const origin = 1_700_000_000_000
/** The clock of the store, and how far clocks of nodes are from it. */
const storeClock = origin + 3_000_000

type Fault = { readonly from: number; readonly to: number; readonly kind: 'timeout' | 'protocol' }
/** Something that is observed: a peer, or a disk of one machine. */
type Peer = { readonly name: string; readonly everyMs: number; readonly faults: readonly Fault[] }
/** One version of svc.yaml: keys with what they observe. */
type Version = {
  readonly digest: string
  readonly monitors: ReadonlyMap<string, Spec>
}
type Spec = { readonly peer: Peer; readonly dependsOn: readonly string[]; readonly formerly: readonly string[] }

/**
 * The state of a subject at a receiver. `senders`: who can send its end, which is the store, or the file of a node that has sent
 * something by itself and has not stored it. Empty while it is open: nobody knows of it any more.
 */
type View = {
  readonly isOpen: boolean
  readonly incident: string
  readonly isAlone: boolean
  readonly at: number
  readonly senders: ReadonlySet<string>
}
const inStore = 'the store'
/** The messages of an incident that a receiver got. `senders`: as in a view. */
type Tale = {
  begins: number
  ends: number
  readonly at: number
  isAlone: boolean
  readonly subject: string
  senders: ReadonlySet<string>
  /** When a holder last told it. */
  heldAt: number
}
/** The private file of a node, with what its processes have sent without the store. `isLost`: nobody reads it any more. */
type SentFile = { readonly id: string; text: string; isLost: boolean }
type Receiver = {
  readonly rules: shippedOutbox.ReceiverRules
  readonly windows: readonly (Span & { readonly mode: 'down' | 'lossy' | 'slow' })[]
  readonly views: Map<string, View>
  /** By incident. */
  readonly tales: Map<string, Tale>
  /** When it first got each item. */
  readonly items: Map<string, number>
}

const subjectName = ({ key, check, item }: shippedStates.Subject): string =>
  item === undefined ? `${key} ${check}` : `${key} ${check} ${item}`

/** The names by which receivers know what a row is about. */
const toldNames = ({ receiver, subject, row }: shippedOutbox.StoredRow): readonly string[] =>
  [row?.last, row?.attempt, ...(row?.others ?? []), ...(row?.ends ?? [])].map(
    (one) => `${receiver} ${subjectName({ ...subject, ...one?.as })}`,
  )
/** The content of a row without times: a node whose clock is behind does not take them from the future. */
const gistOf = (row: shippedOutbox.OutboxRow | undefined): string =>
  JSON.stringify([
    row?.last?.incident,
    row?.attempt?.incident,
    row?.need?.incident,
    row?.ends.map(({ incident }) => incident),
    row?.others?.map(({ incident }) => incident),
  ])

function faultsOf(chance: Chance, from: number, share: number): readonly Fault[] {
  const faults: Fault[] = []
  for (let at = from + chance.between(0, 6 * minute); at < calmAt; at += chance.between(90 * second, 9 * minute)) {
    if (!chance.is(share)) continue
    const ms = chance.of([4 * second, 12 * second, 75 * second, 3 * minute, 3 * minute, 8 * minute])
    const to = Math.min(at + ms, calmAt)
    faults.push({ from: at, to, kind: chance.of(['timeout', 'protocol'] as const) })
    at = to
  }
  return faults
}

/** The versions of svc.yaml, each with one change to the one before, and when the first node gets each. */
function versionsOf(chance: Chance, names: readonly string[]): readonly (Version & { readonly at: number })[] {
  const peers = names.map(
    (name): Peer => ({
      name,
      everyMs: chance.of([10 * second, 20 * second, 30 * second]),
      faults: faultsOf(chance, minute, 0.75),
    }),
  )
  const keyOf = (name: string): string => `App/http/${name}`
  let monitors = new Map<string, Spec>(
    peers.slice(0, -1).map((peer) => [keyOf(peer.name), { peer, dependsOn: [], formerly: [] }]),
  )
  const [one, other] = [...monitors.keys()]
  if (one !== undefined && other !== undefined && chance.is(0.5))
    monitors.set(other, { ...(monitors.get(other) as Spec), dependsOn: [one] })
  const versions = [{ digest: 'v0', monitors, at: 0 }]
  const changes = chance.is(0.6) ? chance.between(1, 4) : 0
  let at = 4 * minute
  for (let number = 1; number <= changes; number += 1) {
    monitors = new Map(monitors)
    const keys = [...monitors.keys()]
    const key = chance.of(keys)
    const spec = monitors.get(key) as Spec
    const what = chance.of(['add', 'remove', 'rename', 'rename', 'depends'] as const)
    const added = peers.at(-1) as Peer
    // Once another monitor has the old name of one, incidents go on under the new one (W18): no rule is meant for that.
    const isAdded = [...monitors.values()].some(({ peer }) => peer === added)
    if (what === 'add' && !isAdded) monitors.set(keyOf(added.name), { peer: added, dependsOn: [], formerly: [] })
    else if (what === 'remove' && keys.length > 3) monitors.delete(key)
    else if (what === 'rename') {
      monitors.delete(key)
      const to = keyOf(`${spec.peer.name}-${number}`)
      monitors.set(to, { ...spec, formerly: [key] })
      for (const [each, dependent] of monitors)
        monitors.set(each, { ...dependent, dependsOn: dependent.dependsOn.map((of) => (of === key ? to : of)) })
    } else {
      const dependsOn = spec.dependsOn.length > 0 ? [] : [chance.of(keys)].filter((of) => of !== key)
      monitors.set(key, { ...spec, dependsOn })
    }
    versions.push({ digest: `v${number}`, monitors, at })
    at += chance.between(4 * minute, 8 * minute)
  }
  return versions
}

/** The svc.yaml without the first peer. */
const removedOf = ({ digest, monitors }: Version): Version => ({
  digest: `${digest}-removed`,
  monitors: new Map([...monitors].filter(([, { peer, dependsOn }]) => peer.name !== 'p1' && dependsOn.length === 0)),
})

/** The svc.yaml in which the first peer has another name. */
function renamedOf({ digest, monitors }: Version): Version {
  const all = [...monitors].map(([key, spec]): [string, Spec] =>
    spec.peer.name === 'p1' ? [`${key}-renamed`, { ...spec, formerly: [key] }] : [key, spec],
  )
  const dependsOn = ({ dependsOn: keys }: Spec): readonly string[] =>
    keys.map((key) => all.find(([, { formerly }]) => formerly.includes(key))?.[0] ?? key)
  return {
    digest: `${digest}-renamed`,
    monitors: new Map(all.map(([key, spec]) => [key, { ...spec, dependsOn: dependsOn(spec) }])),
  }
}

function receiversOf(chance: Chance): readonly Receiver[] {
  return ['pager', 'mail'].map((name): Receiver => {
    const windows: (Span & { readonly mode: 'down' | 'lossy' | 'slow' })[] = []
    for (
      let from = chance.between(3 * minute, 15 * minute);
      from < calmAt;
      from += chance.between(4 * minute, 15 * minute)
    ) {
      if (!chance.is(0.5)) continue
      const to = Math.min(from + chance.of([20 * second, 90 * second, 3 * minute]), calmAt)
      windows.push({ from, to, mode: chance.of(['down', 'lossy', 'slow'] as const) })
      from = to
    }
    const rules = { name, folds: name === 'mail', remindMs: Number.POSITIVE_INFINITY, accepts: () => true }
    return { rules, windows, views: new Map(), tales: new Map(), items: new Map() }
  })
}

/**
 * Several nodes with one store, their peers and their receivers, for 40 minutes. `losesRoutes`: nodes also lose the route to
 * single peers, and nothing else goes wrong but that some are killed or stand still. `losesStore`: the store is away for minutes,
 * and meanwhile nodes are killed, stand still, are late, lose their network and each other. `script`: nothing else goes wrong at
 * all.
 */
export function simulate(
  subject: Subject,
  seed: number,
  keepLines = false,
  {
    losesRoutes = false,
    losesStore = false,
    script,
  }: { readonly losesRoutes?: boolean; readonly losesStore?: boolean; readonly script?: Script } = {},
): Outcome {
  const { Membership, machineKey, presentKeys, nodeOfKey, nodesKey, nodeVerdicts, shardsOf } = subject.nodes
  const { reportedOutMs } = shippedNodes
  const queue = new Queue()
  const chance = new Chance(seed)
  const names = ['a', 'b', 'c'].slice(0, chance.is(0.15) && !script ? 2 : 3)
  const rolledOut = versionsOf(chance, ['p1', 'p2', 'p3', 'p4', 'p5', 'p6'].slice(0, chance.between(5, 7)))
  const first = rolledOut[0] as Version
  const versions = script ? [first, renamedOf(first), removedOf(first)] : rolledOut
  const receivers = receiversOf(chance).map((one) => (script ? { ...one, windows: [] } : one))
  const disks = new Map(
    names.map((name): readonly [string, Peer] => [
      machineKey(name, 'Host/disk'),
      { name: `disk of ${name}`, everyMs: 30 * second, faults: faultsOf(chance, minute, 0.4) },
    ]),
  )
  const trial = new Trial(queue, keepLines)
  const { trace, broken, count } = trial

  // Disturbances.

  const disturbances: (Span & { readonly what: string })[] = []
  let disturbedUntil = 0
  const disturb = (what: string, ms: number): void => {
    trace(`disturbed by ${what} for ${ms}`)
    count(what.split(' ')[0] ?? '')
    disturbances.push({ from: queue.now, to: queue.now + ms, what })
    disturbedUntil = Math.max(disturbedUntil, queue.now + ms)
  }
  /** When a node was without its network. */
  const isolations: Span[] = []
  const isCalm = (ms: number): boolean => queue.now >= disturbedUntil + ms
  const disturbedBetween = (from: number, to: number): boolean =>
    disturbances.some((one) => one.from <= to && one.to >= from)
  /** The latest moment at which a disturbance began or ended. */
  const lastTurn = (): number =>
    disturbances.reduce((last, { from, to }) => Math.max(last, from, to <= queue.now ? to : from), 0)

  // The store, with its own clock.

  const table = new LeasesTable()
  const now = (): number => storeClock + queue.now
  const store = {
    downUntil: 0,
    slowUntil: 0,
    lossyUntil: 0,
    isOut: (): boolean => queue.now < store.downUntil,
  }
  /** Independent of the table: who last took or renewed each lease, and who last wrote by it. */
  type Holder = { readonly process: string; readonly node: string; readonly epoch: number; readonly at: number }
  let leases = new Map<string, Holder>()
  let writers = new Map<string, { readonly process: string; readonly epoch: number }>()
  let restore: (() => void) | undefined
  /** Begins the failover that loses the next write, where it is of this node. */
  let armed: ((node: string) => void) | undefined
  let failedOverAt = Number.NEGATIVE_INFINITY
  const keepForFailover = (): void => {
    const back = table.snapshot()
    const [heldBy, wroteLast, came] = [new Map(leases), new Map(writers), new Map(cameAt)]
    restore = () => {
      back()
      // Whoever takes a lease of which the store has lost the later one is the one that comes.
      for (const process of cameAt.keys()) if (!came.has(process)) cameAt.delete(process)
      leases = new Map(heldBy)
      writers = new Map(wroteLast)
    }
  }
  const failOver = (): void => {
    restore?.()
    restore = undefined
    storedEnds.clear()
    failedOverAt = queue.now
    trace('failed over')
  }
  const isHeldBy = (process: string, name: string): boolean => {
    const lease = leases.get(name)
    return lease?.process === process && queue.now - lease.at < holdMs
  }
  /** When a node last renewed its row, and whether it left in order. */
  const lastRenewal = new Map<string, number>()
  const left = new Set<string>()
  /** Processes that ended in order. */
  const leavers = new Set<string>()
  /** When a process last got an answer of the store to a renewal. */
  const answeredAt = new Map<string, { readonly latest: number; readonly before: number }>()
  /** When it got each of them. */
  const answers = new Map<string, number[]>()
  /** When the store last got the renewal of the lease of the network by each process. */
  const heldAt = new Map<string, number>()
  /** The same by each node. */
  const ledAt = new Map<string, number>()
  /** When each process took the lease of its machine: first, or last from one that had not renewed it in time. */
  const cameAt = new Map<string, number>()
  /** When a process that works last asked for one. */
  const renewedAt = new Map<string, number>()
  /** For how long the store has been there since then: a node that renews its row without it is not out. */
  const renewableMs = new Map<string, number>()
  const isOverdue = (node: string): boolean => (renewableMs.get(node) ?? 0) >= reportedOutMs - 15 * second
  const backAt = new Map<string, number>()
  /** Whether it did not renew its row although the store was there, as of the rows that another node may still have. */
  const wasOut = (node: string): boolean =>
    isOverdue(node) || queue.now - (backAt.get(node) ?? Number.NEGATIVE_INFINITY) <= 5 * second
  /** The version of its configuration at that time. */
  const versionOf = new Map<string, string | undefined>()

  // Receivers, and what must be true of what they get.

  const faultsOfPeer = ({ name, faults }: Peer): readonly Fault[] => {
    const failure = script?.failures[name]
    return script ? (failure ? [{ ...failure, kind: 'protocol' }] : []) : faults
  }
  const faultAt = (peer: Peer, at: number): Fault | undefined =>
    faultsOfPeer(peer).find(({ from, to }) => from <= at && at < to)
  const wasBad = (peer: Peer, from: number, to: number): boolean =>
    faultsOfPeer(peer).some((fault) => fault.from <= to && fault.to >= from)
  const wasWell = (peer: Peer, from: number, to: number): boolean =>
    !faultsOfPeer(peer).some((fault) => fault.from <= from && fault.to > to)
  const specsOf = (key: string): readonly Spec[] => versions.flatMap(({ monitors }) => monitors.get(key) ?? [])
  /** The keys that a peer has in any version. */
  const keysOf = (peer: Peer): readonly string[] =>
    versions.flatMap(({ monitors }) => [...monitors].flatMap(([key, spec]) => (spec.peer === peer ? [key] : [])))
  const peerOf = (key: string): Peer | undefined => disks.get(key) ?? specsOf(key)[0]?.peer
  const observes = ({ monitors }: Version, peer: Peer): boolean =>
    [...monitors.values()].some((spec) => spec.peer === peer)
  /** Whether some node still has it in its configuration, and none has it under another name. */
  const currentVersions = (): readonly Version[] =>
    names.filter((name) => !gone.has(name)).map((name) => versionAt.get(name) as Version)
  const isKnown = (key: string): boolean => {
    const current = currentVersions()
    const isRenamed = current.some(({ monitors }) =>
      [...monitors.values()].some(({ formerly }) => formerly.includes(key)),
    )
    return disks.has(key) || (!isRenamed && current.some(({ monitors }) => monitors.has(key)))
  }

  /**
   * When the store got that a receiver has accepted the end of an incident without it, and which node had told it. `isDoubtful`:
   * another node has handed over since that it told the incident, and nobody can say which of the two came first.
   */
  const storedEnds = new Map<string, { readonly at: number; readonly by: string; readonly isDoubtful: boolean }>()
  const receive = (
    receiver: Receiver,
    item: shippedOutbox.NoticeItem,
    { name: node, process, file }: Pick<SimNode, 'name' | 'process' | 'file'>,
    isAlone: boolean,
  ): void => {
    const toldAs = `${receiver.rules.name} ${item.incident}`
    // A receiver goes by the name that it was told.
    const name = subjectName({ ...item.subject, ...item.as })
    const to = receiver.rules.name
    const text = `${to}: ${item.what} ${name} ${item.incident} by ${node}${isAlone ? ' uncoordinated' : ''}`
    trace(`received ${text}`)
    count(isAlone ? 'message alone' : 'message')
    const { key } = item.subject
    const isEnd = item.what === 'end' || item.what === 'removed'
    const machine = nodeOfKey(key)
    if (machine !== undefined && machine !== node) broken('own machine', text)
    const before = receiver.views.get(name)
    // What a process sent right before it was lost may arrive later.
    const sender = isAlone ? (file.isLost ? [] : [file.id]) : [inStore]
    const senders = new Set(isEnd ? [] : [...(before?.senders ?? []), ...sender])
    receiver.views.set(name, { isOpen: !isEnd, incident: item.incident, isAlone, at: queue.now, senders })
    const firstAt = receiver.items.get(item.id)
    if (
      firstAt !== undefined &&
      !isAlone &&
      // A message of a receiver that puts several together is on its way for longer.
      !disturbedBetween(firstAt - (receiver.rules.folds ? 20 : 10) * second, queue.now) &&
      !wasLossy(receiver, firstAt)
    )
      broken('nothing twice', text)
    receiver.items.set(item.id, firstAt ?? queue.now)
    // A message of the holder may be on its way, and it needs a moment to notice what is handed over.
    const over = isAlone || !isEnd ? undefined : storedEnds.get(toldAs)
    const isForgotten = over?.isDoubtful === true && over.by === node
    if (over && !isForgotten && queue.now - over.at > 10 * second && !wasLossy(receiver, over.at))
      broken('an end is told once', `${text}, ${queue.now - over.at} ms after the store knew that it was told`)
    if (!isEnd) storedEnds.delete(toldAs)
    const tale: Tale = receiver.tales.get(item.incident) ?? {
      begins: 0,
      ends: 0,
      at: queue.now,
      isAlone,
      subject: name,
      senders: new Set(),
      heldAt: Number.NEGATIVE_INFINITY,
    }
    receiver.tales.set(item.incident, tale)
    if (tale.subject !== name) broken('one name', `${text}: it began as ${tale.subject}`)
    if (!isEnd && tale.ends > 0 && !tale.isAlone && !isAlone) broken('one name', `${text}: it has ended before`)
    tale.isAlone ||= isAlone
    if (!isEnd) toldAt.set(`${to} ${name} ${process}`, queue.now)
    if (isAlone && machine === undefined && key !== nodesKey) spoke({ node, process }, text)
    if (isEnd) tale.ends += 1
    else {
      if (!isAlone) tale.heldAt = queue.now
      tale.begins += 1
      tale.senders = new Set([...tale.senders, ...sender])
    }
    if (key === nodesKey) {
      const out = item.subject.item ?? ''
      const since = queue.now - (lastRenewal.get(out) ?? 0)
      if (
        !isEnd &&
        since < reportedOutMs - 15 * second &&
        !disturbedBetween(queue.now - 3 * minute, queue.now - minute)
      )
        broken('nothing false', text)
      return
    }
    // No receiver fails for as long as it takes until it is reported.
    if (item.subject.check === 'receiver' && !isEnd) {
      const about = receivers.find(({ rules }) => rules.name === item.subject.item)
      if (about && queue.now - worksSince(about) > 6 * minute) broken('nothing false', text)
    }
    const peer = peerOf(key)
    if (!peer) return
    // A message rests on a verdict of the last minute, and waits for a receiver; an end may wait for longer.
    const slack = 4 * minute
    const isOfRoute = names.some((name) => lacksRoute(name, peer, queue.now - slack - confirmMs, queue.now))
    if (isOfRoute) {
      // Two nodes disagree: that is a warning. Where nobody could answer, the verdict of the holder counts.
      // Once another node agrees, that counts until the holder reaches the peer. A victim is told when its cause is over.
      const from = Math.min(queue.now - 2 * minute, beganAt.get(item.incident) ?? queue.now)
      const isAnswered =
        !disturbedBetween(from, queue.now) && (silentAt.get(key) ?? 0) < from - minute && !hasAskedAll(node, from)
      const lack = names.filter((one) => lacksRoute(one, peer, from, queue.now))
      const isDisputed = !wasBad(peer, from - minute, queue.now) && lack.length === 1 && lack[0] === node
      const isPrompt = queue.now - worksSince(receiver) > 2 * minute
      if (item.what === 'begin' && item.level === 'failed' && isDisputed && isAnswered && isPrompt)
        broken('no page for what nodes do not agree on', text)
      if (!isEnd && item.level === 'warning') count('disputed')
    } else if (!isEnd && item.what !== 'reminder' && !wasBad(peer, queue.now - slack - confirmMs, queue.now)) {
      const causes = specsOf(key).flatMap(({ dependsOn }) => dependsOn.flatMap((of) => peerOf(of) ?? []))
      if (!causes.some((cause) => wasBad(cause, queue.now - slack - confirmMs, queue.now)))
        broken('nothing false', text)
    }
    // Whoever sends it and of whatever incident: a receiver knows subjects. It may be followed by a begin in the same message.
    // What nobody watches any more is not said to be well.
    const isWatched = nodeOfKey(key) !== undefined || currentVersions().some((one) => observes(one, peer))
    if (item.what === 'end' && before?.isOpen && isWatched && !wasWell(peer, queue.now - slack, queue.now))
      queue.after(0, () => {
        // What two nodes told under two names goes on under one of them, with the same message.
        const others = keysOf(peer).flatMap((one) => receiver.views.get(`${one} ${item.subject.check}`) ?? [])
        const goesOn = others.some(({ isOpen, at }) => isOpen && at === queue.now)
        if (receiver.views.get(name)?.isOpen === false && !goesOn) broken('no end while it stands', text)
      })
    if (item.what === 'removed' && isKnown(key))
      queue.after(0, () => {
        if (receiver.views.get(name)?.isOpen === false) broken('no end while it stands', `${text} is still configured`)
      })
  }
  /** Passes the right to end what processes with this file have sent: to the store, or to nobody. */
  const passOn = (
    { id }: SentFile,
    to: readonly string[],
    isOf: (receiver: string, name: string) => boolean = () => true,
  ): void => {
    const after = (senders: ReadonlySet<string>): ReadonlySet<string> =>
      new Set([...senders].flatMap((one) => (one === id ? to : [one])))
    for (const { rules, views, tales } of receivers) {
      for (const [name, view] of views)
        if (view.senders.has(id) && isOf(rules.name, name)) views.set(name, { ...view, senders: after(view.senders) })
      for (const tale of tales.values())
        if (tale.senders.has(id) && isOf(rules.name, tale.subject)) tale.senders = after(tale.senders)
    }
  }
  const isStoredNow = (file: SentFile, rows: readonly shippedOutbox.StoredRow[], to = [inStore]): void => {
    const stored = new Set(rows.flatMap(toldNames))
    passOn(file, to, (receiver, name) => stored.has(`${receiver} ${name}`))
  }
  const lose = (file: SentFile): void => {
    file.isLost = true
    passOn(file, [])
  }
  const lostAnswers = new Map<Receiver, number>()
  const wasLossy = (receiver: Receiver, since: number): boolean => (lostAnswers.get(receiver) ?? -1) >= since - minute
  const wasPerhapsLost = (receiver: Receiver): boolean => receiver.windows.some(({ from }) => from <= queue.now)
  const windowOf = ({ windows }: Receiver) => windows.find(({ from, to }) => from <= queue.now && queue.now < to)
  const worksSince = ({ windows }: Receiver): number =>
    windows.reduce((since, { from, to }) => (from <= queue.now ? Math.max(since, Math.min(to, queue.now)) : since), 0)

  // Nodes.

  const live = new Map<string, SimNode>()
  /** When another node looked at a monitor and came to no verdict. */
  const silentAt = new Map<string, number>()
  const silence = new Chance(seed + 700_001)
  /** When each incident began for a node. */
  const beganAt = new Map<string, number>()
  /** When others looked for each node. Once it has asked as often as it may in a minute, its own verdict counts. */
  const looksFor = new Map<string, number[]>()
  const hasAskedAll = (node: string, since: number): boolean =>
    (looksFor.get(node) ?? []).filter((at) => at > since - minute).length >= mostQuestions
  /** Nodes that never come back. */
  const gone = new Set<string>()
  let reloadedAt = 0
  /** When some node began to run each monitor last. */
  const ranAt = new Map<string, number>()
  const scheduledRuns = new Map<string, number>()
  const cuts = new Map<string, number>()
  /** Lost routes: a node does not reach one peer. */
  const routes: (Span & { readonly node: string; readonly peer: Peer })[] = []
  const lacksRoute = (node: string, peer: Peer, from: number, to = from): boolean =>
    routes.some((one) => one.node === node && one.peer === peer && one.from <= to && from < one.to)
  const isCut = (node: string, from: 'store' | 'peers'): boolean => (cuts.get(`${node} ${from}`) ?? 0) > queue.now
  /** Between two nodes, while they lose each other. */
  const partings: (Span & { readonly between: readonly string[] })[] = []
  const talk = new Chance(seed + 900_001)
  const isApart = (one: string, other: string, from = queue.now, to = queue.now): boolean =>
    partings.some(
      ({ between, ...span }) => between.includes(one) && between.includes(other) && span.from <= to && from < span.to,
    )
  /** Until when the schedule of a node does not keep up: it begins no run. */
  const behindUntil = new Map<string, number>()
  const isBehind = (name: string): boolean => (behindUntil.get(name) ?? 0) > queue.now
  /** When an answer to a process was lost last, and when two were in short order. */
  const lostAnswersAt = new Map<string, { readonly latest: number; readonly twice: number | undefined }>()
  /** When a process sent without the store last, and since when it has been without it. */
  const spokeAt = new Map<string, number>()
  const withoutStoreAt = new Map<string, number>()
  /** When a node was last a member, and since when the store does not answer it, or did not before that. */
  const memberAt = new Map<string, number>()
  const lostStoreAt = new Map<string, number>()
  /** When a process last told a receiver of a subject. */
  const toldAt = new Map<string, number>()
  /** When the lease of the network was last taken. */
  let takenAt = 0
  /** The same, by a node without a network: while it stands by, it does not look whether it has one. */
  let takenInVainAt = 0
  /** Of two nodes that see each other, one speaks, whichever it is. */
  const spoke = ({ node, process }: { readonly node: string; readonly process: string }, text: string): void => {
    spokeAt.set(process, queue.now)
    const from = queue.now - 2 * minute
    const isDoubtful = (of: string): boolean => {
      const isLost = (lostAnswersAt.get(of)?.twice ?? Number.NEGATIVE_INFINITY) > from
      // By an answer of this moment, nobody has decided anything yet.
      const knownAt = answers.get(of)?.findLast((at) => at < queue.now - 5 * second) ?? 0
      return isLost || knownAt <= takenAt + second
    }
    const isOwn = ({ from: began, to, what }: (typeof disturbances)[number]): boolean =>
      began <= queue.now && to >= from && what !== 'store-gone'
    for (const other of live.values()) {
      const at = spokeAt.get(other.process) ?? Number.NEGATIVE_INFINITY
      if (other.name === node || !other.isAwake || queue.now - at > 30 * second) continue
      const apartMs = (withoutStoreAt.get(process) ?? 0) - (withoutStoreAt.get(other.process) ?? 0)
      const isUsual = disturbances.every((one) => !isOwn(one)) && !isApart(node, other.name, from)
      const isPlain = isUsual && ![process, other.process].some(isDoubtful) && Math.abs(apartMs) < 12 * second
      if (isPlain && queue.now - reloadedAt > 2 * minute)
        broken('nobody speaks who should be silent', `${text}, beside ${other.name}`)
    }
  }
  const clockOf = new Map(names.map((name) => [name, 0]))
  const versionAt = new Map(names.map((name) => [name, versions[0] as Version]))
  let processes = 0
  const files = new Map<string, SentFile>()
  /** Whether nodes can write their files. If not, what they noted is lost with the process. */
  const filing = new Chance(seed + 1_100_009)
  /** When a process last began or ended to read its file: before it has, it takes no lease. */
  const filedAt = new Map<string, number>()
  const keepsFiles = !filing.is(0.25)

  class SimNode {
    readonly name: string
    isDead = false
    frozenUntil = 0
    version: Version
    readonly process: string
    readonly startedAt = queue.now
    readonly file: SentFile
    readonly member: InstanceType<typeof Membership>
    readonly states: InstanceType<typeof shippedStates.States>
    readonly ledger: InstanceType<typeof shippedStates.Ledger>
    readonly outbox: InstanceType<typeof shippedOutbox.Outbox>
    readonly dirty = new Map<string, shippedOutbox.StoredRow>()
    readonly #wall: number
    readonly #deferred: (() => void)[] = []
    readonly #due = new Map<string, { nextAt: number; number: number }>()
    #waiters: ((isStored: boolean) => void)[] = []
    #isWriting = false
    /** How many beats have no answer yet. */
    #beats = 0
    #statesAt = 0
    #lastAsked = 0
    /** Since when it knows that it is isolated. */
    isolatedAt: number | undefined
    #runs = 0
    #cached: { readonly version: Version; readonly specs: ReadonlyMap<string, Spec> } | undefined

    constructor(name: string) {
      this.name = name
      processes += 1
      this.process = `${name}${processes}`
      this.file = entryOf(files, name, () => ({ id: `file of ${this.process}`, text: '', isLost: false }))
      this.file.text += headOf(inStore, name)
      this.version = versionAt.get(name) as Version
      this.#wall = origin + (clockOf.get(name) ?? 0)
      const time = this.now
      this.states = new subject.states.States(time, ['witness'], machineKey(name, '/svc/'), (key) =>
        this.member.otherNode(key, queue.now),
      )
      this.ledger = new subject.states.Ledger({ isShared: true })
      this.outbox = new subject.outbox.Outbox(
        time,
        (one) => this.#lookup(one),
        machineKey(name, '/svc/receivers'),
        (key) => this.member.isUpToOther(key, queue.now),
      )
      this.carryOut(
        this.outbox.configure(
          receivers.map(({ rules }) => rules),
          time,
        ),
      )
      const facts = { version: '1', peer: name, startedAt: time }
      this.member = new Membership({ node: name, process: this.process, facts, settings: this.#settings() }, queue.now)
      this.after(chance.between(0, second), () => this.#tick())
    }

    /** Milliseconds of its time line. */
    get now(): number {
      return this.#wall + queue.now
    }
    get isAwake(): boolean {
      return !this.isDead && this.frozenUntil <= queue.now
    }
    after(ms: number, run: () => void): void {
      queue.after(ms, () => this.#enter(run))
    }
    #enter(run: () => void): void {
      if (this.isDead) return
      if (this.frozenUntil > queue.now) this.#deferred.push(run)
      else run()
    }
    freeze(ms: number): void {
      this.frozenUntil = queue.now + ms
      queue.after(ms, () => {
        if (!this.isDead && ms >= 5 * second && this.member.mode(queue.now) === 'member')
          broken('a standstill is noticed', `${this.name} goes on after ${ms} ms`)
        for (const run of this.#deferred.splice(0)) this.#enter(run)
      })
    }

    #settings(): shippedNodes.MemberSettings {
      const own = new Set(['Host/disk', '/svc/', '/svc/receivers'].map((key) => machineKey(this.name, key)))
      const network = presentKeys([...this.version.monitors].map(([key, { formerly }]) => ({ key, formerly })))
      return { digest: this.version.digest, network, own }
    }
    #specs(): ReadonlyMap<string, Spec> {
      if (this.#cached?.version === this.version) return this.#cached.specs
      const disk = machineKey(this.name, 'Host/disk')
      const host: Spec = { peer: disks.get(disk) as Peer, dependsOn: [], formerly: [] }
      const specs = new Map([...this.version.monitors, [disk, host]])
      this.#cached = { version: this.version, specs }
      return specs
    }
    #watched(): readonly shippedStates.WatchedMonitor[] {
      const common = { confirmMs, flapping: Number.POSITIVE_INFINITY, fingerprint: '' }
      const all = [...this.#specs()].map(
        ([key, { peer, dependsOn, formerly }]): shippedStates.WatchedMonitor => ({
          ...common,
          key,
          type: 'App',
          name: key,
          runsOn: nodeOfKey(key) === undefined ? 'network' : 'machine',
          every: { Basic: peer.everyMs },
          dependsOn: dependsOn.map((of) => ({ atLeast: 1, of: [of] })),
          formerly,
        }),
      )
      const nodes: shippedStates.WatchedMonitor = {
        ...common,
        key: nodesKey,
        name: 'svc',
        runsOn: 'machine',
        every: { Basic: 10 * second },
        dependsOn: [],
        confirmMs: 0,
        formerly: [],
      }
      return [...all, nodes].filter(({ key }) => this.member.watches(key))
    }

    reload(version: Version): void {
      this.version = version
      this.obey(this.member.configured(this.#settings(), queue.now))
    }
    /** Ends in order. */
    stop(done: () => void): void {
      const leave = (): void => {
        if (this.#beats > 0) {
          this.after(50, leave)
          return
        }
        this.#transaction(
          () => {
            table.leave(this.name, this.process, now())
            for (const [name, { process }] of leases) if (process === this.process) leases.delete(name)
            left.add(this.name)
            leavers.add(this.process)
          },
          () => {},
        )
        this.after(50, done)
      }
      this.#flush(() => {
        this.obey(this.member.leave(queue.now))
        leave()
      })
    }

    #tick(): void {
      this.after(second, () => this.#tick())
      this.isolatedAt = this.states.isIsolated === true ? (this.isolatedAt ?? queue.now) : undefined
      const { questions } = this.states
      for (const { id, node, key } of questions) {
        const target = live.get(node)
        const isolatedMs = queue.now - (target?.isolatedAt ?? queue.now)
        if (id > this.#lastAsked && target?.isAwake && isolatedMs > 12 * second && this.isolatedAt === undefined)
          broken('isolated nodes are not asked', `${this.name} asks ${node} about ${key} after ${isolatedMs} ms`)
        this.#lastAsked = Math.max(this.#lastAsked, id)
      }
      this.member.asks(questions, queue.now)
      this.obey(this.member.tick(queue.now))
      this.obey(this.member.isolated(this.states.isIsolated === true, queue.now))
      this.#takeEffects(this.states.tick(this.now))
      this.#runDue()
      this.#tickOutbox()
      if (queue.now - this.#statesAt >= second) this.#flush()
    }

    // What the membership decides.

    obey(effects: readonly shippedNodes.MemberEffect[]): void {
      for (const effect of effects) this.#obey(effect)
    }
    #obey(effect: shippedNodes.MemberEffect): void {
      const { member } = this
      switch (effect.type) {
        case 'beat': {
          const { id, request } = effect
          renewedAt.set(this.process, queue.now)
          this.#beats += 1
          this.#transaction(
            () => this.#beaten(request),
            (answer) => {
              this.#beats -= 1
              const before = answeredAt.get(this.process)?.latest ?? 0
              if (answer) entryOf(answers, this.process, () => []).push(queue.now)
              if (answer && before < queue.now) answeredAt.set(this.process, { latest: queue.now, before })
              if (answer) this.obey(member.answered(id, answer.value, queue.now))
              else this.obey(member.unanswered(id, queue.now))
              if (answer) this.#say()
            },
          )
          break
        }
        case 'read': {
          const { id, shard } = effect
          this.#transaction(
            () => table.stored,
            (answer) => this.obey(member.read(id, shard, answer?.value, queue.now)),
          )
          break
        }
        case 'find':
          // A disk takes its time, and meanwhile the store answers other questions.
          filedAt.set(this.process, queue.now)
          this.after(filing.is(0.1) ? filing.between(1_000, 4_000) : filing.between(1, 30), () => {
            const { rows } = rowsOfSent(this.file.text, { store: inStore, node: this.name, now: this.now })
            if (rows.length > 0) count('found')
            trace(`${this.name} finds ${rows.length}`)
            filedAt.set(this.process, queue.now)
            this.obey(member.takeSent(filing.is(0.1) ? undefined : rows, queue.now))
          })
          break
        case 'forget':
          this.file.text = headOf(inStore, this.name)
          break
        case 'hand over': {
          const { what } = effect
          const { rows } = what
          const store = (): boolean => {
            if (!table.handOver(what)) return false
            // Another machine has its name by now, and does not look again at what it has read of its own.
            const isDisplaced = leases.get(nameOf('machine', this.name))?.process !== this.process
            const ofMachine = rows.filter(({ subject: { key } }) => isDisplaced && nodeOfKey(key) !== undefined)
            isStoredNow(this.file, ofMachine, [])
            isStoredNow(this.file, rows)
            for (const { receiver, subject, row } of rows)
              for (const one of [row?.last, row?.attempt, ...(row?.others ?? [])]) {
                const id = `${receiver} ${one?.incident}`
                const over = storedEnds.get(id)
                const tale = receivers.find(({ rules }) => rules.name === receiver)?.tales.get(one?.incident ?? '')
                // A holder has told it since this node knew what holders tell: nobody can say whether that was before the end.
                const of = nodeOfKey(subject.key)
                const knewAt = Math.min(
                  lostStoreAt.get(this.name) ?? 0,
                  of === undefined ? (ledAt.get(this.name) ?? 0) : Number.POSITIVE_INFINITY,
                )
                const isToldBeside = tale !== undefined && tale.heldAt >= knewAt
                if (one?.isOver && !isToldBeside)
                  storedEnds.set(id, { at: queue.now, by: this.name, isDoubtful: false })
                else if (over && over.by !== this.name) storedEnds.set(id, { ...over, isDoubtful: true })
              }
            trace(`${this.name} hands over ${rows.length}`)
            return true
          }
          this.#transaction(store, (answer) => this.obey(member.handedOver(what, answer?.value === true, queue.now)))
          break
        }
        case 'release':
          trace(`${this.name} releases ${[...effect.stored.keys].join(' ')}`)
          member.released(effect.fate, this.#takeOver(effect.stored))
          break
        case 'adopt':
          this.#takeOver(effect.stored)
          break
        case 'write again':
          this.ledger.again(effect.stored, this.now)
          this.#store(this.outbox.again(effect.stored.outbox, this.now))
          break
        case 'look':
          this.#look(effect.question)
          break
        case 'ask':
          for (const { node } of effect.nodes) this.#askWhoSpeaks(node)
          break
        case 'crossChecks':
          for (const { id, reaches } of effect.answers) trace(`${this.name} receives ${id} ${reaches}`)
          this.#takeEffects(this.states.takeAnswers(effect.answers, this.now))
          break
        case 'changed':
          trace(`${this.name} is ${effect.mode}, ${effect.holder ?? 'nobody'} holds the lease`)
          this.#share()
          if (effect.mode === 'cut off' && effect.before !== 'alone') withoutStoreAt.set(this.process, queue.now)
          if (effect.mode === 'member') memberAt.set(this.name, queue.now)
          else if (effect.mode === 'cut off' && (lostStoreAt.get(this.name) ?? 0) <= (memberAt.get(this.name) ?? 0))
            lostStoreAt.set(this.name, queue.now)
          if (member.speaker(queue.now) !== undefined) {
            trace(`${this.name} leaves it to ${member.speaker(queue.now)}`)
            count('silent')
          }
          if (effect.mode !== effect.before) count(effect.mode)
          if (effect.mode === 'alone' && effect.before !== 'alone') this.#isAlone()
      }
    }
    #takeOver({ keys, silentMs, states, incidents, outbox }: shippedNodes.Taken): readonly shippedOutbox.StoredRow[] {
      this.states.release(keys)
      this.ledger.takeOver(keys, { states, incidents }, this.now)
      this.states.restore(states, this.now, this.now - (silentMs ?? this.now))
      for (const [id, { subject: of }] of this.dirty) if (keys.has(of.key)) this.dirty.delete(id)
      const before = this.outbox.takeOver(keys, outbox, this.now)
      for (const { row, state } of states) if (state.incident) this.outbox.watch(row)
      return before
    }
    #beaten(request: shippedNodes.BeatRequest): shippedNodes.BeatAnswer {
      const answer = table.beat(request, now())
      for (const shard of shippedNodes.shards) {
        const [ask, name] = [request.asks[shard], nameOf(shard, this.name)]
        const before = leases.get(name)
        if (!answer.leases[shard].isOk || ask.type === 'read') continue
        if (ask.type === 'leave') {
          leases.delete(name)
          continue
        }
        const isOthers = before !== undefined && before.node !== this.name
        if (ask.type === 'take') {
          trace(`${this.process} takes ${name} in epoch ${ask.epoch}`)
          count('taken')
          if (isOthers && isSteady(live.get(before.node), before.process))
            broken('a holder that works keeps its lease', `${this.name} takes ${name} of ${before.process}`)
          if (shard === 'network') takenAt = queue.now
          if (shard === 'network' && isCut(this.name, 'peers')) takenInVainAt = queue.now
          if (isOthers && queue.now - before.at < holdMs && queue.now > failedOverAt + 20 * second)
            broken('no early takeover', `${this.name} takes ${name} ${queue.now - before.at} ms after its renewal`)
        }
        if (leavers.has(this.process) && queue.now > failedOverAt + 20 * second)
          broken('late epochs', `${this.name} has ${name} after it has left`)
        leases.set(name, { process: this.process, node: this.name, epoch: ask.epoch, at: queue.now })
        if (shard === 'network') {
          heldAt.set(this.process, queue.now)
          ledAt.set(this.name, queue.now)
        }
        if (shard !== 'machine') continue
        const isFromSilent = before && before.process !== this.process && queue.now - before.at >= holdMs
        if (isFromSilent || !cameAt.has(this.process)) cameAt.set(this.process, queue.now)
        lastRenewal.set(this.name, queue.now)
        if (isOverdue(this.name)) backAt.set(this.name, queue.now)
        renewableMs.set(this.name, 0)
        left.delete(this.name)
        versionOf.set(this.name, request.facts.digest)
      }
      return answer
    }
    #isAlone(): void {
      // An answer of this very moment is too late.
      const { latest, before } = answeredAt.get(this.process) ?? { latest: 0, before: 0 }
      const silentMs = queue.now - (latest === queue.now ? before : latest)
      if (silentMs < minute) broken('alone after a minute', `${this.name} after ${silentMs} ms`)
    }
    #share(): void {
      const { member } = this
      const effects = this.states.configure(this.#watched(), this.now, ['witness'], (key) => member.isElsewhere(key))
      this.#takeEffects(effects)
      for (const view of this.states.views(this.now, ({ incident }) => incident !== undefined)) this.outbox.watch(view)
      const keys = this.#specs()
      for (const key of this.#due.keys()) if (!keys.has(key) || !member.runs(key, queue.now)) this.#due.delete(key)
      for (const [key, { peer }] of keys) {
        if (this.#due.has(key) || !member.runs(key, queue.now)) continue
        const spread = Math.min(5 * second, peer.everyMs)
        this.#due.set(key, { nextAt: queue.now + chance.between(0, spread), number: this.#runs })
      }
    }
    isDue(key: string): boolean {
      return this.#due.has(key)
    }

    /** One transaction. The answer is undefined if it failed, or if nobody knows. */
    #transaction<T>(work: () => T, done: (answer: { readonly value: T } | undefined) => void): void {
      let isDone = false
      const settle = (answer: { readonly value: T } | undefined): void => {
        if (isDone) return
        isDone = true
        done(answer)
      }
      this.after(3 * second, () => settle(undefined))
      if (isCut(this.name, 'store')) return
      const isSlow = queue.now < store.slowUntil
      // Some are held up for so long that they arrive after their sender has given them up.
      const slowMs = (): number => (chance.is(0.03) ? chance.between(4_000, 14_000) : chance.between(150, 900))
      const ms = (): number => (isSlow ? slowMs() : chance.between(1, 6))
      queue.after(ms(), () => {
        if (store.isOut() || isCut(this.name, 'store')) {
          this.after(2, () => settle(undefined))
          return
        }
        const isLossy = queue.now < store.lossyUntil
        if (isLossy && chance.is(0.15)) {
          this.after(2, () => settle(undefined))
          return
        }
        const value = work()
        if (isLossy && chance.is(0.25)) return
        queue.after(ms(), () => {
          if (!isCut(this.name, 'store')) this.#enter(() => settle({ value }))
        })
      })
    }

    // Runs.

    #runDue(): void {
      if (isBehind(this.name)) return
      const specs = this.#specs()
      for (const [key, due] of this.#due) {
        const spec = specs.get(key)
        if (!spec || due.nextAt > queue.now || !this.member.runs(key, queue.now)) continue
        due.nextAt = queue.now + spec.peer.everyMs
        scheduledRuns.set(key, (scheduledRuns.get(key) ?? 0) + 1)
        this.#run(key, spec)
      }
    }
    #run(key: string, { peer }: Spec): void {
      const due = this.#due.get(key)
      if (!due) return
      count('run')
      const beganAt = this.now
      const isNetwork = nodeOfKey(key) === undefined
      const isAway = isNetwork && (isCut(this.name, 'peers') || lacksRoute(this.name, peer, queue.now))
      if (!isAway || lacksRoute(this.name, peer, queue.now)) ranAt.set(key, queue.now)
      const fault = isAway ? ({ kind: 'timeout' } as const) : faultAt(peer, queue.now)
      const ms = fault?.kind === 'timeout' ? 2 * second : chance.between(10, 200)
      const frozenBefore = this.#thawedAt
      this.after(ms, () => {
        // The schedule proves that what was found while the process stood still does not count.
        if (this.#due.get(key) !== due || this.#thawedAt !== frozenBefore) return
        const verdict = fault
          ? ({ level: 'failed', fault: fault.kind, message: 'it fails' } as const)
          : ({ level: 'ok', message: 'fine' } as const)
        const verdicts = [{ check: 'connect', depth: 'Basic' as const, ...verdict }]
        this.#takeEffects(this.states.ran({ key, depth: 'Basic', beganAt, endedAt: this.now, verdicts }, this.now))
        this.#tickOutbox()
      })
    }
    /** A process without an answer of the store has no key. */
    #askWhoSpeaks(other: string): void {
      const askedAt = queue.now
      const ms = talk.between(1, 20)
      const isLost = talk.is(0.1)
      queue.after(ms, () => {
        const target = live.get(other)
        const hasKeys = target !== undefined && answeredAt.has(this.process) && answeredAt.has(target.process)
        if (!hasKeys || !target.isAwake || isApart(this.name, other)) return
        if (target.version.digest !== this.version.digest) return
        if (!target.member.speaksFor(this.name, !isBehind(other), queue.now)) return
        if (isLost) {
          const lost = lostAnswersAt.get(this.process)
          const isSecond = lost !== undefined && queue.now - lost.latest < 15 * second
          lostAnswersAt.set(this.process, { latest: queue.now, twice: isSecond ? queue.now : lost?.twice })
          return
        }
        queue.after(ms, () => this.#enter(() => this.obey(this.member.otherSpeaks(other, askedAt, queue.now))))
      })
    }
    /** For another node. */
    #look(question: shippedNodes.OthersQuestion): void {
      const peer = this.#specs().get(question.key)?.peer
      if (!peer) return
      count('look')
      entryOf(looksFor, question.from, () => []).push(queue.now)
      trace(`${this.name} looks at ${question.key} for ${question.from} ${question.id}`)
      const isAway = isCut(this.name, 'peers') || lacksRoute(this.name, peer, queue.now)
      const fault = isAway ? ({ kind: 'timeout' } as const) : faultAt(peer, queue.now)
      const frozenBefore = this.#thawedAt
      if (losesRoutes && silence.is(0.1)) {
        silentAt.set(question.key, queue.now)
        return
      }
      this.after(fault?.kind === 'timeout' ? 2 * second : chance.between(10, 200), () => {
        if (this.#thawedAt === frozenBefore) this.member.looked(question, fault === undefined)
      })
    }
    get #thawedAt(): number {
      return this.frozenUntil
    }
    /** Reports the states of the nodes, as the holder does. */
    #say(): void {
      if (!this.member.runs(nodesKey, queue.now)) return
      const { rows, ageMs, memberMs } = this.member.rows(queue.now)
      const time = this.now
      const verdicts = nodeVerdicts(rows, ageMs, memberMs)
      this.#takeEffects(
        this.states.ran({ key: nodesKey, depth: 'Basic', beganAt: time, endedAt: time, verdicts }, time),
      )
    }
    #takeEffects(effects: readonly shippedStates.Effect[]): void {
      this.ledger.take(effects)
      for (const effect of effects) {
        if (effect.type === 'ask') this.#ask(effect.key, effect.at)
        else if (effect.type === 'transition') {
          const { what, key, check, item, incident } = effect.transition
          trace(`${this.name}: ${what} ${subjectName({ key, check, item })} ${incident ?? ''}`)
          count(what)
          if (incident !== undefined && !beganAt.has(incident)) beganAt.set(incident, queue.now)
          if (key === nodesKey && what === 'begin' && item !== 'old' && !wasOut(item ?? ''))
            broken('nothing false', `${this.name}: ${item} is out, which could not renew its row`)
          this.carryOut(this.outbox.transition(effect.transition, this.now))
        } else if (effect.type === 'witness') {
          const at = this.now
          const isUp = !isCut(this.name, 'peers')
          this.after(isUp ? 10 : 2 * second, () => {
            this.#takeEffects(this.states.witnessed('witness', { at, isUp }, this.now))
            this.obey(this.member.isolated(this.states.isIsolated === true, queue.now))
          })
        }
      }
    }
    #ask(key: string, at: number): void {
      const spec = this.#specs().get(key)
      if (!spec) return
      this.after(Math.max(0, at - this.now), () => {
        if (this.member.runs(key, queue.now)) this.#run(key, spec)
      })
    }

    // Messages.

    #lookup(one: shippedStates.StoredSubject): shippedOutbox.Present | 'removed' | 'unknown' {
      const state = this.states.stateOf(one)
      if (state === 'removed') return 'removed'
      return state ? { subject: one, state, isSilenced: false } : 'unknown'
    }
    #tickOutbox(): void {
      this.carryOut(this.outbox.tick(this.now).effects)
    }
    carryOut(effects: readonly shippedOutbox.OutboxEffect[]): void {
      for (const effect of effects) {
        if (effect.type === 'store') this.#store(effect.rows)
        else if (effect.type === 'ask') this.#ask(effect.key, this.now)
        else if (effect.type === 'send') this.#send(effect)
      }
    }
    #send({ receiver, attempt, rows, items }: Extract<shippedOutbox.OutboxEffect, { type: 'send' }>): void {
      const keys = items.map(({ subject: { key } }) => key)
      const voices = (): ReadonlySet<shippedNodes.Voice> =>
        new Set(keys.map((key) => this.member.voice(key, queue.now)))
      const withhold = (): void => this.carryOut(this.outbox.withheld(receiver, attempt, this.now))
      const voice = voices()
      if (voice.has('silent')) {
        this.#keep(rows)
        this.after(0, withhold)
        return
      }
      if (voice.has('alone')) {
        this.#isAlone()
        this.#keep(rows)
        this.#note(receiver, items)
        this.after(5, () => this.#deliver(receiver, attempt, items, true))
        return
      }
      this.#store(rows, (isStored) => {
        // The process may have stood still since.
        const isCoordinated = [...voices()].every((each) => each === 'coordinated')
        if (!isStored || !isCoordinated) withhold()
        else {
          for (const shard of shardsOf(keys))
            if (!isHeldBy(this.process, nameOf(shard, this.name)) && queue.now > failedOverAt + 20 * second)
              broken('only holders send', `${this.process} sends to ${receiver} without the lease of the ${shard}`)
          this.#deliver(receiver, attempt, items, false)
        }
      })
    }
    #note(receiver: string, items: readonly shippedOutbox.NoticeItem[], isAccepted = false): void {
      this.member.sentAlone()
      this.file.text += linesOf(receiver, items, this.now, isAccepted).join('')
    }
    #deliver(name: string, attempt: number, items: readonly shippedOutbox.NoticeItem[], isAlone: boolean): void {
      const receiver = receivers.find(({ rules }) => rules.name === name) as Receiver
      count('attempt')
      const answer = (ms: number, delivery: Delivery): void =>
        this.after(ms, () => {
          this.carryOut(this.outbox.answered(name, attempt, delivery, this.now))
          this.#tickOutbox()
        })
      const later = (isPerhapsReceived: boolean): Delivery => ({ what: 'later', message: 'no', isPerhapsReceived })
      const mode = windowOf(receiver)?.mode
      if (mode === 'down') {
        answer(5, later(false))
        return
      }
      const ms = mode === 'slow' ? chance.between(1_000, 6_000) : chance.between(5, 60)
      queue.after(ms, () => {
        for (const item of items) receive(receiver, item, this, isAlone)
      })
      if (mode === 'lossy' && chance.is(0.5)) {
        lostAnswers.set(receiver, queue.now + 10 * second)
        answer(10 * second, later(true))
        return
      }
      if (isAlone) this.after(ms + 5, () => this.#note(name, items, true))
      answer(ms + 5, { what: 'accepted' })
    }

    // What is stored, one write after the other: states before messages about them.

    #keep(rows: readonly shippedOutbox.StoredRow[]): void {
      for (const row of rows) this.dirty.set(`${row.receiver} ${subjectName(row.subject)}`, row)
    }
    #store(rows: readonly shippedOutbox.StoredRow[], done: (isStored: boolean) => void = () => {}): void {
      this.#keep(rows)
      this.#flush(done)
    }
    #flush(done: (isStored: boolean) => void = () => {}): void {
      this.#waiters.push(done)
      if (!this.#isWriting) this.#write()
    }
    #write(): void {
      const waiters = this.#waiters.splice(0)
      const finish = (isStored: boolean): void => {
        this.#isWriting = false
        for (const done of waiters) done(isStored)
        if (this.#waiters.length > 0 && !this.#isWriting) this.#write()
      }
      this.#isWriting = true
      const rows = [...this.dirty]
      const writeRows = (): void => {
        if (rows.length === 0) {
          finish(true)
          return
        }
        const write = (fences: readonly shippedNodes.Fence[]): shippedNodes.Fenced =>
          table.writeOutbox(
            fences,
            rows.map(([, row]) => row),
          )
        this.#fenced(
          rows.map(([, row]) => row.subject.key),
          write,
          (outcome) => {
            if (outcome === 'stored') {
              isStoredNow(
                this.file,
                rows.map(([, row]) => row),
              )
              for (const [id, row] of rows) if (this.dirty.get(id) === row) this.dirty.delete(id)
            }
            finish(outcome === 'stored')
          },
        )
      }
      const batch = this.ledger.batch(this.now)
      this.#statesAt = queue.now
      if (!batch) {
        writeRows()
        return
      }
      const { states, gone, incidents } = batch
      const keys = [...states.map(({ row }) => row.key), ...[...gone, ...incidents].map(({ key }) => key)]
      this.#fenced(
        keys,
        (fences) => table.writeStates(fences, batch),
        (outcome) => {
          if (outcome === 'stored') this.ledger.stored(batch, this.now)
          else this.ledger.refused()
          if (outcome === 'stored') writeRows()
          else finish(false)
        },
      )
    }
    #fenced(
      keys: readonly string[],
      write: (fences: readonly shippedNodes.Fence[]) => shippedNodes.Fenced,
      done: (outcome: shippedNodes.Fenced | 'failed') => void,
    ): void {
      const permit = this.member.beginWrite(shardsOf(keys), queue.now)
      if (!permit) {
        done('failed')
        return
      }
      const attempt = (): shippedNodes.Fenced => {
        armed?.(this.name)
        const outcome = write(permit)
        if (outcome !== 'stored') {
          trace(`${this.name} may not store: ${JSON.stringify(outcome)}`)
          return outcome
        }
        for (const { shard, epoch } of permit) {
          const name = nameOf(shard, this.name)
          const last = writers.get(name)
          if (last && (epoch < last.epoch || (epoch === last.epoch && last.process !== this.process)))
            broken(
              'one holder stores',
              `${this.process} stores in epoch ${epoch} after ${last.process} in ${last.epoch}`,
            )
          if (leases.get(name)?.process !== this.process)
            broken('one holder stores', `${this.process} stores by the lease ${name} of another process`)
          writers.set(name, { process: this.process, epoch })
        }
        return outcome
      }
      this.#transaction(attempt, (answer) => {
        const outcome = answer?.value ?? 'failed'
        done(outcome)
        this.obey(this.member.wrote(permit, outcome, queue.now))
      })
    }
    /** Whether everything that this node knows is stored. */
    get isStored(): boolean {
      return this.dirty.size === 0 && !this.#isWriting && this.ledger.batch(this.now) === undefined
    }
  }

  /** Whether a process works and has long been able to reach the store whenever that was there. */
  const isSteady = (node: SimNode | undefined, process: string): boolean => {
    // Nobody is to have the lease of the network beside a node of a version before.
    const ofStore = [store.slowUntil, store.lossyUntil, failedOverAt, oldUntil]
    const turns = [node?.startedAt ?? 0, node?.frozenUntil ?? 0, filedAt.get(process) ?? 0, ...ofStore]
    for (const [name, until] of cuts) if (name.startsWith(`${node?.name} `)) turns.push(until)
    return node?.process === process && turns.every((at) => queue.now - at > 15 * second)
  }
  const start = (name: string): void => {
    trace(`${name} starts`)
    live.set(name, new SimNode(name))
  }
  const kill = (name: string): void => {
    const node = live.get(name)
    if (node) {
      node.isDead = true
      if (gone.has(name) || !keepsFiles) {
        lose(node.file)
        files.delete(name)
      }
    }
    live.delete(name)
  }

  const getVersion = (name: string, version: Version): void => {
    versionAt.set(name, version)
    reloadedAt = queue.now
    const node = live.get(name)
    node?.after(0, () => node.reload(version))
  }

  // What goes wrong.

  let [oldSince, oldUntil] = [0, 0]
  const faults: Readonly<Record<string, (about?: string, ms?: number) => void>> = {
    killed: (name = chance.of(names), ms = chance.of([second, 5 * second, 15 * second, 30 * second, 90 * second])) => {
      if (!live.has(name)) return
      disturb(`killed ${name}`, ms)
      kill(name)
      queue.after(ms, () => start(name))
    },
    frozen: (name = chance.of(names), ms = chance.between(3 * second, 40 * second)) => {
      const node = live.get(name)
      if (!node || node.frozenUntil > queue.now) return
      disturb(`frozen ${node.name}`, ms)
      node.freeze(ms)
    },
    'cut-off': (
      name = chance.of(names),
      ms = chance.of([6 * second, 15 * second, 40 * second, 100 * second, 150 * second]),
    ) => {
      disturb(`cut-off ${name}`, ms)
      cuts.set(`${name} store`, queue.now + ms)
    },
    isolated: () => {
      const name = chance.of(names)
      const ms = chance.of([10 * second, 40 * second, 2 * minute])
      // It notices its line when it next tries its witnesses, and then takes its share back.
      disturb(`isolated ${name}`, ms + 10 * second)
      cuts.set(`${name} peers`, queue.now + ms)
      isolations.push({ from: queue.now, to: queue.now + ms })
    },
    dead: () => {
      const name = chance.of(names)
      if (gone.size > 0 || names.length < 3 || !live.has(name)) return
      disturb(`dead ${name}`, second)
      gone.add(name)
      kill(name)
    },
    upgraded: () => {
      let at = 0
      disturb('upgraded', names.length * 12 * second)
      for (const name of names) {
        queue.after(at, () => {
          const node = live.get(name)
          if (!node?.isAwake) return
          node.stop(() => {
            kill(name)
            queue.after(chance.between(second, 4 * second), () => start(name))
          })
        })
        at += 11 * second
      }
    },
    'store-restarted': () => {
      const ms = chance.between(second, 8 * second)
      disturb('store-restarted', ms)
      store.downUntil = queue.now + ms
    },
    'store-slow': (_, ms = chance.between(20 * second, minute)) => {
      disturb('store-slow', ms)
      store.slowUntil = queue.now + ms
    },
    'store-gone': (_, ms = chance.between(20 * second, 120 * second)) => {
      disturb('store-gone', ms)
      store.downUntil = queue.now + ms
    },
    'store-failed-over': (when, ms = chance.between(second, 8 * second)) => {
      const isAtOnce = when === undefined ? chance.is(0.4) : when === 'at once'
      disturb('store-failed-over', ms + second + (isAtOnce ? 0 : 30 * second))
      const loseSince = (node = when): void => {
        if (!isAtOnce && when !== undefined && node !== when) return
        armed = undefined
        keepForFailover()
        queue.after(chance.between(20, second), () => {
          failOver()
          store.downUntil = queue.now + ms
        })
      }
      // Often right after a write that was acknowledged.
      if (isAtOnce) loseSince()
      else armed = loseSince
      queue.after(30 * second, () => armed?.(when ?? ''))
    },
    'answers-lost': () => {
      const ms = chance.between(10 * second, 40 * second)
      disturb('answers-lost', ms)
      store.lossyUntil = queue.now + ms
    },
    twin: () => {
      const name = chance.of(names)
      const one = live.get(name)
      const ms = 30 * second
      if (!one?.isAwake) return
      disturb(`twin ${name}`, ms)
      // It is another machine.
      files.delete(name)
      start(name)
      const later = live.get(name)
      queue.after(ms, () => {
        const isSeen = later && isSteady(later, later.process) && live.get(name) === later
        // Only the store can tell one of them of the other.
        // While one of them stands still, the other one takes the lease back.
        const stoodStill = [one, later].some((each) => (each?.frozenUntil ?? 0) > queue.now - ms)
        const isDecided = isSeen && !stoodStill && queue.now - store.downUntil > 15 * second
        // The one that started first may have reached the store last.
        const came = (process: string): number => cameAt.get(process) ?? 0
        const [first, last] = isSeen && came(later.process) < came(one.process) ? [later, one] : [one, later]
        if (isDecided && isSteady(one, one.process) && first.member.mode(queue.now) !== 'displaced')
          broken('the later of two processes works', `${first.process} works beside ${last?.process}`)
        one.isDead = true
        lose(one.file)
      })
    },
    'old-node': (_, ms = 12 * second) => {
      disturb('old-node', ms)
      for (let at = 0; at <= ms; at += 3 * second)
        queue.after(at, () => {
          if (store.isOut()) return
          table.oldNode('old', now(), at === ms)
          if (queue.now > oldUntil) oldSince = queue.now
          oldUntil = queue.now + (at === ms ? 0 : 4 * second)
        })
    },
    'clock-set': () => {
      const name = chance.of(names)
      clockOf.set(name, chance.between(-10 * minute, 10 * minute))
    },
  }
  const plan = new Chance(seed + 500_009)
  for (const name of names) {
    if (chance.is(0.3)) clockOf.set(name, chance.between(-10 * minute, 10 * minute))
    queue.at(chance.between(0, 2 * second), () => start(name))
  }
  disturb('start', 40 * second)
  const all = losesRoutes ? ['killed', 'frozen'] : Object.keys(faults)
  const scripted: typeof faults = {
    ...faults,
    renamed: (name = '', ms = 0) => {
      disturb(`rollout ${name}`, ms)
      getVersion(name, versions[1] as Version)
    },
    removed: (nodes = '', ms = 0) => {
      disturb(`rollout ${nodes}`, ms)
      const holder = leases.get('network')?.node
      for (const name of names) if ((name === holder) === (nodes === 'holder')) getVersion(name, versions[2] as Version)
    },
  }
  for (const [at, what, about, ms] of script?.events ?? []) queue.at(at, () => scripted[what]?.(about, ms))
  for (let at = 2 * minute; !losesStore && !script && at < calmAt - 3 * minute; ) {
    const what = plan.of(all)
    queue.at(at, () => faults[what]?.())
    at += plan.is(0.2) ? plan.between(second, 20 * second) : plan.between(50 * second, 4 * minute)
  }
  /** For minutes, a node runs nothing, or has no network. */
  const disabled: Readonly<Record<string, () => void>> = {
    behind: () => {
      const name = talk.of(names)
      const ms = talk.between(minute, 5 * minute)
      disturb(`behind ${name}`, ms)
      behindUntil.set(name, queue.now + ms)
    },
    isolated: () => {
      const name = talk.of(names)
      const ms = talk.between(minute, 5 * minute)
      disturb(`isolated ${name}`, ms + 10 * second)
      cuts.set(`${name} peers`, queue.now + ms)
      isolations.push({ from: queue.now, to: queue.now + ms })
    },
  }
  for (let from = 2 * minute; losesStore && from < calmAt - 7 * minute; from += talk.between(8 * minute, 11 * minute)) {
    const ms = talk.between(3 * minute, 6 * minute)
    queue.at(from, () => {
      disturb('store-gone', ms)
      store.downUntil = queue.now + ms
    })
    const some = talk.of([[], ['killed'], ['frozen'], ['isolated'], ['behind'], ['killed', 'killed']] as const)
    for (const what of some) queue.at(from + talk.between(0, ms / 2), () => (disabled[what] ?? faults[what])?.())
    const [one = '', other = '', third = ''] = talk.is(0.5) ? names : [...names].reverse()
    const parted = talk.of([
      [],
      [],
      [[one, other]],
      [
        [one, other],
        [one, third],
      ],
      [[one, other, third]],
    ])
    const begin = from + talk.between(-minute, ms / 2)
    for (const between of parted) partings.push({ from: begin, to: begin + talk.between(minute, 6 * minute), between })
  }
  const peersOf = [...new Set(versions.flatMap(({ monitors }) => [...monitors.values()].map(({ peer }) => peer)))]
  for (const peer of losesRoutes ? peersOf : [])
    for (let from = plan.between(2 * minute, 5 * minute); from < calmAt - 5 * minute; ) {
      const to = from + plan.of([30 * second, 3 * minute, 5 * minute])
      for (const node of plan.is(0.8) ? [plan.of(names)] : names.slice(1)) routes.push({ from, to, node, peer })
      from = to + plan.between(3 * minute, 6 * minute)
    }
  // Some take their time, so that a node is lost that alone has a monitor.
  const slowness = new Chance(seed + 700_001).is(0.15) ? 4 : 1
  for (const version of losesRoutes || losesStore || script ? [] : rolledOut.slice(1)) {
    let after = 0
    queue.at(version.at, () => disturb('rollout', 40 * second * names.length * slowness))
    for (const name of names) {
      queue.at(version.at + after, () => getVersion(name, version))
      after += slowness * chance.between(2 * second, 40 * second)
    }
  }

  // What is looked at, once a second.

  const calmMs = new Map<string, number>()
  let ableSince: number | undefined
  const runsAt = new Map<string, { at: number; runs: number }>()
  const inspect = (): void => {
    const awake = [...live.values()].filter(({ isAwake }) => isAwake)
    const time = queue.now
    if (!store.isOut()) for (const name of names) renewableMs.set(name, (renewableMs.get(name) ?? 0) + second)
    for (const { isAwake, process } of live.values()) if (!isAwake) renewedAt.set(process, time)
    for (const { name, member, process } of awake) {
      // An answer may take 5 s.
      const silentMs = time - (renewedAt.get(process) ?? time)
      if (silentMs > 6_500 && member.mode(time) === 'member')
        broken('a lease is renewed', `${name} has not asked for ${silentMs} ms`)
      const isBesideOld = time < oldUntil && time - oldSince > 8 * second
      if (isBesideOld && member.holdsLease(time)) broken('no lease beside old nodes', `${name} holds it`)
      const lease = leases.get('network')
      const isOwn = lease?.process === process && time - lease.at < holdMs
      // Another process of its name takes it at once, which this one notices with its next question.
      const isTwins = lease?.node === name && time - (heldAt.get(process) ?? 0) < holdMs
      if (member.holdsLease(time) && !isOwn && !isTwins && time > failedOverAt + 20 * second)
        broken(
          'a lease ends in time',
          `${name} holds the lease of ${lease?.process} ${time - (lease?.at ?? 0)} ms after its renewal`,
        )
    }
    for (const { from, to, node: name, peer } of routes) {
      // The holder does not reach it, and every other node does.
      const lastedMs = time - from
      const node = awake.find((one) => one.name === name)
      const others = awake.filter((one) => one !== node)
      const isSole = !others.some((one) => lacksRoute(one.name, peer, from, time))
      const isPlain = !wasBad(peer, from - 2 * minute, time) && isSole && others.length > 0
      if (!node || time >= to || !isPlain || disturbedBetween(from - minute, time)) continue
      const [key] = [...node.version.monitors].find(([, spec]) => spec.peer === peer) ?? []
      if (key !== undefined && (silentAt.get(key) ?? 0) > from - minute) continue
      if (hasAskedAll(name, from)) continue
      if (key === undefined || !node.isDue(key) || lastedMs < peer.everyMs + confirmMs + 25 * second) continue
      const state = node.states.stateOf({ key, check: 'connect' })
      const isWarning = typeof state === 'object' && state.incident?.level === 'warning'
      if (!isWarning || !state.message.startsWith(`${name} cannot reach it, `))
        broken('nodes that do not agree warn', `${name}: ${key} after ${lastedMs} ms`, `${name} ${key} ${from}`)
    }
    // An isolated holder leaves the lease only to a node that has the same monitors.
    const ofHolder = live.get(leases.get('network')?.node ?? '')?.version.digest
    const isAble = awake.some(
      ({ name, startedAt, version: { digest: own } }) =>
        !isCut(name, 'peers') && time - startedAt > 5 * second && own === (ofHolder ?? own),
    )
    if (!isAble) ableSince = undefined
    else ableSince ??= time
    const common = [...(awake[0]?.version.monitors ?? [])].filter(([key]) =>
      awake.every(({ version }) => version.monitors.has(key)),
    )
    const turnedAt = lastTurn()
    for (const [key, { peer }] of common) {
      // Runs go on.
      const since = Math.max(ranAt.get(key) ?? 0, turnedAt, reloadedAt, takenInVainAt, ableSince ?? time)
      const readyAt = Math.max(store.downUntil, store.slowUntil, store.lossyUntil, oldUntil)
      const isReady = time >= readyAt && !names.some(isBehind)
      // An isolated holder whose peer has failed anyway notices it when it looks for that, every 30 s.
      const isHidden = wasBad(peer, time - 5 * minute, time) && isolations.some(({ to }) => time - to < 35 * second)
      const bound = peer.everyMs + 20 * second + (isHidden ? 35 * second : 0)
      if (isReady && time - since > bound) broken('somebody runs it', `${key} for ${time - since} ms`, key)
      if (!isCalm(25 * second)) {
        runsAt.delete(key)
        continue
      }
      const watching = awake.filter((one) => one.isDue(key))
      if (watching.length !== 1)
        broken('one node runs it', `${key}: ${watching.map(({ name }) => name).join(' ')}`, key)
      // Runs are not doubled.
      const runs = scheduledRuns.get(key) ?? 0
      const from = runsAt.get(key) ?? { at: time, runs }
      runsAt.set(key, from)
      if (runs - from.runs > 2 + (1.1 * (time - from.at)) / peer.everyMs)
        broken('no needless runs', `${key} ran ${runs - from.runs} times in ${time - from.at} ms`, key)
    }
    // What stands is told.
    const subjects = [
      ...common.map(([key, { peer, dependsOn }]) => ({ key, peer, dependsOn })),
      ...awake.map(({ name }) => {
        const key = machineKey(name, 'Host/disk')
        return { key, peer: disks.get(key) as Peer, dependsOn: [] as readonly string[] }
      }),
    ]
    for (const { key, peer, dependsOn } of subjects) {
      const isCause = dependsOn.some((of) => {
        const cause = peerOf(of) as Peer
        const isUnreached = names.some((name) => lacksRoute(name, cause, time - 3 * minute, time))
        return isUnreached || wasBad(cause, time - 3 * minute, time)
      })
      const fault = faultAt(peer, time)
      if (!fault || !isCalm(20 * second) || isCause) {
        calmMs.delete(key)
        continue
      }
      const lastedMs = (calmMs.get(key) ?? 0) + second
      calmMs.set(key, lastedMs)
      // Another node has the time of a confirmation and 10 s for its answer, and delays nothing by more than that.
      const holder = awake.find((one) => one.isDue(key))
      const state = holder?.states.stateOf({ key, check: 'connect' })
      const isFailed = typeof state === 'object' && state.level === 'failed'
      const answerMs = confirmMs + 10 * second
      // Another class of fault than the one that another node contested counts from its own first run.
      const isOther =
        fault.kind === 'protocol' && holder !== undefined && lacksRoute(holder.name, peer, time - minute, time)
      if (holder && !isOther && lastedMs > peer.everyMs + answerMs + 10 * second && dependsOn.length === 0 && !isFailed)
        broken('confirmed in time', `${key} stands since ${time - fault.from} ms`, key)
      for (const receiver of receivers) {
        const worksMs = time - worksSince(receiver)
        const waits = receiver.rules.folds ? 75 * second : 0
        const bound = confirmMs + peer.everyMs + minute + waits
        if (Math.min(lastedMs, worksMs - 3 * minute) <= bound) continue
        // It goes on under the name that it had when it began.
        const isShown = [key, ...keysOf(peer)].some((one) => receiver.views.get(`${one} connect`)?.isOpen)
        if (!isShown)
          broken(
            'what stands is told',
            `${key} stands since ${time - fault.from} ms, ${receiver.rules.name} does not know`,
            `${key} ${receiver.rules.name}`,
          )
      }
    }
    if (store.isOut()) toldWithoutStore(awake, subjects)
    // Nodes that are out are known.
    for (const name of names) {
      const outMsNow = time - (lastRenewal.get(name) ?? 0)
      if (!isCalm(30 * second) || left.has(name) || awake.length === 0) continue
      const isOut = awake.some(({ states }) => {
        const state = states.stateOf({ key: nodesKey, check: 'node', item: name })
        return typeof state === 'object' && state.incident !== undefined
      })
      if (
        outMsNow > reportedOutMs + 20 * second + 2 * second &&
        !isOut &&
        time - disturbedUntil > reportedOutMs + 20 * second
      )
        broken('a node that is out is known', `${name} for ${outMsNow} ms`, name)
      if (outMsNow < 10 * second && isOut && isCalm(minute))
        broken('a node that is out is known', `${name} is back`, name)
    }
    // Memory and store agree.
    if (isCalm(20 * second) && time % (5 * second) === 0) agree(awake)
  }
  /** A fault that stands while nobody has the store is told, and by each node that sees no other one. */
  const toldWithoutStore = (
    awake: readonly SimNode[],
    subjects: readonly { readonly key: string; readonly peer: Peer; readonly dependsOn: readonly string[] }[],
  ): void => {
    const time = queue.now
    const turns = disturbances.flatMap(({ from, to, what }) =>
      what === 'store-gone' ? (to > time ? [from + minute + 15 * second] : []) : [from, ...(to <= time ? [to] : [])],
    )
    const parted = partings.flatMap(({ from, to }) => [from, to]).filter((at) => at <= time)
    // It notices a while later that it has its network again.
    const isDisturbed = ({ name }: SimNode): boolean =>
      disturbances.some(({ from, to, what }) => from <= time && time < to && what.endsWith(` ${name}`))
    const able = awake.filter((one) => !isDisturbed(one))
    /** A process that has started or stood still has its minute without the store anew. */
    const aloneMs = ({ name }: SimNode): number =>
      time -
      Math.max(
        0,
        ...disturbances.flatMap(({ from, to, what }) =>
          from <= time && [`killed ${name}`, `frozen ${name}`].includes(what) ? [to + minute + 15 * second] : [],
        ),
      )
    for (const { key, peer, dependsOn } of subjects) {
      const fault = faultAt(peer, time)
      if (!fault || nodeOfKey(key) !== undefined || dependsOn.length > 0) continue
      const lastedMs = time - Math.max(fault.from, reloadedAt, ...turns, ...parted)
      for (const receiver of receivers) {
        const waits = receiver.rules.folds ? 75 * second : 0
        const bound = confirmMs + peer.everyMs + 30 * second + waits
        if (lastedMs <= bound || time - worksSince(receiver) < 5 * minute) continue
        const to = receiver.rules.name
        const tellers = [...live.values()].filter(({ process }) =>
          [key, ...keysOf(peer)].some((one) => (toldAt.get(`${to} ${one} connect ${process}`) ?? -1) >= fault.from),
        )
        const isShown = [key, ...keysOf(peer)].some((one) => receiver.views.get(`${one} connect`)?.isOpen)
        count('told without store')
        if (able.length > 0 && !isShown)
          broken('no fault untold', `${key} stands since ${time - fault.from} ms`, `${key} ${to}`)
        for (const one of able) {
          const isSole = awake.every((other) => other === one || isApart(one.name, other.name))
          if (!isSole || tellers.includes(one) || aloneMs(one) <= bound) continue
          broken('no fault untold', `${one.name} sees nobody and does not tell ${to} of ${key}`, `${one.name} ${key}`)
        }
      }
    }
  }
  const agree = (awake: readonly SimNode[]): void => {
    const { states, incidents, outbox } = table.stored
    const inStore = new Map(states.map(({ row, state }) => [subjectName(row), state.incident?.id]))
    const rowsInStore = new Map(outbox.map((one) => [`${one.receiver} ${subjectName(one.subject)}`, one.row]))
    const open = new Map(
      incidents.flatMap((one) => (one.endedAt === undefined ? [[one.id, subjectName(one)] as const] : [])),
    )
    const subjectsInMemory = new Set<string>()
    for (const node of awake) {
      if (!node.isStored) return
      for (const view of node.states.views(node.now)) {
        const name = subjectName(view)
        const { incident } = view.state
        subjectsInMemory.add(name)
        if (inStore.get(name) !== incident?.id)
          broken(
            'memory and store agree',
            `${node.name}: ${name} is ${incident?.id} and stored as ${inStore.get(name)}`,
            name,
          )
        if (incident && !open.has(incident.id))
          broken('memory and store agree', `${incident.id} of ${name} is not stored`, name)
        if (incident) open.delete(incident.id)
      }
      for (const one of node.outbox.rows()) {
        const id = `${one.receiver} ${subjectName(one.subject)}`
        if (gistOf(one.row) !== gistOf(rowsInStore.get(id)))
          broken('memory and store agree', `${node.name}: what it told ${id} is stored otherwise`, id)
        rowsInStore.delete(id)
      }
    }
    const recent = names.filter((name) => queue.now - (lastRenewal.get(name) ?? 0) < 10 * minute + 10 * second)
    const digests = [...awake.map(({ version }) => version.digest), ...recent.map((name) => versionOf.get(name))]
    const isAwaited = (): boolean => new Set(digests).size > 1 || queue.now - reloadedAt < 40 * second
    const isOfAwake = (key: string): boolean => {
      const machine = nodeOfKey(key)
      return machine === undefined ? !isAwaited() : awake.some(({ name }) => name === machine)
    }
    for (const [id, of] of open)
      if (isOfAwake(of.split(' ')[0] ?? '')) broken('memory and store agree', `nobody has ${id} of ${of}`, of)
    for (const { subject: of, receiver } of outbox)
      if (rowsInStore.has(`${receiver} ${subjectName(of)}`) && isOfAwake(of.key))
        broken('memory and store agree', `nobody has what ${receiver} was told of ${subjectName(of)}`, subjectName(of))
    for (const { row } of states)
      if (!subjectsInMemory.has(subjectName(row)) && isOfAwake(row.key))
        broken('memory and store agree', `nobody has the state of ${subjectName(row)}`, subjectName(row))
  }
  for (let at = second; at <= endAt; at += second) queue.at(at, inspect)
  queue.at(calmAt, () => {
    for (const name of names)
      if (!live.has(name) && !gone.has(name)) queue.after(second, () => live.has(name) || start(name))
    disturb('end', 2 * minute)
  })

  queue.runUntil(endAt)

  // After a long calm, everybody knows that all is well.

  for (const receiver of receivers) {
    const to = receiver.rules.name
    for (const [name, view] of receiver.views) {
      const machine = nodeOfKey(name)
      const isAway = machine !== undefined && gone.has(machine)
      // The one of a version before may have ended while the store was away.
      const isOut = name.startsWith(`${nodesKey} `) && [...gone, 'old'].some((node) => name.endsWith(` ${node}`))
      if (!view.isOpen || isAway || isOut) continue
      // Sent by a process without the store that ended before it reached the store again: a known limit.
      if (view.senders.size === 0) count('orphan')
      else broken('each incident ends', `${to} still shows ${name} ${view.incident}`)
    }
    for (const [incident, { begins, ends, at, isAlone, subject: of, senders }] of receiver.tales) {
      const machine = nodeOfKey(of)
      const isAway = (machine !== undefined && gone.has(machine)) || of.startsWith(`${nodesKey} `)
      if (isAway || begins === 0) continue
      if (ends === 0 && senders.size > 0)
        broken('each incident ends', `${to} never got the end of ${incident} of ${of}`)
      if (!isAlone && ends > 1 && !disturbedBetween(at, endAt) && !wasPerhapsLost(receiver))
        broken('nothing twice', `${to} got ${ends} ends of ${incident} of ${of}`)
    }
  }
  return trial.outcome()
}

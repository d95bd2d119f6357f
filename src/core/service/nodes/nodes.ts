import { createHash, randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { Fault, isStoreFailure, StoreOutage } from '../../base/errors.ts'
import { entryOf } from '../../base/lazy.ts'
import { Steady, storePatience } from '../../base/steady.ts'
import type { Config } from '../../config/index.ts'
import type { ServerType } from '../../protocol/index.ts'
import type { Family } from '../../protocol/service/family.ts'
import type { MonitorElsewhere } from '../../protocol/service/service.ts'
import type { KeeperLog } from '../../store/index.ts'
import {
  type AddressedNode,
  type Fence,
  type Fenced,
  isByItself,
  type MemberEffect,
  type MemberSettings,
  Membership,
  type Mode,
  machineKey,
  type NodeLease,
  type NodeRow,
  type NodesRows,
  nodeOfKey,
  nodesKey,
  nodeVerdicts,
  type OthersQuestion,
  presentKeys,
  shardsOf,
  soleNode,
} from '../../watch/nodes/index.ts'
import { receiverKey } from '../../watch/outbox/index.ts'
import { lineKey, monitorOfSvc, reaches, type Verdict, type WatchedMonitor } from '../../watch/states/index.ts'
import type { NotifyPart } from '../notify/notify.ts'
import type { SentWithoutStore } from '../notify/sent-without-store.ts'
import type { Part } from '../part.ts'
import type { SchedulePart } from '../watch/schedule.ts'
import { configurationKey, type StatesPart, verdictsOf, watchedMonitors } from '../watch/states.ts'
import { NodeQuestions } from './node-questions.ts'

/** How often time passes for the membership. Milliseconds. */
const tickMs = 1_000
/** The monitors of the network that a node takes begin within this time. Milliseconds. */
const takenSpreadMs = 3_000
/** How soon it tries to store again: another node may take over soon. Milliseconds. */
export const retryMs = 2_000

/** The parts that follow the leases of this node. */
export type LeaseFollowers = {
  readonly schedule: Pick<SchedulePart, 'monitors' | 'follow' | 'look' | 'keepsUp' | 'watches'>
  readonly states: Pick<
    StatesPart,
    'takeOver' | 'again' | 'say' | 'isIsolated' | 'faultsOfAll' | 'questions' | 'takeAnswers'
  >
  readonly notify: Pick<NotifyPart, 'takeOver' | 'again'>
}

export type NodesPart = Part & {
  readonly lease: NodeLease
  /** Sets what follows the leases. To be called before anything begins. */
  readonly follow: (work: LeaseFollowers) => void
  /** The answer to the question of another node whether this one speaks. Undefined: it is none, or it does not. */
  readonly answerToNode: (question: unknown) => string | undefined
  /** Whether some node runs the monitors of the network, as far as this one knows. */
  readonly isLed: () => boolean
  /** The monitors of the network that this node does not run, by type. */
  readonly elsewhere: () => Promise<ReadonlyMap<ServerType, readonly MonitorElsewhere[]>>
}

/** The monitor for the reports of the nodes on each other: whether one is out. */
const reports = monitorOfSvc(nodesKey)

/**
 * One of the nodes that share a store, with real time and the real store: `Membership` decides who runs, stores and sends, and
 * schedule, states and notifications follow.
 */
export function nodesPart({
  config,
  node,
  version,
  peer,
  rows,
  sentWithoutStore,
  log = () => {},
}: {
  readonly config: Config
  /** Its address for other nodes, once it listens. */
  readonly peer: () => string | undefined
  /** The file of what this and earlier processes of the node have sent without the store. */
  readonly sentWithoutStore?: SentWithoutStore | undefined
  /** Its name. */
  readonly node: string
  readonly version: string
  readonly rows: () => Promise<NodesRows>
  readonly log?: KeeperLog | undefined
}): NodesPart {
  const now = (): number => performance.now()
  const own = randomUUID()
  const peers = new NodeQuestions(node, own)
  /** It learns its monitors, and asks for leases, once the server answers. */
  const member = new Membership(
    {
      node,
      process: own,
      facts: {
        version,
        url: config.serve.url,
        startedAt: Date.now(),
        get peer() {
          return peer()
        },
      },
      settings: settingsOf(node, []),
    },
    now(),
  )
  let work: LeaseFollowers | undefined
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<unknown> = Promise.resolve()
  let isOpen = false
  /** The settings that two nodes must have in common, so that one may speak for the other. */
  let configuration = ''
  /** Why the last question to the store failed. Undefined: it did not, or there is no answer yet. */
  let storeFault: string | undefined
  /** Whether this node has the store, as the log has it. */
  const steady = new Steady(storePatience)
  let statement = ''

  /** The beats that have no answer yet. */
  const beats = new Set<Promise<void>>()

  const happened = (event: (at: number) => readonly MemberEffect[]): void => {
    if (isOpen) for (const effect of event(now())) void carryOut(effect)
  }
  const carryOut = (effect: MemberEffect): unknown => {
    switch (effect.type) {
      case 'beat': {
        const sent = beat(effect)
        beats.add(sent)
        return sent.finally(() => beats.delete(sent))
      }
      case 'read':
        return read(effect)
      case 'find':
        return find()
      case 'forget':
        return sentWithoutStore?.forget()
      case 'hand over':
        return handOver(effect)
      case 'release':
      case 'adopt': {
        work?.states.takeOver(effect.stored)
        const rows = work?.notify.takeOver(effect.stored) ?? []
        return effect.type === 'release' && member.released(effect.fate, rows)
      }
      case 'write again':
        work?.states.again(effect.stored)
        return work?.notify.again(effect.stored.outbox)
      case 'changed':
        // Between having the store and not, a node at load may change several times a minute.
        if (effect.mode !== 'cut off' && !(effect.mode === 'member' && isByItself(effect.before)))
          sayMode(effect.mode, effect.before)
        return work?.schedule.follow()
      case 'look':
        return look(effect.question)
      case 'ask':
        return effect.nodes.map(askWhoSpeaks)
      case 'crossChecks':
        return work?.states.takeAnswers(effect.answers)
    }
  }

  /** Undefined if the store fails, which the mode of the node shows. A defect is logged as well. */
  const answered = async <T>(question: (store: NodesRows) => Promise<T>): Promise<T | undefined> => {
    try {
      const answer = await question(await rows())
      storeFault = undefined
      return answer
    } catch (error) {
      storeFault = error instanceof StoreOutage ? error.why : undefined
      if (!isStoreFailure(error))
        log({ level: 'warn', msg: `svc failed unexpectedly: ${error instanceof Error ? error.stack : String(error)}` })
      return undefined
    }
  }

  /** Questions about checks of one monitor that arrive together share a run. */
  const looks = new Map<string, Promise<readonly Verdict[]>>()
  const look = async (question: OthersQuestion): Promise<void> => {
    const { key, depth } = question
    const run = entryOf(looks, `${depth} ${key}`, async () => {
      const report = await work?.schedule.look(key, depth)
      return report ? verdictsOf(report) : []
    })
    try {
      member.looked(question, reaches(await run, question))
    } catch (error) {
      if (isOpen) log({ level: 'warn', msg: `the run of ${key} for node ${question.from} failed: ${String(error)}` })
    } finally {
      looks.delete(`${depth} ${key}`)
    }
  }

  const askWhoSpeaks = async ({ node: other, address }: AddressedNode): Promise<void> => {
    const askedAt = now()
    if (await peers.ask(other, address, configuration)) happened((at) => member.otherSpeaks(other, askedAt, at))
  }

  const beat = async ({ id, request }: Extract<MemberEffect, { type: 'beat' }>): Promise<void> => {
    const answer = await answered((store) => store.beat(request))
    if (!answer) return happened((at) => member.unanswered(id, at))
    happened((at) => member.answered(id, answer, at))
    judgeNodes()
    peers.key ??= await answered((store) => store.key())
  }

  const read = async ({ id, shard }: Extract<MemberEffect, { type: 'read' }>): Promise<void> => {
    const stored = await answered((store) => store.stored())
    happened((at) => member.read(id, shard, stored, at))
  }

  const find = async (): Promise<void> => {
    const sent = await answered(async () => (await sentWithoutStore?.rows()) ?? [])
    happened((at) => member.takeSent(sent, at))
  }

  const handOver = async ({ what }: Extract<MemberEffect, { type: 'hand over' }>): Promise<void> => {
    const isStored = await answered((store) => store.handOver(what))
    happened((at) => member.handedOver(what, isStored === true, at))
  }

  /** One write at a time. Resolves to undefined if this node may not write now. */
  const fenced = (
    keys: readonly string[],
    write: (store: NodesRows, fences: readonly Fence[]) => Promise<Fenced>,
  ): Promise<Fenced | undefined> => {
    const next = writing.then(async () => {
      const fences = member.beginWrite(shardsOf(keys), now())
      if (!fences) return undefined
      let outcome: Fenced | 'failed' = 'failed'
      try {
        outcome = await write(await rows(), fences)
        return outcome
      } finally {
        happened((at) => member.wrote(fences, outcome, at))
      }
    })
    writing = next.catch(() => {})
    return next
  }

  const settings = (monitors: readonly WatchedMonitor[], receivers: readonly string[]): MemberSettings => {
    const all = settingsOf(node, monitors)
    configuration = JSON.stringify([all.digest, receivers])
    return all
  }

  const mode = (): Mode => member.mode(now())
  const holds = (): boolean => member.holdsLease(now())
  const problem = (): string | undefined => {
    const present = mode()
    if (present === 'displaced') return `another svc serve has the name of this node, ${node}: set serve.node`
    return isByItself(present) ? `this node is without the store, which ${whyWithout()}` : undefined
  }
  const speaks = (): string => {
    const other = member.speaker(now())
    return other === undefined ? 'it sends messages by itself' : `${other} sends the messages about the network`
  }
  const whyWithout = (): string => storeFault ?? 'does not answer in time'

  const sayMode = (present: Mode, before: Mode): void => {
    const holder = member.holder(now())
    // Between two holders there is none for a moment.
    if (present === 'member' && holder === undefined) return
    const what: Readonly<Record<Mode, readonly ['info' | 'warn', string] | undefined>> = {
      member: [
        'info',
        holder === node
          ? 'holds the lease: it runs the monitors of the network'
          : `stands by: ${holder} holds the lease`,
      ],
      'cut off': ['warn', `is without the store, which ${whyWithout()}: it runs every monitor and stores nothing`],
      alone: ['warn', `is still without the store: ${speaks()} from now on`],
      displaced: ['warn', 'runs only what looks at this machine: another svc serve has its name'],
      joining: before === 'joining' ? undefined : ['info', 'stood still: it asks the store before it goes on'],
    }
    const [level, text] = what[present] ?? []
    if (level === undefined || text === undefined || text === statement) return
    statement = text
    log({ level, msg: `node ${node} ${text}` })
  }

  /** Whether each node is there. */
  const judgeNodes = (): void => {
    if (!member.runs(nodesKey, now())) return
    const { rows: nodes, ageMs, memberMs } = member.rows(now())
    work?.states.say(nodesKey, nodeVerdicts(nodes, ageMs, memberMs))
  }

  const elsewhere = async (): Promise<ReadonlyMap<ServerType, readonly MonitorElsewhere[]>> => {
    const byType = new Map<ServerType, MonitorElsewhere[]>()
    const all = work?.schedule.monitors() ?? []
    const away = all.filter(({ key }) => nodeOfKey(key) === undefined && !member.runs(key, now()))
    if (away.length === 0) return byType
    const holder = holds() ? undefined : member.holder(now())
    const url = member.rows(now()).rows.find((row) => row.node === holder)?.facts?.url
    const confirmed = await work?.states.faultsOfAll()
    for (const { key, types, monitor } of away) {
      const { fault, reason } = confirmed ? (confirmed.get(key) ?? noFault) : unknownFault
      const one = { name: monitor.name, node: holder, url, fault, reason }
      for (const type of types) entryOf(byType, type, () => []).push(one)
    }
    return byType
  }

  const tick = (): void => {
    happened((at) => member.isolated(work?.states.isIsolated() === true, at))
    member.asks(work?.states.questions() ?? [], now())
    happened((at) => member.tick(at))
    const present = mode()
    if (present !== 'member' && !isByItself(present)) return
    const news = steady.observe(present === 'member' ? undefined : whyWithout(), now())
    if (news) sayMode(news.what === 'well' ? 'member' : 'cut off', present)
  }

  return {
    lease: {
      isShared: true,
      node,
      keyOf: (key) => machineKey(node, key),
      reports: [reports],
      runs: (key) => member.runs(key, now()),
      has: (key) => member.watches(key),
      isElsewhere: (key) => member.isElsewhere(key),
      otherNode: (key) => member.otherNode(key, now()),
      configured: (monitors, receivers) => happened((at) => member.configured(settings(monitors, receivers), at)),
      spreadMs: () =>
        member.rows(now()).rows.some((row) => row.isLive && row.node !== node) ? takenSpreadMs : undefined,
      leads: () => holds() || (mode() === 'alone' && member.speaker(now()) === undefined),
      problem,
      retryMs,
      writeStates: async (batch) => {
        const { states, gone, incidents } = batch
        const keys = [...states.map(({ row }) => row.key), ...[...gone, ...incidents].map(({ key }) => key)]
        const outcome = await fenced(keys, (store, fences) => store.writeStates(fences, batch))
        if (outcome === 'stored') return outcome
        const why = outcome === undefined ? problem() : undefined
        return why === undefined ? 'again' : { why }
      },
      writeOutbox: async (batch) => {
        const keys = batch.map(({ subject: { key } }) => key)
        const outcome = await fenced(keys, (store, fences) => store.writeOutbox(fences, batch))
        if (outcome !== undefined) return outcome === 'stored'
        throw new Fault('Unavailable', problem() ?? 'this node waits for the store')
      },
      voice: (key) => member.voice(key, now()),
      sentAlone: () => member.sentAlone(),
      isUpToOther: (key) => member.isUpToOther(key, now()),
    },
    follow: (following) => {
      work = following
    },
    answerToNode: (question) =>
      peers.answer(question, (asker) => {
        const keepsUp = work?.schedule.watches() === true && work.schedule.keepsUp()
        return member.speaksFor(asker, keepsUp, now()) ? configuration : undefined
      }),
    isLed: () => mode() !== 'member' || member.holder(now()) !== undefined,
    elsewhere,
    // Monitors are known by now, and run as soon as the server answers.
    answers: () => {
      isOpen = true
      const receivers = config.notify?.map(({ name }) => name) ?? []
      const first = settings(watchedMonitors(work?.schedule.monitors() ?? [], config), receivers)
      happened((at) => member.configured(first, at))
      tick()
      timer ??= setInterval(tick, tickMs)
    },
    metrics: async () =>
      familiesOfNode(node, member.rows(now()).rows, { isCoordinated: mode() === 'member', holds: holds() }),
    cancel: () => clearInterval(timer),
    close: async () => {
      if (!isOpen) return
      await writing
      happened((at) => member.leave(at))
      isOpen = false
      // One that the store got later would bring back what this process leaves.
      await Promise.allSettled(beats)
      await rows()
        .then((store) => store.leave(node, own))
        .catch(() => {})
    },
  }
}

const noFault = { fault: undefined, reason: undefined } as const
const unknownFault = { fault: 'unknown', reason: undefined } as const

/** A svc whose store nobody else can use, or that has none. */
export const soleNodePart: NodesPart = {
  lease: soleNode,
  follow: () => {},
  answerToNode: () => undefined,
  isLed: () => true,
  elsewhere: async () => new Map(),
}

/** The settings of this node: the monitors that it could run. */
function settingsOf(node: string, watched: readonly WatchedMonitor[]): MemberSettings {
  const network = watched.filter(({ key }) => nodeOfKey(key) === undefined)
  const own = watched.flatMap(({ key }) => (nodeOfKey(key) === undefined ? [] : [key]))
  const byKey = network.toSorted((one, other) => (one.key < other.key ? -1 : 1))
  const text = JSON.stringify(byKey.map(({ key, dependsOn, formerly }) => [key, dependsOn, formerly]))
  return {
    digest: createHash('sha256').update(text).digest('hex').slice(0, 32),
    network: presentKeys(network),
    own: new Set([
      ...own,
      machineKey(node, lineKey),
      machineKey(node, receiverKey),
      machineKey(node, configurationKey),
    ]),
  }
}

/** The families of /metrics about a node and the others. */
export function familiesOfNode(
  node: string,
  rows: readonly NodeRow[],
  { isCoordinated, holds }: { readonly isCoordinated: boolean; readonly holds: boolean },
): readonly Family[] {
  return [
    {
      name: 'svc_node_coordinated',
      type: 'gauge',
      help: '1 while this node has the store that it shares with others, 0 while it does not reach it or another process has its name.',
      samples: [{ labels: { node }, value: Number(isCoordinated) }],
    },
    {
      name: 'svc_node_holds_lease',
      type: 'gauge',
      help: '1 while this node runs the monitors of the network for all nodes, 0 while another one does.',
      samples: [{ labels: { node }, value: Number(holds) }],
    },
    {
      name: 'svc_nodes',
      type: 'gauge',
      help: 'Nodes that share the store by whether they are live or out. One that ended in order is neither.',
      samples: [
        { labels: { state: 'live' }, value: rows.filter(({ isLive }) => isLive).length },
        { labels: { state: 'out' }, value: rows.filter(({ isLive, hasLeft }) => !isLive && !hasLeft).length },
      ],
    },
  ]
}

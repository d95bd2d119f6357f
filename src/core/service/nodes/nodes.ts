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
  type Configurations,
  type Fenced,
  groupsOf,
  isByItself,
  type MemberEffect,
  type MemberSettings,
  Membership,
  type Mode,
  machineKey,
  type NodeRow,
  type NodesRows,
  nodeOfKey,
  nodesKey,
  nodeVerdicts,
  type OthersQuestion,
  ownersOf,
  type WritePermit,
} from '../../watch/nodes/index.ts'
import { receiverKey, type StoredRow } from '../../watch/outbox/index.ts'
import { lineKey, monitorOfSvc, reaches, type StatesBatch, type Verdict } from '../../watch/states/index.ts'
import type { NotifyPart } from '../notify/notify.ts'
import type { SendingNode } from '../notify/notify-driver.ts'
import type { SentWithoutStore } from '../notify/sent-without-store.ts'
import type { Part } from '../part.ts'
import type { SchedulePart } from '../watch/schedule.ts'
import type { ScheduledMonitor } from '../watch/scheduled-monitors.ts'
import type { NodeMonitors } from '../watch/share.ts'
import { type StatesPart, verdictsOf, watchedMonitors } from '../watch/states.ts'
import type { StatesKeeper } from '../watch/states-keeper.ts'

/** How often time passes for the membership. Milliseconds. */
const tickMs = 1_000
/** The monitors that a node takes over from another one begin within this time. Milliseconds. */
const takenSpreadMs = 3_000

/** The parts that follow the share of this node. */
export type ShareFollowers = {
  readonly schedule: Pick<SchedulePart, 'monitors' | 'reshare' | 'look'>
  readonly states: Pick<
    StatesPart,
    'takeOver' | 'release' | 'say' | 'isIsolated' | 'faultsOfAll' | 'questions' | 'takeAnswers'
  >
  readonly keeper: Pick<StatesKeeper, 'again'>
  readonly notify: Pick<NotifyPart, 'takeOver' | 'release' | 'again'>
}

export type NodesPart = Part & {
  readonly share: NodeMonitors
  /** `statesKeeper`'s `write` */
  readonly writeStates: (batch: StatesBatch) => Promise<'stored' | 'again' | { readonly why: string }>
  /** Why this node does not store anything now. Undefined: it does, or is about to. */
  readonly problem: () => string | undefined
  readonly sending: SendingNode
  /** Sets what follows the share. To be called before anything begins. */
  readonly follow: (work: ShareFollowers) => void
  readonly mode: () => Mode
  /** The monitors that other nodes run, by type. Empty while this node runs all of them. */
  readonly elsewhere: () => Promise<ReadonlyMap<ServerType, readonly MonitorElsewhere[]>>
}

/** The monitor for the reports of the nodes on each other: whether one is out. */
const reports = monitorOfSvc(nodesKey)

/**
 * Divides the monitors among the nodes that share a store, with real time and the real store: `Membership` decides, and
 * schedule, states and notifications follow.
 */
export function nodesPart({
  config,
  node,
  version,
  rows,
  sentWithoutStore,
  log = () => {},
}: {
  readonly config: Config
  /** The file of what this and earlier processes of the node have sent without the store. */
  readonly sentWithoutStore?: SentWithoutStore | undefined
  /** Its name. */
  readonly node: string
  readonly version: string
  readonly rows: () => Promise<NodesRows>
  readonly log?: KeeperLog | undefined
}): NodesPart {
  const now = (): number => performance.now()
  const facts = { version, url: config.serve.url, startedAt: Date.now() }
  let work: ShareFollowers | undefined
  let member: Membership | undefined
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<unknown> = Promise.resolve()
  let isClosed = false
  let hasOthers = false
  /** Why the last question to the store failed. Undefined: it did not, or there is no answer yet. */
  let storeFault: string | undefined
  /** Whether this node has the store, as the log has it. */
  const steady = new Steady(storePatience)

  const happened = (event: (membership: Membership, at: number) => readonly MemberEffect[]): void => {
    if (member && !isClosed) carryOut(member, event(member, now()))
  }

  /** States and schedule follow once, after everything that the effects bring to memory. */
  const carryOut = (membership: Membership, effects: readonly MemberEffect[]): void => {
    const last = effects.findLastIndex(({ type }) => type === 'share')
    for (const [at, effect] of effects.entries()) {
      if (effect.type !== 'share' || at === last) carryOutOne(membership, effect)
    }
  }

  const carryOutOne = (membership: Membership, effect: MemberEffect): void => {
    switch (effect.type) {
      case 'renew':
        void renew(effect)
        return
      case 'read configurations':
        void read(effect.digests)
        return
      case 'take over':
        void takeOver(effect)
        return
      case 'release':
        work?.states.release(effect.keys)
        membership.released(work?.notify.release(effect.keys) ?? [])
        return
      case 'adopt':
        work?.states.takeOver(effect.stored)
        work?.notify.takeOver(
          effect.keys,
          effect.stored.outbox,
          effect.stored.states.flatMap(({ row, state }) => (state.incident ? [row] : [])),
        )
        return
      case 'write again':
        work?.keeper.again(effect.stored)
        work?.notify.again(effect.stored.outbox)
        return
      case 'share':
        work?.schedule.reshare()
        return
      case 'mode':
        // Between having the store and not, a node at load may change several times a minute.
        if (effect.mode !== 'cut off' && !(effect.mode === 'member' && isByItself(effect.before)))
          sayMode(effect.mode, effect.before)
        return
      case 'look':
        void look(membership, effect.question)
        return
      case 'crossChecks':
        work?.states.takeAnswers(effect.answers)
        return
      case 'leave':
        return
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
  const look = async (membership: Membership, question: OthersQuestion): Promise<void> => {
    const { key, depth } = question
    const run = entryOf(looks, `${depth} ${key}`, async () => {
      const report = await work?.schedule.look(key, depth)
      return report ? verdictsOf(report) : []
    })
    try {
      membership.looked(question, reaches(await run, question))
    } catch (error) {
      if (!isClosed) log({ level: 'warn', msg: `the run of ${key} for node ${question.from} failed: ${String(error)}` })
    } finally {
      looks.delete(`${depth} ${key}`)
    }
  }

  const renew = async ({ id, request, publishes }: Extract<MemberEffect, { type: 'renew' }>): Promise<void> => {
    const answer = await answered(async (store) => {
      if (publishes) await store.putConfiguration(request.config, publishes)
      return await store.renew(request)
    })
    if (!answer) {
      happened((membership, at) => membership.renewalFailed(id, at))
      return
    }
    hasOthers = answer.rows.some((row) => row.isLive && row.node !== node)
    happened((membership, at) => membership.renewed(id, answer, at))
    judgeNodes()
  }

  const read = async (digests: readonly string[]): Promise<void> => {
    const configurations = await answered(async (store) => await store.configurations(digests))
    // Without an answer, the next renewal asks again.
    if (configurations) happened((membership, at) => membership.configurationsRead(configurations, digests, at))
  }

  const takeOver = async ({ id, fence, choose, news }: Extract<MemberEffect, { type: 'take over' }>): Promise<void> => {
    const answer = await answered(async (store) => {
      // An earlier process of this node may have sent it.
      for (const one of (await sentWithoutStore?.rows()) ?? []) {
        const words = [one.row?.attempt, ...(one.row?.others ?? [])].flatMap((word) => word?.incident ?? [])
        member?.sentAlone(one.receiver, words)
        member?.released([one])
      }
      return { stored: await store.takeOver(fence, choose, news()) }
    })
    if (answer) {
      await sentWithoutStore?.forget()
      happened((membership, at) => membership.taken(id, answer.stored, at))
    } else happened((membership, at) => membership.takeOverFailed(id, at))
  }

  /** One write at a time. Resolves to undefined if this node may not write now. */
  const fenced = (write: (store: NodesRows, permit: WritePermit) => Promise<Fenced>): Promise<Fenced | undefined> => {
    const next = writing.then(async () => {
      const permit = member?.beginWrite(now())
      if (!member || !permit) return undefined
      const membership = member
      let outcome: Fenced | 'failed' = 'failed'
      try {
        outcome = await write(await rows(), permit)
        return outcome
      } finally {
        carryOut(membership, membership.wrote(permit, outcome, now()))
      }
    })
    writing = next.catch(() => {})
    return next
  }

  const mode = (): Mode => member?.mode(now()) ?? 'joining'
  const problem = (): string | undefined => {
    const present = mode()
    if (present === 'displaced') return `another svc serve has the name of this node, ${node}: set serve.node`
    return isByItself(present) ? `this node is without the store, which ${whyWithout()}` : undefined
  }
  const whyWithout = (): string => storeFault ?? 'does not answer in time'

  const sayMode = (present: Mode, before: Mode): void => {
    const others = member?.rows(now()).rows.filter((row) => row.isLive && row.node !== node) ?? []
    const names = others.map((row) => row.node).join(', ')
    const say = (level: 'info' | 'warn', msg: string): void => log({ level, msg: `node ${node} ${msg}` })
    if (present === 'member')
      say('info', others.length === 0 ? 'runs all monitors' : `shares the monitors with ${names}`)
    else if (present === 'cut off')
      say('warn', `is without the store, which ${whyWithout()}: it runs every monitor and stores nothing`)
    else if (present === 'alone') say('warn', 'is still without the store: it sends messages by itself from now on')
    else if (present === 'displaced')
      say('warn', 'runs only what looks at this machine: another svc serve has its name')
    else if (before !== 'joining') say('info', 'stood still: it asks the store before it goes on')
  }

  /** Whether each node is there. */
  const judgeNodes = (): void => {
    if (!member?.runs(nodesKey, now())) return
    const { rows: nodes, ageMs, memberMs } = member.rows(now())
    work?.states.say(nodesKey, nodeVerdicts(nodes, ageMs, memberMs))
  }

  let owners: { readonly of: readonly NodeRow[]; readonly byKey: ReadonlyMap<string, string> } | undefined
  /** The node that runs each monitor of the network. Pages ask more often than the nodes renew their rows. */
  const ownersAt = (nodes: readonly NodeRow[], configurations: Configurations): ReadonlyMap<string, string> => {
    if (owners?.of === nodes) return owners.byKey
    const ownerOf = ownersOf(nodes, configurations)
    const keys = (work?.schedule.monitors() ?? []).map(({ key }) => key).filter((key) => nodeOfKey(key) === undefined)
    const byKey = new Map(
      keys.flatMap((key): readonly (readonly [string, string])[] => {
        const owner = ownerOf(key)
        return owner === undefined ? [] : [[key, owner]]
      }),
    )
    owners = { of: nodes, byKey }
    return byKey
  }

  const elsewhere = async (): Promise<ReadonlyMap<ServerType, readonly MonitorElsewhere[]>> => {
    const byType = new Map<ServerType, MonitorElsewhere[]>()
    if (!member || mode() !== 'member') return byType
    const { rows: nodes } = member.rows(now())
    const byKey = ownersAt(nodes, member.configurations)
    const urls = new Map(nodes.map((row) => [row.node, row.facts?.url]))
    const confirmed = await work?.states.faultsOfAll()
    for (const { key, types, monitor } of work?.schedule.monitors() ?? []) {
      const owner = byKey.get(key)
      if (owner === undefined || owner === node) continue
      const { fault, reason } = confirmed ? (confirmed.get(key) ?? noFault) : unknownFault
      const one = { name: monitor.name, node: owner, url: urls.get(owner), fault, reason }
      for (const type of types) entryOf(byType, type, () => []).push(one)
    }
    return byType
  }

  const tick = (): void => {
    happened((membership, at) => membership.isolated(work?.states.isIsolated() === true, at))
    member?.asks(work?.states.questions() ?? [])
    happened((membership, at) => membership.tick(at))
    const present = mode()
    if (present !== 'member' && !isByItself(present)) return
    const news = steady.observe(present === 'member' ? undefined : whyWithout(), now())
    if (news) sayMode(news.what === 'well' ? 'member' : 'cut off', present)
  }

  return {
    share: {
      node,
      reports,
      runs: (key) => member?.runs(key, now()) === true,
      has: (key) => member?.watches(key) === true,
      isElsewhere: (key) => member?.isElsewhere(key) !== false,
      otherNode: (key) => member?.otherNode(key, now()),
      configured: (monitors, next) =>
        happened((membership, at) =>
          membership.configured(settingsOf(node, monitors, next), at).filter(({ type }) => type !== 'share'),
        ),
      spreadMs: () => (hasOthers ? takenSpreadMs : undefined),
    },
    writeStates: async (batch) => {
      const outcome = await fenced((store, { fence, number }) => store.writeStates(fence, number, batch))
      if (outcome === 'stored') return outcome
      const why = outcome === undefined ? problem() : undefined
      return why === undefined ? 'again' : { why }
    },
    sending: {
      receiverKey: machineKey(node, receiverKey),
      write: async (batch: readonly StoredRow[]) => {
        const outcome = await fenced((store, { fence, number }) => store.writeOutbox(fence, number, batch))
        if (outcome === 'stored' || typeof outcome === 'object') return outcome
        throw new Fault('Unavailable', problem() ?? 'this node waits for the store')
      },
      voice: (key) => member?.voice(key, now()) ?? 'silent',
      sentAlone: (receiver, incidents) => member?.sentAlone(receiver, incidents),
    },
    follow: (following) => {
      work = following
    },
    problem,
    mode,
    elsewhere,
    // Monitors are known by now, and run as soon as the server answers.
    answers: () => {
      const settings = settingsOf(node, work?.schedule.monitors() ?? [], config)
      member = new Membership({ node, process: randomUUID(), facts, settings }, now())
      tick()
      timer ??= setInterval(tick, tickMs)
    },
    metrics: async () =>
      familiesOfNode({
        node,
        isCoordinated: mode() === 'member',
        running: (work?.schedule.monitors() ?? []).filter(({ key }) => member?.runs(key, now())).length,
        rows: member?.rows(now()).rows ?? [],
      }),
    cancel: () => clearInterval(timer),
    close: async () => {
      if (isClosed || !member) return
      await writing
      const effects = member.leave(now())
      isClosed = true
      for (const effect of effects)
        if (effect.type === 'leave')
          await rows()
            .then((store) => store.leave(effect.fence))
            .catch(() => {})
    },
  }
}

const noFault = { fault: undefined, reason: undefined } as const
const unknownFault = { fault: 'unknown', reason: undefined } as const

/** The settings of this node: the monitors that it could run. */
function settingsOf(node: string, monitors: readonly ScheduledMonitor[], config: Config): MemberSettings {
  const watched = watchedMonitors(monitors, config)
  const { groups, formerly } = groupsOf(watched.filter(({ key }) => nodeOfKey(key) === undefined))
  const network = { groups: new Map([...groups, [nodesKey, nodesKey]]), formerly }
  const own = watched.flatMap(({ key }) => (nodeOfKey(key) === undefined ? [] : [key]))
  const inOrder = (keys: ReadonlyMap<string, string>) => [...keys].sort(([one], [other]) => (one < other ? -1 : 1))
  const text = JSON.stringify([inOrder(network.groups), inOrder(formerly)])
  return {
    digest: createHash('sha256').update(text).digest('hex').slice(0, 32),
    monitors: network,
    own: new Set([...own, machineKey(node, lineKey), machineKey(node, receiverKey)]),
  }
}

/** The families of /metrics about a node and the others. `running`: how many monitors it runs. */
export function familiesOfNode({
  node,
  isCoordinated,
  running,
  rows,
}: {
  readonly node: string
  readonly isCoordinated: boolean
  readonly running: number
  readonly rows: readonly NodeRow[]
}): readonly Family[] {
  return [
    {
      name: 'svc_node_coordinated',
      type: 'gauge',
      help: '1 while this node shares the monitors with the others through the store, 0 while it does not reach the store or another process has its name.',
      samples: [{ labels: { node }, value: Number(isCoordinated) }],
    },
    {
      name: 'svc_node_monitors',
      type: 'gauge',
      help: 'How many monitors this node runs now, those of its machine included.',
      samples: [{ labels: { node }, value: running }],
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

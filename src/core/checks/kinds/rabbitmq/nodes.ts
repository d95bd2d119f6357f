import { setTimeout as wait } from 'node:timers/promises'
import { count, showBytes } from '../../../base/format.ts'
import type { Threshold } from '../../../base/settings/index.ts'
import {
  atMost,
  attempt,
  type CheckContext,
  fail,
  notChecked,
  ok,
  type Result,
  warn,
  withThreshold,
} from '../../engine/index.ts'
import { listQueues } from './all-queues.ts'
import {
  type Account,
  content,
  limitOnManagement,
  list,
  type Management,
  type ManagementAnswer,
  type ManagementJson,
  number,
  object,
  onManagement,
  setTags,
  signInContent,
  uncounted,
  words,
} from './management.ts'

const privilege = setTags('<account>')

/**
 * Reads /api/overview with the first request that carries the password. Figures that the server does not report are
 * undefined.
 */
async function readOverview(management: Management, _: unknown, context: CheckContext) {
  const { isConfigured } = context
  const account = await management.account()
  const body = object(signInContent(await account.get('overview'), account))
  const isUncounted = body.disable_stats === true
  if (isUncounted) uncounted.set(management, isConfigured)
  const ready = number(object(body.queue_totals), 'messages_ready')
  return {
    version: words(body.rabbitmq_version, account, 32),
    ready: ready ?? (isUncounted && isConfigured('messages') ? await countReady(management, context) : undefined),
    isUncounted,
  }
}

/** The ready messages of all queues, from the queues themselves. Undefined if the account does not see all of them. */
async function countReady(management: Management, context: CheckContext): Promise<number | undefined> {
  const listing = await attempt(management, context, () => listQueues(management))
  if ('failure' in listing) return undefined
  const { queues, total } = listing.observation
  return queues.length < total ? undefined : queues.reduce((sum, { ready = Number.NaN }) => sum + ready, 0)
}

/** The parts of a report that a server without statistics cannot fill. */
const unseen =
  'not seen: memory, file descriptors, sockets, maintenance mode, partitions, and consumers, deliveries and ages of queues'

export const signIn = onManagement({
  depth: 'Standard',
  results: { 'sign-in': 'The account can sign in' },
  gate: true,
  privilege,
  observe: readOverview,
  evaluate: ({ version, isUncounted }) => {
    const off = 'the server collects no statistics (management_agent.disable_metrics_collector = true)'
    return ok('sign-in', `signed in, RabbitMQ ${version || 'of an unknown version'}${isUncounted ? `; ${off}` : ''}`, {
      ...(version === '' ? {} : { facts: { version } }),
      ...(isUncounted ? { details: [unseen] } : {}),
    })
  },
})

export const messages = limitOnManagement({
  depth: 'Standard',
  check: 'messages',
  proves: 'The number of waiting messages in all queues is within the limit; omitted without `messages`',
  setting: 'messages',
  unit: 'count',
  doc: 'Maximum number of ready messages in all queues together',

  privilege,
  observe: readOverview,
  evaluate: ({ ready: value }, compare) => {
    if (value === undefined || Number.isNaN(value))
      return notChecked('messages', 'missing', 'the server reports no queue statistics')
    return compare({ what: 'messages ready in all queues:', value })
  },
})

type Share = { readonly used: number; readonly of: number }
/** The report of a node. Figures that it does not report are undefined. */
export type RabbitmqNode = ReturnType<typeof nodeOf>

const truth = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined)

/** How long the first figures of a node may take: the statistics interval of 5 s and a margin. */
const firstFiguresMs = 7_000
/** How often to look for them, and what remains for the other checks. */
const [everyMs, reserveMs] = [500, 2_000]

/** A node that started within one statistics interval reports no figure at all. */
const hasFigures = ({ running, memoryAlarm, memory, fileDescriptors }: RabbitmqNode): boolean =>
  !running || memoryAlarm !== undefined || memory !== undefined || fileDescriptors !== undefined

/** Reads /api/nodes, and waits for the first figures of a node that has just started. */
async function readNodes(
  management: Management,
  _: unknown,
  { now, msLeft, signal }: CheckContext,
): Promise<readonly RabbitmqNode[]> {
  const account = await management.account()
  const read = async (): Promise<readonly RabbitmqNode[]> =>
    list(content(await account.get('nodes'), 'nodes', account)).map((one) => nodeOf(object(one), account))
  const end = now() + Math.min(firstFiguresMs, msLeft() - reserveMs)
  if (uncounted.has(management)) return withAlarms(await read(), await account.get('health/checks/alarms'))
  for (;;) {
    const nodes = await read()
    if (nodes.every(hasFigures) || now() > end) return nodes
    await wait(everyMs, undefined, { signal })
  }
}

function nodeOf(json: ManagementJson, account: Account) {
  const share = (used: string, of: string): Share | undefined => {
    const [a, b] = [number(json, used), number(json, of)]
    return a === undefined || b === undefined || b <= 0 ? undefined : { used: a, of: b }
  }
  return {
    name: words(json.name, account),
    running: json.running === true,
    memoryAlarm: truth(json.mem_alarm),
    diskAlarm: truth(json.disk_free_alarm),
    memory: share('mem_used', 'mem_limit'),
    fileDescriptors: share('fd_used', 'fd_total'),
    sockets: share('sockets_used', 'sockets_total'),
    diskFree: share('disk_free', 'disk_free_limit'),
    /** In maintenance mode. Undefined before RabbitMQ 3.13. */
    drained: truth(json.being_drained),
    /** Nodes that this node no longer sees. */
    partitions: Array.isArray(json.partitions) ? list(json.partitions).map((name) => words(name, account)) : undefined,
  }
}

/** The nodes with their alarms by a health check of the server, which needs no statistics. */
function withAlarms(nodes: readonly RabbitmqNode[], { status, body }: ManagementAnswer): readonly RabbitmqNode[] {
  if (status !== 200 && status !== 503) return nodes
  const alarms = list(object(body).alarms).map(object)
  if (status === 503 && alarms.length === 0) return nodes
  const hasAlarm = (name: string, resource: string): boolean =>
    alarms.some((one) => one.node === name && one.resource === resource)
  return nodes.map((one) => ({
    ...one,
    memoryAlarm: hasAlarm(one.name, 'memory'),
    diskAlarm: hasAlarm(one.name, 'disk'),
  }))
}

const runningOf = (nodes: readonly RabbitmqNode[]): readonly RabbitmqNode[] => nodes.filter((node) => node.running)

/** The parts that the checks of nodes have in common. */
const ofNodes = { depth: 'Standard', privilege, observe: readNodes } as const

/** Leaves out a check of statistics that the server does not collect, unless svc.yaml gives its setting. */
const whereCounted = (setting?: string) => ({
  applies: (management: Management): boolean => {
    const isConfigured = uncounted.get(management)
    return isConfigured === undefined || (setting !== undefined && isConfigured(setting))
  },
})

/** The health check of virtual hosts, which other servers report with their queues. */
export const virtualHosts = onManagement({
  depth: 'Standard',
  results: { 'virtual hosts': 'Every virtual host runs; for a server that collects no statistics' },
  privilege,
  applies: (management) => uncounted.has(management),
  observe: async (management) => {
    const account = await management.account()
    const answer = await account.get('health/checks/virtual-hosts')
    const down = answer.status === 503 ? list(object(answer.body)['virtual-hosts']) : []
    if (down.length === 0) content(answer, 'health check of virtual hosts', account)
    return down.map((one) => words(typeof one === 'string' ? one : object(one).name, account))
  },
  evaluate: (down) =>
    down.length === 0
      ? ok('virtual hosts', 'every virtual host runs')
      : fail('virtual hosts', 'data', `virtual hosts that do not run: ${down.slice(0, 5).join(', ')}`),
})

export const node = onManagement({
  ...ofNodes,
  results: { node: 'Every node of the cluster is running' },
  evaluate: (nodes) => {
    if (nodes.length === 0) return fail('node', 'protocol', 'the server lists no nodes, not even itself')
    const running = runningOf(nodes).length
    const down = nodes.filter((one) => !one.running).map(({ name }) => name)
    if (down.length === 0) return ok('node', count(running, 'node is running', 'nodes are running'))
    return fail('node', 'data', `${down.slice(0, 5).join(', ')} not running; ${running} of ${nodes.length} nodes are`)
  },
})

export const maintenance = onManagement({
  ...ofNodes,
  results: {
    maintenance: 'No running node is in maintenance mode, in which it refuses clients; omitted before RabbitMQ 3.13',
  },
  evaluate: (nodes): Result<'maintenance'> | [] => {
    const running = runningOf(nodes)
    const drained = running.filter((one) => one.drained === true).map(({ name }) => name)
    if (running.every((one) => one.drained === undefined)) return []
    if (drained.length === 0) return ok('maintenance', 'no node is in maintenance mode')
    const are = drained.length === 1 ? 'is in maintenance mode and refuses' : 'are in maintenance mode and refuse'
    const message = `${drained.slice(0, 5).join(', ')} ${are} clients`
    const more = { details: ['next: rabbitmq-upgrade revive on that node ends the maintenance mode'] }
    return drained.length === running.length
      ? fail('maintenance', 'data', message, more)
      : warn('maintenance', message, more)
  },
})

export const alarms = onManagement({
  ...ofNodes,
  results: { alarms: 'No memory or disk alarm blocks publishers' },
  evaluate: (nodes): Result<'alarms'> | [] => {
    const running = runningOf(nodes)
    // Without a running node, the check `node` fails.
    if (running.length === 0) return []
    const lines = running.flatMap(({ name, memoryAlarm, diskAlarm, memory: used, diskFree }) => [
      ...(memoryAlarm ? [`memory alarm on ${name}${used ? ` (${showBytes(used.used)} used)` : ''}`] : []),
      ...(diskAlarm ? [`disk alarm on ${name}${diskFree ? ` (${showBytes(diskFree.used)} free)` : ''}`] : []),
    ])
    const [first, ...details] = lines
    const silent = running.find((one) => one.memoryAlarm === undefined || one.diskAlarm === undefined)
    if (first === undefined && silent !== undefined) {
      return notChecked('alarms', 'missing', `${silent.name} does not report whether it has an alarm`)
    }
    if (first === undefined) return ok('alarms', 'no memory or disk alarm')
    return fail('alarms', 'data', `${first}: all publishers of the cluster are blocked until it clears`, {
      details: [...details, 'next: rabbitmqctl status shows what uses memory and disk, and their limits'],
    })
  },
})

const percent = ({ used, of }: Share): number => (used / of) * 100

type ShareName = 'memory' | 'fileDescriptors' | 'sockets'

/** Evaluates the fullest of the running nodes. A node that does not report the figure is never ok. */
function fullest<const Name extends string>(
  { check, of }: { readonly check: Name; readonly of: ShareName },
  nodes: readonly RabbitmqNode[],
  threshold: Threshold,
  describe: (share: Share) => string,
): Result<Name> | [] {
  const running = runningOf(nodes)
  if (running.length === 0) return []
  const shares = running.flatMap(({ name, [of]: share }) => (share ? [{ name, ...share }] : []))
  const silent = running.find((one) => one[of] === undefined)
  const [first, ...rest] = shares
  const worst = first && rest.reduce((most, one) => (percent(one) > percent(most) ? one : most), first)
  const result =
    worst &&
    atMost({
      check,
      what: `${worst.name}: ${describe(worst)}:`,
      value: percent(worst),
      unit: 'percent',
      threshold,
    })
  if (result && (result.status !== 'ok' || !silent)) return result
  return notChecked(check, 'missing', `${silent?.name ?? 'the server'} does not report this`)
}

const shareLimits = { warn: 80, limit: 95 } as const

export const memory = onManagement({
  ...ofNodes,
  ...whereCounted('memory'),
  results: { memory: 'Memory use of the fullest node is within the limit' },
  settings: {
    memory: {
      type: 'threshold',
      unit: 'percent',
      default: shareLimits,
      doc: 'Maximum memory use of a node, in percent of its high watermark',
    },
  },
  evaluate: (nodes, { memory: threshold }) =>
    fullest({ check: 'memory', of: 'memory' }, nodes, threshold, ({ used, of }) => {
      return `${showBytes(used)} of ${showBytes(of)} (high watermark)`
    }),
})

export const fileDescriptors = onManagement({
  ...ofNodes,
  ...whereCounted('fileDescriptors'),
  results: { 'file descriptors': 'Enough file descriptors remain' },
  settings: {
    fileDescriptors: {
      type: 'threshold',
      unit: 'percent',
      default: shareLimits,
      doc: 'Maximum file descriptors in use, in percent',
    },
  },
  evaluate: (nodes, { fileDescriptors: threshold }) =>
    fullest({ check: 'file descriptors', of: 'fileDescriptors' }, nodes, threshold, ({ used, of }) => {
      return `${used} of ${of} file descriptors`
    }),
})

export const sockets = onManagement({
  ...ofNodes,
  results: { sockets: 'Enough sockets remain; omitted where the server does not report them' },
  settings: {
    sockets: { type: 'threshold', unit: 'percent', default: shareLimits, doc: 'Maximum sockets in use, in percent' },
  },
  evaluate: (nodes, { sockets: threshold }) => {
    // RabbitMQ 4 no longer counts them.
    if (nodes.every((one) => one.sockets === undefined)) return []
    return fullest({ check: 'sockets', of: 'sockets' }, nodes, threshold, ({ used, of }) => `${used} of ${of} sockets`)
  },
})

export const partitions = onManagement({
  ...ofNodes,
  ...whereCounted(),
  depth: 'Advanced',
  results: { partitions: 'No network partition divides the nodes' },
  evaluate: (nodes): Result<'partitions'> | [] => {
    const running = runningOf(nodes)
    // Without a running node, the check `node` fails.
    if (running.length === 0) return []
    const lines = running.flatMap(({ name, partitions: lost = [] }) =>
      lost.length > 0 ? [`${name} does not see ${lost.slice(0, 5).join(', ')}`] : [],
    )
    const [first, ...others] = lines
    const silent = running.find((one) => one.partitions === undefined)
    if (first === undefined && silent) {
      return notChecked('partitions', 'missing', `${silent.name} does not report network partitions`)
    }
    if (first === undefined) return ok('partitions', 'no network partition')
    const message = `network partition: ${first}; the parts no longer exchange messages`
    return fail('partitions', 'data', message, { details: others.slice(0, 9) })
  },
})

export const cluster = onManagement({
  ...ofNodes,
  depth: 'Advanced',
  results: { cluster: 'At least `nodes` nodes are running; omitted without that setting' },
  settings: { nodes: { type: 'integer', min: 1, doc: 'Minimum number of running nodes in the cluster' } },
  when: ['nodes'],
  emptyWhere: 'no node is listed, which the check `node` reports',
  evaluate: (nodes, { nodes: min }): Result<'cluster'> | [] => {
    if (nodes.length === 0 || min === undefined) return []
    const running = runningOf(nodes).length
    const are = count(running, 'node is running', 'nodes are running')
    const message = withThreshold(are, { limit: min }, 'count', 'atLeast')
    const measurement = { value: running, unit: 'count', limit: min, bound: 'atLeast' } as const
    return running < min ? fail('cluster', 'data', message, { measurement }) : ok('cluster', message, { measurement })
  },
})

import { setTimeout as wait } from 'node:timers/promises'
import { count, showDuration } from '../../../base/format.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import {
  about,
  atMost,
  attempt,
  type CheckContext,
  type ClassifiedAttempt,
  fail,
  failedAttempt,
  notChecked,
  ok,
  type Result,
  warn,
  withThreshold,
} from '../../engine/index.ts'
import { listQueues, serving } from './all-queues.ts'
import {
  content,
  list,
  type Management,
  number,
  object,
  onManagement,
  setPermissions,
  setTags,
  uncounted,
  words,
} from './management.ts'

const minute = 60_000

const queuesSetting = {
  type: 'groups',
  doc: 'Queues to check',
  fields: {
    name: { type: 'text', observed: true, required: true, doc: 'Name of the queue' },
    vhost: { type: 'text', observed: true, default: '/', doc: 'Virtual host of the queue' },
    ready: { type: 'threshold', unit: 'count', default: { warn: 1_000 }, doc: 'Maximum number of ready messages' },
    unacknowledged: {
      type: 'threshold',
      unit: 'count',
      doc: 'Maximum number of unacknowledged messages',
    },
    consumers: { type: 'integer', min: 0, default: 1, doc: 'Minimum number of consumers' },
    oldest: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: minute, limit: 5 * minute },
      doc: 'Maximum age of the message at the head of the queue; needs publishers that set a timestamp',
    },
  },
} as const satisfies SettingsSpec[string]
const settings = { queues: queuesSetting }
type QueueSettings = NonNullable<Values<typeof settings>['queues']>[number]

const privilege = `${setTags('<account>')}; ${setPermissions('<account>')}`

const maxQueues = 100

/** Why there are too many queues, or undefined. */
export function validateQueues(queues: readonly unknown[] = [], deadLetterQueues: readonly unknown[] = []) {
  if (queues.length + deadLetterQueues.length <= maxQueues) return undefined
  return `queues and deadLetters together have more than ${maxQueues} entries: list fewer`
}

/** The management's report on a queue. Figures that it does not report are undefined. */
export type Queue = {
  /** Empty if it is not reported. */
  readonly state: string
  /** The home node; empty where it is not known. */
  readonly node: string
  /** False for a queue without statistics, because it was declared just now. The two figures of deliveries are 0 then. */
  readonly counted: boolean
  readonly ready: number | undefined
  readonly unacknowledged: number | undefined
  readonly consumers: number | undefined
  /** The server collects no statistics at all. */
  readonly uncounted?: boolean
  /** The timestamp of the message at the head of the queue, in milliseconds since 1970, if its publisher set one. */
  readonly head: number | undefined
  /** The total number of delivered messages, and the recent rate per second. */
  readonly delivered: number
  readonly rate: number
}

async function readQueue(
  management: Management,
  { name, vhost }: { readonly name: string; readonly vhost: string },
): Promise<Queue> {
  const account = await management.account()
  const path = `queues/${encodeURIComponent(vhost)}/${encodeURIComponent(name)}`
  const what = `queue "${sanitize(name, 80)}" in the vhost "${sanitize(vhost, 80)}"`
  const answer = await account.get(path)
  const listed = async () =>
    (await listQueues(management)).queues.find((one) => one.vhost === vhost && one.name === name)
  // The server answers 404 for a queue whose home node is down, but lists it.
  const lost = answer.status === 404 ? await listed() : undefined
  if (lost && !serving.has(lost.state)) return { ...unread, state: lost.state, node: lost.node }
  const json = object(content(answer, what, account))
  const head = number(json, 'head_message_timestamp')
  const stats = object(json.message_stats)
  const reported = {
    state: words(json.state, account, 32),
    node: words(json.node, account),
    counted: number(json, 'messages_ready') !== undefined,
    ready: number(json, 'messages_ready'),
    unacknowledged: number(json, 'messages_unacknowledged'),
    consumers: number(json, 'consumers'),
    head: head === undefined ? undefined : head * 1_000,
    delivered: number(stats, 'deliver_get') ?? 0,
    rate: number(object(stats.deliver_get_details), 'rate') ?? 0,
  }
  if (reported.counted) return reported
  // Statistics come with the first interval. Until then, the server counts on request.
  const { ready, unacknowledged } = (await listed()) ?? {}
  // Without statistics, the server refuses to list consumers.
  const takers = uncounted.has(management) ? undefined : await countConsumers(management, { name, vhost })
  return { ...reported, ready, unacknowledged, consumers: takers, uncounted: uncounted.has(management) }
}

const unread: Queue = {
  state: '',
  node: '',
  counted: false,
  ready: undefined,
  unacknowledged: undefined,
  consumers: undefined,
  head: undefined,
  delivered: 0,
  rate: 0,
}

/** The consumers of a queue, from the list of its vhost. */
async function countConsumers(
  management: Management,
  { name, vhost }: { readonly name: string; readonly vhost: string },
): Promise<number> {
  const account = await management.account()
  const path = `consumers/${encodeURIComponent(vhost)}?columns=queue.name`
  const all = list(content(await account.get(path), 'consumers', account))
  return all.filter((one) => object(object(one).queue).name === name).length
}

/** A configured queue, and its report at `date`. */
type Reading = { readonly of: QueueSettings; readonly date: Date } & ClassifiedAttempt<Queue>

/** The first readings of each connection, for the check that reads the queues again. */
const readings = new WeakMap<Management, Reading[]>()

async function* readQueues(
  management: Management,
  { queues = [] }: Pick<Values<typeof settings>, 'queues'>,
  context: CheckContext,
): AsyncGenerator<Reading> {
  const all: Reading[] = []
  readings.set(management, all)
  for (const of of queues) {
    context.step('queue')
    const attempted = await attempt(management, context, () => readQueue(management, of))
    const reading = { of, date: context.date(), ...attempted }
    all.push(reading)
    yield reading
  }
}

const nameOf = ({ name }: { readonly name: string }): string => `queue ${quote(name, 80)}`

/** A queue that serves clients, with its figures; the check `queue` reports all others. */
function figuresOf(reading: Reading) {
  if ('failure' in reading) return undefined
  const { ready, ...figures } = reading.observation
  return serving.has(figures.state) && ready !== undefined ? { ready, ...figures } : undefined
}

const itemsOf = ({ queues = [] }: Pick<Values<typeof settings>, 'queues'>): readonly string[] =>
  queues.map(({ name }) => name)

/** The parts that the checks of each queue have in common. */
const ofQueues = { depth: 'Standard', settings, privilege, observe: readQueues, items: itemsOf } as const

export const queue = onManagement({
  ...ofQueues,
  results: { queue: 'Each configured queue exists, works, and has a number of waiting messages within the limit' },
  evaluate: (reading) => {
    if ('failure' in reading) return about(reading.of.name, failedAttempt('queue', reading.failure))
    return about(reading.of.name, evaluateQueue(reading.observation, reading.of))
  },
})

function evaluateQueue({ state, node, ready: value }: Queue, of: QueueSettings): Result<'queue'> {
  const name = nameOf(of)
  const home = node === '' ? '' : ` on its home node ${node}`
  if (!serving.has(state))
    return fail('queue', 'data', `${name} is ${quote(state, 32)}${home} and does not serve clients`)
  // The server collects no statistics, and has more queues than svc lists.
  if (value === undefined) return warn('queue', `${name}: the server reports no statistics for it (yet)`)
  return atMost({ check: 'queue', what: `${name}: messages ready:`, value, unit: 'count', threshold: of.ready })
}

export const consumers = onManagement({
  ...ofQueues,
  results: { consumers: 'The queue has enough consumers' },
  evaluate: (reading) => {
    const { of } = reading
    const figures = figuresOf(reading)
    if (!figures) return []
    const value = figures.consumers
    // One consumer is the default, which nobody has asked for.
    if (value === undefined && figures.uncounted && of.consumers <= 1) return []
    if (value === undefined) {
      const why = `${nameOf(of)}: the server does not report its consumers`
      return about(of.name, notChecked('consumers', 'missing', why))
    }
    const has = `${nameOf(of)}: ${count(value, 'consumer')}`
    const message = withThreshold(has, { limit: of.consumers }, 'count', 'atLeast')
    const measurement = { value, unit: 'count', limit: of.consumers, bound: 'atLeast' } as const
    const result =
      value >= of.consumers
        ? ok('consumers', message, { measurement })
        : fail('consumers', 'data', `${message}: check the workers, not the server`, { measurement })
    return about(of.name, result)
  },
})

export const unacknowledged = onManagement({
  ...ofQueues,
  items: ({ queues = [] }) => itemsOf({ queues: queues.filter((one) => one.unacknowledged !== undefined) }),
  results: {
    unacknowledged: 'The number of unacknowledged messages is within the limit; omitted without `unacknowledged`',
  },
  evaluate: (reading) => {
    const { of } = reading
    const figures = figuresOf(reading)
    if (!of.unacknowledged || !figures) return []
    const value = figures.unacknowledged
    const what = `${nameOf(of)}: unacknowledged messages:`
    const figure = `${nameOf(of)}: the number of unacknowledged messages`
    const threshold = of.unacknowledged
    return about(of.name, atMost({ check: 'unacknowledged', what, figure, value, unit: 'count', threshold }))
  },
})

export const oldestMessage = onManagement({
  ...ofQueues,
  depth: 'Advanced',
  results: {
    'oldest message': 'The message at the head of the queue is not too old; omitted where it has no timestamp',
  },
  evaluate: (reading) => {
    const { of, date } = reading
    const { head, ready = 0 } = figuresOf(reading) ?? {}
    // Messages without a timestamp have no known age.
    if (head === undefined || ready === 0) return []
    const what = `${nameOf(of)}: oldest message has waited`
    const value = Math.max(0, date.getTime() - head)
    return about(of.name, atMost({ check: 'oldest message', what, value, unit: 'duration', threshold: of.oldest }))
  },
})

/** True if messages wait and consumers are connected, but no message was delivered recently. */
const isSuspicious = ({ counted, ready, consumers: takers, rate }: Queue): boolean =>
  counted && (ready ?? 0) > 0 && (takers ?? 0) > 0 && rate === 0

/** Reads a queue that seems stalled again, after a pause. */
export const stalled = onManagement({
  depth: 'Advanced',
  results: { stalled: 'A queue with messages and consumers delivers messages' },
  settings: {
    ...settings,
    stalled: {
      type: 'duration',
      default: 6_000,
      doc: 'Maximum time that a queue with messages and consumers delivers none; at least the statistics interval of the server',
    },
  },
  last: true,
  privilege,
  items: itemsOf,
  async *observe(management, { stalled: pauseMs }, context) {
    const suspicious = (readings.get(management) ?? []).flatMap((reading) =>
      'observation' in reading && isSuspicious(reading.observation)
        ? [{ of: reading.of, before: reading.observation }]
        : [],
    )
    if (suspicious.length === 0) return
    // Statistics are a few seconds old, so only a queue without a change between two of them is stalled.
    const ms = Math.min(pauseMs, context.msLeft() / 2)
    await wait(ms, undefined, { signal: context.signal })
    for (const { of, before } of suspicious) {
      context.step('stalled')
      yield { of, before, ms, ...(await attempt(management, context, () => readQueue(management, of))) }
    }
  },
  evaluate: (piece) => {
    if ('failure' in piece) return about(piece.of.name, failedAttempt('stalled', piece.failure))
    const { of, before, observation: after, ms } = piece
    const name = nameOf(of)
    const isStalled = isSuspicious(before) && isSuspicious(after) && before.delivered === after.delivered
    if (!isStalled) return about(of.name, ok('stalled', `${name}: delivering messages`))
    const unconfirmed = after.unacknowledged === undefined ? '' : ` with ${after.unacknowledged} unacknowledged`
    const waiting = `${count(after.ready ?? 0, 'message')} ready, none delivered in ${showDuration(ms)}`
    const takers = `${count(after.consumers ?? 0, 'consumer')}${unconfirmed}`
    return about(of.name, warn('stalled', `${name}: ${waiting} to ${takers}: are they stuck?`))
  },
})

export const deadLetters = onManagement({
  depth: 'Advanced',
  results: { 'dead letters': 'The number of dead letters is within the limit' },
  settings: {
    deadLetters: {
      type: 'groups',
      doc: 'Dead-letter queues to check',
      fields: {
        name: { type: 'text', observed: true, required: true, doc: 'Name of the queue' },
        vhost: { type: 'text', observed: true, default: '/', doc: 'Virtual host of the queue' },
        messages: {
          type: 'threshold',
          unit: 'count',
          default: { warn: 0, limit: 10 },
          doc: 'Maximum number of messages in the queue',
        },
      },
    },
  },
  privilege,
  items: ({ deadLetters = [] }) => deadLetters.map(({ name }) => name),
  async *observe(management, { deadLetters: queues = [] }, context) {
    for (const of of queues) {
      context.step('dead letters')
      yield { of, ...(await attempt(management, context, () => readQueue(management, of))) }
    }
  },
  evaluate: (piece) => {
    if ('failure' in piece) return about(piece.of.name, failedAttempt('dead letters', piece.failure))
    const { of, observation } = piece
    const name = nameOf(of)
    const { ready, unacknowledged } = observation
    if (ready === undefined)
      return about(of.name, warn('dead letters', `${name}: the server reports no statistics for it (yet)`))
    const value = unacknowledged === undefined ? undefined : ready + unacknowledged
    const what = `${name}: dead letters:`
    const figure = `${name}: the number of unacknowledged dead letters`
    return about(of.name, atMost({ check: 'dead letters', what, figure, value, unit: 'count', threshold: of.messages }))
  },
})

import { showDuration } from '../../../base/format.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { SettingsSpec, Threshold, Values } from '../../../base/settings/index.ts'
import { jsonText, parseJsonPath, readDate, readJsonPath } from '../../assert/document.ts'
import { about, atMost, attempt, type Failure, fail, failedAttempt, ok, type Result, warn } from '../../engine/index.ts'
import { onRedis, type RedisConnection } from './connection.ts'
import { figureOf, listOf, type RedisReply, TooLargeError, textOf } from './resp.ts'

export const queuesSetting = {
  type: 'groups',
  doc: 'Lists, streams or sorted sets used as queues',
  fields: {
    key: { type: 'text', observed: true, required: true, doc: 'Key of the queue, in the database of the URL' },
    group: {
      type: 'text',
      observed: true,
      doc: 'For a stream: the consumer group whose unread and unacknowledged entries are counted (Redis 7)',
    },
    length: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 1_000 },
      doc: 'Maximum number of waiting items',
    },
    age: {
      type: 'threshold',
      unit: 'duration',
      doc: 'Maximum time that the oldest item has waited. The IDs of a stream contain it; for lists and sorted sets, set time',
    },
    time: {
      type: 'text',
      doc: 'Where the date of an item is. In a list of JSON items: a path ($.enqueued_at for Sidekiq) to a date in ISO 8601, seconds or milliseconds. In a sorted set: score. The lists of BullMQ and RQ contain only IDs without dates, so their age is unknown',
    },
    oldest: {
      type: 'choice',
      values: ['left', 'right'],
      doc: 'For a list: the end from which workers take items. right (default): RPOP or BRPOP, as Sidekiq does; left: LPOP or BLPOP',
    },
    scoreUnit: {
      type: 'choice',
      values: ['seconds', 'milliseconds'],
      doc: 'For a sorted set: the unit of its scores, counted from 1970; default: seconds. An item with a score in the future is not due yet (schedule and retry of Sidekiq)',
    },
  },
} as const satisfies SettingsSpec[string]
type QueueSettings = NonNullable<Values<{ queues: typeof queuesSetting }>['queues']>[number]

const maxQueues = 100

/** Why the queues cannot be used together, or undefined. */
export function validateQueues(queues: readonly QueueSettings[] = []): string | undefined {
  if (queues.length > maxQueues) return `queues has more than ${maxQueues} entries: list fewer`
  return queues.map(validateQueue).find((problem) => problem !== undefined)
}

function validateQueue(queue: QueueSettings): string | undefined {
  const { key, group, age, time, oldest, scoreUnit } = queue
  const of = `the queue ${quote(key, 80)}`
  const [alone] = Object.entries({ time, oldest, scoreUnit }).find(([, value]) => value !== undefined) ?? []
  if (alone === undefined) return undefined
  if (age === undefined) return `${of} has ${alone} without age: set the maximum age, such as age: 5m`
  if (group !== undefined)
    return `${of} has both group and ${alone}: a group belongs to a stream, whose IDs contain the times`
  if (time === undefined) return `${of} has ${alone} without time: set where the date of an item is`
  if (time === 'score')
    return oldest && `${of} has both time: score and oldest: in a sorted set, the lowest score is always the oldest`
  if (scoreUnit !== undefined) return `${of} has scoreUnit, which requires time: score`
  if (parseJsonPath(time) !== undefined) return undefined
  return `${of}: time ${quote(time, 80)} must be score or a JSON path such as $.enqueued_at`
}

/** For example `sorted set "later"`. */
const describe = (type: string, key: string): string => `${type === 'zset' ? 'sorted set' : type} ${quote(key, 80)}`
const forGroup = (group: string | undefined): string =>
  group === undefined ? '' : ` for the group ${quote(group, 64)}`

export const queue = onRedis({
  depth: 'Standard',
  results: { queue: 'The number of waiting items is within the limit' },
  settings: { queues: queuesSetting },
  items: ({ queues = [] }) => queues.map(({ key }) => key),
  privilege: 'ACL SETUSER <account> ~<key> +select +type +llen +xlen +zcard +xinfo|groups',
  async *observe(redis, { queues = [] }, context) {
    for (const { key, group, length: threshold } of queues) {
      context.step('queue')
      yield { key, group, threshold, ...(await attempt(redis, context, () => countItems(redis, key, group))) }
    }
  },
  evaluate: (piece) => {
    if ('failure' in piece) return about(piece.key, failedAttempt('queue', piece.failure))
    return about(piece.key, evaluateLength(piece))
  },
})

type Length = {
  readonly key: string
  readonly group: string | undefined
  readonly threshold: Threshold
  /** `length` is the number of waiting items; undefined if they cannot be counted. */
  readonly observation: { readonly type: string; readonly length: number | undefined }
}

function evaluateLength({ key, group, threshold, observation: { type, length: value } }: Length): Result<'queue'> {
  if (value === undefined) {
    const of = `${quote(key, 80)}${forGroup(group)}`
    return warn(
      'queue',
      `the server does not report how many items of ${of} are waiting (a group's lag requires Redis 7)`,
    )
  }
  const name = type === 'none' ? `queue ${quote(key, 80)} does not exist and counts as empty` : describe(type, key)
  const what = `${name}${forGroup(group)}, items waiting:`
  return atMost({ check: 'queue', what, value, unit: 'count', threshold })
}

/** Only reads: sends TYPE and the counting command of that type. */
async function countItems(redis: RedisConnection, key: string, group: string | undefined) {
  const type = await typeOf(redis, key)
  if (type === 'none') return { type, length: 0 }
  if (type === 'stream' && group !== undefined) return { type, length: await countGroup(redis, key, group) }
  const command = { list: 'LLEN', stream: 'XLEN', zset: 'ZCARD' }[type]
  if (command === undefined) throw notAQueue(key, type)
  return { type, length: figureOf(await redis.ask(command, key)) }
}

const typeOf = async (redis: RedisConnection, key: string): Promise<string> =>
  redis.redact(textOf(await redis.ask('TYPE', key)))

const notAQueue = (key: string, type: string): ProbeError =>
  new ProbeError('data', `${quote(key, 80)} is not a queue: its type is ${quote(type, 32)}`)

/** The number of entries that a consumer group has not read, plus those that it has read but not acknowledged. */
async function countGroup(redis: RedisConnection, key: string, group: string): Promise<number | undefined> {
  const fields = await groupFields(redis, key, group)
  const lag = figureOf(fields.get('lag'))
  const pending = figureOf(fields.get('pending'))
  return lag === undefined || pending === undefined ? undefined : lag + pending
}

/** The fields of one consumer group of a stream, by name. */
async function groupFields(
  redis: RedisConnection,
  key: string,
  group: string,
): Promise<ReadonlyMap<string, RedisReply>> {
  const groups = listOf(await redis.ask('XINFO', 'GROUPS', key)).map(fieldsOf)
  const fields = groups.find((one) => one.get('name') === group)
  if (!fields) throw new ProbeError('data', `the stream ${quote(key, 80)} has no consumer group ${quote(group, 64)}`)
  return fields
}

function fieldsOf(reply: RedisReply): ReadonlyMap<string, RedisReply> {
  const list = listOf(reply)
  return new Map(list.flatMap((name, index) => (index % 2 === 0 ? [[textOf(name), list[index + 1] ?? null]] : [])))
}

/** Whether to check the age of the oldest item of a queue. */
const isAged = ({ age }: QueueSettings): boolean => age?.warn !== undefined || age?.limit !== undefined

/**
 * Reads at most one item of a queue. Redis cannot send part of an item, so one that is too large ends the connection.
 */
export const oldestItem = onRedis({
  depth: 'Advanced',
  results: { 'oldest item': 'The oldest item of a queue has not waited too long; omitted for queues without `age`' },
  settings: { queues: queuesSetting },
  when: ['queues'],
  emptyWhere: 'no queue has `age`',
  items: ({ queues = [] }) => queues.filter(isAged).map(({ key }) => key),
  last: true,
  privilege: 'ACL SETUSER <account> ~<key> +select +type +lindex +zrange +xrange +xpending +xinfo|groups',
  async *observe(redis, { queues = [] }, context) {
    for (const one of queues.filter(isAged)) {
      context.step('oldest item')
      const { key, group, age: threshold = {} } = one
      const attempted = redis.usable
        ? await attempt(redis, context, () => oldestOf(redis, one, context.date))
        : { failure: unread(key) }
      yield { key, group, threshold, ...attempted }
    }
  },
  evaluate: (piece) => {
    if ('failure' in piece) return about(piece.key, failedAttempt('oldest item', piece.failure))
    return about(piece.key, evaluateAge(piece))
  },
})

/** When the item that has waited longest was added to a queue. Milliseconds since 1970. */
type Oldest = {
  readonly type: string
  /** Undefined if the queue is empty. */
  readonly at: number | 'too large' | undefined
  readonly now: number
}
type Age = Omit<Length, 'observation'> & { readonly observation: Oldest }

/** The tolerance for clock differences, in milliseconds. A date further in the future is invalid. */
const maxAheadMs = 60_000

/** Evaluates how long the oldest item has waited. An item without a valid date is never ok. */
function evaluateAge({ key, group, threshold, observation: { type, at, now } }: Age): Result<'oldest item'> {
  const of = `${describe(type, key)}${forGroup(group)}`
  if (at === 'too large') {
    const why = 'is larger than 1 MiB and was not read, so its age is unknown'
    return fail('oldest item', 'data', `the oldest item of ${of} ${why}`)
  }
  const limit = threshold.limit ?? threshold.warn
  const measurement = { value: 0, unit: 'milliseconds', limit } as const
  if (at === undefined) {
    const none =
      type === 'none' ? `${quote(key, 80)} does not exist, so nothing is waiting` : `nothing is waiting in ${of}`
    return ok('oldest item', none, { measurement })
  }
  const ahead = at - now
  if (ahead > maxAheadMs && type === 'zset') {
    return ok('oldest item', `${of}: nothing is due yet, the first in ${showDuration(ahead)}`, { measurement })
  }
  if (ahead > maxAheadMs) {
    const cause = 'a clock is wrong, or the time lacks its time zone'
    const dated = `is dated ${showDuration(ahead)} ahead of our clock`
    return fail('oldest item', 'data', `the oldest item of ${of} ${dated}: ${cause}`)
  }
  const what = `${of}: oldest item has waited`
  return atMost({ check: 'oldest item', what, value: Math.max(0, -ahead), unit: 'duration', threshold })
}

const unread = (key: string): Failure => ({
  fault: 'data',
  message: `${quote(key, 80)} not checked: the previous item ended the connection`,
  details: [],
})

async function oldestOf(redis: RedisConnection, one: QueueSettings, date: () => Date): Promise<Oldest> {
  const type = await typeOf(redis, one.key)
  const at = await oldestOfType(redis, one, type).catch((cause: unknown) => {
    if (cause instanceof TooLargeError) return 'too large' as const
    throw cause
  })
  return { type, at, now: date().getTime() }
}

function oldestOfType(redis: RedisConnection, one: QueueSettings, type: string): Promise<number | undefined> {
  switch (type) {
    case 'none':
      return Promise.resolve(undefined)
    case 'list':
      return oldestOfList(redis, one)
    case 'stream':
      return oldestOfStream(redis, one)
    case 'zset':
      return oldestOfSortedSet(redis, one)
    default:
      return Promise.reject(notAQueue(one.key, type))
  }
}

const unfit = (message: string): ProbeError => new ProbeError('data', message)

async function oldestOfList(
  redis: RedisConnection,
  { key, time, oldest = 'right' }: QueueSettings,
): Promise<number | undefined> {
  const steps = time === undefined ? undefined : parseJsonPath(time)
  if (time === undefined || steps === undefined) {
    throw unfit(`${quote(key, 80)} is a list: time must be the path of the date in an item, such as $.enqueued_at`)
  }
  const item = await redis.ask('LINDEX', key, oldest === 'left' ? '0' : '-1')
  // The item was removed after the TYPE query.
  if (item === null) return undefined
  const of = `the oldest item of ${quote(key, 80)}`
  let document: unknown
  try {
    // Of any depth: only the path is followed, and nothing walks through the rest.
    document = JSON.parse(textOf(item))
  } catch {
    throw unfit(`${of} is not JSON, so it has no ${sanitize(time, 80)}`)
  }
  const match = readJsonPath(document, steps)
  if (match === undefined) throw unfit(`${of} has no ${sanitize(time, 80)}`)
  // Objects and arrays are not dates, and deep ones could not be serialized.
  const written = typeof match.value === 'object' && match.value !== null ? '{…}' : jsonText(match.value)
  const at = readDate(written)
  if (at !== undefined) return at
  const value = quote(redis.redact(written), 40)
  throw unfit(`${of} has no date at ${sanitize(time, 80)}: ${value}. Expected ISO 8601, seconds or milliseconds`)
}

/** True for plausible times: milliseconds since 1970, between 1973 and 5138. */
const isTime = (ms: number): boolean => ms >= 1e11 && ms < 1e14

async function oldestOfSortedSet(
  redis: RedisConnection,
  { key, time, scoreUnit = 'seconds' }: QueueSettings,
): Promise<number | undefined> {
  if (time !== 'score') throw unfit(`${quote(key, 80)} is a sorted set, whose times are its scores: set time: score`)
  const [, score] = listOf(await redis.ask('ZRANGE', key, '0', '0', 'WITHSCORES'))
  if (score === undefined) return undefined
  const ms = Number(textOf(score)) * (scoreUnit === 'seconds' ? 1_000 : 1)
  if (isTime(ms)) return ms
  const other = scoreUnit === 'seconds' ? 'milliseconds' : 'seconds'
  throw unfit(
    `the lowest score of ${quote(key, 80)}, ${quote(textOf(score), 32)}, is not a time in ${scoreUnit}: are the scores ${other} (scoreUnit), or not times at all?`,
  )
}

/**
 * The oldest entry of a stream. For a consumer group, checks the unacknowledged entries first and then the unread ones,
 * because ids increase.
 */
async function oldestOfStream(redis: RedisConnection, one: QueueSettings): Promise<number | undefined> {
  const { key, group, time } = one
  if (time !== undefined) throw unfit(`${quote(key, 80)} is a stream, whose IDs contain the times: remove time`)
  if (group === undefined) return timeOf(key, await firstId(redis, key, '-'))
  const fields = await groupFields(redis, key, group)
  const pending = figureOf(fields.get('pending'))
  if (pending === undefined) throw unfit(`the server does not report the unacknowledged entries of ${quote(group, 64)}`)
  if (pending > 0) {
    const [, smallest] = listOf(await redis.ask('XPENDING', key, group))
    // All entries may have been acknowledged in the meantime.
    if (typeof smallest === 'string') return timeOf(key, smallest)
  }
  return timeOf(key, await firstId(redis, key, idAfter(textOf(fields.get('last-delivered-id')))))
}

async function firstId(redis: RedisConnection, key: string, from: string): Promise<string | undefined> {
  const [entry] = listOf(await redis.ask('XRANGE', key, from, '+', 'COUNT', '1'))
  const [id] = listOf(entry)
  return id === undefined ? undefined : textOf(id)
}

const maxSequence = 2n ** 64n - 1n

/** The smallest id after a given one. Redis before 6.2 has no exclusive ranges. */
function idAfter(id: string): string {
  const [ms, sequence] = /^\d{1,20}-\d{1,20}$/.test(id) ? id.split('-').map(BigInt) : []
  if (ms === undefined || sequence === undefined) return '-'
  return sequence < maxSequence ? `${ms}-${sequence + 1n}` : `${ms + 1n}-0`
}

function timeOf(key: string, id: string | undefined): number | undefined {
  if (id === undefined) return undefined
  const ms = Number(/^(\d{1,20})-\d{1,20}$/.exec(id)?.[1] ?? Number.NaN)
  if (isTime(ms)) return ms
  throw unfit(`the ID ${quote(id, 48)} in the stream ${quote(key, 80)} is not a time: its writer assigns custom IDs`)
}

import { readDate } from '../../assert/document.ts'
import { jsonText, parseJsonPath, readJsonPath } from '../../assert/json-path.ts'
import { quoted, said } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { type Asker, ask, figureOf, groupOf, noQueue, type Oldest, textOf, typeOf } from './look.ts'
import { type Reply, TooLargeError } from './resp.ts'
import type { QueueSettings } from './settings.ts'

/** Reads only, and one item at most. Redis gives no part of an item: one that is too large ends the connection. */
export async function lookAtOldest(asker: Asker, queue: QueueSettings): Promise<Oldest> {
  const { key, group, age: threshold = {} } = queue
  const type = await typeOf(asker, key)
  const at = await oldestOf(asker, queue, type).catch((cause: unknown) => {
    if (cause instanceof TooLargeError) return 'too large' as const
    throw cause
  })
  return { see: 'oldest', key, group, type, threshold, at, now: asker.context.date().getTime() }
}

function oldestOf(asker: Asker, queue: QueueSettings, type: string): Promise<number | undefined> {
  switch (type) {
    case 'none':
      return Promise.resolve(undefined)
    case 'list':
      return oldestOfList(asker, queue)
    case 'stream':
      return oldestOfStream(asker, queue)
    case 'zset':
      return oldestOfSortedSet(asker, queue)
    default:
      return Promise.reject(noQueue(queue.key, type))
  }
}

const unfit = (message: string): ProbeError => new ProbeError('data', message)

async function oldestOfList(asker: Asker, { key, time, oldest = 'right' }: QueueSettings): Promise<number | undefined> {
  const steps = time === undefined ? undefined : parseJsonPath(time)
  if (time === undefined || steps === undefined) {
    throw unfit(
      `${quoted(key, 80)} is a list: time must say where in an item its date stands, by a path such as $.enqueued_at`,
    )
  }
  const item = await ask(asker, 'LINDEX', key, oldest === 'left' ? '0' : '-1')
  // It was taken since we asked for the type.
  if (item === null) return undefined
  const of = `the oldest item of ${quoted(key, 80)}`
  let document: unknown
  try {
    document = JSON.parse(textOf(item))
  } catch {
    throw unfit(`${of} is not JSON, so that nothing stands at ${said(time, 80)}`)
  }
  const found = readJsonPath(document, steps)
  if (found === undefined) throw unfit(`${of} has no ${said(time, 80)}`)
  // What nests is no date, and too deep it could not even be written out.
  const written = typeof found.value === 'object' && found.value !== null ? '{…}' : jsonText(found.value)
  const at = readDate(written)
  if (at !== undefined) return at
  const shown = quoted(asker.link.hide(written), 40)
  throw unfit(`${of} has at ${said(time, 80)} no date: ${shown}. ISO 8601, seconds or milliseconds are read`)
}

/** Milliseconds since 1970, from 1973 to 5138: what lies outside is no time. */
const isTime = (ms: number): boolean => ms >= 1e11 && ms < 1e14

async function oldestOfSortedSet(
  asker: Asker,
  { key, time, scoreUnit = 'seconds' }: QueueSettings,
): Promise<number | undefined> {
  if (time !== 'score')
    throw unfit(`${quoted(key, 80)} is a sorted set: its times are its scores, so write time: score`)
  const reply = await ask(asker, 'ZRANGE', key, '0', '0', 'WITHSCORES')
  const [, score] = listOf(reply)
  if (score === undefined) return undefined
  const ms = Number(textOf(score)) * (scoreUnit === 'seconds' ? 1_000 : 1)
  if (isTime(ms)) return ms
  const other = scoreUnit === 'seconds' ? 'milliseconds' : 'seconds'
  throw unfit(
    `the lowest score of ${quoted(key, 80)}, ${quoted(textOf(score), 32)}, is no time in ${scoreUnit}: are they ${other} (scoreUnit), or no times at all?`,
  )
}

/** Of a group what it has not acknowledged, and then what it has not read; its ids rise. */
async function oldestOfStream(asker: Asker, queue: QueueSettings): Promise<number | undefined> {
  const { key, group, time } = queue
  if (time !== undefined) throw unfit(`${quoted(key, 80)} is a stream: its ids are its times, so leave time out`)
  if (group === undefined) return timeOf(key, await firstId(asker, key, '-'))
  const found = await groupOf(asker, key, group)
  if ((figureOf(found.get('pending')) ?? 0) > 0) {
    const [, smallest] = listOf(await ask(asker, 'XPENDING', key, group))
    // All may have been acknowledged since.
    if (typeof smallest === 'string') return timeOf(key, smallest)
  }
  return timeOf(key, await firstId(asker, key, idAfter(textOf(found.get('last-delivered-id')))))
}

async function firstId(asker: Asker, key: string, from: string): Promise<string | undefined> {
  const [entry] = listOf(await ask(asker, 'XRANGE', key, from, '+', 'COUNT', '1'))
  const [id] = listOf(entry)
  return id === undefined ? undefined : textOf(id)
}

const listOf = (reply: Reply | undefined): readonly Reply[] => (Array.isArray(reply) ? (reply as readonly Reply[]) : [])

const largestSequence = 2n ** 64n - 1n

/** The least id after one. Servers before Redis 6.2 know no range without its start. */
function idAfter(id: string): string {
  const [ms, sequence] = /^\d{1,20}-\d{1,20}$/.test(id) ? id.split('-').map(BigInt) : []
  if (ms === undefined || sequence === undefined) return '-'
  return sequence < largestSequence ? `${ms}-${sequence + 1n}` : `${ms + 1n}-0`
}

function timeOf(key: string, id: string | undefined): number | undefined {
  if (id === undefined) return undefined
  const ms = Number(/^(\d{1,20})-\d{1,20}$/.exec(id)?.[1] ?? Number.NaN)
  if (isTime(ms)) return ms
  throw unfit(
    `the id ${quoted(id, 48)} in the stream ${quoted(key, 80)} is no time: who writes it makes ids of its own`,
  )
}

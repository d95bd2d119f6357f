import { randomUUID } from 'node:crypto'
import { figure, type Row, text } from '../../database/index.ts'
import type { CheckContext } from '../../engine/index.ts'
import { quoted } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { redisFault, sound } from './faults.ts'
import type { RedisLink } from './link.ts'
import { isError, type Reply } from './resp.ts'
import type { QueueSettings, RedisSettings, RedisTarget } from './settings.ts'

/** What the checks look at, as bare figures; durations in milliseconds. */
export type Info = { readonly see: 'info'; readonly row: Row; readonly advanced: boolean; readonly date: Date }
export type Queue = {
  readonly see: 'queue'
  readonly key: string
  readonly threshold: RedisSettings['clients']
  readonly type: string
  /** Items that wait; undefined where they cannot be counted. */
  readonly length: number | undefined
  readonly group: string | undefined
}
/** When the item that waits the longest was put into a queue. Milliseconds since 1970. */
export type Oldest = {
  readonly see: 'oldest'
  readonly key: string
  readonly group: string | undefined
  readonly type: string
  readonly threshold: NonNullable<QueueSettings['age']>
  /** Undefined: nothing waits. */
  readonly at: number | 'too large' | undefined
  readonly now: number
}
export type Cluster = { readonly see: 'cluster'; readonly row: Row }
export type Pings = { readonly see: 'pings'; readonly ms: readonly number[] }
export type RoundTrip = { readonly see: 'round trip'; readonly ms: number }
export type LeftOut = { readonly see: 'left out'; readonly check: string; readonly why: string }
export type RedisLook = Info | Queue | Oldest | Cluster | Pings | RoundTrip | LeftOut

export type Asker = { readonly link: RedisLink; readonly target: RedisTarget; readonly context: CheckContext }

/** Fields beyond this are not read: INFO has two hundred. */
const mostFields = 5_000

/** The `name:value` lines of INFO and CLUSTER INFO. */
const parseInfo = (info: string, { hide }: RedisLink): Row =>
  Object.fromEntries(
    info
      .split(/\r?\n/, mostFields)
      .filter((line) => !line.startsWith('#') && line.includes(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), hide(line.slice(line.indexOf(':') + 1))]),
  )

export const ask = async ({ link, target }: Asker, ...args: [string, ...string[]]): Promise<Reply> =>
  sound(await link.ask(...args), link, target.user)

export const textOf = (reply: Reply | undefined): string => (typeof reply === 'string' ? reply : '')

export async function lookAtInfo(asker: Asker, advanced: boolean): Promise<Info> {
  const row = parseInfo(textOf(await ask(asker, 'INFO')), asker.link)
  if (text(row, 'role') === '') throw new ProbeError('protocol', `${asker.link.address} tells no role in its INFO`)
  return { see: 'info', row, advanced, date: asker.context.date() }
}

/** Reads only: TYPE and the count that belongs to it. */
export async function lookAtQueue(asker: Asker, { key, group, length: threshold }: QueueSettings): Promise<Queue> {
  const type = await typeOf(asker, key)
  const seen = { see: 'queue', key, threshold, type, group } as const
  if (type === 'none') return { ...seen, length: 0 }
  if (type === 'stream' && group !== undefined) return { ...seen, length: await waitingIn(asker, key, group) }
  const counting = { list: 'LLEN', stream: 'XLEN', zset: 'ZCARD' }[type]
  if (counting === undefined) throw noQueue(key, type)
  return { ...seen, length: figureOf(await ask(asker, counting, key)) }
}

export const typeOf = async (asker: Asker, key: string): Promise<string> =>
  asker.link.hide(textOf(await ask(asker, 'TYPE', key)))

export const noQueue = (key: string, type: string): ProbeError =>
  new ProbeError('data', `${quoted(key, 80)} is no queue: it is a ${quoted(type, 32)}`)

export const figureOf = (reply: Reply | undefined): number | undefined =>
  typeof reply === 'number' ? reply : undefined

/** What a consumer group has not read, and what it has read and not acknowledged. */
async function waitingIn(asker: Asker, key: string, group: string): Promise<number | undefined> {
  const found = await groupOf(asker, key, group)
  const lag = figureOf(found.get('lag'))
  const pending = figureOf(found.get('pending'))
  return lag === undefined || pending === undefined ? undefined : lag + pending
}

/** What a stream tells of one of its groups, by name. */
export async function groupOf(asker: Asker, key: string, group: string): Promise<ReadonlyMap<string, Reply>> {
  const groups = await ask(asker, 'XINFO', 'GROUPS', key)
  const rows = Array.isArray(groups) ? groups.map((one: Reply) => pairs(one)) : []
  const found = rows.find((row) => row.get('name') === group)
  if (!found) throw new ProbeError('data', `the stream ${quoted(key, 80)} has no consumer group ${quoted(group, 64)}`)
  return found
}

function pairs(reply: Reply): ReadonlyMap<string, Reply> {
  const list: readonly Reply[] = Array.isArray(reply) ? reply : []
  return new Map(list.flatMap((name, index) => (index % 2 === 0 ? [[textOf(name), list[index + 1] ?? null]] : [])))
}

export async function lookAtCluster(asker: Asker): Promise<Cluster> {
  return { see: 'cluster', row: parseInfo(textOf(await ask(asker, 'CLUSTER', 'INFO')), asker.link) }
}

const pingCount = 10

export async function lookAtPings(asker: Asker): Promise<Pings> {
  const ms: number[] = []
  while (ms.length < pingCount) {
    const start = asker.context.now()
    // What it answers has been judged by now.
    await asker.link.ask('PING')
    ms.push(asker.context.now() - start)
  }
  return { see: 'pings', ms }
}

/** Milliseconds after which the probe's key is gone, also when this process is. */
const expiresMs = 60_000
/** In a cluster a key lies where its name says: other names are tried until one lies here. */
const mostNames = 32

/** Writes a key of its own, reads it and deletes it. A replica is left alone. */
export async function roundTrip(asker: Asker, info: Row): Promise<RoundTrip | LeftOut> {
  const check = 'round trip'
  const { link, target, context } = asker
  if (text(info, 'role') !== 'master') return { see: 'left out', check, why: 'a replica takes no writes' }
  for (let tries = 0; tries < mostNames; tries += 1) {
    const key = `svc:probe:${randomUUID()}`
    const wrote = randomUUID()
    const start = context.now()
    const reply = await link.ask('SET', key, wrote, 'NX', 'PX', String(expiresMs))
    if (isError(reply) && /^(MOVED|ASK) /.test(reply.error)) continue
    if (isError(reply)) throw redisFault(reply.error, link, target.user)
    if (reply !== 'OK') throw new ProbeError('data', 'the key of the probe was not written')
    try {
      if ((await ask(asker, 'GET', key)) !== wrote)
        throw new ProbeError('data', 'what was written is not what was read')
    } finally {
      if (link.usable) await ask(asker, 'DEL', key)
    }
    return { see: 'round trip', ms: context.now() - start }
  }
  return { see: 'left out', check, why: `none of ${mostNames} keys lies on this node of the cluster` }
}

/** How far a server that loads its data has come, in words; it answers INFO meanwhile. */
export async function loadingProgress({ link }: Asker): Promise<string> {
  const reply = await link.ask('INFO', 'persistence')
  const row = typeof reply === 'string' ? parseInfo(reply, link) : {}
  const [done, left] = [figure(row, 'loading_loaded_perc'), figure(row, 'loading_eta_seconds')]
  return done === undefined ? '' : `${done} % are loaded${left === undefined ? '' : `, about ${left} s are left`}`
}

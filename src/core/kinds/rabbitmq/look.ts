import { said } from '../../net/text.ts'
import { content, type Json, list, type Management, object, signedIn } from './management.ts'

const number = (json: Json, name: string): number | undefined => {
  const value = json[name]
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}
/** A text of the server's, fit to be shown; empty for what is none. */
const words = (value: unknown, { hide }: Management, max = 80): string =>
  typeof value === 'string' ? said(hide(value), max) : ''

/** What the checks look at, as bare figures. What the server does not tell is undefined. */
export type Overview = { readonly version: string; readonly ready: number | undefined }
export async function lookAtOverview(management: Management, username: string): Promise<Overview> {
  const body = object(signedIn(await management.ask('overview'), username, management))
  return {
    version: words(body.rabbitmq_version, management, 32),
    ready: number(object(body.queue_totals), 'messages_ready'),
  }
}

export type Share = { readonly used: number; readonly of: number }
export type Node = {
  readonly name: string
  readonly running: boolean
  readonly memoryAlarm: boolean
  readonly diskAlarm: boolean
  readonly memory: Share | undefined
  readonly fileDescriptors: Share | undefined
  readonly sockets: Share | undefined
  readonly diskFree: Share | undefined
  /** Nodes that it does not see any more. */
  readonly partitions: readonly string[]
}
const mostNodes = 200

export async function lookAtNodes(management: Management, username: string): Promise<readonly Node[]> {
  const body = content(await management.ask('nodes'), 'nodes', username, management)
  return list(body)
    .slice(0, mostNodes)
    .map((one) => nodeOf(object(one), management))
}

function nodeOf(json: Json, management: Management): Node {
  const share = (used: string, of: string): Share | undefined => {
    const [a, b] = [number(json, used), number(json, of)]
    return a === undefined || b === undefined || b <= 0 ? undefined : { used: a, of: b }
  }
  return {
    name: words(json.name, management),
    running: json.running === true,
    memoryAlarm: json.mem_alarm === true,
    diskAlarm: json.disk_free_alarm === true,
    memory: share('mem_used', 'mem_limit'),
    fileDescriptors: share('fd_used', 'fd_total'),
    sockets: share('sockets_used', 'sockets_total'),
    diskFree: share('disk_free', 'disk_free_limit'),
    partitions: list(json.partitions)
      .slice(0, mostNodes)
      .map((name) => words(name, management)),
  }
}

export type Queue = {
  /** Empty: not told. */
  readonly state: string
  readonly ready: number | undefined
  readonly unacknowledged: number | undefined
  readonly consumers: number | undefined
  /** Milliseconds since 1970 of the message at its head, where its publisher set one. */
  readonly head: number | undefined
  /** How many messages it has ever delivered, and how many a second lately. */
  readonly delivered: number
  readonly rate: number
}

export async function lookAtQueue(
  management: Management,
  { name, vhost }: { readonly name: string; readonly vhost: string },
  username: string,
): Promise<Queue> {
  const path = `queues/${encodeURIComponent(vhost)}/${encodeURIComponent(name)}`
  const what = `queue "${said(name, 80)}" in the vhost "${said(vhost, 80)}"`
  const json = object(content(await management.ask(path), what, username, management))
  const head = number(json, 'head_message_timestamp')
  const stats = object(json.message_stats)
  return {
    state: words(json.state, management, 32),
    ready: number(json, 'messages_ready'),
    unacknowledged: number(json, 'messages_unacknowledged'),
    consumers: number(json, 'consumers'),
    head: head === undefined ? undefined : head * 1_000,
    delivered: number(stats, 'deliver_get') ?? 0,
    rate: number(object(stats.deliver_get_details), 'rate') ?? 0,
  }
}

/** Messages wait and somebody is there to take them, but lately none was taken. */
export const suspicious = ({ ready, consumers, rate }: Queue): boolean =>
  (ready ?? 0) > 0 && (consumers ?? 0) > 0 && rate === 0
export const stalled = (before: Queue, after: Queue): boolean =>
  suspicious(before) && suspicious(after) && before.delivered === after.delivered

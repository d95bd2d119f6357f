import { isObject, member } from '../../../base/json.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import type { DrillTrace, TracedHop } from '../receiver.ts'
import type { HttpReply } from './post.ts'

/** How many bytes of each answer are read. */
const maxAlerts = 1_024 * 1_024
const maxStatus = 1_024 * 1_024
const maxMetrics = 8 * 1_024 * 1_024
/** How many names a message lists. */
const maxNames = 5

/** One Alertmanager. */
export type TracedInstance = {
  /** Scheme and host. */
  readonly origin: string
  /** Requests a path below that of the API v2, or `metrics`. `keep`: the bytes to read. Never rejects. */
  readonly get: (path: string, keep: number, signal: AbortSignal) => Promise<HttpReply>
}

/** Notifications by integration: `webhook`, or with the receiver, if Alertmanager names it. */
type Counts = ReadonlyMap<string, { readonly sent: number; readonly failed: number }>
type Drill = {
  /** `unprocessed`, `active` or `suppressed`. */
  readonly state: string
  readonly by: readonly string[]
  readonly receivers: readonly string[]
}

/**
 * How far a drill gets at each instance: whether it lists the alert, where it routes it, and what it has sent since.
 */
export function traceOf(instances: readonly TracedInstance[]): DrillTrace {
  const before = new Map<TracedInstance, Counts>()
  const hasMany = instances.length > 1
  return {
    begin: async (signal) => {
      await Promise.all(
        instances.map(async (instance) => {
          const counts = await countsAt(instance, signal)
          if (typeof counts !== 'string') before.set(instance, counts)
        }),
      )
    },
    look: async (incident, signal) => {
      const all = await Promise.all(
        instances.map(async (instance) => await lookAt(instance, incident, before.get(instance), signal)),
      )
      return all.flatMap((hops, index) => hops.map((hop) => (hasMany ? { ...hop, at: instances[index]?.origin } : hop)))
    },
  }
}

async function lookAt(
  instance: TracedInstance,
  incident: string,
  before: Counts | undefined,
  signal: AbortSignal,
): Promise<readonly TracedHop[]> {
  const drill = await drillAt(instance, incident, signal)
  if (typeof drill === 'string') return [{ hop: 'listed', result: 'not proven', message: `unknown: ${drill}` }]
  if (drill === undefined) {
    return [{ hop: 'listed', result: 'waiting', message: `${instance.origin} accepted the alert and does not list it` }]
  }
  const listed: TracedHop = { hop: 'listed', result: 'proven', message: `${instance.origin} lists the alert` }
  if (drill.state === 'suppressed') {
    const by = drill.by.length === 0 ? 'a time interval or an inhibition' : drill.by.slice(0, maxNames).join(', ')
    return [listed, { hop: 'routed', result: 'failed', message: `${instance.origin} suppresses the alert: ${by}` }]
  }
  if (drill.state !== 'active') {
    return [listed, { hop: 'routed', result: 'waiting', message: `${instance.origin} has not processed the alert` }]
  }
  const integrations = await integrationsAt(instance, drill.receivers, signal)
  const names = drill.receivers
    .slice(0, maxNames)
    .map((name) => quote(name, 64))
    .join(', ')
  if (typeof integrations === 'string') {
    const message = `routed to ${names}; whom that notifies is unknown: ${integrations}`
    return [listed, { hop: 'routed', result: 'not proven', message }]
  }
  if (integrations.length === 0) {
    return [listed, { hop: 'routed', result: 'failed', message: `routed to ${names}, which notifies nobody` }]
  }
  const routed: TracedHop = {
    hop: 'routed',
    result: 'proven',
    message: `routed to ${names} (${integrations.join(', ')})`,
  }
  return [listed, routed, await notifiedAt(instance, integrations, before, signal)]
}

async function notifiedAt(
  instance: TracedInstance,
  integrations: readonly string[],
  before: Counts | undefined,
  signal: AbortSignal,
): Promise<TracedHop> {
  const now = await countsAt(instance, signal)
  const hop = 'notified'
  if (typeof now === 'string' || before === undefined) {
    const why = typeof now === 'string' ? now : 'they could not be read before the drill'
    return { hop, result: 'not proven', message: `the counters of ${instance.origin} are unknown: ${why}` }
  }
  const grown = integrations.map((name) => {
    const [from, to] = [before.get(name), now.get(name)]
    const since = (which: 'sent' | 'failed'): number => Math.max(0, (to?.[which] ?? 0) - (from?.[which] ?? 0))
    return { name, sent: since('sent'), failed: since('failed') }
  })
  const failing = grown.filter(({ failed }) => failed > 0)
  if (failing.length > 0) {
    const counts = failing.map(({ name, failed }) => `${failed} by ${name}`).join(', ')
    return {
      hop,
      result: 'failed',
      message: `notifications of ${instance.origin} failed since the drill began: ${counts}`,
    }
  }
  const sent = grown.filter((one) => one.sent > 0)
  const counts = sent.map((one) => `${one.sent} by ${one.name}`).join(', ')
  return sent.length === 0
    ? {
        hop,
        result: 'waiting',
        message: `${instance.origin} has sent no notification by ${integrations.join(', ')} since the drill began`,
      }
    : {
        hop,
        result: 'not proven',
        message: `sent since the drill began: ${counts}; none failed, but the counters do not say for which alert`,
      }
}

/** The alert of the drill, undefined if it is not listed, or why that is not known. */
async function drillAt(
  instance: TracedInstance,
  incident: string,
  signal: AbortSignal,
): Promise<Drill | string | undefined> {
  const filter = encodeURIComponent('drill="true"')
  const alerts = await jsonAt(instance, `alerts?filter=${filter}`, maxAlerts, signal)
  if (typeof alerts === 'string') return alerts
  const list: readonly unknown[] = Array.isArray(alerts.json) ? alerts.json : []
  const own = list.find((alert) => member(member(alert, 'annotations'), 'incident') === incident)
  if (own === undefined) return undefined
  const status = member(own, 'status')
  const [state, receivers] = [member(status, 'state'), member(own, 'receivers')]
  const texts = (value: unknown): readonly string[] =>
    Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
  const silences = texts(member(status, 'silencedBy')).map((id) => `silence ${sanitize(id, 64)}`)
  const inhibitions = texts(member(status, 'inhibitedBy')).map((id) => `inhibited by ${sanitize(id, 64)}`)
  return {
    state: typeof state === 'string' ? state : '',
    by: [...silences, ...inhibitions],
    receivers: Array.isArray(receivers) ? texts(receivers.map((one) => member(one, 'name'))) : [],
  }
}

/** The integrations of receivers, as `webhook`, or why they are not known. */
async function integrationsAt(
  instance: TracedInstance,
  receivers: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[] | string> {
  const status = await jsonAt(instance, 'status', maxStatus, signal)
  if (typeof status === 'string') return status
  const original = member(member(status.json, 'config'), 'original')
  if (typeof original !== 'string') return `${instance.origin} does not show its configuration`
  const { parse } = await import('yaml')
  let config: unknown
  try {
    config = parse(original)
  } catch {
    return `the configuration that ${instance.origin} shows cannot be read`
  }
  const all = member(config, 'receivers')
  const own = (Array.isArray(all) ? all : []).filter((one) => receivers.includes(String(member(one, 'name'))))
  const names = own.flatMap((one) =>
    isObject(one)
      ? Object.entries(one).flatMap(([key, value]) =>
          key.endsWith('_configs') && Array.isArray(value) && value.length > 0
            ? [key.slice(0, -'_configs'.length)]
            : [],
        )
      : [],
  )
  return [...new Set(names)].map((name) => sanitize(name, 32))
}

const counter = /^alertmanager_notifications(_failed)?_total\{([^}]{0,1000})\} ([0-9.e+]{1,30})$/

/** The numbers of notifications that an instance has sent since its start, or why they are not known. */
async function countsAt(instance: TracedInstance, signal: AbortSignal): Promise<Counts | string> {
  const reply = await instance.get('metrics', maxMetrics, signal)
  const text = bodyIn(reply, instance)
  if (typeof text === 'string') return text
  const counts = new Map<string, { sent: number; failed: number }>()
  for (const line of text.body.split('\n')) {
    if (!line.startsWith('alertmanager_notifications')) continue
    const [, failed, labels = '', value = ''] = counter.exec(line) ?? []
    const name = /(?:^|,)integration="([^"]{1,64})"/.exec(labels)?.[1]
    if (name === undefined) continue
    const own = counts.get(name) ?? { sent: 0, failed: 0 }
    own[failed === undefined ? 'sent' : 'failed'] += Number(value)
    counts.set(name, own)
  }
  return counts
}

async function jsonAt(
  instance: TracedInstance,
  path: string,
  keep: number,
  signal: AbortSignal,
): Promise<{ readonly json: unknown } | string> {
  const text = bodyIn(await instance.get(path, keep, signal), instance)
  if (typeof text === 'string') return text
  try {
    return { json: JSON.parse(text.body) as unknown }
  } catch {
    return `${instance.origin} does not answer with JSON`
  }
}

function bodyIn(reply: HttpReply, { origin }: TracedInstance): { readonly body: string } | string {
  if ('what' in reply) return reply.message
  if (reply.status < 200 || reply.status > 299) return `${origin} answered ${reply.status}`
  return reply.body === undefined ? `the answer of ${origin} is too large or broke off` : { body: reply.body }
}

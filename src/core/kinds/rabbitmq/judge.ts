import { about, atMost, fail, ok, type Result, warn } from '../../engine/index.ts'
import { showBytes, showDuration } from '../../format.ts'
import { count, quoted } from '../../net/text.ts'
import type { Threshold, ThresholdUnit } from '../../settings/index.ts'
import { type Node, type Overview, type Queue, type Share, stalled } from './look.ts'
import type { DeadLetterSettings, QueueSettings, RabbitmqSettings } from './settings.ts'

export type RabbitmqLook =
  | ({ readonly see: 'overview' } & Overview)
  | { readonly see: 'nodes'; readonly nodes: readonly Node[]; readonly advanced: boolean }
  | {
      readonly see: 'queue'
      readonly queue: Queue
      readonly of: QueueSettings
      readonly date: Date
      readonly advanced: boolean
    }
  | {
      readonly see: 'deliveries'
      readonly before: Queue
      readonly after: Queue
      readonly ms: number
      readonly of: QueueSettings
    }
  | { readonly see: 'dead letters'; readonly queue: Queue; readonly of: DeadLetterSettings }

/** Judges what one question saw. */
export function evaluateLook(seen: RabbitmqLook, settings: RabbitmqSettings): readonly Result[] {
  switch (seen.see) {
    case 'overview':
      return evaluateOverview(seen, settings)
    case 'nodes':
      return evaluateNodes(seen.nodes, seen.advanced, settings)
    case 'queue':
      return about(seen.of.name, evaluateQueue(seen.queue, seen.of, seen.date, seen.advanced))
    case 'deliveries':
      return about(seen.of.name, evaluateDeliveries(seen.before, seen.after, seen.ms, seen.of))
    case 'dead letters':
      return about(seen.of.name, evaluateDeadLetters(seen.queue, seen.of))
  }
}

function evaluateOverview({ version, ready }: Overview, settings: RabbitmqSettings): readonly Result[] {
  const signedIn = ok('sign-in', `signed in, RabbitMQ ${version || 'of an unknown version'}`)
  if (!settings.messages) return [signedIn]
  const what = 'messages ready in all queues:'
  if (ready === undefined) return [signedIn, warn('messages', 'the server has no statistics of its queues')]
  return [signedIn, atMost({ check: 'messages', what, value: ready, unit: 'count', threshold: settings.messages })]
}

const percent = ({ used, of }: Share): number => (used / of) * 100

function evaluateNodes(nodes: readonly Node[], advanced: boolean, settings: RabbitmqSettings): readonly Result[] {
  if (nodes.length === 0) return [fail('node', 'protocol', 'the server lists no node, not even itself')]
  const running = nodes.filter((node) => node.running)
  const down = nodes.filter((node) => !node.running).map(({ name }) => name)
  const share = (
    check: string,
    of: (node: Node) => Share | undefined,
    threshold: Threshold,
    told: (share: Share) => string,
  ): readonly Result[] => {
    const worst = running
      .flatMap((node) => {
        const found = of(node)
        return found ? [{ name: node.name, ...found }] : []
      })
      .reduce<({ name: string } & Share) | undefined>(
        (most, one) => (most === undefined || percent(one) > percent(most) ? one : most),
        undefined,
      )
    if (!worst) return []
    return [
      atMost({ check, what: `${worst.name}: ${told(worst)}:`, value: percent(worst), unit: 'percent', threshold }),
    ]
  }
  const bytes = ({ used, of }: Share): string => `${showBytes(used)} of ${showBytes(of)} (high watermark)`
  const figures = (noun: string) => (one: Share) => `${one.used} of ${one.of} ${noun}`
  return [
    down.length === 0
      ? ok('node', `${count(running.length, 'node runs', 'nodes run')}`)
      : fail('node', 'data', `${down.slice(0, 5).join(', ')} not running, ${running.length} of ${nodes.length} are`),
    evaluateAlarms(running),
    ...share('memory', (node) => node.memory, settings.memory, bytes),
    ...share('file descriptors', (node) => node.fileDescriptors, settings.fileDescriptors, figures('file descriptors')),
    ...share('sockets', (node) => node.sockets, settings.sockets, figures('sockets')),
    ...(advanced ? evaluateCluster(nodes, running, settings.nodes) : []),
  ]
}

function evaluateAlarms(running: readonly Node[]): Result {
  const told = running.flatMap(({ name, memoryAlarm, diskAlarm, memory, diskFree }) => [
    ...(memoryAlarm ? [`memory alarm on ${name}${memory ? ` (${showBytes(memory.used)} used)` : ''}`] : []),
    ...(diskAlarm ? [`disk alarm on ${name}${diskFree ? ` (${showBytes(diskFree.used)} free)` : ''}`] : []),
  ])
  const [first, ...details] = told
  if (first === undefined) return ok('alarms', 'no memory or disk alarm')
  return fail('alarms', 'data', `${first}: every publisher of the cluster is blocked until it ends`, { details })
}

function evaluateCluster(
  nodes: readonly Node[],
  running: readonly Node[],
  wanted: number | undefined,
): readonly Result[] {
  const split = nodes.filter(({ partitions }) => partitions.length > 0)
  const details = split.map(({ name, partitions }) => `${name} does not see ${partitions.slice(0, 5).join(', ')}`)
  return [
    split.length === 0
      ? ok('partitions', 'no network partition')
      : fail('partitions', 'data', `network partition: ${details[0]}; the parts do not know of each other's messages`, {
          details: details.slice(1, 10),
        }),
    ...(wanted === undefined ? [] : [evaluateSize(running.length, wanted)]),
  ]
}

function evaluateSize(running: number, wanted: number): Result {
  const told = `${count(running, 'node runs', 'nodes run')}, ${wanted} should`
  const more: Partial<Result> = { measurement: { value: running, unit: 'count', limit: wanted } }
  return running < wanted ? fail('cluster', 'data', told, more) : ok('cluster', told, more)
}

/** States in which a queue serves; `idle` is what old servers say. */
const serves = new Set(['', 'running', 'idle', 'live'])

function evaluateQueue(queue: Queue, of: QueueSettings, date: Date, advanced: boolean): readonly Result[] {
  const name = `queue ${quoted(of.name, 80)}`
  const { state, ready, consumers, unacknowledged, head } = queue
  if (!serves.has(state)) return [fail('queue', 'data', `${name} is ${quoted(state, 32)}: it serves nobody`)]
  // A queue that was just declared, or statistics that are off.
  if (ready === undefined) return [warn('queue', `${name}: the server has no statistics of it (yet)`)]
  const measured = (check: string, what: string, value: number, unit: ThresholdUnit, threshold: Threshold): Result =>
    atMost({ check, what: `${name}: ${what}`, value, unit, threshold })
  const waiting = head === undefined ? undefined : Math.max(0, date.getTime() - head)
  return [
    measured('queue', 'messages ready:', ready, 'count', of.ready),
    evaluateConsumers(name, consumers ?? 0, of.consumers),
    ...(of.unacknowledged && unacknowledged !== undefined
      ? [measured('unacknowledged', 'messages not acknowledged:', unacknowledged, 'count', of.unacknowledged)]
      : []),
    // Of messages without a timestamp nobody knows the age.
    ...(advanced && waiting !== undefined && ready > 0
      ? [measured('oldest message', 'its oldest message waits', waiting, 'duration', of.oldest)]
      : []),
  ]
}

function evaluateConsumers(name: string, consumers: number, wanted: number): Result {
  const told = `${name}: ${count(consumers, 'consumer')} (at least ${wanted})`
  const more: Partial<Result> = { measurement: { value: consumers, unit: 'count', limit: wanted } }
  if (consumers >= wanted) return ok('consumers', told, more)
  return fail('consumers', 'data', `${told}: look at the workers, not at the server`, more)
}

function evaluateDeliveries(before: Queue, after: Queue, ms: number, of: QueueSettings): Result {
  const name = `queue ${quoted(of.name, 80)}`
  if (!stalled(before, after)) return ok('stalled', `${name}: messages are delivered`)
  const held = after.unacknowledged === undefined ? '' : `, who hold ${after.unacknowledged} without acknowledging them`
  const told = `${count(after.ready ?? 0, 'message')} ready, none delivered in ${showDuration(ms)}`
  return warn('stalled', `${name}: ${told} to ${count(after.consumers ?? 0, 'consumer')}${held}: are they stuck?`)
}

function evaluateDeadLetters({ ready, unacknowledged }: Queue, of: DeadLetterSettings): Result {
  const name = `queue ${quoted(of.name, 80)}`
  if (ready === undefined) return warn('dead letters', `${name}: the server has no statistics of it (yet)`)
  return atMost({
    check: 'dead letters',
    what: `${name}: dead letters:`,
    value: ready + (unacknowledged ?? 0),
    unit: 'count',
    threshold: of.messages,
  })
}

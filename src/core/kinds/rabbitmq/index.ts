import { setTimeout as wait } from 'node:timers/promises'
import { shownLocation } from '../../assert/content.ts'
import {
  atAddress,
  atMost,
  type CheckContext,
  eachAddress,
  evaluateExpiry,
  evaluateProblem,
  evaluateUnreached,
  fail,
  includes,
  monitorKind,
  type Problem,
  type Result,
  type Unreached,
} from '../../engine/index.ts'
import type { Chain } from '../../net/chain.ts'
import { hostOf, portOf, urlTarget } from '../../net/http/route.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { evaluateLook, type RabbitmqLook } from './judge.ts'
import { lookAtNodes, lookAtOverview, lookAtQueue, type Queue, suspicious } from './look.ts'
import { type Answer, managementAt } from './management.ts'
import { type QueueSettings, type RabbitmqSettings, rabbitmqSettings, validate } from './settings.ts'

type Seen =
  | { readonly see: 'answered'; readonly address: string; readonly ms: number; readonly answer: Answer }
  | { readonly see: 'certificate'; readonly chain: Chain }
  | { readonly see: 'look'; readonly address: string; readonly look: RabbitmqLook }
  | Problem
  | Unreached

/** Asks the management of RabbitMQ, by GET alone. Speaks no AMQP: it takes no message and sends none. */
export default monitorKind({
  name: 'rabbitmq',
  title: 'A RabbitMQ server and its queues work (asked of its HTTP management)',
  settings: rabbitmqSettings,
  checks: [
    { name: 'management', depth: 'Basic', doc: 'The management answers, in time; nobody signs in' },
    { name: 'sign-in', depth: 'Standard', doc: 'The account is let in' },
    { name: 'messages', depth: 'Standard', doc: 'Not too many messages wait in all; left out without `messages`' },
    { name: 'node', depth: 'Standard', doc: 'Every node of the cluster runs' },
    { name: 'alarms', depth: 'Standard', doc: 'No memory or disk alarm blocks the publishers' },
    { name: 'memory', depth: 'Standard', doc: 'Memory is left; the fullest node speaks' },
    { name: 'file descriptors', depth: 'Standard', doc: 'File descriptors are left' },
    { name: 'sockets', depth: 'Standard', doc: 'Sockets are left; left out where the server does not tell' },
    { name: 'queue', depth: 'Standard', doc: 'A configured queue is there, serves, and not too much waits in it' },
    { name: 'consumers', depth: 'Standard', doc: 'It has consumers' },
    {
      name: 'unacknowledged',
      depth: 'Standard',
      doc: 'Consumers hold not too much; left out without `unacknowledged`',
    },
    { name: 'oldest message', depth: 'Advanced', doc: 'The message at its head is young enough, where it is dated' },
    { name: 'stalled', depth: 'Advanced', doc: 'Where messages wait and consumers are there, some are delivered' },
    { name: 'dead letters', depth: 'Advanced', doc: 'Not too much could not be processed' },
    { name: 'partitions', depth: 'Advanced', doc: 'All nodes see each other' },
    { name: 'cluster', depth: 'Advanced', doc: 'As many nodes run as should; left out without `nodes`' },
    { name: 'certificate', depth: 'Advanced', doc: 'Every certificate of the chain stays valid long enough (https)' },
  ],
  target: urlTarget,
  signsIn: (_, mode) => includes(mode, 'Standard'),
  validate,
  async *observe(settings, context): AsyncGenerator<Seen> {
    const url = new URL(settings.url)
    const ask = { host: hostOf(url), port: portOf(url), which: 'any', check: 'management' } as const
    yield* eachAddress<Seen>(context, ask, async function* (at) {
      const start = context.now()
      const stranger = await managementAt(settings, at, context, false)
      const answer = await stranger.ask('overview')
      yield { see: 'answered', address: at.address, ms: context.now() - start, answer }
      if (isManagement(answer) && includes(context.mode, 'Standard')) yield* looks(settings, at, context)
    })
  },
  evaluate: (seen, settings): Result | readonly Result[] => {
    switch (seen.see) {
      case 'answered':
        return evaluateAnswer(seen.answer, seen.address, seen.ms, settings)
      case 'certificate':
        return evaluateExpiry('certificate', seen.chain, settings.certificate)
      case 'look':
        return atAddress(seen.address, evaluateLook(seen.look, settings))
      case 'problem':
        return evaluateProblem(seen)
      case 'unreached':
        return evaluateUnreached(seen)
    }
  },
})

/** It asks strangers to sign in; one behind a proxy that signs in for them answers. */
const isManagement = ({ status, body }: Answer): boolean => status === 401 || (status === 200 && body !== undefined)

function evaluateAnswer(answer: Answer, address: string, ms: number, settings: RabbitmqSettings): Result {
  const { status, location } = answer
  if (isManagement(answer)) {
    const what = `${address}: the management answered in`
    return atMost({ check: 'management', what, value: ms, unit: 'duration', threshold: settings.latency, address })
  }
  const to = location === undefined ? '' : ` to ${shownLocation(location, new URL(settings.url))}: write that into url`
  const told = status === 200 ? '200, but no JSON' : `${status}${to}`
  const why = status === 404 ? ': no RabbitMQ management is there (is its plugin enabled?)' : ''
  return fail('management', 'data', `${address} answered ${told}${why}`, {
    address,
    measurement: { value: status, unit: 'count' },
  })
}

async function* looks(settings: RabbitmqSettings, at: PeerAddress, context: CheckContext): AsyncGenerator<Seen> {
  const { address, signal } = at
  const { username } = settings
  const advanced = includes(context.mode, 'Advanced')
  at.step('sign-in')
  const management = await managementAt(settings, at, context, true)
  yield {
    see: 'look',
    address,
    look: { see: 'overview', ...(await lookAtOverview(management, username)) },
  }
  async function* check<L extends RabbitmqLook>(
    name: string,
    look: () => Promise<L>,
  ): AsyncGenerator<Seen, L | undefined> {
    at.step(name)
    const since = context.now()
    try {
      const seen = await look()
      yield { see: 'look', address, look: seen }
      return seen
    } catch (cause) {
      // Only the deadline ends the visit: what one question asks for may be missing or forbidden.
      if (signal.aborted) throw cause
      yield { see: 'problem', check: name, address, cause, afterMs: context.now() - since }
      return undefined
    }
  }
  yield* check('node', async () => ({ see: 'nodes', nodes: await lookAtNodes(management, username), advanced }))
  const waiting: { readonly of: QueueSettings; readonly queue: Queue }[] = []
  for (const of of settings.queues ?? []) {
    const seen = yield* check('queue', async () => {
      const queue = await lookAtQueue(management, of, username)
      return { see: 'queue', queue, of, date: context.date(), advanced }
    })
    if (seen && suspicious(seen.queue)) waiting.push({ of, queue: seen.queue })
  }
  if (!advanced) return
  for (const of of settings.deadLetters ?? []) {
    yield* check('dead letters', async () => {
      return { see: 'dead letters', queue: await lookAtQueue(management, of, username), of }
    })
  }
  const chain = management.chain()
  if (chain) yield { see: 'certificate', chain }
  if (waiting.length === 0) return
  // Statistics are some seconds old: only what has not moved between two of them stands still.
  at.step('stalled')
  const pause = Math.min(settings.stalled, context.msLeft() / 2)
  await wait(pause, undefined, { signal })
  for (const { of, queue: before } of waiting) {
    yield* check('stalled', async () => {
      const after = await lookAtQueue(management, of, username)
      return { see: 'deliveries', before, after, ms: pause, of }
    })
  }
}

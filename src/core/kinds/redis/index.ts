import { figure } from '../../database/index.ts'
import {
  atAddress,
  atMost,
  eachAddress,
  evaluateExpiry,
  evaluateProblem,
  evaluateUnreached,
  includes,
  monitorKind,
  type Problem,
  type Result,
  type Unreached,
} from '../../engine/index.ts'
import { isLoopback } from '../../loopback.ts'
import { readCaFile } from '../../net/ca-file.ts'
import type { Chain } from '../../net/chain.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { hiding, quoted, said } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { redisFault } from './faults.ts'
import { evaluateLook } from './judge.ts'
import { RedisLink } from './link.ts'
import {
  type Asker,
  ask,
  type Info,
  loadingProgress,
  lookAtCluster,
  lookAtInfo,
  lookAtPings,
  lookAtQueue,
  type RedisLook,
  roundTrip,
} from './look.ts'
import { lookAtOldest } from './oldest.ts'
import { connect, signIn } from './open.ts'
import { isError } from './resp.ts'
import { isAged, type RedisSettings, redisSettings, redisTarget, slotOf, validate } from './settings.ts'

type Seen =
  | { readonly see: 'reached' }
  | { readonly see: 'connected'; readonly address: string; readonly ms: number; readonly as: string }
  | { readonly see: 'answered'; readonly address: string; readonly ms: number }
  | { readonly see: 'certificate'; readonly chain: Chain }
  | { readonly see: 'look'; readonly address: string; readonly look: RedisLook }
  | Problem
  | Unreached

/** Signs in where a password is configured, and only reads, but for the key of its own that `allowWrites` allows. */
export default monitorKind({
  name: 'redis',
  title: 'A Redis or Valkey server works, and would survive the night',
  settings: redisSettings,
  checks: [
    { name: 'connect', depth: 'Basic', doc: 'The server accepts a connection and the sign-in, in time' },
    { name: 'ping', depth: 'Basic', doc: 'PING is answered in time; loading data and a lost primary are told' },
    { name: 'info', depth: 'Standard', doc: 'Told when the account may not ask how the server does' },
    { name: 'role', depth: 'Standard', doc: 'It is the primary or the replica that it should be' },
    { name: 'replica link', depth: 'Standard', doc: 'As a replica it is connected to its primary; left out elsewhere' },
    { name: 'memory', depth: 'Standard', doc: 'Memory is left' },
    { name: 'clients', depth: 'Standard', doc: 'Places for clients are left' },
    { name: 'rejected', depth: 'Standard', doc: 'Few connections were turned away' },
    { name: 'blocked', depth: 'Standard', doc: 'Not too many clients wait; left out without `blocked`' },
    { name: 'evicted', depth: 'Standard', doc: 'Not too many keys were evicted; left out without `evicted`' },
    { name: 'persistence', depth: 'Standard', doc: 'The last save and the append-only file were written well' },
    { name: 'restarted', depth: 'Standard', doc: 'It has not just been restarted' },
    { name: 'queue', depth: 'Standard', doc: 'Not too many items wait in a queue' },
    { name: 'replicas', depth: 'Advanced', doc: 'Its replicas are online' },
    {
      name: 'replication lag',
      depth: 'Advanced',
      doc: 'Primary and replicas hear each other; left out without replication',
    },
    { name: 'replication offset', depth: 'Advanced', doc: 'As a primary its replicas are not far behind' },
    { name: 'last save', depth: 'Advanced', doc: 'Changes are saved often enough; left out without `lastSave`' },
    { name: 'cluster', depth: 'Advanced', doc: 'The cluster serves every slot; left out without a cluster' },
    { name: 'latency', depth: 'Advanced', doc: 'Ten PINGs are answered quickly' },
    { name: 'round trip', depth: 'Advanced', doc: 'A key of its own is written, read and deleted (`allowWrites`)' },
    {
      name: 'oldest item',
      depth: 'Advanced',
      doc: 'The oldest item of a queue has not waited too long; left out of queues without `age`',
      when: ['queues'],
    },
    { name: 'certificate', depth: 'Advanced', doc: 'Every certificate of the chain stays valid long enough (rediss)' },
  ],
  target: slotOf,
  signsIn: (settings) => settings.password !== undefined,
  validate,
  async *observe(settings, context): AsyncGenerator<Seen> {
    const target = redisTarget(settings)
    const { host, port } = target
    const password = await settings.password?.reveal()
    const hide = hiding(password === undefined ? [] : [password])
    const ca = await readCaFile(settings.caFile)
    yield* eachAddress<Seen>(context, { host, port, which: 'any', check: 'connect' }, async function* (at) {
      const start = context.now()
      if (password !== undefined && !target.tls && !settings.insecure && !isLoopback(at.ip)) {
        const advice = 'use rediss://, or insecure: true where the network is trusted'
        throw new ProbeError('data', `the password is not sent to ${at.address} without TLS: ${advice}`)
      }
      const { socket, chain } = await connect(at, target, settings.servername, ca, context)
      try {
        // From here on no other address stands in for this one: a refused sign-in is not repeated there.
        yield { see: 'reached' }
        const link = new RedisLink(socket, at.address, hide)
        const asker: Asker = { link, target, context }
        if (password !== undefined) await signIn(asker, password)
        const as = password === undefined ? '' : ` as ${said(target.user ?? 'default', 64)}`
        const over = chain === undefined ? '' : ` over ${chain.protocol}`
        yield { see: 'connected', address: at.address, ms: context.now() - start, as: `${as}${over}` }
        at.step('ping')
        const more = yield* ping(asker)
        if (more && includes(context.mode, 'Standard')) yield* looks(asker, at, settings, chain)
      } finally {
        socket.destroy()
      }
    })
  },
  evaluate: (seen, settings): Result | readonly Result[] => {
    const timed = (check: string, what: string, { ms: value, address }: { ms: number; address: string }): Result =>
      atMost({ check, what, value, unit: 'duration', threshold: settings.latency, address })
    switch (seen.see) {
      case 'reached':
        return []
      case 'connected':
        return timed('connect', `${seen.address} let in${seen.as} in`, seen)
      case 'answered':
        return timed('ping', 'PING answered in', seen)
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

/** A server that answers PING with these errors still tells how it does. */
const stillTells = /^(MISCONF|MASTERDOWN) /

/** Returns whether there is anything more to ask. Throws as `sound` for what ends the visit. */
async function* ping(asker: Asker): AsyncGenerator<Seen, boolean> {
  const { link, target, context } = asker
  const asked = context.now()
  const reply = await link.ask('PING')
  const ms = context.now() - asked
  if (reply === 'PONG') {
    yield { see: 'answered', address: link.address, ms }
    return true
  }
  if (!isError(reply)) throw new ProbeError('protocol', `${link.address} answered PING with something else than PONG`)
  const fault = redisFault(reply.error, link, target.user)
  const progress = reply.error.startsWith('LOADING') ? await loadingProgress(asker) : ''
  const cause = progress === '' ? fault : new ProbeError(fault.fault, `${fault.message}; ${progress}`, fault.details)
  yield { see: 'problem', check: 'ping', address: link.address, cause, afterMs: ms }
  return stillTells.test(reply.error)
}

async function* looks(
  asker: Asker,
  at: PeerAddress,
  settings: RedisSettings,
  chain: Chain | undefined,
): AsyncGenerator<Seen> {
  const { link, target, context } = asker
  const advanced = includes(context.mode, 'Advanced')
  const { address } = at
  async function* check<L extends RedisLook>(
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
      // The deadline and a broken connection end the visit; anything else ends this check.
      if (at.signal.aborted || !link.usable) throw cause
      yield { see: 'problem', check: name, address, cause, afterMs: context.now() - since }
      return undefined
    }
  }
  const info: Info | undefined = yield* check('info', () => lookAtInfo(asker, advanced))
  const { queues } = settings
  if (target.database !== 0 && (queues !== undefined || settings.allowWrites)) {
    at.step('queue')
    await ask(asker, 'SELECT', String(target.database))
  }
  for (const queue of queues ?? []) yield* check('queue', () => lookAtQueue(asker, queue))
  if (!advanced) return
  if (figure(info?.row, 'cluster_enabled') === 1) yield* check('cluster', () => lookAtCluster(asker))
  yield* check('latency', () => lookAtPings(asker))
  if (settings.allowWrites && info) yield* check('round trip', () => roundTrip(asker, info.row))
  if (chain) yield { see: 'certificate', chain }
  // Last: an item that is too large ends the connection.
  for (const queue of queues?.filter(isAged) ?? []) {
    if (link.usable) {
      yield* check('oldest item', () => lookAtOldest(asker, queue))
      continue
    }
    const cause = new ProbeError('data', `not looked at ${quoted(queue.key, 80)}: the item before ended the connection`)
    yield { see: 'problem', check: 'oldest item', address, cause, afterMs: 0 }
  }
}

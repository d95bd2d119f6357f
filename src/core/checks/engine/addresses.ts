import { isIP } from 'node:net'
import { count, showDuration } from '../../base/format.ts'
import { isLoopback, isLoopbackHost } from '../../base/loopback.ts'
import { ownAddresses, type PeerAddress, reachOf } from '../../base/net/addresses.ts'
import { connectTcp, hostPort } from '../../base/net/connect.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { Setting, SettingsSpec } from '../../base/settings/index.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import { classify, withoutVerdict } from './classify.ts'
import { type CheckContext, includes } from './kind.ts'
import { deadlineSignal } from './limits.ts'
import { isSignInRefusal, type Result } from './result.ts'

/**
 * Runs several generators concurrently and yields their values as they arrive. When it ends early, it ends each
 * generator, so that their `finally` blocks close what they opened.
 */
export async function* merged<T>(sources: readonly AsyncGenerator<T>[]): AsyncGenerator<T> {
  const [only, second] = sources
  if (only && !second) return yield* only
  const pending = new Map<number, Promise<{ readonly index: number; readonly result: IteratorResult<T> }>>()
  const ask = (source: AsyncGenerator<T>, index: number): void => {
    const next = source.next().then((result) => ({ index, result }))
    // Avoids an unhandled rejection when nobody awaits the promise any more.
    next.catch(() => {})
    pending.set(index, next)
  }
  sources.forEach(ask)
  try {
    while (pending.size > 0) {
      const { index, result } = await Promise.race(pending.values())
      const source = sources[index]
      if (result.done || source === undefined) {
        pending.delete(index)
        continue
      }
      ask(source, index)
      yield result.value
    }
  } finally {
    await Promise.allSettled(sources.map((source) => source.return(undefined)))
  }
}

/**
 * `first`: one address. `all`: each address separately. `any`: in order until one accepts, as a client does, and a
 * connection to each of the others.
 */
export const addressChoices = ['first', 'all', 'any'] as const
export type AddressChoice = (typeof addressChoices)[number]

/** The depths from which on a kind checks each address of a name: before, what a client gets. */
export type EachAddressFrom = Exclude<ExecutionMode, 'Basic'>

const choices =
  'Addresses of the name to check: `first`, `all` (each separately, and each must work) or `any` (the first that accepts; the others are only connected to, and a dead one is a warning)'

/** The setting `addresses` of every kind that takes a host. */
export const addressesSettings = {
  Standard: { type: 'choice', values: addressChoices, doc: `${choices}; default: \`any\` in Basic, then \`all\`` },
  Advanced: { type: 'choice', values: addressChoices, doc: `${choices}; default: \`any\`, in Advanced \`all\`` },
  never: { type: 'choice', values: addressChoices, doc: `${choices}; default: \`any\`` },
} as const satisfies Readonly<Record<EachAddressFrom | 'never', Setting>>

/** In most kinds also `source`, which is another server in kind mysql. */
const sourceAddress = {
  type: 'text',
  otherWord: 'source',
  mistake: (text: string) =>
    isIP(text) === 0 ? 'is not an address: write one of this machine, like 10.0.0.7' : undefined,
  doc: 'Address of this machine from which svc connects; only addresses of its family are checked',
} as const satisfies SettingsSpec[string]

/** The settings of every kind that takes a host and checks its addresses. */
export const reachSettings = {
  family: {
    type: 'choice',
    values: ['ipv4', 'ipv6', 'both'],
    doc: 'The addresses of the host that are checked: `ipv4`, `ipv6`, or `both`, of which each has to have an address that serves. Applies before `addresses`',
  },
  sourceAddress,
} as const satisfies SettingsSpec

/** The same for a kind that takes a host and has one connection. */
export const oneFamilySettings = {
  family: { type: 'choice', values: ['ipv4', 'ipv6'], doc: 'The addresses of the host that are used' },
  sourceAddress,
} as const satisfies SettingsSpec

/** The settings of every kind that may connect by a proxy. */
export const proxySettings = {
  proxy: {
    type: 'text',
    mistake: proxyMistake,
    doc: 'Proxy that connects in place of this machine and resolves the name: http://host:port (CONNECT) or socks5://host:port; default: none',
  },
  proxyUsername: { type: 'text', doc: 'User at the proxy, with proxyPassword' },
  proxyPassword: { type: 'secret', doc: 'Password at the proxy, which gets it without TLS' },
} as const satisfies SettingsSpec

/** The settings of kinds that sign in at a URL, which contains no password. */
export const signInSettings = <const Protocols extends readonly string[]>(
  protocols: Protocols,
  doc: string,
  passwordDoc = "The user's password",
) =>
  ({
    url: { type: 'url', protocols, required: true, doc },
    password: { type: 'secret', doc: passwordDoc },
  }) as const satisfies SettingsSpec

/** The setting of kinds whose servers listen at Unix sockets. */
export const socketSettings = {
  socket: {
    type: 'text',
    observed: true,
    pattern: /^\/.{1,106}$/s,
    doc: 'Path of the Unix socket of the server, up to 107 bytes, in place of the host in url. The server may take the account of the process for the sign-in',
  },
} as const satisfies SettingsSpec

function proxyMistake(text: string): string | undefined {
  const url = URL.parse(text)
  if (text === 'none') return undefined
  if (!/^(?:http|socks5):$/.test(url?.protocol ?? '') || !url?.hostname || !/^\/?$/.test(url.pathname + url.search))
    return 'is not a proxy: write http://host:port, socks5://host:port or none'
  return url.username + url.password === '' ? undefined : 'contains a user: write proxyUsername and proxyPassword'
}

/**
 * The addresses that a mode probes by default. `localhost` is one machine, whose servers often listen at one of its
 * addresses only.
 */
export const addressesIn = (from: EachAddressFrom, host: string, mode: ExecutionMode): AddressChoice =>
  includes(mode, from) && !isLocalName(host) ? 'all' : 'any'

const isLocalName = (host: string): boolean => isIP(host) === 0 && isLoopbackHost(host)

/** The maximum number of probed addresses, so that a name server cannot choose how much work we do. */
const maxAddresses = 16

/** The address that is being probed. */
export type AddressTurn = PeerAddress & {
  /** From now on no other address may replace this one: a refused sign-in is not repeated elsewhere. */
  readonly commit: () => void
  /** Milliseconds that are left for this address. Absent: as many as are left for the run. */
  readonly msLeft?: () => number
}

/** An address that failed before the probe was complete. */
export type Unreached = {
  readonly see: 'unreached'
  readonly check: string
  readonly address: string
  readonly cause: unknown
  readonly afterMs: number
  /** A warning when another address replaces this one. */
  readonly status: 'failed' | 'warning'
}

type Ask<O> = {
  readonly host: string
  readonly port: number
  readonly which: AddressChoice
  readonly check: string
  /**
   * Present: `all` probes one address after the other, because each costs a sign-in or a request that may write. True
   * for an observation that ends this: a refused sign-in is repeated at no other address.
   */
  readonly ends?: ((observation: O) => boolean) | undefined
  /** Tests whether an address accepts connections. Default: a TCP connection, closed at once. */
  readonly knock?: ((at: AddressTurn) => Promise<void>) | undefined
}

/**
 * Probes a name's addresses. A failing address becomes an `Unreached` and does not hide the others; only the deadline
 * is rethrown. Without `ends`, `all` probes concurrently and yields results as they arrive.
 */
export async function* eachAddress<O>(
  context: CheckContext,
  ask: Ask<O>,
  probe: (target: AddressTurn) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached> {
  context.step(ask.check, hostPort(ask.host, ask.port))
  const groups = await addressGroups(context, ask.host)
  for (const { cause } of groups)
    if (cause !== undefined)
      yield { see: 'unreached', check: ask.check, address: ask.host, cause, afterMs: 0, status: 'failed' }
  const most = ask.which === 'first' ? 1 : maxAddresses / groups.length
  const chosen = groups.map(({ ips }) => ips.slice(0, most))
  const [all, ips] = [groups.flatMap((group) => group.ips), chosen.flat()]
  if (ask.which === 'any') return yield* oneOfEach(context, ask, chosen, probe)
  if (ask.ends && ips.length > 1) yield* inTurn(context, ask, ips, probe)
  else {
    const track = tracker(context)
    yield* merged(ips.map((ip) => guarded(context, ask, ip, track, probe)))
  }
  if (ask.which === 'all' && all.length > ips.length) {
    const message = `${ask.host} has ${count(all.length, 'address', 'addresses')}; the first ${maxAddresses} were probed`
    const cause = new ProbeError('data', message)
    yield { see: 'unreached', check: 'addresses', address: ask.host, cause, afterMs: 0, status: 'warning' }
  }
}

/**
 * The addresses of a host, one of which has to serve. With `family: both`, those of each family, or why there are none;
 * without that, throws as `resolve` does.
 */
export async function addressGroups(
  context: CheckContext,
  host: string,
): Promise<readonly { readonly ips: readonly string[]; readonly cause?: unknown }[]> {
  if (!context.bothFamilies) return [{ ips: reachable(await context.resolve(host)) }]
  const families = ['ipv4', 'ipv6'] as const
  const resolved = await Promise.allSettled(families.map((family) => context.resolve(host, family)))
  context.signal.throwIfAborted()
  return resolved.map((one) => (one.status === 'fulfilled' ? { ips: one.value } : { ips: [], cause: one.reason }))
}

/** `untilOne` for each group. After a refused sign-in, the other groups are only knocked at. */
async function* oneOfEach<O>(
  context: CheckContext,
  ask: Ask<O>,
  groups: readonly (readonly string[])[],
  probe: (target: AddressTurn) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached> {
  let isOver = false
  for (const [index, ips] of groups.entries()) {
    const later = groups.slice(index + 1).flat().length
    if (!isOver) isOver = yield* untilOne(context, ask, ips, later, probe)
    else if (!ask.knock) yield* knockAt(context, ask, ips, 'failed')
  }
}

async function* guarded<O>(
  context: CheckContext,
  ask: Ask<O>,
  ip: string,
  track: ReturnType<typeof tracker>,
  probe: (target: AddressTurn) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached> {
  const address = hostPort(ip, ask.port)
  const clock = stepClock(context, ask.check, (check) => track.at(address, check))
  try {
    yield* probe({ ip, port: ask.port, address, signal: context.signal, step: clock.step, commit: () => {} })
  } catch (cause) {
    if (context.signal.aborted) throw cause
    yield { see: 'unreached', ...clock.stopped(), address, cause, status: 'failed' }
  } finally {
    track.done(address)
  }
}

/** Each address gets an even share of the remaining time, until a sign-in is refused: the others are then knocked at. */
async function* inTurn<O>(
  context: CheckContext,
  ask: Ask<O>,
  ips: readonly string[],
  probe: (target: AddressTurn) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached> {
  for (const [index, ip] of ips.entries()) {
    const address = hostPort(ip, ask.port)
    const clock = stepClock(context, ask.check, (check) => context.step(check, address))
    const turn = shareOf(context, address, ips.length - index)
    let isOver = false
    try {
      const { signal, msLeft } = turn
      const target = { ip, port: ask.port, address, signal, step: clock.step, commit: () => {}, msLeft }
      for await (const observation of probe(target)) {
        isOver ||= ask.ends?.(observation) === true
        yield observation
      }
    } catch (error) {
      if (context.signal.aborted) throw error
      const unreached = { see: 'unreached', ...clock.stopped(), address, cause: turn.causeOf(error) } as const
      isOver ||= isSignInRefusal(evaluateUnreached({ ...unreached, status: 'failed' }))
      yield { ...unreached, status: 'failed' }
    } finally {
      turn.end()
    }
    if (isOver) return ask.knock ? undefined : yield* knockAt(context, ask, ips.slice(index + 1), 'failed')
  }
}

/** An even share of the remaining time for the first of some addresses; all of it for the last one. */
function shareOf(context: CheckContext, address: string, left: number) {
  const share = context.msLeft() / left
  const ends = context.now() + share
  const turn = new AbortController()
  const abort = (): void => turn.abort(context.signal.reason)
  context.signal.addEventListener('abort', abort, { once: true })
  const late = new ProbeError('timeout', `${address} did not answer within ${showDuration(share)}`)
  const timer = left === 1 ? undefined : setTimeout(() => turn.abort(late), share)
  return {
    signal: turn.signal,
    msLeft: (): number => Math.max(1, Math.floor(ends - context.now())),
    /** From now on only the deadline ends it. */
    extend: (): void => clearTimeout(timer),
    causeOf: (error: unknown): unknown => (turn.signal.aborted ? late : error),
    end: (): void => {
      clearTimeout(timer)
      context.signal.removeEventListener('abort', abort)
    },
  }
}

/** Milliseconds for a connection to an address that takes part in nothing else: one lost packet is sent again after 1 s. */
const knockMs = 2_000

/** Connects to addresses, and yields those that refuse or are silent. */
async function* knockAt<O>(
  context: CheckContext,
  { check, port, knock }: Ask<O>,
  ips: readonly string[],
  status: Unreached['status'],
): AsyncGenerator<Unreached> {
  if (ips.length === 0) return
  const addresses = ips.map((ip) => hostPort(ip, port))
  context.step(check, addresses.join(', '))
  const ms = Math.min(knockMs, context.msLeft() / 2)
  const since = context.now()
  const deadline = deadlineSignal(context.signal, ms)
  const { signal } = deadline
  const connect = knock ?? (async (at) => void (await connectTcp(at.ip, at.port, at.signal)).destroy())
  const attempt = async (ip: string): Promise<readonly Unreached[]> => {
    const address = hostPort(ip, port)
    try {
      await connect({ ip, port, address, signal, step: () => {}, commit: () => {} })
      return []
    } catch (error) {
      if (context.signal.aborted) throw error
      const late = new ProbeError('timeout', `${address} did not answer within ${showDuration(ms)}`)
      const cause: unknown = signal.aborted ? late : error
      return [{ see: 'unreached', check, address, cause, afterMs: context.now() - since, status }]
    }
  }
  try {
    if (!knock) return yield* (await Promise.all(ips.map(attempt))).flat()
    for (const ip of ips) {
      const unreached = await attempt(ip)
      yield* unreached
      if (unreached.some((one) => isSignInRefusal(evaluateUnreached({ ...one, status: 'failed' })))) return
    }
  } finally {
    deadline.clear()
  }
}

/**
 * Each address gets an even share of the remaining time, of which `later` others need theirs, until one has yielded
 * something. Then the others are knocked at, so that a dead one is seen whatever the order of the addresses. Returns
 * whether a sign-in was refused.
 */
async function* untilOne<O>(
  context: CheckContext,
  ask: Ask<O>,
  ips: readonly string[],
  later: number,
  probe: (target: AddressTurn) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached, boolean> {
  const isLocal = isLocalName(ask.host)
  const passed: Unreached[] = []
  for (const [index, ip] of ips.entries()) {
    const address = hostPort(ip, ask.port)
    const clock = stepClock(context, ask.check, (check) => context.step(check, address))
    const isLast = index === ips.length - 1
    const turn = shareOf(context, address, ips.length - index + later)
    let succeeded = false
    let isOver = false
    const commit = (): void => {
      succeeded = true
      turn.extend()
    }
    try {
      for await (const observation of probe({
        ip,
        port: ask.port,
        address,
        signal: turn.signal,
        step: clock.step,
        commit,
      })) {
        commit()
        isOver ||= ask.ends?.(observation) === true
        yield observation
      }
    } catch (error) {
      if (context.signal.aborted) throw error
      const unreached = { see: 'unreached', ...clock.stopped(), address, cause: turn.causeOf(error) } as const
      const status = succeeded || isLast ? 'failed' : 'warning'
      isOver ||= isSignInRefusal(evaluateUnreached({ ...unreached, status: 'failed' }))
      // The other addresses of this machine count only where none accepts.
      if (isLocal && status === 'warning') passed.push({ ...unreached, status })
      else if (succeeded) yield { ...unreached, status }
      else yield* [...passed, { ...unreached, status }]
    } finally {
      turn.end()
    }
    if (!succeeded) continue
    if (!isLocal && !(isOver && ask.knock)) yield* knockAt(context, ask, ips.slice(index + 1), 'warning')
    return isOver
  }
  return false
}

/** Tracks the current step at one address and how long it has taken. */
function stepClock(context: CheckContext, first: string, report: (check: string) => void) {
  let check = first
  let since = context.now()
  const step = (next: string): void => {
    check = next
    since = context.now()
    report(next)
  }
  step(first)
  return { step, stopped: () => ({ check, afterMs: context.now() - since }) }
}

/** Tells the engine which addresses have not answered, so that a timeout names exactly those. */
function tracker(context: CheckContext) {
  const pending = new Map<string, string>()
  const report = (): void => {
    const [first] = pending.values()
    if (first !== undefined) context.step(first, [...pending.keys()].join(', '))
  }
  return {
    at: (address: string, check: string): void => {
      pending.set(address, check)
      report()
    },
    done: (address: string): void => {
      pending.delete(address)
      report()
    },
  }
}

/**
 * A machine without an IPv6 address of its own cannot check other IPv6 addresses. Leaves them out unless there are no
 * others.
 */
export function reachable(
  addresses: readonly string[],
  listOwn: () => readonly string[] = ownAddresses,
): readonly string[] {
  // Listing those of this machine takes a tenth of the time of a run.
  if (!addresses.some((address) => isIP(address) === 6)) return addresses
  const own = listOwn()
  const hasIPv6 = own.some((address) => isIP(address) === 6 && reachOf(address) === 'routed')
  if (hasIPv6) return addresses
  const usable = addresses.filter((address) => isIP(address) !== 6 || (isLoopback(address) && own.includes('::1')))
  return usable.length > 0 ? usable : addresses
}

/** Classifies the error of an address that failed, for an operator. */
export function evaluateUnreached(observation: Unreached): Result {
  const { check, address, cause, afterMs, status } = observation
  const unchecked = withoutVerdict(check, cause, { address, isLast: true })
  if (unchecked) return unchecked
  const { fault, refusal, ...text } = classify(cause, address, afterMs)
  const base = { check, ...text, address, isUnreached: true } as const
  return status === 'warning' ? { ...base, status } : { ...base, status, fault, refusal, isLast: true }
}

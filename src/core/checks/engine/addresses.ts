import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { showDuration } from '../../base/format.ts'
import { isLoopback } from '../../base/loopback.ts'
import { type PeerAddress, reachOf } from '../../base/net/addresses.ts'
import { hostPort } from '../../base/net/connect.ts'
import { count } from '../../base/net/text.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { Setting } from '../../base/settings/index.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import { classify, shortageOf } from './classify.ts'
import type { CheckContext } from './kind.ts'
import { notChecked, type Result } from './result.ts'

/**
 * Runs several generators concurrently and yields their values as they arrive. When it ends early, it ends each
 * generator, so that their `finally` blocks close what they opened.
 */
export async function* merged<T>(sources: readonly AsyncGenerator<T>[]): AsyncGenerator<T> {
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

/** `first`: one address. `all`: each address separately. `any`: in order until one accepts, as a client does. */
export const addressChoices = ['first', 'all', 'any'] as const
export type AddressChoice = (typeof addressChoices)[number]

/** The setting of a kind that probes one address of a name, and all of them in Advanced. */
export const addressesSetting = {
  type: 'choice',
  values: addressChoices,
  doc: 'Addresses of the name to check: `first`, `all` (each separately) or `any` (in order, until one accepts); default: `first`, in Advanced `all`',
} as const satisfies Setting

/** The addresses that a mode probes with this setting. */
export const addressesIn = (
  { addresses }: { readonly addresses?: AddressChoice | undefined },
  mode: ExecutionMode,
): AddressChoice => addresses ?? (mode === 'Advanced' ? 'all' : 'first')

/** The maximum number of probed addresses, so that a name server cannot choose how much work we do. */
const maxAddresses = 16

/** The address that is being probed. */
export type AddressTurn = PeerAddress & {
  /** From now on no other address may replace this one: a refused sign-in is not repeated elsewhere. */
  readonly commit: () => void
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

type Ask = { readonly host: string; readonly port: number; readonly which: AddressChoice; readonly check: string }

/**
 * Probes a name's addresses. A failing address becomes an `Unreached` and does not hide the others; only the deadline
 * is rethrown. `all` probes concurrently and yields results as they arrive.
 */
export async function* eachAddress<O>(
  context: CheckContext,
  ask: Ask,
  probe: (target: AddressTurn) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached> {
  context.step(ask.check, hostPort(ask.host, ask.port))
  const all = reachable(await context.resolve(ask.host), interfaceAddresses)
  if (ask.which === 'any') return yield* untilOne(context, ask, all, probe)
  const ips = ask.which === 'first' ? all.slice(0, 1) : all.slice(0, maxAddresses)
  const track = tracker(context)
  yield* merged(ips.map((ip) => guarded(context, ask, ip, track, probe)))
  if (ask.which === 'all' && all.length > ips.length) {
    const message = `${ask.host} has ${count(all.length, 'address', 'addresses')}; the first ${maxAddresses} were probed`
    const cause = new ProbeError('data', message)
    yield { see: 'unreached', check: 'addresses', address: ask.host, cause, afterMs: 0, status: 'warning' }
  }
}

async function* guarded<O>(
  context: CheckContext,
  ask: Ask,
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

/** Each address gets an even share of the remaining time, until one has yielded something. */
async function* untilOne<O>(
  context: CheckContext,
  ask: Ask,
  ips: readonly string[],
  probe: (target: AddressTurn) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached> {
  for (const [index, ip] of ips.entries()) {
    const address = hostPort(ip, ask.port)
    const clock = stepClock(context, ask.check, (check) => context.step(check, address))
    const isLast = index === ips.length - 1
    const share = context.msLeft() / (ips.length - index)
    const turn = new AbortController()
    const end = (): void => turn.abort(context.signal.reason)
    context.signal.addEventListener('abort', end, { once: true })
    const late = new ProbeError('timeout', `${address} did not answer within ${showDuration(share)}`)
    const timer = isLast ? undefined : setTimeout(() => turn.abort(late), share)
    let succeeded = false
    const commit = (): void => {
      succeeded = true
      clearTimeout(timer)
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
        yield observation
      }
      return
    } catch (error) {
      if (context.signal.aborted) throw error
      const cause: unknown = turn.signal.aborted ? late : error
      yield { see: 'unreached', ...clock.stopped(), address, cause, status: succeeded || isLast ? 'failed' : 'warning' }
      if (succeeded) return
    } finally {
      clearTimeout(timer)
      context.signal.removeEventListener('abort', end)
    }
  }
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

const interfaceAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map((entry) => entry.address))

/**
 * A machine without an IPv6 address of its own cannot check other IPv6 addresses. Leaves them out unless there are no
 * others.
 */
export function reachable(addresses: readonly string[], ownAddresses: () => readonly string[]): readonly string[] {
  // Listing those of this machine takes a tenth of the time of a run.
  if (!addresses.some((address) => isIP(address) === 6)) return addresses
  const own = ownAddresses()
  const hasIPv6 = own.some((address) => isIP(address) === 6 && reachOf(address) === 'routed')
  if (hasIPv6) return addresses
  const usable = addresses.filter((address) => isIP(address) !== 6 || (isLoopback(address) && own.includes('::1')))
  return usable.length > 0 ? usable : addresses
}

/** Classifies the error of an address that failed, for an operator. */
export function evaluateUnreached(observation: Unreached): Result {
  const { check, address, cause, afterMs, status } = observation
  const shortage = shortageOf(cause)
  if (shortage !== undefined) return notChecked(check, 'starved', shortage, { address })
  const { fault, refusal, ...text } = classify(cause, address, afterMs)
  const base = { check, ...text, address }
  return status === 'warning' ? { ...base, status } : { ...base, status, fault, refusal }
}

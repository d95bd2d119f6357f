import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { showDuration } from '../format.ts'
import { isLoopback } from '../loopback.ts'
import { type PeerAddress, reachOf } from '../net/addresses.ts'
import { hostPort } from '../net/connect.ts'
import { count } from '../net/text.ts'
import { ProbeError } from '../probe-error.ts'
import type { ExecutionMode } from '../protocol/index.ts'
import type { Setting } from '../settings/index.ts'
import { classify } from './classify.ts'
import type { CheckContext } from './kind.ts'
import type { Result } from './result.ts'

/**
 * Runs several generators at once and yields what they yield, as it comes. When it ends early, each
 * of them is ended too, so that their `finally` blocks close what they opened.
 */
export async function* merged<T>(sources: readonly AsyncGenerator<T>[]): AsyncGenerator<T> {
  const pending = new Map<number, Promise<{ readonly index: number; readonly result: IteratorResult<T> }>>()
  const ask = (source: AsyncGenerator<T>, index: number): void => {
    const next = source.next().then((result) => ({ index, result }))
    // A promise that nobody awaits any more must not be an unhandled rejection.
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

/** `first`: one. `all`: every one by itself. `any`: in order, until one accepts, as a client does. */
export const addressChoices = ['first', 'all', 'any'] as const
export type AddressChoice = (typeof addressChoices)[number]

/** The setting of a kind that probes one address of a name, and all of them in Advanced. */
export const addressesSetting = {
  type: 'choice',
  values: addressChoices,
  doc: 'Which addresses of the name: `first`, `all` (each by itself) or `any` (in order, until one accepts). Without it: `first`, and `all` in Advanced',
} as const satisfies Setting

/** Which addresses a mode probes with that setting. */
export const addressesIn = (
  { addresses }: { readonly addresses?: AddressChoice | undefined },
  mode: ExecutionMode,
): AddressChoice => addresses ?? (mode === 'Advanced' ? 'all' : 'first')

/** More addresses than this are not probed: a name server must not choose how much we do. */
const maxAddresses = 16

/** An address whose turn it is. */
export type AddressTurn = PeerAddress & {
  /** No other address stands in for this one any more: a refused sign-in is not repeated elsewhere. */
  readonly commit: () => void
}

/** An address that failed before the probe had seen all of it. */
export type Unreached = {
  readonly see: 'unreached'
  readonly check: string
  readonly address: string
  readonly cause: unknown
  readonly afterMs: number
  /** A warning where another address stands in for this one. */
  readonly status: 'failed' | 'warning'
}

type Ask = { readonly host: string; readonly port: number; readonly which: AddressChoice; readonly check: string }

/**
 * Probes a name's addresses. One that fails becomes an `Unreached` and hides none of the others; only
 * the deadline is thrown on. `all` runs at once and yields as they answer.
 */
export async function* eachAddress<O>(
  context: CheckContext,
  ask: Ask,
  probe: (target: AddressTurn) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached> {
  context.step(ask.check, hostPort(ask.host, ask.port))
  const all = reachable(await context.resolve(ask.host), interfaceAddresses())
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

/** Each address gets an even share of the time that is left, until one has shown something. */
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
    const late = new ProbeError('timeout', `${address} gave no answer within ${showDuration(share)}`)
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

/** What was under way at one address, and for how long. */
function stepClock(context: CheckContext, first: string, tell: (check: string) => void) {
  let check = first
  let since = context.now()
  const step = (next: string): void => {
    check = next
    since = context.now()
    tell(next)
  }
  step(first)
  return { step, stopped: () => ({ check, afterMs: context.now() - since }) }
}

/** Tells the engine which addresses are still silent, so that a deadline names them and no others. */
function tracker(context: CheckContext) {
  const pending = new Map<string, string>()
  const tell = (): void => {
    const [first] = pending.values()
    if (first !== undefined) context.step(first, [...pending.keys()].join(', '))
  }
  return {
    at: (address: string, check: string): void => {
      pending.set(address, check)
      tell()
    },
    done: (address: string): void => {
      pending.delete(address)
      tell()
    },
  }
}

const interfaceAddresses = (): readonly string[] =>
  Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map((entry) => entry.address))

/**
 * Without an IPv6 address of its own, a machine cannot judge another's: such addresses are left out,
 * unless there are no others.
 */
export function reachable(addresses: readonly string[], own: readonly string[]): readonly string[] {
  const speaksSix = own.some((address) => isIP(address) === 6 && reachOf(address) === 'routed')
  if (speaksSix) return addresses
  const usable = addresses.filter((address) => isIP(address) !== 6 || (isLoopback(address) && own.includes('::1')))
  return usable.length > 0 ? usable : addresses
}

/** Judges an address that failed: what its error means to an operator. */
export function evaluateUnreached(observation: Unreached): Result {
  const { fault, message, details } = classify(observation.cause, observation.address, observation.afterMs)
  const base = { check: observation.check, message, details, address: observation.address }
  return observation.status === 'warning' ? { ...base, status: 'warning' } : { ...base, status: 'failed', fault }
}

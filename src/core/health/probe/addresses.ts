import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isLoopback } from '../../loopback.ts'
import { classify } from '../classify.ts'
import { showDuration } from '../judge.ts'
import { type Finding, ProbeError, type World } from '../monitor.ts'
import { hostPort } from '../net.ts'
import { merged } from './merged.ts'
import { reachOf } from './public-address.ts'
import { count } from './text.ts'

/** `first`: one. `all`: every one by itself. `any`: in order, until one accepts, as a client does. */
export const addressChoices = ['first', 'all', 'any'] as const
export type AddressChoice = (typeof addressChoices)[number]

/** More addresses than this are not probed: a name server must not choose how much we do. */
const mostAddresses = 16

/** One address under probe. */
export type Target = {
  readonly ip: string
  readonly port: number
  /** `ip:port`, for messages. */
  readonly address: string
  /** Aborts at the deadline, or when the next address's turn has come. */
  readonly signal: AbortSignal
  readonly step: (check: string) => void
}

/** An address that failed before the probe had seen all of it. */
export type Unreached = {
  readonly see: 'unreached'
  readonly check: string
  readonly address: string
  readonly cause: unknown
  readonly afterMs: number
  /** A warning where another address stands in for this one. */
  readonly level: 'fail' | 'warn'
}

type Ask = { readonly host: string; readonly port: number; readonly which: AddressChoice; readonly check: string }

/**
 * Probes a name's addresses. One that fails becomes an `Unreached` and hides none of the others; only
 * the deadline is thrown on. `all` runs at once and yields as they answer.
 */
export async function* eachAddress<O>(
  world: World,
  ask: Ask,
  probe: (target: Target) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached> {
  world.step(ask.check, hostPort(ask.host, ask.port))
  const all = reachable(await world.resolve(ask.host), interfaceAddresses())
  if (ask.which === 'any') return yield* untilOne(world, ask, all, probe)
  const ips = ask.which === 'first' ? all.slice(0, 1) : all.slice(0, mostAddresses)
  const track = tracker(world)
  yield* merged(ips.map((ip) => guarded(world, ask, ip, track, probe)))
  if (ask.which === 'all' && all.length > ips.length) {
    const told = `${ask.host} has ${count(all.length, 'address', 'addresses')}; the first ${mostAddresses} were probed`
    const cause = new ProbeError('data', told)
    yield { see: 'unreached', check: 'addresses', address: ask.host, cause, afterMs: 0, level: 'warn' }
  }
}

async function* guarded<O>(
  world: World,
  ask: Ask,
  ip: string,
  track: ReturnType<typeof tracker>,
  probe: (target: Target) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached> {
  const address = hostPort(ip, ask.port)
  const clock = stepClock(world, ask.check, (check) => track.at(address, check))
  try {
    yield* probe({ ip, port: ask.port, address, signal: world.signal, step: clock.step })
  } catch (cause) {
    if (world.signal.aborted) throw cause
    yield { see: 'unreached', ...clock.stopped(), address, cause, level: 'fail' }
  } finally {
    track.done(address)
  }
}

/** Each address gets an even share of the time that is left, until one has shown something. */
async function* untilOne<O>(
  world: World,
  ask: Ask,
  ips: readonly string[],
  probe: (target: Target) => AsyncIterable<O>,
): AsyncGenerator<O | Unreached> {
  for (const [index, ip] of ips.entries()) {
    const address = hostPort(ip, ask.port)
    const clock = stepClock(world, ask.check, (check) => world.step(check, address))
    const isLast = index === ips.length - 1
    const share = world.msLeft() / (ips.length - index)
    const turn = new AbortController()
    const end = (): void => turn.abort(world.signal.reason)
    world.signal.addEventListener('abort', end, { once: true })
    const late = new ProbeError('timeout', `${address} gave no answer within ${showDuration(share)}`)
    const timer = isLast ? undefined : setTimeout(() => turn.abort(late), share)
    let shown = false
    try {
      for await (const seen of probe({ ip, port: ask.port, address, signal: turn.signal, step: clock.step })) {
        shown = true
        clearTimeout(timer)
        yield seen
      }
      return
    } catch (error) {
      if (world.signal.aborted) throw error
      const cause: unknown = turn.signal.aborted ? late : error
      yield { see: 'unreached', ...clock.stopped(), address, cause, level: shown || isLast ? 'fail' : 'warn' }
      if (shown) return
    } finally {
      clearTimeout(timer)
      world.signal.removeEventListener('abort', end)
    }
  }
}

/** What was under way at one address, and for how long. */
function stepClock(world: World, first: string, tell: (check: string) => void) {
  let check = first
  let since = world.now()
  const step = (next: string): void => {
    check = next
    since = world.now()
    tell(next)
  }
  step(first)
  return { step, stopped: () => ({ check, afterMs: world.now() - since }) }
}

/** Tells the engine which addresses are still silent, so that a deadline names them and no others. */
function tracker(world: World) {
  const pending = new Map<string, string>()
  const tell = (): void => {
    const [first] = pending.values()
    if (first !== undefined) world.step(first, [...pending.keys()].join(', '))
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
  const kept = addresses.filter((address) => isIP(address) !== 6 || (isLoopback(address) && own.includes('::1')))
  return kept.length > 0 ? kept : addresses
}

/** Judges an address that failed: what its error means to an operator. */
export function judgeUnreached(seen: Unreached): Finding {
  const { fault, message, details } = classify(seen.cause, seen.address, seen.afterMs)
  const base = { check: seen.check, message, details, address: seen.address }
  return seen.level === 'warn' ? { ...base, level: 'warn' } : { ...base, level: 'fail', fault }
}

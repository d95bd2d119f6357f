import { createHash } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../errors.ts'
import type { Caller } from '../service.ts'
import { type Data, nameKey } from '../store/index.ts'

/** What one subscriber has: an IPv4 address, or the /64 of an IPv6 address. Anything else is as it is. */
export function addressPrefix(address: string): string {
  const [plain = ''] = address.split('%')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1]
  if (mapped !== undefined && isIPv4(mapped)) return mapped
  if (!isIPv6(plain)) return plain
  return `${groups(plain)
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}

/** All eight groups; an IPv4 tail stands for the last two, of which the prefix needs none. */
function groups(address: string): readonly string[] {
  const [head = '', tail] = address.replace(/\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/, '0:0').split('::')
  const left = head === '' ? [] : head.split(':')
  if (tail === undefined) return left
  const right = tail === '' ? [] : tail.split(':')
  return [...left, ...Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0'), ...right]
}

const minute = 60_000

/** P5. Failures in a row of one name from one address prefix; forgotten after twelve hours. */
const pairs = { most: 10, windowMs: 12 * 60 * minute, firstMs: minute, longestMs: 15 * minute } as const
/** Failures of one address, whatever the names. */
const addresses = { most: 30, windowMs: 10 * minute } as const
/** Failures of one name from anywhere: beyond what a few prefixes can make, each attempt waits. */
const names = { most: 50, windowMs: 15 * minute, stepMs: 100, longestMs: 2_000 } as const

export type Attempt = {
  /** Locked before, or by failures that came in meanwhile: then even the right password is wrong. */
  readonly locked: () => Promise<boolean>
  /** Counts it; gives whether the pair is locked from now on. */
  readonly failed: () => Promise<boolean>
  readonly succeeded: () => Promise<void>
}

/**
 * Begins an attempt to sign in. Throws Fault TooManyRequests for an address that has failed too often;
 * loopback and this machine's own account are exempt from that, and never slowed.
 */
export async function beginAttempt(
  { failures }: Pick<Data, 'failures'>,
  now: () => number,
  name: string,
  caller: Caller,
  signal: AbortSignal,
): Promise<Attempt> {
  const prefix = caller.kind === 'http' ? addressPrefix(caller.address) : 'local'
  const here = caller.kind === 'local' || caller.loopback
  // As the store compares names, so that no spelling gives further attempts.
  const typed = nameKey(name)
  const keys = {
    pair: `pair ${digest(`${typed}\0${prefix}`)}`,
    name: `name ${digest(typed)}`,
    address: `address ${prefix}`,
  }
  const [ofPair, ofName, ofAddress] = await Promise.all([
    failures.read(keys.pair),
    failures.read(keys.name),
    here ? undefined : failures.read(keys.address),
  ])

  if (ofAddress && ofAddress.count >= addresses.most) {
    const freeAt = ofAddress.lastAt + addresses.windowMs
    if (now() < freeAt) throw tooMany(freeAt - now())
  }
  const slowed = here ? 0 : slowness(ofName, now())
  if (slowed > 0) await wait(slowed, undefined, { signal })

  const began = lockedNow(ofPair, now())
  return {
    locked: async () => began || lockedNow(await failures.read(keys.pair), now()),
    async failed() {
      const at = now()
      // While it is locked an attempt does not prolong the lock; it costs the same work (P2).
      const prefix = began ? 'held ' : ''
      const count = await failures.add(prefix + keys.pair, at, pairs.windowMs)
      await failures.add(prefix + keys.name, at, names.windowMs, 'fixed')
      if (!here) await failures.add(keys.address, at, addresses.windowMs, 'fixed')
      return began || count >= pairs.most
    },
    async succeeded() {
      if (ofPair) await failures.clear(keys.pair)
      if (ofName) await failures.clear(keys.name)
    },
  }
}

type Counted = { readonly count: number; readonly lastAt: number } | undefined

const lockedNow = (counted: Counted, now: number): boolean =>
  counted !== undefined && now < counted.lastAt + lockMs(counted.count)

/** One minute at the tenth failure in a row, twice as long at each that follows, 15 minutes at most. */
export const lockMs = (count: number): number =>
  count < pairs.most ? 0 : Math.min(pairs.longestMs, pairs.firstMs * 2 ** Math.min(10, count - pairs.most))

const slowness = (counted: Counted, now: number): number =>
  counted === undefined || counted.count < names.most || now >= counted.lastAt + names.windowMs
    ? 0
    : Math.min(names.longestMs, (counted.count - names.most + 1) * names.stepMs)

const tooMany = (freeInMs: number): Fault =>
  new Fault('TooManyRequests', 'Too many failed sign-ins from this address', {
    retryAfter: Math.max(1, Math.ceil(freeInMs / 1_000)),
  })

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

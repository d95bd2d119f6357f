import { createHash } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../errors.ts'
import type { Caller } from '../service.ts'
import { type Data, nameKey } from '../store/index.ts'

/** The prefix of one subscriber: an IPv4 address, or the /64 of an IPv6 address. Other texts stay as they are. */
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

/** All eight groups of an IPv6 address. An IPv4 tail counts as the last two, which the prefix does not need. */
function groups(address: string): readonly string[] {
  const [head = '', tail] = address.replace(/\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/, '0:0').split('::')
  const left = head === '' ? [] : head.split(':')
  if (tail === undefined) return left
  const right = tail === '' ? [] : tail.split(':')
  return [...left, ...Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0'), ...right]
}

const minute = 60_000

/** Consecutive failures of one name from one address prefix, forgotten after twelve hours (P5). */
const pairs = { most: 10, windowMs: 12 * 60 * minute, firstMs: minute, longestMs: 15 * minute } as const
/** Failures of one address, for any name. */
const addresses = { most: 30, windowMs: 10 * minute } as const
/**
 * Failures of one name from any address. Above this number, which a few prefixes cannot reach, each attempt is delayed.
 */
const names = { most: 50, windowMs: 15 * minute, stepMs: 100, longestMs: 2_000 } as const

export type Attempt = {
  /** Locked before, or by failures meanwhile. Even the right password is refused then. */
  readonly locked: () => Promise<boolean>
  /** Counts a failure. Returns whether the pair is now locked. */
  readonly failed: () => Promise<boolean>
  readonly succeeded: () => Promise<void>
}

/**
 * Begins an attempt to sign in. Throws Fault TooManyRequests for an address with too many failures. Loopback and this
 * machine's own account are exempt, and never delayed.
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
  // The same comparison as in the store, so that other spellings give no further attempts.
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
      // An attempt during a lock does not prolong it, but costs the same work (P2).
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

/** One minute at the tenth consecutive failure, doubled with each further one, at most 15 minutes. */
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

import { createHash } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { Fault } from '../../base/errors.ts'
import type { Caller } from '../../protocol/service/service.ts'
import {
  type Bucket,
  type Data,
  type FailureCount,
  nameKey,
  prefixesKeptMs,
  type Settlement,
} from '../../store/index.ts'
import { groupOf, type PacedAttempt } from './paces.ts'

/**
 * The networks of an address, the narrowest first: an IPv4 address alone; of an IPv6 address its /64, which is one
 * subscriber's, its /56 and its /48. Other texts stay as they are.
 */
export function addressPrefixes(address: string): readonly [string, ...string[]] {
  const [plain = ''] = address.split('%')
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1]
  if (mapped !== undefined && isIPv4(mapped)) return [mapped]
  if (!isIPv6(plain)) return [plain]
  const [a, b, c, d] = groups(plain).map((group) => Number.parseInt(group, 16)) as [number, number, number, number]
  const site = [a, b, c].map((group) => group.toString(16)).join(':')
  return [`${site}:${d.toString(16)}::/64`, `${site}:${(d & 0xff00).toString(16)}::/56`, `${site}::/48`]
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
const pairs = { most: 10, windowMs: 12 * 60 * minute, firstMs: minute, maxMs: 15 * minute } as const
/**
 * Failures of one network in ten minutes, for any name, the narrowest first. A home has a /56 and a site a /48: people
 * share them, so a wider network may fail more often than an address, but not once more for each of its 65,536 /64.
 */
const addresses = { most: [30, 60, 120], windowMs: 10 * minute } as const
/**
 * Guesses at one name from all prefixes that have not signed in with it before: 20 at once, 80 more a day, and so never
 * more than 100 in 24 hours.
 */
const guessesOfName: Bucket = { capacity: 20, everyMs: 18 * minute }
/** A sign-in is recorded again when the record is this old. A client with HTTP Basic signs in with every request. */
const rememberAgainMs = 24 * 60 * minute

export type Attempt = {
  /**
   * Takes one of the guesses that the limit of the name allows. Throws Fault TooManyRequests when there is none. Call it
   * when the hash is about to be computed: attempts that the queue refuses then take nothing and write nothing.
   */
  readonly admit: () => Promise<void>
  /** Locked when it began. */
  readonly began: boolean
  /** Locked before, or by failures meanwhile. Even the right password is refused then. */
  readonly locked: () => Promise<boolean>
  /** Counts a failure. */
  readonly failed: () => Promise<{
    /** Whether the pair is now locked. */
    readonly locked: boolean
    /** Whether this attempt was the last that the limit of the name allowed. */
    readonly last: boolean
  }>
  /** The changes that a success makes. They are not stored yet. */
  readonly settlement: () => Settlement | undefined
  /** The secret was right, but does not sign in: it was neither a guess nor a success. */
  readonly withdrawn: () => Promise<void>
}

type AttemptContext = {
  readonly data: Pick<Data, 'failures' | 'guesses' | 'knownPrefixes'>
  readonly now: () => number
}

/**
 * Begins an attempt to sign in whose turn it is. Throws Fault TooManyRequests for an address with too many failures, and,
 * unless it has signed in with this name before, for a name with too many guesses. Neither reads nor depends on whether
 * the name exists (P2).
 */
export async function beginAttempt(
  context: AttemptContext,
  name: string,
  caller: Caller,
  { group }: Pick<PacedAttempt, 'group'>,
): Promise<Attempt> {
  // Such a caller can open the store itself (P8).
  if (caller.kind === 'local') return unlimited
  if (group !== undefined) return beginHere(context, name, group)
  // The same comparison as in the store, so that other spellings give no further attempts.
  return await beginElsewhere(context, digest(nameKey(name)), await readState(context, name, caller.address))
}

/**
 * Whether the name has signed in from where the caller is, as far as this process remembers: found without a read of the
 * store, so that it can decide who gets a place in a queue.
 */
export function isRemembered(
  { data, now }: AttemptContext,
  name: string,
  caller: Caller,
  group: string | undefined,
): boolean {
  if (caller.kind === 'local') return true
  return data.knownPrefixes.isRemembered(name, group ?? addressPrefixes(caller.address)[0], now() - prefixesKeptMs)
}

/** Reads what an attempt from another machine reads, and changes nothing. */
export async function readState({ data, now }: Pick<AttemptContext, 'data' | 'now'>, name: string, address: string) {
  const typed = digest(nameKey(name))
  const prefixes = addressPrefixes(address)
  const [prefix] = prefixes
  const networks = prefixes.map((one) => `address ${one}`)
  const pairKeys = { ofUser: `known ${typed} ${prefix}`, ofStranger: `pair ${typed} ${prefix}` }
  const at = now()
  const [counts, level, lastAt] = await Promise.all([
    data.failures.read([pairKeys.ofUser, pairKeys.ofStranger, ...networks]),
    data.guesses.level(typed, at, guessesOfName),
    data.knownPrefixes.lastAt(name, prefix),
  ])
  const isKnown = lastAt !== undefined && at - lastAt < prefixesKeptMs
  return { prefix, networks, pair: isKnown ? pairKeys.ofUser : pairKeys.ofStranger, counts, level, isKnown, lastAt }
}

/**
 * Begins an attempt with a secret that names no user, such as the token of a provider. Throws Fault TooManyRequests for an
 * address with too many failures (P5). Callers on this machine, who share an address, are never refused: nobody guesses
 * such a secret.
 */
export async function beginUnnamed(
  { data: { failures }, now }: Pick<AttemptContext, 'data' | 'now'>,
  caller: Caller,
): Promise<{ readonly failed: () => Promise<void> }> {
  if (caller.kind === 'local' || (await groupOf(caller)) !== undefined) return { failed: async () => {} }
  const networks = addressPrefixes(caller.address).map((one) => `address ${one}`)
  const counts = await failures.read(networks)
  const freeAt = Math.max(...networks.map((key, n) => freeFrom(counts.get(key), n)))
  if (now() < freeAt) throw tooMany('from this address', freeAt - now())
  return {
    async failed() {
      const counters = networks.map((key) => ({ key, windowMs: addresses.windowMs, window: 'fixed' }) as const)
      await failures.add(now(), counters)
    },
  }
}

/** An attempt from another machine. */
async function beginElsewhere(
  { data, now }: AttemptContext,
  typed: string,
  { prefix, networks, pair, counts, level, isKnown, lastAt }: Awaited<ReturnType<typeof readState>>,
): Promise<Attempt> {
  const { failures, guesses } = data
  // The neighbours of a known address must not keep it out.
  const freeAt = Math.max(...networks.slice(0, isKnown ? 1 : undefined).map((key, n) => freeFrom(counts.get(key), n)))
  if (now() < freeAt) throw tooMany('from this address', freeAt - now())
  // A flood of attempts that are refused here writes nothing.
  if (!isKnown && level.left === 0) throw tooMany('with this name', level.freeAt - now())
  let last = false
  const ofPair = counts.get(pair)
  const began = lockedNow(ofPair, now())
  return {
    began,
    async admit() {
      if (isKnown) return
      const after = await guesses.take(typed, now(), guessesOfName)
      if (!after) throw tooMany('with this name', (await guesses.level(typed, now(), guessesOfName)).freeAt - now())
      last = after.left === 0
    },
    async locked() {
      // Reads even if it was locked before: each kind of refusal costs the same work (P2).
      const current = (await failures.read([pair])).get(pair)
      return began || lockedNow(current, now())
    },
    async failed() {
      // An attempt during a lock does not prolong it, but costs the same work (P2).
      const namespace = began ? 'held ' : ''
      const [count = 0] = await failures.add(now(), [
        { key: namespace + pair, windowMs: pairs.windowMs, window: 'sliding' },
        ...networks.map((key) => ({ key, windowMs: addresses.windowMs, window: 'fixed' }) as const),
      ])
      return { locked: began || count >= pairs.most, last }
    },
    settlement: () => ({
      clears: ofPair && pair,
      givesBack: isKnown ? undefined : { name: typed, bucket: guessesOfName },
      remembers: !isKnown || now() - (lastAt ?? 0) >= rememberAgainMs ? { prefix, at: now() } : undefined,
    }),
    async withdrawn() {
      if (!isKnown) await guesses.giveBack(typed, guessesOfName)
    },
  }
}

/**
 * An attempt from this machine. Behind such an address may be everybody who uses a proxy on this machine, so failures
 * there make the next attempts wait their turn and never refuse them: otherwise one stranger could lock a name for all,
 * the administrator of this machine included.
 */
const beginHere = ({ data: { knownPrefixes }, now }: AttemptContext, name: string, group: string): Attempt => ({
  ...unlimited,
  settlement: () => {
    const at = now()
    if (knownPrefixes.isRemembered(name, group, at - rememberAgainMs)) return undefined
    return { clears: undefined, givesBack: undefined, remembers: { prefix: group, at } }
  },
})

const unlimited: Attempt = {
  began: false,
  admit: async () => {},
  locked: async () => false,
  failed: async () => ({ locked: false, last: false }),
  settlement: () => undefined,
  withdrawn: async () => {},
}

/** The keys of the store that limit attempts with a name: what `svc users unlock` removes. */
export function limitsOf(names: readonly string[]): {
  readonly counters: readonly string[]
  readonly guesses: readonly string[]
} {
  const typed = names.map((name) => digest(nameKey(name)))
  return { counters: typed.flatMap((one) => [`pair ${one} `, `known ${one} `]), guesses: typed }
}

const lockedNow = (counted: FailureCount | undefined, now: number): boolean =>
  counted !== undefined && now < counted.lastAt + lockMs(counted.count)

/** One minute at the tenth consecutive failure, doubled with each further one, at most 15 minutes. */
export const lockMs = (count: number): number =>
  count < pairs.most ? 0 : Math.min(pairs.maxMs, pairs.firstMs * 2 ** Math.min(10, count - pairs.most))

/** The time from which a network may try again; 0 if it may now. `n`: its place among the networks of an address. */
const freeFrom = (counted: FailureCount | undefined, n: number): number =>
  counted && counted.count >= (addresses.most[n] ?? 0) ? counted.lastAt + addresses.windowMs : 0

const tooMany = (what: string, freeInMs: number): Fault =>
  new Fault('TooManyRequests', `Too many failed sign-ins ${what}`, {
    retryAfter: Math.max(1, Math.ceil(freeInMs / 1_000)),
  })

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { PacedQueue, pace } from '../../../src/core/accounts/auth/paced-queue.ts'
import { groupOf, Paces } from '../../../src/core/accounts/auth/paces.ts'
import type { Caller } from '../../../src/core/protocol/service/service.ts'
import { peerProcess } from '../../support/engine/peer-process.ts'
import { isQuick } from '../../support/suite/tier.ts'
import { faultOf } from './fixture.ts'

const minutes = 10
const never = new AbortController().signal
const relayed: Caller = { kind: 'http', address: '127.0.0.1', loopback: false, relayed: true }

/** A generator of the same numbers for the same seed, from 0 to 1. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/**
 * Ten minutes in which 60 guessers try 600 names through a proxy that nobody has declared, each again 100 ms after its last
 * answer, while a user who has signed in there before signs in every 20 s with one of these names and waits for 10 s at most.
 */
function simulate(seed: number): { readonly guesses: number; readonly admitted: number; readonly tries: number } {
  const hashMs = 40
  const random = numbers(seed)
  const queue = new PacedQueue<{ readonly answer: (isAdmitted: boolean) => void }>()
  const events: { readonly at: number; readonly run: (now: number) => void }[] = []
  const later = (at: number, run: (now: number) => void): void => void events.push({ at, run })
  let guesses = 0
  let admitted = 0
  let tries = 0
  let wakesAt = Number.POSITIVE_INFINITY
  const wake = (now: number): void => {
    const at = Math.max(now, queue.nextAt(now) ?? Number.POSITIVE_INFINITY)
    if (at >= wakesAt) return
    wakesAt = at
    later(at, (then) => {
      wakesAt = Number.POSITIVE_INFINITY
      queue.take(then)?.answer(true)
      wake(then)
    })
  }
  const attempt = (now: number, name: string, decided: (isAdmitted: boolean, withdraw: () => void) => void): void => {
    const item = { answer: (is: boolean) => decided(is, is ? queue.begin(clock) : () => {}) }
    if (!queue.isSlow(now)) item.answer(true)
    else queue.enter({ name, isKnown: name === 'name 7', item })?.item.answer(false)
    wake(now)
  }
  const guess = (now: number): void =>
    attempt(now, `name ${Math.floor(random() * 600)}`, (isAdmitted) => {
      if (isAdmitted) guesses += 1
      later(clock + (isAdmitted ? hashMs : 100), guess)
      wake(clock)
    })
  const signIn = (now: number): void => {
    tries += 1
    attempt(now, 'name 7', (isAdmitted, withdraw) => {
      if (!isAdmitted) return
      if (clock - now <= 10_000) admitted += 1
      later(clock + hashMs, withdraw)
    })
    later(now + 20_000, signIn)
  }
  let clock = 0
  for (let n = 0; n < 60; n += 1) later(n, guess)
  later(5_000, signIn)
  while (clock < minutes * 60_000) {
    const next = events.reduce((first, one, n) => (one.at < (events[first]?.at ?? 0) ? n : first), 0)
    const [event] = events.splice(next, 1)
    if (!event) break
    clock = event.at
    event.run(clock)
  }
  return { guesses, admitted, tries }
}

describe('P5 attempts through a proxy that nobody has declared', () => {
  test('P5 of 60 guessers at 600 names, at most 70 guesses a minute are evaluated, and a user who is known there gets 95 % of the sign-ins (simulated clock)', () => {
    for (const seed of isQuick() ? [1] : [1, 2, 3]) {
      const { guesses, admitted, tries } = simulate(seed)
      expect(guesses / minutes).toBeLessThanOrEqual(70)
      expect(tries).toBe(30)
      expect(admitted / tries).toBeGreaterThanOrEqual(0.95)
    }
  })

  test('P5 until 30 attempts of ten minutes have failed nobody waits; then one attempt a second begins', () => {
    const queue = new PacedQueue<string>()
    for (let n = 0; n < 29; n += 1) queue.begin(n)
    expect(queue.isSlow(29)).toBe(false)
    queue.begin(29)
    expect(queue.isSlow(29)).toBe(true)
    queue.enter({ name: 'a', isKnown: false, item: 'first' })
    queue.enter({ name: 'b', isKnown: false, item: 'second' })
    expect([queue.take(1_028), queue.take(1_029)]).toEqual([undefined, 'first'])
    queue.begin(1_029)
    expect([queue.take(2_028), queue.take(2_029)]).toEqual([undefined, 'second'])
    expect([queue.isSlow(10 * 60_000), queue.isSlow(10 * 60_000 + 1)]).toEqual([true, false])
  })

  test('P5 an attempt that succeeds, or that nothing decides, counts no failure', () => {
    const queue = new PacedQueue<string>()
    for (let n = 0; n < 1_000; n += 1) queue.begin(n)()
    expect(queue.isSlow(1_000)).toBe(false)
    expect(queue.isIdle(1_000)).toBe(true)
  })

  test('P5 names that are known here go first, and names take turns', () => {
    const queue = new PacedQueue<string>()
    for (let n = 0; n < 30; n += 1) queue.begin(0)
    for (const [n, name] of ['a', 'a', 'a', 'b', 'c'].entries()) {
      queue.enter({ name, isKnown: name === 'c', item: `${name}${n}` })
    }
    const order: (string | undefined)[] = []
    for (let s = 1; s <= 5; s += 1) {
      order.push(queue.take(s * 1_000))
      queue.begin(s * 1_000)
    }
    expect(order).toEqual(['c4', 'a0', 'b3', 'a1', 'a2'])
  })

  test('P5 in a full queue a known name takes the place of the youngest unknown one, and a rare name that of a frequent one', () => {
    const queue = new PacedQueue<string>()
    for (let n = 0; n < 31; n += 1) queue.enter({ name: 'flood', isKnown: false, item: `flood ${n}` })
    queue.enter({ name: 'last', isKnown: false, item: 'last' })
    expect(queue.size).toBe(32)
    const enter = (name: string, isKnown: boolean) => queue.enter({ name, isKnown, item: `new ${name}` })?.item
    expect(enter('flood', false)).toBe('new flood')
    expect(enter('rare', false)).toBe('flood 30')
    expect(enter('known', true)).toBe('new rare')
    expect(enter('known 2', true)).toBe('last')
    expect(queue.size).toBe(32)
  })

  test('P5 at most one attempt a second begins while failures last, and each that waits is served once or displaced', () => {
    const step = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      isKnown: fc.boolean(),
      afterMs: fc.integer({ min: 0, max: 700 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = new PacedQueue<number>()
        for (let n = 0; n < 30; n += 1) queue.begin(0)
        const left = new Set<number>()
        let now = 0
        let lastAt = 0
        for (const [n, { name, isKnown, afterMs }] of steps.entries()) {
          now += afterMs
          left.add(n)
          const out = queue.enter({ name, isKnown, item: n })
          if (out) expect(left.delete(out.item)).toBe(true)
          const next = queue.take(now)
          if (next !== undefined) {
            expect(now - lastAt).toBeGreaterThanOrEqual(pace.everyMs)
            expect(left.delete(next)).toBe(true)
            queue.begin(now)
            lastAt = now
          }
          expect(queue.size).toBe(left.size)
          expect(queue.size).toBeLessThanOrEqual(pace.waiting)
        }
      }),
    )
  })
})

describe('P5 the queues of a process (simulated clock)', () => {
  /** Thirty attempts of a caller, all failed. */
  async function fail(paces: Paces, caller: Caller): Promise<void> {
    for (let n = 0; n < 30; n += 1) await paces.turn(caller, `name ${n}`, () => false, never)
  }
  const withTimers = async (use: (paces: Paces) => Promise<void>): Promise<void> => {
    vi.useFakeTimers()
    try {
      await use(new Paces(() => Date.now()))
    } finally {
      vi.useRealTimers()
    }
  }

  test('P5 they begin one attempt a second, and refuse the 33rd that waits', () =>
    withTimers(async (paces) => {
      await fail(paces, relayed)
      let started = 0
      const waiting = Array.from({ length: 32 }, async (_, n) => {
        await paces.turn(relayed, `name ${n}`, () => false, never)
        started += 1
      })
      await vi.advanceTimersByTimeAsync(0)
      const fault = await faultOf(paces.turn(relayed, 'another', () => false, never))
      expect([fault.fault, fault.details.retryAfter]).toEqual(['Unavailable', 32])
      await vi.advanceTimersByTimeAsync(10_500)
      expect(started).toBe(10)
      await vi.advanceTimersByTimeAsync(22_000)
      expect(started).toBe(32)
      await Promise.all(waiting)
    }))

  test('P5 a caller that leaves returns its place, and its attempt is not made', () =>
    withTimers(async (paces) => {
      await fail(paces, relayed)
      const going = new AbortController()
      const waiting = Array.from({ length: 32 }, (_, n) => paces.turn(relayed, `${n}`, () => false, going.signal))
      const left = Promise.allSettled(waiting)
      await vi.advanceTimersByTimeAsync(0)
      going.abort(new Error('went away'))
      expect((await left).map(({ status }) => status)).toEqual(Array.from({ length: 32 }, () => 'rejected'))
      const next = paces.turn(relayed, 'another', () => false, never)
      await vi.advanceTimersByTimeAsync(1_000)
      await next
    }))

  test('P5 each account of this machine has a queue of its own, and callers from elsewhere have none', async () => {
    const of = (account: number | undefined): Caller => ({
      kind: 'http',
      address: '127.0.0.1',
      loopback: true,
      process: peerProcess({ account: async () => account }),
    })
    const elsewhere: Caller = { kind: 'http', address: '192.0.2.1', loopback: false }
    // A trusted proxy may report any address.
    const reported: Caller = { kind: 'http', address: '127.0.0.1', loopback: false }
    const groups = [relayed, of(1_000), of(undefined), elsewhere, reported, { kind: 'local', account: 'ann' } as const]
    expect(await Promise.all(groups.map(groupOf))).toEqual([
      'relay',
      'account 1000',
      'loopback',
      undefined,
      undefined,
      undefined,
    ])
    await withTimers(async (paces) => {
      await fail(paces, of(1_000))
      await paces.turn(of(1_001), 'name', () => false, never)
      await paces.turn(relayed, 'name', () => false, never)
    })
  })

  test('P5 a process of the account of svc never waits', () =>
    withTimers(async (paces) => {
      const own: Caller = {
        kind: 'http',
        address: '127.0.0.1',
        loopback: true,
        process: peerProcess({ account: async () => 1_000, isOwn: async () => true }),
      }
      for (let n = 0; n < 100; n += 1) await paces.turn(own, 'name', () => false, never)
    }))
})

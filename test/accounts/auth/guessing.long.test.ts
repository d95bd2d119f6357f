import { describe, expect, test } from 'vitest'
import type { Call } from '../../../src/core/protocol/service/service.ts'
import { peerProcess } from '../../support/engine/peer-process.ts'
import { endsByDeadline, lastsAtLeast } from '../../support/suite/deadline.ts'
import { by, type Fixture, faultFields, faultOf, from, openFixture, password } from './fixture.ts'

const minute = 60_000
const day = 24 * 60 * minute

const request = (UserName: string, Password: string) => ({ provider: 'credentials', UserName, Password })
const attempt = async ({ access }: Fixture, address: string, Password = 'wrong', UserName = 'Ann'): Promise<number> =>
  await access.authenticate(request(UserName, Password), from(address)).then(
    () => 200,
    (error: { status: number }) => error.status,
  )
/** A different address for each number. */
const address = (n: number): string => `198.${51 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`
/** Guesses from this many addresses, one each, beginning with the address of this number. */
async function guess(
  fixture: Fixture,
  times: number,
  { first = 0, name = 'Ann' } = {},
): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {}
  for (let n = 0; n < times; n += 1) {
    const status = await attempt(fixture, address(first + n), 'wrong', name)
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  return statuses
}

describe('guessing the password of one name from many addresses', () => {
  test('P5 at most 20 guesses are evaluated at once and 100 in a day; others are 429 before any hash (simulated clock)', async () => {
    const fixture = await openFixture()
    expect(await guess(fixture, 60)).toEqual({ 401: 20, 429: 40 })
    expect(fixture.hashes.count).toBe(20)
    for (let n = 1; n <= 95; n += 1) {
      fixture.clock.at += 15 * minute
      await guess(fixture, 3, { first: n * 100 })
    }
    expect(fixture.hashes.count).toBeGreaterThan(90)
    expect(fixture.hashes.count).toBeLessThanOrEqual(100)
  }, 60_000)

  test('P5 of parallel guesses no more are evaluated', async () => {
    const fixture = await openFixture()
    const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => attempt(fixture, address(n))))
    expect(fixture.hashes.count).toBeLessThanOrEqual(20)
    expect(answers.filter((status) => status === 401)).toHaveLength(fixture.hashes.count)
  }, 30_000)

  test.each(['Ann', 'Nobody'])(
    'P5 P2 the right password, a wrong one and another spelling of %s get the same 429 from a new address',
    async (name) => {
      const fixture = await openFixture()
      const upper = name.toUpperCase()
      await guess(fixture, 20, { name })
      const refused = async (typed: string, Password: string) =>
        faultFields(await faultOf(fixture.access.authenticate(request(typed, Password), from('192.0.2.9'))))
      const refusal = await refused(name, 'wrong')
      expect(refusal).toEqual({
        fault: 'TooManyRequests',
        status: 429,
        errorCode: 'TooManyRequests',
        message: 'Too many failed sign-ins with this name',
        details: { retryAfter: 18 * 60 },
      })
      expect(await refused(name, password)).toEqual(refusal)
      expect(await refused(upper, password)).toEqual(refusal)
      expect(fixture.hashes.count).toBe(20)
      expect(await attempt(fixture, '192.0.2.9', 'wrong', 'Another')).toBe(401)
    },
    30_000,
  )

  test('P5 an address that has signed in with the name before is not affected, and a new one is after 18 minutes (simulated clock)', async () => {
    const fixture = await openFixture()
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
    await guess(fixture, 25)
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
    expect(await attempt(fixture, '192.0.2.1', password, 'ann@example.com')).toBe(200)
    expect(await attempt(fixture, '192.0.2.2', password)).toBe(429)
    fixture.clock.at += 18 * minute - 1
    expect(await attempt(fixture, '192.0.2.2', password)).toBe(429)
    fixture.clock.at += 1
    expect(await attempt(fixture, '192.0.2.2', password)).toBe(200)
  }, 30_000)

  test('P5 an address stays known for 90 days after its last sign-in (simulated clock)', async () => {
    const fixture = await openFixture()
    await attempt(fixture, '192.0.2.1', password)
    fixture.clock.at += 60 * day
    await attempt(fixture, '192.0.2.1', password)
    fixture.clock.at += 89 * day
    await guess(fixture, 25)
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
    fixture.clock.at += 91 * day
    await guess(fixture, 25)
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(429)
  }, 30_000)

  test('P5 a known address can still be locked, and only itself', async () => {
    const fixture = await openFixture()
    await attempt(fixture, '192.0.2.1', password)
    for (let n = 0; n < 10; n += 1) expect(await attempt(fixture, '192.0.2.1')).toBe(401)
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(401)
    fixture.clock.at += minute
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
  }, 30_000)

  test('P5 only the /64 of a sign-in is known, not its neighbours', async () => {
    const fixture = await openFixture()
    await attempt(fixture, '2001:db8:1:100::1', password)
    await guess(fixture, 25)
    expect(await attempt(fixture, '2001:db8:1:100::2', password)).toBe(200)
    expect(await attempt(fixture, '2001:db8:1:101::1', password)).toBe(429)
  }, 30_000)

  test('P5 successes take nothing from the limit', async () => {
    const fixture = await openFixture()
    for (let n = 0; n < 30; n += 1) expect(await attempt(fixture, address(n), password)).toBe(200)
    expect(await guess(fixture, 25, { first: 1_000 })).toEqual({ 401: 20, 429: 5 })
  }, 30_000)

  test('P3 P5 attempts that the queue refuses or whose caller has left take nothing from the limit', async () => {
    const fixture = await openFixture()
    const gone = new AbortController()
    const leaving = Array.from({ length: 15 }, async (_, n) => {
      const call = from(address(n), { signal: gone.signal })
      await fixture.access.authenticate(request('Ann', 'wrong'), call).catch(() => {})
    })
    setImmediate(() => gone.abort(new Error('went away')))
    await Promise.all(leaving)
    const before = fixture.hashes.count
    expect(before).toBeLessThan(15)
    await guess(fixture, 25, { first: 1_000 })
    expect(fixture.hashes.count).toBe(20)
  }, 30_000)

  test('P5 the audit says when no more guesses from new addresses are evaluated', async () => {
    const fixture = await openFixture()
    await guess(fixture, 25)
    const rows = await fixture.data.audit.list({ limit: 30 })
    const failed = rows.filter(({ event }) => event === 'signin.failed')
    expect(failed).toHaveLength(20)
    expect(failed.map(({ reason }) => reason).filter((reason) => reason !== undefined)).toEqual([
      'limit reached: addresses that have never signed in with this name are refused',
    ])
    expect(failed[0]?.reason).toBeDefined()
  }, 30_000)
})

describe('unlocking a user', () => {
  test('P5 ends a lock and fills the limit of every name; --from keeps an address free of the limit', async () => {
    const fixture = await openFixture()
    for (let n = 0; n < 10; n += 1) await attempt(fixture, '192.0.2.1')
    await guess(fixture, 15)
    await guess(fixture, 25, { name: 'ann@example.com', first: 500 })
    expect(await attempt(fixture, '192.0.2.9', password)).toBe(429)
    await fixture.admin.users.unlock('ann@example.com', undefined, by)
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
    expect(await attempt(fixture, '192.0.2.9', password, 'ann@example.com')).toBe(200)
    await guess(fixture, 25, { first: 1_000 })
    await fixture.admin.users.unlock('Ann', '2001:db8:1:2::7', by)
    await guess(fixture, 25, { first: 2_000 })
    expect(await attempt(fixture, '192.0.2.10', password)).toBe(429)
    expect(await attempt(fixture, '2001:db8:1:2:3::4', password)).toBe(200)
    const fault = await faultOf(fixture.admin.users.unlock('Ann', 'home', by))
    expect([fault.status, fault.message]).toEqual([400, "'From' must be an IP address"])
  }, 30_000)
})

describe('failures of IPv6 networks', () => {
  const refusedFrom = async (fixture: Fixture, text: string, n: number) =>
    await attempt(fixture, text, 'wrong', `name-${n}`)

  test('P5 a /56 has the allowance of two addresses, however many /64 it uses', async () => {
    const fixture = await openFixture()
    for (let n = 0; n < 60; n += 1) expect(await refusedFrom(fixture, `2001:db8:1:1${hex(n)}::1`, n)).toBe(401)
    expect(await refusedFrom(fixture, '2001:db8:1:1ff::1', 60)).toBe(429)
    expect(await refusedFrom(fixture, '2001:db8:1:200::1', 60)).toBe(401)
  }, 30_000)

  test('P5 a /48 has the allowance of four addresses, and an address known for the name is not affected', async () => {
    const fixture = await openFixture()
    await attempt(fixture, '2001:db8:1:ffff::1', password)
    for (let n = 0; n < 120; n += 1) expect(await refusedFrom(fixture, `2001:db8:1:${hex(n)}00::1`, n)).toBe(401)
    expect(await refusedFrom(fixture, '2001:db8:1:fe00::1', 120)).toBe(429)
    expect(await attempt(fixture, '2001:db8:1:ffff::1', password, 'Nobody')).toBe(429)
    expect(await attempt(fixture, '2001:db8:1:ffff::1', password)).toBe(200)
    expect(await refusedFrom(fixture, '2001:db8:2:fe00::1', 120)).toBe(401)
  }, 30_000)
  const hex = (n: number): string => n.toString(16).padStart(2, '0')
})

describe('failures from this machine', () => {
  const caller = (more: object): Call =>
    from('127.0.0.1', { caller: { kind: 'http', address: '127.0.0.1', loopback: false, ...more } })
  const relayed = caller({ relayed: true })
  const status = async ({ access }: Fixture, call: Call, Password = 'wrong', UserName = 'Ann'): Promise<number> =>
    await access.authenticate(request(UserName, Password), call).then(
      () => 200,
      (error: { status: number }) => error.status,
    )

  test.each([
    ['this machine', '127.0.0.1'],
    ['IPv6', '::1'],
    ['IPv4 mapped into IPv6', '::ffff:127.0.0.1'],
  ])(
    'P5 wrong passwords from loopback (%s) make the next attempts wait their turn and never lock the name',
    async (_, peer) => {
      const fixture = await openFixture()
      for (let n = 0; n < 30; n += 1) expect(await attempt(fixture, peer)).toBe(401)
      expect(await lastsAtLeast(500, () => attempt(fixture, '127.9.9.9', password))).toBe(200)
      expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
    },
    30_000,
  )

  test('P5 a loopback address that a proxy reports counts like any other address', async () => {
    const fixture = await openFixture()
    const reported = caller({})
    for (let n = 0; n < 30; n += 1) expect(await status(fixture, reported, 'wrong', `name-${n}`)).toBe(401)
    expect(await status(fixture, reported, password)).toBe(429)
  }, 30_000)

  test('P5 of 60 guessers at 600 names through a proxy that nobody has declared, one guess a second is evaluated after 30, and a user who is known there signs in', async () => {
    const fixture = await openFixture()
    expect(await status(fixture, relayed, password)).toBe(200)
    await status(fixture, relayed, 'wrong', 'ann@example.com')
    const before = fixture.hashes.count
    const began = performance.now()
    const ends = new AbortController()
    let next = 0
    const guesser = async (): Promise<void> => {
      while (!ends.signal.aborted) {
        next += 1
        const guess = { ...relayed, signal: ends.signal }
        const answer = await status(fixture, guess, 'wrong', next % 600 === 0 ? 'Ann' : `name-${next % 600}`)
        if (answer === 503) await new Promise((resolve) => setTimeout(resolve, 100))
      }
    }
    const guessers = Array.from({ length: 60 }, guesser)
    const answers: number[] = []
    for (let n = 0; n < 4; n += 1) answers.push(await status(fixture, relayed, password))
    const seconds = (performance.now() - began) / 1_000
    ends.abort()
    await Promise.all(guessers)
    expect(answers).toEqual([200, 200, 200, 200])
    // Those of the user and those in progress, too.
    expect(fixture.hashes.count - before).toBeLessThanOrEqual(30 + seconds + 6)
  }, 120_000)

  test('P5 a process of the account of this server is not slowed down', async () => {
    const fixture = await openFixture()
    const process = peerProcess({ account: async () => 1_000, isOwn: async () => true })
    const own = caller({ loopback: true, process })
    for (let n = 0; n < 40; n += 1) expect(await status(fixture, own)).toBe(401)
    expect(await endsByDeadline(900, status(fixture, own, password), 1)).toBe(200)
  }, 30_000)
})

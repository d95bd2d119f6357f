import { describe, expect, test } from 'vitest'
import { addressPrefixes, lockMs } from '../../../src/core/accounts/auth/attempts.ts'
import { by, type Fixture, faultOf, from, openFixture, password } from './fixture.ts'

const minute = 60_000

const attempt = async ({ access }: Fixture, address: string, Password: string, UserName = 'Ann'): Promise<number> =>
  await access.authenticate({ provider: 'credentials', UserName, Password }, from(address)).then(
    () => 200,
    (error: { status: number }) => error.status,
  )
const fail = async (fixture: Fixture, address: string, times: number, name = 'Ann'): Promise<void> => {
  for (let n = 0; n < times; n += 1) expect(await attempt(fixture, address, 'wrong', name)).toBe(401)
}

describe('failed sign-ins', () => {
  test('P5 ten in a row lock the name for that address alone, for a minute', async () => {
    const fixture = await openFixture()
    await fail(fixture, '192.0.2.1', 10)
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(401)
    expect(await attempt(fixture, '192.0.2.2', password)).toBe(200)
    fixture.clock.at += minute - 1
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(401)
    fixture.clock.at += 1
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
  }, 30_000)

  test('P5 nine in a row do not, and a success resets the count', async () => {
    const fixture = await openFixture()
    await fail(fixture, '192.0.2.1', 9)
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
    await fail(fixture, '192.0.2.1', 9)
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
  }, 30_000)

  test('P5 attempts during a lock do not prolong it, and one after it locks for twice as long', async () => {
    const fixture = await openFixture()
    await fail(fixture, '192.0.2.1', 10)
    fixture.clock.at += minute / 2
    await fail(fixture, '192.0.2.1', 5)
    fixture.clock.at += minute / 2
    await fail(fixture, '192.0.2.1', 1)
    fixture.clock.at += 2 * minute - 1
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(401)
    fixture.clock.at += 1
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
  }, 30_000)

  test('P5 the lock doubles up to 15 minutes', () => {
    expect([9, 10, 11, 12, 13, 14, 15, 10_000].map((count) => lockMs(count) / minute)).toEqual([
      0, 1, 2, 4, 8, 15, 15, 15,
    ])
  })

  test('P5 of many concurrent attempts no more than the limit are evaluated: the correct one among the last is refused', async () => {
    const fixture = await openFixture()
    const guesses = [...Array.from({ length: 17 }, () => 'wrong'), password]
    const answers = await Promise.all(guesses.map((guess) => attempt(fixture, '192.0.2.1', guess)))
    expect(answers).toEqual(guesses.map(() => 401))
    fixture.clock.at += 15 * minute
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
  }, 30_000)

  test('P5 another spelling of the name gives no further attempts', async () => {
    const fixture = await openFixture()
    for (const name of ['Ann', 'ann', 'ANN', 'aNN', 'anN', 'Ann', 'ann', 'ANN', 'aNN', 'anN']) {
      await fail(fixture, '192.0.2.1', 1, name)
    }
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(401)
  }, 30_000)

  test('P5 another name from the same address is not locked', async () => {
    const fixture = await openFixture()
    await fixture.admin.users.add({ userName: 'Bob', password }, by)
    await fail(fixture, '192.0.2.1', 10)
    expect(await attempt(fixture, '192.0.2.1', password, 'Bob')).toBe(200)
  }, 30_000)

  test('P5 a name that does not exist is locked in the same way', async () => {
    const fixture = await openFixture()
    await fail(fixture, '192.0.2.1', 10, 'Bob')
    await fixture.admin.users.add({ userName: 'Bob', password }, by)
    expect(await attempt(fixture, '192.0.2.1', password, 'Bob')).toBe(401)
    expect(await attempt(fixture, '192.0.2.2', password, 'Bob')).toBe(200)
  }, 30_000)

  test('P5 thirty from one address are answered 429 with Retry-After, until ten minutes have passed', async () => {
    const fixture = await openFixture()
    for (let n = 0; n < 30; n += 1) await fail(fixture, '192.0.2.1', 1, `name-${n}`)
    const request = { provider: 'credentials', UserName: 'Ann', Password: password }
    const fault = await faultOf(fixture.access.authenticate(request, from('192.0.2.1')))
    expect([fault.status, fault.details.retryAfter]).toEqual([429, 600])
    expect(await attempt(fixture, '192.0.2.2', password)).toBe(200)
    fixture.clock.at += 10 * minute
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
  }, 30_000)

  test('P5 a failure every nine minutes never adds up to thirty in ten', async () => {
    const fixture = await openFixture()
    for (let n = 0; n < 32; n += 1) {
      await fail(fixture, '192.0.2.1', 1, `name-${n}`)
      fixture.clock.at += 9 * minute
    }
    expect(await attempt(fixture, '192.0.2.1', password)).toBe(200)
  }, 30_000)

  test('P5 loopback is exempt from the limit for an address', async () => {
    const fixture = await openFixture()
    for (let n = 0; n < 31; n += 1) await fail(fixture, '127.0.0.1', 1, `name-${n}`)
    expect(await attempt(fixture, '127.0.0.1', password)).toBe(200)
  }, 30_000)

  test.each([
    ['192.0.2.1', ['192.0.2.1']],
    ['::ffff:192.0.2.1', ['192.0.2.1']],
    ['2001:db8:1:2345:3:4:5:6', ['2001:db8:1:2345::/64', '2001:db8:1:2300::/56', '2001:db8:1::/48']],
    ['2001:0DB8:0001:0002::1', ['2001:db8:1:2::/64', '2001:db8:1:0::/56', '2001:db8:1::/48']],
    ['2001:db8::1', ['2001:db8:0:0::/64', '2001:db8:0:0::/56', '2001:db8:0::/48']],
    ['fe80::1%eth0', ['fe80:0:0:0::/64', 'fe80:0:0:0::/56', 'fe80:0:0::/48']],
    ['64:ff9b::192.0.2.1', ['64:ff9b:0:0::/64', '64:ff9b:0:0::/56', '64:ff9b:0::/48']],
    ['unknown', ['unknown']],
  ])('P5 the address %s counts as %j', (address, prefixes) => {
    expect(addressPrefixes(address)).toEqual(prefixes)
  })
})

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Data } from '../../src/core/store/index.ts'
import { actor, backends, failed, failuresOf, newUser, twoNodes } from '../support/store/data-fixture.ts'

const bucket = { capacity: 1, everyMs: 1_000_000 }

describe.each(backends)('the store on $name, as full as it gets', ({ name, start, fresh, raw, stop }) => {
  let store = ''
  const clock = 1_000
  let data: Data
  /** A second node of the same store. */
  let other: Data
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    ;({ store, data, other } = await twoNodes(fresh, store, () => clock))
  })
  afterEach(() => Promise.all([data.close(), other.close()]))

  test('A12 a user has a limited number of used nonces, and the older half is refused beyond it', async () => {
    const secret = { realm: 'svc', sha256: 'a'.repeat(64), md5: 'b'.repeat(32), forAdmin: false }
    const { id: userId } = await data.users.add({ ...newUser('dora'), digest: secret }, actor())
    const use = (n: number, nc = 1) =>
      data.digest.use({ userId, sha256: secret.sha256, nonce: `n${n}`, madeAt: clock + n, nc })
    for (let n = 1; n <= 1_001; n += 1) expect(await use(n)).toBe(true)
    expect([await use(1, 2), await use(400, 2), await use(900, 2)]).toEqual([false, false, true])
  })

  test('P5 there are at most 100,000 rows, and the oldest are removed first', async () => {
    const numbers =
      name === 'SQLite'
        ? 'WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100000)'
        : 'WITH s AS (SELECT generate_series(1, 100000) AS n)'
    const columns = '"failures" ("key", "count", "lastAt")'
    await raw(
      store,
      name === 'SQLite'
        ? `INSERT INTO ${columns} ${numbers} SELECT 'k' || n, 3, n FROM s`
        : `${numbers} INSERT INTO ${columns} SELECT 'k' || n, 3, n FROM s`,
    )
    expect(await failed(data, 'k5', 300_000, 500_000)).toBe(4)
    for (let n = 0; n < 300; n += 1) await failed(n % 2 ? data : other, `new${n}`, 200_000 + n, 5_000)
    const [row] = await raw(store, 'SELECT count(*) AS "n" FROM "failures"')
    expect(Number(row?.n)).toBeLessThanOrEqual(100_000)
    expect(Number(row?.n)).toBeGreaterThan(95_000)
    expect(await failuresOf(data, 'k1')).toBeUndefined()
    expect(await failuresOf(data, 'k5')).toEqual({ count: 4, lastAt: 300_000 })
    expect(await failuresOf(data, 'k99999')).toEqual({ count: 3, lastAt: 99_999 })
    expect(await failuresOf(data, 'new299')).toEqual({ count: 1, lastAt: 200_299 })
  })

  test('P5 failures with invented names do not remove the counter of a known prefix', async () => {
    const numbers =
      name === 'SQLite'
        ? 'WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100000)'
        : 'WITH s AS (SELECT generate_series(1, 100000) AS n)'
    for (const key of ['known alice', 'pair alice']) await failed(data, key, 1, 500_000)
    const into = '"failures" ("key", "count", "lastAt")'
    await raw(
      store,
      name === 'SQLite'
        ? `INSERT INTO ${into} ${numbers} SELECT 'pair ' || n, 1, 1000 + n FROM s`
        : `${numbers} INSERT INTO ${into} SELECT 'pair ' || n, 1, 1000 + n FROM s`,
    )
    for (let n = 0; n < 300; n += 1) await failed(n % 2 ? data : other, `pair new${n}`, 200_000 + n, 5_000)
    expect((await failuresOf(data, 'known alice'))?.count).toBe(1)
    expect(await failuresOf(data, 'pair alice')).toBeUndefined()
  })

  test('P5 there are at most 100,000 buckets, and the empty bucket of an attacked name stays', async () => {
    const numbers =
      name === 'SQLite'
        ? 'WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 100000)'
        : 'WITH s AS (SELECT generate_series(1, 100000) AS n)'
    for (let n = 0; n < 3; n += 1) await data.guesses.take('attacked', 1_000_000, bucket)
    // One guess at each of many invented names, made after those at the attacked one.
    const values = `'invented' || n, 1001500 + n % 1000`
    const into = '"guesses" ("name", "fullAt")'
    await raw(
      store,
      name === 'SQLite'
        ? `INSERT INTO ${into} ${numbers} SELECT ${values} FROM s`
        : `${numbers} INSERT INTO ${into} SELECT ${values} FROM s`,
    )
    for (let n = 0; n < 300; n += 1) await (n % 2 ? data : other).guesses.take(`new${n}`, 1_000_500, bucket)
    const [row] = await raw(store, 'SELECT count(*) AS "n" FROM "guesses"')
    expect(Number(row?.n)).toBeLessThanOrEqual(100_000)
    expect(Number(row?.n)).toBeGreaterThan(95_000)
    expect(await data.guesses.take('attacked', 1_000_500, bucket)).toBeUndefined()
  })
})

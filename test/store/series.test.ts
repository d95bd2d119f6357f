import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import type { Data } from '../../src/core/store/index.ts'
import { backendsOfTier, twoNodes } from '../support/store/data-fixture.ts'
import { until } from '../support/suite/until.ts'

const minute = 60_000

/** Does it again as long as the store does not answer in time, as `svc serve` does. */
const untilAvailable = (work: () => Promise<void>): Promise<true> =>
  until(
    () =>
      work().then(
        () => true as const,
        (error: unknown) => {
          if (error instanceof Fault && error.fault === 'Unavailable') return false
          throw error
        },
      ),
    120_000,
  )

describe.each(backendsOfTier())('series that get another name on $name', ({ start, fresh, raw, stop }) => {
  let store = ''
  let data: Data
  /** A second node of the same store. */
  let other: Data
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    ;({ store, data, other } = await twoNodes(fresh, store))
  })
  afterEach(() => Promise.all([data.close(), other.close()]))
  const keep = (series: string, at: number, value: number, by = data) =>
    by.readings.keep({ series, at, value, everyMs: 1 })
  const stored = async () => {
    const rows = await raw(store, 'SELECT "series", "points" FROM "readings" ORDER BY "series"')
    return rows.map(({ series, points }) => [series, JSON.parse(String(points)) as unknown])
  }
  const renaming = (pairs: Readonly<Record<string, readonly string[]>>) => (names: readonly string[]) =>
    names.flatMap((from) => (pairs[from] ? [{ from, to: pairs[from] }] : []))

  test('H41 keep their values, and every other series stays', async () => {
    await keep('old', minute, 7)
    await keep('old', 2 * minute, 8)
    await keep('else', minute, 9)
    await data.readings.rename(renaming({ old: ['new', 'twin'] }))
    const values = [
      [minute, 7],
      [2 * minute, 8],
    ]
    expect(await stored()).toEqual([
      ['else', [[minute, 9]]],
      ['new', values],
      ['twin', values],
    ])
    expect(await keep('new', 3 * minute, 9)).toHaveLength(3)
  })

  test('H41 a name that has a series already keeps it; of two for one name, the latest goes on', async () => {
    await keep('new', minute, 1)
    await keep('old', 9 * minute, 2)
    await keep('first', minute, 3)
    await keep('second', 2 * minute, 4)
    await data.readings.rename(renaming({ old: ['new'], first: ['one'], second: ['one'] }))
    expect(await stored()).toEqual([
      ['new', [[minute, 1]]],
      ['one', [[2 * minute, 4]]],
    ])
  })

  test('H41 when two nodes begin at the same time, the first one renames, and the second finds nothing to do', async () => {
    for (let turn = 0; turn < 5; turn += 1) {
      await keep(`old ${turn}`, minute, 5)
      await keep(`web2 ${turn}`, minute / 2, 6)
      const peer = `peer ${turn}`
      const moves = renaming({ [`old ${turn}`]: [peer] })
      await Promise.all([
        data.readings.rename(moves),
        other.readings.rename(moves),
        other.readings.rename(renaming({ [`web2 ${turn}`]: [peer] })),
      ])
      const names = (await stored()).map(([series]) => series)
      expect(names).toEqual(Array.from({ length: turn + 1 }, (_, n) => `peer ${n}`))
      expect(await keep(peer, 2 * minute, 7)).toHaveLength(2)
    }
  })

  test('H41 a value that arrives during the renaming joins the renamed series', async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      await keep(`old ${turn}`, minute, 5)
      const [after] = await Promise.all([
        keep(`new ${turn}`, 2 * minute, 6, other),
        data.readings.rename(renaming({ [`old ${turn}`]: [`new ${turn}`] })),
      ])
      expect(after.at(-1)).toEqual({ at: 2 * minute, value: 6 })
      const names = (await stored()).map(([series]) => series)
      expect(names).toHaveLength(turn + 1)
      expect(names).not.toContain(`old ${turn}`)
    }
  })

  test('H41 as many as the store may have are renamed at once, and copies end at that limit', async () => {
    for (let hundred = 0; hundred < 100; hundred += 1) {
      const values = Array.from({ length: 100 }, (_, n) => `('s${hundred * 100 + n}', 0, '[[0,1]]')`).join(', ')
      await raw(store, `INSERT INTO "readings" ("series", "at", "points") VALUES ${values}`)
    }
    let calls: number[] = []
    // On a busy machine it takes longer than a caller waits for the store. Nothing has changed then.
    await untilAvailable(() => {
      calls = []
      return data.readings.rename((names) => {
        calls.push(names.length)
        return names.map((from) => ({ from, to: [`new ${from}`, `twin ${from}`] }))
      })
    })
    expect(calls).toEqual([10_000, 10_000])
    const [old] = await raw(store, `SELECT count(*) AS "n" FROM "readings" WHERE "series" LIKE 's%'`)
    const [renamed] = await raw(store, `SELECT count(*) AS "n" FROM "readings" WHERE "series" LIKE 'new s%'`)
    const [all] = await raw(store, 'SELECT count(*) AS "n" FROM "readings"')
    expect([old, renamed, all].map((row) => Number(row?.['n']))).toEqual([0, 10_000, 10_000])
  })

  test('H41 without anything to rename, nothing is written', async () => {
    await keep('else', minute, 1)
    const writes: (string | undefined)[] = []
    data.onWrite((failure) => writes.push(failure))
    await data.readings.rename(renaming({ old: ['new'] }))
    expect(writes).toEqual([])
    await keep('old', minute, 1)
    await data.readings.rename(renaming({ old: ['new'] }))
    expect(writes).toEqual([undefined, undefined])
  })
})

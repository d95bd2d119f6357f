import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Data } from '../../src/core/store/index.ts'
import { backendsOfTier, faultOf, twoNodes } from '../support/store/data-fixture.ts'

const minute = 60_000
const day = 86_400_000
const series = 'host free /'

describe.each(backendsOfTier())('readings on $name', ({ start, fresh, raw, stop }) => {
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
  const keep = (at: number, value: number, everyMs = minute, by = data) =>
    by.readings.keep({ series, at, value, everyMs })
  const points = async () => {
    const [row] = await raw(store, `SELECT "points" FROM "readings" WHERE "series" = '${series}'`)
    return JSON.parse(String(row?.['points'])) as unknown
  }

  test('H13 a series includes the current reading, which is stored only when the last one is old enough', async () => {
    expect(await keep(0, 7.5, minute)).toEqual([{ at: 0, value: 7.5 }])
    const two = [
      { at: 0, value: 7.5 },
      { at: minute - 1, value: 8 },
    ]
    expect(await keep(minute - 1, 8, minute, other)).toEqual(two)
    expect(await points()).toEqual([[0, 7.5]])
    expect(await keep(minute, 9, minute)).toEqual([two[0], { at: minute, value: 9 }])
    expect(await points()).toEqual([
      [0, 7.5],
      [minute, 9],
    ])
  })

  const passing = (at: number, keys: readonly string[], hold = false, by = data) =>
    by.readings.exceededSince({ series, at, keys, holds: () => hold })

  test('H12 each node knows since when a state holds, and the state is deleted when it ends', async () => {
    expect(await passing(0, [])).toEqual(new Map())
    expect(await raw(store, 'SELECT * FROM "readings"')).toEqual([])
    expect(await passing(minute, ['a'])).toEqual(new Map([['a', minute]]))
    expect(await passing(9 * minute, ['a', 'b'], false, other)).toEqual(
      new Map([
        ['a', minute],
        ['b', 9 * minute],
      ]),
    )
    expect(await passing(10 * minute, ['b'])).toEqual(new Map([['b', 9 * minute]]))
    expect(await passing(11 * minute, ['a', 'b'])).toEqual(
      new Map([
        ['a', 11 * minute],
        ['b', 9 * minute],
      ]),
    )
    expect((await passing(12 * minute, ['c'], true)).get('a')).toBe(11 * minute)
    expect(await passing(13 * minute, [])).toEqual(new Map())
    expect(await raw(store, 'SELECT * FROM "readings"')).toEqual([])
  })

  test('H13 a reading that a wrong clock dated years ahead is ignored, and swept away', async () => {
    const year = 365 * day
    await keep(5 * year, 1)
    await keep(minute, 2)
    expect(await keep(2 * minute, 3)).toEqual([
      { at: minute, value: 2 },
      { at: 2 * minute, value: 3 },
    ])
    const state = (at: number) => data.readings.exceededSince({ series: 'state', at, keys: ['a'], holds: () => false })
    await state(5 * year)
    expect(await state(3 * minute)).toEqual(new Map([['a', 3 * minute]]))
    expect(await state(20 * minute)).toEqual(new Map([['a', 3 * minute]]))
    await data.readings.keep({ series: 'ahead', at: 5 * year, value: 1, everyMs: minute })
    await data.sweep(20 * minute)
    expect(await raw(store, 'SELECT "series" FROM "readings" ORDER BY 1')).toEqual([{ series }, { series: 'state' }])
  })

  test('H13 120 readings of a series are stored, none older than 7 days', async () => {
    for (let n = 0; n < 130; n += 1) await keep(n * minute, n, minute)
    const readings = await keep(130 * minute, 130, minute)
    expect(readings).toHaveLength(120)
    expect(readings[0]).toEqual({ at: 11 * minute, value: 11 })
    expect(await keep(129 * minute + 7 * day, 1, minute)).toEqual([
      { at: 129 * minute, value: 129 },
      { at: 130 * minute, value: 130 },
      { at: 129 * minute + 7 * day, value: 1 },
    ])
  })

  test('H13 a series without a reading for 7 days is swept away; a state that stays the same is not', async () => {
    const state = (at: number) => data.readings.exceededSince({ series: 'state', at, keys: ['a'], holds: () => false })
    await keep(60 * minute - 1, 1)
    await state(0)
    for (let hour = 1; hour <= 7 * 24 + 1; hour += 1) await state(hour * 60 * minute)
    await data.sweep(60 * minute + 7 * day)
    expect(await raw(store, 'SELECT "series" FROM "readings"')).toEqual([{ series: 'state' }])
    expect(await state(8 * day)).toEqual(new Map([['a', 0]]))
    await data.sweep(16 * day)
    expect(await raw(store, 'SELECT "series" FROM "readings"')).toEqual([])
  })

  test('H13 readings that arrive concurrently over two connections are all stored, in order', async () => {
    const count = 30
    // Two at a time: each waits for one other at most, so that a busy machine finishes both before the store gives up.
    for (let n = 0; n < count; n += 2) {
      await Promise.all([keep(n * minute, n, 0, data), keep((n + 1) * minute, n + 1, 0, other)])
    }
    const readings = await keep(count * minute, count, 0)
    const times = readings.map(({ at }) => at)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    const values = readings.map(({ value }) => value).toSorted((a, b) => a - b)
    expect(values).toEqual(Array.from({ length: count + 1 }, (_, n) => n))
  })

  test('H13 a series beyond the 10,000th is refused; existing ones continue', async () => {
    for (let hundred = 0; hundred < 100; hundred += 1) {
      const values = Array.from({ length: 100 }, (_, n) => `('s${hundred * 100 + n}', 0, '[[0,1]]')`).join(', ')
      await raw(store, `INSERT INTO "readings" ("series", "at", "points") VALUES ${values}`)
    }
    const fault = await faultOf(keep(1, 1, minute))
    expect(fault.fault).toBe('Conflict')
    expect(fault.message).toContain('10000 series')
    const stored = await data.readings.keep({ series: 's7', at: 9, value: 2, everyMs: 1 })
    expect(stored).toHaveLength(2)
  })
})

import { describe, expect, test } from 'vitest'
import type { Threshold } from '../../../src/core/base/settings/index.ts'
import type { HistoryReading } from '../../../src/core/checks/engine/index.ts'
import host, { oomKills, trend, trendOf } from '../../../src/core/checks/kinds/host.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { evaluated, runKind } from '../../support/engine/run-kind.ts'
import { killForLackOfMemory, oomMissing } from '../../support/faults/out-of-memory.ts'
import { suiteWith } from '../../support/suite/peer.ts'

const hour = 3_600_000
const GiB = 1024 ** 3
const usual: Threshold = { warn: 24 * hour }
/** Free bytes at each hour. */
const hourly = (free: readonly number[]) => free.map((value, n) => ({ at: n * hour, value }))
const resultOf = (readings: readonly HistoryReading[], threshold = usual) =>
  evaluated(trend, { mount: '/data', readings }, { diskTrend: threshold })[0]
const judged = (free: readonly number[], threshold = usual) => resultOf(hourly(free), threshold)
const falling = (from: number, by: number, count = 10) => Array.from({ length: count }, (_, n) => from - n * by)

describe('the trend of a disk', () => {
  test('a disk that is full within 24 hours is a warning, exactly 24 is not', () => {
    expect(judged(falling(33 * GiB, GiB))).toMatchObject({
      check: 'trend /data',
      status: 'ok',
      message: 'fills by 1 GiB per hour: full in 24 h (warn below 24 h)',
    })
    expect(judged(falling(32.5 * GiB, GiB))).toMatchObject({
      status: 'warning',
      message: 'fills by 1 GiB per hour: full in 23.5 h (warn below 24 h)',
      details: ['based on 7 readings of the last 6 h'],
    })
  })
  test('it fails where a limit is set', () => {
    expectResult(judged(falling(12 * GiB, GiB), { warn: 24 * hour, limit: 4 * hour }), 'failed (threshold)')
  })
  test('a disk that does not fill, or not within 90 days, is ok', () => {
    for (const free of [falling(5 * GiB, 0), falling(5 * GiB, -GiB), falling(90 * GiB, 1024)]) {
      expectResult(judged(free), 'ok: not filling up, based on 7 readings of the last 6 h')
    }
  })
  test('neither one large file nor one deleted file is a trend', () => {
    expect(judged([50, 50, 50, 50, 50, 10, 10, 10, 10, 10].map((n) => n * GiB))?.status).toBe('ok')
    expect(judged([20, 19, 18, 17, 30, 29, 28, 27, 26, 25].map((n) => n * GiB))?.status).toBe('ok')
    expect(judged([50, 50, 50, 50, 40, 30, 20].map((n) => n * GiB))?.status).toBe('ok')
  })
  test('growth that began some hours ago is detected, however quiet the day was', () => {
    const quiet = Array.from({ length: 20 }, () => 50 * GiB)
    expect(judged([...quiet, ...falling(50 * GiB, 3 * GiB, 8)])).toMatchObject({
      status: 'warning',
      message: 'fills by 3 GiB per hour: full in 9.7 h (warn below 24 h)',
    })
  })
  test('one reading a day is a trend of days', () => {
    const daily = falling(6.5 * GiB, GiB, 7).map((value, n) => ({ at: n * 24 * hour, value }))
    expect(trendOf(daily)).toMatchObject({ readings: 7, spanMs: 144 * hour })
    expect(resultOf(daily)).toMatchObject({ status: 'warning' })
  })
  test('less than 6 readings or 3 hours give no trend', () => {
    expect(trendOf(undefined)).toBeUndefined()
    expect(trendOf([])).toBeUndefined()
    expect(judged(falling(9 * GiB, GiB, 5))).toBeUndefined()
    expect(judged(falling(9 * GiB, GiB, 6))).toBeDefined()
    const quick = Array.from({ length: 12 }, (_, n) => ({ at: n * 60_000, value: 9 - n }))
    expect(trendOf(quick)).toBeUndefined()
  })
  test('readings of one moment cause no division by zero', () => {
    const twice = hourly(falling(9 * GiB, GiB)).flatMap((reading) => [reading, reading])
    expect(trendOf(twice)?.slope).toBeCloseTo(-GiB / hour, 0)
  })

  test('Advanced runs of the host record the free space and report its trend; others record nothing', async () => {
    const requests: string[] = []
    // Of every file system here: a byte less of the same figure, each quarter of an hour.
    const history = async ({
      series,
      value,
      at,
      everyMs,
    }: {
      series: string
      value: number
      at: number
      everyMs: number
    }) => {
      requests.push(series)
      expect(everyMs).toBe(900_000)
      return Array.from({ length: 20 }, (_, n) => ({ at: at - (19 - n) * 900_000, value: value * (1 + (19 - n) / 19) }))
    }
    await runKind(host, {}, 'Standard', { history: { keep: history, exceededSince: async () => new Map() } })
    expect(requests).toEqual([])
    const results = await runKind(host, {}, 'Advanced', {
      history: { keep: history, exceededSince: async () => new Map() },
    })
    const trends = results.filter(({ check }) => check.startsWith('trend '))
    expect(trends.length).toBe(results.filter(({ check }) => check.startsWith('disk ')).length)
    expect(trends.length).toBeGreaterThan(0)
    // As much as is there was used within 4 h 45 min, so it is gone in as long.
    for (const trend of trends)
      expect(trend).toMatchObject({ status: 'warning', message: expect.stringMatching(/full in 4\.[78] h/) })
    expect(
      await runKind(host, {}, 'Advanced').then((all) => all.filter(({ check }) => check.startsWith('trend '))),
    ).toEqual([])
  })
})

/** A store of one series, as `svc` keeps it: each value of the series, the latest last. */
function keptSeries(name: string) {
  const readings: HistoryReading[] = []
  return {
    readings,
    history: {
      keep: ({ series, at, value }: HistoryReading & { readonly series: string }) => {
        if (series.endsWith(name)) readings.push({ at, value })
        return Promise.resolve(series.endsWith(name) ? [...readings] : [{ at, value }])
      },
      exceededSince: () => Promise.resolve(new Map<string, number>()),
    },
  }
}

suiteWith(oomMissing, 'processes that the kernel ends for lack of memory', () => {
  test('are a warning in the next run, and for an hour', async () => {
    const { history } = keptSeries('OOM kills')
    const start = Date.now()
    const resultAt = async (minutes: number) => {
      const date = () => new Date(start + minutes * 60_000)
      const results = await runKind(host, {}, 'Advanced', { history, date })
      return results.find(({ check }) => check === 'OOM kills')
    }
    expect(await resultAt(0)).toBeUndefined()
    expect(await resultAt(5)).toMatchObject({ status: 'ok', measurement: { value: 0, unit: 'count' } })
    await killForLackOfMemory()
    for (const minutes of [10, 60])
      expect(await resultAt(minutes)).toMatchObject({ status: 'warning', measurement: { value: 1 } })
    expect(await resultAt(80)).toMatchObject({ status: 'ok' })
  })
})

describe('the count of processes that the kernel ended', () => {
  const judged = (values: readonly number[]) =>
    evaluated(oomKills, { isReadable: true, readings: values.map((value, n) => ({ at: n * hour, value })) })
  test('begins anew when the machine starts', () => {
    expect(judged([7, 0])).toMatchObject([{ status: 'ok', measurement: { value: 0 } }])
    expect(judged([7, 2])).toMatchObject([{ status: 'warning', measurement: { value: 2 } }])
  })
  test('is not checked if /proc/vmstat cannot be read', () => {
    expect(evaluated(oomKills, { isReadable: false, readings: [] })).toMatchObject([{ notChecked: 'missing' }])
  })
})

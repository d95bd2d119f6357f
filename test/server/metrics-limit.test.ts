import { afterEach, expect, test, vi } from 'vitest'
import { confirmedSeries } from '../../src/core/checks/reports/confirmed.ts'
import type { LiveResult } from '../../src/core/checks/reports/live.ts'
import { liveSeries } from '../../src/core/checks/reports/live.ts'
import { recentRun, runOfResponse } from './recent.ts'

afterEach(() => vi.restoreAllMocks())

/** Counts the values that are written: each is compared with NaN once. */
const countWritten = () => vi.spyOn(Number, 'isNaN').mock.calls

const count = 40
const checks = ['connect', 'query', 'disk']
/** Each tenth monitor fails, and each seventh warns. */
const resultsOf = (at: number) =>
  checks.map((check) => ({
    MonitoringName: check,
    Status: at % 10 === 9 && check === 'query' ? ('Failure' as const) : ('Success' as const),
    StatusMessage: at % 7 === 3 && check === 'disk' ? 'warning: nearly full' : 'fine',
  }))
const monitors = Array.from({ length: count }, (_, at) => ({ MonitorName: `tcp ${at}`, Results: resultsOf(at) }))
const live = (): LiveResult =>
  recentRun(runOfResponse('Sql', 'Standard', { MonitorSummaries: monitors }), 1, { complete: false })
const text = async (result: LiveResult, maxSeries: number) =>
  await (await liveSeries([result], { format: 'text', maxSeries, lastRuns: [] })).text(maxSeries)
const seriesIn = (page: string): readonly string[] => page.split('\n').filter((line) => /^[^#]/.test(line))
const isUrgent = (line: string): boolean => {
  const [, at, check] = /monitor="tcp (\d+)",check="(\w+)"/.exec(line) ?? []
  const isBad = (Number(at) % 10 === 9 && check === 'query') || (Number(at) % 7 === 3 && check === 'disk')
  return isBad && /^svc_check_(?:success|warning|fault)/.test(line)
}

test('W22 for each limit, /metrics has the first series of the whole text and each that is not ok', async () => {
  const result = live()
  const whole = seriesIn((await text(live(), 100_000)).text)
  const urgent = whole.filter(isUrgent).length
  expect(urgent).toBeGreaterThan(10)
  // In turns, so that what was omitted under one limit is written under the next.
  const limits = Array.from({ length: whole.length + 2 }, (_, at) => (at * 37) % (whole.length + 2))
  for (const limit of limits) {
    let others = Math.max(0, limit - urgent)
    const within = whole.length <= limit ? whole : whole.filter((line) => isUrgent(line) || others-- > 0)
    const { text: page, dropped, left } = await text(result, limit)
    expect(seriesIn(page), `limit ${limit}`).toEqual(within)
    expect({ dropped, left }).toEqual({
      dropped: whole.length - within.length,
      left: dropped > 0 ? 0 : limit - within.length,
    })
  }
})

test('W22 /metrics writes no series of the families beyond its limit', async () => {
  const limit = 60
  const written = countWritten()
  const { dropped } = await text(live(), limit)
  expect(dropped).toBeGreaterThan(limit * 2)
  // The family in which the limit falls is written, and monitors before it is known that the limit omits something.
  expect(written.length).toBeGreaterThanOrEqual(limit)
  expect(written.length).toBeLessThan(dropped)
  written.length = 0
  const fine = Array.from({ length: 50 }, (_, at) => ({
    monitor: `tcp ${at}`,
    slug: 'connect',
    level: 'ok' as const,
    since: 0,
    isObserved: true,
    isSettled: true,
    blips: 0,
  }))
  const confirmed = await confirmedSeries({ checks: fine, isIsolated: undefined, mostOthers: 3 })
  expect((await confirmed.text('text', 3)).dropped).toBe(47)
  expect(written.length).toBe(3)
})

test('W22 under a limit, too, only what has changed is written again, and shows in the next answer', async () => {
  const before = live()
  const limit = 170
  const first = await text(before, limit)
  expect(first.dropped).toBeGreaterThan(0)
  const written = countWritten()
  expect(await text(before, limit)).toEqual(first)
  const ofTypes = written.length
  expect(ofTypes).toBe(seriesIn(first.text).filter((line) => line.startsWith('svc_type_')).length)
  const changed = runOfResponse('Sql', 'Standard', {
    MonitorSummaries: [
      { MonitorName: 'tcp 0', Results: checks.map((check) => ({ MonitoringName: check, Status: 'Failure' as const })) },
    ],
  })
  const after = { ...before, run: { ...before.run, monitors: [...changed.monitors, ...before.run.monitors.slice(1)] } }
  written.length = 0
  const next = await text(after, limit)
  expect(written.length).toBeGreaterThan(ofTypes)
  expect(written.length).toBeLessThan(ofTypes + 30)
  expect(next.text).toContain('svc_check_success{type="Sql",monitor="tcp 0",check="connect"} 0')
  expect(next).toEqual(await text(structuredClone(after), limit))
})

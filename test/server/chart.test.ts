import { describe, expect, test } from 'vitest'
import { type KindName, monitors } from '../../src/core/checks/kinds/index.ts'
import { loadKind } from '../../src/core/checks/plan/index.ts'
import type { GetHistoryResponse, HistoryPeriod, RunDocument } from '../../src/core/protocol/index.ts'
import { cardsOf } from '../../src/core/server/pages/cards.ts'
import { type ChartPoint, chartOf, linePath, type TimeAxis } from '../../src/core/server/pages/chart.ts'
import { historyWindows, responseChecks } from '../../src/core/server/pages/page-chart.ts'
import { monitorMarkup } from '../../src/core/server/pages/page-monitor.ts'
import { pageFacts } from '../support/page/facts.ts'
import { recentRun } from './recent.ts'

const second = 1_000
const hour = 3_600_000
const day = 24 * hour
const now = Date.parse('2026-11-24T10:00:00Z')

const point = (hoursAgo: number, average: number, [least, most] = [average, average]): ChartPoint => ({
  ...{ from: now - hoursAgo * hour, to: now - (hoursAgo - 1) * hour },
  ...{ least, average, most },
})
const axis = (at = 0, more: Partial<TimeAxis> = {}): TimeAxis => {
  const { minutes, step, label } = historyWindows[at] ?? historyWindows[0]
  return { from: now - minutes * 60_000, to: now, step, zone: 'UTC', label, ...more }
}
const labels = (values: readonly number[]): readonly string[] =>
  chartOf(
    values.map((value, at) => point(24 - at, value)),
    axis(),
  ).values.map(({ label }) => label)

describe('W31 the line of a chart', () => {
  test('W31 is broken where nothing was measured, and never drawn at zero or across the gap', () => {
    const { line, band } = chartOf([point(24, 45), point(23, 45), point(3, 45)], axis())
    // From 24 to 22 hours ago, and from 3 to 2: of 1,000 a day.
    expect(line.split('M').slice(1)).toEqual(['0 25L20.8 25L62.5 25L83.3 25', '875 25L895.8 25L916.7 25'])
    expect(band.match(/M/g)).toHaveLength(2)
    expect(band.match(/Z/g)).toHaveLength(2)
  })

  test.each([
    ['each other period is missing', [24, 22, 20, 18], 4],
    ['one period in the middle is missing', [5, 4, 2, 1], 2],
    ['all are there', [5, 4, 3, 2], 1],
    ['none is there', [], 0],
  ])('W31 has a piece for each time without a gap: %s', (_, hoursAgo, pieces) => {
    const { line } = chartOf(
      hoursAgo.map((one) => point(one, 10)),
      axis(),
    )
    expect(line.match(/M/g) ?? []).toHaveLength(pieces)
  })

  test('W31 shows a minute of a new monitor, though it is narrower than a point of the screen', () => {
    const minute = { ...point(1, 10), from: now - 60 * second, to: now }
    const [, start = 0, end = 0] =
      /^M([\d.]+) .*L([\d.]+) /.exec(linePath([minute], { ...axis(), low: 0, high: 20 })) ?? []
    expect(Number(end) - Number(start)).toBeGreaterThan(5)
    expect(Number(end)).toBe(1_000)
  })

  test('W31 is level in the middle of its range if all values are the same', () => {
    expect(linePath([point(1, 5)], { ...axis(), low: 5, high: 5 })).not.toContain('NaN')
  })
})

describe('W31 the axis of values', () => {
  test.each([
    [[9], ['0', '5 ms', '10 ms']],
    [
      [12, 23],
      ['0', '10 ms', '20 ms', '30 ms'],
    ],
    [[480], ['0', '200 ms', '400 ms', '600 ms']],
    [[700], ['0', '200 ms', '400 ms', '600 ms', '800 ms']],
    [[1_700], ['0', '0.5 s', '1 s', '1.5 s', '2 s']],
    [[4_200], ['0', '2 s', '4 s', '6 s']],
    [[45 * second], ['0', '20 s', '40 s', '60 s']],
    [[200 * second], ['0', '1 min', '2 min', '3 min', '4 min']],
    [[50 * hour], ['0', '15 h', '30 h', '45 h', '60 h']],
    [[0.03], ['0', '0.01 ms', '0.02 ms', '0.03 ms']],
    [[0], ['0', '1 ms']],
  ])('W31 has round values with their unit, and starts at 0: %j', (values, expected) => {
    expect(labels(values)).toEqual(expected)
  })

  test.each([0, 0.001, 0.7, 1, 3, 9.99, 10, 99, 1_000, 1_999, 2_001, 59_999, 119_000, 3_600_001, 7e8])(
    'W31 has two to five values, the highest of them not below %d ms',
    (value) => {
      const { values, top, isCut } = chartOf([point(2, value)], axis())
      expect(values.length).toBeGreaterThanOrEqual(2)
      expect(values.length).toBeLessThanOrEqual(5)
      expect(top).toBeGreaterThanOrEqual(value)
      expect(isCut).toBe(false)
      expect(values.map(({ place }) => place)).toEqual(values.map((_, at) => 1 - at / (values.length - 1)))
    },
  )

  test('W31 one answer that took much longer does not flatten all others, and the chart says what it cuts off', () => {
    const { top, isCut, band } = chartOf([point(3, 10), point(2, 12, [8, 5_000])], axis())
    expect([top, isCut]).toEqual([60, true])
    expect(band).not.toContain('-')
  })
})

describe('W31 the axis of times', () => {
  test.each([
    ['UTC', ['12:00', '18:00', '00:00', '06:00'], 2 / 24],
    // 12:00 has no room: its label would cover that of the lowest value.
    ['Europe/Berlin', ['18:00', '00:00', '06:00'], 7 / 24],
    ['Asia/Kathmandu', ['18:00', '00:00', '06:00', '12:00'], 2.25 / 24],
  ])('W31 of a day has round hours on the clock of %s', (zone, expected, first) => {
    const { times } = chartOf([], axis(0, { zone }))
    expect(times.map(({ label }) => label)).toEqual(expected)
    expect(times[0]?.place).toBeCloseTo(first, 6)
  })

  test('W31 has each round hour once, also on the day when the clock is put back', () => {
    const to = Date.parse('2026-10-25T12:00:00Z')
    const { times } = chartOf([], axis(0, { zone: 'Europe/Berlin', from: to - day, to }))
    expect(times.map(({ label }) => label)).toEqual(['18:00', '00:00', '06:00', '12:00'])
  })

  test('W31 of 30 days has Mondays, and of 90 days the first of each month', () => {
    expect(chartOf([], axis(1)).times.map(({ label }) => label)).toEqual(['Nov 2', 'Nov 9', 'Nov 16', 'Nov 23'])
    expect(chartOf([], axis(2)).times.map(({ label }) => label)).toEqual(['Oct 1', 'Nov 1'])
  })
})

test('W31 each network kind has a check whose figures are its response time', async () => {
  const kinds = await Promise.all((Object.keys(monitors) as KindName[]).map(loadKind))
  const lacking = kinds
    // A registry is asked every 6 h: how fast it answers is not the question.
    .filter(({ name, runsOn, internal }) => runsOn === 'network' && !internal && name !== 'domain')
    .filter(({ checks }) => !checks.some(({ name }) => responseChecks.includes(name)))
  expect(lacking.map(({ name }) => name)).toEqual([])
})

const id = { type: 'Sql', monitor: 'postgres <b>orders</b>' } as const
const textOf = (markup = ''): string =>
  markup
    .replace(/<style>.*?<\/style>/s, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')

/** A history in which each of so many periods has these figures. */
function history(count: number, step: number, figures: NonNullable<HistoryPeriod['Figures']>): GetHistoryResponse {
  const Periods = Array.from({ length: count }, (_, at): HistoryPeriod => {
    const from = now - (count - at) * step
    return { From: new Date(from), To: new Date(from + step), Status: 'Ok', AvailabilityPercent: 100, Figures: figures }
  })
  return { Monitors: [{ MonitorName: id.monitor, From: new Date(now - count * step), To: new Date(now), Periods }] }
}
const figure = (MonitoringName: string, Unit: string, Average: number) => ({
  ...{ MonitoringName, Unit, Minimum: Average / 2, Average, Maximum: Average * 2, Count: 60 },
})
const figures = [
  figure('connect', 'milliseconds', 12),
  figure('<script>alert(1)</script>', 'count', 7),
  figure('replication lag', 'milliseconds', 5_000),
]
const windows = [history(24, hour, figures), history(30, day, figures), history(90, day, figures)]
const pageOf = (all: readonly GetHistoryResponse[], runs: readonly ReturnType<typeof recentRun>[] = []): string =>
  monitorMarkup(id, cardsOf(['Sql'], runs, 'http://svc'), { windows: all }, pageFacts(['Sql'], { at: new Date(now) }))
    ?.markup ?? ''

test('W31 the page of a monitor has a chart of its response time over 24 hours, 30 and 90 days, with what they show in words', () => {
  const page = pageOf(windows)
  expect(page.match(/<svg class="chart" role="img"/g)).toHaveLength(3)
  for (const title of ['Last 24 hours', 'Last 30 days', 'Last 90 days'])
    expect(page).toContain(`aria-label="Response time, ${title}: 12 ms on average, 6 ms to 24 ms"`)
  expect(textOf(page)).toContain('Response time connect: the average as a line')
  expect(page).toContain('<title>2026-11-23 UTC: 12 ms (6 ms to 24 ms, 60 runs)</title>')
  // The same figures stand nowhere else.
  expect(page.match(/<th scope="row">[^<]*<\/th><td>[^<]*ms/g)).toBe(null)
  const other = textOf(page.slice(page.indexOf('id="figures"')))
  expect(other).toContain('Check Minimum Average Maximum Averages over 24 hours')
  expect(other).toContain('replication lag 2.5 s 5 s 10 s')
})

test('W31 no text of a peer is markup on the page of a monitor, and the page is smaller than 100 kB', () => {
  const page = pageOf(windows)
  expect(page).toContain('&lt;script&gt;alert(1)')
  expect(page).not.toContain('<script')
  expect(page).not.toContain('<b>orders')
  expect(page).not.toMatch(/ style="/)
  expect(page.length).toBeLessThan(100_000)
})

test('W31 a time in which nothing was measured says so, and a monitor that measures no response time has no chart', () => {
  expect(textOf(pageOf([history(24, hour, []), ...windows.slice(1)]))).toContain('Last 24 hours nothing measured')
  const load = [figure('cpu', 'percent', 12)]
  const page = pageOf([history(24, hour, load), history(30, day, load), history(90, day, load)])
  expect(page).not.toContain('Response time')
  expect(textOf(page)).toContain('Figures of the last 24 hours')
})

test('W31 each check stands once among the latest results, as the latest run that includes it found it', () => {
  const run = (mode: 'Basic' | 'Standard' | 'Advanced', age: number, ...checks: readonly string[]) => {
    const document: RunDocument = {
      ...{ version: 1, type: 'Sql', mode, view: 'full', status: 'ok', message: 'ok' },
      ...{ startedAt: new Date(now), endedAt: new Date(now), durationMs: 1 },
      monitors: [
        {
          ...{ name: id.monitor, kind: 'postgres', status: 'ok' },
          results: checks.map((check) => ({ check, status: 'ok' as const, message: `${check} by ${mode}` })),
        },
      ],
    }
    return recentRun(document, age)
  }
  const all = [
    run('Basic', 5, 'connect'),
    run('Standard', 60, 'connect', 'query'),
    run('Advanced', 3_000, 'connect', 'query', 'backup'),
  ]
  const text = textOf(pageOf(windows, all))
  const latest = text.slice(text.indexOf('Latest results'))
  expect(latest.match(/\w+ by \w+/g)).toEqual(['connect by Basic', 'query by Standard', 'backup by Advanced'])
  // The latest run includes all checks: the others add nothing.
  const again = textOf(pageOf(windows, [...all.slice(0, 2), run('Advanced', 1, 'connect', 'query', 'backup')]))
  expect(again.match(/\w+ by (?:Basic|Standard)/g)).toBe(null)
})

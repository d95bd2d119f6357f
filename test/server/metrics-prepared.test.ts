import { afterEach, expect, test, vi } from 'vitest'
import { loadLatest, type MonitorReport, type Result } from '../../src/core/checks/engine/index.ts'
import { expositionFormats } from '../../src/core/checks/reports/exposition.ts'
import { liveSeries } from '../../src/core/checks/reports/live.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import { RecentRuns } from '../../src/core/service/health/recent.ts'
import { engineFixture } from '../support/engine/engine-fixture.ts'

afterEach(() => vi.restoreAllMocks())

const { LatestReports } = await loadLatest()
const figure = { value: 14, unit: 'milliseconds', warn: 1_000, limit: 3_000, bound: 'atMost' } as const
const ok: Result = { check: 'connect', status: 'ok', message: 'fine' }
const instant = { value: 2, unit: 'days', at: new Date('2026-05-01T10:00:00Z') } as const
const items: readonly Result[] = Array.from({ length: 60 }, (_, at) => ({
  ...ok,
  subject: `queue ${at}`,
  measurement: figure,
}))
/** The results of a monitor in each state that a series can show. Some differ from those before in one property. */
const states: Readonly<Record<string, readonly Result[]>> = {
  ok: [ok],
  'of another check': [{ ...ok, check: 'lag' }],
  warning: [{ ...ok, status: 'warning' }],
  failed: [{ ...ok, status: 'failed', fault: 'refused' }],
  'failed for another reason': [{ ...ok, status: 'failed', fault: 'timeout' }],
  'not checked': [{ ...ok, status: 'failed', notChecked: 'budget' }],
  'not checked for another reason': [{ ...ok, status: 'failed', notChecked: 'starved' }],
  skipped: [{ ...ok, check: 'not run', status: 'failed', fault: 'dependency', cause: 'ping a' }],
  'with another cause': [{ ...ok, check: 'not run', status: 'failed', fault: 'dependency', cause: 'ping b' }],
  'with a figure': [{ ...ok, measurement: figure }],
  'with another value': [{ ...ok, measurement: { ...figure, value: 15 } }],
  'with another warning limit': [{ ...ok, measurement: { ...figure, value: 15, warn: 2_000 } }],
  'with another limit': [{ ...ok, measurement: { ...figure, value: 15, warn: 2_000, limit: 4_000 } }],
  'with another bound': [{ ...ok, measurement: { ...figure, value: 15, warn: 2_000, limit: 4_000, bound: 'atLeast' } }],
  'in another unit': [
    { ...ok, measurement: { value: 15, unit: 'bytes', warn: 2_000, limit: 4_000, bound: 'atLeast' } },
  ],
  'with days': [{ ...ok, measurement: { value: 2, unit: 'days' } }],
  'with an instant': [{ ...ok, measurement: instant }],
  'with another instant': [{ ...ok, measurement: { ...instant, at: new Date('2026-05-02T10:00:00Z') } }],
  'with items': ['a', 'b "c"\\'].map((subject) => ({ ...ok, subject })),
  'with other items': ['a', 'd'].map((subject) => ({ ...ok, subject })),
  'with more items than are exported': items,
  'with other items exported': items.map((one, at) =>
    at === 55 ? { ...one, status: 'failed', fault: 'refused' } : one,
  ),
  'at several addresses': ['192.0.2.1', '192.0.2.2'].map((address) => ({ ...ok, address })),
  'without results': [],
}
const reportOf = (name: string, results: readonly Result[], round: number, host: boolean): MonitorReport => ({
  name,
  kind: host ? 'host' : round % 2 === 0 ? 'tcp' : 'http',
  runsOn: 'network',
  depth: 'Basic',
  host,
  checks: [{ name: 'connect', depth: 'Basic', doc: '' }],
  results,
  durationMs: 3 + round,
  attempts: 1,
})

const names = Object.keys(states)
const runs: readonly (readonly [name: string, mode: ExecutionMode])[] = [
  ...names.map((name) => [name, 'Standard'] as const),
  ['warning', 'Advanced'],
  ['ok', 'Advanced'],
]

/** Counts the values that are written: each is compared with NaN once. */
const countWritten = () => vi.spyOn(Number, 'isNaN').mock.calls

type Format = (typeof expositionFormats)[number]

/** The latest results of these monitors. In each round, the results of a monitor are the next ones of the table. */
function fixture() {
  const clock = { now: 5_000_000 }
  const context = engineFixture({ now: () => clock.now, date: () => new Date(1_700_000_000_000 + clock.now) })
  const latest = new LatestReports({ ...context, onReplaced: (before, reports) => recent.replaced(before, reports) })
  const recent = new RecentRuns(latest, context)
  return {
    recent,
    arrive: (round: number): void => {
      clock.now = 5_000_000 + 60_000 * round
      for (const [at, [name, mode]] of runs.entries()) {
        const results = states[names[(names.indexOf(name) + round) % names.length] ?? ''] ?? []
        const times = { beganAt: clock.now + at, endedAt: clock.now + at, cause: 'schedule' as const }
        latest.add('Sql', mode, reportOf(name, results, round, name === 'ok' && round % 3 !== 2), times)
      }
    },
    scrape: async (format: Format, maxSeries: number) => {
      const recentRuns = await recent.of(['Sql'], () => 'full', 'own')
      return await (await liveSeries(recentRuns, { format, maxSeries, lastRuns: [] })).text(maxSeries)
    },
  }
}

test.each(expositionFormats)(
  'W22 what is prepared when results arrive is the text that a scrape makes, in each state (%s)',
  async (format) => {
    for (const maxSeries of [60, 100_000]) {
      const scraped = fixture()
      scraped.arrive(0)
      await scraped.scrape(format, maxSeries)
      for (const [round] of names.entries()) {
        scraped.arrive(round + 1)
        await scraped.recent.prepared
        const fresh = fixture()
        fresh.arrive(round + 1)
        expect(await scraped.scrape(format, maxSeries)).toEqual(await fresh.scrape(format, maxSeries))
      }
    }
  },
)

test('W22 what changes in a result is prepared once after a scrape has shown the one before, and never without a scrape', async () => {
  const { arrive, scrape, recent } = fixture()
  const written = countWritten()
  const writtenFor = async (round: number): Promise<number> => {
    written.length = 0
    arrive(round)
    await recent.prepared
    return written.length
  }
  expect(await writtenFor(0)).toBe(0)
  expect(await writtenFor(1)).toBe(0)
  const { text } = await scrape('text', 100_000)
  const series = text
    .split('\n')
    .filter((line) => line.startsWith('svc_check_') || line.startsWith('svc_monitor')).length
  const writtenOfOther = await writtenFor(2)
  expect(writtenOfOther).toBeGreaterThan(series / 4)
  written.length = 0
  expect((await scrape('text', 100_000)).text).toContain('check="connect"')
  // Only the series of the type itself are written.
  expect(written.length).toBeLessThan(20)
  // The results of the round before once more: only those with more items than are exported are written again.
  expect(await writtenFor(names.length + 2)).toBeLessThan(writtenOfOther)
  expect(await writtenFor(23)).toBe(0)
})

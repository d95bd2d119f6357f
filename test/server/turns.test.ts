import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { mapPaced, pace } from '../../src/core/base/pace.ts'
import { liveSeries } from '../../src/core/checks/reports/live.ts'
import type { RunMonitor } from '../../src/core/protocol/index.ts'
import { recentRun, runOfResponse } from './recent.ts'

afterEach(() => vi.restoreAllMocks())

/** Simulated: a clock by which each piece of work takes longer than a turn may. */
function slowClock(): void {
  let at = 0
  vi.spyOn(performance, 'now').mockImplementation(() => {
    at += 10
    return at
  })
}

/** The values of `progress` in each turn that others get until the work is done. */
async function turnsDuring(work: Promise<unknown>, progress: () => number): Promise<ReadonlySet<number>> {
  const turns = new Set<number>()
  let isDone = false
  const watched = work.finally(() => {
    isDone = true
  })
  while (!isDone) {
    turns.add(progress())
    await nextTurn()
  }
  await watched
  return turns
}

test('W22 simulated: others get a turn between two of many monitors, and the order is kept', async () => {
  slowClock()
  let done = 0
  const work = mapPaced([3, 1, 2], pace(), (one) => {
    done += 1
    return one
  })
  const turns = await turnsDuring(work, () => done)
  expect([...turns]).toEqual(expect.arrayContaining([1, 2]))
  expect(await work).toEqual([3, 1, 2])
})

test('W22 simulated: a scrape lets others have their turns while it reads the results', async () => {
  slowClock()
  const monitors = 20
  let done = 0
  const run = runOfResponse('Sql', 'Standard', {
    MonitorSummaries: Array.from({ length: monitors }, (_, at) => ({
      MonitorName: `tcp ${at}`,
      Results: [{ MonitoringName: 'connect', Status: 'Success', StatusMessage: 'fine' }],
    })),
  })
  const watched = run.monitors.map((monitor) => {
    const { results } = monitor
    let isRead = false
    return Object.defineProperty({ ...monitor }, 'results', {
      get: () => {
        if (!isRead) done += 1
        isRead = true
        return results
      },
    }) as RunMonitor
  })
  const live = recentRun({ ...run, monitors: watched }, 1)
  const turns = await turnsDuring(liveSeries([live], { format: 'text', maxSeries: 50_000, lastRuns: [] }), () => done)
  expect(turns.size).toBeGreaterThan(monitors / 2)
})

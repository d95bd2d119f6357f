import { expect, test } from 'vitest'
import type { Run } from '../../src/core/checks/engine/index.ts'
import { rememberDocuments } from '../../src/core/checks/reports/index.ts'
import { liveSeries } from '../../src/core/checks/reports/live.ts'
import type { RecentRun } from '../../src/core/protocol/service/service.ts'
import { cardsOf } from '../../src/core/server/pages/cards.ts'
import { pageMarkup } from '../../src/core/server/pages/page-markup.ts'
import { pageFacts } from '../support/page/facts.ts'
import { recentRun } from './recent.ts'

const target = 'http://127.0.0.1:8080'
const instant = new Date('2026-05-01T10:00:00Z')

/** A report that counts how often its results are read. */
function report(name: string, message: string, reads: { count: number }): Run['monitors'][number] {
  const results = [{ check: 'connect', status: 'ok' as const, message }]
  const common = { kind: 'tcp', runsOn: 'network', depth: 'Basic', host: false, checks: [], durationMs: 3, attempts: 1 }
  return {
    ...common,
    name,
    get results() {
      reads.count += 1
      return results
    },
  } as Run['monitors'][number]
}

function recent(monitors: Run['monitors']): RecentRun {
  const run: Run = {
    id: 'a',
    mode: 'Basic',
    startedAt: instant,
    endedAt: instant,
    durationMs: 5,
    monitors,
    serverState: { ServerName: 'test', TotalRamInMb: 1, AvailableRamInMb: 1 },
  }
  const made = rememberDocuments()(run, 'App', {}, () => 'full')
  return recentRun({ ...made.run, correlationId: 'a' }, 1)
}

const page = (run: RecentRun): string =>
  pageMarkup(cardsOf(['App'], [run], target), pageFacts(['App'], { base: target, at: instant })).markup
const metrics = async (run: RecentRun): Promise<string> =>
  (await (await liveSeries([run], { format: 'text', maxSeries: 50_000, lastRuns: [] })).text(50_000)).text

test('W22 what the page and /metrics write of a monitor is kept while its report is the same, and equals what they write anew', async () => {
  const reads = { count: 0 }
  const same = report('tcp a', 'connected in 3 ms', reads)
  const before = recent([same, report('tcp b', 'connected in 4 ms', { count: 0 })])
  const [firstPage, firstMetrics] = [page(before), await metrics(before)]
  const once = reads.count
  const after = recent([same, report('tcp b', 'connected in <5> ms', { count: 0 })])
  expect([page(before), await metrics(before)]).toEqual([firstPage, firstMetrics])
  expect(page(after)).toContain('connected in &lt;5&gt; ms')
  expect(reads.count).toBe(once)
  const copy = structuredClone(after)
  expect([page(copy), await metrics(copy)]).toEqual([page(after), await metrics(after)])
})

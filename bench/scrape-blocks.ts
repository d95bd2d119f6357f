/**
 * How long a scrape of `/metrics` and a page keep other work waiting: the longest delay of the event loop.
 *
 *     node bench/scrape-blocks.ts [monitors] [rounds]
 *
 * The reports are made up. In each round all monitors have new results, and then one of them.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { mapPaced, pace } from '../src/core/base/pace.ts'
import { type EngineContext, limits, loadLatest, type MonitorReport } from '../src/core/checks/engine/index.ts'
import { confirmedSeries } from '../src/core/checks/reports/confirmed.ts'
import { liveText } from '../src/core/checks/reports/live.ts'
import { cardsOf } from '../src/core/server/pages/cards.ts'
import { pageMarkup } from '../src/core/server/pages/page-markup.ts'
import { prepareMonitor } from '../src/core/server/pages/page-report.ts'
import { RecentRuns } from '../src/core/service/health/recent.ts'
import { pageFacts } from '../test/support/page/facts.ts'
import { median } from './compare.ts'

const monitors = Math.min(Number(process.argv[2] ?? 10_000), 100_000)
const rounds = Math.min(Number(process.argv[3] ?? 5), 100)
const now = (): number => performance.now()
const context: EngineContext = {
  now,
  date: () => new Date(),
  resolve: async (host) => [host],
  inChild: async () => undefined,
  measureState: () => () => ({}),
  limits: limits(),
}
const checks = ['connect', 'query', 'connections', 'replication', 'disk'].map((name) => ({
  name,
  depth: 'Standard' as const,
  doc: '',
}))
const reportOf = (at: number): MonitorReport => ({
  name: `postgres ${at}`,
  kind: 'postgres',
  runsOn: 'network',
  depth: 'Standard',
  host: false,
  checks,
  results: checks.map(({ name: check }) => ({
    check,
    status: 'ok',
    message: `db${at}.example.com:5432 answered in 14 ms (warn 1 s, fail 3 s)`,
    measurement: { value: 14, unit: 'milliseconds', warn: 1_000, limit: 3_000, bound: 'atMost' },
    address: '192.0.2.1:5432',
  })),
  durationMs: 14,
  attempts: 1,
})
const { LatestReports } = await loadLatest()
const latest = new LatestReports(context)
const recent = new RecentRuns(latest, context)
const add = (from: number, to: number): void => {
  for (let at = from; at < to; at += 1)
    latest.add('Sql', 'Standard', reportOf(at), { beganAt: now(), endedAt: now(), cause: 'schedule' })
}

/** Milliseconds of a piece of work, and the longest time in which nothing else had its turn. */
async function measured(work: () => Promise<unknown>): Promise<{ readonly ms: number; readonly blockedMs: number }> {
  await wait(50)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await wait(5)
  const start = now()
  await work()
  const ms = now() - start
  await wait(5)
  delay.disable()
  return { ms, blockedMs: delay.max / 1e6 }
}

/** Yields the confirmed states of all checks. */
function* confirmed() {
  for (let at = 0; at < monitors; at += 1)
    for (const { name: slug } of checks)
      yield {
        type: 'Sql',
        monitor: `postgres ${at}`,
        slug,
        level: 'ok' as const,
        since: 0,
        isObserved: true,
        isSettled: true,
        blips: 0,
      }
}
const scrape = async (): Promise<unknown> => {
  const runs = await recent.of(['Sql'], () => 'full')
  const { text } = await confirmedSeries({ checks: confirmed(), isIsolated: undefined })
  const { left } = await liveText(runs, { format: 'text', maxSeries: 1_000_000, lastRuns: [] })
  return text('text', left)
}
const page = async (): Promise<unknown> => {
  const runs = await recent.of(['Sql'], () => 'full')
  const breathe = pace()
  for (const { run } of runs) await mapPaced(run.monitors, breathe, prepareMonitor)
  return pageMarkup(cardsOf(['Sql'], runs, '/'), pageFacts(['Sql'], { at: new Date() })).markup
}

latest.planned(
  'Sql',
  'Standard',
  Array.from({ length: monitors }, (_, at) => reportOf(at)),
)
const rows: Record<string, { ms: number[]; blockedMs: number[] }> = {}
const note = async (name: string, work: () => Promise<unknown>): Promise<void> => {
  const { ms, blockedMs } = await measured(work)
  const row = rows[name] ?? { ms: [], blockedMs: [] }
  rows[name] = row
  row.ms.push(ms)
  row.blockedMs.push(blockedMs)
}
for (let round = 0; round < rounds; round += 1) {
  add(0, monitors)
  await note('scrape, all monitors changed', scrape)
  add(0, 1)
  await note('scrape, one monitor changed', scrape)
  add(0, monitors)
  await note('page, all monitors changed', page)
  add(0, 1)
  await note('page, one monitor changed', page)
}
process.stdout.write(`${monitors} monitors, median of ${rounds} rounds\n`)
process.stdout.write('| | ms in all | longest block, ms |\n|---|---|---|\n')
for (const [name, { ms, blockedMs }] of Object.entries(rows))
  process.stdout.write(`| ${name} | ${median(ms).toFixed(0)} | ${median(blockedMs).toFixed(0)} |\n`)

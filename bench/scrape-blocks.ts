/**
 * How long a scrape of `/metrics` and a page keep other work waiting: the longest delay of the event loop.
 *
 *     node bench/scrape-blocks.ts [monitors] [rounds]
 *
 * The reports are made up. In each round all monitors have new results, which are prepared as `svc serve` does it after a
 * scrape (the row of results has what that takes), and then one of them. V8 has the settings of `svc serve`.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { limitGarbage, suitGarbageTo } from '../src/cli/io/heap.ts'
import { mapPaced, pace } from '../src/core/base/pace.ts'
import { type EngineContext, limits, loadLatest, type MonitorReport } from '../src/core/checks/engine/index.ts'
import { confirmedSeries } from '../src/core/checks/reports/confirmed.ts'
import { liveSeries } from '../src/core/checks/reports/live.ts'
import { defaultMaxSeries } from '../src/core/checks/reports/prometheus.ts'
import { cardsOf } from '../src/core/server/pages/cards.ts'
import { pageMarkup } from '../src/core/server/pages/page-markup.ts'
import { prepareMonitor } from '../src/core/server/pages/page-report.ts'
import { RecentRuns } from '../src/core/service/health/recent.ts'
import { pageFacts } from '../test/support/page/facts.ts'
import { median } from './compare.ts'

limitGarbage()
const monitors = Math.min(Number(process.argv[2] ?? 10_000), 100_000)
suitGarbageTo(monitors)
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
const latest = new LatestReports({ ...context, onReplaced: (before, reports) => recent.replaced(before, reports) })
const recent = new RecentRuns(latest, context)
const add = (from: number, to: number): void => {
  for (let at = from; at < to; at += 1)
    latest.add('Sql', 'Standard', reportOf(at), { beganAt: now(), endedAt: now(), cause: 'schedule' })
}

type Cost = {
  readonly ms: number
  readonly cpuMs: number
  readonly blockedMs: number
  readonly blockedCpuMs: number
}

const threadMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1e3
}

/**
 * Milliseconds of a piece of work, its processor time, and the longest time in which nothing else had its turn: by the
 * clock, and as processor time of the thread, which others on a busy machine do not lengthen.
 */
async function measured(work: () => Promise<unknown>): Promise<Cost> {
  await wait(50)
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await wait(5)
  const start = now()
  const before = process.cpuUsage()
  let [blockedCpuMs, since, isDone] = [0, threadMs(), false]
  const turn = (): void => {
    const at = threadMs()
    blockedCpuMs = Math.max(blockedCpuMs, at - since)
    since = at
    if (!isDone) setImmediate(turn)
  }
  setImmediate(turn)
  await work()
  isDone = true
  const ms = now() - start
  const { user, system } = process.cpuUsage(before)
  await wait(5)
  delay.disable()
  return { ms, cpuMs: (user + system) / 1e3, blockedMs: delay.max / 1e6, blockedCpuMs }
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
/** All results have arrived, and are prepared for the next scrape if one has shown those that they replace. */
const arrive = async (): Promise<void> => {
  for (let at = 0; at < monitors; at += 100) {
    add(at, at + 100)
    await nextTurn()
  }
  await recent.prepared
}
const scrape = async (maxSeries: number): Promise<unknown> => {
  const runs = await recent.of(['Sql'], () => 'full', 'own')
  const series = await liveSeries(runs, { format: 'text', maxSeries, lastRuns: [] })
  const mostOthers = Math.max(0, maxSeries - series.count)
  const states = await confirmedSeries({ checks: confirmed(), isIsolated: undefined, mostOthers })
  const { text, left } = await series.text(maxSeries - states.urgent)
  return [text, (await states.text('text', left)).text]
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
const rows: Record<string, Cost[]> = {}
const note = async (name: string, work: () => Promise<unknown>): Promise<void> => {
  const row = rows[name] ?? []
  rows[name] = row
  row.push(await measured(work))
}
for (const [limit, maxSeries] of Object.entries({ 'usual limit': defaultMaxSeries, 'no limit': 1_000_000 })) {
  add(0, monitors)
  await scrape(maxSeries)
  for (let round = 0; round < rounds; round += 1) {
    await note(`results of all monitors arrive, ${limit}`, arrive)
    await note(`scrape, ${limit}, all monitors changed`, async () => await scrape(maxSeries))
    add(0, 1)
    await recent.prepared
    await note(`scrape, ${limit}, one monitor changed`, async () => await scrape(maxSeries))
  }
}
for (let round = 0; round < rounds; round += 1) {
  add(0, monitors)
  await note('page, all monitors changed', page)
  add(0, 1)
  await note('page, one monitor changed', page)
}
process.stdout.write(`${monitors} monitors, median of ${rounds} rounds\n`)
process.stdout.write(
  '| | ms in all | of processor time | longest block, ms | of processor time |\n|---|---|---|---|---|\n',
)
for (const [name, costs] of Object.entries(rows)) {
  const of = (figure: keyof Cost): string => median(costs.map((one) => one[figure])).toFixed(0)
  process.stdout.write(`| ${name} | ${of('ms')} | ${of('cpuMs')} | ${of('blockedMs')} | ${of('blockedCpuMs')} |\n`)
}

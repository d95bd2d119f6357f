/**
 * The schedule of `svc serve` beside Prometheus with blackbox_exporter, under the same load on the same servers:
 *
 *     npm run bench:schedule -- [--rates 10000,60000,100000] [--mix 10000] [--seconds 30] [--rounds 2]
 *
 * Each measurement begins with empty stores and its own servers, and warms up. The two watchers take turns, so that a machine
 * that slows down slows both. How late a probe is, the servers say: they note when it comes, and the time at which a monitor
 * is due is a function of its key. Ends by itself within `--minutes`, and leaves out the measurements for which no time is left.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Scrape, scrape, startCallers } from './schedule/callers.ts'
import {
  bestTurn,
  type Callers,
  dueTimes,
  lateOf,
  limitOf,
  type Measured,
  type Outcome,
  pooled,
  quantile,
  sortedOf,
} from './schedule/figures.ts'
import { kinds, type Mix, phaseOfMonitor, svcYaml, total, typeOf } from './schedule/monitors.ts'
import {
  closedConnections,
  descriptorLimit,
  descriptors,
  idleTime,
  processorTime,
  residentMemory,
  trees,
} from './schedule/processes.ts'
import { peerMissing, startBlackbox } from './schedule/prometheus.ts'
import { mixMissing, type PeerCounts, type Servers, startServers } from './schedule/servers.ts'
import { startSvc } from './schedule/svc.ts'

const { values: flags } = parseArgs({
  options: {
    rates: { type: 'string', default: '10000,60000,100000' },
    mix: { type: 'string', default: '10000' },
    callers: { type: 'string', default: '64' },
    interval: { type: 'string', default: '10' },
    'warm-up': { type: 'string', default: '13' },
    seconds: { type: 'string', default: '30' },
    rounds: { type: 'string', default: '2' },
    minutes: { type: 'string', default: '11.5' },
    /** `svc` or `prometheus` alone. */
    only: { type: 'string' },
    /** Where the results go. */
    to: { type: 'string', default: new URL('./results/schedule', import.meta.url).pathname },
    /** Flags of Node for `svc serve`, such as --cpu-prof. */
    node: { type: 'string', multiple: true, default: [] },
  },
})
const intervalMs = Number(flags.interval) * 1_000
const [warmUpMs, measuredMs] = [Number(flags['warm-up']) * 1_000, Number(flags.seconds) * 1_000]
const rounds = Number(flags.rounds)
const endsAt = performance.now() + Number(flags.minutes) * 60_000
const processors = cpus().length
/** Above this rate, one measurement is enough: what runs out first does. */
const interleavedUpTo = 60_000
/** How often the metrics are taken meanwhile, and resources are read. Milliseconds. */
const [scrapeMs, sampleMs] = [10_000, 1_000]

type Cell = { readonly name: string; readonly perMinute: number; readonly mix: Mix; readonly callers: number }
const perInterval = (perMinute: number): number => Math.round((perMinute / 60_000) * intervalMs)
const ratesOf = (text: string): readonly number[] => text.split(',').filter(Boolean).map(Number)
const cells: readonly Cell[] = [
  ...ratesOf(flags.rates).map((perMinute) => ({
    name: 'http',
    perMinute,
    mix: { http: perInterval(perMinute), tls: 0, postgres: 0 },
    callers: 0,
  })),
  ...ratesOf(flags.mix).flatMap((perMinute) => {
    const all = perInterval(perMinute)
    const [tls, postgres] = [Math.round(all * 0.2), Math.round(all * 0.1)]
    const callers = Number(flags.callers)
    return perMinute === 0
      ? []
      : [{ name: 'mix', perMinute, mix: { http: all - tls - postgres, tls, postgres }, callers }]
  }),
]

/** Something that probes the servers on its own time. */
type Watcher = {
  readonly pids: readonly number[]
  readonly begin: () => Promise<void>
  readonly end: () => Promise<Pick<Outcome, 'loop' | 'notChecked' | 'failed' | 'callers' | 'scrapes' | 'failedScrapes'>>
  /** How much later than due the probes came, sorted. */
  readonly late: (counts: PeerCounts, measured: Measured) => Float64Array
  readonly due: (measured: Measured) => number
  readonly counted: (counts: PeerCounts) => number
  readonly stop: () => Promise<void>
}

const wallNow = (): number => performance.timeOrigin + performance.now()
const say = (text: string): void => void process.stderr.write(`${text}\n`)

async function startOurs({ callers: callerCount }: Cell, { targets }: Servers): Promise<Watcher> {
  const svc = await startSvc(svcYaml(targets), flags.node)
  const { mix } = targets
  const phases = {
    http: phasesOf('http', mix.http),
    tls: phasesOf('tls', mix.tls),
    postgres: phasesOf('postgres', mix.postgres),
  }
  const types = kinds.filter((kind) => mix[kind] > 0).map((kind) => typeOf[kind])
  const callers = callerCount > 0 ? startCallers(svc.url, callerCount, types) : undefined
  const scrapes: Scrape[] = []
  let [isMeasured, failedScrapes] = [false, 0]
  let scraping: Promise<void> | undefined
  const take = (): void => {
    scraping ??= scrape(svc.url)
      .then(
        (one) => {
          if (isMeasured) scrapes.push(one)
        },
        () => {
          if (isMeasured) failedScrapes += 1
        },
      )
      .finally(() => {
        scraping = undefined
      })
  }
  const timer = setInterval(take, scrapeMs)
  return {
    pids: [svc.pid],
    begin: async () => {
      await svc.loop()
      isMeasured = true
      callers?.begin()
    },
    end: async () => {
      const loop = await svc.loop()
      const answered: Callers | undefined = callers?.end()
      clearInterval(timer)
      await scraping
      // What the last results were.
      take()
      await scraping
      isMeasured = false
      const faults = Object.entries(scrapes.at(-1)?.faults ?? {})
      if (faults.length > 0) say(`  faults at the end: ${faults.map(([name, count]) => `${name} ${count}`).join(', ')}`)
      return {
        loop: { ...loop, heapMb: loop.heapUsed / 2 ** 20 },
        notChecked: scrapes.length === 0 ? Number.NaN : scrapes.reduce((sum, one) => sum + one.notChecked, 0),
        failed: scrapes.length === 0 ? Number.NaN : scrapes.reduce((sum, one) => sum + one.failed, 0),
        scrapes,
        failedScrapes,
        callers: answered,
      }
    },
    late: ({ probes }, measured) =>
      sortedOf(
        kinds.flatMap((kind) => {
          const at = byTarget(probes[kind])
          return phases[kind].map((phase, number) => lateOf(at.get(number) ?? [], phase, measured))
        }),
      ),
    due: (measured) =>
      kinds.reduce((sum, kind) => phases[kind].reduce((count, phase) => count + dueTimes(phase, measured), sum), 0),
    counted: ({ probes }) => kinds.reduce((sum, kind) => sum + probes[kind].at.length, 0),
    stop: async () => {
      clearInterval(timer)
      await callers?.stop()
      await svc.stop()
    },
  }
}

const phasesOf = (kind: (typeof kinds)[number], count: number): readonly number[] =>
  Array.from({ length: count }, (_, number) => phaseOfMonitor(kind, number, intervalMs))

async function startTheirs(_: Cell, { targets }: Servers): Promise<Watcher> {
  const { pids, failures, stop } = await startBlackbox(targets)
  return {
    pids,
    stop,
    begin: async () => {},
    end: async () => {
      const { scrapes, probes } = await failures(Math.round(measuredMs / 1_000))
      return { loop: undefined, notChecked: scrapes, failed: probes, callers: undefined, scrapes: [], failedScrapes: 0 }
    },
    // It connects to PostgreSQL and does not sign in, so that nothing tells these probes apart.
    late: ({ probes }, measured) =>
      sortedOf(
        (['http', 'tls'] as const).flatMap((kind) => {
          const times = byTarget(probes[kind])
          return Array.from({ length: targets.mix[kind] }, (_, number) => {
            const at = times.get(number) ?? []
            return lateOf(at, bestTurn(at, intervalMs), measured)
          })
        }),
      ),
    due: ({ from, to }) => ((to - from) / intervalMs) * total(targets.mix),
    counted: ({ probes: { http, tls }, postgresConnections }) => http.at.length + tls.at.length + postgresConnections,
  }
}

function byTarget({ ids, at }: PeerCounts['probes']['http']): ReadonlyMap<number, readonly number[]> {
  const all = new Map<number, number[]>()
  for (const [index, id] of ids.entries()) {
    const times = all.get(id) ?? []
    all.set(id, times)
    times.push(at[index] ?? 0)
  }
  return all
}

/** The resources of processes, read once a second. */
function sampler(pids: readonly number[]) {
  let [rss, open, closed] = [0, 0, 0]
  const sample = (): void => {
    const all = trees(pids)
    rss = Math.max(rss, residentMemory(all))
    open = Math.max(open, descriptors(pids))
    closed = Math.max(closed, closedConnections())
  }
  sample()
  const timer = setInterval(sample, sampleMs)
  return () => {
    clearInterval(timer)
    sample()
    return { rssMb: rss / 2 ** 20, descriptors: open, closedConnections: closed }
  }
}

/** One measurement of one watcher, from empty. */
async function measure(cell: Cell, startWatcher: typeof startOurs, stops: (() => Promise<void>)[]): Promise<Outcome> {
  let [servers, watcher]: [Servers | undefined, Watcher | undefined] = [undefined, undefined]
  stops.push(async () => {
    await watcher?.stop()
    await servers?.stop()
  })
  try {
    const targets = await startServers(cell.mix, intervalMs)
    servers = targets
    const loadBefore = loadavg()[0] ?? Number.NaN
    watcher = await startWatcher(cell, targets)
    const { pids, begin, end, late, due, counted } = watcher
    await wait(warmUpMs)
    await begin()
    await targets.begin()
    const from = wallNow()
    const read = () => ({
      at: performance.now(),
      watcher: processorTime(trees(pids)),
      peers: processorTime(trees(targets.pids)),
      bench: process.cpuUsage(),
      machine: idleTime(),
    })
    const stopSampling = sampler(pids)
    const before = read()
    await wait(measuredMs)
    const after = read()
    const measured = { intervalMs, from, to: wallNow() }
    const counts = await targets.end()
    const resources = stopSampling()
    const ms = after.at - before.at
    const busy = after.machine.all - before.machine.all - (after.machine.idle - before.machine.idle)
    return {
      seconds: ms / 1_000,
      due: Math.round(due(measured)),
      counted: counted(counts),
      late: late(counts, measured),
      ...resources,
      ...(await end()),
      cores: {
        watcher: (after.watcher - before.watcher) / ms,
        peers: (after.peers - before.peers) / ms,
        bench: (after.bench.user + after.bench.system - before.bench.user - before.bench.system) / 1_000 / ms,
        machine: busy / ms,
      },
      descriptorLimit: Math.min(...pids.map(descriptorLimit)),
      loadBefore,
      loadAfter: loadavg()[0] ?? Number.NaN,
    }
  } finally {
    await watcher?.stop()
    await servers?.stop()
  }
}

/** A measurement that does not end fails, and the bench goes on. */
async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const timer = new AbortController()
  const tooLong = wait(ms, undefined, { signal: timer.signal, ref: false }).then(() => {
    throw new Error(`it did not end within ${Math.round(ms / 1_000)} s`)
  })
  tooLong.catch(() => {})
  try {
    return await Promise.race([work, tooLong])
  } finally {
    timer.abort()
  }
}

const watchers = [
  { name: 'svc serve', id: 'svc', start: startOurs, missing: undefined },
  { name: 'Prometheus, blackbox_exporter', id: 'prometheus', start: startTheirs, missing: peerMissing },
].filter(({ id }) => flags.only === undefined || flags.only === id)

type Row = { readonly cell: Cell; readonly watcher: string; readonly outcomes: Outcome[]; readonly notes: string[] }
const rows: readonly Row[] = cells.flatMap((cell) =>
  watchers.map(({ name }) => ({ cell, watcher: name, outcomes: [], notes: [] })),
)
const label = ({ name, perMinute }: Cell): string => `${name} ${perMinute.toLocaleString('en')}`
const loadAtStart = loadavg()[0] ?? Number.NaN

async function measureRow(row: Row, round: number): Promise<void> {
  const watcher = watchers.find(({ name }) => name === row.watcher)
  const { cell, notes } = row
  if (!watcher || (round > 0 && cell.perMinute > interleavedUpTo)) return
  const missing = watcher.missing ?? (cell.mix.tls + cell.mix.postgres > 0 ? mixMissing : undefined)
  if (missing !== undefined) {
    if (round === 0) notes.push(missing)
    return
  }
  const expectedMs = warmUpMs + measuredMs + 8_000
  const left = endsAt - performance.now()
  if (left < expectedMs) {
    notes.push(`round ${round + 1} left out: no time was left`)
    return
  }
  say(`round ${round + 1}: ${label(cell)} a minute, ${watcher.name}`)
  const stops: (() => Promise<void>)[] = []
  try {
    const outcome = await within(Math.min(left, expectedMs + 60_000), measure(cell, watcher.start, stops))
    row.outcomes.push(outcome)
    say(`  ${outcome.counted} of ${outcome.due} probes, p99 ${quantile(outcome.late, 0.99).toFixed(0)} ms late`)
  } catch (error) {
    notes.push(`round ${round + 1} failed: ${error instanceof Error ? error.message : String(error)}`)
    say(`  ${notes.at(-1)}`)
    // What still runs would slow down the next measurement.
    await within(20_000, Promise.allSettled(stops.map((stop) => stop()))).catch(() => {})
  }
}

const integer = (value: number): string => (Number.isNaN(value) ? '–' : Math.round(value).toLocaleString('en'))
const head = [
  'load',
  'watcher',
  'due',
  'counted at the peers',
  'late p50 ms',
  'p99 ms',
  'max ms',
  'not checked',
  'failed',
  'loop busy %',
  'loop delay p99 / max ms',
  'cores',
  'RSS MB',
]
const cellsOf = ({ cell, watcher, outcomes }: Row): readonly string[] => {
  if (outcomes.length === 0) return [label(cell), watcher, ...head.slice(2).map(() => '–')]
  const { due, counted, late, notChecked, failed, loop, cores, rssMb } = pooled(outcomes)
  return [
    label(cell),
    watcher,
    integer(due),
    integer(counted),
    integer(quantile(late, 0.5)),
    integer(quantile(late, 0.99)),
    integer(late.at(-1) ?? Number.NaN),
    integer(notChecked),
    integer(failed),
    loop ? integer(loop.utilization * 100) : '–',
    loop ? `${integer(loop.delayP99)} / ${integer(loop.delayMax)}` : '–',
    cores.watcher.toFixed(2),
    integer(rssMb),
  ]
}

function remarksOf({ cell, watcher, outcomes, notes }: Row): readonly string[] {
  const remarks = notes.map((note) => `${label(cell)}, ${watcher}: ${note}.`)
  if (outcomes.length === 0) return remarks
  const one = pooled(outcomes)
  if (one.loop) remarks.push(`${label(cell)}: what ran out first: ${limitOf(one, cell.perMinute, processors)}.`)
  if (one.failedScrapes > 0) {
    remarks.push(`${label(cell)}: ${one.failedScrapes} scrapes of /metrics had no answer within 30 s.`)
  }
  if (one.scrapes.length > 0) {
    const times = one.scrapes.map(({ ms }) => ms).sort((a, b) => a - b)
    remarks.push(
      `${label(cell)}: ${times.length} scrapes of /metrics took ${integer(quantile(times, 0.5))} ms in the median and ${integer(times.at(-1) ?? Number.NaN)} ms at most, ${Math.max(...one.scrapes.map(({ megabytes }) => megabytes)).toFixed(1)} MB each.`,
    )
  }
  const { callers } = one
  if (callers) {
    const failures = Object.entries(callers.failures).map(([why, count]) => `${count} × ${why}`)
    remarks.push(
      `${label(cell)}: ${cell.callers} callers got ${integer(callers.answers)} answers of ${integer(callers.kilobytes)} KB, p50 ${integer(quantile(callers.took, 0.5))} ms, p99 ${integer(quantile(callers.took, 0.99))} ms; answers other than 200: ${failures.join(', ') || 'none'}.`,
    )
  }
  return remarks
}

function report(): string {
  const table = [head, head.map(() => '---'), ...rows.map(cellsOf)].map((row) => `| ${row.join(' | ')} |`).join('\n')
  const loads = rows.flatMap(({ outcomes }) => outcomes.flatMap((one) => [one.loadBefore, one.loadAfter]))
  const samples = rows.map(({ outcomes }) => outcomes.length)
  return `# The schedule beside Prometheus with blackbox_exporter

${Math.max(...samples)} interleaved rounds of ${measuredMs / 1_000} s after ${warmUpMs / 1_000} s (one above ${interleavedUpTo.toLocaleString('en')} a minute), Node ${process.versions.node}, ${processors} processors shared with the servers that are checked.
Load average ${loadAtStart.toFixed(1)} before the first measurement, ${Math.min(...loads).toFixed(1)} to ${Math.max(...loads).toFixed(1)} during them; without other programs it is that of the bench itself.
Each monitor is due every ${intervalMs / 1_000} s. The mix is 70 % http, 20 % tls, 10 % postgres with a sign-in each; blackbox_exporter only connects to PostgreSQL.
Late is the time from the moment at which a monitor is due to the arrival of its probe at the server, for postgres to its sign-in. A probe at most ${intervalMs / 4_000} s earlier serves a due time, as that of a caller's run may. Prometheus is measured against the best turn of each target, which is less.
Counts are sums over the rounds, times are pooled, cores are medians, RSS and maxima are the highest. Not checked and failed are those of svc in a scrape every ${scrapeMs / 1_000} s, for Prometheus scrapes and probes that failed.
Goal: at 10,000 and 60,000 a minute p99 at most 1,000 ms late, none not checked.

${table}

${rows
  .flatMap(remarksOf)
  .map((remark) => `- ${remark}`)
  .join('\n')}
`
}

function write(): void {
  const text = report()
  mkdirSync(new URL('.', `file://${flags.to}`), { recursive: true })
  const measured = rows.map(({ cell, watcher, outcomes, notes }) => ({
    ...cell,
    watcher,
    notes,
    rounds: outcomes.map(({ late, callers, ...one }) => ({
      ...one,
      late: figuresOf(late),
      callers: callers && { ...callers, took: figuresOf(callers.took) },
    })),
  }))
  const settings = { intervalMs, warmUpMs, measuredMs, processors, node: process.versions.node, loadAtStart }
  writeFileSync(`${flags.to}.json`, `${JSON.stringify({ settings, measured }, undefined, 2)}\n`)
  writeFileSync(`${flags.to}.md`, text)
  process.stdout.write(text)
}

const figuresOf = (sorted: Float64Array) => ({
  samples: sorted.length,
  p50: quantile(sorted, 0.5),
  p99: quantile(sorted, 0.99),
  max: sorted.at(-1),
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
for (let round = 0; round < rounds; round += 1) {
  for (const row of rows) await measureRow(row, round)
}
write()
// Whatever a measurement that did not end has left running ends with this process.
process.exit(rows.some(({ outcomes }) => outcomes.length > 0) ? 0 : 1)

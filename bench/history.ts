/**
 * The size of the history of 1,000 monitors with ten figures each, and what its writing costs: `node bench/history.ts
 * [monitors] [runs a minute] [hours]`, by default 1,000, 10,000 and 48. The runs are simulated, the store is a real file of
 * SQLite. Three figures are times with noise, one is a percentage with a daily course, one counts connections, and five
 * change slowly or not at all. Afterwards the longer periods of 90 and 400 days are written as `svc serve` would have
 * written them.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openData } from '../src/core/store/index.ts'
import {
  emptyPack,
  encodeBlock,
  HistoryKeeper,
  measure,
  type ObservedRun,
  restored,
  tiers,
} from '../src/core/watch/periods/index.ts'

const [monitors = 1_000, perMinute = 10_000, hours = 48] = process.argv.slice(2).map(Number)
const second = 1_000
const hour = 3_600_000
const day = 24 * hour

let seed = 1
function random(): number {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
  return seed / 0x80000000
}
const noise = (): number => Math.sqrt(-2 * Math.log(random() + 1e-12)) * Math.cos(2 * Math.PI * random())

/** The values of the ten figures of a monitor. */
const valuesAt = (monitor: number, at: number): readonly number[] => [
  (5 + (monitor % 50)) * Math.exp(0.3 * noise()),
  (20 + (monitor % 90)) * Math.exp(0.3 * noise()),
  200 * Math.exp(0.3 * noise()),
  50 + 10 * Math.sin((at / day) * 2 * Math.PI) + 0.5 * noise(),
  Math.round(20 + 3 * noise()),
  94.2,
  0,
  5e11 + (at % (400 * day)) / 10,
  89.5 - (at % (60 * day)) / day,
  100,
]
const names = [
  'connect',
  'round trip',
  'query',
  'memory',
  'connections',
  'disk',
  'deadlocks',
  'size',
  'certificate',
  'ratio',
]
const figureNames = names.map((name) => JSON.stringify([name, 'milliseconds']))

function runOf(monitor: number, at: number, interval: number): ObservedRun {
  const values = valuesAt(monitor, at)
  const checks = names.map((check, index) => ({
    check,
    rank: 1 as const,
    level: 'ok' as const,
    figure: { name: figureNames[index] ?? '', value: values[index] ?? 0 },
  }))
  return { at, rank: 1, validMs: [2 * interval, 2 * interval, 2 * hour], checks }
}

const folder = mkdtempSync(join(tmpdir(), 'svc-bench-history-'))
const store = join(folder, 'store', 'svc.db')
const data = await openData({ store, create: true })
const file = `${store}.history`
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

const start = Math.floor(Date.now() / day) * day - 2 * day
const interval = (monitors / perMinute) * 60 * second
const keeper = new HistoryKeeper(await restored(data.history, start))
const perSecond = perMinute / 60
let [next, writingMs, worstMs, largestLog] = [0, 0, 0, 0]
for (let at = start; at < start + hours * hour; at += second) {
  for (const until = ((at - start) / second + 1) * perSecond; next < until; next += 1) {
    const monitor = next % monitors
    const identity = { key: `Sql/postgres/${monitor}`, type: 'Sql', name: `postgres ${monitor}` }
    keeper.source.recorder.add(identity, runOf(monitor, at, interval))
  }
  const began = performance.now()
  await keeper.turn(at + second)
  const took = performance.now() - began
  writingMs += took
  worstMs = Math.max(worstMs, took)
  if (at % (6 * hour) === 0) process.stdout.write(`after ${(at - start) / hour} h: ${megabytes(sizeOf(file))}\n`)
  if (at % (60 * second) === 0) largestLog = Math.max(largestLog, sizeOf(`${file}-wal`))
}
const turns = hours * 3_600
process.stdout.write(
  `${hours} h of ${perMinute} runs a minute, ${monitors} monitors: ${megabytes(sizeOf(file))}, log at most ${megabytes(largestLog)}; a turn takes ${(writingMs / turns).toFixed(2)} ms on average, ${worstMs.toFixed(0)} ms at most\n`,
)

const numberOf = (name: string): number => keeper.source.recorder.numberOf(name)
for (const tier of [1, 2] as const) {
  const { width, span, keptMs } = tiers[tier]
  const runs = width / interval
  for (let at = start - keptMs; at < start - span; at += span) {
    for (let from = 0; from < monitors; from += 100) {
      const blocks = Array.from({ length: Math.min(100, monitors - from) }, (_, index) => {
        const packs = Array.from({ length: span / width }, (_, slot) => {
          const pack = emptyPack()
          pack.up.fill(width)
          pack.runs = runs
          // The extremes of so many runs, from as many as a bench has time for.
          for (let run = 0; run < 60; run += 1) {
            const values = valuesAt(from + index, at + slot * width + run * (width / 60))
            for (const [figure, value] of values.entries()) measure(pack, figureNames[figure] ?? '', value)
          }
          return pack
        })
        return { tier, at, monitor: from + index + 1, runs, ...encodeBlock(packs, width, numberOf) }
      })
      await data.history.write({ blocks, deleteRunsBefore: 0 })
    }
  }
}
await data.close()
process.stdout.write(`with 90 days of hours and 400 days: ${megabytes(sizeOf(file))}\n`)
rmSync(folder, { recursive: true, force: true })

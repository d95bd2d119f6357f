/**
 * The engine under 10,000 and 60,000 runs of http monitors a minute, against a real server of this machine.
 *
 *     node bench/engine-load.ts [rounds] [folder of an earlier checkout, with its node_modules]
 *
 * Each run is one monitor, as a schedule runs it. The checkouts take turns in processes of their own, so a machine that
 * slows down slows all of them. The server has a process of its own, on the same processors.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { median } from './compare.ts'
import type { Load, Outcome } from './engine-load-runs.ts'

const rounds = Math.min(Number(process.argv[2] ?? 3), 50)
const earlier = process.argv[3]
const checkouts = {
  ...(earlier === undefined ? {} : { before: earlier }),
  now: fileURLToPath(new URL('..', import.meta.url)),
}
const rates = [10_000, 60_000]
/** So many that four runs at a time per host bind nothing. */
const addresses = 250
const [warmUpMs, measuredMs, intervalMs] = [4_000, 15_000, 10_000]

const peer = fork(new URL('./engine-load-peer.ts', import.meta.url).pathname, [String(addresses)])
const [{ port }] = (await once(peer, 'message')) as [{ port: number }]

async function measure(checkout: string, perMinute: number): Promise<Outcome> {
  const child = fork(new URL('./engine-load-runs.ts', import.meta.url).pathname)
  child.send({ checkout, port, addresses, perMinute, intervalMs, warmUpMs, measuredMs } satisfies Load)
  const [outcome] = (await once(child, 'message')) as [Outcome]
  return outcome
}

const rows: string[][] = []
for (const perMinute of rates) {
  const outcomes = new Map<string, Outcome[]>()
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, checkout] of Object.entries(checkouts)) {
      outcomes.set(name, [...(outcomes.get(name) ?? []), await measure(checkout, perMinute)])
    }
  }
  for (const [name, measured] of outcomes) {
    const cell = (of: (outcome: Outcome) => number, digits: number): string => median(measured.map(of)).toFixed(digits)
    rows.push([
      perMinute.toLocaleString('en'),
      name,
      cell(({ p50 }) => p50, 1),
      cell(({ p99 }) => p99, 0),
      cell(({ notChecked }) => notChecked * 100, 1),
      cell(({ failed }) => failed * 100, 1),
      cell(({ loopDelayMs }) => loopDelayMs, 0),
      cell(({ cores }) => cores, 2),
      cell(({ rss }) => rss / 2 ** 20, 0),
    ])
  }
}
peer.disconnect()

const head = [
  'runs a minute',
  'engine',
  'p50 late ms',
  'p99 late ms',
  'not checked %',
  'failed %',
  'loop delay max ms',
  'cores',
  'RSS MB',
]
const table = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
const text = `# Runs of many monitors a minute

${rounds} interleaved ${rounds === 1 ? 'round' : 'rounds'} of ${measuredMs / 1_000} s after ${warmUpMs / 1_000} s, Node ${process.versions.node}, ${cpus().length} cores shared with the server that is checked; medians.
Load average at the end ${loadavg()[0]?.toFixed(1)}: above ${cpus().length}, other programs took processor time from the measured ones.
Each run is one http monitor, due every ${intervalMs / 1_000} s. Late is the time from the moment at which it is due to its first step.
Goal: p99 at most 1,000 ms late, and none not checked, at 60,000 a minute.

${table}
`
mkdirSync(new URL('./results/', import.meta.url), { recursive: true })
writeFileSync(new URL('./results/engine-load.md', import.meta.url), text)
process.stdout.write(text)

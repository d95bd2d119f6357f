/**
 * The memory of `svc serve` while its schedule runs http monitors and something scrapes its metrics:
 *
 *     npm run build && node bench/schedule-memory.ts [--monitors 10000] [--interval 60] [--seconds 240] [--every 20]
 *
 * Prints the resident memory and the live heap, after a collection of garbage, in equal steps of time. Fails unless the live
 * heap levels off: once every monitor has run, it must not grow by more than a tenth until the end.
 *
 *     npm run soak -- [--seconds 7200] [--cgroup FOLDER]
 *
 * collects nothing, and fails unless the resident memory stays within 5 %, by its slope from the tenth minute on. `--cgroup`: the
 * folder of a control group, which bounds the memory of the server, as mkdir and memory.max or memory.limit_in_bytes make it.
 */
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { scrape } from './schedule/callers.ts'
import { svcYaml } from './schedule/monitors.ts'
import { residentMemory, trees } from './schedule/processes.ts'
import { startServers } from './schedule/servers.ts'
import { startSvc } from './schedule/svc.ts'

const { values: flags } = parseArgs({
  options: {
    monitors: { type: 'string', default: '10000' },
    /** Seconds. */
    interval: { type: 'string', default: '60' },
    seconds: { type: 'string', default: '240' },
    every: { type: 'string', default: '20' },
    soak: { type: 'boolean', default: false },
    cgroup: { type: 'string' },
    /** Flags of Node for `svc serve`, such as --heap-prof. */
    node: { type: 'string', multiple: true, default: [] },
  },
})
const [monitors, intervalMs] = [Number(flags.monitors), Number(flags.interval) * 1_000]
const [endsMs, everyMs] = [Number(flags.seconds) * 1_000, Number(flags.every) * 1_000]
/** Monitors have run once, and the caches of Node are warm. */
const warmMs = flags.soak ? 600_000 : intervalMs + 2 * everyMs

type Step = { readonly seconds: number; readonly rssMb: number; readonly heapMb: number; readonly scrapeMb: number }

async function stepsOf(servers: Awaited<ReturnType<typeof startServers>>): Promise<readonly Step[]> {
  // A process begins in the group of the one that starts it, and what it takes before it is moved counts for no group.
  const moveTo = (group: string): void => writeFileSync(join(group, 'cgroup.procs'), String(process.pid))
  if (flags.cgroup) moveTo(flags.cgroup)
  const svc = await startSvc(svcYaml(servers.targets), [...(flags.soak ? [] : ['--expose-gc']), ...flags.node])
  if (flags.cgroup) moveTo(join(flags.cgroup, '..'))
  try {
    const start = performance.now()
    const steps: Step[] = []
    process.stdout.write('| s | RSS MB | live heap MB | scrape MB |\n|---|---|---|---|\n')
    for (let at = everyMs; at <= endsMs; at += everyMs) {
      await wait(Math.max(0, start + at - performance.now()))
      const { megabytes } = await scrape(svc.url)
      const rss = residentMemory(trees([svc.pid]))
      const { heapUsed } = await svc.loop(flags.soak ? 'figures' : 'collect')
      const step = {
        seconds: Math.round((performance.now() - start) / 1_000),
        rssMb: rss / 2 ** 20,
        heapMb: heapUsed / 2 ** 20,
        scrapeMb: megabytes,
      }
      steps.push(step)
      const { seconds, rssMb, heapMb, scrapeMb } = step
      process.stdout.write(`| ${seconds} | ${rssMb.toFixed(0)} | ${heapMb.toFixed(1)} | ${scrapeMb.toFixed(1)} |\n`)
    }
    return steps
  } finally {
    await svc.stop()
  }
}

/** By which share the resident memory changes from the first to the last step, by the line through all of them. */
function slopeOf(steps: readonly Step[]): number {
  const mean = (of: (step: Step) => number): number => steps.reduce((sum, step) => sum + of(step), 0) / steps.length
  const [at, rss] = [mean(({ seconds }) => seconds), mean(({ rssMb }) => rssMb)]
  const slope = mean((step) => (step.seconds - at) * (step.rssMb - rss)) / mean(({ seconds }) => (seconds - at) ** 2)
  return (slope * ((steps.at(-1)?.seconds ?? 0) - (steps[0]?.seconds ?? 0))) / rss
}

const servers = await startServers({ http: monitors, tls: 0, postgres: 0 }, intervalMs)
try {
  process.stdout.write(`${monitors} http monitors, each due every ${intervalMs / 1_000} s\n\n`)
  const warm = (await stepsOf(servers)).filter(({ seconds }) => seconds * 1_000 >= warmMs)
  const [first, last] = [warm[0], warm.at(-1)]
  if (!first || first === last) throw new Error('the measurement is too short to show whether the heap levels off')
  const grown = flags.soak ? slopeOf(warm) : (last?.heapMb ?? Number.NaN) / first.heapMb - 1
  const what = flags.soak ? 'resident memory, by its slope,' : 'live heap'
  const loads = loadavg().map((load) => load.toFixed(1))
  process.stdout.write(
    `\nFrom ${first.seconds} to ${last?.seconds} s the ${what} grew by ${(100 * grown).toFixed(1)} %. Load averages ${loads.join(', ')}.\n`,
  )
  if (!(flags.soak ? Math.abs(grown) <= 0.05 : grown <= 0.1)) process.exitCode = 1
} finally {
  await servers.stop()
}

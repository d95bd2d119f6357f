/**
 * The memory of `svc serve` while its schedule runs http monitors and something scrapes its metrics:
 *
 *     npm run build && node bench/schedule-memory.ts [--monitors 10000] [--interval 60] [--seconds 240] [--every 20]
 *
 * Prints the resident memory and the live heap, after a collection of garbage, in equal steps of time. Fails unless the live
 * heap levels off: once every monitor has run, it must not grow by more than a tenth until the end.
 */
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
    /** Flags of Node for `svc serve`, such as --heap-prof. */
    node: { type: 'string', multiple: true, default: [] },
  },
})
const [monitors, intervalMs] = [Number(flags.monitors), Number(flags.interval) * 1_000]
const [endsMs, everyMs] = [Number(flags.seconds) * 1_000, Number(flags.every) * 1_000]
/** Monitors have run once, and the caches of Node are warm. */
const warmMs = intervalMs + 2 * everyMs

type Step = { readonly seconds: number; readonly rssMb: number; readonly heapMb: number; readonly scrapeMb: number }

async function stepsOf(servers: Awaited<ReturnType<typeof startServers>>): Promise<readonly Step[]> {
  const svc = await startSvc(svcYaml(servers.targets), ['--expose-gc', ...flags.node])
  try {
    const start = performance.now()
    const steps: Step[] = []
    process.stdout.write('| s | RSS MB | live heap MB | scrape MB |\n|---|---|---|---|\n')
    for (let at = everyMs; at <= endsMs; at += everyMs) {
      await wait(Math.max(0, start + at - performance.now()))
      const { megabytes } = await scrape(svc.url)
      const rss = residentMemory(trees([svc.pid]))
      const { heapUsed } = await svc.loop('collect')
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

const servers = await startServers({ http: monitors, tls: 0, postgres: 0 }, intervalMs)
try {
  process.stdout.write(`${monitors} http monitors, each due every ${intervalMs / 1_000} s\n\n`)
  const warm = (await stepsOf(servers)).filter(({ seconds }) => seconds * 1_000 >= warmMs)
  const [first, last] = [warm[0], warm.at(-1)]
  if (!first || first === last) throw new Error('the measurement is too short to show whether the heap levels off')
  const growth = (last?.heapMb ?? Number.NaN) / first.heapMb - 1
  process.stdout.write(
    `\nFrom ${first.seconds} to ${last?.seconds} s the live heap grew by ${(100 * growth).toFixed(1)} %.\n`,
  )
  if (!(growth <= 0.1)) process.exitCode = 1
} finally {
  await servers.stop()
}

/**
 * How long nobody runs the monitors when the holder of the lease is killed:
 *
 *     npm run build && node bench/takeover.ts [--monitors 10000] [--interval 60] [--rounds 3]
 *
 * Two nodes share a real PostgreSQL. The servers that are checked say when each run comes, so that nothing rests on what svc
 * says about itself. Prints the time from the signal to the first run of the other node, and the longest time in which a
 * monitor had no run within two intervals after that.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadavg } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { figure, type ServeNode, startNode } from '../test/support/program/serve-node.ts'
import { startPostgres } from '../test/support/servers/postgres.ts'
import { until } from '../test/support/suite/until.ts'

const { values: flags } = parseArgs({
  options: {
    monitors: { type: 'string', default: '10000' },
    /** Seconds. */
    interval: { type: 'string', default: '60' },
    rounds: { type: 'string', default: '3' },
  },
})
const [monitors, intervalMs] = [Number(flags.monitors), Number(flags.interval) * 1_000]

const ranAt = new Map<string, number>()
let lastAt = 0
let maxMs = 0
const peer = createServer((request, response) => {
  lastAt = performance.now()
  const path = request.url ?? ''
  maxMs = Math.max(maxMs, lastAt - (ranAt.get(path) ?? lastAt))
  ranAt.set(path, lastAt)
  response.end('ok')
}).listen(0, '127.0.0.1')
await until(() => peer.listening)
const { port } = peer.address() as AddressInfo

const lines = Array.from(
  { length: monitors },
  (_, at) => `  - {kind: http,name: m${at},url: http://127.0.0.1:${port}/${at}}`,
)
const yamlOf = (node: string): string =>
  [
    'serve:',
    ` node: ${node}`,
    ` every: {Standard: ${intervalMs}ms}`,
    'types:',
    ' App:',
    '  host: false',
    '  monitors:',
    ...lines,
  ].join('\n')

const postgres = await startPostgres()
const holds = async (node: ServeNode): Promise<boolean> => (await figure(node, 'svc_node_holds_lease')) === 1
process.stdout.write(
  `${monitors} monitors, each every ${flags.interval} s, load averages ${loadavg()
    .map((load) => load.toFixed(1))
    .join(', ')}\n`,
)
try {
  for (let round = 1; round <= Number(flags.rounds); round += 1) {
    await postgres.query(`CREATE DATABASE takeover${round}`)
    const store = postgres.url('postgres', `takeover${round}`)
    const started = async (name: string) => await startNode({ store, yaml: yamlOf(name) })
    const first = await started('a')
    const second = await started('b')
    try {
      await until(async () => (await holds(first)) || (await holds(second)), 60_000)
      await wait(intervalMs + 10_000)
      const holder = (await holds(first)) ? first : second
      maxMs = 0
      const killedAt = performance.now()
      holder.signal('SIGKILL')
      await wait(500)
      const before = lastAt
      await until(() => lastAt > before, 60_000)
      const firstMs = lastAt - killedAt
      await wait(2 * intervalMs)
      const [gap, max] = [firstMs, maxMs].map((ms) => (ms / 1_000).toFixed(1))
      process.stdout.write(
        `round ${round}: first run of the other node after ${gap} s; longest time between two runs of a monitor ${max} s\n`,
      )
    } finally {
      await Promise.allSettled([first.stop(), second.stop()])
    }
  }
} finally {
  await postgres.remove()
  peer.close()
  peer.closeAllConnections()
}

/**
 * The cost of 64 strangers who sign in at once for `svc serve` in a memory cgroup: whether it lives, its memory, how
 * many passwords it compares, as a share of what this machine hashes when it does nothing else, and how long health
 * waits. Run it as root on Linux, where a cgroup can be made.
 *
 *     node bench/sign-in-flood.ts [seconds] [megabytes,...] [name=value of the environment]...
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { defaultSlots, hashPassword } from '../src/core/accounts/auth/passwords.ts'
import { startMemoryCgroup } from '../test/support/faults/memory-cgroup.ts'
import { startNode } from '../test/support/program/serve-node.ts'
import { floodOfSignIns } from '../test/support/program/sign-in-flood.ts'

const [seconds = '15', megabytes = '128,160,192', ...variables] = process.argv.slice(2)
const env = Object.fromEntries(variables.map((pair) => pair.split('=', 2)))

/** Hashes a second that this machine makes with as many at once as a server does. */
async function hashLimit(): Promise<number> {
  const end = performance.now() + 3_000
  let hashes = 0
  const slot = async (): Promise<void> => {
    for (; performance.now() < end; hashes += 1) await hashPassword('the password of nobody')
  }
  await Promise.all(Array.from({ length: defaultSlots(undefined) }, slot))
  return hashes / 3
}

async function measure(limitMb: number, limit: number): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), 'svc-flood-'))
  const group = startMemoryCgroup(limitMb)
  try {
    const flags = ['--behind-proxy', '127.0.0.1']
    await using node = await startNode({ store: join(home, 'store', 'svc.db'), command: group.command, flags, env })
    const idle = Number(readFileSync(`/proc/${node.pid}/statm`, 'utf8').split(' ')[1]) * 4_096
    let end: number | NodeJS.Signals | undefined
    void node.ended.then((how) => {
      end = how
    })
    const ended = (): boolean => end !== undefined
    const { answers, healthMs } = await floodOfSignIns({
      port: node.port,
      strangers: 64,
      seconds: Number(seconds),
      ended,
    })
    const compared = (answers.get('401') ?? 0) / Number(seconds)
    const counts = [...answers].map(([status, count]) => `${status}: ${count}`).join(', ')
    return [
      `${limitMb} MB: ${end === undefined ? 'alive' : `ended by ${end}`}`,
      `idle ${inMb(idle)} MB, peak of the group ${inMb(group.peak())} MB`,
      `sign-ins ${counts}: ${compared.toFixed(0)} a second, ${Math.round((100 * compared) / limit)} % of ${limit.toFixed(0)}`,
      `health p50 ${at(healthMs, 0.5)} ms, p99 ${at(healthMs, 0.99)} ms of ${healthMs.length}`,
    ].join('; ')
  } finally {
    rmSync(home, { recursive: true, force: true })
    group.remove()
  }
}

const inMb = (bytes: number): string => (bytes / 2 ** 20).toFixed(0)
const at = (values: readonly number[], share: number): string =>
  (values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? Number.NaN).toFixed(0)

process.stdout.write(
  `${cpus().length} processors, load ${loadavg()[0]?.toFixed(1)}, ${variables.join(' ') || 'no variables'}\n`,
)
const limit = await hashLimit()
for (const size of megabytes.split(',').map(Number)) process.stdout.write(`${await measure(size, limit)}\n`)

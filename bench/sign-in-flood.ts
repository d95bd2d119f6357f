/**
 * The cost of 64 strangers who sign in at once for `svc serve` in a memory cgroup: whether it lives, its memory, how
 * many passwords it compares, as a share of what this machine hashes when it does nothing else, and how long health
 * waits. Health passes, as that of a server in operation does: while it fails, rule S8 lets a stranger wait up to a second
 * for the next run, with or without a flood. Run it as root on Linux, where a cgroup can be made.
 *
 *     node bench/sign-in-flood.ts [--seconds 15] [--megabytes 128,160,192] [--rounds 1] [--env NAME=VALUE]... [--program bin/run.js]...
 *
 * Several programs take turns in each round, so that a machine that slows down slows all of them.
 */
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { defaultSlots, hashPassword } from '../src/core/accounts/auth/passwords.ts'
import { startMemoryCgroup } from '../test/support/faults/memory-cgroup.ts'
import { startNode } from '../test/support/program/serve-node.ts'
import { floodOfSignIns } from '../test/support/program/sign-in-flood.ts'

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '15' },
    megabytes: { type: 'string', default: '128,160,192' },
    rounds: { type: 'string', default: '1' },
    env: { type: 'string', multiple: true, default: [] },
    program: { type: 'string', multiple: true, default: [new URL('../bin/run.js', import.meta.url).pathname] },
  },
})
const seconds = Number(flags.seconds)
const env = Object.fromEntries(flags.env.map((pair) => pair.split('=', 2)))

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

/** A monitor of the server connects to it. */
const peer = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
await once(peer, 'listening')
const { port: peerPort } = peer.address() as AddressInfo
const yaml = `types: {App: {monitors: [{name: peer, kind: tcp, host: 127.0.0.1, port: ${peerPort}}]}}\n`

async function measure(limitMb: number, limit: number, program: string): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), 'svc-flood-'))
  const group = startMemoryCgroup(limitMb)
  try {
    const store = join(home, 'store', 'svc.db')
    const serving = { command: group.command, flags: ['--behind-proxy', '127.0.0.1'], env, program, yaml }
    await using node = await startNode({ store, ...serving })
    let end: number | NodeJS.Signals | undefined
    void node.ended.then((how) => {
      end = how
    })
    const ended = (): boolean => end !== undefined
    const at = { port: node.port, ended }
    const before = await floodOfSignIns({ ...at, strangers: 0, seconds: 5 })
    const idle = treeOf(node.pid)
    const flooding = floodOfSignIns({ ...at, strangers: 64, seconds })
    let most = idle
    const watch = setInterval(() => {
      const now = treeOf(node.pid)
      most = { rss: Math.max(most.rss, now.rss), all: Math.max(most.all, now.all), cpu: Math.max(most.cpu, now.cpu) }
    }, 250)
    const { answers, healthMs } = await flooding
    clearInterval(watch)
    const peak = group.peak()
    const compared = (answers.get('401') ?? 0) / seconds
    const counts = [...answers].map(([status, count]) => `${status}: ${count}`).join(', ')
    return [
      `${limitMb} MB: ${end === undefined ? 'alive' : `ended by ${end}`}`,
      `idle ${inMb(idle.rss)} MB, server ${inMb(most.rss)}, with its children ${inMb(most.all)}, peak of the group ${inMb(peak)}`,
      `sign-ins ${counts}: ${compared.toFixed(1)} a second, ${Math.round((100 * compared) / limit)} % of ${limit.toFixed(0)}`,
      `processors ${((most.cpu - idle.cpu) / seconds).toFixed(2)}`,
      `health p50 ${quantiles(healthMs)} of ${healthMs.length}, without a flood ${quantiles(before.healthMs)}`,
      `load ${loadavg()[0]?.toFixed(1)}`,
    ].join('; ')
  } finally {
    rmSync(home, { recursive: true, force: true })
    await emptied(group.remove)
  }
}

/** A child of the server that has just been killed is in the group for some milliseconds more. */
async function emptied(remove: () => void): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    try {
      return remove()
    } catch (error) {
      if (tries === 50) throw error
      await wait(20)
    }
  }
}

type Use = {
  /** Resident memory of the process, and of it and its children without what they share. Bytes. */
  readonly rss: number
  readonly all: number
  /** Seconds of processor time. */
  readonly cpu: number
}

function treeOf(pid: number): Use {
  const rollup = (one: string, name: string): number =>
    1_024 * Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readOr(`/proc/${one}/smaps_rollup`))?.[1] ?? 0)
  const cpu = (one: string): number => {
    const [user = 0, system = 0] = readOr(`/proc/${one}/stat`).split(' ').slice(13, 15).map(Number)
    return (user + system) / 100
  }
  const all = readdirSync('/proc').filter((one) => {
    const [id, , , parent] = /^\d+$/.test(one) ? readOr(`/proc/${one}/stat`).split(' ') : []
    return Number(id) === pid || Number(parent) === pid
  })
  const sum = (of: (one: string) => number): number => all.reduce((total, one) => total + of(one), 0)
  return { rss: rollup(String(pid), 'Rss'), all: sum((one) => rollup(one, 'Pss')), cpu: sum(cpu) }
}

/** Empty for a process that has just ended. */
function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

const inMb = (bytes: number): string => (bytes / 2 ** 20).toFixed(0)
const at = (values: readonly number[], share: number): string =>
  (values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? Number.NaN).toFixed(0)
const quantiles = (values: readonly number[]): string => `${at(values, 0.5)} ms, p99 ${at(values, 0.99)}`

process.stdout.write(
  `${cpus().length} processors, load ${loadavg()[0]?.toFixed(1)}, ${flags.env.join(' ') || 'no variables'}\n`,
)
const limit = await hashLimit()
for (let round = 0; round < Number(flags.rounds); round += 1) {
  for (const size of flags.megabytes.split(',').map(Number)) {
    for (const program of flags.program) {
      const name = flags.program.length > 1 ? `${program}, ` : ''
      process.stdout.write(`${name}${await measure(size, limit, program)}\n`)
    }
  }
}
peer.close()

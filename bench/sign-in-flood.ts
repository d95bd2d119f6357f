/**
 * What 64 strangers who sign in at once cost `svc serve` in a memory cgroup: whether it lives, its memory, and how long
 * health waits. Run it as root on Linux, where a cgroup can be made.
 *
 *     node bench/sign-in-flood.ts [seconds] [megabytes,...] [name=value of the environment]...
 *
 * Every stranger comes from an address of its own (through a proxy that the server trusts) with a name of its own, so
 * that no limit on guesses refuses any before its password is compared. Each of them asks again as soon as it has its
 * answer. Beside them, one caller reads /healthcheck every 50 ms.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const [seconds = '15', megabytes = '128,160,192', ...variables] = process.argv.slice(2)
const strangers = 64
const bin = new URL('../bin/run.js', import.meta.url).pathname

type Cgroup = { readonly folder: string; readonly limit: string; readonly peak: string }

/** Version 2 where it is mounted, otherwise the memory controller of version 1. */
function cgroup(limitMb: number): Cgroup {
  const v1 = existsSync('/sys/fs/cgroup/memory')
  const folder = join(v1 ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup', `svc-bench-${process.pid}-${limitMb}`)
  mkdirSync(folder)
  const files = v1
    ? { limit: 'memory.limit_in_bytes', peak: 'memory.max_usage_in_bytes' }
    : { limit: 'memory.max', peak: 'memory.peak' }
  writeFileSync(join(folder, files.limit), String(limitMb * 1_048_576))
  return { folder, limit: join(folder, files.limit), peak: join(folder, files.peak) }
}

async function serve(group: Cgroup, home: string): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const portFile = join(home, 'port')
  const flags = ['serve', '--port', '0', '--port-file', portFile, '--behind-proxy', '127.0.0.1']
  const child = spawn(
    '/bin/sh',
    ['-c', `echo $$ > ${group.folder}/cgroup.procs; exec "$@"`, 'sh', process.execPath, bin, ...flags],
    {
      env: {
        PATH: process.env.PATH,
        HOME: home,
        SVC_HOME: home,
        ...Object.fromEntries(variables.map((pair) => pair.split('=', 2))),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  for (let tries = 0; !existsSync(portFile); tries += 1) {
    if (child.exitCode !== null || child.signalCode !== null || tries > 600) throw new Error('svc serve did not start')
    await wait(100)
  }
  return { child, port: Number(readFileSync(portFile, 'utf8')) }
}

type Answer = { readonly status: number; readonly ms: number }

function ask(agent: Agent, port: number, path: string, from: string, body?: object): Promise<Answer | undefined> {
  const began = performance.now()
  const text = body && JSON.stringify(body)
  return new Promise((resolve) => {
    const sent = request(
      {
        agent,
        port,
        path,
        host: '127.0.0.1',
        method: text === undefined ? 'GET' : 'POST',
        headers: {
          accept: 'application/json',
          'x-forwarded-for': from,
          ...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': text.length }),
        },
      },
      (answer) => {
        answer.resume().on('end', () => resolve({ status: answer.statusCode ?? 0, ms: performance.now() - began }))
      },
    )
    sent.on('error', () => resolve(undefined)).end(text)
  })
}

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN

async function flood(limitMb: number): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'svc-flood-'))
  const group = cgroup(limitMb)
  let child: ChildProcess | undefined
  try {
    const server = await serve(group, home)
    child = server.child
    const { port } = server
    const idle = Number(readFileSync(`/proc/${child.pid}/statm`, 'utf8').split(' ')[1]) * 4_096
    const end = performance.now() + Number(seconds) * 1_000
    const agent = new Agent({ keepAlive: true, maxSockets: strangers })
    const statuses = new Map<string, number>()
    const died = (): boolean => child?.exitCode !== null || child.signalCode !== null
    const stranger = async (n: number): Promise<void> => {
      for (let turn = 0; performance.now() < end && !died(); turn += 1) {
        const from = `10.${turn & 255}.${(turn >> 8) & 255}.${n}`
        const body = { provider: 'credentials', UserName: `nobody-${n}-${turn}`, Password: 'wrong password of nobody' }
        const answer = await ask(agent, port, '/auth/credentials', from, body)
        const status = answer === undefined ? 'no answer' : String(answer.status)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (answer === undefined || answer.status !== 401) await wait(20)
      }
    }
    const own = new Agent({ keepAlive: true })
    const waits: number[] = []
    const health = async (): Promise<void> => {
      while (performance.now() < end && !died()) {
        const answer = await ask(own, port, '/healthcheck?ServerType=App&ExecutionMode=Basic', '10.255.255.1')
        if (answer) waits.push(answer.ms)
        await wait(50)
      }
    }
    await Promise.all([health(), ...Array.from({ length: strangers }, (_, n) => stranger(n + 1))])
    const peak = Number(readFileSync(group.peak, 'utf8')) / 1_048_576
    const fate = died() ? `killed (${child.signalCode ?? child.exitCode})` : 'alive'
    const counts = [...statuses].map(([status, count]) => `${status}: ${count}`).join(', ')
    process.stdout.write(
      `${limitMb} MB: ${fate}; idle ${(idle / 1_048_576).toFixed(0)} MB, peak of the group ${peak.toFixed(0)} MB; ` +
        `sign-ins ${counts}; health p50 ${percentile(waits, 0.5).toFixed(0)} ms, p99 ${percentile(waits, 0.99).toFixed(0)} ms, ` +
        `longest ${percentile(waits, 1).toFixed(0)} ms of ${waits.length}\n`,
    )
    agent.destroy()
    own.destroy()
  } finally {
    if (child && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    rmSync(home, { recursive: true, force: true })
    rmdirSync(group.folder)
  }
}

process.stdout.write(
  `${cpus().length} processors, load ${loadavg()[0]?.toFixed(1)}, ${variables.join(' ') || 'no variables'}\n`,
)
for (const limit of megabytes.split(',').map(Number)) await flood(limit)

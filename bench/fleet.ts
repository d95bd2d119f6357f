/**
 * `svc health --fleet` beside blackbox_exporter and check_http: many servers that answer after 50 ms.
 *
 *     npm run bench:fleet
 *
 * The programs take turns in each round, so that a machine that slows down slows all of them. svc and xargs are measured
 * from the start of their process to its end; blackbox_exporter runs already, and is asked over connections that are
 * open. Needs the packages prometheus-blackbox-exporter and monitoring-plugins-basic.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from './compare.ts'

const rounds = Math.min(Number(process.argv[2] ?? 5), 50)
const latencyMs = 50
const few = 1_000
const many = 10_000
const widths = [64, 256, 1_024] as const
const checkHttp = '/usr/lib/nagios/plugins/check_http'
const folder = mkdtempSync(join(tmpdir(), 'svc-fleet-'))
const entry = new URL('../bin/run.js', import.meta.url).pathname
const loop = new URL('fleet-loop.ts', import.meta.url).pathname
const env = { PATH: process.env.PATH ?? '', HOME: folder, SVC_HOME: folder, NO_COLOR: '1' }

async function peers(count: number): Promise<{ readonly ports: readonly number[]; readonly child: ChildProcess }> {
  const child = fork(new URL('fleet-peers.ts', import.meta.url), [String(count), String(latencyMs)])
  const [ports] = (await once(child, 'message')) as [number[]]
  return { ports, child }
}

type Ran = {
  readonly ms: number
  readonly code: number | null
  readonly output: string
  readonly rssMb: number
  readonly cpuS: number
}

/** Runs a program to its end, and reads its highest resident memory while it runs. */
async function run(program: string, args: readonly string[], input = ''): Promise<Ran> {
  const began = performance.now()
  const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
  let output = ''
  let [rssKb, ticks] = [0, 0]
  const collect = (chunk: unknown): void => {
    if (output.length < 10_000) output += String(chunk)
  }
  child.stdout.on('data', collect)
  child.stderr.on('data', collect)
  const timer = setInterval(() => {
    try {
      rssKb = Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? rssKb)
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
      ticks = Number(fields[11]) + Number(fields[12])
    } catch {
      // It has just ended.
    }
  }, 25)
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  clearInterval(timer)
  return { ms: performance.now() - began, code, output, rssMb: rssKb / 1_024, cpuS: ticks / 100 }
}

/** The same file in JSON, which is YAML as well. */
function jsonFile(ports: readonly number[]): string {
  const path = join(folder, 'fleet.json')
  const servers = ports.map((port, at) => ({ name: `s${at}`, url: `http://127.0.0.1:${port}` }))
  writeFileSync(path, JSON.stringify({ servers }), { mode: 0o600 })
  return path
}

function fleetFile(ports: readonly number[]): string {
  const path = join(folder, `fleet-${ports.length}.yaml`)
  const lines = ports.map((port, at) => `  - {name: s${at}, url: 'http://127.0.0.1:${port}'}\n`)
  writeFileSync(path, `servers:\n${lines.join('')}`, { mode: 0o600 })
  return path
}

const svc = async (width: number | undefined, ports: readonly number[], descriptors?: number): Promise<Ran> => {
  const flags = width === undefined ? [] : ['--at-once', String(width)]
  const command = [entry, 'health', '-t', 'App', '--fleet', fleetFile(ports), ...flags]
  const ran =
    descriptors === undefined
      ? await run(process.execPath, command)
      : await run('sh', ['-c', `ulimit -n ${descriptors}; exec "$0" "$@"`, process.execPath, ...command])
  if (ran.code !== 0 || !ran.output.includes(`${ports.length} ok`)) throw new Error(`svc: ${ran.code} ${ran.output}`)
  return ran
}

/** Seconds of processor time that a program of Node takes, from its start to its end. */
async function spentBy(args: readonly string[]): Promise<number> {
  const { code, output } = await run('sh', ['-c', '"$0" "$@" > /dev/null; times', process.execPath, ...args])
  const spent = [...(output.trim().split('\n').at(-1) ?? '').matchAll(/(\d+)m([\d.]+)s/g)]
  if (code !== 0 || spent.length !== 2) throw new Error(`${args[0]}: ${code} ${output}`)
  return spent.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0)
}

async function xargs(width: number, ports: readonly number[]): Promise<number> {
  const args = ['-P', String(width), '-I', '{}', checkHttp, '-I', '127.0.0.1', '-p', '{}']
  const { ms, code, output } = await run('xargs', args, ports.map((port) => `${port}\n`).join(''))
  if (code !== 0) throw new Error(`xargs: ${code} ${output.slice(0, 300)}`)
  return ms
}

/** Asks for one probe after the other on one connection, until there is none left. */
function probes(socket: Socket, take: () => number | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    const next = (): void => {
      const port = take()
      if (port === undefined) {
        resolve()
        return
      }
      const target = encodeURIComponent(`http://127.0.0.1:${port}`)
      socket.write(`GET /probe?module=fleet&target=${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
    }
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = /content-length: (\d+)/i.exec(text.slice(0, head))?.[1]
      const isChunked = /transfer-encoding: chunked/i.test(text.slice(0, head))
      const isWhole = isChunked ? text.endsWith('0\r\n\r\n') : text.length >= head + 4 + Number(length)
      if (!isWhole) return
      if (!/^probe_success 1$/m.test(text.replaceAll(/\r\n[\da-f]+\r\n/g, '')))
        return reject(new Error(text.slice(0, 500)))
      text = ''
      next()
    })
    socket.on('error', reject)
    next()
  })
}

async function blackbox(width: number, ports: readonly number[], at: number): Promise<number> {
  const sockets = Array.from({ length: width }, () => connect(at, '127.0.0.1').setNoDelay(true))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const left = [...ports]
  const began = performance.now()
  await Promise.all(sockets.map((socket) => probes(socket, () => left.pop())))
  const ms = performance.now() - began
  for (const socket of sockets) socket.destroy()
  return ms
}

/** The time from the first request to the last answer, which the verdict ends with. */
function verdictMs(output: string): number {
  const [, figure, unit] = /· ([\d.]+) (ms|s)\s*$/.exec(output) ?? []
  return Number(figure) * (unit === 's' ? 1_000 : 1)
}

/** Milliseconds that no program can beat: as many turns as there are, one after the other. */
const boundOf = (width: number): number => Math.ceil(few / width) * latencyMs

const version = (text: string): string => /(\d+\.\d+(?:\.\d+)?)/.exec(text)?.[1] ?? 'unknown'
const blackboxPort = 19_115
const config = join(folder, 'blackbox.yml')
writeFileSync(config, 'modules: {fleet: {prober: http, timeout: 10s, http: {preferred_ip_protocol: ip4}}}\n')
const exporter = spawn(
  'prometheus-blackbox-exporter',
  [`--config.file=${config}`, `--web.listen-address=127.0.0.1:${blackboxPort}`, '--log.level=error'],
  { stdio: 'ignore' },
)
const { ports, child } = await peers(few)
let large: ChildProcess | undefined
const loads: number[] = []
type Name = 'svc' | 'svc, its verdict' | 'svc, processor' | 'blackbox_exporter' | 'check_http'
const times = new Map<string, number[]>()
const add = (name: Name, width: number, ms: number): void => {
  const key = `${name} ${width}`
  times.set(key, [...(times.get(key) ?? []), ms])
}
const health = (file: string): readonly string[] => [entry, 'health', '-t', 'App', '--at-once', '64', '--fleet', file]
const costs = [
  { what: 'a loop over `node:net` that parses nothing', args: [loop, '64', ...ports.map(String)] },
  { what: '`svc health --fleet` for one server', args: health(fleetFile(ports.slice(0, 1))) },
  { what: `for ${few.toLocaleString('en')} servers in a file in JSON`, args: health(jsonFile(ports)) },
  { what: `for ${few.toLocaleString('en')} servers in a file in YAML`, args: health(fleetFile(ports)) },
].map((cost) => ({ ...cost, spent: [] as number[] }))
try {
  for (let round = 0; round < rounds; round += 1) {
    for (const width of widths) {
      loads.push(loadavg()[0] ?? 0)
      const { ms, cpuS, output } = await svc(width, ports)
      add('svc', width, ms)
      add('svc, its verdict', width, verdictMs(output))
      add('svc, processor', width, cpuS * 1_000)
      add('blackbox_exporter', width, await blackbox(width, ports, blackboxPort))
      // A fork each: at 256 and more at once, only the machine gets slower.
      if (width === 64) add('check_http', width, await xargs(width, ports))
    }
    for (const { args, spent } of costs) spent.push(await spentBy(args))
  }
  child.kill()
  const all = await peers(many)
  large = all.child
  const load = loadavg()[0] ?? 0
  const lone = await svc(undefined, all.ports, 1_024)
  const msOf = (name: Name, width: number): readonly number[] => times.get(`${name} ${width}`) ?? []
  const cell = (name: Name, width: number): string => {
    const ms = msOf(name, width)
    return ms.length === 0 ? '–' : `${(median(ms) / 1_000).toFixed(2)} (${(Math.min(...ms) / 1_000).toFixed(2)})`
  }
  const best = (name: Name): number => Math.min(...widths.flatMap((width) => msOf(name, width)))
  const ratio = (name: Name, goal: number): string => {
    const times = best('svc') / best(name)
    return `${times.toFixed(2)}, ${times <= goal ? 'met' : 'not met'}`
  }
  const rows = widths.map((width) =>
    [
      String(width),
      (boundOf(width) / 1_000).toFixed(2),
      cell('svc', width),
      cell('svc, its verdict', width),
      (Math.min(...msOf('svc', width)) / boundOf(width)).toFixed(2),
      (Math.min(...msOf('svc, its verdict', width)) / boundOf(width)).toFixed(2),
      cell('svc, processor', width),
      cell('blackbox_exporter', width),
      cell('check_http', width),
    ].join(' | '),
  )
  const blackboxVersion = (await run('prometheus-blackbox-exporter', ['--version'])).output
  const plugin = (await run(checkHttp, ['--version'])).output
  const [low, high] = [Math.min(...loads), Math.max(...loads)].map((one) => one.toFixed(1))
  const report = `# Many servers

${few.toLocaleString('en')} servers on loopback that answer after ${latencyMs} ms, checked once each: \`svc health --fleet\`, from the start of its process
to its end; blackbox_exporter ${version(blackboxVersion)}, which runs already, asked over open connections; \`xargs -P64 check_http\` ${version(plugin)}.
Seconds, the median of ${rounds} interleaved rounds (and the least), Node ${process.versions.node}, ${cpus().length} cores shared with the
servers and ${low === high ? '' : `other work: `}a load average of ${low} to ${high}. The bound is ${few} ÷ the number at once × ${latencyMs} ms, rounded up to whole turns.

| at once | bound | svc | without its start | least ÷ bound | the same without its start | processor time | blackbox_exporter | check_http |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
${rows.map((row) => `| ${row} |`).join('\n')}

${many.toLocaleString('en')} servers with \`ulimit -n 1024\` and the default of \`--at-once\`: ${(lone.ms / 1_000).toFixed(1)} s, ${Math.round(lone.rssMb)} MB of resident memory at most, exit
code ${lone.code}, every server ok, at a load average of ${load.toFixed(1)}.

The goals, by the least: at 64 at once, 1.15 times the bound, with the start: ${Math.min(...msOf('svc', 64)) / boundOf(64) <= 1.15 ? 'met' : 'not met'}. Each at its own best, half of the
time of blackbox_exporter: ${ratio('blackbox_exporter', 0.5)}; a tenth of that of \`xargs -P64 check_http\`: ${ratio('check_http', 0.1)}. A load average above the number of cores means that
svc also waited for a processor. Where the time of a processor goes, at 64 at once, the median of as many rounds:

${costs.map(({ what, spent }) => `- ${what}: ${median(spent).toFixed(2)} s`).join('\n')}
`
  process.stdout.write(report)
  const page = new URL('results/fleet.md', import.meta.url)
  // What people wrote below the figures stays.
  const [, ...notes] = readFileSync(page, 'utf8').split(/^(?=## )/m)
  writeFileSync(page, [report, ...notes].join('\n'))
} finally {
  exporter.kill()
  child.kill()
  large?.kill()
  rmSync(folder, { recursive: true, force: true })
}

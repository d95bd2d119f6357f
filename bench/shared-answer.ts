/**
 * `GET /healthcheck` answered from a shared run: this server beside the least that node:http can do.
 *
 *     node bench/shared-answer.ts [rounds] [milliseconds of a round]
 *
 * The floor is raw node:http that writes constant bytes. The second floor makes the same checks and
 * writes the same headers by hand. Each server has a process of its own and they are loaded in turn for
 * a moment each, so a machine that slows down slows all of them. The load generator polls and never
 * sleeps: waking a process costs as much as an answer, and would be charged to whoever is slower.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { cpus } from 'node:os'
import { median } from './compare.ts'

const rounds = Math.min(Number(process.argv[2] ?? 40), 500)
const roundMs = Math.min(Number(process.argv[3] ?? 400), 5_000)
const connections = 32
const peers = {
  raw: 'raw node:http, constant bytes',
  checked: 'raw node:http, same checks and headers',
  svc: 'svc serve',
  http: 'svc serve, answer shaped beforehand',
  fastify: 'fastify 5, same checks and headers',
} as const
type Peer = keyof typeof peers
const names = Object.keys(peers) as Peer[]
const request = [
  'GET /healthcheck?ExecutionMode=Standard&ServerType=Sql HTTP/1.1',
  'Host: 127.0.0.1',
  'Accept: application/json',
  'User-Agent: bench',
  '\r\n',
].join('\r\n')

type Usage = { readonly cpu: NodeJS.CpuUsage; readonly rss: number }
type Load = { readonly perSecond: number; readonly cpuMicros: number; readonly rss: number }

const usage = async (child: ChildProcess): Promise<Usage> => {
  const answered = once(child, 'message')
  child.send('usage')
  return (await answered)[0] as Usage
}

/** Asks one thing after the other on one connection until the time is up; the number of answers. */
function askUntil(socket: Socket, end: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let answers = 0
    let missing = 0
    const take = (chunk: Buffer): void => {
      if (missing === 0) {
        const head = chunk.indexOf('\r\n\r\n')
        const text = chunk.toString('latin1', 0, head)
        const length = /content-length: (\d+)/i.exec(text)?.[1]
        if (!text.startsWith('HTTP/1.1 200') || length === undefined) {
          reject(new Error(text))
          return
        }
        missing = head + 4 + Number(length)
      }
      missing -= chunk.length
      if (missing > 0) return
      answers += 1
      if (performance.now() < end) socket.write(request)
      else {
        socket.off('data', take)
        resolve(answers)
      }
    }
    socket.on('data', take).on('error', reject)
    socket.write(request)
  })
}

async function load(child: ChildProcess, port: number): Promise<Load> {
  const sockets = Array.from({ length: connections }, () => connect(port, '127.0.0.1').setNoDelay(true))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const before = await usage(child)
  const start = performance.now()
  const answers = await Promise.all(sockets.map((socket) => askUntil(socket, start + roundMs)))
  const seconds = (performance.now() - start) / 1_000
  const after = await usage(child)
  for (const socket of sockets) socket.destroy()
  const total = answers.reduce((sum, count) => sum + count, 0)
  const micros = after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system
  return { perSecond: total / seconds, cpuMicros: micros / total, rss: after.rss }
}

const loads = Object.fromEntries(names.map((name) => [name, [] as Load[]])) as Record<Peer, Load[]>
const warmUp = 4
/**
 * How V8 compiles a server differs from process to process, by up to a third: each is started anew so many times, and
 * the rounds are shared among them.
 */
const starts = 5

async function measure(some: number): Promise<void> {
  const children = {} as Record<Peer, { readonly child: ChildProcess; readonly port: number }>
  for (const name of names) {
    const child = fork(new URL('./shared-answer-peers.ts', import.meta.url).pathname, [name])
    const [{ port }] = (await once(child, 'message')) as [{ port: number }]
    children[name] = { child, port }
  }
  let polling = true
  const poll = (): void => {
    if (polling) setImmediate(poll)
  }
  poll()
  try {
    for (let round = -warmUp; round < some; round += 1) {
      for (const name of names) {
        const measured = await load(children[name].child, children[name].port)
        if (round >= 0) loads[name].push(measured)
      }
    }
  } finally {
    polling = false
    for (const { child } of Object.values(children)) child.disconnect()
  }
}
for (let start = 0; start < starts; start += 1) await measure(Math.ceil(rounds / starts))

/** The median over the rounds of one peer's figure divided by another's in the same round. */
const ratio = (of: (load: Load) => number, a: Peer, b: Peer): number =>
  median(loads[a].map((own, round) => of(own) / of(loads[b][round] ?? own)))

const rows = names.map((name) => {
  const cell = (of: (load: Load) => number, digits: number): string => median(loads[name].map(of)).toFixed(digits)
  return [
    peers[name],
    cell((own) => own.perSecond, 0),
    ratio((own) => own.perSecond, name, 'raw').toFixed(2),
    ratio((own) => own.perSecond, name, 'checked').toFixed(2),
    cell((own) => own.cpuMicros, 1),
    ratio((own) => own.cpuMicros, 'raw', name).toFixed(2),
    ratio((own) => own.cpuMicros, 'checked', name).toFixed(2),
    cell((own) => own.rss / 2 ** 20, 0),
  ]
})
const head = ['server', 'requests/s', '÷ raw', '÷ checked', 'CPU µs each', 'raw CPU ÷', 'checked CPU ÷', 'RSS MB']
const table = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
const text = `# A shared health answer over HTTP

${rounds} interleaved rounds of ${roundMs} ms in ${starts} starts of every server, ${connections} connections, Node ${process.versions.node}, ${cpus().length} cores shared with the
load generator; medians, ratios taken within a round. Goals for \`svc serve\`: requests
÷ checked at least 0.8, and more than fastify. The CPU columns say the same without the load generator; 1 is as good as the floor.

${table}
`
mkdirSync(new URL('./results/', import.meta.url), { recursive: true })
writeFileSync(new URL('./results/shared-answer.md', import.meta.url), text)
process.stdout.write(text)

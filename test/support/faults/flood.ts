import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

/** The cost of a flood of pipelined requests with unread answers for a real `svc serve`. Milliseconds, MiB. */
export type FloodAnswer = {
  /** 99 of 100 answers to `/livez` on a connection of its own took no longer, before and during the flood. */
  readonly before: number
  readonly during: number
  /** How many answers to `/livez` there were during the flood. */
  readonly answers: number
  readonly grownMib: number
}

const program = new URL('../../../bin/run.js', import.meta.url).pathname
const perConnection = 60
const measureMs = 4_000

/** Sends `bytes` of requests for `path`, each with another Host, 8 connections at a time, and reads nothing. */
export async function flood(path: string, bytes: number): Promise<FloodAnswer> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-flood-'))
  const portFile = join(folder, 'port')
  writeFileSync(join(folder, 'svc.yaml'), 'serve: {every: off}\n', { mode: 0o600 })
  const args = [
    'serve',
    '--only',
    'health',
    '--config',
    join(folder, 'svc.yaml'),
    '--port',
    '0',
    '--port-file',
    portFile,
  ]
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env['PATH'], HOME: folder },
    stdio: 'ignore',
  })
  const open: Socket[] = []
  const agent = new Agent({ keepAlive: true })
  try {
    const until = performance.now() + 30_000
    while (!existsSync(portFile) || readFileSync(portFile, 'utf8') === '') {
      if (child.exitCode !== null || performance.now() > until) throw new Error('svc serve did not start')
      await pause(20)
    }
    const port = Number(readFileSync(portFile, 'utf8'))
    // `bin/run.js` may have started another process with the Node version that it needs.
    const rss = (): number => processes(child.pid ?? 0).reduce((sum, pid) => sum + rssOf(pid), 0)
    const before = await livez(port, agent, measureMs / 4)
    const atFirst = rss()
    let peak = atFirst
    const timer = setInterval(() => {
      peak = Math.max(peak, rss())
    }, 20)
    const during = livez(port, agent, measureMs)
    let [sent, host] = [0, 0]
    while (sent < bytes) {
      for (let i = 0; i < 8; i += 1) {
        const requests = Array.from({ length: perConnection }, () => {
          host += 1
          return `GET ${path} HTTP/1.1\r\nHost: localhost:${(host % 65_535) + 1}\r\n\r\n`
        }).join('')
        const socket = connect(port, '127.0.0.1')
        socket.on('error', () => {}).pause()
        socket.write(requests)
        open.push(socket)
        sent += requests.length
      }
      // As many as an address may have.
      while (open.length > 480) open.shift()?.destroy()
      await pause(10)
    }
    const times = await during
    clearInterval(timer)
    return {
      before: quantile(before, 0.99),
      during: quantile(times, 0.99),
      answers: times.length,
      grownMib: (peak - atFirst) / 2 ** 20,
    }
  } finally {
    for (const socket of open) socket.destroy()
    agent.destroy()
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

async function livez(port: number, agent: Agent, ms: number): Promise<readonly number[]> {
  const times: number[] = []
  const until = performance.now() + ms
  while (performance.now() < until) {
    const began = performance.now()
    await new Promise<void>((resolve, reject) => {
      get({ port, host: '127.0.0.1', path: '/livez', agent, timeout: 30_000 }, (response) => {
        response.resume().on('end', resolve)
      }).on('error', reject)
    })
    times.push(performance.now() - began)
    await pause(2)
  }
  return times
}

const quantile = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN

const rssOf = (pid: number): number => Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4_096
const processes = (pid: number): readonly number[] => [
  pid,
  ...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
]

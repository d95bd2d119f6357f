import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import type { HealthAnswers } from '../../src/cli/health/health.ts'
import { watchHealth } from '../../src/cli/health/watch.ts'
import { width } from '../../src/cli/render/width.ts'
import { Fault } from '../../src/core/base/errors.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { startServeProcess } from '../support/program/serve-process.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'

const typed = new URL('../support/program/typed.py', import.meta.url).pathname

type Action =
  | { readonly type: string }
  | { readonly signal: string }
  | { readonly resize: readonly [number, number] }
  | { readonly close: true }
/** The text that has to be shown first, as a regular expression, and the action then. */
type Step = readonly [string, Action]

/** The output of a terminal, in a piece for each step and one for the rest, and how its program ended. */
type Session = { readonly pieces: readonly string[]; readonly left: number; readonly code: number }

/** A home with two monitors of a port of this machine on which nothing listens. */
function watchedHome(port = 1) {
  const home = temporaryHome()
  const monitor = (name: string): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}}`
  const yaml = `types:\n  App: {host: false, monitors: [${monitor('shop')}, ${monitor('queue')}]}\n`
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  return {
    home,
    /** An interactive shell on a terminal, with a command `svc`. */
    shell: (steps: readonly Step[], [columns, rows] = [80, 24]): Promise<Session> => {
      const svc = `svc() { ${process.execPath} ${home.program} "$@"; }`
      const env = { ...home.env, TERM: 'xterm', NO_COLOR: '', BASH_SILENCE_DEPRECATION_WARNING: '1' }
      const args = [typed, String(columns), String(rows), 'bash', '--norc', '--noprofile', '-i']
      return run('python3', args, env, [['[#$] $', { type: `PS1='rea''dy> '; ${svc}\r` }], ...steps])
    },
  }
}

async function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv, steps: readonly Step[]) {
  const child = spawn(program, args, { env: { PATH: process.env.PATH, ...env }, stdio: ['pipe', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
  })
  child.stdin.end(JSON.stringify(steps))
  await once(child, 'close')
  return JSON.parse(output) as Session
}

// Outside of tests: those that run at once would remove each other's folders.
const { shell } = watchedHome()
const [recovering, alternating] = [watchedHome(), watchedHome()]

const watch = 'svc health --watch --interval 2s -m Basic'
/** The command, and after it its exit code and the modes of the terminal. */
const then = (command: string): Step => ['ready> ', { type: `${command}; echo code=$?; stty -a; echo over\r` }]
const over = (key = 'exit\r'): Step => ['\nover', { type: key }]
const isDrawn = 'UNHEALTHY.*next in'

/** Whether a terminal is as a program finds it: lines, echo, keys that are signals, cursor, and its first page. */
function expectRestored(text: string): void {
  const on = text.lastIndexOf('\u001b[?1049h')
  for (const end of ['\u001b[?25h', '\u001b[?7h', '\u001b[?1049l']) expect(text.lastIndexOf(end)).toBeGreaterThan(on)
  const modes = text.slice(text.lastIndexOf('speed '))
  expect(modes).toMatch(/ icanon/)
  for (const mode of ['isig', 'icanon', 'echo', 'ixon', 'opost']) expect(modes).not.toContain(` -${mode} `)
}

describe('K71 svc health --watch on a terminal', { timeout: 240_000 }, () => {
  test.concurrent.each<[string, string, readonly Step[], number]>([
    ['q', watch, [[isDrawn, { type: 'q' }]], 3],
    ['ctrl-C', watch, [[isDrawn, { type: '\u0003' }]], 130],
    ['ctrl-C in a report', watch, [[isDrawn, { type: '\r\r\u0003' }]], 130],
    ['ctrl-\\', watch, [[isDrawn, { type: '\u001c' }]], 131],
    ['SIGTERM', watch, [[isDrawn, { signal: 'SIGTERM' }]], 143],
    ['SIGHUP', watch, [[isDrawn, { signal: 'SIGHUP' }]], 129],
    ['its goal', `${watch} --until unhealthy`, [], 0],
    ['the end of its time', `${watch} --until healthy --within 3s`, [], 7],
    [
      'q at a server that is not reached',
      `SVC_TOKEN=x ${watch} --server http://127.0.0.1:1`,
      [['NOT REACHED.*next in', { type: 'q' }]],
      6,
    ],
  ])('ends by %s, and leaves the terminal as it was', async (_, command, steps, code) => {
    const { pieces, left } = await shell([then(command), ...steps, over()])
    const text = pieces.join('')
    expect([left, /\ncode=(\d+)/.exec(text)?.[1]], text).toEqual([0, String(code)])
    expect(text).toContain('\u001b[?1049h')
    expectRestored(text.slice(0, text.lastIndexOf('over')))
  })

  test.concurrent('ctrl-Z gives the terminal back to the shell, and fg shows the screen again', async () => {
    const { pieces, left } = await shell([
      ['ready> ', { type: `${watch}\r` }],
      [isDrawn, { type: '\u001a' }],
      ['Stopped.*ready> ', { type: 'stty -a; echo stopped\r' }],
      ['\nstopped.*ready> ', { type: 'fg\r' }],
      [`1049h.*${isDrawn}`, { type: '\u001a' }],
      ['Stopped.*ready> ', { type: 'fg; stty -a; echo over\r' }],
      [`1049h.*${isDrawn}`, { type: 'q' }],
      over(),
    ])
    expect(left).toBe(0)
    expectRestored(pieces.slice(0, 5).join(''))
    expectRestored(pieces.join(''))
  })

  test.concurrent('draws anew when its window changes, down to 20 columns and 5 lines', async () => {
    const { pieces, left } = await shell([
      then(watch),
      [isDrawn, { resize: [20, 5] }],
      // The clear, and a frame that has seen the next second.
      ['\u001b\\[2J.*UNHEALTHY.*UNHEALTHY', { type: 'q' }],
      over(),
    ])
    expect(left).toBe(0)
    const [, small = ''] = (pieces[3] ?? '').split('\u001b[2J')
    const lines = (small.split('\u001b[?7h')[0] ?? '').split(/\u001b\[\d+;1H\u001b\[2K/)
    expect(lines.length).toBeGreaterThan(3)
    expect(lines.filter((line) => width(line.replaceAll(/\u001b\[[\d;]*m/g, '')) > 20)).toEqual([])
  })

  test.concurrent('ends when its terminal is taken away', async () => {
    const { left } = await shell([
      ['ready> ', { type: `${watch}\r` }],
      [isDrawn, { close: true }],
    ])
    expect(left).toBe(0)
  })

  test.concurrent('--until healthy ends with the recovery', async () => {
    let isWell = false
    await using peer = await httpPeer((_, response) => response.writeHead(isWell ? 200 : 500).end('page'))
    const { home, shell: shellThere } = recovering
    const yaml = `types:\n  App: {host: false, monitors: [{kind: http, name: shop, url: "${peer.origin}/"}]}\n`
    writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
    const session = shellThere([
      then('svc health --watch --interval 2s --until healthy --within 2m'),
      [isDrawn, { type: 'j' }],
      over(),
    ])
    setTimeout(() => (isWell = true), 5_000)
    const { pieces, left } = await session
    const text = pieces.join('')
    expect([left, /\ncode=(\d+)/.exec(text)?.[1]]).toEqual([0, '0'])
    expectRestored(text.slice(0, text.lastIndexOf('over')))
  })
})

describe('K71 svc health --watch in a pipe', { timeout: 120_000 }, () => {
  test.concurrent('ends quietly when nobody reads any more', async () => {
    // Each round has a change.
    let isWell = false
    await using peer = await httpPeer((_, response) => {
      isWell = !isWell
      response.writeHead(isWell ? 200 : 500).end('page')
    })
    const { home } = alternating
    const yaml = `types:\n  App: {host: false, monitors: [{kind: http, name: shop, url: "${peer.origin}/"}]}\n`
    writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
    const svc = `${process.execPath} ${home.program} health --watch --interval 2s`
    const line = `{ ${svc}; echo "code $?" >&2; } | head -1`
    const child = spawn('bash', ['-c', line], { env: home.env, stdio: ['ignore', 'pipe', 'pipe'] })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk) => (stdout += chunk))
    child.stderr.on('data', (chunk) => (stderr += chunk))
    await once(child, 'close')
    expect(stdout).toMatch(/^\S+ \S+ \S+ [✓✗] .*HEALTHY.*\n$|^\S+ \S+ \S+ ✗ App http shop failed.*\n$/)
    expect(stderr).toMatch(/^code [03]\n$/)
  })
})

test('K71 svc health --watch at svc serve reads what its schedule knows, and causes no run', {
  timeout: 240_000,
}, async () => {
  const requests = { count: 0 }
  await using peer = await httpPeer((_, response) => {
    requests.count += 1
    response.writeHead(200).end('well')
  })
  await using server = await startServeProcess(
    `types:\n  App: {host: false, monitors: [{kind: http, name: shop, url: "${peer.origin}/"}]}\nserve: {every: 10s}\n`,
  )
  const { home } = alternating
  const health = [home.program, 'health', '--server', server.url, '-t', 'App', '--watch', '--interval', '2s']
  const metrics = async (): Promise<string> => await (await fetch(`${server.url}/metrics`)).text()
  await expect.poll(metrics, { timeout: 40_000, interval: 500 }).toContain('trigger="schedule"} 1')
  const child = spawn(process.execPath, health, { env: home.env, stdio: ['ignore', 'pipe', 'ignore'] })
  let lines = ''
  child.stdout.on('data', (chunk) => (lines += chunk))
  // Some rounds.
  await new Promise((resolve) => setTimeout(resolve, 12_000))
  child.kill('SIGINT')
  const [code] = await once(child, 'close')
  expect(lines).toMatch(/^\S+ \S+ \S+ ✓ HEALTHY: 1 monitor\n$/)
  expect(code).toBe(130)
  expect(await metrics()).not.toContain('trigger="caller"')
})

test('K71 a live view keeps no more after 10,000 rounds than after 1,000, whatever comes, goes and changes (simulated rounds)', {
  timeout: 300_000,
}, async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const heaps: number[] = []
  let round = 0
  const ask = async (): Promise<HealthAnswers> => {
    round += 1
    if (round % 1_000 === 0) {
      collect()
      await turn()
      collect()
      heaps.push(process.memoryUsage().heapUsed)
    }
    const monitors = Array.from({ length: 20 }, (_, at) => ({
      // Half of them come and go.
      MonitorName: at < 10 ? `monitor ${at}` : `monitor ${at} of ${Math.floor(round / 7)}`,
      Status: (round + at) % 3 === 0 ? ('Failure' as const) : ('Success' as const),
      StatusMessage: `answer ${round}`,
    }))
    const answer = { Status: 'Failure', StatusMessage: `round ${round}`, MonitorSummaries: monitors } as const
    const lost = {
      type: 'Sql',
      exitCode: 6,
      ageSeconds: 0,
      fault: new Fault('Unreachable', `no answer ${round}`),
    } as const
    const of = (type: 'App' | 'Sql') => ({ type, exitCode: 3, ageSeconds: 0, run: undefined, response: answer })
    const outcomes = [of('App'), round % 5 === 0 ? lost : of('Sql')]
    if (round > 10_000) stop.abort(new Fault('Interrupted', 'enough'))
    stop.signal.throwIfAborted()
    return { outcomes, notConfigured: [], signInPaused: false }
  }
  let elapsed = 0
  const clock = {
    elapsed: () => elapsed,
    pause: async (ms: number) => {
      elapsed += ms
      // What has been collected is forgotten between two turns of the event loop.
      await turn()
    },
  }
  const stop = new AbortController()
  const { io } = capturedIo({ columns: 80, clock })
  // What was written is on the terminal, and nowhere else.
  Object.assign(io.stdout, { write: () => true })
  const watching = watchHealth({
    ...{ ask, io, signal: stop.signal, target: 'here', mode: 'Standard', atServer: true, output: 'table' },
    plan: { everyMs: 10_000, until: undefined, withinMs: undefined, overExit: 7, shows: 'screen' },
    ...{ flags: { failed: false, quiet: false }, display: { live: true, update: () => {} } },
    ...{ outstanding: undefined, say: () => {} },
  })
  await expect(watching).rejects.toThrow('enough')
  expect(heaps).toHaveLength(10)
  const [first = 0] = heaps
  expect(Math.max(...heaps.map((bytes) => bytes - first))).toBeLessThan(2 ** 20)
})

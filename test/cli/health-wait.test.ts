import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { HealthOutcome } from '../../src/cli/health/health.ts'
import { watchHealth, watchPlan } from '../../src/cli/health/watch.ts'
import { Fault } from '../../src/core/base/errors.ts'
import { http, peer, replies } from '../support/faults/faults.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'

/** A simulated clock, whose time passes in pauses, and where a test adds to it. `inPause` is called in each pause. */
function simulatedClock(inPause = (): void => {}) {
  const clock = {
    ms: 0,
    now: () => new Date(),
    elapsed: () => clock.ms,
    pause: async (ms: number) => {
      clock.ms += ms
      inPause()
    },
  }
  return clock
}

const healthy = http(
  200,
  JSON.stringify({
    Status: 'Success',
    StatusMessage: 'Sql is healthy',
    MonitorSummaries: [{ MonitorName: 'Sql', Status: 'Success' }],
  }),
  { 'Content-Type': 'application/json' },
)

test.each([
  [['--wait', '5s'], true],
  [['--wait', '5s', '--cached'], true],
  [[], true],
  [['--cached'], false],
])('svc health %j requests a run that begins after the command: %s', async (flags, fresh) => {
  const home = temporaryHome()
  await using server = await peer(replies(healthy))
  const ran = await home.run(['health', '-t', 'Sql', '--server', `http://127.0.0.1:${server.port}`, ...flags])
  expect(ran.code).toBe(0)
  expect(/^Cache-Control: no-cache\r$/im.test(server.input())).toBe(fresh)
})

test.each([
  ['0.05s', 50, [true, true]],
  ['2.5s', 2_500, [true, false, false, true]],
])('H11 the attempts of --wait %s repeat refused sign-ins first and last only', async (_, ms, expected) => {
  const fault = new Fault('ServerError', 'unhealthy')
  const outcomes: readonly HealthOutcome[] = [{ type: 'App', exitCode: 3, ageSeconds: 0, fault }]
  const repeats: boolean[] = []
  const ask = async ({ repeatsRefused }: { readonly repeatsRefused: boolean }) => {
    repeats.push(repeatsRefused)
    return { outcomes, notConfigured: [], signInPaused: !repeatsRefused }
  }
  const { io } = capturedIo({ clock: simulatedClock() })
  const plan = watchPlan({ watch: false, quiet: false, wait: ms }, 'table', io)
  if (!plan) throw new Error('--wait has no plan')
  const { gaveUp } = await watchHealth({
    ...{ plan, ask, io, signal: new AbortController().signal, target: '', mode: 'Standard', atServer: false },
    ...{ flags: { failed: false, quiet: false }, output: 'table', outstanding: undefined },
    display: { live: false, update: () => {} },
    say: () => {},
  })
  expect(gaveUp).toContain(`Gave up after ${expected.length} attempts`)
  expect(repeats).toEqual(expected)
})

/** Waits for 50 ms at a server of which one attempt hangs until it is cut off. */
function waitForHanging(flag: 'until' | 'wait', hangsAt: number) {
  const fault = new Fault('ServerError', 'unhealthy')
  const outcomes: readonly HealthOutcome[] = [
    { type: 'App', exitCode: 3, ageSeconds: 0, fault },
    { type: 'Sql', exitCode: 3, ageSeconds: 0, fault },
  ]
  let attempts = 0
  const ask = async ({ signal }: { readonly signal: AbortSignal }) => {
    attempts += 1
    if (attempts === hangsAt) await once(signal, 'abort')
    signal.throwIfAborted()
    return { outcomes, notConfigured: [], signInPaused: false }
  }
  const { io } = capturedIo({ clock: simulatedClock() })
  const flags = flag === 'wait' ? { wait: 50 } : { until: 'healthy' as const, within: 50 }
  const plan = watchPlan({ watch: false, quiet: false, ...flags }, 'table', io)
  if (!plan) throw new Error('there is no plan')
  const end = watchHealth({
    ...{ plan, ask, io, signal: new AbortController().signal, target: '', mode: 'Standard', atServer: false },
    ...{ flags: { failed: false, quiet: false }, output: 'table', outstanding: undefined },
    display: { live: false, update: () => {} },
    say: () => {},
  }).catch((error: unknown) => error)
  return { end, outcomes }
}

test.concurrent.each([
  ['until', { exit: 7 }],
  ['wait', {}],
] as const)('K71 the time of --%s ends its second attempt, and what is known is the answer', async (flag, exit) => {
  const { end, outcomes } = waitForHanging(flag, 2)
  const gaveUp = 'Gave up after 1 attempt and 1 that was cut off: unhealthy'
  await expect(end).resolves.toMatchObject({ ...exit, gaveUp, answers: { outcomes } })
})

test('K71 the time of --until ends its first attempt after 5 s at the earliest', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const ends = vi.fn()
  void waitForHanging('until', 1).end.then(ends)
  await vi.advanceTimersByTimeAsync(4_900)
  expect(ends).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(200)
  expect(ends.mock.calls).toMatchObject([[{ message: 'Gave up: the first attempt did not end in time', exitCode: 7 }]])
})

/** A server whose only account has the password that `valid` returns, and the times of its sign-ins. */
async function accountServer(valid: () => string, clock = simulatedClock()) {
  const signIns: number[] = []
  const server = await httpPeer((request, response) => {
    const [, packed = ''] = (request.headers.authorization ?? '').split(' ')
    if (packed !== '') signIns.push(clock.ms)
    const accepted = Buffer.from(packed, 'base64').toString() === `svc:${valid()}`
    response.writeHead(accepted ? 200 : 401, { 'Content-Type': 'text/plain' }).end('page')
  })
  return { server, signIns }
}

/** Two types whose monitors share one account. */
function writeConfig(home: Home, origin: string): void {
  const secret = join(home.folder, 'secret')
  writeFileSync(secret, 'old', { mode: 0o600 })
  const monitor = `{kind: http, name: job queue, url: "${origin}/", username: svc, password: {file: ${secret}}}`
  writeFileSync(join(home.folder, 'svc.yaml'), `types:\n  App: [${monitor}]\n  Batch: [${monitor}]\n`, { mode: 0o600 })
}

const waiting = ['health', '-m', 'Standard', '--only', 'http job queue', '-o', 'ndjson', '--wait'] as const

test('H11 svc health --wait repeats a refused sign-in in its first and its last attempt, and not between', async () => {
  const home = temporaryHome()
  const clock = simulatedClock()
  const { server, signIns } = await accountServer(() => 'new', clock)
  onTestFinished(() => server[Symbol.asyncDispose]())

  writeConfig(home, server.origin)
  await home.run(['health', '-m', 'Standard'])
  expect(signIns.length).toBe(1)
  const { code, stderr } = await home.run([...waiting, '5s'], { clock })
  expect(code).toBe(3)
  expect(stderr).toContain('Gave up after 6 attempts in 5 s')
  expect(signIns).toEqual([0, 0, 5_000])
})

test('H11 svc health --wait ends healthy when the password is corrected at the server while the sign-in pauses', async () => {
  const home = temporaryHome()
  let password = 'new'
  const { server, signIns } = await accountServer(() => password)
  onTestFinished(() => server[Symbol.asyncDispose]())

  writeConfig(home, server.origin)
  const clock = simulatedClock(() => {
    password = 'old'
  })
  const { code } = await home.run([...waiting, '5s'], { clock })
  // One is refused. The equal monitors of both types then share one sign-in (H8).
  expect([code, signIns.length]).toEqual([0, 2])
})

test('H11 svc health --wait signs in once more when its time ends within an attempt that did not sign in', async () => {
  const home = temporaryHome()
  const { server, signIns } = await accountServer(() => 'new')
  const clock = simulatedClock()
  // Every attempt takes 2 s, so that the time ends in the second.
  const slow = await httpPeer((_, response) => {
    clock.ms += 2_000
    response.writeHead(500).end()
  })
  onTestFinished(async () => {
    await server[Symbol.asyncDispose]()
    await slow[Symbol.asyncDispose]()
  })

  writeConfig(home, server.origin)
  const more = `  Sql: [{kind: http, name: slow, url: "${slow.origin}/"}]\n`
  writeFileSync(join(home.folder, 'svc.yaml'), more, { flag: 'a' })
  const { code, stderr } = await home.run(['health', '-m', 'Standard', '--wait', '4s', '-o', 'ndjson'], { clock })
  expect([code, signIns.length]).toEqual([3, 2])
  expect(stderr).toContain('Gave up after 3 attempts')
})

test('H11 the message of a sign-in that pauses offers a command that tries it now and ends the pause', async () => {
  const home = temporaryHome()
  let password = 'new'
  const { server, signIns } = await accountServer(() => password)
  onTestFinished(() => server[Symbol.asyncDispose]())

  writeConfig(home, server.origin)
  const file = join(home.folder, 'svc.yaml')
  const health = () => home.run(['health', '-m', 'Standard', '-o', 'table', '--config', file])
  await health()
  const paused = (await health()).stdout.replace(/\s+/g, ' ')
  expect(paused).toMatch(
    /refused: status 401 \(.+? ago\); next attempt in (?:4\.\d|5) min, so that the account is not locked/,
  )
  expect(paused).toContain(`try now: svc monitors test --config ${file} 'http job queue' --type App`)
  expect(signIns.length).toBe(1)
  password = 'old'
  const run = await home.run(['monitors', 'test', '--config', file, 'http job queue', '--type', 'App'])
  expect([run.code, signIns.length > 1]).toEqual([0, true])
  expect((await health()).code).toBe(0)
})

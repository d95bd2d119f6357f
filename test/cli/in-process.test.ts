import { userInfo } from 'node:os'
import { getActiveResourcesInfo } from 'node:process'
import { PassThrough } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { homeOf } from '../../src/cli/io/process.ts'
import { main } from '../../src/main.ts'
import { capturedIo } from '../support/program/captured-io.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { commandLines } from './command-lines.ts'

const home = temporaryHome()
const other = temporaryHome()

/** The traces that a command line could leave in its process. */
const traces = () => ({
  listeners: Object.fromEntries(process.eventNames().map((name) => [String(name), process.listenerCount(name)])),
  streams: [process.stdin, process.stdout, process.stderr].map((stream) =>
    stream.eventNames().map((name) => [String(name), stream.listenerCount(name)]),
  ),
  env: { ...process.env },
  exitCode: process.exitCode,
  folder: process.cwd(),
  stderr: Object.getOwnPropertyDescriptor(process, 'stderr'),
})

/** The timers that stay: the least of several counts, because those of the test's own runner come and go. */
async function lastingTimers(): Promise<number> {
  const counts: number[] = []
  for (let count = 0; count < 20; count += 1) {
    await setTimeout(20)
    counts.push(getActiveResourcesInfo().filter((name) => name === 'Timeout').length)
  }
  return Math.min(...counts)
}

describe('svc runs in the process of its caller', () => {
  beforeAll(async () => {
    // What is loaded on first use stays.
    for (const args of commandLines) await home.run(args)
  })

  test('and leaves no listener, timer, variable or exit code behind', async () => {
    const [before, timers] = [traces(), await lastingTimers()]
    for (const args of commandLines) await home.run(args)
    expect(traces()).toEqual(before)
    expect(await lastingTimers()).toBe(timers)
  })

  test('and takes back every listener for signals that it had', async () => {
    for (const args of commandLines) {
      const captured = capturedIo({ env: home.env })
      await main(captured.io, args)
      expect([args, captured.listening()]).toEqual([args, 0])
    }
  })

  test('each time as if it were the first: no flag and no failure is remembered', async () => {
    const mistake = ['health', '--type', 'Sqll']
    const plain = await home.run(mistake)
    expect(plain.code).toBe(2)
    expect((await home.run([...mistake, '--color', 'always'])).stderr).toContain('\u001b[')
    expect(await home.run(mistake)).toEqual(plain)
    expect(await home.run(['version'])).toMatchObject({ code: 0, stderr: '' })
  })

  test('several at the same time, each with its own folder, streams and exit code', async () => {
    const [added, listed, failed] = await Promise.all([
      home.run(['profile', 'add', 'prod', '--server', 'http://127.0.0.1:9']),
      other.run(['profile', 'list', '--json']),
      other.run(['profile', 'show', 'prod']),
    ])
    expect(added).toMatchObject({ code: 0, stderr: '' })
    expect(listed).toEqual({ code: 0, stdout: '{"target":"this machine","profiles":[]}\n', stderr: '' })
    expect(failed).toMatchObject({ code: 2, stdout: '' })
    expect(JSON.parse((await home.run(['profile', 'list', '--json'])).stdout)).toMatchObject({
      profiles: [{ name: 'prod' }],
    })
  })

  test('with the terminal, the clock and the signals of its Io', async () => {
    expect((await home.run(['users', 'list'], { columns: 80 })).stdout).toMatch(/^✓ 1 user\n/)
    const now = new Date('2030-01-01T00:00:00Z')
    await home.run(['keys', 'create', 'ci', '--user', 'ann', '--expires', '1d'])
    const { io, stdout } = capturedIo({ env: home.env, clock: { now: () => now } })
    await main(io, ['keys', 'list', '--json'])
    expect(JSON.parse(stdout())).toMatchObject({ keys: [{ name: 'ci', state: 'expired' }] })

    const waiting = capturedIo({ env: home.env, stdin: new PassThrough() })
    const ended = main(waiting.io, ['api', 'POST', '/x', '--data', '@-', '--server', 'http://127.0.0.1:9'])
    while (waiting.listening() === 0) await setTimeout(5)
    waiting.signal('SIGTERM')
    await ended
    expect([waiting.io.exitCode, waiting.stderr()]).toEqual([143, expect.stringContaining('Ended by SIGTERM')])
  })
})

test.each(['', 'relative', undefined])(
  'a home variable of %j is not a folder of its own: the home of the account is',
  (home) => {
    expect(homeOf({ HOME: home, USERPROFILE: home })).toBe(userInfo().homedir)
  },
)

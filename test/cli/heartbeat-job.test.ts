import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { OutputTail, redact } from '../../src/cli/heartbeats/heartbeat-run.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { until } from '../support/suite/until.ts'

let home: Home
beforeEach(async () => {
  home = temporaryHome()
})

const makeStore = async (): Promise<void> => {
  expect((await home.run(['users', 'add', 'root', '--no-password'])).code).toBe(0)
}

type Listed = Readonly<Record<string, unknown>>
async function listed(): Promise<Listed> {
  const { stdout } = await home.run(['heartbeats', 'list', '--json'])
  return (JSON.parse(stdout) as { readonly heartbeats: readonly Listed[] }).heartbeats[0] ?? {}
}

const config = (text = ''): readonly string[] => {
  const path = join(home.folder, 'jobs.yaml')
  writeFileSync(
    path,
    `types:\n  Batch:\n    host: false\n    monitors:\n      - {kind: heartbeat, name: jobs, agents: [nightly]${text}}\n`,
    { mode: 0o600 },
  )
  return ['--config', path]
}

describe('svc heartbeat NAME -- COMMAND', () => {
  test('reports the end of a command with its exit code, duration and output, and passes everything through', async () => {
    await makeStore()
    const script = 'echo out; echo err >&2; exit 3'
    const ran = await home.run(['heartbeat', 'nightly', '--', 'sh', '-c', script])
    expect(ran).toEqual({ code: 3, stdout: 'out\n', stderr: 'err\n' })
    expect(await listed()).toMatchObject({
      name: 'nightly',
      status: 'Fail',
      message: expect.stringMatching(/^exit code 3 after /),
      exitCode: 3,
      durationMs: expect.any(Number),
      startedAt: expect.stringMatching(/^20/),
      output: expect.stringMatching(/^(out\nerr|err\nout)$/),
    })
    const health = await home.run(['health', '-t', 'Batch', ...config()])
    expect([health.code, health.stdout]).toEqual([
      3,
      expect.stringContaining('nightly reports Fail: "exit code 3 after'),
    ])
    expect(health.stdout).toContain('nightly printed: out')

    const second = await home.run(['heartbeat', 'nightly', '--', 'true'])
    expect(second).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await listed()).toMatchObject({ status: 'Ok', exitCode: 0 })
    expect((await home.run(['health', '-t', 'Batch', ...config()])).code).toBe(0)
  })

  test('a run that has not ended beyond its time is a failure, and before that the result of the last run holds', async () => {
    await makeStore()
    expect((await home.run(['heartbeat', 'nightly', '--', 'false'])).code).toBe(1)
    const release = join(home.folder, 'release')
    const script = join(home.folder, 'job.sh')
    writeFileSync(script, `#!/bin/sh\nwhile ! test -e ${release}; do sleep 0.1; done\n`)
    chmodSync(script, 0o700)
    const child = spawn(process.execPath, [home.program, 'heartbeat', 'nightly', '--max-runtime', '1s', '--', script], {
      env: home.env,
      stdio: 'ignore',
    })
    const exited = new Promise((resolve) => child.once('exit', resolve))
    try {
      await until(async () => (await listed())['exitCode'] === undefined)
      expect(await listed()).toMatchObject({ status: 'Fail', message: expect.stringContaining('exit code 1') })
      await until(async () => (await home.run(['health', '-t', 'Batch', ...config()])).stdout.includes('fail 1 s'))
      const health = await home.run(['health', '-t', 'Batch', ...config()])
      expect([health.code, health.stdout]).toEqual([3, expect.stringContaining('nightly has not ended, running for')])
      // The setting takes precedence over what the job says.
      const allowed = await home.run(['health', '-t', 'Batch', '-v', ...config(', runtime: 10h')])
      expect(allowed.stdout).toMatch(/runtime +✓ ok +nightly has not ended/)
    } finally {
      writeFileSync(release, '')
    }
    expect(await exited).toBe(0)
    expect(await listed()).toMatchObject({ status: 'Ok', exitCode: 0 })
    expect((await home.run(['health', '-t', 'Batch', ...config()])).code).toBe(0)
  })

  test('the exit code of the command wins when no report can be delivered, and a warning says why', async () => {
    const without = await home.run(['heartbeat', 'nightly', '--', 'sh', '-c', 'echo done; exit 5'])
    expect([without.code, without.stdout]).toEqual([5, 'done\n'])
    expect(without.stderr).toContain('Warning: the end of nightly could not be reported: No store exists at')
    const unreachable = ['--server', 'http://127.0.0.1:1', '--timeout', '2s']
    const ran = await home.run(['heartbeat', 'nightly', ...unreachable, '--', 'true'])
    expect([ran.code, ran.stdout]).toEqual([0, ''])
    expect(ran.stderr).toContain('Warning: the end of nightly could not be reported:')
  })

  test.skipIf(process.platform === 'win32')(
    'signals reach the command, and its own exit code is the answer',
    async () => {
      await makeStore()
      const ready = join(home.folder, 'ready')
      const script = `trap 'echo stopping; exit 7' TERM; touch ${ready}; while :; do sleep 0.1; done`
      const child = spawn(process.execPath, [home.program, 'heartbeat', 'nightly', '--', 'sh', '-c', script], {
        env: home.env,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let stdout = ''
      child.stdout.on('data', (part) => {
        stdout += String(part)
      })
      const exited = new Promise((resolve) => child.once('close', resolve))
      await until(async () => existsSync(ready))
      child.kill('SIGTERM')
      expect(await exited).toBe(7)
      expect(stdout).toBe('stopping\n')
      expect(await listed()).toMatchObject({ status: 'Fail', exitCode: 7 })

      const killed = await home.run(['heartbeat', 'nightly', '--', 'sh', '-c', 'kill -9 $$'])
      expect(killed.code).toBe(137)
      expect(await listed()).toMatchObject({ message: expect.stringContaining('ended by SIGKILL'), exitCode: 137 })
    },
  )

  test('a command that cannot be run is a failed run with the exit code of a shell', async () => {
    await makeStore()
    const ran = await home.run(['heartbeat', 'nightly', '--', '/nowhere/job'])
    expect([ran.code, ran.stderr]).toEqual([
      127,
      'Error: /nowhere/job cannot be run: the program, or the interpreter in its first line (#!), does not exist\n',
    ])
    expect(await listed()).toMatchObject({ status: 'Fail', exitCode: 127 })
  })

  test('secrets in the output are not stored as far as svc recognizes them, and --no-output stores nothing', async () => {
    await makeStore()
    const env = { DB_PASSWORD: 'violet-harbour-42' }
    const script = 'echo "connecting with $DB_PASSWORD"; echo "token=abcdef123456"; printf "\\033[31mred\\033[0m\\n"'
    const ran = await home.run(['heartbeat', 'nightly', '--', 'sh', '-c', script], { env })
    expect(ran.stdout).toContain('connecting with violet-harbour-42')
    expect((await listed())['output']).toBe('connecting with [redacted]\ntoken=[redacted]\nred')
    for (const file of home.files().filter((name) => name.includes('svc.db'))) {
      expect(readFileSync(join(home.folder, file), 'latin1')).not.toContain('violet-harbour-42')
    }
    await home.run(['heartbeat', 'nightly', '--no-output', '--', 'echo', 'hello'])
    expect(await listed()).not.toHaveProperty('output')
  })

  test('wrong flags are refused before the command runs', async () => {
    const mark = join(home.folder, 'ran')
    for (const args of [
      ['--status', 'ok', '--', 'touch', mark],
      ['--message', 'x', '--', 'touch', mark],
      ['--bogus', '--', 'touch', mark],
      ['--max-runtime', '1h'],
      ['--'],
    ]) {
      expect((await home.run(['heartbeat', 'nightly', ...args])).code).toBe(2)
    }
    expect(existsSync(mark)).toBe(false)
  })
})

describe('the reported end of an output', () => {
  const tailOf = (text: string, env: Record<string, string> = {}): string => {
    const tail = new OutputTail()
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += 1_000) tail.add(bytes.subarray(at, at + 1_000))
    return tail.report(env)
  }

  test('has at most 50 lines and 4,000 characters, the last ones', () => {
    const lines = tailOf(Array.from({ length: 20_000 }, (_, at) => `line ${at}`).join('\n')).split('\n')
    expect([lines.length, lines.at(-1)]).toEqual([50, 'line 19999'])
    const long = tailOf('x'.repeat(3_000_000))
    expect(long.length).toBeLessThanOrEqual(4_000)
    expect(long.length).toBeGreaterThan(0)
  })

  test.each([
    ['Authorization: Bearer abcdefghijkl', 'Authorization: Bearer [redacted]'],
    ['{"password": "hunter2", "user": "bob"}', '{"password": "[redacted]", "user": "bob"}'],
    ['svc_key_abcdefghijklmnopqrstuvwxyz', '[redacted]'],
    ['postgres://bob:hunter2@db/x', 'postgres://***@db/x'],
    ['nothing secret here', 'nothing secret here'],
  ])('%s is reported as %s', (text, expected) => {
    expect(tailOf(text)).toBe(expected)
  })

  test('the value of a variable is redacted when its name says that it is a secret', () => {
    const env = { API_TOKEN: 'abcdefgh', PASS: 'abc', HOME: '/home/operator' }
    expect(redact('abcdefgh abc /home/operator', env)).toBe('[redacted] abc /home/operator')
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onTerminal } from '../../tools/pages/terminal.ts'
import { type HealthServer, healthServer } from '../support/health-answers.ts'
import { peerSuite } from '../support/peer.ts'
import { promtool, promtoolMissing } from '../support/prometheus.ts'
import { prtgSchema } from '../support/prtg.ts'
import { type Home, type Ran, svcHome } from '../support/svc.ts'
import { xmllint, xmllintMissing } from '../support/xmllint.ts'

let home: Home
let server: HealthServer
beforeAll(async () => {
  server = await healthServer()
  home = svcHome()
  const yaml =
    'types:\n  Batch:\n    host: false\n    monitors:\n      - {kind: tcp, name: worker, host: 127.0.0.1, port: 1}\n'
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  const wrong =
    'types:\n  Batch:\n    host: false\n    monitors:\n      - {kind: tcp, name: worker, hst: 127.0.0.1, port: 1}\n'
  writeFileSync(join(home.folder, 'wrong.yaml'), wrong, { mode: 0o600 })
})
afterAll(() => {
  server.close()
  home.remove()
})

describe('the formats of plug-ins', () => {
  test.each([
    ['an unknown flag', ['--nonsense'], /unknown flag --nonsense/],
    ['an unknown type', ['-t', 'Sqll'], /unknown --type "Sqll"/],
    ['a type without configuration', ['-t', 'Ftp'], /does not configure Ftp/],
    ['a missing svc.yaml', ['--config', '/nowhere/svc.yaml'], /svc\.yaml/],
    ['an unknown profile', ['--profile', 'nobody', '-t', 'App'], /nobody/],
  ])('nagios gets UNKNOWN and exit code 3 for %s, prtg an error', async (_, args, message) => {
    const nagios = await home.svc(['health', '-o', 'nagios', ...args])
    expect([nagios.code, nagios.stderr]).toEqual([3, ''])
    expect(nagios.stdout).toMatch(/^SVC UNKNOWN - /)
    expect(nagios.stdout).toMatch(message)
    const prtg = await home.svc(['health', '--output=prtg', ...args])
    expect(prtg.code).not.toBe(0)
    const { prtg: body } = JSON.parse(prtg.stdout) as {
      readonly prtg: { readonly error: number; readonly text: string }
    }
    expect(body.error).toBe(1)
    expect(body.text).toMatch(message)
  })

  test('nagios gets CRITICAL and exit code 2 for a failed monitor', async () => {
    const { code, stdout } = await home.svc(['health', '-o', 'nagios'])
    expect(code).toBe(2)
    expect(stdout).toMatch(
      /^SVC CRITICAL - Batch: tcp worker connect: 127\.0\.0\.1:1 refused the connection .*\| failed=1/,
    )
  })
})

type Outcome = {
  readonly args: () => readonly string[]
  /** The exit code without a format of a plugin. */
  readonly exit: number
  readonly state: 'OK' | 'WARNING' | 'CRITICAL' | 'UNKNOWN'
  readonly message: RegExp
  /** Whether there is no answer at all. */
  readonly isError: boolean
}
const app = (...args: readonly string[]): readonly string[] => ['-t', 'App', ...args]
const at = (path: Parameters<HealthServer['url']>[0]) => (): readonly string[] => app('--server', server.url(path))
const outcomes: Readonly<Record<string, Outcome>> = {
  healthy: { args: at('healthy'), exit: 0, state: 'OK', message: /healthy/, isError: false },
  warning: { args: at('warning'), exit: 0, state: 'WARNING', message: /expires in 12 d/, isError: false },
  unhealthy: { args: at('unhealthy'), exit: 3, state: 'CRITICAL', message: /502 instead of 200/, isError: false },
  'not checked': {
    args: () => ['-t', 'Batch', '--config', join(home.folder, 'wrong.yaml')],
    exit: 12,
    state: 'UNKNOWN',
    message: /not checked: .*wrong\.yaml:5/,
    isError: false,
  },
  usage: { args: () => ['-t', 'Sqll'], exit: 2, state: 'UNKNOWN', message: /unknown --type "Sqll"/, isError: true },
  configuration: {
    args: () => ['-t', 'Ftp'],
    exit: 12,
    state: 'UNKNOWN',
    message: /does not configure Ftp/,
    isError: true,
  },
  'sign-in needed': { args: at('sign-in'), exit: 4, state: 'UNKNOWN', message: /Not Authenticated/, isError: true },
  forbidden: { args: at('forbidden'), exit: 5, state: 'UNKNOWN', message: /Invalid Role/, isError: true },
  unreachable: {
    args: () => app('--server', 'http://127.0.0.1:1'),
    exit: 6,
    state: 'CRITICAL',
    message: /127\.0\.0\.1:1/,
    isError: true,
  },
  timeout: {
    args: () => [...at('silent')(), '--timeout', '300ms'],
    exit: 7,
    state: 'CRITICAL',
    message: /No answer within 0\.3 s/,
    isError: true,
  },
  'timeout with --nagios-timeout unknown': {
    args: () => [...at('silent')(), '--timeout', '300ms', '--nagios-timeout', 'unknown'],
    exit: 7,
    state: 'UNKNOWN',
    message: /No answer within 0\.3 s/,
    isError: true,
  },
  'server error': { args: at('server-error'), exit: 8, state: 'CRITICAL', message: /failed/, isError: true },
  'unreadable answer': { args: at('unreadable'), exit: 8, state: 'CRITICAL', message: /./, isError: true },
  rejected: { args: at('rejected'), exit: 9, state: 'UNKNOWN', message: /ServerType is unknown/, isError: true },
  'partly done': {
    args: () => ['-t', 'App,Sql', '--server', server.url('mixed')],
    exit: 10,
    state: 'UNKNOWN',
    message: /Not Authenticated/,
    isError: false,
  },
  'local file': {
    args: () => app('--config', '/nowhere/svc.yaml'),
    exit: 12,
    state: 'UNKNOWN',
    message: /nowhere/,
    isError: true,
  },
}
const states = ['OK', 'WARNING', 'CRITICAL', 'UNKNOWN']

describe('each outcome, at a simulated server and on this machine', () => {
  const cases = Object.keys(outcomes).map((name) => [name, outcomes[name] as Outcome] as const)

  test.each(cases)(
    '%s has the state and the exit code of Nagios, with performance data when something answered',
    async (_, outcome) => {
      const { code, stdout, stderr } = await home.svc(['health', '-o', 'nagios', ...outcome.args()])
      const [line = ''] = stdout.split('\n')
      expect([line.split(' - ')[0], code]).toEqual([`SVC ${outcome.state}`, states.indexOf(outcome.state)])
      expect(line).toMatch(outcome.message)
      expect(line).not.toContain('...')
      expect(line.includes(' | ')).toBe(!outcome.isError)
      expect(stderr.split('\n').filter((text) => text.startsWith('Error:'))).toEqual([])
    },
  )

  test.each(cases.filter(([name]) => !name.includes('nagios')))(
    '%s is a document that PRTG accepts, with the usual exit code',
    async (_, outcome) => {
      const { code, stdout } = await home.svc(['health', '-o', 'prtg', ...outcome.args()])
      const body = JSON.parse(stdout) as { readonly prtg: { readonly error?: number; readonly text: string } }
      expect({ valid: prtgSchema(body), errors: prtgSchema.errors }).toEqual({ valid: true, errors: null })
      expect([code, body.prtg.error]).toEqual([outcome.exit, outcome.isError ? 1 : undefined])
      if (outcome.state !== 'OK') expect(body.prtg.text).toMatch(outcome.message)
    },
  )

  const answered = cases.filter(([name]) => !/nagios|usage|local file/.test(name))
  peerSuite(promtoolMissing, 'in the format of Prometheus', () => {
    test.each(answered)('%s is accepted by promtool', async (_, outcome) => {
      const ran = await home.svc(['health', '-o', 'prometheus', ...outcome.args()])
      expect(ran.code).toBe(outcome.exit)
      const { status, stdout, stderr } = promtool(['check', 'metrics'], ran.stdout)
      expect([stdout, stderr, status]).toEqual(['', '', 0])
    })
  })
  peerSuite(xmllintMissing, 'in the format of JUnit', () => {
    test.each(answered)('%s conforms to the schema, and passes only where the exit code is 0', async (_, outcome) => {
      const { code, stdout } = await home.svc(['health', '-o', 'junit', ...outcome.args()])
      expect(xmllint(stdout)).toEqual({ status: 0, findings: '- validates\n' })
      expect([code, /<(?:failure|error) /.test(stdout)]).toEqual([outcome.exit, outcome.exit !== 0])
    })
  })

  test.each(['SIGINT', 'SIGTERM'] as const)('%s is UNKNOWN for nagios and an error for prtg', async (signal) => {
    const nagios = await interrupted(['-o', 'nagios', ...at('silent')()], signal)
    expect([nagios.code, nagios.stderr]).toEqual([3, ''])
    expect(nagios.stdout).toMatch(/^SVC UNKNOWN - svc: (?:Interrupted|Ended by SIGTERM)\n/)
    const prtg = await interrupted(['-o', 'prtg', ...at('silent')()], signal)
    expect(prtg.code).toBe(signal === 'SIGINT' ? 130 : 143)
    expect(JSON.parse(prtg.stdout)).toEqual({
      prtg: { error: 1, text: expect.stringMatching(/Interrupted|Ended by SIGTERM/) },
    })
  })

  test('an unexpected exception (simulated) is UNKNOWN for nagios and an error for prtg', async () => {
    const preload = "setTimeout(() => { throw new TypeError('planted') }, 400)"
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}` }
    const nagios = await home.svc(['health', '-o', 'nagios', ...at('silent')()], { env })
    expect([nagios.code, nagios.stderr]).toEqual([3, ''])
    expect(nagios.stdout).toMatch(/^SVC UNKNOWN - svc failed unexpectedly: TypeError: planted\n/)
    const prtg = await home.svc(['health', '-o', 'prtg', ...at('silent')()], { env })
    expect(prtg.code).toBe(1)
    expect(JSON.parse(prtg.stdout)).toEqual({ prtg: { error: 1, text: expect.stringContaining('planted') } })
  })

  test.each(['healthy', 'warning', 'unhealthy', 'usage'] as const)(
    '%s on a full disk is UNKNOWN for Nagios',
    async (name) => {
      const full = openSync('/dev/full', 'w')
      try {
        const child = spawn(
          process.execPath,
          [home.program, 'health', '-o', 'nagios', ...(outcomes[name]?.args() ?? [])],
          {
            env: home.env,
            stdio: ['ignore', full, 'pipe'],
          },
        )
        let stderr = ''
        child.stderr?.on('data', (chunk) => {
          stderr += String(chunk)
        })
        const [exit] = (await once(child, 'close')) as [number]
        expect([exit, stderr]).toEqual([3, 'Error: cannot write to standard output: no space left on device\n'])
      } finally {
        closeSync(full)
      }
    },
  )

  test('--nagios-timeout without the format is a mistake', async () => {
    const { code, stderr } = await home.svc(['health', ...at('healthy')(), '--nagios-timeout', 'unknown'])
    expect([code, stderr.split('\n')[0]]).toEqual([
      2,
      'Error: --nagios-timeout has an effect only with --output nagios',
    ])
  })
})

/** Runs `svc health` against a server that never answers, and sends the signal once it waits. */
async function interrupted(args: readonly string[], signal: NodeJS.Signals): Promise<Ran> {
  const child = spawn(process.execPath, [home.program, 'health', ...args], { env: home.env })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk) => {
    stdout += String(chunk)
  })
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk)
  })
  await server.asked()
  child.kill(signal)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr }
}

describe('a pipe', () => {
  test('gets records with a header line, which --no-header leaves out', async () => {
    const { stdout } = await home.svc(['health'])
    expect(stdout).toMatch(/^Target\tServerType\t/)
    expect((await home.svc(['health', '--no-header'])).stdout).toMatch(/^this machine\tBatch\t/)
  })

  test('gets a table where it is requested, every check with -v, and the verdict alone with -q', async () => {
    const table = await home.svc(['health', '-o', 'table'])
    expect(table.stdout).toMatch(/^ {2}✗ Batch {2}tcp worker +connect +127\.0\.0\.1:1 refused/)
    expect(table.stdout.trimEnd().split('\n').at(-1)).toMatch(
      /^✗ UNHEALTHY {2}this machine · 1 monitor failed · Standard/,
    )
    expect((await home.svc(['health', '-o', 'table', '-v'])).stdout).toMatch(/MONITOR +CHECK +STATUS +MESSAGE/)
    expect((await home.svc(['health', '-o', 'table', '-q'])).stdout).toMatch(/^✗ UNHEALTHY [^\n]*\n$/)
    expect((await home.svc(['health', '-q'])).stdout).toMatch(/^✗ UNHEALTHY [^\n]*\n$/)
  })
})

describe('a JUnit report in a pipe', () => {
  test('leaves the failures and the verdict in the log of the job', async () => {
    const { code, stdout, stderr } = await home.svc(['health', '-o', 'junit'])
    expect(code).toBe(3)
    expect(stdout).toMatch(/^<\?xml /)
    expect(stderr).toMatch(/^ {2}✗ Batch {2}tcp worker +connect +127\.0\.0\.1:1 refused/m)
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/^✗ UNHEALTHY {2}this machine · 1 monitor failed · Standard/)
    expect((await home.svc(['health', '-o', 'junit', '-q'])).stderr).toBe('')
  })

  test('leaves the reason in the log when nothing is configured', async () => {
    const { code, stderr } = await home.svc(['health', '-o', 'junit', '-t', 'Ftp'])
    expect(code).toBe(12)
    expect(stderr).toMatch(/does not configure Ftp/)
    expect(stderr).toMatch(/^✗ NOT CHECKED /m)
  })
})

test('a failure of a selected monitor is shown once', async () => {
  const yaml = `types:
  Batch:
    host: false
    monitors:
      - {kind: tcp, name: worker, host: 127.0.0.1, port: 1}
      - {kind: tcp, name: other, host: 127.0.0.1, port: 2}
`
  writeFileSync(join(home.folder, 'two.yaml'), yaml, { mode: 0o600 })
  const config = join(home.folder, 'two.yaml')
  const { stdout } = await home.svc(['health', '-o', 'table', '--only', 'worker', '--config', config])
  expect(stdout.match(/127\.0\.0\.1:1 refused/g)).toHaveLength(1)
  expect(stdout).not.toContain('selected monitors failed')
})

test('the types that are not configured stand above the answer, and the verdict is the last line', async () => {
  const { shown: output } = await onTerminal('"$NODE" "$SVC" health', {
    cwd: home.folder,
    env: { ...home.env, NODE: process.execPath, SVC: home.program },
    columns: 60,
  })
  const lines = output
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/^.*\u001b\[2K/, ''))
  expect(lines.findIndex((line) => line.includes('12 types not configured'))).toBeGreaterThanOrEqual(0)
  expect(lines.findIndex((line) => line.includes('12 types not configured'))).toBeLessThan(
    lines.findIndex((line) => line.includes('tcp worker')),
  )
  expect(lines.at(-1)).toMatch(/-v shows every check$/)
  expect(lines.filter((line) => line.length > 60)).toEqual([])
})

test('an error is broken between words on a terminal, and a command in it is not broken', async () => {
  const { shown: output } = await onTerminal('"$NODE" "$SVC" health --type Sql --config "$PWD/svc.yaml"', {
    cwd: home.folder,
    env: { ...home.env, NODE: process.execPath, SVC: home.program },
    columns: 44,
  })
  expect(output).toMatch(/^Error: .{1,37}\n {2}\S/m)
  expect(output).toMatch(/ {2}Add it under types: .*, then: svc monitors validate --config \S+$/m)
})

test('--wait reports an attempt where no line can move, and says that it gave up', async () => {
  const { code, stderr } = await home.svc(['health', '--wait', '2s'], { env: { CI: '1' } })
  expect(code).toBe(3)
  expect(stderr).toMatch(/^Attempt 1 after [\d.]+ m?s, [12] s left: Batch is unhealthy/m)
  expect(stderr).toMatch(/^Gave up after \d+ attempts? in [\d.]+ s: Batch is unhealthy/m)
})

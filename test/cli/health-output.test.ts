import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { formats, isPlugin, isReport, outputs } from '../../src/cli/health/health.ts'
import { onTerminal } from '../../tools/pages/terminal.ts'
import type { Home, Ran } from '../support/program/svc.ts'
import type { HealthServer } from '../support/simulated/health-answers.ts'
import { prtgSchema } from '../support/simulated/prtg.ts'
import { at, type Outcome, type OutcomeFixture, outcomeFixture, outcomes } from './health-outcomes.ts'

let fixture: OutcomeFixture
let home: Home
let server: HealthServer
beforeAll(async () => {
  fixture = await outcomeFixture()
  ;({ home, server } = fixture)
})
afterAll(() => fixture.remove())
describe('the formats of plug-ins', () => {
  test.each([
    ['an unknown flag', ['--nonsense'], /unknown flag --nonsense/],
    ['an unknown type', ['-t', 'Sqll'], /unknown --type "Sqll"/],
    ['a type without configuration', ['-t', 'Ftp'], /does not configure Ftp/],
    ['a missing svc.yaml', ['--config', '/nowhere/svc.yaml'], /svc\.yaml/],
    ['an unknown profile', ['--profile', 'nobody', '-t', 'App'], /nobody/],
  ])('nagios gets UNKNOWN and exit code 3 for %s, prtg an error', async (_, args, message) => {
    const nagios = await home.run(['health', '-o', 'nagios', ...args])
    expect([nagios.code, nagios.stderr]).toEqual([3, ''])
    expect(nagios.stdout).toMatch(/^SVC UNKNOWN - /)
    expect(nagios.stdout).toMatch(message)
    const prtg = await home.run(['health', '--output=prtg', ...args])
    expect(prtg.code).not.toBe(0)
    const { prtg: body } = JSON.parse(prtg.stdout) as {
      readonly prtg: { readonly error: number; readonly text: string }
    }
    expect(body.error).toBe(1)
    expect(body.text).toMatch(message)
  })

  test('nagios gets CRITICAL and exit code 2 for a failed monitor', async () => {
    const { code, stdout } = await home.run(['health', '-o', 'nagios'])
    expect(code).toBe(2)
    expect(stdout).toMatch(
      /^SVC CRITICAL - Batch: tcp worker connect: 127\.0\.0\.1:1 refused the connection .*\| failed=1/,
    )
  })
})

describe('K10 prometheus, as node_exporter reads files', () => {
  /** The samples without their values: what no two files of node_exporter may have in common. */
  const series = async (...args: readonly string[]): Promise<readonly string[]> => {
    const { stdout } = await home.run(['health', '-o', 'prometheus', ...args])
    return stdout.split('\n').flatMap((line) => (/^[^#\s]/.test(line) ? [line.replace(/ \S+$/, '')] : []))
  }
  const ofMachine = (all: readonly string[]): readonly string[] =>
    all.filter((one) => /^svc_(?:server|series)_/.test(one) || /monitor="host"/.test(one))

  const own = (): readonly string[] => {
    const file = join(home.folder, 'machine.yaml')
    const monitors = '{host: {zombies: 5}, monitors: [{kind: tcp, name: port, host: 127.0.0.1, port: 1}]}'
    writeFileSync(file, `types: {App: ${monitors}, Sql: ${monitors}}\n`, { mode: 0o600 })
    return ['--config', file, '--server-state']
  }

  test('K10 files of single types have no sample in common, whether their run succeeds or not', async () => {
    const runs = [
      ['App', ...own()],
      ['Sql', ...own()],
      ['Ftp', ...own()],
      ['Batch', '--nonsense'],
    ]
    const all: string[] = []
    for (const args of runs) all.push(...(await series('-t', ...args)))
    expect(all.length).toBeGreaterThan(20)
    expect(all.filter((one, at) => all.indexOf(one) !== at)).toEqual([])
    expect(ofMachine(all)).toEqual([])
    expect(all).toEqual(
      expect.arrayContaining(['svc_type_success{type="Ftp",depth="Standard"}', 'svc_type_success{type="Batch"}']),
    )
  })
  test('K10 --host adds the figures of the machine, which a report of everything has anyway', async () => {
    const machine = [
      'svc_series_dropped',
      'svc_server_cpu_used_ratio',
      'svc_monitor_info{monitor="host",kind="host",scope="machine"}',
    ]
    expect(ofMachine(await series('-t', 'Sql', '--host', ...own()))).toEqual(expect.arrayContaining(machine))
    expect(ofMachine(await series(...own()))).toEqual(expect.arrayContaining(machine))
  })
})

const states = ['OK', 'WARNING', 'CRITICAL', 'UNKNOWN']

describe('each outcome, at a simulated server and on this machine', () => {
  const cases = Object.keys(outcomes).map((name) => [name, outcomes[name] as Outcome] as const)

  test.each(cases)(
    '%s has the state and the exit code of Nagios, with performance data when something answered',
    async (_, outcome) => {
      const { code, stdout, stderr } = await home.run(['health', '-o', 'nagios', ...outcome.args(fixture)])
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
      const { code, stdout } = await home.run(['health', '-o', 'prtg', ...outcome.args(fixture)])
      const body = JSON.parse(stdout) as { readonly prtg: { readonly error?: number; readonly text: string } }
      expect({ valid: prtgSchema(body), errors: prtgSchema.errors }).toEqual({ valid: true, errors: null })
      expect([code, body.prtg.error]).toEqual([outcome.exit, outcome.isError ? 1 : undefined])
      if (outcome.state !== 'OK') expect(body.prtg.text).toMatch(outcome.message)
    },
  )

  test.each(['SIGINT', 'SIGTERM'] as const)('%s is UNKNOWN for nagios and an error for prtg', async (signal) => {
    const nagios = await interrupted(['-o', 'nagios', ...at('silent')(fixture)], signal)
    expect([nagios.code, nagios.stderr]).toEqual([3, ''])
    expect(nagios.stdout).toMatch(/^SVC UNKNOWN - svc: (?:Interrupted|Ended by SIGTERM)\n/)
    const prtg = await interrupted(['-o', 'prtg', ...at('silent')(fixture)], signal)
    expect(prtg.code).toBe(signal === 'SIGINT' ? 130 : 143)
    expect(JSON.parse(prtg.stdout)).toEqual({
      prtg: { error: 1, text: expect.stringMatching(/Interrupted|Ended by SIGTERM/) },
    })
  })

  test('an unexpected exception (simulated) is UNKNOWN for nagios and an error for prtg', async () => {
    const preload = "setTimeout(() => { throw new TypeError('planted') }, 400)"
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}` }
    const nagios = await home.svc(['health', '-o', 'nagios', ...at('silent')(fixture)], { env })
    expect([nagios.code, nagios.stderr]).toEqual([3, ''])
    expect(nagios.stdout).toMatch(/^SVC UNKNOWN - svc failed unexpectedly: TypeError: planted\n/)
    const prtg = await home.svc(['health', '-o', 'prtg', ...at('silent')(fixture)], { env })
    expect(prtg.code).toBe(1)
    expect(JSON.parse(prtg.stdout)).toEqual({ prtg: { error: 1, text: expect.stringContaining('planted') } })
  })

  test.each(['healthy', 'warning', 'unhealthy', 'usage'] as const)(
    '%s on a full disk is UNKNOWN for Nagios',
    async (name) => {
      const full = openSync('/dev/full', 'w')
      onTestFinished(() => closeSync(full))

      const child = spawn(
        process.execPath,
        [home.program, 'health', '-o', 'nagios', ...(outcomes[name]?.args(fixture) ?? [])],
        { env: home.env, stdio: ['ignore', full, 'pipe'] },
      )
      let stderr = ''
      child.stderr?.on('data', (chunk) => {
        stderr += String(chunk)
      })
      const [exit] = (await once(child, 'close')) as [number]
      expect([exit, stderr]).toEqual([3, 'Error: cannot write to standard output: no space left on device\n'])
    },
  )

  test('--nagios-timeout without the format is a mistake', async () => {
    const { code, stderr } = await home.run(['health', ...at('healthy')(fixture), '--nagios-timeout', 'unknown'])
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
  await server.request()
  child.kill(signal)
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr }
}

describe('a pipe', () => {
  test('gets a table where it is requested, every check with -v, and the verdict alone with -q', async () => {
    const table = await home.run(['health', '-o', 'table'])
    expect(table.stdout).toMatch(/^ {2}✗ Batch {2}tcp worker +connect +127\.0\.0\.1:1 refused/)
    expect(table.stdout.trimEnd().split('\n').at(-1)).toMatch(
      /^✗ UNHEALTHY {2}this machine · 1 monitor failed · Standard/,
    )
    expect((await home.run(['health', '-o', 'table', '-v'])).stdout).toMatch(/MONITOR +CHECK +STATUS +MESSAGE/)
    expect((await home.run(['health', '-o', 'table', '-q'])).stdout).toMatch(/^✗ UNHEALTHY [^\n]*\n$/)
    expect((await home.run(['health', '-q'])).stdout).toMatch(/^✗ UNHEALTHY [^\n]*\n$/)
  })
})

describe('O10 standard error beside each format', () => {
  const verdict = /^[✗?] (?:UNHEALTHY|NOT CHECKED) |^Error: /m
  const cases = Object.entries(outcomes).filter(([name]) => !name.includes('nagios'))

  test.each(outputs)('O10 %s: the failure and the verdict are there as the table of formats says', async (output) => {
    for (const [name, outcome] of cases) {
      const args = ['health', '-o', output, ...outcome.args(fixture)]
      const [usual, quiet] = await Promise.all([home.run(args), home.run([...args, '-q'])])
      const words = usual.stderr.replace(/\s+/g, ' ')
      if (formats[output].logsFailures && outcome.exit !== 0) {
        expect([name, words]).toEqual([name, expect.stringMatching(outcome.message)])
        expect([name, usual.stderr]).toEqual([name, expect.stringMatching(verdict)])
      } else expect(words, name).not.toMatch(/UNHEALTHY|NOT CHECKED/)
      if ((isReport(output) && isPlugin(output)) || outcome.exit === 0) expect([name, words]).toEqual([name, ''])
      expect(quiet.stderr, name).not.toMatch(/UNHEALTHY|NOT CHECKED/)
    }
  })

  test('O10 the formats that do so are those that programs read, except those of plug-ins', () => {
    expect(outputs.filter((output) => formats[output].logsFailures)).toEqual([
      ...['json', 'csv', 'tsv', 'ndjson', 'junit', 'prometheus'],
    ])
  })

  test('O10 the reason is there when nothing is configured', async () => {
    const { code, stderr } = await home.run(['health', '-o', 'junit', '-t', 'Ftp'])
    expect(code).toBe(12)
    expect(stderr).toMatch(/does not configure Ftp/)
    expect(stderr).toMatch(/^✗ NOT CHECKED /m)
  })
})

describe('O10 a pipe', () => {
  test('O10 gets the table at 120 columns without colour', async () => {
    const [pipe, explicit, wide] = await Promise.all([
      home.run(['health'], { env: { NO_COLOR: '' } }),
      home.run(['health', '-o', 'table']),
      home.run(['health'], { columns: 120 }),
    ])
    const text = (stdout: string): string => stdout.replaceAll(/[\d.]+ m?s\b/g, 'some time')
    expect(pipe.stdout).toMatch(/^ {2}✗ Batch {2}tcp worker +connect +127\.0\.0\.1:1 refused/)
    expect([text(pipe.stdout), text(explicit.stdout)]).toEqual([text(wide.stdout), text(wide.stdout)])
    expect(pipe.stderr).toBe('')
  })

  test('O10 gets records with -o tsv, and no header line with --no-header', async () => {
    const [whole, rows] = await Promise.all([
      home.run(['health', '-o', 'tsv']),
      home.run(['health', '-o', 'tsv', '--no-header']),
    ])
    expect(whole.stdout).toMatch(/^Target\tServerType\t/)
    expect(rows.stdout.split('\n').length).toBe(whole.stdout.split('\n').length - 1)
    expect(rows.stdout).toMatch(/^this machine\tBatch\t/)
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
  const { stdout } = await home.run(['health', '-o', 'table', '--only', 'worker', '--config', config])
  expect(stdout.match(/127\.0\.0\.1:1 refused/g)).toHaveLength(1)
  expect(stdout).not.toContain('selected monitors failed')
})

test('with -v, the types that are not configured stand above the answer, and the verdict is the last line', async () => {
  const { output } = await onTerminal('"$NODE" "$SVC" health -v', {
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
  expect(lines.join('\n')).toMatch(/\n✗ UNHEALTHY [^\n]*(?:\n {2}[^\n]*)*$/)
  expect(lines.filter((line) => line.length > 60)).toEqual([])
})

test('an error is broken between words on a terminal, and a command in it is not broken', async () => {
  const { output } = await onTerminal('"$NODE" "$SVC" health --type Sql --config "$PWD/svc.yaml"', {
    cwd: home.folder,
    env: { ...home.env, NODE: process.execPath, SVC: home.program },
    columns: 44,
  })
  expect(output).toMatch(/^Error: .{1,37}\n {2}\S/m)
  expect(output).toMatch(/ {2}Add it under types: .*, then: svc monitors validate --config \S+$/m)
})

test('--wait reports an attempt where no line can move, and says that it gave up', async () => {
  const { code, stderr } = await home.run(['health', '--wait', '2s'], { env: { CI: '1' } })
  expect(code).toBe(3)
  expect(stderr).toMatch(/^Attempt 1 after [\d.]+ m?s, [12] s left: Batch is unhealthy/m)
  expect(stderr).toMatch(/^Gave up after \d+ attempts? in [\d.]+ s: Batch is unhealthy/m)
})

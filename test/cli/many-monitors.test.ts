import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { outputs } from '../../src/cli/health/health.ts'
import { type HealthScreen, renderHealth } from '../../src/cli/health/screen.ts'
import { width } from '../../src/cli/render/width.ts'
import type { Entry } from '../../src/core/checks/reports/index.ts'
import {
  failingWithMore,
  machine,
  refusing,
  runOf,
  skipped,
  starved,
  warned,
  wellOnes,
} from '../checks/reports/many.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'

const screen = (columns: number, more: Partial<HealthScreen> = {}): HealthScreen => ({
  width: columns,
  colour: false,
  unicode: true,
  atServer: false,
  ...more,
})
const linesOf = (entries: readonly Entry[], more: Partial<HealthScreen> = {}, columns = 120): readonly string[] =>
  renderHealth(entries, screen(columns, more)).trimEnd().split('\n')
const lineWith = (lines: readonly string[], text: string): number => lines.findIndex((line) => line.includes(text))

/** 200 monitors with the machine, of which six failed: in the first type, in the middle, and in the last. */
const twoHundred = (host = machine('ok', 'ok')): readonly Entry[] => [
  runOf('App', [host, refusing('tcp login'), ...wellOnes(100), refusing('tcp mail')], 3),
  runOf('Sql', [host, ...wellOnes(50, 'postgres orders'), failingWithMore('postgres stock'), refusing('tcp db')], 3),
  runOf('Batch', [host, ...wellOnes(43, 'http job'), refusing('tcp queue'), refusing('tcp worker')], 3),
]

describe('K14 many monitors', () => {
  test.each([80, 120].flatMap((columns) => [false, true].map((failed) => ({ columns, failed }))))(
    '200 monitors with 6 failures at $columns columns, with --failed: $failed, are as reviewed',
    async ({ columns, failed }) => {
      const text = renderHealth(twoHundred(), screen(columns, { detail: failed ? 'failed' : 'usual' }))
      await expect(text).toMatchFileSnapshot(`../golden/screen/many${failed ? '-failed' : ''}.${columns}.txt`)
    },
  )

  test('K14 above 30 lines the monitors that are ok are one line, and failures are the last lines above the verdict', () => {
    const lines = linesOf(twoHundred())
    expect(lines[0]).toBe('  ✓ 194 ok')
    expect(lines.filter((line) => line.includes('✓'))).toHaveLength(1)
    const [warning, failure] = [lineWith(lines, 'connections'), lineWith(lines, 'tcp login')]
    expect([warning, failure]).toEqual([1, 2])
    const signs = lines.slice(failure, -2).map((line) => line.slice(0, 4).trim())
    expect([...new Set(signs)].toSorted()).toEqual(['', '✗'])
    expect(lines.findLastIndex((line) => line.startsWith('  ✗ Batch  tcp worker '))).toBe(lines.length - 4)
    expect(lines.at(-2)).toBe('')
    expect(lines.at(-1)).toMatch(/^✗ UNHEALTHY {2}web1 · 6 of 200 monitors failed · 1 warning · Standard · 3 s/)
  })

  test('K14 up to 30 lines nothing is folded, and the order is that of svc.yaml', () => {
    const entry = (healthy: number): Entry => runOf('App', [refusing('tcp login'), ...wellOnes(healthy)], 3)
    const [thirty, more] = [linesOf([entry(29)]), linesOf([entry(30)])]
    expect(thirty).toHaveLength(32)
    expect([lineWith(thirty, 'tcp login'), lineWith(thirty, 'http shop-29')]).toEqual([0, 29])
    expect(more.slice(0, 2)).toEqual(['  ✓ 30 ok', expect.stringContaining('tcp login')])
    expect(more).toHaveLength(4)
    // The lines of the terminal count, not the monitors: at 60 columns, the message takes more than one.
    expect(linesOf([entry(29)], {}, 60)[0]).toBe('  ✓ 29 ok')
  })

  test('K14 if all of many are ok, one line and the verdict are left', () => {
    expect(linesOf([runOf('App', wellOnes(200), 0)])).toEqual([
      '  ✓ 200 ok',
      '✓ HEALTHY  web1 · 200 monitors · Standard · 3 s   -v shows every check',
    ])
  })

  test('K14 warnings of the machine are never above a failure', () => {
    const host = machine('warning', 'warning', 'ok')
    const few = linesOf([runOf('App', [host, ...wellOnes(2), refusing('tcp login')], 3)])
    expect(lineWith(few, 'disk /var')).toBeGreaterThan(lineWith(few, 'tcp login'))
    const many = linesOf(twoHundred(host))
    expect(many[0]).toBe('  ✓ 193 ok · host: 2 warnings (--failed shows them)')
    expect(many.join('\n')).not.toContain('disk /var')
    expect(many.at(-1)).toContain('6 of 200 monitors failed · 2 warnings')
    const failures = linesOf(twoHundred(host), { detail: 'failed' })
    expect(lineWith(failures, 'disk /var')).toBeGreaterThan(lineWith(failures, 'tcp worker'))
    // Without a failure they come first.
    expect(linesOf([runOf('App', [host, ...wellOnes(40)], 0)])[1]).toMatch(/^ {2}! +host +disk \/var/)
  })

  test('K14 a machine that fails keeps its failure above its warnings, and both keep their lines', () => {
    const host = machine('warning', 'ok', 'failed')
    const few = linesOf([runOf('App', [host, refusing('tcp login')], 3)])
    const order = ['tcp login', '✗      host', 'memory', 'disk /var', '1 other check ok']
    expect(order.map((text) => lineWith(few, text))).toEqual([0, 1, 1, 2, 3])
    const many = linesOf([runOf('App', [host, ...wellOnes(40), refusing('tcp login')], 3)])
    expect(many[0]).toBe('  ✓ 40 ok · host: 1 warning (--failed shows it)')
    expect([lineWith(many, 'memory'), lineWith(many, 'tcp login')]).toEqual([1, 2])
  })

  test('K14 equal waits are one row with the range of their durations, and so are equal reasons for a skip', () => {
    const waits = Array.from({ length: 20 }, (_, at) => starved(`http basket-${at + 1}`, 8 + at / 10))
    const behind = Array.from({ length: 20 }, (_, at) => skipped(`http page-${at + 1}`, 'tcp gateway'))
    const lines = linesOf([runOf('App', [...waits, refusing('tcp gateway'), ...behind], 3)])
    expect(lines[0]).toMatch(/^ {2}· App {2}20 monitors +not run: tcp gateway failed$/)
    expect(lines[1]).toMatch(
      /^ +monitors: http page-1, http page-2, http page-3, http page-4, http page-5, http page-6,$/,
    )
    expect(lines[2]).toMatch(/^ +http page-7, .*, http page-\d+ and \d+ more$/)
    expect(lines[3]).toMatch(
      /^ {2}\? App {2}20 monitors +not run +not checked: waited 8 s to 9\.9 s for http slow-1, http/,
    )
    const names = lines.slice(5, 7).join(' ')
    const listed = names.match(/http basket-\d+/g) ?? []
    expect(names).toContain(`and ${20 - listed.length} more`)
    expect(lines[7]).toContain('✗ App  tcp gateway')
    // Each stays a monitor of its own for the verdict.
    expect(lines.at(-1)).toContain('21 of 41 monitors failed · 20 not checked')
  })

  test('K14 a name of several monitors in one row is never broken, and the row stays short', () => {
    const behind = Array.from({ length: 40 }, (_, at) => skipped(`http a-page-of-the-shop-${at + 1}`, 'tcp gateway'))
    for (const columns of [60, 80, 100, 120]) {
      const lines = linesOf([runOf('App', [refusing('tcp gateway'), ...behind], 3)], {}, columns)
      const [from, to] = [lineWith(lines, 'monitors:'), lineWith(lines, ' more')]
      expect(to - from).toBeLessThanOrEqual(1)
      const listed =
        lines
          .slice(from, to + 1)
          .join(' ')
          .match(/http a-page-of-the-shop-\d+/g) ?? []
      expect(lines[to]).toContain(`and ${40 - listed.length} more`)
    }
  })

  test('K14 different waits, and failures with different messages, keep their rows', () => {
    const waits = ['a', 'b', 'c'].map((name) => starved(`http ${name}`, 8))
    const [first, second, third] = waits.map((wait, at) => ({
      ...wait,
      results: wait.results.map((result) => ({ ...result, message: `${result.message} at ${at}` })),
    }))
    const refused = Array.from({ length: 40 }, (_, at) => refusing(`tcp worker-${at + 1}`, `10.0.0.7:${at + 1}`))
    const lines = linesOf([
      runOf(
        'App',
        [first, second, third, ...refused].flatMap((each) => each ?? []),
        3,
      ),
    ])
    for (const name of ['http a', 'http b', 'http c', 'tcp worker-1 ', 'tcp worker-40']) {
      expect(lines.filter((line) => line.includes(name))).toHaveLength(1)
    }
  })

  test('K14 --failed shows what failed, was not checked, was skipped or warns, and no check that is ok', () => {
    const monitors = [
      machine('ok'),
      ...wellOnes(3),
      failingWithMore('postgres stock'),
      warned('tls shop'),
      starved('http basket', 8),
      skipped('http page', 'postgres stock'),
    ]
    const lines = linesOf([runOf('App', monitors, 3)], { detail: 'failed' }, 160)
    expect(lines.map((line) => line.trim().slice(0, 1))).toEqual(['✗', '!', '1', '!', '?', '·', '', '✗'])
    expect(lines.join('\n')).not.toMatch(/✓|other checks? ok|shop-1/)
    expect(lines.join('\n')).toContain('1 check skipped')
    expect(linesOf([runOf('App', wellOnes(3), 0)], { detail: 'failed' })).toEqual([
      expect.stringMatching(/^✓ HEALTHY {2}web1 · 3 monitors/),
    ])
  })

  test('K14 folding and --failed change no count and no verdict', () => {
    const verdict = (more: Partial<HealthScreen>): string | undefined =>
      linesOf(twoHundred(machine('warning')), more, 200)
        .at(-1)
        ?.replace(/ {3}-v shows.*/, '')
    const alone = verdict({ detail: 'verdict' })
    expect(alone).toContain('6 of 200 monitors failed · 2 warnings')
    for (const detail of ['usual', 'failed', 'verbose'] as const) expect(verdict({ detail })).toBe(alone)
  })

  test('K14 -v shows each check of many monitors', () => {
    const text = renderHealth(twoHundred(), screen(120, { detail: 'verbose' }))
    for (const name of ['http shop-100', 'postgres orders-50', 'http job-43']) expect(text).toContain(name)
    expect(text).not.toContain('194 ok')
  })

  test('K14 the facts about a server stand above the failures of many monitors', () => {
    const lines = linesOf(twoHundred(), { atServer: true })
    expect(lineWith(lines, 'correlation')).toBe(0)
    expect(lineWith(lines, '194 ok')).toBeGreaterThan(lineWith(lines, 'Batch correlation'))
  })

  test('K14 warnings alone are healthy with their number, in the word and without the sign of a warning', () => {
    const entry = runOf('App', [...wellOnes(37), ...['a', 'b', 'c', 'd', 'e'].map((name) => warned(`tls ${name}`))], 0)
    const lines = linesOf([entry])
    expect(lines.at(-1)).toBe('✓ HEALTHY, 5 warnings  web1 · 42 monitors · Standard · 3 s   -v shows every check')
    expect(lines[0]).toBe('  ✓ 37 ok')
    expect(linesOf([{ ...entry, ExitCode: 3 }]).at(-1)).toMatch(
      /^✗ UNHEALTHY {2}web1 · 42 monitors · 5 warnings · warnings count as failures \(--fail-on warn\)/,
    )
  })

  test('K14 signs and words carry the meaning without colour and without Unicode, and no line is too wide', () => {
    for (const columns of [24, 40, 60, 80, 120]) {
      for (const detail of ['usual', 'failed'] as const) {
        const plain = renderHealth(twoHundred(machine('warning')), screen(columns, { detail, unicode: false }))
        expect(plain).not.toMatch(/[✓✗…·]/)
        expect(plain).toMatch(/^ *x (?:App )? *tcp login/m)
        for (const line of plain.split('\n')) expect(width(line)).toBeLessThanOrEqual(columns)
        const coloured = renderHealth(twoHundred(machine('warning')), screen(columns, { detail, colour: true }))
        expect(stripVTControlCharacters(coloured)).toBe(
          renderHealth(twoHundred(machine('warning')), screen(columns, { detail })),
        )
      }
    }
  })
})

/** 200 monitors that one address refuses, in a time of their own, each with the same hint. */
const oneCause = Array.from({ length: 200 }, (_, at) => {
  const { results, ...rest } = refusing(`http shop-${at + 1}`)
  const inTime = results.map((result) => ({
    ...result,
    message: `${result.message}`.replace('1 ms', `${at + 1} ms`),
    details: ['next: on its host, ss -ltn lists the ports that are open'],
  }))
  return { ...rest, results: inTime }
})
/** 200 monitors that fail, each in its own way. */
const manyCauses = Array.from({ length: 200 }, (_, at) => refusing(`tcp own-${at + 1}`, `10.0.0.7:${at + 1}`))

describe('K14 many failures', () => {
  test.each([80, 120, 200])(
    'K14 200 failures with one cause are one row at %i columns, as reviewed',
    async (columns) => {
      const text = renderHealth([runOf('App', [machine('ok'), ...wellOnes(5), ...oneCause], 3)], screen(columns))
      expect(text.match(/next: /g)).toHaveLength(1)
      expect(text.replace(/\s+/g, ' ')).toContain('refused the connection in 1 ms to 200 ms')
      expect(text).toContain('200 of 206 monitors failed')
      await expect(text).toMatchFileSnapshot(`../golden/screen/one-cause.${columns}.txt`)
    },
  )

  test('K14 -v shows each of the failures that the table folds', () => {
    const lines = linesOf([runOf('App', oneCause, 3)], { detail: 'verbose' })
    expect(lines.filter((line) => /http shop-\d+ +connect +✗/.test(line))).toHaveLength(200)
  })

  test('K14 a hint that several failures share stands once, below the first of them', () => {
    const lines = linesOf([runOf('App', [...wellOnes(3), ...oneCause.slice(0, 3)], 3)])
    expect(lines.filter((line) => line.includes('refused'))).toHaveLength(3)
    expect(lines.filter((line) => line.includes('next: '))).toEqual([lines[4]])
  })

  test('K14 three types that fail with one reason are one row', () => {
    const error = { code: 'Unreachable', exitCode: 6, message: 'cannot reach web1', hints: ['Is it up?', 'Try again.'] }
    const types = ['App', 'Sql', 'Batch', ...Array.from({ length: 10 }, (_, at) => `T${at}`)]
    const entries = types.map((ServerType) => ({
      ...{ Target: 'web1', ServerType, ExecutionMode: 'Basic', ExitCode: 6, Error: error },
    }))
    const lines = linesOf(entries, { height: 14 })
    expect(lines.slice(0, 4)).toEqual([
      expect.stringMatching(/^ {2}✗ 13 types +cannot reach web1$/),
      expect.stringMatching(/Is it up\?/),
      expect.stringMatching(/Try again\./),
      expect.stringMatching(/^ +types: App, Sql, Batch, T0, /),
    ])
  })

  test.each([24, 30, 50, 80])(
    'K14 200 different failures and the verdict have room on a terminal of %i lines, and those without are counted',
    (height) => {
      const entry = runOf('App', [machine('warning'), ...wellOnes(9), ...manyCauses], 3)
      for (const columns of [60, 80, 120]) {
        const lines = linesOf([entry], { height }, columns)
        expect(lines.length).toBeLessThan(height)
        expect(lines.length).toBeGreaterThan(height - 6)
        const visible = lines.filter((line) => line.includes('tcp own-')).length
        const [, more] = /… (\d+) more failed \(--failed shows all\)/.exec(lines.join('\n')) ?? []
        expect(visible + Number(more)).toBe(200)
      }
      expect(linesOf([entry], { height, detail: 'failed' }).length).toBeGreaterThan(200)
    },
  )

  test('K14 what does not fit on a low terminal is folded below 30 lines, too', () => {
    const entry = runOf('App', [...wellOnes(20), refusing('tcp login')], 3)
    expect(linesOf([entry], { height: 24 })).toHaveLength(23)
    expect(linesOf([entry], { height: 23 })[0]).toBe('  ✓ 20 ok')
  })

  test('O10 standard error has 20 failures at most, then their number', () => {
    const skippedOnes = [skipped('http page', 'tcp own-1'), warned('tls shop')]
    const lines = linesOf([runOf('App', [...wellOnes(9), ...skippedOnes, ...manyCauses], 3)], { detail: 'reasons' })
    expect(lines.filter((line) => line.includes('✗ App  tcp own-'))).toHaveLength(20)
    expect(lines.join('\n')).not.toMatch(/tls shop|http page/)
    expect(lines.slice(-3)).toEqual([
      '  … 180 more failed',
      '',
      expect.stringMatching(/^✗ UNHEALTHY {2}web1 · 201 of .* · 3 s$/),
    ])
    // With --fail-on warn, warnings are the reason.
    const warnings = { ...runOf('App', [...wellOnes(9), warned('tls shop')], 3) }
    expect(linesOf([warnings], { detail: 'reasons' })[0]).toMatch(/^ {2}! App {2}tls shop +certificate/)
  })
})

describe('svc health --failed', () => {
  const home = temporaryHome()
  let server: Awaited<ReturnType<typeof httpPeer>>
  beforeAll(async () => {
    server = await httpPeer((_, response) => response.end('ready'))
    const monitors = Array.from(
      { length: 32 },
      (_, at) => `{kind: http, name: shop-${at + 1}, url: ${server.origin}/, timeout: 1m, latency: {warn: 5m}}`,
    )
    const closed = '{kind: tcp, name: worker, host: 127.0.0.1, port: 1}'
    const behind = '{kind: http, name: jobs, url: http://127.0.0.1:1/, dependsOn: [worker]}'
    const yaml = `types:\n  App: {host: false, monitors: [${[...monitors, closed, behind].join(', ')}]}\n`
    writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
  })
  afterAll(() => server[Symbol.asyncDispose]())
  const run = (args: readonly string[], columns?: number) =>
    home.run(['health', '-m', 'Basic', '--timeout', '2m', ...args], columns === undefined ? {} : { columns })

  test('K14 is the table of what is not ok, in a pipe and on a narrow terminal too, with the same exit code', async () => {
    const [pipe, wide, narrow, usual] = await Promise.all([
      run(['--failed']),
      run(['--failed', '--output', 'table'], 120),
      run(['--failed'], 40),
      run(['-o', 'table']),
    ])
    expect([pipe.code, wide.code, narrow.code, usual.code]).toEqual([3, 3, 3, 3])
    for (const { stdout } of [pipe, wide, narrow]) {
      expect(stdout).toMatch(/✗ App {1,2}tcp worker/)
      expect(stdout).toMatch(/· App {1,2}http jobs/)
      expect(stdout).not.toMatch(/shop-|\b32 ok|\u001b/)
      expect(stdout.replace(/\s+/g, ' ')).toContain('2 of 34 monitors failed')
    }
    expect(usual.stdout).toMatch(/^ {2}✓ 32 ok\n {2}· App {2}http jobs .*\n {2}✗ App {2}tcp worker /)
  })

  test('K14 has colour on a terminal unless NO_COLOR is set', async () => {
    const coloured = await home.run(['health', '-m', 'Basic', '--failed'], { columns: 80, env: { NO_COLOR: '' } })
    const plain = await run(['--failed'], 80)
    expect(coloured.stdout).toContain('\u001b[31m')
    expect(plain.stdout).not.toContain('\u001b')
    const text = (stdout: string): string => stripVTControlCharacters(stdout).replaceAll(/[\d.]+ m?s\b/g, 'some time')
    expect(text(coloured.stdout)).toBe(text(plain.stdout))
  })

  test('K14 filters the answer that --wait ends with', async () => {
    const { code, stdout, stderr } = await run(['--failed', '--wait', '50ms'])
    expect([code, stdout.split('\n')[0]]).toEqual([3, expect.stringMatching(/^ {2}✗ App {2}tcp worker/)])
    expect(stderr).toContain('Gave up after')
  })

  test.each(outputs.filter((output) => output !== 'table'))('K14 with --output %s is exit 2', async (output) => {
    const { code, stdout, stderr } = await run(['--failed', '--output', output])
    expect(code).toBe(output === 'nagios' ? 3 : 2)
    expect(stdout + stderr).toContain(`--failed shows a table: omit --output ${output} or --failed`)
  })

  test.each([
    ['--verbose', '--verbose every check'],
    ['-v', '--verbose every check'],
    ['-q', '--quiet the verdict alone'],
  ])('K14 with %s is exit 2, which says what each of them shows', async (flag, shows) => {
    const { code, stderr } = await run(['--failed', flag])
    expect(code).toBe(2)
    expect(stderr).toContain(`Omit one of them: --failed shows what is not ok, ${shows}.`)
  })

  test('K14 other formats contain each monitor of many, whatever the table folds', async () => {
    const documents = await Promise.all(
      ['json', 'ndjson', 'csv', 'tsv', 'junit', 'prometheus'].map(async (output) => [
        output,
        await run(['-o', output]),
      ]),
    )
    for (const [output, { stdout, code }] of documents as [string, Awaited<ReturnType<typeof run>>][]) {
      expect([output, code]).toEqual([output, 3])
      for (const name of ['shop-1', 'shop-32', 'worker', 'jobs']) expect(stdout).toContain(name)
    }
    const { stdout } = await run(['--json'])
    expect(JSON.parse(stdout)).toMatchObject({ FailedMonitorCount: 2 })
  })
})

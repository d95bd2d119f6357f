import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type HealthScreen, renderHealth } from '../../src/cli/health/screen.ts'
import { width } from '../../src/cli/render/width.ts'
import type { Entry } from '../../src/core/checks/reports/index.ts'
import tsv from '../../src/core/checks/reports/tsv.ts'
import {
  broken,
  failing,
  foreign,
  healthy,
  hostile,
  measured,
  partlyChecked,
  samples,
  unchecked,
  unreachable,
  warning,
} from '../checks/reports/samples.ts'
import { measureWork } from '../support/suite/processor-time.ts'
import { runsOf } from '../support/suite/runs.ts'

const screen = (columns: number, more: Partial<HealthScreen> = {}): HealthScreen => ({
  width: columns,
  colour: false,
  unicode: true,
  atServer: true,
  ...more,
})

describe('the health screen', () => {
  const cases = Object.keys(samples).flatMap((sample) => [40, 80, 120].map((columns) => ({ sample, columns })))

  test.each(cases)('$sample at $columns columns is as reviewed', async ({ sample, columns }) => {
    const text = renderHealth(samples[sample] ?? [], screen(columns))
    await expect(text).toMatchFileSnapshot(`../golden/screen/${sample}.${columns}.txt`)
  })

  test('each monitor has one line, its failures are expanded, and the verdict is the last line', () => {
    const lines = renderHealth([failing], screen(120)).trimEnd().split('\n')
    expect(lines[0]).toMatch(/^ {2}✗ Sql {2}sqlserver orders {2}last full backup {2}53 h old \(fail 48 h\)$/)
    expect(lines[1]).toMatch(/^ +started 2026-02-26 22:00, job "nightly full"$/)
    expect(lines[2]).toMatch(/^ +1 other check ok$/)
    expect(lines[3]).toMatch(/^ {2}✓ Sql {2}host +1 check +41 % free$/)
    expect(lines.at(-1)).toBe(
      '✗ UNHEALTHY  prod · https://svc.example.com · 1 of 2 monitors failed · Advanced · 1.28 s   -v shows every check',
    )
  })

  test('a healthy monitor shows its figures, as many as one line has room for', () => {
    const [line = ''] = renderHealth([measured], screen(120)).split('\n')
    expect(line).toMatch(/^ {2}✓ +host +\d+ checks +disk \/var 41 % free · memory 2\.4 GiB/)
    expect(width(renderHealth([measured], screen(70)).split('\n')[0] ?? '')).toBeLessThanOrEqual(70)
  })

  test('a monitor that did not run is shown as such, and is not blamed', () => {
    const text = renderHealth([broken], screen(160))
    expect(text).toMatch(/^ {2}· Ftp +postgres orders-replica-eu-central +not run: tcp 10\.1\.2\.3:5432 failed$/m)
  })

  test.each([
    ['with signs', true, '?'],
    ['in ASCII', false, '?'],
  ])('a monitor that was not checked has a sign of its own, %s', (_, unicode, sign) => {
    const text = renderHealth([partlyChecked], screen(160, { unicode }))
    const lineOf = (name: string): string => text.split('\n').find((line) => line.includes(name)) ?? ''
    expect(lineOf('http orders').trim()[0]).toBe(sign)
    expect(lineOf('tcp db').trim()[0]).toBe(unicode ? '✗' : 'x')
    expect(text.split('\n').at(-2)).toContain('1 of 4 monitors failed')
    expect(text.split('\n').at(-2)).toContain('2 not checked')
  })

  test('nothing is called unhealthy when nothing really failed', () => {
    const verdict = renderHealth([unchecked], screen(160)).split('\n').at(-2)
    expect(verdict).toMatch(/^\? NOT CHECKED .* 2 of 3 monitors not checked /)
    expect(verdict).not.toContain('failed')
  })

  test('-v names the state of what was not checked', () => {
    const text = renderHealth([unchecked], screen(160, { detail: 'verbose' }))
    expect(text).toMatch(/http orders +not run +\? not checked +not checked: waited 8 s/)
  })

  test('the checks of the machine, which every type repeats, are shown once', () => {
    const text = renderHealth([measured, { ...measured, ServerType: 'App' }], screen(120))
    expect(text.match(/disk \/var/g)).toHaveLength(1)
    expect(text.split('\n').at(-2)).toContain('2 of 3 monitors failed')
  })

  test('with -v the checks of the machine stand once before those of the types, and its state once', () => {
    const server = { serverName: 'ops-1', usedCpuPercent: 20 }
    const run = measured.Run
    if (!run) throw new Error('the sample has no run')
    const entry = { ...measured, Run: { ...run, serverState: server } }
    const text = renderHealth([entry, { ...entry, ServerType: 'App' }], screen(120, { detail: 'verbose' }))
    expect(text.match(/disk \/var/g)).toHaveLength(1)
    expect(text.match(/round trip/g)).toHaveLength(2)
    expect(text.match(/Server ops-1/g)).toHaveLength(1)
    const one = renderHealth([entry], screen(120, { detail: 'verbose' }))
    expect(one.match(/disk \/var/g)).toHaveLength(1)
  })

  test('with -v every check is shown with its message', () => {
    const text = renderHealth([failing], screen(100, { detail: 'verbose' }))
    expect(text).toMatch(/MONITOR +CHECK +STATUS +MESSAGE/)
    expect(text).toMatch(/round trip +✓ ok +14 ms \(warn 1 s, fail 3 s\)/)
    expect(text).toMatch(/last full backup +✗ failed +53 h old \(fail 48 h\)/)
    expect(text).not.toContain('-v shows')
  })

  test('with -q the verdict stands alone', () => {
    expect(renderHealth([failing], screen(120, { detail: 'verdict' }))).toBe(
      '✗ UNHEALTHY  prod · https://svc.example.com · 1 of 2 monitors failed · Advanced · 1.28 s\n',
    )
  })

  test('words carry the meaning: nothing is lost without colour and without Unicode', () => {
    const text = renderHealth([broken, warning, healthy], screen(80, { unicode: false }))
    expect(text).toMatch(/^x UNHEALTHY/m)
    expect(text).toMatch(/^ {2}! Sql/m)
    expect(text).toMatch(/^ {2}\+ App/m)
    expect(text).not.toMatch(/[✓✗…]/)
    const all = renderHealth([broken], screen(80, { unicode: false, detail: 'verbose' }))
    expect(all).toMatch(/x failed/)
    expect(all).toMatch(/! warning/)
    expect(all).toMatch(/\+ ok/)
  })

  test('colour changes nothing but the colour, and every line ends without it', () => {
    for (const entries of Object.values(samples)) {
      const coloured = renderHealth(entries, screen(80, { colour: true }))
      expect(stripVTControlCharacters(coloured)).toBe(renderHealth(entries, screen(80)))
      for (const line of coloured.split('\n')) expect(ended(line)).toBe(true)
    }
    expect(renderHealth([failing], screen(80, { colour: true }))).toContain('\u001b[31m')
  })

  test('an age above 1 s is shown', () => {
    const verdict = (age: number | undefined) =>
      renderHealth([healthy], screen(120, { ages: [age] }))
        .split('\n')
        .at(-2)
    expect(verdict(4)).toMatch(/43 ms · age 4 s\b/)
    expect(verdict(90)).toMatch(/age 1\.5 min\b/)
    expect(verdict(1)).not.toContain('age')
    expect(verdict(undefined)).not.toContain('age')
  })

  test('a message is a sentence: no class of the fault follows it in brackets', () => {
    for (const columns of [40, 80, 120]) {
      expect(renderHealth([broken], screen(columns))).not.toMatch(/\((?:protocol|refused|timeout|internal|data)\)/)
    }
  })

  test('what a failure has to tell stands beneath it, what an ok has does not', () => {
    const withDetails = (Status: 'Success' | 'Failure'): Entry => ({
      ...failing,
      Response: {
        Status,
        MonitorSummaries: [
          {
            MonitorName: 'm',
            Status,
            Results: [{ MonitoringName: 'c', Status, StatusMessage: 's', ErrorMessages: ['the detail'] }],
          },
        ],
      },
    })
    expect(renderHealth([withDetails('Failure')], screen(80))).toContain('the detail')
    expect(renderHealth([withDetails('Success')], screen(80))).not.toContain('the detail')
  })

  test('no message is lost at a width that has room for a word', () => {
    const words = 'passive address or firewall range, not the account'.split(' ')
    for (const columns of [40, 60, 80, 120]) {
      const output = renderHealth([broken], screen(columns)).replaceAll(/\s+/g, ' ')
      for (const word of words) expect(output).toContain(word)
    }
    // A list keeps a message together, where a table has other cells between its lines.
    const listed = renderHealth([broken], screen(40)).replaceAll(/\s/g, '')
    expect(listed).toContain('サービスが応答しません:503が返されました(予想:200)')
  })

  test('the verdict counts the monitors of all entries, and names what could not be checked', () => {
    const last = (entries: readonly Entry[]) => renderHealth(entries, screen(200)).trimEnd().split('\n').at(-1)
    expect(last([healthy, failing, warning])).toMatch(
      /^✗ UNHEALTHY {2}prod · \S+ · 1 of 5 monitors failed · 1 warning · Standard · Advanced · 1\.28 s/,
    )
    expect(last([healthy, unreachable])).toMatch(/^✗ NOT CHECKED .* 1 monitor · Mongo not checked · Standard/)
    expect(last([healthy, warning])).toMatch(/^✓ HEALTHY, 1 warning {2}prod · /)
    expect(last([healthy, healthy])).toMatch(/^✓ HEALTHY .* 2 monitors/)
    expect(last([])).toBe('✗ NOT CHECKED')
  })

  test('an error names the problem and the next step', () => {
    const text = renderHealth([unreachable], screen(80))
    expect(text).toMatch(/^ {2}✗ Mongo +10\.9\.9\.9:8443 refused the connection in 3 ms$/m)
    expect(text).toMatch(/^ +Elsewhere: svc health --server URL$/m)
  })

  test('K6 a server cannot steer the terminal', () => {
    const text = renderHealth([hostile], screen(80, { colour: true }))
    expect(stripVTControlCharacters(text)).not.toMatch(/[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
    expect(text).not.toMatch(/owned|hunter2/)
    expect(text).toContain('pwned')
  })

  test('K6 a flood is cut at the terminal only, and in a moment', () => {
    const long = '長い message '.repeat(1_000)
    const flood: Entry = {
      ...failing,
      Response: {
        Status: 'Failure',
        StatusMessage: long,
        CorrelationId: long,
        ServerState: { ServerName: long },
        MonitorSummaries: [
          {
            MonitorName: long,
            Status: 'Failure',
            Results: Array.from({ length: 20 }, () => ({
              MonitoringName: long,
              Status: 'Failure' as const,
              StatusMessage: long,
              ErrorMessages: [long, ...Array.from({ length: 500 }, (_, n) => `line ${n}`)],
            })),
          },
        ],
      },
    }
    const spent = measureWork()
    const text = renderHealth([flood], screen(80))
    expect(spent()).toBeLessThan(5_000)
    expect(text.split('\n').length).toBeLessThan(2_500)
    expect(text).toContain('more (--output json)')
    expect(tsv.render([flood]).length).toBeGreaterThan(20 * long.length * 2)
  })

  test('no line is wider than the terminal, whatever a server sends and however narrow it is', () => {
    const text = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.string({ unit: 'grapheme', maxLength: 30 }),
      fc.constantFrom('管理画面の応答がありません', 'a-very-long-name/without.any:space_in,it;at-all-at-all'),
    )
    const status = fc.constantFrom('Success' as const, 'Failure' as const)
    const result = fc.record({
      MonitoringName: text,
      Status: status,
      StatusMessage: text,
      ErrorMessages: fc.array(text, { maxLength: 2 }),
    })
    const summary = fc.record({ MonitorName: text, Status: status, Results: fc.array(result, { maxLength: 3 }) })
    const entry = fc.record({
      Target: text,
      ServerType: fc.constantFrom('Sql', 'Identity'),
      ExecutionMode: fc.constantFrom('Basic', 'Advanced'),
      ExitCode: fc.constant(3),
      Response: fc.record({
        Status: status,
        StatusMessage: text,
        CorrelationId: text,
        ServerState: fc.record({ ServerName: text, TotalRamInMb: fc.nat(), AvailableRamInMb: fc.nat() }),
        MonitorSummaries: fc.array(summary, { maxLength: 3 }),
      }),
    })
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 2 }), fc.integer({ min: 24, max: 140 }), (entries, columns) => {
        for (const line of renderHealth(entries, screen(columns)).split('\n')) {
          expect(width(line), JSON.stringify(line)).toBeLessThanOrEqual(columns)
        }
      }),
      { numRuns: runsOf(200) },
    )
  })
})

describe('the format tsv', () => {
  test('gets a line of column names unless it is left out, and one whole record a line between tabs', () => {
    const entries = [failing, unreachable, hostile, foreign]
    const [header = '', ...lines] = tsv.render(entries).split('\n').slice(0, -1)
    expect(header.split('\t').slice(0, 4)).toEqual(['Target', 'ServerType', 'ExecutionMode', 'MonitorName'])
    expect(tsv.render(entries, { header: false })).toBe(lines.map((line) => `${line}\n`).join(''))
    expect(lines).toHaveLength(7)
    expect(lines.map((line) => line.split('\t').length)).toEqual(lines.map(() => 19))
    expect(lines[1]).toBe(
      'prod · https://svc.example.com\tSql\tAdvanced\tsqlserver orders\tlast full backup\tFailure\t53 h old (fail 48 h)\tstarted 2026-02-26 22:00, job "nightly full"\\nfault: threshold\tfail\t\t\t\t\t\t\t\t\tthreshold\t',
    )
  })

  test('a skipped check and one without a verdict have their own words', () => {
    const text = renderHealth([broken], screen(160, { detail: 'verbose' }))
    expect(text).toMatch(/not run +· skipped +not run: tcp 10\.1\.2\.3:5432 failed/)
    const [run] = [measured.Run]
    if (!run) throw new Error('the sample has no run')
    const message = 'not checked: the figure is not reported'
    const results = [{ check: 'cache', status: 'failed', fault: 'data', message, notChecked: 'missing' }] as const
    const unread = { ...measured, Run: { ...run, monitors: [{ ...run.monitors?.[0], results }] } } as Entry
    expect(renderHealth([unread], screen(120, { detail: 'verbose' }))).toMatch(
      /cache +\? not checked +not checked: the/,
    )
    for (const columns of [24, 40, 60]) {
      for (const line of renderHealth([unread], screen(columns, { detail: 'verbose' })).split('\n'))
        expect(width(line)).toBeLessThanOrEqual(columns)
    }
  })

  test('the correlation id is shown for a run at a server only, whose log has it', () => {
    expect(renderHealth([failing], screen(120))).toContain('correlation 7f3c2a9e')
    const here = [false, true].map((verbose) =>
      renderHealth([failing], screen(120, { atServer: false, detail: verbose ? 'verbose' : 'usual' })),
    )
    for (const text of here) expect(text).not.toContain('correlation')
  })
})

/** True when whatever was switched on in a line is switched off in it. */
function ended(line: string): boolean {
  const codes = [...line.matchAll(/\u001b\[(\d+)m/g)].map(([, code]) => Number(code))
  return (
    codes.filter((code) => code >= 30 || code <= 9).filter((code) => code < 20).length +
      codes.filter((code) => code >= 30 && code < 38).length ===
    codes.filter((code) => code === 22 || code === 39).length
  )
}

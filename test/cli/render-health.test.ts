import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type HealthScreen, renderHealth } from '../../src/cli/render/health.ts'
import { width } from '../../src/cli/render/width.ts'
import { type Entry, renderPlain } from '../../src/core/reports/index.ts'
import { broken, failing, foreign, healthy, hostile, samples, unreachable, warning } from '../reports/samples.ts'
import { processorMs } from '../support/processor-time.ts'

const screen = (columns: number, more: Partial<HealthScreen> = {}): HealthScreen => ({
  width: columns,
  colour: false,
  unicode: true,
  ...more,
})

describe('the health screen', () => {
  const cases = Object.keys(samples).flatMap((sample) => [40, 80, 120].map((columns) => ({ sample, columns })))

  test.each(cases)('$sample at $columns columns equals the reviewed screen', async ({ sample, columns }) => {
    const text = renderHealth(samples[sample] ?? [], screen(columns))
    await expect(text).toMatchFileSnapshot(`../golden/screen/${sample}.${columns}.txt`)
  })

  test('has headline and cause at the left, mode, duration and target at the right', () => {
    const [title, cause, blank, head] = renderHealth([failing], screen(100)).split('\n')
    expect(title).toMatch(/^✗ Sql is unhealthy: 1 of 2 monitors failed {3,}Advanced · 1\.28 s$/)
    expect(cause).toMatch(/^ {2}sqlserver orders last full backup: 53 h old, limit 48 h {3,}prod · https:\S+$/)
    expect(title?.indexOf('Advanced')).toBe(cause?.indexOf('prod'))
    expect(blank).toBe('')
    expect(head).toMatch(/^ {2}MONITOR +CHECK +STATUS +MESSAGE$/)
  })

  test('conveys everything in words, without colour and without Unicode', () => {
    const text = renderHealth([broken, warning, healthy], screen(80, { unicode: false }))
    expect(text).toMatch(/x FAIL/)
    expect(text).toMatch(/! warn/)
    expect(text).toMatch(/\+ ok/)
    expect(text).not.toMatch(/[✓✗…]/)
  })

  test('differs only by colour with colour, and each line ends without it', () => {
    for (const entries of Object.values(samples)) {
      const coloured = renderHealth(entries, screen(80, { colour: true }))
      expect(stripVTControlCharacters(coloured)).toBe(renderHealth(entries, screen(80)))
      for (const line of coloured.split('\n')) expect(ended(line)).toBe(true)
    }
    expect(renderHealth([failing], screen(80, { colour: true }))).toContain('\u001b[31m')
  })

  test('shows an age above 1 s', () => {
    const title = (age: number | undefined) => renderHealth([healthy], screen(80, { ages: [age] })).split('\n')[0]
    expect(title(4)).toMatch(/43 ms · age 4 s$/)
    expect(title(90)).toMatch(/age 1\.5 min$/)
    expect(title(1)).not.toContain('age')
    expect(title(undefined)).not.toContain('age')
  })

  test('shows the fault class where the message does not', () => {
    const text = renderHealth([broken], screen(120))
    expect(text).toContain('(protocol)')
    expect(text).not.toContain('(refused)')
    expect(text).not.toContain('(timeout)')
    expect(text).not.toContain('fault:')
  })

  test('shows details beneath a failure and none beneath a result that is ok', () => {
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

  test('loses no message at a width with room for a word', () => {
    const words = 'passive address or firewall range, not the account'.split(' ')
    for (const columns of [40, 60, 80, 120]) {
      const output = renderHealth([broken], screen(columns)).replaceAll(/\s+/g, ' ')
      for (const word of words) expect(output).toContain(word)
    }
    // A list keeps a message together, where a table has other cells between its lines.
    const listed = renderHealth([broken], screen(40)).replaceAll(/\s/g, '')
    expect(listed).toContain('サービスが応答しません:503が返されました(予想:200)(protocol)')
  })

  test('ends several entries with one line that counts and names them', () => {
    const last = (entries: readonly Entry[]) => renderHealth(entries, screen(200)).trimEnd().split('\n').at(-1)
    expect(last([healthy, failing, warning])).toBe(
      '✗ 3 checked: 1 healthy, 1 healthy with warnings (Sql), 1 unhealthy (Sql)',
    )
    expect(last([healthy, unreachable])).toBe(
      '✗ 2 checked: 1 healthy, 1 not checked (Mongo at lab · https://lab.example.com:8443)',
    )
    expect(last([healthy, warning])).toMatch(/^! 2 checked/)
    expect(last([healthy, healthy])).toBe('✓ 2 checked: 2 healthy')
    expect(last([])).toBe('✗ nothing checked')
  })

  test('repeats the headline below an answer that is longer than the screen', () => {
    const many = Array.from({ length: 60 }, (_, n) => ({
      MonitorName: `tcp host-${n}`,
      Status: 'Success' as const,
      Results: [{ MonitoringName: 'connect', Status: 'Success' as const, StatusMessage: '1 ms' }],
    }))
    const text = renderHealth([{ ...healthy, Response: { Status: 'Success', MonitorSummaries: many } }], screen(80))
    expect(text.match(/App is healthy: 60 monitors passed/g)).toHaveLength(2)
  })

  test('shows an error with its message and the next step', () => {
    const text = renderHealth([unreachable], screen(80))
    expect(text).toMatch(/^✗ Mongo could not be checked/)
    expect(text).toContain('10.9.9.9:8443 refused the connection in 3 ms')
    expect(text.trimEnd().split('\n').at(-1)).toBe('  Elsewhere: svc health --server URL')
  })

  test('K6 keeps a server from controlling the terminal', () => {
    const text = renderHealth([hostile], screen(80, { colour: true }))
    expect(stripVTControlCharacters(text)).not.toMatch(/[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
    expect(text).not.toMatch(/owned|hunter2/)
    expect(text).toContain('pwned')
  })

  test('K6 truncates a flood at the terminal only, and in a moment', () => {
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
    const started = processorMs()
    const text = renderHealth([flood], screen(80))
    expect(processorMs() - started).toBeLessThan(5_000)
    expect(text.split('\n').length).toBeLessThan(2_500)
    expect(text).toContain('more (--output json)')
    expect(renderPlain([flood]).length).toBeGreaterThan(20 * long.length * 2)
  })

  test('prints more results than a call accepts arguments', () => {
    const Results = Array.from({ length: 130_000 }, (_, n) => ({
      MonitoringName: `c${n}`,
      Status: 'Success' as const,
      StatusMessage: 'ok',
    }))
    const entry: Entry = {
      ...healthy,
      Response: { Status: 'Success', MonitorSummaries: [{ MonitorName: 'm', Status: 'Success', Results }] },
    }
    expect(renderHealth([entry], screen(80)).split('\n').length).toBeGreaterThan(130_000)
  })

  test('has no line wider than the terminal, whatever a server sends and however narrow it is', () => {
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
      { numRuns: 200 },
    )
  })
})

describe('a pipe', () => {
  test('gets one tab-separated record a line, without a header', () => {
    const lines = renderPlain([failing, unreachable, hostile, foreign]).split('\n').slice(0, -1)
    expect(lines).toHaveLength(7)
    expect(lines.map((line) => line.split('\t').length)).toEqual(lines.map(() => 18))
    expect(lines[1]).toBe(
      'prod · https://svc.example.com\tSql\tAdvanced\tsqlserver orders\tlast full backup\tFailure\t53 h old, limit 48 h\tstarted 2026-02-26 22:00, job "nightly full"\\nfault: threshold\tfail\t\t\t\t\t\t\t\t\tthreshold',
    )
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

import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Entry, type ReportName, records, reports } from '../../../src/core/checks/reports/index.ts'
import type { RunDocument } from '../../../src/core/protocol/index.ts'
import { codePoints } from '../../support/suite/code-points.ts'
import { runsOf } from '../../support/suite/runs.ts'
import { nagiosLine, prometheusSeries, workflowCommand, xmlElements } from './grammar.ts'

/** Anything, and what means something to a terminal, a parser, a runner or a spreadsheet. */
const piece = fc.oneof(
  fc.string({ unit: codePoints, maxLength: 12 }),
  fc.string({ maxLength: 12 }),
  fc.constantFrom('::', '##[error]', '%0A', '\r\n', '\n', '\t', '|', '"', "'", '=', '\\', '<', ']]>', '&', ':', ','),
  fc.constantFrom(
    '\u001b[31m',
    '\u001b]0;',
    '\u009b',
    '\u202e',
    '\u2028',
    'warning: ',
    'fault: ',
    '://a:b@',
    '#',
    '\ud83d',
  ),
)
const text = fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join(''))
const status = fc.constantFrom('Success' as const, 'Failure' as const)
const result = fc.record(
  { MonitoringName: text, Status: status, StatusMessage: text, ErrorMessages: fc.array(text, { maxLength: 3 }) },
  { requiredKeys: [] },
)
const summary = fc.record(
  { MonitorName: text, Status: status, Results: fc.array(result, { maxLength: 4 }), ErrorMessages: fc.array(text) },
  { requiredKeys: [] },
)
const number = fc.oneof(fc.double(), fc.integer({ min: -5, max: 100_000 }))
const response = fc.record(
  {
    Status: status,
    StatusMessage: text,
    CorrelationId: text,
    FailedMonitorCount: fc.integer(),
    MonitorSummaries: fc.array(summary, { maxLength: 4 }),
    ExecutionMetrics: fc.record({ EndDateTime: fc.date({ noInvalidDate: false }), Duration: number }),
    ServerState: fc.record({
      ServerName: text,
      TotalRamInMb: number,
      AvailableRamInMb: number,
      UsedCpuPercent: number,
    }),
  },
  { requiredKeys: [] },
)
const unset = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(of, { nil: undefined })
// JSON has one zero.
const figure = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer()).map((value) => value + 0)
const measurement = fc.record({
  value: figure,
  unit: fc.oneof(fc.constantFrom('milliseconds', 'bytes', 'percent', 'ratio', 'count', 'days', 'constructor'), text),
  warn: unset(figure),
  limit: unset(figure),
  bound: unset(fc.constantFrom('atMost' as const, 'atLeast' as const)),
})
const runStatus = fc.constantFrom('ok' as const, 'warning' as const, 'failed' as const)
const runResult = fc.record({
  check: text,
  status: runStatus,
  fault: unset(text),
  message: unset(text),
  details: unset(fc.array(text, { maxLength: 2 })),
  subject: unset(text),
  address: unset(text),
  measurement: unset(measurement),
})
const runMonitor = fc.record({
  name: unset(text),
  kind: text,
  status: runStatus,
  durationMs: unset(number),
  results: fc.array(runResult, { maxLength: 4 }),
})
const run: fc.Arbitrary<RunDocument> = fc.record({
  version: fc.constant(1),
  type: fc.constant('Sql' as const),
  mode: fc.constant('Basic' as const),
  view: fc.constantFrom('full' as const, 'brief' as const),
  status: runStatus,
  message: text,
  correlationId: unset(text),
  node: unset(text),
  startedAt: fc.date(),
  endedAt: fc.date(),
  durationMs: number,
  serverState: unset(fc.record({ serverName: text, usedCpuPercent: number })),
  monitors: fc.array(runMonitor, { maxLength: 4 }),
})
const error = fc.record({ code: text, exitCode: fc.nat(12), message: text, hints: fc.array(text, { maxLength: 2 }) })
const place = { Target: text, ServerType: text, ExecutionMode: text, ExitCode: fc.nat(12) }
const entries: fc.Arbitrary<Entry[]> = fc.array(
  fc.oneof(
    fc.record({ ...place, Response: response }),
    fc.record({ ...place, Run: run }),
    fc.record({ ...place, Error: error }),
  ),
  { maxLength: 3 },
)

const columns = [
  'Target',
  'ServerType',
  'ExecutionMode',
  'MonitorName',
  'MonitoringName',
  'Status',
  'StatusMessage',
  'ErrorMessages',
  'Level',
  'Value',
  'Unit',
  'Warn',
  'Limit',
  'Bound',
  'Item',
  'DurationMs',
  'Host',
  'Fault',
  'NotChecked',
] as const

const judges: Record<ReportName, (output: string, entries: readonly Entry[]) => void> = {
  nagios: (output) => {
    const [first = '', ...rest] = output.split('\n')
    expect(nagiosLine(first).text.length).toBeLessThanOrEqual(2_000)
    expect(rest.join('')).not.toContain('|')
  },
  prtg: (output) => void JSON.parse(output),
  prometheus: (output) => void prometheusSeries(output),
  junit: (output) => void xmlElements(output),
  github: (output) => {
    for (const line of output.split('\n').slice(0, -1)) {
      expect(workflowCommand(line)?.command).toMatch(/^(error|warning|notice)$/)
    }
  },
  'health+json': (output) => {
    expect(JSON.parse(output)).toMatchObject({ status: expect.stringMatching(/^(pass|warn|fail)$/) })
  },
  csv: (output, input) => {
    const [header, ...rows] = parse(output, { record_delimiter: '\r\n' }) as string[][]
    expect(header).toEqual(columns)
    const safe = (cell: string): string => (/^[=+\-@＝＋－＠]/.test(cell) ? `'${cell}` : cell)
    expect(rows).toEqual(
      records(input).map((record) =>
        columns.map((column) => {
          const cell = record[column] ?? ''
          return typeof cell === 'number' ? String(cell) : safe(typeof cell === 'string' ? cell : cell.join('\n'))
        }),
      ),
    )
  },
  tsv: (output, input) => {
    const lines = output.split('\n').slice(1, -1)
    expect(lines).toHaveLength(records(input).length)
    expect(lines.filter((line) => line.split('\t').length !== columns.length)).toEqual([])
  },
  ndjson: (output, input) => {
    const lines = output.split('\n').slice(0, -1)
    expect(lines.map((line) => JSON.parse(line))).toEqual(records(input))
  },
}

test.each(Object.keys(judges) as ReportName[])('K6 %s stays well-formed, whatever a server sends', async (name) => {
  const { default: report } = await reports[name].load()
  fc.assert(
    fc.property(entries, (input) => {
      const output = report.render(input)
      judges[name](output, input)
      expect(output).not.toMatch(/[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe]/)
      expect(output.isWellFormed()).toBe(true)
    }),
    { numRuns: runsOf(300) },
  )
})

import { describe, expect, test } from 'vitest'
import { renderHealth } from '../../../src/cli/health/screen.ts'
import { renderError } from '../../../src/cli/render/errors.ts'
import { pairs } from '../../../src/cli/render/table.ts'
import { Fault } from '../../../src/core/base/errors.ts'
import { sanitizeText } from '../../../src/core/base/sanitize.ts'
import { type Entry, type ReportName, reports } from '../../../src/core/checks/reports/index.ts'
import type { HealthCheckResponse } from '../../../src/core/protocol/index.ts'
import { describeHostile, excessiveGrowth, type Hostile, ofSize, sizesUpTo } from '../../support/hostile/growth.ts'
import { hostileUnits } from '../../support/hostile/texts.ts'

const entryOf = (response: HealthCheckResponse): Entry => ({
  Target: 'https://svc.test',
  ServerType: 'App',
  ExecutionMode: 'Standard',
  ExitCode: 3,
  Response: response,
})

/** The answer of a foreign server: each place for text in it has a part of `text`. */
function saying(text: string): Entry {
  const part = text.slice(0, Math.ceil(text.length / 6))
  return entryOf({
    Status: 'Failure',
    StatusMessage: part,
    CorrelationId: part,
    MonitorSummaries: [
      {
        MonitorName: part,
        Status: 'Failure',
        Results: [{ MonitoringName: part, Status: 'Failure', StatusMessage: part, ErrorMessages: [part] }],
      },
    ],
  })
}

/** A long answer of many monitors with one name and what they say. */
const many = (size: number): Entry =>
  entryOf({
    Status: 'Failure',
    MonitorSummaries: Array.from({ length: Math.ceil(size / 100) }, () => ({
      MonitorName: 'the same',
      Status: 'Failure' as const,
      Results: [{ MonitoringName: 'check', Status: 'Failure' as const, StatusMessage: 'failed', ErrorMessages: ['a'] }],
      ErrorMessages: ['check: failed', 'b'],
    })),
  })

const screen = { width: 80, colour: true, unicode: true, atServer: true }
const renderers: Record<string, (entry: Entry) => unknown> = {
  'a terminal': (entry) => renderHealth([entry], screen),
  'a log': (entry) => renderHealth([entry], { ...screen, width: 120, detail: 'reasons' }),
}
for (const name of Object.keys(reports) as ReportName[]) {
  const { default: report } = await reports[name].load()
  renderers[name] = (entry) => report.render([entry])
}

const texts: readonly Hostile[] = hostileUnits.map((unit) => ({ lead: '', unit, end: '' }))

const half = (text: string): string => text.slice(0, Math.ceil(text.length / 2))

async function problemsOf(work: (text: string) => unknown): Promise<readonly string[]> {
  const problems: string[] = []
  for (const hostile of texts) {
    const problem = await excessiveGrowth(work, (size) => ofSize(hostile, size), sizesUpTo(1e5), { allocates: true })
    if (problem !== undefined) problems.push(`${problem} of ${describeHostile(hostile)}`)
  }
  return problems
}

describe('the CPU time of showing text from a server grows in proportion to the text', () => {
  test.each(Object.entries(renderers))(
    '%s',
    async (_, render) => {
      expect(await problemsOf((text) => render(saying(text)))).toEqual([])
    },
    120_000,
  )
  test.each(Object.entries(renderers))(
    '%s of many monitors',
    async (_, render) => {
      const work = (size: string): unknown => render(many(Number(size)))
      expect(await excessiveGrowth(work, String, [1e4, 1e5, 1e6], { allocates: true })).toBeUndefined()
    },
    120_000,
  )
  test('an error on a terminal', async () => {
    const work = (text: string): string =>
      renderError.text(new Fault('ServerError', half(text), { hints: [half(text)] }), { colour: true, width: 80 })
    expect(await problemsOf(work)).toEqual([])
  }, 120_000)
  test('names and values on a terminal', async () => {
    const screen = { isTTY: true, columns: 80, colour: false, unicode: true }
    expect(await problemsOf((text) => pairs([['roles', text]], screen))).toEqual([])
  }, 120_000)
  test('text that is sanitized', async () => {
    expect(await problemsOf(sanitizeText)).toEqual([])
  }, 120_000)
})

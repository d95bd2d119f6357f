import { expect, test } from 'vitest'
import type { HealthCheckResponse } from '../../src/core/protocol/index.ts'
import { SharedText } from '../../src/core/server/answer.ts'
import { HealthJson } from '../../src/core/server/health-json.ts'

const summaries = [{ MonitorName: 'postgres orders', Status: 'Success' as const, Results: [], ErrorMessages: [] }]
const response: HealthCheckResponse = {
  Status: 'Success',
  StatusMessage: 'Sql is healthy',
  CorrelationId: '1',
  FailedMonitorCount: 0,
  MonitorSummaries: summaries,
}

test('S11 the text of one answer is never reused for another, even with the same summaries', () => {
  const json = new HealthJson()
  const others: readonly HealthCheckResponse[] = [
    response,
    { ...response, StatusMessage: 'another' },
    { ...response, ServerState: { ServerName: 'db1' } },
    { ...response, MonitorSummaries: [] },
    response,
  ]
  for (const other of others) {
    expect(JSON.parse(String(json.write(other, false, 'PascalCase')))).toEqual(
      JSON.parse(String(new HealthJson().write(other, false, 'PascalCase'))),
    )
  }
})

test('each answer that shares its members has its own correlation id, style and ResponseStatus', () => {
  const json = new HealthJson()
  const textOf = (...args: Parameters<typeof json.write>): string => String(json.write(...args))
  const text = textOf(response, false, 'PascalCase')
  expect(textOf({ ...response, CorrelationId: '"2"' }, false, 'PascalCase')).toBe(
    text.replace('"CorrelationId":"1"', '"CorrelationId":"\\"2\\""'),
  )
  expect(textOf(response, false, 'camelCase')).toContain('"correlationId":"1"')
  expect(textOf(response, true, 'PascalCase')).toContain('"ResponseStatus":')
  expect(textOf(response, false, 'PascalCase')).toBe(text)
})

test('a long text is the same in parts, whoever shares it', () => {
  const long = { ...response, MonitorSummaries: [{ ...summaries[0], MonitorName: `é${'x'.repeat(20_000)}` }] }
  const json = new HealthJson()
  const answers = [
    json.write(long, false, 'PascalCase'),
    json.write({ ...long, CorrelationId: '2' }, false, 'PascalCase'),
  ]
  expect(answers).toEqual([expect.any(SharedText), expect.any(SharedText)])
  expect(answers.map((one) => JSON.parse(String(one)))).toEqual([long, { ...long, CorrelationId: '2' }])
  expect(answers.map((one) => one.length)).toEqual(answers.map((one) => Buffer.byteLength(String(one))))
})

import { expect, test } from 'vitest'
import type { HealthCheckResponse } from '../../src/core/protocol/index.ts'
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
    expect(JSON.parse(json.write(other, false, 'PascalCase'))).toEqual(
      JSON.parse(new HealthJson().write(other, false, 'PascalCase')),
    )
  }
})

test('each answer that shares its members has its own correlation id, style and ResponseStatus', () => {
  const json = new HealthJson()
  const text = json.write(response, false, 'PascalCase')
  expect(json.write({ ...response, CorrelationId: '"2"' }, false, 'PascalCase')).toBe(
    text.replace('"CorrelationId":"1"', '"CorrelationId":"\\"2\\""'),
  )
  expect(json.write(response, false, 'camelCase')).toContain('"correlationId":"1"')
  expect(json.write(response, true, 'PascalCase')).toContain('"ResponseStatus":')
  expect(json.write(response, false, 'PascalCase')).toBe(text)
})

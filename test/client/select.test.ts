import { expect, test } from 'vitest'
import { type HealthCheckResponse, type MonitorSummary, select } from '../../src/core/protocol/index.ts'
import { measureWork } from '../support/suite/processor-time.ts'
import { faultOf } from './asking.ts'

const check = (name: string, ok = true) => ({
  MonitoringName: name,
  Status: ok ? ('Success' as const) : ('Failure' as const),
  StatusMessage: ok ? 'ok' : `${name} is bad`,
  ErrorMessages: [],
})
const monitor = (name: string, ...results: ReturnType<typeof check>[]): MonitorSummary => {
  const failed = results.filter((result) => result.Status === 'Failure')
  return {
    MonitorName: name,
    Status: failed.length > 0 ? 'Failure' : 'Success',
    Results: results,
    ErrorMessages: failed.map((result) => `${result.MonitoringName}: ${result.StatusMessage}`),
  }
}
const answer: HealthCheckResponse = {
  Status: 'Failure',
  StatusMessage: 'Sql is unhealthy: 2 of 4 monitors failed',
  CorrelationId: 'c1',
  FailedMonitorCount: 2,
  MonitorSummaries: [
    monitor('postgres orders', check('connect'), check('round trip', false), check('replication', false)),
    monitor('postgres billing', check('connect'), check('round trip')),
    monitor('host', check('disk D:\\Data'), check('memory')),
    monitor('tls api', check('certificate', false)),
  ],
}
const all = ['postgres orders', 'postgres billing', 'host', 'tls api']
const pick = (only: string[], skip: string[] = []) => select(answer, { only, skip })
const names = (response: HealthCheckResponse) =>
  (response.MonitorSummaries ?? []).flatMap((summary) =>
    (summary.Results ?? []).map((result) => `${summary.MonitorName}/${result.MonitoringName}`),
  )
const monitors = (response: HealthCheckResponse) => response.MonitorSummaries?.map((summary) => summary.MonitorName)

test.each([
  ['host', ['host']],
  ['HOST', ['host']],
  ['orders', ['postgres orders']],
  ['postgres', ['postgres orders', 'postgres billing']],
  ['post*', ['postgres orders', 'postgres billing']],
  ['*gres', ['postgres orders', 'postgres billing']],
  ['*', all],
  ['**', all],
  ['p*s*rs', ['postgres orders']],
  ['connect', ['postgres orders', 'postgres billing']],
  ['*trip', ['postgres orders', 'postgres billing']],
  ['disk*', ['host']],
  ['postgres orders/round trip', ['postgres orders']],
  ['*/memory', ['host']],
])('the pattern %j chooses monitors %j', (pattern, expected) => {
  expect(monitors(pick([pattern]))).toEqual(expected)
})

test('a pattern that matches a monitor selects all its checks, one that matches a check selects that check', () => {
  expect(names(pick(['billing']))).toEqual(['postgres billing/connect', 'postgres billing/round trip'])
  expect(names(pick(['round trip']))).toEqual(['postgres orders/round trip', 'postgres billing/round trip'])
  expect(names(pick(['memory', 'tls']))).toEqual(['host/memory', 'tls api/certificate'])
  expect(names(pick(['postgres'], ['replication', 'postgres billing/connect']))).toEqual([
    'postgres orders/connect',
    'postgres orders/round trip',
    'postgres billing/round trip',
  ])
  expect(monitors(pick([], ['postgres', 'tls']))).toEqual(['host'])
})

test('Status, FailedMonitorCount, StatusMessage and messages describe the remaining monitors', () => {
  const good = pick(['host', 'billing'])
  expect(good).toMatchObject({ Status: 'Success', FailedMonitorCount: 0, CorrelationId: 'c1' })
  expect(good.StatusMessage).toBe('healthy: 2 of 4 monitors selected, all passed')
  const bad = pick(['round trip'])
  expect(bad).toMatchObject({ Status: 'Failure', FailedMonitorCount: 1 })
  expect(bad.StatusMessage).toBe(
    'unhealthy: 1 of 2 selected monitors failed: postgres orders round trip: round trip is bad',
  )
  expect(bad.MonitorSummaries?.[0]?.ErrorMessages).toEqual(['round trip: round trip is bad'])
  const connect = pick(['connect'])
  expect(connect).toMatchObject({ Status: 'Success', FailedMonitorCount: 0 })
  expect(connect.MonitorSummaries?.map((summary) => [summary.Status, summary.ErrorMessages])).toEqual([
    ['Success', []],
    ['Success', []],
  ])
})

test('an answer that loses nothing is returned unchanged', () => {
  expect(pick(['*'])).toBe(answer)
  expect(pick([], [])).toBe(answer)
  expect(pick([], ['nothing of the kind'])).toBe(answer)
  const bare: HealthCheckResponse = { Status: 'Success' }
  expect(select(bare, { only: [], skip: ['x'] })).toBe(bare)
})

test('a failure that belongs to no check stays a failure', () => {
  const own: MonitorSummary = { ...monitor('mongo', check('ping'), check('lag')), Status: 'Failure' }
  const response = select(
    { ...answer, MonitorSummaries: [own, monitor('host', check('memory'))] },
    { only: ['ping'], skip: [] },
  )
  expect(response).toMatchObject({ Status: 'Failure', FailedMonitorCount: 1 })
  const unclaimed = { ...answer, MonitorSummaries: [monitor('host', check('memory')), monitor('tls', check('chain'))] }
  const selection = select(unclaimed, { only: ['tls'], skip: [] })
  expect([selection.Status, selection.StatusMessage]).toEqual(['Failure', answer.StatusMessage])
  const unreported: MonitorSummary = { MonitorName: 'x', Results: [check('a'), { MonitoringName: 'b' }] }
  expect(select({ ...answer, MonitorSummaries: [unreported] }, { only: ['b'], skip: [] }).Status).toBe('Failure')
})

test.each([
  [['nope'], [], '--only "nope" matches no monitor and no check'],
  [['nope', 'neither'], ['x'], '--only "nope", "neither" and --skip "x" matches no monitor and no check'],
  [[''], [], '--only "" matches no monitor and no check'],
  [['host'], ['host'], '--only "host" and --skip "host" leave nothing to check'],
  [[], ['*'], '--skip "*" leaves nothing to check'],
  [[], ['host', 'postgres', 'tls'], '--skip "host", "postgres", "tls" leaves nothing to check'],
])('only %j and skip %j leave nothing: exit 2 with the available names', async (only, skip, message) => {
  const fault = await faultOf(() => pick(only, skip))
  expect([fault.fault, fault.exitCode]).toEqual(['Usage', 2])
  expect(fault.message).toBe(message)
  expect(fault.details.hints).toContain('postgres orders: connect, round trip, replication')
  expect(fault.details.hints).toContain('host: disk D:\\Data, memory')
})

test('selection from an answer that names no monitors fails', async () => {
  const fault = await faultOf(() => select({ Status: 'Success' }, { only: ['x'], skip: [] }))
  expect(fault.details.hints?.join()).toContain('names no monitors')
})

test('a message does not list a thousand monitors, and a pattern of asterisks takes no time', async () => {
  const many = Array.from({ length: 1_000 }, (_, at) => monitor(`m${at} ${'a'.repeat(200)}`, check('x')))
  const spent = measureWork()
  const fault = await faultOf(() =>
    select({ ...answer, MonitorSummaries: many }, { only: [`${'*a'.repeat(60)}*b`], skip: [] }),
  )
  expect(spent()).toBeLessThan(1_000)
  expect(fault.details.hints?.length).toBe(42)
  expect(fault.details.hints?.[40]).toBe('and 960 more')
})

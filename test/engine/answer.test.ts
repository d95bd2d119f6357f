import { describe, expect, test } from 'vitest'
import {
  type AnswerOptions,
  answer,
  atLeast,
  atMost,
  type MonitorReport,
  type Result,
  type Run,
} from '../../src/core/engine/index.ts'

const report = (name: string, results: readonly Result[], more: Partial<MonitorReport> = {}): MonitorReport => ({
  name,
  kind: name.split(' ')[0] ?? name,
  host: false,
  durationMs: 1,
  attempts: 1,
  results,
  ...more,
})
const run = (...monitors: readonly MonitorReport[]): Run => ({
  id: 'r',
  mode: 'Basic',
  startedAt: new Date(1_000),
  endedAt: new Date(900),
  durationMs: 12.5,
  monitors,
  serverState: { ServerName: 'db1', TotalRamInMb: 64, AvailableRamInMb: 32, UsedCpuPercent: 5 },
})
const shape = (of: Run, more: Partial<AnswerOptions> = {}) =>
  answer(of, { type: 'Sql', correlationId: 'c', flags: {}, view: 'full', ...more })

const ok: Result = { check: 'round trip', status: 'ok', message: '14 ms (limit 3 s)' }
const warned: Result = { check: 'connections', status: 'warning', message: '85 % (warns above 80 %)' }
const failed: Result = {
  check: 'round trip',
  status: 'failed',
  fault: 'refused',
  message: '127.0.0.1:5432 refused',
  details: ['ECONNREFUSED'],
}
const skew: Result = {
  check: 'version',
  status: 'failed',
  fault: 'data',
  message: '1.2 found, 1.3 expected',
  deployment: true,
}

describe('the answer made of a run', () => {
  test('H1 all pass: Success, and no failed monitor', () => {
    const made = shape(run(report('postgres orders', [ok])))
    expect(made).toMatchObject({
      Status: 'Success',
      FailedMonitorCount: 0,
      StatusMessage: 'Sql is healthy: 1 monitor passed',
    })
  })

  test('H1 FailedMonitorCount counts the summaries whose Status is Failure, not their results', () => {
    const made = shape(run(report('a', [failed, failed]), report('b', [ok]), report('c', [failed])))
    expect(made.FailedMonitorCount).toBe(2)
    expect(made.Status).toBe('Failure')
  })

  test('H10 the headline names root causes only', () => {
    const child: Result = {
      check: 'not run',
      status: 'failed',
      fault: 'dependency',
      message: 'not run: postgres orders failed',
    }
    const made = shape(run(report('postgres orders', [failed]), report('http shop', [child])))
    expect(made.StatusMessage).toBe(
      'Sql is unhealthy: 2 of 2 monitors failed: postgres orders round trip: 127.0.0.1:5432 refused',
    )
  })

  test('H11 a boundary belongs to ok, from above and from below', () => {
    const status = (evaluate: typeof atMost, value: number, threshold: { warn?: number; limit?: number }) =>
      evaluate({ check: 'use', value, unit: 'percent', threshold }).status
    const high = { warn: 80, limit: 95 }
    expect([80, 80.1, 95, 95.1].map((value) => status(atMost, value, high))).toEqual([
      'ok',
      'warning',
      'warning',
      'failed',
    ])
    const low = { warn: 20, limit: 5 }
    expect([20, 19.9, 5, 4.9].map((value) => status(atLeast, value, low))).toEqual([
      'ok',
      'warning',
      'warning',
      'failed',
    ])
    expect([status(atMost, 95, { limit: 95 }), status(atLeast, 5, { limit: 5 })]).toEqual(['ok', 'ok'])
  })

  test('H11 a warning is Success on the wire and says so', () => {
    const made = shape(run(report('postgres orders', [ok, warned])))
    expect(made.Status).toBe('Success')
    expect(made.MonitorSummaries?.[0]?.Results?.[1]).toMatchObject({
      Status: 'Success',
      StatusMessage: 'warning: 85 % (warns above 80 %)',
    })
    expect(made.StatusMessage).toBe('Sql is healthy, 1 warning: postgres orders connections: 85 % (warns above 80 %)')
  })

  test('a failed result keeps its details, then its fault class', () => {
    const made = shape(run(report('postgres orders', [failed])))
    expect(made.MonitorSummaries?.[0]?.Results?.[0]?.ErrorMessages).toEqual(['ECONNREFUSED', 'fault: refused'])
    expect(made.MonitorSummaries?.[0]?.ErrorMessages).toEqual(['round trip: 127.0.0.1:5432 refused'])
  })

  test('H4 server state only when it is asked for', () => {
    expect('ServerState' in shape(run(report('a', [ok])))).toBe(false)
    const asked = shape(run(report('a', [ok])), { flags: { IncludeServerStateInformation: true } })
    expect(asked.ServerState?.ServerName).toBe('db1')
  })

  test('H5 SuppressDeploymentErrors lets deployment failures pass, says what, and hides nothing else', () => {
    const one = run(report('deployment shop', [skew]))
    expect(shape(one).Status).toBe('Failure')
    const suppressed = shape(one, { flags: { SuppressDeploymentErrors: true } })
    expect(suppressed.Status).toBe('Success')
    expect(suppressed.MonitorSummaries?.[0]?.Results?.[0]?.StatusMessage).toBe(
      'suppressed (deployment): 1.2 found, 1.3 expected',
    )
    const both = run(report('deployment shop', [skew]), report('tcp a', [failed]))
    expect(shape(both, { flags: { SuppressDeploymentErrors: true } }).FailedMonitorCount).toBe(1)
  })

  test('S11 a stranger learns states and fault classes, and nothing of messages, names or hosts', () => {
    const made = shape(run(report('postgres orders', [failed, warned, ok])), {
      view: 'brief',
      flags: { IncludeServerStateInformation: true },
    })
    const said = JSON.stringify(made)
    for (const secret of ['127.0.0.1', 'orders', 'ECONNREFUSED', 'db1', '85 %', '14 ms'])
      expect(said).not.toContain(secret)
    expect(made.MonitorSummaries?.[0]?.Results?.map((result) => result.StatusMessage)).toEqual([
      'failed: refused',
      'warning: see the server',
      'ok',
    ])
    expect(made.MonitorSummaries?.[0]?.Results?.[0]?.MonitoringName).toBe('round trip')
  })

  test('durations come from the monotonic clock, not from the dates', () => {
    expect(shape(run(report('a', [ok]))).ExecutionMetrics).toEqual({
      StartDateTime: new Date(1_000),
      EndDateTime: new Date(900),
      Duration: 12.5,
    })
  })
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FaultClass } from '../../../src/core/base/probe-error.ts'
import { atLeast, atMost, type Result, type Run } from '../../../src/core/checks/engine/index.ts'
import {
  healthCheckResponse,
  type MonitorReading,
  type RunDocumentOptions,
  read,
  selectRun,
} from '../../../src/core/checks/reports/index.ts'
import { select } from '../../../src/core/protocol/index.ts'
import { document, report, run } from './runs.ts'

const shape = (of: Run, more: Partial<RunDocumentOptions> = {}) => healthCheckResponse(document(of, more))

const ok: Result = { check: 'round trip', status: 'ok', message: '14 ms (warn 1 s, fail 3 s)' }
const warned: Result = { check: 'connections', status: 'warning', message: '85 % (warn 80 %)' }
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

describe("the interface's document of a run", () => {
  test('H1 Success without a failed monitor when all pass', () => {
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

  test('H11 a value at its boundary is ok, from above and from below', () => {
    const status = (evaluate: typeof atMost, value: number, threshold: { warn?: number; limit?: number }) =>
      evaluate({ check: 'use', value, unit: 'percent', threshold }).status
    const high = { warn: 80, limit: 95 }
    expect([80, 80.1, 95, 95.1].map((value) => status(atMost, value, high)).join(' ')).toBe('ok warning warning failed')
    const low = { warn: 20, limit: 5 }
    expect([20, 19.9, 5, 4.9].map((value) => status(atLeast, value, low)).join(' ')).toBe('ok warning warning failed')
    expect([status(atMost, 95, { limit: 95 }), status(atLeast, 5, { limit: 5 })]).toEqual(['ok', 'ok'])
  })

  test('H11 a warning is Success on the wire and is marked as one', () => {
    const made = shape(run(report('postgres orders', [ok, warned])))
    expect(made.Status).toBe('Success')
    expect(made.MonitorSummaries?.[0]?.Results?.[1]).toMatchObject({
      Status: 'Success',
      StatusMessage: 'warning: 85 % (warn 80 %)',
    })
    expect(made.StatusMessage).toBe('Sql is healthy, 1 warning: postgres orders connections: 85 % (warn 80 %)')
  })

  test('a failed result keeps its details, then its fault class', () => {
    const made = shape(run(report('postgres orders', [failed])))
    expect(made.MonitorSummaries?.[0]?.Results?.[0]?.ErrorMessages).toEqual(['ECONNREFUSED', 'fault: refused'])
    expect(made.MonitorSummaries?.[0]?.ErrorMessages).toEqual(['round trip: 127.0.0.1:5432 refused'])
  })

  test('H4 server state is present only on request', () => {
    expect('ServerState' in shape(run(report('a', [ok])))).toBe(false)
    const request = shape(run(report('a', [ok])), { flags: { IncludeServerStateInformation: true } })
    expect(request.ServerState?.ServerName).toBe('db1')
  })

  test('H5 SuppressDeploymentErrors suppresses deployment failures, reports which, and hides nothing else', () => {
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

  test('S11 an anonymous caller reads statuses and fault classes, and no messages, names or hosts', () => {
    const made = shape(run(report('postgres orders', [failed, warned, ok])), {
      view: 'brief',
      flags: { IncludeServerStateInformation: true },
    })
    const json = JSON.stringify(made)
    for (const secret of ['127.0.0.1', 'orders', 'ECONNREFUSED', 'db1', '85 %', '14 ms'])
      expect(json).not.toContain(secret)
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

describe('the run document', () => {
  const measured = atMost({ check: 'lag', value: 2_500, unit: 'duration', threshold: { warn: 2_000, limit: 9_000 } })

  test('a result keeps its value, subject, address, details, cause and depth', () => {
    const result: Result = {
      ...measured,
      subject: 'eu',
      address: '10.0.0.5:5432',
      facts: { role: 'replica' },
      cause: 'a',
    }
    const checks = [{ name: 'lag', depth: 'Advanced', doc: '' }] as const
    const { node, runId, monitors } = document(run(report('postgres orders', [result], { checks })))
    expect([node, runId]).toEqual(['db1', 'r'])
    expect(monitors).toEqual([
      {
        name: 'postgres orders',
        kind: 'postgres',
        status: 'warning',
        depth: 'Basic',
        scope: 'network',
        host: false,
        durationMs: 1,
        attempts: 1,
        results: [
          {
            check: 'lag',
            slug: 'lag',
            status: 'warning',
            message: '2.5 s (warn 2 s, fail 9 s)',
            cause: 'a',
            subject: 'eu',
            address: '10.0.0.5:5432',
            depth: 'Advanced',
            facts: { role: 'replica' },
            measurement: { value: 2_500, unit: 'milliseconds', warn: 2_000, limit: 9_000, bound: 'atMost' },
          },
        ],
      },
    ])
  })

  test('a member of a family of results has the depth and the slug of the family, and its own part as the subject', () => {
    const checks = [
      { name: 'disk <mount>', depth: 'Standard', doc: '' },
      { name: 'disk', depth: 'Advanced', doc: '' },
    ] as const
    const results = ['disk /var', 'disk', 'not run'].map((check) => ({ ...ok, check }))
    const members = document(run(report('host', results, { checks }))).monitors[0]?.results
    expect(members?.map(({ depth }) => depth)).toEqual(['Standard', 'Advanced', undefined])
    expect(members?.map(({ slug }) => slug)).toEqual(['disk', 'disk', 'not_run'])
    expect(members?.map(({ subject }) => subject)).toEqual(['/var', undefined, undefined])
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY])('a value that is %s is omitted', (value) => {
    const result: Result = { ...ok, measurement: { value, unit: 'count' } }
    expect(document(run(report('a', [result]))).monitors[0]?.results[0]?.measurement).toBeUndefined()
  })

  test('S11 the brief view contains statuses, checks and fault classes, and no value, name, address or machine', () => {
    const result: Result = { ...measured, subject: 'eu', address: '10.0.0.5:5432', facts: { role: 'replica' } }
    const brief = document(run(report('postgres orders', [result, failed, ok])), {
      view: 'brief',
      flags: { IncludeServerStateInformation: true },
    })
    const text = JSON.stringify(brief)
    for (const secret of ['2500', '2.5 s', 'eu', '10.0.0.5', '127.0.0.1', 'orders', 'replica', 'db1', 'ECONNREFUSED']) {
      expect(text).not.toContain(secret)
    }
    expect(brief.monitors).toEqual([
      {
        kind: 'postgres',
        scope: 'network',
        status: 'failed',
        results: [
          { check: 'lag', slug: 'lag', status: 'warning' },
          { check: 'round trip', slug: 'round_trip', status: 'failed', fault: 'refused' },
          { check: 'round trip', slug: 'round_trip', status: 'ok' },
        ],
      },
    ])
  })
})

describe('for any run', () => {
  const word = fc.constantFrom('disk', 'lag', 'round trip', 'a/b', 'orders', '14 ms', 'x: y', 'not run')
  const faults = fc.constantFrom<FaultClass>('refused', 'timeout', 'dependency', 'auth')
  const base = { check: word, message: word, details: fc.option(fc.array(word, { maxLength: 2 }), { nil: undefined }) }
  const result: fc.Arbitrary<Result> = fc.oneof(
    fc.record({ ...base, status: fc.constantFrom('ok' as const, 'warning' as const) }),
    fc.record({ ...base, status: fc.constant('failed' as const), fault: faults, deployment: fc.boolean() }),
  )
  const monitor = fc
    .tuple(
      fc.constantFrom('postgres orders', 'host', 'configuration'),
      fc.array(result, { minLength: 1, maxLength: 4 }),
    )
    .map(([name, results]) => report(name, results))
  const runs = fc.array(monitor, { minLength: 1, maxLength: 4 }).map((monitors) => run(...monitors))
  const options = fc.record({
    view: fc.constantFrom('full' as const, 'brief' as const),
    flags: fc.record({ IncludeServerStateInformation: fc.boolean(), SuppressDeploymentErrors: fc.boolean() }),
  })

  /** The members that the document of the interface has. */
  const summaryOf = ({ name, level, results }: MonitorReading) => ({
    name,
    level,
    results: results.map(({ depth: _depth, cause: _cause, ...result }) => result),
  })

  test('a report of the run equals a report of the document made of it', () => {
    fc.assert(
      fc.property(runs, options, (of, more) => {
        const Run = document(of, more)
        const entry = { Target: 'here', ServerType: 'Sql', ExecutionMode: 'Basic', ExitCode: 0 }
        const own = read({ ...entry, Run, Response: healthCheckResponse(Run) })
        const foreign = read({ ...entry, Response: healthCheckResponse(Run) })
        expect({ ...own, node: '', monitors: [] }).toEqual({ ...foreign, monitors: [] })
        expect(own.monitors.map(summaryOf)).toEqual(foreign.monitors.map(summaryOf))
      }),
    )
  })

  test('a selection of the run equals the selection of the document made of it', () => {
    const patterns = fc.array(fc.constantFrom('disk', 'orders', 'post*', 'host/lag', 'round trip', 'q'), {
      maxLength: 2,
    })
    const outcome = (make: () => unknown): unknown => {
      try {
        return make()
      } catch (error) {
        return error
      }
    }
    fc.assert(
      fc.property(runs, options, patterns, patterns, (of, more, only, skip) => {
        const whole = document(of, more)
        const selected = outcome(() => healthCheckResponse(selectRun(whole, { only, skip })))
        expect(selected).toEqual(outcome(() => select(healthCheckResponse(whole), { only, skip })))
      }),
    )
  })
})

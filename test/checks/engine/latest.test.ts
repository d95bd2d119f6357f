import { describe, expect, test } from 'vitest'
import { loadLatest, type MonitorReport, type Result } from '../../../src/core/checks/engine/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'

const { LatestReports } = await loadLatest()

const passed: Result = { check: 'connect', status: 'ok', message: 'connected' }
const failed: Result = { check: 'connect', status: 'failed', fault: 'refused', message: 'refused' }
const skipped: Result = { check: 'not run', status: 'failed', fault: 'dependency', message: 'not run' }
const cut: Result = { check: 'connect', status: 'failed', fault: 'timeout', notChecked: 'budget', message: 'no time' }

const report = (name: string, ...results: readonly Result[]): MonitorReport => ({
  name,
  kind: 'tcp',
  runsOn: 'network',
  depth: 'Basic',
  host: false,
  checks: [],
  results,
  durationMs: 1,
  attempts: 1,
})

function fixture() {
  const clock = { now: 1_000_000 }
  const latest = new LatestReports({ now: () => clock.now, date: () => new Date(1_700_000_000_000 + clock.now) })
  const ran = (
    name: string,
    result: Result,
    more: { mode?: ExecutionMode; beganAt?: number; cause?: 'caller' | 'schedule' | 'peer' } = {},
  ): void => {
    const { mode = 'Standard', beganAt = clock.now, cause = 'schedule' } = more
    latest.add('Sql', mode, report(name, result), { beganAt, endedAt: clock.now, cause })
  }
  /** By monitor, the depths and messages of its reports. */
  const view = (): Readonly<Record<string, readonly string[]>> =>
    Object.fromEntries(
      latest
        .of('Sql')
        .monitors.map((reports) => [
          reports[0]?.report.name ?? '',
          reports.map((one) => `${one.mode} ${one.report.results[0]?.message}`),
        ]),
    )
  return { clock, latest, ran, view }
}
const minute = 60_000
const everyMinute = (_: unknown, __: unknown, mode: ExecutionMode): number | undefined =>
  mode === 'Standard' ? minute : undefined

describe('the latest report of each monitor', () => {
  test('the one that began last counts at its depth, and others stay at theirs', () => {
    const { ran, view, clock } = fixture()
    ran('tcp a', passed)
    ran('tcp a', passed, { mode: 'Advanced' })
    clock.now += 10
    ran('tcp a', failed)
    ran('tcp a', passed, { beganAt: clock.now - 5 })
    expect(view()).toEqual({ 'tcp a': ['Standard refused', 'Advanced connected'] })
  })

  test('a report leaves after three intervals of its schedule, without one after 15 minutes or 3 hours', () => {
    const { ran, view, clock, latest } = fixture()
    for (const mode of ['Basic', 'Standard', 'Advanced'] as const) ran('tcp a', passed, { mode })
    clock.now += 15 * minute
    expect(view()['tcp a']).toHaveLength(3)
    latest.followSchedule(everyMinute)
    expect(view()['tcp a']).toEqual(['Advanced connected', 'Basic connected'])
    ran('tcp a', passed)
    clock.now += 3 * minute
    expect(view()['tcp a']).toEqual(['Standard connected', 'Advanced connected'])
    clock.now += 1
    expect(view()['tcp a']).toEqual(['Advanced connected'])
    clock.now += 180 * minute
    expect(view()).toEqual({})
    expect(latest.of('Sql').all.flat()).toHaveLength(3)
  })

  test('what a run of a caller skipped or cut replaces nothing where a schedule runs the monitor, and counts without one', () => {
    const { ran, view, clock, latest } = fixture()
    for (const result of [skipped, cut]) {
      ran('tcp a', passed)
      ran('tcp a', result, { cause: 'caller' })
      expect(view()['tcp a']).toEqual([`Standard ${result.message}`])
    }
    clock.now += 1
    latest.followSchedule(everyMinute)
    ran('tcp a', passed)
    for (const result of [skipped, cut]) ran('tcp a', result, { cause: 'caller' })
    expect(view()['tcp a']).toEqual(['Standard connected'])
    ran('tcp a', failed, { cause: 'caller' })
    expect(view()['tcp a']).toEqual(['Standard refused'])
  })

  test('a run for a peer, which queries no further svc, counts for nothing', () => {
    const { ran, latest } = fixture()
    ran('tcp a', passed, { cause: 'peer' })
    expect(latest.of('Sql').all).toEqual([])
  })

  test('monitors are in the order of the plan, and reports of those that it no longer has leave', () => {
    const { ran, view, latest } = fixture()
    const plan = (...names: readonly string[]) => names.map((name) => ({ name, depth: 'Basic' as const }))
    latest.planned('Sql', 'Standard', plan('tcp a', 'tcp b', 'tcp c'))
    for (const name of ['tcp c', 'tcp b', 'tcp a']) ran(name, passed)
    expect(Object.keys(view())).toEqual(['tcp a', 'tcp b', 'tcp c'])
    latest.planned('Sql', 'Standard', plan('tcp c', 'tcp a'))
    expect(Object.keys(view())).toEqual(['tcp c', 'tcp a'])
    latest.keepTypes(['App'])
    expect(view()).toEqual({})
  })

  test('a depth is complete when each monitor of its plan has a report at that depth or a deeper one', () => {
    const { ran, latest, clock } = fixture()
    latest.followSchedule(everyMinute)
    latest.planned('Sql', 'Standard', [
      { name: 'tcp a', depth: 'Basic' },
      { name: 'tcp b', depth: 'Standard' },
      { name: 'tcp deep', depth: 'Advanced' },
    ])
    const complete = () => [...latest.of('Sql').complete]
    ran('tcp a', passed)
    ran('tcp b', passed, { mode: 'Basic' })
    expect(complete()).toEqual([])
    ran('tcp b', passed, { mode: 'Advanced' })
    expect(complete()).toEqual(['Standard'])
    clock.now += 4 * minute
    expect(complete()).toEqual([])
  })
})

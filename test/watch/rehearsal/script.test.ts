import { describe, expect, test } from 'vitest'
import {
  Attendance,
  type MonitorFault,
  mustExit,
  overMs,
  type PollerRequest,
  type ScriptStep,
  scriptOf,
  stateAt,
} from '../../../src/core/watch/rehearsal/index.ts'
import { isQuick } from '../../support/suite/tier.ts'
import { Chance } from '../simulate/chance.ts'

/** Random ones. */
const scripts = isQuick() ? 200 : 1_000

const fault = (check = 'connect', monitor = 'postgres orders'): MonitorFault => ({
  type: 'Sql',
  monitor,
  check,
  fault: 'refused',
  message: 'refused',
})
const begins = (at: number, monitor: MonitorFault, lastsMs?: number): ScriptStep => ({
  at,
  lastsMs,
  line: 1,
  does: { monitor },
})
const ends = (at: number, check?: string): ScriptStep => ({
  at,
  lastsMs: undefined,
  line: 1,
  does: { ends: { type: 'Sql', monitor: 'postgres orders', check } },
})
const http = (at: number, one: 'hang' | 'reset' | 'ok', lastsMs?: number): ScriptStep => ({
  at,
  lastsMs,
  line: 1,
  does: one === 'ok' ? { ends: 'http' } : { http: one },
})
const spans = (steps: readonly ScriptStep[], endsMs = 100) =>
  scriptOf(steps, endsMs).faults.map(({ from, to }) => [from, to])

describe('Y1 what is active at a time', () => {
  test('a fault is active until the end of its time, a later step of the same monitor and check, or the end', () => {
    expect(spans([begins(10, fault())])).toEqual([[10, 100]])
    expect(spans([begins(10, fault(), 20)])).toEqual([[10, 30]])
    expect(spans([begins(90, fault(), 20)])).toEqual([[90, 100]])
    expect(spans([begins(10, fault()), begins(40, fault())])).toEqual([
      [10, 40],
      [40, 100],
    ])
    expect(spans([begins(10, fault()), begins(40, fault('query')), ends(60, 'connect')])).toEqual([
      [10, 60],
      [40, 100],
    ])
    expect(spans([begins(10, fault()), begins(40, fault('query')), ends(60)])).toEqual([
      [10, 60],
      [40, 60],
    ])
    expect(spans([begins(10, fault('connect', 'tcp queue')), ends(60)])).toEqual([[10, 100]])
  })

  test('a fault of http is active until another one, or ok', () => {
    expect(spans([http(10, 'hang'), begins(20, fault()), http(30, 'reset'), http(50, 'ok')])).toEqual([
      [10, 30],
      [20, 100],
      [30, 50],
    ])
    const script = scriptOf([http(10, 'hang'), http(30, 'reset', 10)], 100)
    expect([0, 9, 10, 29, 30, 39, 40, 99, 100, 10_000].map((at) => stateAt(script, at).http)).toEqual([
      ...[undefined, undefined, 'hang', 'hang', 'reset', 'reset', undefined, undefined, 'over', 'over'],
    ])
  })

  test('nothing is active before the start and after the end, and the process ends 5 min after it', () => {
    const script = scriptOf([begins(0, fault())], 100)
    const of = (at: number) => stateAt(script, at).of('Sql', 'postgres orders').length
    expect([-1, 0, 99, 100].map(of)).toEqual([0, 1, 1, 0])
    expect(stateAt(script, 50).of('App', 'postgres orders')).toEqual([])
    expect(overMs).toBeLessThanOrEqual(600_000)
    expect([99, 100 + overMs - 1, 100 + overMs].map((at) => mustExit(script, at))).toEqual([false, false, true])
  })

  test(`in ${scripts} random scripts, of two faults of the same check only the latest is active, and none longer than it may`, () => {
    for (let seed = 1; seed <= scripts; seed += 1) {
      const chance = new Chance(seed)
      const steps = Array.from({ length: chance.of([1, 3, 8]) }, () =>
        chance.of([0, 10, 20, 30, 40, 50, 60, 70, 80, 90]),
      )
        .toSorted((a, b) => a - b)
        .map((at): ScriptStep => {
          const check = chance.of(['connect', 'query'])
          return chance.is(0.7)
            ? begins(at, fault(check), chance.is(0.3) ? undefined : chance.of([10, 50]))
            : ends(at, chance.is(0.5) ? undefined : check)
        })
      const script = scriptOf(steps, 95)
      for (let at = -5; at <= 100; at += 5) {
        for (const check of ['connect', 'query']) {
          const current = stateAt(script, at)
            .of('Sql', 'postgres orders')
            .filter((one) => one.check === check)
          const latest = steps.findLast(
            ({ at: begin, does }) =>
              begin <= at &&
              ('monitor' in does
                ? does.monitor.check === check
                : 'ends' in does && does.ends !== 'http' && (does.ends.check ?? check) === check),
          )
          const isOver = at < 0 || at >= 95
          const lasts =
            latest && 'monitor' in latest.does && (latest.lastsMs === undefined || at < latest.at + latest.lastsMs)
          expect(current).toHaveLength(!isOver && lasts ? 1 : 0)
        }
      }
    }
  })
})

describe('Y1 who asked', () => {
  const request = (more: Partial<PollerRequest> = {}): PollerRequest => ({
    address: '10.0.0.9',
    agent: 'gate/1',
    what: 'GET /healthcheck',
    showsMonitors: true,
    ...more,
  })

  test('a fault that nobody asked for is a finding, also one whose only request could not show it', () => {
    const attendance = new Attendance(scriptOf([begins(10, fault(), 10), http(30, 'hang', 10)], 100))
    attendance.note(request(), 9)
    attendance.note(request({ what: 'GET /livez', showsMonitors: false }), 15)
    attendance.note(request(), 20)
    attendance.note(request({ what: 'GET /livez', showsMonitors: false }), 35)
    expect(attendance.findings(19)).toEqual([])
    expect(attendance.findings(40).map(({ what, requests }) => [what, requests])).toEqual([
      ['Sql/postgres orders connect: refused', 0],
      ['http: hang', 1],
    ])
    expect(attendance.isComplete(40)).toBe(false)
  })

  test('it is complete once every fault was active for its full time and polled', () => {
    const attendance = new Attendance(scriptOf([begins(10, fault(), 10)], 100))
    attendance.note(request(), 11)
    attendance.note(request(), 19)
    expect(attendance.isComplete(19)).toBe(false)
    expect(attendance.isComplete(20)).toBe(true)
    expect(attendance.findings(20)[0]?.pollers).toEqual([
      { address: '10.0.0.9', agent: 'gate/1', what: 'GET /healthcheck', first: 11, last: 19, count: 2 },
    ])
  })

  test('10,000 different pollers are counted, and 50 of them kept', () => {
    const attendance = new Attendance(scriptOf([begins(0, fault())], 100))
    for (let at = 0; at < 10_000; at += 1) attendance.note(request({ agent: `a${at}` }), 5)
    const [finding] = attendance.findings(100)
    expect(finding?.requests).toBe(10_000)
    expect(finding?.pollers).toHaveLength(50)
  })
})

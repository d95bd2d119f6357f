import { describe, expect, test } from 'vitest'
import { atLeast, atMost, notChecked } from '../../../src/core/checks/engine/index.ts'

const threshold = { warn: 80, limit: 95 }

describe('a figure that the server does not report', () => {
  for (const [name, judge] of Object.entries({ atMost, atLeast })) {
    for (const value of [undefined, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      test(`is never ok for ${name}: ${value}`, () => {
        const result = judge({ check: 'cache', value, unit: 'percent', threshold, what: 'cache in use' })
        expect(result).toMatchObject({ status: 'failed', fault: 'data', notChecked: 'missing' })
        expect(result.message).toBe('not checked: cache in use is not reported')
        expect(result.measurement).toBeUndefined()
      })
    }
  }
})

test('a check without a privilege is a warning, and a check without its own time is a failure', () => {
  expect(notChecked('lag', 'permission', 'GRANT pg_monitor TO svc')).toMatchObject({ status: 'warning' })
  expect(notChecked('lag', 'starved', 'waited 8 s for a slot')).toMatchObject({ status: 'failed', fault: 'timeout' })
})

test('H11 a duration has whole nanoseconds, in its verdict and in its figure alike', () => {
  const of = (value: number) => atMost({ check: 'open', value, unit: 'duration', threshold: { limit: 1_000 } })
  expect(of(4.097_742_999_999_991).measurement?.value).toBe(4.097_743)
  expect([of(1_000.000_000_4).status, of(1_000.000_000_4).measurement?.value]).toEqual(['ok', 1_000])
  expect(of(1_000.000_001).status).toBe('failed')
})

test.each([
  [0.000_000_5, 'ratio', '0.0000005'],
  [0.004, 'percent', '0.004 %'],
  [0.04, 'percent', '0.04 %'],
  [-5, 'ratio', '-5'],
  [0, 'percent', '0 %'],
  [3e22, 'ratio', '30000000000000000000000'],
] as const)('H11 a small or a large figure keeps its value in a message: %d %s', (value, unit, text) => {
  expect(atMost({ check: 'use', value, unit, threshold: {} }).message).toBe(text)
})

test('H11 both values of a threshold are shown, whatever the status', () => {
  const messages = (judge: typeof atMost, values: readonly number[], bounds: { warn?: number; limit?: number }) =>
    values.map((value) => judge({ check: 'use', value, unit: 'percent', threshold: bounds }).message)
  expect(messages(atMost, [14, 85, 99], threshold)).toEqual([
    '14 % (warn 80 %, fail 95 %)',
    '85 % (warn 80 %, fail 95 %)',
    '99 % (warn 80 %, fail 95 %)',
  ])
  expect(messages(atLeast, [27, 15, 3], { warn: 20, limit: 10 })).toEqual([
    '27 % (warn below 20 %, fail below 10 %)',
    '15 % (warn below 20 %, fail below 10 %)',
    '3 % (warn below 20 %, fail below 10 %)',
  ])
  expect([...messages(atMost, [1], { warn: 1 }), ...messages(atMost, [1], { limit: 3 })]).toEqual([
    '1 % (warn 1 %)',
    '1 % (fail 3 %)',
  ])
  expect([...messages(atLeast, [1], { warn: 30 }), ...messages(atLeast, [1], { limit: 1 })]).toEqual([
    '1 % (warn below 30 %)',
    '1 % (fail below 1 %)',
  ])
  expect(messages(atMost, [1], {})).toEqual(['1 %'])
})

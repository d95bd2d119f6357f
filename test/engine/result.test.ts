import { describe, expect, test } from 'vitest'
import { atLeast, atMost, notChecked } from '../../src/core/engine/index.ts'

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

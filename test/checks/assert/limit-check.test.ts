import { describe, expect, test } from 'vitest'
import { limitsOn } from '../../../src/core/checks/assert/limit-check.ts'

const limitCheck = limitsOn<{ readonly used: number }>()

const sessions = limitCheck({
  depth: 'Standard',
  check: 'sessions',
  proves: 'Enough sessions remain',
  setting: 'maxSessions',
  unit: 'percent',
  default: { warn: 80, limit: 95 },
  doc: 'Sessions in use',
  observe: ({ used }) => Promise.resolve(used),
  evaluate: (value, compare) => compare({ what: 'sessions:', value }),
})

const free = limitCheck({
  depth: 'Standard',
  check: 'free',
  proves: 'Space remains',
  setting: 'free',
  unit: 'bytes',
  bound: 'atLeast',
  doc: 'Minimum of free bytes',
  settings: { reserve: { type: 'integer', default: 0, doc: 'Bytes that do not count' } },
  observe: ({ used }) => Promise.resolve(used),
  evaluate: (used, compare, { reserve }) => compare({ value: used - reserve }),
})

describe('a check that compares one figure with one threshold', () => {
  test('declares its result and its setting', () => {
    expect(sessions.results).toEqual({ sessions: 'Enough sessions remain' })
    expect(sessions.settings).toEqual({
      maxSessions: { type: 'threshold', unit: 'percent', default: { warn: 80, limit: 95 }, doc: 'Sessions in use' },
    })
    expect(sessions.when).toBeUndefined()
  })

  test('compares in the unit of the setting, below the limit and above it', () => {
    expect(sessions.evaluate(90, { maxSessions: { warn: 80, limit: 95 } })).toMatchObject({
      check: 'sessions',
      status: 'warning',
      measurement: { value: 90, unit: 'percent', warn: 80, limit: 95, bound: 'atMost' },
    })
    expect(free.evaluate(5, { free: { limit: 4 }, reserve: 2 })).toMatchObject({
      status: 'failed',
      measurement: { value: 3, unit: 'bytes', limit: 4, bound: 'atLeast' },
    })
  })

  test('is left out without its setting where that has no default', () => {
    expect(free.when).toEqual(['free'])
    expect(free.evaluate(5, { reserve: 0 })).toEqual([])
  })

  test('lets one figure have a threshold of its own', () => {
    const cache = limitCheck({
      depth: 'Standard',
      check: 'cache',
      proves: 'The cache is not full',
      setting: 'cache',
      unit: 'percent',
      default: { limit: 80 },
      doc: 'Use of the cache',
      observe: ({ used }) => Promise.resolve(used),
      evaluate: (value, compare) => compare({ value, threshold: {} }),
    })
    expect(cache.evaluate(99, { cache: { limit: 80 } })).toMatchObject({ status: 'ok', message: '99 %' })
  })
})

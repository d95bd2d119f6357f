import { describe, expect, test } from 'vitest'
import { watchFrom } from '../../../src/core/watch/schedule/due.ts'
import { intervalsOf, runsPerMinute } from '../../../src/core/watch/schedule/index.ts'

const takes = { Basic: 5_000, Standard: 10_000, Advanced: 30_000 }
const usual = { all: { Standard: 60_000, Advanced: 3_600_000 }, ofType: undefined, own: undefined, takes } as const

describe('W1 the intervals of a monitor', () => {
  test('are those of all monitors, then of its type, then its own, for each depth', () => {
    const ofType = { Standard: 30_000 }
    const own = { Basic: 10_000, Advanced: 'off' } as const
    expect(intervalsOf({ ...usual, depth: 'Basic' })).toEqual({ Standard: 60_000, Advanced: 3_600_000 })
    expect(intervalsOf({ ...usual, ofType, own, depth: 'Basic' })).toEqual({ Basic: 10_000, Standard: 30_000 })
  })

  test('begin with its shallowest depth', () => {
    expect(intervalsOf({ ...usual, depth: 'Advanced' })).toEqual({ Advanced: 3_600_000 })
  })

  test('are none if all are off, and those of a monitor count although its type is off', () => {
    const own = { Standard: 20_000 }
    expect(intervalsOf({ ...usual, all: 'off', own, depth: 'Basic' })).toEqual({})
    expect(intervalsOf({ ...usual, ofType: 'off', depth: 'Basic' })).toEqual({})
    expect(intervalsOf({ ...usual, ofType: 'off', own, depth: 'Basic' })).toEqual({ Standard: 20_000 })
    expect(intervalsOf({ ...usual, own: 'off', depth: 'Basic' })).toEqual({})
  })

  test('are never shorter than what a run may take', () => {
    const slow = { Basic: 300_000, Standard: 300_000, Advanced: 300_000 }
    expect(intervalsOf({ ...usual, takes: slow, depth: 'Basic' })).toEqual({ Standard: 300_000, Advanced: 3_600_000 })
  })

  test('add up to the runs a minute', () => {
    expect(runsPerMinute({ Standard: 60_000, Advanced: 3_600_000 })).toBeCloseTo(1 + 1 / 60)
    expect(runsPerMinute({})).toBe(0)
  })
})

test('W1 of a process that is killed every 8 s, every monitor runs within a minute', () => {
  const never = Array.from({ length: 200 }, (_, at) => `App/tcp/${at}`).filter((key) =>
    Array.from({ length: 7 }, (_, life) => life * 8_000).every(
      (now) => watchFrom({ key, every: { Standard: 10_000 } }, now).firstAt - now > 7_000,
    ),
  )
  expect(never).toEqual([])
})

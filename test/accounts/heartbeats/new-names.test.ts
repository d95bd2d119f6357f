import { expect, test } from 'vitest'
import { NewNames } from '../../../src/core/accounts/heartbeats/index.ts'
import { Fault } from '../../../src/core/base/errors.ts'

/** Whether a new name is admitted, or the seconds to wait. */
function asking(names: NewNames, caller: string, nowMs: number): true | number | undefined {
  try {
    names.admission(caller, nowMs)()
    return true
  } catch (error) {
    if (error instanceof Fault && error.fault === 'TooManyRequests') return error.details.retryAfter
    throw error
  }
}

test('B2 a caller adds 100 new names at once, and then one every 6 seconds', () => {
  const names = new NewNames()
  for (let n = 0; n < 100; n += 1) expect(asking(names, 'agents', 0)).toBe(true)
  expect(asking(names, 'agents', 0)).toBe(6)
  expect(asking(names, 'agents', 4_500)).toBe(2)
  expect(asking(names, 'agents', 6_000)).toBe(true)
  expect(asking(names, 'agents', 6_000)).toBe(6)
  expect(asking(names, 'others', 6_000)).toBe(true)
  // A day of silence gives back no more than at the beginning.
  for (let n = 0; n < 100; n += 1) expect(asking(names, 'agents', 86_400_000)).toBe(true)
  expect(asking(names, 'agents', 86_400_000)).toBe(6)
})

test('B2 a report counts once, however often its transaction is tried', () => {
  const names = new NewNames()
  const admit = names.admission('agents', 0)
  for (let n = 0; n < 1_000; n += 1) admit()
  for (let n = 1; n < 100; n += 1) expect(asking(names, 'agents', 0)).toBe(true)
})

test('B2 the number of remembered callers is bounded', () => {
  const names = new NewNames()
  for (let n = 0; n < 100; n += 1) asking(names, 'first', 0)
  for (let n = 0; n < 1_001; n += 1) asking(names, `caller-${n}`, 0)
  expect(asking(names, 'first', 0)).toBe(true)
})

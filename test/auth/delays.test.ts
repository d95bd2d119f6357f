import { describe, expect, test, vi } from 'vitest'
import { Delays, delayMs } from '../../src/core/auth/delays.ts'
import { faultOf } from './world.ts'

const never = new AbortController().signal

describe('P5 delays after failures from loopback', () => {
  test('P5 they begin after five failures, double, and end at 8 s', () => {
    expect([0, 4, 5, 6, 7, 8, 9, 10, 11, 10_000].map(delayMs)).toEqual([
      0, 0, 250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000,
    ])
  })

  test('P5 four wait for one name and 32 for all; others are refused', async () => {
    vi.useFakeTimers()
    try {
      const delays = new Delays()
      const waiting = Array.from({ length: 32 }, (_, n) => delays.wait(`name ${n >> 2}`, 8_000, never))
      for (const name of ['name 0', 'another name']) {
        const fault = await faultOf(delays.wait(name, 8_000, never))
        expect([fault.fault, fault.details.retryAfter]).toEqual(['Unavailable', 8])
      }
      await vi.advanceTimersByTimeAsync(8_000)
      await Promise.all(waiting)
      const again = Array.from({ length: 4 }, () => delays.wait('name 0', 250, never))
      expect((await faultOf(delays.wait('name 0', 250, never))).details.retryAfter).toBe(1)
      await vi.advanceTimersByTimeAsync(250)
      await Promise.all(again)
    } finally {
      vi.useRealTimers()
    }
  })

  test('P5 a caller that leaves returns its place', async () => {
    const delays = new Delays()
    const going = new AbortController()
    const waiting = Array.from({ length: 4 }, () => delays.wait('name', 60_000, going.signal))
    expect((await faultOf(delays.wait('name', 60_000, never))).fault).toBe('Unavailable')
    going.abort(new Error('went away'))
    for (const one of waiting) await expect(one).rejects.toThrow()
    await delays.wait('name', 1, never)
  })
})

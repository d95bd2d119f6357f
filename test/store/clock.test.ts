import { describe, expect, test } from 'vitest'
import {
  afterReading,
  judgeClock,
  type StoreClockReading,
  type StoreClockState,
  storeTime,
} from '../../src/core/store/clock.ts'

/** Random numbers of a seed (mulberry32): from 0 to 1. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const storeEpoch = 1_800_000_000_000
const reading = (atMs: number, tripMs: number, answeredAfterMs = tripMs / 2, clockMs = 0): StoreClockReading => ({
  sentAt: atMs,
  receivedAt: atMs + tripMs,
  storeAt: storeEpoch + atMs + answeredAfterMs + clockMs,
  uptime: atMs + tripMs,
})

/** Reads as in the order of a list. */
const readAll = (...readings: readonly StoreClockReading[]): StoreClockState => {
  const [first, ...others] = readings
  if (!first) throw new Error('no reading')
  return others.reduce<StoreClockState>((state, one) => afterReading(state, one), afterReading(undefined, first))
}

describe('W12 the clock of the store (simulated)', () => {
  test('W12 (simulated) 500 nodes with any wall clock, and any round trip, differ from the store by at most half a round trip', () => {
    let worst = 0
    for (let seed = 1; seed <= 500; seed += 1) {
      const random = randomOf(seed)
      let state: StoreClockState | undefined
      let tripMs = 0
      for (let at = 0; at < 600_000; at += 10_000) {
        tripMs = random() < 0.1 ? 1_500 * random() : 20 * random()
        state = afterReading(state, reading(at, tripMs, tripMs * random()))
      }
      if (!state) throw new Error('no reading')
      const error = Math.abs(storeTime(state, 700_000) - (storeEpoch + 700_000))
      worst = Math.max(worst, error)
      const offsetMs = (random() - 0.5) * 1e10
      const { skewMs } = judgeClock(state, storeEpoch + 700_000 + offsetMs, 700_000)
      expect(Math.abs(skewMs - offsetMs)).toBeLessThanOrEqual(error + 1)
    }
    // The best of 60 readings, and the drift that it may have gathered: far below the 750 ms of the worst round trip.
    expect(worst).toBeLessThan(50)
  })

  test('W12 (simulated) a slow reading does not replace a quick one that it confirms, and does when it contradicts it', () => {
    const quick = reading(0, 2)
    expect(storeTime(readAll(quick, reading(10_000, 1_400, 1_400)), 20_000)).toBe(storeEpoch + 20_000)
    const setBack = reading(10_000, 1_400, 700, -60_000)
    expect(storeTime(readAll(quick, setBack), 20_000)).toBe(storeEpoch - 60_000 + 20_000)
  })

  test.each([
    [0, undefined, true],
    [29_900, undefined, true],
    [-29_900, undefined, true],
    [31_000, '31 seconds ahead of', true],
    [-31_000, '31 seconds behind', true],
    [120_000, '2 minutes ahead of', true],
    [15 * 60_000 - 10, '15 minutes ahead of', true],
    [15 * 60_000 + 10, '15 minutes ahead of', false],
    [-2 * 3_600_000, '2 hours behind', false],
    [40 * 86_400_000, '40 days ahead of', false],
  ])('W12 (simulated) a machine that is %i ms ahead is described as %s, and ready: %s', (aheadMs, words, ready) => {
    const verdict = judgeClock(readAll(reading(0, 0)), storeEpoch + 5_000 + aheadMs, 5_000)
    const warning = words && `the clock of this machine is ${words} the clock of the store`
    expect(verdict).toEqual({ skewMs: aheadMs, warning, ready, sweeps: true })
  })

  test('W12 (simulated) while the store differs by more than an hour from what it should show, nothing is swept', () => {
    const jumped = (clockMs: number) => {
      const state = readAll(reading(0, 0), reading(10_000, 0, 0, clockMs))
      return judgeClock(state, storeTime(state, 10_000), 10_000)
    }
    expect(jumped(3_599_000)).toMatchObject({ sweeps: true, warning: undefined })
    expect(jumped(40 * 86_400_000)).toMatchObject({
      sweeps: false,
      ready: true,
      warning: expect.stringContaining('the clock of the store was set forward by 40 days: no expired row is deleted'),
    })
    expect(jumped(-7_200_000).warning).toContain('set back by 2 hours')
    const setRight = readAll(reading(0, 0), reading(10_000, 0, 0, 40 * 86_400_000), reading(20_000, 0))
    expect(judgeClock(setRight, storeEpoch + 20_000, 20_000)).toMatchObject({ sweeps: true, warning: undefined })
  })

  test('W12 (simulated) a machine that slept for a night sweeps afterwards: its uptime includes the night', () => {
    const nightMs = 8 * 3_600_000
    const woken: StoreClockReading = {
      sentAt: 10_000,
      receivedAt: 10_000,
      storeAt: storeEpoch + 10_000 + nightMs,
      uptime: 10_000 + nightMs,
    }
    const state = readAll(reading(0, 0), woken)
    expect(judgeClock(state, storeEpoch + 10_000 + nightMs, 10_000)).toMatchObject({ skewMs: 0, sweeps: true })
  })
})

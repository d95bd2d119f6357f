import { describe, expect, test } from 'vitest'
import type { ClockVerdict } from '../../src/core/store/clock.ts'
import { initialUpkeep, next, type Upkeep, type UpkeepEvent, unreadyReason } from '../../src/core/store/upkeep.ts'

/** The state after these events, and the effects of each: `sweep`, `probe` or the line that is logged. */
function play(events: readonly UpkeepEvent[], from: Upkeep = initialUpkeep(0)) {
  let state = from
  const effects = events.map((event) => {
    const step = next(state, event)
    state = step.state
    return step.effects.map((effect) => (effect.type === 'log' ? `${effect.level}: ${effect.msg}` : effect.type))
  })
  return { state, effects }
}

const tick = (at: number): UpkeepEvent => ({ type: 'tick', at })
const ended = (at: number, reason?: string): UpkeepEvent => ({ type: 'sweep ended', at, reason })
const agrees: ClockVerdict = { skewMs: 3, warning: undefined, ready: true, sweeps: true }
const compared = (verdict: Partial<ClockVerdict>): UpkeepEvent => ({
  type: 'clock compared',
  verdict: { ...agrees, ...verdict },
})

describe('T4 sweeping (simulated)', () => {
  test('T4 (simulated) a sweep begins 10 s after the end of the one before, and never beside it', () => {
    expect(play([tick(9_999), tick(10_000), tick(11_000), ended(30_000), tick(39_999), tick(40_000)]).effects).toEqual([
      [],
      ['sweep'],
      [],
      [],
      [],
      ['sweep'],
    ])
  })

  test('W11 (simulated) a sweep that fails is logged, again after ten minutes, at once for another reason, and at its end', () => {
    const full = 'The store cannot be written: the disk is full'
    const { effects, state } = play([
      ended(0, full),
      ended(10_000, full),
      ended(600_000, full),
      ended(610_000, 'The store is damaged'),
      ended(620_000),
      ended(630_000),
    ])
    expect(effects).toEqual([
      [`warn: expired rows cannot be deleted: ${full}`],
      [],
      [`warn: expired rows cannot be deleted: ${full}`],
      ['warn: expired rows cannot be deleted: The store is damaged'],
      ['info: expired rows are deleted again'],
      [],
    ])
    expect(state.sweepFailures).toBe(4)
  })
})

describe('W12 the clocks (simulated)', () => {
  test('W12 (simulated) a difference is logged when it begins, when it makes the server unready, and when it ends', () => {
    const { effects } = play([
      compared({}),
      compared({ warning: 'the clock is 40 seconds ahead' }),
      compared({ warning: 'the clock is 41 seconds ahead' }),
      compared({ warning: 'the clock is 20 minutes ahead', ready: false }),
      compared({}),
    ])
    expect(effects).toEqual([
      [],
      ['warn: the clock is 40 seconds ahead'],
      [],
      ['warn: the clock is 20 minutes ahead; this server is not ready'],
      ['info: the clocks of this machine and of the store agree again'],
    ])
  })

  test('W12 (simulated) only a difference that is too large makes the server unready', () => {
    expect(unreadyReason(play([compared({ warning: 'ahead' })]).state)).toBeUndefined()
    expect(unreadyReason(play([compared({ warning: 'far ahead', ready: false })]).state)).toBe('far ahead')
    expect(unreadyReason(initialUpkeep(0))).toBeUndefined()
  })
})

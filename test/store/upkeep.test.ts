import { describe, expect, test } from 'vitest'
import type { ClockVerdict } from '../../src/core/store/clock.ts'
import {
  initialUpkeep,
  next,
  type Upkeep,
  type UpkeepEvent,
  unreadyReason,
} from '../../src/core/store/upkeep/upkeep.ts'

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

test('W10 (simulated) a store whose newest audit entry is older than before was set back, which is logged once', () => {
  const read = (newest: number): UpkeepEvent => ({ type: 'audit read', newest, lost: [] })
  expect(play([read(0), read(41), read(41), read(44), read(41), read(41), read(45)]).effects).toEqual([
    [],
    [],
    [],
    [],
    [
      'warn: the store is an earlier state of itself, as after a restore or a failover: audit entries 42 to 44, and the changes that they name, are gone',
    ],
    [],
    [],
  ])
})

test('W10 (simulated) a store whose newest audit entry is older than before also names the entries that this server has written since it last looked', () => {
  const read = (newest: number, ...lost: readonly number[]): UpkeepEvent => ({ type: 'audit read', newest, lost })
  const msgs = [read(41, 40, 42, 44, 45, 47), read(30, 31, 41)].map((event) => play([read(44), event]).effects[1]?.[0])
  expect(msgs).toEqual([
    'warn: the store is an earlier state of itself, as after a restore or a failover: audit entries 42 to 44 and 3 of those that this server has written (40 to 47), and the changes that they name, are gone',
    'warn: the store is an earlier state of itself, as after a restore or a failover: audit entries 31 to 44, and the changes that they name, are gone',
  ])
})

test('W10 (simulated) a store that has newer audit entries, but lacks some that this server has written, was set back', () => {
  const read = (newest: number, ...lost: readonly number[]): UpkeepEvent => ({ type: 'audit read', newest, lost })
  expect(play([read(44), read(70, 42, 44), read(71), read(72, 71)]).effects).toEqual([
    [],
    [
      'warn: the store is an earlier state of itself, as after a restore or a failover: 2 of the audit entries that this server has written (42 to 44), and the changes that they name, are gone',
    ],
    [],
    [
      'warn: the store is an earlier state of itself, as after a restore or a failover: 1 of the audit entries that this server has written (71), and the changes that they name, are gone',
    ],
  ])
})

describe('W10 writes (simulated)', () => {
  const full = 'The store cannot be written: the disk is full'
  const failed = (at: number, reason = full): UpkeepEvent => ({ type: 'write failed', at, reason })
  const proved = (beganAt: number, at: number, reason?: string): UpkeepEvent => ({
    type: 'proof ended',
    beganAt,
    at,
    reason,
  })

  test('W10 (simulated) a failed write makes the server unready until a proof succeeds, which is tried after 1 s and then every 5 s', () => {
    const { effects, state } = play([
      failed(0),
      tick(999),
      tick(1_000),
      tick(2_000),
      proved(1_000, 2_500, full),
      tick(7_499),
      tick(7_500),
      proved(7_500, 7_600),
    ])
    expect(effects).toEqual([
      [`warn: ${full}; this server is not ready until a write succeeds`],
      [],
      ['prove writes'],
      [],
      [],
      [],
      ['prove writes'],
      ['info: the store can be written again'],
    ])
    expect(unreadyReason(state)).toBeUndefined()
    expect(unreadyReason(play([failed(0), tick(1_000), proved(1_000, 1_100, full)]).state)).toBe(full)
  })

  test('W10 (simulated) a write that succeeds, and a question for readiness, are followed by a proof at once, but not after a proof has failed', () => {
    const event: UpkeepEvent = { type: 'proof wanted' }
    expect(play([event, failed(1), event, event, proved(10, 12)]).effects).toEqual([
      [],
      [`warn: ${full}; this server is not ready until a write succeeds`],
      ['prove writes'],
      [],
      ['info: the store can be written again'],
    ])
    const small = play([failed(0), tick(1_000), proved(1_000, 1_001, full), event, tick(6_001)])
    expect(small.effects.slice(2)).toEqual([[], [], ['prove writes']])
    expect(unreadyReason(small.state)).toBe(full)
  })

  test('W10 (simulated) a proof that began before another write failed proves nothing', () => {
    const { state, effects } = play([failed(0), tick(1_000), failed(1_200), proved(1_000, 1_300), tick(6_300)])
    expect(unreadyReason(state)).toBe(full)
    expect(effects.at(-1)).toEqual(['prove writes'])
  })

  test('W10 (simulated) 1,000 sequences: the server is ready only if no write failed since the last proof that succeeded began', () => {
    const violations: string[] = []
    for (let seed = 1; seed <= 1_000; seed += 1) {
      let random = seed
      const below = (limit: number): number => {
        random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0
        return Math.floor((random / 2 ** 32) * limit)
      }
      let state = initialUpkeep(0)
      let lastFailure = -1
      let lastProof = -1
      let running: number | undefined
      let sinceLook = 0
      for (let at = 100; at < 60_000; at += 100) {
        const does = (event: UpkeepEvent): void => {
          const step = next(state, event)
          state = step.state
          if (!step.effects.some(({ type }) => type === 'prove writes')) return
          // Never two at once.
          if (running !== undefined) violations.push(`seed ${seed} at ${at}: two proofs at once`)
          running = at
          sinceLook = 0
        }
        if (below(40) === 0) {
          does(failed(at))
          lastFailure = at
        }
        if (running !== undefined && below(5) === 0) {
          const good = below(2) === 0
          does(proved(running, at, good ? undefined : full))
          if (good) lastProof = running
          else lastFailure = at
          running = undefined
          sinceLook = 0
        }
        if (at % 1_000 === 0) does(tick(at))
        const isReady = unreadyReason(state) === undefined
        if (isReady !== (lastFailure < 0 || lastProof > lastFailure))
          violations.push(`seed ${seed} at ${at}: ready ${isReady}`)
        // It never stops trying.
        sinceLook = isReady || running !== undefined ? 0 : sinceLook + 100
        if (sinceLook > 6_100) violations.push(`seed ${seed} at ${at}: no proof for ${sinceLook} ms`)
      }
    }
    expect(violations).toEqual([])
  })
})

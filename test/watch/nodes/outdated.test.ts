import { describe, expect, test } from 'vitest'
import { afterLook, aloneMs, outMs, sendsAlone, unknownNodes } from '../../../src/core/watch/nodes/index.ts'

const lookEveryMs = 3_000

/** Looks every 3 s from `from` on, up to and including `to`; each shows what `show` says at its time. */
function looks(from: number, to: number, show: (at: number) => boolean | undefined, others = unknownNodes) {
  let now = others
  for (let at = from; at <= to; at += lookEveryMs) now = afterLook(now, show(at), at)
  return now
}

describe('W6 simulated: when a node that is too old for the store sends messages', () => {
  test('W6 never while another node is live, for however long', () => {
    for (let to = 0; to <= 3_600_000; to += 30_000)
      expect(
        sendsAlone(
          looks(0, to, () => true),
          to,
        ),
      ).toBe(false)
  })

  test.each([
    ['no node is live', false],
    ['the rows cannot be read', undefined],
  ] as const)('W6 once, for a minute, %s', (_, answer) => {
    const others = looks(0, aloneMs, () => answer)
    expect(sendsAlone(others, aloneMs - 1)).toBe(false)
    expect(sendsAlone(others, aloneMs)).toBe(true)
  })

  test('W6 no more once another node is live again, and a minute after that one is gone', () => {
    const [back, gone] = [300_000, 600_000]
    const show = (at: number): boolean => at >= back && at < gone
    expect(sendsAlone(looks(0, back - lookEveryMs, show), back - 1)).toBe(true)
    expect(sendsAlone(looks(0, back, show), back)).toBe(false)
    expect(sendsAlone(looks(0, gone + aloneMs - lookEveryMs, show), gone + aloneMs - 1)).toBe(false)
    expect(sendsAlone(looks(0, gone + aloneMs, show), gone + aloneMs)).toBe(true)
  })

  test('W6 a process that stood still asks again, and does not count the time in which it did not', () => {
    const before = looks(0, 30_000, () => false)
    const wake = 30_000 + 10 * aloneMs
    expect(sendsAlone(before, wake)).toBe(false)
    const after = afterLook(before, false, wake)
    expect(sendsAlone(after, wake)).toBe(false)
    expect(
      sendsAlone(
        looks(wake + lookEveryMs, wake + aloneMs, () => false, after),
        wake + aloneMs,
      ),
    ).toBe(true)
  })

  test('W6 one that sent by itself and stood still for 10 s is silent until it has looked for a minute', () => {
    const alone = looks(0, 2 * aloneMs, () => false)
    expect(sendsAlone(alone, 2 * aloneMs)).toBe(true)
    expect(sendsAlone(alone, 2 * aloneMs + outMs)).toBe(false)
    const wake = 2 * aloneMs + outMs
    expect(sendsAlone(afterLook(alone, false, wake), wake)).toBe(false)
  })
})

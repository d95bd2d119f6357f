import { expect, test } from 'vitest'
import { ProcessLine } from '../../../src/core/watch/schedule/index.ts'

const hour = 3_600_000
const noon = 1_700_000_000_000

/** Clocks that a test sets, and the line that follows them. */
function clocks() {
  const at = { wall: noon, monotonic: 5_000, uptime: 90_000 }
  const line = new ProcessLine({ wall: () => at.wall, monotonic: () => at.monotonic, uptime: () => at.uptime })
  const pass = (ms: number): void => {
    at.wall += ms
    at.monotonic += ms
    at.uptime += ms
  }
  return { at, line, pass }
}

test('W18 the line that people read follows a wall clock that is set by more than 10 s, at once and exactly', () => {
  const { at, line, pass } = clocks()
  pass(60_000)
  const began = line.now()
  at.wall -= 2 * hour
  const shift = line.look()
  expect([line.now(), shift?.ms, shift?.errorMs]).toEqual([noon + 60_000 - 2 * hour, -2 * hour, -2 * hour])
  expect(shift?.correct(began)).toBe(began - 2 * hour)
  expect(line.look()).toBeUndefined()
})

test('W18 small steps and a slow drift shift the line once they add up to more than 10 s', () => {
  const { at, line } = clocks()
  const shifts = Array.from({ length: 7 }, () => {
    at.wall += 1_600
    return line.look()?.ms
  })
  expect(shifts).toEqual([undefined, undefined, undefined, undefined, undefined, undefined, 11_200])
})

test('W1 a wall clock that is set leaves the line of the schedule as it is', () => {
  const { at, line, pass } = clocks()
  at.wall += 960 * hour
  line.look()
  pass(1_000)
  expect(line.steady()).toBe(noon + 1_000)
  expect(line.civilAt(line.steady())).toBe(line.now())
  expect(line.steadyAt(line.now())).toBe(line.steady())
})

test('W18 what people read from before this process stays as it is, and nothing lies in the future', () => {
  const { at, line, pass } = clocks()
  pass(60_000)
  at.wall -= 2 * hour
  const shift = line.look()
  expect(shift?.correct(noon - 3 * hour)).toBe(noon - 3 * hour)
  expect(shift?.correct(noon - hour)).toBe(line.now())
  expect(shift?.move(noon - 3 * hour)).toBe(noon - 5 * hour)
})

test('W18 after a sleep of the machine the line shifts, and what was told before keeps its time', () => {
  const { at, line } = clocks()
  at.wall += 2 * hour
  at.uptime += 2 * hour - 40
  const shift = line.look()
  expect([shift?.ms, shift?.errorMs, shift?.correct(noon), shift?.move(noon)]).toEqual([
    2 * hour,
    0,
    noon,
    noon + 2 * hour,
  ])
})

test('W18 a clock that is corrected while the machine sleeps shifts by the rest', () => {
  const { at, line } = clocks()
  at.wall += 3 * hour
  at.uptime += 2 * hour
  expect(line.look()?.errorMs).toBe(hour)
})

test('W18 a clock that is read while the process stands still shifts nothing', () => {
  let monotonic = 0
  const line = new ProcessLine({
    wall: () => noon + monotonic,
    monotonic: () => {
      monotonic += 20_000
      return monotonic
    },
  })
  expect(line.look()).toBeUndefined()
})

test('W4 the line follows the clock of the store once that is known', () => {
  const { line } = clocks()
  line.follow(() => noon - 600_000)
  expect(line.look()?.ms).toBe(-600_000)
  expect(line.now()).toBe(noon - 600_000)
})

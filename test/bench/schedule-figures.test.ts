import { expect, test } from 'vitest'
import {
  bestTurn,
  dueTimes,
  keepsUp,
  lateOf,
  limitOf,
  type Outcome,
  pooled,
  quantile,
} from '../../bench/schedule/figures.ts'

const minute = { intervalMs: 10_000, from: 100_000, to: 130_000 }

test('a probe that comes after its due time is late, and one a little earlier serves it on time', () => {
  expect(lateOf([104_007, 113_990, 124_000], 4_000, minute)).toEqual([7, 0, 0])
})

test('a probe that comes more than a quarter of the interval earlier serves nothing', () => {
  expect(lateOf([101_400, 105_000, 114_000, 124_000], 4_000, minute)).toEqual([1_000, 0, 0])
})

test('a probe that is later than an interval serves no due time twice, and one that never comes is late until the end', () => {
  expect(lateOf([116_500], 4_000, minute)).toEqual([12_500, 2_500, 6_000])
})

test('due times at the very end do not count: who is late has as much time there as elsewhere', () => {
  expect(lateOf([109_000, 119_000], 9_000, minute)).toEqual([0, 0])
  expect(dueTimes(9_000, minute)).toBe(3)
})

test('the best turn of a target is the earliest place on its grid, also across the beginning of the interval', () => {
  expect(bestTurn([109_990, 120_003, 129_995], 10_000)).toBe(9_990)
  expect(bestTurn([104_300, 114_000, 124_100], 10_000)).toBe(4_000)
})

test('a quantile is a value that was measured', () => {
  expect([0.5, 0.99, 1].map((share) => quantile([1, 2, 3, 4], share))).toEqual([2, 4, 4])
  expect(quantile([], 0.5)).toBeNaN()
})

const fine: Outcome = {
  seconds: 30,
  due: 5_000,
  counted: 5_000,
  late: Float64Array.of(1, 2, 3),
  notChecked: 0,
  failed: 0,
  loop: { utilization: 0.5, delayP99: 6, delayMax: 20, heapMb: 90 },
  cores: { watcher: 0.5, peers: 0.2, bench: 0, machine: 0.8 },
  rssMb: 200,
  descriptors: 60,
  descriptorLimit: 20_000,
  closedConnections: 1_000,
  scrapes: [],
  failedScrapes: 0,
  callers: undefined,
  loadBefore: 1,
  loadAfter: 2,
}
const late = Float64Array.of(2_000, 2_000)

test.each([
  ['nothing', fine, 'nothing ran out'],
  [
    'its thread',
    { late, loop: { ...fine.loop, utilization: 0.99 }, cores: { ...fine.cores, watcher: 1 } },
    'the one thread',
  ],
  [
    'processors that others use',
    { late, loop: { ...fine.loop, utilization: 0.99 }, cores: { ...fine.cores, machine: 2 } },
    'the processors of the machine: the event loop always had work',
  ],
  ['slots', { late, descriptors: 200 }, 'slots of the schedule'],
  ['descriptors', { late, descriptors: 199, descriptorLimit: 200 }, 'descriptors'],
  ['processors', { late, cores: { ...fine.cores, machine: 2 } }, 'the processors of the machine ('],
  ['what nobody measures', { late }, 'none of the resources that are measured'],
])('what ran out first is named: %s', (_, change, says) => {
  expect(limitOf({ ...fine, ...change } as Outcome, 6_000, 2)).toContain(says)
})

test('who checks fewer than were due, or comes to no verdict, does not keep up', () => {
  expect(keepsUp(fine)).toBe(true)
  expect(keepsUp({ ...fine, counted: 4_900 })).toBe(false)
  expect(keepsUp({ ...fine, notChecked: 1 })).toBe(false)
})

test('rounds are added up: counts as sums, times together, memory and stalls as the highest', () => {
  const other: Outcome = { ...fine, late: Float64Array.of(0, 9), rssMb: 300, notChecked: 2 }
  const { due, late: all, rssMb, notChecked } = pooled([fine, other])
  expect([due, [...all], rssMb, notChecked]).toEqual([10_000, [0, 1, 2, 3, 9], 300, 2])
})

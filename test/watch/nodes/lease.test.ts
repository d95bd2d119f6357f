import { expect, test } from 'vitest'
import {
  answered,
  askOf,
  holds,
  isOthers,
  type LeaseAsk,
  lapsed,
  newLease,
} from '../../../src/core/watch/nodes/lease.ts'
import { gapMs, minorityMs, stopMs, takeMs } from '../../../src/core/watch/nodes/policy.ts'

const rowOf = (process: string, epoch: number, more = {}) => ({
  ...{ node: process, process, epoch, beats: 0, writes: 0, base: 0, hasLeft: false, silentMs: 0 },
  ...more,
})
const read: LeaseAsk = { type: 'read' }
const candidate = { isCandidate: true }
const at = (now: number, sentAt = now) => ({ sentAt, now })

/** A process that has taken a lease that nobody had, at 0. */
function holder() {
  const looked = answered(newLease('a'), read, { isOk: true, row: undefined }, at(0))
  const take = askOf(looked, 0, candidate)
  return answered(looked, take, { isOk: true, row: rowOf('a', 1) }, at(0))
}

test('W4 who finds no lease takes it at once, and holds it until 7 s after it sent the last renewal that succeeded', () => {
  const lease = holder()
  expect(askOf(lease, 1, candidate)).toEqual({ type: 'renew', epoch: 1 })
  // The answer to a renewal that was sent at 2 s is late.
  const renewed = answered(lease, { type: 'renew', epoch: 1 }, { isOk: true, row: rowOf('a', 1) }, at(6_000, 2_000))
  expect([holds(renewed, 2_000 + stopMs - 1), holds(renewed, 2_000 + stopMs)]).toEqual([true, false])
  const earlier = answered(renewed, { type: 'renew', epoch: 1 }, { isOk: true, row: rowOf('a', 1) }, at(6_001, 1_000))
  expect(holds(earlier, 2_000 + stopMs - 1)).toBe(true)
})

test('W4 a renewal that is answered after the lease has lapsed does not bring its epoch back', () => {
  const late = answered(
    holder(),
    { type: 'renew', epoch: 1 },
    { isOk: true, row: rowOf('a', 1) },
    at(stopMs + 1, stopMs - 1),
  )
  expect(late.hold).toBeUndefined()
  expect(askOf(late, stopMs + 1, candidate)).toMatchObject({ type: 'take', epoch: 2 })
})

test('W4 a lease of another process is taken after 7 s in which it has not changed, and not before', () => {
  let lease = answered(newLease('b'), read, { isOk: true, row: rowOf('a', 1) }, at(0))
  for (let now = 1_000; now < takeMs; now += 1_000) {
    expect(askOf(lease, now, candidate)).toEqual(read)
    lease = answered(lease, read, { isOk: true, row: rowOf('a', 1) }, at(now))
  }
  expect(askOf(lease, takeMs, candidate)).toEqual({ type: 'take', expected: rowOf('a', 1), epoch: 2 })
  expect(askOf(lease, takeMs, { isCandidate: true, extraMs: minorityMs })).toEqual(read)
  expect(askOf(lease, takeMs, { isCandidate: false })).toEqual(read)
  for (const change of [{ beats: 1 }, { writes: 1 }, { process: 'c' }, { epoch: 2 }]) {
    const changed = answered(lease, read, { isOk: true, row: rowOf('a', 1, change) }, at(takeMs))
    expect(askOf(changed, takeMs, candidate)).toEqual(read)
  }
  // One that lets others go first waits from the moment on at which the lease was left.
  const left = answered(lease, read, { isOk: true, row: rowOf('a', 1, { hasLeft: true }) }, at(takeMs))
  expect(askOf(left, takeMs, { isCandidate: true, extraMs: minorityMs })).toEqual(read)
})

test('W4 a time in which nobody looked, or the store did not answer, does not count as one without a change', () => {
  const before = answered(newLease('b'), read, { isOk: true, row: rowOf('a', 1) }, at(0))
  expect(askOf(before, takeMs, candidate)).toEqual(read)
  const after = answered(before, read, { isOk: true, row: rowOf('a', 1) }, at(gapMs))
  expect(askOf(after, gapMs + takeMs - 1, candidate)).toEqual(read)
})

test('W4 a lease that was left is taken at once', () => {
  const lease = answered(newLease('b'), read, { isOk: true, row: rowOf('a', 1, { hasLeft: true }) }, at(0))
  expect(askOf(lease, 0, candidate)).toMatchObject({ type: 'take', epoch: 2 })
})

test('W4 a process that has seen another holder never uses its epoch again, also not if the store goes back in time', () => {
  const other = answered(holder(), { type: 'renew', epoch: 1 }, { isOk: false, row: rowOf('b', 2) }, at(2_000))
  expect([other.hold, isOthers(other)]).toEqual([undefined, true])
  const back = answered(other, read, { isOk: true, row: rowOf('a', 1) }, at(3_000))
  expect(askOf(back, 3_000, candidate)).toMatchObject({ type: 'take', epoch: 3 })
})

test('W4 a holder that finds a row from before it took the lease takes it anew at once, and nobody else does', () => {
  const looked = answered(newLease('b'), read, { isOk: true, row: rowOf('a', 1, { hasLeft: true }) }, at(0))
  const own = answered(looked, askOf(looked, 0, candidate), { isOk: true, row: rowOf('b', 2) }, at(0))
  const back = answered(own, { type: 'renew', epoch: 2 }, { isOk: false, row: rowOf('a', 1) }, at(2_000))
  expect(isOthers(back)).toBe(false)
  expect(askOf(back, 2_000, candidate)).toMatchObject({ type: 'take', epoch: 3 })
  // The one before has not held it since.
  const other = answered(
    answered(holder(), { type: 'renew', epoch: 1 }, { isOk: false, row: rowOf('b', 2) }, at(1)),
    read,
    {
      ...{ isOk: true, row: rowOf('c', 1) },
    },
    at(2),
  )
  expect(askOf(other, 2, candidate)).toEqual(read)
})

test('W4 an answer to a lease that lapsed meanwhile changes nothing of a later one', () => {
  const gone = lapsed(holder(), stopMs)
  expect(gone.hold).toBeUndefined()
  const next = answered(
    gone,
    { type: 'take', expected: undefined, epoch: 2 },
    { isOk: true, row: rowOf('a', 2) },
    at(stopMs),
  )
  const late = answered(next, { type: 'renew', epoch: 1 }, { isOk: false, row: rowOf('a', 2) }, at(stopMs + 1, 1))
  expect(late.hold?.epoch).toBe(2)
})

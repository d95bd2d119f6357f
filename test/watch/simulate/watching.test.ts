import { describe, expect, test } from 'vitest'
import {
  afterPing,
  afterSample,
  type Condition,
  isSteady,
  newPinging,
  newVigil,
  pingDue,
  problemOf,
} from '../../../src/core/watch/watching/index.ts'
import { Chance } from './chance.ts'

const second = 1_000
const minute = 60 * second
const well: Condition = { watches: true, keepsUp: true, isStored: true, isIsolated: false, waitingSince: undefined }
/** Alertmanager ends a watchdog that is not posted again after this time; svc posts it this often. */
const watchdogMs = 2 * minute
const renewMs = 30 * second

const faults = ['hangs', 'isolated', 'late', 'cannot write', 'no descriptors'] as const
type Fault = (typeof faults)[number]

/** How long it takes at most until svc notices. A process that hangs, or cannot open a socket, notices nothing. */
const noticedAfter: Readonly<Record<Fault, number>> = {
  hangs: Number.POSITIVE_INFINITY,
  isolated: 23 * second,
  late: 8 * second,
  'cannot write': 13 * second,
  'no descriptors': Number.POSITIVE_INFINITY,
}

/** A simulated svc, with the decision of the product. `decide`: the decision, for planted defects. */
function simulated(seed: number, decide = afterSample) {
  const chance = new Chance(seed)
  const faultAt = 5 * minute + chance.between(0, minute)
  const broken = faults.filter(() => chance.is(0.4))
  if (broken.length === 0) broken.push(chance.of(faults))
  const noticedAt = new Map(broken.map((fault) => [fault, faultAt + chance.between(0, noticedAfter[fault] + 1)]))
  // A line may be cut only on the way to what svc monitors: pings could still leave.
  const reachesOut = !broken.includes('no descriptors') && chance.is(0.5)
  let vigil = newVigil(0)
  let pinging = newPinging(0)
  let postedAt = Number.NEGATIVE_INFINITY
  let watchdogEndsAt = Number.NEGATIVE_INFINITY
  let pingedAt = Number.NEGATIVE_INFINITY
  for (let now = 0; now <= faultAt + 15 * minute; now += second) {
    const isBroken = now >= faultAt
    if (isBroken && broken.includes('hangs')) break
    const notices = (fault: Fault): boolean => now >= (noticedAt.get(fault) ?? Number.POSITIVE_INFINITY)
    const condition: Condition = {
      ...well,
      keepsUp: !notices('late'),
      isStored: !notices('cannot write'),
      isIsolated: notices('isolated'),
    }
    vigil = decide(vigil, condition, now)
    const arrives = !isBroken || reachesOut || !(broken.includes('isolated') || broken.includes('no descriptors'))
    if (pingDue(pinging, vigil, now)) {
      pinging = afterPing(now, arrives)
      if (arrives) pingedAt = now
    }
    if (now - postedAt >= renewMs) {
      postedAt = now
      if (isSteady(vigil, now) && arrives) watchdogEndsAt = now + watchdogMs
    }
  }
  return { broken, faultAt, pingedAt, watchdogEndsAt }
}

describe('W24 simulated: svc that hangs, is isolated, is late, cannot write, or has no descriptors', () => {
  const runs = Array.from({ length: 100 }, (_, seed) => simulated(seed))

  test('in 100 combinations, the pings stop and the watchdog ends within 3 min', () => {
    const late = runs.filter(
      ({ faultAt, pingedAt, watchdogEndsAt }) =>
        pingedAt > faultAt + 3 * minute || watchdogEndsAt > faultAt + 3 * minute,
    )
    expect(late).toEqual([])
  })

  test('the 100 combinations contain each fault at least 20 times, and at least 20 different sets', () => {
    for (const fault of faults) expect(runs.filter(({ broken }) => broken.includes(fault)).length).toBeGreaterThan(20)
    expect(new Set(runs.map(({ broken }) => broken.join())).size).toBeGreaterThan(20)
  })

  test('before the fault both arrive: the pings each minute', () => {
    for (const { faultAt, pingedAt, watchdogEndsAt } of runs) {
      expect(pingedAt).toBeGreaterThan(faultAt - 61 * second)
      expect(watchdogEndsAt).toBeGreaterThan(faultAt + minute)
    }
  })

  test('a decision that ignores one of the conditions is detected', () => {
    for (const [fault, healed] of [
      ['late', { keepsUp: true }],
      ['isolated', { isIsolated: false }],
      ['cannot write', { isStored: true }],
    ] as const) {
      const planted = Array.from({ length: 100 }, (_, seed) =>
        simulated(seed, (vigil, condition, now) => afterSample(vigil, { ...condition, ...healed }, now)),
      )
      const late = planted.filter(({ faultAt, watchdogEndsAt }) => watchdogEndsAt > faultAt + 3 * minute)
      expect(late.length, fault).toBeGreaterThan(0)
    }
  })
})

describe('W24 the decision', () => {
  const vigilOf = (samples: readonly (readonly [number, Partial<Condition>])[]) =>
    samples.reduce((vigil, [at, change]) => afterSample(vigil, { ...well, ...change }, at * second), newVigil(0))
  const seconds = (from: number, to: number, change: Partial<Condition> = {}) =>
    Array.from({ length: to - from + 1 }, (_, at) => [from + at, change] as const)

  test('needs a whole minute without a bad second', () => {
    expect(isSteady(vigilOf(seconds(0, 59)), 59 * second)).toBe(false)
    expect(isSteady(vigilOf(seconds(0, 60)), 60 * second)).toBe(true)
    const bad = [...seconds(0, 60), ...seconds(61, 61, { keepsUp: false }), ...seconds(62, 121)]
    expect(isSteady(vigilOf(bad), 121 * second)).toBe(false)
    expect(isSteady(vigilOf([...bad, ...seconds(122, 122)]), 122 * second)).toBe(true)
  })

  test('begins anew after the process stood still, and holds for 5 s without a sample', () => {
    expect(isSteady(vigilOf(seconds(0, 60)), 66 * second)).toBe(false)
    expect(isSteady(vigilOf([...seconds(0, 60), ...seconds(120, 121)]), 121 * second)).toBe(false)
    expect(isSteady(vigilOf([...seconds(0, 60), ...seconds(120, 180)]), 180 * second)).toBe(true)
  })

  test('allows a message to wait for 10 min, and names each reason', () => {
    expect(problemOf({ ...well, waitingSince: 0 }, 10 * minute)).toBeUndefined()
    expect(problemOf({ ...well, waitingSince: 0 }, 10 * minute + 1)).toBe('a message has waited for more than 10 min')
    expect(problemOf({ ...well, watches: false }, 0)).toBe('no monitor is scheduled')
    expect(problemOf({ ...well, isIsolated: true }, 0)).toBe('no witness answers')
    expect(problemOf({ ...well, isStored: false }, 0)).toBe('states or notifications are not stored')
    expect(problemOf({ ...well, keepsUp: false }, 0)).toBe('the schedule does not keep up')
  })

  test('a ping that is not accepted is repeated after 10 s, and an accepted one after a minute', () => {
    const vigil = vigilOf(seconds(0, 200))
    expect(pingDue(newPinging(0), vigil, 200 * second)).toBe(true)
    const failed = afterPing(200 * second, false)
    expect(pingDue(failed, vigilOf(seconds(0, 209)), 209 * second)).toBe(false)
    expect(pingDue(failed, vigilOf(seconds(0, 210)), 210 * second)).toBe(true)
    const accepted = afterPing(200 * second, true)
    expect(pingDue(accepted, vigilOf(seconds(0, 259)), 259 * second)).toBe(false)
    expect(pingDue(accepted, vigilOf(seconds(0, 260)), 260 * second)).toBe(true)
    expect(pingDue({ ...accepted, isUnderWay: true }, vigilOf(seconds(0, 300)), 300 * second)).toBe(false)
  })
})

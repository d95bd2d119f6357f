import { describe, expect, test } from 'vitest'
import { drillTimes } from '../../../src/core/watch/drill/index.ts'

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]
const start = Date.UTC(2026, 10, 24, 12)
const weekly = { every: 7 * day, when: undefined, timezone: 'UTC' }
const tuesdays = { every: undefined, when: '0 10 * * TUE', timezone: 'Europe/Berlin' }
const history = { startedAt: start, lastAt: undefined, triedAt: undefined }

describe('M14 when svc serve drills by itself', () => {
  test('the first time 5 min after the start, then an interval after the last drill', () => {
    expect(drillTimes(weekly, history, start).nextAt).toBe(start + 5 * minute)
    expect(drillTimes(weekly, { ...history, lastAt: start }, start + hour).nextAt).toBe(start + 7 * day)
  })

  test('at the times of a cron expression in its time zone', () => {
    const next = drillTimes(tuesdays, { ...history, lastAt: start }, start + hour).nextAt
    expect(new Date(next ?? 0).toISOString()).toBe('2026-12-01T09:00:00.000Z')
    expect(drillTimes(tuesdays, history, start).nextAt).toBe(next)
  })

  test('soon after a start, if one was due while svc was not running', () => {
    const late = { ...history, lastAt: start - 8 * day }
    expect(drillTimes(weekly, late, start).nextAt).toBe(start + 5 * minute)
    expect(drillTimes(tuesdays, late, start).nextAt).toBe(start + 5 * minute)
  })

  test('an hour after an attempt that came to nothing', () => {
    const again = { ...history, triedAt: start + 5 * minute }
    expect(drillTimes(weekly, again, start + 6 * minute).nextAt).toBe(start + 65 * minute)
  })

  test('never without a time', () => {
    expect(drillTimes({ every: undefined, when: undefined, timezone: 'UTC' }, history, start)).toEqual({
      nextAt: undefined,
      overdueSince: undefined,
    })
  })

  test('a drill is overdue two days after it was due, and no sooner', () => {
    const lastAt = start - 7 * day
    const at = (now: number) => drillTimes(weekly, { ...history, lastAt }, now).overdueSince
    expect(at(start + 2 * day)).toBeUndefined()
    expect(at(start + 2 * day + 1)).toBe(start + 2 * day)
    expect(drillTimes(weekly, { ...history, lastAt: start }, start + 3 * day).overdueSince).toBeUndefined()
    expect(drillTimes(weekly, history, start + 3 * day).overdueSince).toBe(start + 2 * day)
  })

  test('a clock that was set back delays a drill by no more than an interval', () => {
    const future = { startedAt: start, lastAt: start + 400 * day, triedAt: start + 400 * day }
    expect(drillTimes(weekly, future, start).nextAt).toBe(start + 7 * day)
  })
})

import { describe, expect, test } from 'vitest'
import { type ClockSilence, ClockWindows, clockProblem } from '../../../src/core/watch/silences/index.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

const rule = (changes: Partial<ClockSilence> = {}): ClockSilence => ({
  ...{ monitors: ['Sql/*'], when: '0 2 * * *', timezone: 'Europe/Berlin', forMs: 2 * hour, reason: 'patches' },
  ...changes,
})

describe('the windows of a silence by the clock', () => {
  test('M7 a window is counted in hours that pass, also where the clock is set back', () => {
    const windows = new ClockWindows(rule({ when: '30 1 * * *', forMs: 3 * hour }))
    // 01:30 CEST; 02:00 to 03:00 occurs twice, so that the window ends at 03:30 CET.
    const begin = Date.UTC(2026, 9, 24, 23, 30)
    expect(windows.at(begin - 1)).toBeUndefined()
    expect(windows.at(begin)).toEqual({ beganAt: begin, until: begin + 3 * hour })
    expect(windows.at(begin + 3 * hour)).toBeUndefined()
  })

  test('M7 a begin that the change of the clock skips is right after the gap', () => {
    const windows = new ClockWindows(rule({ when: '30 2 * * *', forMs: hour }))
    const gap = Date.UTC(2026, 2, 29, 1)
    const window = windows.after(gap - hour)
    expect(window?.beganAt).toBeGreaterThanOrEqual(gap)
    expect(window?.beganAt).toBeLessThan(gap + hour)
  })

  test('M7 the next window is known before it begins', () => {
    const windows = new ClockWindows(rule({ timezone: 'UTC' }))
    const begin = Date.UTC(2026, 10, 25, 2)
    expect(windows.after(begin - 5 * minute)).toEqual({ beganAt: begin, until: begin + 2 * hour })
    expect(windows.after(begin)?.beganAt).toBe(begin + day)
    expect(new ClockWindows(rule({ when: '0 2 31 12 *' })).after(begin)?.beganAt).toBe(Date.UTC(2026, 11, 31, 1))
  })

  test('M7 each minute of a year is in the window that counting by the clock of the zone gives', () => {
    const windows = new ClockWindows(rule({ when: '0 22 * * MON-FRI', forMs: 90 * minute }))
    const parts = new Intl.DateTimeFormat('en-GB', {
      ...{ timeZone: 'Europe/Berlin', weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
    } as const)
    // No change of the clock is near these hours.
    const isExpected = (at: number): boolean => {
      const [weekday = '', time = ''] = parts.format(at).replace(',', '').split(' ')
      const [hours = 0, minutes = 0] = time.split(':').map(Number)
      const since = hours * 60 + minutes - 22 * 60
      return !['Sat', 'Sun'].includes(weekday) && since >= 0 && since < 90
    }
    let inside = 0
    for (let at = Date.UTC(2026, 0, 1); at < Date.UTC(2027, 0, 1); at += 17 * minute) {
      const isInside = windows.at(at) !== undefined
      if (isInside !== isExpected(at)) expect(isInside, new Date(at).toISOString()).toBe(isExpected(at))
      if (isInside) inside += 1
    }
    expect(inside).toBeGreaterThan(1_000)
  })

  test('M7 a clock that is set back or forward finds the window that it is in', () => {
    const windows = new ClockWindows(rule({ timezone: 'UTC' }))
    const begin = Date.UTC(2026, 10, 25, 2)
    for (const at of [begin + hour, begin - 100 * day + minute, begin + 3 * hour, begin + 400 * day, begin + minute]) {
      const isInside = new Date(at).getUTCHours() >= 2 && new Date(at).getUTCHours() < 4
      expect(windows.at(at) !== undefined, new Date(at).toISOString()).toBe(isInside)
    }
  })

  test.for([
    ['an unknown zone', { timezone: 'Europe/Berlim' }, 'did you mean Europe/Berlin?'],
    ['an offset', { timezone: '+01:00' }, 'is not a time zone'],
    ['four fields', { when: '0 2 * *' }, 'has 4 fields: write 5'],
    ['no such field', { when: '0 25 * * *' }, 'when "0 25 * * *" cannot be read'],
    ['no such name', { when: '@often' }, 'is not one of @hourly'],
    ['no such date', { when: '0 2 30 2 *' }, 'matches no date'],
    ['windows that touch', { forMs: day, timezone: 'UTC' }, 'for 24 h does not end before it begins again, 24 h later'],
    [
      'windows that overlap on the day on which the clock is set forward',
      { forMs: 23 * hour + minute },
      'begins again, 23 h later',
    ],
    ['windows that overlap', { when: '*/5 * * * *', forMs: hour }, 'does not end before it begins again, 5 min later'],
    [
      'two windows of a day that overlap',
      { when: '0 2,3 * * *', forMs: 61 * minute },
      'does not end before it begins again, 1 h later',
    ],
  ] as const)('M7 is refused: %s', ([, changes, message]) => {
    expect(clockProblem(rule(changes))).toContain(message)
  })

  test.for([
    ['each night', {}],
    ['a name', { when: '@weekly' }],
    ['each hour for 59 min', { when: '0 * * * *', forMs: 59 * minute }],
    ['29 February, for 30 d', { when: '0 2 29 2 *', forMs: 30 * day }],
  ] as const)('M7 is accepted: %s', ([, changes]) => {
    expect(clockProblem(rule(changes))).toBeUndefined()
  })
})

import { describe, expect, test } from 'vitest'
import { readCronOnce } from '../../src/core/base/cron.ts'

const hour = 3_600_000
const at = (text: string): number => Date.parse(text)
const textsOf = (times: readonly number[]): readonly string[] =>
  times.map((time) => new Date(time).toISOString().slice(0, 16).replace('T', ' '))

/** All times from `from` on until before `to`, found one after the other. */
function between(expression: string, zone: string, from: string, to: string): readonly number[] {
  const cron = readCronOnce(expression, zone)
  const times: number[] = []
  for (let time = cron.after(at(from) - 1); time !== undefined && time < at(to); time = cron.after(time))
    times.push(time)
  return times
}

/** The days of a change in three zones: the times in UTC. */
const days = {
  'Berlin, forward': ['Europe/Berlin', '2026-03-28T23:00Z', '2026-03-29T22:00Z'],
  'Berlin, back': ['Europe/Berlin', '2026-10-24T22:00Z', '2026-10-25T23:00Z'],
  'New York, forward': ['America/New_York', '2026-03-08T05:00Z', '2026-03-09T04:00Z'],
  'Lord Howe, back by half an hour': ['Australia/Lord_Howe', '2026-04-04T13:00Z', '2026-04-05T13:30Z'],
} as const

describe('M7 a silence or a drill by the clock, on the days when the clock changes', () => {
  test.each<[day: keyof typeof days, expression: string, utc: readonly string[]]>([
    ['Berlin, forward', '30 2 * * *', ['2026-03-29 01:00']],
    ['Berlin, forward', '*/30 2 * * *', ['2026-03-29 01:00']],
    ['Berlin, forward', '0 3 * * *', ['2026-03-29 01:00']],
    ['Berlin, forward', '0 2,3 * * *', ['2026-03-29 01:00']],
    ['Berlin, back', '30 2 * * *', ['2026-10-25 00:30']],
    ['Berlin, back', '*/30 2 * * *', ['2026-10-25 00:00', '2026-10-25 00:30']],
    ['Berlin, back', '0 3 * * *', ['2026-10-25 02:00']],
    ['New York, forward', '15,45 2 * * *', ['2026-03-08 07:00']],
    ['Lord Howe, back by half an hour', '45 1 * * *', ['2026-04-04 14:45']],
  ])('M7 %s: "%s" happens once', (day, expression, utc) => {
    const [zone, from, to] = days[day]
    expect(textsOf(between(expression, zone, from, to))).toEqual(utc)
  })

  test.each(Object.entries(days))('M7 %s: back and forth, the same times are found', (_, [zone, from, to]) => {
    for (const expression of ['*/30 * * * *', '30 2 * * *']) {
      const times = between(expression, zone, from, to)
      const cron = readCronOnce(expression, zone)
      expect(new Set(times).size).toBe(times.length)
      for (let time = at(from) + 0.75 * hour; time <= at(to); time += 0.75 * hour) {
        const past = times.filter((one) => one < time).slice(-3)
        if (past.length > 0) expect(cron.before(time, past.length)).toEqual(past.toReversed())
        expect(cron.after(time - 1)).toBe(times.find((one) => one >= time) ?? cron.after(at(to) - 1))
      }
    }
  })
})

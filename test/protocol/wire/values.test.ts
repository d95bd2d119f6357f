import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dto, date as instant } from '../../../src/core/protocol/index.ts'
import { encodeJson, isoDate, readDate, readDuration, writeDuration } from '../../../src/core/protocol/wire/index.ts'

const at = Date.parse('2021-03-04T05:06:07.089Z')

test('N3 a date is written in UTC milliseconds with an informational offset, slashes escaped', () => {
  const holder = dto('ProcessResources', { At: instant })
  expect(encodeJson(holder, { At: new Date(at) })).toBe('{"At":"\\/Date(1614834367089-0000)\\/"}')
  expect(encodeJson(holder, { At: new Date(-500) })).toBe('{"At":"\\/Date(-500-0000)\\/"}')
  expect(encodeJson(holder, { At: new Date(Number.NaN) })).toBe('{}')
})

test.each([
  ['/Date(1614834367089)/', at],
  ['/Date(1614834367089-0000)/', at],
  ['/Date(1614834367089+0530)/', at],
  ['/Date(1614834367089-0500)/', at],
  ['\\/Date(1614834367089)\\/', at],
  ['/Date(-1000)/', -1000],
  ['/Date(-62135596800000-0000)/', Date.parse('0001-01-01T00:00:00Z')],
  ['2021-03-04T05:06:07.089Z', at],
  ['2021-03-04T05:06:07.0891239Z', at],
  ['2021-03-04T05:06:07.0890000', at],
  ['2021-03-04T00:06:07.089-05:00', at],
  ['2021-03-04T10:36:07.089+0530', at],
  ['2021-03-04T05:06:07Z', at - 89],
  ['2021-03-04', Date.parse('2021-03-04T00:00:00Z')],
  ['0001-01-01T00:00:00', -62135596800000],
])('N3 the date %s is read as the correct instant', (text, ms) => {
  expect(readDate(text)?.getTime()).toBe(ms)
})

test.each([
  ...['', 'junk', '/Date()/', '/Date(1.5)/', 'Date(1)', '/Date(99999999999999999)/', '/Date(9999999999999999)/'],
  ...['2021-02-31', '2021-13-01', '2021-03-04T25:00:00Z', '2021-03-04T24:00:00Z', '2021', '1614834367089'],
])('N3 "%s" is not a valid date', (text) => {
  expect(readDate(text)).toBeUndefined()
})

test('N3 in CSV a date is ISO 8601, with milliseconds only when there are any', () => {
  expect(isoDate(new Date(at))).toBe('2021-03-04T05:06:07.089Z')
  expect(isoDate(new Date(at - 89))).toBe('2021-03-04T05:06:07Z')
})

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

test.each([
  [0, 'PT0S'],
  [-0, 'PT0S'],
  [0.00001, 'PT0S'],
  [0.0001, 'PT0.0000001S'],
  [1, 'PT0.001S'],
  [15.1, 'PT0.0151S'],
  [1234.5678, 'PT1.2345678S'],
  [second, 'PT1S'],
  [minute, 'PT1M'],
  [61.5 * second, 'PT1M1.5S'],
  [hour, 'PT1H'],
  [hour + 0.5, 'PT1H0.0005S'],
  [day, 'P1D'],
  [day + hour, 'P1DT1H'],
  [400 * day, 'P400D'],
  [day + 2 * hour + 3 * minute + 4.005 * second, 'P1DT2H3M4.005S'],
  [-5 * second, '-PT5S'],
  [-1.25 * second, '-PT1.25S'],
  [59_999.99999, 'PT1M'],
])('N4 %d ms is written %s', (ms, text) => {
  expect(writeDuration(ms)).toBe(text)
})

test.each([
  ['PT1.234S', 1234],
  ['P1DT2H3M4.005S', 93_784_005],
  ['-PT1S', -1000],
  ['PT90M', 90 * minute],
  ['PT1H0.5S', hour + 500],
  ['01:02:03', 3_723_000],
  ['1.02:03:04.5', 93_784_500],
  ['-00:00:01.2500000', -1250],
  ['00:00:00.00000019', 0.0001],
])('N4 the duration %s is read as %d ms', (text, ms) => {
  expect(readDuration(text)).toBe(ms)
})

test.each(['', 'junk', 'P', 'PT', 'P1', 'P1DT', 'P1Y', 'P1M', 'PT-5S', '1:2:3', '1000', 'PT1.S', 'P99999999999D'])(
  'N4 "%s" is not a valid duration',
  (text) => {
    expect(readDuration(text)).toBeUndefined()
  },
)

test('N4 each multiple of 100 ns is the same after a round trip', () => {
  fc.assert(
    fc.property(fc.integer({ min: -(2 ** 51), max: 2 ** 51 }), (ticks) => {
      expect(readDuration(writeDuration(ticks / 10_000))).toBe(ticks / 10_000)
    }),
    { numRuns: 1000 },
  )
})

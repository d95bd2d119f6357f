import { afterEach, expect, test } from 'vitest'
import { parseUntil } from '../../src/cli/command/instant.ts'
import { moment } from '../../src/cli/render/table.ts'
import { humanTime, noZone, zonedTime } from '../../src/core/base/zone.ts'

const usual = process.env['TZ']
afterEach(() => {
  if (usual === undefined) delete process.env['TZ']
  else process.env['TZ'] = usual
})

test.each([
  ['2026-11-24T10:42:54Z', 'Europe/Berlin', '2026-11-24 11:42:54 +01:00'],
  ['2026-11-24T10:42:54Z', 'UTC', '2026-11-24 10:42:54 UTC'],
  ['2026-11-24T10:42:54Z', 'Asia/Kolkata', '2026-11-24 16:12:54 +05:30'],
  ['2026-12-31T23:30:00Z', 'Pacific/Kiritimati', '2027-01-01 13:30:00 +14:00'],
  ['2026-01-01T00:00:00Z', 'America/St_Johns', '2025-12-31 20:30:00 -03:30'],
  // The last hour of summer time, and the same hour of the clock after it.
  ['2026-10-25T00:30:00Z', 'Europe/Berlin', '2026-10-25 02:30:00 +02:00'],
  ['2026-10-25T01:30:00Z', 'Europe/Berlin', '2026-10-25 02:30:00 +01:00'],
  ['2026-03-29T00:59:59Z', 'Europe/Berlin', '2026-03-29 01:59:59 +01:00'],
  ['2026-03-29T01:00:00Z', 'Europe/Berlin', '2026-03-29 03:00:00 +02:00'],
])('M17 %s on the clock of %s is %s', (at, zone, text) => {
  expect(humanTime(Date.parse(at), { zone })).toBe(text)
})

test('M17 a time without a zone is that of the machine, at the prompt too', () => {
  process.env['TZ'] = 'America/New_York'
  expect(zonedTime(new Date('2026-07-01T12:00:00Z'))).toEqual({
    date: '2026-07-01',
    time: '08:00:00',
    offset: '-04:00',
  })
  expect(moment(new Date('2026-07-01T12:00:00Z'))).toBe('2026-07-01 08:00 -04:00')
  process.env['TZ'] = 'UTC'
  expect(moment(new Date('2026-07-01T12:00:00Z'))).toBe('2026-07-01 12:00 UTC')
})

test.each(['Europe/Berlin', 'UTC', 'America/Argentina/Buenos_Aires', 'Etc/GMT+5'])('M17 %s is a time zone', (zone) => {
  expect(noZone(zone)).toBeUndefined()
})
test.each(['CET', '+01:00', 'Berlin', 'Europe/Berlim', 'Local', ''])('M17 "%s" is no time zone', (zone) => {
  expect(noZone(zone)).toContain('use an IANA name')
})

const at = (input: string, now: string): string =>
  new Date(parseUntil('until', input, Date.parse(now))).toISOString().slice(0, 16)

test.each([
  // Before the first, between both and after the second 02:30.
  ['02:30', '2026-10-24T23:00:00Z', '2026-10-25T00:30'],
  ['02:30', '2026-10-25T00:45:00Z', '2026-10-25T01:30'],
  ['02:30', '2026-10-25T01:45:00Z', '2026-10-26T01:30'],
  ['2026-10-25 02:30', '2026-10-25T00:45:00Z', '2026-10-25T01:30'],
  ['04:00', '2026-10-25T00:45:00Z', '2026-10-25T03:00'],
  // The clock skips it today, which is over.
  ['02:30', '2026-03-29T08:00:00Z', '2026-03-30T00:30'],
])('M18 --until %s in Berlin is the next such time, where the clock shows it twice too (%s)', (input, now, until) => {
  process.env['TZ'] = 'Europe/Berlin'
  expect(at(input, now)).toBe(until)
})

test.each([
  ['02:30', '2026-03-29T00:10:00Z'],
  ['02:30', '2026-03-28T12:00:00Z'],
  ['2026-03-29 02:30', '2026-03-28T12:00:00Z'],
])('M18 --until %s in Berlin is a mistake where the clock skips that time (%s)', (input, now) => {
  process.env['TZ'] = 'Europe/Berlin'
  expect(() => at(input, now)).toThrow('is not a valid time')
})

import { expect, test } from 'vitest'
import { parseUntil } from '../../src/cli/command/instant.ts'

test.for([
  '2026-02-31 10:00',
  '2026-02-30 04:00',
  '2026-04-31T04:00Z',
  '2026-11-29 24:00',
  '2026-13-01 00:00',
  '25:00',
])('M8 a date that does not exist is a mistake: %s', (input) => {
  expect(() => parseUntil('until', input, 0)).toThrow(`--until "${input}" is not a valid time`)
})

test('M8 a date exists whatever the time zone that it is written in', () => {
  expect(parseUntil('until', '2024-02-29T23:59:30-11:00', 0)).toBe(Date.parse('2024-03-01T10:59:30Z'))
})

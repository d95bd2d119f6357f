import { expect, test } from 'vitest'
import { ClockWindows, type Silence, silencesOf } from '../../../src/core/watch/silences/index.ts'
import type { Incident } from '../../../src/core/watch/states/index.ts'

const hour = 3_600_000
const orders = { type: 'Sql', monitor: 'postgres orders' } as const
const shop = { type: 'App', monitor: 'http shop' } as const
/** 02:00 in Berlin on a Sunday. */
const begin = Date.UTC(2026, 10, 29, 1)
const sunday = (monitors: readonly string[], hours = 2, reason = 'patches'): ClockWindows =>
  new ClockWindows({ monitors, when: '0 2 * * SUN', timezone: 'Europe/Berlin', forMs: hours * hour, reason })
const subjectOf = ({ type, monitor }: typeof orders | typeof shop) => ({
  key: `${type}/${monitor}`,
  type,
  monitor,
  check: 'connect',
})
const incident = (changes: Partial<Incident> = {}): Incident => ({
  ...{ id: 'i1', beganAt: begin, confirmedAt: begin, level: 'failed', message: 'refused' },
  ...{ isFlapping: false, isUnobserved: false, ...changes },
})
const silence = (clock: readonly ClockWindows[], now: number, of: typeof orders | typeof shop = orders) =>
  silencesOf(subjectOf(of), undefined, { clock, entries: [] }, now)[0]

test('M7 a silence covers its monitors in its windows, and no others', () => {
  const clock = [sunday(['Sql/*'])]
  expect(silence(clock, begin - 1)).toBeUndefined()
  expect(silence(clock, begin)).toEqual<Silence>({ source: 'clock', until: begin + 2 * hour, reason: 'patches' })
  expect(silence(clock, begin + 2 * hour - 1)).toBeDefined()
  expect(silence(clock, begin + 2 * hour)).toBeUndefined()
  expect(silence(clock, begin, shop)).toBeUndefined()
})

test.for([
  ['a name', 'postgres orders', true],
  ['a name in other letters', 'Postgres Orders', true],
  ['a type and a name', 'Sql/postgres orders', true],
  ['a part of a name', 'postgres', false],
  ['another type', 'App/postgres orders', false],
] as const)('M7 a silence covers a monitor by %s: %s', ([, pattern, covers]) => {
  expect(silence([sunday([pattern])], begin) !== undefined).toBe(covers)
})

test('M7 what fails because of a silenced monitor is silenced, and not the other way round', () => {
  const cause = { key: 'Sql/postgres orders', ...orders }
  const victim = { level: 'failed', incident: incident({ cause }) } as const
  const rules = (pattern: string) => ({ clock: [sunday([pattern])], entries: [] })
  expect(silencesOf(subjectOf(shop), victim, rules('Sql/postgres orders'), begin)).toHaveLength(1)
  expect(silencesOf(subjectOf(orders), { ...victim, incident: incident() }, rules('App/http shop'), begin)).toEqual([])
})

test('M7 of several windows, the one that lasts longest counts, so that nothing is sent between them', () => {
  const clock = [sunday(['*'], 1, 'short'), sunday(['*'], 3, 'long')]
  expect(silence(clock, begin)?.reason).toBe('long')
  expect(silence(clock.toReversed(), begin)?.reason).toBe('long')
  expect(silence(clock, begin + 2 * hour)?.reason).toBe('long')
})

import { expect, test } from 'vitest'
import {
  ackEnding,
  lapsedAcks,
  type StoredSilence,
  silencesOf,
  silencesOfResult,
} from '../../../src/core/watch/silences/index.ts'
import type { Incident } from '../../../src/core/watch/states/index.ts'

const now = 1_700_000_000_000
const subject = {
  key: 'Sql/postgres/orders',
  type: 'Sql',
  monitor: 'postgres orders',
  check: 'replication lag',
} as const
type Ack = Extract<StoredSilence, { what: 'ack' }>
const ack = (more: Partial<Ack> = {}): Ack => ({
  ...{ what: 'ack', id: 'a1', from: now, until: now + 1_000, by: 'alice', reason: 'INC-7' },
  ...{ subject, incident: 'i1', level: 'failed', fault: 'refused' },
  ...more,
})
const incident = (more: Partial<Incident> = {}): Incident => ({
  ...{ id: 'i1', beganAt: now, confirmedAt: now, level: 'failed', message: 'refused', fault: 'refused' },
  ...{ isFlapping: false, isUnobserved: false },
  ...more,
})

test.for([
  ['the fault is the same', { level: 'failed', fault: 'refused', incident: incident() }, undefined],
  ['it cannot be reached for another reason', { level: 'failed', fault: 'timeout', incident: incident() }, undefined],
  ['its certificate is rejected', { level: 'failed', fault: 'tls', incident: incident() }, undefined],
  ['it answers with another fault', { level: 'failed', fault: 'auth', incident: incident() }, 'other fault'],
  ['it has eased', { level: 'warning', incident: incident({ level: 'warning' }) }, undefined],
  ['it flaps and is healthy now', { level: 'ok', incident: incident({ isFlapping: true }) }, undefined],
  ['its incident is over', { level: 'ok', incident: undefined }, 'over'],
  [
    'another incident of the check is open',
    { level: 'failed', fault: 'refused', incident: incident({ id: 'i2' }) },
    'over',
  ],
  ['its monitor no longer exists', 'removed', 'over'],
  ['nothing is known of it yet', undefined, undefined],
] as const)('M9 whether an acknowledged failure is still the same: %s', ([, state, ending]) => {
  expect(ackEnding(ack(), state)).toBe(ending)
})

test('M9 an acknowledgement counts at once, although the clock has been set back since', () => {
  const state = { level: 'failed', fault: 'refused', incident: incident() } as const
  const entries = [ack({ from: now + 7_200_000, until: now + 9_000_000 })]
  expect(silencesOf(subject, state, { clock: [], entries }, now)).toHaveLength(1)
  const silence = { what: 'silence', id: 's1', monitors: ['Sql/*'], by: 'alice', reason: 'patches' } as const
  const later = [{ ...silence, from: now + 7_200_000, until: now + 9_000_000 }]
  expect(silencesOf(subject, state, { clock: [], entries: later }, now)).toEqual([])
})

test('M9 an acknowledged warning that becomes a failure is worse', () => {
  const state = { level: 'failed', fault: 'threshold', incident: incident() } as const
  expect(ackEnding(ack({ level: 'warning', fault: undefined }), state)).toBe('worse')
})

test('M9 an acknowledgement covers its check and its item, and no others', () => {
  const entries = [ack({ subject: { ...subject, item: 'replica 2' } })]
  const state = { level: 'failed', fault: 'refused', incident: incident() } as const
  const silences = (of: typeof subject & { item?: string }) => silencesOf(of, state, { clock: [], entries }, now)
  expect(silences({ ...subject, item: 'replica 2' })).toMatchObject([{ source: 'ack', by: 'alice', reason: 'INC-7' }])
  expect(silences({ ...subject, item: 'replica 1' })).toEqual([])
  expect(silences(subject)).toEqual([])
})

test('M9 an acknowledgement that has ended, by its time or by hand, covers nothing', () => {
  const state = { level: 'failed', fault: 'refused', incident: incident() } as const
  const ended = { at: now, by: 'bob', why: 'ended' } as const
  expect(silencesOf(subject, state, { clock: [], entries: [ack({ ended })] }, now)).toEqual([])
  expect(silencesOf(subject, state, { clock: [], entries: [ack()] }, now + 1_000)).toEqual([])
})

test('M9 a result that no run has confirmed yet is acknowledged only if it is the same fault', () => {
  const result = { type: 'Sql', monitor: 'postgres orders', check: 'replication lag', level: 'failed' } as const
  const covers = (fault: string, entry = ack()) =>
    silencesOfResult({ ...result, fault }, { clock: [], entries: [entry] }, now).length === 1
  expect([covers('timeout'), covers('auth')]).toEqual([true, false])
  expect(covers('threshold', ack({ level: 'warning', fault: undefined }))).toBe(false)
})

test('M9 everybody has to know of acknowledgements whose fault is no longer the same, and of no others', () => {
  const ended = (id: string, why: 'worse' | 'other fault' | 'ended' | 'over') =>
    ack({ id, ended: { at: now, by: '-', why } })
  expect(lapsedAcks('i1', [ended('a', 'worse'), ended('b', 'other fault')])).toEqual(['a', 'b'])
  expect(lapsedAcks('i1', [ended('a', 'ended'), ended('b', 'over'), ack()])).toEqual([])
  expect(lapsedAcks('i2', [ended('a', 'worse')])).toEqual([])
  expect(lapsedAcks(undefined, [ended('a', 'worse')])).toEqual([])
})

import { expect, test } from 'vitest'
import { dueFor, emptyRow, type Present, wordOf } from '../../../src/core/watch/outbox/row.ts'
import { lapsedAcks, type Silence, type StoredSilence, warningAckedAt } from '../../../src/core/watch/silences/index.ts'
import type { Incident } from '../../../src/core/watch/states/index.ts'

const minute = 60_000
const now = 1_700_000_000_000
const subject = { key: 'Sql/postgres/orders', type: 'Sql', monitor: 'postgres orders', check: 'connect' } as const
const incident: Incident = {
  ...{ id: 'i1', beganAt: now, confirmedAt: now, level: 'failed', message: 'refused', fault: 'refused' },
  ...{ isFlapping: false, isUnobserved: false },
}
const ack = (endedAt: number): StoredSilence => ({
  ...{ what: 'ack', id: 'a1', from: now, until: now + 90 * minute, by: 'alice', reason: 'INC-7', subject },
  ...{ incident: 'i1', level: 'failed', fault: 'refused', ended: { at: endedAt, by: '-', why: 'other fault' } },
})
const present = (at: number, acks: readonly string[] = []): Present => ({
  subject,
  state: { level: 'failed', incident, latest: { level: 'failed', at, since: now }, message: 'auth', depth: 'Basic' },
  isSilenced: false,
  lapsedAcks: acks,
})
const receiver = { name: 'chat', folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }

test.for([
  ['an hour behind', -60 * minute],
  ['the same', 0],
  ['an hour ahead', 60 * minute],
] as const)(
  'M9 that a fault is no longer the acknowledged one is told once, also where the clock of the store is %s',
  ([, skew]) => {
    const sentOne = { ...emptyRow, last: wordOf(present(now), now) }
    const lapsed = lapsedAcks('i1', [ack(now + minute + skew)])
    const at = now + 2 * minute
    expect(dueFor(present(at), sentOne, receiver, at)).toBeUndefined()
    expect(dueFor(present(at, lapsed), sentOne, receiver, at)?.what).toBe('change')
    const sentBoth = { ...emptyRow, last: wordOf(present(at, lapsed), at) }
    expect(dueFor(present(at + 1, lapsed), sentBoth, receiver, at + 1)).toBeUndefined()
    // A week later, the entry is deleted.
    expect(dueFor(present(at + 1), sentBoth, receiver, at + 1)).toBeUndefined()
  },
)

const warning = { ...incident, level: 'warning' } as const
const mild = wordOf({ ...present(now), state: { ...present(now).state, incident: warning } }, now)
const acknowledged: Present = {
  ...present(now + 3 * minute),
  state: { level: 'warning', incident: warning, message: 'slow', depth: 'Basic' },
  isSilenced: true,
  warningAckedAt: now + 1,
}
/** The last message of a process without the store, before it was killed. */
const worse = mild && ({ ...mild, level: 'failed', at: now + minute } as const)

test.for([
  ['the same incident', { attempt: worse && ({ ...worse, isUnsure: true } as const) }, 'change'],
  ['another incident of the fault', { others: worse && [{ ...worse, incident: 'i2' }], isInDoubt: true }, 'reminder'],
  ['a warning only', { others: mild && [{ ...mild, incident: 'i2', at: now + minute }], isInDoubt: true }, undefined],
  ['nothing', {}, undefined],
] as const)(
  'M9 who was told without the store that an acknowledged warning had become worse is told how it is now: %s',
  ([, more, what]) => {
    const row = { ...emptyRow, last: mild, ...more }
    const at = now + 3 * minute
    expect(dueFor(acknowledged, row, receiver, at)?.what).toBe(what)
    // Another silence says nothing of a warning, and somebody who acknowledged it since knew of the failure.
    for (const since of [undefined, now + 2 * minute])
      expect(dueFor({ ...acknowledged, warningAckedAt: since }, row, receiver, at)).toBeUndefined()
    // Once it knows that, the acknowledgement holds.
    const since = mild && { ...mild, at: now + 2 * minute }
    expect(dueFor(acknowledged, { ...row, last: since, attempt: undefined }, receiver, at)).toBeUndefined()
  },
)

test('M9 whether nothing but acknowledgements of a warning silences a fault, and since when', () => {
  const silence = (source: Silence['source'], id: string): Silence => ({ source, id, until: now, reason: 'INC-7' })
  const mildAck = (id: string, from: number): StoredSilence =>
    ({ ...ack(now), id, level: 'warning', from }) as StoredSilence
  const entries = [mildAck('a1', now), mildAck('a2', now + 5), { ...ack(now), id: 'a3' }]
  const own = silence('ack', 'a1')
  expect(warningAckedAt([], entries)).toBeUndefined()
  expect(warningAckedAt([own], entries)).toBe(now)
  expect(warningAckedAt([own, silence('ack', 'a2')], entries)).toBe(now + 5)
  expect(warningAckedAt([own, silence('ack', 'a3')], entries)).toBeUndefined()
  expect(warningAckedAt([own, silence('hand', 's1')], entries)).toBeUndefined()
  expect(warningAckedAt([own, silence('clock', '')], entries)).toBeUndefined()
})

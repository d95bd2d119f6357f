import { expect, test } from 'vitest'
import { dueFor, emptyRow, type Present, wordOf } from '../../../src/core/watch/outbox/row.ts'
import { lapsedAcks, type StoredSilence } from '../../../src/core/watch/silences/index.ts'
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

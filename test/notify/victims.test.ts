import { expect, test } from 'vitest'
import { type NoticeItem, Outbox, type OutboxEffect, type Present } from '../../src/core/outbox/index.ts'
import type { Incident, StoredSubject } from '../../src/core/states/index.ts'

const subject: StoredSubject = { key: 'App/http/p2', type: 'App', monitor: 'http p2', check: 'connect' }
const keys = new Set([subject.key])
const cause = { key: 'App/http/p1', type: 'App', monitor: 'http p1' } as const
const second = 1_000

const incident = (id: string, beganAt: number, more: Partial<Incident> = {}): Incident => ({
  id,
  beganAt,
  confirmedAt: beganAt + 20 * second,
  level: 'failed',
  message: 'it fails',
  isFlapping: false,
  isUnobserved: false,
  ...more,
})

/** A receiver that has got an incident from a node without the store, while the store has another one of the same fault. */
function receiver(present: () => Present['state']) {
  const outbox = new Outbox(0, (one) => ({ subject: one, state: present(), isQuiet: false }), '@a//svc/receivers')
  const rules = { name: 'pager', folds: false, remindMs: Number.POSITIVE_INFINITY, wants: () => true }
  outbox.configure([rules], 0)
  const last = {
    incident: 'alone',
    level: 'failed',
    isFlapping: false,
    beganAt: 60 * second,
    observedAt: 90 * second,
    at: 120 * second,
  } as const
  outbox.takeOver(keys, [{ receiver: 'pager', subject, row: { last, ends: [] } }], 200 * second)
  outbox.watch(subject)
  const accept = (effects: readonly OutboxEffect[], now: number): readonly NoticeItem[] =>
    effects.flatMap((effect) => {
      if (effect.type !== 'send') return []
      outbox.answered('pager', effect.attempt, { what: 'accepted' }, now)
      return effect.items
    })
  return (now: number) => accept(outbox.tick(now).effects, now).map(({ what, incident: of }) => `${what} ${of}`)
}

const failing = (at: number, of: Incident): Present['state'] => ({
  level: 'failed',
  message: 'it fails',
  depth: 'Basic',
  latest: { level: 'failed', at, since: 0, fault: 'timeout' },
  incident: of,
})

test('W4 no receiver hears that a victim is well which a node without the store reported as failed', () => {
  const victim = incident('stored', 30 * second, { cause })
  let state = failing(200 * second, victim)
  const sentAt = receiver(() => state)
  expect(sentAt(200 * second)).toEqual([])
  state = failing(300 * second, victim)
  expect(sentAt(300 * second)).toEqual([])
  // Its cause is gone, and it still fails.
  state = failing(400 * second, incident('stored', 30 * second))
  expect(sentAt(400 * second)).toEqual(['end alone', 'begin stored'])
})

test('W4 a receiver hears that a victim has recovered which a node without the store reported as failed', () => {
  let state = failing(200 * second, incident('stored', 30 * second, { cause }))
  const sentAt = receiver(() => state)
  expect(sentAt(200 * second)).toEqual([])
  const latest = { level: 'ok', at: 320 * second, since: 300 * second } as const
  state = { level: 'ok', message: 'fine', depth: 'Basic', latest }
  expect(sentAt(320 * second)).toEqual(['end alone'])
  expect(sentAt(400 * second)).toEqual([])
})

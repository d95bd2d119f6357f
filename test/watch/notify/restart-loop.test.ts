import { expect, test } from 'vitest'
import {
  type NoticeItem,
  Outbox,
  type OutboxEffect,
  type Present,
  type StoredRow,
} from '../../../src/core/watch/outbox/index.ts'
import { type StoredSubject, subjectId } from '../../../src/core/watch/states/index.ts'

const second = 1_000
const subjectOf = (monitor: string): StoredSubject => ({
  key: `Sql/${monitor}`,
  type: 'Sql',
  monitor,
  check: 'connect',
})

/**
 * A folding receiver that accepts all, for so many seconds. Every 8 s a new process begins, which knows only what is stored.
 * `faults`: the seconds in which an incident of a monitor stands. Returns the messages, each with its second.
 */
function restartLoop(seconds: number, faults: Readonly<Record<string, readonly [from: number, to: number]>>) {
  let now = 0
  const stored = new Map<string, StoredRow>()
  const messages: { readonly at: number; readonly lines: readonly string[] }[] = []
  const lookup = (subject: StoredSubject): Present => {
    const [from = 0, to = 0] = (faults[subject.monitor] ?? []).map((at) => at * second)
    const level: 'failed' | 'ok' = from <= now && now < to ? 'failed' : 'ok'
    const texts = { level, message: level, depth: 'Basic' } as const
    const times = { id: subject.monitor, beganAt: from, confirmedAt: from, isFlapping: false, isUnobserved: false }
    const incident = level === 'ok' ? undefined : { ...times, level, message: level }
    const latest = { level, at: now, since: level === 'ok' ? to : from } as const
    return { subject, state: { ...texts, latest, incident }, isSilenced: false }
  }
  const start = (): Outbox => {
    const outbox = new Outbox(now, lookup)
    outbox.restore(structuredClone([...stored.values()]), now)
    carryOut(
      outbox,
      outbox.configure([{ name: 'mail', folds: true, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }], now),
    )
    for (const name of Object.keys(faults)) outbox.watch(subjectOf(name))
    return outbox
  }
  const lineOf = ({ what, subject }: NoticeItem): string => `${what} ${subject.monitor}`
  const carryOut = (outbox: Outbox, effects: readonly OutboxEffect[]): void => {
    for (const effect of effects) {
      if (effect.type !== 'store' && effect.type !== 'send') continue
      for (const row of effect.rows) {
        if (row.row) stored.set(subjectId(row.subject), structuredClone(row))
        else stored.delete(subjectId(row.subject))
      }
      if (effect.type === 'store') continue
      messages.push({ at: now / second, lines: effect.items.map(lineOf) })
      carryOut(outbox, outbox.answered('mail', effect.attempt, { what: 'accepted' }, now))
    }
  }
  let outbox = start()
  for (; now < seconds * second; now += second) {
    if (now % (8 * second) === 0) outbox = start()
    for (const name of Object.keys(faults)) outbox.watch(subjectOf(name))
    carryOut(outbox, outbox.tick(now).effects)
  }
  return messages
}

test('W23 what is confirmed within 10 s is one message, 10 s after the first of it, although svc is killed every 8 s', () => {
  expect(restartLoop(60, { orders: [2, 900], stock: [9, 900] })).toEqual([
    { at: 12, lines: ['begin orders', 'begin stock'] },
  ])
})

test('W23 an end leaves after 10 s although svc is killed every 8 s', () => {
  // Two healthy runs 10 s apart show it, because the states of this test report no end.
  expect(restartLoop(160, { orders: [2, 100], stock: [2, 103] })).toEqual([
    { at: 12, lines: ['begin orders', 'begin stock'] },
    { at: 120, lines: ['end orders', 'end stock'] },
  ])
})

test('W23 the next message follows a begin after a minute although svc is killed every 8 s', () => {
  expect(restartLoop(160, { orders: [2, 900], stock: [20, 900] })).toEqual([
    { at: 12, lines: ['begin orders'] },
    { at: 72, lines: ['begin stock'] },
  ])
})

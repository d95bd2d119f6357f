import { describe, expect, test } from 'vitest'
import {
  type DrillFacts,
  hopsOf,
  type ReceiverFacts,
  resultOf,
  withOpened,
} from '../../../src/core/watch/drill/index.ts'

const receiver: ReceiverFacts = {
  name: 'chat',
  hasStore: true,
  folds: true,
  storeFailure: undefined,
  sentAt: 31_000,
  attempts: 1,
  acceptedAt: 31_200,
  failure: undefined,
  receipt: 'status 204',
  traced: [],
  provenAt: new Map(),
  hasCallback: true,
  openedAt: 33_000,
  endSent: { what: 'accepted' },
  endedAt: 91_000,
}
const drill: DrillFacts = { beganAt: 0, confirmedAt: 20_000, recoveredAt: 90_500, isOver: true, receivers: [receiver] }
const of = (facts: Partial<ReceiverFacts>, more: Partial<DrillFacts> = {}) =>
  hopsOf({ ...drill, receivers: [{ ...receiver, ...facts }], ...more })
const hop = (name: string, facts: Partial<ReceiverFacts>, more: Partial<DrillFacts> = {}) =>
  of(facts, more).find((one) => one.hop === name)

describe('M14 what a drill says of each hop', () => {
  test('each hop that worked is proven, with the time since the hop before', () => {
    expect(hopsOf(drill).map(({ hop: name, result, ms }) => [name, result, ms])).toEqual([
      ['confirmation', 'proven', 20_000],
      ['outbox', 'proven', 11_000],
      ['accepted', 'proven', 200],
      ['opened', 'proven', 1_800],
      ['end', 'proven', 500],
    ])
    expect(resultOf(hopsOf(drill))).toBe('proven')
  })

  test('a link that nobody opened, or that there is none, is not proven, and later may be', () => {
    expect(hop('opened', { openedAt: undefined })).toMatchObject({ result: 'not proven' })
    expect(hop('opened', { openedAt: undefined, hasCallback: false })?.message).toContain('with serve.url and a store')
    expect(hop('opened', { openedAt: undefined }, { isOver: false })).toMatchObject({ result: 'waiting' })
    const hops = of({ openedAt: undefined })
    expect(resultOf(hops)).toBe('not proven')
    expect(resultOf(withOpened(hops, { chat: 99_000 }))).toBe('proven')
    expect(resultOf(withOpened(hops, { other: 99_000 }))).toBe('not proven')
  })

  test('what did not happen before the end has failed', () => {
    expect(resultOf(of({}, { confirmedAt: undefined }))).toBe('failed')
    expect(hop('outbox', { sentAt: undefined })).toMatchObject({
      result: 'failed',
      message: 'the message was not sent',
    })
    expect(hop('outbox', { storeFailure: 'disk full' })).toMatchObject({ result: 'failed' })
    const refused = { acceptedAt: undefined, failure: 'it answered 500' }
    expect(hop('accepted', refused)).toMatchObject({ result: 'failed', message: 'it answered 500' })
    expect(hop('end', { endedAt: undefined, endSent: undefined })).toMatchObject({ result: 'failed' })
    expect(of(refused).map((one) => one.hop)).toEqual(['confirmation', 'outbox', 'accepted'])
  })

  test('a receiver that accepts late names what was before', () => {
    expect(hop('accepted', { attempts: 3, failure: 'it answered 503' })).toMatchObject({
      result: 'proven',
      message: 'status 204, at attempt 3; before that, it answered 503',
    })
  })

  test('an alert that is accepted and nowhere is a failure, a notification that may still come is not proven', () => {
    const listed = { hop: 'listed', result: 'waiting', message: 'not listed' } as const
    const notified = { hop: 'notified', result: 'waiting', message: 'nothing sent' } as const
    expect(hop('listed', { traced: [listed] })).toMatchObject({ result: 'failed' })
    expect(hop('notified', { traced: [notified] })).toMatchObject({ result: 'not proven' })
    expect(hop('listed', { traced: [listed] }, { isOver: false })).toMatchObject({ result: 'waiting' })
  })

  test('at a server, whether svc watches is a hop of its own', () => {
    expect(hop('watching', {}, { watching: { reason: undefined } })).toMatchObject({ result: 'proven' })
    expect(hop('watching', {}, { watching: { reason: 'no witness answers' } })).toMatchObject({
      result: 'failed',
      message: 'no witness answers',
    })
  })

  test('without a store, the outbox is not proven', () => {
    expect(hop('outbox', { hasStore: false })).toMatchObject({ result: 'not proven' })
  })
})

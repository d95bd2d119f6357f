import { expect, test } from 'vitest'
import type { NodeRow } from '../../../src/core/watch/nodes/index.ts'
import { maySpeakFor, Speakers, type Stand, speaksBefore } from '../../../src/core/watch/nodes/speakers.ts'

const second = 1_000
const row = (node: string, more: Partial<NodeRow> = {}): NodeRow => ({
  node,
  epoch: 1,
  isLive: true,
  isIsolated: false,
  config: 'lease',
  silentMs: 0,
  hasLeft: false,
  facts: { version: '1', startedAt: 0, peer: `http://${node}.example.com` },
  ...more,
})
const stand = (more: Partial<Stand> = {}): Stand => ({
  node: 'b',
  holder: undefined,
  withoutStoreMs: 60 * second,
  isIsolated: false,
  ...more,
})

test('W4 without the store the last holder speaks first, and then the nodes by their names', () => {
  const order = (holder: string | undefined): string =>
    ['b', 'c', 'a'].toSorted((one, other) => (speaksBefore(one, other, holder) ? -1 : 1)).join('')
  expect([order(undefined), order('a'), order('b'), order('c')]).toEqual(['abc', 'abc', 'bac', 'cab'])
  expect(speaksBefore('a', 'a', 'a')).toBe(false)
})

test('W4 whatever holder each of four nodes has seen, they are never all silent for each other', () => {
  const names = ['a', 'b', 'c', 'd']
  const views = [...names, undefined]
  for (let number = 0; number < views.length ** names.length; number += 1) {
    const holders = new Map(
      names.map((name, at) => [name, views[Math.floor(number / views.length ** at) % views.length]]),
    )
    const isSilent = (name: string): boolean =>
      names.some(
        (other) =>
          speaksBefore(other, name, holders.get(name)) &&
          maySpeakFor(name, stand({ node: other, holder: holders.get(other) })),
      )
    expect(names.every(isSilent), JSON.stringify([...holders])).toBe(false)
  }
})

test.each([
  ['it has the store', { withoutStoreMs: undefined }],
  ['it has been without the store for less than 45 s', { withoutStoreMs: 44 * second }],
  ['none of its witnesses answers', { isIsolated: true }],
  ['it is after the one that asks', { node: 'd' }],
  ['the one that asks held the lease last', { holder: 'c' }],
])('W4 a node does not say that it speaks if %s', (_, more) => {
  expect(maySpeakFor('c', stand())).toBe(true)
  expect(maySpeakFor('c', stand(more))).toBe(false)
})

test('W4 a node asks those before it every 5 s from 45 s without the store on, and at most eight', () => {
  const speakers = new Speakers()
  const rows = ['d', 'a', 'b', 'c'].map((name) => row(name))
  const ask = (now: number, more: Partial<Stand>, of = rows): string =>
    speakers
      .ask(stand({ node: 'c', ...more }), of, now)
      .map(({ node }) => node)
      .join('')
  expect(ask(0, { withoutStoreMs: 44 * second })).toBe('')
  expect(ask(0, { withoutStoreMs: undefined })).toBe('')
  expect(ask(0, {})).toBe('ab')
  expect(ask(4 * second, {})).toBe('')
  expect(ask(5 * second, { holder: 'd' })).toBe('dab')
  expect(ask(10 * second, { holder: 'c' })).toBe('')
  const unable = [row('a', { hasLeft: true }), row('b', { facts: { version: '1', startedAt: 0 } })]
  expect(ask(20 * second, {}, [...unable, row('aa', { isLive: false, facts: undefined })])).toBe('')
  const many = Array.from({ length: 12 }, (_, at) => row(`b${String(at).padStart(2, '0')}`))
  expect(speakers.ask(stand({ node: 'c' }), many, 30 * second).length).toBe(8)
})

test('W4 an answer keeps a node silent for 12 s from its question on, and no longer', () => {
  const speakers = new Speakers()
  expect(speakers.other(undefined, 0)).toBeUndefined()
  speakers.note('a', 3 * second)
  speakers.note('a', 1 * second)
  const other = (now: number, holder?: string) => speakers.other(holder, now)
  expect([other(14_999), other(15_000)]).toEqual(['a', undefined])
  // Of several, it is the first one.
  for (const name of ['c', 'b']) speakers.note(name, 5 * second)
  expect([other(14_999), other(15_000), other(15_000, 'c'), other(14_999, 'b')]).toEqual(['a', 'b', 'c', 'b'])
})

import { expect, test } from 'vitest'
import { leaseConfig, type NodeRow, nodeVerdicts, overviewOf } from '../../../src/core/watch/nodes/index.ts'

const row = (node: string, digest = 'one', more: Partial<NodeRow> = {}): NodeRow => ({
  ...{ node, epoch: 1, isLive: true, isIsolated: false, config: leaseConfig, silentMs: 0, hasLeft: false },
  ...{ facts: { version: '1.0.0', startedAt: 0, digest } },
  ...more,
})
const differing = (...rows: readonly NodeRow[]) =>
  overviewOf(rows).flatMap(({ row: { node }, differs }) => (differs ? [node] : []))

test('W4 nodes are listed by name', () => {
  expect(overviewOf([row('c'), row('a'), row('b')]).map(({ row: { node } }) => node)).toEqual(['a', 'b', 'c'])
})

test('W4 a node differs if most live nodes have another configuration', () => {
  expect(differing(row('a'), row('b'), row('c', 'two'))).toEqual(['c'])
  expect(differing(row('a'), row('c', 'two'))).toEqual(['a', 'c'])
  expect(differing(row('a'), row('b'), row('c', 'two', { isLive: false }))).toEqual([])
  expect(differing(row('a'), row('b'))).toEqual([])
})

test('W4 a node whose facts nobody can read neither differs nor counts', () => {
  expect(differing(row('a'), row('b', 'one', { facts: undefined }))).toEqual([])
})

test('W4 a node is out after a minute in which it did not renew its row, for one that has had the store for as long', () => {
  const minute = 60_000
  const levelOf = (more: Partial<NodeRow>, ageMs = 0, memberMs = minute) =>
    nodeVerdicts([{ ...row('a'), isLive: false, silentMs: minute, ...more }], ageMs, memberMs)[0]?.level
  expect(levelOf({})).toBe('failed')
  expect([levelOf({}, 0, minute - 1), levelOf({ silentMs: minute - 1 })]).toEqual([undefined, 'ok'])
  // The answer of the store is a second old.
  expect(levelOf({ silentMs: minute - 1_000 }, 1_000)).toBe('failed')
  expect([levelOf({ hasLeft: true }), levelOf({ isLive: true })]).toEqual(['ok', 'ok'])
  expect(levelOf({ isLive: true, facts: undefined })).toBe('warning')
})

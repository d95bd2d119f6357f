import { expect, test } from 'vitest'
import { leaseConfig, type NodeRow, overviewOf } from '../../../src/core/watch/nodes/index.ts'

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

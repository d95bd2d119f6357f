import { expect, test } from 'vitest'
import { type Configurations, type NodeRow, overviewOf, ownersOf } from '../../../src/core/watch/nodes/index.ts'
import { monitorsOf } from '../../support/store/nodes.ts'

const row = (node: string, more: Partial<NodeRow> = {}): NodeRow => ({
  ...{ node, epoch: 1, isLive: true, isIsolated: false, config: 'one', silentMs: 0, hasLeft: false },
  ...{ facts: { version: '1.0.0', startedAt: 0 } },
  ...more,
})
const keys = Array.from({ length: 40 }, (_, at) => `Sql/tcp/${String(at).padStart(2, '0')}`)
const one: Configurations = new Map([['one', monitorsOf(keys)]])
const shownOf = (rows: readonly NodeRow[], configurations: Configurations) =>
  overviewOf(rows, configurations).nodes.map(({ row: { node }, monitors, differs }) => [node, monitors, differs])

test('W4 each monitor counts for the node that owns it, and for no other', () => {
  const rows = [row('c'), row('a'), row('b')]
  const { nodes, unowned, onIsolated } = overviewOf(rows, one)
  const expected = ['a', 'b', 'c'].map((node) => [node, keys.filter((key) => ownersOf(rows, one)(key) === node).length])
  expect(nodes.map(({ row: { node }, monitors }) => [node, monitors])).toEqual(expected)
  expect(expected.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(40)
  expect(expected.every(([, count]) => Number(count) > 0)).toBe(true)
  expect([unowned, onIsolated]).toEqual([[], []])
})

test('W4 a node that is out owns nothing, and the others own its share', () => {
  const { nodes, unowned } = overviewOf([row('a'), row('b', { isLive: false, silentMs: 12_000 })], one)
  expect(nodes.map(({ monitors }) => monitors)).toEqual([40, 0])
  expect(unowned).toEqual([])
})

test('W4 a monitor that only a node has that is out has no owner, unless another one has it under its new key', () => {
  const configurations = new Map([
    ['one', monitorsOf(['a', 'new'], ['old'])],
    ['two', monitorsOf(['z', 'a', 'old', 'lost'])],
  ])
  const out = { isLive: false, config: 'two', silentMs: 12_000 }
  expect(overviewOf([row('a'), row('b', out)], configurations).unowned).toEqual(['lost', 'z'])
  expect(overviewOf([row('a'), row('b', { ...out, hasLeft: true })], configurations).unowned).toEqual([])
})

test('W4 without a live node no monitor has an owner, however the nodes ended', () => {
  const away = { isLive: false, silentMs: 12_000 }
  expect(overviewOf([row('a', away), row('b', { ...away, hasLeft: true })], one).unowned).toEqual(keys)
  expect(overviewOf([row('b', { ...away, hasLeft: true })], one).unowned).toEqual(keys)
})

test('W4 a monitor whose only owner is isolated is named, and one that another node can run is not', () => {
  const configurations = new Map([
    ['one', monitorsOf(['a', 'b'])],
    ['two', monitorsOf(['b', 'c'])],
  ])
  const rows = [row('a'), row('b', { isIsolated: true, config: 'two' })]
  expect(overviewOf(rows, configurations)).toMatchObject({ unowned: [], onIsolated: ['c'] })
  expect(overviewOf([row('a', { isIsolated: true })], configurations).onIsolated).toEqual(['a', 'b'])
})

test('W4 a node differs if most live nodes have another configuration', () => {
  const two = new Map([...one, ['two', monitorsOf(keys.slice(1))] as const])
  const differing = (...rows: readonly NodeRow[]) =>
    overviewOf(rows, two).nodes.flatMap(({ row: { node }, differs }) => (differs ? [node] : []))
  expect(differing(row('a'), row('b'), row('c', { config: 'two' }))).toEqual(['c'])
  expect(differing(row('a'), row('c', { config: 'two' }))).toEqual(['a', 'c'])
  expect(differing(row('a'), row('b'), row('c', { config: 'two', isLive: false }))).toEqual([])
  expect(differing(row('a'), row('b'))).toEqual([])
})

test('W4 of a live node without a configuration nobody knows how many monitors it owns', () => {
  expect(shownOf([row('a', { config: 'none' }), row('b', { config: 'none', isLive: false })], one)).toEqual([
    ['a', undefined, false],
    ['b', 0, false],
  ])
})

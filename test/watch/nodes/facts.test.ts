import { expect, test } from 'vitest'
import { factsIn, maxFacts } from '../../../src/core/watch/nodes/index.ts'

const plain = { version: '1.0.0', startedAt: 1 }
const question = { key: 'Sql/orders', check: 'connect', id: 1, node: 'b', depth: 'Basic' }
const answer = { id: 1, reaches: true, node: 'b', epoch: 4 }

test.each([
  ['of an earlier version', plain],
  ['with its page', { ...plain, url: 'https://a.example.com/' }],
  ['with its address for other nodes', { ...plain, peer: 'http://10.0.0.7:8790' }],
  [
    'with cross-checks',
    { ...plain, crossChecks: { questions: [question, { ...question, item: 'x' }], answers: [answer] } },
  ],
  ['of a later version, with a member more', { ...plain, mood: 'good' }],
])('W4 the facts of a node %s are read', (_, facts) => {
  expect(factsIn(JSON.stringify(facts))).toEqual(facts)
})

test.each([
  ['', 'garbage', 'null', '[]', '1', '{}'],
  [JSON.stringify({ ...plain, version: null })],
  [JSON.stringify({ ...plain, startedAt: '1' }), JSON.stringify({ ...plain, startedAt: 9e15 })],
  [
    JSON.stringify({ ...plain, url: 5 }),
    JSON.stringify({ ...plain, url: null }),
    JSON.stringify({ ...plain, peer: 1 }),
  ],
  [JSON.stringify({ ...plain, crossChecks: 5 }), JSON.stringify({ ...plain, crossChecks: {} })],
  [JSON.stringify({ ...plain, crossChecks: { questions: [{ ...question, key: 1 }], answers: [] } })],
  [JSON.stringify({ ...plain, crossChecks: { questions: [], answers: [{ ...answer, reaches: 1 }] } })],
  [JSON.stringify({ ...plain, version: 'x'.repeat(maxFacts) })],
])('W4 facts that no node writes are unreadable, whatever they are (%#)', (...texts) => {
  for (const text of texts) expect(factsIn(text)).toBeUndefined()
})

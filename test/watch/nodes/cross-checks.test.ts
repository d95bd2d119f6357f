import { expect, test } from 'vitest'
import { CrossCheckBook } from '../../../src/core/watch/nodes/cross-checks.ts'
import type { CrossChecks, NodeRow } from '../../../src/core/watch/nodes/index.ts'
import { mostQuestions } from '../../../src/core/watch/nodes/policy.ts'

const minute = 60_000

const rowOf = (
  node: string,
  epoch: number,
  checks: Partial<CrossChecks> = {},
  more: Partial<NodeRow> = {},
): NodeRow => ({
  ...{ node, epoch, isLive: true, isIsolated: false, config: 'lease', silentMs: 0, hasLeft: false },
  facts: { version: '1', startedAt: 0, crossChecks: { questions: [], answers: [], ...checks } },
  ...more,
})
const own = rowOf('a', 1)
const questionOf = (id: number, node: string) =>
  ({ id, node, key: 'Sql/orders', check: 'round trip', depth: 'Basic' }) as const
const all = (): boolean => true
const ids = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at + 1)

test('W26 a node looks once for each question to it that it can answer, and forgets one that nobody asks any more', () => {
  const book = new CrossCheckBook('a')
  const rows = [own, rowOf('b', 2, { questions: [questionOf(1, 'a'), questionOf(2, 'c')] })]
  const questions = (from: readonly NodeRow[], isAble = all) => book.receive(from, isAble, 0).questions
  expect(questions(rows, () => false)).toEqual([])
  expect(questions([own, rowOf('b', 2, { questions: [questionOf(1, 'a')] }, { isIsolated: true })])).toEqual([])
  const [question] = questions(rows)
  expect(question).toEqual({ ...questionOf(1, 'a'), from: 'b', epoch: 2 })
  expect(questions(rows)).toEqual([])
  if (question) book.looked(question, true)
  expect(book.facts.answers).toEqual([{ node: 'b', epoch: 2, id: 1, reaches: true }])
  questions([own, rowOf('b', 2)])
  expect(book.facts.answers).toEqual([])
  const many = ids(2 * mostQuestions).map((id) => questionOf(id, 'a'))
  expect(questions([own, rowOf('b', 2, { questions: many })])).toHaveLength(mostQuestions)
})

test('W26 the answer to this process counts, and none comes from a node that is gone or has restarted since', () => {
  const answersOf = (rows: readonly NodeRow[], { before = [rowOf('b', 2)], at = 1 } = {}) => {
    const book = new CrossCheckBook('a')
    book.asks([questionOf(7, 'b')], before, 0)
    return book.receive(rows, all, at).answers
  }
  const answer = (epoch: number) => rowOf('b', 2, { answers: [{ node: 'a', epoch, id: 7, reaches: true }] })
  expect(answersOf([own, answer(1)])).toEqual([{ id: 7, reaches: true }])
  // An earlier process of this node had asked that.
  expect(answersOf([own, answer(9)])).toEqual([])
  expect(answersOf([own, rowOf('b', 2)])).toEqual([])
  for (const rows of [[own], [own, rowOf('b', 2, {}, { isLive: false })], [own, rowOf('b', 3)]]) {
    expect(answersOf(rows)).toEqual([{ id: 7, reaches: false }])
    expect(answersOf(rows, { at: 0 })).toEqual([])
  }
  expect(answersOf([own, rowOf('b', 3)], { before: [] })).toEqual([])
})

test('W26 a node asks ten questions a minute, each of which counts from when it was first asked', () => {
  const book = new CrossCheckBook('a')
  const questions = ids(mostQuestions + 1).map((id) => questionOf(id, 'b'))
  book.asks(questions.slice(1, mostQuestions), [], 0)
  expect(book.mayAsk(0)).toBe(true)
  book.asks(questions.slice(0, mostQuestions), [], 0)
  book.asks(questions.slice(0, mostQuestions), [], minute - 1)
  expect([book.mayAsk(minute - 1), book.mayAsk(minute)]).toEqual([false, true])
  book.asks(questions, [], minute)
  expect(book.facts.questions).toHaveLength(mostQuestions)
})

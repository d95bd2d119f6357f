import { expect, test } from 'vitest'
import { afterUnreachable, answered, type CrossCheck } from '../../../src/core/watch/states/cross-check.ts'

const nodes = { own: 'a', other: 'b', mayAsk: true }
const run = { beganAt: 5_000, depth: 'Basic', now: 6_000, confirmMs: 20_000, id: 2 } as const
const before: CrossCheck = { since: 1_000, own: 'a', question: { id: 1, node: 'b', depth: 'Basic', until: 31_000 } }

test('W26 a question and an agreement count, also while nobody can be asked; a disagreement is asked about again', () => {
  const agreed = answered(before, { node: 'b', reaches: false, at: 2_000 })
  const contested = answered(before, { node: 'b', reaches: true, at: 2_000 })
  for (const others of [nodes, undefined]) {
    expect(afterUnreachable(before, { ...run, nodes: others })).toBe(before)
    expect(afterUnreachable(agreed, { ...run, nodes: others })).toBe(agreed)
  }
  expect(afterUnreachable(contested, { ...run, nodes })).toMatchObject({ since: 1_000, question: { id: 2, node: 'b' } })
  expect(afterUnreachable(contested, { ...run, nodes: undefined })).toBeUndefined()
  // While this node has asked as often as it may, an answer counts for a minute, and its own verdict where there is none.
  const busy = { ...nodes, mayAsk: false }
  expect(afterUnreachable(contested, { ...run, nodes: busy })).toBe(contested)
  expect(afterUnreachable(contested, { ...run, nodes: busy, now: 62_000 })).toBeUndefined()
  expect(afterUnreachable(undefined, { ...run, nodes: busy })).toBeUndefined()
  expect(afterUnreachable(undefined, { ...run, nodes: undefined })).toBeUndefined()
})

import { describe, expect, test } from 'vitest'
import { patienceFor, pauseAfter, type ServingCandidate, sourceFor } from '../../../src/core/checks/engine/callers.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'

const now = 1_000_000
const ended = (
  depth: ExecutionMode,
  agoMs: number,
  outcome: ServingCandidate['outcome'] = 'passed',
): ServingCandidate => ({ depth, begunAt: now - agoMs - 5, endedAt: now - agoMs, joinable: true, outcome })
const inProgress = (depth: ExecutionMode, joinable = true): ServingCandidate => ({
  depth,
  begunAt: now - 100,
  endedAt: undefined,
  joinable,
  outcome: undefined,
})

describe('W2 a caller gets', () => {
  test.each<[string, ExecutionMode, readonly ServingCandidate[], string]>([
    ['a run where nothing exists', 'Standard', [], 'run'],
    ['a result at its depth', 'Standard', [ended('Standard', 9_999)], 'result Standard for 1'],
    ['no result that has expired', 'Standard', [ended('Standard', 10_000)], 'run'],
    ['a failure for a quarter of the time', 'Standard', [ended('Standard', 2_499, 'failed')], 'result Standard for 1'],
    ['no failure that is older', 'Standard', [ended('Standard', 2_500, 'failed')], 'run'],
    ['a deeper result', 'Basic', [ended('Standard', 1_999)], 'result Standard for 1'],
    ['a deeper result no longer than one of its own mode', 'Basic', [ended('Advanced', 2_000)], 'run'],
    ['a deeper failure for a quarter of that', 'Basic', [ended('Advanced', 500, 'failed')], 'run'],
    ['no shallower result', 'Standard', [ended('Basic', 1)], 'run'],
    ['no deeper result that may differ', 'Basic', [ended('Standard', 1, 'unusable')], 'run'],
    [
      'the result at its depth before a deeper one',
      'Basic',
      [ended('Advanced', 1), ended('Basic', 5)],
      'result Basic for 1995',
    ],
    [
      'a deeper result before its own that has expired',
      'Basic',
      [ended('Basic', 3_000), ended('Standard', 5)],
      'result Standard for 1995',
    ],
    ['what is in progress at its depth', 'Standard', [inProgress('Standard')], 'progress Standard'],
    ['what is in progress deeper', 'Standard', [inProgress('Advanced')], 'progress Advanced'],
    ['nothing that is in progress shallower', 'Standard', [inProgress('Basic')], 'run'],
    ['nothing in progress that has too little time', 'Standard', [inProgress('Standard', false)], 'run'],
    [
      'a result before what is in progress',
      'Basic',
      [inProgress('Basic'), ended('Standard', 1)],
      'result Standard for 1999',
    ],
    [
      'what is in progress in place of an expired result',
      'Basic',
      [ended('Basic', 2_000), inProgress('Standard')],
      'progress Standard',
    ],
  ])('%s', (_, mode, candidates, expected) => {
    const source = sourceFor({ mode, now, notBefore: Number.NEGATIVE_INFINITY }, candidates)
    const words =
      source.from === 'run'
        ? 'run'
        : `${source.from} ${source.candidate.depth}${source.from === 'result' ? ` for ${source.leftMs}` : ''}`
    expect(words).toBe(expected)
  })

  test.each<[string, readonly ServingCandidate[], string]>([
    ['no result of an earlier observation', [ended('Standard', 1)], 'run'],
    ['no observation that began earlier', [inProgress('Standard')], 'run'],
    ['a result of one that began later', [{ ...ended('Standard', 1), begunAt: now - 2 }], 'result'],
    ['an observation that began later', [{ ...inProgress('Advanced'), begunAt: now - 2 }], 'progress'],
  ])('with no-cache %s', (_, candidates, expected) => {
    expect(sourceFor({ mode: 'Standard', now, notBefore: now - 2 }, candidates).from).toBe(expected)
  })
})

test.each([
  ['a second, where its run has time', { leftMs: 20_000, ownMs: 10_000 }, 1_000],
  ['what its run has besides its own time', { leftMs: 10_300, ownMs: 10_000 }, 300],
  ['not at all, where its run has no time besides', { leftMs: 5_000, ownMs: 5_000 }, 0],
  ['not at all, where its own time is cut already', { leftMs: 100, ownMs: 5_000 }, 0],
])('W2 a caller waits for a deeper observation %s', (_, times, expected) => {
  expect(patienceFor(times)).toBe(expected)
})

test.each([
  [0, true, 50],
  [2, true, 50],
  [10, true, 90],
  [111, true, 999],
  [112, true, 1_000],
  [30_000, true, 1_000],
  [Number.POSITIVE_INFINITY, true, 1_000],
  [0, false, 1_000],
  [2, false, 1_000],
  [30_000, false, 1_000],
])('W2 after a run of %d ms, with details %s, the pause is %d ms', (lastMs, byCost, expected) => {
  expect(pauseAfter({ lastMs, byCost })).toBe(expected)
})

import { expect, test } from 'vitest'
import { type Script, shipped, simulate } from './simulated-nodes.ts'

const second = 1_000

/**
 * Sequences of events that broke a rule while nodes shared the monitors among themselves, with the times that they had. Each is
 * simulated with three seeds: a seed then decides only how long runs and questions take.
 */
const traces: readonly (readonly [what: string, script: Script])[] = [
  // Seed 9673: the owner of a monitor learned only with its next write what another node had told of it and handed over.
  ...['a', 'b', 'c'].map((node): readonly [string, Script] => [
    `what ${node}, 150 s without the store, told of a fault that others had told is known and ends`,
    {
      failures: { p1: { from: 750 * second, to: 1_100 * second }, p2: { from: 600 * second, to: 795 * second } },
      events: [[799 * second, 'cut-off', node, 150 * second]],
    },
  ]),
  // Seed 9094: the second of two failovers within 10 s took an end that a machine had told about itself after the first one.
  [
    'the end of a fault of a machine outlives two failovers within 10 s, the second after its next write',
    {
      failures: { 'disk of a': { from: 280 * second, to: 744 * second } },
      events: [
        [746 * second, 'store-slow', undefined, 27 * second],
        [762 * second, 'store-failed-over', 'at once', 6_600],
        [770_600, 'store-failed-over', 'a', 3 * second],
      ],
    },
  ],
]

test.each(traces)('W4 simulated nodes keep all of their rules in a sequence that broke one: %s', (_, script) => {
  const outcomes = [1, 2, 3].map((seed) => simulate(shipped, seed, false, { script }))
  expect(outcomes.flatMap(({ violations }) => violations)).toEqual([])
  // Both receivers are told a begin and an end of everything that fails.
  const messages = 4 * Object.keys(script.failures).length
  for (const { counts } of outcomes) expect(counts['message']).toBeGreaterThanOrEqual(messages)
})

import { expect, test } from 'vitest'
import { type Script, shipped, simulate } from './simulated-nodes.ts'

const second = 1_000

/** A svc.yaml in which p1 has another name gets to one node, which is killed a while later, and then to the others. */
const renamedAndKilled = (node: string, renamedAt: number): Script['events'] => [
  [renamedAt, 'renamed', node, 10 * second],
  [806 * second, 'killed', node, 90 * second],
  ...['a', 'b', 'c']
    .filter((one) => one !== node)
    .map((one, at) => [(890 + 5 * at) * second, 'renamed', one, 10 * second] as const),
]
/** From before the node is killed until all have the new svc.yaml, and a while longer. */
const failing = { p1: { from: 740 * second, to: 970 * second } }

/**
 * Sequences of events that broke a rule while nodes shared the monitors among themselves or held a lease, with the times that they had. Each is
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
  // Seed 400061: the next holder had an incident under the former name when it got the new one, and forgot it.
  ...['a', 'b', 'c'].flatMap((node): (readonly [string, Script])[] => [
    [
      `the incident of a monitor that ${node} renames goes on where others do not know the new name yet`,
      { failures: failing, events: renamedAndKilled(node, 800 * second) },
    ],
    [
      `a fault of a monitor that only ${node} knows by its new name begins, and is another incident under the former one`,
      { failures: failing, events: renamedAndKilled(node, 700 * second) },
    ],
  ]),
  // Seed 600300: a node without the store told of a fault under the former name, and handed that over to a holder with the new one.
  ...['a', 'b', 'c'].map((node): readonly [string, Script] => [
    `what ${node}, 100 s without the store, told under a name that others do not use any more ends with the fault`,
    {
      failures: { p1: { from: 755 * second, to: 1_200 * second } },
      events: [
        [750 * second, 'cut-off', node, 100 * second],
        ...['a', 'b', 'c']
          .filter((one) => one !== node)
          .map((one, at) => [(835 + 5 * at) * second, 'renamed', one, 10 * second] as const),
        [880 * second, 'renamed', node, 10 * second],
      ],
    },
  ]),
  // Seed 611914: a node without the store did not follow the new name of a monitor.
  ...['a', 'b', 'c'].map((node): readonly [string, Script] => [
    `what ${node}, 150 s without the store, told of a monitor that it then renamed goes on with what others told`,
    {
      failures: { p1: { from: 755 * second, to: 1_200 * second } },
      events: [
        [750 * second, 'cut-off', node, 150 * second],
        [840 * second, 'renamed', node, 10 * second],
        ...['a', 'b', 'c']
          .filter((one) => one !== node)
          .map((one, at) => [(905 + 5 * at) * second, 'renamed', one, 10 * second] as const),
      ],
    },
  ]),
  // Seed 620186: what a holder had not told of the network yet held up what it had to tell of its machine.
  ...([false, true] as const).map((isRemoved): readonly [string, Script] => [
    `machines tell of themselves beside a node of a version before, ${isRemoved ? 'also if a monitor was removed' : 'whatever stands'}`,
    {
      failures: {
        p1: { from: (isRemoved ? 550 : 672) * second, to: 1_200 * second },
        // Some of them are confirmed, and not told yet, when the holder leaves the lease.
        p3: { from: 682 * second, to: 1_200 * second },
        p4: { from: 692 * second, to: 1_200 * second },
        ...Object.fromEntries(
          ['a', 'b', 'c'].map((node) => [`disk of ${node}`, { from: 760 * second, to: 900 * second }]),
        ),
      },
      events: [
        ...(['others', 'holder'] as const).flatMap((nodes, at) =>
          isRemoved ? [[(700 + 16 * at) * second, 'removed', nodes, 10 * second] as const] : [],
        ),
        [720 * second, 'old-node', undefined, 300 * second],
      ],
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

test.each(traces)('W4 simulated nodes keep all of their rules in a sequence that broke one: %s', (what, script) => {
  const outcomes = [1, 2, 3].map((seed) => simulate(shipped, seed, false, { script }))
  expect(outcomes.flatMap(({ violations }) => violations)).toEqual([])
  // Both receivers are told a begin and an end of everything that fails.
  const messages = 4 * Object.keys(script.failures).length
  if (what.startsWith('the incident of a monitor that'))
    // That of the fault, and that of the node.
    for (const { counts } of outcomes) expect(counts['begin']).toBe(2)
  for (const { counts } of outcomes) expect(counts['message']).toBeGreaterThanOrEqual(messages)
})

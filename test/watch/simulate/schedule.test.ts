import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { sourceFor } from '../../../src/core/checks/engine/callers.ts'
import * as schedule from '../../../src/core/watch/schedule/index.ts'
import { plants } from './planted.ts'
import { scenarioOf, simulate } from './simulated-schedule.ts'

const shipped = { ...schedule, sourceFor }
/** The slow tier simulates those that follow, and shows that the rules find planted defects. */
const quick = Array.from({ length: 4 }, (_, at) => at + 1)

// A test of its own for each seed: a simulation only computes, so on a busy machine its time grows, and a limit of time applies to one.
test.each(quick)('W1 a simulated schedule keeps all of its rules: scenario %i', (seed) => {
  expect(simulate(shipped, seed, scenarioOf(seed)).violations.slice(0, 2)).toEqual([])
})

test.each(quick.slice(0, 2))(
  'W1 a simulated wall clock that jumps by days and hours changes no run: scenario %i',
  (seed) => {
    const scenario = { ...scenarioOf(seed), restarts: false }
    const { digest, runs } = simulate(shipped, seed, { ...scenario, clockJumps: true })
    expect(runs).toBeGreaterThan(0)
    expect(digest).toBe(simulate(shipped, seed, { ...scenario, clockJumps: false }).digest)
  },
)

test('W0 the same seed simulates the same trace, to the byte', () => {
  const { lines, digest } = simulate(shipped, 7, scenarioOf(7), true)
  const again = simulate(shipped, 7, scenarioOf(7), true)
  expect(again.lines.join('\n')).toBe(lines.join('\n'))
  expect(again.digest).toBe(digest)
  expect(lines.length).toBeGreaterThan(100)
  expect(simulate(shipped, 8, scenarioOf(8)).digest).not.toBe(digest)
})

test('docs/simulation.md lists each planted defect with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of plants) expect(page).toContain(`| ${what} | ${rule} |`)
})

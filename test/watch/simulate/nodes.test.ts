import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { plants } from './planted-nodes.ts'
import { shipped, simulate } from './simulated-nodes.ts'

/** Of the first ten, those that take least time. The slow tier simulates all, and many more. */
const seeds = [8, 9]

/** Each is simulated once, for all tests that compare it. */
const outcomes = seeds.map((seed) => simulate(shipped, seed, true))

test('W4 simulated nodes keep all of their rules in two scenarios with simulated faults', () => {
  expect(outcomes.flatMap(({ violations }, at) => violations.map((one) => `seed ${seeds[at]}: ${one}`))).toEqual([])
})

test('W0 the same seed simulates the same nodes, to the byte', () => {
  const [other, once] = outcomes
  const again = simulate(shipped, 9, true)
  expect(again.lines.join('\n')).toBe(once?.lines.join('\n'))
  expect(again.digest).toBe(once?.digest)
  expect(again.lines.length).toBeGreaterThan(100)
  expect(other?.digest).not.toBe(again.digest)
})

test('docs/simulation.md lists each defect planted in the nodes with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of plants) expect(page).toContain(`| ${what} | ${rule} |`)
})

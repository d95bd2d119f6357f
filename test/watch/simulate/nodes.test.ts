import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { plants } from './planted-nodes.ts'
import { shipped, simulate } from './simulated-nodes.ts'

/** Of the first ten, those that take least time. The slow tier simulates all, and many more. */
const seeds = [8, 9, 10]

/** Each is simulated once, for all tests that compare it. */
const outcomes = new Map<number, ReturnType<typeof simulate>>()
function faulty(seed: number): ReturnType<typeof simulate> {
  const outcome = outcomes.get(seed) ?? simulate(shipped, seed)
  outcomes.set(seed, outcome)
  return outcome
}

test('W4 simulated nodes keep all of their rules in two scenarios with simulated faults', () => {
  const broken = seeds
    .slice(0, 2)
    .flatMap((seed) => faulty(seed).violations.map((violation) => `seed ${seed}: ${violation}`))
  expect(broken).toEqual([])
})

test('W26 simulated nodes keep all of their rules in three scenarios in which they lose routes to single peers', () => {
  const outcomes = seeds.map((seed) => simulate(shipped, seed, false, { losesRoutes: true }))
  expect(outcomes.flatMap(({ violations }, at) => violations.map((one) => `seed ${seeds[at]}: ${one}`))).toEqual([])
  expect(outcomes.every(({ counts }) => (counts.look ?? 0) > 0)).toBe(true)
  expect(outcomes.filter(({ counts }) => (counts.disputed ?? 0) > 0).length).toBeGreaterThan(2)
})

test('W0 the same seed simulates the same nodes, to the byte', () => {
  const { lines, digest } = simulate(shipped, 9, true)
  const again = simulate(shipped, 9, true)
  expect(again.lines.join('\n')).toBe(lines.join('\n'))
  expect(again.digest).toBe(digest)
  expect(lines.length).toBeGreaterThan(100)
  expect(faulty(8).digest).not.toBe(digest)
})

test('docs/simulation.md lists each defect planted in the nodes with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of plants) expect(page).toContain(`| ${what} | ${rule} |`)
})

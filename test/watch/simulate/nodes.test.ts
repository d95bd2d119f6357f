import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { plants } from './planted-nodes.ts'
import { shipped, simulate } from './simulated-nodes.ts'

/** Of the first ten, those that take least time. The slow tier simulates all, and many more. */
const seeds = [6, 8, 9, 10]

test('W4 simulated nodes keep all of their rules in 4 scenarios with simulated faults', () => {
  const broken = seeds.flatMap((seed) =>
    simulate(shipped, seed).violations.map((violation) => `seed ${seed}: ${violation}`),
  )
  expect(broken).toEqual([])
})

test('W26 simulated nodes keep all of their rules in 4 scenarios in which they lose routes to single peers', () => {
  const outcomes = seeds.map((seed) => simulate(shipped, seed, false, true))
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
  expect(simulate(shipped, 8).digest).not.toBe(digest)
})

test('docs/simulation.md lists each defect planted in the nodes with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of plants) expect(page).toContain(`| ${what} | ${rule} |`)
})

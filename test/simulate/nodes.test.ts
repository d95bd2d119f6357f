import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { plants } from './planted-nodes.ts'
import { shipped, simulate } from './simulated-nodes.ts'

test('W4 simulated nodes keep all of their rules in 8 scenarios with simulated faults', { timeout: 120_000 }, () => {
  const broken = Array.from({ length: 8 }, (_, at) => at + 1).flatMap((seed) =>
    simulate(shipped, seed).violations.map((violation) => `seed ${seed}: ${violation}`),
  )
  expect(broken).toEqual([])
})

test('W26 simulated nodes keep all of their rules in 8 scenarios in which they lose routes to single peers', {
  timeout: 120_000,
}, () => {
  const outcomes = Array.from({ length: 8 }, (_, at) => simulate(shipped, at + 1, false, true))
  expect(outcomes.flatMap(({ violations }, at) => violations.map((one) => `seed ${at + 1}: ${one}`))).toEqual([])
  const sum = (what: string): number => outcomes.reduce((all, { counts }) => all + (counts[what] ?? 0), 0)
  expect(Math.min(sum('look'), sum('disputed'))).toBeGreaterThan(0)
})

test('W0 the same seed simulates the same nodes, to the byte', { timeout: 60_000 }, () => {
  const { lines, digest } = simulate(shipped, 9, true)
  const again = simulate(shipped, 9, true)
  expect(again.lines.join('\n')).toBe(lines.join('\n'))
  expect(again.digest).toBe(digest)
  expect(lines.length).toBeGreaterThan(100)
  expect(simulate(shipped, 8).digest).not.toBe(digest)
})

test('docs/simulation.md lists each defect planted in the nodes with its rule', () => {
  const page = readFileSync(new URL('../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of plants) expect(page).toContain(`| ${what} | ${rule} |`)
})

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { plants } from './planted-nodes.ts'
import { shipped, simulate } from './simulated-nodes.ts'

/** Of the first ten, the one that takes least time. The slow tier simulates all, and many more. */
const seed = 9
const once = simulate(shipped, seed, true)

test('W4 simulated nodes keep all of their rules in a scenario with simulated faults', () => {
  expect(once.violations).toEqual([])
})

test('W0 the same seed simulates the same nodes, to the byte', () => {
  const again = simulate(shipped, seed, true)
  expect(again.lines.join('\n')).toBe(once.lines.join('\n'))
  expect(again.digest).toBe(once.digest)
  expect(again.lines.length).toBeGreaterThan(100)
})

test('docs/simulation.md lists each defect planted in the nodes with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of plants) expect(page).toContain(`| ${what} | ${rule} |`)
})

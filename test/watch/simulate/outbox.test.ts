import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { plants } from './planted-outbox.ts'
import { shipped, simulate } from './simulated-outbox.ts'

/** With a clock that is set. The slow tier simulates many more, and shows that the rules find planted defects. */
const seed = 24
const once = simulate(shipped, seed, true)

test('W23 simulated states and an outbox keep all of their rules in a scenario with a clock that is set', () => {
  expect(once.violations.slice(0, 2)).toEqual([])
  expect(once.counts['clock set']).toBeGreaterThan(1)
})

test('W0 the same seed simulates the same notifications, to the byte', () => {
  const { lines, digest } = simulate(shipped, seed, true)
  expect(lines.join('\n')).toBe(once.lines.join('\n'))
  expect(digest).toBe(once.digest)
  expect(lines.length).toBeGreaterThan(100)
})

test('docs/simulation.md lists each defect planted in the outbox with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of plants) expect(page).toContain(`| ${what} | ${rule} |`)
})

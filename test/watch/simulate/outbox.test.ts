import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { plants } from './planted-outbox.ts'
import { shipped, simulate } from './simulated-outbox.ts'

/** The slow tier simulates many more, and shows that the rules find planted defects. */
const quick = [1, 24]
const outcomes = new Map(quick.map((seed) => [seed, simulate(shipped, seed, true)]))

test('W23 simulated states and an outbox keep all of their rules in two scenarios, one with a clock that is set', () => {
  const broken = [...outcomes].flatMap(([seed, { violations }]) =>
    violations.slice(0, 2).map((violation) => `seed ${seed}: ${violation}`),
  )
  expect(broken).toEqual([])
})

test('W0 the same seed simulates the same notifications, to the byte', () => {
  const { lines, digest } = simulate(shipped, 1, true)
  expect(lines.join('\n')).toBe(outcomes.get(1)?.lines.join('\n'))
  expect(digest).toBe(outcomes.get(1)?.digest)
  expect(lines.length).toBeGreaterThan(100)
  expect(outcomes.get(24)?.digest).not.toBe(digest)
  expect(outcomes.get(24)?.counts['clock set']).toBeGreaterThan(1)
})

test('docs/simulation.md lists each defect planted in the outbox with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of plants) expect(page).toContain(`| ${what} | ${rule} |`)
})

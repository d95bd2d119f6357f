import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { plantsByOthers } from './planted-by-others.ts'
import { plants } from './planted-states.ts'
import { shipped } from './process.ts'
import { simulate } from './simulated-states.ts'

/** Each is simulated once. The slow tier simulates those that follow, and shows that the rules find planted defects. */
const outcomes = [1, 2].map((seed) => simulate(shipped, seed, true))

test('W18 simulated states keep all of their rules in two scenarios of two hours', () => {
  const broken = outcomes.flatMap(({ violations }, at) => violations.slice(0, 2).map((one) => `seed ${at + 1}: ${one}`))
  expect(broken).toEqual([])
})

test('W0 the same seed simulates the same states, to the byte', () => {
  const [once, other] = outcomes
  const again = simulate(shipped, 1, true)
  expect(again.lines.join('\n')).toBe(once?.lines.join('\n'))
  expect(again.digest).toBe(once?.digest)
  expect(again.lines.length).toBeGreaterThan(100)
  expect(other?.digest).not.toBe(again.digest)
})

const all = [...plants, ...plantsByOthers]

test('the simulation detects more than 40 planted defects, 20 of them planted by somebody who did not write it', () => {
  expect(new Set(all.map(({ file, from, to }) => JSON.stringify([file, from, to]))).size).toBe(all.length)
  expect(all.length).toBeGreaterThan(40)
  expect(plantsByOthers.length).toBeGreaterThanOrEqual(20)
})

test('docs/simulation.md lists each defect planted in the states with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of all) expect(page).toContain(`| ${what} | ${rule} |`)
})

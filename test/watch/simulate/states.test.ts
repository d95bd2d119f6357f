import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Schedule } from '../../../src/core/watch/schedule/index.ts'
import { Ledger, States, StatesTable } from '../../../src/core/watch/states/index.ts'
import { plantsByOthers } from './planted-by-others.ts'
import { oneForEachRule } from './planted-folder.ts'
import { firstSeed, planted, plants } from './planted-states.ts'
import { simulate } from './simulated-states.ts'

const shipped = { Schedule, States, Ledger, StatesTable }
/** Those that may show a planted defect. */
const seeds = Array.from({ length: 200 }, (_, at) => at + 1)
/** The slow tier simulates those that follow. */
const quick = seeds.slice(0, 5)

test('W18 simulated states keep all of their rules in five scenarios of two hours', () => {
  const broken = quick.flatMap((seed) => {
    const { violations } = simulate(shipped, seed)
    return violations.slice(0, 2).map((violation) => `seed ${seed}: ${violation}`)
  })
  expect(broken).toEqual([])
})

test('W0 the same seed simulates the same states, to the byte', () => {
  const { lines, digest } = simulate(shipped, 7, true)
  const again = simulate(shipped, 7, true)
  expect(again.lines.join('\n')).toBe(lines.join('\n'))
  expect(again.digest).toBe(digest)
  expect(lines.length).toBeGreaterThan(100)
  expect(simulate(shipped, 8).digest).not.toBe(digest)
})

const all = [...plants, ...plantsByOthers]

test('the simulation detects more than 40 planted defects, 20 of them planted by somebody who did not write it', () => {
  expect(new Set(all.map(({ file, from, to }) => JSON.stringify([file, from, to]))).size).toBe(all.length)
  expect(all.length).toBeGreaterThan(40)
  expect(plantsByOthers.length).toBeGreaterThanOrEqual(20)
})

/** The slow tier has the others. */
test.each(oneForEachRule(all))('the simulation finds a planted defect by its rule: $what', async (plant) => {
  const { subject, remove } = await planted(plant)
  try {
    // A recorded seed that no longer shows the defect costs hundreds of scenarios each time.
    expect(firstSeed(subject, plant, seeds)).toEqual(plant.seed ?? expect.any(Number))
  } finally {
    remove()
  }
})

test('docs/simulation.md lists each defect planted in the states with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of all) expect(page).toContain(`| ${what} | ${rule} |`)
})

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as outbox from '../../../src/core/watch/outbox/index.ts'
import { oneForEachRule } from './planted-folder.ts'
import { firstSeed, planted, plants } from './planted-outbox.ts'
import { simulate } from './simulated-outbox.ts'

/** Those that may show a planted defect. */
const seeds = Array.from({ length: 200 }, (_, at) => at + 1)
/** The slow tier simulates 10,000. */
const quick = seeds.slice(0, 12)

test('W23 a simulated outbox keeps all of its rules in 12 scenarios with simulated receivers', () => {
  const broken = quick.flatMap((seed) => {
    const { violations } = simulate(outbox, seed)
    return violations.slice(0, 2).map((violation) => `seed ${seed}: ${violation}`)
  })
  expect(broken).toEqual([])
})

test('W0 the same seed simulates the same notifications, to the byte', () => {
  const { lines, digest } = simulate(outbox, 9, true)
  const again = simulate(outbox, 9, true)
  expect(again.lines.join('\n')).toBe(lines.join('\n'))
  expect(again.digest).toBe(digest)
  expect(lines.length).toBeGreaterThan(100)
  expect(simulate(outbox, 8).digest).not.toBe(digest)
})

/** The slow tier has the others. */
test.each(oneForEachRule(plants))('the simulated receivers find a planted defect by its rule: $what', async (plant) => {
  const { subject, remove } = await planted(plant)
  try {
    // A recorded seed that no longer shows the defect costs hundreds of scenarios each time.
    expect(firstSeed(subject, plant, seeds)).toEqual(plant.seed ?? expect.any(Number))
  } finally {
    remove()
  }
})

test('docs/simulation.md lists each defect planted in the outbox with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of plants) expect(page).toContain(`| ${what} | ${rule} |`)
})

import { expect, test } from 'vitest'
import { seedsFrom } from '../../support/suite/runs.ts'
import { plantsByOthers } from './planted-by-others.ts'
import { firstSeed, planted, plants } from './planted-states.ts'
import { shipped } from './process.ts'
import { simulate } from './simulated-states.ts'

const seeds = seedsFrom(3, { slow: 198, whole: 998 })

test(`W18 simulated states keep all of their rules in ${seeds.length} more scenarios of two hours`, {
  timeout: 1_800_000,
}, () => {
  const broken = seeds.flatMap((seed) => simulate(shipped, seed).violations.map((one) => `seed ${seed}: ${one}`))
  expect(broken).toEqual([])
})

const all = [...plants, ...plantsByOthers]
const mayShow = Array.from({ length: 200 }, (_, at) => at + 1)

test.each(all)('the simulation finds a planted defect by its rule: $what', { timeout: 300_000 }, async (plant) => {
  const { subject, remove } = await planted(plant)
  try {
    // A recorded seed that no longer shows the defect costs hundreds of scenarios each time.
    expect(firstSeed(subject, plant, mayShow)).toEqual(plant.seed ?? expect.any(Number))
  } finally {
    remove()
  }
})

import { expect, test } from 'vitest'
import { sourceFor } from '../../../src/core/checks/engine/callers.ts'
import * as schedule from '../../../src/core/watch/schedule/index.ts'
import { seedsFrom } from '../../support/suite/runs.ts'
import { firstSeed, planted, plants } from './planted.ts'
import { scenarioOf, simulate } from './simulated-schedule.ts'

const shipped = { ...schedule, sourceFor }
const seeds = seedsFrom(5, { slow: 196, whole: 996 })

test(`W1 a simulated schedule keeps all of its rules in ${seeds.length} more scenarios`, { timeout: 1_800_000 }, () => {
  const broken = seeds.flatMap((seed) =>
    simulate(shipped, seed, scenarioOf(seed)).violations.map((one) => `seed ${seed}: ${one}`),
  )
  expect(broken).toEqual([])
})

const sizeOf = (seed: number): number => scenarioOf(seed).monitors * scenarioOf(seed).minutes
/** Those with the least to compute first: a defect shows in most of them, and the first one that shows it is enough. */
const smallest = Array.from({ length: 200 }, (_, at) => at + 1).toSorted((one, other) => sizeOf(one) - sizeOf(other))

test.each(plants)('the simulation finds a planted defect by its rule: $what', async (plant) => {
  const { subject, remove } = await planted(plant)
  try {
    expect(firstSeed(subject, plant, smallest)).toBeDefined()
  } finally {
    remove()
  }
})

import { expect, test } from 'vitest'
import { seedsFrom } from '../../support/suite/runs.ts'
import { firstSeed, planted, plants } from './planted-outbox.ts'
import { shipped, simulate } from './simulated-outbox.ts'

const seeds = seedsFrom(26, { slow: 60, whole: 2_475 })

test(`W23 a simulated outbox keeps all of its rules in ${seeds.length} more scenarios with simulated receivers`, {
  timeout: 1_800_000,
}, () => {
  const broken: string[] = []
  for (const seed of seeds) {
    const { violations } = simulate(shipped, seed)
    broken.push(...violations.slice(0, 2).map((violation) => `seed ${seed}: ${violation}`))
    if (broken.length >= 10) break
  }
  expect(broken).toEqual([])
})

const mayShow = Array.from({ length: 200 }, (_, at) => at + 1)

test.each(plants)(
  'the simulated receivers find a planted defect by its rule: $what',
  { timeout: 300_000 },
  async (plant) => {
    const { subject, remove } = await planted(plant)
    try {
      // A recorded seed that no longer shows the defect costs hundreds of scenarios each time.
      expect(firstSeed(subject, plant, mayShow)).toEqual(plant.seed ?? expect.any(Number))
    } finally {
      remove()
    }
  },
)

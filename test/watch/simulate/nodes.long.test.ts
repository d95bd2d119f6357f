import { expect, test } from 'vitest'
import { firstSeed, planted, plants } from './planted-nodes.ts'
import { shipped, simulate } from './simulated-nodes.ts'

const seeds = Array.from({ length: 100 }, (_, at) => at + 1)

test('W4 simulated nodes keep all of their rules in 1,000 scenarios with simulated faults', {
  timeout: 1_800_000,
}, () => {
  const broken: string[] = []
  for (let seed = 1; seed <= 1_000 && broken.length < 10; seed += 1) {
    const { violations } = simulate(shipped, seed)
    broken.push(...violations.slice(0, 2).map((violation) => `seed ${seed}: ${violation}`))
  }
  expect(broken).toEqual([])
})

test('W26 simulated nodes keep all of their rules in 200 scenarios in which they lose routes to single peers', {
  timeout: 1_800_000,
}, () => {
  const broken: string[] = []
  for (let seed = 1; seed <= 200 && broken.length < 10; seed += 1) {
    const { violations } = simulate(shipped, seed, false, true)
    broken.push(...violations.slice(0, 2).map((violation) => `seed ${seed}: ${violation}`))
  }
  expect(broken).toEqual([])
})

test.each(plants)(
  'the simulated nodes find a planted defect by its rule: $what',
  { timeout: 300_000 },
  async (plant) => {
    const { subject, remove } = await planted(plant)
    try {
      expect(firstSeed(subject, plant, seeds)).toBeDefined()
    } finally {
      remove()
    }
  },
)

import { expect, test } from 'vitest'
import { Outbox } from '../../../src/core/watch/outbox/index.ts'
import { oneForEachRule } from './planted-folder.ts'
import { firstSeed, planted, plants } from './planted-outbox.ts'
import { simulate } from './simulated-outbox.ts'

test('W23 a simulated outbox keeps all of its rules in 10,000 scenarios with simulated receivers', {
  timeout: 1_800_000,
}, () => {
  const broken: string[] = []
  for (let seed = 1; seed <= 10_000 && broken.length < 10; seed += 1) {
    const { violations } = simulate({ Outbox }, seed)
    broken.push(...violations.slice(0, 2).map((violation) => `seed ${seed}: ${violation}`))
  }
  expect(broken).toEqual([])
})

const quick = oneForEachRule(plants)
const mayShow = Array.from({ length: 200 }, (_, at) => at + 1)

test.each(plants.filter((plant) => !quick.includes(plant)))(
  'the simulated receivers find a planted defect by its rule: $what',
  { timeout: 60_000 },
  async (plant) => {
    const { subject, remove } = await planted(plant)
    try {
      expect(firstSeed(subject, plant, mayShow)).toBeDefined()
    } finally {
      remove()
    }
  },
)

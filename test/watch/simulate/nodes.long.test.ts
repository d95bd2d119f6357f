import { expect, test } from 'vitest'
import { seedsFrom } from '../../support/suite/runs.ts'
import { firstSeed, planted, plants } from './planted-nodes.ts'
import { shipped, simulate } from './simulated-nodes.ts'

/** Those that may show a planted defect. */
const mayShow = Array.from({ length: 100 }, (_, at) => at + 1)

const brokenIn = (seeds: readonly number[], losses: Parameters<typeof simulate>[3] = {}): readonly string[] => {
  const broken: string[] = []
  for (const seed of seeds) {
    const { violations } = simulate(shipped, seed, false, losses)
    broken.push(...violations.slice(0, 2).map((violation) => `seed ${seed}: ${violation}`))
    if (broken.length >= 10) break
  }
  return broken
}

const faulty = seedsFrom(1, { slow: 20, whole: 1_000 })

test(`W4 simulated nodes keep all of their rules in ${faulty.length} scenarios with simulated faults`, {
  timeout: 1_800_000,
}, () => {
  expect(brokenIn(faulty)).toEqual([])
})

/** Seeds of the first set that broke a rule in November 2026, and what was wrong (docs/simulation.md). */
const mended = [
  620_186, 621_039, 621_305, 623_509, 624_323, 625_477, 625_540, 626_559, 627_291, 700_065, 700_149, 705_406, 710_809,
  700_288, 711_248, 711_374, 711_658, 711_695, 712_330, 713_001, 713_667, 713_803, 731_552, 732_269, 743_479, 748_953,
  751_572, 760_038, 760_776, 790_076, 804_054, 809_573, 810_836, 821_999, 822_307, 824_244, 825_001,
]

test(`W4 simulated nodes keep all of their rules in ${mended.length} scenarios that have broken one before`, {
  timeout: 1_800_000,
}, () => {
  expect(brokenIn(mended)).toEqual([])
})

/** Those after the first ones have broken a rule before. */
const cut = [...seedsFrom(1, { slow: 10, whole: 200 }), 860_345, 860_682, 860_826, 860_971]

test(`W26 simulated nodes keep all of their rules in ${cut.length} scenarios in which they lose routes to single peers`, {
  timeout: 1_800_000,
}, () => {
  expect(brokenIn(cut, { losesRoutes: true })).toEqual([])
  const { counts } = simulate(shipped, 10, false, { losesRoutes: true })
  expect(counts.look).toBeGreaterThan(0)
  expect(counts.disputed).toBeGreaterThan(0)
})

/** Those after the first ones have broken a rule before. */
const without = [
  ...seedsFrom(1, { slow: 15, whole: 400 }),
  ...[760_445, 760_863, 760_873, 760_895, 770_197, 770_299, 770_379, 770_414, 780_728],
]

test(`W4 simulated nodes keep all of their rules in ${without.length} scenarios in which the store is away for minutes`, {
  timeout: 1_800_000,
}, () => {
  expect(brokenIn(without, { losesStore: true })).toEqual([])
})

test.each(plants)(
  'the simulated nodes find a planted defect by its rule: $what',
  { timeout: 300_000 },
  async (plant) => {
    const { subject, remove } = await planted(plant)
    try {
      expect(firstSeed(subject, plant, mayShow)).toBeDefined()
    } finally {
      remove()
    }
  },
)

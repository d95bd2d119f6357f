import { expect, test } from 'vitest'
import { sourceFor } from '../../../src/core/checks/engine/callers.ts'
import * as schedule from '../../../src/core/watch/schedule/index.ts'
import { seedsFrom } from '../../support/suite/runs.ts'
import { scenarioOf, simulate } from './simulated-schedule.ts'

const shipped = { ...schedule, sourceFor }
const seeds = seedsFrom(13, { slow: 188, whole: 988 })

test(`W1 a simulated schedule keeps all of its rules in ${seeds.length} more scenarios`, { timeout: 1_800_000 }, () => {
  const broken = seeds.flatMap((seed) =>
    simulate(shipped, seed, scenarioOf(seed)).violations.map((one) => `seed ${seed}: ${one}`),
  )
  expect(broken).toEqual([])
})

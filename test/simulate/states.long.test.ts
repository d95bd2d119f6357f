import { expect, test } from 'vitest'
import { Schedule } from '../../src/core/schedule/index.ts'
import { Ledger, States, StatesTable } from '../../src/core/states/index.ts'
import { simulate } from './simulated-states.ts'

const first = 51
const seeds = Array.from({ length: 950 }, (_, at) => first + at)

test('W18 simulated states keep all of their rules in 950 more scenarios of two hours', { timeout: 600_000 }, () => {
  const shipped = { Schedule, States, Ledger, StatesTable }
  const broken = seeds.flatMap((seed) => simulate(shipped, seed).violations.map((one) => `seed ${seed}: ${one}`))
  expect(broken).toEqual([])
})

// Those tests at more moments.
import './shifted.test.ts'
import { expect, test } from 'vitest'
import { States } from '../../../src/core/watch/states/index.ts'
import { forgottenShifts, plantedShift, unseen } from './planted-shifts.ts'
import { shipped as others } from './process.ts'
import { jumpingOutbox, jumpingStates, withoutIds } from './shifted.ts'
import { shipped, simulate as simulateOutbox } from './simulated-outbox.ts'
import { simulate as simulateStates } from './simulated-states.ts'

const seeds = Array.from({ length: 14 }, (_, at) => at + 1)
const traces = {
  outbox: (seed: number, Outbox = shipped.Outbox) =>
    withoutIds(simulateOutbox({ ...shipped, Outbox }, seed, true).lines),
  states: (seed: number, Subject = States) =>
    simulateStates({ ...others, States: Subject }, seed, true).lines.join('\n'),
}
const cache = new Map<string, string>()

test.each(forgottenShifts.filter(({ what }) => !unseen.has(what)))(
  'W18 an instant that does not move with the others changes what svc decides: $what',
  { timeout: 120_000 },
  async (plant) => {
    const { index, remove } = await plantedShift(plant)
    const { folder } = plant
    const changes = (seed: number): boolean => {
      const name = `${folder} ${seed}`
      const trace = cache.get(name) ?? traces[folder](seed)
      cache.set(name, trace)
      const shifted =
        folder === 'outbox'
          ? traces.outbox(seed, jumpingOutbox(seed, index.Outbox).Subject)
          : traces.states(seed, jumpingStates(seed, index.States).Subject)
      return shifted !== trace
    }
    try {
      expect(seeds.find(changes)).toEqual(expect.any(Number))
    } finally {
      remove()
    }
  },
)

test('what no simulation shows is an instant that moves', () => {
  const all = new Set(forgottenShifts.map(({ what }) => what))
  expect([...unseen].filter((what) => !all.has(what))).toEqual([])
  expect(forgottenShifts.length).toBeGreaterThan(40)
})

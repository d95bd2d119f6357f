import { expect, test } from 'vitest'
import { isQuick } from '../../support/suite/tier.ts'
import { shipped as others } from './process.ts'
import { jumpingOutbox, jumpingStates, withoutIds } from './shifted.ts'
import { shipped, simulate as simulateOutbox } from './simulated-outbox.ts'
import { simulate as simulateStates } from './simulated-states.ts'

const seeds = isQuick() ? [7] : Array.from({ length: 20 }, (_, at) => at + 1)

test.each(seeds)(
  'W18 a line that shifts by hours and days begins, ends and delays no incident of scenario %i',
  (seed) => {
    const { Subject, count } = jumpingStates(seed)
    const shifted = simulateStates({ ...others, States: Subject }, seed, true)
    const { lines } = simulateStates(others, seed, true)
    expect(count()).toBeGreaterThan(20)
    expect(shifted.violations).toEqual([])
    expect(shifted.lines.join('\n')).toBe(lines.join('\n'))
  },
)

test.each(seeds)(
  'W23 a line that shifts by hours and days sends, repeats and delays no message of scenario %i',
  (seed) => {
    const { Subject, count } = jumpingOutbox(seed)
    const shifted = simulateOutbox({ ...shipped, Outbox: Subject }, seed, true)
    const { lines } = simulateOutbox(shipped, seed, true)
    expect(count()).toBeGreaterThan(10)
    expect(shifted.violations).toEqual([])
    expect(withoutIds(shifted.lines)).toBe(withoutIds(lines))
  },
)

import { expect, test } from 'vitest'
import { pace, turnAfter } from '../../src/core/base/pace.ts'

test('long work gives others their turns', async () => {
  let turns = 0
  const count = (): void => {
    turns += 1
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  const breathe = pace()
  while (turns < 3) await breathe()
  clearImmediate(next)
  expect(turns).toBe(3)
})

test('the next turn is as long as the others took for theirs, so that the work ends while the loop is busy', () => {
  expect([0, 5, 40, 400].map(turnAfter)).toEqual([5, 5, 25, 25])
})

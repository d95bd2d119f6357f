import { expect, onTestFinished, test } from 'vitest'
import { statesKeeper } from '../../src/core/parts/states-keeper.ts'
import { until } from '../support/suite/until.ts'

test('W4 a node that does not reach the store says that states are not stored, also while there is nothing to store', async () => {
  let why: string | undefined
  const logs: string[] = []
  const keeper = statesKeeper({
    rows: async () => {
      throw new Error('nothing is read')
    },
    write: async () => 'stored',
    problem: () => why,
    log: ({ msg }) => void logs.push(msg),
  })
  onTestFinished(async () => await keeper.close())
  keeper.begin()
  expect(keeper.notKept()).toBeUndefined()
  why = 'this node does not reach the store'
  await until(() => keeper.notKept() !== undefined)
  expect(keeper.notKept()).toBe('States and incidents are not stored now: this node does not reach the store')
  why = undefined
  await until(() => keeper.notKept() === undefined)
  expect(logs).toEqual([
    'states and incidents are not stored: this node does not reach the store',
    'states and incidents are stored again',
  ])
})

import { expect, onTestFinished, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { statesKeeper } from '../../../src/core/service/watch/states-keeper.ts'
import { soleNode } from '../../../src/core/watch/nodes/index.ts'
import type { StoredStates } from '../../../src/core/watch/states/index.ts'
import { until } from '../../support/suite/until.ts'

type Rows = Awaited<ReturnType<NonNullable<Parameters<typeof statesKeeper>[0]['rows']>>>

test('W4 a node that does not reach the store says that states are not stored, also while there is nothing to store', async () => {
  let why: string | undefined
  const logs: string[] = []
  const keeper = statesKeeper({
    rows: async () => {
      throw new Error('nothing is read')
    },
    lease: { ...soleNode, isShared: true, retryMs: 1_000, writeStates: async () => 'stored', problem: () => why },
    log: ({ msg }) => void logs.push(msg),
    patience: { failedMs: 0, wellMs: 0 },
  })
  onTestFinished(async () => await keeper.close())
  keeper.begin()
  expect(keeper.notKept()).toBeUndefined()
  why = 'this node is without the store, which cannot be reached'
  await until(() => keeper.notKept() !== undefined)
  expect(keeper.notKept()).toBe(
    'States and incidents are not stored now: this node is without the store, which cannot be reached',
  )
  why = undefined
  await until(() => keeper.notKept() === undefined)
  expect(logs).toEqual([
    'states and incidents are not stored: this node is without the store, which cannot be reached',
    'states and incidents are stored again',
  ])
})

test('W23 states are stored at once before a message about them is, and one write follows the other', async () => {
  const written: (readonly string[])[] = []
  let isWriting = false
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const keeper = statesKeeper({
    rows: async () => {
      throw new Error('nothing is read')
    },
    lease: {
      ...soleNode,
      isShared: true,
      writeStates: async ({ gone }) => {
        expect(isWriting).toBe(false)
        isWriting = true
        await released
        isWriting = false
        written.push(gone.map(({ key }) => key))
        if (written.length === 1) throw new Fault('Unavailable', 'the store does not answer')
        return 'stored'
      },
    },
  })
  onTestFinished(async () => await keeper.close())
  const take = (key: string): void =>
    keeper.take([{ type: 'store', row: { key, monitor: key, check: 'connect' }, state: undefined }])
  take('Sql/a')
  const first = keeper.store()
  await until(() => isWriting)
  take('Sql/b')
  const second = keeper.store()
  release()
  await Promise.all([first, second])
  expect(written).toEqual([['Sql/a'], ['Sql/a', 'Sql/b']])
  await keeper.store()
  expect(written).toHaveLength(2)
})

test('W4 what all nodes have stored is unknown while the store cannot be read, and never nothing because it is still being read', async () => {
  let isDown = true
  const row = { key: 'Sql/tcp/orders', monitor: 'tcp orders', check: 'connect' }
  const states = [{ row, state: { level: 'failed' } }] as unknown as StoredStates['states']
  const keeper = statesKeeper({
    rows: async () => {
      if (isDown) throw new Fault('Unavailable', 'the store does not answer')
      return { read: async () => ({ states, incidents: [], ageMs: 0 }) } as unknown as Rows
    },
    lease: { ...soleNode, isShared: true, writeStates: async () => 'stored' },
  })
  onTestFinished(async () => await keeper.close())
  expect(await keeper.ofAll()).toBeUndefined()
  isDown = false
  expect(await Promise.all([keeper.ofAll(), keeper.ofAll()])).toEqual([states, states])
})

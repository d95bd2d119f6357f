import { expect, test } from 'vitest'
import { quietOperations } from '../../src/core/parts/quiet-answer.ts'
import { QuietKeeper } from '../../src/core/parts/quiet-keeper.ts'

/** 02:30 on a Sunday. */
const now = Date.UTC(2026, 10, 29, 2, 30)
const window = (monitors: readonly string[]) => ({
  ...{ monitors, when: '0 2 * * SUN', timezone: 'UTC', forMs: 3_600_000, reason: 'patches' },
})

test('M8 a caller who reads one type learns how many windows of svc.yaml concern others', async () => {
  const config = {
    types: {},
    quiet: [window(['Sql/*']), window(['App/*', 'Sql/postgres orders']), window(['App/*'])],
  } as never
  const rows = { list: async () => [] } as never
  const keeper = new QuietKeeper({ config, store: { rows: async () => rows, now: () => now }, now: () => now })
  const { getQuiet } = quietOperations({ keeper, config: () => config, subjects: async () => [], mute: async () => [] })
  const { Quiet, HiddenQuiet } = await getQuiet({ reads: (type) => type === 'Sql', readsAll: false })
  expect(Quiet?.map(({ Monitors }) => Monitors)).toEqual([['Sql/*'], ['Sql/postgres orders']])
  expect(HiddenQuiet).toBe(1)
  expect(await getQuiet({ reads: () => true, readsAll: true })).toMatchObject({ HiddenQuiet: undefined })
})

import { expect, test } from 'vitest'
import { type DrillRecord, drillsInMemory, keptDrills, linkMs } from '../../../src/core/watch/drill/index.ts'

const minute = 60_000
const start = Date.UTC(2026, 10, 24, 12)
const drill = (id: string, beganAt: number): DrillRecord => ({
  id,
  by: 'ann',
  through: ['chat'],
  beganAt,
  hops: [],
  tokens: { chat: `hash of ${id}` },
  opened: {},
})

test('M14 without a store, links are confirmed once, and drills are bounded as in one', async () => {
  const drills = drillsInMemory()
  const { latest, withLinks } = keptDrills
  for (let at = 0; at < withLinks + 5; at += 1) await drills.begin(drill(`d${at}`, start + at * minute), minute)
  expect(await drills.latest(9_999)).toHaveLength(withLinks)
  expect(await drills.link('hash of d0', 0)).toBeUndefined()
  const confirm = async (at: number) => (await drills.confirm('hash of d9', at, 0))?.drill.opened
  expect(await confirm(5)).toEqual({ chat: 5 })
  expect(await confirm(6)).toEqual({ chat: 5 })
  await drills.update({ ...drill('d9', start), endedAt: start })
  expect((await drills.find('d9'))?.opened).toEqual({ chat: 5 })
  await drills.begin(drill('late', start + 2 * linkMs), minute)
  expect(await drills.latest(9_999)).toHaveLength(latest)
})

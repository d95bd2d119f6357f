import { expect, test } from 'vitest'
import { WrittenEntries } from '../../src/core/store/written-entries.ts'

const entry = (id: number, correlationId: string) => ({ id, correlationId })

test('W10 an entry that the store lost is missed although this server has written another one with its number since', () => {
  const written = new WrittenEntries(() => 0)
  written.add([entry(41, 'kept'), entry(42, 'gone'), entry(43, 'gone too')])
  written.add([entry(42, 'after the loss')])
  const present = [entry(41, 'kept'), entry(42, 'after the loss'), entry(43, 'of another server')]
  expect(written.lost(written.remembered(), present)).toEqual([42, 43])
  expect(written.lost(written.remembered(), present)).toEqual([])
})

test('W10 an entry that is written while the store is read is not missed, whatever its number', () => {
  const written = new WrittenEntries(() => 0)
  written.add([entry(42, 'gone')])
  const looked = written.remembered()
  written.add([entry(42, 'after the loss'), entry(44, 'new')])
  expect(written.lost(looked, [])).toEqual([42])
  expect(written.lost(written.remembered(), [entry(42, 'after the loss'), entry(44, 'new')])).toEqual([])
})

test('W10 the newest 1,000 entries of the last ten minutes are remembered', () => {
  let now = 0
  const written = new WrittenEntries(() => now)
  written.add(Array.from({ length: 1_001 }, (_, id) => entry(id, 'old')))
  expect(written.remembered().length).toBe(1_000)
  now = 600_001
  written.add([entry(2_000, 'new')])
  expect(written.remembered()).toMatchObject([entry(2_000, 'new')])
})

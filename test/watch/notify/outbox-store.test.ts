import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Data, openData } from '../../../src/core/store/index.ts'
import type { StoredRow } from '../../../src/core/watch/outbox/index.ts'
import { backendsOfTier } from '../../support/store/data-fixture.ts'

const rowOf = (receiver: string, key: string, more: Partial<StoredRow> = {}): StoredRow => ({
  receiver,
  subject: { key, type: 'Sql', monitor: 'orders', check: 'connect' },
  row: { need: { incident: 'i1', level: 'failed', beganAt: 1, since: 2 }, ends: [] },
  ...more,
})

describe.each(backendsOfTier())('W23 what receivers know, in a store on $name', ({ start, fresh, stop }) => {
  let path = ''
  let data: Data
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    path = await fresh(path)
    data = await openData({ store: path, create: true })
  })
  afterEach(async () => await data.close())

  test('W23 rows are the same after a restart, one for each receiver and subject, and empty ones are gone', async () => {
    expect(await data.outbox.read()).toEqual([])
    await data.outbox.write([rowOf('mail', 'Sql/a'), rowOf('mail', 'Sql/b'), rowOf('chat', 'Sql/a')])
    const changed = rowOf('mail', 'Sql/a', { row: { ends: [] } })
    await data.outbox.write([changed, rowOf('mail', 'Sql/b', { row: undefined })])
    await data.close()
    data = await openData({ store: path, create: false })
    const all = await data.outbox.read()
    expect(all).toHaveLength(2)
    expect(all).toEqual(expect.arrayContaining([changed, rowOf('chat', 'Sql/a')]))
  })

  test('W23 a thousand rows are one write', async () => {
    await data.outbox.write(Array.from({ length: 1_000 }, (_, at) => rowOf('mail', `Sql/${at}`)))
    expect(await data.outbox.read()).toHaveLength(1_000)
    await data.outbox.write(Array.from({ length: 1_000 }, (_, at) => rowOf('mail', `Sql/${at}`, { row: undefined })))
    expect(await data.outbox.read()).toEqual([])
  })
})

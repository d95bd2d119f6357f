import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openData } from '../../src/core/store/index.ts'
import { silencesKeptMs } from '../../src/core/store/rows/silences.ts'
import type { StoredSilence } from '../../src/core/watch/silences/index.ts'
import { actor, backendsOfTier, faultOf, twoNodes } from '../support/store/data-fixture.ts'

const now = 1_700_000_000_000
const silence = (id: string, more: Partial<Extract<StoredSilence, { what: 'silence' }>> = {}): StoredSilence => ({
  ...{ what: 'silence', id, monitors: ['Sql/*'], from: now, until: now + 60_000, by: 'alice', reason: 'patch night' },
  ...more,
})

describe.for(backendsOfTier())('silences of a store in $name', ({ start, fresh, raw, stop }) => {
  beforeAll(start)
  afterAll(stop)

  test('M8 what one node silences, the others read, the earliest first', async () => {
    const { data, other } = await twoNodes(fresh)
    await data.silences.add([silence('b', { from: now + 1 }), silence('a')], actor())
    expect((await other.silences.list()).map(({ id }) => id)).toEqual(['a', 'b'])
    expect(await other.silences.list()).toEqual(await data.silences.list())
    await Promise.all([data.close(), other.close()])
  })

  test('M8 of two nodes that end a silence at once, one does, and the audit has one entry', async () => {
    const { data, other } = await twoNodes(fresh)
    await data.silences.add([silence('a')], actor())
    const ended = { at: now + 5, by: 'bob', why: 'ended' } as const
    const both = await Promise.all([data.silences.end('a', ended, actor()), other.silences.end('a', ended, actor())])
    expect(both.filter((one) => one !== undefined)).toEqual([{ ...silence('a'), ended }])
    const events = (await data.audit.list({ limit: 10 })).map(({ event, target }) => [event, target])
    expect(events).toEqual([
      ['silence.ended', 'Sql/*'],
      ['silence.added', 'Sql/*'],
    ])
    await Promise.all([data.close(), other.close()])
  })

  test('M8 what is over by its time, or does not exist, cannot be ended', async () => {
    const { data, other } = await twoNodes(fresh)
    await data.silences.add([silence('a')], actor())
    const ended = { at: now + 60_000, by: 'bob', why: 'ended' } as const
    expect([await data.silences.end('a', ended, actor()), await data.silences.end('b', ended, actor())]).toEqual([
      undefined,
      undefined,
    ])
    await Promise.all([data.close(), other.close()])
  })

  test('M8 silences that have ended do not count for the limit of 10,000, and of them as many are kept', async () => {
    const store = await fresh()
    const data = await openData({ store, create: true, now: () => now })
    const fill = (name: string, count: number, endsAt: string): Promise<unknown> =>
      raw(
        store,
        `WITH RECURSIVE "all" ("n") AS (SELECT 1 UNION ALL SELECT "n" + 1 FROM "all" WHERE "n" < ${count})
          INSERT INTO "quiets" ("id", "endsAt", "body") SELECT '${name}' || "n", ${endsAt}, '{"from": 0, "id": "${name}' || "n" || '"}' FROM "all"`,
      )
    await fill('over-', 10_500, `${now} - "n"`)
    await fill('on-', 9_998, `${now} + "n"`)
    await data.silences.add([silence('a'), silence('b')], actor())
    const ids = (await data.silences.list()).map(({ id }) => id)
    expect(ids).toHaveLength(20_000)
    expect(ids.filter((id) => id.startsWith('over-'))).toHaveLength(10_000)
    expect((await faultOf(data.silences.add([silence('c')], actor()))).message).toBe(
      'The limit of 10000 silences is reached',
    )
    await data.silences.end('a', { at: now, by: 'bob', why: 'ended' }, actor())
    await data.silences.add([silence('c')], actor())
    const [left] = (await raw(store, `SELECT count(*) AS "n" FROM "quiets" WHERE "id" LIKE 'over-%'`)) as {
      n: unknown
    }[]
    expect(Number(left?.n)).toBe(9_999)
    await data.close()
  })

  test('M8 a silence is kept for a week after its end', async () => {
    const { data, other } = await twoNodes(fresh)
    await data.silences.add([silence('a'), silence('b', { until: now + 120_000 })], actor())
    await data.silences.end('b', { at: now, by: 'bob', why: 'ended' }, actor())
    await data.sweep(now + silencesKeptMs)
    expect(await other.silences.list()).toHaveLength(2)
    await data.sweep(now + silencesKeptMs + 1)
    expect((await other.silences.list()).map(({ id }) => id)).toEqual(['a'])
    await data.sweep(now + 60_000 + silencesKeptMs + 1)
    expect(await other.silences.list()).toEqual([])
    await Promise.all([data.close(), other.close()])
  })
})

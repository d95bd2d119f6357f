import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Data, openData } from '../../../src/core/store/index.ts'
import type { DrillRecord } from '../../../src/core/watch/drill/index.ts'
import { backendsOfTier } from '../../support/store/data-fixture.ts'

const minute = 60_000
const start = Date.UTC(2026, 10, 24, 12)
const drill = (id: string, beganAt: number, more: Partial<DrillRecord> = {}): DrillRecord => ({
  id,
  by: 'ann',
  through: ['chat'],
  beganAt,
  hops: [],
  tokens: {},
  opened: {},
  ...more,
})

describe.each(backendsOfTier())('M14 drills in a store on $name', ({ start: begin, fresh, stop }) => {
  let path = ''
  let data: Data
  beforeAll(begin)
  afterAll(stop)
  beforeEach(async () => {
    path = await fresh(path)
    data = await openData({ store: path, create: true })
  })
  afterEach(async () => await data.close())

  test('M14 none begins within a minute of another, also of those that begin at once', async () => {
    const outcomes = await Promise.all(['a', 'b', 'c'].map((id) => data.drills.begin(drill(id, start), minute)))
    expect(outcomes.filter((isFirst) => isFirst)).toHaveLength(1)
    expect(await data.drills.begin(drill('d', start + minute - 1), minute)).toBe(false)
    expect(await data.drills.begin(drill('e', start + minute), minute)).toBe(true)
    expect((await data.drills.latest(9)).map(({ id }) => id)[0]).toBe('e')
    // A clock that was set back by an hour does not stop drills.
    expect(await data.drills.begin(drill('f', start - 60 * minute), minute)).toBe(true)
  })

  test('M14 a link is confirmed once, stays readable up to its end, and survives an update', async () => {
    const { drills } = data
    await drills.begin(drill('a', start, { tokens: { chat: 'hash1', am: 'hash2' } }), minute)
    expect(await drills.link('unknown', 0)).toBeUndefined()
    expect(await drills.confirm('unknown', start, 0)).toBeUndefined()
    expect(await drills.confirm('hash1', start + 9 * minute, start + 1)).toBeUndefined()
    expect(await drills.link('hash1', start)).toMatchObject({ receiver: 'chat', confirmedAt: undefined })
    const first = { receiver: 'chat', confirmedAt: start + minute }
    const all = await Promise.all([1, 2, 3].map(() => drills.confirm('hash1', start + minute, start)))
    expect(all).toMatchObject([first, first, first])
    expect(await drills.confirm('hash1', start + 5 * minute, start)).toMatchObject(first)
    expect(await drills.link('hash1', start)).toMatchObject(first)
    await drills.update(drill('a', start, { endedAt: start + minute }))
    expect(await drills.find('a')).toMatchObject({
      endedAt: start + minute,
      opened: { chat: start + minute },
      tokens: { chat: 'hash1', am: 'hash2' },
    })
    expect(await drills.link('hash1', start)).toMatchObject(first)
    expect(await drills.link('hash2', start)).toMatchObject({ receiver: 'am', confirmedAt: undefined })
  })

  test('M14 what two nodes confirm at once stands, beside the updates of the node that runs the drill', async () => {
    await using stack = new AsyncDisposableStack()
    const other = await openData({ store: path, create: false })
    stack.defer(async () => await other.close())
    const tokens = { chat: 'hash1', am: 'hash2' }
    for (let round = 0; round < 10; round += 1) {
      const id = `round ${round}`
      const beganAt = start + round * minute
      await data.drills.begin(drill(id, beganAt, { tokens }), minute)
      const update = async (drills: typeof data.drills) => {
        await drills.update(drill(id, beganAt, { tokens, endedAt: beganAt + 1 }))
      }
      await Promise.all([
        update(data.drills),
        other.drills.confirm('hash1', beganAt + 1, beganAt),
        data.drills.confirm('hash1', beganAt + 2, beganAt),
        update(other.drills),
        data.drills.confirm('hash2', beganAt + 3, beganAt),
        update(data.drills),
      ])
      const { opened = {} } = (await data.drills.find(id)) ?? {}
      expect(opened).toEqual({ chat: expect.any(Number), am: beganAt + 3 })
    }
  })

  test('M14 the latest 100 are kept, and others as long as their links work', async () => {
    const hour = 60 * minute
    for (let at = 0; at < 105; at += 1) await data.drills.begin(drill(`d${at}`, start + at * hour), minute)
    expect(await data.drills.latest(2_000)).toHaveLength(105)
    await data.drills.begin(drill('late', start + 12 * 24 * hour), minute)
    const all = await data.drills.latest(2_000)
    expect([all.length, all[0]?.id]).toEqual([100, 'late'])
  })

  test('M14 what receivers know of drills is apart from what they know of incidents', async () => {
    const row = { need: { incident: 'i1', level: 'warning', beganAt: 1, since: 2 }, ends: [] } as const
    const subject = { key: '/svc/drill', monitor: 'svc drill', check: 'drill' }
    await data.drills.outbox.write([{ receiver: 'chat', subject, row }])
    expect(await data.outbox.read()).toEqual([])
    expect(await data.drills.outbox.read()).toEqual([{ receiver: 'chat', subject, row }])
    await data.outbox.write([{ receiver: 'chat', subject, row: undefined }])
    expect(await data.drills.outbox.read()).toHaveLength(1)
  })
})

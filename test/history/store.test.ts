import { existsSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type HistoryRows,
  memorySource,
  type ObservedRun,
  packed,
  periodsOf,
  Recorder,
  restored,
} from '../../src/core/history/index.ts'
import { type Data, openData } from '../../src/core/store/index.ts'
import { backends } from '../support/store/data-fixture.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const noon = Date.UTC(2026, 5, 1, 12)

const identity = { key: 'Sql/postgres/orders', type: 'Sql', name: 'postgres orders' }
const figure = JSON.stringify(['round trip', 'milliseconds'])

const runAt = (at: number, level: 'ok' | 'failed', value = 12): ObservedRun => ({
  at,
  rank: 1,
  stands: [2 * minute, 2 * minute, 2 * hour],
  checks: [{ check: 'round trip', rank: 0, level, figure: { name: figure, value } }],
})

/** Numbers, batches and writes what the recorder has, as `svc serve` does each second. */
async function store(recorder: Recorder, rows: HistoryRows, now: number): Promise<void> {
  recorder.numbered(await rows.number(recorder.unnumbered))
  const batch = recorder.batch(now, false)
  if (!batch) return
  await rows.write(batch)
  recorder.stored(batch)
}

const everything = (from: number, to: number, step: number) => ({ from, to, step, figures: true, includes: () => true })

describe.each(backends)('W3 the history of a store on $name', ({ name, start, fresh, stop }) => {
  let path = ''
  let data: Data
  const open = async (): Promise<Data> => await openData({ store: path, create: true })
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    path = await fresh(path)
    data = await open()
  })
  afterEach(async () => await data.close())

  test('a process that starts again knows the hour that it was in, from single runs', async () => {
    const recorder = new Recorder()
    for (let at = noon; at < noon + 10 * minute; at += minute) {
      recorder.add(identity, runAt(at, at >= noon + 3 * minute && at < noon + 5 * minute ? 'failed' : 'ok'))
      await store(recorder, data.history, at)
    }
    await data.close()
    data = await open()
    const now = noon + 10 * minute
    const again = await restored(data.history, now)
    const [monitor] = await periodsOf(again, everything(noon, now, 5 * minute), now)
    const whole = packed(monitor?.periods.map(({ pack }) => pack) ?? [])
    expect(whole).toMatchObject({
      up: [8 * minute, 8 * minute, 8 * minute],
      down: [2 * minute, 2 * minute, 2 * minute],
    })
    expect([...(whole.failing ?? [])]).toEqual([['round trip', 2 * minute]])
    expect(whole.figures.get(figure)).toMatchObject({ count: 10, min: 12, max: 12 })
    expect(monitor).toMatchObject({ ...identity, firstAt: noon })
  })

  test('a block of an hour that is written twice counts once, and the one with more runs stays', async () => {
    const { history } = data
    const write = async (runs: number): Promise<void> => {
      const recorder = new Recorder()
      recorder.adopt(await history.numbered())
      for (let at = 0; at < runs; at += 1) recorder.add(identity, runAt(noon + at * minute, 'ok'))
      await store(recorder, history, noon + hour + minute)
    }
    await write(30)
    await write(20)
    const [block] = await history.blocks({ tier: 0, ats: [noon], monitors: [1], figures: false })
    expect(block?.runs).toBe(30)
    await write(40)
    const [better] = await history.blocks({ tier: 0, ats: [noon], monitors: [1], figures: false })
    expect(better?.runs).toBe(40)
  })

  test('numbers of names and monitors stay, and a renamed monitor goes on under its new key', async () => {
    const { history } = data
    const monitors = [{ ...identity, firstAt: noon }]
    const first = await history.number({ names: ['one', 'two'], monitors })
    expect(first.names).toEqual([
      { number: 1, text: 'one' },
      { number: 2, text: 'two' },
    ])
    const second = await history.number({ names: ['two', 'three'], monitors })
    expect(second.names).toContainEqual({ number: 2, text: 'two' })
    expect(second.monitors).toEqual([{ ...identity, number: 1, firstAt: noon }])
    const to = { key: 'Sql/postgres/sales', type: 'Sql', name: 'postgres sales' }
    await history.rename([{ from: identity.key, to }])
    expect((await history.numbered()).monitors).toEqual([{ ...to, number: 1, firstAt: noon }])
  })

  test.runIf(name === 'SQLite')('reading makes no file, and the file is not a store', async () => {
    const { history } = data
    const file = `${path}.history`
    expect(await history.numbered()).toEqual({ names: [], monitors: [] })
    expect(existsSync(file)).toBe(false)
    await history.number({ names: ['one'], monitors: [] })
    expect(existsSync(file)).toBe(true)
    await expect(openData({ store: file, create: false })).rejects.toThrow('not a store of svc')
  })
})

test('W3 without a store, history has the last 24 hours', async () => {
  const { rows, recorder, names } = memorySource()
  for (let at = noon; at < noon + 30 * hour; at += 10 * minute) {
    recorder.add(identity, { ...runAt(at, 'ok'), stands: [20 * minute, 20 * minute, hour] })
    await store(recorder, rows, at)
  }
  const now = noon + 30 * hour
  const [monitor] = await periodsOf({ rows, recorder, names }, everything(now - day * 3, now, hour), now)
  const first = monitor?.periods[0]?.from ?? 0
  expect(now - first).toBeGreaterThanOrEqual(23 * hour)
  expect(now - first).toBeLessThanOrEqual(26 * hour)
})

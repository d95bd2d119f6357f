import { copyFileSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type Data, openData } from '../../../src/core/store/index.ts'
import {
  HistoryFollower,
  type HistoryRows,
  type HistorySource,
  memorySource,
  type ObservedRun,
  packed,
  periodsOf,
  Recorder,
  restored,
} from '../../../src/core/watch/periods/index.ts'
import {
  type Effect,
  type IncidentRecord,
  Ledger,
  States,
  type StatesBatch,
  type StoredState,
  type Transition,
  type WatchedMonitor,
} from '../../../src/core/watch/states/index.ts'
import { newSubject } from '../../../src/core/watch/states/judge.ts'
import { backendsOfTier } from '../../support/store/data-fixture.ts'
import { until } from '../../support/suite/until.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const noon = Date.UTC(2026, 5, 1, 12)

const identity = { key: 'Sql/postgres/orders', type: 'Sql', name: 'postgres orders' }
const figure = JSON.stringify(['round trip', 'milliseconds'])

const runAt = (at: number, level: 'ok' | 'failed', value = 12): ObservedRun => ({
  at,
  rank: 1,
  validMs: [2 * minute, 2 * minute, 2 * hour],
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

describe.each(backendsOfTier())('W3 the history of a store on $name', ({ name, start, fresh, raw, stop }) => {
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

  test('W4 the history of each node has the runs of all nodes, and is whole after one took a monitor over', async () => {
    const [one, other] = [await open(), await open()]
    const [first, second] = [await restored(one.history, noon), await restored(other.history, noon)]
    const follower = new HistoryFollower(second)
    await follower.turn(noon)
    const mine = { key: 'Sql/tcp/mine', type: 'Sql', name: 'tcp mine' }
    for (let at = 0; at < 30; at += 1) {
      first.recorder.add(identity, runAt(noon + at * minute, at === 10 ? 'failed' : 'ok', at))
      second.recorder.add(mine, runAt(noon + at * minute, 'ok'))
      await store(first.recorder, one.history, noon + at * minute)
      await store(second.recorder, other.history, noon + at * minute)
      await follower.turn(noon + at * minute + 6_000)
    }
    const historyIn = async (source: HistorySource) => {
      const all = await periodsOf(source, everything(noon, noon + 30 * minute, 5 * minute), noon + 29 * minute + 6_000)
      return all.find(({ key }) => key === identity.key)
    }
    expect((await historyIn(first))?.periods).toHaveLength(6)
    expect(await historyIn(second)).toEqual(await historyIn(first))
    // The first node is gone: the other one runs the monitor, and stores the hour.
    for (let at = 30; at < 61; at += 1) second.recorder.add(identity, runAt(noon + at * minute, 'ok', at))
    await follower.turn(noon + hour + minute)
    for (const seconds of [10, 11, 12]) await store(second.recorder, other.history, noon + hour + seconds * 1_000)
    const later = await restored(one.history, noon + hour + minute)
    const [whole] = await periodsOf(later, everything(noon, noon + hour, hour), noon + hour + minute)
    const sums = (whole?.periods ?? []).map(({ pack }) => [pack.runs, pack.down[0]] as const)
    expect(sums.reduce((sum, [runs]) => sum + runs, 0)).toBe(60)
    expect(sums.reduce((sum, [, down]) => sum + down, 0)).toBe(minute)
    const blocks = await one.history.blocks({ tier: 0, ats: [noon], monitors: [1], figures: false })
    expect(blocks.map(({ runs }) => runs)).toEqual([60])
    await other.close()
    await one.close()
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

  const row = { key: identity.key, type: 'Sql', monitor: identity.name, check: 'connect' } as const
  const record = (id: string, beganAt: number): IncidentRecord => ({
    ...row,
    ...{ id, beganAt, confirmedAt: beganAt + 20_000, level: 'failed', fault: 'refused', message: 'connection refused' },
    ...{ isFlapping: false, isUnobserved: false },
  })
  const state = {
    ...newSubject({ check: 'connect', level: 'failed', message: 'm', depth: 'Basic' }, noon),
    level: 'failed' as const,
  }
  const storedState: StoredState = { row, state }
  const batch = (more: Partial<StatesBatch> = {}): StatesBatch => ({
    ...{ states: [], gone: [], incidents: [], isWhole: false },
    ...more,
  })
  const everyIncident = { from: 0, to: Number.MAX_SAFE_INTEGER, most: 1_000 }

  test('W18 states and incidents are what they were after svc starts again', async () => {
    const item = { ...storedState, row: { ...row, item: `queue ${'x'.repeat(5_000)}` } }
    const first = {
      ...batch({ isWhole: true, claims: 'now' }),
      states: [storedState, item],
      incidents: [record('a', noon + 0.25)],
    }
    expect(await data.states.read()).toEqual({ ageMs: undefined, states: [], incidents: [] })
    expect(await data.states.write(first)).toBe(true)
    // A write whose answer was lost is repeated.
    expect(await data.states.write(first)).toBe(true)
    await data.close()
    data = await open()
    const { ageMs, states, incidents } = await data.states.read()
    expect(ageMs).toBeGreaterThanOrEqual(0)
    expect(states).toHaveLength(2)
    expect(states).toEqual(expect.arrayContaining([storedState, item]))
    expect(incidents).toEqual([record('a', noon + 0.25)])
  })

  test('W3 an incident that ends leaves its state and stays in the history, for 400 days', async () => {
    const open = { states: [storedState], incidents: [record('a', noon), record('b', noon - day)] }
    await data.states.write(batch({ ...open, isWhole: true, claims: 'now' }))
    const ended = { ...record('a', noon), endedAt: noon + hour, ending: 'recovered' } as const
    await data.states.write(batch({ gone: [row], incidents: [ended] }))
    expect(await data.states.read()).toMatchObject({ states: [], incidents: [{ id: 'b' }] })
    expect(await data.states.incidents(everyIncident)).toEqual([ended, record('b', noon - day)])
    const at = async (from: number, to: number, most = 9) =>
      (await data.states.incidents({ from, to, most })).map(({ id }) => id)
    expect(await at(noon - hour, noon - 1)).toEqual(['b'])
    expect(await at(noon + hour + 1, noon + day)).toEqual(['b'])
    expect(await at(0, noon + day, 1)).toEqual(['a'])
    await data.states.write(batch({ deleteBefore: noon + hour + 1 }))
    expect(await at(0, noon + day)).toEqual(['b'])
  })

  test('W3 of two servers on one store, the one that started last stores states; incidents that only the other one knew are lost', async () => {
    const other = await open()
    try {
      await data.states.write(
        batch({ states: [storedState], incidents: [record('a', noon)], isWhole: true, claims: 'now' }),
      )
      expect(await other.states.write(batch({ isWhole: true, claims: 'now', incidents: [record('b', noon)] }))).toBe(
        true,
      )
      expect(await data.states.write(batch({ states: [storedState] }))).toBe(false)
      expect(await data.states.write(batch({ states: [storedState], isWhole: true, claims: 'when free' }))).toBe(false)
      const { states, incidents } = await data.states.read()
      expect(states).toEqual([])
      expect(incidents).toEqual([record('b', noon)])
      expect(await data.states.incidents(everyIncident)).toContainEqual(
        expect.objectContaining({ id: 'a', ending: 'unknown', endedAt: expect.any(Number) }),
      )
    } finally {
      await other.close()
    }
    const later = await openData({ store: path, create: false, now: () => Date.now() + minute })
    onTestFinished(() => later.close())

    expect(await later.states.write(batch({ isWhole: true, claims: 'when free' }))).toBe(true)
  })

  /** Copies a store that nobody uses; gives what puts the copy in its place. */
  const copied = async (): Promise<() => Promise<string>> => {
    if (name === 'SQLite') {
      const folder = dirname(path)
      const files = readdirSync(folder).filter((file) => file.startsWith(basename(path)))
      for (const file of files) copyFileSync(join(folder, file), join(folder, `copy-${file}`))
      return async () => {
        for (const file of readdirSync(folder)) if (file.startsWith(basename(path))) rmSync(join(folder, file))
        for (const file of files) copyFileSync(join(folder, `copy-${file}`), join(folder, file))
        return path
      }
    }
    const others = 'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
    await until(async () => (await raw(path, others)).length === 0)
    const url = new URL(path)
    const database = url.pathname.slice(1)
    await raw(path, `CREATE DATABASE ${database}_copy TEMPLATE ${database} OWNER svc`)
    url.pathname = `${database}_copy`
    return async () => url.href
  }

  const watchedAs = (type: 'App' | 'Sql', one: string): WatchedMonitor => ({
    ...{ key: `${type}/tcp/${one}`, type, name: `tcp ${one}`, runsOn: 'network', every: { Standard: minute } },
    ...{ dependsOn: [], confirmMs: 20_000, flapping: 6, formerly: [], fingerprint: '' },
  })
  const [shop, db] = [watchedAs('App', 'shop'), watchedAs('Sql', 'db')]

  /** Uses a store as `svc serve` does, at times of the test. */
  async function serving(from: number) {
    let clock = from
    data = await openData({ store: path, create: true, now: () => clock })
    const states = new States(clock)
    const ledger = new Ledger()
    const transitions: Transition[] = []
    const before = await data.states.read()
    const source = await restored(data.history, clock)
    ledger.adopt(before)
    states.restore(before.states, clock, clock - (before.ageMs ?? 0))
    const take = (effects: readonly Effect[]): void => {
      ledger.take(effects)
      for (const effect of effects) if (effect.type === 'transition') transitions.push(effect.transition)
    }
    take(states.configure([shop, db], clock))
    return {
      transitions,
      source,
      /** A run of both at a time. These fail. */
      run: async (at: number, ...failing: readonly WatchedMonitor[]): Promise<void> => {
        clock = at
        for (const { key, type = 'App', name: monitor } of [shop, db]) {
          const isDown = failing.some((one) => one.key === key)
          const level = isDown ? 'failed' : 'ok'
          const verdict = { check: 'connect', level, message: level, depth: 'Basic' } as const
          const verdicts = [isDown ? { ...verdict, fault: 'refused' as const } : verdict]
          take(states.ran({ key, depth: 'Standard', beganAt: at, endedAt: at, verdicts }, at))
          source.recorder.add({ key, type, name: monitor }, runAt(at, level))
        }
        take(states.tick(at))
        await store(source.recorder, data.history, at)
        const batch = ledger.batch(at)
        if (batch && (await data.states.write(batch))) ledger.stored(batch, at)
      },
      incidents: async () => await data.states.incidents(everyIncident),
    }
  }

  test('W18 W3 on an older copy of the store, an incident that is over meanwhile ends once, one that began meanwhile begins once, and the time between is unobserved', async () => {
    await data.close()
    const first = await serving(noon)
    await first.run(noon)
    for (const seconds of [60, 65, 75, 85, 120, 180]) await first.run(noon + seconds * 1_000, db)
    const [{ id } = { id: '' }, ...others] = await first.incidents()
    expect(others).toEqual([])
    await data.close()
    const restore = await copied()

    // What the copy does not know.
    const second = await serving(noon + 4 * minute)
    for (const seconds of [240, 300, 360, 420, 480]) await second.run(noon + seconds * 1_000, shop)
    expect((await second.incidents()).map(({ monitor, ending }) => [monitor, ending])).toEqual([
      ['tcp shop', undefined],
      ['tcp db', 'recovered'],
    ])
    await data.close()

    path = await restore()
    const back = noon + 2 * hour
    const third = await serving(back)
    for (const seconds of [1, 6, 16, 26, 60, 120]) await third.run(back + seconds * 1_000, shop)
    const opened = back + 1_000
    expect(third.transitions.map(({ what, monitor, at, incident }) => [what, monitor, at, incident === id])).toEqual([
      ['unobserved', 'tcp db', noon + 3 * minute, true],
      ['observed', 'tcp db', opened, true],
      ['end', 'tcp db', opened, true],
      ['begin', 'tcp shop', opened, false],
    ])
    expect(await third.incidents()).toMatchObject([
      { monitor: 'tcp shop', beganAt: opened, endedAt: undefined },
      { id, monitor: 'tcp db', beganAt: noon + minute, endedAt: opened, ending: 'recovered' },
    ])
    const now = back + 2 * minute
    const all = await periodsOf(third.source, everything(noon, now, 5 * minute), now)
    const ofDb = all.find(({ key }) => key === db.key)?.periods ?? []
    const whole = packed(ofDb.map(({ pack }) => pack))
    // The last verdict before the copy stands for two intervals, and no run of the hole counts.
    expect(whole).toMatchObject({ down: [4 * minute, 4 * minute, 4 * minute] })
    expect(ofDb.filter(({ from }) => from >= noon + 10 * minute && from < back)).toEqual([])
    const ofShop = packed(all.find(({ key }) => key === shop.key)?.periods.map(({ pack }) => pack) ?? [])
    expect(ofShop.down[0]).toBe(now - opened)
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
    recorder.add(identity, { ...runAt(at, 'ok'), validMs: [20 * minute, 20 * minute, hour] })
    await store(recorder, rows, at)
  }
  const now = noon + 30 * hour
  const [monitor] = await periodsOf({ rows, recorder, names }, everything(now - day * 3, now, hour), now)
  const first = monitor?.periods[0]?.from ?? 0
  expect(now - first).toBeGreaterThanOrEqual(23 * hour)
  expect(now - first).toBeLessThanOrEqual(26 * hour)
})

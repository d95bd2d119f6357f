import { describe, expect, test } from 'vitest'
import {
  availability,
  HistoryKeeper,
  inSteps,
  keptMs,
  type ObservedRun,
  type Period,
  periodsOf,
  Recorder,
  restored,
  worstMoments,
} from '../../../src/core/watch/periods/index.ts'
import { rowsInMemory } from '../../support/periods/rows-in-memory.ts'
import { isQuick } from '../../support/suite/tier.ts'
import { Chance } from '../simulate/chance.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const start = Date.UTC(2026, 0, 10, 7, 20)
const identity = { key: 'Sql/postgres/orders', type: 'Sql', name: 'postgres orders' }
const figure = JSON.stringify(['round trip', 'milliseconds'])

type Outage = { readonly from: number; readonly to: number }
/** Outages of a minute to some hours, in the order of time. */
function outages(seed: number, until: number): readonly Outage[] {
  const chance = new Chance(seed)
  const all: Outage[] = []
  for (let at = start + chance.between(hour, 5 * day); at < until; ) {
    const to = at + chance.between(minute, 5 * hour)
    all.push({ from: at, to })
    at = to + chance.between(hour, 20 * day)
  }
  return all
}

/** A process that keeps a history in rows that outlive it. */
type Simulation = { readonly rows: ReturnType<typeof rowsInMemory>; keeper: HistoryKeeper }

const simulated = (): Simulation => {
  const rows = rowsInMemory()
  return { rows, keeper: new HistoryKeeper({ rows, recorder: new Recorder(), names: new Map() }) }
}

/** Another process goes on with what is stored. */
async function restart(simulation: Simulation, now: number): Promise<void> {
  simulation.keeper = new HistoryKeeper(await restored(simulation.rows, now))
}

const runAt = (at: number, isDown: boolean, interval: number): ObservedRun => ({
  at,
  rank: 1,
  validMs: [2 * interval, 2 * interval, 2 * hour],
  checks: [
    { check: 'round trip', rank: 0, level: isDown ? 'failed' : 'ok', figure: { name: figure, value: at % 100 } },
  ],
})

async function read({ keeper }: Simulation, from: number, now: number, step: number) {
  const [monitor] = await periodsOf(keeper.source, { from, to: now, step, figures: true, includes: () => true }, now)
  return monitor?.periods ?? []
}

const gaps = (periods: readonly Period[]): number =>
  periods.filter(({ from }, at) => at > 0 && from !== periods[at - 1]?.to).length

/** The slow tier looks at more than a year, with a run in each hour. */
const lookedAtDays = isQuick() ? 60 : 400
const runEachMs = isQuick() ? 2 * hour : hour

describe('W3 a simulated year and more', () => {
  test(`availability over ${lookedAtDays} days is that of the truth, to one interval for each outage, whatever the periods`, async () => {
    const interval = 40 * minute
    const end = start + (lookedAtDays + 10) * day
    const truth = outages(7, end)
    const simulation = simulated()
    const chance = new Chance(1)
    let next = 0
    for (let at = start; at < end; at += interval) {
      while ((truth[next]?.to ?? end) <= at) next += 1
      simulation.keeper.source.recorder.add(identity, runAt(at, at >= (truth[next]?.from ?? end), interval))
      await simulation.keeper.turn(at)
      // A process that is killed at any time loses nothing that was stored.
      if (chance.is(0.004)) {
        await restart(simulation, at)
      }
    }
    for (const [days, step] of [
      [1, 5 * minute],
      [1, hour],
      [7, hour],
      [60, day],
      [400, day],
    ] as const) {
      if (days > lookedAtDays) continue
      const from = end - days * day
      const periods = await read(simulation, from, end, step)
      const first = periods[0]?.from ?? 0
      const isDown = (at: number): boolean => truth.some((outage) => at >= outage.from && at < outage.to)
      let downMs = 0
      for (let at = Math.ceil((first - start) / interval) * interval + start; at < end; at += interval)
        if (isDown(at)) downMs += interval
      const total = availability(periods, 2, first, end)
      const faults = truth.filter((outage) => outage.to > first).length
      expect(Math.abs(total.downMs - downMs)).toBeLessThanOrEqual((faults + 1) * interval)
      expect(total.upMs + total.downMs + total.unobservedMs).toBe(end - first)
      expect(total.unobservedMs).toBeLessThanOrEqual(interval)
      expect(gaps(periods)).toBe(0)
      expect(first).toBeLessThanOrEqual(from)
      const counts = periods.reduce((sum, { pack }) => sum + (pack.figures.get(figure)?.count ?? 0), 0)
      const runsBefore = (at: number): number => Math.ceil((at - start) / interval)
      expect(counts).toBe(runsBefore(end) - runsBefore(Math.max(first, start)))
    }
    // The last 90 days are kept in hours: their days would begin when the question does, and not at midnight.
    if (isQuick()) return
    const byDay = new Map<number, number>()
    for (let at = start; at < end; at += minute) {
      const isDown = truth.some((outage) => at >= outage.from && at < outage.to)
      if (isDown) byDay.set(Math.floor(at / day), (byDay.get(Math.floor(at / day)) ?? 0) + minute)
    }
    const [worst] = worstMoments(await read(simulation, end - 400 * day, end, day), 2, 1)
    expect(Math.abs((worst?.downMs ?? 0) - Math.max(...byDay.values()))).toBeLessThanOrEqual(2 * interval)
    expect(worst?.checks).toEqual(['round trip'])
  })

  test('what is older than its time is deleted: the rows of a year are as many as those of 100 days', async () => {
    const simulation = simulated()
    const interval = runEachMs
    const sizes: (readonly number[])[] = []
    for (let at = start; at < start + 500 * day; at += interval) {
      simulation.keeper.source.recorder.add(identity, runAt(at, false, interval))
      await simulation.keeper.turn(at)
      if ([450 * day, 499 * day].includes(at - start)) sizes.push(simulation.rows.size().blocks)
    }
    expect(simulation.rows.size().runs).toBeLessThanOrEqual(3)
    for (const [fives = 0, hours = 0, days = 0] of sizes) {
      expect(fives).toBeLessThanOrEqual(50)
      expect(hours).toBeLessThanOrEqual(92)
      expect(days).toBeLessThanOrEqual(keptMs / (30 * day) + 2)
    }
  })

  test('svc that did not run for a day, and a clock that was set ahead, are time that was not observed', async () => {
    const simulation = simulated()
    const runs = async (from: number, to: number): Promise<void> => {
      for (let at = from; at < to; at += minute) {
        simulation.keeper.source.recorder.add(identity, runAt(at, false, minute))
        await simulation.keeper.turn(at)
      }
    }
    await runs(start, start + 3 * hour)
    const later = start + 27 * hour
    await restart(simulation, later)
    await runs(later, later + 3 * hour)
    const end = later + 3 * hour
    const periods = await read(simulation, start, end, hour)
    const total = availability(periods, 2, start, end)
    expect(total.downMs).toBe(0)
    expect(Math.abs(total.unobservedMs - day)).toBeLessThanOrEqual(2 * minute)
    expect(total.percent).toBe(100)
  })

  test('days of 23 and of 25 hours in local time are as long as the others', async () => {
    // 29 March and 25 October 2026 in Europe, 8 March and 1 November in America.
    for (const change of [
      Date.UTC(2026, 2, 29, 1),
      Date.UTC(2026, 9, 25, 1),
      Date.UTC(2026, 2, 8, 10),
      Date.UTC(2026, 10, 1, 9),
    ]) {
      const simulation = simulated()
      for (let at = change - 3 * hour; at < change + 3 * hour; at += minute) {
        simulation.keeper.source.recorder.add(identity, runAt(at, at >= change && at < change + hour, minute))
        await simulation.keeper.turn(at)
      }
      const periods = await read(simulation, change - 3 * hour, change + 3 * hour, hour)
      const total = availability(periods, 2, change - 3 * hour, change + 3 * hour)
      expect([total.downMs, total.upMs, total.unobservedMs]).toEqual([hour, 5 * hour, 0])
      expect(inSteps(periods, hour)).toHaveLength(6)
    }
  })

  test('a restart with a clock that was set back loses nothing of what is stored', async () => {
    const simulation = simulated()
    for (let at = start; at < start + 5 * hour; at += minute) {
      simulation.keeper.source.recorder.add(identity, runAt(at, false, minute))
      await simulation.keeper.turn(at)
    }
    const back = start + 2 * hour
    await restart(simulation, back)
    for (let at = back; at < start + 7 * hour; at += minute) {
      simulation.keeper.source.recorder.add(identity, runAt(at, true, minute))
      await simulation.keeper.turn(at)
    }
    const total = availability(await read(simulation, start, start + 7 * hour, hour), 2, start, start + 7 * hour)
    expect(total.upMs + total.downMs).toBeGreaterThanOrEqual(7 * hour - 10 * minute)
  })
})

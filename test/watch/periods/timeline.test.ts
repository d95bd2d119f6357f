import { describe, expect, test } from 'vitest'
import type { ObservedCheck, ObservedRun, Pack, Rank } from '../../../src/core/watch/periods/index.ts'
import { codeOf, maxCode, packed, slotMs, Timeline, valueOfCode } from '../../../src/core/watch/periods/index.ts'
import { decodeRuns, encodeRuns, layoutOf } from '../../../src/core/watch/periods/runs.ts'
import { Chance } from '../simulate/chance.ts'

const second = 1_000
const minute = 60_000
const hour = 60 * minute
/** Noon of a day. */
const noon = Date.UTC(2026, 5, 1, 12)

const level = (verdict: ObservedCheck['level'], check = 'connect', rank: Rank = 0): ObservedCheck => ({
  check,
  rank,
  level: verdict,
})
const run = (at: number, checks: readonly ObservedCheck[], rank: Rank = 1): ObservedRun => ({
  at,
  rank,
  checks,
  validMs: [2 * minute, 2 * minute, 2 * hour],
})

function timesOf(timeline: Timeline, rank: Rank = 2): { readonly upMs: number; readonly downMs: number } {
  const whole = packed(timeline.packs.values())
  return { upMs: whole.up[rank], downMs: whole.down[rank] }
}

describe('W3 when a monitor was up', () => {
  test('down is from the first failed verdict to the first healthy one', () => {
    const timeline = new Timeline(noon)
    timeline.observe(run(noon, [level('ok')]))
    timeline.observe(run(noon + minute, [level('failed')]))
    timeline.observe(run(noon + 2 * minute, [level('failed')]))
    timeline.observe(run(noon + 3 * minute, [level('ok')]))
    timeline.advance(noon + 4 * minute)
    expect(timesOf(timeline)).toEqual({ upMs: 2 * minute, downMs: 2 * minute })
  })

  test('a warning is up', () => {
    const timeline = new Timeline(noon)
    timeline.observe(run(noon, [level('warning')]))
    timeline.advance(noon + minute)
    expect(timesOf(timeline)).toEqual({ upMs: minute, downMs: 0 })
    expect([...timeline.packs.values()].map(({ warned }) => warned)).toEqual([1])
  })

  test('a verdict stands for two intervals, and then nothing is observed', () => {
    for (const verdict of ['ok', 'failed'] as const) {
      const timeline = new Timeline(noon)
      timeline.observe(run(noon, [level(verdict)]))
      timeline.advance(noon + hour)
      const { upMs, downMs } = timesOf(timeline)
      expect(upMs + downMs).toBe(2 * minute)
      expect(verdict === 'ok' ? upMs : downMs).toBe(2 * minute)
    }
  })

  test('a check without a verdict neither fails nor recovers', () => {
    const timeline = new Timeline(noon)
    timeline.observe(run(noon, [level('failed', 'replication'), level('ok')]))
    timeline.observe(run(noon + minute, [level(undefined, 'replication'), level('ok')]))
    timeline.advance(noon + 90 * second)
    expect(timesOf(timeline)).toEqual({ upMs: 0, downMs: 90 * second })
  })

  test('a healthy Standard run does not heal a check that only Advanced includes', () => {
    const timeline = new Timeline(noon)
    timeline.observe(run(noon, [level('ok'), level('failed', 'backup', 2)], 2))
    timeline.observe(run(noon + minute, [level('ok')], 1))
    timeline.advance(noon + 2 * minute)
    expect(timesOf(timeline)).toEqual({ upMs: 0, downMs: 2 * minute })
    expect(timesOf(timeline, 1)).toEqual({ upMs: 2 * minute, downMs: 0 })
  })

  test('a check that a healthy run no longer has does not keep its monitor down', () => {
    const timeline = new Timeline(noon)
    timeline.observe(run(noon, [level('ok'), level('failed', 'queue orders')]))
    timeline.observe(run(noon + minute, [level('ok')]))
    timeline.advance(noon + 2 * minute)
    expect(timesOf(timeline)).toEqual({ upMs: minute, downMs: minute })
  })
})

const ranks = [0, 1, 2] as const

/** The model of a timeline for each rank, second by second. */
function modelOf(runs: readonly ObservedRun[], from: number, to: number) {
  const times = ranks.map(() => ({ upMs: 0, downMs: 0 }))
  for (let at = from; at < to; at += second) {
    const verdictsNow = new Map<string, { readonly level: string; readonly until: number; readonly rank: Rank }>()
    for (const one of runs.filter((each) => each.at <= at)) {
      const verdicts = one.checks.filter((check) => check.level !== undefined)
      if (verdicts.length > 0 && verdicts.every((check) => check.level !== 'failed')) {
        for (const [name, verdict] of verdictsNow) {
          const isGone = verdict.level === 'failed' && verdict.rank <= one.rank
          if (isGone && !one.checks.some(({ check }) => check === name)) verdictsNow.delete(name)
        }
      }
      for (const check of verdicts) {
        const until = one.at + one.validMs[check.rank]
        verdictsNow.set(check.check, { level: check.level ?? '', until, rank: check.rank })
      }
    }
    const current = [...verdictsNow.values()].filter((verdict) => verdict.until > at)
    for (const [rank, time] of times.entries()) {
      const counting = current.filter((verdict) => verdict.rank <= rank)
      if (counting.some((verdict) => verdict.level === 'failed')) time.downMs += second
      else if (counting.length > 0) time.upMs += second
    }
  }
  return times
}

const verdicts = [['ok'], ['ok'], ['warning'], ['failed'], [undefined]] as const

/** Runs at random times with random verdicts of four checks. */
function randomRuns(seed: number): readonly ObservedRun[] {
  const chance = new Chance(seed)
  const names = [
    ['connect', 0],
    ['query', 1],
    ['disk', 1],
    ['backup', 2],
  ] as const
  const runs: ObservedRun[] = []
  for (let at = noon; at < noon + 12 * minute; at += (1 + chance.between(0, 150)) * second) {
    const rank = chance.of([0, 1, 2] as const)
    const checks = names
      .filter(([, own]) => own <= rank && chance.between(0, 10) > 0)
      .map(([name, own]) => level(chance.of(verdicts)[0], name, own))
    runs.push({ at, rank, checks, validMs: [90 * second, 100 * second, 7 * minute] })
  }
  return runs
}

test('W3 random sequences of simulated verdicts are up and down as in a model that looks each second', () => {
  for (let seed = 1; seed <= 150; seed += 1) {
    const runs = randomRuns(seed)
    const to = noon + 15 * minute
    const timeline = new Timeline(noon)
    for (const one of runs) timeline.observe(one)
    timeline.advance(to)
    const times = ranks.map((rank) => timesOf(timeline, rank))
    expect({ seed, times }).toEqual({ seed, times: modelOf(runs, noon, to) })
  }
})

test('W3 packs of packs are equal to packing once, in every order', () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const chance = new Chance(seed)
    const timeline = new Timeline(noon)
    for (const one of randomRuns(seed)) {
      const figure = (check: ObservedCheck) => ({
        ...check,
        figure: { name: check.check, value: chance.between(0, 1_000) },
      })
      timeline.observe({ ...one, checks: one.checks.map(figure) })
    }
    timeline.advance(noon + 15 * minute)
    const packs = [...timeline.packs.values()]
    const once = packed(packs)
    const cut = chance.between(0, packs.length + 1)
    const twice = packed([packed(packs.slice(cut)), packed(packs.slice(0, cut))])
    expect(sorted(twice)).toEqual(sorted(once))
    expect(once.figures.size).toBeGreaterThan(0)
  }
})

const sorted = (pack: Pack) => ({
  ...pack,
  failing: [...(pack.failing ?? [])].sort(),
  figures: [...pack.figures].sort(),
})

test('W3 a period that nobody asks about in between is the same as one that is read all the time', () => {
  const [rarely, often] = [new Timeline(noon), new Timeline(noon)]
  for (const one of randomRuns(5)) {
    for (let at = noon; at < one.at; at += 7 * second) often.advance(at)
    for (const timeline of [rarely, often]) timeline.observe(one)
  }
  for (const timeline of [rarely, often]) timeline.advance(noon + hour)
  expect(often.packs).toEqual(rarely.packs)
  expect([...rarely.packs.keys()].every((slot) => slot % slotMs === 0)).toBe(true)
})

test('a figure keeps three significant digits, its sign and its order', () => {
  for (const value of [0, 1, -1, 100, 999, 12_345, 0.001234, 99.95, 1e15, 5e-11, -273.15]) {
    const rounded = valueOfCode(codeOf(value))
    expect(Math.abs(rounded - value)).toBeLessThanOrEqual(Math.abs(value) * 0.005)
    expect(codeOf(rounded)).toBe(codeOf(value))
  }
  expect(valueOfCode(codeOf(12_345))).toBe(12_300)
  expect(valueOfCode(codeOf(0.1))).toBe(0.1)
  expect(valueOfCode(codeOf(0.07))).toBe(0.07)
  expect(Math.abs(codeOf(-1e300))).toBe(maxCode)
  expect(maxCode).toBeLessThan(32_768)
  const chance = new Chance(3)
  const values = Array.from(
    { length: 500 },
    () => (chance.between(0, 2_000_001) - 1_000_000) / 10 ** chance.between(0, 6),
  ).sort((a, b) => a - b)
  const codes = values.map(codeOf)
  expect(codes).toEqual(codes.toSorted((a, b) => a - b))
})

test('W3 the stored form of runs has the words that versions before and after this one read', () => {
  const check: ObservedCheck = { check: 'connect', rank: 0, level: 'failed', figure: { name: 'connect s', value: 2 } }
  const stored = run(noon, [check])
  const layout = '{"rank":1,"stands":[120000,120000,7200000],"checks":[["connect",0,"connect s"]]}'
  expect(layoutOf(stored).text).toBe(layout)
  const bytes = encodeRuns([{ monitor: 3, run: stored, layout: 7 }], noon)
  expect(decodeRuns(bytes, noon, (number) => (number === 7 ? layout : undefined))).toEqual([
    { monitor: 3, run: stored },
  ])
  // What cannot be read is as if it had not been stored.
  expect(decodeRuns(bytes, noon, () => layout.replace('stands', 'lasts'))).toEqual([])
})

import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type DrillPart, type DrillStore, drillPart } from '../../../src/core/service/drill/drill.ts'
import type { DrillRecord } from '../../../src/core/watch/drill/index.ts'
import { load } from '../../config/given.ts'
import { storeOfTest } from '../../support/store/embedded.ts'

const [minute, day] = [60_000, 86_400_000]
const start = Date.UTC(2026, 10, 24, 12)
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'], now: start })
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now() - start)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const yaml = `notify:
  - {name: chat, webhook: {url: "http://127.0.0.1:1/"}}
  - {name: other, webhook: {url: "http://127.0.0.1:1/"}}
drill: {every: 7d, through: [chat]}
`
const past = (beganAt: number, through: readonly string[]): DrillRecord => ({
  id: `d${beganAt}`,
  by: 'ann',
  through,
  beganAt,
  endedAt: beganAt + minute,
  hops: [],
  tokens: {},
  opened: {},
})

/** The drills of a server on a simulated clock, with a real store that has these drills. */
async function served(...before: readonly DrillRecord[]) {
  const own = await storeOfTest()
  for (const one of before) await own.data.drills.begin(one, minute)
  const logs: string[] = []
  const store = async (): Promise<DrillStore> => own.data.drills
  const part: DrillPart = drillPart({
    config: await load(yaml),
    version: '1',
    store,
    log: ({ msg }) => void logs.push(msg),
  })
  part.answers?.()
  return {
    part,
    logs,
    pass: async (ms: number) => {
      for (let left = ms; left > 0; left -= minute) {
        await vi.advanceTimersByTimeAsync(Math.min(left, minute))
        // The store answers in turns of the event loop.
        for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      }
    },
    overdue: async () =>
      (await part.metrics?.(0))?.find(({ name }) => name === 'svc_drill_overdue')?.samples.map(({ value }) => value),
    [Symbol.asyncDispose]: async () => {
      await part.close?.()
      await own[Symbol.asyncDispose]()
    },
  }
}

describe('M14 drill: every 7d, on a simulated clock', () => {
  test('svc serve drills 5 min after its start if there was none', async () => {
    await using served1 = await served()
    await served1.pass(4 * minute)
    expect(await served1.part.show(undefined)).toBeUndefined()
    await served1.pass(2 * minute)
    expect(await served1.part.show(undefined)).toMatchObject({ by: 'schedule', through: ['chat'] })
  })

  test('a drill that somebody asked for counts, if it went through all receivers of the schedule', async () => {
    await using counts = await served(past(start - 6 * day, ['chat', 'other']))
    await counts.pass(10 * minute)
    expect(await counts.part.show(undefined)).toMatchObject({ by: 'ann' })
    await using partly = await served(past(start - 6 * day, ['other']))
    await partly.pass(10 * minute)
    expect(await partly.part.show(undefined)).toMatchObject({ by: 'schedule' })
  })

  test('one that is overdue by two days is a warning and a metric, until it ends', async () => {
    await using late = await served(past(start - 10 * day, ['chat']))
    await late.pass(minute)
    expect(late.logs.join('\n')).toContain(
      'the drill of svc.yaml is overdue by more than 2 days: the last one began on 2026-11-14',
    )
    expect(await late.overdue()).toEqual([1])
    await using inTime = await served(past(start - 8 * day, ['chat']))
    await inTime.pass(minute)
    expect(inTime.logs.join('\n')).not.toContain('overdue')
    expect(await inTime.overdue()).toEqual([0])
  })

  test('no drill begins within a minute of another one, of this process or of another', async () => {
    await using one = await served(past(start - 30_000, ['other']))
    await expect(one.part.begin(['chat'], 'ann')).rejects.toThrow('began less than a minute ago')
    await one.pass(minute)
    expect(await one.part.begin(['chat'], 'ann')).toMatchObject({ by: 'ann', result: 'waiting' })
    await expect(one.part.begin(['other'], 'bob')).rejects.toThrow('began less than a minute ago')
  })
})

import { expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import type { Call, DayStatus, Runtime } from '../../src/core/protocol/service/service.ts'
import { barsOfDays } from '../../src/core/server/pages/page-days.ts'
import { DayHistory } from '../../src/core/service/results/days.ts'
import * as library from '../../src/core/watch/periods/index.ts'
import { memorySource, periodsOf } from '../../src/core/watch/periods/index.ts'
import { runtimeFacts } from '../support/page/facts.ts'
import { recentRun, runOfResponse } from './recent.ts'
import { ask, healthy, openSite, withSite } from './site.ts'

const day = 86_400_000
const now = Date.UTC(2026, 2, 1, 12)

test('W25 the bars of 90 days are one line for each stretch of equal days, and their text has the numbers', () => {
  const days: readonly DayStatus[] = [
    ...Array.from({ length: 80 }, () => 'ok' as const),
    'failed',
    ...Array.from({ length: 8 }, () => 'ok' as const),
    'unobserved',
  ]
  const { markup } = barsOfDays(days)
  expect(markup).toContain('<path class="ok" d="M1 16h798M811 16h78"/>')
  expect(markup).toContain('<path class="fail" d="M801 16h8"/>')
  expect(markup).toContain('<path class="none" d="M891 16h8"/>')
  expect(markup).toContain('aria-label="90 days: 1 with failures, 88 healthy, 1 not observed"')
  expect(markup.length).toBeLessThan(400)
  expect(barsOfDays(['failed']).markup).toContain('aria-label="1 day: 1 with failures"')
})

test('W25 the days of monitors have the worst of each day, the last one is today, and they are read again after half a minute', async () => {
  const source = memorySource()
  const run = (at: number, level: 'ok' | 'failed' | 'warning') =>
    source.recorder.add(
      { key: 'Sql/tcp/orders', type: 'Sql', name: 'tcp orders' },
      { at, rank: 1, validMs: [600_000, 600_000, 600_000], checks: [{ check: 'connect', rank: 0, level }] },
    )
  run(now - 3_600_000, 'ok')
  run(now - 3_500_000, 'failed')
  run(now - 3_400_000, 'ok')
  let reads = 0
  const counting = {
    ...library,
    periodsOf: (...args: Parameters<typeof periodsOf>) => {
      reads += 1
      return periodsOf(...args)
    },
  }
  const history = new DayHistory()
  const ids = [{ type: 'Sql', monitor: 'tcp orders' }, { monitor: 'host' }] as const
  const days = await history.of(counting, source, ids, now)
  expect([...days.keys()]).toEqual(['Sql/tcp orders'])
  const { days: bars, availabilityPercent } = days.get('Sql/tcp orders') ?? { days: [] }
  expect(bars).toHaveLength(90)
  expect(bars.slice(-2)).toEqual(['unobserved', 'failed'])
  expect(availabilityPercent).toBeLessThan(100)
  await history.of(counting, source, ids, now + 29_000)
  expect(reads).toBe(1)
  await history.of(counting, source, ids, now + 31_000)
  expect(reads).toBe(2)
  // Tomorrow, today is yesterday.
  const next = await new DayHistory().of(library, source, ids, now + day)
  expect(next.get('Sql/tcp orders')?.days.slice(-3)).toEqual(['unobserved', 'failed', 'unobserved'])
})

test('W25 a history that hangs or fails costs the page its bars and nothing else, and strangers cause no read of it', async () => {
  const facts = runtimeFacts({ types: ['Sql'], ownTypes: [] })
  const document = runOfResponse('Sql', 'Basic', healthy({ correlationId: 'a' } as Call))
  const runtime = { facts, recent: async () => [recentRun(document, 3)] }
  let reads = 0
  const answers: readonly NonNullable<Runtime['days']>[] = [
    () => new Promise(() => {}),
    () => Promise.reject(new Fault('Unavailable', 'the store is away')),
  ]
  for (const answer of answers) {
    const days: Runtime['days'] = (ids) => {
      reads += 1
      return answer(ids)
    }
    await withSite({ runtime: { ...runtime, days } }, async ({ port }) => {
      const { status, text } = await ask(port, '/')
      expect([status, text.includes('>postgres orders</a>'), text.includes('<svg class="days"')]).toEqual([
        200,
        true,
        false,
      ])
    })
    const brief = { ...runtime, days, viewOf: async () => () => 'brief' as const }
    const { port } = await openSite({ runtime: brief })
    expect((await ask(port, '/')).status).toBe(200)
  }
  expect(reads).toBe(answers.length)
})

test('W25 a store that hangs costs the page what is silenced and nothing else', async () => {
  const confirmed: Runtime['confirmed'] = () => ({ checks: [], isIsolated: undefined })
  const { port } = await openSite({ service: { getSilences: () => new Promise(() => {}) }, runtime: { confirmed } })
  for (const path of ['/', '/board']) expect((await ask(port, path)).status).toBe(200)
})

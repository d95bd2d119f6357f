import { expect, test } from 'vitest'
import { drillMetrics } from '../../../src/core/service/drill/drill-metrics.ts'
import type { DrillRecord, Hop } from '../../../src/core/watch/drill/index.ts'

const record = (hops: readonly Hop[]): DrillRecord => ({
  id: 'd',
  by: 'ann',
  through: ['am'],
  beganAt: 0,
  endedAt: 90_000,
  hops,
  tokens: {},
  opened: {},
})
const of = (hops: readonly Hop[], overdueSince?: number) =>
  Object.fromEntries(
    drillMetrics({ last: record(hops), overdueSince, hasSchedule: true }).map(({ name, samples }) => [
      name,
      samples.map(({ labels, value }) => [...Object.values(labels ?? {}), value].join(' ')),
    ]),
  )

test('M14 /metrics counts instances together and names none of them', () => {
  const hop = { receiver: 'am', hop: 'listed', message: 'x' } as const
  const families = of([
    { hop: 'confirmation', result: 'proven', ms: 20_000, message: 'x' },
    { ...hop, at: 'https://am1.internal:9093', result: 'proven', ms: 1_000 },
    { ...hop, at: 'https://am2.internal:9093', result: 'failed', ms: 3_000 },
  ])
  expect(families).toEqual({
    svc_drill_overdue: ['0'],
    svc_drill_last_timestamp_seconds: ['90'],
    svc_drill_failed: ['1'],
    svc_drill_hop_failed: [' confirmation 0', 'am listed 1'],
    svc_drill_hop_proven: [' confirmation 1', 'am listed 0'],
    svc_drill_hop_seconds: [' confirmation 20', 'am listed 3'],
  })
})

test('M14 a drill that is overdue shows, and before the first drill nothing else does', () => {
  const families = drillMetrics({ last: undefined, overdueSince: 1, hasSchedule: true })
  expect(families.map(({ name, samples }) => [name, samples[0]?.value])).toEqual([['svc_drill_overdue', 1]])
  expect(drillMetrics({ last: undefined, overdueSince: undefined, hasSchedule: false })).toEqual([])
})

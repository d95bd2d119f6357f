import { expect, test } from 'vitest'
import { confirmedSeries } from '../../../src/core/checks/reports/confirmed.ts'
import { maxItems } from '../../../src/core/checks/reports/prometheus.ts'

const check = {
  type: 'Sql',
  slug: 'connect',
  level: 'ok',
  since: 1,
  isObserved: true,
  isSettled: true,
  blips: 0,
} as const
const silences = [{ source: 'hand' }]

test('M11 a silence takes the place of no other series: what is fine and silenced may be omitted, and a silenced failure may not', async () => {
  const fine = Array.from({ length: 5 }, (_, at) => ({ ...check, monitor: `postgres ${at}`, silences }))
  const incident = { id: 'i1', level: 'failed', isUnobserved: false } as const
  const failed = { ...check, monitor: 'postgres orders', level: 'failed', silences, incident } as const
  const { text, urgent } = await confirmedSeries({ checks: [...fine, failed], isIsolated: undefined })
  const onlyFailed = await confirmedSeries({ checks: [failed], isIsolated: undefined })
  expect(urgent).toBe(onlyFailed.urgent)
  const { text: written } = await text('text', 0)
  expect(written).toContain('svc_check_silenced{type="Sql",monitor="postgres orders",check="connect",source="hand"} 1')
  expect(written).not.toContain('postgres 1')
})

test('M11 the items of a silenced check are limited as those of any other', async () => {
  const checks = Array.from({ length: maxItems + 5 }, (_, at) => ({
    ...check,
    monitor: 'disks',
    item: `/${at}`,
    silences,
  }))
  const { text } = await confirmedSeries({ checks, isIsolated: undefined })
  const lines = (await text('text', Number.POSITIVE_INFINITY)).text.split('\n')
  expect(lines.filter((line) => line.startsWith('svc_check_silenced{'))).toHaveLength(maxItems)
})

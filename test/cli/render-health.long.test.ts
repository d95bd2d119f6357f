import { expect, test } from 'vitest'
import { renderHealth } from '../../src/cli/health/screen.ts'
import type { Entry } from '../../src/core/checks/reports/index.ts'
import { healthy } from '../checks/reports/samples.ts'
// Those tests with all runs of each property.
import './render-health.test.ts'

test('more results than a call takes arguments do not break the health screen', () => {
  const Results = Array.from({ length: 130_000 }, (_, n) => ({
    MonitoringName: `c${n}`,
    Status: 'Success' as const,
    StatusMessage: 'ok',
  }))
  const entry: Entry = {
    ...healthy,
    Response: { Status: 'Success', MonitorSummaries: [{ MonitorName: 'm', Status: 'Success', Results }] },
  }
  const screen = { width: 80, colour: false, unicode: true, atServer: true }
  expect(renderHealth([entry], { ...screen, detail: 'verbose' }).split('\n').length).toBeGreaterThan(130_000)
  expect(renderHealth([entry], screen)).toContain('130000 checks')
})

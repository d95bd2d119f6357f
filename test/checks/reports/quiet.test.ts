import { expect, test } from 'vitest'
import type { MonitorReport, Result } from '../../../src/core/checks/engine/index.ts'
import { healthCheckResponse, read, selectRun, withQuiet } from '../../../src/core/checks/reports/index.ts'
import type { RunQuiet } from '../../../src/core/protocol/index.ts'
import { document as documentOf, report as reportOf, run } from './runs.ts'

const report = (name: string, ...results: readonly Result[]) => reportOf(name, results)
const document = (view: 'full' | 'brief', ...monitors: readonly MonitorReport[]) =>
  documentOf(run(...monitors), { view })

const refused: Result = { check: 'connect', status: 'failed', fault: 'refused', message: 'refused' }
const starved: Result = {
  check: 'connect',
  status: 'failed',
  fault: 'internal',
  message: 'no time',
  notChecked: 'starved',
}
const warning: Result = { check: 'connections', status: 'warning', message: '85 %' }
const fine: Result = { check: 'connect', status: 'ok', message: '1 ms' }
const quiet: RunQuiet = { source: 'hand', until: new Date('2026-11-29T04:00Z'), by: 'alice', reason: 'patch night' }
const always = () => quiet
const text = 'quiet until 2026-11-29 04:00 UTC, alice: patch night'

test('M11 a quiet failure stays a failure, and says until when and why it is quiet', () => {
  const made = withQuiet(document('full', report('tcp orders', refused)), always, { honors: false, names: true })
  expect(made.status).toBe('failed')
  const { Status, StatusMessage, MonitorSummaries } = healthCheckResponse(made)
  expect(Status).toBe('Failure')
  expect(StatusMessage).toBe(`Sql is unhealthy: 1 of 1 monitor failed: tcp orders connect: refused (${text})`)
  expect(MonitorSummaries?.[0]?.Results?.[0]?.StatusMessage).toBe(`refused (${text})`)
})

test('M11 with Quiet=Honor, quiet failures and warnings do not count, and the answer counts them', () => {
  const made = withQuiet(document('full', report('tcp orders', refused, warning), report('tcp a', fine)), always, {
    honors: true,
    names: true,
  })
  expect([made.status, made.quietResults]).toEqual(['ok', 2])
  expect(made.message).toBe('Sql is healthy: 2 monitors passed; 2 quiet results not counted')
  expect(made.monitors[0]?.results[0]).toMatchObject({ status: 'ok', message: `not counted (${text}): refused`, quiet })
  const entry = { Target: 't', ServerType: 'Sql', ExecutionMode: 'Basic', ExitCode: 0, Run: made }
  expect(read(entry).headline).toBe('Sql is healthy: 2 monitors passed; 2 quiet results not counted')
})

test('M11 with Quiet=Honor, what was not checked and what is not quiet count as before', () => {
  const only = (monitor: number) => (monitor === 0 ? quiet : undefined)
  const unchecked = withQuiet(document('full', report('tcp a', starved)), always, { honors: true, names: true })
  expect([unchecked.status, unchecked.quietResults]).toEqual(['failed', undefined])
  const other = withQuiet(document('full', report('tcp a', refused), report('tcp b', refused)), only, {
    honors: true,
    names: true,
  })
  expect([other.status, other.quietResults]).toEqual(['failed', 1])
})

test('M11 who silenced it, and why, only readers of the details of all types learn', () => {
  const [full] = withQuiet(document('full', report('tcp a', refused)), always, { honors: false, names: false }).monitors
  expect(full?.results[0]?.quiet).toEqual({ source: 'hand', until: quiet.until })
  const brief = withQuiet(document('brief', report('tcp a', refused)), always, { honors: true, names: false })
  expect(brief.monitors[0]?.results).toEqual([{ check: 'connect', slug: 'connect', status: 'ok' }])
})

test('M11 a document in which nothing is quiet stays the same', () => {
  const made = document('full', report('tcp a', fine), report('tcp b', refused))
  expect(withQuiet(made, () => undefined, { honors: true, names: true })).toBe(made)
})

test('M11 a selection counts only its own quiet results, and says so', () => {
  const run = withQuiet(document('full', report('tcp a', refused), report('tcp b', refused)), always, {
    honors: true,
    names: true,
  })
  const selected = selectRun(run, { only: ['tcp a'], skip: [] })
  expect([selected.status, selected.quietResults]).toEqual(['ok', 1])
  expect(selected.message).toBe('healthy: 1 of 2 monitors selected, all passed; 1 quiet result not counted')
  const checks = withQuiet(document('full', report('tcp a', refused, warning, fine)), always, {
    honors: true,
    names: true,
  })
  expect(selectRun(checks, { only: ['tcp a/connections'], skip: [] }).quietResults).toBe(1)
  const none = withQuiet(document('full', report('tcp a', refused), report('tcp b', fine)), always, {
    honors: true,
    names: true,
  })
  expect('quietResults' in selectRun(none, { only: ['tcp b'], skip: [] })).toBe(false)
})

import { expect, test } from 'vitest'
import type { MonitorReport, Result, Run } from '../../../src/core/checks/engine/index.ts'
import {
  healthCheckResponse,
  read,
  runDocument,
  selectRun,
  withSilences,
} from '../../../src/core/checks/reports/index.ts'
import type { RunSilence } from '../../../src/core/protocol/index.ts'

const report = (name: string, ...results: readonly Result[]): MonitorReport => ({
  ...{ name, kind: 'tcp', depth: 'Basic', runsOn: 'network', host: false, checks: [], durationMs: 1, attempts: 1 },
  results,
})
const run = (...monitors: readonly MonitorReport[]): Run => ({
  ...{ id: 'r', mode: 'Basic', startedAt: new Date(1_000), endedAt: new Date(2_000), durationMs: 1, monitors },
  serverState: { ServerName: 'db1', TotalRamInMb: 64, AvailableRamInMb: 32, UsedCpuPercent: 5 },
})
const document = (view: 'full' | 'brief', ...monitors: readonly MonitorReport[]) =>
  runDocument(run(...monitors), { type: 'Sql', correlationId: 'c', flags: {}, view })

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
const silence: RunSilence = { source: 'hand', until: new Date('2026-11-29T04:00Z'), by: 'alice', reason: 'patch night' }
const always = () => silence
const text = 'silenced until 2026-11-29 04:00 UTC, alice: patch night'

test('M11 a silenced failure stays a failure, and says until when and why it is silenced', () => {
  const made = withSilences(document('full', report('tcp orders', refused)), always, { honors: false, names: true })
  expect(made.status).toBe('failed')
  const { Status, StatusMessage, MonitorSummaries } = healthCheckResponse(made)
  expect(Status).toBe('Failure')
  expect(StatusMessage).toBe(`Sql is unhealthy: 1 of 1 monitor failed: tcp orders connect: refused (${text})`)
  expect(MonitorSummaries?.[0]?.Results?.[0]?.StatusMessage).toBe(`refused (${text})`)
})

test('M11 with Silence=Honor, silenced failures and warnings do not count, and the answer counts them', () => {
  const made = withSilences(document('full', report('tcp orders', refused, warning), report('tcp a', fine)), always, {
    honors: true,
    names: true,
  })
  expect([made.status, made.silencedResults]).toEqual(['ok', 2])
  expect(made.message).toBe('Sql is healthy: 2 monitors passed; 2 silenced results not counted')
  expect(made.monitors[0]?.results[0]).toMatchObject({
    status: 'ok',
    message: `not counted (${text}): refused`,
    silence,
  })
  const entry = { Target: 't', ServerType: 'Sql', ExecutionMode: 'Basic', ExitCode: 0, Run: made }
  expect(read(entry).headline).toBe('Sql is healthy: 2 monitors passed; 2 silenced results not counted')
})

test('M11 with Silence=Honor, what was not checked and what is not silenced count as before', () => {
  const only = (monitor: number) => (monitor === 0 ? silence : undefined)
  const unchecked = withSilences(document('full', report('tcp a', starved)), always, { honors: true, names: true })
  expect([unchecked.status, unchecked.silencedResults]).toEqual(['failed', undefined])
  const other = withSilences(document('full', report('tcp a', refused), report('tcp b', refused)), only, {
    honors: true,
    names: true,
  })
  expect([other.status, other.silencedResults]).toEqual(['failed', 1])
})

test('M11 who silenced it, and why, only readers of the details of all types learn', () => {
  const [full] = withSilences(document('full', report('tcp a', refused)), always, {
    honors: false,
    names: false,
  }).monitors
  expect(full?.results[0]?.silence).toEqual({ source: 'hand', until: silence.until })
  const brief = withSilences(document('brief', report('tcp a', refused)), always, { honors: true, names: false })
  expect(brief.monitors[0]?.results).toEqual([{ check: 'connect', slug: 'connect', status: 'ok' }])
})

test('M11 a document in which nothing is silenced stays the same', () => {
  const made = document('full', report('tcp a', fine), report('tcp b', refused))
  expect(withSilences(made, () => undefined, { honors: true, names: true })).toBe(made)
})

test('M11 a selection counts only its own silenced results, and says so', () => {
  const run = withSilences(document('full', report('tcp a', refused), report('tcp b', refused)), always, {
    honors: true,
    names: true,
  })
  const selected = selectRun(run, { only: ['tcp a'], skip: [] })
  expect([selected.status, selected.silencedResults]).toEqual(['ok', 1])
  expect(selected.message).toBe('healthy: 1 of 2 monitors selected, all passed; 1 silenced result not counted')
  const checks = withSilences(document('full', report('tcp a', refused, warning, fine)), always, {
    honors: true,
    names: true,
  })
  expect(selectRun(checks, { only: ['tcp a/connections'], skip: [] }).silencedResults).toBe(1)
  const none = withSilences(document('full', report('tcp a', refused), report('tcp b', fine)), always, {
    honors: true,
    names: true,
  })
  expect('silencedResults' in selectRun(none, { only: ['tcp b'], skip: [] })).toBe(false)
})

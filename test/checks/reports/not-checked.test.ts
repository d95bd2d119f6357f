import { describe, expect, test } from 'vitest'
import { notChecked, type Result, type Run } from '../../../src/core/checks/engine/index.ts'
import {
  healthCheckResponse,
  loadPrometheus,
  type RunView,
  read,
  records,
  selectRun,
} from '../../../src/core/checks/reports/index.ts'
import { decodeRun, encodeRun } from '../../../src/core/protocol/wire/index.ts'
import { render } from './render.ts'
import { document, report, run } from './runs.ts'
import { partlyChecked, unchecked } from './samples.ts'

const monitor = (name: string, ...results: readonly Result[]) => report(name, results, { kind: 'made' })
const documentOf = (of: Run, view: RunView = 'full', flags = {}) => document(of, { view, flags })

const passes: Result = { check: 'connect', status: 'ok', message: '1 ms' }
const fails: Result = { check: 'connect', status: 'failed', fault: 'refused', message: 'refused' }
const starved = notChecked('connect', 'starved', 'waited 8 s for http slow')

describe('the headline', () => {
  test('counts what was not checked apart from what failed, and names what failed first', () => {
    const made = run(monitor('a', starved), monitor('b', fails), monitor('c', passes))
    expect(documentOf(made).message).toBe(
      'Sql is unhealthy: 1 of 3 monitors failed, 1 not checked: b connect: refused; a connect: not checked: waited 8 s for http slow',
    )
    expect(documentOf(made, 'brief').message).toBe('Sql is unhealthy: 1 of 3 monitors failed, 1 not checked')
  })

  test('does not call anything unhealthy when nothing really failed', () => {
    const made = run(monitor('a', starved, passes), monitor('b', passes))
    expect(documentOf(made).message).toBe(
      'Sql is not fully checked: 1 of 2 monitors not checked: a connect: not checked: waited 8 s for http slow',
    )
  })

  test('of a selection counts in the same way', () => {
    const made = documentOf(run(monitor('a', starved), monitor('b', fails), monitor('c', passes)))
    expect(selectRun(made, { only: ['a', 'b'], skip: [] }).message).toMatch(
      /^unhealthy: 1 of 2 selected monitors failed, 1 not checked: /,
    )
    expect(selectRun(made, { only: ['a'], skip: [] }).message).toMatch(
      /^not fully checked: 1 of 1 selected monitors not checked: a connect: not checked: waited/,
    )
  })
})

describe('H10 what was not checked is shown apart from what failed', () => {
  test('is a failure: a run without monitors, and a monitor without results', () => {
    expect(documentOf(run())).toMatchObject({ status: 'failed', message: 'Sql is unhealthy' })
    expect(documentOf(run(monitor('a'), monitor('b', passes)))).toMatchObject({
      status: 'failed',
      monitors: [{ status: 'failed' }, { status: 'ok' }],
    })
  })
})

describe('what was not checked', () => {
  test("is Failure in the interface's document, with its reason as the message", () => {
    const response = healthCheckResponse(documentOf(run(monitor('a', starved), monitor('b', passes))))
    expect([response.Status, response.FailedMonitorCount]).toEqual(['Failure', 1])
    expect(response.MonitorSummaries?.[0]?.Results?.[0]).toMatchObject({
      Status: 'Failure',
      StatusMessage: 'not checked: waited 8 s for http slow',
    })
  })

  test('stays a failure when failures of deployments are suppressed', () => {
    const during = monitor('a', { ...starved, deployment: true })
    expect(documentOf(run(during), 'full', { SuppressDeploymentErrors: true }).status).toBe('failed')
  })

  test('shows its reason, but no message, to anonymous callers', () => {
    const brief = documentOf(run(monitor('secret', starved)), 'brief')
    expect(JSON.stringify(brief)).not.toMatch(/secret|waited/)
    expect(healthCheckResponse(brief).MonitorSummaries?.[0]?.Results?.[0]?.StatusMessage).toBe('not checked: starved')
  })

  test('travels between two svc, and is never ok there', () => {
    const sent = documentOf(run(monitor('a', starved), monitor('b', passes)))
    const received = decodeRun(encodeRun(sent) ?? '')
    expect(received.monitors[0]?.results[0]).toMatchObject({ status: 'failed', notChecked: 'starved' })
    const forged = { ...sent, status: 'ok', monitors: sent.monitors.map((one) => forgedAsOk(one)) }
    const read = decodeRun(JSON.stringify(forged))
    expect([read.status, read.monitors[0]?.status, read.monitors[0]?.results[0]?.status].join(' ')).toBe(
      'failed failed failed',
    )
  })

  const forgedAsOk = (one: object) => ({
    ...one,
    status: 'ok',
    results: [{ check: 'connect', status: 'ok', message: 'fine', notChecked: 'starved' }],
  })

  test('is a level of its own, for its monitor and its type, unless something really failed there', () => {
    const reading = read(unchecked)
    expect([reading.level, reading.failed, reading.unchecked, reading.warnings]).toEqual(['not checked', 0, 2, 1])
    expect(reading.monitors.map(({ level }) => level)).toEqual(['not checked', 'not checked', 'warn'])
    const partly = read(partlyChecked)
    expect([partly.level, partly.failed, partly.unchecked]).toEqual(['fail', 1, 2])
    expect(partly.headline).toBe('Sql is unhealthy: 1 of 4 monitors failed, 2 not checked')
    expect(partly.causes[0]).toMatch(/^tcp db connect: /)
    const both = documentOf(run(monitor('a', starved, fails)))
    const entry = { ...unchecked, Run: both, Response: healthCheckResponse(both) }
    expect(read(entry).monitors.map(({ level }) => level)).toEqual(['fail'])
  })

  test('is a record with Level `not checked` and its reason', () => {
    expect(records([unchecked]).map(({ Status, Level, NotChecked }) => [Status, Level, NotChecked])).toEqual([
      ['Failure', 'not checked', 'starved'],
      ['Failure', 'not checked', 'starved'],
      ['Success', 'ok', undefined],
      ['Success', 'warn', 'permission'],
    ])
  })

  test('is skipped in JUnit, not failed, and an error where nothing else failed', async () => {
    const partly = await render('junit', [partlyChecked])
    expect(partly).toMatch(/^<testsuites name="svc health" tests="5" failures="1" errors="0" /m)
    expect(partly.match(/<skipped[ >]/g)).toHaveLength(3)
    const alone = await render('junit', [unchecked])
    expect(alone).toMatch(/^<testsuites name="svc health" tests="4" failures="0" errors="2" /m)
    expect(alone).not.toContain('<failure')
  })

  test('has neither a success nor a fault in metrics, but its reason', async () => {
    const { healthFamilies } = await loadPrometheus()
    const families = healthFamilies([read(unchecked)], 1_000)
    const samplesOf = (name: string) => families.find((family) => family.name === name)?.samples ?? []
    expect(samplesOf('svc_check_success').map(({ labels }) => labels?.['check'])).toEqual(['connect'])
    expect(samplesOf('svc_check_fault')).toEqual([])
    expect(samplesOf('svc_check_not_checked').map(({ labels }) => labels?.['reason'])).toEqual([
      'starved',
      'starved',
      'permission',
    ])
    expect(samplesOf('svc_check_warning')).toContainEqual(
      expect.objectContaining({ labels: expect.objectContaining({ check: 'replication_lag' }), value: 1 }),
    )
    expect(samplesOf('svc_type_success').map(({ value }) => value)).toEqual([0])
    expect(
      Object.fromEntries(samplesOf('svc_type_monitors').map(({ labels, value }) => [labels?.['status'], value])),
    ).toEqual({ ok: 0, warning: 1, not_checked: 2, failed: 0 })
  })

  test('is UNKNOWN in Nagios, with its own count', async () => {
    const text = await render('nagios', [unchecked])
    expect(text).toMatch(/^SVC UNKNOWN - Sql: http orders not run: not checked: waited 8 s/)
    expect(text).toContain('failed=0;;0;0;3 not_checked=2;;;0;3')
    expect(await render('nagios', [partlyChecked])).toMatch(/^SVC CRITICAL - Sql: tcp db connect: /)
  })

  test('is a state of its own in PRTG, and no failed monitor', async () => {
    const { prtg } = JSON.parse(await render('prtg', [unchecked])) as {
      readonly prtg: { readonly result: readonly { readonly channel: string; readonly value: number }[] }
    }
    const figureOf = (name: string) => prtg.result.find(({ channel }) => channel === name)?.value
    expect([figureOf('Failed monitors'), figureOf('Not checked'), figureOf('Status')]).toEqual([0, 2, 3])
  })

  test('is a fail with its reason in health+json', async () => {
    const { checks } = JSON.parse(await render('health+json', [unchecked])) as {
      readonly checks: Readonly<Record<string, readonly object[]>>
    }
    expect(checks['http orders:not run']?.[0]).toMatchObject({ status: 'fail', notChecked: 'starved' })
    expect(checks['postgres orders:replication lag']?.[0]).toMatchObject({ status: 'warn', notChecked: 'permission' })
  })

  test('is a warning annotation, and the answer still has an error', async () => {
    const lines = (await render('github', [unchecked])).split('\n').map((line) => line.split(' ')[0])
    expect(lines.filter((command) => command === '::error')).toHaveLength(1)
    expect(lines.filter((command) => command === '::warning')).toHaveLength(2)
  })
})

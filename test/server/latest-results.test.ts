import { describe, expect, onTestFinished, test } from 'vitest'
import {
  type IntervalOf,
  loadLatest,
  type MonitorReport,
  type Result,
  type Run,
} from '../../src/core/checks/engine/index.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import { RecentRuns } from '../../src/core/service/health/recent.ts'
import { engineFixture } from '../support/engine/engine-fixture.ts'
import { startAccounts } from './accounts.ts'
import { ask } from './site.ts'

const { LatestReports } = await loadLatest()
type IsElsewhere = Parameters<InstanceType<typeof LatestReports>['followSchedule']>[1]

const report = (name: string, results: readonly Result[], depth: ExecutionMode = 'Basic'): MonitorReport => ({
  name,
  kind: 'tcp',
  runsOn: 'network',
  depth,
  host: false,
  checks: [
    { name: 'connect', depth: 'Basic', doc: '' },
    { name: 'lag', depth: 'Advanced', doc: '' },
  ],
  results,
  durationMs: 3,
  attempts: 1,
})
const connected: Result = { check: 'connect', status: 'ok', message: 'connected' }
const refused: Result = { check: 'connect', status: 'failed', fault: 'refused', message: 'refused' }
const lagging: Result = { check: 'lag', status: 'failed', fault: 'threshold', message: '9 s behind' }

function fixture(...names: readonly string[]) {
  const clock = { now: 5_000_000 }
  const context = engineFixture({ now: () => clock.now, date: () => new Date(1_700_000_000_000 + clock.now) })
  const latest = new LatestReports(context)
  const recent = new RecentRuns(latest, context)
  const plan = names.map((name) => ({ name, depth: 'Basic' as const }))
  latest.planned('Sql', 'Standard', plan)
  const scheduled = (one: MonitorReport, mode: ExecutionMode = 'Standard'): void =>
    latest.add('Sql', mode, one, { beganAt: clock.now, endedAt: clock.now, cause: 'schedule' })
  const wholeRun = (monitors: readonly MonitorReport[]): Run => {
    const run: Run = {
      id: 'run-7',
      mode: 'Standard',
      startedAt: context.date(),
      endedAt: context.date(),
      durationMs: 12,
      monitors,
      serverState: { ServerName: 'test', TotalRamInMb: 1, AvailableRamInMb: 1 },
    }
    for (const one of monitors)
      latest.add('Sql', 'Standard', one, { beganAt: clock.now, endedAt: clock.now, cause: 'caller' })
    recent.ended('Sql', run)
    return run
  }
  const view = async (which?: 'own') =>
    (await recent.of(['Sql'], () => 'full', which)).map(({ mode, run, complete, expired, ageSeconds }) => ({
      ...{ mode, complete, expired, ageSeconds, id: run.correlationId, status: run.status },
      monitors: run.monitors.map(({ name, results }) => `${name}: ${results.map(({ message }) => message).join(', ')}`),
    }))
  return { clock, latest, recent, scheduled, wholeRun, view }
}

describe('the latest results of a type at one depth', () => {
  test('are those of a run as long as no later report replaces one of them, with the id of that run', async () => {
    const { clock, wholeRun, scheduled, view } = fixture('tcp a', 'tcp b')
    wholeRun([report('tcp a', [connected]), report('tcp b', [connected])])
    const both = { mode: 'Standard', complete: true, expired: false, ageSeconds: 0 }
    const monitors = ['tcp a: connected', 'tcp b: connected']
    expect(await view()).toEqual([{ ...both, id: 'run-7', status: 'ok', monitors }])
    clock.now += 1_000
    scheduled(report('tcp b', [refused]))
    const later = ['tcp a: connected', 'tcp b: refused']
    expect(await view()).toEqual([{ ...both, id: '', status: 'failed', monitors: later }])
  })

  test('come from reports of the schedule without any caller, and are complete when the last monitor has one', async () => {
    const { scheduled, view } = fixture('tcp a', 'tcp b')
    expect(await view()).toEqual([])
    scheduled(report('tcp b', [connected]))
    expect(await view()).toMatchObject([{ complete: false, monitors: ['tcp b: connected'] }])
    scheduled(report('tcp a', [connected]))
    expect(await view()).toMatchObject([{ complete: true, monitors: ['tcp a: connected', 'tcp b: connected'] }])
  })

  test('include what a deeper report says of the checks of this depth, where a monitor has no report of its own', async () => {
    const { scheduled, view } = fixture('tcp a', 'tcp b')
    scheduled(report('tcp a', [connected]))
    scheduled(report('tcp b', [connected, lagging]), 'Advanced')
    expect(await view()).toMatchObject([
      { mode: 'Standard', complete: true, status: 'ok', monitors: ['tcp a: connected', 'tcp b: connected'] },
      { mode: 'Advanced', status: 'failed', monitors: ['tcp b: connected, 9 s behind'] },
    ])
  })

  test('are marked as expired, with their age, when none of them counts any more', async () => {
    const { clock, latest, scheduled, view } = fixture('tcp a')
    latest.followSchedule(() => 60_000)
    scheduled(report('tcp a', [connected]))
    clock.now += 181_000
    expect(await view()).toMatchObject([{ expired: true, complete: false, ageSeconds: 181 }])
  })

  test('are the same object for the same reader while nothing has changed, so that texts made of it can be kept', async () => {
    const { recent, scheduled } = fixture('tcp a')
    scheduled(report('tcp a', [connected]))
    const runs = async (view: 'full' | 'brief') => (await recent.of(['Sql'], () => view)).map(({ run }) => run)
    const [first] = await runs('full')
    expect((await runs('full'))[0]).toBe(first)
    expect((await runs('brief'))[0]?.monitors).toEqual([
      { kind: 'tcp', scope: 'network', status: 'ok', results: [{ check: 'connect', slug: 'connect', status: 'ok' }] },
    ])
    scheduled(report('tcp a', [refused]))
    expect((await runs('full'))[0]?.status).toBe('failed')
  })
})

describe('what the schedule knows of a type, for a caller who prefers it to a run', () => {
  const texts = async ({ recent }: ReturnType<typeof fixture>, mode: ExecutionMode = 'Standard') => {
    const answer = await recent.stored('Sql', mode)
    return answer && [answer.ageMs, ...answer.run.monitors.map(({ name }) => name)]
  }

  test('H97 is as old as its oldest result', async () => {
    const all = fixture('tcp a', 'tcp b')
    all.latest.followSchedule(() => 60_000)
    all.scheduled(report('tcp a', [connected]))
    expect(await texts(all)).toBeUndefined()
    all.clock.now += 50_000
    all.scheduled(report('tcp b', [refused]))
    expect(await texts(all)).toEqual([50_000, 'tcp a', 'tcp b'])
    // The schedule does not keep up: what it found counts no longer.
    all.clock.now += 131_000
    expect(await texts(all)).toBeUndefined()
  })

  test.each<[string, IntervalOf, IsElsewhere?]>([
    ['no schedule repeats them', () => undefined],
    ['the schedule repeats one of them only', (_, name) => (name === 'tcp a' ? 60_000 : undefined)],
    ['the schedule repeats a shallower depth only', (_type, _name, mode) => (mode === 'Basic' ? 60_000 : undefined)],
    ['another node runs one of them', () => 60_000, (_, name) => name === 'tcp b'],
  ])('H97 is nothing where %s', async (_, intervalOf, isElsewhere) => {
    const all = fixture('tcp a', 'tcp b')
    all.latest.followSchedule(intervalOf, isElsewhere)
    all.wholeRun([report('tcp a', [connected]), report('tcp b', [connected])])
    expect(await texts(all)).toBeUndefined()
  })
})

test('a caller who asks for types that are not configured makes no series of them', async () => {
  const site = await startAccounts()
  onTestFinished(() => site.close())

  for (const type of ['Mongo', 'Sql']) await ask(site.port, `/healthcheck?ExecutionMode=Basic&ServerType=${type}`)
  const { text } = await ask(site.port, '/metrics')
  expect(text).toContain('svc_runs_total{type="Sql",depth="Basic",trigger="caller"} 1')
  expect(text).not.toContain('Mongo')
})

test('W4 of a monitor that another node runs, the run of a caller is shown to people, and is no result of this node', async () => {
  const { latest, scheduled, wholeRun, view } = fixture('tcp here', 'tcp there')
  let isElsewhere = false
  latest.followSchedule(
    () => 60_000,
    (_, name) => isElsewhere && name === 'tcp there',
  )
  const monitors = async (which?: 'own') => (await view(which)).flatMap((run) => run.monitors)
  scheduled(report('tcp here', [connected]))
  scheduled(report('tcp there', [connected]))
  expect(await monitors('own')).toEqual(await monitors())
  // Another node has taken the lease. What this one found before is of no use.
  isElsewhere = true
  for (const which of [undefined, 'own'] as const) expect(await monitors(which)).toEqual(['tcp here: connected'])
  wholeRun([report('tcp here', [connected]), report('tcp there', [refused])])
  for (let n = 0; n < 2; n += 1) {
    expect(await view('own')).toMatchObject([{ monitors: ['tcp here: connected'], status: 'ok', complete: true }])
    expect(await view()).toMatchObject([
      { id: 'run-7', monitors: ['tcp here: connected', 'tcp there: refused'], status: 'failed' },
    ])
  }
})

import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import type { MonitorReport, Result } from '../../src/core/checks/engine/index.ts'
import { confirmedSeries } from '../../src/core/checks/reports/confirmed.ts'
import type { HealthViews } from '../../src/core/protocol/service/service.ts'
import { schedulePart } from '../../src/core/service/watch/schedule.ts'
import { statesPart } from '../../src/core/service/watch/states.ts'
import { statesKeeper } from '../../src/core/service/watch/states-keeper.ts'
import { type StatesRows, StatesTable } from '../../src/core/watch/states/index.ts'
import { prometheusSeries } from '../checks/reports/grammar.ts'
import { load } from '../config/given.ts'

const beganAt = Date.UTC(2026, 10, 24)
beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate', 'Date'],
    now: beganAt,
  })
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now() - beganAt)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const config = async (yaml: string) => ({ ...(await load(yaml)), origin: '/svc.yaml' })
const everything: HealthViews = () => 'full'

const connected: Result = { check: 'connect', status: 'ok', message: 'connected' }
const refused: Result = { check: 'connect', status: 'failed', fault: 'refused', message: 'connection refused' }

/** A schedule and its states on a clock of the test. `results` says what a run of a monitor finds now. */
async function serving(yaml: string, results: (name: string) => readonly Result[], rows?: StatesRows) {
  const runs: { readonly name: string; readonly at: number; readonly repeatsRefused: boolean }[] = []
  const log: string[] = []
  const states = statesPart(statesKeeper({ rows: rows && (async () => rows) }), ({ level, msg }) =>
    log.push(`${level} ${msg}`),
  )
  await states.start?.()
  let report: Parameters<Parameters<typeof schedulePart>[0]['watchReports']>[0] | undefined
  const reportOf = (name: string): MonitorReport => {
    const at = performance.now()
    return {
      name,
      kind: 'tcp',
      runsOn: 'network',
      depth: 'Basic',
      host: false,
      checks: [{ name: 'connect', depth: 'Basic', doc: '' }],
      results: results(name),
      durationMs: 1,
      attempts: 1,
      observed: { beganAt: at, endedAt: at },
    }
  }
  const part = schedulePart(
    {
      config: await config(yaml),
      watchObservations: () => {},
      watchOwed: () => {},
      watchReports: (onReport) => {
        report = onReport
      },
      expect: () => {},
      run: async ({ monitor: { name } }, _, { repeatsRefused }) => {
        runs.push({ name, at: Date.now() - beganAt, repeatsRefused })
        return reportOf(name)
      },
      look: async () => undefined,
      latest: () => undefined,
      onError: (_, error) => {
        throw error
      },
    },
    states,
  )
  await part.open?.()
  part.answers?.()
  const end = async (): Promise<void> => {
    part.cancel?.()
    states.cancel?.()
    await states.close?.()
  }
  onTestFinished(end)
  const lines = async (views: HealthViews = everything): Promise<readonly string[]> => {
    const confirmed = await confirmedSeries(states.confirmed(views))
    const { text } = await confirmed.text('text', Number.POSITIVE_INFINITY)
    return prometheusSeries(text).map(({ name, labels, value }) => [name, ...Object.values(labels), value].join(' '))
  }
  return {
    runs,
    states,
    log,
    end,
    pass: async (ms: number) => void (await vi.advanceTimersByTimeAsync(ms)),
    reload: async (next: string) => (await part.reload?.(await config(next)))?.(),
    call: (name: string) => report?.('App', 'Standard', reportOf(name)),
    of: async (family: string, views?: HealthViews) =>
      (await lines(views)).filter((line) => line.startsWith(`${family} `)),
  }
}

const one = 'types: {App: {host: false, monitors: [{kind: tcp, name: a, host: a, port: 1, every: 60s}]}}'

test('W18 svc serve runs a monitor that cannot be reached again after 5, 10 and 20 s, and then shows the incident in /metrics', async () => {
  let result = connected
  const { pass, of, runs } = await serving(one, () => [result])
  await pass(60_000)
  expect(await of('svc_check_confirmed')).toEqual(['svc_check_confirmed App tcp a connect 1'])
  const before = runs.length
  result = refused
  await pass(60_000 - ((Date.now() - (runs.at(-1)?.at ?? 0) - beganAt) % 60_000) - 100)
  await pass(200)
  await pass(19_000)
  expect(await of('svc_check_confirmed')).toEqual(['svc_check_confirmed App tcp a connect 1'])
  expect(await of('svc_incident_info')).toEqual([])
  await pass(2_000)
  expect(await of('svc_check_confirmed')).toEqual(['svc_check_confirmed App tcp a connect 0'])
  expect(await of('svc_incident_info')).toHaveLength(1)
  const [first = 0, ...more] = runs.slice(before).map(({ at }) => at)
  expect(more.map((at) => Math.round((at - first) / 1_000))).toEqual([5, 10, 20])
  result = connected
  await pass(72_000)
  expect(await of('svc_check_confirmed')).toEqual(['svc_check_confirmed App tcp a connect 1'])
  expect(await of('svc_incident_info')).toEqual([])
})

test('W18 what a caller runs counts for confirmed states as what the schedule runs does, and confirms nothing earlier', async () => {
  let result = connected
  const { pass, of, call } = await serving(one, () => [result])
  await pass(60_000)
  result = refused
  for (let at = 0; at < 15; at += 1) {
    call('tcp a')
    await pass(1_000)
  }
  expect(await of('svc_incident_info')).toEqual([])
  result = connected
  await pass(6_000)
  expect(await of('svc_check_blips_total')).toEqual(['svc_check_blips_total App tcp a connect 1'])
  expect(await of('svc_incident_info')).toEqual([])
})

test('W18 a refused sign-in is repeated once to confirm it', async () => {
  const refusal: Result = { check: 'sign-in', status: 'failed', fault: 'auth', message: 'refused' }
  let attempts = 0
  const results = (): readonly Result[] => {
    attempts += 1
    return [attempts <= 2 ? refusal : { ...refusal, remembered: true }]
  }
  const { pass, of, runs } = await serving(one, results)
  await pass(240_000)
  expect(runs.filter(({ repeatsRefused }) => repeatsRefused)).toHaveLength(1)
  expect(await of('svc_check_confirmed')).toContain('svc_check_confirmed App tcp a sign_in 0')
})

const shop = `types:
  Sql: {host: false, monitors: [{kind: tcp, name: db, host: a, port: 1, every: 60s}]}
  App: {host: false, monitors: [{kind: tcp, name: shop, host: a, port: 2, every: 60s, dependsOn: Sql/tcp db}]}`

test('W18 the log has one line for the begin of each incident and one for its end, and a consequence names its cause', async () => {
  let result = connected
  const { pass, log } = await serving(shop, () => [result])
  await pass(60_000)
  expect(log).toEqual([])
  result = refused
  await pass(180_000)
  result = connected
  await pass(180_000)
  expect([...log].sort()).toEqual([
    'info App/tcp shop: connect failed (a consequence of Sql/tcp db): connection refused',
    'info App/tcp shop: connect recovered',
    'info Sql/tcp db: connect recovered',
    'warn Sql/tcp db: connect failed: connection refused',
  ])
})

test('S11 a reader who may not see the type of a cause reads `a monitor of another type`', async () => {
  let result = connected
  const { pass, of } = await serving(shop, () => [result])
  await pass(60_000)
  result = refused
  await pass(120_000)
  expect((await of('svc_incident_info')).filter((line) => line.includes('victim'))).toMatchObject([
    expect.stringContaining('App tcp shop connect victim Sql/tcp db'),
  ])
  const views: HealthViews = (type) => (type === 'App' ? 'full' : 'brief')
  expect(await of('svc_incident_info', views)).toMatchObject([
    expect.stringContaining('victim a monitor of another type'),
  ])
  expect(await of('svc_check_confirmed', () => 'brief')).toEqual([])
})

const pair = `types:
  Sql: {host: false, monitors: [{kind: tcp, name: a, host: a, port: 1, every: 60s}, {kind: tcp, name: b, host: a, port: 2, every: 60s}]}
  App: {host: false, monitors: [{kind: tcp, name: shop, host: a, port: 3, every: 60s, dependsOn: {any: [Sql/a, Sql/b]}}]}`

test('G1 in the schedule a group takes the blame only while too few of its members can be reached', async () => {
  const down = new Set<string>()
  const { pass, of } = await serving(pair, (name) => [down.has(name) ? refused : connected])
  const roles = async (): Promise<readonly string[]> =>
    (await of('svc_incident_info')).map((line) => line.replace(/.*(App|Sql) (tcp \S+) connect (.*) 1$/, '$2: $3'))
  await pass(60_000)
  down.add('tcp a')
  await pass(150_000)
  expect(await roles()).toEqual(['tcp a: cause'])
  down.add('tcp shop')
  await pass(150_000)
  expect(await roles()).toEqual(['tcp a: cause', 'tcp shop: cause'])
  down.delete('tcp shop')
  await pass(150_000)
  down.add('tcp b').add('tcp shop')
  await pass(150_000)
  expect(await roles()).toEqual(['tcp a: cause', 'tcp b: cause', 'tcp shop: victim Sql/tcp a'])
})

test('W18 a reload that removes a monitor ends its incident, and one that renames it keeps the incident', async () => {
  const { pass, of, reload } = await serving(one, () => [refused])
  await pass(120_000)
  const [before = ''] = await of('svc_incident_info')
  await reload(one.replace('name: a', 'name: b, formerly: [App/tcp/a]'))
  await pass(5_000)
  expect(await of('svc_incident_info')).toEqual([before.replace('tcp a', 'tcp b')])
  await reload(one.replace('name: a', 'name: c'))
  await pass(1_000)
  expect(await of('svc_incident_info')).toEqual([])
})

test('W18 `confirm:` of a monitor comes before that of its type, and that before the one of `serve:`', async () => {
  const monitors = (own: string) =>
    `{host: false${own}, monitors: [{kind: tcp, name: a, host: a, port: 1, every: 60s}, {kind: tcp, name: b, host: a, port: 2, every: 60s, confirm: 1h}]}`
  const { pass, of } = await serving(`serve: {confirm: 30m}\ntypes: {App: ${monitors(', confirm: 10s')}}`, () => [
    refused,
  ])
  await pass(180_000)
  expect(await of('svc_check_confirmed')).toEqual([
    'svc_check_confirmed App tcp a connect 0',
    'svc_check_confirmed App tcp b connect 1',
  ])
})

/** A store in memory, which may fail. */
function rowsIn(table: StatesTable, isFailing: () => boolean = () => false): StatesRows {
  const stored = <T>(work: () => T): T => {
    if (isFailing()) throw new Fault('Unavailable', 'the store does not answer')
    return work()
  }
  return {
    read: async () => stored(() => table.read(Date.now())),
    write: async (batch) => {
      stored(() => table.write(batch, Date.now()))
      return true
    },
    incidents: async (query) => stored(() => table.incidents(query)),
  }
}

test('W20 incidents that were over before a restart are listed after it, and a store that fails costs those only', async () => {
  const table = new StatesTable()
  let result = refused
  const first = await serving(one, () => [result], rowsIn(table))
  await first.pass(120_000)
  result = connected
  await first.pass(150_000)
  await first.end()
  let isFailing = false
  const second = await serving(
    one,
    () => [result],
    rowsIn(table, () => isFailing),
  )
  await second.pass(1_000)
  const ended = async () => (await second.states.incidents(everything)).ended
  expect(await ended()).toMatchObject([{ monitor: 'tcp a', end: 'recovered', fault: 'refused', victims: 0 }])
  isFailing = true
  expect(await ended()).toEqual([])
  result = refused
  await second.pass(150_000)
  result = connected
  await second.pass(150_000)
  expect(await ended()).toHaveLength(1)
  isFailing = false
  expect(await ended()).toHaveLength(2)
})

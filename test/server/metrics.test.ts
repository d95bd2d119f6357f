import { readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { loadPrometheus } from '../../src/core/checks/reports/index.ts'
import type { ExecutionMode, RunDocument, RunResult } from '../../src/core/protocol/index.ts'
import type { Family } from '../../src/core/protocol/service/family.ts'
import type { Call, ConfirmedCheck, HealthViews, RecentRun, Runtime } from '../../src/core/protocol/service/service.ts'
import { healthMetrics } from '../../src/core/service/health/health.ts'
import { storeMetrics } from '../../src/core/service/store/store.ts'
import { prometheusSeries } from '../checks/reports/grammar.ts'
import { runtimeFacts } from '../support/page/facts.ts'
import { password, startAccounts } from './accounts.ts'
import { recentRun } from './recent.ts'
import { ask, openSite, type SiteOptions, withSite } from './site.ts'

const endedAt = new Date('2026-01-02T03:04:05.678Z')

/** A run of one monitor that ended some seconds ago. */
function recent(
  mode: ExecutionMode,
  ageSeconds: number,
  results: readonly RunResult[],
  name = 'postgres orders',
): RecentRun {
  const failed = results.some(({ status }) => status === 'failed')
  const status = failed ? 'failed' : 'ok'
  const run: RunDocument = {
    version: 1,
    type: 'Sql',
    mode,
    view: 'full',
    status,
    message: '',
    startedAt: endedAt,
    endedAt,
    durationMs: 12,
    monitors: [{ name, kind: 'postgres', status, depth: 'Basic', results: [...results] }],
  }
  return recentRun(run, ageSeconds)
}

const result = (check: string, depth: ExecutionMode, more: Partial<RunResult> = {}): RunResult => ({
  check,
  slug: check,
  status: 'ok',
  depth,
  ...more,
})

const showing = (runs: readonly RecentRun[], runtime: Partial<Runtime> = {}): SiteOptions => ({
  runtime: { recent: async () => runs, facts: runtimeFacts({ types: ['Sql'] }), ...runtime },
})

async function scrape(options: SiteOptions) {
  let series: ReturnType<typeof prometheusSeries> = []
  await withSite(options, async ({ port }) => {
    const { text } = await ask(port, '/metrics')
    series = prometheusSeries(text)
  })
  return {
    series,
    successes: series.flatMap(({ name, labels, value }) =>
      name === 'svc_check_success' ? [`${labels['check']} ${value}`] : [],
    ),
    of: (name: string) => series.filter((one) => one.name === name),
  }
}

describe('which results /metrics shows', () => {
  test('a newer run replaces all checks up to its depth, and deeper checks remain', async () => {
    const older = recent('Advanced', 60, [result('connect', 'Basic', { status: 'warning' }), result('lag', 'Advanced')])
    const newer = recent('Basic', 5, [result('connect', 'Basic')])
    const { successes, of } = await scrape(showing([older, newer]))
    expect(successes).toEqual(['connect 1', 'lag 1'])
    expect(of('svc_check_warning').map(({ value }) => value)).toEqual([0, 0])
  })

  test('deeper checks become unknown once a newer run finds that the monitor fails', async () => {
    const older = recent('Advanced', 60, [result('connect', 'Basic'), result('lag', 'Advanced')])
    const newer = recent('Basic', 5, [result('connect', 'Basic', { status: 'failed', fault: 'refused' })])
    expect((await scrape(showing([older, newer]))).successes).toEqual(['connect 0'])
  })

  test('a check that is absent from a newer run of its depth disappears', async () => {
    const older = recent('Standard', 60, [result('connect', 'Basic'), result('queue', 'Standard')])
    const newer = recent('Advanced', 5, [result('connect', 'Basic')])
    expect((await scrape(showing([older, newer]))).successes).toEqual(['connect 1'])
  })

  test('an old result expires: only the end time of its run remains', async () => {
    const { successes, of } = await scrape(
      showing([{ ...recent('Standard', 901, [result('connect', 'Basic')]), expired: true }]),
    )
    expect(successes).toEqual([])
    expect(of('svc_type_success')).toEqual([])
    expect(of('svc_type_last_run_timestamp_seconds').map(({ labels, value }) => [labels['depth'], value])).toEqual([
      ['Basic', 0],
      ['Standard', endedAt.getTime() / 1_000],
      ['Advanced', 0],
    ])
  })

  test('types that are not configured do not appear, whoever requests them', async () => {
    const request: RecentRun = { ...recent('Basic', 1, [result('connect', 'Basic')]), type: 'Mongo' }
    const { series } = await scrape(showing([request]))
    expect(series.some(({ labels }) => labels['type'] === 'Mongo')).toBe(false)
  })

  test('a failure, a warning and a check without a verdict keep their series whatever the limit, and ok ones are omitted', async () => {
    const results = [
      ...Array.from({ length: 40 }, (_, at) => result(`fine_${at}`, 'Basic')),
      result('bad', 'Basic', { status: 'failed', fault: 'refused' }),
      result('low', 'Basic', { status: 'warning' }),
      result('unclear', 'Basic', { status: 'failed', fault: 'timeout', notChecked: 'starved' }),
    ]
    const options = { ...showing([recent('Basic', 1, results)]), options: { metrics: { maxSeries: 1 } } }
    const { series, of } = await scrape(options)
    const states = series.filter(({ name }) => /^svc_(check|monitor|type)/.test(name))
    expect(states.map(({ name, labels, value }) => `${name} ${labels['check']} ${value}`)).toEqual([
      'svc_check_success bad 0',
      'svc_check_success low 1',
      'svc_check_warning bad 0',
      'svc_check_warning low 1',
      'svc_check_fault bad 1',
      'svc_check_not_checked unclear 1',
    ])
    expect(of('svc_series_dropped')[0]?.value).toBeGreaterThan(80)
  })

  test('a type is not called healthy while one of its monitors has no result, and is called unhealthy at once', async () => {
    const partly = (results: readonly RunResult[]) => [{ ...recent('Basic', 1, results), complete: false }]
    const success = async (runs: readonly RecentRun[]) =>
      (await scrape(showing(runs))).of('svc_type_success').map(({ value }) => value)
    expect(await success(partly([result('connect', 'Basic')]))).toEqual([])
    expect(await success(partly([result('connect', 'Basic', { status: 'failed', fault: 'refused' })]))).toEqual([0])
  })

  test('series beyond serve.metrics.maxSeries are omitted and counted', async () => {
    const results = Array.from({ length: 40 }, (_, at) => result(`check_${at}`, 'Basic'))
    const options = { ...showing([recent('Basic', 1, results)]), options: { metrics: { maxSeries: 20 } } }
    const { series, of } = await scrape(options)
    expect(series.filter(({ name }) => /^svc_(type|check|monitor)/.test(name)).length).toBeLessThanOrEqual(22)
    expect(of('svc_series_dropped')[0]?.value).toBeGreaterThan(50)
  })
})

/** A check as `Runtime.confirmed` has it. */
const confirmed = (slug: string, more: Partial<ConfirmedCheck> = {}): ConfirmedCheck => ({
  type: 'Sql',
  monitor: 'postgres orders',
  check: slug,
  slug,
  level: 'ok',
  since: endedAt.getTime(),
  message: '',
  isObserved: true,
  isSettled: true,
  blips: 0,
  silences: [],
  ...more,
})
const incident: ConfirmedCheck['incident'] = {
  id: 'i1',
  level: 'failed',
  beganAt: endedAt.getTime(),
  message: '',
  isFlapping: false,
  isUnobserved: false,
  victims: 0,
}

describe('confirmed states in /metrics', () => {
  const statesIn = async (checks: readonly ConfirmedCheck[], maxSeries = 50_000) => {
    const results = Array.from({ length: 10 }, (_, at) => result(`fine_${at}`, 'Basic'))
    const site = showing([recent('Basic', 1, results)], { confirmed: () => ({ checks, isIsolated: undefined }) })
    const { series, of } = await scrape({ ...site, options: { metrics: { maxSeries } } })
    const states = series.filter(({ name }) => /^svc_(check_confirmed|check_blips|incident)/.test(name))
    return {
      states: states.map(({ name, labels, value }) => `${name} ${labels['item'] ?? labels['check']} ${value}`),
      ofHealth: series.filter(({ name }) => /^svc_(type|monitor|check_success|check_warning)/.test(name)).length,
      dropped: of('svc_series_dropped')[0]?.value,
    }
  }
  const fine = Array.from({ length: 40 }, (_, at) => confirmed(`fine_${at}`))
  const notFine = [
    confirmed('bad', { level: 'failed', incident }),
    confirmed('low', { level: 'warning' }),
    confirmed('open', { isSettled: false }),
  ]

  test('W22 a check that is ok has one series', async () => {
    expect((await statesIn([confirmed('connect')])).states).toEqual(['svc_check_confirmed connect 1'])
  })

  test('W22 serve.metrics.maxSeries counts confirmed states, and omits none that is not ok or not what the latest run shows', async () => {
    const all = await statesIn([...fine, ...notFine])
    expect(all.dropped).toBe(0)
    expect(all.states).toHaveLength(43 + 1 + 2 + 1)
    const { states, dropped, ofHealth } = await statesIn([...fine, ...notFine], 60)
    expect(states.length).toBeGreaterThan(7)
    expect(states.length + ofHealth).toBe(60)
    expect(dropped).toBe(all.states.length + all.ofHealth - 60)
    expect((await statesIn([...fine, ...notFine], 5)).states).toEqual([
      'svc_check_confirmed bad 0',
      'svc_check_confirmed low 1',
      'svc_check_confirmed open 1',
      'svc_check_confirmed_warning low 1',
      `svc_check_confirmed_since_timestamp_seconds bad ${endedAt.getTime() / 1_000}`,
      `svc_check_confirmed_since_timestamp_seconds low ${endedAt.getTime() / 1_000}`,
      'svc_incident_info bad 1',
    ])
  })

  test('W22 of the items of a check, 50 that are ok have confirmed states, and each that is not', async () => {
    const items = Array.from({ length: 60 }, (_, at) => confirmed('queue', { item: `q${at}` }))
    const { states } = await statesIn([...items, confirmed('queue', { item: 'full', level: 'failed', incident })])
    expect(states.filter((line) => line.startsWith('svc_check_confirmed '))).toHaveLength(51)
    expect(states).toContain('svc_check_confirmed full 0')
  })
})

describe('other metrics of /metrics', () => {
  test('counts the runs by caller, and describes the store, the audit and the version', async () => {
    const runtime: Partial<Runtime> = {
      facts: runtimeFacts({ store: '/var/lib/svc/svc.db' }),
      metrics: async (limitMs) => [
        ...healthMetrics([], [{ type: 'Sql', mode: 'Basic', trigger: 'peer', count: 7 }]),
        ...(await storeMetrics(
          async () => 12,
          () => undefined,
        )(limitMs)),
      ],
    }
    const { series } = await scrape(showing([], runtime))
    for (const expected of [
      { name: 'svc_runs_total', labels: { type: 'Sql', depth: 'Basic', trigger: 'peer' }, value: 7 },
      { name: 'svc_store_up', labels: {}, value: 1 },
      { name: 'svc_audit_entries_total', labels: {}, value: 12 },
      { name: 'svc_build_info', labels: { version: '9.8.7', node_version: process.versions.node }, value: 1 },
    ]) {
      expect(series).toContainEqual(expected)
    }
  })

  test.each([
    ['refuses', () => Promise.reject(new Fault('Unavailable', 'gone'))],
    ['never answers', () => new Promise<void>(() => {})],
  ])('a store that %s is reported as down, and all other metrics are present', async (_, ready) => {
    const metrics = storeMetrics(
      async () => {
        await ready()
        return 1
      },
      () => undefined,
    )
    const options = { ...showing([], { metrics }), limits: { readyMs: 100 } }
    const { of } = await scrape(options)
    expect(of('svc_store_up').map(({ value }) => value)).toEqual([0])
    expect(of('process_resident_memory_bytes')).toHaveLength(1)
  })

  test('W22 a store that hangs delays only the scrape that has no earlier outcome, and is down from the next one on', async () => {
    const hangs = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const answers = [Promise.resolve(), ...hangs.map(({ promise }) => promise)]
    const metrics = storeMetrics(
      async () => {
        await answers.shift()
        return 1
      },
      () => undefined,
    )
    const { port } = await openSite(showing([], { metrics }))
    const up = async (): Promise<readonly number[]> =>
      prometheusSeries((await ask(port, '/metrics')).text).flatMap(({ name, value }) =>
        name === 'svc_store_up' ? [value] : [],
      )
    expect(await up()).toEqual([1])
    // This query does not end yet: the scrape repeats the outcome of the one before.
    expect(await up()).toEqual([1])
    hangs[0].reject(new Error('gone'))
    expect(await up()).toEqual([0])
    hangs[1].resolve()
    await expect.poll(up).toEqual([1])
  })

  test('W22 the text of health is written again only when a run has ended', async () => {
    const one = recent('Basic', 1, [result('connect', 'Basic')])
    let reads = 0
    const counted: RecentRun = {
      ...one,
      run: {
        ...one.run,
        get monitors() {
          reads += 1
          return one.run.monitors
        },
      },
    }
    const runs = [counted]
    await withSite(showing(runs, { metrics: async () => healthMetrics([], []) }), async ({ port }) => {
      const first = await ask(port, '/metrics')
      expect(reads).toBeGreaterThan(0)
      const before = reads
      const second = await ask(port, '/metrics')
      expect(reads).toBe(before)
      const health = (text: string): string => text.slice(0, text.indexOf('# HELP svc_configured_types'))
      expect(health(second.text)).toBe(health(first.text))
      expect(health(second.text)).toContain('svc_check_success')
      runs.push(recent('Standard', 0, [result('connect', 'Basic'), result('query', 'Standard')]))
      expect((await ask(port, '/metrics')).text).toContain('check="query"')
    })
  })

  test.each([
    [undefined, 'text/plain; version=0.0.4; charset=utf-8'],
    ['*/*', 'text/plain; version=0.0.4; charset=utf-8'],
    [
      'application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
    ],
  ])('Accept: %s is answered as %s', async (accept, type) => {
    const { port } = await openSite(showing([recent('Basic', 1, [result('connect', 'Basic')])]))
    await ask(port, '/livez')
    const { headers, text } = await ask(port, '/metrics', { headers: accept === undefined ? {} : { accept } })
    expect(headers['content-type']).toBe(type)
    const open = type.startsWith('application/openmetrics')
    expect(text.endsWith('# EOF\n')).toBe(open)
    expect(text).toContain(open ? '# TYPE svc_http_requests counter\n' : '# TYPE svc_http_requests_total counter\n')
    expect(text).toContain(open ? '# TYPE svc_build info\n' : '# TYPE svc_build_info gauge\n')
    expect(text.includes('# UNIT svc_type_duration_seconds seconds\n')).toBe(open)
  })
})

test('docs/metrics.md names every metric that can be exported', async () => {
  const docs = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')
  const { healthFamilies } = await loadPrometheus()
  const { series } = await scrape(showing([recent('Basic', 1, [result('connect', 'Basic')])]))
  const families = healthFamilies([], 0).map(({ name, type }) => (type === 'info' ? `${name}_info` : name))
  const names = [...families, ...series.map(({ name }) => name)]
  const missing = names.filter((name) => /^svc_/.test(name) && !new RegExp(`\\b${name}\\b`).test(docs))
  expect(missing).toEqual([])
})

test('S11 beyond loopback an anonymous caller sees states without names, items and values; a key sees all of them', async () => {
  const accounts = await startAccounts({ trustProxy: ['127.0.0.1'] })
  onTestFinished(() => accounts.close())

  const by = { who: 'local:tester', correlationId: 'test' }
  const { secret } = await accounts.admin.keys.create({ name: 'prometheus', userName: 'Ann' }, by)
  const elsewhere = { 'x-forwarded-for': '198.51.100.4' }
  await ask(accounts.port, '/healthcheck?ServerType=Sql&ExecutionMode=Standard')
  const seriesFor = async (headers: Readonly<Record<string, string>>) =>
    prometheusSeries((await ask(accounts.port, '/metrics', { headers })).text).filter(({ name }) =>
      /^svc_(check|monitor)/.test(name),
    )
  const stranger = await seriesFor(elsewhere)
  expect(stranger.length).toBeGreaterThan(0)
  expect(stranger.some(({ name, labels }) => /value|threshold/.test(name) || labels['item'] !== undefined)).toBe(false)
  const signedIn = await seriesFor({ ...elsewhere, authorization: `Bearer ${secret}` })
  expect(signedIn.some(({ name }) => name === 'svc_check_value_seconds')).toBe(true)
  expect(signedIn.some(({ labels }) => labels['item'] !== undefined)).toBe(true)
  expect(await seriesFor({ ...elsewhere, authorization: `Bearer ${password}` })).toEqual(stranger)
})

test('S11 beyond loopback an anonymous caller gets the same sums of notifications and drills without names, whatever the label', async () => {
  const samples = [
    { labels: { receiver: 'mail of Ann', result: 'accepted' }, value: 2 },
    { labels: { receiver: 'chat', result: 'accepted' }, value: 3 },
    { labels: { receiver: 'chat', result: 'failed' }, value: 1 },
  ]
  const at = [
    { labels: { receiver: 'mail of Ann' }, value: 5_000 },
    { labels: { receiver: 'chat' }, value: 7_000 },
  ]
  const families: readonly Family[] = [
    { name: 'svc_notifications', type: 'counter', help: 'x', samples },
    { name: 'svc_notify_last_success_timestamp_seconds', type: 'gauge', help: 'x', together: 'min', samples: at },
    { name: 'svc_of_tomorrow', type: 'gauge', help: 'x', samples: [{ labels: { host: 'db-17' }, value: 4 }] },
  ]
  const views =
    (call: Pick<Call, 'credential'>): HealthViews =>
    () =>
      call.credential ? 'full' : 'brief'
  const runtime = { metrics: async () => families, viewOf: async (call: Pick<Call, 'credential'>) => views(call) }
  const { port } = await openSite({ options: { trustProxy: ['127.0.0.1'] }, runtime })
  const elsewhere = { 'x-forwarded-for': '198.51.100.4' }
  const linesFor = async (headers: Readonly<Record<string, string>>) =>
    (await ask(port, '/metrics', { headers })).text.split('\n').filter((line) => /^svc_(notif|of_tomorrow)/.test(line))
  expect(await linesFor(elsewhere)).toEqual([
    'svc_notifications_total{result="accepted"} 5',
    'svc_notifications_total{result="failed"} 1',
    'svc_notify_last_success_timestamp_seconds 5000',
    'svc_of_tomorrow 4',
  ])
  const withKey = await linesFor({ ...elsewhere, authorization: 'Bearer key' })
  expect(withKey).toContain('svc_notifications_total{receiver="mail of Ann",result="accepted"} 2')
  expect(withKey).toContain('svc_of_tomorrow{host="db-17"} 4')
})

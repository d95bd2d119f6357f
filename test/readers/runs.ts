import { type Entry, healthCheckResponse } from '../../src/core/checks/reports/index.ts'
import type { RunDocument } from '../../src/core/protocol/index.ts'
import {
  failingWithMore,
  machine,
  monitor,
  refusing,
  runOf,
  skipped,
  starved,
  warned,
  wellOnes,
} from '../checks/reports/many.ts'

type Monitors = RunDocument['monitors']
type Result = Monitors[number]['results'][number]
type Measurement = NonNullable<Result['measurement']>

/** A figure, by default in milliseconds and without limits. */
const figure = (check: string, value: number, more: Partial<Measurement> = {}, of: Partial<Result> = {}): Result => ({
  check,
  status: 'ok',
  message: `${value}`,
  measurement: { value, unit: 'milliseconds', ...more },
  ...of,
})
const failed = { status: 'failed', fault: 'threshold' } as const
const warning = { status: 'warning' } as const
/** The figure of an entry of `queries`. */
const query = (name: string, value: number, more: Partial<Measurement> = {}, of: Partial<Result> = {}): Result =>
  figure('queries', value, { unit: 'ratio', ...more }, { slug: 'queries', subject: name, ...of })
const withoutVerdict = (check: string, status: Result['status'], notChecked: string): Result => ({
  ...{ check, status, notChecked, message: `not checked: ${notChecked}` },
  ...(status === 'failed' ? { fault: 'internal' } : {}),
})

/** The monitor with results that are checks of its plan, and not what kept it from running. */
const planned = (one: Monitors[number]): Monitors[number] => ({
  ...one,
  results: one.results.map((result) => ({ ...result, depth: 'Basic' })),
})

const healthy = (...monitors: Monitors): readonly Entry[] => [runOf('App', monitors, 0)]
const unhealthy = (...monitors: Monitors): readonly Entry[] => [runOf('App', monitors, 3)]
/** The same run, which took so many milliseconds. */
const lasting = (durationMs: number, entries: readonly Entry[]): readonly Entry[] =>
  entries.map((entry) => {
    const Run = entry.Run && { ...entry.Run, durationMs, endedAt: new Date(entry.Run.startedAt.getTime() + durationMs) }
    return Run === undefined ? entry : { ...entry, Run, Response: healthCheckResponse(Run) }
  })
const unanswered = (ServerType: string, ExitCode: number, code: string, message: string): Entry => ({
  ...{ Target: 'web1', ServerType, ExecutionMode: 'Standard', ExitCode },
  Error: { code, exitCode: ExitCode, message, hints: ['svc doctor'] },
})

/** A failing monitor of that name, beside a healthy one: its name is in every output. */
const called = (name: string): readonly Entry[] =>
  unhealthy(
    monitor(name, [
      figure('latency', 12, { warn: 100, limit: 500, bound: 'atMost' }),
      figure('backlog', 7, { unit: 'count', warn: 2, limit: 5, bound: 'atMost' }, failed),
    ]),
    monitor('http shop', [{ check: 'status', status: 'ok', message: '200' }]),
  )

/** Names that operators write. */
const names: Readonly<Record<string, string>> = {
  blanks: ' tcp  two  blanks ',
  quotes: `tcp it's "quoted" \`twice\``,
  pipe: 'tcp a|b',
  equals: 'tcp a=b',
  percent: 'tcp 50% full %d %s',
  semicolon: 'tcp a;b;c',
  commas: 'tcp a,b, c',
  long: `tcp ${'0123456789'.repeat(19)}123456`,
  markup: 'tcp <a & b> ]]> &lt;',
  backslash: 'tcp C:\\new\\table',
  dots: 'tcp db.example.com:5432.',
  brackets: 'tcp #1 [x] {y="z"} (w) 1=2;3',
}

/** 40 runs: what svc may have to report, as data. */
export const runs: Readonly<Record<string, readonly Entry[]>> = {
  // Verdicts.
  healthy: lasting(43, healthy(...wellOnes(2))),
  warning: lasting(61.4, healthy(warned('tls shop'), ...wellOnes(1))),
  failing: unhealthy(refusing('tcp db'), ...wellOnes(1)),
  'failing, with more': unhealthy({
    ...planned(failingWithMore('postgres orders')),
    notRun: [
      { check: 'version', message: 'not run: replication lag failed' },
      { check: 'queries', subject: 'lowest', message: 'not run: replication lag failed' },
    ],
  }),
  'all failing': unhealthy(refusing('tcp db'), refusing('tcp queue')),
  'not run': unhealthy(refusing('tcp db'), skipped('postgres orders', 'tcp db')),
  'not run, the cause elsewhere': unhealthy(skipped('postgres orders', 'Sql/tcp db')),
  starved: unhealthy(starved('http slow', 8), ...wellOnes(1)),
  'starved beside a failure': unhealthy(starved('http slow', 8), refusing('tcp db')),
  'not permitted': healthy(
    monitor('postgres orders', [
      { check: 'connect', status: 'ok', message: '3 ms' },
      withoutVerdict('replication lag', 'warning', 'permission'),
    ]),
  ),
  'a mistake in svc.yaml': unhealthy(
    monitor('http shop', [withoutVerdict('configuration', 'failed', 'configuration')]),
  ),
  'a mistake beside a failure': unhealthy(
    monitor('http shop', [withoutVerdict('configuration', 'failed', 'configuration')]),
    refusing('tcp db'),
  ),
  'nothing configured': healthy(
    monitor('Configuration', [{ check: 'configured', status: 'warning', message: 'no server configured' }], {
      kind: 'configuration',
    }),
  ),
  'not configured': [unanswered('Ftp', 12, 'NotConfigured', 'svc.yaml does not configure Ftp')],
  unreachable: [unanswered('Mongo', 6, 'Unreachable', '10.9.9.9:8443 refused the connection in 3 ms')],
  'two types': [
    runOf('App', wellOnes(1), 0),
    runOf('Sql', [refusing('tcp db'), skipped('postgres orders', 'tcp db')], 3),
  ],
  'two types on one machine': [
    runOf('App', [...wellOnes(1), machine('ok', 'warning')], 0),
    runOf('Sql', [refusing('tcp db'), machine('ok', 'warning')], 3),
  ],
  '150 monitors': lasting(90_061_500, unhealthy(...wellOnes(150), refusing('tcp db'))),
  // Names.
  ...Object.fromEntries(Object.entries(names).map(([name, text]) => [`name: ${name}`, called(text)])),
  // Figures.
  'negative value': healthy(monitor('sqlite balance', [query('lowest', -5, { warn: 10, limit: 20, bound: 'atMost' })])),
  'negative limit': unhealthy(
    monitor('sqlite balance', [
      query('lowest', -5, { warn: -20, limit: -10, bound: 'atMost' }, failed),
      query('highest', -15, { warn: -20, limit: -10, bound: 'atMost' }, warning),
    ]),
  ),
  'negative floor': unhealthy(
    monitor('sqlite balance', [
      query('lowest', -11, { warn: -5, limit: -10, bound: 'atLeast' }, failed),
      query('highest', -3, { warn: -5, limit: -10, bound: 'atLeast' }),
    ]),
  ),
  tiny: unhealthy(
    monitor('sqlite rates', [
      query('leak', 6e-7, { warn: 2e-7, limit: 5e-7, bound: 'atMost' }, failed),
      query('drift', 5e-324, { warn: 2e-7, limit: 5e-7, bound: 'atMost' }),
    ]),
  ),
  huge: healthy(
    monitor('sqlite counts', [
      query('atoms', 3e22),
      query('integers', 2 ** 53, { unit: 'count' }),
      query('most', 1.7e308, { warn: 1.75e308, bound: 'atMost' }),
    ]),
  ),
  fractions: healthy(monitor('sqlite rates', [query('sum', 0.1 + 0.2), query('third', 1 / 3), query('zero', 0)])),
  units: healthy(
    monitor('host', [
      figure('round trip', 0.4127341, { limit: 3_000, bound: 'atMost' }),
      figure('disk /', 41.3, { unit: 'percent', warn: 10, limit: 5, bound: 'atLeast' }, { slug: 'disk', subject: '/' }),
      figure('memory', 2_576_980_378, { unit: 'bytes' }),
      figure('cache', 0.98, { unit: 'ratio' }),
      figure('jobs', 3, { unit: 'count' }),
    ]),
  ),
  'at least': unhealthy(
    monitor('tls shop', [
      figure('certificate', 41, { unit: 'days', warn: 20, limit: 7, bound: 'atLeast' }),
      figure('chain', 12, { unit: 'days', warn: 20, limit: 7, bound: 'atLeast' }, warning),
      figure('root', 3, { unit: 'days', warn: 20, limit: 7, bound: 'atLeast' }, failed),
    ]),
  ),
  'on the limit': healthy(
    monitor('sqlite orders', [
      query('open', 10, { warn: 10, limit: 20, bound: 'atMost' }),
      query('free', 10, { warn: 10, limit: 5, bound: 'atLeast' }),
    ]),
  ),
  'names that look alike': unhealthy(
    monitor('sqlite orders', [
      query('a=b', 1, { limit: 2, bound: 'atMost' }),
      query('a-b', 3, { limit: 2, bound: 'atMost' }, failed),
      query('a|b', 4, { limit: 2, bound: 'atMost' }, failed),
      query('A=B', 1, { limit: 2, bound: 'atMost' }),
    ]),
  ),
}

import { type Entry, healthCheckResponse } from '../../../src/core/checks/reports/index.ts'
import type { HealthCheckResponse, RunDocument } from '../../../src/core/protocol/index.ts'
import { monitor } from './many.ts'

type Result = RunDocument['monitors'][number]['results'][number]

const metrics = {
  StartDateTime: new Date('2026-03-01T03:00:00.000Z'),
  EndDateTime: new Date('2026-03-01T03:00:01.280Z'),
  Duration: 1_280,
}
const correlation = '7f3c2a9e-41d0-4c1b-9a57-0d6f3f1f2b11'

const entry = (ServerType: string, ExecutionMode: string, ExitCode: number, Response: HealthCheckResponse): Entry => ({
  Target: 'prod · https://svc.example.com',
  ServerType,
  ExecutionMode,
  ExitCode,
  Response,
})

type Answered = Pick<HealthCheckResponse, 'ServerState' | 'StatusMessage' | 'MonitorSummaries'>
type Summary = NonNullable<HealthCheckResponse['MonitorSummaries']>[number]
type Line = NonNullable<Summary['Results']>[number]

/** A result of the interface's document: a Success, or a Failure with its messages. */
const passed = (MonitoringName: string, StatusMessage: string): Line => ({
  ...{ MonitoringName, Status: 'Success', StatusMessage },
})
const failed = (MonitoringName: string, StatusMessage: string, ...ErrorMessages: readonly string[]): Line => ({
  ...{ MonitoringName, Status: 'Failure', StatusMessage, ErrorMessages },
})
const summary = (MonitorName: string, ...Results: readonly Line[]): Summary => ({
  MonitorName,
  Status: Results.some(({ Status }) => Status === 'Failure') ? 'Failure' : 'Success',
  Results,
})
/** The interface's document of a run that took so many milliseconds. */
const answered = (Duration: number, { MonitorSummaries = [], ...more }: Answered): HealthCheckResponse => {
  const FailedMonitorCount = MonitorSummaries.filter(({ Status }) => Status === 'Failure').length
  const Status = FailedMonitorCount > 0 ? 'Failure' : 'Success'
  const ExecutionMetrics = { ...metrics, Duration }
  return { Status, CorrelationId: correlation, FailedMonitorCount, MonitorSummaries, ExecutionMetrics, ...more }
}

export const failing = entry(
  'Sql',
  'Advanced',
  3,
  answered(1_280, {
    ServerState: { ServerName: 'SQL-PROD-02', TotalRamInMb: 65_536, AvailableRamInMb: 9_830.4, UsedCpuPercent: 37.2 },
    StatusMessage: 'Sql is unhealthy: 1 of 2 monitors failed: sqlserver orders last full backup: 53 h old (fail 48 h)',
    MonitorSummaries: [
      {
        ...summary(
          'sqlserver orders',
          passed('round trip', '14 ms (warn 1 s, fail 3 s)'),
          failed(
            'last full backup',
            '53 h old (fail 48 h)',
            'started 2026-02-26 22:00, job "nightly full"',
            'fault: threshold',
          ),
        ),
        ErrorMessages: ['last full backup: 53 h old (fail 48 h)'],
      },
      summary('host', passed('disk D:\\Data', '41 % free')),
    ],
  }),
)

export const healthy = entry(
  'App',
  'Standard',
  0,
  answered(43, {
    StatusMessage: 'App is healthy: 1 monitor passed',
    MonitorSummaries: [summary('http shop', passed('status', '200 in 43 ms'))],
  }),
)

export const warning = entry(
  'Sql',
  'Standard',
  0,
  answered(61.4, {
    StatusMessage: "Sql is healthy, 1 warning: no server configured; svc's own store was checked",
    MonitorSummaries: [
      summary('Configuration', passed('configured', "warning: Sql: no server configured; svc's own store was checked")),
      summary('sqlite own store', passed('select 1', '1 ms (warn 1 s, fail 3 s)')),
    ],
  }),
)

/** Root causes, their consequences, long messages and names, a warning, all at once. */
export const broken = entry(
  'Ftp',
  'Advanced',
  3,
  answered(3_112, {
    StatusMessage: 'Ftp is unhealthy: 4 of 5 monitors failed: …',
    MonitorSummaries: [
      summary(
        'tcp 10.1.2.3:5432',
        failed(
          'connect',
          '10.1.2.3:5432 refused the connection in 2 ms: host up, nothing listens on that port',
          'fault: refused',
        ),
      ),
      summary(
        'postgres orders-replica-eu-central',
        failed('not run', 'not run: tcp 10.1.2.3:5432 failed', 'fault: dependency'),
      ),
      summary(
        'ftp ftp1',
        passed('banner', '220 in 12 ms'),
        failed(
          'data connection',
          'signed in after 41 ms, PASV said 10.0.0.5:50021, connect timed out after 3 s (control peer 203.0.113.9): passive address or firewall range, not the account',
          '> PASV',
          '< 227 Entering Passive Mode (10,0,0,5,195,101)',
          'fault: timeout',
        ),
        passed('certificate chain', 'warning: ftp1.example.com expires in 12 d (warn below 20 d)'),
      ),
      summary(
        'http 管理画面',
        failed('応答', 'サービスが応答しません: 503 が返されました (予想: 200)', 'fault: protocol'),
      ),
      summary('host', passed('disk /', '41 % free')),
    ],
  }),
)

/** Text of somebody who wants to be obeyed: by a terminal, a parser, a runner or a spreadsheet. */
export const hostile = entry('App', 'Basic', 3, {
  Status: 'Failure',
  StatusMessage: '\u001b[2J\u001b]0;owned\u0007::error::pwned | x=1;',
  CorrelationId: 'id\n::set-output name=a::b',
  FailedMonitorCount: 1,
  MonitorSummaries: [
    summary(
      '=cmd|\' /C calc\'!A0 "q" <b>&amp; a:b,c',
      failed(
        '-1+1\u202egnp.exe\u0000\ud800',
        'line one\r\n::add-mask::x\n##[error]y %0A::stop-commands::z ]]> \ufffe\u009b31mred\u009b0m',
        'tab\there | pipe # hash \\ back',
        'postgres://svc:hunter2@db1.internal/orders',
        'fault: protocol',
      ),
    ),
  ],
  ExecutionMetrics: metrics,
})

export const unreachable: Entry = {
  Target: 'lab · https://lab.example.com:8443',
  ServerType: 'Mongo',
  ExecutionMode: 'Standard',
  ExitCode: 6,
  Error: {
    code: 'Unreachable',
    exitCode: 6,
    message: '10.9.9.9:8443 refused the connection in 3 ms',
    hints: ['Is svc serve running there? svc profile show lab', 'Elsewhere: svc health --server URL'],
  },
}

export const refused: Entry = {
  ...unreachable,
  ServerType: 'Identity',
  ExitCode: 4,
  Error: { code: 'Unauthorized', exitCode: 4, message: 'Not Authenticated', hints: ['svc login'] },
}

/** An answer that another implementation of the interface may send: no fault lines, no results, extra words. */
export const foreign = entry('Batch', 'Standard', 3, {
  Status: 'Failure',
  StatusMessage: 'Batch node 3 is down',
  FailedMonitorCount: 1,
  MonitorSummaries: [
    { MonitorName: 'Queue', Status: 'Failure', Results: [], ErrorMessages: ['412 jobs waiting', 'oldest 3 h'] },
    { MonitorName: 'Scheduler', Status: 'Success', Results: [] },
  ],
})

/** A result with a figure, which is bounded from above unless it says otherwise. */
const figure = (
  check: string,
  status: Result['status'],
  message: string,
  { bound = 'atMost', at, ...figures }: NonNullable<Result['measurement']>,
): Result => ({ check, status, message, measurement: { ...figures, bound, ...(at && { at }) } })

const run: RunDocument = {
  version: 1,
  type: 'Sql',
  mode: 'Advanced',
  view: 'full',
  status: 'failed',
  message: 'Sql is unhealthy: 1 of 2 monitors failed: postgres orders replication lag: 12 s (warn 5 s, fail 10 s)',
  correlationId: correlation,
  runId: '0d3c6d0e-6b4f-4d46-8f7c-0a9a1b6a3f10',
  node: 'ops-1',
  startedAt: metrics.StartDateTime,
  endedAt: metrics.EndDateTime,
  durationMs: metrics.Duration,
  monitors: [
    monitor(
      'postgres orders',
      [
        figure('round trip', 'ok', '0.4 ms (fail 3 s)', { value: 0.4127341, unit: 'milliseconds', limit: 3_000 }),
        figure('connections', 'warning', '85 % (warn 80 %, fail 95 %)', {
          ...{ value: 85, unit: 'percent', warn: 80, limit: 95 },
        }),
        {
          ...figure('replication lag', 'failed', '12 s (warn 5 s, fail 10 s)', {
            ...{ value: 12_000, unit: 'milliseconds', warn: 5_000, limit: 10_000 },
          }),
          ...{ fault: 'threshold', subject: 'standby eu' },
        },
        figure('certificate', 'ok', '41 d left (warn below 20 d, fail below 7 d)', {
          ...{
            value: 41,
            unit: 'days',
            warn: 20,
            limit: 7,
            bound: 'atLeast',
            at: new Date('2026-04-11T03:00:00.000Z'),
          },
        }),
        { check: 'version', status: 'ok', message: '18.1', facts: { version: '18.1' } },
      ].map((result) => ({ ...result, address: '10.0.0.5:5432' }) as Result),
      { durationMs: 1_204.51 },
    ),
    monitor(
      'host',
      [
        {
          ...figure('disk /var', 'ok', '41 % free', {
            ...{ value: 41.3, unit: 'percent', warn: 10, limit: 5, bound: 'atLeast' },
          }),
          ...{ slug: 'disk', subject: '/var' },
        },
        { check: 'memory', status: 'ok', message: '2.4 GiB', measurement: { value: 2_576_980_378, unit: 'bytes' } },
        { check: 'clock', status: 'ok', message: '-2', measurement: { value: -2, unit: 'count' } },
        { check: 'cache', status: 'ok', message: '0.98', measurement: { value: 0.98, unit: 'ratio' } },
      ],
      { scope: 'machine', host: true, durationMs: 0.61 },
    ),
  ],
}

/** Figures of every unit, with limits on either side and without. */
export const measured: Entry = { ...entry('Sql', 'Advanced', 3, healthCheckResponse(run)), Run: run }

/** The same entry, whose run has these monitors alone. */
export const measuredWith = (...monitors: RunDocument['monitors']): Entry => ({
  ...measured,
  Run: { ...run, monitors },
})

const notRun = { check: 'not run', slug: 'not_run', status: 'failed', notChecked: 'starved' } as const
const uncheckedMonitors: RunDocument['monitors'] = [
  monitor('http orders', [
    {
      ...notRun,
      fault: 'timeout',
      message: 'not checked: waited 8 s for a place at 10.0.0.9, taken by http slow-1 and 3 more',
    },
  ]),
  monitor('http basket', [
    { ...notRun, fault: 'dependency', cause: 'http orders', message: 'not run: http orders was not checked' },
  ]),
  monitor('postgres orders', [
    { check: 'connect', status: 'ok', message: '3 ms' },
    {
      ...{ check: 'replication lag', status: 'warning', notChecked: 'permission' },
      message: 'not checked: GRANT pg_monitor TO monitor',
    },
  ]),
]
const uncheckedRun: RunDocument = {
  ...run,
  message:
    'Sql is not fully checked: 2 of 3 monitors not checked: http orders not run: not checked: waited 8 s for a place at 10.0.0.9, taken by http slow-1 and 3 more',
  monitors: uncheckedMonitors,
}
const partlyRun: RunDocument = {
  ...run,
  message:
    'Sql is unhealthy: 1 of 4 monitors failed, 2 not checked: tcp db connect: 10.0.0.9:5432 refused the connection in 2 ms',
  monitors: [
    ...uncheckedMonitors,
    monitor('tcp db', [
      {
        ...{ check: 'connect', status: 'failed', fault: 'refused' },
        message: '10.0.0.9:5432 refused the connection in 2 ms',
      },
    ]),
  ],
}

/** Two monitors that were not checked, and a figure that the account may not read. Nothing really failed. */
export const unchecked: Entry = { ...entry('Sql', 'Advanced', 3, healthCheckResponse(uncheckedRun)), Run: uncheckedRun }
/** The same, and one monitor that really failed. */
export const partlyChecked: Entry = { ...entry('Sql', 'Advanced', 3, healthCheckResponse(partlyRun)), Run: partlyRun }

export const samples: Readonly<Record<string, readonly Entry[]>> = {
  failing: [failing],
  healthy: [healthy],
  warning: [warning],
  broken: [broken],
  hostile: [hostile],
  unreachable: [unreachable],
  foreign: [foreign],
  measured: [measured],
  unchecked: [unchecked],
  partlyChecked: [partlyChecked],
  several: [healthy, failing, unreachable],
  nothing: [],
}

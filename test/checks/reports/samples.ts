import { type Entry, healthCheckResponse } from '../../../src/core/checks/reports/index.ts'
import type { HealthCheckResponse, RunDocument } from '../../../src/core/protocol/index.ts'

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

export const failing = entry('Sql', 'Advanced', 3, {
  ServerState: { ServerName: 'SQL-PROD-02', TotalRamInMb: 65_536, AvailableRamInMb: 9_830.4, UsedCpuPercent: 37.2 },
  Status: 'Failure',
  StatusMessage: 'Sql is unhealthy: 1 of 2 monitors failed: sqlserver orders last full backup: 53 h old (fail 48 h)',
  CorrelationId: correlation,
  FailedMonitorCount: 1,
  MonitorSummaries: [
    {
      MonitorName: 'sqlserver orders',
      Status: 'Failure',
      Results: [
        {
          MonitoringName: 'round trip',
          Status: 'Success',
          StatusMessage: '14 ms (warn 1 s, fail 3 s)',
          ErrorMessages: [],
        },
        {
          MonitoringName: 'last full backup',
          Status: 'Failure',
          StatusMessage: '53 h old (fail 48 h)',
          ErrorMessages: ['started 2026-02-26 22:00, job "nightly full"', 'fault: threshold'],
        },
      ],
      ErrorMessages: ['last full backup: 53 h old (fail 48 h)'],
    },
    {
      MonitorName: 'host',
      Status: 'Success',
      Results: [{ MonitoringName: 'disk D:\\Data', Status: 'Success', StatusMessage: '41 % free', ErrorMessages: [] }],
      ErrorMessages: [],
    },
  ],
  ExecutionMetrics: metrics,
})

export const healthy = entry('App', 'Standard', 0, {
  Status: 'Success',
  StatusMessage: 'App is healthy: 1 monitor passed',
  CorrelationId: correlation,
  FailedMonitorCount: 0,
  MonitorSummaries: [
    {
      MonitorName: 'http shop',
      Status: 'Success',
      Results: [{ MonitoringName: 'status', Status: 'Success', StatusMessage: '200 in 43 ms', ErrorMessages: [] }],
      ErrorMessages: [],
    },
  ],
  ExecutionMetrics: { ...metrics, Duration: 43 },
})

export const warning = entry('Sql', 'Standard', 0, {
  Status: 'Success',
  StatusMessage: "Sql is healthy, 1 warning: no server configured; svc's own store was checked",
  CorrelationId: correlation,
  FailedMonitorCount: 0,
  MonitorSummaries: [
    {
      MonitorName: 'Configuration',
      Status: 'Success',
      Results: [
        {
          MonitoringName: 'configured',
          Status: 'Success',
          StatusMessage: "warning: Sql: no server configured; svc's own store was checked",
          ErrorMessages: [],
        },
      ],
      ErrorMessages: [],
    },
    {
      MonitorName: 'sqlite own store',
      Status: 'Success',
      Results: [{ MonitoringName: 'select 1', Status: 'Success', StatusMessage: '1 ms (warn 1 s, fail 3 s)' }],
    },
  ],
  ExecutionMetrics: { ...metrics, Duration: 61.4 },
})

/** Root causes, their consequences, long messages and names, a warning, all at once. */
export const broken = entry('Ftp', 'Advanced', 3, {
  Status: 'Failure',
  StatusMessage: 'Ftp is unhealthy: 4 of 5 monitors failed: …',
  CorrelationId: correlation,
  FailedMonitorCount: 4,
  MonitorSummaries: [
    {
      MonitorName: 'tcp 10.1.2.3:5432',
      Status: 'Failure',
      Results: [
        {
          MonitoringName: 'connect',
          Status: 'Failure',
          StatusMessage: '10.1.2.3:5432 refused the connection in 2 ms: host up, nothing listens on that port',
          ErrorMessages: ['fault: refused'],
        },
      ],
    },
    {
      MonitorName: 'postgres orders-replica-eu-central',
      Status: 'Failure',
      Results: [
        {
          MonitoringName: 'not run',
          Status: 'Failure',
          StatusMessage: 'not run: tcp 10.1.2.3:5432 failed',
          ErrorMessages: ['fault: dependency'],
        },
      ],
    },
    {
      MonitorName: 'ftp ftp1',
      Status: 'Failure',
      Results: [
        { MonitoringName: 'banner', Status: 'Success', StatusMessage: '220 in 12 ms' },
        {
          MonitoringName: 'data connection',
          Status: 'Failure',
          StatusMessage:
            'signed in after 41 ms, PASV said 10.0.0.5:50021, connect timed out after 3 s (control peer 203.0.113.9): passive address or firewall range, not the account',
          ErrorMessages: ['> PASV', '< 227 Entering Passive Mode (10,0,0,5,195,101)', 'fault: timeout'],
        },
        {
          MonitoringName: 'certificate chain',
          Status: 'Success',
          StatusMessage: 'warning: ftp1.example.com expires in 12 d (warn below 20 d)',
        },
      ],
    },
    {
      MonitorName: 'http 管理画面',
      Status: 'Failure',
      Results: [
        {
          MonitoringName: '応答',
          Status: 'Failure',
          StatusMessage: 'サービスが応答しません: 503 が返されました (予想: 200)',
          ErrorMessages: ['fault: protocol'],
        },
      ],
    },
    {
      MonitorName: 'host',
      Status: 'Success',
      Results: [{ MonitoringName: 'disk /', Status: 'Success', StatusMessage: '41 % free' }],
    },
  ],
  ExecutionMetrics: { ...metrics, Duration: 3_112 },
})

/** Text of somebody who wants to be obeyed: by a terminal, a parser, a runner or a spreadsheet. */
export const hostile = entry('App', 'Basic', 3, {
  Status: 'Failure',
  StatusMessage: '\u001b[2J\u001b]0;owned\u0007::error::pwned | x=1;',
  CorrelationId: 'id\n::set-output name=a::b',
  FailedMonitorCount: 1,
  MonitorSummaries: [
    {
      MonitorName: '=cmd|\' /C calc\'!A0 "q" <b>&amp; a:b,c',
      Status: 'Failure',
      Results: [
        {
          MonitoringName: '-1+1\u202egnp.exe\u0000\ud800',
          Status: 'Failure',
          StatusMessage: 'line one\r\n::add-mask::x\n##[error]y %0A::stop-commands::z ]]> \ufffe\u009b31mred\u009b0m',
          ErrorMessages: [
            'tab\there | pipe # hash \\ back',
            'postgres://svc:hunter2@db1.internal/orders',
            'fault: protocol',
          ],
        },
      ],
    },
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
    {
      name: 'postgres orders',
      kind: 'postgres',
      scope: 'network',
      status: 'failed',
      depth: 'Basic',
      host: false,
      durationMs: 1_204.51,
      attempts: 1,
      results: [
        {
          check: 'round trip',
          status: 'ok',
          message: '0.4 ms (fail 3 s)',
          address: '10.0.0.5:5432',
          measurement: { value: 0.4127341, unit: 'milliseconds', limit: 3_000, bound: 'atMost' },
        },
        {
          check: 'connections',
          status: 'warning',
          message: '85 % (warn 80 %, fail 95 %)',
          address: '10.0.0.5:5432',
          measurement: { value: 85, unit: 'percent', warn: 80, limit: 95, bound: 'atMost' },
        },
        {
          check: 'replication lag',
          status: 'failed',
          fault: 'threshold',
          message: '12 s (warn 5 s, fail 10 s)',
          subject: 'standby eu',
          address: '10.0.0.5:5432',
          measurement: { value: 12_000, unit: 'milliseconds', warn: 5_000, limit: 10_000, bound: 'atMost' },
        },
        {
          check: 'certificate',
          status: 'ok',
          message: '41 d left (warn below 20 d, fail below 7 d)',
          address: '10.0.0.5:5432',
          measurement: {
            value: 41,
            unit: 'days',
            warn: 20,
            limit: 7,
            bound: 'atLeast',
            at: new Date('2026-04-11T03:00:00.000Z'),
          },
        },
        { check: 'version', status: 'ok', message: '18.1', address: '10.0.0.5:5432', facts: { version: '18.1' } },
      ],
    },
    {
      name: 'host',
      kind: 'host',
      scope: 'machine',
      status: 'ok',
      depth: 'Basic',
      host: true,
      durationMs: 0.61,
      attempts: 1,
      results: [
        {
          check: 'disk /var',
          slug: 'disk',
          status: 'ok',
          message: '41 % free',
          subject: '/var',
          measurement: { value: 41.3, unit: 'percent', warn: 10, limit: 5, bound: 'atLeast' },
        },
        { check: 'memory', status: 'ok', message: '2.4 GiB', measurement: { value: 2_576_980_378, unit: 'bytes' } },
        { check: 'clock', status: 'ok', message: '-2', measurement: { value: -2, unit: 'count' } },
        { check: 'cache', status: 'ok', message: '0.98', measurement: { value: 0.98, unit: 'ratio' } },
      ],
    },
  ],
}

/** Figures of every unit, with limits on either side and without. */
export const measured: Entry = { ...entry('Sql', 'Advanced', 3, healthCheckResponse(run)), Run: run }

const starvedResult = {
  check: 'not run',
  slug: 'not_run',
  status: 'failed',
  fault: 'timeout',
  message: 'not checked: waited 8 s for a place at 10.0.0.9, taken by http slow-1 and 3 more',
  notChecked: 'starved',
} as const
const monitorDefaults = { scope: 'network', depth: 'Basic', host: false, durationMs: 4, attempts: 1 } as const
const uncheckedMonitors: RunDocument['monitors'] = [
  { ...monitorDefaults, name: 'http orders', kind: 'http', status: 'failed', results: [starvedResult] },
  {
    ...monitorDefaults,
    name: 'http basket',
    kind: 'http',
    status: 'failed',
    results: [
      {
        check: 'not run',
        slug: 'not_run',
        status: 'failed',
        fault: 'dependency',
        cause: 'http orders',
        message: 'not run: http orders was not checked',
        notChecked: 'starved',
      },
    ],
  },
  {
    ...monitorDefaults,
    name: 'postgres orders',
    kind: 'postgres',
    status: 'warning',
    results: [
      { check: 'connect', status: 'ok', message: '3 ms' },
      {
        check: 'replication lag',
        status: 'warning',
        message: 'not checked: GRANT pg_monitor TO monitor',
        notChecked: 'permission',
      },
    ],
  },
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
    {
      ...monitorDefaults,
      name: 'tcp db',
      kind: 'tcp',
      status: 'failed',
      results: [
        {
          check: 'connect',
          status: 'failed',
          fault: 'refused',
          message: '10.0.0.9:5432 refused the connection in 2 ms',
        },
      ],
    },
  ],
}

/** Two monitors that were not checked, and a figure that the account may not read. Nothing really failed. */
export const unchecked: Entry = {
  ...entry('Sql', 'Advanced', 3, healthCheckResponse(uncheckedRun)),
  Run: uncheckedRun,
}
/** The same, and one monitor that really failed. */
export const partlyChecked: Entry = {
  ...entry('Sql', 'Advanced', 3, healthCheckResponse(partlyRun)),
  Run: partlyRun,
}

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

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { renderHealth } from '../../src/cli/render/index.ts'
import { openClient } from '../../src/core/client/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { type Core, openCore } from '../../src/core/open.ts'
import { HealthCheckResponse, type RunDocument } from '../../src/core/protocol/index.ts'
import { type Entry, healthCheckResponse, type ReportName, reports } from '../../src/core/reports/index.ts'
import { startServer } from '../../src/core/server/index.ts'
import { type Call, type Service, serveDefaults } from '../../src/core/service.ts'
import { encodeJson } from '../../src/core/wire/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-figures-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const core = async (shared: boolean): Promise<Core> =>
  openCore({
    version: '1.2.3',
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store: join(folder, 'svc.db'),
    shared,
    details: 'signed-in',
  })

/** An Advanced run of svc's own SQLite store, in full. */
async function ask(service: Service, more: Partial<Call> = {}) {
  let run: RunDocument | undefined
  const response = await service.healthCheck(
    { ExecutionMode: 'Advanced', ServerType: 'Sql', IncludeServerStateInformation: true },
    {
      caller: { kind: 'local', account: 'tester' },
      correlationId: 'figures',
      signal: new AbortController().signal,
      note: (facts) => {
        run = facts.run
      },
      ...more,
    },
  )
  return { response, run }
}

test('in process a health answer comes with its run, which holds the figures that the checks measured', async () => {
  const { service, runtime } = await core(false)
  try {
    const { response, run } = await ask(service)
    if (!run) throw new Error('There is no run')
    expect(response).toEqual(healthCheckResponse(run))
    const measured = run.monitors.flatMap(({ results }) => results.filter(({ measurement }) => measurement))
    expect(measured.map(({ check }) => check)).toContain('round trip')
    for (const { measurement } of measured) {
      expect(measurement).toMatchObject({ value: expect.any(Number), unit: expect.any(String) })
    }
  } finally {
    await runtime.close()
  }
})

test('a selection is one of the run too', async () => {
  const { service, runtime } = await core(false)
  try {
    const { response, run } = await ask(service, { selection: { only: ['round trip'], skip: [] } })
    expect(run?.monitors.flatMap(({ results }) => results.map(({ check }) => check))).toEqual(['round trip'])
    expect(run?.message).toBe(response.StatusMessage)
  } finally {
    await runtime.close()
  }
})

/** What a report says of the round trip of svc's own store; `ms` is what it measured. */
const said: Readonly<Partial<Record<ReportName, (output: string, ms: number) => void>>> = {
  csv: (output, ms) => expect(output).toContain(`,ok,${ms},milliseconds,`),
  tsv: (output, ms) => expect(output).toContain(`\tok\t${ms}\tmilliseconds\t`),
  ndjson: (output, ms) => expect(output).toContain(`"Value":${ms},"Unit":"milliseconds"`),
  nagios: (output, ms) => {
    const [, seconds] = /'sqlite own store round trip'=([\d.]+)s;/.exec(output) ?? []
    expect(Number(seconds)).toBeCloseTo(ms / 1_000, 5)
  },
  prtg: (output, ms) =>
    expect(JSON.parse(output).prtg.result).toContainEqual(
      expect.objectContaining({ channel: 'sqlite own store round trip', value: ms, unit: 'TimeResponse' }),
    ),
  prometheus: (output, ms) => {
    const [, seconds] = /svc_check_value_seconds\{.*check="round_trip"\} (\S+)/.exec(output) ?? []
    expect(Number(seconds)).toBeCloseTo(ms / 1_000, 8)
  },
  'health+json': (output, ms) =>
    expect(JSON.parse(output).checks['sqlite own store:round trip']).toEqual([
      expect.objectContaining({ observedValue: ms, observedUnit: 'milliseconds' }),
    ]),
}

/** `svc serve` over the own store, and a client that asks it. */
async function overHttp(): Promise<{ service: Service; url: string; close: () => Promise<void> }> {
  const { service, runtime } = await core(true)
  const host = '127.0.0.1'
  const server = await startServer({
    service,
    runtime,
    options: serveDefaults,
    host,
    port: 0,
    tls: undefined,
    log: () => {},
  })
  const url = `http://${host}:${server.port}`
  const client = openClient({ baseUrl: url, userAgent: 'svc/test' })
  return {
    service: client,
    url,
    close: async () => {
      client.close()
      await server.stop()
      await runtime.close()
    },
  }
}

async function expectFigures(entry: Entry): Promise<void> {
  const results = entry.Run?.monitors.flatMap((monitor) => monitor.results) ?? []
  const roundTrip = results.find(({ check }) => check === 'round trip')
  const ms = Number(roundTrip?.measurement?.value.toFixed(6))
  expect(ms).toBeGreaterThan(0)
  for (const [name, check] of Object.entries(said)) {
    const { default: report } = await reports[name as ReportName]()
    check(report.render([entry]), ms)
  }
  const screen = renderHealth([entry], { width: 120, colour: false, unicode: true })
  expect(screen).toContain(roundTrip?.message)
}

test('a figure that a check of the own store measures reaches every report and the terminal in process', async () => {
  const { service, runtime } = await core(false)
  try {
    const { response: Response, run: Run } = await ask(service)
    await expectFigures({ Target: 'here', ServerType: 'Sql', ExecutionMode: 'Advanced', ExitCode: 0, Response, Run })
  } finally {
    await runtime.close()
  }
})

test('a figure that a check of the own store measures reaches every report and the terminal from svc serve', async () => {
  const { service, url, close } = await overHttp()
  try {
    const { response: Response, run: Run } = await ask(service)
    await expectFigures({ Target: url, ServerType: 'Sql', ExecutionMode: 'Advanced', ExitCode: 0, Response, Run })
  } finally {
    await close()
  }
})

test('the answer that a client makes of a run is byte for byte the one that others are sent', async () => {
  const { service, url, close } = await overHttp()
  try {
    const { response } = await ask(service)
    const question = '/healthcheck?ExecutionMode=Advanced&ServerType=Sql&IncludeServerStateInformation=true'
    const plain = await fetch(url + question, {
      headers: { 'X-Correlation-Id': 'figures', Accept: 'application/json' },
    })
    expect(plain.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(encodeJson(HealthCheckResponse, response)).toBe(await plain.text())
  } finally {
    await close()
  }
})

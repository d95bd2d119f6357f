import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { renderHealth } from '../../src/cli/health/screen.ts'
import { type Entry, healthCheckResponse, type ReportName, reports } from '../../src/core/checks/reports/index.ts'
import { openClient } from '../../src/core/client/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { HealthCheckResponse, type RunDocument, runMediaType } from '../../src/core/protocol/index.ts'
import { type Call, type Service, serveDefaults } from '../../src/core/protocol/service/service.ts'
import { decodeRun, encodeJson } from '../../src/core/protocol/wire/index.ts'
import { startServer } from '../../src/core/server/index.ts'
import type { Core } from '../../src/core/service/open.ts'
import { testCore } from '../support/engine/core.ts'
import { admin, startServe } from '../support/program/serve-command.ts'
import type { Serving } from '../support/program/serving.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { type PostgresServer, postgresMissing, startPostgres, tlsSettings } from '../support/servers/postgres.ts'
import { serverFolder } from '../support/servers/server.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const folder = temporaryFolder()

const core = async (shared: boolean): Promise<Core> =>
  testCore({
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store: join(folder, 'svc.db'),
    shared,
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

test('in process a health answer comes with its run, which holds the values that the checks measured', async () => {
  const { service, runtime } = await core(false)
  onTestFinished(() => runtime.close())

  const { response, run } = await ask(service)
  if (!run) throw new Error('There is no run')
  expect(response).toEqual(healthCheckResponse(run))
  const measured = run.monitors.flatMap(({ results }) => results.filter(({ measurement }) => measurement))
  expect(measured.map(({ check }) => check)).toContain('round trip')
  for (const { measurement } of measured) {
    expect(measurement).toMatchObject({ value: expect.any(Number), unit: expect.any(String) })
  }
})

test('a selection applies to the run too', async () => {
  const { service, runtime } = await core(false)
  onTestFinished(() => runtime.close())

  const { response, run } = await ask(service, { selection: { only: ['round trip'], skip: [] } })
  expect(run?.monitors.flatMap(({ results }) => results.map(({ check }) => check))).toEqual(['round trip'])
  expect(run?.message).toBe(response.StatusMessage)
})

/** Expects the round trip of svc's own store in a report; `ms` is the measured time. */
const expectations: Readonly<Partial<Record<ReportName, (output: string, ms: number) => void>>> = {
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
  for (const [name, check] of Object.entries(expectations)) {
    const { default: report } = await reports[name as ReportName].load()
    check(report.render([entry]), ms)
  }
  const screen = renderHealth([entry], { width: 120, colour: false, unicode: true, detail: 'verbose', atServer: false })
  expect(screen).toContain(roundTrip?.message)
}

test("a value that a check of svc's own store measures reaches each report and the terminal in process", async () => {
  const { service, runtime } = await core(false)
  onTestFinished(() => runtime.close())

  const { response: Response, run: Run } = await ask(service)
  await expectFigures({ Target: 'here', ServerType: 'Sql', ExecutionMode: 'Advanced', ExitCode: 0, Response, Run })
})

test("a value that a check of svc's own store measures reaches each report and the terminal from svc serve", async () => {
  const { service, url, close } = await overHttp()
  onTestFinished(() => close())

  const { response: Response, run: Run } = await ask(service)
  await expectFigures({ Target: url, ServerType: 'Sql', ExecutionMode: 'Advanced', ExitCode: 0, Response, Run })
})

test('the answer that a client derives from a run equals, byte for byte, the one that others receive', async () => {
  const { service, url, close } = await overHttp()
  onTestFinished(() => close())

  const { response } = await ask(service)
  const question = '/healthcheck?ExecutionMode=Advanced&ServerType=Sql&IncludeServerStateInformation=true'
  const plain = await fetch(url + question, { headers: { 'X-Correlation-Id': 'figures', Accept: 'application/json' } })
  expect(plain.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(encodeJson(HealthCheckResponse, response)).toBe(await plain.text())
})

/** The expected figure, in whichever report: of a check there, the unit, its limits, and where its value lies. */
type Expected = {
  readonly monitor: string
  readonly check: string
  readonly unit: string
  readonly warn: number
  readonly limit: number
  readonly bound: 'atMost' | 'atLeast'
  readonly from: number
  readonly to: number
}
const dayMs = 86_400_000
const scriptMissing =
  spawnSync('script', ['--version']).status === 0 ? undefined : 'the program script is not installed'

suiteWith(
  postgresMissing ?? opensslMissing(),
  'figures of a real PostgreSQL and its streaming standby, over TLS',
  () => {
    const word = 'correct horse'
    let certificates: Certificates
    let tlsFolder: string
    let primary: PostgresServer
    let standby: PostgresServer
    let home: Home
    let server: Serving

    beforeAll(async () => {
      certificates = makeCertificates()
      tlsFolder = serverFolder('figures-tls')
      const fresh = await startPostgres(tlsSettings(certificates.good, tlsFolder), 'hostnossl all monitor all reject\n')
      await fresh.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor`)
      ;({ primary, standby } = await fresh.standby())
      await until(
        async () => (await primary.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")).length,
      )
      // What the standby has not replayed is its lag from here on.
      await standby.query('SELECT pg_wal_replay_pause()')
      await primary.query('CREATE TABLE later AS SELECT generate_series(1, 100)')

      home = svcHome()
      const password = join(home.folder, 'password')
      writeFileSync(password, word, { mode: 0o600 })
      const tls = `{mode: verify, caFile: ${certificates.caFile}}`
      const postgres = (name: string, { port }: PostgresServer): string =>
        `    - {kind: postgres, name: ${name}, url: "postgres://monitor@127.0.0.1:${port}/postgres", password: {file: ${password}}, tls: ${tls}, replicationLag: {warn: 1h, limit: 2h}}\n`
      const yaml = `types:\n  Sql:\n${postgres('primary', primary)}${postgres('standby', standby)}`
      server = await startServe(home, yaml)
    })
    afterAll(async () => {
      await server?.stop()
      home?.remove()
      await standby?.remove()
      await primary?.remove()
      certificates?.remove()
      if (tlsFolder) rmSync(tlsFolder, { recursive: true, force: true })
    })

    const inMs = { unit: 'milliseconds', bound: 'atMost' } as const
    const lag = { check: 'replication lag', ...inMs, warn: 3_600_000, limit: 7_200_000, to: 600_000 } as const
    const latency = { check: 'query', ...inMs, warn: 1_000, limit: 3_000, from: 0.000_001, to: 3_000 } as const
    const connections = { check: 'connections', unit: 'percent', bound: 'atMost', warn: 80, limit: 95 } as const
    const expected: readonly Expected[] = [
      { monitor: 'postgres primary', ...lag, from: 0 },
      { monitor: 'postgres standby', ...lag, from: 0.000_001 },
      ...['postgres primary', 'postgres standby'].flatMap((monitor) => [
        { monitor, ...latency },
        // The monitor itself has one of at most 20.
        { monitor, ...connections, from: 5, to: 80 },
      ]),
      {
        monitor: 'postgres standby',
        check: 'certificate',
        unit: 'days',
        bound: 'atLeast',
        warn: 20,
        limit: 3,
        from: 89,
        to: 90,
      },
    ]

    const here = (): readonly string[] => ['--config', join(home.folder, 'server', 'svc.yaml'), '--local']
    type Row = Readonly<Record<string, string>>
    const csv = async (...more: readonly string[]): Promise<readonly Row[]> => {
      const ran = await home.svc(['health', '-t', 'Sql', '-m', 'Advanced', '-o', 'csv', ...more])
      expect([ran.code, ran.stderr]).toEqual([0, ''])
      return parse(ran.stdout, { columns: true }) as readonly Row[]
    }
    const rowOf = (rows: readonly Row[], { monitor, check }: Pick<Expected, 'monitor' | 'check'>): Row | undefined =>
      rows.find((row) => row['MonitorName'] === monitor && row['MonitoringName'] === check)
    function expectRows(rows: readonly Row[]): void {
      for (const one of expected) {
        const row = rowOf(rows, one)
        const { unit: Unit, warn, limit, bound: Bound } = one
        expect([one, row]).toEqual([
          one,
          expect.objectContaining({ Level: 'ok', Unit, Warn: String(warn), Limit: String(limit), Bound }),
        ])
        expect(Number(row?.['Value'])).toBeGreaterThanOrEqual(one.from)
        expect(Number(row?.['Value'])).toBeLessThanOrEqual(one.to)
      }
    }

    test('a command that runs the checks itself reports the values', async () => {
      expectRows(await csv(...here()))
    })

    suiteWith(scriptMissing, 'on a terminal', () => {
      test('each check appears with its value', async () => {
        const terminalOutput = await home.terminal(
          ['health', '-t', 'Sql', '-m', 'Advanced', '-v', ...here()],
          () => undefined,
        )
        expect(terminalOutput.code).toBe(0)
        // The cells of the table are as narrow as the terminal is.
        const text = terminalOutput.stdout.replaceAll(/\s+/g, ' ')
        for (const { check } of expected) expect(text).toContain(check)
        expect(text).toMatch(/SELECT 1 answered in [\d.]+ m?s \(warn 1 s, fail 3 s\)/)
        expect(text).toMatch(/\d+ of 17 usable connections: [\d.]+ % \(warn 80 %, fail 95 %\)/)
        expect(text).toMatch(/lag(?:s by)? [\d.]+ m?s \(warn 1 h, fail 2 h\)/)
        expect(text).toMatch(/in [\d.]+ d \(warn below 20 d, fail below 3 d\)/)
      })
    })

    const question = '/healthcheck?ExecutionMode=Advanced&ServerType=Sql'
    test('svc serve sends the values in its run document, and a client reports the same ones', async () => {
      const got = await fetch(server.url + question, { headers: { Accept: runMediaType } })
      expect([got.status, got.headers.get('content-type')]).toEqual([200, runMediaType])
      const run = decodeRun(await got.text())
      const figures = expected.map(({ monitor, check }) => {
        const match = run.monitors.find(({ name }) => name === monitor)?.results.find((one) => one.check === check)
        return match?.measurement
      })
      expect(figures).toEqual(
        expected.map(({ unit, warn, limit, bound, check }) => ({
          value: expect.any(Number),
          unit,
          warn,
          limit,
          bound,
          ...(check === 'certificate' ? { at: new X509Certificate(certificates.good.cert).validToDate } : {}),
        })),
      )
      // An Advanced run is shared for a minute.
      const rows = await csv('--server', server.url, '--cached')
      expectRows(rows)
      expect(expected.map((one) => Number(rowOf(rows, one)?.['Value']))).toEqual(
        figures.map((measurement) => Number(measurement?.value.toPrecision(15))),
      )
    })

    /** The rows of a run that starts now. Only callers who may see it start one at will, and this process may be root. */
    async function freshRows(): Promise<readonly Row[]> {
      const body = JSON.stringify({ UserName: admin.userName, Password: admin.password })
      const signIn = { method: 'POST', body, headers: { 'Content-Type': 'application/json' } }
      const { BearerToken } = (await (await fetch(`${server.url}/auth/credentials`, signIn)).json()) as {
        BearerToken: string
      }
      const headers = { Authorization: `Bearer ${BearerToken}`, 'Cache-Control': 'no-cache' }
      await (await fetch(server.url + question, { headers })).arrayBuffer()
      return await csv('--server', server.url, '--cached')
    }
    const freshLag = async (): Promise<Row | undefined> =>
      rowOf(await freshRows(), { monitor: 'postgres standby', check: 'replication lag' })

    test('the lag is the age of what the standby has not replayed, and the days are those of its certificate', async () => {
      const before = Number((await freshLag())?.['Value'])
      expect(before).toBeGreaterThan(0)
      // While the primary writes, the last transaction counts, and afterwards what has waited for certain, which is less.
      await until(async () => Number((await freshLag())?.['Value']) > before, 60_000)
      await standby.query('SELECT pg_wal_replay_resume()')
      const caughtUp = await until(async () => {
        const row = await freshLag()
        return Number(row?.['Value']) === 0 && row
      })
      expect(caughtUp).toMatchObject({ Level: 'ok', Unit: 'milliseconds' })
      const end = new X509Certificate(certificates.good.cert).validToDate.getTime()
      const days = Number(rowOf(await freshRows(), { monitor: 'postgres standby', check: 'certificate' })?.['Value'])
      // It is cut to a tenth of a day.
      expect(Math.abs((end - Date.now()) / dayMs - days)).toBeLessThan(0.11)
    })
  },
)

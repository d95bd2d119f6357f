import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import { limits } from '../../../src/core/checks/engine/index.ts'
import { isOwnProcess } from '../../../src/core/checks/kinds/http/request.ts'
import svc from '../../../src/core/checks/kinds/svc.ts'
import { healthCheckResponse } from '../../../src/core/checks/reports/index.ts'
import { loadConfig } from '../../../src/core/config/index.ts'
import {
  type ExecutionMode,
  HealthCheckResponse,
  inStyle,
  type RunResult,
  runMediaType,
} from '../../../src/core/protocol/index.ts'
import { serveDefaults } from '../../../src/core/protocol/service/service.ts'
import { decodeRun, encodeJson } from '../../../src/core/protocol/wire/index.ts'
import { type RunningServer, startServer } from '../../../src/core/server/index.ts'
import { openCore } from '../../../src/core/service/open.ts'
import { expectFindings, expectResult, finds, findsOnly } from '../../support/engine/finds.ts'
import { checked, type RunKindOptions, runKind, secret, withDefaults } from '../../support/engine/run-kind.ts'
import {
  http as answer,
  type Behaviour,
  cutAfter,
  endless,
  escapeSequences,
  hugeHeaders,
  type PeerOptions,
  peer,
  redirectLoop,
  refusedPort,
  replies,
  reset,
  settled,
} from '../../support/faults/faults.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { freePort } from '../../support/servers/server.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'
import { hungUp } from '../../support/suite/until.ts'

type Settings = Parameters<typeof runKind<typeof svc.settings>>[1]

async function look(
  behave: Behaviour,
  settings: Settings = {},
  mode: ExecutionMode = 'Basic',
  options: RunKindOptions & { readonly peer?: PeerOptions } = {},
) {
  await using there = await peer(behave, options.peer)
  const url = `${options.peer?.tls ? 'https' : 'http'}://127.0.0.1:${there.port}`
  const results = await runKind(svc, { url, ...settings }, mode, options)
  await hungUp(there)
  return { results, input: there.input(), connections: there.connections() }
}
const one = async (...args: Parameters<typeof look>) => checked((await look(...args)).results, 'health')
const json = (value: unknown, status = 200): Behaviour =>
  replies(answer(status, JSON.stringify(value), { 'Content-Type': 'application/json' }))
const summary = (MonitorName: string, Status = 'Failure', message = 'it is so') => ({
  MonitorName,
  Status,
  Results: [{ MonitoringName: 'check', Status, StatusMessage: message, ErrorMessages: [] }],
  ErrorMessages: Status === 'Failure' ? [`check: ${message}`] : [],
})
const healthy = { Status: 'Success', FailedMonitorCount: 0, MonitorSummaries: [summary('http shop', 'Success')] }

/** A run document with one monitor, as another svc writes it. */
const runOf = (results: readonly RunResult[], more: object = {}) => ({
  version: 1,
  type: 'App',
  mode: 'Basic',
  view: 'full',
  status: results.some(({ status }) => status === 'failed') ? 'failed' : 'ok',
  message: 'App is as it is',
  startedAt: '2026-11-22T08:00:00.000Z',
  endedAt: '2026-11-22T08:00:01.000Z',
  durationMs: 1_000,
  monitors: [{ name: 'postgres orders', kind: 'postgres', status: 'ok', results }],
  ...more,
})
const sendsRun = (run: object | string): Behaviour =>
  replies(answer(200, JSON.stringify(run), { 'Content-Type': runMediaType }))
const remote = async (...args: Parameters<typeof look>) =>
  (await look(...args)).results.filter(({ check }) => check === 'remote check')

describe('the age of the answer', () => {
  const aged = (age: string, status = 'Success') =>
    one(replies(answer(200, JSON.stringify({ ...healthy, Status: status }), { Age: age })))

  test('an answer that the peer cached for more than a second reports that', async () => {
    expect((await aged('12')).message).toMatch(/ reports Success; checked there 12 s ago$/)
    expect((await aged('12', 'Failure')).message).toMatch(/; checked there 12 s ago$/)
  })

  test.each(['0', '1', 'soon', '-5', '1e9'])('an Age of %s does not', async (age) => {
    expect((await aged(age)).message).toMatch(/ reports Success$/)
  })
})

describe('the request', () => {
  const requestOf = async (mode: ExecutionMode, settings: Settings = {}) => {
    const { input } = await look(json(healthy), settings, mode)
    const [line = '', ...headers] = input.split('\r\n')
    return { line, headers: headers.join('\n') }
  }

  test.each([
    ['Basic', 'Standard', 'Basic'],
    ['Standard', 'Standard', 'Standard'],
    ['Advanced', 'Standard', 'Standard'],
    ['Advanced', 'Advanced', 'Advanced'],
    ['Advanced', 'Basic', 'Basic'],
    ['Basic', 'Advanced', 'Basic'],
  ] as const)('a run in %s, at most %s, asks %s', async (mode, most, expected) => {
    const { line } = await requestOf(mode, { mode: most, type: 'Sql' })
    expect(line).toBe(`GET /healthcheck?ExecutionMode=${expected}&ServerType=Sql&SuppressErrorCodes=true HTTP/1.1`)
  })

  test('under a prefix, at the health check itself, and with deployment-related failures suppressed', async () => {
    const at = async (path: string, more: Settings = {}) => {
      await using there = await peer(json(healthy))
      await runKind(svc, { url: `http://127.0.0.1:${there.port}${path}`, ...more })
      return there.input().split(/[ ?]/)[1]
    }
    expect(await at('')).toBe('/healthcheck')
    expect(await at('/ops/')).toBe('/ops/healthcheck')
    expect(await at('/ops/healthcheck.json')).toBe('/ops/healthcheck.json')
    expect((await requestOf('Basic', { suppressDeployment: true })).line).toContain('&SuppressDeploymentErrors=true ')
  })

  test('it is marked as a hop, accepts a shared answer, and states its timeout', async () => {
    const { headers } = await requestOf('Basic')
    expect(headers).toContain('X-Svc-Hops: 1')
    expect(headers).not.toContain('no-cache')
    expect(headers).toMatch(/X-Prometheus-Scrape-Timeout-Seconds: 1(?:19|20)\.\d{3}/)
  })

  test('one request asks for the run document, or the document of the interface where there is none', async () => {
    const { input, connections: observation } = await look(
      sendsRun(runOf([{ check: 'round trip', status: 'ok', message: '1 ms' }])),
    )
    expect(input).toContain(`\r\nAccept: ${runMediaType}, application/json\r\n`)
    expect(observation).toBe(1)
  })

  test('the token is sent from Standard on, and never shown', async () => {
    const token = secret('svc_key_of_the_other')
    expect((await requestOf('Basic', { token })).headers).not.toContain('Authorization')
    expect((await requestOf('Standard', { token })).headers).toContain('Authorization: Bearer svc_key_of_the_other')
    const echo = json({ ...healthy, Status: 'Failure', StatusMessage: 'you sent svc_key_of_the_other' })
    expect((await one(echo, { token }, 'Standard')).message).toContain('you sent [secret]')
    expect(svc.signsIn?.(withDefaults(svc.settings, { url: 'http://a', token }), 'Basic')).toBeUndefined()
    expect(svc.target?.(withDefaults(svc.settings, { url: 'https://a.test/x' }))).toEqual({ host: 'a.test', port: 443 })
  })

  test('a user in the URL is refused, and valid settings of svc.yaml are read', () => {
    const settings = withDefaults(svc.settings, { url: 'http://me@a.test/' })
    expect(svc.validate?.(settings)).toContain('url contains a user or a password')
    const read = readSettings(svc.settings, { url: 'http://a.test', type: 'Sqll' }, { env: {}, folder: '.' })
    expect(read.problems[0]?.message).toContain('did you mean Sql?')
  })
})

describe('the verdict', () => {
  test('Success is ok, and its warnings become one warning here', async () => {
    expect(await one(json(healthy))).toMatchObject({ status: 'ok' })
    const warned = { ...healthy, MonitorSummaries: [summary('http shop', 'Success', 'warning: slow')] }
    expect(await one(json(warned))).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/^127\.0\.0\.1:\d+ reports Success with 1 warning: "http shop check: slow"$/),
    })
  })

  test.each(['camelCase', 'snake_case'] as const)('a peer whose names are in %s is read alike', async (style) => {
    const spelled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(spelled)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [inStyle(name, style), spelled(one)]))
    }
    expect(await one(json(spelled(healthy)))).toMatchObject({ status: 'ok' })
    const failed = { ...healthy, Status: 'Failure', FailedMonitorCount: 1, MonitorSummaries: [summary('http shop')] }
    expect(await one(json(spelled(failed), 503))).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/reports Failure, 1 failed monitor; failed there: http shop$/),
      details: ['http shop: check: it is so'],
    })
    const refused = { ResponseStatus: { ErrorCode: 'Forbidden', Message: 'not from here' } }
    expect((await one(json(spelled(refused), 403))).message).toContain('not from here')
  })

  test('Failure names the monitors that failed there', async () => {
    const failed = {
      Status: 'Failure',
      StatusMessage: 'Sql is unhealthy',
      FailedMonitorCount: 2,
      MonitorSummaries: [summary('postgres orders'), summary('host', 'Success'), summary('mysql shop')],
    }
    for (const status of [200, 503]) {
      const result = await one(json(failed, status))
      expect(result).toMatchObject({ status: 'failed', fault: 'data', measurement: { value: 2 } })
      expect(result.message).toMatch(/reports Failure, 2 failed monitors.*; failed there: postgres orders, mysql shop$/)
      expect(result.details).toEqual(['postgres orders: check: it is so', 'mysql shop: check: it is so'])
    }
    const many = { ...failed, MonitorSummaries: Array.from({ length: 9 }, (_, n) => summary(`m${n}`)) }
    expect((await one(json(many))).message).toMatch(/failed there: m0, m1, m2, m3, m4 and 4 more$/)
  })

  test.each([
    [401, 'auth', /answered 401/],
    [403, 'auth', /answered 403/],
    [404, 'protocol', /no health endpoint at this URL/],
    [405, 'protocol', /no health endpoint at this URL/],
    [503, 'protocol', /answered 503: "The server is stopping"/],
    [500, 'protocol', /answered 500/],
    [302, 'protocol', /answered 302/],
  ])('%i is not a verdict', async (status, fault, text) => {
    const result = await one(json({ ResponseStatus: { Message: 'The server is stopping' } }, status))
    expect(result).toMatchObject({ status: 'failed', fault })
    expect(result.message).toMatch(text)
  })

  test('a refused token is reported, and is not tried again', async () => {
    const options = { retries: 3 }
    const { connections: observation } = await expectFindings(
      look(json({}, 401), { token: secret('svc_key_x1') }, 'Standard', options),
      'health (auth): …rejected the token…',
    )
    expect(observation).toBe(1)
  })

  test.each([
    ['an answer without a verdict', json({ ok: true })],
    ['a web page', replies(answer(200, '<html>sign in</html>', { 'Content-Type': 'text/html' }))],
    ['Success that counts failures', json({ ...healthy, FailedMonitorCount: 3 })],
    ['a list', json([healthy])],
    ['nothing', json(null)],
    ['one longer than 1 MiB', json({ ...healthy, StatusMessage: 'x'.repeat(1_100_000) })],
  ])('%s is never Success', async (_, behave) => {
    expect(await one(behave)).toMatchObject({ status: 'failed', fault: 'protocol' })
  })

  test('hostile text becomes one bounded line without escapes', async () => {
    const bad = `${escapeSequences}${'x'.repeat(3_000)}`
    const deep = JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) as unknown
    const hostile = {
      Status: 'Failure',
      StatusMessage: bad,
      MonitorSummaries: [deep, 7, null, summary(bad, 'Failure', bad)],
    }
    const result = await one(json(hostile))
    expect(result.status).toBe('failed')
    for (const line of [result.message, ...(result.details ?? [])]) {
      expect(line).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
      expect(line.length).toBeLessThan(800)
    }
  })

  test('a limit on its latency fails a late answer', async () => {
    const slow = replies(answer(200, JSON.stringify(healthy)), 80)
    await finds(look(slow, { latency: { limit: 40 } }), 'latency failed (threshold)')
    await finds(look(json(healthy)), 'latency ok')
  })
})

describe('the run document of another svc', () => {
  const lag = { value: 90_000, unit: 'milliseconds', warn: 5_000, limit: 30_000, bound: 'atMost' } as const
  const results: readonly RunResult[] = [
    { check: 'connect', status: 'ok', message: 'accepted' },
    { check: 'round trip', status: 'ok', message: '1 ms', measurement: { value: 1, unit: 'milliseconds' } },
    { check: 'queue', status: 'ok', message: '3', subject: 'mail', measurement: { value: 3, unit: 'count' } },
    { check: 'queue', status: 'ok', message: '4', subject: 'jobs', measurement: { value: 4, unit: 'count' } },
    { check: 'backup', status: 'warning', message: 'old' },
    { check: 'replication lag', status: 'failed', fault: 'threshold', message: '90 s', measurement: lag },
    { check: 'sign-in', status: 'failed', fault: 'auth', message: 'no such account', details: ['ask the owner'] },
  ]

  test('its values, warnings and fault classes are results here too, the worst first', async () => {
    expect(await remote(sendsRun(runOf(results)))).toMatchObject([
      {
        subject: 'postgres orders replication lag',
        status: 'failed',
        fault: 'threshold',
        message: 'postgres orders replication lag: 90 s',
        measurement: lag,
      },
      { subject: 'postgres orders sign-in', status: 'failed', fault: 'auth', details: ['ask the owner'] },
      { subject: 'postgres orders backup', status: 'warning', message: 'postgres orders backup: old' },
      { subject: 'postgres orders round trip', status: 'ok', measurement: { value: 1, unit: 'milliseconds' } },
      { subject: 'postgres orders queue mail', status: 'ok', measurement: { value: 3, unit: 'count' } },
      { subject: 'postgres orders queue jobs', status: 'ok', measurement: { value: 4, unit: 'count' } },
    ])
  })

  test('the verdict equals that of the same answer in the document of the interface', async () => {
    const failed = runOf(results)
    const withoutMessage = ({ message, ...rest }: Awaited<ReturnType<typeof one>>) => ({
      ...rest,
      address: '',
      message: message.replace(/^\S+ /, ''),
    })
    const document = (run: ReturnType<typeof runOf>) =>
      JSON.parse(encodeJson(HealthCheckResponse, healthCheckResponse(decodeRun(JSON.stringify(run))))) as object
    expect(withoutMessage(await one(sendsRun(failed)))).toEqual(withoutMessage(await one(json(document(failed)))))
    const warned = runOf(results.filter(({ status }) => status !== 'failed'))
    const result = await one(sendsRun(warned))
    expect(withoutMessage(result)).toEqual(withoutMessage(await one(json(document(warned)))))
    expectResult(result, 'warning', /reports Success with 1 warning: "postgres orders backup: old"$/)
  })

  test('a message that begins with "warning:" is not a warning', () =>
    findsOnly(
      look(sendsRun(runOf([{ check: 'log', status: 'ok', message: 'warning: is the last line' }]))),
      'connect ok',
      'health ok',
      'latency ok',
    ))

  test('a token that the server does not accept is a warning: its messages are missing (simulated)', async () => {
    const monitors = [{ kind: 'tcp', status: 'ok', results: [{ check: 'connect', status: 'ok' }] }]
    const brief = sendsRun(runOf([], { view: 'brief', monitors }))
    const of = async (settings: Settings) => checked((await look(brief, settings, 'Standard')).results, 'health')
    expect(await of({})).toMatchObject({ status: 'ok' })
    const rejected = await of({ token: secret('revoked') })
    expect(rejected).toMatchObject({ status: 'warning' })
    expect(rejected.message).toContain('did not accept the token of this monitor')
  })

  test('an anonymous caller reads no messages there', async () => {
    const brief = runOf([], {
      view: 'brief',
      status: 'failed',
      monitors: [
        {
          kind: 'tcp',
          status: 'failed',
          results: [
            { check: 'connect', status: 'failed', fault: 'refused' },
            { check: 'banner', status: 'warning' },
          ],
        },
      ],
    })
    expect(await remote(sendsRun(brief))).toMatchObject([
      { subject: 'tcp connect', fault: 'refused', message: 'tcp connect: failed: refused' },
      { subject: 'tcp banner', status: 'warning', message: 'tcp banner: see the server' },
    ])
  })

  test('a refused sign-in there, to a database, does not pause ours', async () => {
    const options = { limits: limits() }
    const settings = { token: secret('svc_key_of_the_other') }
    await using there = await peer(sendsRun(runOf(results)))
    const url = `http://127.0.0.1:${there.port}`
    for (let time = 0; time < 2; time += 1) {
      const matches = await runKind(svc, { url, ...settings }, 'Standard', options)
      expect(matches.filter(({ fault }) => fault === 'auth').map(({ check }) => check)).toEqual(['remote check'])
    }
    expect(there.connections()).toBe(2)
  })

  test('a unit or a fault class of a later svc is neither a value nor shown', async () => {
    const later: readonly RunResult[] = [
      { check: 'a', status: 'ok', message: 'a', measurement: { value: 1, unit: 'furlongs' } },
      { check: 'b', status: 'failed', message: 'b', fault: 'weather' },
    ]
    const [failed, ...rest] = await remote(sendsRun(runOf(later)))
    expect(failed).toMatchObject({ subject: 'postgres orders b', status: 'failed', fault: 'internal' })
    expect(rest).toEqual([])
  })

  test.each<[string, object | string]>([
    ['a run of a later version', { ...runOf(results), version: 2 }],
    ['a run without monitors', runOf([], { monitors: [] })],
    ['a run with a monitor that looked at nothing', runOf([])],
    ['a run without a status', { ...runOf(results), status: undefined }],
    ['a text in place of a run', 'Success'],
    ['a document of the interface that calls itself a run', healthy],
  ])('%s is never Success', async (_, run) => {
    expect(await one(sendsRun(run))).toMatchObject({ status: 'failed', fault: 'protocol' })
  })

  test('a run that reports ok over a failed check is a failure', async () => {
    expect(await one(sendsRun({ ...runOf(results), status: 'ok' }))).toMatchObject({ status: 'failed', fault: 'data' })
  })

  test('a run of 3 MiB is read, and one over 4 MiB is never Success', async () => {
    const long = (count: number) =>
      runOf(Array.from({ length: count }, (_, n) => ({ check: `c${n}`, status: 'ok', message: 'x'.repeat(60_000) })))
    expect((await one(sendsRun(long(50)))).status).toBe('ok')
    expect(await one(sendsRun(long(72)))).toMatchObject({ status: 'failed', fault: 'protocol' })
  })

  test('hostile text becomes bounded single lines, without escapes and without the token', async () => {
    const bad = `${escapeSequences}svc_key_of_the_other${'x'.repeat(1_000)}`
    const hostile = Array.from({ length: 300 }, (_, n) => ({
      check: `${n} ${bad}`,
      status: 'warning' as const,
      message: bad,
      details: [bad, bad],
      subject: bad,
    }))
    const settings = { token: secret('svc_key_of_the_other') }
    const { results: all } = await look(sendsRun(runOf(hostile)), settings, 'Standard')
    expect(checked(all, 'health').details?.at(-1)).toBe('(100 more checks there not shown)')
    const results = all.filter(({ check }) => check === 'remote check')
    expect(results).toHaveLength(200)
    for (const { message, subject = '', details = [] } of results) {
      for (const text of [message, subject, ...details]) {
        expect(text).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
        expect(text).not.toContain('svc_key_of_the_other')
        expect(text.length).toBeLessThan(500)
      }
    }
  })
})

describe('transport faults', () => {
  test.each<[string, Behaviour, string]>([
    ['a reset', reset, 'protocol'],
    ['a cut answer', cutAfter(120, answer(200, JSON.stringify(healthy))), 'protocol'],
    ['headers without end', replies(hugeHeaders(64 * 1024)), 'protocol'],
    ['a body without end', endless('HTTP/1.1 200 OK\r\n\r\n'), 'protocol'],
    ['a redirect, which is not followed', redirectLoop, 'protocol'],
  ])('%s is reported, and leaves no connection open', async (_, behave, fault) => {
    const { results } = await look(behave, {}, 'Basic', { timeoutMs: 700 })
    expect(results.at(-1)?.status === 'failed' ? results.at(-1) : checked(results, 'health')).toMatchObject({ fault })
    expect(await settled('')).toBe('')
  })
})

suiteWith(opensslMissing(), 'over https', () => {
  let certificates: Certificates
  beforeAll(async () => {
    certificates = await makeCertificates()
  })
  afterAll(() => certificates.remove())
  test('a server without a trusted certificate gets no request; one with a private CA does', async () => {
    const tls = certificates.good
    const refused = await look(json(healthy), {}, 'Basic', { peer: { tls } })
    await finds(refused, 'connect failed (tls)')
    expect(refused.input).toBe('')
    await finds(look(json(healthy), { caFile: certificates.caFile }, 'Basic', { peer: { tls } }), 'health ok')
  })
})

describe('hops', () => {
  test('a run that another svc requested calls no other svc', async () => {
    const run = await look(json(healthy), {}, 'Advanced', { calledByPeer: true })
    await findsOnly(run, 'health ok: …skipped to avoid a loop…')
    expect(run.connections).toBe(0)
  })

  test('this very process is never called, however its address is written', async () => {
    for (const own of ['127.0.0.1', '0.0.0.0', 'localhost']) {
      await using there = await peer(json(healthy))
      const ownUrl = () => `http://${own}:${there.port}/`
      const [result] = await runKind(svc, { url: `http://127.0.0.1:${there.port}` }, 'Basic', { services: { ownUrl } })
      expectResult(result, 'warning: …is this svc process itself…')
      expect(there.connections()).toBe(0)
    }
  })

  test('another process of this machine is a valid target', () => {
    expect(isOwnProcess('127.0.0.1', 8790, undefined)).toBe(false)
    expect(isOwnProcess('127.0.0.1', 8791, 'http://127.0.0.1:8790')).toBe(false)
    expect(isOwnProcess('127.0.0.2', 8790, 'http://127.0.0.1:8790')).toBe(false)
    expect(isOwnProcess('127.0.0.2', 8790, 'http://0.0.0.0:8790')).toBe(true)
    expect(isOwnProcess('192.0.2.7', 8790, 'http://0.0.0.0:8790')).toBe(false)
    expect(isOwnProcess('::1', 8790, 'http://[::]:8790')).toBe(true)
    expect(isOwnProcess('127.0.0.1', 443, 'https://127.0.0.1')).toBe(true)
  })
})

describe('real servers', () => {
  const folder = temporaryFolder()
  /** A svc serve as the command makes it. */
  async function serve(name: string, yaml: string | undefined, port = 0): Promise<RunningServer> {
    const path = join(folder, `${name}.yaml`)
    if (yaml !== undefined) writeFileSync(path, yaml, { mode: 0o600 })
    // Without a file, a folder that has none.
    const from = yaml === undefined ? { env: { SVC_HOME: join(folder, name) } } : { path, env: {} }
    const config = await loadConfig({ ...from, platform: process.platform, home: folder })
    const store = join(folder, name, 'svc.db')
    const core = await openCore({ version: '1', config, store, shared: true, details: 'signed-in' })
    const { service, runtime } = core
    const more = { host: '127.0.0.1', port, tls: undefined, log: () => {} }
    const server = await startServer({ service, runtime, options: serveDefaults, ...more })
    runtime.answersAt?.(server.url)
    onTestFinished(async () => {
      await server.stop()
      await runtime.close()
    })
    return server
  }
  const monitors = (...lines: string[]): string =>
    `types:\n  App:\n    host: false\n    monitors:\n${lines.map((line) => `      - ${line}\n`).join('')}`

  test('a healthy svc serve is ok at three depths, and a failing one names its monitor', async () => {
    const well = await serve('well', undefined)
    for (const mode of ['Basic', 'Standard', 'Advanced'] as const) {
      const results = await runKind(svc, { url: well.url, mode: 'Advanced' }, mode)
      const checks = new Set(results.map(({ check }) => check))
      expect([...checks]).toEqual(['connect', 'health', 'latency', 'remote check'])
      expect(checked(results, 'health').status).not.toBe('failed')
    }
    const figures = (await runKind(svc, { url: well.url, mode: 'Standard' }, 'Standard')).map(
      ({ subject, measurement }) => [subject, measurement?.unit, measurement?.bound],
    )
    expect(figures).toContainEqual(['host cpu', 'percent', 'atMost'])
    const ill = await serve('ill', monitors(`{kind: tcp, name: gone, host: 127.0.0.1, port: ${await refusedPort()}}`))
    await finds(runKind(svc, { url: ill.url }), 'health failed: …failed there: tcp gone…')
    const there = (await runKind(svc, { url: ill.url })).filter(({ status }) => status === 'failed')
    expect(there.map(({ check, subject, fault }) => [check, subject, fault])).toEqual([
      ['health', undefined, 'data'],
      ['remote check', 'tcp gone connect', 'refused'],
    ])
  })

  const ask = async (url: string): Promise<string> =>
    await (await fetch(`${url}/healthcheck?ExecutionMode=Basic&ServerType=App`)).text()

  test('of a chain only the next is called: its run calls no other', async () => {
    const a = await serve('a', undefined)
    const b = await serve('b', monitors(`{kind: svc, name: a, url: "${a.url}"}`))
    const c = await serve('c', monitors(`{kind: svc, name: b, url: "${b.url}"}`))
    expect(await ask(c.url)).toContain('reports Success')
    expect(await ask(b.url)).toContain('reports Success')
    const asPeer = await fetch(`${b.url}/healthcheck?ExecutionMode=Basic&ServerType=App`, {
      headers: { 'x-svc-hops': '1' },
    })
    expect(await asPeer.text()).toContain('skipped to avoid a loop: another svc requested this run')
  })

  test('two that call each other, and one that is configured to call itself, answer at once', async () => {
    const [left, right, own] = [await freePort(), await freePort(), await freePort()]
    const asking = (port: number): string => monitors(`{kind: svc, url: "http://127.0.0.1:${port}"}`)
    const one = await serve('left', asking(right), left)
    await serve('right', asking(left), right)
    expect(await ask(one.url)).toContain('reports Success')
    const itself = await serve('own', asking(own), own)
    expect(await ask(itself.url)).toContain('is this svc process itself')
  })
})

import { describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import type { ExecutionMode, HealthCheckResponse, MonitoringStatus, ServerType } from '../../src/core/protocol/index.ts'
import type { Call, RecentRun, Runtime } from '../../src/core/protocol/service/service.ts'
import { runtimeFacts } from '../support/page/facts.ts'
import { recentRun, runOfResponse } from './recent.ts'
import { ask, failing, healthy, openSite, type SiteOptions, withSite } from './site.ts'

const call = { correlationId: 'run-7' } as Call
const recent = (
  type: ServerType,
  mode: ExecutionMode,
  ageSeconds: number,
  response: HealthCheckResponse = healthy(call),
): RecentRun => recentRun(runOfResponse(type, mode, response), ageSeconds)
const healthAnswer = (message: string, status: MonitoringStatus = 'Success', name = 'disk /'): HealthCheckResponse =>
  healthy(call, {
    Status: status,
    MonitorSummaries: [
      {
        MonitorName: 'host',
        Status: status,
        Results: [{ MonitoringName: name, Status: status, StatusMessage: message, ErrorMessages: [] }],
        ErrorMessages: [],
      },
    ],
  })

const showing = (runs: readonly RecentRun[], facts: Partial<Runtime['facts']> = {}): SiteOptions => ({
  runtime: { recent: async () => runs, facts: runtimeFacts({ types: ['Sql'], ...facts }) },
})
const page = async (options: SiteOptions, headers: Record<string, string> = {}): Promise<string> => {
  let text = ''
  await withSite(options, async ({ port }) => {
    const got = await ask(port, '/', { headers })
    expect(got.status).toBe(200)
    expect(got.headers['content-type']).toBe('text/html; charset=utf-8')
    text = got.text
  })
  return text
}
const textOf = (page: string): string => page.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')
const cards = (text: string): readonly string[] =>
  [...text.matchAll(/<h2>(.*?)<\/h2>/g)].map(([, name = '']) => name).slice(0, -1)
const heading = (text: string): string | undefined => /<h1>(.*?)<\/h1>/.exec(text)?.[1]

describe('/livez and /readyz', () => {
  test('liveness does not query the store', async () => {
    const ready = () => Promise.reject(new Fault('Unavailable', 'gone'))
    const { port, calls } = await openSite({ runtime: { ready } })
    const got = await ask(port, '/livez')
    expect([got.status, got.text]).toEqual([200, 'alive\n'])
    expect(calls).toEqual([])
  })

  test('readiness is 200 while the store answers, and does not run monitors', async () => {
    const { port, calls } = await openSite({})
    const got = await ask(port, '/readyz')
    expect([got.status, got.text]).toEqual([200, 'ready\n'])
    expect(calls).toEqual([])
  })

  test('readiness is 503 with Retry-After when the store fails, and only this machine sees the reason', async () => {
    const ready = () => Promise.reject(new Fault('Local', '/var/lib/svc/store.db is locked'))
    const { port } = await openSite({ runtime: { ready } })
    const here = await ask(port, '/readyz')
    expect(here.status).toBe(503)
    expect(here.headers['retry-after']).toBe('5')
    expect(here.json.ResponseStatus?.Message).toBe('Not ready: /var/lib/svc/store.db is locked')
    for (const headers of [{ host: 'evil.example' }, { 'x-forwarded-for': '192.0.2.7' }]) {
      const there = await ask(port, '/readyz', { headers: headers as Record<string, string> })
      expect(there.json.ResponseStatus?.Message).toBe('Not ready: sign-in does not work at the moment')
    }
  })

  test('D3 readiness is 503 when the store does not answer in time', async () => {
    const { promise: never } = Promise.withResolvers<void>()
    let signal: AbortSignal | undefined
    const ready = (input: AbortSignal) => {
      signal = input
      return never
    }
    const { port } = await openSite({ runtime: { ready }, limits: { readyMs: 100 } })
    const got = await ask(port, '/readyz')
    expect(got.status).toBe(503)
    expect(got.json.ResponseStatus?.Message).toContain('within 100 ms')
    expect(signal?.aborted).toBe(true)
  })

  test('S6 an internal error behind readiness is a 500 without detail', async () => {
    const ready = () => Promise.reject(new TypeError('x is not a function'))
    const { port, log } = await openSite({ runtime: { ready } })
    const got = await ask(port, '/readyz')
    expect(got.status).toBe(500)
    expect(got.text).not.toContain('function')
    expect(log[0]?.stack).toContain('TypeError')
  })
})

describe('/metrics', () => {
  test('shows the latest runs, the requests by status, and the process', async () => {
    const { port, calls } = await openSite(showing([recent('Sql', 'Basic', 3, failing(call))]))
    for (const path of ['/nothing', '/nothing/else', '/livez']) await ask(port, path)
    await ask(port, '/livez', { method: 'PROPFIND' })
    const got = await ask(port, '/metrics')
    expect(got.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    for (const line of [
      /^svc_type_success\{type="Sql",depth="Basic"\} 0$/m,
      /^svc_http_requests_total\{route="other",method="GET",status="404"\} 2$/m,
      /^svc_http_requests_total\{route="\/livez",method="GET",status="200"\} 1$/m,
      /^svc_http_requests_total\{route="\/livez",method="other",status="405"\} 1$/m,
      /^svc_http_requests_in_flight 1$/m,
      /^process_resident_memory_bytes \d{7,}$/m,
      /^process_cpu_seconds_total [\d.]+$/m,
      /^process_start_time_seconds \d{10}/m,
    ]) {
      expect(got.text).toMatch(line)
    }
    // Every line is a comment or a sample, and every family is announced once.
    for (const line of got.text.trimEnd().split('\n')) expect(line).toMatch(/^(?:# |[a-z_]+(?:\{.*\})? -?[\d.e+-]+$)/)
    const families = got.text.match(/^# TYPE \S+/gm) ?? []
    expect(new Set(families).size).toBe(families.length)
    expect(calls).toEqual([])
  })

  test('callers cannot invent labels', async () => {
    await withSite({}, async ({ port }) => {
      for (let i = 0; i < 20; i += 1) {
        await ask(port, `/made-up-${i}`)
        await ask(port, '/auth', { method: 'POST', headers: { 'x-http-method-override': `VERB${'A'.repeat(i % 5)}` } })
      }
      const { text } = await ask(port, '/metrics')
      expect(text.match(/^svc_http_requests_total/gm)?.length).toBeLessThan(5)
    })
  })
})

describe('the status page', () => {
  test('shows configured types with their latest results, and the commands that run them', async () => {
    const runs = [recent('Sql', 'Standard', 4), recent('App', 'Basic', 90)]
    const facts = { types: ['Sql', 'App', 'Mongo'], configuration: '/etc/svc/svc.yaml' } as const
    const text = await page(showing(runs, facts))
    expect(text.match(/<h2>(.*?)<\/h2>/g)).toEqual([
      '<h2>App</h2>',
      '<h2>Sql</h2>',
      '<h2>Mongo</h2>',
      '<h2>How to run a check elsewhere</h2>',
    ])
    expect(heading(text)).toBe('Healthy: App and Sql; 1 not checked yet')
    expect(text).toContain('4 s ago, took 15 ms')
    expect(text.replaceAll('<wbr>', '')).toMatch(/curl 'http:\/\/127\.0\.0\.1:\d+\/healthcheck\?/)
    expect(text).toContain('/etc/svc/svc.yaml')
    expect(text).toContain('reloads every 30 s')
    expect(text).toContain('width=device-width')
  })

  test('failures come first, with their causes', async () => {
    const runs = [recent('App', 'Basic', 1), recent('Sql', 'Basic', 9, failing(call))]
    const text = await page(showing(runs, { types: ['App', 'Sql'] }))
    expect(heading(text)).toBe('Sql is unhealthy')
    expect(text.indexOf('<h2>Sql</h2>')).toBeLessThan(text.indexOf('<h2>App</h2>'))
    expect(textOf(text)).toContain('✗ postgres orders 9 s ago connect refused in 2 ms')
  })

  test('a type that is not configured is named on one line and never red, whoever asked for it', async () => {
    const text = await page(showing([recent('Sql', 'Basic', 1), recent('Mongo', 'Basic', 1, failing(call))]))
    expect(heading(text)).toBe('All healthy')
    expect(text).not.toContain('<h2>Mongo</h2>')
    expect(text).toContain(
      '12 types not configured (App, FtpApi, Ftp, Batch, Identity, Qc, XcodeV, XcodeC, MsgVast, AsgVast, Mongo, Agents)',
    )
  })

  test('without a configuration, the page shows the checks of svc itself', async () => {
    const runs = [recent('App', 'Basic', 1), recent('Mongo', 'Basic', 1, failing(call))]
    const text = await page(showing(runs, { types: [] }))
    expect(heading(text)).toBe('Healthy: App; 2 not checked yet')
    expect(cards(text)).toEqual(['App', 'Sql', 'Identity'])
    expect(text).toContain('No server type is configured.')
  })

  test('a warning is visible and is not a failure', async () => {
    const text = await page(showing([recent('Sql', 'Basic', 9, healthAnswer('warning: 18 % free'))]))
    expect(heading(text)).toBe('Healthy, with warnings: Sql')
    expect(textOf(text)).toContain('! host 9 s ago disk / 18 % free')
  })

  test('a shallow run that passes does not replace the failure of a deeper one; a deep one does', async () => {
    const deep = recent('Sql', 'Advanced', 60, failing(call))
    expect(heading(await page(showing([recent('Sql', 'Basic', 1), deep])))).toBe('Sql is unhealthy')
    const shallow = recent('Sql', 'Basic', 60, failing(call))
    expect(heading(await page(showing([recent('Sql', 'Advanced', 1), shallow])))).toBe('All healthy')
  })

  test('a failure of one monitor counts although another one ran later and deeper', async () => {
    const deep = recent('Sql', 'Advanced', 600)
    const standard = recent('Sql', 'Standard', 5, failing(call))
    const later = { ...deep, ageSeconds: 1, places: [{ key: 'postgres other', beganAt: -1_000 }] }
    expect(heading(await page(showing([later, standard])))).toBe('Sql is unhealthy')
    const healed = { ...later, places: [{ key: 'postgres orders', beganAt: -1_000 }] }
    expect(heading(await page(showing([healed, standard])))).toBe('All healthy')
  })

  test('without a run or a configuration it explains what to do', async () => {
    const text = await page(showing([], { types: [] }))
    expect(heading(text)).toBe('Nothing has been checked yet')
    expect(text).toContain('svc monitors discover')
  })

  test('all text from outside is escaped', async () => {
    const hostile = `<script>alert(1)</script>"'&`
    const text = await page(
      showing([recent('Sql', 'Basic', 1, healthAnswer(hostile, 'Failure', `<img src=x onerror=alert(1)>`))]),
    )
    expect(text).not.toMatch(/<script|<img/)
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;')
  })

  test('S6 the policy forbids everything except the one style, by its hash', async () => {
    await withSite(showing([recent('Sql', 'Basic', 1)]), async ({ port }) => {
      const { headers, text } = await ask(port, '/')
      const { createHash } = await import('node:crypto')
      const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? ''
      const hash = createHash('sha256').update(style).digest('base64')
      expect(headers['content-security-policy']).toBe(
        `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
      )
      expect(text).not.toMatch(/ style=|<script| on[a-z]+=|@import|url\(/)
    })
  })

  test('the commands name the address that the caller uses, with https where a trusted proxy reports it', async () => {
    const headers = { host: 'localhost:9000', 'x-forwarded-proto': 'https' }
    expect(await page(showing([]), headers)).toContain('--server http://localhost:9000 ')
    const trusting = { ...showing([]), options: { trustProxy: ['127.0.0.1'] } }
    expect(await page(trusting, headers)).toContain('--server https://localhost:9000 ')
  })

  test('S11 anonymous callers do not see the path of the configuration', async () => {
    const options = showing([], { configuration: '/etc/svc/svc.yaml' })
    expect(await page(options, { 'x-forwarded-for': '192.0.2.7' })).not.toContain('/etc/svc')
  })

  test('viewing it starts no run', async () => {
    const { port, calls } = await openSite(showing([]))
    await ask(port, '/')
    expect(calls).toEqual([])
  })
})

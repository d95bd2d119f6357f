import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ExecutionMode, type RunDocument, ServerType } from '../../../src/core/protocol/index.ts'
import { prometheusSeries } from '../../checks/reports/grammar.ts'
import { ask, type Got, raw } from '../../server/site.ts'
import { type Home, svcHome } from '../../support/program/svc.ts'
import { until } from '../../support/suite/until.ts'
import { type Counted, counted, type Rehearsing, startRehearsal } from './rehearsing.ts'

const run = 'application/vnd.svc.run+json;version=1'

type Summary = {
  readonly Status: string
  readonly Results: readonly { readonly Status: string; readonly StatusMessage: string }[]
}

let peer: Counted
let rehearsal: Rehearsing
let home: Home
const get = (path: string, headers: Record<string, string> = {}): Promise<Got> =>
  ask(rehearsal.port, path, { headers: { 'cache-control': 'no-cache', ...headers } })
const health = (type: string, mode: string, more = ''): string =>
  `/healthcheck?ServerType=${type}&ExecutionMode=${mode}${more}`

const yaml = (port: number): string => `serve:
  confirm: 5s
  ping: {env: PING}
  witness: ["tcp://127.0.0.1:${port}", "tcp://127.0.0.1:${port}"]
notify:
  - {name: chat, webhook: {url: "http://127.0.0.1:${port}/"}}
  - {name: am, alertmanager: {urls: ["http://127.0.0.1:${port}"]}}
drill: {every: 1h, through: [chat]}
silences: [{monitors: ['*/*'], when: '0 * * * *', for: 59m, reason: always}]
types:
  Sql:
    - {kind: postgres, name: orders, url: "postgres://monitor@127.0.0.1:${port}/orders", password: {env: PING}}
    - {kind: tcp, name: queue, host: 127.0.0.1, port: ${port}, dependsOn: [postgres orders]}
  App:
    host: {disks: ["/"]}
    monitors:
      - {kind: http, name: shop, url: "http://127.0.0.1:${port}/", depth: Standard}
      - {kind: deployment, name: release, expected: "1", url: "http://127.0.0.1:${port}/version", deployment: true}
`
const script = `ends: 10m
steps:
  - {at: 30s, for: 30s, monitor: Sql/postgres orders, fault: refused, message: no listener}
  - {at: 100s, for: 20s, http: 503}
  - {at: 120s, for: 20s, http: hang}
  - {at: 140s, for: 20s, http: reset}
  - {at: 200s, for: 20s, monitor: Sql/postgres orders, fault: threshold, check: certificate}
  - {at: 230s, for: 20s, monitor: App/deployment release, fault: data}
  - {at: 400s, monitor: App/http shop, fault: timeout}
`

/** Asks for every type in every mode, with every option that could suppress a failure. */
async function neverSuccess(): Promise<void> {
  const options =
    '&SuppressErrorCodes=true&SuppressDeploymentErrors=true&Silence=Honor&IncludeServerStateInformation=true'
  const pairs = ServerType.values.flatMap((type) => ExecutionMode.values.map((mode) => [type, mode] as const))
  const answers = await Promise.all(
    pairs.map(async ([type, mode]) => await ask(rehearsal.port, health(type, mode, options))),
  )
  for (const { json, status } of answers) {
    expect(status).toBe(200)
    expect(json).toMatchObject({ Status: 'Failure' })
    const summaries = json['MonitorSummaries'] as readonly Summary[]
    expect(summaries.length).toBeGreaterThan(0)
    for (const { Status, Results } of summaries) {
      expect(Status).toBe('Failure')
      for (const result of Results) {
        expect(result.Status).toBe('Failure')
        expect(result.StatusMessage).toMatch(/^DRILL: /)
      }
    }
  }
}

beforeAll(async () => {
  peer = await counted()
  home = svcHome()
})
afterAll(async () => {
  await rehearsal?.close()
  await peer?.close()
  home?.remove()
})

describe('Y1 a server that rehearses', () => {
  test('begins without a healthy monitor: nothing was checked', async () => {
    const env = { PING: `http://127.0.0.1:${peer.port}/` }
    rehearsal = await startRehearsal(yaml(peer.port), script, { env })
    const { status, json } = await get(health('Sql', 'Standard'))
    expect(status).toBe(503)
    expect(json).toMatchObject({ Status: 'Failure' })
    expect(String(json['StatusMessage'])).toMatch(/^DRILL: Sql is not fully checked: 2 of 2 monitors not checked: /)
  })

  test('has the fault of the script, with its victims, in the document of every format', async () => {
    rehearsal.at(30)
    const { json, text } = await get(health('Sql', 'Standard'))
    expect(json['StatusMessage']).toBe(
      'DRILL: Sql is unhealthy: 2 of 2 monitors failed: postgres orders connect: DRILL: no listener',
    )
    expect(text).toContain('DRILL: not run: postgres orders failed')
    for (const format of ['json', 'csv', 'jsv', 'nagios', 'prtg', 'prometheus']) {
      const got = await get(health('Sql', 'Standard', `&format=${format}`))
      expect([format, got.headers['svc-drill']]).toEqual([format, 'rehearsal'])
      expect([format, got.text]).toEqual([format, expect.stringMatching(/DRILL: |drill="true"/)])
    }
    expect((await get(health('Sql', 'Standard'), { accept: 'application/health+json' })).text).toContain('DRILL: ')
    const document = (await get(health('Sql', 'Standard'), { accept: run })).json as unknown as RunDocument
    expect(document).toMatchObject({ drill: true, status: 'failed' })
    expect(document.monitors[0]?.results).toMatchObject([
      { check: 'connect', fault: 'refused', message: 'DRILL: no listener' },
    ])
  })

  test('no request turns a result into a success, whatever its type, mode and options', async () => {
    await neverSuccess()
  })

  test('every answer has the header, also one to a request that cannot be read', async () => {
    const paths = [
      '/',
      '/board',
      '/metrics',
      '/livez',
      '/readyz',
      '/server-types',
      '/history',
      '/metadata',
      '/openapi.json',
      '/types/java',
      '/sign-in',
      '/nope',
      '/json/reply/HealthCheckRequest',
      '/silences',
      '/drills',
    ]
    for (const path of paths) {
      const { headers, status, text } = await get(path)
      expect([path, headers['svc-drill']]).toEqual([path, 'rehearsal'])
      if (status >= 400) expect([path, text]).toEqual([path, expect.stringContaining('DRILL: ')])
    }
    for (const method of ['OPTIONS', 'HEAD', 'DELETE', 'TRACE'])
      expect((await ask(rehearsal.port, '/healthcheck', { method })).headers['svc-drill']).toBe('rehearsal')
    expect((await raw(rehearsal.port, 'nonsense\r\n\r\n')).text).toMatch(/^Svc-Drill: rehearsal\r$/m)
  })

  test('every page says DRILL in its title and at its top', async () => {
    for (const path of [
      '/',
      '/board',
      '/sign-in',
      '/metadata',
      '/board?type=nope',
      '/?monitor=Sql/postgres%20orders',
    ]) {
      const { text } = await get(path)
      expect([path, text]).toEqual([path, expect.stringMatching(/<title>DRILL: /)])
      expect([path, text]).toEqual([
        path,
        expect.stringMatching(/<body[^>]*>\n<p class="drill" role="alert"><b>DRILL<\/b>/),
      ])
    }
  })

  test('no balancer takes it for a server: /readyz and /livez answer 503 under any Host', async () => {
    for (const path of ['/readyz', '/livez']) {
      const { status, text } = await get(path, { host: 'svc.example.com' })
      expect(status).toBe(503)
      expect(text).toContain('DRILL: this server rehearses')
    }
  })

  test('every sample of /metrics and of the prometheus report has drill="true"', async () => {
    rehearsal.at(30)
    await get(health('Sql', 'Standard'))
    await until(async () => (await get('/metrics')).text.includes('svc_check_confirmed'), 30_000, 200)
    for (const path of ['/metrics', health('Sql', 'Standard', '&format=prometheus')]) {
      const { text } = await get(path)
      const series = prometheusSeries(text)
      expect(series.length).toBeGreaterThan(5)
      for (const { labels, name } of series) expect([name, labels['drill']]).toEqual([name, 'true'])
    }
    const open = await get('/metrics', { accept: 'application/openmetrics-text' })
    const samples = open.text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    expect(samples.length).toBeGreaterThan(5)
    for (const line of samples) expect(line).toMatch(/^[a-z_]+\{drill="true"[,}]/)
  })

  test('heartbeats, sign-ins, silences and drills are refused', async () => {
    const post = (path: string, body: object) =>
      ask(rehearsal.port, path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    for (const [path, body] of [
      ['/heartbeats/backup', { Status: 'ok' }],
      ['/auth/credentials', { UserName: 'ann', Password: 'violet-harbour' }],
      ['/silences', { Monitors: ['*'], Until: '2030-01-01' }],
      ['/roles/assign', { UserName: 'ann', Roles: ['Admin'] }],
      ['/drills/start', {}],
    ] as const) {
      const { status, text } = await post(path, body)
      expect([path, status]).toEqual([path, expect.toBeOneOf([404, 405, 501])])
      expect([path, text]).toEqual([path, expect.stringContaining('DRILL: ')])
    }
  })

  test('svc health exits with 3 and says DRILL in every format', { timeout: 60_000 }, async () => {
    rehearsal.at(30)
    for (const format of ['table', 'json', 'csv', 'tsv', 'ndjson', 'junit', 'github', 'nagios', 'prtg', 'prometheus']) {
      const { code, stdout } = await home.run(['health', '--server', rehearsal.url, '-t', 'Sql', '-o', format])
      expect([format, code]).toEqual([format, format === 'nagios' ? 2 : 3])
      expect([format, stdout]).toEqual([format, expect.stringMatching(/DRILL: |drill="true"/)])
    }
    const quiet = await home.run(['health', '--server', rehearsal.url, '-q', '-o', 'table'])
    expect(quiet.stdout).toMatch(/^✗ DRILL: UNHEALTHY /)
    const all = await home.run(['health', '--server', rehearsal.url, '--json'])
    expect((JSON.parse(all.stdout) as { Results: object[] }).Results).toMatchObject([{ Drill: true }, { Drill: true }])
    const selected = await home.run([
      'health',
      '--server',
      rehearsal.url,
      '-t',
      'Sql',
      '--only',
      'postgres',
      '-o',
      'json',
    ])
    expect(selected.code).toBe(3)
    expect(JSON.parse(selected.stdout)).toMatchObject({
      StatusMessage: expect.stringMatching(/^DRILL: unhealthy: 1 of 1/),
    })
    const series = await home.run(['health', '--server', rehearsal.url, '-o', 'prometheus'])
    for (const { labels } of prometheusSeries(series.stdout)) expect(labels['drill']).toBe('true')
  })

  test('a caller of another machine, who sees no messages, sees DRILL', async () => {
    const far = { 'x-forwarded-for': '203.0.113.9' }
    const { json } = await get(health('Sql', 'Standard'), far)
    expect(json['StatusMessage']).toBe('DRILL: Sql is unhealthy: 2 of 2 monitors failed')
    expect(JSON.stringify(json['MonitorSummaries'])).toContain('DRILL: failed: refused')
    expect(JSON.stringify(json)).not.toContain('no listener')
    expect((await get(health('Sql', 'Standard'), { ...far, accept: run })).json).toMatchObject({
      view: 'brief',
      drill: true,
    })
  })

  test('http: 503 answers every request, and what svc health writes of it is marked', async () => {
    rehearsal.at(100)
    for (const path of [health('Sql', 'Basic'), '/metrics', '/']) {
      const { status, text } = await get(path)
      expect([path, status]).toEqual([path, 503])
      expect(text).toContain('DRILL: the script of this rehearsal answers 503')
    }
    const { code, stdout } = await home.run(['health', '--server', rehearsal.url, '-t', 'Sql', '-o', 'prometheus'])
    expect(code).toBe(8)
    for (const { labels } of prometheusSeries(stdout)) expect(labels['drill']).toBe('true')
    const json = await home.run(['health', '--server', rehearsal.url, '-t', 'Sql', '--json'])
    expect(JSON.parse(json.stdout)).toMatchObject({ error: { drill: true } })
  })

  test('http: hang answers nothing, and svc health gives up', async () => {
    rehearsal.at(120)
    const { code } = await home.run(['health', '--server', rehearsal.url, '-t', 'Sql', '--timeout', '1s'])
    expect(code).toBe(7)
  })

  test('http: reset resets the connection', async () => {
    rehearsal.at(140)
    await expect(get('/metrics')).rejects.toMatchObject({ code: 'ECONNRESET' })
    const { code } = await home.run(['health', '--server', rehearsal.url, '-t', 'Sql'])
    expect(code).toBe(8)
  })

  test('a fault of a deeper check shows only at its depth', async () => {
    rehearsal.at(200)
    expect((await get(health('Sql', 'Basic'))).text).not.toContain('certificate')
    expect((await get(health('Sql', 'Standard'))).text).toContain('certificate')
  })

  test('a failure that SuppressDeploymentErrors would ignore stays one', async () => {
    rehearsal.at(235)
    await neverSuccess()
    expect((await get(health('App', 'Standard'))).text).toContain('DRILL: the data is not as expected (scripted)')
  })

  test('its log says who polled and when, and that nobody asked', async () => {
    rehearsal.at(390)
    await until(() => rehearsal.log.some(({ msg }) => msg.includes('release')), 5_000, 5)
    const messages = rehearsal.log.map(({ msg }) => msg)
    const poller = rehearsal.log.find(({ msg }) => /^DRILL: 127\.0\.0\.1 asked GET \/healthcheck /.test(msg))
    expect(poller).toMatchObject({ address: '127.0.0.1' })
    expect(rehearsal.log.some(({ msg, agent }) => msg.includes(' asked GET /metrics ') && agent !== undefined)).toBe(
      true,
    )
    expect(messages).toContain('DRILL: Sql/postgres orders connect: refused begins (line 3)')
    expect(messages.some((msg) => /^DRILL: http: reset ends \(line 6\): \d+ requests? meanwhile$/.test(msg))).toBe(true)
  })

  test('when its script is over, every request gets 503 "drill over", and 5 min later it has to end', async () => {
    rehearsal.at(600)
    for (const path of [health('Sql', 'Basic'), '/metrics', '/', '/livez']) {
      const { status, text } = await get(path)
      expect([path, status]).toEqual([path, 503])
      expect(text).toContain('DRILL: drill over')
    }
    await until(() => rehearsal.log.some(({ msg }) => msg.includes('the script is over')), 5_000, 5)
    expect(rehearsal.hasEnded()).toBe(false)
    rehearsal.at(900)
    await until(() => rehearsal.hasEnded(), 5_000, 5)
  })

  test('it ends with 10 where nobody asked while a fault was active, and says which', async () => {
    expect(rehearsal.finish()).toBe(10)
    const messages = rehearsal.log.map(({ msg }) => msg)
    expect(messages).toContain(
      'DRILL: nobody asked while App/http shop connect: timeout was active (line 9): nothing is proven by it',
    )
  })

  test('meanwhile nothing was connected to: neither a monitor, a receiver, a witness nor a ping', () => {
    expect(peer.count()).toBe(0)
  })
})

test('Y1 the listener of these tests notices a connection', async () => {
  const one = await counted()
  const socket = connect(one.port, '127.0.0.1')
  await until(() => one.count() === 1, 5_000, 5)
  socket.destroy()
  await one.close()
})

import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { folder } from '../../config/given.ts'
import { ask } from '../../server/site.ts'
import { startServeProcess } from '../../support/program/serve-process.ts'
import type { Serving } from '../../support/program/serving.ts'
import { type Home, svcHome } from '../../support/program/svc.ts'
import { makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { type PrometheusServer, prometheusMissing, startPrometheus } from '../../support/servers/prometheus.ts'
import { asServer } from '../../support/servers/server.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'
import { type Counted, counted, startRehearsal } from './rehearsing.ts'

/** Prometheus runs under another account here. */
const account = ['--local-account', String(asServer.uid ?? process.getuid?.())]

const program = fileURLToPath(new URL('../../../bin/run.js', import.meta.url))
const shipped = fileURLToPath(new URL('../../../deploy/prometheus', import.meta.url))
const text = (name: string): string => readFileSync(join(shipped, name), 'utf8')

/** The shipped rules, with everything that takes minutes in a second, and a job for the rehearsal and one for production. */
const files = (drill: number, production: number): Readonly<Record<string, string>> => ({
  'prometheus.yml': `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [svc-rules.yml]
scrape_configs:
  - job_name: svc-drill
    static_configs: [{targets: ['127.0.0.1:${drill}']}]
  - job_name: svc
    static_configs: [{targets: ['127.0.0.1:${production}']}]
`,
  'svc-rules.yml': text('svc-rules.yml')
    .replace(/for: \d+[mh]/g, 'for: 1s')
    .replace(/keep_firing_for: \S+/g, 'keep_firing_for: 1s'),
})

const yaml = (port: number): string => `serve: {confirm: 5s}
types:
  Sql:
    - {kind: postgres, name: orders, url: "postgres://monitor@127.0.0.1:${port}/orders", password: {env: ORDERS}}
`
/** The monitors of production. */
const healthy = (port: number): string => `serve: {confirm: 5s}
types:
  Sql:
    host: false
    monitors: [{kind: tcp, name: queue, host: 127.0.0.1, port: ${port}}]
`

peerSuite(prometheusMissing, 'Y1 a rehearsal, a real Prometheus with the shipped rules, and a gate', () => {
  let peer: Counted
  let listener: Counted
  let home: Home
  let rehearsal: Serving
  let production: Serving
  let prometheus: PrometheusServer
  let script: string

  beforeAll(async () => {
    peer = await counted()
    listener = await counted()
    home = svcHome()
    script = join(home.folder, 'drill.yaml')
    writeFileSync(
      script,
      'ends: 100s\nsteps:\n  - {at: 20s, for: 50s, monitor: Sql/postgres orders, fault: refused}\n  - {at: 75s, for: 20s, http: 503}\n',
    )
    production = await startServeProcess(healthy(listener.port), account)
    rehearsal = await startServeProcess(yaml(peer.port), ['--rehearse', script, ...account])
    prometheus = await startPrometheus(files(rehearsal.port, production.port))
  })
  afterAll(async () => {
    await prometheus?.remove()
    await rehearsal?.[Symbol.asyncDispose]()
    await production?.[Symbol.asyncDispose]()
    await peer?.close()
    await listener?.close()
    home?.remove()
  })

  /** As a step of CI: the built program, in a process of its own. */
  const gate = (port: number, ...flags: readonly string[]) =>
    home.svc(['health', '--server', `http://127.0.0.1:${port}`, '--fail-on', 'warn', ...flags])

  test('the gate passes production, and refuses the rehearsal before and during its fault', {
    timeout: 120_000,
  }, async () => {
    expect((await gate(production.port)).code).toBe(0)
    const before = await gate(rehearsal.port)
    expect(before.code).toBe(3)
    expect(before.stdout).toContain('DRILL: not checked')
    await until(
      async () => (await gate(rehearsal.port)).stdout.includes('DRILL: the connection was refused'),
      60_000,
      1_000,
    )
    expect((await gate(rehearsal.port, '--only', 'postgres')).code).toBe(3)
  })

  test('the alert fires with DRILL in it, and no production alert does', { timeout: 120_000 }, async () => {
    await until(
      async () =>
        (await prometheus.alerts()).some(
          ({ labels, state }) => labels['alertname'] === 'SvcCheckFailed' && state === 'firing',
        ),
      90_000,
      500,
    )
    const alerts = (await prometheus.alerts()).filter(({ state }) => state === 'firing')
    const [failed] = alerts.filter(({ labels }) => labels['alertname'] === 'SvcCheckFailed')
    expect(failed?.labels).toMatchObject({
      drill: 'true',
      job: 'svc-drill',
      monitor: 'postgres orders',
      check: 'connect',
    })
    expect(failed?.annotations['summary']).toBe('DRILL: Sql postgres orders: connect failed')
    for (const { labels } of alerts) expect(labels['drill']).toBe('true')
  })

  test('no sample that it exports can be taken for production', { timeout: 60_000 }, async () => {
    expect(await prometheus.query('{__name__=~"svc_.*|process_.*|nodejs_.*", job="svc-drill", drill!="true"}')).toEqual(
      [],
    )
    expect((await prometheus.query('{__name__=~"svc_.*", job="svc-drill", drill="true"}')).length).toBeGreaterThan(20)
    expect(await prometheus.query('{job="svc", drill!=""}')).toEqual([])
    expect(
      await prometheus.query('{job="svc-drill", __name__!~"up|scrape_.*|ALERTS|ALERTS_FOR_STATE", drill!="true"}'),
    ).toEqual([])
    // What the rules record of both stays apart.
    const recorded = await prometheus.query('type_monitor_check_item:svc_check_success:max')
    for (const { labels } of recorded) expect(labels['drill']).toBe(labels['job'] === 'svc-drill' ? 'true' : undefined)
  })

  test('it says who polled, ends with 503 "drill over", and the exit code says that each fault was polled', {
    timeout: 120_000,
  }, async () => {
    await until(
      async () => {
        await gate(rehearsal.port, '-q')
        return rehearsal.log().includes('the script is over')
      },
      110_000,
      1_000,
    )
    const { status, text: body } = await ask(rehearsal.port, '/metrics')
    expect([status, body]).toEqual([503, expect.stringContaining('DRILL: drill over')])
    expect((await gate(rehearsal.port)).code).toBe(8)
    const log = rehearsal.log()
    expect(log).toMatch(/"agent":"Prometheus\/[^"]*","msg":"DRILL: 127\.0\.0\.1 asked GET \/metrics \d+ times from /)
    expect(log).toMatch(/"agent":"svc\/[^"]*","msg":"DRILL: 127\.0\.0\.1 asked GET \/healthcheck \d+ times from /)
    rehearsal.signal('SIGTERM')
    expect(await rehearsal.ended).toBe(0)
    expect(rehearsal.log()).toContain('DRILL: every fault of the script was polled')
    expect(peer.count()).toBe(0)
    expect(listener.count()).toBeGreaterThan(0)
  })
})

describe('Y1 the recipe of docs/rehearsals.md for testing a gate', () => {
  /** The lines of the guide, without the time that the fault takes to begin, and with this as the line of the gate. */
  function recipe(line: (health: string) => string): string {
    const guide = readFileSync(fileURLToPath(new URL('../../../docs/rehearsals.md', import.meta.url)), 'utf8')
    const [, block = ''] = /## Testing a gate\n.*?```sh norun\n(.*?)```/s.exec(guide) ?? []
    const [, health = ''] = /^if (svc health .*)$/m.exec(block) ?? []
    expect(health).not.toBe('')
    return block.replace(/^sleep 40.*$/m, '').replace(health, () => line(health))
  }
  const run = async (line: (health: string) => string) => {
    const path = await folder()
    writeFileSync(join(path, 'svc.yaml'), healthy(1), { mode: 0o600 })
    writeFileSync(join(path, 'drill.yaml'), 'ends: 10m\nsteps:\n  - {at: 0s, monitor: Sql/tcp queue, fault: refused}\n')
    writeFileSync(join(path, 'svc'), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, { mode: 0o755 })
    const env = {
      PATH: `${path}:${process.env.PATH ?? ''}`,
      HOME: path,
      SVC_HOME: path,
      SVC_CONFIG: join(path, 'svc.yaml'),
    }
    // The server writes to its own files, so that nothing waits for its end.
    const { status, stdout } = spawnSync('sh', ['-c', `exec 2>/dev/null; ${recipe(line)}`], {
      cwd: path,
      env,
      encoding: 'utf8',
      timeout: 60_000,
    })
    return { status, stdout }
  }

  test('a gate that works passes it', { timeout: 90_000 }, async () => {
    expect(await run((health) => health)).toMatchObject({ status: 0 })
  })

  test('a gate that ignores the exit code is found', { timeout: 90_000 }, async () => {
    const { status, stdout } = await run((health) => `${health} || true`)
    expect(status).toBe(1)
    expect(stdout).toContain('the gate does not work')
  })
})

describe('Y1 a rehearsal in a process of its own', () => {
  test('ends with 10 when it is stopped before its faults end', { timeout: 60_000 }, async () => {
    const script = join(await folder(), 'drill.yaml')
    writeFileSync(script, 'ends: 10m\nsteps:\n  - {at: 0s, http: hang}\n')
    await using stopped = await startServeProcess(healthy(1), ['--rehearse', script])
    const waiting = ask(stopped.port, '/metrics').then(({ text: body }) => body)
    await until(() => stopped.log().includes('DRILL: http: hang begins'), 10_000, 50)
    stopped.signal('SIGTERM')
    expect(await stopped.ended).toBe(10)
    expect(await waiting).toContain('DRILL: ')
    expect(stopped.log()).toContain('was not active for its full time: not proven')
  })

  test('no other command takes it for the server of the account', { timeout: 60_000 }, async () => {
    const home = svcHome()
    onTestFinished(() => home.remove())
    const script = join(home.folder, 'drill.yaml')
    writeFileSync(script, 'ends: 10m\nsteps:\n  - {at: 0s, http: 503}\n')
    await using _ = await startServeProcess(healthy(1), ['--rehearse', script], undefined, {
      env: { HOME: home.folder, SVC_HOME: home.folder },
    })
    const { code, stderr } = await home.svc(['serve', 'reload'])
    expect(code).toBe(6)
    expect(stderr).toContain('No svc serve of this account runs here')
    expect(home.files().filter((file) => !file.endsWith('drill.yaml') && !file.includes('.cache/svc/compile'))).toEqual(
      [],
    )
  })
})

peerSuite(opensslMissing(), 'Y1 a rehearsal with TLS', () => {
  test('http: reset resets the connection below TLS', async () => {
    const certificates = makeCertificates()
    onTestFinished(() => certificates.remove())
    const { cert, key } = certificates.good
    const tls = { cert: readIfFile(cert), key: readIfFile(key) }
    const rehearsal = await startRehearsal(healthy(1), 'ends: 1m\nsteps:\n  - {at: 10s, http: reset}\n', { tls })
    onTestFinished(() => rehearsal.close())
    const home = svcHome()
    onTestFinished(() => home.remove())
    const ca = ['--ca-file', certificates.caFile]
    rehearsal.at(5)
    const url = rehearsal.url.replace('127.0.0.1', 'localhost')
    expect((await home.run(['health', '--server', url, '-t', 'Sql', ...ca])).code).toBe(3)
    rehearsal.at(10)
    const { code, stderr } = await home.run(['health', '--server', url, '-t', 'Sql', ...ca])
    expect([code, stderr]).toEqual([8, expect.stringMatching(/reset|closed/)])
  })
})

const readIfFile = (pem: string): string => (pem.startsWith('-----') ? pem : readFileSync(pem, 'utf8'))

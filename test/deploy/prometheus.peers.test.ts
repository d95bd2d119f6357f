import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { type Runtime, serveDefaults } from '../../src/core/protocol/service/service.ts'
import { type RunningServer, startServer } from '../../src/core/server/index.ts'
import { openCore } from '../../src/core/service/open.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { type PostgresServer, postgresMissing, startPostgres, tlsSettings } from '../support/servers/postgres.ts'
import {
  type PrometheusServer,
  prometheusMissing,
  promtool,
  promtoolMissing,
  shippedFolder,
  shippedForPrometheus,
  startPrometheus,
} from '../support/servers/prometheus.ts'
import { asServer, remove, serverFolder } from '../support/servers/server.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

peerSuite(promtoolMissing, 'what is shipped for Prometheus', () => {
  test.each([
    ['the rules are valid', 'check', 'rules', 'svc-rules.yml'],
    ['the rules do what their tests say', 'test', 'rules', 'svc-rules-test.yml'],
    ['the configuration is valid', 'check', 'config', 'prometheus.yml'],
  ])('%s', (_, ...args) => {
    const { status, stdout, stderr } = promtool(args, '', shippedFolder)
    expect(`${stdout}${stderr}`).not.toMatch(/FAILED/)
    expect(status).toBe(0)
  })
})

/** The shipped files, with everything that takes minutes in a second. */
function quick(port: number): Readonly<Record<string, string>> {
  const files = shippedForPrometheus(`'127.0.0.1:${port}'`)
  const rules = files['svc-rules.yml'] ?? ''
  const quickRules = rules.replace(/for: \d+[mh]/g, 'for: 1s').replace(/keep_firing_for: \S+/g, 'keep_firing_for: 1s')
  return { ...files, 'svc-rules.yml': quickRules }
}

peerSuite(
  prometheusMissing ?? postgresMissing ?? opensslMissing(),
  'a real Prometheus that scrapes svc serve with the shipped files',
  () => {
    const folder = temporaryFolder()
    let primary: PostgresServer
    let standby: PostgresServer
    let certificates: Certificates
    let tlsFolder: string | undefined
    let runtime: Runtime
    let server: RunningServer
    let prometheus: PrometheusServer

    beforeAll(async () => {
      certificates = makeCertificates()
      tlsFolder = serverFolder('scraped-tls')
      const tls = tlsSettings(certificates.good, tlsFolder)
      ;({ primary, standby } = await (await startPostgres(tls)).standby())
      const path = join(folder, 'svc.yaml')
      const monitor = `{kind: postgres, name: orders, url: '${primary.url('postgres')}', role: primary, tls: {mode: verify, caFile: '${certificates.caFile}'}}`
      writeFileSync(path, `serve: {every: {Standard: 10s, Advanced: 1h}}\ntypes:\n  Sql:\n    - ${monitor}\n`, {
        mode: 0o600,
      })
      const core = await openCore({
        version: '1.2.3',
        config: await loadConfig({ env: {}, platform: process.platform, home: folder, path }),
        store: join(folder, 'svc.db'),
        shared: true,
        details: 'signed-in',
      })
      runtime = core.runtime
      server = await startServer({
        ...core,
        // That of Prometheus here.
        options: { ...serveDefaults, localAccounts: [String(asServer.uid ?? process.getuid?.())] },
        host: '127.0.0.1',
        port: 0,
        tls: undefined,
        log: () => {},
      })
      // As `svc serve` does: the schedule begins when the server answers.
      runtime.answersAt?.(server.url)
      prometheus = await startPrometheus(quick(server.port))
    })
    afterAll(async () => {
      await prometheus?.remove()
      await server?.stop()
      await runtime?.close()
      await standby?.remove()
      await primary?.remove()
      certificates?.remove()
      if (tlsFolder !== undefined) remove(tlsFolder)
    })

    const value = async (expression: string): Promise<number | undefined> =>
      (await prometheus.query(expression))[0]?.value

    test('W22 without any caller it has latency, connections, replication lag and the expiry of the certificate as values, with their thresholds', async () => {
      const of = (check: string): string => `{type="Sql",monitor="postgres orders",check="${check}"}`
      await until(async () => (await value(`svc_check_value_seconds${of('query')}`)) !== undefined, 60_000, 500)
      expect(await prometheus.scrapeErrors()).toEqual([''])
      expect(await value('svc_runs_total{trigger="caller"}')).toBeUndefined()
      expect(await value('svc_schedule_up')).toBeDefined()
      expect(await value(`svc_check_value_seconds${of('query')}`)).toBeGreaterThan(0)
      expect(await value(`svc_check_value_ratio${of('connections')}`)).toBeGreaterThan(0)
      expect(await value(`svc_check_value_seconds${of('replication_lag')}`)).toBeGreaterThanOrEqual(0)
      const expiry = new X509Certificate(certificates.good.cert).validToDate.getTime() / 1_000
      expect(await value(`svc_check_value_timestamp_seconds${of('certificate')}`)).toBe(expiry)
      const limit = of('replication_lag').replace('}', ',severity="failure",bound="upper"}')
      expect(await value(`svc_check_threshold_seconds${limit}`)).toBe(30)
      await until(async () => (await value('type:svc_checks_failed:count{type="Sql"}')) === 0, 60_000, 500)
    }, 120_000)

    test('an alert fires when PostgreSQL stops, names the fault, and resolves when it restarts', async () => {
      const failed = async () =>
        (await prometheus.alerts()).filter(({ labels }) => labels['alertname'] === 'SvcCheckFailed')
      expect(await failed()).toEqual([])
      await primary.stop()
      const [alert] = await until(
        async () => {
          const firing = (await failed()).filter(({ state }) => state === 'firing')
          return firing.length > 0 && firing
        },
        120_000,
        500,
      )
      expect(alert?.labels).toMatchObject({ type: 'Sql', monitor: 'postgres orders', check: 'connect' })
      expect(alert?.annotations).toEqual({ summary: 'Sql postgres orders: connect failed', fault: 'refused' })
      primary = await primary.restart()
      await until(async () => (await failed()).length === 0, 120_000, 500)
    }, 240_000)
  },
)

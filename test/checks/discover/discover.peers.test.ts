import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { discover } from '../../../src/core/checks/discover/index.ts'
import { openPorts } from '../../../src/core/checks/discover/ports.ts'
import { loadConfig } from '../../../src/core/config/index.ts'
import { proposedFile } from '../../../src/core/config/proposed.ts'
import { openCore } from '../../../src/core/service/open.ts'
import { makeCertificates } from '../../support/servers/certs.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../../support/servers/mariadb.ts'
import { type Nginx, nginxMissing, startNginx } from '../../support/servers/nginx.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { type RedisServer, redisMissing, startRedis } from '../../support/servers/redis.ts'
import { type Slapd, slapdMissing, startSlapd } from '../../support/servers/slapd.ts'
import { startVsftpd, type Vsftpd, vsftpdMissing } from '../../support/servers/vsftpd.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'

const signal = (): AbortSignal => AbortSignal.timeout(25_000)
const here = (...ports: readonly number[]) => ({ ports: ports.map((port) => ({ host: '127.0.0.1', port })) })

const missing = [postgresMissing, redisMissing, nginxMissing, vsftpdMissing, mariadbMissing, slapdMissing].find(
  (why) => why !== undefined,
)
peerSuite(missing, 'a machine with real servers on it', () => {
  const folder = temporaryFolder()
  let [postgres, mariadb, redis, guarded, nginx, vsftpd, slapd] = [] as unknown as [
    PostgresServer,
    MariadbServer,
    RedisServer,
    RedisServer,
    Nginx,
    Vsftpd,
    Slapd,
  ]
  beforeAll(async () => {
    const certificates = makeCertificates()
    ;[postgres, mariadb, redis, guarded, nginx, vsftpd, slapd] = await Promise.all([
      startPostgres(),
      startMariadb(),
      startRedis(),
      startRedis({ settings: ['--requirepass', 'a word'], password: 'a word' }),
      startNginx(certificates.otherHost),
      startVsftpd(),
      startSlapd(),
    ])
    certificates.remove()
  }, 120_000)
  afterAll(() => Promise.all([postgres, mariadb, redis, guarded, nginx, vsftpd, slapd].map((one) => one.remove())))
  const ports = (): readonly number[] => [
    postgres.port,
    mariadb.port,
    redis.port,
    guarded.port,
    nginx.port,
    nginx.tlsPort,
    vsftpd.port,
    slapd.port,
  ]

  test('the system reports that they listen', async () => {
    const open = (await openPorts()).map(({ port }) => port)
    expect(open).toEqual(expect.arrayContaining([...ports()]))
  })

  test('each is recognized by its protocol, whatever its port, without a sign-in', async () => {
    const { proposals, others } = await discover(signal(), here(...ports()))
    expect(others).toEqual([])
    expect(new Set(proposals.map(({ type, entry }) => `${type} ${entry.kind} ${entry.name}`))).toEqual(
      new Set([
        `Sql tcp postgres-${postgres.port}`,
        `Sql tcp mysql-${mariadb.port}`,
        `Batch redis redis-${redis.port}`,
        `Batch tcp redis-${guarded.port}`,
        `App http nginx-${nginx.port}`,
        `App http nginx-${nginx.tlsPort}`,
        `Ftp ftp ftp-${vsftpd.port}`,
        `Identity ldap ldap-${slapd.port}`,
      ]),
    )
    expect(postgres.log()).not.toMatch(/authentication|FATAL/)
  })

  test('the proposed file is valid, works unchanged, and contains no secret', async () => {
    const { proposals } = await discover(signal(), here(...ports()))
    const file = await proposedFile(proposals, ['a proposal'])
    writeFileSync(join(folder, 'svc.yaml'), file, { mode: 0o600 })
    const config = await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
    expect(config.warnings).toEqual([])
    const { service, runtime } = await openCore({
      version: '1.2.3',
      config,
      store: undefined,
      shared: false,
      details: 'anyone',
    })
    onTestFinished(() => runtime.close())

    for (const type of ['Sql', 'Batch', 'App', 'Ftp', 'Identity'] as const) {
      for (const mode of ['Basic', 'Standard'] as const) {
        const answer = await service.healthCheck(
          { ExecutionMode: mode, ServerType: type },
          { caller: { kind: 'local', account: 'tester' }, correlationId: 'discover', signal: signal() },
        )
        const configured = (answer.MonitorSummaries ?? []).filter(({ MonitorName }) => MonitorName !== 'host')
        expect(
          configured.filter(({ Status }) => Status !== 'Success'),
          `${type} ${mode}`,
        ).toEqual([])
        expect(configured.length).toBeGreaterThan(0)
      }
    }
  })

  test('deeper checks are below as comments, and are valid when they replace the basic ones', async () => {
    const { proposals } = await discover(signal(), here(postgres.port, guarded.port, vsftpd.port))
    const file = await proposedFile(proposals, [])
    expect(file).toContain(`    # - kind: postgres\n    #   name: postgres-${postgres.port}`)
    const deeper = file
      .split('\n')
      .filter((line) => /^(?:types:| {2}\w| {4}# [ -] )/.test(line))
      .map((line) => line.replace(/^ {4}# /, '    '))
      .join('\n')
    writeFileSync(join(folder, 'svc.yaml'), deeper, { mode: 0o600 })
    const config = await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
    expect(
      Object.values(config.types)
        .flatMap(({ monitors }) => monitors.map(({ kind }) => kind.name))
        .sort(),
    ).toEqual(['ftp', 'postgres', 'redis'])
  })
})

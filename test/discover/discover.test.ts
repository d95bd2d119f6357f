import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { proposedFile } from '../../src/core/config/proposed.ts'
import { discover } from '../../src/core/discover/index.ts'
import { openPorts, parseListening } from '../../src/core/discover/ports.ts'
import { openCore } from '../../src/core/open.ts'
import { makeCertificates } from '../support/certs.ts'
import { blackHole, echo, peer, speaks } from '../support/faults.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../support/mariadb.ts'
import { type Nginx, nginxMissing, startNginx } from '../support/nginx.ts'
import { peerSuite } from '../support/peer.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/postgres.ts'
import { type RedisServer, redisMissing, startRedis } from '../support/redis.ts'
import { type Slapd, slapdMissing, startSlapd } from '../support/slapd.ts'
import { startVsftpd, type Vsftpd, vsftpdMissing } from '../support/vsftpd.ts'

const signal = (): AbortSignal => AbortSignal.timeout(25_000)
const here = (...ports: readonly number[]) => ({ ports: ports.map((port) => ({ host: '127.0.0.1', port })) })

const missing = [postgresMissing, redisMissing, nginxMissing, vsftpdMissing, mariadbMissing, slapdMissing].find(
  (why) => why !== undefined,
)
peerSuite(missing, 'a machine with real servers on it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-discover-'))
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
      startNginx(certificates.wrongHost),
      startVsftpd(),
      startSlapd(),
    ])
    certificates.remove()
  }, 120_000)
  afterAll(async () => {
    await Promise.all([postgres, mariadb, redis, guarded, nginx, vsftpd, slapd].map((one) => one.remove()))
    rmSync(folder, { recursive: true, force: true })
  })
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
    try {
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
    } finally {
      await runtime.close()
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

describe('peers of no known kind', () => {
  test('one that sends nothing, one that echoes and one that hangs up are reported as not recognized', async () => {
    await using silent = await peer(blackHole)
    await using parrot = await peer(echo)
    await using rude = await peer((socket) => socket.destroy())
    await using hostile = await peer(speaks('\x1b]0;owned\x07 hello\n'))
    const { proposals, others } = await discover(signal(), here(silent.port, parrot.port, rude.port, hostile.port))
    expect(proposals).toEqual([])
    expect(new Set(others.map(({ port }) => port))).toEqual(
      new Set([silent.port, parrot.port, rude.port, hostile.port]),
    )
    expect(JSON.stringify(others)).not.toContain('owned')
    await vi.waitFor(() => expect([silent, parrot, rude, hostile].map((one) => one.open())).toEqual([0, 0, 0, 0]))
  })

  test('ports of svc itself are omitted', async () => {
    await using own = await peer(speaks('SSH-2.0-own\r\n'))
    expect(await discover(signal(), { ...here(own.port), skip: [own.port] })).toEqual({ proposals: [], others: [] })
  })

  test('no findings give a valid file', async () => {
    expect(await proposedFile([], ['empty'])).toBe('# empty\ntypes: {}\n')
  })
})

test('the table of the kernel is read: listening sockets alone, wildcards as loopback, IPv4 in IPv6', () => {
  const line = (address: string, state: string): string =>
    `   0: ${address} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000`
  const table = [
    '  sl  local_address rem_address   st',
    line('0100007F:1538', '0A'),
    line('00000000:0050', '0A'),
    line('0100007F:C001', '01'),
    line('00000000000000000000000000000000:0016', '0A'),
    line('00000000000000000000000001000000:0CEA', '0A'),
    line('0000000000000000FFFF00000100007F:18EB', '0A'),
  ].join('\n')
  expect(parseListening(table)).toEqual([
    { host: '127.0.0.1', port: 5432 },
    { host: '127.0.0.1', port: 80 },
    { host: '::1', port: 22 },
    { host: '::1', port: 3306 },
    { host: '127.0.0.1', port: 6379 },
  ])
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { tryProposals } from '../../../src/cli/setup/discovery.ts'
import { discover, type Proposal } from '../../../src/core/checks/discover/index.ts'
import { loadConfig } from '../../../src/core/config/index.ts'
import { proposedFile } from '../../../src/core/config/proposed.ts'
import { http, peer, replies, speaks } from '../../support/faults/faults.ts'
import { type Apache, apacheMissing, startApache } from '../../support/servers/apache.ts'
import { type Bind, bindMissing, startBind } from '../../support/servers/bind.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { nginxMissing, startNginx } from '../../support/servers/nginx.ts'
import { type RedisServer, redisMissing, startRedis } from '../../support/servers/redis.ts'
import { type Sentinel, sentinelMissing, startSentinel } from '../../support/servers/sentinel.ts'
import { slapdMissing, startSlapd } from '../../support/servers/slapd.ts'
import { startSmtp } from '../../support/servers/smtp.ts'
import { startVsftpd, vsftpdMissing } from '../../support/servers/vsftpd.ts'
import { mongoPeer } from '../../support/simulated/mongo.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const signal = (): AbortSignal => AbortSignal.timeout(28_000)
const here = (...ports: readonly number[]) => ({ ports: ports.map((port) => ({ host: '127.0.0.1', port })) })
const proposed = async (...ports: readonly number[]): Promise<readonly Proposal[]> =>
  await tryProposals((await discover(signal(), here(...ports))).proposals, signal())
/** The svc.yaml of proposals, as svc reads it. */
async function configured(proposals: readonly Proposal[]) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-tried-'))
  try {
    const file = await proposedFile(proposals, [])
    writeFileSync(join(folder, 'svc.yaml'), file, { mode: 0o600 })
    const { types } = await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
    return { file, monitors: Object.values(types).flatMap(({ monitors }) => monitors.map(({ name }) => name)) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const missing =
  apacheMissing ??
  bindMissing ??
  nginxMissing ??
  redisMissing ??
  sentinelMissing ??
  slapdMissing ??
  vsftpdMissing ??
  opensslMissing()

peerSuite(missing, 'proposals that have run', () => {
  let [certificates, apache, bind, primary, sentinel] = [] as unknown as [
    Certificates,
    Apache,
    Bind,
    RedisServer,
    Sentinel,
  ]
  beforeAll(async () => {
    certificates = makeCertificates()
    ;[apache, bind, primary] = await Promise.all([startApache(certificates.selfSigned), startBind(), startRedis()])
    sentinel = await startSentinel(primary, 1)
  }, 120_000)
  afterAll(async () => {
    await Promise.all([apache, bind, sentinel, primary].map((one) => one?.remove()))
    certificates?.remove()
  })

  test('TLS ports of Apache httpd and nginx are https, with the fingerprint of a private certificate', async () => {
    const nginx = await startNginx(certificates.good)
    onTestFinished(() => nginx.remove())

    const [one, other] = await proposed(apache.tlsPort, nginx.tlsPort)
    for (const proposal of [one, other]) {
      expect(proposal?.problem).toBeUndefined()
      expect(proposal?.entry).toMatchObject({
        kind: 'http',
        url: expect.stringMatching(/^https:/),
        fingerprint: expect.stringMatching(/^[0-9A-F]{2}(:[0-9A-F]{2}){31}$/),
      })
    }
  })

  test('an expired certificate is never green: its proposal is a comment with the reason', async () => {
    const nginx = await startNginx(certificates.expired)
    onTestFinished(() => nginx.remove())

    const all = await proposed(nginx.port, nginx.tlsPort)
    const { file, monitors } = await configured(all)
    expect(monitors).toEqual([`http nginx-${nginx.port}`])
    expect(file).toMatch(/ {4}# Does not work as it is: connect: .*: certificate "svc.test" expired on /)
    expect(file).toContain(`    # - kind: http\n    #   name: nginx-${nginx.tlsPort}`)
  })

  test('a file in which nothing works is valid and has no monitor', async () => {
    await using gone = await peer(replies(http(404)))
    const all = await proposed(gone.port)
    const { file, monitors } = await configured(all)
    expect(monitors).toEqual([])
    expect(file).toMatch(/^types: \{\}\n {2}# App:\n {4}# Does not work as it is: status: .* answered 404/)
  })

  test('a page behind a sign-in needs an account', async () => {
    await using guarded = await peer(replies(http(401, '', { 'WWW-Authenticate': 'Basic realm="x"' })))
    expect((await proposed(guarded.port))[0]?.problem).toMatch(/^it needs an account: status: .*\(Basic\)/)
  })

  test('an FTP server with TLS is explicit, and its private certificate is a reason', async () => {
    const vsftpd = await startVsftpd({ certificate: certificates.good })
    onTestFinished(() => vsftpd.remove())

    expect(await proposed(vsftpd.port)).toMatchObject([
      { entry: { kind: 'ftp', tls: 'explicit' }, problem: expect.stringMatching(/^TLS: .*caFile lacks a private CA/) },
    ])
  })

  test('a Sentinel is recognized as such', async () => {
    const port = Number(new URL(sentinel.url).port)
    expect(await proposed(port)).toMatchObject([
      { entry: { kind: 'redis' }, note: expect.stringContaining('a Redis Sentinel') },
    ])
  })

  test('a directory under TLS is ldaps; one that shows nothing without a sign-in is a comment', async () => {
    const slapd = await startSlapd({
      tls: certificates.selfSigned,
      database: ['access to * by anonymous auth by users read'],
    })
    onTestFinished(() => slapd.remove())

    const all = await proposed(slapd.port, slapd.tlsPort)
    expect(new Set(all.map(({ entry }) => entry.url))).toEqual(new Set([slapd.url, slapd.ldaps]))
    const secured = all.find(({ entry }) => entry.url === slapd.ldaps)
    expect(secured?.entry.fingerprint).toMatch(/^[0-9A-F]{2}(:[0-9A-F]{2}){31}$/)
    for (const { problem, deeper } of all) {
      expect(problem).toMatch(/^search: /)
      expect(deeper).toMatchObject({ kind: 'ldap', user: expect.any(String) })
    }
  })

  test('a name server is recognized, and a name that it does not serve is the reason', async () => {
    expect(await proposed(bind.port)).toMatchObject([
      { entry: { kind: 'dns', server: bind.server, query: 'localhost' }, problem: expect.stringContaining('REFUSED') },
    ])
  })
})

describe('servers on unusual ports', () => {
  test('MongoDB (simulated) is recognized on any port', async () => {
    await using mongo = await mongoPeer()
    const proposals = await proposed(mongo.port)
    expect(proposals).toMatchObject([{ type: 'Mongo', deeper: { kind: 'mongo' } }])
    expect(proposals[0]?.problem).toBeUndefined()
  })

  test('a mail server that offers STARTTLS must use it, and one that does not (simulated) is without TLS', async () => {
    await using plain = await peer(speaks('220 mail.test ESMTP\r\n'))
    await using mail = await startSmtp()
    const { proposals } = await discover(signal(), here(plain.port, mail.port))
    expect(new Map(proposals.map(({ entry }) => [entry.port, entry.tls]))).toEqual(
      new Map([
        [plain.port, 'off'],
        [mail.port, 'starttls'],
      ]),
    )
  })
})

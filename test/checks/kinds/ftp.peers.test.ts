import { existsSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import { probeFile } from '../../../src/core/checks/folders/index.ts'
import ftp from '../../../src/core/checks/kinds/ftp/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import {
  checked,
  checksOf,
  ofRunner,
  problemsOf,
  type RunKindOptions,
  runKind,
  secret,
} from '../../support/engine/run-kind.ts'
import { proxy } from '../../support/faults/proxy.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { sessionsLeft } from '../../support/servers/own-daemon.ts'
import { startVsftpd, type Vsftpd, vsftpdMissing, vsftpdPassword } from '../../support/servers/vsftpd.ts'
import { peerSuite } from '../../support/suite/peer.ts'

type FtpSettings = Values<typeof ftp.settings>
type Overrides = Partial<FtpSettings>
const host = '127.0.0.1'

peerSuite(vsftpdMissing ?? opensslMissing(), 'ftp against vsftpd', () => {
  let certificates: Certificates
  let server: Vsftpd
  let plain: Vsftpd
  beforeAll(async () => {
    certificates = makeCertificates()
    server = await startVsftpd({ certificate: certificates.good })
    plain = await startVsftpd()
  })
  afterAll(async () => {
    await server.remove()
    await plain.remove()
    certificates.remove()
  })
  const run = (overrides: Overrides = {}, mode: ExecutionMode = 'Standard', options: RunKindOptions = {}) =>
    runKind(
      ftp,
      {
        host,
        port: server.port,
        caFile: certificates.caFile,
        username: 'ftp',
        password: secret(vsftpdPassword),
        ...overrides,
      },
      mode,
      options,
    )
  const clear = (overrides: Overrides = {}, mode: ExecutionMode = 'Standard', options: RunKindOptions = {}) =>
    runKind(
      ftp,
      { host, port: plain.port, tls: 'off', username: 'ftp', password: secret(vsftpdPassword), ...overrides },
      mode,
      options,
    )
  const writes: Overrides = { folder: '/incoming', files: { limit: 5 }, allowWrites: true, probeFolder: 'incoming' }

  describe('a healthy server', () => {
    test('each mode runs its checks over explicit TLS, and leaves no session and no file', async () => {
      const basic = await run(writes, 'Basic')
      expect(problemsOf(basic)).toEqual([])
      expect(checksOf(basic)).toEqual(['banner', 'TLS'])
      const standard = await run(writes, 'Standard')
      expect(problemsOf(standard)).toEqual([])
      expect(checksOf(standard)).toEqual(['banner', 'TLS', 'certificate', 'sign-in', 'PWD', 'EPSV', 'PASV'])
      const advanced = await run({ ...writes, throughput: { limit: 1 } }, 'Advanced')
      expect(problemsOf(advanced)).toEqual([])
      const all = ftp.checks.map((check) => check.name)
      expect(checksOf(advanced)).toEqual(all.filter((name) => !['data connection', ...ofRunner].includes(name)))
      expect(advanced.every((result) => result.address === server.address)).toBe(true)
      expect(readdirSync(server.incoming)).toEqual([])
      expect(await sessionsLeft(server)).toBe(0)
    })
    test('it reports what it observes', async () => {
      const results = await run(writes, 'Advanced')
      const textOf = (check: string): string => checked(results, check).message
      expect(textOf('banner')).toMatch(
        /^127\.0\.0\.1:\d+ greeted with "220 \(vsFTPd [\d.]+\)" in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/,
      )
      expect(textOf('TLS')).toMatch(/accepts AUTH TLS and speaks TLSv1\.[23], certificate trusted$/)
      expect(textOf('sign-in')).toMatch(/^signed in to .* as "ftp" in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/)
      expect(textOf('PWD')).toBe('the working folder is "/"')
      expect(textOf('EPSV')).toMatch(/^EPSV returned port \d+, 1 entry listed in /)
      expect(textOf('PASV')).toMatch(/^PASV returned 127\.0\.0\.1:\d+, 1 entry listed in /)
      expect(textOf('round trip')).toMatch(/^64 KiB written in .* and read back in .*, same SHA-256$/)
      expect(textOf('oldest file')).toBe('no file is waiting in "/incoming"')
    })
    test('without allowWrites nothing is written, and without a folder none is listed', async () => {
      const results = await run({}, 'Advanced')
      expect(problemsOf(results)).toEqual([])
      expect(checksOf(results)).toEqual(checksOf(await run()))
    })
    test('implicit TLS: everything is encrypted from the first byte', async () => {
      const implicit = await startVsftpd({ certificate: certificates.good, settings: { implicit_ssl: 'YES' } })
      onTestFinished(() => implicit.remove())

      const results = await run({ ...writes, port: implicit.port, tls: 'implicit' }, 'Advanced')
      expect(problemsOf(results)).toEqual([])
      expect(checksOf(results).slice(0, 3)).toEqual(['TLS', 'banner', 'certificate'])
      expect(await sessionsLeft(implicit)).toBe(0)
    })
    test('in clear text on this machine, and the sign-in reports that', async () => {
      const results = await clear(writes, 'Advanced')
      expect(problemsOf(results)).toEqual([])
      await finds(results, 'sign-in: …as "ftp" (unencrypted) in…')
      expect(checksOf(results)).not.toContain('TLS')
    })
    test('with only the older ciphers the data connection resumes the session too', async () => {
      const old = await startVsftpd({ certificate: certificates.good, settings: { ssl_ciphers: 'ECDHE+AESGCM' } })
      onTestFinished(() => old.remove())

      expect(problemsOf(await run({ ...writes, port: old.port }, 'Advanced'))).toEqual([])
    })
    test('only leftovers of svc are swept', async () => {
      const old = probeFile(1, new Date(Date.now() - 2 * 3_600_000))
      const young = probeFile(1, new Date())
      const others = [young.name, 'svc-probe-of-somebody.tmp', 'report.xml']
      for (const name of [old.name, old.renamed, ...others]) {
        writeFileSync(join(plain.incoming, name), 'x')
        utimesSync(join(plain.incoming, name), 0, 0)
      }
      await finds(
        clear({ allowWrites: true, probeFolder: '/incoming' }, 'Advanced'),
        'sweep: 2 of 2 leftovers of earlier round trips deleted',
      )
      expect(readdirSync(plain.incoming).sort()).toEqual([...others].sort())
      const { rmSync } = await import('node:fs')
      for (const name of others) rmSync(join(plain.incoming, name))
    })
    test('the oldest file of the drop folder is found by its own date, to the second', async () => {
      const now = Date.now()
      for (const [name, minutes] of [
        ['b.xml', 20.5],
        ['a.xml', 20],
        ['old.txt', 600],
      ] as const) {
        writeFileSync(join(plain.incoming, name), 'x')
        utimesSync(join(plain.incoming, name), new Date(), new Date(now - minutes * 60_000))
      }
      const results = await clear({ folder: 'incoming', ending: '.xml', files: { limit: 1 } }, 'Advanced')
      const oldest = checked(results, 'oldest file')
      expect(oldest).toMatchObject({ status: 'warning', measurement: { unit: 'milliseconds', limit: 3_600_000 } })
      expect(oldest.message).toMatch(
        /^oldest file of "incoming", "b\.xml", has waited 20\.\d min \(warn 15 min, fail 1 h\)$/,
      )
      expect(oldest.measurement?.value).toBeGreaterThanOrEqual(20.5 * 60_000 - 2_000)
      expect(oldest.measurement?.value).toBeLessThan(20.5 * 60_000 + 30_000)
      await finds(results, ['backlog failed', { measurement: { value: 2 } }])
      const { rmSync } = await import('node:fs')
      for (const name of ['a.xml', 'b.xml', 'old.txt']) rmSync(join(plain.incoming, name))
    })
  })

  describe('a server that refuses the sign-in', () => {
    test('a server that requires TLS is reported as such, and not as a wrong password', () =>
      finds(run({ tls: 'off', caFile: undefined }), [
        'sign-in (tls): …requires TLS to sign in: "530…',
        { details: ['next: tls: explicit'] },
      ]))
    test('a server without TLS gets no password, and the message names the remedy', async () => {
      const result = checked(await run({ port: plain.port }), 'TLS')
      expect(result).toMatchObject({ status: 'failed', fault: 'tls' })
      expect(result.message).toMatch(/does not offer AUTH TLS: "530 Please login with USER and PASS\."$/)
      expect(result.details?.join()).toContain('tls: off')
    })
    test('a private CA that is not configured is a TLS fault', async () => {
      const results = await run({ caFile: undefined })
      expect(checksOf(results)).toEqual(['banner', 'TLS'])
      await finds(results, 'TLS (tls): …caFile…')
    })
    test('a server that sends clear text (500 OOPS) under TLS is reported, with a hint', async () => {
      const broken = await startVsftpd({ certificate: certificates.good, settings: { anon_root: '/nonexistent' } })
      onTestFinished(() => broken.remove())

      const result = checked(await run({ port: broken.port }), 'sign-in')
      expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
      expect(result.message).toContain('aborted the encrypted connection during PASS')
      expect(result.details?.join()).toContain('500 OOPS')
    })
    test('slow: answers that are each 150 ms late exceed the threshold, with the value', async () => {
      await using slow = await proxy(plain.port, 150)
      const results = await clear({ port: slow.port, latency: { warn: 50, limit: 120 }, passive: 'EPSV' })
      for (const check of ['banner', 'sign-in']) {
        expectResult(checked(results, check), 'failed (threshold)', { measurement: { limit: 120 } })
        expect(checked(results, check).measurement?.value).toBeGreaterThan(140)
      }
    })
  })

  describe('data connections', () => {
    test('a wrong passive address is distinguished from EPSV, which works', async () => {
      const otherPassword = await startVsftpd({ settings: { pasv_address: '127.0.0.2' } })
      onTestFinished(() => otherPassword.remove())

      await finds(clear({ port: otherPassword.port }), 'EPSV ok', [
        'PASV failed (refused)',
        /^signed in after [\d.]+ m?s, PASV returned 127\.0\.0\.2:\d+, connect was refused in [\d.]+ m?s \(control peer 127\.0\.0\.1\): the same port of the control peer accepts connections, so the passive address is wrong, not the account$/,
      ])
    })
    test('a folder without write permission fails the round trip and leaves nothing to delete', async () => {
      const results = await clear({ allowWrites: true }, 'Advanced')
      await finds(results, 'round trip failed (data): …answered STOR with "553 Could not create file."…')
      expect(checksOf(results)).not.toContain('delete')
      await finds(results, 'sweep ok')
    })
    test('a missing drop folder fails its check, and the round trip continues', async () => {
      await finds(clear({ ...writes, folder: 'gone' }, 'Advanced'), 'oldest file failed (data)', 'round trip ok')
      expect(existsSync(join(plain.root, 'gone'))).toBe(false)
    })
  })
})

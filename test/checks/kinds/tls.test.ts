import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Threshold } from '../../../src/core/base/settings/index.ts'
import { certificateSetting, evaluateExpiry } from '../../../src/core/checks/engine/index.ts'
import tls from '../../../src/core/checks/kinds/tls.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectResult, finds, findsOnly } from '../../support/engine/finds.ts'
import { checked, type RunKindOptions, runKind } from '../../support/engine/run-kind.ts'
import { type Behaviour, blackHole, peer, replies, reset, settled, speaks } from '../../support/faults/faults.ts'
import {
  type Certificates,
  makeCertificates,
  opensslMissing,
  type ServerCertificate,
} from '../../support/servers/certs.ts'
import { suiteWith } from '../../support/suite/peer.ts'

suiteWith(opensslMissing(), 'tls', () => {
  const host = '127.0.0.1'
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made.remove())

  type Settings = Parameters<typeof runKind<typeof tls.settings>>[1]
  const look = async (server: ServerCertificate, settings: Settings = {}, options: RunKindOptions = {}) => {
    await using there = await peer(blackHole, { tls: server })
    const monitorSettings = { host, port: there.port, servername: 'svc.test', caFile: made.caFile, ...settings }
    return await runKind(tls, monitorSettings, 'Standard', options)
  }

  describe('tls certificates', () => {
    test('a valid chain is ok in each check', async () => {
      const results = await look(made.good)
      await findsOnly(results, 'handshake ok', 'expiry ok', 'trust ok', 'host name ok', 'protocol ok')
      await finds(results, ['expiry', /certificate "svc.test" expires on \d{4}-\d\d-\d\d \d\d:\d\d UTC, in 89.9 d/])
      expect(checked(results, 'expiry').details).toEqual([
        expect.stringContaining('issuer certificate "Svc Test Issuer" expires on'),
      ])
    })

    test('Basic only completes the handshake', async () => {
      await using there = await peer(blackHole, { tls: made.expired })
      await findsOnly(runKind(tls, { host, port: there.port }), 'handshake ok')
    })

    test('an expired certificate is dated, and its trust is evaluated without its dates', async () => {
      const results = await look(made.expired)
      await finds(results, ['expiry failed (tls)', /: certificate "svc.test" expired on \d{4}-.* UTC, 2 d ago$/])
      expect(checked(results, 'expiry').measurement?.value).toBeLessThan(0)
      await finds(results, 'trust ok: …ignoring dates…')
    })

    test('an expired certificate of an unknown CA fails in trust too', () =>
      finds(look(made.expired, { caFile: undefined }), 'expiry failed', 'trust failed (tls)'))

    test('an expired intermediate is found behind a valid certificate', () =>
      finds(look(made.expiredIntermediate), [
        'expiry failed (tls)',
        /issuer certificate "Svc Old Issuer" expired on .* 7 d ago/,
      ]))

    test.each(['withOldRoot', 'withEndingRoot'] as const)(
      'H18 an old root that no trusted path needs is a note (%s)',
      async (name) => {
        const results = await look(made[name])
        await finds(results, ['expiry ok', /certificate "svc.test" expires on/], 'trust ok')
        expect(checked(results, 'expiry').details?.at(-1)).toMatch(
          /^issuer certificate "Svc Test Root" expire.*: this machine trusts the chain without it, so remove it from/,
        )
        // Without a trusted path, every certificate counts.
        await finds(look(made[name], { caFile: undefined }), 'expiry failed', 'trust failed (tls)')
      },
    )

    test('a certificate that is not valid yet reports its first day', () =>
      finds(look(made.notYetValid), 'expiry failed (tls): …is not valid before…'))

    test('five days left warn, two fail', async () => {
      await finds(look(made.fiveDays), ['expiry warning', { measurement: { unit: 'days' } }])
      await finds(look(made.twoDays), [
        'expiry failed (threshold)',
        /, in 2\.4 d \(warn below 20 d, fail below 3 d\)$/,
        { measurement: { limit: 3 } },
      ])
    })

    test('a wrong host name is reported with the names of the certificate', () =>
      finds(look(made.otherHost), 'host name failed (tls): …is not for svc.test, but for elsewhere.test…'))

    test('an address is compared with the addresses of the certificate', async () => {
      await finds(look(made.good, { servername: undefined }), 'host name ok')
      await finds(look(made.otherHost, { servername: undefined }), 'host name failed')
    })

    test('a self-signed certificate is reported as such, and trusted when caFile contains it', async () => {
      await finds(look(made.selfSigned), [
        'trust failed (tls): …"self.test" is self-signed…',
        { details: ['DEPTH_ZERO_SELF_SIGNED_CERT'] },
      ])
      await finds(look(made.selfSigned, { caFile: made.selfSignedFile }), 'trust ok')
    })

    test('a missing intermediate is distinguished from a certificate that is not trusted', () =>
      finds(
        look(made.withoutIntermediate),
        'trust failed (tls): …issuer "Svc Test Issuer" is unknown here and not sent by the server…',
      ))

    test('verify: false leaves the dates and the version', async () => {
      const results = await look(made.selfSigned, { verify: false })
      expect(results.map((result) => result.check)).toEqual(['handshake', 'expiry', 'protocol'])
    })

    test('a caFile extends the trust of this machine and replaces nothing', async () => {
      const before = getCACertificates('default')
      try {
        setDefaultCACertificates([made.ca])
        await finds(look(made.good, { caFile: made.selfSignedFile }), 'trust ok')
        await finds(look(made.good, { caFile: undefined }), 'trust ok')
        await finds(look(made.expired, { caFile: made.selfSignedFile }), 'trust ok')
      } finally {
        setDefaultCACertificates(before)
      }
      await finds(look(made.good, { caFile: made.selfSignedFile }), 'trust failed')
    })

    test('a subject with escape sequences never reaches a terminal unescaped', async () => {
      const results = await look(made.hostile)
      await finds(results, 'expiry: …evil…')
      expect(JSON.stringify(results)).not.toMatch(/\\u00(?:0|1|9)|\x1b/)
    })

    test('a caFile that is missing or empty is named', async () => {
      const missing = await look(made.good, { caFile: '/nowhere/ca.pem' })
      expect(missing).toEqual([expect.objectContaining({ status: 'failed', fault: 'data' })])
      expect(missing[0]?.message).toBe('caFile /nowhere/ca.pem does not exist')
      const empty = await look(made.good, { caFile: import.meta.filename })
      expect(empty[0]?.message).toContain('contains no PEM certificate')
    })

    const day = 86_400_000
    const at = new Date('2026-01-01T00:00:00Z')
    const expiryOf = (lifetime: number, days: number, threshold: Threshold) => {
      const to = new Date(at.getTime() + days * day)
      const from = new Date(to.getTime() - lifetime * day)
      const own = { name: 'a', issuer: 'b', from, to, selfSigned: false, isCa: false }
      const observation = {
        address: 'x:1',
        host: 'a',
        protocol: 'TLSv1.3',
        trustError: undefined,
        trustedButForDates: false,
      }
      return evaluateExpiry(
        'expiry',
        { ...observation, certificates: [own], hostError: undefined, pin: undefined, trustedBy: 'caFile' as const, at },
        threshold,
      ).status
    }

    test('values at the boundaries of expiry are ok', () => {
      const status = (days: number) => expiryOf(90, days, certificateSetting.default)
      expect([20, 19.99, 3, 2.99, 0].map(status)).toEqual(['ok', 'warning', 'warning', 'failed', 'failed'])
      expect([20, 19.99].map((days) => expiryOf(30, days, certificateSetting.default))).toEqual(['ok', 'warning'])
    })

    test('H18 the default limits of a certificate for less than 30 days are parts of its lifetime', () => {
      const ofTenDays = (days: number) => expiryOf(10, days, certificateSetting.default)
      expect([9, 2, 1.999, 0.5, 0.499, 0].map(ofTenDays).join(' ')).toBe('ok ok warning warning failed failed')
      const ofAnHour = (minutes: number) => expiryOf(1 / 24, minutes / 1_440, certificateSetting.default)
      expect([59, 12, 11.9, 3, 2.9].map(ofAnHour)).toEqual(['ok', 'ok', 'warning', 'warning', 'failed'])
      expect([9, 2.9].map((days) => expiryOf(10, days, { warn: 20, limit: 3 }))).toEqual(['warning', 'failed'])
    })
  })

  describe('tls protocol', () => {
    test('a server that only supports TLS 1.1 is reported as such', () =>
      finds(
        look({ ...made.good, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' } as ServerCertificate),
        ['protocol failed (tls)', /highest TLS version TLSv1\.1 \(fail below TLSv1\.2\)$/],
        'expiry ok',
      ))

    test('TLS 1.2 is enough unless 1.3 is required', async () => {
      const server = { ...made.good, maxVersion: 'TLSv1.2' } as ServerCertificate
      await finds(look(server), 'protocol ok')
      await finds(look(server, { minVersion: 'TLSv1.3' }), 'protocol failed')
    })

    test('a port without TLS is reported as such', async () => {
      for (const behave of [replies('HTTP/1.1 400 Bad Request\r\n\r\n'), speaks('220 Ready\r\n')]) {
        await using there = await peer(behave)
        await finds(
          runKind(tls, { host, port: there.port }),
          'handshake failed (tls): …does not speak TLS on this port…',
        )
      }
    })

    test('a reset and a hang-up during the handshake are reported', async () => {
      for (const behave of [reset, replies('')]) {
        await using there = await peer(behave)
        await finds(
          runKind(tls, { host, port: there.port }),
          'handshake failed (tls): …closed the connection during the TLS handshake…',
        )
      }
    })

    test('repeated handshakes leave nothing open', async () => {
      expect(await settled('')).toBe('')
      const before = getCACertificates('default')
      await using there = await peer(blackHole, { tls: made.good })
      try {
        setDefaultCACertificates([made.ca])
        await runKind(tls, { host, port: there.port, caFile: made.selfSignedFile }, 'Standard')
      } finally {
        setDefaultCACertificates(before)
      }
      expect(there.connections()).toBe(2)
      expect(await settled('TCPServerWrap 1')).toBe('TCPServerWrap 1')
    })

    test('a slow handshake warns', () =>
      finds(look(made.good, { latency: { warn: 0.01, limit: 5_000 } }), 'handshake warning'))
  })

  describe('tls answer', () => {
    const within = async (behave: Behaviour, settings: Settings, certificate = made.good) => {
      await using there = await peer(behave, { tls: certificate })
      const at = { host, port: there.port, servername: 'svc.test', caFile: made.caFile }
      const inMode = async (mode: ExecutionMode) => await runKind(tls, { ...at, ...settings }, mode, { timeoutMs: 900 })
      const [basic, advanced] = [await inMode('Basic'), await inMode('Advanced')]
      return { basic, advanced, input: there.input() }
    }

    test('H63 sendHex sends its bytes within TLS', async () => {
      const { basic, input } = await within(replies('N'), { sendHex: '00 d2' })
      await finds(basic, 'answer ok')
      expect(Buffer.from(input, 'latin1').toString('hex')).toMatch(/^(?:00d2)+$/)
    })

    test('H55 the answer within TLS is compared as that of a tcp monitor', async () => {
      const healthy = await within(speaks('+OK ready\r\n'), { expect: '/^\\+OK /' })
      await finds(healthy.basic, 'handshake ok', 'answer ok: …sent "+OK ready" in…')
      await finds(healthy.advanced, 'answer ok')
      await finds((await within(replies('-ERR\r\n'), { send: 'PING\r\n', expect: '+PONG' })).basic, [
        'answer failed (protocol)',
        /sent "-ERR" and closed the connection, expected "\+PONG"$/,
      ])
    })

    test('H55 a server that is frozen behind a proxy fails with expect', async () => {
      const { basic, advanced } = await within(blackHole, { expect: '220 ' })
      for (const results of [basic, advanced]) await finds(results, 'answer failed (timeout): …sent nothing for…')
    })

    test.each([
      ['* OK IMAP4rev1 ready\r\n', 'next: use the kind of its server, or send and expect'],
      ['220 mx.example.org ESMTP\r\n', 'next: expect: "220"'],
      [undefined, 'next: use the kind of its server, or send and expect'],
    ])('H55 Advanced says that only TLS was tested, and what to add for the greeting %j', async (greeting, next) => {
      const { basic, advanced } = await within(greeting === undefined ? blackHole : speaks(greeting), {})
      expect(basic.map(({ check }) => check)).toEqual(['handshake'])
      expectResult(checked(advanced, 'open'), 'ok', { details: [expect.stringContaining(next.slice(6))] })
      expect(checked(advanced, 'open').message).toContain('only TLS is tested')
    })

    test('a server that ends the connection after the handshake is no fault: it may demand a certificate', async () => {
      const { advanced } = await within((socket) => void socket.end(), {})
      await finds(advanced, 'open ok: …closed the connection; only TLS is tested…')
    })

    test('nothing is sent to a server that is not trusted, in Basic neither', async () => {
      const { basic, input } = await within(blackHole, { send: 'PING\r\n' }, made.otherHost)
      await finds(basic, 'answer failed (tls): …is not for svc.test…')
      expect(input).toBe('')
      const hex = await within(blackHole, { sendHex: '00 d2' }, made.otherHost)
      expect(hex.input).toBe('')
      const unverified = await within(replies('pong'), { send: 'PING\r\n', verify: false }, made.otherHost)
      await finds(unverified.basic, 'answer ok')
    })
  })

  describe('tls addresses', () => {
    const resolve = () => Promise.resolve(['127.0.0.2', '127.0.0.1'])

    test('all finds the one node with an old certificate', async () => {
      await using good = await peer(blackHole, { tls: made.good })
      await using old = await peer(blackHole, { tls: made.expired, host: '127.0.0.2', port: good.port })
      const settings = { host: 'svc.test', port: good.port, caFile: made.caFile, addresses: 'all' as const }
      const results = await runKind(tls, settings, 'Standard', { resolve })
      const expiry = results.filter((result) => result.check === 'expiry')
      expect(expiry.map((result) => `${result.address} ${result.status}`).sort()).toEqual([
        `127.0.0.1:${good.port} ok`,
        `127.0.0.2:${old.port} failed`,
      ])
    })

    test('any skips a node that never answers for the next, in time', async () => {
      expect(await settled('')).toBe('')
      await using good = await peer(blackHole, { tls: made.good })
      await using deaf = await peer(blackHole, { host: '127.0.0.2', port: good.port })
      const settings = { host: 'svc.test', port: good.port, caFile: made.caFile, addresses: 'any' as const }
      const results = await runKind(tls, settings, 'Standard', { resolve, timeoutMs: 2_000 })
      expect(results[0]).toMatchObject({ status: 'warning', address: `127.0.0.2:${deaf.port}` })
      expect(results.slice(1).map((result) => result.status)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok'])
      expect(await settled('TCPServerWrap 2')).toBe('TCPServerWrap 2')
    })

    test('a deadline names the addresses that were silent, and no others', async () => {
      await using good = await peer(blackHole, { tls: made.good })
      await using deaf = await peer(blackHole, { host: '127.0.0.2', port: good.port })
      const settings = { host: 'svc.test', port: good.port, caFile: made.caFile, addresses: 'all' as const }
      const results = await runKind(tls, settings, 'Basic', { resolve, timeoutMs: 800 })
      expect(results.map((result) => result.status)).toEqual(['ok', 'failed'])
      expect(results[1]?.message).toMatch(
        new RegExp(`^127.0.0.2:${deaf.port} accepted the connection but sent nothing for [\\d.]+ m?s$`),
      )
    })
  })
})
